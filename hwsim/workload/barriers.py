"""Barriers between programs: detection of deadlocks."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from hwsim.spec import Mistake
from hwsim.workload.emit import Emitter
from hwsim.workload.lower import NeverArrives, barriers_of
from hwsim.workload.parser import ProgramGroup


def refuse_missing(groups: Sequence[ProgramGroup], emitters: Sequence[Emitter], shared: frozenset[str]) -> None:
    """Raise NeverArrives if one program reaches a barrier more often than another."""
    for name in sorted(shared):
        counts = {}
        for group, emitter in zip(groups, emitters, strict=True):
            if (barrier := barriers_of(group).get(name)) is not None:
                counts[group.name] = (emitter.meetings(name), barrier)
        other = max(counts, key=lambda program: counts[program][0])
        for program, (count, barrier) in counts.items():
            if count < (max_count := counts[other][0]):
                message = f"deadlock: program '{program}' reaches barrier '{name}' {count} times, '{other}' {max_count} times"
                raise NeverArrives([Mistake(barrier.place, message, "all programs must reach a barrier equally often")])


def refuse_crossed(groups: Sequence[ProgramGroup], emitters: Sequence[Emitter], shared: frozenset[str]) -> None:
    """Raise NeverArrives if programs reach the same barriers in different orders."""
    before: dict[tuple[str, int], dict[tuple[str, int], int]] = {}  # meeting -> previous meeting -> number of the program
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
        circle: list[tuple[str, int]] = error.args[1]  # in order: each meeting precedes the next
        orders = [(first[0], second[0], groups[before[second][first]]) for first, second in pairwise(circle)]
        orders_met = ", ".join(f"'{group.name}' reaches '{first}' before '{second}'" for first, second, group in orders)
        place = barriers_of(orders[0][2])[orders[0][0]].place
        hint = "all programs must reach their common barriers in the same order"
        raise NeverArrives([Mistake(place, f"deadlock: crossed barriers: {orders_met}", hint)]) from None
