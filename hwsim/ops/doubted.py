"""The cost of an op some of whose numbers are unsure: each line says how far it follows each of them.

A number is moved by one standard deviation of its own and the op lowered again; the part of a line's seconds that hangs on the
number is ln(seconds / seconds moved) / ln(number / number moved), so that nothing has to be known of the kind of op.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from hwsim.demand import Cost, Demand, Doubt, Term, doubt_of
from hwsim.devices import WORKLOAD
from hwsim.formats import precise
from hwsim.ops.exchange import ExchangeOp
from hwsim.ops.op import CannotPlace, Op, Placed, Scope
from hwsim.origins import Unsure
from hwsim.spec import plan

STEP: Final = 0.25  # how far a number is moved whose file does not say its spread


def doubted(op: Op, scope: Scope, lower: Callable[[Any, Scope], Placed] | None = None) -> Placed:
    """The op as `lower` lowers it, or as it does itself, with the doubts of its numbers and of those of the machine.

    Raises:
        CannotPlace: of a collective, no line follows a number of the machine.
    """
    lower = lower or _itself
    placed = _of_op(op, lambda each: lower(each, scope))
    for number in scope.machine.unsure:
        if isinstance(op, ExchangeOp):
            message = f"no answer of a collective carries how unsure a number of the machine is ({number.doubt.key})"
            raise CannotPlace(message, "leave out its `spread`")
        placed = _with(placed, lower(op, replace(scope, machine=number.machine)), number.doubt, number.step)
    return placed


def _itself(op: Op, scope: Scope) -> Placed:
    return op.lower(scope)


def _of_op(op: Op, lower: Callable[[Any], Placed]) -> Placed:
    kind: type = type(op)
    given: dict[str, Any] = {entry.name: getattr(op, entry.name) for entry in plan(kind)}
    unsure: dict[str, Any] = {name: value for name, value in given.items() if isinstance(value, Unsure)}
    if not unsure:
        return lower(op)
    sure: Op = replace(op, **dict[str, Any]({name: float(number) for name, number in unsure.items()}))
    placed = lower(sure)
    for name, number in unsure.items():
        step = number.origin.spread or STEP
        change: dict[str, Any] = {name: number * math.exp(-step)}
        moved = lower(replace(sure, **change))
        doubt = doubt_of(f"{name} of {op.name or op.kind}", number.origin)._replace(case="stated")
        placed = _with(placed, moved, doubt, step)
    return placed


def _with(placed: Placed, moved: Placed, doubt: Doubt, step: float) -> Placed:
    """The op with one more doubt on each of its lines; moved: the op with the number moved down by `step`, a logarithm."""
    if placed.time > 0 and placed.cost is None and moved.time != placed.time:  # of a time that draws on nothing
        term = Term("time", "time", (("time", precise(placed.time, "s"), WORKLOAD),), placed.time, kind="stated")
        placed = replace(placed, cost=Cost(Demand(floor=placed.time), why=(term,)), time=0.0)
    if placed.cost is None:
        return placed
    others = [moved.time] if moved.cost is None else [term.seconds for term in moved.cost.why]
    others += [0.0] * (len(placed.cost.why) - len(others))
    lines = []
    for term, after in zip(placed.cost.why, others, strict=False):
        follows = abs(math.log(term.seconds / after)) / step if term.seconds > 0 and after > 0 else 1.0
        more = (doubt._replace(seconds=follows * term.seconds),) if follows > 1e-9 else ()
        lines.append(replace(term, doubts=(*term.doubts, *more)))
    return replace(placed, cost=replace(placed.cost, why=tuple(lines)))
