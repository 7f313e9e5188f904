"""Seconds of the critical path by the error that they share.

The pieces of the critical path add up to the makespan. Each piece belongs to a line of an op's derivation; the line says which
errors it has (`Term.doubts`), or the sources of its inputs tell. Seconds that the workload states have none.
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
from hwsim.graph.opgraph import Change, Ints
from hwsim.origins import LEAST_SURE, PLAIN, Cited, Doubt, Origin, doubt_of
from hwsim.records import dataclass
from hwsim.results.cause import Cause, binding
from hwsim.results.critical import CriticalPath, critical_path
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO

_MODELS: Final = frozenset({"kernels", "flow"})  # lines of models: never without an error
_KINDS: Final = ("latency", "bandwidth", "efficiency")


@dataclass(frozen=True, slots=True)
class Weight:
    """Seconds of the critical path with one error.

    Args:
        doubt: the error; its seconds are on the path.
        kernels: how many kernels of unlike shapes share them, at least.
    """

    doubt: Doubt
    kernels: int = 1


@dataclass(frozen=True, slots=True)
class Weights:
    """The critical path by errors: the weights and `stated` add up to `total` seconds."""

    weights: tuple[Weight, ...]
    stated: float
    total: float

    def without_stated(self) -> Weights:
        """Those of the seconds that are unsure."""
        return Weights(self.weights, 0.0, self.total - self.stated)


MANY: Final = 4  # kernels of unlike shapes in a line that stands for all kernels of a pass


def weights_of(timeline: Timeline, changes: Sequence[Change] = (), *, last: int | None = None, since: int = 0) -> Weights:
    """Seconds of the critical path by error.

    Args:
        changes: of capacities; the time in which one is down is stated by the workload, and is no error of the op that waits.
        last: the op to whose end the path leads; the op that ends last if not given.
        since: time (fs) before which nothing counts: the start of a job.
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
    costs = (*flat.graph.costs, None)  # the last stands for -1: no cost
    weights: list[Weight] = []
    stated = float(down.sum()) / FEMTO
    for code, seconds in zip(codes.tolist(), took.tolist(), strict=True):
        number, at = divmod(code, len(path.causes))
        cost, cause = costs[number], path.causes[at]
        parts = lines_of(cost, cause) if cost is not None else ()
        errors, covered = weighed(parts, seconds)
        weights += errors
        stated += max(0.0, seconds - covered)
    return Weights(tuple(weights), stated, math.fsum([float(down.sum()) / FEMTO, *took.tolist()]))


def weighed(lines: Iterable[tuple[Term, float]], seconds: float) -> tuple[list[Weight], float]:
    """Errors of these seconds, which are of lines with these shares of them; and how many of the seconds have any."""
    errors, covered = [], 0.0
    for term, share in lines:
        of_model = of_file = 0.0  # the file's own errors are of the same seconds as the model's
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
    """Of each piece of the path, the time (fs) in which a capacity that its op draws from was down.

    Range: of several capacities the one that was down longest counts. What is lost to one that is only slower counts as the op's
    own time, and is as unsure.
    """
    courses: dict[str, list[Change]] = {}
    for change in takewhile(lambda each: each.at < path.end[-1], changes):
        courses.setdefault(change.capacity, []).append(change)
    down = np.zeros(len(path))
    for capacity, course in courses.items():
        drawing = [at for at, cost in enumerate(flat.graph.costs) if capacity in dict(cost.demand.amounts + cost.demand.clocks)]
        of = np.flatnonzero(np.isin(flat.cost[path.op], drawing))
        spans = pairwise([*course, Change(int(path.end[-1]), capacity, 1.0)])
        lost = np.zeros(len(of))
        for (at, _, part), up in spans:
            if not part:
                lost += np.maximum(np.minimum(path.end[of], up.at) - np.maximum(path.start[of], at), 0).astype(np.float64)
        down[of] = np.maximum(down[of], lost)
    return down


def _alike(costs: Sequence[Cost], numbers: Ints) -> Ints:
    """For each cost of these numbers the first that is the same but for how many each stands for; -1 stays."""
    firsts, place = np.unique(numbers, return_inverse=True)
    drawn = {number: (costs[number].demand.amounts, costs[number].demand.holds) for number in firsts.tolist() if number >= 0}
    several = {drawn[number] for number in drawn if costs[number].demand.times}
    seen: dict[object, int] = {}
    for at, number in enumerate(firsts.tolist()):
        if number >= 0 and drawn[number] in several:
            firsts[at] = seen.setdefault((drawn[number], costs[number].why), number)
    return firsts[place].astype(np.int64)


def lines_of(cost: Cost, cause: Cause) -> Sequence[tuple[Term, float]]:
    """The lines behind this cause of an op's time, each with its share of it; none where the workload states the time."""
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
    """Errors of a line, each with the part of its seconds that have it."""
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
        errors = ((Weight(Doubt(f"{PLAIN}/default.any", "device", term.label, 0.0), kernels), 1.0),)
    yield from errors


@functools.lru_cache(maxsize=4096)
def _of_inputs(inputs: tuple[tuple[str, str, Cited], ...], kind_of_line: str) -> tuple[tuple[Weight, float], ...]:
    """The error of a line whose formula was never measured: of its least sure number; what says its spread has an own one."""
    cited = [(name, source) for name, _, source in inputs if isinstance(source, Origin) and source.kind in LEAST_SURE]
    unsure = [(name, source) for name, source in cited if source.doubts and (source.kind == "default" or source.spread is None)]
    if not unsure:
        return ()
    name, source = min(unsure, key=lambda each: (LEAST_SURE.index(each[1].kind), -(each[1].spread or 0.0)))
    of = next((word for word in _KINDS if word in name or word in kind_of_line), "any")
    return ((Weight(doubt_of(name, source, of)), 1.0),)


def error_of_number(name: str, source: Origin) -> str:
    """The regime of a number's own error, by its source; "" if nothing doubts it.

    >>> error_of_number("latency", Origin("guess", "as others")), error_of_number("rate", Origin("default", "nvidia", 0.12))
    ('number/guess.latency', 'number/=0.12')
    >>> error_of_number("rate", Origin("stated", "as given; no guess"))
    ''
    """
    errors = _of_inputs(((name, "", source),), "")
    return errors[0][0].doubt.regime if errors else ""
