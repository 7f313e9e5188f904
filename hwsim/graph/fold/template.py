"""Template of a run for folding: its ranks, the ops that they issue or meet in, and the capacities of these ops.

A template is much smaller than the op graph: a loop is one body, and a step of a collective is one op. It contains everything
that can distinguish two ranks: their `colours`, the ranks that they meet, and the capacities that they share with other ranks.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.demand import AmountColumns, Capacity, Cost, Unit
from hwsim.graph.fold.refine import Ints
from hwsim.records import dataclass

SLACK: Final = 1e-9  # share of a capacity that must stay free before it counts as never binding
TOUCH: Final = "touch:"  # prefix of names that are not capacities
_DIGITS: Final = str.maketrans("", "", "0123456789")


class TemplateDraw(NamedTuple):
    """A demand of an op on a capacity; draws are compared bit for bit.

    Args:
        amount: amount drawn from the capacity.
        hold: share of the capacity that the op occupies while it runs.
        moved: natural amount (bytes, FLOP) behind the draw; None: not stated.
        unit: unit of `moved`.
        touch: mark of a touched memory, instead of a draw.
    """

    amount: float
    hold: float
    moved: float | None
    unit: Unit
    touch: Hashable = None


@dataclass(frozen=True, slots=True, eq=False)
class CapacityGroups:
    """Groups of capacities in columns from which every op draws equally, with one name per group.

    Args:
        names: name of each group.
        many: number of capacities of each group.
        which: group of each capacity.
        also: name of the first capacity of each kind of an op, with its index in `names`.
    """

    names: tuple[str, ...]
    many: tuple[int, ...]
    which: Ints
    also: Mapping[str, int]

    @classmethod
    def of(cls, columns: Iterable[AmountColumns]) -> CapacityGroups:
        """Return the coarsest groups."""
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
        _, first, group, counts = np.unique(which[numbers], return_index=True, return_inverse=True, return_counts=True)
        which[:] = -1
        which[numbers] = group.ravel()
        names = tuple(wides[0].name(int(numbers[index])) for index in first.tolist())
        also: dict[str, int] = {}
        for wide in wides:
            _, firsts = np.unique(wide.kind, return_index=True)
            pairs = zip(wide.kinds, firsts.tolist(), strict=True)
            also |= {wire.capacity.name: int(which[wide.numbers[first]]) for wire, first in pairs}
        return cls(names, tuple(counts.tolist()), which, also)

    def draws(self, wide: AmountColumns) -> list[tuple[int, TemplateDraw]]:
        """Return pairs (index in `names`, draw) of an op."""
        groups, first = np.unique(self.which[wide.numbers], return_index=True)
        kinds = [wide.kinds[kind] for kind in wide.kind[first].tolist()]
        draws = [TemplateDraw(kind.amount, 0.0, kind.moved if kind.moved > 0 else None, "B") for kind in kinds]
        return list(zip(groups.tolist(), draws, strict=True))


class TemplateOp(NamedTuple):
    """An op of one rank (on its device) or of several ranks (a step of a collective).

    Args:
        colour: features of the op except its draws, such as its statement and step.
        cost: demand of the op.
        ranks: (role, ranks) pairs: ((), (3,)) for an op of rank 3, or for example (("begins", members), ("ends", members)).
        touches: (name, mark) of memories that must be distinguished although their rate is not shared.
        line: identity of a queue; ops of one queue never run concurrently.
        after: positions of earlier ops that the op follows, besides the order of its rank.
    """

    colour: Hashable
    cost: Cost | None
    ranks: tuple[tuple[Hashable, Sequence[int]], ...]
    touches: tuple[tuple[str, Hashable], ...] = ()
    line: Hashable = None
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A template in columns: `op[k]` draws `draws[draw[k]]` from `capacity[k]`; `member_op` and `member` are tied by a role."""

    ranks: Ints  # initial colours of ranks
    ops: Ints  # initial colours of ops
    names: tuple[str, ...]  # capacities and touched memories
    things: Ints  # initial colours of `names`
    op: Ints
    capacity: Ints
    draw: Ints
    draws: tuple[TemplateDraw, ...]
    member_op: Ints
    member: Ints
    role: Ints
    follows: Ints  # rows (op, earlier op)
    calm: NDArray[np.bool_]  # capacities that can never bind
    many: Ints  # number of capacities that each of `names` represents
    also: Mapping[str, int]  # further names of capacities in costs, with their index in `names`


