"""Values fetched by the program itself, which waits until they have arrived.

    print: {reads: y}
    item: {reads: loss}
    asnumpy: {reads: y, writes: array}

The short form is `print: y`. A value in a GPU's memory is first copied to the program's host on the queue `d2h`; the number of
bytes is the size of the value unless `bytes` is stated. The program continues after the `return` time of its runtime. `item`
fetches a single number. `asnumpy` creates an array in host memory; a value that is already in host memory is copied by one core
if the runtime's arrays are not numpy arrays (`converts`):

    traffic = bytes read + bytes written

These ops are not allowed in a compiled body: the program does not run there, and values do not exist at compile time.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.devices import Cpu, Work
from hwsim.machine import TransferOptions
from hwsim.ops.op import CannotPlace, LoweredOp, Op, Scope, ValueLocation
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOp(Op):
    """A base of ops that fetch a value for the program, which waits for it."""

    reads: tuple[str, ...] = field("value that is fetched", one_or_many=True)
    bytes: Bytes | None = field("number of bytes fetched (default: the whole value)", default=None)

    def lower(self, scope: Scope) -> LoweredOp:
        """Return a copy to host memory if the value is in a GPU's memory; else only the wait (queue "")."""
        if len(self.reads) != 1:
            raise CannotPlace(f"expected one value in `reads`, got {len(self.reads)}", "write one statement per value")
        home = scope.values.get(self.reads[0], ValueLocation(scope.host))
        size = home.bytes if self.bytes is None else self.bytes
        if not home.memory or not scope.host or scope.kind(home.memory) != "gpu":
            return LoweredOp(scope.host, "", None, output=size)
        if self.bytes is None and not home.bytes:
            hint = f"write writes: {{{self.reads[0]}: 4 MB}} in the op that creates it, or bytes: 4 MB here"
            raise CannotPlace(f"the size of '{self.reads[0]}' is unknown", hint)
        cost = scope.machine.transfer(home.memory, scope.thread, size, TransferOptions(waited=True))
        return LoweredOp(home.memory, self.queue or "d2h", cost, output=size, home=scope.host)


@dataclass(frozen=True, slots=True, kw_only=True)
class Print(FetchOp):
    """A statement that waits for a value and prints it."""

    kind: ClassVar[str] = "print"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemOp(FetchOp):
    """A statement that waits for one number."""

    kind: ClassVar[str] = "item"

    bytes: Bytes | None = field("size of the fetched number", default=8.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asnumpy(FetchOp):
    """A statement that waits for a value and keeps it as a numpy array."""

    kind: ClassVar[str] = "asnumpy"

    def lower(self, scope: Scope) -> LoweredOp:
        fetched = FetchOp.lower(self, scope)
        model = scope.machine.device(scope.host).model if scope.host else None
        if fetched.queue or not fetched.output or scope.shares or not isinstance(model, Cpu):
            return fetched
        cost = model.compute(scope.thread, Work(reads=fetched.output, writes=fetched.output, cores=1))
        return LoweredOp(scope.host, self.queue or "convert", cost, output=fetched.output, home=scope.host)
