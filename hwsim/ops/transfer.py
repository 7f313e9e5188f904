"""Bytes from one device to another, over the links between them.

    copy: {from: gpu, to: cpu, bytes: 16 MB, reads: y}
    copy: {from: cpu, to: gpu, bytes: 16 MB, memory: pageable}      # through a pinned buffer, by a core
    copy: {from: cpu, to: gpu, bytes: 4 kB, by: cpu}                # a core stores every word, and does nothing else
    send: {to: gpu1, bytes: 40 MB}
    send: {from: node0.cpu, to: node1.cpu, bytes: 64 B, messages: 1000, protocol: udp}

A copy goes from memory to memory. Its default queue is `d2h` or `h2d` of the GPU between a GPU and another kind of device, `p2p`
of the source between two GPUs, else `copy` of the source; `queue: compute` puts it in line with the kernels. It draws its bytes
from every link direction on the route and from the memories at both ends. A copy of a part to itself is read and written by one
memory, whose bandwidth is for both together: n bytes draw 2 n of it, as an elementwise op that reads n bytes and writes n does.

A send starts at the program's own device by default, on the queue `send` of the source. It costs what a copy of that size costs,
and what its messages take of the NICs on the route and of the cores at both ends.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from hwsim.machine import Handling
from hwsim.ops.op import CannotPlace, Op, Placed, Scope
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy(Op):
    """`bytes` from one device to another."""

    kind: ClassVar[str] = "copy"

    source: str = field("device whose memory is read", key="from", example="gpu")
    target: str = field("device whose memory is written", key="to", example="cpu")
    bytes: Bytes = field("how much", example="16 MB")
    memory: Literal["pinned", "pageable"] = field(
        "host memory of a copy from or to a GPU; pageable goes through a buffer", default="pinned"
    )
    by: Literal["dma", "cpu", "sm"] = field("who moves it: an engine, a core of the CPU, a kernel on the GPU", default="dma")

    def lower(self, scope: Scope) -> Placed:
        source, target = scope.one(self.source), scope.one(self.target)
        device, queue = copy_queue(scope, source, target)
        kinds = {scope.kind(source), scope.kind(target)}
        mover = {"cpu": "cpu", "sm": "gpu"}.get(self.by, "")
        if mover and mover not in kinds:
            raise CannotPlace(f"`by: {self.by}` needs a {mover} at one end", f"from {source} to {target} there is none")
        if self.memory == "pageable" and kinds <= {"gpu"}:
            raise CannotPlace("`memory: pageable` is of the host, but both ends are GPUs", "leave it out")
        handling = Handling(pages=self.memory, by=self.by, waited=self.block, of_service=scope.of_service)
        cost = scope.machine.transfer(source, target, self.bytes, handling)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Send(Op):
    """`bytes` to another device."""

    kind: ClassVar[str] = "send"

    target: str = field("device it goes to", key="to", example="gpu1")
    source: str = field("device it comes from (default: $self)", key="from", default="")
    bytes: Bytes = field("how much, in each message", example="40 MB")
    messages: int = field("how many, one after the other", default=1, minimum=1)
    protocol: Literal["tcp", "udp", "rdma"] | None = field(
        "what the network cards on the way speak (default: as they say)", default=None
    )

    def lower(self, scope: Scope) -> Placed:
        if not self.source and not scope.own:
            raise CannotPlace("`send` needs `from` here", "only under `each` is there a $self to send from")
        source = scope.one(self.source) if self.source else scope.own
        target = scope.one(self.target)
        size = self.bytes * self.messages
        handling = Handling(protocol=self.protocol, messages=self.messages, of_service=scope.of_service)
        cost = scope.machine.transfer(source, target, size, handling)
        return Placed(source, self.queue or "send", cost, output=size, home=target)
