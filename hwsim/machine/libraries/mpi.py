"""MPI as measured on a machine: a curve for each operation, eager and rendezvous messages apart.

    time = start + root x sqrt(S) + (S + knee (1 - exp(-S / knee))) / bandwidth + [S > eager] rendezvous

S counts as the OSU benchmarks count: the message, or what each rank gives (all-gather, all-to-all: to each of the others).
On another network than the one measured (`wire`, `hop`) the time of its bytes and its latency take the place of that one's;
what the processors do stays.
Other numbers of ranks than those measured are scaled as the textbook says: the start with log2 of the ranks, the
bytes of all-gather and all-to-all with the ranks, the bytes of an all-reduce not at all.

Source: the shape: fitted; regimes as in SimGrid's SMPI (Degomme et al., IEEE TPDS 28(8), 2017).
Error: docs/validation/collectives.md.
Range: the machine, the ranks a node and the MPI it was fitted to; collectives switch algorithms at sizes that only their
measurements show.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import ClassVar

from hwsim.demand import softened
from hwsim.machine.libraries.operations import CannotCollect
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Bytes, BytesPerSecond, Seconds


@dataclass(frozen=True, slots=True)
class Curve:
    """One operation."""

    start: Seconds = field("of an empty message, or of a collective of one byte")
    bandwidth: BytesPerSecond = field("bytes of a message over its time, once it is long", exclusive_minimum=0.0)
    root: Seconds = field("per square root of a byte: protocols that change with the size", default=0.0)
    knee: Bytes = field("bytes of extra time that a message has grown to once it is long", default=0.0)
    eager: Bytes = field("longest message that is sent without asking", default=0.0)
    rendezvous: Seconds = field("of asking first", default=0.0)
    ranks: int = field("ranks it was measured with", default=2, minimum=2)

    def seconds(self, size: float) -> float:
        """Time of one message or collective among the ranks it was measured with."""
        asked = self.rendezvous if size > self.eager > 0 else 0.0
        return self.start + self.root * math.sqrt(size) + softened(size, self.knee) / self.bandwidth + asked


@dataclass(frozen=True, slots=True)
class Mpi:
    """Fitted to a machine; a part of the library in machines/parts/mpi."""

    kind: ClassVar[str] = "mpi"

    curves: Mapping[str, Curve] = field("operation (send, stream, stream-both, all-reduce, all-gather, all-to-all, ...) -> curve")
    wire: BytesPerSecond = field(
        "rate from node to node of the network it was measured on; another one's is put in its place; 0: not known", default=0.0
    )
    hop: Seconds = field("latency from node to node of that network", default=0.0)
    sources: Mapping[str, Origin] = dataclasses.field(default_factory=dict, init=False, repr=False)  # key -> where from

    def seconds(self, operation: str, ranks: int, size: float) -> float:
        """Time of a message, or of a collective among `ranks`.

        >>> mpi = Mpi({"send": Curve(start=1e-6, bandwidth=10e9)})
        >>> round(mpi.seconds("send", 2, 10e6) * 1e6)
        1001

        Raises:
            CannotCollect: there is no curve for the operation.
        """
        curve = self.curves.get(operation)
        if curve is None:
            raise CannotCollect(f"no curve for {operation}", f"there are {', '.join(sorted(self.curves))}")
        if ranks == curve.ranks:
            return curve.seconds(size)
        levels = math.log2(ranks) / math.log2(curve.ranks)
        grown = (ranks - 1) / (curve.ranks - 1) if operation in ("all-gather", "all-to-all") else 1.0
        start = curve.seconds(0.0)
        return start * levels + (curve.seconds(size) - start) * grown
