"""New times of collectives: as long as the machine's library takes, once all ranks have come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.importers.aten.exchanges import whole_bytes
from hwsim.importers.explaining import Explained
from hwsim.importers.linking import Linked
from hwsim.importers.lowering import CannotLower
from hwsim.importers.predicting.times import Times
from hwsim.importers.recording import Collective
from hwsim.ticks import FEMTO

OPERATIONS: Final = {  # hwsim's ops -> operations of its collectives
    "allreduce": "all-reduce", "allgather": "all-gather", "reduce-scatter": "reduce-scatter", "alltoall": "all-to-all",
    "broadcast": "broadcast", "gather": "gather", "scatter": "scatter", "reduce": "reduce", "barrier": "barrier",
    "sendrecv": "all-to-all",
}  # fmt: skip


def exchanges(times: Times, position: int, explained: Explained, ops: NDArray[np.intp]) -> None:
    """The transfer of each collective among the GPUs of its group."""
    met = times.replay.meetings
    mine = np.flatnonzero(met.rank == position)
    meeting_of = dict(zip(met.op[mine].tolist(), met.meeting[mine].tolist(), strict=True))
    by_slice = {int(place): number for number, place in enumerate(explained.ops.slice.tolist())}
    by_op = dict(zip(explained.exchanges.ops.tolist(), explained.exchanges.known, strict=True))
    for op in ops.tolist():
        number = by_slice[int(times.replay.slice[op])]
        exchange = by_op[number]
        collective = _collective(explained, int(times.replay.slice[op]), exchange.kind)
        meeting = meeting_of.get(number)
        together = [int(each) for each in met.rank[met.meeting == meeting]] if meeting is not None else [position]
        _exchange(times, op, position, collective, together, met.sizes[meeting] if meeting is not None else 0)


def _exchange(times: Times, op: int, position: int, collective: Collective, together: list[int], size: int) -> None:
    count = max(collective.size, len(collective.ranks), size, len(together), times.replay.recording.ranks[position].world)
    members = times.placing.members(collective.ranks, together, count)
    amount = whole_bytes(replace(collective, size=count)) if collective.elements_in or collective.elements_out else 0.0
    name = f"{collective.name} among {count}"
    if amount <= 0:
        times.keep(op, "collectives", name, "the file has no size of it")
        return
    if members is None:
        times.keep(op, "collectives", name, f"the machine has {len(times.placing.all)} GPUs")
        return
    operation = OPERATIONS.get(collective.name, "")
    try:
        if not operation:
            raise CannotLower(f"no collective of hwsim is called {collective.name}")
        lowered = times.lowering.exchange(operation, amount, members)
    except CannotLower as error:
        times.keep(op, "collectives", name, str(error))
        return
    if len(together) < count:
        times.assumed[f"of {count} ranks of a collective {len(together)} were recorded: it waits for none of the others"] = None
    seconds = lowered.body + lowered.start
    recorded = times.body.time[op] / FEMTO
    times.time[op] = round(seconds * FEMTO)
    doubts = lowered.doubts(seconds)
    times.cost[op] = times.derived(name, lowered, seconds, members[0], doubts)
    times.sum("collectives", name, "predicted", "").add(recorded, seconds, doubts)


def _collective(explained: Explained, place: int, kind: str) -> Collective:
    """The collective of a kernel as the file has it: on the kernel, or on the slices around its launch."""
    rank, linked = explained.rank, explained.linked
    best = Collective(kind)
    for around in _outward(linked, place):
        number = int(rank.slices.facts[around])
        stated = rank.facts[number].collective if number >= 0 else None
        if stated is not None and (stated.elements_in or stated.elements_out) and not best.elements_in:
            best = replace(stated, name=kind if stated.name == "sendrecv" else stated.name)
        elif stated is not None and best.name == "sendrecv":
            best = replace(best, name=stated.name)
    return best


def _outward(linked: Linked, place: int) -> Iterator[int]:
    """A slice, its call, and the slices around that."""
    yield place
    around = int(linked.call[place])
    while around >= 0:
        yield around
        around = int(linked.parent[around])
