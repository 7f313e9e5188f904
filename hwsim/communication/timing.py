"""A collective on a machine with the library that the machine says it has: for ops, tables and validation.

    measured NCCL     its estimate of the algorithm, or the best of all (auto); other algorithms with its start, steps and rate.
    measured MPI      its curve of the operation (auto); an algorithm with the start and rate of its messages.
    own kernels       of a framework, for all-reduces of a node up to a size; NCCL's beyond.
    overheads         added to every algorithm; auto takes the fastest.
    nothing           the links at their rates; auto chooses by NCCL's own tables among GPUs, else takes the fastest.

Range: an estimate belongs to the rings, trees and switches of the machine it was fitted to; `Ring` with orders of its own,
trees in one node and all algorithms that NCCL does not have are not among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hwsim.communication.algorithms import ALGORITHMS, Algorithm
from hwsim.communication.algorithms.direct import Direct
from hwsim.communication.algorithms.double_tree import DoubleTree
from hwsim.communication.algorithms.in_network import InNetwork
from hwsim.communication.algorithms.own import OwnKernel
from hwsim.communication.algorithms.pairwise import Pairwise
from hwsim.communication.algorithms.ring import Ring
from hwsim.communication.choosing import RINGS, Chosen, built, bus, choose, chosen_among, estimates, first_two
from hwsim.communication.flows import Flows, Phase, Task, check
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
from hwsim.communication.own_kernels import as_own, find, has_own, own_of, stated
from hwsim.communication.placing import all_of_kind, place
from hwsim.communication.plan import CannotCollect, Group, Operation
from hwsim.communication.sends import CostedSend, Course, courses, sends
from hwsim.demand import Choice, Cost, Exchanged, Term
from hwsim.devices.roofline import source_of
from hwsim.machine import Machine
from hwsim.machine.libraries.mpi import Mpi
from hwsim.machine.libraries.nccl import PROTOCOLS, Estimate, Nccl
from hwsim.machine.libraries.nccl import RINGS as RINGED
from hwsim.machine.libraries.overheads import PLAIN, Overheads
from hwsim.machine.libraries.own import Own
from hwsim.origins import Case

Library = Mpi | Nccl | Overheads

AUTO: Final = "auto"
USUAL: Final[Mapping[Operation, str]] = {  # operations that a ring does not do
    "all-to-all": "pairwise", "gather": "direct", "scatter": "direct", "barrier": "direct", "send": "direct",
}  # fmt: skip
_TRIED: Final[Mapping[str, Algorithm]] = {  # where no tables choose
    "ring": RINGS,
    **{
        name: ALGORITHMS[name]
        for name in (
            "direct", "halving-doubling", "recursive-doubling", "double-tree", "binomial-tree", "pairwise", "hierarchical",
        )
    },
}  # fmt: skip
_QUADRATIC: Final = ("direct", "pairwise")  # everyone to everyone: not tried among many, where no library does so
_MANY: Final = 128  # ranks
_OF_MPI: Final[dict[Operation, Algorithm]] = {"all-to-all": Pairwise(), "send": Direct()}  # links in use; a ring's otherwise


def library_of(machine: Machine, devices: Sequence[str]) -> Library | None:
    """The library by which these devices exchange data: NCCL if all are GPUs, else MPI.

    None if the machine says none and its links are of no generation; of GPUs on links of a generation that says more.
    """
    if not machine.libraries:
        return by_default(machine, devices) if all_of_kind(machine, devices, "gpu") else None
    gpus = all_of_kind(machine, devices, "gpu")
    stated_library = machine.library(devices, ("nccl", "overheads") if gpus else ("mpi", "overheads"))
    if stated_library is None and gpus:
        return by_default(machine, devices)
    return None if isinstance(stated_library, Own) else stated_library


def over_pcie(machine: Machine, names: Sequence[str]) -> Case | None:
    """The case of the library of GPUs without NVLink; None where another one, or none, sets their pace."""
    library = library_of(machine, names)
    if not isinstance(library, Nccl) or generation(machine, names[0]) != "pcie":
        return None
    return case_of_library(source_of(library.sources, "start"), "pcie", len(names), anew=is_restated(machine, names))


def usual(machine: Machine, operation: Operation, devices: Sequence[str]) -> str:
    """The algorithm if none is named: the library's choice, else rings over the links between GPUs, else a ring."""
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
) -> Flows:
    """The phases of a collective as the machine's library does it; None is auto, and the first phase has the choice.

    Arguments otherwise and errors as of `cost`.
    """
    task = Task(machine, operation, devices, size, weights, columns)
    flows = _timed(task, library_of(machine, devices), algorithm)
    exchange = Exchanged(operation, size, len(devices))
    return replace(flows, phases=tuple(Phase(phase.name, replace(phase.cost, exchange=exchange)) for phase in flows.phases))


