"""Activities of a run: total time, time on the critical path, and bounds.

A run with at most 12 kinds of ops has one activity per op name; a larger run has one activity per kind of work. The run waits
for an activity during its time on the critical path; the rest of the activity's time overlaps with other work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

import numpy as np

from hwsim import ticks
from hwsim.formats import family
from hwsim.graph.opgraph import Ints, Label
from hwsim.records import dataclass
from hwsim.results.bound import Bound, BoundTime, bounds, longest_first
from hwsim.results.cause import HOST, Cause
from hwsim.results.critical import critical_path, op_segments
from hwsim.results.ops import ARRIVE, arrivals, weights
from hwsim.results.rates import WorkRates, rates, sizes
from hwsim.results.result import Result
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO

MOST: Final = 12  # largest number of op names with an activity each; above it, one activity per kind of work
LONGEST: Final = 4096  # ops of a served model whose causes are examined
SERVED: Final = "infer"  # kind of the ops of a served model
NOUNS: Final = {  # name of the activity by kind of op
    "access": "memory access", "allgather": "all-gather", "alltoall": "all-to-all", "allreduce": "all-reduce",
    "arrivals": "waiting for requests", "backward": "backward pass", "busy": "fixed duration", "compute": "compute",
    "copy": "copying", "exchange": "gradient exchange", "forward": "forward pass", "infer": "model iteration",
    "layernorm": "layer norm", "moe": "expert layer", "read": "reading", "rnn": "recurrent layer", "send": "message passing",
    "service": "waiting for requests", "write": "writing",
}  # fmt: skip
HOST_WORK: Final = "host"
NONE: Final = frozenset({ARRIVE, "insert", "step", "wait"})  # kinds of ops that only synchronize others
SPLIT: Final = frozenset({"elementwise"})  # kinds split by function, the last part of the op name


Once = Literal["", "first", "last", "another"]


@dataclass(frozen=True, slots=True)
class Activity:
    """An op name or kind of work, with its times and bounds.

    Args:
        name: name of the op or of the kind of work.
        count: number of ops.
        mean_s: average time of one op from start to end, without waiting in a queue (s).
        total_fs: time during which at least one of the ops ran (fs).
        path_fs: time on the critical path (fs).
        share: path_fs as a share of the run.
        bounds: bounds of path_fs, longest first; bounds of the ops' own time if they are not on the critical path.
        once: "first", "last" or "another" (in between) if exactly one of several ops is on the critical path; else "".
        rates: bytes or FLOP per second, and accesses per second, of the ops' time.
    """

    name: str
    count: int
    mean_s: float
    total_fs: int
    path_fs: int
    share: float
    bounds: tuple[BoundTime, ...]
    once: Once = ""
    rates: WorkRates = WorkRates()

    @property
    def total_s(self) -> float:
        """Time during which at least one of the ops ran (s)."""
        return self.total_fs / FEMTO

    @property
    def path_s(self) -> float:
        """Time on the critical path (s)."""
        return self.path_fs / FEMTO

    @property
    def overlapped_s(self) -> float:
        """Time during which the ops ran while the run waited for something else (s)."""
        return (self.total_fs - self.path_fs) / FEMTO

    @property
    def bound(self) -> Bound | None:
        """Bound of most of the activity's time; None without one."""
        return self.bounds[0].bound if self.bounds else None


@dataclass(frozen=True, slots=True)
class Activities:
    """All activities of a run.

    Args:
        rows: activities, longest on the critical path first.
        parts: bounds of the whole run, longest first.
        of_ops: whether each row is an op name instead of a kind of work.
    """

    rows: tuple[Activity, ...]
    parts: tuple[BoundTime, ...]
    of_ops: bool


def bounds_of(timeline: Timeline, devices: Mapping[str, str]) -> tuple[BoundTime, ...]:
    """Return the bounds of the critical path, longest first; they add up to the makespan.

    Args:
        devices: kind of each device by name.
    """
    return _Waited(timeline, devices).parts(range(len(timeline.flat.graph.labels)))


def activities(result: Result) -> Activities:
    """Return the activities of a run and the bounds of its critical path, which add up to the makespan."""
    timeline = result.simulated
    labels = timeline.flat.graph.labels
    waited = _Waited(timeline, result.devices)
    groups = _groups(labels, _by_name)
    named = len(groups) <= MOST
    if not named:
        groups = _groups(labels, _by_work)
    rows = [row for row in _rows(result, waited, groups, named=named) if row.total_fs]
    rows += _waiting(result) if named else []
    rows.sort(key=lambda row: (-row.path_fs, -row.total_fs, row.name))
    return Activities(tuple(rows), waited.parts(range(len(labels))), named)


