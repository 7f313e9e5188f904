"""Tables of text, and sizes in bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hwsim.units import format_quantity

BINARY: Final = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def table(rows: Iterable[Sequence[str]], columns: str, indent: str = "  ", gap: str = "  ") -> list[str]:
    """Lines of a table, each column as wide as its longest cell.

    Args:
        columns: alignment and least width of each column, such as "< >8 <".

    >>> table([("link", "rate"), ("uplink:cpu", "8 GB/s")], "< >8")
    ['  link            rate', '  uplink:cpu    8 GB/s']
    """
    lines = list(rows)
    formats = []
    for number, column in enumerate(columns.split()):
        width = max([int(column[1:] or 0), *(len(cells[number]) for cells in lines)])
        formats.append(f"{column[0]}{width}")
    return [(indent + gap.join(f"{cell:{spec}}" for cell, spec in zip(cells, formats, strict=True))).rstrip() for cells in lines]


def size_text(size: float) -> str:
    """A size in bytes, binary where it is a whole number of such units.

    >>> size_text(1024), size_text(1.5 * 2**30), size_text(160e6), size_text(0)
    ('1 KiB', '1536 MiB', '160 MB', '0 B')
    """
    for unit, name in BINARY:
        if unit <= size < 10_000 * unit and (size / unit).is_integer():
            return f"{size / unit:.0f} {name}"
    return format_quantity(size, "B")
