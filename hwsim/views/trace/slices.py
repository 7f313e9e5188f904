"""The slices of a trace: every op on its track, a collective on the tracks of all its GPUs, and what each slice waits for.

A join is no slice: what waits for it waits for what it joins. On a track slices follow one another, so that of several
slices of one track only the last is waited for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from hwsim.demand import Cost
from hwsim.graph.opgraph import FlatGraph
from hwsim.records import dataclass
from hwsim.results.ops import ARRIVE
from hwsim.results.result import Result
from hwsim.views.kit.lanes import lanes

COLLECTIVES: Final = frozenset({
    "allreduce", "allgather", "reduce-scatter", "alltoall", "broadcast", "reduce", "gather", "scatter", "barrier", "exchange",
})  # fmt: skip
Waits = dict[int, int]
"""Track -> the last slice on it that must have ended."""


class Track(NamedTuple):
    """A queue of a device, or ops of it that have none; on_gpu: it is a stream."""

    device: str
    name: str
    on_gpu: bool


class Slice(NamedTuple):
    """An op on a track, fs; waiting: of a collective, until the others had come."""

    op: int
    track: int
    start: int
    end: int
    waiting: int


@dataclass(frozen=True, slots=True, eq=False)
class Slices:
    """All slices of a run.

    Args:
        order: slices of each track in order of time.
        waits: per slice, what it waits for beside the slice before it on its track.
        members: GPUs of each collective, by slice; works: by op that shows one the op that is its work.
    """

    tracks: tuple[Track, ...]
    all: tuple[Slice, ...]
    order: tuple[tuple[int, ...], ...]
    waits: tuple[Waits, ...]
    members: Mapping[int, tuple[str, ...]]
    works: Mapping[int, int]


def slices_of(result: Result) -> Slices:
    """The slices of a run."""
    flat = result.timeline.flat
    begin, end, waiting = result.ops.begin, result.timeline.end, result.ops.waiting
    tracks: dict[Track, int] = {}
    found: list[Slice] = []
    of_op: dict[int, dict[str, int]] = {}  # op -> device -> slice
    rows = lanes(result)
    for lane in rows:
        track = tracks.setdefault(Track(lane.device, lane.name, result.devices.get(lane.device) == "gpu"), len(tracks))
        columns = (lane.ops, begin[lane.ops], end[lane.ops], waiting[lane.ops])
        for op, *times in zip(*(column.tolist() for column in columns), strict=True):
            of_op[op] = {lane.device: len(found)}
            found.append(Slice(op, track, *times))
    if not any(track.on_gpu for track in tracks):  # nobody launches, and no call says who waits for whom
        order = np.split(np.arange(len(found)), np.cumsum([len(lane.ops) for lane in rows])[:-1]) if rows else []
        return Slices(tuple(tracks), tuple(found), tuple(tuple(each.tolist()) for each in order), ({},) * len(found), {}, {})
    before = _Before(flat, found, of_op)
    members, works, copies = _met(result, found, before)
    names = list(tracks)
    for number, (op, device) in enumerate(copies, len(found)):  # the parts of other GPUs in a collective of one op
        own = found[next(iter(of_op[op].values()))]
        called = names[own.track].name.replace(names[own.track].device, device, 1)
        track = tracks.setdefault(Track(device, called, True), len(tracks))
        of_op[op][device] = number
        found.append(own._replace(track=track))
    names = list(tracks)
    works_for = before.issued(names)
    waits = tuple(before.of(each, works_for.get(each.track, names[each.track].device)) for each in found)
    orders: list[list[int]] = [[] for _ in tracks]
    for number in sorted(range(len(found)), key=lambda at: (found[at].start, found[at].end, found[at].op)):
        orders[found[number].track].append(number)
    for numbers in orders:  # a part starts when its GPU has come
        free = 0
        for number in numbers:
            each = found[number]
            if len(of_op[each.op]) > 1 and waits[number]:
                came = max(free, *(found[last].end for last in waits[number].values()))
                found[number] = each._replace(start=came, waiting=each.start - came) if came < each.start else each
            free = each.end
    met = {number: members[each.op] for number, each in enumerate(found) if each.op in members}
    return Slices(tuple(tracks), tuple(found), tuple(map(tuple, orders)), waits, met, works)


class _Before:
    """What ops wait for, joins resolved."""

    def __init__(self, flat: FlatGraph, found: list[Slice], of_op: Mapping[int, Mapping[str, int]]) -> None:
        self.found, self.of_op, self.flat = found, of_op, flat
        source, target = flat.edges()
        order = np.argsort(target, kind="stable")
        self.before = source[order]
        self.bounds = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=len(flat)))])
        self.arrives = np.array([label.kind == ARRIVE for label in flat.graph.labels], np.bool_)[flat.label]
        self.joined: dict[int, tuple[int, ...]] = {}  # ops shown that an op not shown stands for

    def ops(self, op: int) -> list[int]:
        """Direct predecessors."""
        found: list[int] = self.before[self.bounds[op] : self.bounds[op + 1]].tolist()
        return found

    def shown(self, op: int) -> tuple[int, ...]:
        """The op itself if it is shown, else those that it joins."""
        if op in self.of_op:
            return (op,)
        if op in self.joined:
            return self.joined[op]
        ahead = [op]
        while ahead:
            current = ahead[-1]
            missing = [each for each in self.ops(current) if each not in self.of_op and each not in self.joined]
            if missing:
                ahead += missing
                continue
            ahead.pop()
            last: dict[int, int] = {}
            for each in self.ops(current):
                for one in self.shown(each):
                    self._keep(last, one)
            self.joined[current] = tuple(last.values())
        return self.joined[op]

    def _keep(self, last: dict[int, int], op: int) -> None:
        """Of the ops of a track keep the last."""
        each = self.found[next(iter(self.of_op[op].values()))]
        known = last.get(each.track)
        if known is None or self._end(known) <= each.end:
            last[each.track] = op

    def _end(self, op: int) -> int:
        return self.found[next(iter(self.of_op[op].values()))].end

    def front(self, op: int) -> int:
        """The op that starts what is shown as this one: of a collective the arrival of its rank."""
        queue = self.flat.queue[op]
        return next((each for each in self.ops(op) if self.arrives[each] and self.flat.queue[each] == queue), op)

    def issued(self, tracks: Sequence[Track]) -> dict[int, str]:
        """The GPU that a host thread works for, by track, if it is one."""
        devices: dict[int, set[str]] = {}
        for each in self.found:
            if tracks[each.track].on_gpu and len(self.of_op[each.op]) == 1:
                for op in self.ops(each.op):
                    for one in self.shown(op):
                        track = self.found[next(iter(self.of_op[one].values()))].track
                        if not tracks[track].on_gpu:
                            devices.setdefault(track, set()).add(tracks[each.track].device)
        return {track: next(iter(found)) for track, found in devices.items() if len(found) == 1}

    def of(self, each: Slice, device: str) -> Waits:
        """What a slice of a device waits for; in a collective only what its own GPU did."""
        waits: Waits = {}
        parts = self.of_op[each.op]
        for op in self.ops(self.front(each.op)):
            for one in self.shown(op):
                places = self.of_op[one]
                if len(parts) > 1 and device not in places and next(iter(places)) in parts:
                    continue  # another GPU's
                number = places.get(device, next(iter(places.values())))
                before = self.found[number]
                if before.track != each.track and (
                    before.track not in waits or self.found[waits[before.track]].end <= before.end
                ):
                    waits[before.track] = number
        return waits


def _met(
    result: Result, found: list[Slice], before: _Before
) -> tuple[dict[int, tuple[str, ...]], dict[int, int], list[tuple[int, str]]]:
    """GPUs that take part in each collective, and its work, by op; and (op, GPU) of parts that no op of their own shows."""
    graph = result.timeline.flat.graph
    exchanges = [label.kind in COLLECTIVES for label in graph.labels]
    by_cost: dict[int, tuple[str, ...]] = {}
    members: dict[int, tuple[str, ...]] = {}
    flat = result.timeline.flat
    shown: dict[int, list[int]] = {}  # ops that show a collective, by the op that is its work
    for each in found:
        if not exchanges[flat.label[each.op]]:
            continue
        work = each.op
        if before.front(each.op) != each.op:  # between the arrival of a rank and its leaving
            work = next((op for op in before.ops(each.op) if flat.cost[op] >= 0), work)
        cost = int(flat.cost[work])
        if cost >= 0:
            if cost not in by_cost:
                by_cost[cost] = tuple(_gpus(graph.costs[cost], result.devices))
            members[each.op] = by_cost[cost]
            shown.setdefault(work, []).append(each.op)
    works = {op: work for work, ops in shown.items() for op in ops}
    alone = [(op, graph.labels[flat.label[op]].device) for ops in shown.values() if len(ops) == 1 for op in ops]
    copies = [(op, other) for op, own in alone if own in members[op] for other in members[op] if other != own]
    return members, works, copies


def _gpus(cost: Cost, kinds: Mapping[str, str]) -> Iterator[str]:
    named = dict.fromkeys(name.rpartition(".")[0] for name, _ in (*cost.demand.amounts, *cost.demand.holds))
    return (name for name in named if kinds.get(name) == "gpu")
