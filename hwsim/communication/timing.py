"""A collective on a machine with its communication library: for ops, tables and validation.

    measured NCCL     its estimate of the algorithm, or the best of all (auto); other algorithms use its start, steps and rate.
    measured MPI      its curve of the operation (auto); algorithms use start and rate of its messages.
    custom kernels    of a framework, for all-reduces within a node up to a size limit; NCCL above.
    overheads         added to every algorithm; auto takes the fastest.
    no library        raw link bandwidth; auto uses NCCL's own tables among GPUs, else the fastest algorithm.

Range: an estimate applies to the rings, trees and switches of the measured machine. It does not cover `RingAlgorithm` with
explicit orders, trees within a node, and algorithms that NCCL does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hwsim.communication.algorithms import ALGORITHMS, Algorithm
from hwsim.communication.algorithms.custom_allreduce import OwnKernel
from hwsim.communication.algorithms.direct import DirectExchange
from hwsim.communication.algorithms.double_tree import DoubleTree
from hwsim.communication.algorithms.in_network import InNetwork
from hwsim.communication.algorithms.pairwise import Pairwise
from hwsim.communication.algorithms.ring import RingAlgorithm
from hwsim.communication.custom_kernels import as_own, find_custom_variant, has_own, own_of, stated_custom_kernels
from hwsim.communication.fabrics import on_network
from hwsim.communication.flows import CollectivePhase, Flows, Task, check
from hwsim.communication.measured import (
    as_curve,
    as_measured,
    by_default,
    case_of_library,
    generation,
    is_restated,
    overheads_as,
    overheads_like,
    overheads_of_messages,
)
from hwsim.communication.placement import all_of_kind, place
from hwsim.communication.plan import CannotCollect, Operation, RankGroup
from hwsim.communication.selection import (
    RINGS,
    ChosenCollective,
    algorithm_of_method,
    bus,
    choose,
    chosen_among,
    estimates,
    first_two,
)
from hwsim.communication.sends import CostedSend, RepeatedStep, courses, sends
from hwsim.demand import Choice, CollectiveExchange, Cost, Term
from hwsim.devices.roofline import source_of
from hwsim.links.xgmi import Xgmi
from hwsim.machine import Machine
from hwsim.machine.libraries.custom_allreduce import CustomAllReduce
from hwsim.machine.libraries.mpi import Mpi
from hwsim.machine.libraries.nccl import PROTOCOLS, Nccl, NcclEstimate
from hwsim.machine.libraries.nccl import RINGS as RINGED
from hwsim.machine.libraries.overheads import PLAIN, Overheads
from hwsim.origins import Case

Library = Mpi | Nccl | Overheads

AUTO: Final = "auto"
USUAL: Final[Mapping[Operation, str]] = {  # operations that a ring does not support
    "all-to-all": "pairwise", "gather": "direct", "scatter": "direct", "barrier": "direct", "send": "direct",
}  # fmt: skip
_TRIED: Final[Mapping[str, Algorithm]] = {  # candidates without tuning tables
    "ring": RINGS,
    **{
        name: ALGORITHMS[name]
        for name in (
            "direct", "halving-doubling", "recursive-doubling", "double-tree", "binomial-tree", "pairwise", "hierarchical",
        )
    },
}  # fmt: skip
_QUADRATIC: Final = ("direct", "pairwise")  # all pairs: not tried among many ranks, unless a library does so
_MANY: Final = 128  # maximum ranks of quadratic algorithms
_OF_MPI: Final[dict[Operation, Algorithm]] = {
    "all-to-all": Pairwise(),
    "send": DirectExchange(),
}  # links in use; else those of a ring


def library_of(machine: Machine, devices: Sequence[str], *, trees: bool = True) -> Library | None:
    """Return the library that exchanges data between these devices: NCCL if all are GPUs, else MPI.

    Args:
        trees: whether NCCL may use the trees that were measured on other machines with such a network.

    None if the machine states none and its links have no known generation. For GPUs on links of a known generation, the
    generation's defaults apply.
    """
    gpus = all_of_kind(machine, devices, "gpu")
    found = machine.library(devices, ("nccl", "overheads") if gpus else ("mpi", "overheads"))
    library = by_default(machine, devices) if found is None and gpus else found
    if isinstance(library, Nccl):
        return on_network(machine, devices, library, trees=trees)
    return library if isinstance(library, Mpi | Overheads) else None


def over_pcie(machine: Machine, names: Sequence[str]) -> Case | None:
    """Return the case of the library of GPUs without NVLink; None if another library, or none, determines their speed."""
    library = library_of(machine, names)
    if not isinstance(library, Nccl) or generation(machine, names[0]) != "pcie":
        return None
    return case_of_library(source_of(library.sources, "start"), "pcie", len(names), anew=is_restated(machine, names))


def default_algorithm(machine: Machine, operation: Operation, devices: Sequence[str]) -> str:
    """Return the default algorithm: the library's choice, else rings over the links between GPUs, else a ring."""
    if library_of(machine, devices) is not None or has_own(machine, operation, devices):
        return AUTO
    gpus = all_of_kind(machine, devices, "gpu")
    return USUAL.get(operation, "rings-both-ways" if gpus else "ring")


