"""The measure that ranks the rows of a study.

Rows with equal work are ranked by time. Rows with different amounts of work are ranked by throughput; they are not ranked if the
work is given as `busy` times or not counted. Energy, cost and time never rank different amounts of work, even if requested. A
service is ranked only by a requested measure: its arrivals fix its time, and which latency or rate matters depends on the
question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.results.work import COME, OPS_DONE, STATED, UNCOUNTED, WorkAmount
from hwsim.studies.measures import SERVICE, TIME, UNITS, StudyMeasure, measure, throughput
from hwsim.studies.point import StudyRow

OF_WORK: Final = frozenset({TIME, "step_s", "energy_joules", "carbon_kg", "cost_usd"})  # measures that grow with the work
RATES: Final = frozenset({"requests_per_s", "tokens_per_s", "tokens_per_s_gpu", "throughput_per_s"})
AS_ASKED: Final = "requested"
SAME: Final = 0.01  # relative difference up to which amounts of work are equal


@dataclass(frozen=True, slots=True)
class Ranking:
    """A measure and its value for each row.

    Args:
        measure: None if no row is better than another.
        values: one for each row.
        why: in words; "" where time is compared by default.
        unit: unit of the work that differs; "" if none does.
    """

    measure: StudyMeasure | None
    values: tuple[float | None, ...]
    why: str = ""
    unit: str = ""

    def as_dict(self) -> dict[str, Any] | None:
        """The ranking for JSON."""
        if self.measure is None:
            return None
        best = "highest" if self.measure.most else "lowest"
        return {"measure": self.measure.column, "title": self.measure.title, "best": best, "reason": self.why or "time"}


def ranking(rows: Sequence[StudyRow], by: str = "") -> Ranking:
    """Rank rows by the requested measure, else by time, or by throughput if their amounts of work differ."""
    ran = [row for row in rows if row.makespan_s is not None]
    works, nothing = [row.work for row in ran], (None,) * len(rows)
    if by:
        requested = measure(by)
        if why := unranked_reason(requested, works, [value_of(row, requested) for row in ran]):
            return Ranking(None, nothing, why)
        if len(kinds := dict.fromkeys(row.price_kind for row in ran if row.price_kind)) > 1:
            return Ranking(None, nothing, f"{requested.title} cannot rank prices of different kinds: {', '.join(kinds)}")
        return Ranking(requested, tuple(value_of(row, requested) for row in rows), AS_ASKED)
    if any(SERVICE in dict(row.measures) for row in ran):
        of_model = any("ttft_p95_s" in dict(row.measures) for row in ran)
        names = "ttft_p95, latency_p99, ..." if of_model else "p99, goodput/s, or a name of `expect:`"
        return Ranking(None, nothing, f"choose a measure of the service with --by {names}")
    unit = differing_unit(works)
    if not unit:
        return Ranking(measure(TIME), tuple(row.makespan_s for row in rows))
    why = f"the rows do {unequal_work(works, unit)}"
    if unit in UNCOUNTED:
        return Ranking(None, nothing, why)
    paces = tuple(next((work.per_s for work in row.work if work.unit == unit), None) for row in rows)
    return Ranking(throughput(unit), paces, why, unit)


def differing_unit(works: Sequence[tuple[WorkAmount, ...]]) -> str:
    """Return the unit in which runs did different amounts of work; "" if they did the same.

    The number of ops is compared if runs have no other unit, or if no run's most specific unit is common to all.

    >>> differing_unit([(WorkAmount("samples", 64, 10),), (WorkAmount("samples", 128, 15),)])
    'samples'
    """
    units = [[work.unit for work in run if work.unit != OPS_DONE] or [OPS_DONE] for run in works] if all(works) else []
    common = [unit for unit in units[0] if all(unit in run_units for run_units in units)] if units else []
    if units and not any(run_units[0] in common for run_units in units):
        return OPS_DONE
    for unit in common:
        amounts = [work.amount for run in works for work in run if work.unit == unit]
        if max(amounts) > (1 + SAME) * min(amounts):
            return unit
    return ""


def unranked_reason(asked: StudyMeasure, works: Sequence[tuple[WorkAmount, ...]], values: Sequence[float | None]) -> str:
    """Return the reason why a requested measure cannot rank the runs, with measures that can; "" if it can.

    Arrivals set the rate and the time of a service; time, energy and cost depend on the amount of work of each run.

    >>> copies = [(WorkAmount("B", 1e9, 5e10),), (WorkAmount("B", 4e9, 5e10),)]
    >>> unranked_reason(measure("time"), copies, [0.02, 0.08])
    'time cannot rank runs that do different amounts of work (1 GB to 4 GB); without --by, B/s is compared'
    """
    paced = [any(work.unit == COME for work in run) for run in works]
    is_rate = asked.column.rpartition(".")[2] in RATES
    if paced and (all(paced) if is_rate else asked.column == TIME and any(paced)):
        return f"{asked.title} follows from the arrival rate: use --by ttft_p95, latency_p99, ..., or --find rate"
    if asked.column == "step_s":
        steps = zip(works, values, strict=True)
        works = [tuple(work._replace(amount=work.per_s * (step or 0.0)) for work in run) for run, step in steps]
    unit = differing_unit(works) if asked.column in OF_WORK else ""
    if not unit:
        return ""
    pace = throughput(unit)
    how = f"; use --by {pace.title}" if pace.column in UNITS else f"; without --by, {pace.title} is compared"
    how = how if asked.unit == "s" and unit not in UNCOUNTED else ""
    return f"{asked.title} cannot rank runs that do {unequal_work(works, unit)}{how}"


def unequal_work(works: Sequence[tuple[WorkAmount, ...]], unit: str) -> str:
    """Return the smallest and largest amount of work as text."""
    amounts = [work.amount for run in works for work in run if work.unit == unit]
    si, named = {STATED: ("s", " of `busy`"), "FLOP": ("FLOP", ""), "B": ("B", "")}.get(unit, ("", f" {unit}"))
    ends = (format_quantity(end, si) if si else f"{end:,.0f}" for end in (min(amounts, default=0.0), max(amounts, default=0.0)))
    return f"different amounts of work ({' to '.join(ends)}{named})"


def value_of(row: StudyRow, measure: StudyMeasure) -> float | None:
    """Return the value of a measure in a row; None if the row has none."""
    return row.makespan_s if measure.column == TIME else dict(row.measures).get(measure.column)
