"""Exporters: write runs and op graphs as input of other tools.

A new tool needs a module with a function `files` and a line in `tools.py`.
"""
