"""A collective on a machine with the library that the machine says it has: the way of ops, of tables and of validation.

    measured NCCL     its estimate of the algorithm, or the best of all (auto); other algorithms with its start, steps and rate
    measured MPI      its curve of the operation (auto); an algorithm with the start and rate of its messages
    overheads         added to every algorithm; auto takes the fastest
    nothing           the links at their rates; auto chooses by NCCL's own tables among GPUs, else takes the fastest

Range: an estimate belongs to the rings, trees and switches of the machine it was fitted to; `Ring` with orders of its own,
trees in one node and all algorithms that NCCL does not have are not among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hwsim.collectives.algorithms import (
    Algorithm,
    BinomialTree,
    Direct,
    DoubleTree,
    HalvingDoubling,
    Hierarchical,
    InNetwork,
    Pairwise,
    RecursiveDoubling,
    Ring,
)
from hwsim.collectives.choosing import RINGS, Chosen, built, bus, choose, chosen_among
from hwsim.collectives.courses import Course, courses
from hwsim.collectives.measured import as_curve, as_measured, overheads_as, overheads_like, overheads_of_messages
from hwsim.collectives.placing import all_gpus, place
from hwsim.collectives.plan import CannotCollect, Group, Operation
from hwsim.collectives.steady import Flows, Phase, check, cost
from hwsim.collectives.stepwise import CostedSend, sends
from hwsim.demand import Choice, Cost, Term
from hwsim.machine import Machine
from hwsim.machine.libraries.mpi import Mpi
from hwsim.machine.libraries.nccl import PROTOCOLS, Estimate, Nccl
from hwsim.machine.libraries.nccl import RINGS as RINGED
from hwsim.machine.libraries.overheads import PLAIN, Overheads

Library = Mpi | Nccl | Overheads

AUTO: Final = "auto"
USUAL: Final[Mapping[Operation, str]] = {  # of what a ring does not do
    "all-to-all": "pairwise", "gather": "direct", "scatter": "direct", "barrier": "direct", "send": "direct",
}  # fmt: skip
_ANY: Final[tuple[tuple[str, Algorithm], ...]] = (  # what is tried where no tables choose
    ("ring", RINGS),
    ("direct", Direct()),
    ("halving-doubling", HalvingDoubling()),
    ("recursive-doubling", RecursiveDoubling()),
    ("double-tree", DoubleTree()),
    ("binomial-tree", BinomialTree()),
    ("pairwise", Pairwise()),
    ("hierarchical", Hierarchical()),
)
_OF_MPI: Final[dict[Operation, Algorithm]] = {"all-to-all": Pairwise(), "send": Direct()}  # links in use; a ring's otherwise


def library_of(machine: Machine, devices: Sequence[str]) -> Library | None:
    """What these devices exchange data with: NCCL if all are GPUs, else MPI, as far as the machine says."""
    if not machine.libraries:
        return None
    gpus = all_gpus(machine, devices)
    return machine.library(devices, ("nccl", "overheads") if gpus else ("mpi", "overheads"))


def usual(machine: Machine, operation: Operation, devices: Sequence[str]) -> str:
    """The algorithm where nobody names one: the library's choice, else rings over what links the GPUs, else a ring."""
    if library_of(machine, devices) is not None:
        return AUTO
    gpus = all_gpus(machine, devices)
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
    """The phases of a collective as the machine's library does it; None is auto, and the first phase knows what was chosen.

    Arguments otherwise and errors as of `cost`.
    """
    library = library_of(machine, devices)
    if algorithm is None:
        return _auto(machine, library, operation, devices, size, weights, columns=columns)
    check(algorithm, operation)
    match library:
        case Nccl():
            return _measured(machine, library, algorithm, operation, devices, size, weights)[0]
        case Mpi():
            overheads = overheads_of_messages(machine, devices, size, library)
        case _:
            overheads = library or PLAIN
    return cost(machine, algorithm, operation, devices, size, overheads=overheads, weights=weights, columns=columns)


