"""The result as HTML for notebooks, without scripts."""

from __future__ import annotations

from hwsim.results.critical import limited_by
from hwsim.results.result import Result
from hwsim.views.kit.answer_forms import fragment as shown
from hwsim.views.summary.capacities import capacities
from hwsim.views.summary.say import summary


def fragment(result: Result) -> str:
    """Return the head of the summary, the table of resources, warnings, and the full summary in a collapsed section."""
    rows, _ = capacities(result.usage, limited_by(result.simulated))
    cells = [
        {"resource": row.name, "busy": row.busy, "util": row.percent, "moved": row.moved, "rate while busy": row.rate}
        for row in rows
    ]
    return shown(summary(result), cells, warnings=[str(warning) for warning in result.warnings])
