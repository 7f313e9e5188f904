"""Writes to a disk, `times` of `bytes` each, from the memory of another device.

    write: {to: disk, bytes: 16 MB, times: 10}

Runs on the queue `write` of the disk.  Draws what the disk needs for that access and, where the
machine links `from` to the disk, the bytes from the links and from the memory there.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.devices.storage import Access, Asked
from hwsim.ops.op import Op, Placed, Scope
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import Bytes


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
        of = scope.one(self.source) if self.source else scope.host
        asked = Asked(size=self.bytes, times=self.times, access=self.access, depth=self.depth, region=self.region, sync=self.sync)
        cost = scope.machine.serve(disk, "write", asked, of)
        return Placed(disk, self.queue or "write", cost)