def sent(
    machine: Machine,
    algorithm: Algorithm | None,
    operation: Operation,
    devices: Sequence[str],
    size: float,
    *,
    pieces: int = 1,
    weights: Sequence[float] = (),
) -> Iterator[CostedSend]:
    """The same as single sends.  Their kernels hold no compute: what they hold together is the steady level's."""
    known, overheads, choice = _known(machine, algorithm, operation, devices, size, weights)
    found = sends(machine, known, operation, devices, size, pieces=pieces, overheads=overheads, weights=weights)
    for at, each in enumerate(found):
        yield each if at or choice is None else each._replace(cost=_chosen(each.cost, choice))


def courses_of(
    machine: Machine, algorithm: Algorithm | None, operation: Operation, devices: Sequence[str], size: float, *, pieces: int = 1
) -> tuple[Course, ...] | None:
    """The same as steps that repeat; None if they do not."""
    known, overheads, choice = _known(machine, algorithm, operation, devices, size, ())
    found = courses(machine, known, operation, devices, size, pieces=pieces, overheads=overheads)
    if not found or choice is None:
        return found
    (leg, *legs), course = found[0].legs, found[0]
    leg = leg._replace(first=_chosen(leg.first or leg.cost, choice))
    return (replace(course, legs=(leg, *legs)), *found[1:])


def _chosen(cost: Cost, choice: Choice) -> Cost:
    return replace(cost, choice=choice, why=_saying(cost.why, choice))


def _known(
    machine: Machine,
    algorithm: Algorithm | None,
    operation: Operation,
    devices: Sequence[str],
    size: float,
    weights: Sequence[float],
) -> tuple[Algorithm, Overheads, Choice | None]:
    """Which algorithm, with which overheads of each send, and what it was chosen for."""
    library = library_of(machine, devices)
    overheads, choice = PLAIN, None
    match library:
        case Nccl() if len(devices) > 1:
            algorithm, overheads, choice = _as_sends(machine, library, algorithm, operation, devices, size, weights)
        case Mpi():
            overheads = overheads_of_messages(machine, devices, size, library)
        case Overheads():
            overheads = library
        case _:
            pass
    if algorithm is None:
        flows = _auto(machine, library, operation, devices, size, weights)
        algorithm, choice = flows.algorithm, flows.phases[0].cost.choice if flows.phases else None
    return algorithm, overheads, choice


def _auto(
    machine: Machine,
    library: Library | None,
    operation: Operation,
    devices: Sequence[str],
    size: float,
    weights: Sequence[float],
    *,
    columns: bool = False,
) -> Flows:
    gpus = all_gpus(machine, devices)
    match library:
        case Nccl() if operation in RINGED or operation == "send":
            return _with(choose(machine, operation, devices, size, library, weights))
        case Mpi() if operation in library.curves and len(devices) > 1 and not weights:
            return as_curve(machine, _OF_MPI.get(operation, Ring()), operation, devices, size, library)
        case None if gpus and (operation in RINGED):
            try:
                return _with(choose(machine, operation, devices, size, weights=weights))
            except CannotCollect:  # nodes without network cards: the tables know no such machine
                return _fastest(machine, operation, devices, size, weights)
        case _:
            return _fastest(machine, operation, devices, size, weights, columns=columns)


def _with(chosen: Chosen) -> Flows:
    """The phases, the first of which knows what was chosen."""
    return _knowing(chosen.flows, chosen.choice)


def _knowing(flows: Flows, choice: Choice | None) -> Flows:
    if not flows.phases or choice is None:
        return flows
    first, *rest = flows.phases
    cost = replace(first.cost, choice=choice, why=_saying(first.cost.why, choice))
    return replace(flows, phases=(Phase(first.name, cost), *rest))


def _saying(why: tuple[Term, ...], choice: Choice) -> tuple[Term, ...]:
    """A derivation whose first line says what was chosen, and what came second."""
    if not why or not why[0].inputs:
        return why
    (name, value, source), *others = why[0].inputs
    return (replace(why[0], inputs=((name, value, f"{source}; chosen: {choice}"), *others)), *why[1:])


