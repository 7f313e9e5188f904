"""Reads from a disk and writes to it: `times` accesses of `bytes` each.

    read: {from: disk, bytes: 110 kB, times: 64, access: random, depth: 8}
    write: {to: disk, bytes: 16 MB, times: 10}

The ops run on the queues `read` and `write` of the disk and use the bandwidth and the accesses per second of the disk. If the
machine has a route between the disk and the other device, they also use its links and the memory of that device.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from hwsim.devices.storage import Access, StorageAccesses
from hwsim.ops.op import LoweredOp, Op, Scope
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import Bytes, Ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOp(Op):
    """A read of `times` x `bytes` from a disk."""

    kind: ClassVar[str] = "read"

    source: str = field("disk that is read", key="from", example="disk")
    target: str = field("device whose memory receives the data (default: the program's host)", key="to", default="")
    bytes: Bytes = field("bytes of one read", example="110 kB")
    times: int = field("number of reads", default=1, minimum=0)
    access: Access = field("access pattern: sequential or random", default="sequential")
    depth: int = field("queue depth: number of reads in flight", default=1, minimum=1)
    region: Bytes | None = field(
        "size of the region that the accesses stay within, from the outer edge of the disk (default: the whole disk)",
        default=None,
        exclusive_minimum=0.0,
    )
    write_share: Ratio = field("fraction of the accesses that are writes", default=0.0, minimum=0.0, maximum=1.0)

    def lower(self, scope: Scope) -> LoweredOp:
        disk = scope.one(self.source)
        target = scope.one(self.target) if self.target else scope.thread
        request = replace(self.asked(), of_service=scope.of_service)
        cost = scope.machine.serve(disk, "read", request, target)
        return LoweredOp(disk, self.queue or "read", cost, output=request.bytes * (1 - self.write_share), home=target)

    def asked(self) -> StorageAccesses:
        """Return the accesses of the op to the disk."""
        return StorageAccesses(
            size=self.bytes, times=self.times, access=self.access, depth=self.depth, region=self.region, written=self.write_share
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Write(Op):
    """A write of `times` x `bytes` to a disk."""

    kind: ClassVar[str] = "write"

    target: str = field("disk that is written", key="to", example="disk")
    source: str = field("device whose memory holds the data (default: the program's host)", key="from", default="")
    bytes: Bytes = field("bytes of one write", example="16 MB")
    times: int = field("number of writes", default=1, minimum=0)
    access: Access = field("access pattern: sequential or random", default="sequential")
    depth: int = field("queue depth: number of writes in flight", default=1, minimum=1)
    region: Bytes | None = field(
        "size of the region that the accesses stay within, from the outer edge of the disk (default: the whole disk)",
        default=None,
        exclusive_minimum=0.0,
    )
    sync: bool = field(
        "whether each write reaches the medium before the next one starts, as with fsync: no cache, depth 1", default=False
    )

    def lower(self, scope: Scope) -> LoweredOp:
        disk = scope.one(self.target)
        source = scope.one(self.source) if self.source else scope.thread
        request = StorageAccesses(
            size=self.bytes,
            times=self.times,
            access=self.access,
            depth=self.depth,
            region=self.region,
            sync=self.sync,
            of_service=scope.of_service,
        )
        cost = scope.machine.serve(disk, "write", request, source)
        return LoweredOp(disk, self.queue or "write", cost)