def is_ideal(machine: Machine, algorithm: Algorithm | None, operation: Operation, devices: Sequence[str], size: float) -> bool:
    """Whether a named algorithm has no measured constants, on a machine whose library has those of what it does itself."""
    task, library = Task(machine, operation, devices, size), library_of(machine, devices)
    if algorithm is None or isinstance(algorithm, OwnKernel) or not isinstance(library, Nccl):
        return algorithm is not None and isinstance(library, Mpi) and operation in library.curves
    placed = place(machine, algorithm, devices)
    task = task.among(placed.parties[: placed.group.ranks])
    return placed.group.ranks > 1 and _estimate(task, library, algorithm, placed.group) is None


def sent(task: Task, algorithm: Algorithm | None, pieces: int = 1) -> Iterator[CostedSend]:
    """The same as single sends. Their kernels hold no compute: `timed` knows what they hold together."""
    taken, overheads, choice = _as_sends(task, algorithm)
    for number, send in enumerate(sends(task, taken, pieces=pieces, overheads=overheads)):
        yield send if number or choice is None else send._replace(cost=_chosen(send.cost, choice))


def courses_of(task: Task, algorithm: Algorithm | None, pieces: int = 1) -> tuple[Course, ...] | None:
    """The same as steps that repeat; None if they do not."""
    taken, overheads, choice = _as_sends(task, algorithm)
    repeated = courses(task, taken, pieces=pieces, overheads=overheads)
    if not repeated or choice is None:
        return repeated
    (leg, *legs), course = repeated[0].legs, repeated[0]
    leg = leg._replace(first=_chosen(leg.first or leg.cost, choice))
    return (replace(course, legs=(leg, *legs)), *repeated[1:])


def _chosen(cost: Cost, choice: Choice) -> Cost:
    """A cost with the choice that led to it; its derivation begins with the choice, and with what came second."""
    why: Sequence[Term] = cost.why
    if why and why[0].inputs:
        (name, value, source), *inputs = why[0].inputs
        why = (replace(why[0], inputs=((name, value, source + f"; chosen: {choice}"), *inputs)), *why[1:])
    return replace(cost, choice=choice, why=why)


def _with_choice(chosen: Chosen) -> Flows:
    """The phases, the first with the choice."""
    if not chosen.flows.phases:
        return chosen.flows
    first, *rest = chosen.flows.phases
    return replace(chosen.flows, phases=(Phase(first.name, _chosen(first.cost, chosen.choice)), *rest))


def _timed(task: Task, library: Library | None, algorithm: Algorithm | None) -> Flows:
    if algorithm is None:
        return _auto(task, library)
    check(algorithm, task.operation)
    if isinstance(algorithm, OwnKernel):
        return _by_own(task, own_of(algorithm.of)) or _auto(task, library)
    match library:
        case Nccl():
            return _measured(task, library, algorithm)[0]
        case Mpi():
            return task.flows(algorithm, overheads_of_messages(task.machine, task.devices, task.size, library))
        case _:
            return task.flows(algorithm, library or PLAIN)


def own_kernel(framework: str) -> OwnKernel | None:
    """The algorithm of a framework's own all-reduce; None, which is auto, without one."""
    return OwnKernel(framework) if framework else None


