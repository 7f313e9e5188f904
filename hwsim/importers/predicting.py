"""A recording on another machine: durations from shapes, in the replay's graph.

    predict(explain(recording), load_machine("dgx-h100")).graph

An operator is lowered once for each set of shapes, on the GPU of its rank; its kernels share that time in proportion to what
was recorded of them. A copy is as long as its bytes take over the machine's links, a memset as its memory takes. A collective
is as long as the machine's library takes among the GPUs of its group, once all ranks have come: waiting follows from the
replay. Host threads are as recorded, for what they take is software; operators of a recording without a GPU are computed on a
core of the machine's CPU.

An operator without shapes, or without a statement, keeps its recorded time, and is listed with it.

**Range**: the kernels of the recording, in their order: a library may take others on another GPU. Ops of one stream follow
one another, ops of several streams do not slow each other down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from hwsim.demand import Cost, Demand, Doubt, Term
from hwsim.graph.opgraph import OpGraph
from hwsim.importers.aten import Meaning, meaning, plain
from hwsim.importers.aten.exchanges import whole_bytes
from hwsim.importers.explaining import Explained
from hwsim.importers.lowering import CannotLower, Lowered, Lowering
from hwsim.importers.matrix_units import Formats, formats_of
from hwsim.importers.placing import Placing, WrongMachine, placed
from hwsim.importers.recording import Collective, Facts, Ints, Rank, Small, What
from hwsim.importers.replay import Part, Replay
from hwsim.importers.tensor import Split
from hwsim.importers.threads import Piece
from hwsim.importers.untimed import ASSUMED, on_gpus, working
from hwsim.machine import Machine
from hwsim.records import dataclass
from hwsim.ticks import FEMTO

GAP: Final = 1e-6  # seconds between two kernels of a stream, where a recording shows longer ones
How = Literal["predicted", "kept", "host"]
OPERATIONS: Final = {  # hwsim's ops -> operations of its collectives
    "allreduce": "all-reduce", "allgather": "all-gather", "reduce-scatter": "reduce-scatter", "alltoall": "all-to-all",
    "broadcast": "broadcast", "gather": "gather", "scatter": "scatter", "reduce": "reduce", "barrier": "barrier",
    "sendrecv": "all-to-all",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """The time of one operator in all ranks.

    Args:
        kind: kind of work. name: name of the operator. how: whether its time was predicted.
        count: calls; recorded, time: seconds in all, as recorded and on the machine.
        why: where the recorded time is kept, the reason.
        doubts: errors of the predicted seconds.
    """

    kind: str
    name: str
    how: How
    count: int
    recorded: float
    time: float
    why: str = ""
    doubts: tuple[Doubt, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """A recording on a machine.

    Args:
        graph: the replay's, with the times of the machine; ops whose times were predicted have their derivations.
        rows: by operator, the longest first. assumed: what was assumed, in sentences.
        devices: GPU of each rank.
    """

    replay: Replay
    machine: Machine
    graph: OpGraph
    rows: tuple[Row, ...]
    assumed: tuple[str, ...]
    devices: tuple[str, ...]


@dataclass(slots=True)
class _Sum:
    count: int = 0
    recorded: float = 0.0
    time: float = 0.0
    doubts: dict[tuple[Any, ...], Doubt] = field(default_factory=dict)

    def add(self, recorded: float, time: float, doubts: tuple[Doubt, ...] = ()) -> None:
        self.count, self.recorded, self.time = self.count + 1, self.recorded + recorded, self.time + time
        for each in doubts:
            before = self.doubts.get(each[:3])
            self.doubts[each[:3]] = each if before is None else each._replace(seconds=before.seconds + each.seconds)


@dataclass(frozen=True, slots=True)
class _Timed:
    """Seconds of an operator, and the cost that carries its derivation."""

    seconds: float
    doubts: tuple[Doubt, ...]
    cost: int


def predict(replay: Replay, machine: Machine, *, keep_host: bool = False, divided: Split | None = None) -> Predicted:
    """The recording on the machine.

    Args:
        keep_host: host threads are as recorded, also in a recording without a GPU.
        divided: the replay with its products divided among the GPUs of each rank.

    Raises:
        WrongMachine: it has too few GPUs for the ranks.
    """
    return _Predictor(on_gpus(replay), machine, keep_host, divided).predicted()


def _amounts(rank: Rank, place: int) -> tuple[float, float] | None:
    """Operations and bytes of a slice without a time (num_ops and tensor_size of Chakra); None if its file does not say them."""
    facts = int(rank.slices.facts[place])
    if facts < 0 or rank.slices.duration[place]:
        return None
    attributes = dict(rank.facts[facts].attributes)
    flop, moved = attributes.get("num_ops"), attributes.get("tensor_size", 0.0)
    return (flop, moved) if isinstance(flop, float) and isinstance(moved, float) else None


class _Predictor:
    """Times of the ops of a replay on a machine."""

    def __init__(self, replay: Replay, machine: Machine, keep_host: bool, divided: Split | None) -> None:
        self._replay, self._machine, self._keep_host = replay, machine, keep_host
        self._lowering = Lowering(machine)
        self._placing: Placing = placed(replay.recording, machine, divided.group if divided else 1)
        self._summed = divided.summed if divided else {}
        self._formats: Formats = formats_of(replay.recording)
        self._body = replay.graph.blocks[0]
        self._time: Ints = self._body.time.copy()
        self._cost: Ints = self._body.cost.copy()
        self._costs: dict[Cost, int] = {}
        self._sums: dict[tuple[str, str, How, str], _Sum] = {}
        self._assumed: dict[str, None] = {} if replay.recording.timed else dict.fromkeys(ASSUMED)
        self._known: dict[tuple[int, int, int, str], _Timed | str] = {}
        self._meanings: dict[tuple[str, Facts | None], Meaning] = {}

    def predicted(self) -> Predicted:
        """Every rank in turn."""
        part, ranks, slices = self._replay.part, self._replay.rank, self._replay.slice
        for position, explained in enumerate(self._replay.ranks):
            mine = ranks == position
            self._kernels(position, explained, np.flatnonzero(mine & (part == Part.DEVICE)))
            self._exchanges(position, explained, np.flatnonzero(mine & (part == Part.COLLECTIVE)))
            self._host(position, explained, np.flatnonzero(mine & (part == Part.HOST)), slices)
        body = replace(self._body, time=self._time, cost=self._cost)
        graph = replace(self._replay.graph, blocks=(body,), costs=tuple(self._costs))
        rows = [
            Row(kind, name, how, total.count, total.recorded, total.time, why, tuple(total.doubts.values()))
            for (kind, name, how, why), total in self._sums.items()
        ]
        rows.sort(key=lambda row: (-row.recorded, row.name))
        return Predicted(self._replay, self._machine, graph, tuple(rows), tuple(self._assumed), self._placing.gpus)

    # ---- GPU ops ----

    def _kernels(self, position: int, explained: Explained, ops: NDArray[np.intp]) -> None:
        """Kernels by the call of the operator around their launches; copies and sets by their bytes."""
        slices, rank = explained.rank.slices, explained.rank
        linked, at = explained.linked, self._replay.slice[ops]
        shaped, around = linked.shaped[at], linked.op[at]
        owner = np.where(shaped >= 0, shaped, around)
        is_kernel = slices.what[at] == What.KERNEL
        for op, place in zip(ops[~is_kernel].tolist(), at[~is_kernel].tolist(), strict=True):
            self._moved(position, explained, op, place)
        kernels, owner = ops[is_kernel], owner[is_kernel]
        for op in kernels[owner < 0].tolist():
            place = int(self._replay.slice[op])
            amounts = _amounts(rank, place)
            if amounts is None:
                self._keep(op, "other", rank.names[slices.name[place]], "no operator around its launch is known")
            else:
                self._by_amounts(position, op, rank.names[slices.name[place]], amounts)
        order = np.argsort(owner, kind="stable")
        order = order[owner[order] >= 0]
        bounds = np.flatnonzero(np.diff(owner[order], prepend=-1, append=-1))
        for begin, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            self._operator(position, explained, int(owner[order[begin]]), kernels[order[begin:stop]])

    def _by_amounts(self, position: int, op: int, name: str, amounts: tuple[float, float]) -> None:
        """A kernel whose file states its operations and bytes, and no time: the roofline of the device."""
        device = self._placing.gpus[position]
        flop, moved = amounts
        try:
            lowered = self._lowering.on({"compute": {"flop": f"{flop:.0f} FLOP", "bytes": f"{moved:.0f} B"}}, device)
        except CannotLower as error:
            self._keep(op, "other", name, str(error))
            return
        seconds = lowered.body + max(lowered.start, self._placing.starts[device])
        doubts = (Doubt("product/big", "outside", "operations that a file counts", seconds),)
        self._time[op], self._cost[op] = round(seconds * FEMTO), self._derived(name, lowered, seconds, device, doubts)
        self._sum("amounts", name, "predicted", "").add(self._body.time[op] / FEMTO, seconds, doubts)
        self._assumed["operations that a file counts are of products in fp32: it does not say of what they are"] = None

    def _operator(self, position: int, explained: Explained, owner: int, kernels: NDArray[np.intp]) -> None:
        """The kernels of one call of an operator."""
        rank = explained.rank
        name, facts = rank.names[rank.slices.name[owner]], int(rank.slices.facts[owner])
        gap = min(explained.latencies.gap / FEMTO, GAP)
        timed = self._timed(position, name, rank.facts[facts] if facts >= 0 else None, len(kernels), gap)
        recorded = self._body.time[kernels].astype(np.float64) / FEMTO
        if isinstance(timed, str):
            for op in kernels.tolist():
                self._keep(op, self._meaning(name, rank.facts[facts] if facts >= 0 else None).kind, plain(name), timed, calls=0)
            self._sums[self._meaning_key(name, rank, facts, timed)].count += 1
            return
        total = recorded.sum()
        share = recorded / total if total > 0 else np.full(len(kernels), 1.0 / len(kernels))
        self._time[kernels] = np.rint(share * timed.seconds * FEMTO).astype(np.int64)
        self._cost[kernels] = timed.cost
        kind = self._meaning(name, rank.facts[facts] if facts >= 0 else None).kind
        self._sum(kind, plain(name), "predicted", "").add(float(total), timed.seconds, timed.doubts)
        if (position, owner) in self._summed:
            self._add_sum(position, owner, int(kernels[-1]))

    def _add_sum(self, position: int, owner: int, kernel: int) -> None:
        """The sum of an operator's results among the GPUs of its group, after its last kernel.

        Raises:
            WrongMachine: the machine cannot sum among them.
        """
        summed, members = self._summed[position, owner], self._placing.own(position)
        try:
            lowered = self._lowering.exchange("all-reduce", summed.bytes, members)
        except CannotLower as error:
            raise WrongMachine(str(error)) from error
        seconds = summed.times * (lowered.body + lowered.start)
        self._time[kernel] += round(seconds * FEMTO)
        name = f"allreduce of activations among {len(members)}"
        self._sum("collectives", name, "predicted", "").add(0.0, seconds, lowered.doubts(seconds))

    def _timed(self, position: int, name: str, facts: Facts | None, kernels: int, gap: float) -> _Timed | str:
        """The time of an operator on the GPU of a rank, or why there is none."""
        device = self._placing.gpus[position]
        key = id(self._machine.device(device).model), id(facts), kernels, name
        timed = self._known.get(key)
        if timed is None:
            timed = self._known[key] = self._lowered(device, name, facts, kernels, gap)
        return timed

    def _lowered(self, device: str, name: str, facts: Facts | None, kernels: int, gap: float) -> _Timed | str:
        meant = self._meaning(name, facts)
        if meant.statement is None:
            return meant.why or "an operator that has no work"
        if meant.kind == "collectives":
            return "a collective whose kernel is none of NCCL's"
        statement = self._formats.applied(meant.statement)
        try:
            lowered = self._lowering.on(statement, device)
        except CannotLower as error:
            return str(error)
        start = self._placing.starts[device]
        seconds = lowered.body + max(lowered.start - gap, kernels * (start - gap), 0.0)
        doubts = lowered.doubts(seconds, kernels)
        return _Timed(seconds, doubts, self._derived(name, lowered, seconds, device, doubts))

    def _derived(self, name: str, lowered: Lowered, seconds: float, device: str, doubts: tuple[Doubt, ...]) -> int:
        """The number of a cost that has no demand, and says how the time came about and how sure it is."""
        longest = max(lowered.lines, key=lambda line: line.seconds, default=None)
        inputs = longest.inputs if longest is not None else ()
        formula = longest.formula if longest is not None else "its own time"
        line = Term(plain(name), formula, inputs, seconds, f"{device}.compute", kind="kernels", doubts=doubts)
        cost = Cost(Demand(), why=(line,))
        return self._costs.setdefault(cost, len(self._costs))

    def _moved(self, position: int, explained: Explained, op: int, place: int) -> None:
        """A copy or a memset."""
        rank, slices = explained.rank, explained.rank.slices
        name = rank.names[slices.name[place]]
        number = int(slices.facts[place])
        facts = rank.facts[number] if number >= 0 else Facts()
        is_copy = slices.what[place] == What.COPY
        kind = "copies" if is_copy else "sets"
        size, gpu = facts.bytes, self._placing.gpus[position]
        if size <= 0:
            self._keep(op, kind, name, "the file has no bytes of it")
            return
        ends = self._placing.ends(facts.kind or name, position) if is_copy else (gpu, gpu)
        try:
            if ends is None:
                raise CannotLower("it does not say between what it copies")
            if not is_copy or ends[0] == ends[1]:
                read = size if is_copy else 0.0
                keys = {"bytes": f"{size + read:.0f} B", "result": f"{size:.0f} B", "mix": "vector"}
                lowered, start = self._lowering.on({"compute": keys}, gpu), self._placing.starts[gpu]
            else:
                lowered = self._lowering.copy(*ends, size, pageable="pageable" in f"{facts.kind} {name}".lower())
                start = lowered.start
        except CannotLower as error:
            self._keep(op, kind, name, str(error))
            return
        seconds = lowered.body + max(0.0, start - min(explained.latencies.gap / FEMTO, GAP))
        doubts = lowered.doubts(seconds)
        recorded = self._body.time[op] / FEMTO
        self._time[op], self._cost[op] = round(seconds * FEMTO), self._derived(name, lowered, seconds, gpu, doubts)
        self._sum(kind, name, "predicted", "").add(recorded, seconds, doubts)

    # ---- collectives ----

    def _exchanges(self, position: int, explained: Explained, ops: NDArray[np.intp]) -> None:
        """The transfer of each collective among the GPUs of its group."""
        met = self._replay.meetings
        mine = np.flatnonzero(met.rank == position)
        meeting_of = dict(zip(met.op[mine].tolist(), met.meeting[mine].tolist(), strict=True))
        by_slice = {int(place): number for number, place in enumerate(explained.ops.slice.tolist())}
        by_op = dict(zip(explained.exchanges.ops.tolist(), explained.exchanges.known, strict=True))
        for op in ops.tolist():
            number = by_slice[int(self._replay.slice[op])]
            exchange = by_op[number]
            collective = self._collective(explained, int(self._replay.slice[op]), exchange.kind)
            meeting = meeting_of.get(number)
            together = [int(each) for each in met.rank[met.meeting == meeting]] if meeting is not None else [position]
            self._exchange(op, position, collective, together, met.sizes[meeting] if meeting is not None else 0)

    def _exchange(self, op: int, position: int, collective: Collective, together: list[int], size: int) -> None:
        count = max(collective.size, len(collective.ranks), size, len(together), self._replay.recording.ranks[position].world)
        members = self._placing.members(collective.ranks, together, count)
        amount = whole_bytes(replace(collective, size=count)) if collective.elements_in or collective.elements_out else 0.0
        name = f"{collective.name} among {count}"
        if amount <= 0:
            self._keep(op, "collectives", name, "the file has no size of it")
            return
        if members is None:
            self._keep(op, "collectives", name, f"the machine has {len(self._placing.all)} GPUs")
            return
        operation = OPERATIONS.get(collective.name, "")
        try:
            if not operation:
                raise CannotLower(f"no collective of hwsim is called {collective.name}")
            lowered = self._lowering.exchange(operation, amount, members)
        except CannotLower as error:
            self._keep(op, "collectives", name, str(error))
            return
        if len(together) < count:
            self._assumed[f"of {count} ranks of a collective {len(together)} were recorded: it waits for none of the others"] = (
                None
            )
        seconds = lowered.body + lowered.start
        recorded = self._body.time[op] / FEMTO
        self._time[op] = round(seconds * FEMTO)
        doubts = lowered.doubts(seconds)
        self._cost[op] = self._derived(name, lowered, seconds, members[0], doubts)
        self._sum("collectives", name, "predicted", "").add(recorded, seconds, doubts)

    def _collective(self, explained: Explained, place: int, kind: str) -> Collective:
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

    # ---- host ----

    def _host(self, position: int, explained: Explained, ops: NDArray[np.intp], slices: Small) -> None:
        """Operators of a recording without a GPU on a core of the CPU; otherwise host threads are as recorded."""
        total = float(self._body.time[ops].sum()) / FEMTO
        computes = not self._keep_host and not len(explained.ops)
        if not computes:
            self._sum("host", "host threads", "host", "software, as recorded").add(total, total)
            return
        rest = total
        timed = self._replay.recording.timed
        chosen = _outermost(explained, self._meaning) if timed else working(explained.rank, explained.linked, self._meaning)
        inner = _by_piece(explained, chosen)
        device = self._placing.host(position)
        for op in ops.tolist():
            place = int(slices[op])
            if place < 0 or explained.rank.slices.what[place] != What.OP:
                continue
            rest -= self._host_op(op, place, explained, inner.get(place, []), device)
        self._sum("host", "between operators", "host", "software, as recorded").add(rest, rest)

    def _host_op(self, op: int, place: int, explained: Explained, inside: list[int], device: str) -> float:
        """Operators with a statement inside an outermost one, whose other time is as recorded; their recorded seconds."""
        rank = explained.rank
        taken, changed = 0.0, 0.0
        lowered: Lowered | None = None
        for at in inside:
            name, number = rank.names[rank.slices.name[at]], int(rank.slices.facts[at])
            meant = self._meaning(name, rank.facts[number])
            recorded = float(rank.slices.duration[at]) / FEMTO
            try:
                if meant.statement is None:
                    raise CannotLower(meant.why)
                if meant.kind == "collectives":
                    raise CannotLower("a collective of processes without a GPU")
                (kind, keys) = next(iter(meant.statement.items()))
                lowered = self._lowering.on({kind: {**keys, "cores": 1}}, device)
            except CannotLower as error:
                self._sum(meant.kind, plain(name), "kept", str(error)).add(recorded, recorded)
                taken += recorded
                continue
            seconds = lowered.body + lowered.start
            self._sum(meant.kind, plain(name), "predicted", "").add(recorded, seconds, lowered.doubts(seconds))
            taken, changed = taken + recorded, changed + seconds - recorded
        seconds_now = max(0.0, float(self._body.time[op]) / FEMTO + changed)
        if lowered is not None:
            self._time[op] = round(seconds_now * FEMTO)
            name = rank.names[rank.slices.name[place]]
            self._cost[op] = self._derived(name, lowered, seconds_now, device, lowered.doubts(seconds_now))
        return taken

    # ---- sums ----

    def _meaning(self, name: str, facts: Facts | None) -> Meaning:
        key = name, facts
        found = self._meanings.get(key)
        if found is None:
            found = self._meanings[key] = meaning(name, facts)
        return found

    def _meaning_key(self, name: str, rank: Any, facts: int, why: str) -> tuple[str, str, How, str]:
        return self._meaning(name, rank.facts[facts] if facts >= 0 else None).kind, plain(name), "kept", why

    def _sum(self, kind: str, name: str, how: How, why: str) -> _Sum:
        return self._sums.setdefault((kind, name, how, why), _Sum())

    def _keep(self, op: int, kind: str, name: str, why: str, calls: int = 1) -> None:
        """An op keeps its recorded time."""
        seconds = float(self._body.time[op]) / FEMTO
        found = self._sum(kind, name, "kept", why)
        found.count, found.recorded, found.time = found.count + calls, found.recorded + seconds, found.time + seconds


def _outward(linked: Any, place: int) -> Iterator[int]:
    """A slice, its call, and the slices around that."""
    yield place
    around = int(linked.call[place])
    while around >= 0:
        yield around
        around = int(linked.parent[around])


def _by_piece(explained: Explained, chosen: Iterable[int]) -> Mapping[int, list[int]]:
    """Chosen slices by the outermost operator of their piece; those of none are left out."""
    pieces, parent = explained.pieces, explained.linked.parent
    outermost = set(pieces.slice[(pieces.kind == Piece.OP) & (pieces.slice >= 0)].tolist())
    inside: dict[int, list[int]] = {}
    for place in chosen:
        around = place
        while around >= 0 and around not in outermost:
            around = int(parent[around])
        if around >= 0:
            inside.setdefault(around, []).append(place)
    return inside


def _outermost(explained: Explained, meaning_of: Any) -> Iterator[int]:
    """The outermost operators that have a statement: their recorded time has that of what they call in it."""
    rank, linked = explained.rank, explained.linked
    slices = rank.slices
    taken = np.zeros(len(slices), bool)
    for place in np.flatnonzero(slices.what == What.OP).tolist():  # parents come before their children
        parent = int(linked.parent[place])
        if parent >= 0 and taken[parent]:
            taken[place] = True
            continue
        number = int(slices.facts[place])
        if number >= 0 and meaning_of(rank.names[slices.name[place]], rank.facts[number]).statement is not None:
            taken[place] = True
            yield place


__all__ = ["Predicted", "Row", "WrongMachine", "predict"]
