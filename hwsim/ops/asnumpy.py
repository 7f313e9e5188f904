"""A value as an array of the program's own, as `y.asnumpy()` gives it: the program waits for it.

    asnumpy: {reads: y, writes: array}

or just `asnumpy: y`.  As `print`; what it `writes` lies in the host's memory.  A value that lies there already is copied by one
core, where the runtime's arrays are not numpy's own (`converts`):

    traffic = bytes read + bytes written

A compiled body cannot hold one: when it is compiled there is no value yet.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.devices import Cpu, Work
from hwsim.ops.op import FetchOp, Placed, Scope
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Asnumpy(FetchOp):
    """Wait for a value and keep it as an array."""

    kind: ClassVar[str] = "asnumpy"

    def lower(self, scope: Scope) -> Placed:
        fetched = FetchOp.lower(self, scope)
        model = scope.machine.device(scope.host).model if scope.host else None
        if fetched.queue or not fetched.output or scope.shares or not isinstance(model, Cpu):
            return fetched
        cost = model.compute(scope.host, Work(reads=fetched.output, writes=fetched.output, cores=1))
        return Placed(scope.host, self.queue or "convert", cost, output=fetched.output, home=scope.host)
