"""The time of a run by category, on the critical path and on each GPU, and its ops, for comparison with a recording.

If several categories overlap on a GPU, kernels have precedence over transfers, and transfers over waiting. Idle time is
attributed to
the cause for which the next op waits: host, launch or another GPU. Both breakdowns add up to the time of the run exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Final, Literal

import numpy as np

from hwsim.comparing.recorded import families
from hwsim.comparing.recorded.time_categories import SHARED, TimeCategory, gpus_of, of_cause, of_op
from hwsim.formats import natural
from hwsim.graph.opgraph import Ints, Label
from hwsim.records import dataclass
from hwsim.results.critical import critical_path, last_predecessors
from hwsim.results.interval import Interval
from hwsim.results.ops import Ops, weights
from hwsim.results.result import Result
from hwsim.results.timeline import Timeline
from hwsim.spec import Warning
from hwsim.ticks import FEMTO, LARGEST, TooLong, column, femtoseconds

Spent = Mapping[TimeCategory, int]  # fs
REPLAYED: Final = frozenset({"kernel", "copy", "set", "collective", "op", "call"})  # kinds of ops in replays
_BUSY: Final = (
    TimeCategory.KERNELS,
    TimeCategory.TRANSFER,
    TimeCategory.WAITING,
)  # categories of a busy GPU, in order of precedence


@dataclass(frozen=True, slots=True)
class DeviceTime:
    """A GPU, or the host of a run without GPUs, and its time by category, which adds up to the run."""

    name: str
    spent: Spent
    is_gpu: bool


@dataclass(frozen=True, slots=True, eq=False)
class OpSpans:
    """The ops of GPUs and hosts as columns, in order of start.

    Args:
        name: index of the name.
        device: index of the device.
        place: `TimeCategory`.
        begin: start (fs).
        end: end (fs).
        waited: time at the start in which it waits for other ranks (fs).
        count: number of ops that it represents.
    """

    name: Ints
    device: Ints
    place: Ints
    begin: Ints
    end: Ints
    waited: Ints
    count: Ints


@dataclass(frozen=True, slots=True)
class OpTime:
    """The ops of one name: count, total time without waiting (s), and waiting for other ranks (s)."""

    name: str
    family: str
    times: float
    total_s: float
    wait_s: float


@dataclass(frozen=True)
class ComparedRun:
    """A recorded or simulated run.

    Args:
        how: "recorded" or "simulated".
        title: description.
        makespan_fs: time of the run (fs).
        steps: number of training steps, by which times are divided.
        path: time by category on the critical path (fs).
        devices: GPUs, in order.
        device_names: table of device names.
        names: table of (name, kind) of ops.
        spans: ops of GPUs and hosts.
        known_families: known kinds of work, by op name.
        notes: assumptions and omitted events.
        interval: interval of a simulated run.
        warnings: warnings of a simulated run.
    """

    how: Literal["recorded", "simulated"]
    title: str
    makespan_fs: int
    steps: int
    path: Spent
    devices: tuple[DeviceTime, ...]
    device_names: tuple[str, ...]
    names: tuple[tuple[str, str], ...]
    spans: OpSpans
    known_families: Mapping[str, str]
    notes: tuple[str, ...] = ()
    interval: Interval | None = None
    warnings: tuple[Warning, ...] = ()

    @property
    def makespan_s(self) -> float:
        """Time of the run (s)."""
        return self.makespan_fs / FEMTO

    @property
    def step_s(self) -> float:
        """Time per step (s)."""
        return self.makespan_s / self.steps

    @cached_property
    def gpus(self) -> int:
        """Number of GPUs, including identical GPUs of a folded run."""
        spans = self.spans
        numbers = [self.device_names.index(device.name) for device in self.devices]
        return max(1, sum(int(spans.count[spans.device == number].max(initial=1)) for number in numbers))

    @cached_property
    def mean(self) -> Spent:
        """Time of a GPU by category, averaged over all GPUs (fs)."""
        count = max(1, len(self.devices))
        return {where: sum(device.spent[where] for device in self.devices) // count for where in TimeCategory}  # integers

    @cached_property
    def ops(self) -> Mapping[str, OpTime]:
        """Ops of the GPUs, by name."""
        spans = self.spans
        chosen = np.flatnonzero(np.isin(spans.place, (TimeCategory.KERNELS, TimeCategory.TRANSFER)))
        name = spans.name[chosen]
        took = (spans.end - spans.begin - spans.waited)[chosen].astype(np.float64) / FEMTO * spans.count[chosen]
        waited = spans.waited[chosen].astype(np.float64) / FEMTO * spans.count[chosen]
        name_count = len(self.names)
        times, total, waits = (
            np.bincount(name, weight, name_count) for weight in (spans.count[chosen].astype(np.float64), took, waited)
        )
        rows: dict[str, OpTime] = {}
        for number in np.flatnonzero(times).tolist():
            shown, kind = self.names[number]
            family = self.known_families.get(shown) or families.of_op(shown, kind)
            before = rows.get(shown, OpTime(shown, family, 0, 0.0, 0.0))
            rows[shown] = OpTime(
                shown, family, before.times + float(times[number]), before.total_s + float(total[number]),
                before.wait_s + float(waits[number]),
            )  # fmt: skip
        return rows


def of_timeline(
    result: Result,
    how: Literal["recorded", "simulated"],
    title: str,
    steps: int,
    works: Mapping[str, str],
    notes: tuple[str, ...],
) -> ComparedRun:
    """Return the time by category and the ops of a run.

    Args:
        works: known kinds of work, by op name.
    """
    timeline = result.timeline
    flat, labels = timeline.flat, timeline.flat.graph.labels
    gpus = gpus_of({label.device for label in labels}, result.devices)
    place_of = np.array([of_op(label, gpus) for label in labels] + [TimeCategory.WAITING], np.int64)
    place = place_of[flat.label]
    called = [(_called(label), label.kind) for label in labels]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(called))}
    name_of = np.array([numbers[name] for name in called], np.int64)
    shown = tuple(dict.fromkeys(label.device for label in labels if label.device))
    numbered = {name: number for number, name in enumerate(shown)}
    device_of = np.array([numbered.get(label.device, -1) for label in labels], np.int64)
    rows = Ops(timeline)
    ops = rows.numbers
    ops = ops[np.argsort(rows.begin[ops], kind="stable")]
    if timeline.makespan_fs > LARGEST:
        raise TooLong(timeline.makespan_fs / FEMTO, "the run, which is compared with a recording,")
    latency = column([*(femtoseconds(cost.demand.latency) for cost in flat.graph.costs), 0])[flat.cost]
    begin = rows.begin.astype(np.int64).copy()  # fits
    is_kernel = place == TimeCategory.KERNELS
    begin[is_kernel] = np.minimum(begin + latency, timeline.end)[is_kernel]  # the launch latency is no part of a kernel
    begin, waited, entry = _arrivals(timeline, begin, rows.waiting.astype(np.int64))
    spans = OpSpans(
        name_of[flat.label[ops]], device_of[flat.label[ops]], place[ops], begin[ops], timeline.end[ops].astype(np.int64),  # fits
        waited[ops], weights(timeline)[ops],
    )  # fmt: skip
    path = critical_path(timeline)
    spent = dict.fromkeys(TimeCategory, 0)
    pairs, index = np.unique(np.column_stack([flat.label[path.op], path.cause]).reshape(-1, 2), axis=0, return_inverse=True)
    where = [of_cause(labels[label], path.causes[cause], gpus) for label, cause in pairs.tolist()]
    for which, took in zip(index.reshape(-1).tolist(), (path.end - path.start).tolist(), strict=True):
        spent[where[which]] += took
    shared = np.array([label.kind in SHARED for label in labels] + [False], np.bool_)[flat.label]
    seen = np.where(
        np.isin(place, _BUSY) & ~shared, TimeCategory.WAITING, place
    )  # category of an op for other GPUs that wait for it
    idle = _Idle(timeline, latency, place, seen, last_predecessors(timeline))
    computing = _devices(spans, shown, entry[ops], idle, timeline.makespan_fs, gpus)
    return ComparedRun(
        how, title, timeline.makespan_fs, steps, spent, computing, shown, tuple(numbers), spans, works, notes,
        interval=result.interval if how == "simulated" and result.sure and not result.of_kernels else None,
        warnings=result.warnings if how == "simulated" else (),
    )  # fmt: skip


def _called(label: Label) -> str:
    """Return the name of an op: the recorded one in a replay, else without the suffix of the program."""
    return label.name if label.kind in REPLAYED else label.name.partition(": ")[0] or label.kind


def _devices(
    spans: OpSpans, names: tuple[str, ...], entry: Ints, idle: _Idle, makespan: int, gpus: frozenset[str]
) -> tuple[DeviceTime, ...]:
    """Return the GPUs that compute, or the hosts of a run without GPUs."""
    works = np.isin(spans.place, (TimeCategory.KERNELS, TimeCategory.TRANSFER))
    numbered = {name: number for number, name in enumerate(names)}
    return tuple(
        DeviceTime(name, _of_device(spans, number, entry, idle, makespan), name in gpus)
        for name, number in sorted(numbered.items(), key=lambda row: natural(row[0]))
        if (name in gpus or not gpus) and bool((works & (spans.device == number)).any())
    )


def _arrivals(timeline: Timeline, begin: Ints, waiting: Ints) -> tuple[Ints, Ints, Ints]:
    """Return (begin, waiting, entry) of ops; a collective of a replay begins at the arrival of its rank and waits for the last.

    `entry` is the first op of each op on its device: its arrival if it has one, else itself.
    """
    flat = timeline.flat
    labels = flat.graph.labels
    entry = np.arange(len(flat))
    arrives = np.array([label.kind == "arrive" for label in labels] + [False], np.bool_)[flat.label]
    replayed = np.array([label.kind == "collective" for label in labels] + [False], np.bool_)[flat.label]
    queued = np.flatnonzero(flat.queue >= 0)
    queued = queued[np.argsort(flat.queue[queued], kind="stable")]
    came, then = queued[:-1], queued[1:]
    pairs = arrives[came] & ~arrives[then] & (flat.queue[came] == flat.queue[then])
    came, then = came[pairs], then[pairs]
    entry[then] = came
    came, then = came[replayed[then]], then[replayed[then]]
    begin, waiting = begin.copy(), waiting.copy()
    waiting[then] = timeline.start[then] - timeline.start[came]
    begin[then] = timeline.start[came]
    return begin, waiting, entry


class _Idle:
    """The attribution of the idle time of GPUs."""

    def __init__(self, timeline: Timeline, latency: Ints, place: Ints, seen: Ints, before: Ints) -> None:
        self._start, self._end, self._latency = timeline.start.tolist(), timeline.end.tolist(), latency.tolist()
        self._place, self._seen, self._before = place.tolist(), seen.tolist(), before.tolist()
        self.last = int(np.flatnonzero(timeline.end == timeline.makespan_fs)[0]) if len(timeline) else -1

    def divided(self, low: int, high: int, op: int, spent: dict[TimeCategory, int]) -> None:
        """Attribute the idle time from low to high, before an op that starts at high, to the causes of its wait."""
        until = high
        while op >= 0 and until > low:
            begin = self._start[op]
            launched = min(begin + self._latency[op], self._end[op]) if self._place[op] == TimeCategory.KERNELS else begin
            for since, where in ((launched, TimeCategory(self._seen[op])), (begin, TimeCategory.LAUNCH)):
                if until > max(low, since):
                    spent[where] += until - max(low, since)
                    until = max(low, since)
            op = self._before[op]
            ended = self._end[op] if op >= 0 else 0
            if until > max(low, ended):
                spent[TimeCategory.WAITING] += until - max(low, ended)
                until = max(low, ended)
        if until > low:
            spent[TimeCategory.OUTSIDE] += until - low


def _of_device(spans: OpSpans, device: int, entry: Ints, idle: _Idle, makespan: int) -> Spent:
    """Return the time of a device by category; entry: first op of each span."""
    mine = np.flatnonzero((spans.device == device) & np.isin(spans.place, (TimeCategory.KERNELS, TimeCategory.TRANSFER)))
    spent = dict.fromkeys(TimeCategory, 0)
    begin, end, waited = spans.begin[mine], spans.end[mine], spans.waited[mine]
    is_kernel = spans.place[mine] == TimeCategory.KERNELS
    parts = [
        (begin[is_kernel], end[is_kernel]),
        ((begin + waited)[~is_kernel], end[~is_kernel]),
        (begin[waited > 0], (begin + waited)[waited > 0]),
    ]
    times = np.unique(np.concatenate([np.array([0, makespan], np.int64), *(ends for part in parts for ends in part)]))
    lengths = np.diff(times)
    state = np.full(len(lengths), -1, np.int64)
    for number in (2, 1, 0):  # later ones have precedence
        low, high = parts[number]
        inside = np.zeros(len(times), np.int64)
        np.add.at(inside, np.searchsorted(times, low), 1)
        np.add.at(inside, np.searchsorted(times, high), -1)
        state[np.cumsum(inside)[:-1] > 0] = number
    for number, place in enumerate(_BUSY):
        spent[place] += int(lengths[state == number].sum())
    heads = np.flatnonzero((state < 0) & np.concatenate([[True], state[:-1] >= 0]))
    tails = np.flatnonzero((state < 0) & np.concatenate([state[1:] >= 0, [True]]))
    order = np.argsort(begin, kind="stable")
    next_op = np.searchsorted(begin[order], times[tails + 1])
    for low, high, place in zip(times[heads].tolist(), times[tails + 1].tolist(), next_op.tolist(), strict=True):
        op = int(entry[mine[order[place]]]) if place < len(order) else idle.last
        idle.divided(low, high, op, spent)
    return spent