def timed(
    machine: Machine,
    algorithm: Algorithm | None,
    operation: Operation,
    devices: Sequence[str],
    size: float,
    *,
    weights: Sequence[float] = (),
    columns: bool = False,
    trees: bool = True,
) -> Flows:
    """Return the phases of a collective by the machine's library; algorithm None is auto. The first phase has the choice.

    Other arguments and errors as in `cost` and `library_of`.
    """
    task = Task(machine, operation, devices, size, weights, columns)
    flows = _timed(task, library_of(machine, devices, trees=trees), algorithm)
    exchange = CollectiveExchange(operation, size, len(devices))
    return replace(
        flows, phases=tuple(CollectivePhase(phase.name, replace(phase.cost, exchange=exchange)) for phase in flows.phases)
    )


def is_ideal(machine: Machine, algorithm: Algorithm | None, operation: Operation, devices: Sequence[str], size: float) -> bool:
    """Return whether a named algorithm has no measured constants, on a machine whose library has them for its own choices."""
    task, library = Task(machine, operation, devices, size), library_of(machine, devices)
    if algorithm is None or isinstance(algorithm, OwnKernel) or not isinstance(library, Nccl):
        return algorithm is not None and isinstance(library, Mpi) and operation in library.curves
    placed = place(machine, algorithm, devices)
    task = task.among(placed.parties[: placed.group.ranks])
    return placed.group.ranks > 1 and _estimate(task, library, algorithm, placed.group) is None


def collective_sends(task: Task, algorithm: Algorithm | None, pieces: int = 1) -> Iterator[CostedSend]:
    """Yield the same collective as single sends without compute units: `timed` counts the units of all sends together."""
    taken, overheads, choice = _send_numbers(task, algorithm)
    for number, send in enumerate(sends(task, taken, pieces=pieces, overheads=overheads)):
        yield send if number or choice is None else send._replace(cost=_with_cost_choice(send.cost, choice))


def courses_of(task: Task, algorithm: Algorithm | None, pieces: int = 1) -> tuple[RepeatedStep, ...] | None:
    """Return the same collective as repeated steps; None if its steps do not repeat."""
    taken, overheads, choice = _send_numbers(task, algorithm)
    repeated = courses(task, taken, pieces=pieces, overheads=overheads)
    if not repeated or choice is None:
        return repeated
    (leg, *legs), course = repeated[0].legs, repeated[0]
    leg = leg._replace(first=_with_cost_choice(leg.first or leg.cost, choice))
    return (replace(course, legs=(leg, *legs)), *repeated[1:])


def _with_cost_choice(cost: Cost, choice: Choice) -> Cost:
    """Return a cost with its choice; the derivation starts with the choice and the runner-up."""
    why: Sequence[Term] = cost.why
    if why and why[0].inputs:
        (name, value, source), *inputs = why[0].inputs
        why = (replace(why[0], inputs=((name, value, source + f"; chosen: {choice}"), *inputs)), *why[1:])
    return replace(cost, choice=choice, why=why)


