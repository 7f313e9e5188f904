"""Many small accesses: what a stride, a misaligned array, a random lookup or a chain of pointers costs.

    access: {device: cpu, count: 1e6, bytes: 8 B, pattern: strided, stride: 64 B, working_set: 64 MiB, cores: 4}

Runs on the queue `compute` of its device.  sequential and strided: prefetchers follow, and whole lines move; random: the
device waits for many lines at once; dependent: each access needs the one before it (`chains` of them side by side per core).
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from hwsim.demand import Pattern
from hwsim.devices import Accesses, Call, Into, Memory, lookup_call
from hwsim.ops.op import CannotPlace, DeviceOp, Dtype, Placed, Scope, as_made
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import BYTES, Bytes, Ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Access(DeviceOp):
    """`count` accesses of `bytes` each."""

    kind: ClassVar[str] = "access"

    count: float = field("accesses in all, the cores' together", minimum=0, example="1e6")
    bytes: Bytes = field("bytes of one access", default=8.0, exclusive_minimum=0.0, example="8 B")
    pattern: Pattern = field("sequential, strided, random, or dependent (a chain of pointers)", default="sequential")
    stride: Bytes = field(
        "from one access to the next, for pattern strided; negative: backward (default: no gap)", default=0.0, minimum=-1e15
    )
    offset: Bytes = field("how far the first lies beyond a multiple of its size: misaligned if not 0", default=0.0)
    working_set: Bytes | None = field("bytes gone over again and again, which a cache may hold (default: all new)", default=None)
    write: Ratio = field("part of the accesses that store", default=0.0, maximum=1.0)
    cores: int | None = field("cores of a cpu that share the accesses (default: all of them)", default=None, minimum=1)
    chains: int = field("dependent accesses that each core follows side by side", default=1, minimum=1)
    banks: int | None = field("of a memory: banks of each channel that they go to (default: all)", default=None, minimum=1)
    row_hit: Ratio = field("of a memory: part of the random accesses that finds its row open", default=0.0, maximum=1.0)
    remote: Ratio = field("part that goes to another socket's or domain's memory", default=0.0, maximum=1.0)

    function: str = field(
        "function of a library that does it, where those were measured on the cpu (`kernels`)", default="", example="take"
    )
    dtype: Dtype = field("of the function: type of the elements", default="fp64")
    into: Into = field("of the function: a new array, or one that is there", default="new")
    since: tuple[Bytes, ...] = field(
        "of the function: bytes gone over since table, index and result were last used (default: those of the op)",
        default=(),
        one_or_many=True,
    )

    among_others: bool = field("of the function: calls of others come before it, as in most programs", default=False)
    new_pages: float | None = field(
        "of the function: pages of memory it uses for the first time, 0 for none (default: large new arrays are made of them)",
        default=None,
        minimum=0,
    )
    new_bytes: Bytes | None = field(
        "of the function: bytes in these pages, where that is not all it writes (the mean of calls that differ)", default=None
    )

    def lower(self, scope: Scope) -> Placed:
        if self.pattern == "strided" and not abs(self.stride) > 0:
            raise CannotPlace("a strided access needs a `stride`", "stride: 256 B")
        named = scope.one(self.device) if self.device else ""
        memory = scope.machine.device(named).model if named else None
        device, model = (named, memory) if isinstance(memory, Memory) else scope.computing(self.device)
        if not isinstance(model, Memory) and (self.banks is not None or self.row_hit > 0):
            raise CannotPlace(f"'{device}' has caches before its banks", "`banks` and `row_hit` are for a part of kind memory")
        accesses = Accesses(
            count=self.count,
            size=self.bytes,
            pattern=self.pattern,
            stride=abs(self.stride),  # prefetchers follow both directions
            offset=self.offset,
            working_set=self.working_set,
            write=self.write,
            cores=self.cores,
            chains=self.chains,
            remote=self.remote,
            banks=self.banks,
            row_hit=self.row_hit,
            call=self._call(),
        )
        return Placed(device, self.queue or "compute", model.access(device, accesses))

    def _call(self) -> Call | None:
        """Elements of `bytes` each, or rows of that many, found by their index anywhere in the working set."""
        if not self.function:
            return None
        width = BYTES[self.dtype]
        call = lookup_call(
            self.function,
            dtype=self.dtype,
            count=self.count,
            table=(self.working_set or self.count * self.bytes) / width,
            length=max(self.bytes / width, 1.0),
            into=self.into,
            since=self.since,
        )
        return replace(as_made(call, self.among_others, self.new_pages, self.new_bytes), cores=self.cores)
