"""Checkpoints: the state of a model, copied to the host's memory where it is on a GPU, and written to a disk.

    sync    the training waits for both: it loses copy + write at each checkpoint

    async   the training waits for the copy alone, while the write goes on: it loses the copy, as long as the write before has
            ended, for there is one buffer in the host's memory

Source: the two-phase checkpoints of Nicolae et al., "DeepFreeze" (CCGrid 2020) and Mohan et al., "CheckFreq" (FAST 2021).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from hwsim.ops import Placed, Scope
from hwsim.ops.disk import Write
from hwsim.ops.transfer import Copy
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class Saving:
    """The two parts of a checkpoint; no copy where the state is in the host's memory already."""

    copy: Placed | None
    write: Placed

    def lost(self, rates: Mapping[str, float], *, waits_for_write: bool) -> float:
        """Seconds for which the training waits, alone on the machine."""
        parts = [self.copy, self.write if waits_for_write else None]
        return math.fsum(part.cost.demand.alone(rates) if part.cost else part.time for part in parts if part is not None)


def saving(scope: Scope, size: float, source: str, target: str, *, request: float = 16e6, depth: int = 8) -> Saving:
    """The way of `size` bytes in the memory of the device `source` to the disk `target`, through the program's host.

    request: bytes of one write.  depth: writes in flight.

    Raises:
        UnknownName, CannotPlace, NoRoute: as the machine says.
    """
    host, memory = scope.host, scope.one(source) if source else scope.host
    copied = Copy(source=memory, target=host, bytes=size).lower(scope) if host and scope.kind(memory) == "gpu" else None
    count = max(1, round(size / request))
    write = Write(target=target, source=host or memory, bytes=size / count, times=count, depth=depth).lower(scope)
    return Saving(copied, write)
