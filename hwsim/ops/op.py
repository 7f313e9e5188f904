"""What every op has in common, and what lowering one gives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, get_args

from hwsim.demand import Cost
from hwsim.devices import Cpu, Gpu, Mix, Sockets
from hwsim.machine import Machine, UnknownName
from hwsim.spec import Place, field, place_field

Dtype = Literal["fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8", "int4"]

# Bytes per element as it lies in memory; tf32 is fp32 there.
WIDTH: Final[dict[str, float]] = {
    "fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "fp4": 0.5, "int8": 1, "int4": 0.5,
}  # fmt: skip
DTYPES: Final = get_args(Dtype)


class CannotPlace(ValueError):
    """An op that does not fit the machine; the caller adds the place."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean to a program: names inside `node` first, `own` is $self, `host` the device of its thread ("" if none)."""

    machine: Machine
    node: str = ""
    own: str = ""
    host: str = ""

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
class Placed:
    """An op on its device: which queue of it, and what it costs.

    size: every piece draws `size` times the cost.  time: own seconds, for an op without a cost.
    """

    device: str
    queue: str
    cost: Cost | None
    time: float = 0.0
    pieces: int = 1

    @property
    def size(self) -> float:
        return 1.0 / self.pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """Keys that every op has."""

    name: str = field("what `wait`, `after` and the results call it (default: its kind)", default="")
    queue: str = field("another queue of its device than the default; ops of one queue run in order", default="")
    reads: tuple[str, ...] = field("values it needs: it starts after their last writer", default=(), one_or_many=True)
    writes: tuple[str, ...] = field(
        "values it makes anew, in a buffer of its own: it waits for nobody", default=(), one_or_many=True
    )
    updates: tuple[str, ...] = field(
        "values it changes in place: after their last writer and all readers", default=(), one_or_many=True
    )
    after: tuple[str, ...] = field("ops it starts after (the latest of each name)", default=(), one_or_many=True)
    block: bool = field("the program waits for it right after issuing it", default=False)
    place: Place = place_field()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceOp(Op):
    """An op on one device."""

    device: str = field("where it runs (default: $self under `each`, else the only computing device)", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayOp(DeviceOp):
    """An op over the elements of an array; exactly one of count and shape."""

    count: float | None = field("number of elements", default=None, minimum=0, example="1e6")
    shape: tuple[float, ...] = field(
        "lengths of the array's axes", default=(), one_or_many=True, minimum=0, example="[2000, 2000]"
    )
    dtype: Dtype = field("type of the elements", default="fp32")

    def elements(self) -> float:
        """Number of elements.

        Raises:
            CannotPlace: neither or both of count and shape are given.
        """
        if (self.count is None) == (not self.shape):
            raise CannotPlace("the op needs `count` or `shape`, not both", "count: 1e6   or   shape: [1000, 1000]")
        return math.prod(self.shape) if self.count is None else self.count


def compute(scope: Scope, op: DeviceOp, *, flop: float, traffic: float, dtype: str, mix: Mix, pieces: int = 1) -> Placed:
    """Work on a computing device's queue `compute`: a roofline of `flop` and `traffic` bytes."""
    device, model = scope.computing(op.device)
    cost = model.compute(device, flop=flop, traffic=traffic, dtype=dtype, mix=mix, cores=None)
    return Placed(device, op.queue or "compute", cost, pieces=pieces)


__all__ = [
    "DTYPES",
    "WIDTH",
    "ArrayOp",
    "CannotPlace",
    "DeviceOp",
    "Dtype",
    "Op",
    "Placed",
    "Scope",
    "UnknownName",
    "compute",
]