def _with_choice(chosen: ChosenCollective) -> Flows:
    if not chosen.flows.phases:
        return chosen.flows
    first, *rest = chosen.flows.phases
    return replace(chosen.flows, phases=(CollectivePhase(first.name, _with_cost_choice(first.cost, chosen.choice)), *rest))


def _timed(task: Task, library: Library | None, algorithm: Algorithm | None) -> Flows:
    if algorithm is None:
        return _auto(task, library)
    check(algorithm, task.operation)
    if isinstance(algorithm, OwnKernel):
        return _custom_flows(task, own_of(algorithm.of)) or _auto(task, library)
    match library:
        case Nccl():
            return _measured(task, library, algorithm)[0]
        case Mpi():
            return task.flows(algorithm, overheads_of_messages(task.machine, task.devices, task.size, library))
        case _:
            return task.flows(algorithm, library or PLAIN)


def own_kernel(framework: str) -> OwnKernel | None:
    """Return the algorithm of a framework's custom all-reduce; None (auto) without one."""
    return OwnKernel(framework) if framework else None


def _custom_flows(task: Task, own: CustomAllReduce) -> Flows | None:
    """Return the phases of a framework's custom kernel with its choice; None if it uses NCCL."""
    found = find_custom_variant(task, own)
    return None if found is None else _with_choice(ChosenCollective(as_own(task, found), found.choice))


def _auto(task: Task, library: Library | None) -> Flows:
    operation = task.operation
    by_name = replace(task, columns=False)
    kernels = stated_custom_kernels(task.machine, task)
    if kernels is not None and (flows := _custom_flows(by_name, kernels)) is not None:
        return flows
    match library:
        case Nccl() if _has_constants(task, library):
            return _with_choice(choose(by_name, library))
        case Mpi() if operation in library.curves and len(task.devices) > 1 and not task.weights:
            return as_curve(by_name, _OF_MPI.get(operation, RingAlgorithm()), library)
        case None if operation in RINGED and all_of_kind(task.machine, task.devices, "gpu"):
            try:
                return _with_choice(choose(by_name))
            except CannotCollect:  # nodes without NICs are not in the tables
                return _fastest(by_name, library)
        case _:
            return _fastest(task, library)


def _has_constants(task: Task, library: Nccl) -> bool:
    """Return whether there are constants for the operation: the library's, or for all-to-all those of its link generation."""
    if task.operation == "all-to-all":
        return library.sends is not None or by_default(task.machine, task.devices) is not None
    return task.operation in (*RINGED, "send")


def _fastest(task: Task, library: Library | None) -> Flows:
    """Return the phases of the algorithm that is fastest on this machine without contention.

    Raises:
        CannotCollect: no algorithm supports the operation.
    """
    rates = task.machine.rates()
    tried: list[tuple[float, str, Flows]] = []
    for name, algorithm in _TRIED.items():
        if task.operation not in algorithm.operations or (tried and name in _QUADRATIC and len(task.devices) > _MANY):
            continue
        try:
            flows = _timed(task, library, algorithm)
        except CannotCollect:
            continue
        tried.append((flows.alone(rates), name, flows))
    if not tried:
        raise CannotCollect(f"no algorithm supports {task.operation} among these devices")
    tried.sort(key=lambda row: row[0])
    (seconds, name, flows), *slower = tried
    after, second, _ = slower[0] if slower else (0.0, "", flows)
    return _with_choice(ChosenCollective(flows, Choice(name, seconds, second, after))) if len(task.devices) > 1 else flows