def template_of(
    colours: Sequence[Hashable], ops: Iterable[TemplateOp], capacities: Mapping[str, Capacity], marks: Mapping[str, Hashable]
) -> Template:
    """Return a template in columns; arguments as in `fold`."""
    colour_of: dict[Hashable, int] = {}
    given = _written_out(ops, marks)
    merged = CapacityGroups.of(entry.cost.wide for entry in given if entry.cost is not None and entry.cost.wide is not None)
    numbers: dict[str, int] = {name: number for number, name in enumerate(merged.names)}
    draw_of: dict[TemplateDraw, int] = {}
    role_of: dict[Hashable, int] = {}
    lines: dict[Hashable, int] = {}
    op_colours: list[int] = []
    op_lines: list[int] = []
    floors: list[float] = []
    edges: list[tuple[int, int, int]] = []
    members: list[NDArray[np.int64]] = []
    follows: list[tuple[int, int]] = []
    crowds: set[str] = set()
    for number, entry in enumerate(given):
        cost = entry.cost
        if cost is not None and cost.demand.crowd is not None:
            crowds.add(cost.demand.crowd.capacity)
        op_colours.append(colour_of.setdefault((entry.colour, None if cost is None else _look(cost)), len(colour_of)))
        op_lines.append(lines.setdefault(entry.line if entry.line is not None else ("alone", number), len(lines)))
        floors.append(0.0 if cost is None else cost.demand.floor)
        for name, drawn in () if cost is None else draws_of(cost):
            edges.append((number, numbers.setdefault(name, len(numbers)), draw_of.setdefault(drawn, len(draw_of))))
        for group, drawn in () if cost is None or cost.wide is None else merged.draws(cost.wide):
            edges.append((number, group, draw_of.setdefault(drawn, len(draw_of))))
        for name, mark in entry.touches:
            touch = TemplateDraw(0.0, 0.0, None, "s", (mark,))
            edges.append((number, numbers.setdefault(TOUCH + name, len(numbers)), draw_of.setdefault(touch, len(draw_of))))
        follows += [(number, earlier) for earlier in entry.after]
        for role, ranks in entry.ranks:
            column = np.empty((len(ranks), 3), np.int64)
            column[:, 0], column[:, 1], column[:, 2] = number, ranks, role_of.setdefault(role, len(role_of))
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
    """Convert capacities in columns to capacities by name, unless all ops use columns and no capacity changes."""
    given = tuple(ops)
    has_names = any(op.cost is not None and (op.cost.demand.amounts or op.cost.demand.holds) for op in given)
    if not (marks or has_names):
        return given
    full: dict[int, Cost] = {}  # ops share a cost in columns
    return tuple(
        op._replace(cost=full.setdefault(id(op.cost), op.cost.in_full())) if op.cost is not None and op.cost.wide else op
        for op in given
    )


def draws_of(cost: Cost) -> Iterable[tuple[str, TemplateDraw]]:
    """Yield (name of the capacity, draw) for each draw of a cost."""
    moved: dict[str, tuple[float, Unit]] = {name: (amount, unit) for name, amount, unit in cost.moved}
    for name, amount in cost.demand.amounts:
        yield name, TemplateDraw(amount, 0.0, *moved.pop(name, (None, "s")))
    for name, part in cost.demand.holds:
        yield name, TemplateDraw(0.0, part, *moved.pop(name, (None, "s")))
    for name, (amount, unit) in moved.items():
        yield name, TemplateDraw(0.0, 0.0, amount, unit)
    crowd = cost.demand.crowd
    if crowd is not None and all(crowd.capacity != name for name, *_ in (*cost.demand.amounts, *cost.moved)):
        yield crowd.capacity, TemplateDraw(0.0, 0.0, None, "s")
    for name, _ in cost.demand.clocks:
        if all(name != drawn for drawn, *_ in (*cost.demand.amounts, *cost.moved)):
            yield name, TemplateDraw(0.0, 0.0, None, "s")


def _look(cost: Cost) -> Hashable:
    """Features of a cost other than its capacities."""
    io, demand = cost.requests, cost.demand
    served = None if io is None else (io.count, io.size, io.pattern, io.write_share, io.depth, io.span)
    crowd = demand.crowd and (demand.crowd.depth, demand.crowd.each, demand.crowd.rest)
    clocks = demand.start, *sorted(part for _, part in demand.clocks)
    return demand.latency, demand.floor, demand.share, served, cost.played, crowd, clocks


def _thing(name: str, capacities: Mapping[str, Capacity], marks: Mapping[str, Hashable]) -> Hashable:
    """Initial features of a capacity, including its name without digits, so that a class has a name."""
    if name.startswith(TOUCH):
        return name.translate(_DIGITS)
    capacity = capacities[name]
    return name.translate(_DIGITS), capacity.rate, capacity.unit, marks.get(name)


def _interned(values: Sequence[Hashable]) -> Ints:
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(value, len(known)) for value in values], np.int64)


def _calm(
    op: Ints,
    capacity: Ints,
    draw: Ints,
    draws: Sequence[TemplateDraw],
    floors: NDArray[np.float64],
    lines: Ints,
    names: Sequence[str],
    capacities: Mapping[str, Capacity],
    marks: Mapping[str, Any],
    crowds: set[str],
) -> NDArray[np.bool_]:
    """Return a mask of the capacities that can never bind.

    At most one op of a line draws at a time, at most at the rate that its other draws allow. If the sum over all lines is below
    the rate of the capacity, the capacity never slows down an op and has no effect. Capacities with a crowd are excluded.
    """
    calm = np.zeros(len(names), np.bool_)
    if not len(op):
        return calm
    shared = np.array([name in capacities for name in names], np.bool_)
    rate = np.array([capacities[name].rate if name in capacities else 1.0 for name in names])
    amount = np.array([item.amount for item in draws])[draw] / rate[capacity]  # seconds at the full rate
    hold = np.array([item.hold for item in draws])[draw]
    longest, second = floors.copy(), floors.copy()
    np.maximum.at(longest, op, amount)
    is_longest = amount >= longest[op]
    several = np.bincount(op[is_longest], minlength=len(floors)) > 1
    np.maximum.at(second, op[~is_longest], amount[~is_longest])
    second = np.where(several, longest, second)
    body = np.where(is_longest, np.maximum(second, floors)[op], longest[op])
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
