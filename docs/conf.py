"""Sphinx: `sphinx-build -W docs docs/_build` with the extra [docs]."""

from __future__ import annotations

from hwsim import __version__

project = "hwsim"
author = "The hwsim authors"
release = __version__
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
html_theme = "furo"
myst_heading_anchors = 3
