"""The forms in which every answer shows itself, next to its text and its document: HTML in a notebook, a figure, a data frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, overload

from hwsim.formats import format_quantity, format_share
from hwsim.ticks import FEMTO
from hwsim.views.kit.table import size_text

if TYPE_CHECKING:
    import pandas as pd

ROWS: Final = 30  # of a table in a notebook; `to_pandas` has them all
UNITS: Final = (  # ends of names of a document's numbers
    ("_bytes_per_s", "B/s"), ("_b_per_s", "B/s"), ("_flop_per_s", "FLOP/s"), ("_per_s", "1/s"),
    ("_bytes", "B"), ("_usd", "USD"), ("_fs", "s"), ("_s", "s"),
)  # fmt: skip
NAMED: Final = {"algbw": "B/s", "busbw": "B/s", "flop": "FLOP"}


class Shown:
    """An answer that a notebook shows: one table of its document stands for all of it.

    TABLE: key of the list of rows in `to_json()`; COLUMNS: what a notebook shows of a row (none: all numbers and texts).
    """

    __slots__ = ()
    TABLE: ClassVar[str] = "rows"
    COLUMNS: ClassVar[tuple[str, ...]] = ()

    def to_json(self) -> dict[str, Any]:
        """The document, as dicts and lists: SI units, keys end in their unit."""
        raise NotImplementedError

    def to_pandas(self, table: str = "") -> pd.DataFrame:
        """Rows of a list of the document (`to_json`), nested names joined with dots.

        Args:
            table: key of the list, or keys joined with dots; default: the one that the answer is about.

        Raises:
            ValueError: the document has no such list; the message names those it has.
            ModuleNotFoundError: pandas is not installed; the message says what to do.
        """
        frame: pd.DataFrame = pandas().json_normalize(self.listed(table or self.TABLE), sep=".")
        return frame

    def listed(self, table: str) -> list[Mapping[str, Any]]:
        """The rows of a list of the document.

        Raises:
            ValueError: it has none of that name.
        """
        return rows_of(self.to_json(), table)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002 (IPython's signature, in a terminal)
        printer.text(str(self))

    def _repr_html_(self) -> str:
        found = self.listed(self.TABLE)
        said: Sequence[Any] = getattr(self, "warnings", ())
        return fragment(str(self), list(map(flat, found)), self.COLUMNS, [str(each) for each in said])


class Drawn(Shown):
    """An answer that has a figure, too."""

    __slots__ = ()

    def figure(self, suffix: str) -> Iterable[bytes]:
        """The figure as bytes of a file of this suffix.

        Raises:
            ValueError: there is nothing to draw, or another suffix.
        """
        raise NotImplementedError

    @overload
    def plot(self) -> Picture: ...

    @overload
    def plot(self, path: str | Path) -> Path: ...

    def plot(self, path: str | Path | None = None) -> Picture | Path:
        """Write the figure (.png, .svg or .pdf), or give it to a notebook.

        Returns:
            The file; without a path a picture, which a notebook shows.

        Raises:
            ValueError: there is nothing to draw, or another suffix.
        """
        return drawn(self.figure, path)


class Picture(bytes):
    """A PNG that a notebook shows."""

    def __repr__(self) -> str:
        return f"Picture of {len(self):,} bytes"

    def _repr_png_(self) -> bytes:
        return bytes(self)


def drawn(figure: Callable[[str], Iterable[bytes]], path: str | Path | None) -> Picture | Path:
    """Write a figure, or give it to a notebook where no path is given.

    Args:
        figure: makes the bytes of a file by its suffix.
    """
    if path is None:
        return Picture(b"".join(figure(".png")))
    from hwsim.views.kit.figure import suffix_of
    from hwsim.views.kit.writing import write

    return write(path, figure(suffix_of(path)))


def pandas() -> Any:
    """The module.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    try:
        return import_module("pandas")
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError("to_pandas() needs pandas: pip install pandas", name="pandas") from missing


def rows_of(document: Mapping[str, Any], table: str) -> list[Mapping[str, Any]]:
    """A list of rows of a document.

    Raises:
        ValueError: there is none of that name.

    >>> rows_of({"rows": [{"a": 1}], "more": {"b": [{"c": 2}]}}, "more.b")
    [{'c': 2}]
    """
    tables = dict(_tables(document))
    if table not in tables:
        raise ValueError(f"there is no table '{table}'; there are {', '.join(tables) or 'none'}")
    return tables[table]


def _tables(document: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    for key, value in document.items():
        if isinstance(value, Mapping):
            yield from _tables(value, f"{before}{key}.")
        elif isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
            yield f"{before}{key}", value


def flat(row: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """A row without lists, nested names joined with dots.

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


def fragment(text: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = (), warnings: Sequence[str] = ()) -> str:
    """HTML of an answer: its head, its warnings, a table, and all that the command line would print below a fold.

    Names come from files, so that all of it is escaped; there are no scripts and no styles but inline ones.
    """
    from html import escape  # with all names of HTML

    title, _, body = text.rstrip("\n").partition("\n\n")
    answer, _, rest = body.partition("\n\n")
    head = f"{title}\n\n{answer}" if answer else title
    lines = ["<div>", f"<pre>{escape(head)}</pre>", *(f"<p>warning: {escape(warning)}</p>" for warning in warnings)]
    lines += _table(rows, columns)
    if rest:
        lines.append(f"<details><summary>as the command line prints it</summary><pre>{escape(rest)}</pre></details>")
    return "\n".join([*lines, "</div>"]) + "\n"


def _table(rows: Sequence[Mapping[str, Any]], wanted: Sequence[str]) -> Iterator[str]:
    from html import escape

    named = {name: None for row in rows for name, value in row.items() if value is not None and value != ""}
    named = {name: None for name in named if not (name.endswith("_fs") and f"{name.removesuffix('_fs')}_s" in named)}
    columns = (
        [name for each in wanted for name in named if name == each or name.startswith(f"{each}.")] if wanted else list(named)
    )
    if not columns:
        return
    heads = "".join(f"<th>{escape(_heading(name))}</th>" for name in columns)
    yield f"<table><thead><tr>{heads}</tr></thead><tbody>"
    for row in rows[:ROWS]:
        cells = [(cell(name, row.get(name)), isinstance(row.get(name), str)) for name in columns]
        yield "<tr>" + "".join(
            f'<td style="text-align:{"left" if is_text else "right"}">{escape(content)}</td>' for content, is_text in cells
        ) + "</tr>"  # fmt: skip
    yield "</tbody></table>"
    if len(rows) > ROWS:
        yield f"<p>{len(rows) - ROWS:,} more rows: to_pandas()</p>"


def _heading(name: str) -> str:
    """A name without its unit.

    >>> _heading("set.machine.links.slot.bandwidth"), _heading("interval.low_s"), _heading("measures.step_s")
    ('machine.links.slot.bandwidth', 'interval low', 'step')
    """
    if name.startswith("set."):
        return name.removeprefix("set.")
    name = name.removeprefix("measures.")
    end = next((end for end, _ in UNITS if name.endswith(end)), "")
    return name.removesuffix(end).replace("_", " ").replace(".", " ")


def cell(name: str, value: object) -> str:
    """A value with its unit.

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
    if last in ("share", "utilisation", "mfu"):
        return format_share(value)
    if last == "bytes":
        return size_text(value)
    unit = NAMED.get(last) or next((unit for end, unit in UNITS if last.endswith(end)), "")
    if unit:
        return format_quantity(value, unit)
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"
