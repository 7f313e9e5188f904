"""Barriers between programs: who names them, and programs that would wait for each other for ever."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from hwsim.spec import Mistake
from hwsim.workload.emit import Emitter
from hwsim.workload.lower import NeverArrives, barriers_of
from hwsim.workload.reading import Group


def refuse_missing(groups: Sequence[Group], emitters: Sequence[Emitter], shared: frozenset[str]) -> None:
    """Raise NeverArrives for a barrier that one program reaches more often than another."""
    for name in sorted(shared):
        counts = {}
        for group, emitter in zip(groups, emitters, strict=True):
            if (barrier := barriers_of(group).get(name)) is not None:
                counts[group.name] = (emitter.meetings(name), barrier)
        most = max(counts, key=lambda each: counts[each][0])
        for program, (count, barrier) in counts.items():
            if count < counts[most][0]:
                message = f"program '{program}' comes to the barrier '{name}' {count} times, '{most}' {counts[most][0]} times"
                raise NeverArrives([Mistake(barrier.place, message, f"'{most}' would wait there for ever")])


def refuse_crossed(groups: Sequence[Group], emitters: Sequence[Emitter], shared: frozenset[str]) -> None:
    """Raise NeverArrives for programs that come to the same barriers in different orders."""
    before: dict[tuple[str, int], dict[tuple[str, int], int]] = {}  # a meeting -> meetings just before it, and whose they are
    for number, emitter in enumerate(emitters):
        met = [
            (chunk, arrival, (name, time))
            for name in shared & emitter.barriers.keys()
            for time, (chunk, arrival, _) in enumerate(emitter.barriers[name])
        ]
        for (_, _, first), (_, _, second) in pairwise(sorted(met)):
            before.setdefault(second, {}).setdefault(first, number)
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        circle: list[tuple[str, int]] = error.args[1]  # each comes before the next one
        orders = [(first[0], second[0], groups[before[second][first]]) for first, second in pairwise(circle)]
        orders_met = ", ".join(f"'{group.name}' comes to '{first}' before '{second}'" for first, second, group in orders)
        place = barriers_of(orders[0][2])[orders[0][0]].place
        hint = "programs that share barriers come to them in one order, or wait for ever"
        raise NeverArrives([Mistake(place, f"crossed barriers: {orders_met}", hint)]) from None
