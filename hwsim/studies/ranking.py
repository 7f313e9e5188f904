"""The number by which the rows of a study are compared.

Time compares rows of the same work. Where their work differs, work a second does; nothing does where it is stated as times of
`busy`, or not at all. A service is compared only by a measure that is requested: arrivals fix its time, and which latency or rate
counts depends on the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.studies.measures import SERVICE, TIME, Measure, measure, throughput
from hwsim.studies.point import Row
from hwsim.studies.work import COME, OPS_DONE, STATED, UNCOUNTED, Work

RATES: Final = frozenset({"requests_per_s", "tokens_per_s", "tokens_per_s_gpu", "answers_per_s"})
AS_ASKED: Final = "as asked for"
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
    ran = [row for row in rows if row.makespan_s is not None]
    if by:
        requested = measure(by)
        if why := set_by_arrivals(requested, [row.work for row in ran]):
            return Ranking(None, (None,) * len(rows), why)
        return Ranking(requested, tuple(value_of(row, requested) for row in rows), AS_ASKED)
    if any(SERVICE in dict(row.measures) for row in ran):
        of_model = any("ttft_p95_s" in dict(row.measures) for row in ran)
        names = "ttft_p95, latency_p99, ..." if of_model else "p99, goodput/s, or a name of `expect:`"
        return Ranking(None, (None,) * len(rows), f"which row of a service is best depends on the measure: --by {names}")
    unit = differing([row.work for row in ran])
    if not unit:
        return Ranking(measure(TIME), tuple(row.makespan_s for row in rows))
    amounts = sorted({work.amount for row in ran for work in row.work if work.unit == unit})
    why = f"the rows do different amounts of work, {_amounts(amounts[0], amounts[-1], unit)}"
    if unit in UNCOUNTED:
        return Ranking(None, (None,) * len(rows), f"no row is the fastest: {why}")
    paces = [next((work.per_s for work in row.work if work.unit == unit), None) for row in rows]
    return Ranking(throughput(unit), tuple(paces), why, unit)


def differing(works: Sequence[tuple[Work, ...]]) -> str:
    """The unit in which runs did different amounts of work; "" if they did the same, or no unit is common to all.

    The number of ops counts where there is nothing else.

    >>> differing([(Work("samples", 64, 10),), (Work("samples", 128, 15),)])
    'samples'
    """
    units = [work.unit for work in works[0]] if works else []
    for unit in [unit for unit in units if unit != OPS_DONE] or units:
        amounts = [work.amount for run in works for work in run if work.unit == unit]
        if len(amounts) == len(works) and max(amounts) > (1 + SAME) * min(amounts):
            return unit
    return ""


def set_by_arrivals(asked: Measure, works: Sequence[tuple[Work, ...]]) -> str:
    """Why a rate compares nothing, in words: every run serves what comes; "" if it does compare them."""
    if asked.column.rpartition(".")[2] not in RATES or not works or not all(any(w.unit == COME for w in run) for run in works):
        return ""
    return f"{asked.title} is set by the requests that come, which all are served: --by ttft_p95, latency_p99, ...; --find rate"


def value_of(row: Row, measure: Measure) -> float | None:
    """The value of a measure in a row; None if it has none."""
    return row.makespan_s if measure.column == TIME else dict(row.measures).get(measure.column)


def _amounts(least: float, most: float, unit: str) -> str:
    if unit == STATED:
        return f"{format_quantity(least, 's')} to {format_quantity(most, 's')} of `busy`"
    if unit in ("FLOP", "B"):
        return f"{format_quantity(least, unit)} to {format_quantity(most, unit)}"
    return f"{least:,.0f} to {most:,.0f} {unit}"
