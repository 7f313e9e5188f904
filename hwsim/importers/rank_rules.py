"""Apply the rules to one rank: find the dependencies of its GPU ops and host threads, and add those in the file."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hwsim.importers.blocking_calls import blocked
from hwsim.importers.collective_matches import CollectiveKernels, exchanges
from hwsim.importers.events import StreamIndex, Waits, waits, with_ends
from hwsim.importers.launches import GpuOps, LaunchLatencies, cuts_of_late, gpu_ops, latencies, launching_pieces
from hwsim.importers.recording import Ints, Rank
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
    launch_piece: Ints
    ready: Ints


def explained(rank: Rank) -> RankRules:
    """Apply the rules to a rank."""
    linked = link(rank)
    outer = outermost_calls(rank, linked)
    ops = gpu_ops(rank, linked, outer)
    pieces = cut(rank, linked, outer, cuts_of_late(rank, ops))
    streams = StreamIndex(rank, ops)
    timed = _timed(rank, ops, waits(rank, linked, streams, pieces))
    more = with_ends(rank, StreamIndex(rank, timed.ops), timed.waits, timed.ready)
    if len(more.then) > len(timed.waits.then):
        timed = _timed(rank, timed.ops, more)
    ops = timed.ops
    return RankRules(
        rank=rank, linked=linked, pieces=pieces, ops=ops, latencies=timed.latencies, waits=timed.waits, ready=timed.ready,
        crossings=crossings(pieces), exchanges=exchanges(rank, linked, ops),
        blocked=blocked(rank, linked, pieces, StreamIndex(rank, ops)),
        launch_piece=launching_pieces(rank, pieces, ops),
    )  # fmt: skip


class _Timed(NamedTuple):
    ops: GpuOps
    waits: Waits
    latencies: LaunchLatencies
    ready: Ints


def _timed(rank: Rank, ops: GpuOps, stream_waits: Waits) -> _Timed:
    """Find when each GPU op may start."""
    start = ops.start.copy()
    np.maximum.at(start, stream_waits.then, ops.end[stream_waits.before])
    start = np.minimum(start, ops.end)  # GPU ops may overlap by the resolution of the clock
    ops = replace(ops, start=start)
    possible = ops.end[stream_waits.before] <= start[stream_waits.then]
    stream_waits = replace(stream_waits, before=stream_waits.before[possible], then=stream_waits.then[possible])
    waited_for = np.full(len(ops), NONE, np.int64)
    np.maximum.at(waited_for, stream_waits.then, ops.end[stream_waits.before])
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
