"""Text tables, and sizes in bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from hwsim.formats import format_quantity, precise
from hwsim.views.kit.lines import WIDTH, wrap_text

BINARY: Final = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def table(rows: Iterable[Sequence[str]], columns: str, indent: str = "  ", gap: str = "  ") -> list[str]:
    """Return the lines of a table, each column as wide as its longest cell.

    Args:
        rows: cells by row.
        columns: alignment and least width of each column, such as "< >8 <".
        indent: text before each line.
        gap: text between columns.

    >>> table([("link", "rate"), ("uplink:cpu", "8 GB/s")], "< >8")
    ['  link            rate', '  uplink:cpu    8 GB/s']
    """
    lines = list(rows)
    formats = []
    for number, column in enumerate(columns.split()):
        width = max([int(column[1:] or 0), *(len(cells[number]) for cells in lines)])
        formats.append(f"{column[0]}{width}")
    return [(indent + gap.join(f"{cell:{spec}}" for cell, spec in zip(cells, formats, strict=True))).rstrip() for cells in lines]


class Column(NamedTuple):
    """A column of a table.

    Args:
        heading: heading.
        cells: cells.
        right: whether the cells are right-aligned, as for numbers.
        widest: largest width (characters); None for any.
    """

    heading: str
    cells: Sequence[str]
    right: bool = True
    widest: int | None = None

    @property
    def texts(self) -> list[str]:
        """Heading and cells."""
        return [self.heading, *(cut_end(cell, self.widest) if self.widest else cell for cell in self.cells)]


def align_columns(columns: Sequence[Column], *, indent: int = 2, widest: int | None = None) -> list[str]:
    r"""Return the lines of a table of columns, headings first.

    Args:
        columns: columns.
        indent: indent of each line.
        widest: largest width of a line (characters); longer lines are cut.

    >>> print(*align_columns([Column("op", ["add", "all-reduce"], right=False), Column("time", ["1 us", "20 ms"])]), sep="\n")
      op           time
      add          1 us
      all-reduce  20 ms
    """
    rows = zip(*(column.texts for column in columns), strict=True)
    lines = table(rows, " ".join(">" if column.right else "<" for column in columns), " " * indent)
    return [cut_end(line, widest) for line in lines] if widest else lines


def wrap_column(columns: Sequence[Column], place: int, room: int) -> list[Column]:
    r"""Wrap long cells of one column onto additional rows, so that nothing is cut.

    Args:
        columns: columns.
        place: index of the column to wrap.
        room: largest width of its cells (characters).

    >>> print(*align_columns(wrap_column([Column("change", ["gpu -> other gpu"], False), Column("time", ["1 us"])], 0, 10)),
    ...     sep="\n")
      change      time
      gpu ->      1 us
      other gpu
    """
    pieces = [wrap_text(cell, room, break_long_words=False) or [""] for cell in columns[place].cells]
    return [
        column._replace(
            cells=[
                piece if number == place else column.cells[row] if line == 0 else ""
                for row, cell in enumerate(pieces)
                for line, piece in enumerate(cell)
            ]
        )
        for number, column in enumerate(columns)
    ]


def free_width(columns: Sequence[Column], place: int) -> int:
    """Return the width left for one column beside the others on a line of 100 (characters)."""
    others = sum(max(map(len, column.texts)) + 2 for number, column in enumerate(columns) if number != place)  # integers
    return WIDTH - others - 2


def cut_end(text: str, widest: int) -> str:
    """Return the text, cut to a width with three dots at the end.

    >>> cut_end("all-reduce", 10), cut_end("all-reduce", 8)
    ('all-reduce', 'all-r...')
    """
    return text if len(text) <= widest else text[: widest - 3] + "..."


def cut_middle(text: str, widest: int) -> str:
    """Return the text, cut to a width with three dots in the middle.

    >>> cut_middle("node0.gpu0.compute", 12)
    'nod...ompute'
    """
    tail = widest // 2
    return text if len(text) <= widest else f"{text[: widest - tail - 3]}...{text[-tail:]}"


def size_text(size: float) -> str:
    """Return a size as text: in a binary unit if that gives a whole number, and the size is not a multiple of 1000 bytes.

    >>> size_text(1024), size_text(1.5 * 2**30), size_text(160e6), size_text(640e3), size_text(1.024e6), size_text(0)
    ('1 KiB', '1536 MiB', '160 MB', '640 kB', '1.024 MB', '0 B')
    """
    if size >= 1000 and size % 1000 == 0 and size == float(f"{size:.5g}"):
        return precise(size, "B", 5)
    for unit, name in BINARY:
        if unit <= size < 10_000 * unit and (size / unit).is_integer():
            return f"{size / unit:.0f} {name}"
    return format_quantity(size, "B")
