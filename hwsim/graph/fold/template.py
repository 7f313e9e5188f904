"""The template of a run: its ranks, the ops they issue or meet in, and the capacities these draw from, each of them once.

It is small against the op graph: a loop is one body, a step of a collective one op. It has all that could distinguish two ranks:
their `colours`, the ranks that they meet, the capacities that they share and with whom.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.demand import Capacity, Cost, Unit, Wide
from hwsim.graph.fold.refine import Ints
from hwsim.records import dataclass

SLACK: Final = 1e-9  # share of a capacity that must stay free before it counts as never binding
TOUCH: Final = "touch:"  # before the name of what is no capacity
_DIGITS: Final = str.maketrans("", "", "0123456789")


class Draw(NamedTuple):
    """Relation of an op to a capacity; two draws are the same to the last bit, or they are not.

    amount: drawn. hold: a part taken while it flows. moved, unit: the natural amount behind it, None if none is stated.
    """

    amount: float
    hold: float
    moved: float | None
    unit: Unit
    touch: Hashable = None


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """Capacities in columns that every op draws from alike: one name for all of them.

    also: name of the first capacity of each kind of an op, and its index in `names`.
    """

    names: tuple[str, ...]
    many: tuple[int, ...]
    which: Ints  # by number of a capacity
    also: Mapping[str, int]

    @classmethod
    def of(cls, columns: Iterable[Wide]) -> Merged:
        """The coarsest."""
        wides = tuple({id(wide): wide for wide in columns}.values())
        if not wides:
            return cls((), (), np.empty(0, np.int64), {})
        which = np.zeros(wides[0].count, np.int64)
        for wide in wides:
            kind = np.zeros(wide.count, np.int64)
            kind[wide.numbers] = wide.kind + 1
            _, which = ticks.numbered(which * (len(wide.kinds) + 1) + kind)
        used = np.zeros(len(which), np.bool_)
        for wide in wides:
            used[wide.numbers] = True
        numbers = np.flatnonzero(used)
        _, first, of, many = np.unique(which[numbers], return_index=True, return_inverse=True, return_counts=True)
        which[:] = -1
        which[numbers] = of.ravel()
        names = tuple(wides[0].name(int(numbers[place])) for place in first.tolist())
        also: dict[str, int] = {}
        for wide in wides:
            _, firsts = np.unique(wide.kind, return_index=True)
            also |= {
                wire.capacity.name: int(which[wide.numbers[at]]) for wire, at in zip(wide.kinds, firsts.tolist(), strict=True)
            }
        return cls(names, tuple(many.tolist()), which, also)

    def draws(self, wide: Wide) -> list[tuple[int, Draw]]:
        """(which of `names`, what) an op draws."""
        places, first = np.unique(self.which[wide.numbers], return_index=True)
        kinds = [wide.kinds[kind] for kind in wide.kind[first].tolist()]
        moved = [Draw(each.amount, 0.0, each.moved if each.moved > 0 else None, "B") for each in kinds]
        return list(zip(places.tolist(), moved, strict=True))


class TemplateOp(NamedTuple):
    """An op that ranks issue: one of them (an op on its device), or several together (a step of a collective).

    colour: all that distinguishes it but its draws: its statement, its step.
    ranks: by role, who takes part: ((), (3,)) of rank 3's own op, or for example (("begins", members), ("ends", members)).
    touches: things that must be distinguished though their rate is not shared, by name: the memory that a value lies in.
    line: ops of one line never run at the same time: the ops of a queue.
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

    colours: what tells the ranks apart at first. marks: what happens to a capacity during the run.
    """
    colour_of: dict[Hashable, int] = {}
    given = _written_out(ops, marks)
    merged = Merged.of(one.cost.wide for one in given if one.cost is not None and one.cost.wide is not None)
    numbers: dict[str, int] = {name: number for number, name in enumerate(merged.names)}
    draw_of: dict[Draw, int] = {}
    role_of: dict[Hashable, int] = {}
    lines: dict[Hashable, int] = {}
    op_colours: list[int] = []
    op_lines: list[int] = []
    floors: list[float] = []
    edges: list[tuple[int, int, int]] = []
    members: list[NDArray[np.int64]] = []
    follows: list[tuple[int, int]] = []
    crowds: set[str] = set()
    for number, one in enumerate(given):
        cost = one.cost
        if cost is not None and cost.demand.crowd is not None:
            crowds.add(cost.demand.crowd.capacity)
        op_colours.append(colour_of.setdefault((one.colour, None if cost is None else _look(cost)), len(colour_of)))
        op_lines.append(lines.setdefault(one.line if one.line is not None else ("alone", number), len(lines)))
        floors.append(0.0 if cost is None else cost.demand.floor)
        for name, drawn in () if cost is None else draws_of(cost):
            edges.append((number, numbers.setdefault(name, len(numbers)), draw_of.setdefault(drawn, len(draw_of))))
        for place, drawn in () if cost is None or cost.wide is None else merged.draws(cost.wide):
            edges.append((number, place, draw_of.setdefault(drawn, len(draw_of))))
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
                   capacities, marks, crowds),
        many=np.array([*merged.many, *[1] * (len(numbers) - len(merged.many))], np.int64),
        also=merged.also,
    )  # fmt: skip


def _written_out(ops: Iterable[TemplateOp], marks: Mapping[str, Hashable]) -> tuple[TemplateOp, ...]:
    """With all capacities by name, unless nothing needs to tell those apart that ops draw from in columns."""
    given = tuple(ops)
    named = bool(marks) or any(one.cost is not None and (one.cost.demand.amounts or one.cost.demand.holds) for one in given)
    if not named:
        return given
    full: dict[int, Cost] = {}  # a cost in columns is one object, however many name it
    return tuple(
        one._replace(cost=full.setdefault(id(one.cost), one.cost.in_full())) if one.cost is not None and one.cost.wide else one
        for one in given
    )


def draws_of(cost: Cost) -> Iterable[tuple[str, Draw]]:
    """Draws of a cost, by name of the capacity."""
    moved: dict[str, tuple[float, Unit]] = {name: (amount, unit) for name, amount, unit in cost.moved}
    for name, amount in cost.demand.amounts:
        yield name, Draw(amount, 0.0, *moved.pop(name, (None, "s")))
    for name, part in cost.demand.holds:
        yield name, Draw(0.0, part, *moved.pop(name, (None, "s")))
    for name, (much, unit) in moved.items():
        yield name, Draw(0.0, 0.0, much, unit)
    crowd = cost.demand.crowd
    if crowd is not None and all(crowd.capacity != name for name, *_ in (*cost.demand.amounts, *cost.moved)):
        yield crowd.capacity, Draw(0.0, 0.0, None, "s")
    for name, _ in cost.demand.clocks:
        if all(name != drawn for drawn, *_ in (*cost.demand.amounts, *cost.moved)):
            yield name, Draw(0.0, 0.0, None, "s")


def _look(cost: Cost) -> Hashable:
    """Features of a cost other than the capacities that it draws from."""
    of, demand = cost.requests, cost.demand
    served = None if of is None else (of.count, of.size, of.pattern, of.write_share, of.depth, of.span)
    crowd = demand.crowd and (demand.crowd.depth, demand.crowd.each, demand.crowd.rest)
    clocks = demand.start, *sorted(part for _, part in demand.clocks)
    return demand.latency, demand.floor, demand.share, served, cost.played, crowd, clocks


def _thing(name: str, capacities: Mapping[str, Capacity], marks: Mapping[str, Hashable]) -> Hashable:
    """First features of a capacity; its family is among them, so that a class has a name."""
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
    crowds: set[str],
) -> NDArray[np.bool_]:
    """Which capacities can never bind.

    At most one op of a line draws at a time, and none faster than its other draws let it. If all lines together stay below the
    rate even so, the capacity holds no op back, and the ops that cross it are as if it were not there. That is not so where
    they are a crowd.
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
    alone = np.array([name not in crowds for name in names], np.bool_) | (np.bincount(capacity[top], minlength=len(names)) < 2)
    calm[:] = shared & steady & alone & (total <= 1 - SLACK)
    return calm
