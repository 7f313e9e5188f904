"""The result as HTML for notebooks, without scripts."""

from __future__ import annotations

from typing import Final

from hwsim.results.critical import limited_by
from hwsim.results.result import Result
from hwsim.views.kit.answer_forms import fragment as shown
from hwsim.views.kit.table import Column
from hwsim.views.summary.capacities import capacities
from hwsim.views.summary.say import summary

HEADINGS: Final = {"resource": "name", "busy": "busy", "util": "percent", "moved": "moved", "rate while busy": "rate"}


def fragment(result: Result) -> str:
    """Return the head of the summary, the table of resources, warnings, and the full summary in a collapsed section."""
    rows, _ = capacities(result.usage, limited_by(result.simulated))
    columns = [Column(heading, [getattr(row, name) for row in rows], right=False) for heading, name in HEADINGS.items()]
    return shown(summary(result), columns, [str(warning) for warning in result.warnings])
