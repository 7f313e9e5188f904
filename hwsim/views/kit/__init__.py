"""What several views share: the table, the style of figures, titles, warnings, and files written whole."""
