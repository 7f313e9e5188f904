"""Find the largest value of a number that meets every `expect:` of a workload, by bisection.

All runs use the same random numbers (see `hwsim.workload.load.numbers`), so results of neighbouring values differ only by the
value. A service without a steady state meets no expectation, however short the run was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from hwsim.api import ExpectationFailed, OutOfMemory, Run, Source, simulate
from hwsim.engine import Deadlock
from hwsim.results.batches import ConfidenceRange
from hwsim.results.expect import HOURS, PartOfDay, seconds_of
from hwsim.spec import Mistakes, SpecError, Tree
from hwsim.spec.expectation import parse_expectation
from hwsim.spec.memo import Shelf, shared
from hwsim.studies.find_result import FindResult, SearchLimit, TriedValue
from hwsim.studies.knob import Knob, knob
from hwsim.studies.states import states, utilization
from hwsim.workload import sources

if TYPE_CHECKING:
    from hwsim.results.expect import Verdict

WITHIN: Final = 0.01
_DOUBLINGS: Final = 40
_COUNTED: Final = 16  # maximum doublings of a count, since the run time grows with it
_HALVINGS: Final = 30
_SAME: Final = 8  # doublings without effect after which the search stops
_LITTLE: Final = 0.01  # relative change of the result that three halvings must cause
_MOST: Final = 100  # maximum number of runs
_ROUNDS: Final = 6  # maximum number of rounds with longer runs
_ASIDE: Final = (1.0, 1.05, 1.15, 1.4, 2.0)  # factors from the value, to compute its interval
_NEAR: Final = 1.2  # first factor of later rounds


def find(
    machine: Source,
    workload: Source,
    target: str = "rate",
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the word of the command line)
    within: float = WITHIN,
    progress: Callable[[int, int], None] | None = None,
) -> FindResult:
    """Find the largest value of a number that meets every `expect:` of the workload.

    Args:
        machine: path, library name or content of a file.
        workload: path, library name or content of a file.
        target: `rate` or `clients` of its only arrivals, a parameter of the workload, or a path as in `--set`.
        set: paths and values to change in all runs.
        within: relative accuracy of the value.
        progress: called after each run with the numbers of finished and expected runs.

    Raises:
        SpecError: the files have mistakes, there is no `expect:`, or `target` is not a number in them.
    """
    first, second = sources.with_settings(machine, workload, set or {})
    turned = knob(first, second, target)
    search = _Bisection(first, second, turned, max(within, 1e-4), progress)
    changed = tuple((path, str(value)) for path, value in (set or {}).items())
    return replace(search.run(), changed=changed)


class _Bisection:
    def __init__(self, machine: Tree, workload: Tree, turned: Knob, within: float, progress: Callable[[int, int], None] | None):
        self.machine, self.workload, self.knob, self.within, self.progress = machine, workload, turned, within, progress
        self.tried: dict[float, TriedValue] = {}
        self.shelf: Shelf = {}
        self.names = ("", "")
        self.counts: dict[str, int] = {}  # where the file says how many requests come -> more of them
        self.runs = 0
        self.loads: dict[float, tuple[float, str]] = {}  # of the busiest capacity, by value

    def run(self) -> FindResult:
        start, step = self.knob.start, 2.0
        low: float | None = None
        high: float | None = None
        for rounds_left in range(_ROUNDS, -1, -1):
            low, high = self._bracket(self.knob.rounded(start), step)
            more = self._more(low, high if low is None else None)
            if not more or not rounds_left:
                low, high = self._bisected(low, high)
                more = self._more(low, high)
            if not more or not rounds_left:
                break
            self.counts |= more
            self.tried = {}
            start, step = low or start, _NEAR
        ends = self._ends(low)
        nine = self._nine(low)
        runs = tuple(self.tried[value] for value in sorted(self.tried))
        return FindResult(*self.names, self.knob, low, high, *ends, runs, self.runs, tuple(sorted(self.counts.items())), nine)

    def _more(self, low: float | None, high: float | None) -> dict[str, int]:
        """Return the request counts needed for a verdict, by the path of the key that states them."""
        needed: dict[str, int] = {}
        for value in (low, high):
            for path, count in self.tried[value].more if value is not None else ():
                if path not in self.knob.settings(self.knob.start) and self._may_count(path):
                    needed[path] = max(needed.get(path, 0), count)
        return {path: count for path, count in needed.items() if count > self.counts.get(path, 0)}

    def _may_count(self, path: str) -> bool:
        """Whether requests are random, so their number can be increased."""
        node: Tree | None = self.workload
        for step in path.split(".")[1:-1]:
            node = node.get(step) if node is not None else None
        arrivals = node.get("arrivals") if node is not None else None
        return arrivals is None or not arrivals.is_mapping or arrivals.get("trace") is None

    def _bisected(self, low: float | None, high: float | None) -> tuple[float | None, float | None]:
        """Return the largest value that meets the expectations and the next that does not, to the requested accuracy."""
        while low is not None and high is not None and self._apart(low, high) and self.runs < _MOST:
            middle = self.knob.rounded(math.sqrt(low * high))
            if middle in (low, high):
                break
            low, high = (middle, high) if self._try(middle).held else (low, middle)
        return low, high

    def _apart(self, low: float, high: float) -> bool:
        return high > low + 1 if self.knob.whole else high > low * (1 + self.within)

    def _bracket(self, value: float, step: float) -> tuple[float | None, float | None]:
        """Return a value that meets the expectations and a larger one that does not; None if there is no such value."""
        if self._try(value).held:
            return self._upwards(value, step)
        least = value
        for _ in range(_HALVINGS):
            smaller = self.knob.rounded(least / step)
            if smaller >= least:
                smaller = self.knob.rounded(least / 2)
            if smaller >= least:
                break
            if self._try(smaller).held:
                return smaller, least
            least, step = smaller, 2.0
            if not self._worth_less(least):
                break
        return None, least

    def _upwards(self, low: float, step: float) -> tuple[float, float | None]:
        for _ in range(_COUNTED if self.knob.whole else _DOUBLINGS):
            value = max(self.knob.rounded(step * low), self.knob.rounded(low + 1) if self.knob.whole else 0.0)
            if not self._try(value).held:
                return low, value
            low, step = value, 2.0
            last = [self.tried[setting] for setting in sorted(self.tried)[-_SAME - 1 :]]
            if len(last) > _SAME and len({tuple(goal.value for goal in run.expected) for run in last}) == 1:
                break
        return low, None

    def _worth_less(self, value: float) -> bool:
        """Whether a smaller value may meet the expectations: the last halvings came closer to them, or there were too few."""
        last = [self.tried[setting] for setting in sorted(self.tried)[:4]]
        tightest = [run.tightest for run in last]
        if len(last) < 4 or any(goal is None or run.status != "violated" for run, goal in zip(last, tightest, strict=True)):
            return True
        strains = [goal.strain for goal in tightest if goal is not None]
        return value > 0 and strains[0] < strains[-1] * (1 - _LITTLE)

    def _try(self, value: float) -> TriedValue:
        overload = self._beyond(value)
        if value not in self.tried and overload is not None:
            self.tried[value] = overload
        if value not in self.tried:
            self.runs += 1
            with shared(self.shelf):
                self.tried[value] = self._ran(value)
            if self.progress is not None:
                self.progress(self.runs, max(self.runs, 12))
        return self.tried[value]

    def _beyond(self, value: float) -> TriedValue | None:
        """Return a value above the lowest load step if the number scales the load, which requires no run."""
        loads = sorted(self.loads.items())
        if len(loads) < 2:
            return None
        (smallest, (low, _)), (largest, (high, name)) = loads[0], loads[-1]
        if not low > 0 or abs(high / low / (largest / smallest) - 1) > _LITTLE / 100 or value / largest * high < 1:
            return None
        return TriedValue(value, "overloaded", reason=f"{name} saturates at {self.knob.shown(largest / high)}")

    def _ran(self, value: float) -> TriedValue:
        try:
            settings = {**self.counts, **self.knob.settings(value)}
            machine, workload = sources.changed(self.machine, self.workload, settings, Mistakes(), [])
            run = _simulated(machine, workload)
        except SpecError as error:
            if self.runs == 1 or isinstance(error, PartOfDay):
                raise
            return TriedValue(value, "failed", reason=" ".join(error.mistakes[0].message.split()) if error.mistakes else "")
        except (Deadlock, OutOfMemory) as error:
            return TriedValue(value, "failed", reason=" ".join(str(error).split()))
        if not run.verdicts:
            services = self.workload.get("services")
            bounded = next((f"{name}.latency_p99" for name, _ in services.items()), "") if services is not None else "makespan"
            bounded = bounded if self.workload.get("infer") is None else "ttft_p99"
            hint = f"for example expect: {{{bounded}: at most 500 ms}}, or --set workload.expect.{bounded}='at most 500 ms'"
            raise SpecError.of(self.workload.place, "`--find` needs a requirement: the workload has no `expect`", hint)
        self.names = (run.machine, run.workload)
        nothing = next((verdict for verdict in run.verdicts if verdict.value is None), None)
        if nothing is not None:
            return TriedValue(value, "failed", reason=f"{nothing.quantity} is not available: {nothing.reason}")
        self.loads[value] = utilization(run)
        served = list(states(run))
        knowns = {name: confidence for state in served for name, confidence in state.known.items()}
        halves = [pair for state in served for pair in state.halves]
        expected = tuple(each for verdict in run.verdicts if (each := _bounded(verdict, knowns, halves)) is not None)
        grows = next((f"{state.name}: {state.grows}" if state.name else state.grows for state in served if state.grows), "")
        tightest = max(expected, key=lambda each: each.strain, default=None)
        where = {name: words for state in served for name, words in state.where.items()}
        quantities = [goal.quantity for goal in expected]
        return TriedValue(
            value,
            "overloaded" if grows else "held" if run.met else "violated",
            expected,
            grows,
            where.get(tightest.quantity, "") if tightest is not None else "",
            tuple((state.counted, more) for state in served if (more := state.more(quantities)) is not None),
            any(state.brief for state in served),
        )

    def _ends(self, low: float | None) -> tuple[float | None, float | None]:
        """Return the sampling interval of the value: the values at which the ends of the sampling intervals equal the bound."""
        if low is None or not any(goal.confidence_range is not None for goal in self.tried[low].expected):
            return None, None
        return self._aside(low, lambda each: each.strains)

    def _nine(self, low: float | None) -> tuple[float | None, float | None]:
        """Return the 90 % interval of the value from the prediction errors of the service."""
        if low is None or not any(goal.half for goal in self.tried[low].expected):
            return None, None
        return self._aside(low, lambda each: each.unsure)

    def _aside(self, low: float, strains_of: Callable[[SearchLimit], tuple[float, float]]) -> tuple[float | None, float | None]:
        """Return the values at which an end of the expected quantities' interval equals the bound."""
        for step in _ASIDE:  # runs further away, until the worse end holds, too
            run = self._try(self.knob.rounded(low / step))
            if run.held and all(strains_of(goal)[1] <= 1 for goal in run.expected):
                break
        for step in (
            _ASIDE if any(not run.held for run in self.tried.values()) else ()
        ):  # and above, until the better end does not
            run = self._try(self.knob.rounded(low * step))
            if run.status in ("overloaded", "failed") or any(strains_of(goal)[0] > 1 for goal in run.expected):
                break
        least, most = self._crossings(strains_of)
        return None if least is None else min(least, low), None if most is None else max(most, low)

    def _crossings(self, strains_of: Callable[[SearchLimit], tuple[float, float]]) -> tuple[float | None, float | None]:
        """Return the values at which the worse and the better end of the expected quantities' intervals equal their bounds."""
        curves: list[list[tuple[float, float]]] = [[], []]
        for value in sorted(self.tried):
            run = self.tried[value]
            strains = (
                [strains_of(goal) for goal in run.expected] if run.status in ("held", "violated") else [(math.inf, math.inf)]
            )
            curves[0].append((value, max((high for _, high in strains), default=0.0)))
            curves[1].append((value, max((least for least, _ in strains), default=0.0)))
        return _crossing(curves[0]), _crossing(curves[1])


