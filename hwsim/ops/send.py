"""A message to another device, by default from the program's own.

    send: {to: gpu1, bytes: 40 MB}
    send: {from: node0.cpu, to: node1.cpu, bytes: 64 B, messages: 1000, protocol: udp}

Runs on the queue `send` of the source.  Costs what a copy of that size costs, and what its messages take of the network cards
on the way and of the cores beside them.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from hwsim.machine import Handling
from hwsim.ops.op import CannotPlace, Op, Placed, Scope
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import Bytes


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
        handling = Handling(protocol=self.protocol, messages=self.messages)
        cost = scope.machine.transfer(source, target, size, handling)
        return Placed(source, self.queue or "send", cost, output=size, home=target)
