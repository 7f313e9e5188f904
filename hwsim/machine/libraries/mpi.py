"""MPI: a measured curve of time over message size for each operation, with eager and rendezvous protocols.

    time = start + root x sqrt(S) + (S + knee (1 - exp(-S / knee))) / bandwidth + [S > eager] rendezvous

S is the message size as in the OSU benchmarks: the message, or the bytes of one rank (all-gather, all-to-all: per destination).

On another network than the measured one, the byte time and the latency of the measured network (`wire`, `hop`) are replaced by
those of the machine's network; the time of the processors is unchanged. Another number of ranks than the measured one scales the
start with log2 of the ranks, and the bytes of all-gather and all-to-all with ranks - 1; the bytes of an all-reduce do not change.

Source: the shape: fitted; regimes as in SimGrid's SMPI (Degomme et al., IEEE TPDS 28(8), 2017).
Error: docs/validation/collectives.md.
Range: the machine, the number of ranks per node and the MPI implementation of the fit. The sizes at which a collective switches
its algorithm are known only where they were measured.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import ClassVar

from hwsim.demand import knee_bytes
from hwsim.machine.libraries.operations import CannotCollect
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Bytes, BytesPerSecond, Seconds


@dataclass(frozen=True, slots=True)
class MpiCurve:
    """A curve of time over message size of one operation."""

    start: Seconds = field("time of an empty message, or of a collective of one byte")
    bandwidth: BytesPerSecond = field("asymptotic bandwidth of long messages", exclusive_minimum=0.0)
    root: Seconds = field("time per square root of the bytes, for protocols that change with the size", default=0.0)
    knee: Bytes = field("overhead of a long message, as the bytes that take the same time", default=0.0)
    eager: Bytes = field("largest message sent by the eager protocol; 0: no rendezvous", default=0.0)
    rendezvous: Seconds = field("extra time of the rendezvous protocol", default=0.0)
    ranks: int = field("number of ranks in the measurement", default=2, minimum=2)

    def seconds(self, size: float) -> float:
        """Return the time (s) of a message or collective of `size` bytes among the measured number of ranks."""
        rendezvous = self.rendezvous if size > self.eager > 0 else 0.0
        return self.start + self.root * math.sqrt(size) + knee_bytes(size, self.knee) / self.bandwidth + rendezvous


@dataclass(frozen=True, slots=True)
class Mpi:
    """An MPI implementation, fitted to a machine; parts of the library are in machines/parts/mpi."""

    kind: ClassVar[str] = "mpi"

    curves: Mapping[str, MpiCurve] = field(
        "curve by operation: send, stream, stream-both, all-reduce, all-gather, all-to-all, ..."
    )
    wire: BytesPerSecond = field("bandwidth of the measured network, replaced by the machine's; 0: unknown", default=0.0)
    hop: Seconds = field("latency of the measured network between two nodes", default=0.0)
    sources: Mapping[str, Origin] = dataclasses.field(default_factory=dict, init=False, repr=False)  # source of each key

    def seconds(self, operation: str, ranks: int, size: float) -> float:
        """Return the time (s) of a message, or of a collective among `ranks`.

        >>> mpi = Mpi({"send": MpiCurve(start=1e-6, bandwidth=10e9)})
        >>> round(mpi.seconds("send", 2, 10e6) * 1e6)
        1001

        Raises:
            CannotCollect: the operation has no curve.
        """
        curve = self.curves.get(operation)
        if curve is None:
            raise CannotCollect(f"no MPI curve for {operation}", f"supported: {', '.join(sorted(self.curves))}")
        if ranks == curve.ranks:
            return curve.seconds(size)
        levels = math.log2(ranks) / math.log2(curve.ranks)
        grown = (ranks - 1) / (curve.ranks - 1) if operation in ("all-gather", "all-to-all") else 1.0
        start = curve.seconds(0.0)
        return start * levels + (curve.seconds(size) - start) * grown
