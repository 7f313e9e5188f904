"""The template of a run: its ranks, the ops they issue or meet in, and the capacities these draw from, each of them once.

It is small beside the op graph (a loop is one body, a step of a collective one op) and says all that could tell two ranks
apart: what they are called in `colours`, with whom they meet, which capacities they share with whom.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim.demand import Capacity, Cost, Unit
from hwsim.graph.fold.refine import Ints
from hwsim.graph.fold.twins import Draw, Twins
from hwsim.records import dataclass

SLACK: Final = 1e-9  # a capacity that is full to so much less than this is not said never to bind
TOUCH: Final = "touch:"  # before the name of what is no capacity
_DIGITS: Final = str.maketrans("", "", "0123456789")


class TemplateOp(NamedTuple):
    """An op that ranks issue: one of them (an op on its device), or several together (a step of a collective).

    colour: all that tells it apart but what it draws: which statement it is, which step of it.
    ranks: by role, who takes part: ((), (3,)) of rank 3's own op, or for example (("begins", members), ("ends", members)).
    touches: what must be told apart though nobody shares its rate, by name: the memory that a value lies in.
    line: ops of one line never run at the same time: those of a queue.
    after: places of ops given before that it follows, other than by the order of its rank.
    """

    colour: Hashable
    cost: Cost | None
    ranks: tuple[tuple[Hashable, Sequence[int]], ...]
    touches: tuple[tuple[str, Hashable], ...] = ()
    line: Hashable = None
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """As columns: op i and capacity (or touched thing) `capacity[k]` are joined by `draws[draw[k]]`; op and rank by a role."""

    ranks: Ints  # first colours
    ops: Ints
    names: tuple[str, ...]
    things: Ints  # first colours of what `names` says
    op: Ints
    capacity: Ints
    draw: Ints
    draws: tuple[Draw, ...]
    member_op: Ints
    member: Ints
    role: Ints
    follows: Ints  # rows of op and an earlier one
    calm: NDArray[np.bool_]  # capacities that can never bind
    many: Ints  # how many capacities each of `names` is: of those that only ops of many capacities draw from
    also: Mapping[str, int]  # other capacities that are spoken of, by name: which of `names` they are among


def template_of(
    colours: Sequence[Hashable],
    ops: Iterable[TemplateOp],
    capacities: Mapping[str, Capacity],
    marks: Mapping[str, Hashable],
) -> Template:
    """Columns of a template.

    colours: what tells the ranks apart at first.  marks: what happens to a capacity during the run.
    """
    colour_of: dict[Hashable, int] = {}
    given = _written_out(ops, marks)
    twins = Twins.of(one.cost.wide for one in given if one.cost is not None and one.cost.wide is not None)
    numbers: dict[str, int] = {name: number for number, name in enumerate(twins.names)}
    draw_of: dict[Draw, int] = {}
    role_of: dict[Hashable, int] = {}
    lines: dict[Hashable, int] = {}
    op_colours: list[int] = []
    op_lines: list[int] = []
    floors: list[float] = []
    edges: list[tuple[int, int, int]] = []
    members: list[NDArray[np.int64]] = []
    follows: list[tuple[int, int]] = []
    for number, one in enumerate(given):
        cost = one.cost
        op_colours.append(colour_of.setdefault((one.colour, None if cost is None else _look(cost)), len(colour_of)))
        op_lines.append(lines.setdefault(one.line if one.line is not None else ("alone", number), len(lines)))
        floors.append(0.0 if cost is None else cost.demand.floor)
        for name, what in () if cost is None else draws_of(cost):
            edges.append((number, numbers.setdefault(name, len(numbers)), draw_of.setdefault(what, len(draw_of))))
        for place, what in () if cost is None or cost.wide is None else twins.draws(cost.wide):
            edges.append((number, place, draw_of.setdefault(what, len(draw_of))))
        for name, mark in one.touches:
            touch = Draw(0.0, 0.0, None, "s", (mark,))
            edges.append((number, numbers.setdefault(TOUCH + name, len(numbers)), draw_of.setdefault(touch, len(draw_of))))
        follows += [(number, earlier) for earlier in one.after]
        for role, who in one.ranks:
            column = np.empty((len(who), 3), np.int64)
            column[:, 0], column[:, 1], column[:, 2] = number, who, role_of.setdefault(role, len(role_of))
            members.append(column)
    op, capacity, draw = np.array(edges, np.int64).reshape(-1, 3).T
    member_op, member, role = np.concatenate([np.empty((0, 3), np.int64), *members]).T
    looks: dict[Hashable, int] = {}
    things = [looks.setdefault(_thing(name, capacities, marks), len(looks)) for name in numbers]
    return Template(
        ranks=_interned(colours),
        ops=np.array(op_colours, np.int64),
        names=tuple(numbers),
        things=np.array(things, np.int64),
        op=op,
        capacity=capacity,
        draw=draw,
        draws=tuple(draw_of),
        member_op=member_op,
        member=member,
        role=role,
        follows=np.array(follows, np.int64).reshape(-1, 2),
        calm=_calm(op, capacity, draw, tuple(draw_of), np.array(floors), np.array(op_lines, np.int64), tuple(numbers),
                   capacities, marks),
        many=np.array([*twins.many, *[1] * (len(numbers) - len(twins.many))], np.int64),
        also=twins.also,
    )  # fmt: skip


def _written_out(ops: Iterable[TemplateOp], marks: Mapping[str, Hashable]) -> tuple[TemplateOp, ...]:
    """With all capacities by name, unless nothing needs to tell those apart that ops draw from in columns."""
    found = tuple(ops)
    named = bool(marks) or any(one.cost is not None and (one.cost.demand.amounts or one.cost.demand.holds) for one in found)
    if not named:
        return found
    full: dict[int, Cost] = {}  # a cost in columns is one object, however many name it
    return tuple(
        one._replace(cost=full.setdefault(id(one.cost), one.cost.in_full())) if one.cost is not None and one.cost.wide else one
        for one in found
    )


def draws_of(cost: Cost) -> Iterable[tuple[str, Draw]]:
    """What a cost has to do with each capacity."""
    moved: dict[str, tuple[float, Unit]] = {name: (amount, unit) for name, amount, unit in cost.moved}
    for name, amount in cost.demand.amounts:
        yield name, Draw(amount, 0.0, *moved.pop(name, (None, "s")))
    for name, part in cost.demand.holds:
        yield name, Draw(0.0, part, *moved.pop(name, (None, "s")))
    for name, (much, unit) in moved.items():
        yield name, Draw(0.0, 0.0, much, unit)


def _look(cost: Cost) -> Hashable:
    """What tells a cost apart but the capacities it draws from."""
    asked, demand = cost.requests, cost.demand
    served = None if asked is None else (asked.count, asked.size, asked.pattern, asked.write_share, asked.depth, asked.span)
    return demand.latency, demand.floor, demand.share, served, cost.played


def _thing(name: str, capacities: Mapping[str, Capacity], marks: Mapping[str, Hashable]) -> Hashable:
    """What tells a capacity apart at first; its family too, so that a class has a name."""
    if name.startswith(TOUCH):
        return name.translate(_DIGITS)
    one = capacities[name]
    return name.translate(_DIGITS), one.rate, one.unit, marks.get(name)


def _interned(values: Sequence[Hashable]) -> Ints:
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(value, len(known)) for value in values], np.int64)


def _calm(
    op: Ints,
    capacity: Ints,
    draw: Ints,
    draws: Sequence[Draw],
    floors: NDArray[np.float64],
    lines: Ints,
    names: Sequence[str],
    capacities: Mapping[str, Capacity],
    marks: Mapping[str, Any],
) -> NDArray[np.bool_]:
    """Which capacities can never bind.

    At most one op of a line draws at a time, and none faster than what it draws elsewhere lets it: where all lines together
    stay below the rate even so, the capacity holds nobody back, and the ops that cross it are as if it were not there.
    """
    calm = np.zeros(len(names), np.bool_)
    if not len(op):
        return calm
    shared = np.array([name in capacities for name in names], np.bool_)
    rate = np.array([capacities[name].rate if name in capacities else 1.0 for name in names])
    amount = np.array([each.amount for each in draws])[draw] / rate[capacity]  # seconds of the whole capacity
    hold = np.array([each.hold for each in draws])[draw]
    most, second = floors.copy(), floors.copy()
    np.maximum.at(most, op, amount)
    at_most = amount >= most[op]
    several = np.bincount(op[at_most], minlength=len(floors)) > 1
    np.maximum.at(second, op[~at_most], amount[~at_most])
    second = np.where(several, most, second)
    body = np.where(at_most, np.maximum(second, floors)[op], most[op])
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where(amount > 0, amount / body, 0.0) + hold
    key = lines[op] * np.int64(len(names)) + capacity
    order = np.lexsort((part, key))
    last = np.append(key[order][1:] != key[order][:-1], True)
    top = order[last]
    total = np.bincount(capacity[top], weights=part[top], minlength=len(names))
    steady = np.array([name not in marks for name in names], np.bool_)
    calm[:] = shared & steady & (total <= 1 - SLACK)
    return calm
