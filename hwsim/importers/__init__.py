"""Importers: recorded runs of other tools, explained by rules, replayed and predicted anew. A new format is a file and a line."""
