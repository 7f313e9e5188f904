"""The largest value of a number that holds every `expect:` of a workload, by bisection.

Every run has the same random numbers (see `hwsim.workload.load.numbers`), so that the answers of neighbouring values differ by
the value alone. A service with no steady state holds nothing, however short the run was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from hwsim.api import ExpectationFailed, OutOfMemory, Run, Source, simulate
from hwsim.engine import Deadlock
from hwsim.formats import percent
from hwsim.results.batches import Known
from hwsim.spec import Mistake, Mistakes, SpecError, Tree
from hwsim.spec.expectation import parse_expectation
from hwsim.spec.shelf import Shelf, shared
from hwsim.study.found import Bounded, Found, Status, Tried
from hwsim.study.knob import Knob, knob
from hwsim.workload import sources

if TYPE_CHECKING:
    from hwsim.results.expect import Verdict

WITHIN: Final = 0.01
_DOUBLINGS: Final = 16
_HALVINGS: Final = 30
_SAME: Final = 3  # doublings after which nothing has changed
_MOST: Final = 100  # runs


def find(
    machine: Source,
    workload: Source,
    what: str = "rate",
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the word of the command line)
    within: float = WITHIN,
    progress: Callable[[int, int], None] | None = None,
) -> Found:
    """The largest value of a number that holds every `expect:` of the workload.

    Args:
        what: `rate` or `clients` of its only arrivals, a parameter of the workload, or a path as of `--set`.
        set: paths and values that are changed in all runs.
        within: the value is found to this part of it.
        progress: called after each run with the runs done and those that are expected.

    Raises:
        SpecError: mistakes of the files; nothing is expected; `what` is no number of theirs.
    """
    first, second = sources.with_settings(machine, workload, set or {})
    turned = knob(first, second, what)
    search = _Search(first, second, turned, max(within, 1e-4), progress)
    return search.run()


class _Search:
    def __init__(self, machine: Tree, workload: Tree, turned: Knob, within: float, progress: Callable[[int, int], None] | None):
        self.machine, self.workload, self.knob, self.within, self.progress = machine, workload, turned, within, progress
        self.tried: dict[float, Tried] = {}
        self.shelf: Shelf = {}
        self.names = ("", "")

    def run(self) -> Found:
        low, high = self._bracket()
        while low is not None and high is not None and self._apart(low, high) and len(self.tried) < _MOST:
            middle = self.knob.rounded(math.sqrt(low * high))
            if middle in (low, high):
                break
            low, high = (middle, high) if self._try(middle).held else (low, middle)
        ends = self._ends(low)
        runs = tuple(self.tried[value] for value in sorted(self.tried))
        return Found(*self.names, self.knob, low, high, *ends, runs)

    def _apart(self, low: float, high: float) -> bool:
        return high > low + 1 if self.knob.whole else high > low * (1 + self.within)

    def _bracket(self) -> tuple[float | None, float | None]:
        """A value that holds and a larger one that does not; None for one that there is not."""
        value = self.knob.rounded(self.knob.start)
        if self._try(value, first=True).held:
            return self._upwards(value)
        least = value
        for _ in range(_HALVINGS):
            smaller = self.knob.rounded(least / 2)
            if smaller >= least:
                break
            if self._try(smaller).held:
                return smaller, least
            least = smaller
            if not self._worth_less(least):
                break
        return None, least

    def _upwards(self, low: float) -> tuple[float, float | None]:
        for _ in range(_DOUBLINGS):
            value = self.knob.rounded(2 * low)
            if not self._try(value).held:
                return low, value
            low = value
            last = [self.tried[each] for each in sorted(self.tried)[-_SAME - 1 :]]
            if len(last) > _SAME and len({tuple(each.value for each in run.expected) for run in last}) == 1:
                break
        return low, None

    def _worth_less(self, value: float) -> bool:
        """Whether a smaller value can still hold: not if the last halvings changed nothing."""
        last = [self.tried[each] for each in sorted(self.tried)[:4]]
        tightest = [each.tightest for each in last]
        if len(last) < 4 or any(each is None or run.status != "violated" for run, each in zip(last, tightest, strict=True)):
            return True
        strains = [each.strain for each in tightest if each is not None]
        return value > 0 and strains[0] < strains[-1] * (1 - 1e-9)

    def _try(self, value: float, *, first: bool = False) -> Tried:
        if value not in self.tried:
            with shared(self.shelf):
                self.tried[value] = self._ran(value, first=first)
            if self.progress is not None:
                done = len(self.tried)
                self.progress(done, max(done, 12))
        return self.tried[value]

    def _ran(self, value: float, *, first: bool) -> Tried:
        try:
            machine, workload = sources.changed(self.machine, self.workload, self.knob.settings(value), Mistakes(), [])
            run = _simulated(machine, workload)
        except SpecError as error:
            if first:
                raise
            return Tried(value, "failed", reason=" ".join(error.mistakes[0].message.split()) if error.mistakes else "")
        except (Deadlock, OutOfMemory) as error:
            return Tried(value, "failed", reason=" ".join(str(error).split()))
        if not run.verdicts:
            hint = "such as expect: {ttft_p99: at most 500 ms}, or --set workload.expect.ttft_p99='at most 500 ms'"
            raise SpecError([Mistake(self.workload.place, "nothing is expected, so that every value holds", hint)])
        self.names = (run.machine, run.workload)
        expected = tuple(each for verdict in run.verdicts if (each := _bounded(verdict, run)) is not None)
        grows = overload(run)
        status: Status = "overloaded" if grows else "held" if run.met else "violated"
        return Tried(value, status, expected, grows, limits(run, max(expected, key=lambda each: each.strain, default=None)))

    def _ends(self, low: float | None) -> tuple[float | None, float | None]:
        """Where the value would be with other random numbers: where either end of what is known meets the bound."""
        if low is None:
            return None, None
        curves: list[list[tuple[float, float]]] = [[], []]
        for value in sorted(self.tried):
            run = self.tried[value]
            strains = [each.strains for each in run.expected] if run.status in ("held", "violated") else [(math.inf, math.inf)]
            curves[0].append((value, max((high for _, high in strains), default=0.0)))
            curves[1].append((value, max((least for least, _ in strains), default=0.0)))
        return _crossing(curves[0]), _crossing(curves[1])


def _crossing(curve: list[tuple[float, float]]) -> float | None:
    """The value at which a strain comes to 1, straight between logarithms; None before the first or after the last."""
    for (one, below), (other, above) in pairwise(curve):
        if below <= 1 < above:
            if math.isinf(above) or below <= 0:
                return one
            part = math.log(1 / below) / math.log(above / below)
            return math.exp(math.log(one) + part * math.log(other / one))
    return None


def _simulated(machine: Tree, workload: Tree) -> Run:
    try:
        return simulate(machine, workload, expect=True, interval=False)
    except OutOfMemory:
        raise
    except ExpectationFailed as failed:
        return failed.run


def _bounded(verdict: Verdict, run: Run) -> Bounded | None:
    if verdict.value is None:
        return None
    wanted = parse_expectation(verdict.wanted)
    known, short = knowns(run).get(verdict.quantity, (None, False))
    return Bounded(verdict.quantity, verdict.wanted, wanted.low, wanted.high, wanted.dimension.unit, verdict.value, known, short)


def knowns(run: Run) -> dict[str, tuple[Known, bool]]:
    """How far the percentiles of a run's services are known, and whether the run is too short for them, by quantity."""
    found: dict[str, tuple[Known, bool]] = {}
    for service in run.serving:
        start = f"{service.name}." if service.name else ""
        for measure, settled in getattr(service, "sampling", ()):
            found[f"{start}{measure}_mean"] = settled.mean, 0.0 in settled.short
            for share, known in settled.percentiles:
                found[f"{start}{measure}_p{100 * share:.0f}"] = known, share in settled.short
    return found


def overload(run: Run) -> str:
    """Why a run has no steady state; "" if it has one."""
    for service in run.serving:
        if service.overloaded:
            name = f"{service.name}: " if service.name else ""
            return f"{name}{service.offered_per_s:.4g} requests/s come, {service.requests_per_s:.4g} are answered"
    return ""


def limits(run: Run, tightest: Bounded | None) -> str:
    """Where the time of the tightest expectation goes, in words; "" if nothing says so."""
    if tightest is None:
        return ""
    name, _, quantity = tightest.quantity.rpartition(".")
    for service in run.serving:
        if service.name != name:
            continue
        for where in service.where:
            if quantity == f"{where.measure}_p{where.percentile}" and where.parts and where.mean_s > 0:
                part, seconds = where.parts[0]
                return f"{percent(seconds / where.mean_s, '.0f')} of it: {part}"
    return ""
