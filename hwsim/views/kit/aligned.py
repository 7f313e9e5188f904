"""Tables of text: columns under their headings, names to the left and numbers to the right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Column(NamedTuple):
    """Cells under a heading.

    Args:
        widest: letters of the longest cell that is shown in full; None for any.
        right: whether cells stand to the right, as numbers do.
    """

    heading: str
    cells: Sequence[str]
    right: bool = True
    widest: int | None = None

    def lines(self) -> list[str]:
        """The heading and the cells, all of one width."""
        texts = [self.heading, *(shortened(cell, self.widest) if self.widest else cell for cell in self.cells)]
        width = max(map(len, texts))
        return [text.rjust(width) if self.right else text.ljust(width) for text in texts]


def aligned(columns: Sequence[Column], *, indent: int = 2, widest: int | None = None) -> Iterator[str]:
    r"""Lines of a table; the first is the heading.

    Args:
        widest: letters of the longest line; longer ones are cut.

    >>> print(*aligned([Column("op", ["add", "all-reduce"], right=False), Column("time", ["1 us", "20 ms"])]), sep="\n")
      op           time
      add          1 us
      all-reduce  20 ms
    """
    for cells in zip(*(column.lines() for column in columns), strict=True):
        line = " " * indent + "  ".join(cells).rstrip()
        yield shortened(line, widest) if widest else line


def shortened(text: str, widest: int) -> str:
    """The text, or its beginning and three points.

    >>> shortened("all-reduce", 10), shortened("all-reduce", 8)
    ('all-reduce', 'all-r...')
    """
    return text if len(text) <= widest else text[: widest - 3] + "..."


def middle_out(text: str, widest: int) -> str:
    """The text, or both its ends and three points between them.

    >>> middle_out("node0.gpu0.compute", 12)
    'nod...ompute'
    """
    tail = widest // 2
    return text if len(text) <= widest else f"{text[: widest - tail - 3]}...{text[-tail:]}"
