"""Sphinx: `sphinx-build -W docs docs/_build` with the extra [docs].

HWSIM_LABS=off shows the labs without running them, and writes no playable chapter.
"""

from __future__ import annotations

import os
import re
import runpy
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


BANNER = """
```{raw} html
<p class="playable">
<a href="chapter.html">Play the chapter: predict, reveal, and move the numbers. One page, no installation.</a></p>
```
"""


def with_banner(_app: Any, page: str, source: list[str]) -> None:
    """The first page and that of the chapter lead to the playable chapter, below their headings."""
    if page in ("index", "d2l"):
        heading, rest = source[0].split("\n", 1)
        source[0] = f"{heading}\n{BANNER}{rest}"


def with_folded_outputs(_app: Any, page: str, source: list[str]) -> None:
    """The outputs of a lab below its prediction are hidden until they are asked for: they tell the answer."""
    before, prediction, after = source[0].partition("## Your prediction\n")
    if page.startswith("labs/") and prediction:
        hidden = re.sub(r"^```\{code-cell\}.*\n(?!:tags)", "\\g<0>:tags: [hide-output]\n", after, flags=re.MULTILINE)
        source[0] = before + prediction + hidden


def write_chapter(app: Any, error: Exception | None) -> None:
    """Write the playable chapter beside the pages."""
    if error is None and app.builder.name == "html" and nb_execution_mode != "off":
        text = runpy.run_path(str(HERE.parent / "scripts" / "chapter.py"))["chapter"]()
        (Path(app.outdir) / "chapter.html").write_text(text, encoding="utf-8", newline="\n")


def setup(app: Any) -> None:
    app.connect("source-read", without_ways_out)
    app.connect("source-read", with_banner)
    app.connect("source-read", with_folded_outputs)
    app.connect("build-finished", write_chapter)
