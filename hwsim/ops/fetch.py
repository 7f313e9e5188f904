"""Values brought to the program itself, which waits until it has them.

    print: {reads: y}
    item: {reads: loss}
    asnumpy: {reads: y, writes: array}

or just `print: y`. A value in a GPU's memory is copied to the program's host first, on the queue `d2h`; its size is the
value's unless `bytes` says. Then the program goes on after `return` of its runtime. `item` is the same for a single number.
The array of `asnumpy` lies in the host's memory; a value that lies there already is copied by one core, where the runtime's
arrays are not numpy's own (`converts`):

    traffic = bytes read + bytes written

None of them can stand in a compiled body: the program is not there when it runs, and there is no value when it is compiled.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.devices import Cpu, Work
from hwsim.machine import Handling
from hwsim.ops.op import CannotPlace, Home, Op, Placed, Scope
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOp(Op):
    """A value brought to the program itself, which waits until it has it."""

    reads: tuple[str, ...] = field("the value", one_or_many=True)
    bytes: Bytes | None = field("how much of it is brought (default: all)", default=None)

    def lower(self, scope: Scope) -> Placed:
        """A copy to the host's memory where the value lies in a GPU's; elsewhere nothing but the wait (queue "")."""
        if len(self.reads) != 1:
            raise CannotPlace(f"one value is read, not {len(self.reads)}", "write one statement for each")
        home = scope.values.get(self.reads[0], Home(scope.host))
        size = home.bytes if self.bytes is None else self.bytes
        if not home.memory or not scope.host or scope.kind(home.memory) != "gpu":
            return Placed(scope.host, "", None, output=size)
        if self.bytes is None and not home.bytes:
            hint = f"say so where it is written, writes: {{{self.reads[0]}: 4 MB}}, or here, bytes: 4 MB"
            raise CannotPlace(f"the size of '{self.reads[0]}' is not given", hint)
        cost = scope.machine.transfer(home.memory, scope.thread, size, Handling(waited=True))
        return Placed(home.memory, self.queue or "d2h", cost, output=size, home=scope.host)


@dataclass(frozen=True, slots=True, kw_only=True)
class Print(FetchOp):
    """Wait for a value and show it."""

    kind: ClassVar[str] = "print"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item(FetchOp):
    """Wait for one number."""

    kind: ClassVar[str] = "item"

    bytes: Bytes | None = field("the number", default=8.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asnumpy(FetchOp):
    """Wait for a value and keep it as an array."""

    kind: ClassVar[str] = "asnumpy"

    def lower(self, scope: Scope) -> Placed:
        fetched = FetchOp.lower(self, scope)
        model = scope.machine.device(scope.host).model if scope.host else None
        if fetched.queue or not fetched.output or scope.shares or not isinstance(model, Cpu):
            return fetched
        cost = model.compute(scope.thread, Work(reads=fetched.output, writes=fetched.output, cores=1))
        return Placed(scope.host, self.queue or "convert", cost, output=fetched.output, home=scope.host)
