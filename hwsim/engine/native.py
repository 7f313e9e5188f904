"""Simulation by compiled code: conversion of a graph to its arrays, and of its results to a timeline."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.engine import core
from hwsim.engine.compile import CompiledGraph, compile_flat
from hwsim.engine.fair import FULL, PART_BITS, part
from hwsim.engine.fluid import Clock, FlowClass
from hwsim.engine.history import WORD, History, ReplayRecords, Words, words
from hwsim.engine.verdict import sampled
from hwsim.graph.flat import FlatGraph
from hwsim.graph.opgraph import Change, Ints, LazyChanges, capacities_of
from hwsim.results.timeline import NEARLY_EQUAL, ReceivedService, Timeline

PACE_BITS, WIDE_BITS = 126, 190  # bits of numbers that the kernels store in two and in three words
CLOCK_BITS = 175  # bits of the divisor of a clock: remainders are 16 bits longer
TIME_BITS = 63


def play(flat: FlatGraph, compiled: CompiledGraph, changes: Sequence[Change] = ()) -> Timeline | None:
    """Return the timeline of a closed graph while capacities change, equal to that of `hwsim.engine.replay` bit for bit.

    The result is None if compiled code does not support the graph: ops are simulated request by request, demands form a crowd at
    a device, or numbers exceed its words.
    """
    is_narrow = object not in (compiled.fixed.dtype, compiled.flow.dtype)
    is_unlike = compiled.played.any() or any(class_.crowd for class_ in compiled.classes)
    is_unlike |= any(compiled.flow_class[op] < 0 < compiled.flow[op] for op in compiled.starts)
    if not is_narrow or is_unlike or not fits(compiled.classes, len(flat)):
        return None
    metered = sampled(compiled.flow_class >= 0) if compiled.classes else np.empty(0, np.int64)
    played = _played(flat, compiled, changes, metered)
    if played is None:
        return None
    start, end, granted, drawing, notes, solves = played
    rows, alone = zip(metered.tolist(), notes.received.tolist(), strict=True), tuple(class_.alone for class_ in compiled.classes)
    return Timeline(
        flat=flat,
        start=start,
        end=end,
        granted=granted if flat.graph.pools else np.broadcast_to(np.int64(-1), start.shape),
        flow_class=compiled.flow_class,
        paces=History(alone, len(flat.graph.capacities), notes, partial(_noted, flat, changes)),
        alone=alone,
        solves=solves,
        received={
            op: ReceivedService(begun, high << 2 * WORD | middle << WORD | low, above << WORD | pace)
            for op, (low, middle, high, pace, above, begun) in rows
        },
        drawing={op: int(drawing[op]) for op in compiled.starts},
    )


def _noted(flat: FlatGraph, changes: Sequence[Change]) -> ReplayRecords:
    """Repeat a run and return its records with levels."""
    compiled = compile_flat(flat, changing=capacities_of(changes))
    played = _played(flat, compiled, changes, np.empty(0, np.int64), keeps_levels=True)
    assert played is not None, "the first run succeeded"
    return played[4]


def _played(
    flat: FlatGraph, compiled: CompiledGraph, changes: Sequence[Change], metered: Ints, *, keeps_levels: bool = False
) -> tuple[Ints, Ints, Ints, Ints, ReplayRecords, int] | None:
    """Start, end, granting op and end of the start-up time of each op, records, and the number of rate computations.

    The result is None if a time exceeds its words, or if ops wait for ever.
    """
    start, end = (np.empty(len(flat), np.int64) for _ in range(2))
    granted = np.empty(len(flat) if flat.graph.pools else 0, np.int64)
    flows = _flows(compiled.classes, len(flat), len(flat.graph.capacities), metered, keeps_levels=keeps_levels)
    starts = np.full((len(flat) if compiled.starts else 0, 2), -1, np.int64)  # fits: class and fs
    starts[list(compiled.starts)] = np.array(list(compiled.starts.values()), np.int64).reshape(-1, 2)  # fits
    drawing = np.full(len(starts), -1, np.int64)  # fits
    replay = core.kernel(
        "hwsim_replay", core.INT, core.LONGS, core.INTS, core.INTS, core.BOOLS, core.LONGS, core.LONGS, core.INTS, core.INTS,
        core.INTS, core.INT, core.LONGS, core.INT, core.LONGS, core.POINTER, core.LONGS, core.LONGS, core.LONGS, core.LONGS,
        core.INT, core.INT, core.LONGS, core.LONGS,
    )  # fmt: skip
    pools = np.array([pool.servers for pool in flat.graph.pools], np.int64)
    take, give = (np.ascontiguousarray(column[: len(granted)]) for column in (flat.take, flat.give))
    arguments = (
        len(flat), flat.first, flat.next, flat.waits_for, flat.joins(), compiled.fixed, compiled.flow, compiled.flow_class,
        take, give, len(pools), pools, len(starts), starts, flows.address, start, end, granted, drawing, core.PATIENCE,
    )  # fmt: skip
    chunks, taken = _chunks(flat, compiled, changes), np.zeros(1, np.int64)
    coming = next(chunks)
    while (status := replay(*arguments, len(coming), coming, taken)) == core.MORE:
        if taken[0] == len(coming):
            coming, taken[0] = next(chunks), 0
    if status != core.DONE or (changes and (end < 0).any()):
        return None
    return start, end, granted, drawing, *_notes(flows, len(metered))


def _flows(classes: Sequence[FlowClass], ops: int, capacities: int, metered: Ints, *, keeps_levels: bool) -> core.Handle:
    """The classes of demands in the library, with the choice of records."""
    made = core.POINTER()
    pairs = core.LONGS, core.INTS
    create = core.kernel(
        "hwsim_flows_new", core.INT, core.WORDS, *pairs, core.INTS, core.INT, core.WORDS, *pairs, core.INTS, core.INT, core.WORDS,
        core.INT, core.WORDS, core.WORDS, core.INT, core.INT, core.INT, core.INTS, core.LONGS, core.WORDS,
        ctypes.POINTER(core.POINTER),
    )  # fmt: skip
    first_clock = np.cumsum([0, *(len(class_.clocks) for class_ in classes)], dtype=np.int64)
    rows = [row for class_ in classes for clock in class_.clocks if (row := _clock(clock)) is not None]
    clocks = np.vstack([np.empty((0, 8), np.uint64), *rows])
    notes = NEARLY_EQUAL, int(keeps_levels), len(metered), metered.astype(np.int32)
    create(*_columns(classes, ops, capacities), *notes, first_clock, clocks, ctypes.byref(made))
    return core.Handle(made.value or 0, "hwsim_flows_free")


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
        len(classes), words([class_.alone for class_ in classes], 2), np.array(first_pair), *pair_columns,
        len(weights), words([*weights], 2), np.array(first_draw), *draw_columns,
        len(amounts), np.hstack([words([amount[side] for amount in amounts], 3) for side in (0, 1)]), capacities,
        words([FULL >> PART_BITS], 2), np.hstack([words([above], 2), words([left], 3)]),
    )  # fmt: skip


def _notes(flows: core.Handle, metered: int) -> tuple[ReplayRecords, int]:
    """The records of a replay, and the number of rate computations."""
    sizes, addresses = np.zeros(3, np.int64), (ctypes.c_void_p * 7)()
    core.kernel("hwsim_flows_notes", core.POINTER, core.LONGS, ctypes.c_void_p)(flows.address, sizes, addresses)
    bounds, levels, solves = sizes.tolist()
    shapes = (bounds,), (bounds,), (bounds,), (levels,), (levels,), (levels, 2), (metered, 6)
    rows = zip(addresses, ("i8", "i4", "i4", "i8", "i4", "u8", "u8"), shapes, strict=True)
    return ReplayRecords(*(flows.column(address, dtype, *shape) for address, dtype, shape in rows)), solves


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
        and all(_clock(clock) is not None for class_ in classes for clock in class_.clocks)
    )


def _clock(clock: Clock) -> Words | None:
    """A clock as words of `hwsim_flows_new`; None if it needs more."""
    most, rest, own = clock.most, clock.rest, clock.own << PART_BITS
    common = min((number & -number).bit_length() - 1 for number in (most, rest, own) if number)
    most, rest, own = most >> common, rest >> common, own >> common
    shift = (most & -most).bit_length() - 1
    bits = (most >> shift).bit_length() - WORD, rest.bit_length() - PACE_BITS, clock.pace(FULL).bit_length() - PACE_BITS
    if max(*bits, ((rest << PART_BITS) + own).bit_length() - CLOCK_BITS) > 0:
        return None
    return np.hstack([words([clock.capacity, shift, most >> shift], 1).T, words([rest], 2), words([own], 3)])


def _chunks(flat: FlatGraph, compiled: CompiledGraph, changes: Sequence[Change]) -> Iterator[Ints]:
    """Yield (time in fs, capacity, fraction of its rate) for the changes of used capacities that the run requests."""
    used = {capacity for class_ in compiled.classes for capacity, _, _ in class_.draws()}
    used |= {clock.capacity for class_ in compiled.classes for clock in class_.clocks}
    numbers = {flat.graph.capacities[capacity].name: capacity for capacity in used}
    if isinstance(changes, LazyChanges):
        names, chunks = changes.capacities, changes.chunks()
    else:
        at, names, fraction = zip(*sorted(changes), strict=True) if changes else ((), (), ())
        chunks = iter([(ticks.column(at), np.arange(len(at)), np.array(fraction, np.float64))])
    number_of = np.array([numbers.get(name, -1) for name in names], np.int64)
    for times, rows, fractions in chunks:
        capacities = number_of[rows]
        kept = capacities >= 0
        for extreme in (fractions.min(initial=1.0), fractions.max(initial=0.0)):
            part(extreme)  # valid
        parts = (fractions[kept] * 2**PART_BITS).astype(np.int64)
        yield np.stack([np.minimum(times[kept], ticks.LARGEST).astype(np.int64), capacities[kept], parts], axis=1)
    yield np.array([[ticks.LARGEST, 0, 0]], np.int64)


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
