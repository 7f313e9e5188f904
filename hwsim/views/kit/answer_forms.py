"""Forms of every answer beside text and JSON: HTML in a notebook, a figure, a pandas data frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, overload

from hwsim.formats import format_quantity, format_share
from hwsim.ticks import FEMTO
from hwsim.views.kit.table import Column, size_text

if TYPE_CHECKING:
    import pandas as pd

ROWS: Final = 30  # largest number of rows in a notebook; `to_pandas` has all
UNITS: Final = (  # unit by suffix of a key
    ("_bytes_per_s", "B/s"), ("_b_per_s", "B/s"), ("_flop_per_s", "FLOP/s"), ("_per_s", "1/s"),
    ("_bytes", "B"), ("_usd", "USD"), ("_fs", "s"), ("_s", "s"),
)  # fmt: skip
TITLES: Final = {"makespan": "time", "bytes": "size", "chosen": "choice"}  # headings as in the text
NAMED: Final = {"algbw": "B/s", "busbw": "B/s", "flop": "FLOP"}


class NotebookAnswer:
    """An answer that a notebook shows as one table of its document.

    Args:
        TABLE: key of the list of rows in `to_json()`.
        COLUMNS: columns in a notebook; empty for all numbers and texts.
    """

    __slots__ = ()
    TABLE: ClassVar[str] = "rows"
    COLUMNS: ClassVar[tuple[str, ...]] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the document as dicts and lists in SI units; keys end in their unit."""
        raise NotImplementedError

    def to_pandas(self, table: str = "") -> pd.DataFrame:
        """Return the rows of a list of the document (`to_json`) as a pandas data frame, with nested names joined by dots.

        Args:
            table: key of the list, or keys joined by dots; default: the main table of the answer.

        Raises:
            ValueError: the document has no such list; the message names the lists.
            ModuleNotFoundError: pandas is not installed; the message says how to install it.
        """
        frame: pd.DataFrame = pandas().json_normalize(self.listed(table or self.TABLE), sep=".")
        return frame

    def listed(self, table: str) -> list[Mapping[str, Any]]:
        """Return the rows of a list of the document.

        Raises:
            ValueError: the document has no such list.
        """
        return rows_of(self.to_json(), table)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002 (IPython's signature, in a terminal)
        printer.text(str(self))

    def _repr_html_(self) -> str:
        found = self.listed(self.TABLE)
        warnings: Sequence[Any] = getattr(self, "warnings", ())
        return fragment(str(self), columns_of(list(map(flat, found)), self.COLUMNS), list(map(str, warnings)))


class FigureAnswer(NotebookAnswer):
    """An answer that also has a figure."""

    __slots__ = ()

    def figure(self, suffix: str) -> Iterable[bytes]:
        """Return the figure as bytes of a file with this suffix.

        Raises:
            ValueError: there is nothing to draw, or the suffix is not supported.
        """
        raise NotImplementedError

    @overload
    def plot(self) -> NotebookPicture: ...

    @overload
    def plot(self, path: str | Path) -> Path: ...

    def plot(self, path: str | Path | None = None) -> NotebookPicture | Path:
        """Write the figure (.png, .svg or .pdf), or show it in a notebook.

        Args:
            path: file; None for a picture in a notebook.

        Returns:
            The file, or a picture without a path.

        Raises:
            ValueError: there is nothing to draw, or the suffix is not supported.
        """
        return write_figure(self.figure, path)


class NotebookPicture(bytes):
    """A PNG image that a notebook shows."""

    def __repr__(self) -> str:
        return f"Picture of {len(self):,} bytes"

    def _repr_png_(self) -> bytes:
        return bytes(self)


def write_figure(figure: Callable[[str], Iterable[bytes]], path: str | Path | None) -> NotebookPicture | Path:
    """Write a figure to a file, or return a picture without a path.

    Args:
        figure: function from a suffix to the bytes of the file.
        path: file; None for a picture.
    """
    if path is None:
        return NotebookPicture(b"".join(figure(".png")))
    from hwsim.views.kit.figure import suffix_of
    from hwsim.views.kit.file_output import write

    return write(path, figure(suffix_of(path)))


def pandas() -> Any:
    """Import pandas.

    Raises:
        ModuleNotFoundError: pandas is not installed.
    """
    try:
        return import_module("pandas")
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError("to_pandas() needs pandas: pip install pandas", name="pandas") from missing


def rows_of(document: Mapping[str, Any], table: str) -> list[Mapping[str, Any]]:
    """Return a list of rows of a document.

    Raises:
        ValueError: the document has no such list.

    >>> rows_of({"rows": [{"a": 1}], "more": {"b": [{"c": 2}]}}, "more.b")
    [{'c': 2}]
    """
    tables = dict(_tables(document))
    if table not in tables:
        raise ValueError(f"unknown table '{table}': expected one of {', '.join(tables) or 'none'}")
    return tables[table]


def _tables(document: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    for key, value in document.items():
        if isinstance(value, Mapping):
            yield from _tables(value, f"{before}{key}.")
        elif isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
            yield f"{before}{key}", value


def flat(row: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return a row without lists, with nested names joined by dots.

    >>> flat({"set": {"n": 4}, "time_s": 1.0, "more": [1]})
    {'set.n': 4, 'time_s': 1.0}
    """
    cells: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            cells |= flat(value, f"{before}{key}.")
        elif not isinstance(value, list | tuple):
            cells[f"{before}{key}"] = value
    return cells


def fragment(text: str, columns: Sequence[Column], warnings: Sequence[str] = ()) -> str:
    """Return an answer as HTML: its head, warnings, a table, and the full text of the command line in a collapsed section.

    Names come from files, so everything is escaped; there are no scripts and only inline styles.
    """
    from html import escape  # slow import

    title, _, body = text.rstrip("\n").partition("\n\n")
    answer, _, rest = body.partition("\n\n")
    head = f"{title}\n\n{answer}" if answer else title
    lines = ["<div>", f"<pre>{escape(head)}</pre>", *(f"<p>warning: {escape(warning)}</p>" for warning in warnings)]
    lines += _table(columns)
    if rest:
        lines.append(f"<details><summary>as the command line prints it</summary><pre>{escape(rest)}</pre></details>")
    return "\n".join([*lines, "</div>"]) + "\n"


def columns_of(rows: Sequence[Mapping[str, Any]], wanted: Sequence[str] = ()) -> list[Column]:
    """Return rows of a document as columns of text, without keys that are empty in every row.

    Args:
        rows: rows without nested values.
        wanted: keys; default: all.
    """
    named = {name: None for row in rows for name, value in row.items() if value is not None and value != ""}
    named = {name: None for name in named if not (name.endswith("_fs") and f"{name.removesuffix('_fs')}_s" in named)}
    texts = {name for row in rows for name, value in row.items() if isinstance(value, str)}
    kept = [name for name in wanted or named if name in named]
    return [Column(_heading(name), [cell(name, row.get(name)) for row in rows], name not in texts) for name in kept]


def _table(columns: Sequence[Column]) -> Iterator[str]:
    from html import escape

    if not columns:
        return
    heads = "".join(f"<th>{escape(column.heading)}</th>" for column in columns)
    yield f"<table><thead><tr>{heads}</tr></thead><tbody>"
    starts = [f'<td style="text-align:{"right" if column.right else "left"}">' for column in columns]
    rows = list(zip(*(column.cells for column in columns), strict=True))
    for row in rows[:ROWS]:
        yield f"<tr>{''.join(f'{start}{escape(cell)}</td>' for start, cell in zip(starts, row, strict=True))}</tr>"
    yield "</tbody></table>"
    if len(rows) > ROWS:
        yield f"<p>{len(rows) - ROWS:,} more rows: to_pandas()</p>"


def _heading(name: str) -> str:
    """Return the name of a column, without the unit of its key.

    >>> _heading("interval.low_s"), _heading("makespan_s"), _heading("bytes")
    ('interval low', 'time', 'size')
    """
    name = name.removesuffix(next((end for end, _ in UNITS if name.endswith(end)), ""))
    return TITLES.get(name, name.replace("_", " ").replace(".", " "))


def cell(name: str, value: object) -> str:
    """Return a value with its unit.

    >>> cell("time_s", 0.0125), cell("share", 0.25), cell("bytes", 1024.0), cell("ops", 12000), cell("chosen", None)
    ('12.5 ms', '25 %', '1 KiB', '12,000', '')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    last = name.rpartition(".")[2]
    if last.endswith("_fs"):
        return format_quantity(value / FEMTO, "s")
    if last in ("share", "utilization", "mfu"):
        return format_share(value)
    if last == "bytes":
        return size_text(value)
    unit = NAMED.get(last) or next((unit for end, unit in UNITS if last.endswith(end)), "")
    if unit:
        return format_quantity(value, unit)
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"
