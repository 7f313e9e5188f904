"""Time on the critical path by source of uncertainty.

The segments of the critical path add up to the makespan. Each segment belongs to a derivation line of an op; the line states
its errors (`Term.doubts`), or they follow from the sources of its inputs. Time that the workload states has no error.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, takewhile
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.demand import Cost, Term
from hwsim.graph.flat import FlatGraph
from hwsim.graph.opgraph import Change, Ints, LazyChanges
from hwsim.origins import PLAIN, UNCERTAIN_KINDS, Cited, Origin, UncertaintySource, number_uncertainty
from hwsim.records import dataclass
from hwsim.results.cause import Cause, binding
from hwsim.results.critical import CriticalPath, critical_path
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO

_MODELS: Final = frozenset({"kernels", "flow"})  # kinds of lines of models, which always have an error
_KINDS: Final = ("latency", "bandwidth", "efficiency")


@dataclass(frozen=True, slots=True)
class Weight:
    """Time on the critical path with one error.

    Args:
        doubt: error, with its time on the path (s).
        kernels: least number of kernels of different shapes that share the time.
    """

    doubt: UncertaintySource
    kernels: int = 1


@dataclass(frozen=True, slots=True)
class Weights:
    """Time on the critical path by error.

    Args:
        weights: times with an error.
        stated: time that the input files state, without an error (s).
        total: sum of both (s).
    """

    weights: tuple[Weight, ...]
    stated: float
    total: float

    def without_stated(self) -> Weights:
        """Return the weights without the stated time."""
        return Weights(self.weights, 0.0, self.total - self.stated)


MANY: Final = 4  # kernels of different shapes in a derivation line of a whole pass


def weights_of(timeline: Timeline, changes: Sequence[Change] = (), *, last: int | None = None, since: int = 0) -> Weights:
    """Return the time on the critical path by error.

    Args:
        timeline: timeline.
        changes: changes of capacities; the time in which a capacity is down is stated by the workload and has no error.
        last: op at the end of the path; default: the op that ends last.
        since: start of the counted time, such as the start of a job (fs); default 0.
    """
    path = critical_path(timeline, pools=False, last=last)
    if since:
        later = np.flatnonzero((path.end > since).astype(np.bool_))
        start = np.maximum(path.start[later], since)
        path = CriticalPath(path.op[later], start, path.end[later], path.cause[later], path.causes)
    if not len(path):
        return Weights((), 0.0, 0.0)
    flat = timeline.flat
    codes = _alike(flat.graph.costs, flat.cost[path.op]) * len(path.causes) + path.cause
    codes, place = ticks.numbered(codes)
    down = _down(path, flat, changes)
    took = np.bincount(place, (path.end - path.start).astype(np.float64) - down) / FEMTO
    costs = (*flat.graph.costs, None)  # index -1: no cost
    weights: list[Weight] = []
    stated = float(down.sum()) / FEMTO
    for code, seconds in zip(codes.tolist(), took.tolist(), strict=True):
        number, cause_number = divmod(code, len(path.causes))
        cost, cause = costs[number], path.causes[cause_number]
        parts = lines_of(cost, cause) if cost is not None else ()
        errors, covered = weigh_errors(parts, seconds)
        weights += errors
        stated += max(0.0, seconds - covered)
    return Weights(tuple(weights), stated, math.fsum([float(down.sum()) / FEMTO, *took.tolist()]))


def weigh_errors(lines: Iterable[tuple[Term, float]], seconds: float) -> tuple[list[Weight], float]:
    """Return (errors of these seconds, seconds with any error).

    Args:
        lines: derivation lines, each with its share of the seconds.
        seconds: time on the critical path (s).
    """
    errors, covered = [], 0.0
    for term, share in lines:
        of_model = of_file = 0.0  # errors of the file and of the model apply to the same seconds
        for weight, part in errors_of(term):
            spent = seconds * share * part
            if weight.doubt.case == "stated":
                of_file = max(of_file, min(spent, seconds * share))
            else:
                of_model += spent
            errors.append(Weight(weight.doubt._replace(seconds=spent), weight.kernels))
        covered += max(of_model, of_file)
    return errors, covered


def _down(path: CriticalPath, flat: FlatGraph, changes: Sequence[Change]) -> NDArray[np.float64]:
    """Return for each segment of the path the time in which a capacity used by its op was down (fs).

    Range: of several capacities, the one that was down longest counts. Time lost to a slowed capacity counts as the op's own
    time and has its uncertainty.
    """
    courses: dict[str, list[Change]] = {}
    stopping = () if isinstance(changes, LazyChanges) and not changes.stops else changes
    for change in takewhile(lambda change: change.at < path.end[-1], stopping):
        courses.setdefault(change.capacity, []).append(change)
    down = np.zeros(len(path))
    for capacity, course in courses.items():
        drawing = [op for op, cost in enumerate(flat.graph.costs) if capacity in dict(cost.demand.amounts + cost.demand.clocks)]
        pieces = np.flatnonzero(np.isin(flat.cost[path.op], drawing))
        spans = pairwise([*course, Change(int(path.end[-1]), capacity, 1.0)])
        lost = np.zeros(len(pieces))
        for (t0, _, part), up in spans:
            if not part:
                lost += np.maximum(np.minimum(path.end[pieces], up.at) - np.maximum(path.start[pieces], t0), 0).astype(np.float64)
        down[pieces] = np.maximum(down[pieces], lost)
    return down


def _alike(costs: Sequence[Cost], numbers: Ints) -> Ints:
    """Return for each cost number the first cost that differs only in the number of ops it represents; -1 stays."""
    firsts, place = np.unique(numbers, return_inverse=True)
    drawn = {number: (costs[number].demand.amounts, costs[number].demand.holds) for number in firsts.tolist() if number >= 0}
    several = {drawn[number] for number in drawn if costs[number].demand.times}
    seen: dict[object, int] = {}
    for index, number in enumerate(firsts.tolist()):
        if number >= 0 and drawn[number] in several:
            firsts[index] = seen.setdefault((drawn[number], costs[number].why), number)
    return firsts[place].astype(np.int64)


def lines_of(cost: Cost, cause: Cause) -> Sequence[tuple[Term, float]]:
    """Return the derivation lines behind a cause of an op's time, each with its share; empty if the workload states the time."""
    match cause.kind:
        case "latency":
            terms = [term for term in cost.why if term.kind == "latency" and term.seconds > 0]
            terms = [term for term in terms if term.holder == cause.name] or terms
        case "capacity":
            terms = [term for term in cost.why if term.capacity == cause.name and term.kind != "latency"]
            terms = [max(terms, key=lambda term: term.seconds)] if terms else _longest(cost)
        case "floor":
            terms = _longest(cost)
        case "time" | "dispatch" | "return":
            line = binding(cost)
            terms = [line] if line is not None and line.doubts else []
        case _:
            return ()
    total = math.fsum(term.seconds for term in terms)
    return [(term, term.seconds / total) for term in terms] if total > 0 else ()


