"""Idle time of the last stage of a pipeline by cause: does the GPU starve, and why?

The critical path to the end of the pipeline names, for every moment, the op that the rest of the run waited for. It splits
the time in which no op of the last stage runs among the stages, exactly, in integer fs.

The stage that is working is not always the cause: if reading is the bottleneck, the last stage also waits while a batch is in the
decoder, but a faster decoder would only wait longer for the disk. The critical path contains only the disk.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from hwsim import ticks
from hwsim.graph.opgraph import BatchPipeline, BatchStage, Ints, Label
from hwsim.records import dataclass
from hwsim.results.critical import last_predecessors, walk_back
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO

FULL: Final = 0.95  # busy share above which the last stage is the bottleneck
ABOUT: Final = 1.1  # ratio of possible to actual rate above which a stage is not the bottleneck
SAME: Final = 1e-6  # relative difference of equal times
LONGEST: Final = 64  # batches of the longest period that is recognized
CHECKPOINTS: Final = "checkpoints"
SAVING: Final = ("checkpoint", "checkpoint copy")
OTHERS: Final = "the others"  # waits for the last stage of another program


@dataclass(frozen=True, slots=True)
class StageUse:
    """The use of a stage between two instants.

    Args:
        name: name of the stage.
        device: its device.
        busy_fs: busy time (fs).
        rate: maximum rate with the limit of `ahead` (batches/s).
        workers: number of workers.
        in_flight: batches in flight at that rate, fewer than `workers` if `ahead` limits them.
        alone: maximum rate with these batches in flight, without other stages (batches/s).
    """

    name: str
    device: str
    busy_fs: int
    rate: float
    workers: int = 1
    in_flight: int = 1
    alone: float = 0.0


class StageWait(NamedTuple):
    """The idle time of the last stage caused by ops of one name; device "": no particular one."""

    name: str
    device: str
    time_fs: int


@dataclass(frozen=True, slots=True)
class BatchRange:
    """A range of batches, from the end of the previous batch to the end of its last one, at the last stage.

    Args:
        epoch: number of the epoch (from 1) whose steady part this is; 0: the whole run.
        batches: number of batches.
        start_fs: begin (fs).
        end_fs: end (fs).
        stages: use of each stage.
        waits: idle time of the last stage by cause, the longest first.
    """

    epoch: int
    batches: int
    start_fs: int
    end_fs: int
    stages: tuple[StageUse, ...]
    waits: tuple[StageWait, ...]

    @property
    def time_fs(self) -> int:
        """Duration (fs)."""
        return self.end_fs - self.start_fs

    @property
    def idle_fs(self) -> int:
        """Idle time of the last stage (fs)."""
        return sum(wait.time_fs for wait in self.waits)

    @property
    def busy(self) -> float:
        """Busy share of the last stage."""
        return 1 - self.idle_fs / self.time_fs if self.time_fs else 0.0

    @property
    def rate(self) -> float:
        """Batches per second."""
        return self.batches * FEMTO / self.time_fs if self.time_fs else 0.0

    @property
    def saving_fs(self) -> int:
        """Time in which the last stage waits for checkpoints (fs)."""
        return sum(wait.time_fs for wait in self.waits if wait.name in SAVING)

    @property
    def slowest(self) -> tuple[StageUse, StageUse | None]:
        """The bottleneck, and the stage that would be the next one; `CHECKPOINTS` may be one.

        The bottleneck is the last stage if it is busy for more than `FULL` of the time and no earlier stage is slower, or the
        checkpoints if it waits for them for most of its idle time, or else the earlier stage with the lowest maximum rate.
        """
        last = self.stages[-1]
        others = sorted(self.stages[:-1], key=lambda stage: stage.rate)
        if not others or (self.busy >= FULL and last.rate <= others[0].rate):
            stages = [last, *others]
        elif 2 * self.saving_fs > self.idle_fs:
            stages = [StageUse(CHECKPOINTS, "", self.saving_fs, self.rate), *sorted(self.stages, key=lambda stage: stage.rate)]
        elif others[0].rate <= self.rate * ABOUT or others[0].rate <= last.rate:
            stages = [others[0], *sorted((last, *others[1:]), key=lambda stage: stage.rate)]
        else:
            blamed = self.waits[0]
            stages = [StageUse(blamed.name, blamed.device, blamed.time_fs, self.rate), last]
        rest = sorted((replace(stage, rate=stage.alone) for stage in stages[1:]), key=lambda stage: stage.rate)
        return stages[0], rest[0] if rest else None


@dataclass(frozen=True, slots=True)
class PipelineUse:
    """The use of the pipeline of a program: in the whole run, and in the steady part of each epoch.

    Args:
        program: name of the program.
        device: device of the last stage.
        batch: samples per batch; 0: unknown.
        whole: whole run.
        epochs: steady part of each epoch.
        samples: samples of the dataset of all programs; 0: unknown.
    """

    program: str
    device: str
    batch: int
    whole: BatchRange
    epochs: tuple[BatchRange, ...]
    samples: int

    @property
    def settled(self) -> BatchRange:
        """Steady part of the last epoch."""
        return (self.epochs or (self.whole,))[-1]


@dataclass(frozen=True)
class BufferLevel:
    """The number of finished batches between two stages over time.

    Args:
        program: name of the program.
        before: stage that fills the buffer.
        then: stage that empties it.
        room: capacity of the buffer (batches).
        time: times of changes (fs).
        level: batches in the buffer from each time on.
    """

    program: str
    before: str
    then: str
    room: int
    time: Ints
    level: Ints


def buffers(timeline: Timeline) -> tuple[BufferLevel, ...]:
    """Return the buffers between the stages of all pipelines, in the order of the workload."""
    ops_of = _by_label(timeline)
    filled = []
    for line in timeline.flat.graph.lines:
        for before, then in pairwise(line.stages):
            left, taken = _leaving(timeline, ops_of[before.last]), ops_of[then.first]
            if len(left) != len(taken) or not len(left):
                continue
            taken = _taken(timeline, left, taken, ops_of[then.last], then.at_once if then is not line.stages[-1] else 0)
            times = np.concatenate([timeline.end[left], taken])
            change = np.concatenate([np.ones(len(left), np.int64), -np.ones(len(taken), np.int64)])
            order = np.argsort(times, kind="stable")
            time, level = times[order], np.cumsum(change[order])
            kept = np.flatnonzero(np.concatenate([(time[1:] != time[:-1]).astype(np.bool_), [True]]))  # last of an instant
            time, level = np.concatenate([np.zeros(1, times.dtype), time[kept]]), np.concatenate([[0], level[kept]])
            filled.append(BufferLevel(line.program, before.name, then.name, before.ahead, time, level))
    return tuple(filled)


def _taken(timeline: Timeline, left: Ints, first: Ints, last: Ints, at_once: int) -> Ints:
    """Return the times at which batches leave a buffer (fs); a free worker takes one even if its output buffer is full.

    Args:
        timeline: timeline of the run.
        left: last ops of the stage that fills the buffer.
        first: first ops of the stage that empties it.
        last: last ops of the stage that empties it.
        at_once: workers of that stage; 0: it takes a batch when its op begins.
    """
    begins = timeline.start[first]
    last = _leaving(timeline, last)
    if not at_once or len(last) != len(first):
        return begins
    free = np.concatenate([np.zeros(min(at_once, len(last)), begins.dtype), timeline.end[last][:-at_once]])
    taken: Ints = np.minimum(begins, np.maximum(timeline.end[left], free))
    return taken


def _by_label(timeline: Timeline) -> dict[Label, Ints]:
    """Return the ops of each label, in order."""
    graph = timeline.flat.graph
    order = np.argsort(timeline.flat.label, kind="stable")
    bounds = np.searchsorted(timeline.flat.label[order], np.arange(len(graph.labels) + 1))
    ops: dict[Label, Ints] = defaultdict(lambda: np.empty(0, np.int64))
    for number, label in enumerate(graph.labels):
        ops[label] = order[bounds[number] : bounds[number + 1]]
    return ops


def pipelines(timeline: Timeline) -> tuple[PipelineUse, ...]:
    """Return the use of each simulated pipeline, in the order of the workload."""
    lines = [line for line in timeline.flat.graph.lines if sum(line.epochs)]
    if not lines:
        return ()
    if "pipelines" not in timeline.found:
        timeline.found["pipelines"] = tuple(_uses(timeline, lines))
    uses: tuple[PipelineUse, ...] = timeline.found["pipelines"]
    return uses


def _uses(timeline: Timeline, lines: Sequence[BatchPipeline]) -> Iterator[PipelineUse]:
    graph = timeline.flat.graph
    ops_of = _by_label(timeline)
    before = last_predecessors(timeline).tolist()
    last = {label: line.program for line in lines for label in line.stages[-1].ops}
    names = [(label.name, label.device, last.get(label, "")) for label in graph.labels]
    uses = (_of(line, timeline, ops_of, before, names) for line in lines)
    yield from (use for use in uses if use is not None)


def epoch_s(uses: Sequence[PipelineUse]) -> float:
    """Return the time of an epoch at the rate of the steady part (s); without a dataset, of the batches per epoch.

    Args:
        uses: pipelines of all programs that share the dataset.
    """
    rates = [use.settled.rate for use in uses]
    if uses[0].samples and uses[0].batch:
        return uses[0].samples / math.fsum(rate * uses[0].batch for rate in rates)
    return math.fsum(use.whole.batches / max(1, len(use.epochs)) for use in uses) / math.fsum(rates)


def _of(
    line: BatchPipeline,
    timeline: Timeline,
    ops_of: Mapping[Label, Ints],
    before: list[int],
    names: Sequence[tuple[str, str, str]],
) -> PipelineUse | None:
    none = np.empty(0, np.int64)
    spans = [(ops_of.get(stage.first, none), _leaving(timeline, ops_of.get(stage.last, none))) for stage in line.stages]
    total = len(spans[-1][1])
    if not total or any(len(first) != total or len(last) != total for first, last in spans):
        return None  # another program represents it
    counts = line.epochs if total == sum(line.epochs) else (total,)  # only a part of the batches was simulated
    path = walk_back(int(spans[-1][1][-1]), before)
    blame = _Blame(timeline, path, [_blamed(names[number], line) for number in timeline.flat.label[path].tolist()])
    busy = [_covered(timeline, [ops_of.get(label, none) for label in stage.ops]) for stage in line.stages]
    ends = timeline.end[spans[-1][1]]
    begin = int(timeline.start[spans[0][0][0]])

    def phase(epoch: int, low: int, high: int) -> BatchRange:
        """Return the phase of the batches low ... high - 1."""
        since, until = (int(ends[low - 1]) if low else begin), int(ends[high - 1])
        took = [
            ticks.total(timeline.end[last[low:high]] - timeline.start[first[low:high]]) / (high - low) / FEMTO
            for first, last in spans
        ]
        stages = []
        for number, (stage, (starts, stops)) in enumerate(zip(line.stages, busy, strict=True)):
            rate, under_way = _rate(line.stages[number:], took[number:])
            used = _within(starts, stops, since, until)
            alone = under_way / took[number] if took[number] > 0 else float("inf")
            stages.append(StageUse(stage.name, stage.device, used, rate, stage.at_once, under_way, alone))
        return BatchRange(epoch, high - low, since, until, tuple(stages), blame.of_gaps(*busy[-1], since, until))

    epochs, low = [], 0
    for number, count in enumerate(counts):
        if count:
            epochs.append(phase(number + 1, *steady_batches(ends, low, count, max(stage.at_once for stage in line.stages))))
        low += count
    return PipelineUse(line.program, line.stages[-1].device, line.batch, phase(0, 0, total), tuple(epochs), line.samples)


def _rate(stages: Sequence[BatchStage], took: Sequence[float]) -> tuple[float, int]:
    """Return (maximum rate of the first of these stages (batches/s), batches in flight at that rate).

    Between this stage and a later one there are at most the buffered batches and those in the later stage. By Little's law, the
    rate is at most their number divided by the time that a batch spends there.
    """
    under_way = stages[0].at_once
    rate = under_way / took[0] if took[0] > 0 else float("inf")
    room, way = 0, took[0]
    for before, then, time in zip(stages, stages[1:], took[1:], strict=False):
        room += before.ahead
        way += time
        under_way = min(under_way, room + then.at_once)
        rate = min(rate, (room + then.at_once) / way) if took[0] > 0 and way > 0 else rate
    return rate, under_way


def _leaving(timeline: Timeline, ops: Ints) -> Ints:
    """Return the ops without a cost if others have one: the end of a collective may have the label of its only phase."""
    free = ops[timeline.flat.cost[ops] < 0]
    return free if 0 < len(free) < len(ops) else ops


def steady_batches(ends: Ints, low: int, count: int, workers: int) -> tuple[int, int]:
    """Return (first, last + 1) of the steady batches: the middle half of at least 8, else all.

    Equal workers finish their batches together, so the steady batches are whole rounds of the stage with the most workers. If
    buffers keep fewer of them busy, the steady batches are whole periods of the ends, of at most `LONGEST` batches.

    >>> steady_batches(np.arange(1, 17), 0, 16, 3)
    (4, 10)
    >>> steady_batches(np.array([10 * (batch // 3) for batch in range(1, 17)]), 0, 16, 1)
    (4, 10)
    """
    steady = count - count // 4 * 2 if count >= 8 else count
    first = low + (count - steady) // 2
    steady -= steady % workers if count >= 8 and workers <= steady else 0
    for period in range(1, min(LONGEST, steady // 2) + 1 if count >= 8 else 0):
        spans = ends[first - 1 + period : first + steady] - ends[first - 1 : first + steady - period]
        if spans.max() - spans.min() <= SAME * spans.max():
            return first, first + steady - steady % period
    return first, first + steady


def _blamed(name: tuple[str, str, str], line: BatchPipeline) -> tuple[str, str]:
    """Return name and device of an op, or `OTHERS` if it belongs to the last stage of another program."""
    called, device, last_of = name
    return (OTHERS, "") if last_of not in ("", line.program) else (called, device)


def _covered(timeline: Timeline, groups: list[Ints]) -> tuple[Ints, Ints]:
    """Return starts and ends of the disjoint times in which at least one of these ops runs, in order."""
    ops = np.concatenate(groups)
    start, end = timeline.start[ops], timeline.end[ops]
    kept = np.flatnonzero((end > start).astype(np.bool_))
    if not len(kept):
        return start[:0], end[:0]
    order = kept[np.argsort(start[kept], kind="stable")]
    start, end = start[order], np.maximum.accumulate(end[order])
    fresh = np.flatnonzero((start[1:] > end[:-1]).astype(np.bool_)) + 1
    return start[np.concatenate([[0], fresh])], end[np.concatenate([fresh - 1, [len(end) - 1]])]


def _within(starts: Ints, ends: Ints, since: int, until: int) -> int:
    """Return the total of these times between two instants (fs)."""
    return ticks.total(np.maximum(np.minimum(ends, until) - np.maximum(starts, since), 0))


class _Blame:
    """The op of a critical path at every moment."""

    def __init__(self, timeline: Timeline, path: Ints, names: Sequence[tuple[str, str]]) -> None:
        self._ends = timeline.end[path]
        begins = np.concatenate([np.zeros(1, self._ends.dtype), self._ends[:-1]])
        took = self._ends - begins
        self._begins = begins
        self._names = tuple(dict.fromkeys(names))
        numbers = {name: number for number, name in enumerate(self._names)}
        self._who = np.array([numbers[name] for name in names], np.int64)
        self._until = [ticks.running_total(np.where(self._who == number, took, 0)) for number in range(len(self._names))]

    def of_gaps(self, starts: Ints, ends: Ints, since: int, until: int) -> tuple[StageWait, ...]:
        """Return the time between disjoint, ordered spans from `since` to `until` by op, the longest first."""
        kept = np.flatnonzero(((ends > since) & (starts < until)).astype(np.bool_))
        gap_from = np.concatenate([ticks.matching([since], starts), np.minimum(ends[kept], until)])
        gap_to = np.concatenate([np.maximum(starts[kept], since), ticks.matching([until], starts)])
        waits = [StageWait(*name, total) for name, total in self._totals(gap_from, gap_to) if total]
        return tuple(sorted(waits, key=lambda wait: (-wait.time_fs, wait.name, wait.device)))

    def _totals(self, gap_from: Ints, gap_to: Ints) -> Iterator[tuple[tuple[str, str], int]]:
        last = len(self._ends) - 1
        sides = [(time, np.minimum(np.searchsorted(self._ends, time, side="left"), last)) for time in (gap_from, gap_to)]
        for number, name in enumerate(self._names):
            until = self._until[number]
            low, high = (
                until[piece] - np.where(self._who[piece] == number, np.maximum(self._ends[piece] - time, 0), 0)
                for time, piece in sides
            )
            yield name, ticks.total(high - low)
