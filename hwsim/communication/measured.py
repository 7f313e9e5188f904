"""Measured constants of a library as demands on a machine: the time of an estimate over the links of its algorithm.

Error: the fit error (docs/validation/collectives.md) on the measured machine; if links limit that the measured machine did not
have, the error of the links.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

from hwsim.communication.algorithms import Algorithm
from hwsim.communication.algorithms.parameter_server import ParameterServer
from hwsim.communication.flows import CollectivePhase, Flows, PhaseSum, Task, slowest_capacity
from hwsim.communication.plan import RankGroup
from hwsim.demand import Term
from hwsim.devices import Gpu
from hwsim.devices.roofline import source_of
from hwsim.formats import family, precise
from hwsim.links.nvlink import Nvlink
from hwsim.links.pcie import Pcie
from hwsim.links.xgmi import Xgmi
from hwsim.machine import Machine, TransferOptions
from hwsim.machine.contents import BoundedCache
from hwsim.machine.libraries.custom_allreduce import CustomAllReduce
from hwsim.machine.libraries.fabric import Fabric
from hwsim.machine.libraries.mpi import Mpi
from hwsim.machine.libraries.nccl import Nccl, NcclEstimate, Protocol, RingBandwidth
from hwsim.machine.libraries.overheads import PLAIN, Overheads
from hwsim.origins import Case, Cited, Origin, UncertaintySource
from hwsim.spec import Mistakes, decode, find, read, resolve

Measured = TypeVar("Measured", Nccl, Mpi, CustomAllReduce, Fabric)

_ENTRY = ("hwsim", "kind", "name", "notes", "use")
_SMALL, _LARGE = 65536.0, 16.0 * 2**20  # bytes
_TWINS = ("nvlink3", "nvlink4", "nvlink5")  # link generations measured on several machines
_LONG = 1e9  # bytes of a message whose latency is negligible
_EQUAL = 1e-9  # relative difference of equal times
_ALIKE = 0.1  # maximum relative difference of rate and latency of similar networks
_MOST = 0.95  # maximum share of a GPU's compute
_SENT = ("all-to-all", "gather", "scatter", "send")  # operations that NCCL implements with sends
_FITTED = 8  # maximum GPUs per node in the fitted collectives
_EACH = ("all-gather", "all-to-all")  # operations whose MPI size is the bytes that each rank contributes


@cache
def measured(model: type[Measured], name: str) -> Measured:
    """Return the constants of a library part (machines/parts/nccl, mpi and own), by name or from a file.

    Raises:
        SpecError: the file does not exist or contains mistakes.
    """
    mistakes = Mistakes()
    tree = resolve(read(find(model.kind, name)), mistakes, kind=model.kind)
    mistakes.raise_if_any()
    numbers = decode(tree.without(*_ENTRY), model, mistakes, sourced=True)
    mistakes.raise_if_any()
    if numbers is None:
        raise TypeError(f"{name} is not a {model.kind}")
    return numbers


def by_default(machine: Machine, devices: Sequence[str]) -> Nccl | None:
    """Return NCCL for a machine that states no library: constants of its link generation, from other machines; or None.

    Links that state only a bandwidth are ideal: they run at their rates, and collectives have no start time.
    """
    if machine.ideal:
        return None
    names = [generation(machine, sample.name) for sample in machine.samples(devices)]
    if not names or None in names:
        return None
    return _default(min(name for name in names if name is not None))


class Generations(BoundedCache[str, str | None]):
    """Cached link generations of a machine's GPUs."""


def generation(machine: Machine, name: str) -> str | None:
    """Return the library part for a GPU's links: its NVLink generation, xGMI, or PCIe without either."""
    return machine.kept(Generations).known(name, _generation, machine, name)


def _generation(machine: Machine, name: str) -> str | None:
    models = [link.model for link in machine.links_from(name)]
    if any(isinstance(model, Xgmi) for model in models):
        return Xgmi.kind
    wires = [model.gen for model in models if isinstance(model, Nvlink)]
    if wires:
        return f"nvlink{min(wire for wire in wires if wire)}" if all(wires) else None
    slots = [model.gen for model in models if isinstance(model, Pcie)]
    return "pcie" if slots and all(slots) else None


