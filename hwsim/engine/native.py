"""Simulation by compiled code: conversion of a graph to its arrays, and of its results to a timeline."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwsim.engine import core
from hwsim.engine.compile import CompiledGraph, compile_flat
from hwsim.engine.fair import FULL
from hwsim.engine.fluid import FlowClass
from hwsim.engine.history import WORD, History, ReplayRecords, words
from hwsim.engine.verdict import sampled
from hwsim.graph.flat import FlatGraph
from hwsim.graph.opgraph import Ints
from hwsim.results.timeline import NEARLY_EQUAL, ReceivedService, Timeline

PACE_BITS, WIDE_BITS = 126, 190  # bits of numbers that the kernels store in two and in three words
TIME_BITS = 63


def play(flat: FlatGraph, compiled: CompiledGraph) -> Timeline | None:
    """Return the timeline of a closed graph, equal to that of `hwsim.engine.replay` bit for bit.

    The result is None if compiled code does not support the graph: ops are simulated request by request, demands form a crowd at
    a device, or numbers exceed its words.
    """
    is_narrow = object not in (compiled.fixed.dtype, compiled.flow.dtype)
    if (
        compiled.played.any()
        or any(class_.crowd for class_ in compiled.classes)
        or not is_narrow
        or not fits(compiled.classes, len(flat))
    ):
        return None
    metered = sampled(compiled.flow_class >= 0) if compiled.classes else np.empty(0, np.int64)
    played = _played(flat, compiled, metered)
    if played is None:
        return None
    start, end, granted, notes, solves = played
    rows = zip(metered.tolist(), notes.received.tolist(), strict=True)
    return Timeline(
        flat=flat,
        start=start,
        end=end,
        granted=granted if flat.graph.pools else np.broadcast_to(np.int64(-1), start.shape),
        flow_class=compiled.flow_class,
        paces=History([class_.alone for class_ in compiled.classes], notes, partial(_noted, flat)),
        alone=tuple(class_.alone for class_ in compiled.classes),
        solves=solves,
        received={
            op: ReceivedService(begun, high << 2 * WORD | middle << WORD | low, above << WORD | pace)
            for op, (low, middle, high, pace, above, begun) in rows
        },
    )


def _noted(flat: FlatGraph) -> ReplayRecords:
    """Repeat a run and return its records with levels."""
    played = _played(flat, compile_flat(flat), np.empty(0, np.int64), keeps_levels=True)
    assert played is not None, "the first run succeeded"
    return played[3]


def _played(
    flat: FlatGraph, compiled: CompiledGraph, metered: Ints, *, keeps_levels: bool = False
) -> tuple[Ints, Ints, Ints, ReplayRecords, int] | None:
    """Start, end and granting op of each op, records, and the number of rate computations; None if a time exceeds its words."""
    start, end = (np.empty(len(flat), np.int64) for _ in range(2))
    granted = np.empty(len(flat) if flat.graph.pools else 0, np.int64)
    flows = _flows(compiled.classes, len(flat), len(flat.graph.capacities), metered, keeps_levels=keeps_levels)
    columns = core.LONGS, core.INTS, core.INTS, core.BOOLS, core.LONGS, core.LONGS, core.INTS, core.INTS, core.INTS
    replay = core.kernel(
        "hwsim_replay", core.INT, *columns, core.INT, core.LONGS, core.POINTER, core.LONGS, core.LONGS, core.LONGS, core.INT
    )
    arguments = (
        len(flat),
        flat.first,
        flat.next,
        flat.waits_for,
        flat.joins(),
        compiled.fixed,
        compiled.flow,
        compiled.flow_class,
        np.ascontiguousarray(flat.take[: len(granted)]),
        np.ascontiguousarray(flat.give[: len(granted)]),
        len(flat.graph.pools),
        np.array([pool.servers for pool in flat.graph.pools], np.int64),
        flows.address,
        start,
        end,
        granted,
        core.PATIENCE,
    )
    while (status := replay(*arguments)) == core.MORE:
        pass
    if status != core.DONE:
        return None
    return start, end, granted, *(_notes(flows, len(metered)) if compiled.classes else _nothing_noted())


def _flows(classes: Sequence[FlowClass], ops: int, capacities: int, metered: Ints, *, keeps_levels: bool) -> core.Handle:
    """The classes of demands in the library, with the choice of records."""
    made = core.POINTER()
    rows = core.LONGS, core.INTS
    create = core.kernel(
        "hwsim_flows_new", core.INT, core.WORDS, *rows, core.INTS, core.INT, core.WORDS, *rows, core.INTS, core.INT, core.WORDS,
        core.INT, core.WORDS, core.WORDS, core.INT, core.INT, core.INT, core.INTS, ctypes.POINTER(core.POINTER),
    )  # fmt: skip
    of_classes = _columns(classes, ops, capacities) if classes else _without_classes()
    create(*of_classes, NEARLY_EQUAL, int(keeps_levels), len(metered), metered.astype(np.int32), ctypes.byref(made))
    return core.Handle(made.value or 0, "hwsim_flows_free")


@cache
def _without_classes() -> Sequence[int | NDArray[Any]]:
    return _columns((), 0, 0)


def _columns(classes: Sequence[FlowClass], ops: int, capacities: int) -> Sequence[int | NDArray[Any]]:
    """The classes of demands as arguments of `hwsim_flows_new`."""
    weights, amounts = dict[int, int](), dict[tuple[int, int], int]()
    pairs, draws = array("i"), array("i")
    first_pair, first_draw = array("q", [0]), array("q", [0])
    for class_ in classes:
        for capacity, weight in class_.weights:
            pairs.extend((capacity, weights.setdefault(weight, len(weights))))
        for capacity, drawn, held in class_.draws():
            draws.extend((capacity, amounts.setdefault((drawn + held, held), len(amounts))))
        first_pair.append(len(pairs) // 2)
        first_draw.append(len(draws) // 2)
    pair_columns, draw_columns = (np.array(rows, np.int32).reshape(-1, 2).T.copy() for rows in (pairs, draws))
    above, left = _margins(classes, ops) or (0, 0)
    return (
        len(classes),
        words([class_.alone for class_ in classes], 2),
        np.array(first_pair),
        *pair_columns,
        len(weights),
        words([*weights], 2),
        np.array(first_draw),
        *draw_columns,
        len(amounts),
        np.hstack([words([drawn for drawn, _ in amounts], 3), words([held for _, held in amounts], 3)]),
        capacities,
        words([FULL], 3),
        np.hstack([words([above], 2), words([left], 3)]),
    )


def _notes(flows: core.Handle, metered: int) -> tuple[ReplayRecords, int]:
    """The records of a replay, and the number of rate computations."""
    sizes, addresses = np.zeros(3, np.int64), (ctypes.c_void_p * 7)()
    core.kernel("hwsim_flows_notes", core.POINTER, core.LONGS, ctypes.c_void_p)(flows.address, sizes, addresses)
    bounds, levels, solves = sizes.tolist()
    kinds: Sequence[tuple[type, tuple[int, ...]]] = (
        (np.int64, (bounds,)),
        (np.int32, (bounds,)),
        (np.int32, (bounds,)),
        (np.int64, (levels,)),
        (np.int32, (levels,)),
        (np.uint64, (levels, 2)),
        (np.uint64, (metered, 6)),
    )
    columns = [flows.column(address, dtype, *shape) for address, (dtype, shape) in zip(addresses, kinds, strict=True)]
    return ReplayRecords(*columns), solves


@cache
def _nothing_noted() -> tuple[ReplayRecords, int]:
    return _notes(_flows((), 0, 0, np.empty(0, np.int64), keeps_levels=False), 0)


def fits(classes: Sequence[FlowClass], ops: int) -> bool:
    """Return whether all sums of such a graph fit in the words of the kernels."""
    if not classes:
        return True
    count = ops.bit_length()
    pace = max((class_.alone.bit_length() for class_ in classes), default=0)
    weight = max((weight.bit_length() for class_ in classes for _, weight in class_.weights), default=0)
    draw = max((class_.alone * weight for class_ in classes for _, weight in class_.weights), default=0).bit_length()
    hold = max((part.bit_length() for class_ in classes for _, part in class_.holds), default=0)
    return (
        pace <= PACE_BITS - 2
        and weight + count <= PACE_BITS
        and pace + TIME_BITS < WIDE_BITS
        and max(draw, hold) + count < WIDE_BITS
    )


def _margins(classes: Sequence[FlowClass], ops: int) -> tuple[int, int] | None:
    """Minimum margin of a level over a pace, and of a capacity's remaining amount, at which rounding has no effect.

    The result is None if capacities are held, or if weights differ by orders of magnitude.
    """
    weights = [weight for class_ in classes for _, weight in class_.weights if weight]
    if not weights or any(class_.holds for class_ in classes):
        return None
    total = ops * max(weights)
    above = total // min(weights) + 2
    return (above, total) if above << 20 < min(class_.alone for class_ in classes) else None
