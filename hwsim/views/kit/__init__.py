"""The parts of every view: tables, figures, warnings, whole files, and the view itself."""
