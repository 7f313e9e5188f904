"""Match the collective kernels of several ranks, and find how long each waits for the last rank.

    collective_of(rank, linked, place)      the collective of a slice
    exchanges(rank, linked, ops)            the collective kernels of a rank
    meetings(recording, ...)                the matched collectives

Kernels can match if their ranks are in one group. A group is identified by its name, ranks and size in the file. A send and its
recv share two ranks and a tag. Without a group, each stream is a group, in order of first use. Among these kernels:

- With start times, the n-th kernels of all ranks match if most of them end together. Otherwise kernels of equal kind and size
  that end together match, because the files have different windows or are samples.
- Without start times (`Recording.clocked`), the n-th kernels match as long as kinds and sizes agree. A recv waits for its send,
  and a send waits for nothing.

A kernel stays unmatched, with a note, if its rank is not in its group, if more ranks have the group than it has members, or if
the orders of the ranks differ.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim.importers.launches import GpuOps
from hwsim.importers.recording import Ints, Rank, RecordedCollective, Recording, Small, What
from hwsim.importers.slice_links import NONE, SliceLinks
from hwsim.importers.threads import US
from hwsim.records import dataclass

_TOGETHER: Final = 100 * US  # kernels of one collective end within this time, or within a quarter of the shortest kernel
PEERS: Final = frozenset({"send", "recv"})


def collective_of(rank: Rank, linked: SliceLinks, place: int) -> RecordedCollective | None:
    """Return the collective of a slice, from its own facts, else those of the slices around it or around its launch.

    The group is that of the nearest slice with a group, the size that of the nearest slice with a size.
    """
    collective: RecordedCollective | None = None
    for around in _outward(linked, place):
        number = int(rank.slices.facts[around])
        stated = rank.facts[number].collective if number >= 0 else None
        if stated is not None:
            collective = stated if collective is None else _completed(collective, stated)
            if _has_group(collective) and _has_size(collective):
                break
    return collective


def is_exchange(rank: Rank) -> NDArray[np.bool_]:
    """Return whether each slice is the kernel of a collective."""
    known_of = np.array([fact.collective is not None for fact in rank.facts] + [False], bool)
    found: NDArray[np.bool_] = known_of[rank.slices.facts] & (rank.slices.what == What.KERNEL)
    return found


def _outward(linked: SliceLinks, place: int) -> Iterator[int]:
    """Yield a slice, then its call and the slices around it, from the inside out."""
    yield place
    call = int(linked.call[place])
    around = call if call not in (NONE, place) else int(linked.parent[place])
    while around >= 0:
        yield around
        around = int(linked.parent[around])


def _completed(collective: RecordedCollective, stated: RecordedCollective) -> RecordedCollective:
    """Fill a missing group and size of a collective from another slice."""
    taken: list[str] = []
    if not _has_group(collective) and _has_group(stated):
        taken += ["name", "ranks", "size", "group", "peer", "tag"]
    if collective.name in ("", "sendrecv"):
        taken.append("name")
    if not _has_size(collective) and _has_size(stated):
        taken += ["elements_in", "elements_out", "dtype"]
    more: dict[str, Any] = {name: getattr(stated, name) for name in taken}
    return replace(collective, **more)


def _has_group(stated: RecordedCollective) -> bool:
    return bool(stated.group or stated.ranks or stated.size)


def _has_size(stated: RecordedCollective) -> bool:
    return bool(stated.elements_in or stated.elements_out)


@dataclass(frozen=True, slots=True, eq=False)
class CollectiveKernels:
    """The collective kernels of a rank, in order of start.

    Args:
        ops: index among its GPU ops.
        known: collective of each kernel.
        names: name of each kernel.
        streams: stream of each kernel, numbered in order of first use.
    """

    ops: Ints
    known: tuple[RecordedCollective, ...]
    names: tuple[str, ...]
    streams: tuple[int, ...]


def exchanges(rank: Rank, linked: SliceLinks, ops: GpuOps) -> CollectiveKernels:
    """Return the collective kernels of a rank."""
    slices = rank.slices
    kernels = np.flatnonzero(is_exchange(rank)[ops.slice])
    lanes = np.array([*ops.lane, NONE], np.int64)[ops.queue[kernels]]
    numbers = np.array([(lane.device, lane.number) for lane in rank.lanes], np.int64).reshape(-1, 2)[lanes]
    order = np.lexsort((numbers[:, 1], numbers[:, 0], ops.start[kernels]))
    kernels, lanes = kernels[order], lanes[order]
    streams = {lane: number for number, lane in enumerate(dict.fromkeys(lanes.tolist()))}
    places = ops.slice[kernels].tolist()
    return CollectiveKernels(
        kernels,
        tuple(collective_of(rank, linked, place) or RecordedCollective("") for place in places),
        tuple(rank.names[name] for name in slices.name[places].tolist()),
        tuple(streams[lane] for lane in lanes.tolist()),
    )


class Member(NamedTuple):
    """A collective kernel: position of its rank, index among the collective kernels and the GPU ops of the rank."""

    rank: int
    number: int
    op: int


@dataclass(frozen=True, slots=True, eq=False)
class MatchedCollectives:
    """The matched collectives, one row per kernel.

    Args:
        meeting: index of the collective.
        rank: position of the rank in the recording.
        op: index of the kernel among the GPU ops of the rank.
        latest: start of the last kernel of the collective (fs); without start times, start of the kernel.
        takes: whether the kernel waits for the other ranks.
        kinds: operation of each collective.
        sizes: number of ranks in the group of each collective; 0 if unknown.
        notes: assumptions, and reasons for unmatched kernels.
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


