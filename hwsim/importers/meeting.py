"""Collectives of several ranks: which kernels are one exchange, and how long each waits for the last rank.

    collective_of(rank, linked, place)      what the file says of a slice: the one walk from an op to its collective
    exchanges(rank, linked, ops)            the kernels of NCCL of a rank
    meetings(recording, ...)                which of them are one exchange

Kernels may be of one exchange if their ranks are of one group. A group is known by its name, its ranks and their number, as the
file has them. A send and its recv have two ranks and a tag in common. Where no group is named, each stream is one, in the order
of first use. Among these kernels

- recorded times decide where the ranks have one clock. The n-th kernels of all ranks are one exchange if those end together; else
  kernels of equal kind and size that end together are one, because windows differ or files are samples.
- the order decides where a reader made the starts of each rank (`Recording.clocked`). The n-th kernels are one exchange as long
  as kinds and sizes agree. There a recv waits for its send, and the send for nothing.

A kernel is in no exchange if its rank is not in its own group, if more ranks have the group than it has members, or if the ranks'
orders differ. `Meetings.notes` says so.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim.importers.launches import GpuOps
from hwsim.importers.linking import NONE, Linked
from hwsim.importers.recording import Collective, Ints, Rank, Recording, Small, What
from hwsim.importers.threads import US
from hwsim.records import dataclass

_TOGETHER: Final = 100 * US  # kernels of one exchange end this close, or within a quarter of the shortest
PEERS: Final = frozenset({"send", "recv"})


def collective_of(rank: Rank, linked: Linked, place: int) -> Collective | None:
    """The collective of a slice as the file has it: on the slice, else on the slices around it or around its launch.

    The nearest that names a group says which it is, and the nearest that has a size how large.
    """
    collective: Collective | None = None
    for around in _outward(linked, place):
        number = int(rank.slices.facts[around])
        stated = rank.facts[number].collective if number >= 0 else None
        if stated is not None:
            collective = stated if collective is None else _completed(collective, stated)
            if _has_group(collective) and _has_size(collective):
                break
    return collective


def is_exchange(rank: Rank) -> NDArray[np.bool_]:
    """Whether a slice is the kernel of a collective."""
    known_of = np.array([fact.collective is not None for fact in rank.facts] + [False], bool)
    found: NDArray[np.bool_] = known_of[rank.slices.facts] & (rank.slices.what == What.KERNEL)
    return found


def _outward(linked: Linked, place: int) -> Iterator[int]:
    """A slice, then its call and the slices around that; of a slice of a host thread those around it."""
    yield place
    call = int(linked.call[place])
    around = call if call not in (NONE, place) else int(linked.parent[place])
    while around >= 0:
        yield around
        around = int(linked.parent[around])


def _completed(collective: Collective, stated: Collective) -> Collective:
    """A collective with the group and the size of another slice, where it has none itself."""
    taken: list[str] = []
    if not _has_group(collective) and _has_group(stated):
        taken += ["name", "ranks", "size", "group", "peer", "tag"]
    if collective.name in ("", "sendrecv"):
        taken.append("name")
    if not _has_size(collective) and _has_size(stated):
        taken += ["elements_in", "elements_out", "dtype"]
    more: dict[str, Any] = {name: getattr(stated, name) for name in taken}
    return replace(collective, **more)


def _has_group(stated: Collective) -> bool:
    return bool(stated.group or stated.ranks or stated.size)


def _has_size(stated: Collective) -> bool:
    return bool(stated.elements_in or stated.elements_out)


@dataclass(frozen=True, slots=True, eq=False)
class Exchanges:
    """Kernels of NCCL of a rank in order of start.

    ops: their numbers among its GPU ops; known: the collective of each. names: of the kernels.
    streams: the stream of each, counted in the order of first use.
    """

    ops: Ints
    known: tuple[Collective, ...]
    names: tuple[str, ...]
    streams: tuple[int, ...]


def exchanges(rank: Rank, linked: Linked, ops: GpuOps) -> Exchanges:
    """The exchanges of a rank."""
    slices = rank.slices
    kernels = np.flatnonzero(is_exchange(rank)[ops.slice])
    lanes = np.array([*ops.lane, NONE], np.int64)[ops.queue[kernels]]
    numbers = np.array([(lane.device, lane.number) for lane in rank.lanes], np.int64).reshape(-1, 2)[lanes]
    order = np.lexsort((numbers[:, 1], numbers[:, 0], ops.start[kernels]))
    kernels, lanes = kernels[order], lanes[order]
    streams = {lane: number for number, lane in enumerate(dict.fromkeys(lanes.tolist()))}
    places = ops.slice[kernels].tolist()
    return Exchanges(
        kernels,
        tuple(collective_of(rank, linked, place) or Collective("") for place in places),
        tuple(rank.names[name] for name in slices.name[places].tolist()),
        tuple(streams[lane] for lane in lanes.tolist()),
    )


class Member(NamedTuple):
    """A kernel of an exchange: position of its rank in the recording, number among the rank's exchanges and its GPU ops."""

    rank: int
    number: int
    op: int