@cache
def _default(name: str) -> Nccl:
    """Return the same constants, marked as defaults."""
    library: Nccl = measured(Nccl, name)
    found = replace(library)
    object.__setattr__(
        found, "sources", {key: Origin("default", str(text), known="device") for key, text in library.sources.items()}
    )
    return found


def as_measured(task: Task, algorithm: Algorithm, library: Nccl, best: NcclEstimate, most: int = 0) -> Flows:
    """Return an NCCL estimate over the links of its algorithm, as one phase.

    If the ranks' parts are unequal, the flow takes longer in proportion to the time that the links are busy.

    Args:
        most: maximum ranks per node.
    """
    channels = library.channels_of(best.method, best.protocol, len(task.devices), task.size)
    overheads = Overheads(compute=_held_compute(task.machine, task.devices, channels))
    together = task.together(algorithm, overheads)
    flow = max(library.issue, best.seconds) - best.latency
    if task.weights:
        flow *= together.busy / (together.even or 1.0)
    inputs = (("waiting", precise(best.latency, "s"), f"start, steps and hops of {best.method}, {best.protocol}"),)
    source = source_of(library.sources, "start")
    links = generation(task.machine, task.devices[0]) or "links"
    topic = "pcie" if links == "pcie" else "nccl"  # of two PCIe servers, one is ten times slower
    case = case_of_library(source, links, most, anew=is_restated(task.machine, task.devices))
    if len(task.devices) > most:  # the network decides: a step over one takes up to ten times as long as over another
        topic, case = "network", case_of_network(library, best, case)
    if case in ("known", "device") and not library.is_measured(task.operation, len(task.devices)):
        case = "device" if library.choice == "tables" else "generation"  # tables: fitted to four operations of nine machines
    doubt = UncertaintySource(f"{topic}/{size_regime(task.size)}", case, f"{links} links", 0.0)
    terms = (
        Term("latency", "waiting", inputs, best.latency, kind="latency", doubts=(doubt._replace(seconds=best.latency),)),
        flow_term(task.machine, together, flow, "nccl: " + source, doubt),
    )
    return as_one(task.machine, together, f"{best.method}, {best.protocol}", best.latency, flow, terms)


def size_regime(size: float) -> str:
    """Return the error regime of a message: small, middle or large."""
    return "small" if size <= _SMALL else "middle" if size < _LARGE else "large"


def mpi_regime(operation: str, size: float) -> str:
    """Return the error regime of MPI: two ranks differ less between implementations than the algorithms of collectives."""
    return "pairs" if operation in ("send", "stream", "stream-both", "send-call", "receive-call") else size_regime(size)


def is_restated(machine: Machine, devices: Sequence[str]) -> bool:
    """Return whether a link or NIC between the first and the last device has values changed by the user."""
    between = machine.route(devices[0], devices[-1])
    cards = {end for link in between for end in (link.source, link.target)} - {devices[0], devices[-1]}
    models = [link.model for link in between] + [machine.device(name).model for name in cards]
    return any(source.kind == "what-if" for model in models for source in getattr(model, "sources", {}).values())


def case_of_library(source: Cited, links: str, together: int, *, anew: bool = False) -> Case:
    """Return the case of a library's constants.

    They are of this machine, of other machines with such links, or outside of the measured GPU counts.

    Args:
        anew: whether link values differ from those of the measured machine.

    >>> [case_of_library(Origin("fitted"), "nvlink5", gpus) for gpus in (4, 16, 72)]
    ['known', 'generation', 'outside']
    """
    if together > _FITTED:
        return "generation" if together <= 2 * _FITTED else "outside"
    if anew:
        return "generation"
    kind = source.kind if isinstance(source, Origin) else "stated"
    if kind != "default":
        return "known" if kind in ("fitted", "measured") else "generation"
    return "device" if links in _TWINS else "generation"


def case_of_network(library: Nccl, best: NcclEstimate, inside: Case) -> Case:
    """Return the case of a collective between nodes: measured on this machine, on this kind of network, or on others only."""
    hop = library.sources.get(f"{best.protocol}.hop")
    if hop is None or hop.kind in ("guess", "recalled", "twin", "what-if"):
        return "generation"
    return inside if hop.kind != "default" else "device" if inside in ("known", "device") else inside


