"""The slices of a trace: each op on its track, a collective on the tracks of all its GPUs, and the dependencies between slices.

A join is not a slice: its successors depend on the ops that it joins. Slices of a track are sequential, so a slice depends only
on the last of several predecessors on a track.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim.demand import Capacity, Cost, by_name
from hwsim.graph.flat import FlatGraph
from hwsim.graph.opgraph import Ints, Label
from hwsim.records import dataclass
from hwsim.results.bound import COLLECTIVES
from hwsim.results.ops import ARRIVE
from hwsim.results.result import Result
from hwsim.views.kit.lanes import OpLane, lanes

REPLAYED: Final = "collective"  # kind of a collective in a replayed recording
_OF_GPUS: Final = frozenset({"kernel", "set", REPLAYED})  # kinds of replayed ops that only GPUs execute
_REPLAYS: Final = frozenset({"kernel", "set", "call", "python", "op"})  # kinds of ops that only replayed recordings have
UNSEEN: Final = "before its first call"  # name of an op of kind `start` in a replayed thread
_BETWEEN: Final = frozenset({ARRIVE, "gap", "delay", "start"})  # names and kinds of time between replayed ops
Waits = dict[int, int]
"""Last slice that must have ended, by track."""


class Track(NamedTuple):
    """A queue of a device, or its ops without a queue.

    Args:
        device: device.
        name: name.
        on_gpu: whether it is a GPU stream.
    """

    device: str
    name: str
    on_gpu: bool


class TraceSlice(NamedTuple):
    """An op on a track.

    Args:
        op: number of the op.
        track: number of the track.
        start, end: start and end (fs).
        waiting: for a collective, time until the other ranks arrived (fs).
    """

    op: int
    track: int
    start: int
    end: int
    waiting: int


@dataclass(frozen=True, slots=True, eq=False)
class TraceSlices:
    """All slices of a run.

    Args:
        tracks: tracks.
        all: slices.
        order: slices of each track in order of time.
        waits: for each slice, the slices of other tracks that it depends on.
        members: GPUs of each collective, by slice.
        works: by op of a collective, the op with its common work.
    """

    tracks: tuple[Track, ...]
    all: tuple[TraceSlice, ...]
    order: tuple[tuple[int, ...], ...]
    waits: tuple[Waits, ...]
    members: Mapping[int, tuple[str, ...]]
    works: Mapping[int, int]


def kinds_of(result: Result) -> Mapping[str, str]:
    """Return the kind of each device; for devices of a recording that the machine lacks, by the ops that run on them."""
    kinds = dict(result.devices)
    for label in result.timeline.flat.graph.labels:
        if label.device and label.device not in result.devices:
            kinds[label.device] = "gpu" if label.kind in _OF_GPUS else kinds.get(label.device, "cpu")
    return kinds


def between(labels: Sequence[Label]) -> NDArray[np.bool_]:
    """Return a mask of labels of a replayed recording that are time between its events."""
    replays = _is_replay(labels)
    return np.array([replays and label.kind in _BETWEEN and label.name in (label.kind, UNSEEN) for label in labels], np.bool_)


def _is_replay(labels: Sequence[Label]) -> bool:
    return any(label.kind in _REPLAYS for label in labels)


def _rows(result: Result) -> tuple[OpLane, ...]:
    """Return the lanes with the displayed ops."""
    flat = result.timeline.flat
    hidden = between(flat.graph.labels)
    rows = lanes(result)
    if not hidden.any():
        return rows
    kept = (replace(lane, ops=lane.ops[~hidden[flat.label[lane.ops]]]) for lane in rows)
    return tuple(lane for lane in kept if len(lane.ops))


def _times(result: Result, before: _Before) -> tuple[Ints, Ints]:
    """Return (start of each op, time that it waits for others); a replayed collective starts when its rank arrives."""
    flat, start = result.timeline.flat, result.timeline.start
    begin, waiting = result.ops.begin.copy(), result.ops.waiting.copy()
    labels = flat.graph.labels
    replayed = np.array([label.kind == REPLAYED and _is_replay(labels) for label in labels], np.bool_)
    for op in np.flatnonzero(replayed[flat.label]).tolist() if replayed.any() else ():
        begin[op] = start[before.front(op)]
        waiting[op] = start[op] - begin[op]
    return begin, waiting


def slices_of(result: Result) -> TraceSlices:
    """Return the slices of a run."""
    flat, kinds = result.timeline.flat, kinds_of(result)
    tracks: dict[Track, int] = {}
    made: list[TraceSlice] = []
    of_op: dict[int, dict[str, int]] = {}  # slice by op and device
    rows = _rows(result)
    before = _Before(flat, made, of_op)
    (begin, waiting), end = _times(result, before), result.timeline.end
    for lane in rows:
        track = tracks.setdefault(Track(lane.device, lane.name, kinds.get(lane.device) == "gpu"), len(tracks))
        columns = (lane.ops, begin[lane.ops], end[lane.ops], waiting[lane.ops])
        for op, *times in zip(*(column.tolist() for column in columns), strict=True):
            of_op[op] = {lane.device: len(made)}
            made.append(TraceSlice(op, track, *times))
    if not any(track.on_gpu for track in tracks):  # without a GPU there are no launches and no waits
        order = np.split(np.arange(len(made)), np.cumsum([len(lane.ops) for lane in rows])[:-1]) if rows else []
        return TraceSlices(tuple(tracks), tuple(made), tuple(tuple(part.tolist()) for part in order), ({},) * len(made), {}, {})
    members, works, copies = _met(result, kinds, made, before)
    names = list(tracks)
    teams = _teams(result, kinds, [part.op for part in made if names[part.track].on_gpu and part.op not in members])
    copies += [(op, device) for op, team in teams.items() for device in team if device not in of_op[op]]
    for number, (op, device) in enumerate(copies, len(made)):  # the parts of the other GPUs of an op
        mine = made[next(iter(of_op[op].values()))]
        called = names[mine.track].name.replace(names[mine.track].device, device, 1)
        track = tracks.setdefault(Track(device, called, True), len(tracks))
        of_op[op][device] = number
        made.append(mine._replace(track=track))
    names = list(tracks)
    works_for = before.issued(names)
    waits = tuple(before.of(part, works_for.get(part.track, names[part.track].device)) for part in made)
    orders: list[list[int]] = [[] for _ in tracks]
    for number in sorted(range(len(made)), key=lambda index: (made[index].start, made[index].end, made[index].op)):
        orders[made[number].track].append(number)
    for numbers in orders:  # a part starts when its GPU arrives
        free = 0
        for number in numbers:
            part = made[number]
            if part.op in members and len(of_op[part.op]) > 1 and waits[number]:
                came = max(free, *(made[last].end for last in waits[number].values()))
                made[number] = part._replace(start=came, waiting=part.start - came) if came < part.start else part
            free = part.end
    places = {device: place for team in teams.values() for place, device in enumerate(team)}
    met = {
        number: _group(result, part.op, members[part.op], names[part.track].device, places)
        for number, part in enumerate(made)
        if part.op in members
    }
    return TraceSlices(tuple(tracks), tuple(made), tuple(map(tuple, orders)), waits, met, works)


class _Before:
    """The predecessors of each op, with joins resolved."""

    def __init__(self, flat: FlatGraph, made: list[TraceSlice], of_op: Mapping[int, Mapping[str, int]]) -> None:
        self.found, self.of_op, self.flat = made, of_op, flat
        source, target = flat.edges()
        order = np.argsort(target, kind="stable")
        self.before = source[order]
        self.bounds = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=len(flat)))])
        self.arrives = np.array([label.kind == ARRIVE for label in flat.graph.labels], np.bool_)[flat.label]
        self.joined: dict[int, tuple[int, ...]] = {}  # displayed ops behind an op that is not displayed

    def ops(self, op: int) -> list[int]:
        """Return the direct predecessors."""
        made: list[int] = self.before[self.bounds[op] : self.bounds[op + 1]].tolist()
        return made

    def shown(self, op: int) -> tuple[int, ...]:
        """Return the op itself if displayed, else the displayed ops that it joins."""
        if op in self.of_op:
            return (op,)
        if op in self.joined:
            return self.joined[op]
        ahead = [op]
        while ahead:
            current = ahead[-1]
            missing = [part for part in self.ops(current) if part not in self.of_op and part not in self.joined]
            if missing:
                ahead += missing
                continue
            ahead.pop()
            last: dict[int, int] = {}
            for part in self.ops(current):
                for member in self.shown(part):
                    self._keep(last, member)
            self.joined[current] = tuple(last.values())
        return self.joined[op]

    def _keep(self, last: dict[int, int], op: int) -> None:
        """Keep the last op of each track."""
        part = self.found[next(iter(self.of_op[op].values()))]
        latest = last.get(part.track)
        if latest is None or self.found[next(iter(self.of_op[latest].values()))].end <= part.end:
            last[part.track] = op

    def front(self, op: int) -> int:
        """Return the op at which the slice of an op starts: for a collective, the arrival of its rank."""
        queue = self.flat.queue[op]
        return next((part for part in self.ops(op) if self.arrives[part] and self.flat.queue[part] == queue), op)

    def met(self, op: int) -> tuple[str, ...]:
        """Return the GPUs of a replayed collective: of the matched arrivals, or its own GPU if no other rank is known."""
        labels, label = self.flat.graph.labels, self.flat.label
        came = [part for join in self.ops(op) if labels[label[join]].kind == "join" for part in self.ops(join)]
        return tuple(dict.fromkeys(labels[label[part]].device for part in came)) or (labels[label[op]].device,)

    def issued(self, tracks: Sequence[Track]) -> dict[int, str]:
        """Return the GPU that each host thread issues to, by track, if there is exactly one."""
        devices: dict[int, set[str]] = {}
        for part in self.found:
            if tracks[part.track].on_gpu and len(self.of_op[part.op]) == 1:
                for op in self.ops(self.front(part.op)):
                    for member in self.shown(op):
                        track = self.found[next(iter(self.of_op[member].values()))].track
                        if not tracks[track].on_gpu:
                            devices.setdefault(track, set()).add(tracks[part.track].device)
        return {track: next(iter(made)) for track, made in devices.items() if len(made) == 1}

    def of(self, part: TraceSlice, device: str) -> Waits:
        """Return the slices that a slice of a device depends on; in a collective, only slices of the same GPU."""
        waits: Waits = {}
        parts = self.of_op[part.op]
        for op in self.ops(self.front(part.op)):
            for member in self.shown(op):
                places = self.of_op[member]
                if len(parts) > 1 and device not in places and next(iter(places)) in parts:
                    continue  # part of another GPU
                number = places.get(device, next(iter(places.values())))
                before = self.found[number]
                if before.track != part.track and (
                    before.track not in waits or self.found[waits[before.track]].end <= before.end
                ):
                    waits[before.track] = number
        return waits


def _met(
    result: Result, kinds: Mapping[str, str], made: list[TraceSlice], before: _Before
) -> tuple[dict[int, tuple[str, ...]], dict[int, int], list[tuple[int, str]]]:
    """Return (GPUs of each collective by op, common work by op, (op, GPU) of parts without their own op)."""
    graph = result.timeline.flat.graph
    exchanges = [label.kind in COLLECTIVES for label in graph.labels]
    replays = _is_replay(graph.labels)
    known = by_name(graph.capacities)
    by_cost: dict[int, tuple[str, ...]] = {}
    members: dict[int, tuple[str, ...]] = {}
    flat = result.timeline.flat
    shown: dict[int, list[int]] = {}  # ops of a collective by the op with its common work
    for part in made:
        if not exchanges[flat.label[part.op]]:
            continue
        if replays and graph.labels[flat.label[part.op]].kind == REPLAYED:
            members[part.op] = before.met(part.op)
            continue
        work = part.op
        if before.front(part.op) != part.op:  # between the arrival and departure of a rank
            work = next((op for op in before.ops(part.op) if flat.cost[op] >= 0), work)
        cost = int(flat.cost[work])
        if cost >= 0:
            if cost not in by_cost:
                by_cost[cost] = tuple(_gpus(graph.costs[cost], known, kinds))
            members[part.op] = by_cost[cost]
            shown.setdefault(work, []).append(part.op)
    works = {op: work for work, ops in shown.items() for op in ops}
    alone = [(op, graph.labels[flat.label[op]].device) for ops in shown.values() if len(ops) == 1 for op in ops]
    copies = [(op, further) for op, mine in alone if mine in members[op] for further in members[op] if further != mine]
    return members, works, copies


def _teams(result: Result, kinds: Mapping[str, str], ops: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """Return the GPUs that compute an op together, as in tensor parallelism; the op is on one of them."""
    flat = result.timeline.flat
    known = by_name(flat.graph.capacities)
    teams: dict[int, tuple[str, ...]] = {}
    for op in ops:
        demand = flat.graph.costs[int(flat.cost[op])].demand if flat.cost[op] >= 0 else None
        used = [known[name] for name, _ in demand.amounts] if demand is not None else []
        gpus = tuple(dict.fromkeys(part.device for part in used if part.kind == "compute" and kinds.get(part.device) == "gpu"))
        if len(gpus) > 1 and flat.graph.labels[flat.label[op]].device in gpus:
            teams[op] = gpus
    return teams


def _group(result: Result, op: int, members: tuple[str, ...], device: str, places: Mapping[str, int]) -> tuple[str, ...]:
    """Return the GPUs of a collective that exchange with this one; an op may be the same collective in several groups."""
    flat = result.timeline.flat
    exchange = flat.graph.costs[int(flat.cost[op])].exchange if flat.cost[op] >= 0 else None
    mine = tuple(member for member in members if places.get(member) == places.get(device))
    return mine if exchange is not None and len(mine) == exchange.ranks < len(members) else members


def _gpus(cost: Cost, known: Mapping[str, Capacity], kinds: Mapping[str, str]) -> Iterator[str]:
    named = dict.fromkeys(known[name].device for name, _ in (*cost.demand.amounts, *cost.demand.holds))
    return (name for name in named if kinds.get(name) == "gpu")
