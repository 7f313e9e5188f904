"""What-if changes: the run prepared and simulated again with one number of its files twice as good.

Each line has the `--set` that makes the change, and equals the run with that `--set` to the femtosecond. Causes are tried in
the order of their time on the critical path, so the bottleneck is always tried. The busiest capacities follow, to show changes
that do not help, if the time of any op depends on them (a stated time does not). If the best change gains less than half of
what halving the bottleneck would gain, the bottleneck and the next cause are changed together (`together`).

A cause without a number in the files (a time of a model, the servers of a pool) is changed in the op graph, and marked as
hypothetical. A service forms other batches when its times change, so it has no hypothetical changes.

In a graph with several queues, a faster part may slow down the whole (Graham, 1969), so a speedup below 1 is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from hwsim.demand import Cost, by_name
from hwsim.formats import family
from hwsim.records import dataclass
from hwsim.results.activities import bounds_of
from hwsim.results.bound import Bound
from hwsim.results.cause import Cause
from hwsim.results.critical import CriticalPath, Share, critical_path
from hwsim.results.result import Result
from hwsim.results.timeline import Timeline
from hwsim.spec import SpecError
from hwsim.ticks import FEMTO
from hwsim.views.explain.hypothetical import Hypothetical, capacity_title, halve_cause
from hwsim.views.explain.levers import Lever, Levers
from hwsim.views.explain.measure import ServiceMeasure, measure
from hwsim.views.explain.numbers import FileNumbers
from hwsim.views.explain.stated_times import StatedTimes

LARGEST: Final = 200_000  # largest number of ops of a run with changes by default
MOST: Final = ((20_000, 8), (50_000, 5), (LARGEST, 3))  # (largest number of ops, number of changes)
OF_KERNELS: Final = 4  # largest number of changes of a service, each as slow as the run
EACH: Final = 2  # largest number of changes per cause
MATTERS: Final = 0.02  # share of the run; smaller causes are tried only if there are fewer than FEW changes
FEW: Final = 3  # number of changes
CO_LIMITS: Final = 0.2  # least share of a bottleneck for combined changes
HALF: Final = 0.5  # fraction of the gain of halving the bottleneck, below which changes are combined
BUSY: Final = 0.05  # least utilization of a capacity that is tried although it is not on the critical path
BUSIEST: Final = 4  # largest number of these capacities
JOINED: Final = 2  # largest number of runs with combined changes
NONE: Final = 0.99  # share of the makespan above which a change does not help
GIVEN: Final = {  # causes stated by the workload of a service
    "arrivals": "the workload file fixes them",
    "replica start": "set by `start:` of `scale:`; a larger `least:` avoids it",
}
COSTS: Final = 24  # largest number of kinds of ops per cause


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The result of one change.

    Args:
        change: change in words.
        makespan_fs: makespan (fs); None if the ops would deadlock, which can depend on their order in pools.
        speedup: factor on the makespan, or on the measure of a service.
        limited_by: causes on the critical path of the changed run, longest first.
        bound: bound of most of that critical path.
        settings: paths and values of `--set`; empty for a hypothetical change.
        combined: whether it combines several changes because none helps alone.
        measured: (name in `expect:`, value) of the measures of a service.
    """

    change: str
    makespan_fs: int | None
    speedup: float
    limited_by: tuple[Share, ...]
    bound: Bound | None = None
    settings: tuple[tuple[str, str], ...] = ()
    combined: bool = False
    measured: tuple[tuple[str, float], ...] = ()

    @property
    def hypothetical(self) -> bool:
        """Whether no number of the files makes the change."""
        return not self.settings

    @property
    def makespan_s(self) -> float | None:
        """Makespan (s)."""
        return None if self.makespan_fs is None else self.makespan_fs / FEMTO


@dataclass(frozen=True, slots=True)
class TriedChanges:
    """The changes that were tried, most helpful first.

    Args:
        rows: changes.
        untried: number of changes with smaller causes that were not tried.
        left: causes without a change, and changes that were refused.
        measure: measure of the speedups; None for the makespan.
    """

    rows: tuple[WhatIf, ...]
    untried: int = 0
    left: tuple[str, ...] = ()
    measure: ServiceMeasure | None = None


@dataclass(frozen=True, slots=True)
class _Limit:
    """A cause (or its family), its time on the critical path, and the costs of the ops that wait for it."""

    cause: Cause
    time_fs: int
    costs: tuple[Cost, ...]


def what_if(result: Result, path: CriticalPath, *, progress: Callable[[int, int], None] | None = None) -> TriedChanges:
    """Try one change after another.

    Args:
        result: result.
        path: critical path.
        progress: function called with (number of tried changes, number of all changes).
    """
    return _Trial(result, path, progress).run()


