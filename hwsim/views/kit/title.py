"""Titles of figures."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Final

TITLE: Final = 100  # letters of a line


def figure_title(name: str, settings: Iterable[tuple[str, str]] = ()) -> str:
    """What is drawn, and below it what was set for it: figures of different runs have different titles.

    >>> print(figure_title("a on b: 1 ms", [("n", "10"), ("batch", "64")]))
    a on b: 1 ms
    set n=10, batch=64
    """
    said = ", ".join(f"{path}={value}" for path, value in settings)
    return "\n".join([name, *textwrap.wrap(f"set {said}", TITLE, break_long_words=False)]) if said else name
