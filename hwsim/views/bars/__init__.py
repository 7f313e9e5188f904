"""Bars of a change: a waterfall from one answer to another, a tornado around one."""