class _Trial:
    def __init__(self, result: Result, path: CriticalPath, progress: Callable[[int, int], None] | None) -> None:
        self._result, self._again, self._progress = result, result.again, progress
        self._path, self._makespan = path, result.timeline.makespan_fs
        self._known = by_name(result.timeline.flat.graph.capacities)
        self._levers = Levers(FileNumbers(self._again.machine), self._known) if self._again is not None else None
        self._stated = StatedTimes(self._again.workload) if self._again is not None else None
        waits = sum(share.time_fs for share in path.limited_by if str(share.cause) in GIVEN)
        self._measure = measure(result, arrivals=waits / self._makespan if self._makespan else 0.0)
        self._left: list[str] = []
        most = next((most for ops, most in MOST if len(result.timeline) <= ops), MOST[-1][1])
        self._most = min(most, OF_KERNELS) if result.of_kernels else most

    def run(self) -> TriedChanges:
        limits = _limits(self._result.timeline, self._path)
        wanted = list(self._wanted(limits))
        chosen, rest = wanted[: self._most], wanted[self._most :]
        rows: list[WhatIf] = []
        firsts: dict[Lever, Result] = {}  # changes of the longest cause
        for number, (limit, change) in enumerate(chosen):
            row, run = self._try(change)
            if row is not None:
                rows.append(row)
            if run is not None and isinstance(change, Lever) and limits and limit is limits[0]:
                firsts[change] = run
            if self._progress is not None:
                self._progress(number + 1, len(chosen))
        if limits and self._measure is None and (both := self._together(limits[0], rows, firsts)) is not None:
            rows.append(both)
        rows.sort(key=lambda row: (-row.speedup, row.hypothetical, row.change))
        return TriedChanges(tuple(rows), len(rest), tuple(dict.fromkeys(self._left)), self._measure)

    def _wanted(self, limits: Sequence[_Limit]) -> Iterator[tuple[_Limit | None, Lever | Hypothetical]]:
        """Yield distinct changes in the order of their causes' time on the critical path."""
        seen: set[object] = set()
        large = [limit for limit in limits if limit.time_fs >= MATTERS * self._makespan]
        treated = {capacity_title(self._known[limit.cause.name]) for limit in large if limit.cause.kind == "capacity"}
        causes: list[tuple[_Limit | None, Lever | Hypothetical]]
        causes = [(limit, change) for limit in large for change in self._against(limit)]
        causes += [(None, change) for change in self._of_busy(treated)]
        few = len(causes)
        causes += [(limit, change) for limit in limits[len(large) :] for change in self._against(limit)]
        for number, (limit, change) in enumerate(causes):
            key = change.settings if isinstance(change, Lever) else change.text
            if key not in seen and (number < few or len(seen) < FEW):
                seen.add(key)
                yield limit, change

    def _against(self, limit: _Limit) -> Iterator[Lever | Hypothetical]:
        levers: list[Lever] = []
        if self._levers is not None and self._stated is not None:
            stated = self._stated.against(limit.cause, limit.costs) if limit.cause.kind != "latency" else None
            own = [*([stated] if stated is not None else []), *self._stated.workers(limit.cause)]
            levers = [*own, *self._levers.against(limit.cause, limit.costs)]
        yield from levers[: EACH + 1 if limit.cause.op else EACH]
        if levers or limit.time_fs < MATTERS * self._makespan or str(limit.cause) == "start":
            return
        if limit.cause.kind == "time" and limit.cause.label == "start" and not limit.costs:  # before the first event of a thread
            self._left.append(f"{family(str(limit.cause))}: the recording starts before the first event of this thread")
            return
        if (
            not self._result.of_kernels
            and (hypothetical := halve_cause(limit.cause, self._result.timeline.flat.graph)) is not None
        ):
            yield hypothetical
        else:
            why = GIVEN.get(str(limit.cause), "no number of the files makes it shorter")
            self._left.append(f"{family(str(limit.cause))}: {why}")

    def _of_busy(self, treated: Collection[str]) -> Iterator[Lever]:
        """Yield changes that make busy capacities faster, busiest first."""
        if self._levers is None:
            return
        stated = self._stated_alone()
        busy = [row for row in self._result.usage if row.utilization >= BUSY and family(row.capacity) not in stated]
        busy.sort(key=lambda row: (-row.utilization, row.capacity))
        named: dict[str, str] = {}
        for row in busy:
            if (name := capacity_title(self._known[row.capacity])) not in treated:
                named.setdefault(name, row.capacity)
        for name in list(named.values())[:BUSIEST]:
            yield from list(self._levers.of_capacity(name))[:EACH]

    def _stated_alone(self) -> frozenset[str]:
        """Return families of capacities used only by ops of a stated time, which no number of theirs changes."""
        alone: dict[str, bool] = {}
        for cost in self._result.timeline.flat.graph.costs:
            stated = bool(cost.why) and all(term.kind == "stated" for term in cost.why)
            for name, _ in (*cost.demand.amounts, *cost.demand.holds):
                alone[family(name)] = alone.get(family(name), True) and stated
        return frozenset(name for name, stated in alone.items() if stated)

    def _try(self, change: Lever | Hypothetical) -> tuple[WhatIf | None, Result | None]:
        from hwsim.engine import Deadlock, simulate  # slow import

        try:
            if isinstance(change, Lever):
                assert self._again is not None
                run = self._again.simulate(dict(change.settings))
                return self._row(change.text, run.simulated, change.settings, run), run
            graph = change.apply(self._result.timeline.flat.graph)
            timeline = simulate(graph, changes=self._result.changes)
            return self._row(change.text, timeline, ()), None
        except Deadlock:
            return WhatIf(change.text, None, 0.0, (), None, change.settings if isinstance(change, Lever) else ()), None
        except SpecError as error:
            self._left.append(f"{change.text}: {error.mistakes[0].message}")
            return None, None

    def _row(
        self,
        text: str,
        timeline: Timeline,
        settings: tuple[tuple[str, str], ...],
        run: Result | None = None,
        *,
        together: bool = False,
    ) -> WhatIf:
        speedup = self._makespan / timeline.makespan_fs if timeline.makespan_fs else float("inf")
        measured: tuple[tuple[str, float], ...] = ()
        if self._measure is not None and run is not None and (after := measure(run, like=self._measure)) is not None:
            speedup, measured = self._measure.gain(after), after.values
        parts = bounds_of(timeline, self._result.devices)
        bound, causes = parts[0].bound if parts else None, critical_path(timeline).limited_by
        return WhatIf(text, timeline.makespan_fs, speedup, causes, bound, settings, together, measured)

    def _together(self, limit: _Limit, rows: Sequence[WhatIf], firsts: Mapping[Lever, Result]) -> WhatIf | None:
        """Return the bottleneck and the next cause changed together, if no change gains half of the bottleneck's gain."""
        share = limit.time_fs / self._makespan
        enough = 1 + HALF * (1 / (1 - share / 2) - 1)
        best = max((row.speedup for row in rows), default=1.0)
        if share < CO_LIMITS or best >= enough or not firsts or self._again is None:
            return None
        lever = min(firsts, key=lambda first: firsts[first].simulated.makespan_fs)
        run: Result | None = firsts[lever]
        if len(firsts) > 1 and firsts[lever].simulated.makespan_fs > NONE * self._makespan:  # none helps alone
            for first in firsts:
                lever = lever.and_(first)
            run = None
        joined: WhatIf | None = None
        for _ in range(JOINED):
            if run is not None:
                following = self._following(run, lever)
                if following is None:
                    break
                lever = lever.and_(following)
            try:
                run = self._again.simulate(dict(lever.settings))
            except SpecError:
                break
            row = self._row(lever.text, run.simulated, lever.settings, run, together=True)
            joined = row if joined is None or row.speedup > joined.speedup * 1.01 else joined
            if row.speedup >= enough:
                break
        return joined if joined is not None and joined.speedup > best * 1.01 else None

    def _following(self, run: Result, lever: Lever) -> Lever | None:
        """Return a change of the longest unchanged cause; for a flow over many links, of the busiest link."""
        done = {path for path, _ in lever.settings}
        for limit in _limits(run.simulated, critical_path(run.simulated)):
            for change in (*self._against(limit), *(self._of_busy(()) if limit.cause.line == "flow" else ())):
                if isinstance(change, Lever) and not {path for path, _ in change.settings} <= done:
                    return change
        return None


