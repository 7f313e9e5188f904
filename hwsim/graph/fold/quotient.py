"""Fold of a template: classes of ranks, ops and capacities, and the cost of an op that represents its class."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from hwsim.demand import Capacity, Cost, Crowd
from hwsim.graph.fold.refine import Ints, Ties, is_equitable, numbered, refine
from hwsim.graph.fold.template import TOUCH, Template, TemplateDraw, TemplateOp, template_of
from hwsim.records import dataclass

MOST_WORK: Final = 100_000_000  # visited ties after which a template counts as one without identical ranks


class CannotFold(ValueError):
    """An error with the reason why ranks cannot be folded."""


class NoEquals(CannotFold):
    """An error for ranks of which hardly any two are identical, so that folding saves nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """A partition of elements into classes.

    Args:
        of: class of each element.
        first: first element of each class.
        size: number of elements of each class.
    """

    of: Ints
    first: Ints
    size: Ints

    @classmethod
    def by(cls, of: Ints, counts: Ints | None = None) -> Classes:
        """Return the partition from the class of each element; `counts`: multiplicity of each element."""
        _, first = np.unique(of, return_index=True)
        size = np.bincount(of, weights=counts, minlength=len(first)).astype(np.int64)
        return cls(of, first.astype(np.int64), size)

    def __len__(self) -> int:
        return len(self.first)

    def leader(self, element: int) -> int:
        """Return the first element of the element's class."""
        return int(self.first[self.of[element]])


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """A fold: classes of ranks, of the template's ops and of capacities, in the numbering of the template.

    Args:
        names: names of the capacities.
        also: other names in costs, with their index in `names`.
        costs: cost of each op of the template.
        given: capacities by name.
        drawn: per class of ops, (name of the first capacity of a class, draw, number of ops of the class with this draw on it).
    """

    ranks: Classes
    ops: Classes
    capacities: Classes
    names: tuple[str, ...]
    also: Mapping[str, int]
    costs: tuple[Cost | None, ...]
    given: Mapping[str, Capacity]
    drawn: Mapping[int, tuple[tuple[str, TemplateDraw, int], ...]]

    @property
    def representatives(self) -> tuple[int, ...]:
        """First rank of each class."""
        return tuple(self.ranks.first.tolist())

    def stands_for(self, op: int) -> int:
        """Return the number of ops of the op's class."""
        return int(self.ops.size[self.ops.of[op]])

    def cost(self, op: int) -> Cost | None:
        """Return the cost of an op that represents its class, with the amounts on the first capacity of each class."""
        cost = self.costs[op]
        if cost is None:
            return None
        drawn = self.drawn.get(int(self.ops.of[op]), ())
        drawn = tuple(sorted(drawn, key=lambda row: (row[0], row[1].amount, row[1].hold, row[1].moved or 0.0)))
        amounts = [(name, draw.amount, times) for name, draw, times in drawn if draw.amount > 0]
        holds = [(name, draw.hold, times) for name, draw, times in drawn if draw.hold > 0]
        moved = [(name, draw.moved, draw.unit) for name, draw, _ in drawn if draw.moved is not None]
        times = tuple(times for *_, times in (*amounts, *holds))
        is_single = max(times, default=1) == 1 and len({name for name, *_ in amounts}) == len(amounts)
        crowd = cost.demand.crowd
        mentioned = {term.capacity for term in cost.why} | {name for name, _ in cost.demand.clocks}
        mentioned |= {crowd.capacity} if crowd else set()
        first_of = {name: first for name, first, _ in self.classes_of(mentioned)}
        demand = replace(
            cost.demand,
            amounts=tuple([(name, amount) for name, amount, _ in amounts]),
            holds=tuple([(name, part) for name, part, _ in holds]),
            times=() if is_single else times,
            crowd=crowd and _crowd(crowd, first_of.get(crowd.capacity, crowd.capacity), drawn),
            clocks=tuple(dict.fromkeys((first_of.get(name, name), part) for name, part in cost.demand.clocks)),
        )
        why = tuple([term.on(to, self.given[to].holder) if (to := first_of.get(term.capacity)) else term for term in cost.why])
        return replace(cost, wide=None, demand=demand, moved=tuple(moved), why=why)

    def touched(self, op: int) -> tuple[str, int]:
        """Return (memory that an op touches, as the first of its class; number of ops of the op's class that touch it)."""
        name, count = next((name, count) for name, draw, count in self.drawn[int(self.ops.of[op])] if draw.touch is not None)
        return name.removeprefix(TOUCH), count

    def classes_of(self, names: Iterable[str]) -> Iterator[tuple[str, str, int]]:
        """Yield (capacity, first of its class, size of the class) for each of these names that an op draws from."""
        numbers = {**self.also, **{name: number for number, name in enumerate(self.names)}}
        for name in names:
            if (number := numbers.get(name)) is not None:
                number_of_class = self.capacities.of[number]
                yield name, self.names[self.capacities.first[number_of_class]], int(self.capacities.size[number_of_class])

    def alike(self) -> Mapping[str, int]:
        """Return the number of capacities that the first capacity of each class represents."""
        names = (self.names[first] for first in self.capacities.first.tolist())
        return dict(zip(names, self.capacities.size.tolist(), strict=True))

    def members(self) -> Mapping[str, tuple[str, ...]]:
        """Return the capacities of devices in each class of several, by the first one, which is also first in the tuple."""
        firsts, members = self.capacities.first.tolist(), dict[str, list[str]]()
        for name, number in zip(self.names, self.capacities.of.tolist(), strict=True):
            if (capacity := self.given.get(name)) is not None and capacity.device:
                members.setdefault(self.names[firsts[number]], []).append(name)
        return {first: tuple(names) for first, names in members.items() if len(names) > 1}


