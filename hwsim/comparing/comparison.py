"""Two runs compared: how many times as fast one is, by op and by cause, and what each change of the files contributes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from hwsim.api import ExpectationFailed, Run, Source, simulate
from hwsim.comparing.parameters import Files, comparable
from hwsim.comparing.shapley import EXACT, ORDERS
from hwsim.comparing.sides import Group, Side, Spent, of_run
from hwsim.comparing.waterfall import CannotMix, Progress, Waterfall, quantum, waterfall
from hwsim.costs import Paying
from hwsim.engine import Deadlock
from hwsim.records import dataclass
from hwsim.results.cause import family
from hwsim.results.interval import Interval
from hwsim.results.ratio import Ratio, ratio
from hwsim.spec import Mistake, Mistakes, SpecError, Warning, different
from hwsim.study.measures import TIME, Measure, NoSuchNumber, measure, throughput
from hwsim.study.provenance import unlike
from hwsim.study.ranking import differing
from hwsim.workload import sources

OF_TIME: Final = frozenset({TIME, "step_s", "mfu", "tokens_per_s", "samples_per_s", "batches_per_s", "flop_per_s", "b_per_s",
                            "accesses_per_s"})  # measures that are as unsure as the time  # fmt: skip
_INSIDE: Final = re.compile(r"(?<![\w*-])[\w-]+\*?\.(?=[\w-]+\*)")  # `node*.` of `node*.gpu*`
KINDS: Final = ("machine", "workload")


@dataclass(frozen=True, slots=True)
class Row:
    """A cause in both runs, in fs along their critical paths."""

    group: Group
    name: str
    first_fs: int
    second_fs: int

    @property
    def difference_fs(self) -> int:
        """Second less first."""
        return self.second_fs - self.first_fs


@dataclass(frozen=True, slots=True)
class OpPair:
    """An op, or ops whose names differ in numbers alone, in both runs; None where a run has none."""

    name: str
    first: Spent | None
    second: Spent | None


@dataclass(frozen=True)
class Comparison:
    """Two runs, A and B.

    Args:
        measure: the number by which they are compared; None if there is none, and `why` says so.
        values: the numbers of both runs.
        over: ratio by which B is better than A, with its interval; None where nothing says how sure it is.
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
        return tuple(sorted(_causes(self.first, self.second), key=lambda row: (-abs(self._apart(row)), row.name)))

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

    def plot(self, path: str | Path) -> Path:
        """Write a figure, .png, .svg or .pdf: the waterfall, or the causes if there is none.

        Raises:
            ValueError: another suffix.
        """
        from hwsim.comparing.say import drawn
        from hwsim.views.bars import draw
        from hwsim.views.kit.writing import write

        return write(path, draw.waterfall(drawn(self), Path(path).suffix))

    def report(self, path: str | Path) -> Path:
        """Write a page for a browser: which is better, why, and what each change contributes; nothing else is needed."""
        from hwsim.comparing.page import render
        from hwsim.views.kit.writing import write

        return write(path, render(self))

    def __str__(self) -> str:
        from hwsim.comparing.say import text

        return text(self)