def _limits(timeline: Timeline, path: CriticalPath) -> list[_Limit]:
    """Return the causes by family, longest first."""
    flat, took = timeline.flat, path.end - path.start
    known = by_name(flat.graph.capacities)
    spent: dict[str, int] = {}
    members: dict[str, list[tuple[int, int]]] = {}  # (fs, cause)
    numbers = {cause: number for number, cause in enumerate(path.causes)}
    for share in path.limited_by:
        cause = share.cause
        if cause.kind != "wait":
            plain = f"{cause.kind} {family(str(cause))} {family(cause.op)}"
            name = capacity_title(known[cause.name]) if cause.kind == "capacity" else plain
            spent[name] = spent.get(name, 0) + share.time_fs
            members.setdefault(name, []).append((share.time_fs, numbers[cause]))
    limits = []
    for name, causes in members.items():
        pieces = np.flatnonzero(np.isin(path.cause, [number for _, number in causes]))
        costs, where = np.unique(flat.cost[path.op[pieces]], return_inverse=True)
        longest = np.argsort(-np.bincount(where, took[pieces].astype(np.float64)), kind="stable")[:COSTS]
        kinds = tuple(flat.graph.costs[int(costs[place])] for place in longest if costs[place] >= 0)
        _, most = max(causes, key=lambda cause: (cause[0], -cause[1]))
        limits.append(_Limit(path.causes[most], spent[name], kinds))
    return sorted(limits, key=lambda limit: (-limit.time_fs, str(limit.cause)))
