"""A fold: the classes of a template, and the cost of one op on behalf of its class."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from hwsim.demand import Capacity, Cost, Crowd
from hwsim.graph.fold.refine import Ints, Ties, is_equitable, numbered, refine
from hwsim.graph.fold.template import TOUCH, Draw, Template, TemplateOp, template_of
from hwsim.records import dataclass

MOST_WORK: Final = 100_000_000  # ties looked at before a template is given up as one without equals


class CannotFold(ValueError):
    """Ranks that are not to be folded; the message says why."""


class NoEquals(CannotFold):
    """Hardly any rank is like another: nothing is lost by simulating all of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """of: the class of each thing. first: of each class, its first thing. size: of each class, how many they are."""

    of: Ints
    first: Ints
    size: Ints

    @classmethod
    def by(cls, of: Ints, many: Ints | None = None) -> Classes:
        """From the class of each thing; many: how many each of them is."""
        _, first = np.unique(of, return_index=True)
        size = np.bincount(of, weights=many, minlength=len(first)).astype(np.int64)
        return cls(of, first.astype(np.int64), size)

    def __len__(self) -> int:
        return len(self.first)

    def leader(self, thing: int) -> int:
        """The first thing of its class."""
        return int(self.first[self.of[thing]])


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """Classes of ranks, of the template's ops and of capacities; things are numbered as they were given.

    names: names of the capacities; also: other names in costs, and their index in `names`. given: capacities by name.
    """

    ranks: Classes
    ops: Classes
    capacities: Classes
    names: tuple[str, ...]
    also: Mapping[str, int]
    costs: tuple[Cost | None, ...]  # of each op as it was given
    given: Mapping[str, Capacity]
    drawn: Mapping[int, tuple[tuple[str, Draw, int], ...]]  # per class of ops, what comes from the first capacity of each class

    @property
    def representatives(self) -> tuple[int, ...]:
        """The first rank of each class."""
        return tuple(self.ranks.first.tolist())

    def stands_for(self, op: int) -> int:
        """Number of ops of its class."""
        return int(self.ops.size[self.ops.of[op]])

    def cost(self, op: int) -> Cost | None:
        """Cost of an op on behalf of its class: amounts of the first capacity of each class, times the class draws on it."""
        cost = self.costs[op]
        if cost is None:
            return None
        drawn = self.drawn.get(int(self.ops.of[op]), ())
        drawn = tuple(sorted(drawn, key=lambda each: (each[0], each[1].amount, each[1].hold, each[1].moved or 0.0)))
        amounts = [(name, draw.amount, times) for name, draw, times in drawn if draw.amount > 0]
        holds = [(name, draw.hold, times) for name, draw, times in drawn if draw.hold > 0]
        moved = [(name, draw.moved, draw.unit) for name, draw, _ in drawn if draw.moved is not None]
        times = tuple(each[2] for each in (*amounts, *holds))
        alone = max(times, default=1) == 1 and len({name for name, *_ in amounts}) == len(amounts)
        crowd = cost.demand.crowd
        named = {term.capacity for term in cost.why} | {name for name, _ in cost.demand.clocks}
        named |= {crowd.capacity} if crowd else set()
        first_of = {each: first for each, first, _ in self.classes_of(named)}
        demand = replace(
            cost.demand,
            amounts=tuple([(name, amount) for name, amount, _ in amounts]),
            holds=tuple([(name, part) for name, part, _ in holds]),
            times=() if alone else times,
            crowd=crowd and _crowd(crowd, first_of.get(crowd.capacity, crowd.capacity), drawn),
            clocks=tuple(dict.fromkeys((first_of.get(name, name), part) for name, part in cost.demand.clocks)),
        )
        why = tuple([term.on(it, self.given[it].holder) if (it := first_of.get(term.capacity)) else term for term in cost.why])
        return replace(cost, wide=None, demand=demand, moved=tuple(moved), why=why)

    def touched(self, op: int) -> tuple[str, int]:
        """(thing that an op touches, as the first of its class; number of ops of its own class that touch it)."""
        name, many = next((name, many) for name, draw, many in self.drawn[int(self.ops.of[op])] if draw.touch is not None)
        return name.removeprefix(TOUCH), many

    def classes_of(self, names: Iterable[str]) -> Iterator[tuple[str, str, int]]:
        """(capacity, the first of its class, how many they are) of those that anything draws from."""
        numbers = {**self.also, **{name: number for number, name in enumerate(self.names)}}
        for name in names:
            if (number := numbers.get(name)) is not None:
                number_of_class = self.capacities.of[number]
                yield name, self.names[self.capacities.first[number_of_class]], int(self.capacities.size[number_of_class])

    def alike(self) -> Mapping[str, int]:
        """Number of capacities that each first one represents."""
        names = (self.names[first] for first in self.capacities.first.tolist())
        return dict(zip(names, self.capacities.size.tolist(), strict=True))

    def members(self) -> Mapping[str, tuple[str, ...]]:
        """The capacities of devices that each first one represents, itself first, where they are several."""
        firsts, members = self.capacities.first.tolist(), dict[str, list[str]]()
        for name, number in zip(self.names, self.capacities.of.tolist(), strict=True):
            if (one := self.given.get(name)) is not None and one.device:
                members.setdefault(self.names[firsts[number]], []).append(name)
        return {first: tuple(names) for first, names in members.items() if len(names) > 1}


