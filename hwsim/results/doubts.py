"""Seconds of the critical path by the error that they share.

The pieces of the critical path add up to the makespan. Each piece belongs to a line of an op's derivation; the line says which
errors it has (`Term.doubts`), or the sources of its inputs tell. Seconds that the workload states have none.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from hwsim import ticks
from hwsim.demand import Case, Cost, Doubt, Term, case_of
from hwsim.graph.opgraph import Ints, labels_where
from hwsim.records import dataclass
from hwsim.results.cause import HOST, Cause, binding, holder
from hwsim.results.critical import CriticalPath, critical_path
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO

LETTERS: Final = 90  # of the source of a number in the name of its error
PLAIN: Final = "number"  # first word of the regime of a number that no model's errors cover: "number/guess.latency"
_MODELS: Final = frozenset({"kernels", "flow"})  # lines of models: never without an error
_SOURCE: Final = re.compile(r"\b(measured|fitted|datasheet|recalled|default|guess)\b")
_KINDS: Final = ("latency", "bandwidth", "efficiency")
_SPREAD: Final = re.compile(r"(?:spread |default: .*, )(\d+(?:\.\d+)?) %$")  # that the source of a number ends in


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


def weights_of(timeline: Timeline, *, last: int | None = None, since: int = 0) -> Weights:
    """Seconds of the critical path by error.

    Args:
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
    trained = {training.program for training in flat.graph.trainings}
    of_training = labels_where(flat.graph.labels, lambda _, program: program in trained)
    codes = _alike(flat.graph.costs, flat.cost[path.op]) * len(path.causes) + path.cause
    codes, place = ticks.numbered(2 * codes + (of_training[flat.label[path.op]] if trained else 0))
    took = np.bincount(place, (path.end - path.start).astype(np.float64)) / FEMTO
    costs = (*flat.graph.costs, None)  # the last stands for -1: no cost
    weights: list[Weight] = []
    stated = 0.0
    for code, seconds in zip(codes.tolist(), took.tolist(), strict=True):
        number, at = divmod(code // 2, len(path.causes))
        cost, cause = costs[number], path.causes[at]
        parts = lines_of(cost, cause) if cost is not None else ()
        if code % 2 and not parts and cause.kind in (*HOST, "time"):
            # the host's time for a kernel, an array or a step is the framework's
            weights.append(Weight(Doubt("launch/host", "known", "the framework's host", seconds), MANY))
            continue
        covered = 0.0
        for term, share in parts:
            for weight, part in errors_of(term):
                spent = seconds * share * part
                covered += spent
                weights.append(Weight(weight.doubt._replace(seconds=spent), weight.kernels))
        stated += max(0.0, seconds - covered)
    return Weights(tuple(weights), stated, math.fsum([stated, *(weight.doubt.seconds for weight in weights)]))


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
            terms = [term for term in terms if holder(term) == cause.name] or terms
        case "capacity":
            terms = [term for term in cost.why if term.capacity == cause.name and term.kind != "latency"]
            terms = [max(terms, key=lambda term: term.seconds)] if terms else _longest(cost)
        case "floor":
            terms = _longest(cost)
        case "time":
            line = binding(cost)
            terms = [line] if line is not None and line.doubts else []
        case _:
            return ()
    total = math.fsum(term.seconds for term in terms)
    return [(term, term.seconds / total) for term in terms] if total > 0 else ()


def _longest(cost: Cost) -> list[Term]:
    line = binding(cost)
    return [line] if line is not None and line.kind != "stated" else []


def errors_of(term: Term) -> Iterator[tuple[Weight, float]]:
    """Errors of a line, each with the part of its seconds that have it."""
    kernels = MANY if term.kind == "kernels" else 1
    if term.doubts:
        total = max(term.seconds, math.fsum(doubt.seconds for doubt in term.doubts))
        for doubt in term.doubts:
            if total > 0:
                yield Weight(doubt, kernels), doubt.seconds / total
        return
    errors = _of_inputs(term.inputs, term.kind)
    if not errors and term.kind in _MODELS:
        errors = ((Weight(Doubt(f"{PLAIN}/default.any", "device", term.label, 0.0), kernels), 1.0),)
    yield from errors


@functools.lru_cache(maxsize=4096)
def _of_inputs(inputs: tuple[tuple[str, str, str], ...], kind_of_line: str) -> tuple[tuple[Weight, float], ...]:
    """The error of a line whose formula was never measured: of its least sure number."""
    spreads = [(float(match[1]) / 100, name, source) for name, _, source in inputs if (match := _SPREAD.search(source))]
    kinds = {kind for _, _, source in inputs for kind in _SOURCE.findall(source)}
    least_sure = next((kind for kind in ("guess", "default", "recalled", "datasheet", "fitted", "measured") if kind in kinds), "")
    if spreads and least_sure not in {"guess", "recalled"}:
        spread, name, text = max(spreads)
        return ((Weight(Doubt(f"{PLAIN}/={spread!r}", _case(text, least_sure), _named(name, text), 0.0)), 1.0),)
    if not least_sure:
        return ()
    name, text = next((name, source) for name, _, source in inputs if least_sure in _SOURCE.findall(source))
    of = next((word for word in _KINDS if word in name or word in kind_of_line), "any")
    return ((Weight(Doubt(f"{PLAIN}/{least_sure}.{of}", _case(text, least_sure), _named(name, text), 0.0)), 1.0),)


def error_of_number(name: str, source: str) -> str:
    """The regime of a number's own error, by its source; "" if nothing doubts it.

    >>> error_of_number("latency", "guess, as others"), error_of_number("rate", "default: nvidia, 9 parts, 12 %")
    ('number/guess.latency', 'number/=0.12')
    >>> error_of_number("rate", "as given")
    ''
    """
    errors = _of_inputs(((name, "", source),), "")
    return errors[0][0].doubt.regime if errors else ""


def _case(source: str, least_sure: str) -> Case:
    """The case of a number in a formula that was never measured; the errors of such formulas hold what data sheets say."""
    return case_of(source) or "device" if least_sure in {"default", "guess"} else "known"


def _named(name: str, source: str) -> str:
    """A number and its source; equal parts have equal ones, so that their errors are one.

    >>> _named("rate", "the least of 4 banks: guess, a part of the 100 ns"), _named("the time", "workload, spread 5 %")
    ('rate: guess, a part of the 100 ns', 'the time: workload, spread 5 %')
    """
    match = _SOURCE.search(source)
    text = f"{name}: {source[match.start() :] if match is not None else source}"
    return text if len(text) <= LETTERS else text[:LETTERS] + "..."
