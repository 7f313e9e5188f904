"""The latency numbers of a machine as text, JSON (`hwsim: latency/1`) or a figure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from hwsim import invariants
from hwsim.units import format_quantity, precise
from hwsim.views.explain.derivation import put_in, seconds
from hwsim.views.kit.figure import COLOURS, figure_bytes
from hwsim.views.kit.title import figure_title
from hwsim.views.kit.warned import as_dicts
from hwsim.views.latency.find import Missing

if TYPE_CHECKING:
    from hwsim.spec import Warning
    from hwsim.views.latency.find import Latencies, Row, Table

TITLES: Final[Mapping[Table, str]] = {"common": "CPU, memory, disks, networks", "gpu": "GPU"}
GREY: Final = "#8c8c8c"


@invariants.guarded
def text(found: Latencies, title: str, *, every: bool = False) -> str:
    """Both tables; `every`: also the rows that the machine has no part for, with the reason."""
    out = [f"latency numbers  on  {title}"]
    widest = max((*(len(each.name) for each in found.rows), *(len(each.name) for each in found.missing)), default=0)
    for table, heading in TITLES.items():
        rows = [each for each in found.rows if each.table == table]
        lacking = [each for each in found.missing if each.table == table] if every else []
        if not rows and not lacking:
            continue
        if rows:
            out += ["", f"  {heading:<{widest}}  {'here':>8}  {'text':>8}  {'ratio':>6}   from"]
            out += [_line(each, widest) for each in rows]
        if lacking:
            out += ["", f"  not on this machine: {heading}"]
            out += [_absent(each, widest) for each in lacking]
    if not found.rows:
        out += ["", "  none: no part of it says enough (--all says what is missing)"]
    elif found.missing and not every:
        out += ["", f"  {len(found.missing)} rows left out for want of a part or a number of it: --all names them"]
    if any(each.uses_text and each.text_s is not None for each in found.rows):
        out += ["", "  * an input, at least in part: a number behind the row is taken from the text or fitted to it"]
    out += ["", "  text: Dive into Deep Learning, 13.4.  --explain ROW derives a row: " + _keys(found)]
    return "\n".join([*out[:-1], *_wrapped(out[-1])]) + "\n"


@invariants.guarded
def explained(row: Row | Missing) -> str:
    """How a row comes about: every line that lowering wrote, with the numbers put in and their sources."""
    out = [f"{row.name} ({row.key})"]
    if isinstance(row, Missing):
        return "\n".join([*out, f"  not on this machine: {row.reason}"]) + "\n"
    out.append(f"  {seconds(row.seconds)} of {row.part}: {row.how}")
    if row.text_s is not None:
        out.append(f"  Dive into Deep Learning, 13.4, says {precise(row.text_s, 's')}; ratio {_ratio(row.ratio)}")
    for term in row.why:
        if term.seconds <= 0:
            continue
        if len(term.inputs) == 1:  # one number, by its name
            name, value, source = term.inputs[0]
            out += _wrapped(f"    {term.label}: {name} = {value}   ({source})")
            continue
        out += _wrapped(f"    {term.label}: {term.formula} = {put_in(term)} = {seconds(term.seconds)}")
        for name, value, source in term.inputs:
            out += _wrapped(f"        {name} = {value}   ({source})")
    return "\n".join(out) + "\n"


def as_dict(found: Latencies, title: str, warnings: Sequence[Warning] = ()) -> dict[str, Any]:
    """The tables as dicts and lists; times in seconds, null where the text has no such row."""
    return {
        "hwsim": "latency/1",
        "machine": title,
        "rows": [
            {
                "key": row.key,
                "name": row.name,
                "table": row.table,
                "time_s": row.seconds,
                "text_s": row.text_s,
                "ratio": row.ratio,
                "uses_text": row.uses_text,
                "part": row.part,
                "from": row.how,
                "why": [
                    {
                        "label": term.label,
                        "formula": term.formula,
                        "inputs": [{"name": name, "value": value, "source": source} for name, value, source in term.inputs],
                        "time_s": term.seconds,
                    }
                    for term in row.why
                ],
            }
            for row in found.rows
        ],
        "left_out": [
            {"key": each.key, "name": each.name, "table": each.table, "text_s": each.text_s, "reason": each.reason}
            for each in found.missing
        ],
        "warnings": as_dicts(warnings),
    }


def document(found: Latencies, title: str, warnings: Sequence[Warning] = ()) -> str:
    """The same as JSON, keys sorted."""
    return invariants.document(as_dict(found, title, warnings))


def render(found: Latencies, title: str, suffix: str = ".png", settings: Iterable[tuple[str, str]] = ()) -> Iterable[bytes]:
    """A figure: a bar per row over a logarithmic axis of time, a ring where the text has its number.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf, or there is no row to draw.
    """
    rows = found.rows
    if not rows:
        raise ValueError("no part of the machine says enough for a row")
    with figure_bytes(suffix, width=9, height=1.3 + 0.25 * len(rows)) as (figure, buffer):
        axes = figure.add_subplot()
        places = range(len(rows))
        colours = [COLOURS[0] if row.table == "common" else COLOURS[1] for row in rows]
        least = 10 ** _below(min(min(row.seconds, row.text_s or row.seconds) for row in rows))
        most = max(max(row.seconds, row.text_s or 0.0) for row in rows)
        axes.barh(places, [row.seconds - least for row in rows], left=least, color=colours, height=0.62)
        marked = [(row.text_s, at) for at, row in enumerate(rows) if row.text_s is not None]
        if marked:
            axes.plot([x for x, _ in marked], [y for _, y in marked], "o", markersize=6, markerfacecolor="white",
                      markeredgecolor="black", markeredgewidth=1.2, linestyle="none")  # fmt: skip
        for at, row in enumerate(rows):
            end = max(row.seconds, row.text_s or 0.0)
            axes.annotate(
                format_quantity(row.seconds, "s"), (end, at), (7, 0), textcoords="offset points", va="center", fontsize=8
            )
        axes.set_xscale("log")
        axes.set_xlim(least, most * 12)
        ticks = [10.0**power for power in range(_below(least), _below(most) + 2)]
        axes.set_xticks(ticks, [precise(tick, "s") for tick in ticks])
        axes.set_yticks(places, [row.name for row in rows], fontsize=8)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.grid(axis="x", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.set_title(figure_title(f"{title}: latency numbers", settings), fontsize="medium", loc="left")
        _legend(axes, rows, marked=bool(marked))
    return (buffer.getvalue(),)


def _legend(axes: Any, rows: tuple[Row, ...], *, marked: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    tables = [table for table in TITLES if any(row.table == table for row in rows)]
    handles: list[Any] = [Patch(color=COLOURS[list(TITLES).index(table)], label=TITLES[table]) for table in tables]
    if marked:
        ring = {"marker": "o", "color": "none", "markerfacecolor": "white", "markeredgecolor": "black"}
        handles.append(Line2D([], [], label="Dive into Deep Learning, 13.4", **ring))  # type: ignore[arg-type]
    axes.legend(handles=handles, frameon=False, fontsize="small", loc="upper right")


def _below(value: float) -> int:
    """The power of ten below."""
    return int(f"{value:e}".partition("e")[2])


def _line(row: Row, widest: int) -> str:
    said = "" if row.text_s is None else precise(row.text_s, "s")
    here = format_quantity(row.seconds, "s")
    mark = "*" if row.uses_text and row.text_s is not None else " "
    return f"  {row.name:<{widest}}  {here:>8}  {said:>8}  {_ratio(row.ratio):>6}{mark}  {row.part}: {row.how}".rstrip()


def _absent(each: Missing, widest: int) -> str:
    return f"  {each.name:<{widest}}  {each.reason}"


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def _keys(found: Latencies) -> str:
    return ", ".join(each.key for each in found.rows)


def _wrapped(line: str) -> Iterator[str]:
    indent = " " * (len(line) - len(line.lstrip()))
    return iter(
        textwrap.wrap(line.lstrip(), 110, initial_indent=indent, subsequent_indent=indent + "    ", break_on_hyphens=False)
        or [""]
    )
