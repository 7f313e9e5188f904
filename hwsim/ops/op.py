"""Keys that all ops have, what names mean to the program that issues one, and an op on its device with its cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field as attribute
from dataclasses import replace
from typing import ClassVar, Literal

from hwsim.demand import Cost
from hwsim.devices import Call, Cpu, Gpu, Into, Sockets, Start, Work
from hwsim.machine import Machine
from hwsim.machine.names import listed
from hwsim.records import dataclass
from hwsim.spec import Place, did_you_mean, field, place_field
from hwsim.spec.mistakes import Hinted
from hwsim.spec.numbers import Doubts
from hwsim.units import BYTES, Bytes

Dtype = Literal[
    "fp64",
    "fp32",
    "tf32",
    "bf16",
    "fp16",
    "fp8",
    "fp4",
    "int64",
    "int32",
    "int16",
    "int8",
    "int4",
    "bool",
    "complex64",
    "complex128",
]


class CannotPlace(Hinted):
    """An op that does not fit the machine; the caller adds the place."""


@dataclass(frozen=True, slots=True)
class ArraySize:
    """A value by the axes of its array."""

    shape: tuple[float, ...] = field("lengths of its axes", one_or_many=True, minimum=0, example="[1024, 512]")
    dtype: Dtype = field("type of its elements", default="fp32")

    @property
    def bytes(self) -> float:
        return float(math.prod(self.shape) * BYTES[self.dtype])


Values = Mapping[str, ArraySize | Bytes] | tuple[str, ...]  # names, or names with how large each value is


def stated(values: Values) -> dict[str, float]:
    """Bytes of the values whose size is written next to their name.

    >>> stated({"y": ArraySize(shape=(1024, 512)), "z": 2e6}), stated(("y", "z"))
    ({'y': 2097152.0, 'z': 2000000.0}, {})
    """
    sized = values if isinstance(values, Mapping) else {}
    return {name: size.bytes if isinstance(size, ArraySize) else size for name, size in sized.items()}


@dataclass(frozen=True, slots=True)
class Home:
    """The device whose memory holds a value, and the value's bytes (0: not given)."""

    memory: str
    bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Scope:
    """The meaning of names to a program: names inside `node` first, `own` is $self, `host` the device of its thread ("" if none).

    hosts: those that could be, where its devices are in several machines with CPUs of their own.
    values: where the values written so far lie.  starts: what starts the kernels of a gpu.
    shares: numpy shares the arrays in the host's memory, instead of a copy.
    of_service: its ops belong to requests; many requests are there at once and more follow.
    """

    machine: Machine
    node: str = ""
    own: str = ""
    host: str = ""
    values: Mapping[str, Home] = attribute(default_factory=dict)
    starts: Start = "stream"
    shares: bool = False
    of_service: bool = False
    hosts: tuple[str, ...] = ()

    @property
    def thread(self) -> str:
        """The device of its thread, for what hangs on it.

        Raises:
            CannotPlace: it could be several.
        """
        if self.hosts:
            first = self.machine.home_of(self.hosts[0])
            hint = f"`each: {first}` of a program or pipeline, or `device: {first}` of a job or service, says which"
            raise CannotPlace(f"this hangs on the program's host, and its devices have several: {listed(self.hosts)}", hint)
        return self.host

    def one(self, name: str) -> str:
        """Full name of the one device called that.

        Raises:
            UnknownName: there is none, or there are several.
        """
        return self.machine.one(name, self.node)

    def kind(self, device: str) -> str:
        """cpu, gpu, disk, ..."""
        return self.machine.device(device).kind

    def computing(self, name: str) -> tuple[str, Cpu | Sockets | Gpu]:
        """The computing device called that; without a name $self, else the machine's only one.

        Raises:
            UnknownName, CannotPlace: there is none, or it does not compute.
        """
        device = self.one(name) if name else self.own or self._only_computing()
        model = self.machine.device(device).model
        if isinstance(model, Cpu | Sockets | Gpu):
            return device, model
        raise CannotPlace(f"'{device}' is a {self.kind(device)}, which does not compute", "name a cpu or a gpu as `device`")

    def _only_computing(self) -> str:
        found = [*self.machine.devices_of("cpu", self.node), *self.machine.devices_of("gpu", self.node)]
        if len(found) == 1:
            return found[0]
        raise CannotPlace("the op needs a `device`", f"one of {', '.join(found)}" if found else None)


