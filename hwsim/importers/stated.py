"""Dependencies that a file states itself, between pieces of host threads and ops of GPUs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hwsim.importers.launches import GpuOps
from hwsim.importers.linking import NONE
from hwsim.importers.recording import HOST, Ints, Rank, Small
from hwsim.importers.threads import Pieces
from hwsim.records import dataclass

Pairs = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Stated:
    """Rows (before, then) of GPU ops and pieces: what comes before and what follows are in the name of each field."""

    gpu_gpu: Pairs
    gpu_host: Pairs
    host_gpu: Pairs
    host_host: Pairs


def stated(rank: Rank, ops: GpuOps, pieces: Pieces) -> Stated:
    """The stated dependencies that hold in the recorded times, and that no thread's order implies."""
    none = np.empty((0, 2), np.int64)
    if rank.stated is None:
        return Stated(none, none, none, none)
    slices = rank.slices
    gpu = np.full(len(slices), NONE, np.int64)
    gpu[ops.slice] = np.arange(len(ops))
    on_host = np.array([lane.device == HOST for lane in rank.lanes], bool)[slices.lane]
    thread = np.where(on_host, pieces.threads(slices.lane), NONE)
    before, then = rank.stated.before, rank.stated.then
    last, first = _pieces(pieces, thread[before], slices.end[before]), _pieces(pieces, thread[then], slices.start[then]) + 1
    from_gpu, to_gpu = gpu[before] >= 0, gpu[then] >= 0
    from_host, to_host = thread[before] >= 0, thread[then] >= 0
    first = np.minimum(first, max(0, len(pieces) - 1))
    piece_end = pieces.end[last] if len(pieces) else np.zeros(len(before), np.int64)
    piece_start = pieces.start[first] if len(pieces) else np.zeros(len(before), np.int64)
    end = np.where(from_gpu, ops.end[gpu[before]] if len(ops) else 0, piece_end)
    start = np.where(to_gpu, ops.start[gpu[then]] if len(ops) else 0, piece_start)
    holds = end <= start

    def rows(sources: Ints, targets: Ints, chosen: NDArray[np.bool_]) -> Pairs:
        return np.column_stack([sources, targets])[chosen & holds].astype(np.int64)

    return Stated(
        gpu_gpu=rows(gpu[before], gpu[then], from_gpu & to_gpu),
        gpu_host=rows(gpu[before], first, from_gpu & to_host),
        host_gpu=rows(last, gpu[then], from_host & to_gpu),
        host_host=rows(last, first, from_host & to_host & (thread[before] != thread[then])),
    )


def _pieces(pieces: Pieces, thread: Small, time: Ints) -> Ints:
    return pieces.before(thread, time) if len(pieces) else np.zeros(len(time), np.int64)