def _fastest(
    machine: Machine,
    operation: Operation,
    devices: Sequence[str],
    size: float,
    weights: Sequence[float],
    *,
    columns: bool = False,
) -> Flows:
    """The algorithm that takes least on this machine when nothing else runs.

    Raises:
        CannotCollect: none does it.
    """
    rates = machine.rates()
    found: list[tuple[float, int, str, Flows]] = []
    for at, (name, algorithm) in enumerate(_ANY):
        if operation not in algorithm.operations:
            continue
        try:
            flows = timed(machine, algorithm, operation, devices, size, weights=weights, columns=columns)
        except CannotCollect:
            continue
        found.append((flows.alone(rates), at, name, flows))
    if not found:
        raise CannotCollect(f"no algorithm does {operation} among these devices")
    found.sort(key=lambda each: each[:2])
    (seconds, _, name, flows), *others = found
    after, _, other, _ = others[0] if others else (0.0, 0, "", flows)
    return _knowing(flows, Choice(name, seconds, other, after)) if len(devices) > 1 else flows


def _measured(
    machine: Machine,
    library: Nccl,
    algorithm: Algorithm,
    operation: Operation,
    devices: Sequence[str],
    size: float,
    weights: Sequence[float],
) -> tuple[Flows, Estimate | Overheads]:
    """A named algorithm with measured numbers of NCCL, and what they were: an estimate of it, or overheads on its links."""
    if isinstance(algorithm, InNetwork) and algorithm.by == "nvls" and library.nvls <= 0:
        raise CannotCollect("the machine's NCCL has no sums in the switch", "its `collectives` would say `nvls:`")
    placed = place(machine, algorithm, devices)
    group, names = placed.group, placed.parties[: placed.group.ranks]
    if isinstance(algorithm, InNetwork) and algorithm.by == "sharp" and len(group.sizes) < 2:
        raise CannotCollect("sharp adds in the switches between nodes, and there is one node", "nvls adds in a node's own")
    if group.ranks < 2:
        return cost(machine, algorithm, operation, devices, size, weights=weights), PLAIN
    best = _estimate(machine, library, algorithm, operation, names, group, size)
    if best is not None:
        return as_measured(machine, algorithm, operation, names, size, library, best, weights), best
    carried = bus(machine, names)
    tried = []
    for protocol in PROTOCOLS:
        overheads = overheads_as(machine, algorithm, operation, names, group, size, library, protocol, carried)
        flows = cost(machine, algorithm, operation, names, size, overheads=overheads, weights=weights)
        tried.append((flows.alone(machine.rates()), flows, overheads))
    _, flows, overheads = min(tried, key=lambda each: each[0])
    return flows, overheads


def _estimate(
    machine: Machine, library: Nccl, algorithm: Algorithm, operation: Operation, names: Sequence[str], group: Group, size: float
) -> Estimate | None:
    """The best estimate of an algorithm that NCCL has, if there is one for this operation and group."""
    match algorithm:
        case Ring(orders=()) if operation in RINGED:
            method, ring = "ring", algorithm
        case DoubleTree() if operation == "all-reduce":
            method, ring = "tree", RINGS
        case InNetwork(by="nvls") if operation == "all-reduce":
            method, ring = "nvls", RINGS
        case Direct() if operation == "send":
            method, ring = "direct", RINGS
        case _:
            return None
    found = library.estimates(operation, group, size, bus(machine, names, operation, ring))
    return next((each for each in found if each.method == method), None)


def _as_sends(
    machine: Machine,
    library: Nccl,
    algorithm: Algorithm | None,
    operation: Operation,
    devices: Sequence[str],
    size: float,
    weights: Sequence[float],
) -> tuple[Algorithm, Overheads, Choice | None]:
    """Which algorithm, with which overheads of each send."""
    choice: Choice | None = None
    if algorithm is None and operation not in (*RINGED, "send"):
        flows = _fastest(machine, operation, devices, size, weights)
        algorithm, choice = flows.algorithm, flows.phases[0].cost.choice
    if algorithm is None:
        placed = place(machine, Direct(), devices)
        best, second, *_ = library.estimates(operation, placed.group, size, bus(machine, placed.parties, operation))
        algorithm = built(best.method, placed.group)
        choice = chosen_among(library, best, second, placed.group.ranks, size)
        known: Estimate | Overheads = best
    else:
        check(algorithm, operation)
        known = _measured(machine, library, algorithm, operation, devices, size, weights)[1]
    if isinstance(known, Overheads):
        return algorithm, replace(known, compute=0.0).told(known.sources), choice
    plain = cost(machine, algorithm, operation, devices, size)
    group = place(machine, algorithm, devices).group
    return algorithm, overheads_like(machine, plain, known, library, group), choice
