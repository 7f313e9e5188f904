"""Writes to a disk, `times` of `bytes` each, from the memory of another device.

    write: {to: disk, bytes: 16 MB, times: 10}

Runs on the queue `write` of the disk.  Draws what the disk needs for that access and, where the
machine links `from` to the disk, the bytes from the links and from the memory there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hwsim.ops.op import Op, Placed, Scope
from hwsim.ops.read import Access
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

    def lower(self, scope: Scope) -> Placed:
        disk = scope.one(self.target)
        of = scope.one(self.source) if self.source else scope.host
        cost = scope.machine.write(disk, self.bytes, times=self.times, access=self.access, depth=self.depth, of=of)
        return Placed(disk, self.queue or "write", cost)
