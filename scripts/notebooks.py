"""Write the labs as .ipynb for download: `python scripts/notebooks.py FOLDER`; needs the extra [labs]."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

LABS: Final = Path(__file__).resolve().parent.parent / "docs" / "labs"


def labs() -> list[Path]:
    """Labs and solutions, all pages that have cells to run."""
    return sorted(path for path in LABS.rglob("*.md") if path.name != "index.md")


def read(path: Path) -> Any:
    """A lab as a notebook."""
    import jupytext

    return jupytext.read(path, fmt="md:myst")


def write(folder: Path) -> list[Path]:
    """Write all of them, in the folders they have in docs/labs."""
    import jupytext

    written = []
    for path in labs():
        to = (folder / path.relative_to(LABS)).with_suffix(".ipynb")
        to.parent.mkdir(parents=True, exist_ok=True)
        jupytext.write(read(path), to)
        written.append(to)
    return written


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"{__doc__}")
    for notebook in write(Path(sys.argv[1])):
        print(notebook)