@dataclass(frozen=True, slots=True, eq=False)
class Meetings:
    """Exchanges that kernels of several ranks are, one row per kernel.

    Args:
        meeting: number of the exchange. rank: position of the rank in the recording; op: kernel among its GPU ops.
        latest: start of the last kernel of the exchange (fs); without a common clock the kernel's own.
        takes: whether it waits for the others.
        kinds: name of each exchange. sizes: how many ranks its group has, 0 if unknown.
        notes: what had to be assumed, and kernels that are in no exchange for a reason.
    """

    meeting: Small
    rank: Small
    op: Ints
    latest: Ints
    takes: NDArray[np.bool_]
    kinds: tuple[str, ...]
    sizes: tuple[int, ...]
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.kinds)


def meetings(recording: Recording, by_rank: Sequence[Exchanges], ops: Sequence[GpuOps]) -> Meetings:
    """The exchanges of the ranks of a recording."""
    finding = _Finding(recording, by_rank, ops)
    keyed: dict[Hashable, dict[int, list[Member]]] = {}
    for position, of_rank in enumerate(by_rank):
        number = recording.ranks[position].number
        for index, (stated, stream, op) in enumerate(zip(of_rank.known, of_rank.streams, of_rank.ops.tolist(), strict=True)):
            keyed.setdefault(_key(stated, stream, number), {}).setdefault(position, []).append(Member(position, index, op))
    met = [members for rows in keyed.values() for members in finding.sets(list(rows.values()))]
    rows = [member for members in met for member in members]
    meeting = np.repeat(np.arange(len(met), dtype=np.int32), [len(members) for members in met])
    start = np.array([ops[member.rank].start[member.op] for member in rows], np.int64)  # fits
    latest = np.zeros(len(met), np.int64)
    np.maximum.at(latest, meeting, start)
    kinds = np.array([finding.known(member).name for member in rows], str)
    is_ordered = not recording.clocked
    return Meetings(
        meeting=meeting,
        rank=np.array([member.rank for member in rows], np.int32),
        op=np.array([member.op for member in rows], np.int64),
        latest=start if is_ordered else latest[meeting],
        takes=(kinds != "send") | (not is_ordered),
        kinds=tuple("sendrecv" if (name := finding.known(members[0]).name) in PEERS else name for members in met),
        sizes=tuple(finding.known(members[0]).size for members in met),
        notes=tuple(finding.notes),
    )


def none_of(met: Meetings, why: str) -> Meetings:
    """No exchange in the place of these, and why."""
    columns = {name: getattr(met, name)[:0] for name in ("meeting", "rank", "op", "latest", "takes", "kinds", "sizes")}
    return Meetings(**columns, notes=(*met.notes, why))


def _key(known: Collective, stream: int, number: int) -> Hashable:
    """Kernels of two ranks may be of one exchange if their keys are equal; number: of the rank."""
    if known.name in PEERS and known.peer >= 0:
        pair = (number, known.peer) if known.name == "send" else (known.peer, number)
        return known.group, known.ranks, pair, known.tag
    return (known.group, known.ranks, known.size) if known.group or known.ranks else (known.size, stream)


