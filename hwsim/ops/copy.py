"""Bytes from one device's memory to another's, over the links between them.

    copy: {from: gpu, to: cpu, bytes: 16 MB, reads: y}

Default queue: between a GPU and another kind of device `d2h` or `h2d` of the GPU, between two GPUs
`p2p` of the source, else `copy` of the source.  `queue: compute` puts it in line with the kernels.
Draws its bytes from every link direction on the route and from the memories at both ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hwsim.ops.op import Op, Placed, Scope
from hwsim.spec import field
from hwsim.units import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy(Op):
    """`bytes` from one device to another."""

    kind: ClassVar[str] = "copy"

    source: str = field("device whose memory is read", key="from", example="gpu")
    target: str = field("device whose memory is written", key="to", example="cpu")
    bytes: Bytes = field("how much", example="16 MB")

    def lower(self, scope: Scope) -> Placed:
        source, target = scope.one(self.source), scope.one(self.target)
        device, queue = copy_queue(scope, source, target)
        cost = scope.machine.transfer(source, target, self.bytes)
        return Placed(device, self.queue or queue, cost, output=self.bytes, home=target)


def copy_queue(scope: Scope, source: str, target: str) -> tuple[str, str]:
    """Device and queue a copy runs on unless its `queue` says otherwise."""
    match scope.kind(source) == "gpu", scope.kind(target) == "gpu":
        case True, True:
            return source, "p2p"
        case True, False:
            return source, "d2h"
        case False, True:
            return target, "h2d"
        case _:
            return source, "copy"
