"""Find runtime calls that block until a GPU op has ended (synchronizations, frees, pageable copies, full launch queues).

Files of older tools do not contain the stream for which a call waits. It is inferred from times: the call waits for the GPU op
that ended last before it returned, and for the last GPU op that its thread launched.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.importers.events import StreamIndex
from hwsim.importers.launches import SLOW, is_staged
from hwsim.importers.recording import Ints, Rank, What
from hwsim.importers.slice_links import NONE, SliceLinks
from hwsim.importers.threads import US, SegmentKind, ThreadDependencies, ThreadSegments

_PREFIXES: Final = ("cuda", "hip", "cu")
_DEVICE: Final = ("DeviceSynchronize", "CtxSynchronize", "Free", "DeviceReset")
_PERHAPS: Final = ("HostAlloc", "Malloc", "HostRegister", "StreamCreate")  # they block if the recorded times show it
_STREAM: Final = ("StreamSynchronize",)
_EVENT: Final = ("EventSynchronize",)
_COPY: Final = ("Memcpy", "Memset")
_QUEUED: Final = ("Launch", "ModuleLaunch", "ExtModuleLaunch", "Memcpy", "Memset")
_SOON: Final = 50 * US  # a full launch queue accepts the next op within this time after an op has ended


def blocked(rank: Rank, linked: SliceLinks, pieces: ThreadSegments, streams: StreamIndex) -> ThreadDependencies:
    """Return the calls that wait for the GPU: host segments (`then`) that end after GPU ops (`before`)."""
    ops, slices = streams.ops, rank.slices
    if not len(ops):
        return ThreadDependencies(np.empty(0, np.int64), np.empty(0, np.int64))
    last = np.flatnonzero(pieces.kind == SegmentKind.CALL)
    last = last[pieces.end[last] == linked.ends[pieces.slice[last]]]
    call = pieces.slice[last].astype(np.int64)
    starts, ends = slices.start[call], pieces.end[last]
    kinds = np.array([_kind(name) for name in rank.names], np.int8)[slices.name[call]]
    order = np.argsort(ops.end, kind="stable")
    by_end = ops.end[order]
    latest = np.append(order, NONE)[np.searchsorted(by_end, ends, side="right") - 1]
    pairs: list[tuple[Ints, Ints]] = []

    def wait(before: Ints, which: NDArray[np.bool_]) -> None:
        chosen = which & (before >= 0)
        pairs.append((before[chosen], last[chosen]))

    def done(before: Ints) -> NDArray[np.bool_]:
        is_done: NDArray[np.bool_] = (before >= 0) & (ops.end[before] <= ends)
        return is_done

    waits_now = (latest >= 0) & (ops.end[latest] > starts) & (streams.launched[latest] < starts)
    on_device = [(lane, streams.last_on(lane, starts)) for lane in streams.by_lane]
    is_all = np.ones(len(last), bool)
    for _, before in on_device:
        is_all &= (before < 0) | done(before)
    for _, before in on_device:
        wait(before, (kinds == _KINDS.index(_DEVICE)) & is_all)
        wait(before, (kinds == _KINDS.index(_PERHAPS)) & is_all & waits_now & (ends - ops.end[latest] < _SOON))
    last_launch = np.full(len(last), NONE, np.int64)
    for thread in np.unique(slices.lane[call]).tolist():
        mine = slices.lane[call] == thread
        last_launch[mine] = streams.last_by(thread, starts[mine])
    is_stream, is_event = kinds == _KINDS.index(_STREAM), kinds == _KINDS.index(_EVENT)
    wait(last_launch, is_stream & done(last_launch))
    wait(latest, (is_stream | is_event) & waits_now)
    mine, is_pageable = _own_copies(rank, streams, call)
    wait(mine, (kinds == _KINDS.index(_COPY)) & done(mine) & is_pageable)
    earlier = _not_of_call(ops.call.astype(np.int64), order, by_end, ends, call)
    is_slow = (ends - starts > SLOW) & np.isin(kinds, [_KINDS.index(_COPY), _KINDS.index(_QUEUED)]) & ~(done(mine) & is_pageable)
    is_slow &= ~np.isin(call, ops.call[ops.is_late])
    is_full = (
        is_slow
        & (earlier >= 0)
        & (streams.launched[earlier] < starts)
        & (ops.end[earlier] > starts)
        & (ends - ops.end[earlier] < _SOON)
    )
    wait(earlier, is_full)
    empty = np.empty((0, 2), np.int64)
    rows = np.unique(np.concatenate([empty, *(np.column_stack(pair) for pair in pairs)]), axis=0).reshape(-1, 2)
    return ThreadDependencies(rows[:, 0], rows[:, 1])


_KINDS: Final = (_DEVICE, _PERHAPS, _STREAM, _EVENT, _COPY, _QUEUED)


def _kind(name: str) -> int:
    """Return the kind of wait of a call, by its name; -1 for none."""
    plain = next(
        (name[len(prefix) :] for prefix in _PREFIXES if name.startswith(prefix) and name[len(prefix) :][:1].isupper()), ""
    )
    if plain.endswith("Async") and not plain.startswith(("Memcpy", "Memset")):
        return NONE
    return next((number for number, words in enumerate(_KINDS) if plain.startswith(words)), NONE)


def _not_of_call(of: Ints, order: Ints, by_end: Ints, times: Ints, call: Ints) -> Ints:
    """Return the GPU op of another call that ended last by each time."""
    place = np.searchsorted(by_end, times, side="right") - 1
    for _ in range(8):  # limit: a call launches few ops
        is_same_call = (place >= 0) & (of[order[np.maximum(place, 0)]] == call)
        if not is_same_call.any():
            break
        place = np.where(is_same_call, place - 1, place)
    return np.where(place >= 0, order[np.maximum(place, 0)], NONE)


def _own_copies(rank: Rank, streams: StreamIndex, call: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the copy of each call, -1 for none, and whether it may block; copies of pinned memory do not."""
    ops = streams.ops
    name = rank.slices.name[ops.slice]
    staged = np.array([is_staged(label) for label in rank.names], bool)
    of_call = np.full(len(rank.slices), NONE, np.int64)
    is_copy = np.isin(rank.slices.what[ops.slice], (What.COPY,)) & (ops.call >= 0)
    of_call[ops.call[is_copy]] = np.flatnonzero(is_copy)
    mine = of_call[call]
    return mine, (mine >= 0) & staged[name[np.maximum(mine, 0)]] if len(ops) else (mine >= 0)
