"""Lines of text under a title, 100 columns wide."""

from __future__ import annotations

import textwrap
from typing import Final

WIDTH: Final = 100
TITLE: Final = 12  # letters


def titled(title: str, text: str, letters: int = TITLE) -> list[str]:
    """A text, wrapped, after its title; letters: width of the title. A number stays on one line with its per cent sign.

    >>> titled("memory", "12 GB")
    ['  memory       12 GB']
    """
    tied = text.replace(" %", "\u00a0%")
    first, later = f"  {title:<{letters}} ", " " * (letters + 3)
    lines = textwrap.wrap(tied, WIDTH, initial_indent=first, subsequent_indent=later, break_long_words=False)
    return [line.replace("\u00a0", " ") for line in lines]
