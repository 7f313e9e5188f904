"""The result of a probe of a machine: a time with its derivation, or the reason why it is not available."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from hwsim.demand import Capacity, Cost, Term
from hwsim.devices import Cpu, Gpu
from hwsim.machine import Machine
from hwsim.records import dataclass

LINE: Final = 64.0  # cache line, and small message (B)
PAGE: Final = 4096.0  # usual size of a disk or network access (B)
MEGABYTE: Final = 1e6  # B

Model = TypeVar("Model", Cpu, Gpu)


@dataclass(frozen=True, slots=True)
class ProbeTime:
    """The time of a probe.

    Args:
        seconds: time (s).
        part: part of the machine.
        how: derivation in a few words.
        why: derivation lines recorded at lowering.
    """

    seconds: float
    part: str
    how: str
    why: Sequence[Term] = ()


class ProbeUnavailable(Exception):
    """Raised if the machine lacks a part, or a part lacks a number."""


def first_cpu(machine: Machine) -> tuple[str, Cpu]:
    """Return the first CPU and its model; raise Lacks without one."""
    return _first(machine, "cpu", Cpu)


def first_gpu(machine: Machine) -> tuple[str, Gpu]:
    """Return the first GPU and its model; raise Lacks without one."""
    return _first(machine, "gpu", Gpu)


def _first(machine: Machine, kind: str, model: type[Model]) -> tuple[str, Model]:
    names = machine.devices_of(kind)
    if not names:
        raise ProbeUnavailable(f"the machine has no {kind}")
    found = machine.device(names[0]).model
    if not isinstance(found, model):
        raise ProbeUnavailable(f"{names[0]} is not a single {kind}")
    return names[0], found


def rates(capacities: tuple[Capacity, ...]) -> Mapping[str, float]:
    """Return the rate per second of each capacity."""
    return {capacity.name: capacity.rate for capacity in capacities}


def body(model: Cpu | Gpu, name: str, cost: Cost) -> float:
    """Return the time of an unloaded op without its latency (s)."""
    return cost.demand.body(rates(model.capacities(name)))


def changed(model: Model, **keys: object) -> Model:
    """Return the part with other values for these keys and the same sources."""
    other = replace(model, **keys)  # type: ignore[arg-type]
    object.__setattr__(other, "sources", model.sources)  # not a key of the file, so not an argument
    return other
