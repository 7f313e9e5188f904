"""Collectives of several ranks: which kernels are one exchange, and how long each waits for the last rank.

Kernels of one group and stream are the same exchange if they are the n-th in every rank, with equal kinds and sizes. Where
the ranks' files differ (windows, samples, groups that are not named) kernels are one exchange that end together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from hwsim.importers.launches import GpuOps
from hwsim.importers.linking import NONE, Linked
from hwsim.importers.recording import Collective, Ints, Rank, Small, What
from hwsim.importers.threads import US
from hwsim.records import dataclass

_TOGETHER: Final = 100 * US  # kernels of one exchange end this close, or within a quarter of the shortest
_MARK: Final = "nccl:"
_PEERS: Final = frozenset({"send", "recv"})
_CALLED: Final = {
    "allreduce": "allreduce", "allgatherbase": "allgather", "allgather": "allgather", "allgatherintotensor": "allgather",
    "reducescatterbase": "reduce-scatter", "reducescatter": "reduce-scatter", "reducescattertensor": "reduce-scatter",
    "alltoall": "alltoall", "alltoallv": "alltoall", "alltoallbase": "alltoall", "broadcast": "broadcast", "reduce": "reduce",
    "send": "send", "recv": "recv", "barrier": "barrier", "gather": "gather", "scatter": "scatter",
}  # fmt: skip


class Exchange(NamedTuple):
    """What is known of a kernel of NCCL: group and stream, kind, elements; the rank at the other end of a send or recv."""

    group: str
    kind: str
    elements: int
    size: int
    peer: int


def called(name: str) -> str:
    """hwsim's name of a collective that a library calls otherwise; "" if unknown."""
    plain = name.removeprefix(_MARK).split(" ")[0].replace("_", "").replace("-", "").lower()
    return _CALLED.get(plain, "")


@dataclass(frozen=True, slots=True, eq=False)
class Exchanges:
    """Kernels of NCCL of a rank: numbers among its GPU ops, and what is known of each."""

    ops: Ints
    known: tuple[Exchange, ...]


def exchanges(rank: Rank, linked: Linked, ops: GpuOps) -> Exchanges:
    """The exchanges of a rank."""
    is_nccl = np.array(["nccl" in name.lower() for name in rank.names], bool)
    slices = rank.slices
    found = np.flatnonzero(is_nccl[slices.name[ops.slice]] & (slices.what[ops.slice] == What.KERNEL))
    streams = {lane: number for number, lane in enumerate(dict.fromkeys(np.array([*ops.lane, NONE])[ops.queue[found]].tolist()))}
    known: list[Exchange] = []
    for op in found.tolist():
        kernel = int(ops.slice[op])
        collective = _collective(rank, linked, kernel)
        stream = f"stream {streams[ops.lane[int(ops.queue[op])]]}"
        if collective is None:
            known.append(Exchange(stream, _kind_of(rank.names[slices.name[kernel]]), 0, 0, NONE))
            continue
        group = f"{collective.group} of {collective.ranks}" if collective.group or collective.ranks else stream
        size = collective.size or len(collective.ranks)
        known.append(Exchange(group, collective.name, collective.elements_in, size, collective.peer))
    return Exchanges(found, tuple(known))


def _collective(rank: Rank, linked: Linked, kernel: int) -> Collective | None:
    """What the file says of the exchange of a kernel: on the kernel, or on the slices around its launch."""
    slices = rank.slices
    around, named = kernel, None
    for _ in range(16):
        if around < 0:
            break
        facts = slices.facts[around]
        stated = rank.facts[facts].collective if facts >= 0 else None
        if stated is not None:
            return stated
        name = rank.names[slices.name[around]]
        if named is None and name.startswith(_MARK) and called(name):
            shapes = rank.facts[facts].shapes if facts >= 0 else None
            named = Collective(called(name), _elements(shapes))
        around = int(linked.call[kernel]) if around == kernel else int(linked.parent[around])
    return named


def _elements(shapes: Sequence[object] | None) -> int:
    """Elements of the first tensor."""
    first = shapes[0] if shapes else ()
    if not isinstance(first, tuple) or not first:
        return 0
    if isinstance(first[0], tuple):
        return sum(_elements([each]) for each in first)
    return int(np.prod([int(length) for length in first]))


