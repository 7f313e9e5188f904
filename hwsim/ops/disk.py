"""Reads from a disk and writes to it, `times` of `bytes` each.

    read: {from: disk, bytes: 110 kB, times: 64, access: random, depth: 8}
    write: {to: disk, bytes: 16 MB, times: 10}

They run on the queues `read` and `write` of the disk. They draw what the disk needs for that access. Where the machine links the
disk to the other device, they also draw the bytes from the links and from the memory there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from hwsim.devices.storage import Access, Asked
from hwsim.ops.op import Op, Placed, Scope
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import Bytes, Ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Op):
    """`times` x `bytes` from a disk."""

    kind: ClassVar[str] = "read"

    source: str = field("the disk", key="from", example="disk")
    target: str = field("whose memory it goes to (default: the program's host)", key="to", default="")
    bytes: Bytes = field("bytes of one read", example="110 kB")
    times: int = field("how many reads", default=1, minimum=0)
    access: Access = field("one after another on the disk, or anywhere", default="sequential")
    depth: int = field("reads in flight at once", default=1, minimum=1)
    region: Bytes | None = field(
        "the part of the disk it stays within, from its outer edge (default: all of it)", default=None, exclusive_minimum=0.0
    )
    write_share: Ratio = field("part of the accesses that write instead", default=0.0, minimum=0.0, maximum=1.0)

    def lower(self, scope: Scope) -> Placed:
        disk = scope.one(self.source)
        to = scope.one(self.target) if self.target else scope.thread
        asked = replace(self.asked(), of_service=scope.of_service)
        cost = scope.machine.serve(disk, "read", asked, to)
        return Placed(disk, self.queue or "read", cost, output=asked.bytes * (1 - self.write_share), home=to)

    def asked(self) -> Asked:
        """Its accesses to the disk."""
        return Asked(
            size=self.bytes,
            times=self.times,
            access=self.access,
            depth=self.depth,
            region=self.region,
            written=self.write_share,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Write(Op):
    """`times` x `bytes` to a disk."""

    kind: ClassVar[str] = "write"

    target: str = field("the disk", key="to", example="disk")
    source: str = field("whose memory it comes from (default: the program's host)", key="from", default="")
    bytes: Bytes = field("bytes of one write", example="16 MB")
    times: int = field("how many writes", default=1, minimum=0)
    access: Access = field("one after another on the disk, or anywhere", default="sequential")
    depth: int = field("writes in flight at once", default=1, minimum=1)
    region: Bytes | None = field(
        "the part of the disk it stays within, from its outer edge (default: all of it)", default=None, exclusive_minimum=0.0
    )
    sync: bool = field("each is on the medium before the next starts, as with fsync: no cache, no queue", default=False)

    def lower(self, scope: Scope) -> Placed:
        disk = scope.one(self.target)
        of = scope.one(self.source) if self.source else scope.thread
        request = Asked(
            size=self.bytes,
            times=self.times,
            access=self.access,
            depth=self.depth,
            region=self.region,
            sync=self.sync,
            of_service=scope.of_service,
        )
        cost = scope.machine.serve(disk, "write", request, of)
        return Placed(disk, self.queue or "write", cost)
