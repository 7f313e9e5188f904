"""Convert a recording to an op graph with recorded durations and rules for dependencies.

In mode `rules`, a GPU op starts as soon as its launch, its stream, its events and the other ranks of its collective allow. A
later recorded start is unexplained delay, which is reported but not replayed. In mode `exact` it is replayed, so that every op
ends as recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import IntEnum
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hwsim import ticks
from hwsim.graph.builder import block
from hwsim.graph.opgraph import Label, OpGraph, Queue
from hwsim.importers.collective_matches import MatchedCollectives, meetings, none_of
from hwsim.importers.rank_rules import RankRules, explained
from hwsim.importers.recording import Ints, Recording, Small, What
from hwsim.importers.slice_links import NONE
from hwsim.importers.threads import SegmentKind
from hwsim.records import dataclass
from hwsim.views.trace.slices import UNSEEN

Mode = Literal["rules", "exact"]


class ReplayOpKind(IntEnum):
    """Kinds of ops in the graph of a replay."""

    HOST = 0  # a runtime call, framework op or Python on a host thread
    DEVICE = 1  # a kernel, copy or memset
    COLLECTIVE = 2  # the transfer of a collective, or its whole kernel if the other ranks are unknown
    LAUNCH = 3  # launch latency: from the start of a call to the start of its GPU op
    GAP = 4  # gap between two ops of a stream
    DELAY = 5  # unexplained delay
    ARRIVE = 6  # a rank is ready for a collective
    MEET = 7  # all ranks are ready
    START = 8  # time before the first segment of a host thread


@dataclass(frozen=True, slots=True, eq=False)
class RecordingReplay:
    """A recording as an op graph, with columns that have one entry per op.

    Args:
        recording: the recording.
        mode: `rules` or `exact`.
        graph: the op graph.
        part: `ReplayOpKind`.
        rank: position of the rank in the recording; -1 for ops of several ranks.
        slice: slice of the op, or slice that the op delays; -1 for none.
        recorded: recorded start (fs); -1 for ops without a slice.
        recorded_end: recorded end (fs).
        unexplained: delay before the op that no rule explains (fs); for a host thread, time until its first segment.
        waited: time from the start of a collective kernel to the arrival of the last rank (fs).
        ranks: rules applied to each rank.
        meetings: matched collectives.
    """

    recording: Recording
    mode: Mode
    graph: OpGraph
    part: NDArray[np.uint8]
    rank: Small
    slice: Small
    recorded: Ints
    recorded_end: Ints
    unexplained: Ints
    waited: Ints
    ranks: tuple[RankRules, ...]
    meetings: MatchedCollectives

    def __len__(self) -> int:
        return len(self.part)

    @property
    def is_gpu(self) -> NDArray[np.bool_]:
        """Whether each op runs on a GPU."""
        found: NDArray[np.bool_] = (self.part == ReplayOpKind.DEVICE) | (self.part == ReplayOpKind.COLLECTIVE)
        return found

    def piece_ops(self, position: int) -> Ints:
        """Return the ops of the host segments of a rank, in their order."""
        return np.flatnonzero(((self.part == ReplayOpKind.HOST) | (self.part == ReplayOpKind.START)) & (self.rank == position))

    def again(self, mode: Mode) -> RecordingReplay:
        """Return the replay of the same recording in another mode."""
        return self if mode == self.mode else _Writer(self.recording, mode, self.ranks, self.meetings).replay()

    def named(self, text: str) -> NDArray[np.bool_]:
        """Return whether each op is a GPU op whose name contains a text."""
        is_named = np.zeros(len(self), bool)
        for position, rank in enumerate(self.recording.ranks):
            has_text = np.array([text in name for name in rank.names], bool)
            mine = np.flatnonzero(self.is_gpu & (self.rank == position))
            is_named[mine] = has_text[rank.slices.name[self.slice[mine]]]
        return is_named

    def scaled(self, times: float = 1.0, by_name: Mapping[str, float] | None = None) -> OpGraph:
        """Return the graph with scaled durations of GPU ops.

        Args:
            times: factor for all GPU ops.
            by_name: further factors for GPU ops whose name contains a text.
        """
        factor = np.where(self.is_gpu, times, 1.0)
        body = self.graph.blocks[0]
        for text, more in (by_name or {}).items():
            factor = np.where(self.named(text), factor * more, factor)
        time = np.array(body.time)
        longer = np.flatnonzero(factor != 1.0)
        scaled = ticks.rounded(np.rint(body.time[longer] * factor[longer]))
        time, scaled = ticks.alike(time, scaled)
        time[longer] = scaled
        return replace(self.graph, blocks=(replace(body, time=time),))


def explain(recording: Recording, mode: Mode = "rules") -> RecordingReplay:
    """Apply the rules to a recording and return its replay."""
    return replayed(recording, tuple(explained(rank) for rank in recording.ranks), mode)


def replayed(recording: Recording, ranks: tuple[RankRules, ...], mode: Mode = "rules") -> RecordingReplay:
    """Return the replay of a recording to whose ranks the rules have been applied."""
    met = meetings(recording, [rank.exchanges for rank in ranks], [rank_rules.ops for rank_rules in ranks])
    replay = _Writer(recording, mode, ranks, met).replay()
    if recording.clocked or not _is_circular(replay.graph):
        return replay
    return _Writer(recording, mode, ranks, none_of(met, "collectives form a dependency cycle: they do not wait")).replay()


def _is_circular(graph: OpGraph) -> bool:
    """Return whether the edges and the order of the queues form a cycle."""
    body = graph.blocks[0]
    order = np.argsort(body.queue, kind="stable")
    order = order[body.queue[order] >= 0]
    follows = body.queue[order[1:]] == body.queue[order[:-1]]
    pairs = np.concatenate([body.edges[:, :2], np.column_stack([order[:-1], order[1:]])[follows]])
    sorter: TopologicalSorter[int] = TopologicalSorter()
    for before, then in pairs.tolist():
        sorter.add(then, before)
    try:
        sorter.prepare()
    except CycleError:
        return True
    return False


_KINDS: Mapping[str, DTypeLike] = {
    "label": np.int64, "time": np.int64, "queue": np.int64, "part": np.uint8, "rank": np.int32, "slice": np.int32,
    "recorded": np.int64, "recorded_end": np.int64, "unexplained": np.int64, "waited": np.int64,
}  # fmt: skip
_NONE_BY_DEFAULT = frozenset({"queue", "slice", "recorded", "recorded_end"})


class _Columns:
    """Growing columns of ops."""

    def __init__(self) -> None:
        self.count = 0
        self.parts: dict[str, list[NDArray[Any]]] = {name: [] for name in _KINDS}
        self.edges: list[Ints] = []

    def add(self, count: int, **columns: NDArray[np.generic] | int) -> Ints:
        """Append ops and return their numbers."""
        for name, parts in self.parts.items():
            parts.append(np.broadcast_to(columns.get(name, NONE if name in _NONE_BY_DEFAULT else 0), (count,)))
        self.count += count
        return np.arange(self.count - count, self.count)

    def joined(self) -> Iterator[NDArray[Any]]:
        """Yield each whole column, and drop its parts."""
        for name, kind in _KINDS.items():
            yield np.concatenate([np.empty(0, kind), *self.parts.pop(name)], dtype=kind, casting="unsafe")

    def edge(self, before: Ints, then: Ints) -> None:
        """Add dependencies: `then` starts when `before` has ended."""
        self.edges.append(np.column_stack([before, then]))


class _Writer:
    """A builder of the op graph."""

    def __init__(self, recording: Recording, mode: Mode, ranks: tuple[RankRules, ...], met: MatchedCollectives) -> None:
        self.recording, self.mode, self.ranks, self.met = recording, mode, ranks, met
        self.exact = mode == "exact"
        self.labels: dict[Label, int] = {}
        self.queues: list[Queue] = []
        self.columns = _Columns()
        self.arrive = np.full(len(met.meeting), NONE, np.int64)
        self.depart = np.full(len(met.meeting), NONE, np.int64)

    def replay(self) -> RecordingReplay:
        """Return the replay."""
        for position in range(len(self.ranks)):
            self._rank(position)
        self._meet()
        label, time, queue, part, rank, of_slice, recorded, recorded_end, unexplained, waited = self.columns.joined()
        pairs = np.concatenate([np.empty((0, 2), np.int64), *self.columns.edges])
        edges = np.column_stack([pairs, np.zeros(len(pairs), np.int64)])
        body = block(label, time=time, queue=queue, edges=edges)
        graph = OpGraph(blocks=(body,), labels=tuple(self.labels), queues=tuple(self.queues))
        return RecordingReplay(
            self.recording, self.mode, graph, part, rank, of_slice, recorded, recorded_end, unexplained, waited,
            self.ranks, self.met,
        )  # fmt: skip

    def _label(self, name: str, kind: str, device: str, program: str) -> int:
        short = name if len(name) <= 100 else name[:97] + "..."
        return self.labels.setdefault(Label(short, kind, device, program), len(self.labels))

    def _queue(self, name: str, device: str) -> int:
        self.queues.append(Queue(name, device))
        return len(self.queues) - 1

    def _rank(self, position: int) -> None:
        explained = self.ranks[position]
        many = len(self.ranks) > 1
        prefix, program = (f"rank{explained.rank.number}.", f"rank{explained.rank.number}") if many else ("", "main")
        host = self._host(position, explained, prefix, program)
        gpu = self._gpu(position, explained, prefix, program, host)
        self.columns.edge(host[explained.crossings.before], host[explained.crossings.then])
        self.columns.edge(gpu[explained.blocked.before], host[explained.blocked.then])

    def _host(self, position: int, explained: RankRules, prefix: str, program: str) -> Ints:
        """Add the segments of host threads; return their numbers."""
        pieces, rank = explained.pieces, explained.rank
        begins = pieces.start.copy()
        np.maximum.at(begins, explained.crossings.then, pieces.end[explained.crossings.before])
        np.maximum.at(begins, explained.blocked.then, explained.ops.end[explained.blocked.before])
        device = f"{prefix}host"
        queues = np.array([self._queue(f"{prefix}{rank.lanes[lane].name}", device) for lane in pieces.lanes], np.int64)
        name = np.where(pieces.slice < 0, NONE, rank.slices.name[pieces.slice])
        labels = np.zeros(len(pieces), np.int64)
        for kind, word in ((SegmentKind.CALL, "call"), (SegmentKind.OP, "op")):
            mine = pieces.kind == kind
            for number in np.unique(name[mine]).tolist():
                labels[mine & (name == number)] = self._label(rank.names[number], word, device, program)
        labels[pieces.kind == SegmentKind.BETWEEN] = self._label("python", "python", device, program)
        is_start = pieces.kind == SegmentKind.START
        labels[is_start] = self._label(UNSEEN, "start", device, program)
        time = pieces.end - np.minimum(begins, pieces.end)
        return self.columns.add(
            len(pieces), label=labels, time=time, queue=queues[pieces.thread] if len(pieces) else NONE, rank=position,
            part=np.where(is_start, ReplayOpKind.START, ReplayOpKind.HOST), slice=pieces.slice, recorded=pieces.start,
            recorded_end=pieces.end, unexplained=np.where(is_start, time, 0),
        )  # fmt: skip

    def _gpu(self, position: int, explained: RankRules, prefix: str, program: str, host: Ints) -> Ints:
        """Add the GPU ops with their launches, gaps and delays; return the numbers of the GPU ops."""
        ops, rank, took = explained.ops, explained.rank, explained.latencies
        devices = [f"{prefix}gpu{rank.lanes[lane].device}" for lane in ops.lane]
        seen: dict[int, int] = {}
        queues = []
        for lane, device in zip(ops.lane, devices, strict=True):
            seen[lane] = seen.get(lane, 0) + 1
            more = f" ({seen[lane]})" if seen[lane] > 1 else ""
            queues.append(self._queue(f"{prefix}{rank.lanes[lane].name}{more}", device))
        queue = np.array([*queues, NONE], np.int64)[ops.queue]
        mine = np.flatnonzero(self.met.rank == position)
        met = np.full(len(ops), NONE, np.int64)
        met[self.met.op[mine]] = mine
        latest = np.where(met >= 0, self.met.latest[met] if len(self.met.latest) else 0, ops.start)
        has_launch, follows = ops.call >= 0, ops.previous >= 0
        launch_piece = explained.launch_piece
        before = np.where(follows, ops.end[ops.previous], 0)
        from_piece = np.where(has_launch, explained.pieces.end[launch_piece] if len(explained.pieces) else 0, 0)
        launch = np.where(ops.is_late, 0, took.of)
        gap = np.full(len(ops), took.gap, np.int64)  # fits
        launch = np.where(ops.start < ops.at, np.maximum(0, ops.start - from_piece), launch)
        if self.exact:  # latencies and gaps must not exceed the recorded ones
            launch = np.minimum(launch, ops.start - from_piece)
            gap = np.minimum(gap, ops.start - before)
        gap[~follows] = 0
        late = np.maximum(0, ops.start - explained.ready)
        is_free = ~has_launch & ~follows
        earliest = _earliest(explained, before + gap)
        delay = np.where(is_free & (explained.ready == ops.start), ops.start - earliest, late if self.exact else 0)
        unlaunched = has_launch & (from_piece > ops.start)
        if unlaunched.any():  # they start before the first segment of their thread: only their time is known
            has_launch = has_launch & ~unlaunched
            delay = np.where(unlaunched, ops.start - earliest, delay)
        common: dict[str, NDArray[np.generic] | int] = {"rank": position}
        labels = self._gpu_labels(explained, devices, program)
        slices = ops.slice
        no_device = self._label("launch", "latency", "", program)
        launched = np.flatnonzero(has_launch)
        launches = self.columns.add(
            len(launched), label=no_device, time=launch[launched], part=ReplayOpKind.LAUNCH, slice=slices[launched], **common
        )
        gapped = gap > 0
        delayed = delay > 0
        # order in a queue: gap, delay, arrival, op
        rows = np.column_stack([gapped, delayed, met >= 0, np.ones(len(ops), bool)])
        total = int(rows.sum())
        numbers = np.full(rows.shape, NONE, np.int64)
        numbers[rows] = np.arange(total) + self.columns.count
        which, place = np.nonzero(rows)
        words = [
            self._label(word, word, device, program) for word in ("gap", "delay", "arrive") for device in dict.fromkeys(devices)
        ]
        few = len(dict.fromkeys(devices))
        device_number = np.array([list(dict.fromkeys(devices)).index(device) for device in devices] + [0], np.int64)[ops.queue]
        rule_label = np.array([*words, 0], np.int64)[np.minimum(place * few + device_number[which], 3 * few)]
        kind = np.isin(np.arange(len(ops)), explained.exchanges.ops)
        times = np.column_stack([gap, delay, np.zeros(len(ops), np.int64), ops.end - np.maximum(ops.start, latest)])
        parts = np.array([ReplayOpKind.GAP, ReplayOpKind.DELAY, ReplayOpKind.ARRIVE, ReplayOpKind.DEVICE])
        is_op = place == 3
        self.columns.add(
            total,
            label=np.where(is_op, labels[which], rule_label),
            time=times[rows],
            queue=queue[which],
            part=np.where(is_op & kind[which], ReplayOpKind.COLLECTIVE, parts[place]),
            slice=slices[which],
            recorded=np.where(is_op, ops.start[which], NONE),
            recorded_end=np.where(is_op, ops.end[which], NONE),
            unexplained=np.where(is_op & ~is_free[which], late[which], 0),
            waited=np.where(is_op, np.maximum(0, latest - ops.start)[which], 0),
            **common,
        )
        entry = np.where(delayed, numbers[:, 1], np.where(met >= 0, numbers[:, 2], numbers[:, 3]))
        self.columns.edge(host[launch_piece[launched]], launches)
        self.columns.edge(launches, entry[launched])
        self.columns.edge(host[explained.fed[:, 0]], entry[explained.fed[:, 1]])
        self.columns.edge(numbers[explained.waits.before, 3], entry[explained.waits.then])
        self.columns.edge(numbers[ops.overlapping[:, 0], 3], entry[ops.overlapping[:, 1]])
        self.arrive[mine], self.depart[mine] = numbers[self.met.op[mine], 2], numbers[self.met.op[mine], 3]
        return numbers[:, 3]

    def _gpu_labels(self, explained: RankRules, devices: list[str], program: str) -> Ints:
        ops, rank = explained.ops, explained.rank
        labels = np.zeros(len(ops), np.int64)
        words = {What.KERNEL: "kernel", What.COPY: "copy", What.SET: "set"}
        is_exchange = np.isin(np.arange(len(ops)), explained.exchanges.ops)
        bounds = (len(rank.names), len(What), max(1, len(devices)), 2)
        keys = np.ravel_multi_index((rank.slices.name[ops.slice], rank.slices.what[ops.slice], ops.queue, is_exchange), bounds)
        distinct, index = np.unique(keys, return_inverse=True)
        numbers = [
            self._label(rank.names[name], "collective" if exchange else words[What(kind)], devices[queue], program)
            for name, kind, queue, exchange in np.column_stack(np.unravel_index(distinct, bounds)).tolist()
        ]
        return np.array([*numbers, 0], np.int64)[index] if len(ops) else labels

    def _meet(self) -> None:
        if not len(self.met):
            return
        label = self._label("meet", "join", "", "main")
        joins = self.columns.add(len(self.met), label=label, part=ReplayOpKind.MEET, rank=NONE)
        takes = self.met.takes
        self.columns.edge(self.arrive, joins[self.met.meeting])
        self.columns.edge(joins[self.met.meeting[takes]], self.depart[takes])


def _earliest(explained: RankRules, after_stream: Ints) -> Ints:
    """Return when each GPU op may start without its launch (fs); after_stream: when its stream is free."""
    ops, times = explained.ops, after_stream.copy()
    np.maximum.at(times, explained.waits.then, ops.end[explained.waits.before])
    np.maximum.at(times, ops.overlapping[:, 1], ops.end[ops.overlapping[:, 0]])
    np.maximum.at(times, explained.fed[:, 1], explained.pieces.end[explained.fed[:, 0]])
    return times