def _kind_of(kernel: str) -> str:
    words = ("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "SendRecv", "Reduce")
    return next((called(word) or "exchange" for word in words if word.lower() in kernel.lower()), "exchange")


class Member(NamedTuple):
    """A kernel of an exchange: position of its rank in the recording, number among the rank's GPU ops."""

    rank: int
    op: int


@dataclass(frozen=True, slots=True, eq=False)
class Meetings:
    """Exchanges that kernels of several ranks are, one row per kernel.

    Args:
        meeting: number of the exchange. rank: position of the rank in the recording; op: kernel among its GPU ops.
        latest: start of the last kernel of the exchange (fs).
        kinds: of each exchange. sizes: ranks of its group, 0 if unknown.
        alone: kernels of NCCL that are in no exchange, of ranks with others.
        apart: of them those whose ranks do not overlap in time: clocks differ, or the files are of other steps.
    """

    meeting: Small
    rank: Small
    op: Ints
    latest: Ints
    kinds: tuple[str, ...]
    sizes: tuple[int, ...]
    alone: int
    apart: int

    def __len__(self) -> int:
        return len(self.kinds)


def meetings(numbers: Sequence[int], each: Sequence[Exchanges], ops: Sequence[GpuOps]) -> Meetings:
    """The exchanges of the ranks; numbers: of the ranks."""
    keyed: dict[str, list[list[int]]] = {}
    for position, of_rank in enumerate(each):
        for index, known in enumerate(of_rank.known):
            keyed.setdefault(_key(known, numbers[position]), [[] for _ in each])[position].append(index)
    met: list[list[Member]] = []
    kinds, sizes = [], []
    apart = 0
    for rows in keyed.values():
        held = [(position, row) for position, row in enumerate(rows) if row]
        if len(held) < 2:
            continue
        sets = _in_order(held, each, ops)
        if sets is None:
            sets = _by_time(held, each, ops)
        for members in sets:
            starts = max(int(ops[member.rank].start[member.op]) for member in members)
            ends = min(int(ops[member.rank].end[member.op]) for member in members)
            if starts > ends:
                apart += len(members)
                continue
            first = members[0]
            known = each[first.rank].known[int(np.searchsorted(each[first.rank].ops, first.op))]
            met.append(members)
            kinds.append(known.kind)
            sizes.append(known.size)
    total = sum(len(of_rank.known) for of_rank in each) if len(each) > 1 else 0
    meeting = np.repeat(np.arange(len(met), dtype=np.int32), [len(members) for members in met])
    rank = np.array([member.rank for members in met for member in members], np.int32)
    op = np.array([member.op for members in met for member in members], np.int64)
    start = np.array([ops[member.rank].start[member.op] for members in met for member in members], np.int64)
    latest = np.zeros(len(met), np.int64)
    np.maximum.at(latest, meeting, start)
    return Meetings(meeting, rank, op, latest[meeting], tuple(kinds), tuple(sizes), total - len(op), apart)


def _key(known: Exchange, number: int) -> str:
    """Kernels with equal keys may be of one exchange."""
    if known.kind in _PEERS and known.peer >= 0:
        pair = (number, known.peer) if known.kind == "send" else (known.peer, number)
        return f"{known.group}: {pair[0]} to {pair[1]}"
    return known.group


def _in_order(held: list[tuple[int, list[int]]], each: Sequence[Exchanges], ops: Sequence[GpuOps]) -> list[list[Member]] | None:
    """The n-th kernel of every rank, if the ranks agree on kinds and sizes, and the kernels end together."""
    first = [_alike(each[held[0][0]].known[index]) for index in held[0][1]]
    for position, row in held[1:]:
        if [_alike(each[position].known[index]) for index in row] != first:
            return None
    places = [(position, each[position].ops[row]) for position, row in held]
    starts = np.array([ops[position].start[row] for position, row in places])
    ends = np.array([ops[position].end[row] for position, row in places])
    close = np.maximum(_TOGETHER, (ends - starts).min(axis=0) // 4)
    if ((ends.max(axis=0) - ends.min(axis=0)) <= close).mean() < 0.75:
        return None
    return [[Member(position, int(row[n])) for position, row in places] for n in range(len(first))]


def _alike(known: Exchange) -> tuple[str, int]:
    kind = "peer" if known.kind in _PEERS else known.kind
    return kind, known.elements if kind == "allreduce" else 0


def _by_time(held: list[tuple[int, list[int]]], each: Sequence[Exchanges], ops: Sequence[GpuOps]) -> list[list[Member]]:
    """Kernels of equal kind and size that end together; those that have no other are left out."""
    rows: list[tuple[int, int, tuple[str, int], int, int]] = []
    for position, row in held:
        for index in row:
            op = int(each[position].ops[index])
            start, end = int(ops[position].start[op]), int(ops[position].end[op])
            rows.append((end, start, _alike(each[position].known[index]), position, op))
    found: list[list[Member]] = []
    waiting: dict[tuple[str, int], tuple[int, int, list[Member]]] = {}  # by kind: the end so far, the latest start, members
    for end, start, kind, position, op in sorted(rows):
        open_end, latest, members = waiting.get(kind, (0, 0, []))
        close = max(_TOGETHER, (end - max(start, latest)) // 4)
        if members and (end - open_end > close or start > open_end or any(member.rank == position for member in members)):
            found.append(members)
            members, latest, open_end = [], 0, end
        members = [*members, Member(position, op)]
        waiting[kind] = (open_end or end, max(latest, start), members)
    found += [members for _, _, members in waiting.values()]
    return [members for members in found if len(members) > 1]
