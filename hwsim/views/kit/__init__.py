"""Parts shared by all views: tables, figures, warnings, file output, and the view itself."""
