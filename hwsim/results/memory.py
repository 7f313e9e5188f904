"""Memory that the buffers of a run occupy on each device over time.

A buffer is allocated when its op is inserted into its queue, or when the op starts (without a runtime, in a compiled body, and
with `allocate: run`), and freed by one of these rules:

    scope      when its name refers to another buffer and all its users have ended. A Python name refers to a buffer of MXNet or
               numpy, and so do ops that are still queued.
    last-use   when all its users have ended; without users, when its op has ended.
    stream     when its name refers to another buffer: PyTorch's allocator reuses it in stream order, which is safe before its
               users have ended.

The last buffer of a name stays until the end of the run; with last-use only if it is a result, that is, not read after its last
write. A name refers to another buffer once that one is allocated, so both exist for a moment. At one instant, ends are
processed first, then allocations, then lost names.

Error: d2l 13.2.4 measures that a process grows by 21.6 MB where the peak of this model grows by 18.9 MB, and by 3.2 MB where it
does not grow. Not included: queued ops themselves (about 1 kB each in MXNet), memory of the device's software and context,
rounding by the allocator, and values of unknown size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.devices import Cpu, Gpu, Memory, Sockets
from hwsim.formats import format_quantity
from hwsim.graph.opgraph import Buffer, Ints, Mark, OpGraph, ServiceMemory
from hwsim.machine import Machine
from hwsim.records import dataclass
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO

NAMED: Final = 4  # largest number of values named in a verdict


@dataclass(frozen=True, slots=True)
class Holding:
    """Buffers of one value at the peak.

    Args:
        value: name of the value.
        op: name of the op that made it.
        count: number of buffers.
        bytes: total size (B).
    """

    value: str
    op: str
    count: int
    bytes: int

    def __str__(self) -> str:
        times = f"{self.count} x " if self.count > 1 else ""
        return f"{times}'{self.value}' {format_quantity(self.bytes, 'B')} (made by '{self.op}')"


@dataclass(frozen=True)
class DeviceMemory:
    """The memory use of one device.

    Args:
        device: name of the device.
        size: memory size (B); None if the machine does not state it.
        time, taken: columns: taken[i] bytes are in use from time[i] (fs) on. An instant has two entries: after the
            allocations, and
            after the releases.
        allocations: buffers at the peak, largest first.
        spread: relative uncertainty of the bytes where a model estimates them; 0 if exact.
    """

    device: str
    size: int | None
    time: Ints
    taken: Ints
    allocations: tuple[Holding, ...] = ()
    spread: float = 0.0

    @cached_property
    def _at(self) -> int:
        return int(np.argmax(self.taken)) if len(self.taken) else 0

    @property
    def peak(self) -> int:
        """Peak memory use (B)."""
        return int(self.taken[self._at]) if len(self.taken) else 0

    @property
    def at_fs(self) -> int:
        """First time of the peak (fs)."""
        return int(self.time[self._at]) if len(self.time) else 0

    @property
    def at_s(self) -> float:
        return self.at_fs / FEMTO

    @property
    def fits(self) -> bool:
        """Whether the peak fits in the memory at the low end of its uncertainty; true if the memory size is unknown."""
        return self.size is None or self.peak * (1.0 - self.spread) <= self.size

    @property
    def tight(self) -> bool:
        """Whether the peak fits, but not at the high end of its uncertainty."""
        return self.size is not None and self.fits and self.peak * (1.0 + self.spread) > self.size

    def verdict(self) -> str:
        """Return the shortage in one sentence; "" if the peak fits.

        Example: gpu needs 14.2 GB at 12.0 ms and has 11.0 GB, over by 3.20 GB: 27 x 'X' 13.5 GB (made by 'random'), ...
        """
        if self.size is None or self.fits:
            return ""
        amounts = [format_quantity(size, "B") for size in (self.peak, self.size, self.peak - self.size)]
        when = format_quantity(self.at_s, "s")
        held = ", ".join(map(str, self.allocations[:NAMED]))
        more = f", {len(self.allocations) - NAMED} more" if len(self.allocations) > NAMED else ""
        return f"{self.device} needs {amounts[0]} at {when} and has {amounts[1]}, over by {amounts[2]}: {held}{more}"


def memory_sizes(machine: Machine, graph: OpGraph, held: Sequence[ServiceMemory] = ()) -> dict[str, int | None]:
    """Return the memory size of each device with a buffer (B); None if the machine does not state it."""
    sizes: dict[str, int | None] = {}
    for name in sorted({buffer.device for buffer in graph.buffers} | {life.device for life in held}):
        size: float | None = None
        match machine.device(name).model:
            case Cpu(memory=memory) | Gpu(memory=memory):
                size = memory.size
            case Sockets(model=model, names=names):
                size = None if model.memory.size is None else model.memory.size * len(names)
            case Memory(size=capacity):
                size = capacity
        sizes[name] = None if size is None else int(size)
    return sizes


def memory(timeline: Timeline, sizes: Mapping[str, int | None], held: Sequence[ServiceMemory] = ()) -> tuple[DeviceMemory, ...]:
    """Return the memory use of each device with buffers of known size, in the order of `sizes`, then by name."""
    graph = timeline.flat.graph
    bases = np.concatenate([[0], np.cumsum([block.total for block in graph.blocks])]).astype(np.int64)
    lives = [
        *(_Lives.of(buffer, timeline, bases) for buffer in graph.buffers),
        *(_Lives.of_held(life, timeline) for life in held),
    ]
    by_device: dict[str, list[_Lives]] = {}
    for life in lives:
        by_device.setdefault(life.buffer.device, []).append(life)
    devices = dict.fromkeys([*sizes, *sorted(by_device)])
    return tuple(_device(name, sizes.get(name), by_device[name]) for name in devices if name in by_device)


@dataclass(frozen=True, slots=True)
class _Lives:
    """The lifetimes of a buffer, one per repetition.

    Args:
        buffer: buffer.
        begin, end: times of allocation and release (fs).
        lost: whether the release is a lost name instead of the end of an op.
        kept: whether the buffer stays until the end of the run.
    """

    buffer: Buffer
    begin: Ints
    end: Ints
    lost: NDArray[np.bool_]
    kept: bool

    @classmethod
    def of_held(cls, held: ServiceMemory, timeline: Timeline) -> _Lives:
        since, until = (ticks.matching([time_fs or 0], timeline.end) for time_fs in (held.since, held.until))
        buffer = Buffer(held.value, held.by, held.device, held.bytes, "scope", Mark(-1, -1), ())
        return cls(buffer, since, until, np.zeros(1, np.bool_), held.until is None)

    @classmethod
    def of(cls, buffer: Buffer, timeline: Timeline, bases: Ints) -> _Lives:
        begin = timeline.start[_ops(buffer, buffer.made, timeline, bases)]
        ended = timeline.end[_ops(buffer, buffer.users[0], timeline, bases)] if buffer.users else begin
        for mark in buffer.users[1:]:
            ended = np.maximum(ended, timeline.end[_ops(buffer, mark, timeline, bases)])
        if buffer.renamed is None:
            kept = buffer.free != "last-use" or len(buffer.users) < 2
            return cls(buffer, begin, ended, np.zeros(len(begin), np.bool_), kept)
        if buffer.free == "last-use":
            return cls(buffer, begin, ended, np.zeros(len(begin), np.bool_), False)
        renamed = timeline.start[_ops(buffer, buffer.renamed, timeline, bases)]
        if buffer.free == "stream":
            return cls(buffer, begin, renamed, np.ones(len(begin), np.bool_), False)
        return cls(buffer, begin, np.maximum(renamed, ended), ended <= renamed, False)


def _ops(buffer: Buffer, mark: Mark, timeline: Timeline, bases: Ints) -> Ints:
    """Return the op numbers of a mark, one per repetition of the buffer."""
    block = timeline.flat.graph.blocks[mark.block]
    if mark.block == buffer.block:
        iterations = np.arange(buffer.first, buffer.first + buffer.times, dtype=np.int64) - mark.lag
    else:
        iterations = np.full(buffer.times, block.times - 1, np.int64)
    ops: Ints = bases[mark.block] + iterations * len(block) + mark.op
    return ops


def _device(name: str, size: int | None, lives: Sequence[_Lives]) -> DeviceMemory:
    begin = _sums((life.begin, life.buffer.bytes) for life in lives)
    ends = _sums((life.end[~life.lost], life.buffer.bytes) for life in lives if not life.kept)
    losses = _sums((life.end[life.lost], life.buffer.bytes) for life in lives if not life.kept)
    instants = ticks.distinct(np.concatenate([times for times, _ in (begin, ends, losses)]))
    taken = _until(begin, instants) - _until(ends, instants)
    after = _until(losses, instants)
    before = np.concatenate([[0], after[:-1]])
    time = np.repeat(instants, 2)
    both = np.stack([taken - before, taken - after], axis=1).ravel()
    alone = DeviceMemory(name, size, time, both)
    spread = max((life.buffer.spread for life in lives), default=0.0)
    return DeviceMemory(name, size, time, both, _holds(alone.at_fs, lives), spread)


def _sums(parts: Iterable[tuple[Ints, int]]) -> tuple[Ints, Ints]:
    """Return (sorted times, cumulative bytes)."""
    given = list(parts)
    times = np.concatenate([np.empty(0, np.int64), *(part for part, _ in given)])
    sizes = np.concatenate([np.empty(0, np.int64), *(ticks.column([size]).repeat(len(part)) for part, size in given)])
    order = np.argsort(times, kind="stable")
    return times[order], ticks.running_total(sizes[order])


def _until(sums: tuple[Ints, Ints], instants: Ints) -> Ints:
    """Return the cumulative bytes at each instant."""
    times, totals = sums
    found: Ints = np.concatenate([[0], totals])[np.searchsorted(times, instants, side="right")]
    return found


def _holds(peak: int, lives: Sequence[_Lives]) -> tuple[Holding, ...]:
    counts: Counter[tuple[str, str]] = Counter()
    sizes: Counter[tuple[str, str]] = Counter()
    for life in lives:
        held = life.begin <= peak
        if not life.kept:
            held &= (life.end > peak) | (life.lost & (life.end == peak))
        if count := int(held.sum()):
            key = life.buffer.value, life.buffer.op
            counts[key] += count
            sizes[key] += count * life.buffer.bytes
    rows = [Holding(value, op, counts[value, op], size) for (value, op), size in sizes.items()]
    return tuple(sorted(rows, key=lambda row: (-row.bytes, row.value, row.op)))
