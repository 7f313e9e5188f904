"""By which number the rows of a study are compared.

Time compares rows of the same work.  Where their work differs, work a second does; a service is compared by nothing that is
not asked for: arrivals fix its time, and which of its latencies and paces counts depends on who asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hwsim.records import dataclass
from hwsim.study.measures import SERVICE, TIME, Measure, measure, throughput
from hwsim.study.work import differing, uncounted
from hwsim.units import format_quantity

if TYPE_CHECKING:
    from hwsim.study.table import Row


@dataclass(frozen=True, slots=True)
class Ranking:
    """A measure and its value for each row; measure: None, no row is better than another.

    why: in words, "" where time is compared because nothing speaks against it.  unit: of the work that differs, "" if none.
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
    """What the rows are compared by: what was asked for, else time, or work a second where their work differs."""
    if by:
        asked = measure(by)
        return Ranking(asked, tuple(_value(row, asked) for row in rows), "as asked for")
    ran = [row.outcome for row in rows if row.makespan_s is not None]
    if any(SERVICE in dict(each.measures) for each in ran):
        return Ranking(
            None, (None,) * len(rows), "which row of a service is best depends on the measure: --by ttft_p95, tpot_p95, ..."
        )
    unit = differing([each.work for each in ran])
    if not unit:
        time = measure(TIME)
        ops = uncounted([each.work for each in ran])
        why = f"no op says how much work it is; the rows have {_amounts(*ops, 'ops')}" if ops else ""
        return Ranking(time, tuple(row.makespan_s for row in rows), why)
    amounts = sorted({one.amount for each in ran for one in each.work if one.unit == unit})
    paces = [next((one.per_s for one in row.outcome.work if one.unit == unit), None) for row in rows]
    asked = throughput(unit)
    why = f"the rows do different amounts of work, {_amounts(amounts[0], amounts[-1], unit)}"
    return Ranking(asked, tuple(paces), why, unit)


def _value(row: Row, asked: Measure) -> float | None:
    return row.makespan_s if asked.column == TIME else dict(row.outcome.measures).get(asked.column)


def _amounts(least: float, most: float, unit: str) -> str:
    if unit in ("FLOP", "B"):
        return f"{format_quantity(least, unit)} to {format_quantity(most, unit)}"
    return f"{least:,.0f} to {most:,.0f} {unit}"