def meetings(recording: Recording, by_rank: Sequence[CollectiveKernels], ops: Sequence[GpuOps]) -> MatchedCollectives:
    """Match the collective kernels of the ranks of a recording."""
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
    return MatchedCollectives(
        meeting=meeting,
        rank=np.array([member.rank for member in rows], np.int32),
        op=np.array([member.op for member in rows], np.int64),
        latest=start if is_ordered else latest[meeting],
        takes=(kinds != "send") | (not is_ordered),
        kinds=tuple("sendrecv" if (name := finding.known(members[0]).name) in PEERS else name for members in met),
        sizes=tuple(finding.known(members[0]).size for members in met),
        notes=tuple(finding.notes),
    )


def none_of(met: MatchedCollectives, why: str) -> MatchedCollectives:
    """Return no matched collectives, with the reason as a note."""
    columns = {name: getattr(met, name)[:0] for name in ("meeting", "rank", "op", "latest", "takes", "kinds", "sizes")}
    return MatchedCollectives(**columns, notes=(*met.notes, why))


def _key(known: RecordedCollective, stream: int, number: int) -> Hashable:
    """Return the key of a kernel; kernels of two ranks can match only if their keys are equal."""
    if known.name in PEERS and known.peer >= 0:
        pair = (number, known.peer) if known.name == "send" else (known.peer, number)
        return known.group, known.ranks, pair, known.tag
    return (known.group, known.ranks, known.size) if known.group or known.ranks else (known.size, stream)


class _Finding:
    """A matcher of kernels with equal keys, which collects notes."""

    def __init__(self, recording: Recording, by_rank: Sequence[CollectiveKernels], ops: Sequence[GpuOps]) -> None:
        self.recording, self.by_rank, self.ops = recording, by_rank, ops
        self.notes: dict[str, None] = {}

    def known(self, member: Member) -> RecordedCollective:
        return self.by_rank[member.rank].known[member.number]

    def span(self, member: Member) -> tuple[int, int]:
        ops = self.ops[member.rank]
        return int(ops.start[member.op]), int(ops.end[member.op])

    def sets(self, held: list[list[Member]]) -> list[list[Member]]:
        """Return the kernels of each collective.

        Args:
            held: kernels with one key, by rank.
        """
        facts = self.known(held[0][0])
        strangers = [row for row in held if facts.ranks and self.recording.ranks[row[0].rank].number not in facts.ranks]
        for row in strangers:
            rank = self.recording.ranks[row[0].rank].number
            self.notes[f"rank {rank} has {len(row)} collectives of a group to which it does not belong: they do not wait"] = None
        held = [row for row in held if row not in strangers]
        if len(held) < 2:
            return []
        if 0 < facts.size < len(held):
            named = f" '{facts.group}'" if facts.group else ""
            self.notes[
                f"{len(held)} ranks have collectives of a group{named} of {facts.size} ranks, which cannot be matched: "
                "they do not wait"
            ] = None
            return []
        world = max(len(self.recording.ranks), *(rank.world for rank in self.recording.ranks))
        if not _has_group(facts) and world > 2:
            self.notes[f"the files have no groups of the {world} ranks: each stream is assumed to be one group"] = None
        if not self.recording.clocked:
            return self._in_order(held)
        sets = self._ending_together(held)
        if sets is None:
            sets = self._by_time(held)
        return [members for members in sets if self._overlaps(members)]

    def _overlaps(self, members: list[Member]) -> bool:
        """Return whether the kernels of a collective overlap in time."""
        spans = [self.span(member) for member in members]
        start, end = max(start for start, _ in spans), min(end for _, end in spans)
        # without durations the order of two peers is unknown
        return start < end or (start == end and self.known(members[0]).name not in PEERS)

    def _alike(self, member: Member) -> tuple[str, int]:
        known = self.known(member)
        return "peer" if known.name in PEERS else known.name, known.elements_in if known.name == "allreduce" else 0

    def _in_order(self, held: list[list[Member]]) -> list[list[Member]]:
        """Match the n-th kernels of all ranks as long as their kinds and sizes agree."""
        names = [[self.by_rank[member.rank].names[member.number] for member in row] for row in held]
        if any(sorted(row) == sorted(names[0]) and row != names[0] for row in names[1:]):
            self.notes["ranks start the collectives of a group in different orders: they do not wait"] = None
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
                f"ranks have different collectives of one group ({counts}): the first {len(sets)} are matched, "
                "the others do not wait"
            ] = None
        return sets

    def _ending_together(self, held: list[list[Member]]) -> list[list[Member]] | None:
        """Match the n-th kernels of all ranks if kinds and sizes agree and most of them end together; else return None."""
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
        """Match kernels of equal kind and size that end together."""
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
