"""The latency numbers of a machine as text and JSON (`hwsim: latency/2`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hwsim.formats import format_quantity, precise
from hwsim.spec import did_you_mean
from hwsim.views.explain.derivation import seconds, substitute_inputs
from hwsim.views.kit.document import select_attributes
from hwsim.views.kit.lines import WIDTH, wrap_lines
from hwsim.views.kit.table import Column, align_columns, free_width, wrap_column
from hwsim.views.kit.view import Heading, Unshowable
from hwsim.views.latency.find import KEYS, LatencyNumbers, LatencyRow, MissingRow, Table

TITLES: Final[Mapping[Table, str]] = {"common": "CPU, memory, disks, networks", "gpu": "GPU"}


def text(latencies: LatencyNumbers, heading: Heading, *, every: bool = False, key: str = "") -> str:
    """Return both tables, or the derivation of a row.

    Args:
        latencies: rows.
        heading: heading.
        every: whether to list unavailable rows with the reason.
        key: row to derive; "" for the tables.

    Raises:
        Unshowable: the row does not exist.
    """
    if key and key not in KEYS:
        raise Unshowable(f"unknown row '{key}'", did_you_mean(key, KEYS) or f"known: {', '.join(KEYS)}", "--explain")
    if key:
        return "\n".join(_derivation(latencies.row(key))) + "\n"
    rows, missing = latencies.rows, latencies.missing
    lines = [f"latency numbers, on {heading.machine}"]
    widest = max((len(name) for name in (*(row.name for row in rows), *(row.probe.name for row in missing))), default=0)
    for kind, title in TITLES.items():
        if cells := [_cells(row) for row in rows if row.table == kind]:
            names = (f"{title:<{widest}}", "latency", "d2l", "ratio ", "derivation")
            columns = list(map(Column, names, zip(*cells, strict=True), (False, True, True, True, False)))
            lines += ["", *align_columns(wrap_column(columns, 4, free_width(columns[:4], 4)))]
        if every and (reasons := [(row.probe.name, row.reason) for row in missing if row.probe.table == kind]):
            columns = list(map(Column, (" " * widest, ""), zip(*reasons, strict=True), (False, False)))
            lines += ["", f"  not available: {title}", *align_columns(wrap_column(columns, 1, WIDTH - widest - 4))[1:]]
    if not rows:
        lines += ["", "  none: no part has the necessary numbers (--all lists them)"]
    elif missing and not every:
        lines += ["", f"  {len(missing)} rows not available: a part or a number is missing (--all lists them)"]
    if any(row.uses_text and row.text_s is not None for row in rows):
        lines += ["", "  * not a prediction: a number of this row is taken from the text or fitted to it"]
    keys = ", ".join(row.key for row in rows)
    lines += [
        "",
        *wrap_lines(f"d2l: Dive into Deep Learning, section 13.4.  --explain ROW shows a derivation: {keys}", 2, deeper=6),
    ]
    return "\n".join(lines) + "\n"


def document(latencies: LatencyNumbers) -> dict[str, Any]:
    """Return the tables as dicts and lists; times in seconds, null if the text has no such row."""
    rows = []
    for row in latencies.rows:
        why = [
            select_attributes(term, "label", "formula", time_s="seconds")
            | {"inputs": [{"name": name, "value": value, "source": str(source)} for name, value, source in term.inputs]}
            for term in row.why
        ]
        names = select_attributes(row, "key", "name", "table", "ratio", "part", uses_reference="uses_text", time_s="seconds")
        rows.append({**names, "reference_s": row.text_s, "method": row.how, "derivation": why})
    probes = [select_attributes(row.probe, "key", "name", "table", reference_s="text_s") for row in latencies.missing]
    missing = [probe | {"reason": row.reason} for probe, row in zip(probes, latencies.missing, strict=True)]
    return {"rows": rows, "not_available": missing}


def _cells(row: LatencyRow) -> tuple[str, ...]:
    text_s = "" if row.text_s is None else precise(row.text_s, "s")
    mark = "*" if row.uses_text and row.text_s is not None else " "
    return row.name, format_quantity(row.seconds, "s"), text_s, _ratio(row.ratio) + mark, f"{row.part}: {row.how}"


def _derivation(row: LatencyRow | MissingRow) -> list[str]:
    """Return the derivation lines of a row, with numbers substituted and their sources."""
    if isinstance(row, MissingRow):
        return [f"{row.probe.name} ({row.probe.key})", f"  not available: {row.reason}"]
    lines = [f"{row.name} ({row.key})", f"  {seconds(row.seconds)} on {row.part}: {row.how}"]
    if row.text_s is not None:
        lines.append(f"  Dive into Deep Learning, section 13.4: {precise(row.text_s, 's')}; ratio {_ratio(row.ratio)}")
    for term in row.why:
        if term.seconds <= 0:
            continue
        if len(term.inputs) == 1:  # a single input has no formula
            name, value, source = term.inputs[0]
            lines += wrap_lines(f"{term.label}: {name} = {value}   ({source!s})", 4, deeper=8)
            continue
        lines += wrap_lines(f"{term.label}: {term.formula} = {substitute_inputs(term)} = {seconds(term.seconds)}", 4, deeper=8)
        for name, value, source in term.inputs:
            lines += wrap_lines(f"{name} = {value}   ({source!s})", 8, deeper=12)
    return lines


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"