def _by_own(task: Task, own: Own) -> Flows | None:
    """The phases of a framework's own kernel, with the choice of its way; None if it leaves this to NCCL."""
    found = find(task, own)
    return None if found is None else _with_choice(Chosen(as_own(task, found), found.choice))


def _auto(task: Task, library: Library | None) -> Flows:
    operation = task.operation
    by_name = replace(task, columns=False)
    kernels = stated(task.machine, task)
    if kernels is not None and (flows := _by_own(by_name, kernels)) is not None:
        return flows
    match library:
        case Nccl() if _known(task, library):
            return _with_choice(choose(by_name, library))
        case Mpi() if operation in library.curves and len(task.devices) > 1 and not task.weights:
            return as_curve(by_name, _OF_MPI.get(operation, Ring()), library)
        case None if operation in RINGED and all_of_kind(task.machine, task.devices, "gpu"):
            try:
                return _with_choice(choose(by_name))
            except CannotCollect:  # nodes without NICs: the tables know no such machine
                return _fastest(by_name, library)
        case _:
            return _fastest(task, library)


def _known(task: Task, library: Nccl) -> bool:
    """Whether there are numbers for the operation: the library's own, or for all-to-all its generation of links'."""
    if task.operation == "all-to-all":
        return library.sends is not None or by_default(task.machine, task.devices) is not None
    return task.operation in (*RINGED, "send")


def _fastest(task: Task, library: Library | None) -> Flows:
    """The phases of the algorithm that takes least on this machine when nothing else runs.

    Raises:
        CannotCollect: none does the operation.
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
    return _with_choice(Chosen(flows, Choice(name, seconds, second, after))) if len(task.devices) > 1 else flows


def _measured(task: Task, library: Nccl, algorithm: Algorithm) -> tuple[Flows, Estimate | Overheads]:
    """A named algorithm with measured numbers of NCCL, and these numbers: an estimate of it, or overheads on its links."""
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
    by_protocol = [overheads_as(task, algorithm, group, library, protocol, carried) for protocol in PROTOCOLS]
    fastest = min(by_protocol, key=lambda overheads: task.seconds(algorithm, overheads))
    return task.flows(algorithm, fastest), fastest


def _estimate(task: Task, library: Nccl, algorithm: Algorithm, group: Group) -> Estimate | None:
    """The best estimate of an algorithm that NCCL has, if there is one for this operation and group."""
    match algorithm:
        case Ring(orders=()) if task.operation in RINGED:
            method, ring = "ring", algorithm
        case DoubleTree() if task.operation == "all-reduce":
            method, ring = "tree", RINGS
        case InNetwork(by="nvls") if task.operation == "all-reduce":
            method, ring = "nvls", RINGS
        case Direct() if task.operation == "send":
            method, ring = "direct", RINGS
        case Pairwise() if _known(task, library):
            method, ring = "pairwise", RINGS
        case _:
            return None
    offered = estimates(task, library, group, ring)
    return next((estimate for estimate in offered if estimate.method == method), None)


def _as_sends(task: Task, algorithm: Algorithm | None) -> tuple[Algorithm, Overheads, Choice | None]:
    """The algorithm, the overheads of each send, and the choice that led to it."""
    library = library_of(task.machine, task.devices)
    choice: Choice | None = None
    kernels = (
        own_of(algorithm.of) if isinstance(algorithm, OwnKernel) else stated(task.machine, task) if algorithm is None else None
    )
    if kernels is not None and (taken_way := find(task, kernels)) is not None:
        busy = task.flows(Direct()).alone(task.machine.rates())
        slower = min(1.0, busy / taken_way.way.body) if busy > 0 and taken_way.way.body > 0 else 1.0
        return Direct(), Overheads(start=taken_way.way.latency, efficiency=slower), taken_way.choice
    if isinstance(algorithm, OwnKernel):
        algorithm = None
    if isinstance(library, Nccl) and len(task.devices) > 1:
        numbers: Estimate | Overheads
        if algorithm is None and _known(task, library):
            placed = place(task.machine, Direct(), task.devices)
            best, second = first_two(estimates(task.among(placed.parties), library, placed.group))
            numbers, algorithm = best, built(best.method, placed.group)
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
