"""Rings that are the same but for names: groups of GPUs in equal places; the draws of one are the draws of all.

A training exchanges in scores of such groups at once. Their ranks have a node each; every pair of neighbours has a route of the
same shape (`Machine.draws_among`), and the ring meets itself on the same links. So a library does the same in both, the seconds
are equal, and the amounts are equal to the last bit, capacity by capacity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from hwsim.communication.algorithms.direct import Direct
from hwsim.communication.placing import all_of_kind, handling, leads_out
from hwsim.communication.timing import library_of
from hwsim.machine import Machine, NoRoute

_SIZE: Final = 1e6  # bytes; whether two routes are alike does not depend on it


class Renamed(NamedTuple):
    """A group that is like an earlier one. first: its place; names: by capacity of that ring the one of this ring."""

    first: int
    names: Mapping[str, str]


def renamed(machine: Machine, groups: Sequence[Sequence[str]]) -> list[Renamed | None]:
    """By group, the first one whose ring is the same but for names; None of the first ones, and where this is not known."""
    results: list[Renamed | None] = [None] * len(groups)
    ranks = len(groups[0]) if groups else 0
    if len(groups) < 2 or ranks < 2 or not all(_apart(machine, members, ranks) for members in groups):
        return results
    everyone = [name for members in groups for name in members]
    sources = np.arange(len(everyone))
    targets = sources - sources % ranks + (sources + 1) % ranks
    try:
        draws = machine.draws_among(everyone, sources, targets, _SIZE, handling(machine, Direct(), everyone[0], everyone[1]))
    except NoRoute:
        return results
    libraries = [library_of(machine, members) for members in groups]
    firsts: dict[tuple[object, ...], tuple[int, list[str]]] = {}
    for place, members in enumerate(groups):
        low, high = place * ranks, (place + 1) * ranks
        capacity = draws.capacity[draws.first[low] : draws.first[high]]
        _, first, which = np.unique(capacity, return_index=True, return_inverse=True)
        parts = tuple([id(machine.part_of(name)) for name in members])
        key = parts, draws.shape[low:high].tobytes(), first[which].tobytes(), id(libraries[place])
        names = [machine.capacity_name(number) for number in capacity[np.sort(first)].tolist()]
        earlier, of_earlier = firsts.setdefault(key, (place, names))
        if earlier != place:
            results[place] = Renamed(earlier, dict(zip(of_earlier, names, strict=True)))
    return results


def _apart(machine: Machine, members: Sequence[str], ranks: int) -> bool:
    """Whether these are GPUs, `ranks` in number, each in a node of its own, and no NVLinks join the nodes."""
    nodes = {machine.node_of(name) for name in members}
    return len(members) == len(nodes) == ranks and all_of_kind(machine, members, "gpu") and not leads_out(machine, members[0])
