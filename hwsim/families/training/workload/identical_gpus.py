"""Classes of identical data-parallel replicas of one GPU each, whose kernels a host thread launches.

Two replicas are identical if their GPUs have the same kind and events, their hosts have the same model and events, exchanges
among all replicas use the same amounts of both, and their hosts have equal numbers of GPUs of each class.

Range: every thread has its own core.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np

from hwsim.demand import Demand
from hwsim.devices import Cpu, Sockets
from hwsim.families.training.workload.identical import Marks
from hwsim.families.training.workload.plan import BucketExchange, TrainingPlan
from hwsim.families.training.workload.replica_classes import ReplicaClasses, few_enough
from hwsim.graph.fold import CannotFold, Classes
from hwsim.graph.fold.refine import Ints, Ties, is_equitable, numbered, refine
from hwsim.machine import Machine
from hwsim.models.capacity_amounts import HiddenCapacities

Load = Mapping[str, Hashable]  # amounts and holds of exchanges, by capacity


def gpu_replica_classes(
    machine: Machine, plan: TrainingPlan, exchange: BucketExchange, hosts: Sequence[str], demands: Iterable[Demand], marks: Marks
) -> ReplicaClasses:
    """Return the classes of identical replicas.

    Args:
        machine: machine.
        plan: training plan.
        exchange: exchange of gradients.
        hosts: host of each GPU; "": none.
        demands: demands of the exchanges among all replicas.
        marks: events of capacities.

    Raises:
        CannotFold: most replicas differ, or replicas share hosts or links; the message has the reason.
    """
    _refuse(machine, plan, exchange, hosts)
    gpus, load = list(plan.layout.devices), _load(demands)
    parts: dict[int, tuple[str, ...]] = {}

    def look(name: str) -> Hashable:
        model = machine.device(name).model
        if id(model) not in parts:
            parts[id(model)] = tuple(capacity.kind for capacity in model.capacities(name))
        names = [f"{name}.{part}" for part in parts[id(model)]]
        return parts[id(model)], tuple([(load.get(capacity), marks.get(capacity)) for capacity in names])

    kinds = [plan.kinds.of.get(name) for name in gpus]
    looks: dict[Hashable, int] = {}
    colours = [looks.setdefault(("gpu", kind, look(name)), len(looks)) for name, kind in zip(gpus, kinds, strict=True)]
    models: list[object] = []
    for name in (named := list(dict.fromkeys(filter(None, hosts)))):
        model = machine.device(name).model
        if model not in models:
            models.append(model)
        colours.append(looks.setdefault(("host", models.index(model), look(name)), len(looks)))
    classes = _classes(np.array(colours, np.int64), [named.index(host) if host else -1 for host in hosts])
    of, of_hosts = Classes.by(numbered(classes[: len(gpus)])), numbered(classes[len(gpus) :]).tolist()
    if not few_enough(len(of), len(gpus)):
        raise CannotFold(f"most of the {len(gpus):,} replicas differ: there are {len(of):,} classes")
    same: dict[tuple[str, int], list[str]] = {}  # GPUs and hosts by class
    for name, number in zip(gpus, of.of.tolist(), strict=True):
        same.setdefault(("gpu", number), []).append(name)
    for name, number in zip(named, of_hosts, strict=True):
        same.setdefault(("host", number), []).append(name)
    members: dict[str, tuple[str, ...]] = {}
    for first, *others in same.values():
        model = machine.device(first).model
        for part in parts.get(id(model), ()):
            members[f"{first}.{part}"] = tuple([f"{name}.{part}" for name in (first, *others)])
    leaders = {names[0] for names in same.values()}
    if away := [hosts[first] for first in of.first.tolist() if hosts[first] and hosts[first] not in leaders]:
        raise CannotFold(f"replicas on {away[0]} are represented by a GPU of another host")
    near = {
        first: tuple(np.flatnonzero((of.of == of.of[first]) & np.array([host == hosts[first] for host in hosts])).tolist())
        for first in of.first.tolist()
    }
    several = {name: some for name, some in members.items() if len(some) > 1}
    flags = np.zeros(machine.capacity_numbers, np.bool_)
    flags[[machine.capacity_number(name) for some in several.values() for name in some[1:]]] = True
    return ReplicaClasses(
        of, near, {name: len(some) for name, some in members.items()}, several, HiddenCapacities(machine, flags)
    )


def _classes(colours: Ints, host_of: Sequence[int]) -> Ints:
    """Return the classes of GPUs, then the classes of hosts; `host_of`: index of the host of each GPU, -1 for none."""
    gpus = np.flatnonzero(np.array(host_of) >= 0)
    hosts = np.array(host_of, np.int64)[gpus] + len(host_of)
    ties = Ties.of(len(colours), gpus, hosts, np.zeros(len(gpus), np.int64))
    classes = refine(colours, ties)
    if classes is None or not is_equitable(colours, ties, classes):
        raise CannotFold("two different replicas have the same hash")
    return classes


def _refuse(machine: Machine, plan: TrainingPlan, exchange: BucketExchange, hosts: Sequence[str]) -> None:
    """Raise CannotFold if replicas share anything besides the exchanges among all replicas."""
    if plan.layout.pp > 1 or plan.layout.tp > 1:
        raise CannotFold("a replica is split over several GPUs, which may share links with other replicas")
    if exchange.by == "parameter-server":
        raise CannotFold("parameter servers are on the nodes of some replicas")
    if exchange.one_thread and len(set(hosts)) < len(hosts):
        raise CannotFold("one host thread launches the kernels of several GPUs")
    threads = 2 if exchange.software.number > 0 else 1  # one launches kernels, one prepares inputs
    for host, gpus in Counter(filter(None, hosts)).items():
        model = machine.device(host).model
        if isinstance(model, Cpu | Sockets) and threads * gpus > model.cores:
            raise CannotFold("host threads of several replicas share cores")


def _load(demands: Iterable[Demand]) -> Load:
    """Return the amounts and holds of exchanges by capacity."""
    load: dict[str, list[Hashable]] = {}
    for number, demand in enumerate(demands):
        for name, amount in demand.amounts:
            load.setdefault(name, []).append((number, amount))
        for name, part in demand.holds:
            load.setdefault(name, []).append((number, "held", part))
    return {name: tuple(rows) for name, rows in load.items()}
