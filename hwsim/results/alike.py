"""A folded run beside the same run with all its ranks: is every op of every rank when it should be?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.graph.opgraph import Alike, FlatGraph, Ints, Label
from hwsim.results.timeline import Timeline
from hwsim.results.usage import usage

_MEETING: Final = frozenset({"barrier", "release"})  # kinds of what belongs to no single rank
_JOINED: Final = frozenset({"insert", "start", "wait"})  # kinds of what belongs to one though it stands in no queue
_CLOSE: Final = 1e-9  # sums of floats in another order


def differences(folded: Timeline, whole: Timeline) -> Iterator[str]:
    """What is not the same, in words; nothing if all is.

    Every rank's ops are those of the first rank of its class, in the same order, with the same names, starts and ends to the
    femtosecond; what ranks do together is there at the same times; and of every capacity of the folded run the same was used.
    """
    alike = folded.flat.graph.alike
    if alike is None:
        yield "nothing was folded"
        return
    numbers = {name: number for number, name in enumerate(alike.programs)}
    names: dict[tuple[str, str], int] = {}
    few, many = (_by_rank(each, numbers, names) for each in (folded, whole))
    yield from _of_ranks(alike, few, many)
    together = [_together(each) for each in (folded, whole)]
    for name, start, end in sorted(together[0] ^ together[1])[:3]:
        where = "only the folded run" if (name, start, end) in together[0] else "only the whole run"
        yield f"{where} has a '{name}' of several ranks from {start} to {end} fs"
    used = {one.capacity: one for one in usage(whole)}
    for one in usage(folded):
        other = used[one.capacity]
        if one.busy_fs != other.busy_fs:
            yield f"{one.capacity} is busy for {one.busy_fs} fs, in the whole run for {other.busy_fs} fs"
        elif abs(one.moved - other.moved) > _CLOSE * abs(other.moved) or abs(one.utilisation - other.utilisation) > _CLOSE:
            yield f"{one.capacity} moves {one.moved:.12g}, in the whole run {other.moved:.12g}"


def copies_differ(folded: Timeline, whole: Timeline) -> Iterator[str]:
    """What is not the same of trainings of which one copy of the model was simulated, in words; nothing if all is.

    Every op of that copy is at the same time in both; those of the other copies are, of the same name, those of some device of
    that copy, all along: of the first of their stage; what the hosts do is at the same times; and both take as long.
    """
    few, many = _by_device(folded), _by_device(whole)
    known: dict[tuple[str, str, str], set[tuple[int, ...]]] = {}
    for label, rows in few.items():
        known.setdefault((label.name, label.kind, label.program), set()).update((_values(rows), _values(_distinct(rows))))
        other = many.get(label, np.empty((0, 2), np.int64))
        where = f" on {label.device}" if label.device else ""
        if not label.device or len(rows) < len(other):  # what the programs of all copies do, under one name; or on one host
            rows, other = _distinct(rows), _distinct(other)
        if len(rows) != len(other):
            yield f"'{label.name}'{where} is there {len(rows)} times, in the whole run {len(other)} times"
        elif (differs := np.flatnonzero((rows != other).any(axis=1))).size:
            at = int(differs[0])
            yield (
                f"'{label.name}' {at}{where} runs from {rows[at, 0]} to {rows[at, 1]} fs, "
                f"in the whole run from {other[at, 0]} to {other[at, 1]} fs"
            )
    for label, rows in many.items():
        found = known.get((label.name, label.kind, label.program), ())
        if label not in few and not {_values(rows), _values(_distinct(rows))} & set(found):
            yield f"'{label.name}' on {label.device} is at other times than on every device that was simulated"
    if folded.makespan_fs != whole.makespan_fs:
        yield f"it takes {folded.makespan_fs} fs, the whole run {whole.makespan_fs} fs"


def _values(rows: Ints) -> tuple[int, ...]:
    """All values of the rows, to be compared with those of other rows whatever their dtypes."""
    return tuple(rows.ravel().tolist())


def _distinct(rows: Ints) -> Ints:
    """The rows (start, end) in order, each once."""
    return np.array(sorted(set(map(tuple, rows.tolist()))), rows.dtype).reshape(-1, 2)


def _by_device(timeline: Timeline) -> dict[Label, Ints]:
    """Of every label the rows (start, end) of its ops, in their order."""
    flat = timeline.flat
    order = np.argsort(flat.label, kind="stable")
    rows = np.stack([timeline.start[order], timeline.end[order]], axis=1)
    numbers, first = np.unique(flat.label[order], return_index=True)
    parts = np.split(rows, first[1:])
    return {flat.graph.labels[number]: part for number, part in zip(numbers.tolist(), parts, strict=True)}


def _by_rank(timeline: Timeline, numbers: dict[str, int], names: dict[tuple[str, str], int]) -> dict[int, Ints]:
    """Of each rank the rows (name, start, end) of its own ops, in their order."""
    flat = timeline.flat
    labels = flat.graph.labels
    own = np.array([-1 if label.kind in _MEETING else numbers.get(label.program, -1) for label in labels], np.int64)[flat.label]
    called = np.array([names.setdefault((label.name, label.kind), len(names)) for label in labels], np.int64)[flat.label]
    ops = np.flatnonzero((own >= 0) & ~_is_together(flat))
    ops = ops[np.argsort(own[ops], kind="stable")]
    rows = np.stack([called[ops], timeline.start[ops], timeline.end[ops]], axis=1)
    ranks, first = np.unique(own[ops], return_index=True)
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


def _of_ranks(alike: Alike, few: dict[int, Ints], many: dict[int, Ints]) -> Iterator[str]:
    none = np.empty((0, 3), np.int64)
    for rank, name in enumerate(alike.programs):
        first = int(alike.first[alike.of[rank]])
        one, other = few.get(first, none), many.get(rank, none)
        if len(one) != len(other):
            yield f"{name} has {len(other)} ops, {alike.programs[first]}, which stands for it, {len(one)}"
            return
        if (differs := np.flatnonzero((one != other).any(axis=1))).size:
            at = int(differs[0])
            yield (
                f"op {at} of {name} runs from {other[at, 1]} to {other[at, 2]} fs, "
                f"that of {alike.programs[first]}, which stands for it, from {one[at, 1]} to {one[at, 2]} fs"
            )
            return