def as_curve(task: Task, algorithm: Algorithm, mpi: Mpi) -> Flows:
    """Return the time of an MPI curve, over the links of an algorithm.

    Raises:
        CannotCollect: there is no curve for the operation.
    """
    ranks, operation = len(task.devices), task.operation
    start = mpi.seconds(operation, ranks, 0.0)
    flow = mpi.seconds(operation, ranks, task.size / ranks if operation in _EACH else task.size) - start
    source = "mpi: " + source_of(mpi.sources, f"curves.{operation}.start")
    together = task.together(algorithm)
    start, flow, like = _scale_network(task, mpi, together.busy, start, flow)
    known = like and ranks <= 2 * mpi.curves[operation].ranks <= 4 * ranks
    doubt = UncertaintySource(f"mpi/{mpi_regime(operation, task.size)}", "known" if known else "source", "mpi", 0.0)
    terms = (
        Term("latency", "start", (("start", precise(start, "s"), source),), start, kind="latency",
             doubts=(doubt._replace(seconds=start),)),
        flow_term(task.machine, together, flow, source, doubt),
    )  # fmt: skip
    return as_one(task.machine, together, "as measured", start, flow, terms)


def _scale_network(task: Task, mpi: Mpi, busy: float, start: float, flow: float) -> tuple[float, float, bool]:
    """Return (start, flow, whether the networks are similar), with this machine's network instead of the measured one."""
    nodes = {task.machine.device(name).node: name for name in reversed(task.devices)}
    if mpi.wire <= 0 or len(nodes) < 2:
        return start, flow, True
    first, second, *_ = dict(reversed(nodes.items())).values()
    message = task.machine.transfer(first, second, _LONG).demand
    rate = _LONG / message.body(task.machine.rates())
    is_similar = abs(rate / mpi.wire - 1) <= _ALIKE and abs(message.latency - mpi.hop) <= _ALIKE * mpi.hop
    levels = math.ceil(math.log2(len(nodes)))
    flow = max(0.0, flow - busy * rate / mpi.wire) + busy
    return max(0.0, start - levels * mpi.hop) + levels * message.latency, flow, is_similar


def flow_term(machine: Machine, together: PhaseSum, flow: float, source: Cited, doubt: UncertaintySource) -> Term:
    """Return the derivation line of a flow: the bytes on the busiest link, and the link efficiency."""
    taken = (
        (amount / machine.capacities[name].rate, family(name), amount, name) for name, amount in together.total.demand.amounts
    )
    seconds, busiest, moved, link = max(taken, default=(0.0, "", 0.0, ""))
    doubts = (doubt._replace(seconds=flow),)
    if not 0 < seconds <= flow or machine.capacities[link].unit != "B":
        return Term("flow", "flow", (("flow", precise(flow, "s"), source),), flow, kind="flow", doubts=doubts)
    inputs = (
        ("bytes", precise(moved, "B"), f"of all steps, on {busiest}"),
        ("bandwidth", precise(moved / seconds, "B/s"), busiest),
        ("efficiency", precise(seconds / flow, "%"), source),
    )
    return Term("flow", "bytes / (bandwidth x efficiency)", inputs, flow, kind="flow", doubts=doubts)


def as_one(machine: Machine, together: PhaseSum, name: str, latency: float, flow: float, terms: tuple[Term, ...]) -> Flows:
    """Return all phases as one that takes `latency`, then at least `flow`."""
    demand = replace(together.total.demand, latency=latency, floor=flow)
    total = replace(together.total, demand=demand, why=terms)
    over, binding = slowest_capacity(machine, total)
    if over > flow * (1 + _EQUAL):  # links limit that the measured machine did not have
        inputs = (("flow", precise(over, "s"), f"the links' own rates: {binding}"),)
        total = replace(total, why=(*terms, Term(f"link {binding}", "flow", inputs, over, binding)))
    return replace(together.flows, phases=(CollectivePhase(name, total),))


