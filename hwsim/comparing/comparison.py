"""Two runs compared: the factor with its interval, critical paths by bound, cause and op, and the contribution of each change."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

from hwsim.comparing.class_defaults import JudgedRatio, ResultUncertainty, is_unlike, judged
from hwsim.comparing.sides import Group, OpSum, Side
from hwsim.comparing.waterfall import Waterfall
from hwsim.costs.machine_price import unlike_prices
from hwsim.formats import family
from hwsim.records import dataclass
from hwsim.results.ratio import Ratio
from hwsim.results.work import UNCOUNTED
from hwsim.spec import SpecError, Warning, distinct_warnings
from hwsim.studies.measures import TIME, NoSuchNumber, StudyMeasure, measure, throughput
from hwsim.studies.provenance import provenance_warnings
from hwsim.studies.ranking import AS_ASKED, differing_unit, unranked_reason
from hwsim.views.kit.answer_forms import FigureAnswer

OF_TIME: Final = frozenset({TIME, "step_s", "mfu", "tokens_per_s", "samples_per_s", "batches_per_s", "flop_per_s", "b_per_s",
                            "accesses_per_s"})  # measures with the uncertainty of the time  # fmt: skip
_INSIDE: Final = re.compile(r"(?<![\w*-])[\w-]+\*?\.(?=[\w-]+\*)")  # `node*.` of `node*.gpu*`


@dataclass(frozen=True, slots=True)
class CauseTimes:
    """The time of a cause or bound on the critical paths of both runs (fs); a bound has no group."""

    group: Group | None
    name: str
    first_fs: int
    second_fs: int

    @property
    def difference_fs(self) -> int:
        """Second minus first (fs)."""
        return self.second_fs - self.first_fs


@dataclass(frozen=True, slots=True)
class OpPair:
    """An op, or ops whose names differ only in numbers, in both runs; None if a run has none."""

    name: str
    first: OpSum | None
    second: OpSum | None


@dataclass(frozen=True)
class Comparison(FigureAnswer):
    """Two runs, A and B.

    Args:
        first: run A.
        second: run B.
        measure: measure by which they are compared; None if there is none.
        values: measure of both runs.
        over: ratio by which B is better than A, with its interval; None if its uncertainty is unknown, for example if
            only one machine was measured (`is_unlike`) and `alike` is unknown.
        why: reason for the measure, or why the runs are not compared.
        unit: unit of the work if its amounts differ; times are then compared per unit. "" if the amounts are equal.
        warnings: warnings of both runs.
        steps: contribution of each change of the files; None if not computed.
        alike: ratio with class defaults on both machines; None if not needed or unknown.
    """

    first: Side
    second: Side
    measure: StudyMeasure | None
    values: tuple[float, float] | None
    over: Ratio | None
    why: str
    unit: str
    warnings: tuple[Warning, ...]
    steps: Waterfall | None = None
    alike: float | None = None
    TABLE: ClassVar = "causes"

    @property
    def given(self) -> tuple[str, ...]:
        """Names and settings of the user, which may occur in the text whatever they contain."""
        sides = (self.first, self.second)
        named = [name for side in sides for name in (side.machine, side.workload, *(op.name for op in side.ops))]
        return (*named, *(text for side in sides for setting in side.settings for text in setting))

    @property
    def is_unlike(self) -> bool:
        """Whether a part is measured on one machine and a class default on the other."""
        return _machine(self.first) != _machine(self.second) and is_unlike(self.first.interval, self.second.interval)

    @property
    def not_comparable(self) -> str:
        """Reason why the costs cannot be compared: their prices are of different kinds; "" if they can."""
        is_cost = self.measure is not None and self.measure.column == "cost_usd"
        return unlike_prices(self.second.prices, self.first.prices) if is_cost else ""

    @cached_property
    def amounts(self) -> tuple[float, float]:
        """Amounts of work of both runs; 1 if they are equal."""
        if not self.unit:
            return 1.0, 1.0
        first, second = (next(work.amount for work in side.work if work.unit == self.unit) for side in (self.first, self.second))
        return first, second

    @cached_property
    def causes(self) -> tuple[CauseTimes, ...]:
        """Causes of both runs, largest difference first; the differences add up exactly to the difference of the times."""
        return tuple(sorted(_joint(self.first.causes, self.second.causes), key=lambda row: (-abs(self._apart(row)), row.name)))

    @cached_property
    def bounds(self) -> tuple[CauseTimes, ...]:
        """Bounds of both runs, largest difference first; the differences add up exactly to the difference of the times."""
        sides = [[(None, *bound) for bound in side.bounds] for side in (self.first, self.second)]
        return tuple(sorted(_joint(*sides), key=lambda row: (-abs(self._apart(row)), row.name)))

    def _apart(self, row: CauseTimes) -> float:
        return row.second_fs / self.amounts[1] - row.first_fs / self.amounts[0]

    @cached_property
    def ops(self) -> tuple[OpPair, ...]:
        """Ops of both runs, largest difference of time on the critical path first."""

        def apart(pair: OpPair) -> float:
            spent = [
                0.0 if op is None else (op.total_s if op.critical_path_fs is None else op.critical_path_fs * 1e-15) / amount
                for op, amount in zip((pair.first, pair.second), self.amounts, strict=True)
            ]
            return abs(spent[1] - spent[0])

        return tuple(sorted(_ops(self.first, self.second), key=lambda pair: (-apart(pair), pair.name)))

    def to_json(self) -> dict[str, Any]:
        """Return the document `hwsim: compare/2`."""
        from hwsim.comparing.say import as_dict

        return as_dict(self)

    def figure(self, suffix: str) -> Iterable[bytes]:
        """Render the waterfall, or the bounds of the critical paths without one."""
        from hwsim.comparing.say import drawn
        from hwsim.views.bars import draw

        return draw.render(drawn(self), suffix)

    def report(self, path: str | Path) -> Path:
        """Write a self-contained HTML page: which run is better, why, and the contribution of each change."""
        from hwsim.comparing.page import render
        from hwsim.views.kit.file_output import write

        return write(path, render(self))

    def text(self, *, verbose: bool = False) -> str:
        """Return the answer and its reasons; verbose: with all causes and the ops that differ most."""
        from hwsim.comparing.say import text

        return text(self, verbose=verbose)

    def __str__(self) -> str:
        return self.text()


Values = tuple[float, float]
Alike = Callable[[StudyMeasure, Values], float | None]


def of_sides(first: Side, second: Side, by: str = "", alike: Alike = lambda *_: None) -> Comparison:
    """Compare two sides by a measure, without a waterfall.

    Args:
        first: run A.
        second: run B.
        by: measure; default: time, or throughput if the amounts of work differ.
        alike: function that returns the ratio with class defaults on both machines, from the measure and both values.

    Raises:
        SpecError: a side has no such measure.
    """
    unit = differing_unit([first.work, second.work]) if first.work and second.work else ""
    is_uncounted, unit = unit in UNCOUNTED, "" if unit in UNCOUNTED else unit
    compared: StudyMeasure | None
    why = ""
    if by:
        compared, why = measure(by), AS_ASKED
    elif first.service or second.service:
        options = ", ".join(one.title if one.most else one.column.removesuffix("_s") for one in common(first, second))
        compared, why = None, f"not compared: choose a measure of a service: --by {options}"
    elif is_uncounted:
        compared, why = None, "not compared: the runs do different work, or amounts of work that no op counts"
    elif unit:
        compared = throughput(unit)
        why = f"{compared.title}, because the runs do different amounts of work"
    else:
        compared = measure(TIME)
    values, found = None, None
    if compared is not None:
        try:
            values = value_of(first, compared), value_of(second, compared)
        except NoSuchNumber as error:
            raise SpecError.of(None, str(error), error.hint) from None
        if by and (refused := unranked_reason(compared, [first.work, second.work], values)):
            compared, values, why = None, None, refused
        else:
            found = _judged(first, second, compared, values, unit, alike)
            why = (unlike_prices(second.prices, first.prices) if compared.column == "cost_usd" else "") or why
    over = None if found is None or found.why else found.over
    notes = provenance_warnings([("A", first.interval), ("B", second.interval)]) if _machine(first) != _machine(second) else []
    warnings = distinct_warnings(first.warnings, second.warnings, [note for note in notes if note is not None])
    return Comparison(first, second, compared, values, over, why, unit, warnings, alike=None if found is None else found.alike)


def common(first: Side, second: Side) -> list[StudyMeasure]:
    """Return the measures of a service, training or pipeline that both sides have."""
    return [measure(name) for name in first.measures if name in second.measures]


def _machine(side: Side) -> tuple[str, ...]:
    """Return the name of the machine of a side and its settings."""
    return (side.machine, *(f"{path}={value}" for path, value in side.settings if path.startswith("machine.")))


def value_of(side: Side, compared: StudyMeasure) -> float:
    """Return a measure of a side.

    Raises:
        NoSuchNumber: the side has no such measure.
    """
    pace = next((work.per_s for work in side.work if throughput(work.unit).column == compared.column), None)
    return side.number(compared) if pace is None or compared.column in side.measures else pace


def _judged(first: Side, second: Side, compared: StudyMeasure, values: Values, unit: str, alike: Alike) -> JudgedRatio | None:
    """Return the ratio with its interval; None if the uncertainty of the measure is unknown."""
    ours, theirs = first.interval, second.interval
    ranges = [side.range_of(compared) for side in (first, second)]
    is_ranged = None not in ranges  # the measure has an interval of its own
    if ours is None or theirs is None or min(values) <= 0 or not (is_ranged or compared.column in OF_TIME):
        return None
    paces = [next((work.per_s for work in side.work if work.unit == unit), 0.0) for side in (first, second)] if unit else [0.0]
    if all(pace > 0 for pace in paces):
        ours, theirs = ours.of(1 / paces[0]), theirs.of(1 / paces[1])
    known = [
        ResultUncertainty(
            time,
            math.log(ends[1] / ends[0]) / 2 if ends is not None and ends[0] > 0 else 0.0,
            side.prices if compared.column == "cost_usd" else (),
        )
        for side, time, ends in zip((first, second), (ours, theirs), ranges, strict=True)
    ]
    value = values[1] / values[0] if compared.most else values[0] / values[1]
    is_one = _machine(first) == _machine(second)
    return judged(value, known[0], known[1], None if is_one else lambda: alike(compared, values))


Spans = Sequence[tuple[Group | None, str, int]]


def _joint(first: Spans, second: Spans) -> Iterable[CauseTimes]:
    """Return the times of both runs by group and name."""
    spent: dict[tuple[Group | None, str], list[int]] = {}
    names = [{name for _, name, _ in spans} for spans in (first, second)]
    for index, spans in enumerate((first, second)):
        for group, name, time in spans:
            called = name if name in names[1 - index] else _INSIDE.sub("", name)
            spent.setdefault((group, called), [0, 0])[index] += time
    return [CauseTimes(group, name, *times) for (group, name), times in spent.items()]


def _ops(first: Side, second: Side) -> Iterable[OpPair]:
    """Yield the ops by name; if only one run has some ops of a family (layer7, layer8, ...), the family is one row."""
    if not first.ops or not second.ops:
        return
    names = [dict.fromkeys(side.by_op) for side in (first, second)]
    lone = {family(name) for index in (0, 1) for name in names[index] if name not in names[1 - index]}
    for name in dict.fromkeys([*names[0], *names[1]]):
        if family(name) not in lone or family(name) == name:
            yield OpPair(name, first.by_op.get(name), second.by_op.get(name))
    for group in sorted(lone):
        members = [[op for name, op in side.by_op.items() if family(name) == group != name] for side in (first, second)]
        if any(members):
            pair = [_joined(group, ops) if ops else None for ops in members]
            yield OpPair(group if max(map(len, members)) > 1 else next(op.name for ops in members for op in ops), *pair)


def _joined(name: str, ops: Sequence[OpSum]) -> OpSum:
    waits = [op.critical_path_fs for op in ops]
    waited = None if None in waits else sum(wait for wait in waits if wait is not None)  # integers
    return OpSum(name, sum(op.times for op in ops), math.fsum(op.total_s for op in ops), waited)