class _Finding:
    """Exchanges among kernels with one key, and what had to be assumed."""

    def __init__(self, recording: Recording, by_rank: Sequence[Exchanges], ops: Sequence[GpuOps]) -> None:
        self.recording, self.by_rank, self.ops = recording, by_rank, ops
        self.notes: dict[str, None] = {}

    def known(self, member: Member) -> Collective:
        return self.by_rank[member.rank].known[member.number]

    def span(self, member: Member) -> tuple[int, int]:
        ops = self.ops[member.rank]
        return int(ops.start[member.op]), int(ops.end[member.op])

    def sets(self, held: list[list[Member]]) -> list[list[Member]]:
        """The kernels of each exchange. held: of each rank the kernels that may be of one exchange."""
        facts = self.known(held[0][0])
        strangers = [row for row in held if facts.ranks and self.recording.ranks[row[0].rank].number not in facts.ranks]
        for row in strangers:
            rank = self.recording.ranks[row[0].rank].number
            self.notes[f"rank {rank} has {len(row)} collectives of a group of other ranks: they wait for none"] = None
        held = [row for row in held if row not in strangers]
        if len(held) < 2:
            return []
        if 0 < facts.size < len(held):
            named = f" '{facts.group}'" if facts.group else ""
            self.notes[
                f"{len(held)} ranks have collectives of a group{named} of {facts.size}, and no file says which of them are one: "
                "they wait for none"
            ] = None
            return []
        world = max(len(self.recording.ranks), *(rank.world for rank in self.recording.ranks))
        if not _has_group(facts) and world > 2:
            self.notes[f"no file says which of the {world} ranks a collective is among: each stream is taken as a group"] = None
        if not self.recording.clocked:
            return self._in_order(held)
        sets = self._ending_together(held)
        if sets is None:
            sets = self._by_time(held)
        return [members for members in sets if self._overlaps(members)]

    def _overlaps(self, members: list[Member]) -> bool:
        """Whether the kernels of an exchange run at one time."""
        spans = [self.span(member) for member in members]
        start, end = max(start for start, _ in spans), min(end for _, end in spans)
        # without lengths the order of two peers is unknown
        return start < end or (start == end and self.known(members[0]).name not in PEERS)

    def _alike(self, member: Member) -> tuple[str, int]:
        known = self.known(member)
        return "peer" if known.name in PEERS else known.name, known.elements_in if known.name == "allreduce" else 0

    def _in_order(self, held: list[list[Member]]) -> list[list[Member]]:
        """The n-th kernels of all ranks, as long as their kinds and sizes agree."""
        names = [[self.by_rank[member.rank].names[member.number] for member in row] for row in held]
        if any(sorted(row) == sorted(names[0]) and row != names[0] for row in names[1:]):
            self.notes["ranks start collectives of one group in different orders: they wait for none"] = None
            return []
        sets = []
        for members in zip(*held, strict=False):
            if len({self._alike(member) for member in members}) > 1:
                break
            sets.append(list(members))
        rest = sum(map(len, held)) - len(sets) * len(held)  # integers
        if rest:
            counts = ", ".join(f"rank {self.recording.ranks[row[0].rank].number} {len(row)}" for row in held[:8])
            self.notes[
                f"ranks have unlike collectives of one group ({counts}): the first {len(sets)} of each are taken as one, "
                "the others wait for none"
            ] = None
        return sets

    def _ending_together(self, held: list[list[Member]]) -> list[list[Member]] | None:
        """The n-th kernel of every rank, if the ranks agree on kinds and sizes, and the kernels end together."""
        first = [self._alike(member) for member in held[0]]
        if any([self._alike(member) for member in row] != first for row in held[1:]):
            return None
        spans = np.array([[self.span(member) for member in row] for row in held])
        starts, ends = spans[..., 0], spans[..., 1]
        close = np.maximum(_TOGETHER, (ends - starts).min(axis=0) // 4)
        if ((ends.max(axis=0) - ends.min(axis=0)) <= close).mean() < 0.75:  # count
            return None
        return [list(members) for members in zip(*held, strict=True)]

    def _by_time(self, held: list[list[Member]]) -> list[list[Member]]:
        """Kernels of equal kind and size that end together; those that have no other are left out."""
        rows = sorted((*self.span(member)[::-1], self._alike(member), member) for row in held for member in row)
        sets: list[list[Member]] = []
        waiting: dict[tuple[str, int], tuple[int, int, list[Member]]] = {}  # by kind: first end, latest start, members
        for end, start, kind, added in rows:
            open_end, latest, members = waiting.get(kind, (0, 0, []))
            close = max(_TOGETHER, (end - max(start, latest)) // 4)
            if members and (end - open_end > close or start > open_end or any(member.rank == added.rank for member in members)):
                sets.append(members)
                members, latest, open_end = [], 0, end
            waiting[kind] = (open_end or end, max(latest, start), [*members, added])
        sets += [members for _, _, members in waiting.values()]
        return [members for members in sets if len(members) > 1]
