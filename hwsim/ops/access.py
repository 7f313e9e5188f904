"""Many small memory accesses, to model strides, misaligned arrays, random lookups and pointer chasing.

    access: {device: cpu, count: 1e6, bytes: 8 B, pattern: strided, stride: 64 B, working_set: 64 MiB, cores: 4}

The op runs on the queue `compute` of its device. Patterns:

    sequential, strided   prefetchers follow the accesses, and whole cache lines are transferred
    random                the device has many cache misses in flight
    dependent             each access needs the result of the one before it; each core follows `chains` of them in parallel
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from hwsim.demand import Pattern
from hwsim.devices import Accesses, Into, LibraryCall, Memory, lookup_call
from hwsim.ops.op import CannotPlace, DeviceOp, Dtype, LoweredOp, Scope, with_call_history
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import BYTES, Bytes, Ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessOp(DeviceOp):
    """An op of `count` accesses of `bytes` each."""

    kind: ClassVar[str] = "access"

    count: float = field("total number of accesses, over all cores", minimum=0, example="1e6")
    bytes: Bytes = field("bytes of one access", default=8.0, exclusive_minimum=0.0, example="8 B")
    pattern: Pattern = field("access pattern: sequential, strided, random, or dependent (pointer chasing)", default="sequential")
    stride: Bytes = field("distance between the starts of two strided accesses; negative: backward", default=0.0, minimum=-1e15)
    offset: Bytes = field("offset of the first access from a multiple of its size; not 0: misaligned", default=0.0)
    working_set: Bytes | None = field("bytes accessed repeatedly, which a cache may hold (default: no reuse)", default=None)
    write: Ratio = field("fraction of the accesses that are stores", default=0.0, maximum=1.0)
    cores: int | None = field("number of CPU cores that share the accesses (default: all cores)", default=None, minimum=1)
    chains: int = field("number of independent chains of dependent accesses per core", default=1, minimum=1)
    banks: int | None = field("number of memory banks accessed per channel (default: all banks)", default=None, minimum=1)
    row_hit: Ratio = field("row-buffer hit rate of the random accesses, for a device of kind memory", default=0.0, maximum=1.0)
    remote: Ratio = field("fraction of the accesses to memory of another socket or NUMA domain", default=0.0, maximum=1.0)

    function: str = field("library function that makes the accesses, if in the cpu's `kernels`", default="", example="take")
    dtype: Dtype = field("data type of the elements that `function` reads", default="fp64")
    into: Into = field("destination of the result of `function`: a new array or an existing one", default="new")
    since: tuple[Bytes, ...] = field(
        "bytes accessed since the last use of table, index and result of `function` (default: the bytes of this call)",
        default=(),
        one_or_many=True,
    )

    among_others: bool = field("whether calls of other functions precede that of `function`, as in most programs", default=False)
    new_pages: float | None = field(
        "number of memory pages that `function` uses for the first time; 0: none (default: all pages of a large new array)",
        default=None,
        minimum=0,
    )
    new_bytes: Bytes | None = field("bytes written to `new_pages`, if not all bytes (an average if calls differ)", default=None)

    def lower(self, scope: Scope) -> LoweredOp:
        if self.pattern == "strided" and not abs(self.stride) > 0:
            raise CannotPlace("`pattern: strided` requires a `stride`", "stride: 256 B")
        named = scope.one(self.device) if self.device else ""
        memory = scope.machine.device(named).model if named else None
        device, model = (named, memory) if isinstance(memory, Memory) else scope.computing(self.device)
        if not isinstance(model, Memory) and (self.banks is not None or self.row_hit > 0):
            raise CannotPlace(f"`banks` and `row_hit` require a memory, but '{device}' is a {scope.kind(device)}", "omit them")
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
        return LoweredOp(device, self.queue or "compute", model.access(device, accesses))

    def _call(self) -> LibraryCall | None:
        """Return a lookup of elements (or rows) of `bytes` each at random indices of the working set."""
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
        return replace(with_call_history(call, self.among_others, self.new_pages, self.new_bytes), cores=self.cores)