def _crossing(curve: list[tuple[float, float]]) -> float | None:
    """Return the value at which a strain reaches 1; None outside the values tried.

    The interpolation is linear in 1 / strain, because the time in a queue is the service time divided by the free share of the
    capacity.
    """
    for (lower, below), (upper, above) in pairwise(curve):
        if below <= 1 < above:
            if below <= 0:
                return lower
            near, far = 1 / below, 0.0 if math.isinf(above) else 1 / above
            return lower + (upper - lower) * (near - 1) / (near - far)
    return None


def _simulated(machine: Tree, workload: Tree) -> Run:
    try:
        return simulate(machine, workload, expect=True, interval=False)
    except OutOfMemory:
        raise
    except ExpectationFailed as failed:
        return failed.run


def _bounded(
    verdict: Verdict, knowns: Mapping[str, tuple[ConfidenceRange, bool]], halves: Iterable[tuple[str, float]] = ()
) -> SearchLimit | None:
    if verdict.value is None:
        return None
    wanted = parse_expectation(verdict.expected)
    noted, short = knowns.get(verdict.quantity, (None, False))
    half = next((half for name, half in halves if verdict.quantity.startswith(name)), 0.0)
    unit = "h" if verdict.quantity.rpartition(".")[2] in HOURS else wanted.dimension.unit
    value = seconds_of(verdict.quantity, verdict.value)
    return SearchLimit(verdict.quantity, verdict.expected, wanted.low, wanted.high, unit, value, noted, short, half)
