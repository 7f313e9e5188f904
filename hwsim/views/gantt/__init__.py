"""The timeline as a figure."""
