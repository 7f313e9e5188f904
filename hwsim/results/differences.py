"""Comparison of a folded run with the same run with all ranks: every op of every rank must have the same times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.graph.flat import FlatGraph
from hwsim.graph.opgraph import Ints, Label, RepresentedRanks
from hwsim.results.ops import weights
from hwsim.results.timeline import Timeline
from hwsim.results.usage import usage

_MEETING: Final = frozenset({"barrier", "release"})  # kinds of ops of no single rank
_JOINED: Final = frozenset({"insert", "start", "wait"})  # kinds of ops of one rank outside its queues
_CLOSE: Final = 1e-9  # relative difference of sums of floats in another order


def differences(folded: Timeline, unfolded: Timeline) -> Iterator[str]:
    """Yield the differences in words; none if the runs agree.

    Every rank must have the ops of the first rank of its class: same order, names, starts and ends to the femtosecond. Ops of
    several ranks must have the same times, and every capacity of the folded run the same use.
    """
    alike = folded.flat.graph.alike
    if alike is None:
        yield "nothing was folded"
        return
    numbers = {name: number for number, name in enumerate(alike.programs)}
    names: dict[tuple[str, str], int] = {}
    mine, theirs = (_by_rank(timeline, numbers, names) for timeline in (folded, unfolded))
    yield from _of_ranks(alike, mine, theirs)
    together = [_together(timeline) for timeline in (folded, unfolded)]
    for name, start, end in sorted(together[0] ^ together[1])[:3]:
        where = "only the folded run" if (name, start, end) in together[0] else "only the whole run"
        yield f"{where} has a '{name}' of several ranks from {start} to {end} fs"
    yield from _use_differs(folded, unfolded)


def _use_differs(folded: Timeline, unfolded: Timeline) -> Iterator[str]:
    """Yield differences in the use of capacities, and in the number of capacities with the same use."""
    used_by = {row.capacity: row for row in usage(unfolded)}
    surplus: dict[int, int] = {}  # by time in use: capacities of the whole run minus capacities of the folded run
    for row in used_by.values():
        surplus[row.busy_fs] = surplus.get(row.busy_fs, 0) + 1
    for row in usage(folded):
        surplus[row.busy_fs] = surplus.get(row.busy_fs, 0) - row.identical_count
        wanted = used_by.get(row.capacity)
        if wanted is None:
            yield f"{row.capacity} is not in the whole run"
        elif row.busy_fs != wanted.busy_fs:
            yield f"{row.capacity} is busy for {row.busy_fs} fs, in the whole run for {wanted.busy_fs} fs"
        elif abs(row.moved - wanted.moved) > _CLOSE * abs(wanted.moved) or abs(row.utilization - wanted.utilization) > _CLOSE:
            yield f"{row.capacity} moves {row.moved:.12g}, in the whole run {wanted.moved:.12g}"
    for busy, missing in surplus.items():
        if missing and busy:
            yield f"{abs(missing)} capacities {'fewer' if missing > 0 else 'more'} than in the whole run are busy for {busy} fs"


def replicas_differ(folded: Timeline, unfolded: Timeline) -> Iterator[str]:
    """Yield differences in trainings of which only some replicas are simulated; none if the runs agree.

    Each op of a simulated replica must have the same times in both runs. The ops of another replica must have, name by name,
    the times of a device of a simulated one: the first of their stage. Ops of hosts and the makespan must agree, each op must
    represent as many ops as there are, and the use of capacities must be equal.
    """
    folded_rows, unfolded_rows = _by_device(folded), _by_device(unfolded)
    simulated: dict[tuple[str, str, str], set[tuple[int, ...]]] = {}
    for label, rows in folded_rows.items():
        simulated.setdefault((label.name, label.kind, label.program), set()).update((_values(rows), _values(_distinct(rows))))
        wanted = unfolded_rows.get(label, np.empty((0, 2), np.int64))
        where = f" on {label.device}" if label.device else ""
        if not label.device or len(rows) < len(wanted):  # ops of the programs of all replicas, under one name or on one host
            rows, wanted = _distinct(rows), _distinct(wanted)
        if len(rows) != len(wanted):
            yield f"'{label.name}'{where} occurs {len(rows)} times, in the whole run {len(wanted)} times"
        elif (differs := np.flatnonzero((rows != wanted).any(axis=1))).size:
            index = int(differs[0])
            yield (
                f"'{label.name}' {index}{where} runs from {rows[index, 0]} to {rows[index, 1]} fs, "
                f"in the whole run from {wanted[index, 0]} to {wanted[index, 1]} fs"
            )
    for label, rows in unfolded_rows.items():
        signatures = simulated.get((label.name, label.kind, label.program), ())
        if label not in folded_rows and _values(rows) not in signatures and _values(_distinct(rows)) not in signatures:
            yield f"'{label.name}' on {label.device} has other times than on every simulated device"
    if folded.makespan_fs != unfolded.makespan_fs:
        yield f"it takes {folded.makespan_fs} fs, the whole run {unfolded.makespan_fs} fs"
    counts = [_counts(timeline) for timeline in (folded, unfolded)]
    for name in sorted(counts[0].keys() | counts[1].keys()):
        stood, wanted_count = (count.get(name, 0) for count in counts)
        if stood != wanted_count:
            yield f"there are {stood:,} of '{name}', in the whole run {wanted_count:,}"
    yield from _use_differs(folded, unfolded)


def _counts(timeline: Timeline) -> dict[str, int]:
    """Return the number of ops by name, including represented ops."""
    flat, counts = timeline.flat, dict[str, int]()
    of_label = np.bincount(flat.label, weights=weights(timeline), minlength=len(flat.graph.labels)).astype(np.int64)
    for label, count in zip(flat.graph.labels, of_label.tolist(), strict=True):
        counts[label.name] = counts.get(label.name, 0) + count
    return counts


def _values(rows: Ints) -> tuple[int, ...]:
    """Return all values of the rows, comparable whatever their dtypes."""
    return tuple(rows.ravel().tolist())


def _distinct(rows: Ints) -> Ints:
    """Return the distinct rows (start, end) in order."""
    return np.array(sorted(set(map(tuple, rows.tolist()))), rows.dtype).reshape(-1, 2)


def _by_device(timeline: Timeline) -> dict[Label, Ints]:
    """Return rows (start, end) of the ops of each label, in op order."""
    flat = timeline.flat
    order = np.argsort(flat.label, kind="stable")
    rows = np.stack([timeline.start[order], timeline.end[order]], axis=1)
    numbers, first = np.unique(flat.label[order], return_index=True)
    parts = np.split(rows, first[1:])
    return {flat.graph.labels[number]: part for number, part in zip(numbers.tolist(), parts, strict=True)}


def _by_rank(timeline: Timeline, numbers: dict[str, int], names: dict[tuple[str, str], int]) -> dict[int, Ints]:
    """Return rows (name, start, end) of the ops of each rank, in op order."""
    flat = timeline.flat
    labels = flat.graph.labels
    ranks_of = np.array([-1 if label.kind in _MEETING else numbers.get(label.program, -1) for label in labels], np.int64)[
        flat.label
    ]
    called = np.array([names.setdefault((label.name, label.kind), len(names)) for label in labels], np.int64)[flat.label]
    ops = np.flatnonzero((ranks_of >= 0) & ~_is_together(flat))
    ops = ops[np.argsort(ranks_of[ops], kind="stable")]
    rows = np.stack([called[ops], timeline.start[ops], timeline.end[ops]], axis=1)
    ranks, first = np.unique(ranks_of[ops], return_index=True)
    return dict(zip(ranks.tolist(), np.split(rows, first[1:]), strict=True)) if len(ops) else {}


def _is_together(flat: FlatGraph) -> NDArray[np.bool_]:
    alone = np.array([label.kind in _MEETING | _JOINED for label in flat.graph.labels], np.bool_)
    found: NDArray[np.bool_] = (flat.queue < 0) & ~alone[flat.label]
    return found


def _together(timeline: Timeline) -> set[tuple[str, int, int]]:
    flat = timeline.flat
    ops = np.flatnonzero(_is_together(flat))
    rows = zip(flat.label[ops].tolist(), timeline.start[ops].tolist(), timeline.end[ops].tolist(), strict=True)
    return {(flat.graph.labels[label].name, start, end) for label, start, end in rows}


def _of_ranks(alike: RepresentedRanks, folded_rows: dict[int, Ints], unfolded_rows: dict[int, Ints]) -> Iterator[str]:
    none = np.empty((0, 3), np.int64)
    for rank, name in enumerate(alike.programs):
        first = int(alike.first[alike.of[rank]])
        mine, wanted = folded_rows.get(first, none), unfolded_rows.get(rank, none)
        if len(mine) != len(wanted):
            yield f"{name} has {len(wanted)} ops, its representative {alike.programs[first]} has {len(mine)}"
            return
        if (differs := np.flatnonzero((mine != wanted).any(axis=1))).size:
            index = int(differs[0])
            yield (
                f"op {index} of {name} runs from {wanted[index, 1]} to {wanted[index, 2]} fs, "
                f"that of its representative {alike.programs[first]} from {mine[index, 1]} to {mine[index, 2]} fs"
            )
            return