@dataclass(frozen=True, slots=True)
class Pointwise:
    """An op on each element of arrays of `count` elements; the arrays it reads, `array` bytes each, and one it writes."""

    count: float
    dtype: Dtype
    inputs: int
    flop: float

    @property
    def array(self) -> float:
        return self.count * BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class Placed:
    """An op on its device: which queue of it, and what it costs.

    size: every piece draws `size` times the cost.  time: own seconds, for an op without a cost.
    output: bytes of a value it writes, unless the file says.  home: whose memory that is in (default: the device's own).
    pointwise: what fusing needs to know of an op on each element.
    """

    device: str
    queue: str
    cost: Cost | None
    time: float = 0.0
    pieces: int = 1
    output: float = 0.0
    home: str = ""
    pointwise: Pointwise | None = None

    @property
    def memory(self) -> str:
        return self.home or self.device

    @property
    def size(self) -> float:
        return 1.0 / self.pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """Keys that every op has."""

    kind: ClassVar[str]
    doubts_of: ClassVar[Doubts] = "own"  # see `hwsim.ops.doubted`

    name: str = field("what `wait`, `after` and the results call it (default: its kind)", default="")
    queue: str = field("another queue of its device than the default; ops of one queue run in order", default="")
    reads: tuple[str, ...] = field("values it needs: it starts after their last writer", default=(), one_or_many=True)
    writes: Values = field(
        "values it makes anew, in a buffer of its own: it waits for nobody; {y: 2 MB} says how large",
        default=(),
        one_or_many=True,
        example="{y: {shape: [1024, 512], dtype: fp32}}",
    )
    updates: Values = field(
        "values it changes in place: after their last writer and all readers; {y: 2 MB} if nothing made it before",
        default=(),
        one_or_many=True,
    )
    after: tuple[str, ...] = field("ops it starts after (the latest of each name)", default=(), one_or_many=True)
    block: bool = field("the program waits for it right after issuing it", default=False)
    weight: float = field(
        "how much of a link or part it gets beside other ops, in proportion: 100 nearly stops those of 1 while it runs",
        default=1.0,
        exclusive_minimum=0.0,
        doubted=False,
    )
    place: Place = place_field()

    def lower(self, scope: Scope) -> Placed:
        """Queue and cost of the op on the machine.

        Raises:
            CannotPlace, CannotCompute, UnknownName, NoRoute: the op does not fit the machine.
        """
        raise NotImplementedError

    def weighted(self, cost: Cost | None) -> Cost | None:
        """The cost with the op's part of what it shares: twice the weight, twice the rate while they compete."""
        if cost is None or math.isclose(self.weight, 1.0, rel_tol=1e-12, abs_tol=0.0):
            return cost
        return replace(cost, demand=replace(cost.demand, share=cost.demand.share / self.weight))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceOp(Op):
    """An op on one device."""

    device: str = field("where it runs (default: $self under `each`, else the only computing device)", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeOp(DeviceOp):
    """An op that computes."""

    cores: int | None = field(
        "cores of a cpu it runs on (default: all of them); on a gpu an op has all of it", default=None, minimum=1
    )
    isa: Literal["", "scalar", "sse", "avx", "avx2", "avx512", "neon", "sve", "vsx", "lasx"] = field(
        "class of instructions of a cpu (default: its widest)", default="", example="avx2"
    )
    working_set: Bytes | None = field(
        "bytes it goes over again and again, which a cache may hold (default: all from memory)", default=None, example="256 KiB"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledOp(ComputeOp):
    """An op that is a call of a library, which has a time of its own on a cpu with `kernels`."""

    form: str = field("of the function: how its operands lie, as the cpu's `kernels` name it", default="", example="row")
    into: Into = field("of the function: a new array, one that is there, or an operand in its place", default="new")
    among_others: bool = field("of the function: calls of others come before it, as in most programs", default=False)
    new_pages: float | None = field(
        "of the function: pages of memory it uses for the first time, 0 for none (default: large new arrays are made of them)",
        default=None,
        minimum=0,
    )
    new_bytes: Bytes | None = field(
        "of the function: bytes in these pages, where that is not all it writes (the mean of calls that differ)", default=None
    )
    since: tuple[Bytes, ...] = field(
        "of the function: bytes gone over since each operand, then the result, was last used (default: those of the op)",
        default=(),
        one_or_many=True,
        example="[4 MB, 64 KiB]",
    )

    def as_called(self, call: Call) -> Call:
        """The call as this op makes it: on its cores, among others, into new pages, if it says so."""
        if self.cores is not None:
            call = replace(call, cores=self.cores)
        return as_made(call, self.among_others, self.new_pages, self.new_bytes)

    def ages(self, operands: int) -> tuple[float, ...]:
        """`since` of each operand; where it is not said, the working set, if that is."""
        return self.since or (() if self.working_set is None else (self.working_set,) * operands)


def refuse_unknown(scope: Scope, device: str, part: Literal["attention", "experts", "matmul"], key: str, name: str) -> None:
    """Reject a name of kernels that the op's device does not tell apart.

    Args:
        part: key of a gpu that holds them; key: of the op, which says `name`.

    Raises:
        CannotPlace: the device has none of this name.
    """
    if not name:
        return
    device, model = scope.computing(device)
    if not isinstance(model, Gpu):
        raise CannotPlace(f"'{device}' is a {scope.kind(device)}: it tells no kernels apart by name", f"leave out `{key}`")
    names = model.libraries(part)
    if name not in names:
        hint = f"leave out `{key}`: it names none"
        if names:
            hint = " ".join(filter(None, (did_you_mean(name, names), f"it has {', '.join(names)}")))
        raise CannotPlace(f"'{device}' has no kernels in its `{part}` that are called '{name}'", hint)


def as_made(call: Call, among_others: bool, new_pages: float | None, new_bytes: float | None) -> Call:
    """A call after calls of other functions, and into new pages of memory, where an op says so."""
    if not among_others and new_pages is None:
        return call
    fresh = None if new_pages is None else call.written if new_pages > 0 else 0.0
    if new_pages and new_bytes is not None:
        fresh = min(new_bytes, call.written or new_bytes)  # some calls say nothing of their result
    return replace(call, among_others=among_others, fresh=fresh, faults=new_pages or 0.0)


def compute(
    scope: Scope,
    op: ComputeOp,
    work: Work,
    *,
    pieces: int = 1,
    output: float = 0.0,
    pointwise: Pointwise | None = None,
    said: Mapping[str, str] | None = None,
) -> Placed:
    """Work on a computing device's queue `compute`, on the cores the op asks for.

    said: how the op comes to its `flop` (for mix "random": `numbers`) and `traffic`, for the derivation.
    """
    device, model = scope.computing(op.device)
    if isinstance(model, Gpu) and (op.isa or work.instructions or work.branches):
        raise CannotPlace(
            f"'{device}' is a gpu: instructions and branches are a cpu's", "leave out `isa`, `instructions`, `branches`"
        )
    working_set = work.working_set if op.working_set is None else op.working_set
    cost = model.compute(device, replace(work, cores=op.cores, isa=op.isa, working_set=working_set, start=scope.starts))
    cost = saying(cost, said) if said else cost
    return Placed(device, op.queue or "compute", cost, pieces=pieces, output=output, pointwise=pointwise)


def saying(cost: Cost, said: Mapping[str, str]) -> Cost:
    """The cost with a derivation that says where the op's own numbers are from: name of the input -> how it came to be."""
    why = tuple(
        replace(term, inputs=tuple([(name, value, said.get(name, source)) for name, value, source in term.inputs]))
        for term in cost.why
    )
    return replace(cost, why=why)