def _crowd(crowd: Crowd, capacity: str, drawn: Sequence[tuple[str, TemplateDraw, int]]) -> Crowd:
    """The crowd at the first capacity of a class, with the number of ops that its op represents there."""
    return replace(crowd, capacity=capacity, times=max((times for name, _, times in drawn if name == capacity), default=1))


def fold(
    colours: Sequence[Hashable],
    ops: Iterable[TemplateOp],
    capacities: Mapping[str, Capacity],
    marks: Mapping[str, Hashable] | None = None,
) -> Fold:
    """Return the coarsest fold of a template, after verification.

    Args:
        colours: initial colour of each rank, such as its program and the model of its device; any hashable value.
        ops: ops of single ranks and of several ranks.
        capacities: capacities by name, at least those that the ops draw from.
        marks: changes of each capacity during the run (slowdown, failure) with their times, by name.

    Raises:
        CannotFold: the classes are not equitable (a hash collision).
        NoEquals: hardly any two ranks are identical.
    """
    given = tuple(ops)
    template = template_of(colours, given, capacities, marks or {})
    ranks, count = len(template.ranks), len(template.ops)
    kept = ~template.calm[template.capacity]
    things = np.concatenate([
        template.ranks * 3, template.ops * 3 + 1, template.things * 3 + 2,
    ])  # fmt: skip
    base = ranks + count
    labels = template.draw[kept]
    ties = Ties.of(
        len(things),
        np.concatenate([template.op[kept] + ranks, template.member_op + ranks, template.follows[:, 0] + ranks]),
        np.concatenate([template.capacity[kept] + base, template.member, template.follows[:, 1] + ranks]),
        np.concatenate([labels * 2, template.role * 4 + 1, np.full(len(template.follows), 3)]),
    )
    classes = refine(things, ties, MOST_WORK)
    if classes is None:
        raise NoEquals(f"hardly any two of the {ranks:,} ranks are identical")
    if not is_equitable(things, ties, classes):
        raise CannotFold("two different ops or ranks have the same hash")
    of_ops = numbered(classes[ranks:base])
    of_things = _with_calm(template, of_ops, numbered(classes[base:]))
    return Fold(
        ranks=Classes.by(numbered(classes[:ranks])),
        ops=Classes.by(of_ops),
        capacities=Classes.by(of_things, template.many),
        names=template.names,
        also=template.also,
        costs=tuple(op.cost for op in given),
        given=capacities,
        drawn=_drawn(template, of_ops, Classes.by(of_things)),
    )


def _with_calm(template: Template, of_ops: Ints, of_things: Ints) -> Ints:
    """Classes of the capacities; capacities that never bind are distinguished only by the ops that draw from them."""
    calm = template.calm[template.capacity]
    if not calm.any():
        return of_things
    op_class, draw = of_ops[template.op[calm]], template.draw[calm]
    code = op_class * np.int64(len(template.draws)) + draw
    order = np.lexsort((code, template.capacity[calm]))
    capacity, code = template.capacity[calm][order], code[order]
    bounds = np.flatnonzero(np.append(True, capacity[1:] != capacity[:-1]))
    looks: dict[Hashable, int] = {}
    classes = of_things.copy()
    base = len(of_things)
    for low, high in zip(bounds.tolist(), [*bounds[1:].tolist(), len(capacity)], strict=True):
        thing = int(capacity[low])
        look = int(template.things[thing]), code[low:high].tobytes()
        classes[thing] = base + looks.setdefault(look, len(looks))
    return numbered(classes)


def _drawn(template: Template, of_ops: Ints, things: Classes) -> dict[int, tuple[tuple[str, TemplateDraw, int], ...]]:
    """Per class of ops: (first capacity of a class, draw, number of ops of the class with this draw on it)."""
    is_first = np.zeros(len(template.names), np.bool_)
    is_first[things.first] = True
    kept = is_first[template.capacity]
    rows = np.stack([of_ops[template.op[kept]], template.capacity[kept], template.draw[kept]], axis=1)
    rows, times = np.unique(rows, axis=0, return_counts=True)
    drawn: dict[int, list[tuple[str, TemplateDraw, int]]] = {}
    for (op_class, capacity, draw), count in zip(rows.tolist(), times.tolist(), strict=True):
        drawn.setdefault(op_class, []).append((template.names[capacity], template.draws[draw], count))
    return {op_class: tuple(rows_of) for op_class, rows_of in drawn.items()}