class _Waited:
    """Time on the critical path by op label and bound."""

    def __init__(self, timeline: Timeline, devices: Mapping[str, str]) -> None:
        flat = timeline.flat
        self.labels = flat.graph.labels
        self.of = bounds(flat.graph.capacities, devices)
        self.timeline = timeline
        path = critical_path(self.timeline)
        self.ops = ticks.distinct(path.op)
        label_count = max(1, len(self.labels))
        pairs, where = ticks.numbered(path.cause * label_count + flat.label[path.op])
        self.causes = [path.causes[pair // label_count] for pair in pairs.tolist()]
        self.label = [pair % label_count for pair in pairs.tolist()]
        self.spent = ticks.totals(path.end - path.start, where, len(pairs))

    def once(self, ops: Ints) -> Once:
        """Return the position of the op that the run waited for, if it waited for exactly one of these ops."""
        waited = ops[np.isin(ops, self.ops)]
        if not len(waited) == 1 < len(ops):
            return ""
        starts, start = self.timeline.start[ops], self.timeline.start[waited[0]]
        return "first" if start == starts.min() else "last" if start == starts.max() else "another"

    def parts(self, members: Iterable[int], *, waits: bool = True) -> tuple[BoundTime, ...]:
        """Return the bounds of ops with these labels, longest first; waits: include the time before the ops start."""
        wanted = frozenset(members)
        spent: dict[Bound, int] = {}
        for cause, label, time in zip(self.causes, self.label, self.spent, strict=True):
            if label in wanted and time and (waits or cause.kind != "wait"):
                bound = self.of(cause, self.labels[label])
                spent[bound] = spent.get(bound, 0) + time
        return tuple(longest_first(spent))


Key = tuple[str, str, str]
"""Name, kind of ops, and device or device family of an activity."""


def _by_name(label: Label) -> Key:
    return (HOST_WORK, HOST_WORK, "") if label.kind in HOST else (label.name, label.kind, family(label.device))


def _by_work(label: Label) -> Key:
    if label.kind in {*HOST, HOST_WORK}:
        return HOST_WORK, HOST_WORK, ""
    done = label.name.rpartition(".")[2].lstrip("0123456789 ").partition(" ")[0]  # of "5 update parameters": update
    return done or label.kind if label.kind in SPLIT else NOUNS.get(label.kind, label.kind), "", ""


def _groups(labels: Sequence[Label], key_of: Callable[[Label], Key]) -> dict[Key, list[int]]:
    groups: dict[Key, list[int]] = {}
    for number, label in enumerate(labels):
        if label.kind not in NONE:
            groups.setdefault(key_of(label), []).append(number)
    return groups


def _rows(result: Result, waited: _Waited, groups: Mapping[Key, Sequence[int]], *, named: bool) -> Iterator[Activity]:
    timeline = result.simulated
    flat = timeline.flat
    labels = flat.graph.labels
    by_label = np.argsort(flat.label, kind="stable")
    ends = np.searchsorted(flat.label[by_label], np.arange(len(labels) + 1))
    met, stands_for = arrivals(timeline), weights(timeline)
    names = [name for name, _, _ in groups]
    for (name, kind, device), members in groups.items():
        ops = np.concatenate([by_label[ends[number] : ends[number + 1]] for number in members])
        if met is not None:  # leaving a collective takes no time; waiting in one has rows of its own
            ops = ops[~met.leaves[ops]]
        if not len(ops):
            continue
        took, represented = timeline.end[ops] - timeline.start[ops], stands_for[ops]
        seconds = ticks.total(ticks.multiply(took, represented)) / FEMTO
        count = int(represented.sum())
        parts = waited.parts(members, waits=False)
        path_fs = sum(part.time_fs for part in parts)  # integers
        longest = np.sort(np.argsort(took)[-LONGEST:]) if kind == SERVED else [int(np.argmax(took))]
        own = _own(result, waited, ops[longest])
        costs = [(flat.graph.costs[number], size) for number, size in sizes(timeline, ops, represented)] if named else []
        title = name if names.count(name) == 1 else f"{name} on {_device(labels, members, device)}"
        yield Activity(
            title, count, seconds / count, ticks.covered(timeline.start[ops], timeline.end[ops]), path_fs,
            path_fs / (timeline.makespan_fs or 1), parts or own[1], waited.once(ops), rates(costs, seconds, own[0]),
        )  # fmt: skip


def _own(result: Result, waited: _Waited, ops: Ints) -> tuple[Cause, tuple[BoundTime, ...]]:
    """Return (longest cause of these ops, bounds of their time)."""
    timeline = result.simulated
    label = timeline.flat.graph.labels[int(timeline.flat.label[ops[0]])]
    spent: dict[Cause, int] = {}
    for piece in op_segments(timeline, ops):
        spent[piece.cause] = spent.get(piece.cause, 0) + piece.end_fs - piece.start_fs
    bound: dict[Bound, int] = {}
    for cause, time in spent.items():
        bound[waited.of(cause, label)] = bound.get(waited.of(cause, label), 0) + time
    longest = max(spent, key=lambda cause: (spent[cause], cause), default=Cause("time", label.device, label.name))
    return longest, tuple(longest_first(bound))


def _device(labels: Sequence[Label], members: Sequence[int], shared: str) -> str:
    devices = {labels[number].device for number in members}
    return shared if len(devices) > 1 else devices.pop()


def _waiting(result: Result) -> list[Activity]:
    """Return activities for the time that ranks wait for each other in collectives."""
    timeline = result.simulated
    met = arrivals(timeline)
    if met is None:
        return []
    labels, represented = timeline.flat.graph.labels, weights(timeline).tolist()
    waits: dict[str, tuple[int, int]] = {}  # (count, fs) by name
    for op in np.flatnonzero(met.leaves).tolist():
        name = labels[timeline.flat.label[op]].name
        count, time = waits.get(name, (0, 0))
        waits[name] = count + represented[op], time + represented[op] * int(met.waiting[op])
    straggler = Bound("waiting", "for the last rank")
    return [
        Activity(f"{name}: wait", count, time / count / FEMTO, time // count, 0, 0.0, (BoundTime(straggler, time),))
        for name, (count, time) in waits.items()
        if time
    ]
