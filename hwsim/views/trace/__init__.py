"""The timeline as a trace-event file."""
