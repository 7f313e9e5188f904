"""The number by which the rows of a study are compared.

Time compares rows of the same work. Where their work differs, work a second does. A service is compared only by a measure that
is requested: arrivals fix its time, and which latency or rate counts depends on the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.studies.measures import SERVICE, TIME, Measure, measure, throughput
from hwsim.studies.point import Row
from hwsim.studies.work import OPS_DONE, Work

SAME: Final = 0.01  # amounts this near each other are the same work


@dataclass(frozen=True, slots=True)
class Ranking:
    """A measure and its value for each row.

    Args:
        measure: None if no row is better than another.
        values: one for each row.
        why: in words; "" where time is compared by default.
        unit: unit of the work that differs; "" if none does.
    """

    measure: Measure | None
    values: tuple[float | None, ...]
    why: str = ""
    unit: str = ""

    def as_dict(self) -> dict[str, Any] | None:
        """The ranking for JSON."""
        if self.measure is None:
            return None
        best = "highest" if self.measure.most else "lowest"
        return {"measure": self.measure.column, "title": self.measure.title, "best": best, "why": self.why or "time"}


def ranking(rows: Sequence[Row], by: str = "") -> Ranking:
    """The requested measure, else time, or work a second where the rows' work differs."""
    if by:
        requested = measure(by)
        return Ranking(requested, tuple(_value(row, requested) for row in rows), "as asked for")
    ran = [row for row in rows if row.makespan_s is not None]
    if any(SERVICE in dict(row.measures) for row in ran):
        of_model = any("ttft_p95_s" in dict(row.measures) for row in ran)
        names = "ttft_p95, latency_p99, ..." if of_model else "p99, goodput/s, or a name of `expect:`"
        return Ranking(None, (None,) * len(rows), f"which row of a service is best depends on the measure: --by {names}")
    unit = differing([row.work for row in ran])
    if not unit:
        time = measure(TIME)
        ops = uncounted([row.work for row in ran])
        why = f"no op says how much work it is; the rows have {_amounts(*ops, 'ops')}" if ops else ""
        return Ranking(time, tuple(row.makespan_s for row in rows), why)
    amounts = sorted({work.amount for row in ran for work in row.work if work.unit == unit})
    paces = [next((work.per_s for work in row.work if work.unit == unit), None) for row in rows]
    why = f"the rows do different amounts of work, {_amounts(amounts[0], amounts[-1], unit)}"
    return Ranking(throughput(unit), tuple(paces), why, unit)


def differing(works: Sequence[tuple[Work, ...]]) -> str:
    """The unit in which runs did different amounts of work; "" if they did the same, or no unit is common to all.

    >>> differing([(Work("samples", 64, 10),), (Work("samples", 128, 15),)])
    'samples'
    """
    for unit in [work.unit for work in works[0] if work.unit != OPS_DONE] if works else ():
        amounts = [work.amount for run in works for work in run if work.unit == unit]
        if len(amounts) == len(works) and max(amounts) > (1 + SAME) * min(amounts):
            return unit
    return ""


def uncounted(works: Sequence[tuple[Work, ...]]) -> tuple[float, float] | None:
    """Fewest and most ops of runs that count nothing else and did different numbers of them."""
    amounts = [run[0].amount for run in works if len(run) == 1 and run[0].unit == OPS_DONE]
    return (min(amounts), max(amounts)) if len(amounts) == len(works) > 0 and max(amounts) > (1 + SAME) * min(amounts) else None


def _value(row: Row, measure: Measure) -> float | None:
    return row.makespan_s if measure.column == TIME else dict(row.measures).get(measure.column)


def _amounts(least: float, most: float, unit: str) -> str:
    if unit in ("FLOP", "B"):
        return f"{format_quantity(least, unit)} to {format_quantity(most, unit)}"
    return f"{least:,.0f} to {most:,.0f} {unit}"
