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
_DEEP: Final = 16  # slices around a launch that are asked
_PEERS: Final = frozenset({"send", "recv"})


class Exchange(NamedTuple):
    """A kernel of NCCL as far as it is known: group or stream, kind, elements, ranks, and the other rank of a send or recv."""

    group: str
    kind: str
    elements: int
    size: int
    peer: int


@dataclass(frozen=True, slots=True, eq=False)
class Exchanges:
    """Kernels of NCCL of a rank; ops: their numbers among its GPU ops."""

    ops: Ints
    known: tuple[Exchange, ...]


def exchanges(rank: Rank, linked: Linked, ops: GpuOps) -> Exchanges:
    """The exchanges of a rank."""
    slices = rank.slices
    known_of = np.array([each.collective is not None for each in rank.facts] + [False], bool)
    is_nccl = known_of[slices.facts[ops.slice]] & (slices.what[ops.slice] == What.KERNEL)
    kernels = np.flatnonzero(is_nccl)
    kernels = kernels[np.argsort(ops.start[kernels], kind="stable")]
    lanes = np.array([*ops.lane, NONE], np.int64)[ops.queue[kernels]].tolist()
    streams = {lane: number for number, lane in enumerate(dict.fromkeys(lanes))}
    facts: list[Exchange] = []
    for op, lane in zip(kernels.tolist(), lanes, strict=True):
        stated = _collective(rank, linked, int(ops.slice[op]))
        group = f"{stated.group} of {stated.ranks}" if stated.group or stated.ranks else f"stream {streams[lane]}"
        facts.append(Exchange(group, stated.name, stated.elements_in, stated.size or len(stated.ranks), stated.peer))
    return Exchanges(kernels, tuple(facts))


def _collective(rank: Rank, linked: Linked, kernel: int) -> Collective:
    """The exchange of a kernel as the file has it: on the kernel, or on the slices around its launch."""
    slices = rank.slices
    best = rank.facts[slices.facts[kernel]].collective or Collective("sendrecv")
    around = int(linked.call[kernel])
    for _ in range(_DEEP):
        if around < 0 or best.group or best.ranks:
            break
        facts = slices.facts[around]
        stated = rank.facts[facts].collective if facts >= 0 else None
        if stated is not None and (stated.group or stated.ranks or (stated.elements_in and not best.elements_in)):
            best = stated
        around = int(linked.parent[around])
    return best


class Member(NamedTuple):
    """A kernel of an exchange: position of its rank in the recording, number among the rank's GPU ops and its exchanges."""

    rank: int
    op: int
    number: int