def _longest(cost: Cost) -> list[Term]:
    line = binding(cost)
    return [line] if line is not None and (line.kind != "stated" or line.doubts) else []


def errors_of(term: Term) -> Iterator[tuple[Weight, float]]:
    """Yield the errors of a derivation line, each with the fraction of its seconds that has the error."""
    kernels = MANY if term.kind in ("kernels", "stated") else 1
    of_model = [doubt for doubt in term.doubts if doubt.case != "stated"]
    for doubt in term.doubts:
        if doubt.case == "stated" and term.seconds > 0:
            yield Weight(doubt), doubt.seconds / term.seconds
    if of_model:
        total = max(term.seconds, math.fsum(doubt.seconds for doubt in of_model))
        for doubt in of_model:
            if total > 0:
                yield Weight(doubt, kernels), doubt.seconds / total
        return
    errors = _of_inputs(term.inputs, term.kind)
    if not errors and term.kind in _MODELS:
        errors = ((Weight(UncertaintySource(f"{PLAIN}/default.any", "device", term.label, 0.0), kernels), 1.0),)
    yield from errors


@functools.lru_cache(maxsize=4096)
def _of_inputs(inputs: tuple[tuple[str, str, Cited], ...], kind_of_line: str) -> tuple[tuple[Weight, float], ...]:
    """Return the error of a line without a measured formula: the error of its least certain input."""
    cited = [(name, source) for name, _, source in inputs if isinstance(source, Origin) and source.kind in UNCERTAIN_KINDS]
    unsure = [(name, source) for name, source in cited if source.doubts and (source.kind == "default" or source.spread is None)]
    if not unsure:
        return ()
    name, source = min(unsure, key=lambda pair: (UNCERTAIN_KINDS.index(pair[1].kind), -(pair[1].spread or 0.0)))
    kind = next((word for word in _KINDS if word in name or word in kind_of_line), "any")
    return ((Weight(number_uncertainty(name, source, kind)), 1.0),)


def error_of_number(name: str, source: Origin) -> str:
    """Return the error regime of a single number, by its source; "" if the number is certain.

    >>> error_of_number("latency", Origin("guess", "as others")), error_of_number("rate", Origin("default", "nvidia", 0.12))
    ('number/guess.latency', 'number/=0.12')
    >>> error_of_number("rate", Origin("stated", "as given; no guess"))
    ''
    """
    errors = _of_inputs(((name, "", source),), "")
    return errors[0][0].doubt.regime if errors else ""
