"""Two runs compared: the factor with its interval, critical paths by bound, cause and op, and the contribution of each change."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

from hwsim.comparing.alike import UNLIKE, Judged, Known, is_unlike, judged
from hwsim.comparing.sides import Group, Side, Spent
from hwsim.comparing.waterfall import Waterfall
from hwsim.formats import family
from hwsim.records import dataclass
from hwsim.results.ratio import Ratio
from hwsim.results.work import UNCOUNTED
from hwsim.spec import SpecError, Warning, different
from hwsim.studies.measures import TIME, Measure, NoSuchNumber, measure, throughput
from hwsim.studies.provenance import unlike
from hwsim.studies.ranking import AS_ASKED, differing, unclaimed
from hwsim.views.kit.shown import Drawn

OF_TIME: Final = frozenset({TIME, "step_s", "mfu", "tokens_per_s", "samples_per_s", "batches_per_s", "flop_per_s", "b_per_s",
                            "accesses_per_s"})  # measures that are as unsure as the time  # fmt: skip
BY: Final = {"model": "ttft_p95, tpot_p95, requests/s", "program": "latency_p50, latency_p99, requests/s, goodput/s"}
_INSIDE: Final = re.compile(r"(?<![\w*-])[\w-]+\*?\.(?=[\w-]+\*)")  # `node*.` of `node*.gpu*`


@dataclass(frozen=True, slots=True)
class Row:
    """A cause or a bound in both runs, in fs along their critical paths; a bound has no group."""

    group: Group | None
    name: str
    first_fs: int
    second_fs: int

    @property
    def difference_fs(self) -> int:
        """Second minus first."""
        return self.second_fs - self.first_fs


@dataclass(frozen=True, slots=True)
class OpPair:
    """An op, or ops whose names differ in numbers alone, in both runs; None where a run has none."""

    name: str
    first: Spent | None
    second: Spent | None


@dataclass(frozen=True)
class Comparison(Drawn):
    """Two runs, A and B.

    Args:
        measure: the number by which they are compared; None if there is none, and `why` says so.
        values: the numbers of both runs.
        over: ratio by which B is better than A, with its interval; None where nothing says how sure it is, as between
            machines that are not known alike (`is_unlike`) if no run tells `alike`.
        alike: that ratio if both machines were known alike; None where they are, or where no run tells it.
        unit: unit of the work that differs; "" if both do the same. Times are then compared per unit.
        steps: what each change of the files contributes; None if it was left out.
    """

    first: Side
    second: Side
    measure: Measure | None
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
        """Names and settings that users wrote, which may stand in the text whatever they say."""
        sides = (self.first, self.second)
        named = [name for side in sides for name in (side.machine, side.workload, *(op.name for op in side.ops))]
        return (*named, *(text for side in sides for setting in side.settings for text in setting))

    @property
    def is_unlike(self) -> bool:
        """Whether a part was measured of one machine, and is filled in from its class in the other."""
        return _machine(self.first) != _machine(self.second) and is_unlike(self.first.interval, self.second.interval)

    @cached_property
    def amounts(self) -> tuple[float, float]:
        """Amounts of the work that differs; 1 if both do the same."""
        if not self.unit:
            return 1.0, 1.0
        first, second = (next(work.amount for work in side.work if work.unit == self.unit) for side in (self.first, self.second))
        return first, second

    @cached_property
    def causes(self) -> tuple[Row, ...]:
        """Causes of both, the largest difference first; the differences add up to the difference of the times exactly."""
        return tuple(sorted(_joint(self.first.causes, self.second.causes), key=lambda row: (-abs(self._apart(row)), row.name)))

    @cached_property
    def bounds(self) -> tuple[Row, ...]:
        """Bounds of both, ordered as the causes; their differences add up to that of the times as well."""
        sides = [[(None, *bound) for bound in side.bounds] for side in (self.first, self.second)]
        return tuple(sorted(_joint(*sides), key=lambda row: (-abs(self._apart(row)), row.name)))

    def _apart(self, row: Row) -> float:
        return row.second_fs / self.amounts[1] - row.first_fs / self.amounts[0]

    @cached_property
    def ops(self) -> tuple[OpPair, ...]:
        """Ops of both, the largest difference of the time that the run waits for them first."""

        def apart(pair: OpPair) -> float:
            spent = [
                0.0 if op is None else (op.total_s if op.waited_fs is None else op.waited_fs * 1e-15) / amount
                for op, amount in zip((pair.first, pair.second), self.amounts, strict=True)
            ]
            return abs(spent[1] - spent[0])

        return tuple(sorted(_ops(self.first, self.second), key=lambda pair: (-apart(pair), pair.name)))

    def to_json(self) -> dict[str, Any]:
        """The document `hwsim: compare/1`."""
        from hwsim.comparing.say import as_dict

        return as_dict(self)

    def figure(self, suffix: str) -> Iterable[bytes]:
        """The waterfall, or the bounds of the critical paths if there is none."""
        from hwsim.comparing.say import drawn
        from hwsim.views.bars import draw

        return draw.render(drawn(self), suffix)

    def report(self, path: str | Path) -> Path:
        """Write a self-contained HTML page: which run is better, why, and the contribution of each change."""
        from hwsim.comparing.page import render
        from hwsim.views.kit.writing import write

        return write(path, render(self))

    def text(self, *, verbose: bool = False) -> str:
        """The answer and why; verbose: with all causes and the ops that differ most."""
        from hwsim.comparing.say import text

        return text(self, verbose=verbose)

    def __str__(self) -> str:
        return self.text()


Values = tuple[float, float]
Alike = Callable[[Measure, Values], float | None]


def of_sides(first: Side, second: Side, by: str = "", alike: Alike = lambda *_: None) -> Comparison:
    """Two sides compared by a measure, without a waterfall.

    Args:
        alike: finds how much better the second is if both machines are known alike, by the measure and both values; without it
            there is no range of machines that are not.

    Raises:
        SpecError: no such number in one of them.
    """
    unit = differing([first.work, second.work]) if first.work and second.work else ""
    is_uncounted, unit = unit in UNCOUNTED, "" if unit in UNCOUNTED else unit
    compared: Measure | None
    why = ""
    if by:
        compared, why = measure(by), AS_ASKED
    elif first.service or second.service:
        compared = None
        why = f"not compared: choose a measure of a service with --by {BY[first.service or second.service]}"
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
        if by and (refused := unclaimed(compared, [first.work, second.work], values)):
            compared, values, why = None, None, refused
        else:
            found = _judged(first, second, compared, values, unit, alike)
            why = found.why if found is not None and found.why not in ("", UNLIKE) else why
    over = None if found is None or found.why else found.over
    notes = unlike([("A", first.interval), ("B", second.interval)]) if _machine(first) != _machine(second) else []
    warnings = different(first.warnings, second.warnings, [note for note in notes if note is not None])
    return Comparison(first, second, compared, values, over, why, unit, warnings, alike=None if found is None else found.alike)


def _machine(side: Side) -> tuple[str, ...]:
    """The machine of a side by its name, and its settings."""
    return (side.machine, *(f"{path}={value}" for path, value in side.settings if path.startswith("machine.")))


def value_of(side: Side, compared: Measure) -> float:
    """A measure of a side.

    Raises:
        NoSuchNumber: it has none.
    """
    pace = next((work.per_s for work in side.work if throughput(work.unit).column == compared.column), None)
    return side.number(compared) if pace is None or compared.column in side.measures else pace


def _judged(first: Side, second: Side, compared: Measure, values: Values, unit: str, alike: Alike) -> Judged | None:
    """How much better the second is, where the interval of the time says how sure it is."""
    ours, theirs = first.interval, second.interval
    ranges = [side.range_of(compared) for side in (first, second)]
    is_ranged = None not in ranges  # prices are unsure, and the time is
    if ours is None or theirs is None or min(values) <= 0 or not (is_ranged or compared.column in OF_TIME):
        return None
    paces = [next((work.per_s for work in side.work if work.unit == unit), 0.0) for side in (first, second)] if unit else [0.0]
    if all(pace > 0 for pace in paces):
        ours, theirs = ours.of(1 / paces[0]), theirs.of(1 / paces[1])
    known = [
        Known(
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


def _joint(first: Spans, second: Spans) -> Iterable[Row]:
    """Rows of the times of both runs by group and name."""
    spent: dict[tuple[Group | None, str], list[int]] = {}
    names = [{name for _, name, _ in spans} for spans in (first, second)]
    for at, spans in enumerate((first, second)):
        for group, name, time in spans:
            called = name if name in names[1 - at] else _INSIDE.sub("", name)
            spent.setdefault((group, called), [0, 0])[at] += time
    return [Row(group, name, *times) for (group, name), times in spent.items()]


def _ops(first: Side, second: Side) -> Iterable[OpPair]:
    """Ops by name; ops of a family (layer7, layer8, ...) that one run alone has are compared as one."""
    if not first.ops or not second.ops:
        return
    names = [dict.fromkeys(side.by_op) for side in (first, second)]
    lone = {family(name) for at in (0, 1) for name in names[at] if name not in names[1 - at]}
    for name in dict.fromkeys([*names[0], *names[1]]):
        if family(name) not in lone or family(name) == name:
            yield OpPair(name, first.by_op.get(name), second.by_op.get(name))
    for group in sorted(lone):
        members = [[op for name, op in side.by_op.items() if family(name) == group != name] for side in (first, second)]
        if any(members):
            pair = [_joined(group, ops) if ops else None for ops in members]
            yield OpPair(group if max(map(len, members)) > 1 else next(op.name for ops in members for op in ops), *pair)


def _joined(name: str, ops: Sequence[Spent]) -> Spent:
    waits = [op.waited_fs for op in ops]
    waited = None if None in waits else sum(wait for wait in waits if wait is not None)  # integers
    return Spent(name, sum(op.times for op in ops), math.fsum(op.total_s for op in ops), waited)
