"""Link the slices of a rank: kernel -> runtime call -> framework ops around the call on the same thread.

A kernel and its call have the same correlation number; the ops are found by the times on the thread of the call. Flow arrows and
external ids are ignored, because they refer to other ops in several versions of PyTorch.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.importers.recording import HOST, Ints, Rank, Small, What
from hwsim.records import dataclass

Flags = NDArray[np.bool_]
NONE: Final = -1
_ATEN: Final = "aten::"


@dataclass(frozen=True, slots=True, eq=False)
class SliceLinks:
    """The links of each slice to other slices of the rank; -1 for none.

    Args:
        parent: innermost slice around a slice of a host thread, including marks.
        call: runtime call that launched a slice of a stream, or to which a WAIT belongs; the call itself for a call.
        op: innermost op around the slice or its call; an op is not around itself.
        shaped: innermost op with shapes around the slice or its call.
        outer: outermost ATen op (`aten::`) around the slice or its call, else the outermost op.
        ends: end of each slice (fs), at most that of its parent: with a resolution of 1 us, a slice can end after its parent or
            after the start of its successor.
    """

    parent: Small
    call: Small
    op: Small
    shaped: Small
    outer: Small
    ends: Ints


def link(rank: Rank) -> SliceLinks:
    """Link the slices of a rank."""
    slices = rank.slices
    kinds = slices.what
    count = len(slices)
    lane_is_host = np.array([lane.device == HOST for lane in rank.lanes], bool)
    on_host = lane_is_host[slices.lane] & np.isin(kinds, (What.OP, What.PYTHON, What.MARK, What.CALL))
    parent, ends, levels = _nested(rank, np.flatnonzero(on_host))
    named = np.array([name.startswith(_ATEN) for name in rank.names], bool)[slices.name]
    has_shapes = np.array([fact.shapes is not None for fact in rank.facts] + [False], bool)[slices.facts]
    is_op = kinds == What.OP
    op, shaped = np.full(count, NONE, np.int32), np.full(count, NONE, np.int32)
    aten, first = np.full(count, NONE, np.int32), np.full(count, NONE, np.int32)
    for level in levels:  # parents come before their children
        around = parent[level]
        inside = around >= 0
        level, around = level[inside], around[inside]
        op[level] = np.where(is_op[around], around, op[around])
        shaped[level] = np.where(is_op[around] & has_shapes[around], around, shaped[around])
        aten[level] = np.where((aten[around] < 0) & is_op[around] & named[around], around, aten[around])
        first[level] = np.where((first[around] < 0) & is_op[around], around, first[around])
    outer = np.where(aten < 0, first, aten)
    call = calls(rank)
    launched = np.flatnonzero((call >= 0) & ~on_host)
    by = call[launched]
    for column in (op, shaped, outer):
        column[launched] = column[by]
    return SliceLinks(parent, call, op, shaped, outer, ends)


def calls(rank: Rank) -> Small:
    """The call of every slice that carries a number; of several calls with one number the first."""
    slices = rank.slices
    call = np.full(len(slices), NONE, np.int32)
    is_call = slices.what == What.CALL
    call[is_call] = np.flatnonzero(is_call)
    numbered = np.flatnonzero(is_call & (slices.link >= 0))
    links, first = np.unique(slices.link[numbered], return_index=True)
    if not links.size:
        return call
    others = np.flatnonzero(~is_call & (slices.link >= 0) & (slices.what >= What.KERNEL))
    at = np.minimum(np.searchsorted(links, slices.link[others]), len(links) - 1)
    is_known = links[at] == slices.link[others]
    call[others[is_known]] = numbered[first[at[is_known]]]
    return call


def _nested(rank: Rank, chosen: NDArray[np.intp]) -> tuple[Small, Ints, list[NDArray[np.intp]]]:
    """Return parents and ends of host slices, and the slices by depth, outermost first."""
    slices = rank.slices
    depth_first = np.array([1, 1, 0, 2, 3, 3, 3, 3], np.int8)  # for equal times, marks contain ops, and ops contain calls
    keys = (depth_first[slices.what[chosen]], -slices.duration[chosen], slices.start[chosen], slices.lane[chosen])
    order = chosen[np.lexsort(keys)]
    parent = np.full(len(slices), NONE, np.int32)
    ends: Ints = slices.end.copy()
    levels: list[list[NDArray[np.intp]]] = []
    bounds = np.flatnonzero(np.diff(slices.lane[order], prepend=-1, append=-1))
    for begin, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        for depth, level in enumerate(_lane(slices.start, ends, order[begin:stop], parent)):
            if depth == len(levels):
                levels.append([])
            levels[depth].append(level)
    return parent, ends, [np.concatenate(parts) for parts in levels]


def _lane(start: Ints, ends: Ints, order: NDArray[np.intp], parent: Small) -> list[NDArray[np.intp]]:
    """Set the parents and ends of the slices of one thread, and return its levels.

    A slice is at the outermost level if all earlier slices have ended at its start. If two slices overlap partially, the
    shorter part
    is due to the resolution of the clock: either the end of the later slice is cut, or the earlier slice ends at the start of the
    later one. Then the levels are found again.
    """
    while True:
        levels: list[NDArray[np.intp]] = []
        around, rest = np.full(len(order), NONE, np.int64), np.arange(len(order))
        begin, end = start[order], ends[order]
        while rest.size:
            latest = np.maximum.accumulate(end[rest])
            outermost = np.concatenate([[True], begin[rest[1:]] >= latest[:-1]])
            if levels:  # the first slice inside each slice of the level above starts a new sequence
                outermost |= np.concatenate([[True], around[rest[1:]] != around[rest[:-1]]])
            levels.append(rest[outermost])
            numbers = np.cumsum(outermost) - 1
            inside = rest[~outermost]
            around[inside] = rest[outermost][numbers[~outermost]]
            rest = inside
        cut = False
        for level in levels[1:]:
            limit = end[around[level]]
            over = (end[level] > limit) & (begin[level] < limit)
            if over.any():
                cut = True
                inner, outer = level[over], around[level[over]]
                follows = limit[over] - begin[inner] < end[inner] - limit[over]  # a sibling that starts a little early
                end[inner[~follows]] = limit[over][~follows]
                np.minimum.at(end, outer[follows], begin[inner[follows]])
        ends[order] = end
        if not cut:
            break
    parent[order] = np.where(around < 0, NONE, order[around])
    return [order[level] for level in levels]