def _held_compute(machine: Machine, names: Sequence[str], channels: int) -> float:
    """Return the share of a GPU's compute that channels hold: each uses one multiprocessor."""
    models = [sample.model for sample in machine.samples(names)]
    counts = [model.sms for model in models if isinstance(model, Gpu) and model.sms]
    return min(_MOST, channels / min(counts)) if counts and channels else 0.0


def overheads_as(
    task: Task, algorithm: Algorithm, group: RankGroup, library: Nccl, protocol: Protocol, carried: RingBandwidth
) -> Overheads:
    """Return the start, steps and rate of one NCCL protocol for an algorithm that was not measured.

    A step excludes the latency of the links, which is part of the measured time. A parameter server has no overheads.
    """
    if isinstance(algorithm, ParameterServer):
        return PLAIN
    speeds, several = library.speeds(protocol), len(group.sizes) > 1
    sent = task.operation in _SENT and library.send is not None
    near, hop = _steps(task.machine, task.devices, group, speeds.step, speeds.hop or 0.0)
    return Overheads(
        start=library.send if sent and library.send is not None else library.start + speeds.start,
        step=speeds.step if near is None else near,
        hop=hop,
        efficiency=min(1.0, speeds.rate * library.efficiency(carried, several)),
        compute=_held_compute(task.machine, task.devices, library.channels_of("ring", protocol, len(task.devices), task.size)),
    ).told(_sources(library.sources, "send" if sent else "start", protocol, carried.wire if several else carried.link))


def overheads_like(machine: Machine, flows: Flows, best: NcclEstimate, library: Nccl, group: RankGroup) -> Overheads:
    """Return an estimate as overheads of single sends, with the same total time for sends without gaps."""
    speeds = library.speeds(best.protocol)
    sums = best.method.startswith("nvls")
    extra = library.nvls_start if sums else speeds.start if best.method in ("ring", "tree") else 0.0
    start = library.send if best.method == "direct" and library.send is not None else library.start
    busy = math.fsum(slowest_capacity(machine, phase.cost)[0] for phase in flows.phases)
    near, hop = _steps(machine, flows.parties, group, speeds.step, speeds.hop or 0.0)
    return Overheads(
        start=start + extra,
        step=0.0 if sums or near is None else near,
        hop=hop,
        efficiency=min(1.0, busy / best.body) if busy > 0 and 0 < best.body < math.inf else 1.0,
    ).told(_sources(library.sources, "start", best.protocol, "nvlink"))


def _steps(
    machine: Machine, names: Sequence[str], group: RankGroup, step: float, hop: float
) -> tuple[float | None, float | None]:
    """Return the measured seconds of a step within a node and between nodes, without link latency; None: no such step."""
    near = next((start for start, count in zip(group.starts, group.sizes, strict=True) if count > 1), None)
    inside = None if near is None else _without_latency(machine, names[near], names[near + 1], step)
    return inside, _without_latency(machine, names[0], names[group.starts[1]], hop) if len(group.sizes) > 1 else None


def overheads_of_messages(machine: Machine, names: Sequence[str], size: float, mpi: Mpi) -> Overheads:
    """Return MPI's point-to-point messages as overheads, for algorithms without a curve."""
    curve = mpi.curves.get("send")
    if curve is None or len(names) < 2:
        return PLAIN
    start = curve.seconds(0.0)
    message = max(size, 1.0) / len(names)
    links = max(machine.transfer(names[0], names[1], message).demand.body(machine.rates()), 1e-15)
    flow = max(curve.seconds(message) - start, 1e-15)
    return Overheads(
        step=_without_latency(machine, names[0], names[1], start),
        efficiency=min(1.0, links / flow),
    ).told({key: source_of(mpi.sources, "curves.send.start") for key in ("step", "efficiency")})


def _without_latency(machine: Machine, a: str, b: str, seconds: float) -> float:
    """Return the seconds of a measured step minus the latency of the links."""
    return max(0.0, seconds - machine.transfer(a, b, 0.0, TransferOptions(by="sm")).demand.latency)


def _sources(sources: Mapping[str, Origin], start: str, protocol: Protocol, link: str) -> dict[str, Origin]:
    keys = {"start": start, "step": f"{protocol}.step", "hop": f"{protocol}.hop", "efficiency": link}
    return {name: source_of(sources, key) for name, key in keys.items()}
