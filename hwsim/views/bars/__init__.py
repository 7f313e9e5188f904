"""Waterfalls and tornados as figures."""
