"""Apply the rules to one rank: find the dependencies of its GPU ops and host threads, and add those in the file."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim.importers.blocking_calls import blocked
from hwsim.importers.collective_matches import CollectiveKernels, exchanges
from hwsim.importers.events import StreamIndex, Waits, waits, with_ends
from hwsim.importers.launches import GpuOps, LaunchLatencies, cuts_of_late, gpu_ops, latencies, launching_pieces
from hwsim.importers.recording import HOST, Ints, Rank
from hwsim.importers.slice_links import NONE, SliceLinks, link
from hwsim.importers.threads import ThreadDependencies, ThreadSegments, crossings, cut, outermost_calls
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class RankRules:
    """A rank with the dependencies that the rules find.

    Args:
        rank: the rank.
        linked: links between its slices.
        pieces: segments of its host threads.
        ops: its GPU ops.
        latencies: launch latencies and stream gaps.
        crossings: waits between host threads.
        waits: waits between GPU ops.
        blocked: host segments that wait for GPU ops.
        exchanges: its collective kernels.
        fed: rows (piece, GPU op) of dependencies in the file.
        launch_piece: host segment after which each GPU op is launched; -1 for none.
        ready: time at which the rules allow each GPU op to start, without waiting for other ranks (fs).
    """

    rank: Rank
    linked: SliceLinks
    pieces: ThreadSegments
    ops: GpuOps
    latencies: LaunchLatencies
    crossings: ThreadDependencies
    waits: Waits
    blocked: ThreadDependencies
    exchanges: CollectiveKernels
    fed: Ints
    launch_piece: Ints
    ready: Ints


def explained(rank: Rank) -> RankRules:
    """Apply the rules to a rank."""
    linked = link(rank)
    outer = outermost_calls(rank, linked)
    ops = gpu_ops(rank, linked, outer)
    pieces = cut(rank, linked, outer, cuts_of_late(rank, ops))
    streams = StreamIndex(rank, ops)
    named = stated(rank, ops, pieces)
    stream_waits = waits(rank, linked, streams, pieces).joined(named.gpu_gpu)
    fed = named.host_gpu[:, 1], pieces.end[named.host_gpu[:, 0]]
    timed = _timed(rank, ops, stream_waits, fed)
    more = with_ends(rank, StreamIndex(rank, timed.ops), timed.waits, timed.ready)
    if len(more.then) > len(timed.waits.then):
        timed = _timed(rank, timed.ops, more, fed)
    ops = timed.ops
    return RankRules(
        rank=rank, linked=linked, pieces=pieces, ops=ops, latencies=timed.latencies, waits=timed.waits, ready=timed.ready,
        crossings=crossings(pieces).joined(named.host_host), exchanges=exchanges(rank, linked, ops), fed=named.host_gpu,
        blocked=blocked(rank, linked, pieces, StreamIndex(rank, ops)).joined(named.gpu_host),
        launch_piece=launching_pieces(rank, pieces, ops),
    )  # fmt: skip


class _Timed(NamedTuple):
    ops: GpuOps
    waits: Waits
    latencies: LaunchLatencies
    ready: Ints


def _timed(rank: Rank, ops: GpuOps, stream_waits: Waits, fed: tuple[Ints, Ints]) -> _Timed:
    """Find when each GPU op may start; fed: (op, time) of GPU ops that wait for a host thread."""
    start = ops.start.copy()
    np.maximum.at(start, stream_waits.then, ops.end[stream_waits.before])
    start = np.minimum(start, ops.end)  # GPU ops may overlap by the resolution of the clock
    ops = replace(ops, start=start)
    possible = ops.end[stream_waits.before] <= start[stream_waits.then]
    stream_waits = replace(stream_waits, before=stream_waits.before[possible], then=stream_waits.then[possible])
    waited_for = np.full(len(ops), NONE, np.int64)
    np.maximum.at(waited_for, stream_waits.then, ops.end[stream_waits.before])
    np.maximum.at(waited_for, *fed)
    took = latencies(rank, ops, waited_for)
    has_launch = ops.call >= 0
    ready = np.where(has_launch, np.where(ops.is_late, np.minimum(ops.over, ops.start), ops.at + took.of), 0)
    follows = ops.previous >= 0
    ready = np.where(follows, np.maximum(ready, ops.end[ops.previous] + took.gap), ready)
    ready = np.maximum(ready, waited_for)
    if len(ops.overlapping):
        np.maximum.at(ready, ops.overlapping[:, 1], ops.end[ops.overlapping[:, 0]])
    is_free = ~has_launch & ~follows & (waited_for < 0)  # only its recorded time is known
    return _Timed(ops, stream_waits, took, np.where(is_free, ops.start, ready))


@dataclass(frozen=True, slots=True, eq=False)
class FileDependencies:
    """The dependencies in a file, as rows (before, then) of GPU ops and host segments."""

    gpu_gpu: Ints
    gpu_host: Ints
    host_gpu: Ints
    host_host: Ints


def stated(rank: Rank, ops: GpuOps, pieces: ThreadSegments) -> FileDependencies:
    """Return the dependencies in the file that agree with the recorded times and are not implied by the order of a thread."""
    none = np.empty((0, 2), np.int64)
    if rank.stated is None:
        return FileDependencies(none, none, none, none)
    slices = rank.slices
    gpu = np.full(len(slices), NONE, np.int64)
    gpu[ops.slice] = np.arange(len(ops))
    on_host = np.array([lane.device == HOST for lane in rank.lanes], bool)[slices.lane]
    thread = np.where(on_host, pieces.threads(slices.lane), NONE)
    before, then = rank.stated.before, rank.stated.then
    last, first = pieces.before(thread[before], slices.end[before]), pieces.before(thread[then], slices.start[then]) + 1
    from_gpu, to_gpu = gpu[before] >= 0, gpu[then] >= 0
    from_host, to_host = thread[before] >= 0, thread[then] >= 0
    first = np.minimum(first, max(0, len(pieces) - 1))
    piece_end = pieces.end[last] if len(pieces) else np.zeros(len(before), np.int64)
    piece_start = pieces.start[first] if len(pieces) else np.zeros(len(before), np.int64)
    end = np.where(from_gpu, ops.end[gpu[before]] if len(ops) else 0, piece_end)
    start = np.where(to_gpu, ops.start[gpu[then]] if len(ops) else 0, piece_start)
    holds = end <= start

    def rows(sources: Ints, targets: Ints, chosen: NDArray[np.bool_]) -> Ints:
        return np.column_stack([sources, targets])[chosen & holds].astype(np.int64)

    return FileDependencies(
        gpu_gpu=rows(gpu[before], gpu[then], from_gpu & to_gpu),
        gpu_host=rows(gpu[before], first, from_gpu & to_host),
        host_gpu=rows(last, gpu[then], from_host & to_gpu),
        host_host=rows(last, first, from_host & to_host & (thread[before] != thread[then])),
    )
