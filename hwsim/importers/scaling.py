"""Scale a recording to more data-parallel ranks.

    scaled(explain(recording), 64)

New ranks repeat the recorded ranks in turn: with 8 recorded ranks, rank 11 of 64 repeats rank 3. Each computes the same batch
on its own GPU. Collectives of all recorded ranks become collectives of all new ranks, and the library of the machine sets their
time. Sizes:

    all-reduce, broadcast              unchanged, because gradients and weights do not depend on the number of ranks
    all-gather, reduce-scatter         the same whole array, of which each rank has a smaller shard
    all-to-all                         the same bytes per rank, in more and smaller equal parts

Refused: collectives of a part of the ranks (tensor or pipeline parallel groups), sends and receives, fewer ranks than recorded.

**Range**: new ranks differ no more than the recorded ones, and each has its own share of a host.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hwsim.importers.collective_matches import PEERS, exchanges
from hwsim.importers.rank_rules import RankRules
from hwsim.importers.recording import SliceFacts
from hwsim.importers.replay import RecordingReplay, replayed
from hwsim.records import dataclass

WHOLE: Final = frozenset({"allgather", "reduce-scatter"})


class CannotScale(ValueError):
    """An error for a number of ranks to which the recording cannot be scaled."""


@dataclass(frozen=True, slots=True, eq=False)
class ScaledRecording:
    """A recording on more ranks, and its assumptions in sentences."""

    replay: RecordingReplay
    assumed: tuple[str, ...]


def scaled(replay: RecordingReplay, ranks: int) -> ScaledRecording:
    """Scale a recording to a number of data-parallel ranks.

    Raises:
        CannotScale: the work of the new ranks is unknown.
    """
    recording = replay.recording
    recorded = len(recording.ranks)
    world = max([recorded, *(rank.world for rank in recording.ranks)])
    if ranks < recorded:
        raise CannotScale(f"expected at least the {recorded} recorded ranks, got {ranks}")
    assumed: dict[str, None] = {}
    facts = [tuple(_among(fact, ranks, world, assumed) for fact in rank.facts) for rank in recording.ranks]
    copies: list[RankRules] = []
    for number in range(ranks):
        like = number % recorded
        like_it = replay.ranks[like]
        rank = replace(like_it.rank, number=number, world=ranks, facts=facts[like])
        copies.append(replace(like_it, rank=rank, exchanges=exchanges(rank, like_it.linked, like_it.ops)))
    if ranks > recorded:
        assumed = {f"rank r repeats the work of recorded rank r modulo {recorded}, on its own GPU": None, **assumed}
    changed = replace(recording, ranks=tuple(copy.rank for copy in copies))
    return ScaledRecording(replayed(changed, tuple(copies), replay.mode), tuple(assumed))


def _among(facts: SliceFacts, ranks: int, world: int, assumed: dict[str, None]) -> SliceFacts:
    """Return the facts of a slice, with its collective among the new ranks."""
    stated = facts.collective
    if stated is None:
        return facts
    size = max(stated.size, len(stated.ranks))
    if stated.name in PEERS:
        raise CannotScale(f"the recording has a {stated.name} between two ranks: the peers on {ranks} ranks are unknown")
    if size not in (0, 1, world):
        named = f" ({', '.join(map(str, stated.ranks[:8]))})" if stated.ranks else ""
        raise CannotScale(f"the recording has a group{named} of {size} of {world} ranks: the groups on more ranks are unknown")
    if size == 1:
        return facts
    given, got = stated.elements_in, stated.elements_out
    if stated.name in WHOLE:
        array = max(given, got, min(given, got) * world)
        part = max(1, array // ranks) if array else 0
        given, got = (part, array) if stated.name == "allgather" else (array, part)
        assumed["all-gathers and reduce-scatters are of sharded arrays of the same total size"] = None
    if stated.name in ("alltoall", "sendrecv"):
        assumed["an all-to-all has the same bytes per rank, in equal parts"] = None
    more = replace(stated, elements_in=given, elements_out=got, ranks=tuple(range(ranks)), size=ranks)
    return replace(facts, collective=more)
