"""Sphinx: `sphinx-build -W docs docs/_build` with the extra [docs].

HWSIM_LABS=off shows the labs without running them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hwsim import __version__

project = "hwsim"
author = copyright = "The hwsim authors"
release = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "jupyter_execute", ".jupyter_cache"]  # where a build leaves pages and labs that it ran
html_theme = "furo"
html_title = f"hwsim {release}"
html_static_path = ["_static"]
html_css_files = ["dark.css"]
myst_heading_anchors = 3
nb_execution_mode = os.environ.get("HWSIM_LABS", "cache")  # off, or cache: a lab whose cells are as before is not run again
nb_execution_raise_on_error = True
nb_execution_timeout = 120  # seconds of a cell
autodoc_member_order = "bysource"
autodoc_typehints = "description"


HERE = Path(__file__).parent


def without_ways_out(_app: Any, page: str, source: list[str]) -> None:
    """A link to a folder of the repository, or to a page beside docs/, leads nowhere in a site: its text stays."""
    folder = (HERE / page).parent

    def kept(link: re.Match[str]) -> str:
        target = folder / link[2]
        is_outside = target.suffix == ".md" and HERE not in target.resolve().parents
        return link[1] if is_outside or target.is_dir() else link[0]

    source[0] = re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s#:]+)(?:#[^)\s]*)?\)", kept, source[0])


def setup(app: Any) -> None:
    app.connect("source-read", without_ways_out)
