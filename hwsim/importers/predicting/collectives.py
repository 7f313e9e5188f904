"""Predict the times of collectives, from the arrival of the last rank, with the library of the machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.importers.aten.exchanges import whole_bytes
from hwsim.importers.collective_matches import PEERS
from hwsim.importers.lowering import CannotLower
from hwsim.importers.predicting.times import PredictedTimes
from hwsim.importers.rank_rules import RankRules
from hwsim.importers.recording import RecordedCollective

OPERATIONS: Final = {  # name of hwsim's op -> operation of `collective`
    "allreduce": "all-reduce", "allgather": "all-gather", "reduce-scatter": "reduce-scatter", "alltoall": "all-to-all",
    "broadcast": "broadcast", "gather": "gather", "scatter": "scatter", "reduce": "reduce", "barrier": "barrier",
    "sendrecv": "all-to-all", "send": "send", "recv": "send",
}  # fmt: skip


def exchanges(times: PredictedTimes, position: int, explained: RankRules, ops: NDArray[np.intp]) -> None:
    """Predict the transfer of each collective of a rank."""
    met = times.replay.meetings
    mine = np.flatnonzero(met.rank == position)
    meeting_of = dict(zip(met.op[mine].tolist(), met.meeting[mine].tolist(), strict=True))
    by_slice = {int(place): number for number, place in enumerate(explained.ops.slice.tolist())}
    collectives = dict(zip(explained.exchanges.ops.tolist(), explained.exchanges.known, strict=True))
    for op in ops.tolist():
        number = by_slice[int(times.replay.slice[op])]
        meeting = meeting_of.get(number)
        together = met.rank[met.meeting == meeting].tolist() if meeting is not None else [position]
        _exchange(times, op, position, collectives[number], together)


def _exchange(times: PredictedTimes, op: int, position: int, collective: RecordedCollective, together: list[int]) -> None:
    rank = times.replay.recording.ranks[position]
    is_peer = collective.name in PEERS
    count = 2 if is_peer else collective.size or max(len(together), rank.world)
    ranks = (rank.number, collective.peer) if is_peer and collective.peer >= 0 else collective.ranks
    members = times.placing.members(ranks, together, count)
    amount = whole_bytes(replace(collective, size=count)) if collective.elements_in or collective.elements_out else 0.0
    name = f"{collective.name} among {count}"
    try:
        if amount <= 0:
            raise CannotLower("no size in the file")
        if members is None:
            raise CannotLower(f"it needs more than the {len(times.placing.all)} GPUs of the machine")
        if collective.name not in OPERATIONS:
            raise CannotLower(f"no model of the collective {collective.name}")
        lowered = times.lowering.exchange(OPERATIONS[collective.name], amount, members)
    except CannotLower as error:
        times.keep(op, "collectives", name, str(error))
        return
    if not collective.size and not is_peer and count > 1:
        times.assumed[f"the files have no group sizes of collectives: all {count} ranks are assumed"] = None
    if len(together) < count:
        times.assumed[f"{len(together)} of {count} ranks of a collective were recorded: it does not wait for the others"] = None
    seconds = lowered.body + lowered.start
    times.put(op, "collectives", name, lowered, seconds, members[0], lowered.doubts(seconds))