def _crowd(crowd: Crowd, capacity: str, drawn: Sequence[tuple[str, Draw, int]]) -> Crowd:
    """The crowd at the first capacity of a class, with all that its op stands for there."""
    return replace(crowd, capacity=capacity, times=max((times for name, _, times in drawn if name == capacity), default=1))


def fold(
    colours: Sequence[Hashable],
    ops: Iterable[TemplateOp],
    capacities: Mapping[str, Capacity],
    marks: Mapping[str, Hashable] | None = None,
) -> Fold:
    """The coarsest fold of a template, checked.

    Args:
        colours: what tells each rank apart to begin with (its program, its device's model), whatever can be compared.
        ops: what they issue, and what they do together.
        capacities: by name, at least those that the ops draw from.
        marks: what happens to a capacity during the run (it slows down, it fails), and when; by its name.

    Raises:
        CannotFold: the classes are not equitable (chance of a hash).
        NoEquals: hardly any rank is like another.
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
        raise NoEquals(f"hardly any of the {ranks} ranks is like another")
    if not is_equitable(things, ties, classes):
        raise CannotFold("two different things came out as equal by chance")
    of_ops = numbered(classes[ranks:base])
    of_things = _with_calm(template, of_ops, numbered(classes[base:]))
    return Fold(
        ranks=Classes.by(numbered(classes[:ranks])),
        ops=Classes.by(of_ops),
        capacities=Classes.by(of_things, template.many),
        names=template.names,
        also=template.also,
        costs=tuple(one.cost for one in given),
        given=capacities,
        drawn=_drawn(template, of_ops, Classes.by(of_things)),
    )


def _with_calm(template: Template, of_ops: Ints, of_things: Ints) -> Ints:
    """Classes of the capacities; the ones that never bind are distinguished only by the ops that draw on them."""
    calm = template.calm[template.capacity]
    if not calm.any():
        return of_things
    who, draw = of_ops[template.op[calm]], template.draw[calm]
    code = who * np.int64(len(template.draws)) + draw
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


def _drawn(template: Template, of_ops: Ints, things: Classes) -> dict[int, tuple[tuple[str, Draw, int], ...]]:
    """Per class of ops: (first capacity of a class, draw, how many of the ops draw so on it)."""
    is_first = np.zeros(len(template.names), np.bool_)
    is_first[things.first] = True
    kept = is_first[template.capacity]
    rows = np.stack([of_ops[template.op[kept]], template.capacity[kept], template.draw[kept]], axis=1)
    rows, times = np.unique(rows, axis=0, return_counts=True)
    drawn: dict[int, list[tuple[str, Draw, int]]] = {}
    for (op_class, capacity, draw), many in zip(rows.tolist(), times.tolist(), strict=True):
        drawn.setdefault(op_class, []).append((template.names[capacity], template.draws[draw], many))
    return {op_class: tuple(rows_of) for op_class, rows_of in drawn.items()}