def compare(
    machines: tuple[Source, Source],
    workloads: tuple[Source, Source],
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the word of the command line)
    set_a: Mapping[str, object] | None = None,
    set_b: Mapping[str, object] | None = None,
    by: str = "",
    attribute: bool = True,
    exact: int = EXACT,
    orders: int = ORDERS,
    interval: bool | Literal["runs"] = True,
    paying: Paying | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Simulate two runs and compare them.

    Args:
        machines, workloads: those files for A and for B: paths, names of the library, or what files would say.
        set: what to change in both; set_a, set_b: in one of them.
        by: the number that is compared, as in a sweep; default: time, or work a second where they do different amounts.
        attribute: find what each change of the files contributes, by further runs.
        exact: number of changes up to which all sets of them are run; orders: orders that are drawn beyond.
        interval: "runs": find the ends of the intervals with more runs, of a service too.
        paying: prices, a way to pay and a site, for `energy`, `carbon` and `cost` (`hwsim.costs.Paying`).
        progress: called with the further runs done and to do.

    Raises:
        SpecError: a mistake in the files, or no such number.

    >>> found = compare(("d2l-laptop", "d2l-laptop"), ("d2l/async-loop", "d2l/async-loop"), set={"n": 100},
    ...                 set_a={"blocking": True}, set_b={"blocking": False})
    >>> found.values, [(each.change.name, each.share) for each in found.steps.steps]
    ((0.005, 0.00302), [('blocking', -1980000000000)])
    """
    files = _files(machines, workloads, _own_settings(set, set_a, set_b))
    runs = [run_files(each, interval=interval, paying=paying) for each in files]
    settings = [tuple((path, str(value)) for path, value in own.items()) for own in _own_settings(set, set_a, set_b)]
    sides = [replace(of_run(run, run.to_json), settings=each) for run, each in zip(runs, settings, strict=True)]
    both = of_sides(sides[0], sides[1], by)
    if interval == "runs" and runs[0].serving_ends and runs[1].serving_ends and both.measure is not None:
        both = replace(both, over=_over_ends(both, runs[0], runs[1]))
    if not attribute or both.measure is None or both.values is None:
        return both
    compared, unit = both.measure, quantum(both.values, both.measure.unit)
    is_cost = compared.column == "cost_usd"
    if is_cost:  # a machine with parts of both has no price: the price is a change of its own
        rates = [value / run.makespan_s for value, run in zip(both.values, runs, strict=True)]
        files = files[0]._replace(price=rates[0]), files[1]._replace(price=rates[1])

    def value(mixture: Files) -> int:
        for end, run in zip(files, runs, strict=True):
            if mixture is end:
                return _whole(run, compared, unit)
        try:
            run = run_files(mixture, interval=False, paying=paying)
            return round(mixture.price * run.makespan_s / unit) if is_cost else _whole(run, compared, unit)
        except (SpecError, Deadlock) as error:
            raise CannotMix from error

    return replace(both, steps=waterfall(*files, value, unit, exact=exact, orders=orders, progress=progress))


def _own_settings(*settings: Mapping[str, object] | None) -> tuple[dict[str, object], dict[str, object]]:
    common, first, second = (dict(each or {}) for each in settings)
    return {**common, **first}, {**common, **second}


def _files(
    machines: tuple[Source, Source], workloads: tuple[Source, Source], settings: Sequence[Mapping[str, object]]
) -> tuple[Files, Files]:
    mistakes = Mistakes()
    trees = [
        [sources.tree_from(kind, source, mistakes) for source in both]
        for kind, both in zip(KINDS, (machines, workloads), strict=True)
    ]
    mistakes.raise_if_any()
    pairs = []
    for machine, workload, changes in zip(*trees, settings, strict=True):
        assert machine is not None
        assert workload is not None
        pairs.append(sources.changed(machine, workload, changes, Mistakes(), []))
    machine_trees = comparable(pairs[0][0], pairs[1][0], "machine")
    workload_trees = comparable(pairs[0][1], pairs[1][1], "workload")
    first, second = (Files(*each) for each in zip(machine_trees, workload_trees, strict=True))
    return first, second


def run_files(files: Files, *, interval: bool | Literal["runs"], paying: Paying | None = None) -> Run:
    """Simulate both files, even if the run does not fit its memory."""
    try:
        return simulate(files.machine, files.workload, expect=False, interval=interval, paying=paying)
    except ExpectationFailed as failed:
        return failed.run


def _whole(run: Run, compared: Measure, unit: float) -> int:
    if compared.column == TIME:
        return run.timeline.makespan_fs
    try:
        return round(_value(of_run(run, run.to_json), compared) / unit)
    except NoSuchNumber as error:
        raise CannotMix from error


def of_sides(first: Side, second: Side, by: str = "") -> Comparison:
    """Two sides compared by a measure, without a waterfall.

    Raises:
        SpecError: no such number in one of them.
    """
    unit = differing([first.work, second.work]) if first.work and second.work else ""
    why = ""
    if by:
        compared: Measure | None = measure(by)
        why = "as asked for"
    elif first.is_service or second.is_service:
        compared = None
        why = "which service is better depends on the measure: --by ttft_p95, tpot_p95, requests/s"
    elif unit:
        compared = throughput(unit)
        why = f"compared by {compared.title}, not by time: they do different amounts of work"
    else:
        compared = measure(TIME)
    values = over = None
    if compared is not None:
        try:
            values = _value(first, compared), _value(second, compared)
        except NoSuchNumber as error:
            raise SpecError([Mistake(None, str(error), error.hint)]) from None
        over = _over(first, second, compared, values, unit)
    notes = unlike([("A", first.interval), ("B", second.interval)]) if _machine(first) != _machine(second) else []
    warnings = different(first.warnings, second.warnings, [each for each in notes if each is not None])
    return Comparison(first, second, compared, values, over, why, unit, warnings)


def _machine(side: Side) -> tuple[str, ...]:
    """The machine of a side by its name, and its settings."""
    return (side.machine, *(f"{path}={value}" for path, value in side.settings if path.startswith("machine.")))


def _value(side: Side, compared: Measure) -> float:
    pace = next((work.per_s for work in side.work if throughput(work.unit).column == compared.column), None)
    return side.number(compared) if pace is None or compared.column in side.measures else pace


def _over(first: Side, second: Side, compared: Measure, values: tuple[float, float], unit: str) -> Ratio | None:
    """Ratio by which the second is better, where the interval of the time says how sure it is."""
    ours, theirs = first.interval, second.interval
    ranges = [side.range_of(compared) for side in (first, second)]
    if ours is not None and theirs is not None and None not in ranges and min(values) > 0:  # prices are unsure, and the time is
        halves = [math.log(ends[1] / ends[0]) / 2 for ends in ranges if ends is not None and ends[0] > 0]
        time = ratio(ours, theirs)
        return Ratio(values[0] / values[1], math.hypot(time.half, *halves), time.outside)
    if ours is None or theirs is None or compared.column not in OF_TIME or min(values) <= 0:
        return None
    paces = [next((work.per_s for work in side.work if work.unit == unit), 0.0) for side in (first, second)] if unit else [0.0]
    if all(pace > 0 for pace in paces):
        ours, theirs = ours.of(1 / paces[0]), theirs.of(1 / paces[1])
    plain = ratio(ours, theirs)
    return replace(plain, value=values[1] / values[0] if compared.most else values[0] / values[1])


def _over_ends(both: Comparison, first: Run, second: Run) -> Ratio | None:
    """The ratio of a number of two services, from runs at the ends of the intervals of their kernels."""
    assert both.measure is not None
    assert both.values is not None
    halves = []
    for run, value in zip((first, second), both.values, strict=True):
        assert run.serving_ends is not None
        try:
            ends = [_value(of_run(replace(run, serving=end), dict), both.measure) for end in run.serving_ends]
        except NoSuchNumber:
            return None
        if min(*ends, value) <= 0:
            return None
        halves.append(abs(math.log(ends[1] / ends[0])) / 2)
    kernels = [_alone(run.interval) for run in (first, second)]
    apart, product = ratio(kernels[0], kernels[1]), 2 * kernels[0].half * kernels[1].half
    alike = (kernels[0].half ** 2 + kernels[1].half ** 2 - apart.half**2) / product if product > 0 else 0.0
    half = math.sqrt(max(0.0, halves[0] ** 2 + halves[1] ** 2 - 2 * alike * math.prod(halves)))
    value = both.values[1] / both.values[0] if both.measure.most else both.values[0] / both.values[1]
    return Ratio(value, half, apart.outside)


def _alone(sure: Interval) -> Interval:
    return sure if sure.value > 0 else sure.of(1.0)


def _causes(first: Side, second: Side) -> Iterable[Row]:
    spent: dict[tuple[Group, str], list[int]] = {}
    names = [{name for _, name, _ in side.causes} for side in (first, second)]
    for at, side in enumerate((first, second)):
        for group, name, time in side.causes:
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
