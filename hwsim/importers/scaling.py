"""A recording on another number of ranks: data parallel by rule.

    scaled(explain(recording), 64)

Each new rank is like a recorded one, in turn: rank 11 of 64 from a recording of 8 like rank 3. It computes the same batch on its
own GPU; collectives of all ranks become collectives of all new ranks, whose time the machine's library says. What each moves:

    all-reduce, broadcast              the same array: gradients and weights do not depend on the number of ranks
    all-gather, reduce-scatter         the same whole array: each rank holds a smaller part of sharded weights
    all-to-all                         as many bytes a rank, cut into more and smaller parts, which are equal

Refused: collectives of some of the ranks (tensor or pipeline parallel groups), sends and receives, fewer ranks than recorded.

**Range**: new ranks do not differ more than the recorded ones, and each has its own share of a host.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hwsim.importers.explaining import Explained
from hwsim.importers.meeting import PEERS, exchanges
from hwsim.importers.recording import Facts
from hwsim.importers.replay import Replay, replayed
from hwsim.records import dataclass

WHOLE: Final = frozenset({"allgather", "reduce-scatter"})


class CannotScale(ValueError):
    """A number of ranks that the recording tells nothing of, in words."""


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """A recording on more ranks, and what was assumed, in sentences."""

    replay: Replay
    assumed: tuple[str, ...]


def scaled(replay: Replay, ranks: int) -> Scaled:
    """The recording on that many data parallel ranks.

    Raises:
        CannotScale: the recording does not tell what they would do.
    """
    recording = replay.recording
    recorded = len(recording.ranks)
    world = max([recorded, *(rank.world for rank in recording.ranks)])
    if ranks < recorded:
        raise CannotScale(f"{recorded} ranks were recorded: there is no rule for fewer, {ranks}")
    assumed: dict[str, None] = {}
    facts = [tuple(_among(fact, ranks, world, assumed) for fact in rank.facts) for rank in recording.ranks]
    copies: list[Explained] = []
    for number in range(ranks):
        like = number % recorded
        like_it = replay.ranks[like]
        rank = replace(like_it.rank, number=number, world=ranks, facts=facts[like])
        copies.append(replace(like_it, rank=rank, exchanges=exchanges(rank, like_it.linked, like_it.ops)))
    if ranks > recorded:
        assumed = {f"rank r computes what rank r modulo {recorded} of the recording did, on a GPU of its own": None, **assumed}
    changed = replace(recording, ranks=tuple(copy.rank for copy in copies))
    return Scaled(replayed(changed, tuple(copies), replay.mode), tuple(assumed))


def _among(facts: Facts, ranks: int, world: int, assumed: dict[str, None]) -> Facts:
    """The facts of a slice with its collective among the new ranks."""
    stated = facts.collective
    if stated is None:
        return facts
    size = max(stated.size, len(stated.ranks))
    if stated.name in PEERS:
        raise CannotScale(f"it has a {stated.name} between two ranks: who sends to whom on {ranks} ranks is not known")
    if size not in (0, 1, world):
        named = f" ({', '.join(map(str, stated.ranks[:8]))})" if stated.ranks else ""
        raise CannotScale(f"a group{named} of {size} of {world} ranks: which groups grow is not known")
    if size == 1:
        return facts
    given, got = stated.elements_in, stated.elements_out
    if stated.name in WHOLE:
        array = max(given, got, min(given, got) * world)
        part = max(1, array // ranks) if array else 0
        given, got = (part, array) if stated.name == "allgather" else (array, part)
        assumed["all-gathers and reduce-scatters are of sharded arrays, as large as before in all"] = None
    if stated.name in ("alltoall", "sendrecv"):
        assumed["of an all-to-all each rank has as many bytes as before, in equal parts"] = None
    more = replace(stated, elements_in=given, elements_out=got, ranks=tuple(range(ranks)), size=ranks)
    return replace(facts, collective=more)