def _measured(task: Task, library: Nccl, algorithm: Algorithm) -> tuple[Flows, NcclEstimate | Overheads]:
    """Return a named algorithm with measured NCCL constants, and these: an estimate of it, or overheads on its links."""
    if isinstance(algorithm, InNetwork) and algorithm.by == "nvls" and library.nvls <= 0 and library.choice == "fastest":
        raise CannotCollect("the machine's NCCL has no NVLS constants", "set `nvls` in its `collectives`")
    placed = place(task.machine, algorithm, task.devices)
    group = placed.group
    if isinstance(algorithm, InNetwork) and algorithm.by == "sharp" and len(group.sizes) < 2 and library.choice == "fastest":
        raise CannotCollect("sharp reduces in switches between nodes, but there is only one node", "use `nvls` within a node")
    task = task.among(placed.parties[: group.ranks])
    if group.ranks < 2:
        return task.flows(algorithm), PLAIN
    best = _estimate(task, library, algorithm, group)
    if best is not None:
        return as_measured(task, algorithm, library, best, max(group.sizes)), best
    carried = bus(task.machine, task.devices)
    return task.fastest(algorithm, [overheads_as(task, algorithm, group, library, protocol, carried) for protocol in PROTOCOLS])


def _estimate(task: Task, library: Nccl, algorithm: Algorithm, group: RankGroup) -> NcclEstimate | None:
    """Return the best NCCL estimate of an algorithm for this operation and group, if there is one."""
    match algorithm:
        case RingAlgorithm(orders=()) if task.operation in RINGED:
            method, ring = "ring", algorithm
        case DoubleTree() if task.operation == "all-reduce":
            method, ring = "tree", RINGS
        case InNetwork(by="nvls") if task.operation == "all-reduce":
            method, ring = "nvls", RINGS
        case DirectExchange() if task.operation == "send":
            method, ring = "direct", RINGS
        case Pairwise() if _has_constants(task, library):
            method, ring = "pairwise", RINGS
        case _:
            return None
    offered = estimates(task, library, group, ring)
    return next((estimate for estimate in offered if estimate.method == method), None)


def _send_numbers(task: Task, algorithm: Algorithm | None) -> tuple[Algorithm, Overheads, Choice | None]:
    """Return the algorithm, the overheads of each send, and the choice of the algorithm."""
    library = library_of(task.machine, task.devices)
    choice: Choice | None = None
    kernels = (
        own_of(algorithm.of)
        if isinstance(algorithm, OwnKernel)
        else stated_custom_kernels(task.machine, task)
        if algorithm is None
        else None
    )
    if kernels is not None and (taken_way := find_custom_variant(task, kernels)) is not None:
        busy = task.flows(DirectExchange()).alone(task.machine.rates())
        slower = min(1.0, busy / taken_way.way.body) if busy > 0 and taken_way.way.body > 0 else 1.0
        return DirectExchange(), Overheads(start=taken_way.way.latency, efficiency=slower), taken_way.choice
    if isinstance(algorithm, OwnKernel):
        algorithm = None
    if isinstance(library, Nccl) and len(task.devices) > 1:
        numbers: NcclEstimate | Overheads
        if algorithm is None and _has_constants(task, library):
            placed = place(task.machine, DirectExchange(), task.devices)
            best, second = first_two(estimates(task.among(placed.parties), library, placed.group))
            meshed = generation(task.machine, task.devices[0]) == Xgmi.kind
            numbers, algorithm = best, algorithm_of_method(best.method, placed.group, meshed=meshed)
            choice = chosen_among(library, best, second, placed.group.ranks, task.size)
        else:
            if algorithm is None:
                flows = _fastest(task, library)
                algorithm, choice = flows.algorithm, flows.phases[0].cost.choice
            check(algorithm, task.operation)
            numbers = _measured(task, library, algorithm)[1]
        if isinstance(numbers, Overheads):
            return algorithm, replace(numbers, compute=0.0).told(numbers.sources), choice
        even = replace(task, weights=()).flows(algorithm)
        group = place(task.machine, algorithm, task.devices).group
        return algorithm, overheads_like(task.machine, even, numbers, library, group), choice
    overheads = library if isinstance(library, Overheads) else PLAIN
    if isinstance(library, Mpi):
        overheads = overheads_of_messages(task.machine, task.devices, task.size, library)
    if algorithm is None:
        flows = _auto(task, library)
        algorithm, choice = flows.algorithm, flows.phases[0].cost.choice if flows.phases else None
    return algorithm, overheads, choice
