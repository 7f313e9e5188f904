"""Keys common to all ops, resolution of names in a program (`Scope`), and an op lowered to a device with its cost
(`LoweredOp`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field as attribute
from dataclasses import replace
from typing import ClassVar, Literal

from hwsim.demand import Cost
from hwsim.devices import Cpu, Gpu, Into, LibraryCall, Sockets, Start, Work
from hwsim.machine import Machine
from hwsim.machine.names import listed
from hwsim.records import dataclass
from hwsim.spec import Place, did_you_mean, field, place_field
from hwsim.spec.mistakes import HintedError
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


class CannotPlace(HintedError):
    """An error for an op that does not fit the machine; the caller adds the place in the file."""


@dataclass(frozen=True, slots=True)
class ArraySize:
    """A size of a value, stated as the shape and data type of its array."""

    shape: tuple[float, ...] = field("lengths of the array's axes", one_or_many=True, minimum=0, example="[1024, 512]")
    dtype: Dtype = field("data type of the elements", default="fp32")

    @property
    def bytes(self) -> float:
        return float(math.prod(self.shape) * BYTES[self.dtype])


Values = Mapping[str, ArraySize | Bytes] | tuple[str, ...]  # names of values, or names with sizes


def stated_sizes(values: Values) -> dict[str, float]:
    """Return the sizes (bytes) of those values whose size is stated beside their name.

    >>> stated_sizes({"y": ArraySize(shape=(1024, 512)), "z": 2e6}), stated_sizes(("y", "z"))
    ({'y': 2097152.0, 'z': 2000000.0}, {})
    """
    sized = values if isinstance(values, Mapping) else {}
    return {name: size.bytes if isinstance(size, ArraySize) else size for name, size in sized.items()}


@dataclass(frozen=True, slots=True)
class ValueLocation:
    """A location of a value.

    Args:
        memory: device whose memory holds the value.
        bytes: size of the value; 0: unknown.
    """

    memory: str
    bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Scope:
    """A context in which a program's names are resolved.

    Args:
        node: node whose devices names refer to first.
        own: device named `$self`.
        host: device that runs the program's thread; "" if there is none.
        values: location of each value written so far.
        starts: mechanism that starts GPU kernels.
        shares: whether numpy shares arrays in host memory instead of copying them.
        of_service: whether the ops belong to requests of a service, of which many are in flight.
        hosts: possible hosts, if the program's devices lie in several nodes that have CPUs of their own.
    """

    machine: Machine
    node: str = ""
    own: str = ""
    host: str = ""
    values: Mapping[str, ValueLocation] = attribute(default_factory=dict)
    starts: Start = "stream"
    shares: bool = False
    of_service: bool = False
    hosts: tuple[str, ...] = ()

    @property
    def thread(self) -> str:
        """Host of the program's thread.

        Raises:
            CannotPlace: several devices are possible.
        """
        if self.hosts:
            first = self.machine.home_of(self.hosts[0])
            hint = f"write `each: {first}` in a program or pipeline, or `device: {first}` in a job or service"
            raise CannotPlace(f"the host of the program is ambiguous: its devices have {listed(self.hosts)}", hint)
        return self.host

    def one(self, name: str) -> str:
        """Return the full name of the only device that `name` matches.

        Raises:
            UnknownName: no device or several devices match.
        """
        return self.machine.one(name, self.node)

    def kind(self, device: str) -> str:
        """Return the kind of a device, such as cpu, gpu or disk."""
        return self.machine.device(device).kind

    def computing(self, name: str) -> tuple[str, Cpu | Sockets | Gpu]:
        """Return the name and the model of a computing device; if `name` is empty: of $self, else of the only one.

        Raises:
            UnknownName, CannotPlace: there is no such device, or it does not compute.
        """
        device = self.one(name) if name else self.own or self._only_computing()
        model = self.machine.device(device).model
        if isinstance(model, Cpu | Sockets | Gpu):
            return device, model
        raise CannotPlace(f"'{device}' is a {self.kind(device)}: expected a cpu or a gpu", "name a cpu or a gpu as `device`")

    def _only_computing(self) -> str:
        found = [*self.machine.devices_of("cpu", self.node), *self.machine.devices_of("gpu", self.node)]
        if len(found) == 1:
            return found[0]
        raise CannotPlace("the op needs a `device`", f"one of {', '.join(found)}" if found else None)


@dataclass(frozen=True, slots=True)
class Pointwise:
    """An elementwise op that reads `inputs` arrays of `count` elements and writes one; `array`: bytes of each."""

    count: float
    dtype: Dtype
    inputs: int
    flop: float

    @property
    def array(self) -> float:
        return self.count * BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class LoweredOp:
    """An op that has been assigned to a queue of a device, with its cost.

    Args:
        device: device that runs the op.
        queue: queue of that device.
        cost: demand of the whole op; None: the op draws on no resource.
        time: duration (s) of an op without a cost.
        pieces: number of equal pieces; each has `size` = 1 / pieces of the cost.
        output: size (bytes) of a value that the op writes, unless the file states it.
        home: device whose memory holds the output; default: `device`.
        pointwise: description of an elementwise op, for fusion.
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
    """A base of all ops, with the keys that every op has."""

    kind: ClassVar[str]
    doubts_of: ClassVar[Doubts] = "own"  # see `hwsim.ops.sensitivity`

    name: str = field("name of the op in `wait`, `after` and the results (default: its kind)", default="")
    queue: str = field("queue of the device (default: by the kind of op); ops of one queue run in order", default="")
    reads: tuple[str, ...] = field("values that the op reads; it waits for the last writer of each", default=(), one_or_many=True)
    writes: Values = field(
        "values that the op creates in new buffers, so that it waits for no other op; {y: 2 MB} also states the size",
        default=(),
        one_or_many=True,
        example="{y: {shape: [1024, 512], dtype: fp32}}",
    )
    updates: Values = field(
        "values that the op changes in place; it waits for their last writer and all readers; {y: 2 MB} states the size if no "
        "op created y",
        default=(),
        one_or_many=True,
    )
    after: tuple[str, ...] = field("ops that must end before this op starts (latest of each name)", default=(), one_or_many=True)
    block: bool = field("whether the program waits for the op right after issuing it", default=False)
    weight: float = field(
        "share of a contended link or device relative to other ops: a weight of 100 nearly stops ops of weight 1",
        default=1.0,
        exclusive_minimum=0.0,
        doubted=False,
    )
    place: Place = place_field()

    def lower(self, scope: Scope) -> LoweredOp:
        """Return the queue and the cost of the op on the machine.

        Raises:
            CannotPlace, CannotCompute, UnknownName, NoRoute: the op does not fit the machine.
        """
        raise NotImplementedError

    def weighted(self, cost: Cost | None) -> Cost | None:
        """Return the cost with the op's `weight`: twice the weight means twice the rate on a contended resource."""
        if cost is None or math.isclose(self.weight, 1.0, rel_tol=1e-12, abs_tol=0.0):
            return cost
        return replace(cost, demand=replace(cost.demand, share=cost.demand.share / self.weight))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceOp(Op):
    """A base of ops that run on one device."""

    device: str = field("device that runs the op (default: $self under `each`, else the only cpu or gpu)", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeOp(DeviceOp):
    """A base of ops that compute on a CPU or a GPU."""

    cores: int | None = field(
        "number of CPU cores used (default: all cores); an op on a GPU uses the whole GPU", default=None, minimum=1
    )
    isa: Literal["", "scalar", "sse", "avx", "avx2", "avx512", "neon", "sve", "vsx", "lasx"] = field(
        "CPU instruction set (default: the widest that the CPU has)", default="", example="avx2"
    )
    working_set: Bytes | None = field(
        "bytes accessed repeatedly, which a cache may hold (default: all traffic reaches memory)", default=None, example="256 KiB"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledOp(ComputeOp):
    """A base of ops that may be calls of a library function, whose measured time a CPU's `kernels` contain."""

    form: str = field("operand layout of `function`, named as in the cpu's `kernels`", default="", example="row")
    into: Into = field("destination of the result of `function`: a new array, an existing one, or an operand", default="new")
    among_others: bool = field("whether calls of other functions precede that of `function`, as in most programs", default=False)
    new_pages: float | None = field(
        "number of memory pages that `function` uses for the first time; 0: none (default: all pages of a large new array)",
        default=None,
        minimum=0,
    )
    new_bytes: Bytes | None = field("bytes written to `new_pages`, if not all bytes (an average if calls differ)", default=None)
    since: tuple[Bytes, ...] = field(
        "bytes accessed since the last use of each operand of `function` and of its result (default: `working_set`)",
        default=(),
        one_or_many=True,
        example="[4 MB, 64 KiB]",
    )

    def as_called(self, call: LibraryCall) -> LibraryCall:
        """Return the call with this op's `cores`, `among_others`, `new_pages` and `new_bytes`, if stated."""
        if self.cores is not None:
            call = replace(call, cores=self.cores)
        return with_call_history(call, self.among_others, self.new_pages, self.new_bytes)

    def ages(self, operand_count: int) -> tuple[float, ...]:
        """Return `since`; by default `working_set` for each of the operands, or an empty tuple."""
        return self.since or (() if self.working_set is None else (self.working_set,) * operand_count)


def check_library_name(scope: Scope, device: str, part: Literal["attention", "experts", "matmul"], key: str, name: str) -> None:
    """Check the name of a kernel library against those that the op's device distinguishes.

    Args:
        part: key of a GPU whose mapping contains the libraries.
        key: key of the op whose value is `name`.
        name: name of the library; "": nothing to check.

    Raises:
        CannotPlace: the device has no kernels of this name.
    """
    if not name:
        return
    device, model = scope.computing(device)
    if not isinstance(model, Gpu):
        raise CannotPlace(f"'{device}' is a {scope.kind(device)}: `{key}` requires a gpu", f"omit `{key}`")
    names = model.libraries(part)
    if name not in names:
        hint = did_you_mean(name, names) or f"omit `{key}`: the device names no kernels"
        raise CannotPlace(f"'{device}' has no kernels '{name}' in its `{part}`", hint)


def with_call_history(call: LibraryCall, among_others: bool, new_pages: float | None, new_bytes: float | None) -> LibraryCall:
    """Return the call with the stated history: calls of other functions before it, and results in new pages of memory."""
    if not among_others and new_pages is None:
        return call
    fresh = None if new_pages is None else call.written if new_pages > 0 else 0.0
    if new_pages and new_bytes is not None:
        fresh = min(new_bytes, call.written or new_bytes)  # the size of some results is unknown
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
) -> LoweredOp:
    """Place work on the queue `compute` of the op's device, on the op's cores.

    Args:
        pieces: number of equal ops that the work is cut into.
        output: size (bytes) of the result.
        said: formulas of `flop` (for mix "random": of `numbers`) and `traffic`, for the derivation.
    """
    device, model = scope.computing(op.device)
    if isinstance(model, Gpu) and (op.isa or work.instructions or work.branches):
        raise CannotPlace(f"'{device}' is a gpu: `isa`, `instructions`, `branches` require a cpu", "omit them")
    working_set = work.working_set if op.working_set is None else op.working_set
    cost = model.compute(device, replace(work, cores=op.cores, isa=op.isa, working_set=working_set, start=scope.starts))
    cost = with_input_sources(cost, said) if said else cost
    return LoweredOp(device, op.queue or "compute", cost, pieces=pieces, output=output, pointwise=pointwise)


def with_input_sources(cost: Cost, said: Mapping[str, str]) -> Cost:
    """Return the cost with the sources of its inputs replaced by `said` (name of an input -> its formula)."""
    why = [
        replace(term, inputs=tuple((key, value, said.get(key, source)) for key, value, source in term.inputs))
        for term in cost.why
    ]
    return replace(cost, why=tuple(why))
