"""Requests that walk through the steps of services, on columns: what `hwsim.actors.services.play` says, to the femtosecond.

Everything that may grow is looked at before each strand goes on: where there is too little room left, or an arrival is not
known yet, `play` returns and says so, and is called again with more.
"""
