"""Result of one probe of a machine: a time with its derivation, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from hwsim.demand import Capacity, Cost, Term
from hwsim.devices import Cpu, Gpu
from hwsim.machine import Machine
from hwsim.records import dataclass

LINE: Final = 64.0  # bytes of a cache line, and of a small message
PAGE: Final = 4096.0  # bytes: 4 KB, as disks and networks are asked for
MEGABYTE: Final = 1e6

Model = TypeVar("Model", Cpu, Gpu)


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds that a part takes, explained in a few words (`how`) and by the lines that lowering wrote (`why`)."""

    seconds: float
    part: str
    how: str
    why: Sequence[Term] = ()


class Lacks(Exception):
    """The machine has no such part, or the part lacks a number."""


def first_cpu(machine: Machine) -> tuple[str, Cpu]:
    """The first CPU, and its model; raises Lacks."""
    return _first(machine, "cpu", Cpu)


def first_gpu(machine: Machine) -> tuple[str, Gpu]:
    """The first GPU, and its model; raises Lacks."""
    return _first(machine, "gpu", Gpu)


def _first(machine: Machine, kind: str, model: type[Model]) -> tuple[str, Model]:
    names = machine.devices_of(kind)
    if not names:
        raise Lacks(f"the machine has no {kind}")
    found = machine.device(names[0]).model
    if not isinstance(found, model):
        raise Lacks(f"{names[0]} is not a single {kind}")
    return names[0], found


def rates(capacities: tuple[Capacity, ...]) -> Mapping[str, float]:
    """Amount per second by name of capacity."""
    return {capacity.name: capacity.rate for capacity in capacities}


def body(model: Cpu | Gpu, name: str, cost: Cost) -> float:
    """Seconds of an op alone, without its latency."""
    return cost.demand.body(rates(model.capacities(name)))


def changed(model: Model, **keys: object) -> Model:
    """The same part with other values for these keys; the sources of its numbers stay."""
    other = replace(model, **keys)  # type: ignore[arg-type]
    object.__setattr__(other, "sources", model.sources)  # no key of a file, hence no argument
    return other
