"""Sensitivity of an op's cost to its uncertain inputs, for the 90 % interval.

The op is lowered again with each uncertain number moved by one standard deviation of its logarithm. The part of a derivation
line's seconds that is proportional to the number is ln(seconds / moved seconds) / ln(number / moved number). This works for any
kind of op.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import chain, repeat
from typing import Any

from hwsim.demand import Cost, Demand, Term
from hwsim.devices import WORKLOAD
from hwsim.formats import precise
from hwsim.machine.moved_numbers import STD_DEVIATIONS_AT_90
from hwsim.ops.exchange import ExchangeOp
from hwsim.ops.op import LoweredOp, Op, Scope
from hwsim.origins import Origin, UncertainNumber, UncertaintySource, number_uncertainty
from hwsim.spec import plan


class NoSensitivity(Exception):
    """An error for a collective on an uncertain machine: sensitivities need runs of the whole program instead."""


def lower_with_uncertainty(op: Op, scope: Scope, lower: Callable[[Any, Scope], LoweredOp] | None = None) -> LoweredOp:
    """Lower an op (by `lower`, by default its own method) and add the uncertainty of its inputs and of the machine's numbers.

    Raises:
        Unfollowed: the op is a collective and a number of the machine is uncertain.
    """
    lower = lower or op.__class__.lower
    placed = _lowered(op, lambda moved: lower(moved, scope))
    if scope.machine.unsure and isinstance(op, ExchangeOp):
        raise NoSensitivity
    for number in scope.machine.unsure:
        moved = lower(op, replace(scope, machine=number.ends[0]))
        placed = _with(placed, moved, number.doubt, number.origin, STD_DEVIATIONS_AT_90 * number.origin.step)
    return placed


def _lowered(op: Op, lower: Callable[[Any], LoweredOp]) -> LoweredOp:
    kind: type = type(op)
    unsure: dict[str, Any] = {
        key.name: value for key in plan(kind) if isinstance(value := getattr(op, key.name), UncertainNumber)
    }
    if not unsure:
        return lower(op)
    sure: Op = replace(op, **dict[str, Any]({name: float(number) for name, number in unsure.items()}))
    placed = lower(sure)
    for name, number in unsure.items():
        moved = lower(replace(sure, **dict[str, Any]({name: number * math.exp(-number.origin.step)})))
        doubt = number_uncertainty(f"{name} of {op.name or op.kind}", number.origin)._replace(case="stated")
        placed = _with(placed, moved, doubt, number.origin, number.origin.step)
    return placed


def _with(placed: LoweredOp, moved: LoweredOp, doubt: UncertaintySource, origin: Origin, step: float) -> LoweredOp:
    """Add an uncertainty to each derivation line whose errors do not include it; moved: the op with the number a step lower."""
    if placed.time > 0 and placed.cost is None and moved.time != placed.time:  # a duration without resources
        term = Term("time", "time", (("time", precise(placed.time, "s"), WORKLOAD),), placed.time, kind="stated")
        placed = replace(placed, cost=Cost(Demand(floor=placed.time), why=(term,)), time=0.0)
    if placed.cost is None:
        return placed
    others = [Term("", "", (), moved.time)] if moved.cost is None else moved.cost.why
    lines = []
    for term, other in zip(placed.cost.why, chain(others, repeat(Term("", "", (), 0.0))), strict=False):
        slope = abs(math.log(term.seconds / other.seconds)) / step if term.seconds > 0 and other.seconds > 0 else 1.0
        is_new = slope > 1e-9 and (origin.spread or _errors(term) == _errors(other))
        lines.append(replace(term, doubts=(*term.doubts, doubt._replace(seconds=slope * term.seconds))) if is_new else term)
    return replace(placed, cost=replace(placed.cost, why=tuple(lines)))


def _errors(line: Term) -> list[object]:
    """Return the model errors of a line, or else the sources of its inputs."""
    sources = [source.plain for *_, source in line.inputs if isinstance(source, Origin)]
    return [doubt[:2] for doubt in line.doubts if doubt.case != "stated"] or list[object](sources)
