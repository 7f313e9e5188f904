"""The cost of an op some of whose numbers are unsure: each line says how far it follows each of them.

A number is moved by one standard deviation of its own and the op lowered again; the part of a line's seconds that hangs on the
number is ln(seconds / seconds moved) / ln(number / number moved), so that nothing has to be known of the kind of op.
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
from hwsim.machine.moved import END
from hwsim.ops.exchange import ExchangeOp
from hwsim.ops.op import Op, Placed, Scope
from hwsim.origins import Doubt, Origin, Unsure, doubt_of
from hwsim.spec import plan


class Unfollowed(Exception):
    """An op, a collective, whose lines follow no number of the machine: the whole run has to."""


def doubted(op: Op, scope: Scope, lower: Callable[[Any, Scope], Placed] | None = None) -> Placed:
    """The op as `lower` lowers it, or as it does itself, with the doubts of its numbers and of those of the machine.

    Raises:
        Unfollowed: a number of the machine is unsure.
    """
    lower = lower or op.__class__.lower
    placed = _of_op(op, lambda each: lower(each, scope))
    if scope.machine.unsure and isinstance(op, ExchangeOp):
        raise Unfollowed
    for number in scope.machine.unsure:
        moved = lower(op, replace(scope, machine=number.ends[0]))
        placed = _with(placed, moved, number.doubt, number.origin, END * number.origin.step)
    return placed


def _of_op(op: Op, lower: Callable[[Any], Placed]) -> Placed:
    kind: type = type(op)
    unsure: dict[str, Any] = {each.name: value for each in plan(kind) if isinstance(value := getattr(op, each.name), Unsure)}
    if not unsure:
        return lower(op)
    sure: Op = replace(op, **dict[str, Any]({name: float(number) for name, number in unsure.items()}))
    placed = lower(sure)
    for name, number in unsure.items():
        moved = lower(replace(sure, **dict[str, Any]({name: number * math.exp(-number.origin.step)})))
        doubt = doubt_of(f"{name} of {op.name or op.kind}", number.origin)._replace(case="stated")
        placed = _with(placed, moved, doubt, number.origin, number.origin.step)
    return placed


def _with(placed: Placed, moved: Placed, doubt: Doubt, origin: Origin, step: float) -> Placed:
    """The op with one more doubt on each of its lines but those whose own errors count it; moved: with the number a step less."""
    if placed.time > 0 and placed.cost is None and moved.time != placed.time:  # of a time that draws on nothing
        term = Term("time", "time", (("time", precise(placed.time, "s"), WORKLOAD),), placed.time, kind="stated")
        placed = replace(placed, cost=Cost(Demand(floor=placed.time), why=(term,)), time=0.0)
    if placed.cost is None:
        return placed
    others = [Term("", "", (), moved.time)] if moved.cost is None else moved.cost.why
    lines = []
    for term, other in zip(placed.cost.why, chain(others, repeat(Term("", "", (), 0.0))), strict=False):
        follows = abs(math.log(term.seconds / other.seconds)) / step if term.seconds > 0 and other.seconds > 0 else 1.0
        is_new = follows > 1e-9 and (origin.spread or _errors(term) == _errors(other))
        lines.append(replace(term, doubts=(*term.doubts, doubt._replace(seconds=follows * term.seconds))) if is_new else term)
    return replace(placed, cost=replace(placed.cost, why=tuple(lines)))


def _errors(line: Term) -> list[object]:
    """The errors that a line has of its model, or else of its inputs."""
    sources = [source.plain for *_, source in line.inputs if isinstance(source, Origin)]
    return [doubt[:2] for doubt in line.doubts if doubt.case != "stated"] or list[object](sources)
