"""Write the rooms of the package into docs/architecture.md: top first, with what each imports. --check: only compare.

A room is a folder of `hwsim/`, or a file beside them. Its sentence is the first line of its docstring.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "architecture.md"
BEGIN: Final = "<!-- rooms: written by `python scripts/rooms.py` -->\n"
END: Final = "<!-- end of rooms -->\n"


def rooms() -> list[str]:
    """Names of the rooms, from the command line down, as the layers of pyproject.toml have them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(contract["layers"] for contract in settings["contracts"] if contract["type"] == "layers")
    names = [name.strip(" ()") for layer in layers for name in layer.split("|")]
    return [name for name in names if (ROOT / "hwsim" / name).is_dir() or (ROOT / "hwsim" / f"{name}.py").is_file()]


def files(room: str) -> list[Path]:
    """Python files of a room."""
    folder = ROOT / "hwsim" / room
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def sentence(room: str) -> str:
    """First line of a room's docstring."""
    folder = ROOT / "hwsim" / room
    path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


def imported(room: str) -> set[str]:
    """Rooms that a room imports, also inside functions and for type checkers."""
    names: set[str] = set()
    for path in files(room):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "hwsim":
                parts = (node.module or "").split(".")
                names |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
    return names & set(rooms()) - {room}


def table() -> Iterator[str]:
    """One row for each room."""
    yield "| package | content | imports |"
    yield "|---|---|---|"
    order = rooms()
    for room in order:
        path = f"hwsim/{room}/" if (ROOT / "hwsim" / room).is_dir() else f"hwsim/{room}.py"
        below = imported(room)
        yield f"| [`{room}`](../{path}) | {sentence(room)} | {', '.join(name for name in order if name in below) or 'nothing'} |"


def page(text: str) -> str:
    """The page with the rooms as they are now."""
    block = BEGIN + "\n" + "\n".join(table()) + "\n\n" + END
    return re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: block, text, flags=re.DOTALL)


def main() -> int:
    """Write or compare the page."""
    text = PAGE.read_text(encoding="utf-8")
    if "--check" in sys.argv[1:]:
        return int(page(text) != text)
    PAGE.write_text(page(text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