@dataclass(frozen=True, slots=True, eq=False)
class Meetings:
    """Exchanges that kernels of several ranks are, one row per kernel.

    Args:
        meeting: number of the exchange. rank: position of the rank in the recording; op: kernel among its GPU ops.
        latest: start of the last kernel of the exchange (fs).
        kinds: name of each exchange. sizes: how many ranks its group has, 0 if unknown.
        alone: kernels of NCCL that are in no exchange, of ranks with others.
        apart: those whose ranks do not overlap in time: clocks differ, or the files are of other steps.
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


def meetings(numbers: Sequence[int], by_rank: Sequence[Exchanges], ops: Sequence[GpuOps]) -> Meetings:
    """The exchanges of the ranks; numbers: of the ranks."""
    keyed: dict[str, list[list[int]]] = {}
    for position, of_rank in enumerate(by_rank):
        for index, facts in enumerate(of_rank.known):
            keyed.setdefault(_key(facts, numbers[position]), [[] for _ in by_rank])[position].append(index)
    met: list[list[Member]] = []
    kinds, sizes = [], []
    apart = 0
    for rows in keyed.values():
        held = [(position, row) for position, row in enumerate(rows) if row]
        is_peer = bool(held) and by_rank[held[0][0]].known[held[0][1][0]].kind in _PEERS
        if len(held) < 2:
            continue
        sets = _in_order(held, by_rank, ops)
        if sets is None:
            sets = _by_time(held, by_rank, ops)
        for members in sets:
            starts = max(int(ops[member.rank].start[member.op]) for member in members)
            ends = min(int(ops[member.rank].end[member.op]) for member in members)
            if starts > ends:
                apart += len(members)
                continue
            if is_peer and starts == ends:  # without lengths the order of two peers is unknown
                continue
            facts = by_rank[members[0].rank].known[members[0].number]
            met.append(members)
            kinds.append(facts.kind)
            sizes.append(facts.size)
    total = sum(len(of_rank.known) for of_rank in by_rank) if len(by_rank) > 1 else 0
    meeting = np.repeat(np.arange(len(met), dtype=np.int32), [len(members) for members in met])
    rank = np.array([member.rank for members in met for member in members], np.int32)
    op = np.array([member.op for members in met for member in members], np.int64)
    start = np.array([ops[member.rank].start[member.op] for members in met for member in members], np.int64)  # fits
    latest = np.zeros(len(met), np.int64)
    np.maximum.at(latest, meeting, start)
    return Meetings(meeting, rank, op, latest[meeting], tuple(kinds), tuple(sizes), total - len(op), apart)


def _key(known: Exchange, number: int) -> str:
    """Kernels with equal keys may be of one exchange."""
    if known.kind in _PEERS and known.peer >= 0:
        pair = (number, known.peer) if known.kind == "send" else (known.peer, number)
        return f"{known.group}: {pair[0]} to {pair[1]}"
    return known.group


def _in_order(
    held: list[tuple[int, list[int]]], by_rank: Sequence[Exchanges], ops: Sequence[GpuOps]
) -> list[list[Member]] | None:
    """The n-th kernel of every rank, if the ranks agree on kinds and sizes, and the kernels end together."""
    first = [_alike(by_rank[held[0][0]].known[index]) for index in held[0][1]]
    for position, row in held[1:]:
        if [_alike(by_rank[position].known[index]) for index in row] != first:
            return None
    places = [(position, by_rank[position].ops[row]) for position, row in held]
    starts = np.array([ops[position].start[row] for position, row in places])
    ends = np.array([ops[position].end[row] for position, row in places])
    close = np.maximum(_TOGETHER, (ends - starts).min(axis=0) // 4)
    if ((ends.max(axis=0) - ends.min(axis=0)) <= close).mean() < 0.75:  # count
        return None
    rows = [(position, row, by_rank[position].ops) for position, row in held]
    return [[Member(position, int(numbers[row[n]]), row[n]) for position, row, numbers in rows] for n in range(len(first))]


def _alike(known: Exchange) -> tuple[str, int]:
    kind = "peer" if known.kind in _PEERS else known.kind
    return kind, known.elements if kind == "allreduce" else 0


def _by_time(held: list[tuple[int, list[int]]], by_rank: Sequence[Exchanges], ops: Sequence[GpuOps]) -> list[list[Member]]:
    """Kernels of equal kind and size that end together; those that have no other are left out."""
    rows: list[tuple[int, int, tuple[str, int], Member]] = []
    for position, row in held:
        for index in row:
            op = int(by_rank[position].ops[index])
            start, end = int(ops[position].start[op]), int(ops[position].end[op])
            rows.append((end, start, _alike(by_rank[position].known[index]), Member(position, op, index)))
    sets: list[list[Member]] = []
    waiting: dict[tuple[str, int], tuple[int, int, list[Member]]] = {}  # by kind: the end so far, the latest start, members
    for end, start, kind, added in sorted(rows):
        open_end, latest, members = waiting.get(kind, (0, 0, []))
        close = max(_TOGETHER, (end - max(start, latest)) // 4)
        if members and (end - open_end > close or start > open_end or any(member.rank == added.rank for member in members)):
            sets.append(members)
            members, latest, open_end = [], 0, end
        members = [*members, added]
        waiting[kind] = (open_end or end, max(latest, start), members)
    sets += [members for _, _, members in waiting.values()]
    return [members for members in sets if len(members) > 1]
