"""Copies and messages from one device to another, over the links between them.

    copy: {from: gpu, to: cpu, bytes: 16 MB, reads: y}
    copy: {from: cpu, to: gpu, bytes: 16 MB, memory: pageable}      # a core copies through a pinned buffer
    copy: {from: cpu, to: gpu, bytes: 4 kB, by: cpu}                # a core stores every word
    send: {to: gpu1, bytes: 40 MB}
    send: {from: node0.cpu, to: node1.cpu, bytes: 64 B, messages: 1000, protocol: udp}

A copy reads the memory of the source and writes the memory of the target. Its default queue is `d2h` or `h2d` of the GPU between
a GPU and another kind of device, `p2p` of the source between two GPUs, else `copy` of the source. `queue: compute` orders it with
the kernels. It uses bandwidth of every link direction on the route and of both memories. A copy within one device reads and
writes the same memory: n bytes use 2 n of its bandwidth, as in an elementwise op that reads n bytes and writes n.

A send starts at $self by default, on the queue `send` of the source. It costs as much as a copy of that size, plus the time that
its messages take on the NICs of the route and on the cores at both ends.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from hwsim.machine import TransferOptions
from hwsim.ops.op import CannotPlace, LoweredOp, Op, Scope
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy(Op):
    """A copy of `bytes` from one device to another."""

    kind: ClassVar[str] = "copy"

    source: str = field("device whose memory is read", key="from", example="gpu")
    target: str = field("device whose memory is written", key="to", example="cpu")
    bytes: Bytes = field("bytes copied", example="16 MB")
    memory: Literal["pinned", "pageable"] = field(
        "kind of host memory of a copy from or to a GPU; pageable is staged in a pinned buffer", default="pinned"
    )
    by: Literal["dma", "cpu", "sm"] = field("mover: a DMA engine, a CPU core, or a kernel on the GPU (sm)", default="dma")

    def lower(self, scope: Scope) -> LoweredOp:
        source, target = scope.one(self.source), scope.one(self.target)
        device, queue = copy_queue(scope, source, target)
        kinds = {scope.kind(source), scope.kind(target)}
        mover = {"cpu": "cpu", "sm": "gpu"}.get(self.by, "")
        if mover and mover not in kinds:
            raise CannotPlace(f"`by: {self.by}` requires a {mover} at one end, got {source} and {target}")
        if self.memory == "pageable" and kinds <= {"gpu"}:
            raise CannotPlace("`memory: pageable` requires a host at one end, but both ends are GPUs", "omit `memory`")
        handling = TransferOptions(pages=self.memory, by=self.by, waited=self.block, of_service=scope.of_service)
        cost = scope.machine.transfer(source, target, self.bytes, handling)
        return LoweredOp(device, self.queue or queue, cost, output=self.bytes, home=target)


def copy_queue(scope: Scope, source: str, target: str) -> tuple[str, str]:
    """Return the device and the default queue of a copy."""
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
class SendOp(Op):
    """A transfer of `messages` x `bytes` to another device."""

    kind: ClassVar[str] = "send"

    target: str = field("device that receives the messages", key="to", example="gpu1")
    source: str = field("device that sends the messages (default: $self)", key="from", default="")
    bytes: Bytes = field("bytes of one message", example="40 MB")
    messages: int = field("number of consecutive messages", default=1, minimum=1)
    protocol: Literal["tcp", "udp", "rdma"] | None = field("protocol of the NICs on the route (default: their own)", default=None)

    def lower(self, scope: Scope) -> LoweredOp:
        if not self.source and not scope.own:
            raise CannotPlace("`send` requires `from` outside `each`", "from: gpu0")
        source = scope.one(self.source) if self.source else scope.own
        target = scope.one(self.target)
        size = self.bytes * self.messages
        handling = TransferOptions(protocol=self.protocol, messages=self.messages, of_service=scope.of_service)
        cost = scope.machine.transfer(source, target, size, handling)
        return LoweredOp(source, self.queue or "send", cost, output=size, home=target)
