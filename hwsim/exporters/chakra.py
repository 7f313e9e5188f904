"""Write a run as Chakra execution traces, one file per rank, with the ranks of its process groups (comm_group.json).

The order of a stream is written as control dependencies, all other waits as data dependencies. Times are whole microseconds; the
additional attributes `hwsim.start_fs` and `hwsim.duration_fs` are exact, and other tools ignore them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from hwsim.demand import Cost
from hwsim.exporters.tools import Exported
from hwsim.importers.chakra_nodes import COLLECTIVES, ChakraNodeKind, ChakraTrace, attribute, node, pack
from hwsim.importers.recording import OmittedEvents
from hwsim.views.trace.events import FIRST_STREAM
from hwsim.views.trace.names import COPIES, name_on_gpu, operation_of
from hwsim.views.trace.run import TracedRun
from hwsim.views.trace.slices import TraceSlice

VERSION: Final = "0.0.4"
MICRO: Final = 10**9  # fs
GROUPS: Final = "comm_group.json"
_NUMBERS: Final = {name.replace("-", ""): number for number, name in reversed(list(enumerate(COLLECTIVES)))}


def files(run: TracedRun) -> Exported:
    """Return the files `trace.RANK.et`, and `comm_group.json` if there are groups."""
    writing = _Writing(run)
    written: dict[str, Any] = {f"trace.{rank}.et": writing.rank(rank) for rank in range(run.world)}
    packed = {name: [pack(trace)] for name, trace in written.items()}
    if writing.groups:
        packed[GROUPS] = [(json.dumps({str(number): list(ranks) for ranks, number in writing.groups.items()}) + "\n").encode()]
    return Exported(packed, writing.unsaid())


class _Writing:
    def __init__(self, run: TracedRun) -> None:
        self.run, self.flat = run, run.result.timeline.flat
        self.groups: dict[tuple[int, ...], int] = {}
        self.unnamed = [0, 0]  # exchanges that are no single collective: count, time (fs)
        numbers: dict[int, dict[str, int]] = {}
        self.device: dict[int, int] = {}  # track -> index of its GPU in its rank
        self.number: dict[int, int] = {}  # track -> number of its stream or thread
        used: dict[tuple[int, str], int] = {}
        for index, track in enumerate(run.slices.tracks):
            rank = run.ranks[index]
            if track.on_gpu:
                gpus = numbers.setdefault(rank, {})
                self.device[index] = gpus.setdefault(track.device, len(gpus))
            key = (rank, track.device if track.on_gpu else "")
            self.number[index] = used.get(key, FIRST_STREAM if track.on_gpu else 1)
            used[key] = self.number[index] + 1

    def rank(self, rank: int) -> ChakraTrace:
        """Return the trace of a rank, with nodes in order of start."""
        slices = self.run.slices
        mine = [number for index, of in enumerate(self.run.ranks) if of == rank for number in slices.order[index]]
        mine.sort(key=lambda number: (slices.all[number].start, slices.all[number].end, slices.all[number].op))
        before = {then: number for order in slices.order for number, then in pairwise(order)}
        gpus = {
            self.device[no]: track.device for no, track in enumerate(slices.tracks) if track.on_gpu and self.run.ranks[no] == rank
        }
        about = (
            attribute("hwsim.rank", "int64", rank),
            attribute("hwsim.world", "int64", self.run.world),
            *(attribute(f"hwsim.gpu.{number}", "string", device) for number, device in gpus.items()),
        )
        return ChakraTrace(VERSION, about, tuple(self._node(number, slices.all[number], before) for number in mine))

    def _node(self, number: int, piece: TraceSlice, before: dict[int, int]) -> Any:
        label = self.flat.graph.labels[self.flat.label[piece.op]]
        track = self.run.slices.tracks[piece.track]
        cost = self.run.cost_of(self.run.slices.works.get(piece.op, piece.op))
        members = self.run.slices.members.get(number)
        kind, name = ChakraNodeKind.COMP, label.name
        attributes = [attribute("is_cpu_op", "bool", not track.on_gpu)]
        if track.on_gpu and members is not None and (operation := operation_of(label, cost)):
            kind = ChakraNodeKind.COLLECTIVE
            attributes += self._exchange(operation, cost, members)
        elif members is not None and track.on_gpu:
            self.unnamed = [self.unnamed[0] + 1, self.unnamed[1] + piece.end - piece.start]
        else:
            attributes += self._work(cost, piece)
        if track.on_gpu and label.kind in COPIES:
            name = name_on_gpu(label, cost, self.run)
        attributes += self._place(piece)
        return node(
            number + 1,
            name,
            kind,
            (before[number] + 1,) if number in before else (),
            tuple(sorted(last + 1 for last in self.run.slices.waits[number].values())),
            piece.start // MICRO,
            piece.end // MICRO - piece.start // MICRO,
            attributes=tuple(attributes),
        )

    def _place(self, piece: TraceSlice) -> Iterator[Any]:
        track = self.run.slices.tracks[piece.track]
        yield attribute("stream" if track.on_gpu else "tid", "int64", self.number[piece.track])
        if track.on_gpu and self.device[piece.track]:
            yield attribute("hwsim.device", "int64", self.device[piece.track])
        yield attribute("hwsim.lane", "string", track.name)
        yield attribute("hwsim.start_fs", "int64", piece.start)
        yield attribute("hwsim.duration_fs", "int64", piece.end - piece.start)

    def _work(self, cost: Cost | None, piece: TraceSlice) -> Iterator[Any]:
        if cost is None:
            return
        size = float(self.flat.size[piece.op])
        amounts = {
            unit: max((amount for _, amount, of_unit in cost.moved if of_unit == unit), default=0.0) for unit in ("FLOP", "B")
        }
        if amounts["FLOP"] or amounts["B"]:
            yield attribute("num_ops", "int64", round(size * amounts["FLOP"]))
            yield attribute("tensor_size", "uint64", round(size * amounts["B"]))

    def _exchange(self, operation: str, cost: Cost | None, members: tuple[str, ...]) -> Iterator[Any]:
        yield attribute("comm_type", "int64", _NUMBERS[operation])
        exchange = None if cost is None else cost.exchange
        size = exchange.ranks if exchange is not None else len(members)
        if exchange is not None:
            part = size if operation == "allgather" else 1
            yield attribute("comm_size", "int64", round(exchange.bytes / max(1, part)))
        ranks = tuple(sorted({self.run.rank_of[member] for member in members if member in self.run.rank_of}))
        if len(ranks) == size > 1:
            yield attribute("pg_name", "string", str(self.groups.setdefault(ranks, len(self.groups) + 1)))
        else:
            yield attribute("hwsim.ranks", "int64", size)

    def unsaid(self) -> tuple[OmittedEvents, ...]:
        """Return facts of the run that Chakra cannot represent."""
        left = []
        if self.unnamed[0]:
            why = "exchanges that are no single collective, written as computation of the same duration"
            left.append(OmittedEvents("exchanges", self.unnamed[0], self.unnamed[1], why))
        if any(queue.depth is not None for queue in self.flat.graph.queues):
            left.append(
                OmittedEvents(
                    "bounds of queues", 1, 0, "a host that waits for space in a queue has a dependency on the op that frees it"
                )
            )
        return tuple(left)
