"""A message to another device, by default from the program's own.

    send: {to: gpu1, bytes: 40 MB}

Runs on the queue `send` of the source.  Costs what a copy of that size costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hwsim.ops.op import CannotPlace, Op, Placed, Scope
from hwsim.spec import field
from hwsim.units import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Send(Op):
    """`bytes` to another device."""

    kind: ClassVar[str] = "send"

    target: str = field("device it goes to", key="to", example="gpu1")
    source: str = field("device it comes from (default: $self)", key="from", default="")
    bytes: Bytes = field("how much", example="40 MB")

    def lower(self, scope: Scope) -> Placed:
        if not self.source and not scope.own:
            raise CannotPlace("`send` needs `from` here", "only under `each` is there a $self to send from")
        source = scope.one(self.source) if self.source else scope.own
        target = scope.one(self.target)
        cost = scope.machine.transfer(source, target, self.bytes)
        return Placed(source, self.queue or "send", cost, output=self.bytes, home=target)
