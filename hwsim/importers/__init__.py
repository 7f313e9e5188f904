"""Importers: read recorded runs of other tools, replay them by rules, and predict them on other machines.

A new format needs a module with a function `read` and a line in `formats.py`.
"""
