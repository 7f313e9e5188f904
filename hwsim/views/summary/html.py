"""The result as a small HTML table for notebooks, without scripts."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from hwsim.formats import format_quantity, format_share
from hwsim.results.critical import families, limited_by
from hwsim.results.result import Result
from hwsim.views.summary.capacities import capacities


def render(result: Result, suffix: str = "") -> Iterable[bytes]:  # noqa: ARG001 (every report takes a suffix)
    """The fragment in UTF-8."""
    yield fragment(result).encode()


def fragment(result: Result) -> str:
    """A heading and the table of capacities."""
    limited = limited_by(result.timeline)
    limits = ", ".join(f"{name} {format_share(share)}" for name, _, share in families(limited)[:3])
    rows, _ = capacities(result.usage, limited)
    time = escape(format_quantity(result.makespan_s, "s"))
    heading = f"<b>{escape(result.workload)}</b> on <b>{escape(result.machine)}</b>: {time}"
    lines = [
        "<div>",
        f"<p>{heading}, limited by {escape(limits or 'nothing')}</p>",
        *(f"<p>warning: {escape(str(each))}</p>" for each in result.warnings),
        "<table><thead><tr><th>capacity</th><th>busy</th><th>moved</th><th>rate</th><th>utilisation</th></tr></thead><tbody>",
        *(
            f'<tr><td style="text-align:left">{escape(row.name)}</td>'
            + "".join(f"<td>{escape(cell)}</td>" for cell in (row.busy, row.moved, row.rate, row.percent))
            + "</tr>"
            for row in rows
        ),
        "</tbody></table></div>",
    ]
    return "\n".join(lines) + "\n"
