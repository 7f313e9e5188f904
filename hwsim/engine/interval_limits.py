"""Limits of an interval from additional runs, with every uncertain number at its most likely value for that limit.

An interval from the critical path alone is wrong if the path changes: if a link is 4 % from being the bottleneck, or a stage
overtakes another. Two runs change the numbers on the path:

    ln(factor of a key) = +- half x (its share of the variance) / (its share of the time)

A third run sets all numbers off the path to the slow end of their ranges; it takes longer only if one of them becomes the
bottleneck.

**Source**: the design point of a first-order reliability method (Hasofer and Lind, "Exact and invariant second-moment code
format", Journal of the Engineering Mechanics Division 100(EM1), 1974), quoted from memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hwsim import engine
from hwsim.demand import Cost, Term
from hwsim.graph.opgraph import Change, OpGraph
from hwsim.origins import Case
from hwsim.results.error_weights import Weight, Weights, errors_of
from hwsim.results.errors import NORMAL
from hwsim.results.interval import OTHERS, Interval, IntervalPart
from hwsim.results.interval import interval as composed
from hwsim.results.timeline import Timeline

Key = tuple[str, Case, str]  # regime, case and key of an uncertainty
Errors = tuple[tuple[bool, Key, float], ...]
BESIDES: Final = "parts that are not the bottleneck now but may become it"
MOST: Final = 2  # largest errors that are also changed one at a time
LEAST: Final = 0.01  # minimum share of the time in the formula


def limits_by_runs(timeline: Timeline, interval: Interval, changes: Sequence[Change] = ()) -> Interval:
    """Return the interval with limits from additional runs, with the same changes of capacities."""
    if not timeline.makespan_fs:
        return interval
    graph = timeline.flat.graph
    table: dict[Errors, int] = {}  # many lines have the same errors
    lines = [[table.setdefault(_errors(term), len(table)) for term in cost.why] for cost in graph.costs]

    def end(factors: Mapping[Key, float]) -> float:
        factor_of = [_factor(errors, factors) for errors in table]
        costs = (_moved(cost, [factor_of[line] for line in row]) for cost, row in zip(graph.costs, lines, strict=True))
        return math.log(engine.simulate(replace(graph, costs=tuple(costs)), changes=changes).makespan / timeline.makespan)

    below = above = 0.0
    if interval.half > 0:
        shifts = {part.doubt: interval.half * interval.share(part) / max(part.time_share, LEAST) for part in interval.parts}
        besides = interval.half * interval.own**2 / interval.variance if interval.variance > 0 else 0.0
        rest = 1.0 if interval.basis != "measured" else _widening(interval, shifts)
        below = besides - end({key: math.exp(-rest * shift) for key, shift in shifts.items()})
        above = besides + end({key: math.exp(rest * shift) for key, shift in shifts.items()})
        for part in interval.parts[:MOST] if interval.basis == "composed" and len(interval.parts) > 1 else ():
            alone = interval.half * math.sqrt(interval.share(part)) / max(part.time_share, LEAST)
            below, above = max(below, -end({part.doubt: math.exp(-alone)})), max(above, end({part.doubt: math.exp(alone)}))
    on_path = {part.doubt for part in interval.parts}
    off_path = {key: spread for key, spread in spreads(graph).items() if key not in on_path}
    slow = NORMAL[interval.level]
    beside = end({key: math.exp(slow * spread) for key, spread in off_path.items()}) if off_path else 0.0
    if beside > above:
        case: Case = "device" if above <= 0 else interval.case
        part = IntervalPart(BESIDES, OTHERS, case, 0.0, beside / slow, 0.0, slow)
        interval = replace(interval, parts=(part, *interval.parts), case=case, basis="composed")
    return replace(interval, below=max(0.0, below), above=max(above, beside, 0.0))


def spreads(graph: OpGraph) -> dict[Key, float]:
    """Return the standard deviation of ln(seconds) of every error in a graph, on the critical path or not."""
    doubts = {weight.doubt[:3]: weight for cost in graph.costs for term in cost.why for weight, _ in errors_of(term)}
    weights = tuple(Weight(weight.doubt._replace(seconds=1.0), weight.kernels) for weight in doubts.values())
    parts = composed(Weights(weights, 0.0, float(len(weights) or 1))).parts
    return {part.doubt: math.sqrt(part.variance) / part.time_share for part in parts}


def _widening(interval: Interval, shifts: Mapping[Key, float]) -> float:
    """Factor by which the shifts are scaled, so that they change the result by the parts' share of the half width."""
    moves = math.fsum(shifts[part.doubt] * part.time_share for part in interval.parts)
    parts = 1.0 - interval.own**2 / interval.variance if interval.variance > 0 else 0.0  # of the half width
    return interval.half * parts / moves if moves > 0 else 1.0


def _moved(cost: Cost, factors: Sequence[float]) -> Cost:
    """Return the cost with the time of every line multiplied by its factor."""
    if all(factor == 1.0 for factor in factors):
        return cost
    by_line = list(zip(cost.why, factors, strict=True))
    demand = cost.demand
    latencies = [(term, factor) for term, factor in by_line if term.kind == "latency"]
    others = [(term, factor) for term, factor in by_line if term.kind != "latency"]
    longest = max((term.seconds for term, _ in others), default=0.0)
    rest = max(term.seconds * factor for term, factor in others) / longest if longest > 0 else 1.0
    named = {term.capacity for term, _ in others}
    amounts = tuple(
        (name, amount * (_mean([pair for pair in others if pair[0].capacity == name]) if name in named else rest))
        for name, amount in demand.amounts
    )
    return replace(
        cost, demand=replace(demand, latency=demand.latency * _mean(latencies), amounts=amounts, floor=demand.floor * rest)
    )


def _errors(term: Term) -> Errors:
    """Return the errors of a line: whether its factor is a power, its key, and the fraction of the seconds that has it."""
    return tuple([(weight.doubt.case == "stated", weight.doubt[:3], part) for weight, part in errors_of(term)])


def _factor(errors: Errors, factors: Mapping[Key, float]) -> float:
    """Factor on the time of a line: factors of stated numbers are powers, factors of model errors are weighted sums."""
    known = [(is_power, factors.get(key, 1.0), part) for is_power, key, part in errors]
    follows: float = math.prod(factor**part for is_power, factor, part in known if is_power)
    return follows * (1.0 + math.fsum(part * (factor - 1.0) for is_power, factor, part in known if not is_power))


def _mean(lines: Iterable[tuple[Term, float]]) -> float:
    """Average factor of lines, weighted by their times."""
    rows = [(term.seconds, factor) for term, factor in lines]
    total = math.fsum(seconds for seconds, _ in rows)
    return math.fsum(seconds * factor for seconds, factor in rows) / total if total > 0 else 1.0
