"""Custom all-reduce kernels of a framework on a machine: their time over the links between the GPUs of a node."""

from __future__ import annotations

from collections.abc import Sequence

from hwsim.communication.algorithms.direct import DirectExchange
from hwsim.communication.flows import Flows, Task
from hwsim.communication.measured import as_one, generation, is_restated, measured
from hwsim.communication.placement import place
from hwsim.communication.plan import Operation
from hwsim.communication.selection import bus
from hwsim.demand import Choice, Term, TermKind
from hwsim.devices.roofline import source_of
from hwsim.formats import precise
from hwsim.links.nvlink import Nvlink
from hwsim.links.xgmi import Xgmi
from hwsim.machine import Machine
from hwsim.machine.libraries.custom_allreduce import AllReduceTime, CustomAllReduce
from hwsim.origins import Case, Origin, UncertaintySource, case_of
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class CustomVariant:
    """A custom all-reduce variant on some links.

    Args:
        on: link generation of the constants, e.g. "nvlink4".
        known: whether the constants were measured on this generation.
    """

    way: AllReduceTime
    on: str
    known: bool
    source: Origin

    @property
    def seconds(self) -> float:
        return self.way.latency + self.way.body

    @property
    def choice(self) -> Choice:
        """The variant as a choice."""
        return Choice(f"own, {self.way.name}", self.seconds)


def own_of(name: str) -> CustomAllReduce:
    """Return the custom kernels of a framework in the library."""
    found: CustomAllReduce = measured(CustomAllReduce, name)
    return found


def stated_custom_kernels(machine: Machine, task: Task) -> CustomAllReduce | None:
    """Return the custom kernels that a machine states for its GPUs."""
    return _stated_library(machine, task.operation, task.devices)


def has_own(machine: Machine, operation: Operation, devices: Sequence[str]) -> bool:
    """Return whether a machine states custom kernels for an operation."""
    return _stated_library(machine, operation, devices) is not None


def _stated_library(machine: Machine, operation: Operation, devices: Sequence[str]) -> CustomAllReduce | None:
    if operation != "all-reduce" or not machine.libraries:
        return None
    library = machine.library(devices, ("own",))
    return library if isinstance(library, CustomAllReduce) else None


def find_custom_variant(task: Task, library: CustomAllReduce) -> CustomVariant | None:
    """Return the framework's variant; None if it uses NCCL."""
    if task.operation != "all-reduce" or task.weights or len(task.devices) < 2:
        return None
    placed = place(task.machine, DirectExchange(), task.devices)
    link = None if len(placed.group.sizes) > 1 else _links(task.machine, task.devices)
    if link is None:
        return None
    kind = link.rstrip("0123456789")
    on = library.on(kind, int(link.removeprefix(kind) or 0))
    if on is None:
        return None
    carried = bus(task.machine, task.devices, ring=DirectExchange())
    way = on[1].time(len(task.devices), task.size, carried.inside)
    return None if way is None else CustomVariant(way, on[0], on[0] == link, source_of(library.sources, f"links.{on[0]}.start"))


def _links(machine: Machine, devices: Sequence[str]) -> str | None:
    """Return the kind and generation of the links between the GPUs; None if mixed, as frameworks then use NCCL."""
    first, *others = devices
    kinds = {link.model.kind for other in others for link in machine.route(first, other)}
    if kinds == {Xgmi.kind}:
        return Xgmi.kind
    return None if len(kinds) > 1 and kinds & {Nvlink.kind, Xgmi.kind} else generation(machine, first)


def as_own(task: Task, taken: CustomVariant) -> Flows:
    """Return the phases of the framework's variant."""
    way, source = taken.way, "own: " + taken.source
    known = taken.known and not is_restated(task.machine, task.devices)
    case: Case = (case_of(taken.source, "generation") or "known") if known else "generation"
    parts: tuple[tuple[TermKind, float], ...] = (("latency", way.latency), ("flow", way.body))
    terms = tuple(
        Term(
            kind, kind, ((kind, precise(seconds, "s"), f"{way.name}; " + source),), seconds, kind=kind,
            doubts=(UncertaintySource("reduce/own", case, f"{taken.on} links", seconds),),
        )
        for kind, seconds in parts
    )  # fmt: skip
    return as_one(task.machine, task.together(DirectExchange()), f"own, {way.name}", way.latency, way.body, terms)
