"""Several consecutive kernels as one cost: nothing else can run between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from hwsim.demand import Cost, Demand, Term, Unit
from hwsim.formats import precise
from hwsim.origins import UncertaintySource
from hwsim.records import dataclass

SOURCE: Final = "the kernel's own model"


@dataclass(frozen=True, slots=True)
class KernelRuns:
    """A kernel that runs `times` times in a row.

    Args:
        what: label in the derivation.
        cost: cost of the kernel.
        times: number of runs.
    """

    what: str
    cost: Cost
    times: float = 1.0


def sequence_cost(
    turns: Sequence[tuple[str, Cost] | KernelRuns],
    rates: Mapping[str, float],
    capacity: str,
    doubt: UncertaintySource | None = None,
) -> Cost:
    """Return the cost of consecutive kernels.

    Args:
        turns: kernels in order.
        rates: rate of each capacity.
        capacity: capacity of the line in the derivation.
        doubt: uncertainty of the total time; None: each kernel has its own.
    """
    rows = [turn if isinstance(turn, KernelRuns) else KernelRuns(*turn) for turn in turns]
    amounts: dict[str, float] = {}
    moved: dict[tuple[str, Unit], float] = {}
    holds: dict[str, float] = {}
    starts: dict[tuple[str, str, float], list[Term]] = {}  # equal starts share a line
    spent: dict[str, float] = {}
    errors: dict[tuple[object, ...], UncertaintySource] = {}
    clocks: dict[str, float] = {}
    share = latency = body = started = 0.0
    for turn in rows:
        demand, times = turn.cost.demand, turn.times
        for name, amount in demand.amounts:
            amounts[name] = amounts.get(name, 0.0) + times * amount
        for name, part in demand.holds:
            holds[name] = max(holds.get(name, 0.0), part)
        for name, amount, unit in turn.cost.moved:
            moved[name, unit] = moved.get((name, unit), 0.0) + times * amount
        turn_s = times * demand.body(rates)
        share, latency, body = share + times * demand.share, latency + times * demand.latency, body + turn_s
        started += times * demand.start * demand.latency
        for name, part in demand.clocks:
            clocks[name] = clocks.get(name, 0.0) + part * turn_s
        spent[turn.what] = spent.get(turn.what, 0.0) + turn_s
        for term in turn.cost.why:
            if term.kind == "latency":
                starts.setdefault((term.label, term.formula, term.seconds), []).extend([term] * max(1, round(times)))
        for error in _errors(turn.cost, turn_s) if doubt is None else ():
            before = errors.get(error[:3])
            errors[error[:3]] = error if before is None else error._replace(seconds=before.seconds + error.seconds)
    lines = [_started(terms) for terms in starts.values()]
    all_errors = tuple(errors.values()) if doubt is None else (doubt._replace(seconds=body),)
    inputs = tuple((label, precise(seconds, "s"), SOURCE) for label, seconds in spent.items())
    why = Term("kernels", " + ".join(spent), inputs, body, capacity, kind="kernels", doubts=all_errors if body > 0 else ())
    draws = tuple(sorted((name, amount) for name, amount in amounts.items() if amount > 0))
    at_clocks = tuple((name, seconds / body if body > 0 else 1.0) for name, seconds in clocks.items())
    return Cost(
        Demand(
            latency,
            draws,
            body,
            tuple(sorted(holds.items())),
            share or 1.0,
            clocks=at_clocks,
            start=started / latency if latency > 0 else 0.0,
        ),
        tuple((name, amount, unit) for (name, unit), amount in sorted(moved.items()) if amount > 0),
        (*lines, why),
    )


def _errors(cost: Cost, turn_s: float) -> tuple[UncertaintySource, ...]:
    """Return the uncertainties of a kernel's body, scaled to `took` seconds."""
    lines = [term for term in cost.why if term.kind not in ("latency", "stated")]
    longest = max(lines, key=lambda term: term.seconds, default=None)
    if longest is None or longest.seconds <= 0:
        return ()
    total = max(longest.seconds, math.fsum(doubt.seconds for doubt in longest.doubts))
    return tuple(doubt._replace(seconds=turn_s * doubt.seconds / total) for doubt in longest.doubts)


def _started(terms: Sequence[Term]) -> Term:
    first = terms[0]
    if len(terms) == 1:
        return first
    seconds = math.fsum(term.seconds for term in terms)
    source = first.inputs[-1][2] if first.inputs else SOURCE
    inputs = (("kernels", str(len(terms)), SOURCE), (first.formula, precise(first.seconds, "s"), source))
    unsure = tuple(doubt._replace(seconds=doubt.seconds * len(terms)) for doubt in first.doubts)
    return Term(first.label, f"kernels x {first.formula}", inputs, seconds, first.capacity, first.kind, unsure, first.holder)
