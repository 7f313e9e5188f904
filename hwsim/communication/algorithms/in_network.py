"""The switch adds: what the ranks send is reduced on its way, and every sum crosses each wire once.

    nvls    all-reduce                    4 a + max(S + S/n) / P       each rank asks for its part, and spreads it.
            reduce-scatter, all-gather    2 a + S / P
    sharp   all-reduce, barrier           2 a + S / P                  up a tree of switches and down again.

against 2 (n - 1)/n S/P of a ring: up to twice the speed. P: bytes/s of a port each way.

Source: NVLS: NVIDIA, "NVLink SHARP" in NCCL 2.17 (multimem.ld_reduce and multimem.st, PTX ISA 8.1); SHARP: Graham et al.,
"Scalable hierarchical aggregation protocol (SHArP)", COM-HPC 2016.
Range: one switch, or a tree that acts as one. Switches of several nodes are a hierarchy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from hwsim.communication.algorithms.algorithm import Algorithm, Presets
from hwsim.communication.plan import Group, Operation, Plan, Send
from hwsim.communication.rounds import Round, rounds_of
from hwsim.records import dataclass
from hwsim.spec.fields import field


@dataclass(frozen=True, slots=True)
class InNetwork(Algorithm):
    """One participant beyond the ranks: the switch."""

    kind: ClassVar[str] = "in-network"
    operations: ClassVar[tuple[Operation, ...]] = ("all-reduce", "reduce-scatter", "all-gather", "broadcast", "barrier")
    presets: ClassVar[Presets | None] = {"nvls": {"by": "nvls"}, "sharp": {"by": "sharp"}}

    by: Literal["nvls", "sharp"] = field(
        "nvls: GPUs load and store through the NVLink switch; sharp: switches send the sums", default="nvls"
    )

    def plan(self, operation: Operation, group: Group) -> Plan:
        """Participant n is the switch."""
        n = group.ranks
        chunks = 1 if operation in ("barrier", "broadcast") else n
        return Plan(operation, n, chunks, tuple(self._sends(operation, n)), helpers=1)

    def rounds(self, operation: Operation, group: Group) -> tuple[Round, ...]:
        """Bytes to the switch and bytes from it take different directions of the wires, so they flow at the same time."""
        if group.ranks == 1:
            return ()
        steps = rounds_of(self.plan(operation, group))
        loads: dict[tuple[int, int], float] = {}
        for source, target, share in (pair for step in steps for pair in step.pairs):
            loads[source, target] = loads.get((source, target), 0.0) + share
        pairs = tuple((source, target, share) for (source, target), share in sorted(loads.items()))
        return (Round(f"{operation} in the switch", pairs, 1, hops=len(steps) - 1),)

    def _sends(self, operation: Operation, n: int) -> Iterator[Send]:
        switch, ranks = n, range(n if n > 1 else 0)
        match operation:
            case "all-reduce" | "reduce-scatter" | "barrier":
                span = 1 if operation == "barrier" else n
                yield from (Send(0, rank, switch, 0, span, True) for rank in ranks)
                if operation == "barrier" or (operation == "all-reduce" and self.by == "sharp"):
                    yield from (Send(1, switch, rank, 0, span) for rank in ranks)
                    return
                yield from (Send(1, switch, rank, rank) for rank in ranks)
                if operation == "all-reduce":
                    yield from (Send(2, rank, switch, rank) for rank in ranks)
                    yield from (Send(3, switch, rank, 0, n) for rank in ranks)
            case "all-gather":
                yield from (Send(0, rank, switch, rank) for rank in ranks)
                yield from (Send(1, switch, rank, 0, n) for rank in ranks)
            case _:
                yield from (Send(0, 0, switch, 0) for _ in ranks[:1])
                yield from (Send(1, switch, rank, 0) for rank in ranks[1:])
