"""Exporters: runs and op graphs as input of other tools. A new tool is a file and a line."""
