"""Equivalent collectives that differ only in names: groups of GPUs in equal positions draw equal amounts.

A training runs collectives in many such groups at once. Their ranks lie on nodes in the same pattern, every pair of neighbours
has a route of the same shape (`Machine.draws_among`), and the routes share capacities in the same positions. So a library behaves
equally in all groups, and times and amounts are bitwise equal, capacity by capacity. Of a few ranks in one node, all pairs are
compared instead of their places in the node: four pairs of eight GPUs on one switch are equivalent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from hwsim.communication.algorithms.direct import DirectExchange
from hwsim.communication.placement import all_of_kind, handling, joining_switch
from hwsim.communication.timing import library_of
from hwsim.demand import Term
from hwsim.graph.opgraph import Ints
from hwsim.machine import Machine, NoRoute
from hwsim.machine.capacity_numbers import TransferSample
from hwsim.machine.contents import within

_SIZE: Final = 1e6  # bytes; the equivalence of routes does not depend on it
_AT_ONCE: Final = 1 << 14  # maximum ranks per batch
_FEW: Final = 8  # maximum ranks in one node of which all pairs are compared


class RingLook(NamedTuple):
    """The ring of a group, without names.

    Args:
        key: equal for equivalent rings.
        numbers: capacities between neighbours, each once; equivalent capacities have equal positions in rings with the same key.
        is_complete: whether all pairs are neighbours, so that any algorithm is equivalent, not only a ring.
    """

    key: tuple[object, ...]
    numbers: Ints
    is_complete: bool

    def to(self, target: RingLook, numbers: Ints) -> Ints | None:
        """Return the capacities of another ring with the same key in the positions of these; None if one is not in the ring."""
        order = np.argsort(self.numbers)
        ascending = self.numbers[order]
        indices = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
        if not (ascending[indices] == numbers).all():
            return None
        renumbered: Ints = target.numbers[order[indices]]
        return renumbered


class RingLooks:
    """The properties of rank groups by which groups with equal costs are recognized."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._patterns: dict[bytes, bytes] = {}  # equal rings share them
        self._shapes: dict[TransferSample, int] = {}

    def of(self, groups: Sequence[Sequence[str]]) -> list[RingLook | None]:
        """Return the properties of each group, equal for equivalent groups; None if unknown, or for a single rank."""
        machine = self._machine
        looks: list[RingLook | None] = [None] * len(groups)
        gpus = all_of_kind(machine, [name for members in groups for name in members], "gpu")
        by_pattern: dict[tuple[int, int], list[int]] = {}
        for place, members in enumerate(groups):
            if gpus and len(members) > 1 and not joining_switch(machine, members[0]):
                by_pattern.setdefault((len(members), _ranks_of_node(machine, members)), []).append(place)
        for (ranks, size), places in by_pattern.items():
            at_once = max(1, _AT_ONCE // ranks)
            for low in range(0, len(places) if size else 0, at_once):
                batch = places[low : low + at_once]
                for place, look in zip(batch, self._pattern_looks([groups[place] for place in batch], size), strict=True):
                    looks[place] = look
        return looks

    def _pattern_looks(self, groups: Sequence[Sequence[str]], size: int) -> Sequence[RingLook | None]:
        """Return the looks of groups with the same rank count; `size`: ranks per node."""
        machine = self._machine
        everyone = [name for members in groups for name in members]
        sources, targets = _neighbours(len(groups), len(groups[0]), size)
        mover = handling(machine, DirectExchange(), everyone[0], everyone[1])
        try:
            draws = machine.draws_among(everyone, sources, targets, _SIZE, mover)
        except NoRoute:
            return [None] * len(groups)
        shapes = np.array([self._shapes.setdefault(sample, len(self._shapes)) for sample in draws.kinds], np.int32)
        parts = machine.device_numbers.parts[0][machine.device_numbers.numbers(everyone)].reshape(len(groups), -1)
        looks, pairs, is_complete = [], len(sources) // len(groups), _is_compared_in_pairs(len(groups[0]), size)
        for place, members in enumerate(groups):
            low, high = place * pairs, (place + 1) * pairs
            capacity = draws.capacity[draws.first[low] : draws.first[high]]
            numbers, first, indices = np.unique(capacity, return_index=True, return_inverse=True)
            local = tuple([within(name)[1] for name in members]) if size > 1 and not is_complete else ()
            places = first[indices.ravel()].astype(np.int32)
            pattern = [self._patterns.setdefault(key, key) for key in (shapes[draws.shape[low:high]].tobytes(), places.tobytes())]
            key = size, parts[place].tobytes(), local, *pattern, id(library_of(machine, members))
            looks.append(RingLook(key, numbers[np.argsort(first)], is_complete))
        return looks


def renamed(machine: Machine, why: Sequence[Term], numbers: Ints, others: Ints) -> tuple[Term, ...]:
    """Return a derivation with the names of other capacities; `numbers`: capacities that may occur in it."""
    lines = []
    for line in why:
        if line.capacity:
            name = machine.capacity_name(int(others[np.flatnonzero(numbers == machine.capacity_number(line.capacity))[0]]))
            label, old = line.label.replace(line.capacity, name), line.capacity
            inputs = tuple([(quantity, value, source.replace(old, name)) for quantity, value, source in line.inputs])
            holder = line.holder and machine.capacities[name].holder
            line = replace(line, label=label, inputs=inputs, capacity=name, holder=holder)
        lines.append(line)
    return tuple(lines)


def _ranks_of_node(machine: Machine, members: Sequence[str]) -> int:
    """Return the ranks per node if each node has equally many consecutive ranks, else 0."""
    nodes = [machine.node_of(name) for name in members]
    size = next((index for index, node in enumerate(nodes) if node != nodes[0]), len(nodes))
    starts = nodes[::size]
    is_regular = len(nodes) % size == 0 and len(set(starts)) == len(starts)
    return size if is_regular and all(node == starts[index // size] for index, node in enumerate(nodes)) else 0


def _is_compared_in_pairs(ranks: int, size: int) -> bool:
    return ranks == size <= _FEW


def _neighbours(groups: int, ranks: int, size: int) -> tuple[Ints, Ints]:
    """Return the pairs of ring neighbours as (senders, receivers), indices among all ranks, group by group.

    Neighbours are the next rank, and the same rank of the next node, in both directions; `size`: ranks per node. All pairs of a
    few ranks in one node are neighbours.
    """
    rank = np.arange(ranks)
    steps = [1] if size in (1, ranks) else [1, size]
    if _is_compared_in_pairs(ranks, size):
        steps = [*range(1, ranks // 2 + 1)]
    senders, receivers = np.tile(rank, len(steps)), np.concatenate([(rank + step) % ranks for step in steps])
    starts = ranks * np.arange(groups)[:, None]
    return (starts + np.concatenate([senders, receivers])).ravel(), (starts + np.concatenate([receivers, senders])).ravel()
