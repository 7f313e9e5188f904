"""Whether all data-parallel replicas are identical to the first one, so that it can represent them all.

The paths that the devices of a replica use among themselves are compared: between neighbours of the groups that split a matrix
or a sequence, between experts, and between stages. Replicas are identical if the same paths of each

- take equally long and draw equally much of capacities of equal rates,
- and meet the same paths of other replicas there;

and if the exchanges among all replicas draw the same of them, and no path of the first replica is crossed by a replica on other
nodes, which the first does not represent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from hwsim.demand import Cost, Demand
from hwsim.devices import Cpu, Sockets
from hwsim.graph.fold.refine import Ints, Words, mixed
from hwsim.machine import Machine
from hwsim.machine.numbering import Draws
from hwsim.workload.training.layout import Layout

_SIZE: Final = 1e6  # bytes on each path
_NEAR: Final = 8  # devices of a group up to which all of its paths are looked at, not only those between neighbours


def difference(machine: Machine, layout: Layout, between: Sequence[Cost]) -> str:
    """The first difference between replicas, in words; "" if there is none.

    between: what all replicas exchange.

    Raises:
        NoRoute: devices that work together are not linked.
    """
    held = Counter(map(machine.node_of, layout.devices)).values()
    if len(held) > 1 and len(set(held)) > 1:
        return "the nodes do not all have as many of the GPUs"
    stage, sources, targets = _paths(layout)
    replicas, paths = sources.shape
    names = np.array(layout.devices, object)
    draws = machine.draws(names[sources.ravel()].tolist(), names[targets.ravel()].tolist(), _SIZE)
    form = _forms(machine, draws)[draws.shape].reshape(replicas, paths)
    if (unlike := np.argwhere(form != form[0])).size:
        replica, path = unlike[0].tolist()
        source, target = (names[ends[replica, path]] for ends in (sources, targets))
        first = f"{names[sources[0, path]]} to {names[targets[0, path]]}"
        return f"replica {replica} of the model takes another path from {source} to {target} than the first from {first}"
    pair = draws.pairs()
    words = _meeting(machine, draws, pair % paths, between)
    met = np.zeros(replicas * paths, np.uint64)
    np.add.at(met, pair, words)
    if (unlike := np.argwhere((met := met.reshape(replicas, paths)) != met[0])).size:
        replica, path = unlike[0].tolist()
        source, target = (names[ends[replica, path]] for ends in (sources, targets))
        return f"replica {replica} of the model shares its path from {source} to {target} with others than the first does"
    foreign = _foreign(layout, draws, pair, stage, sources)
    return f"replica {foreign} of the model, on other nodes, shares links with the first" if foreign else ""


def _paths(layout: Layout) -> tuple[Ints, Ints, Ints]:
    """By path of a replica its stage; by replica and path the numbers of the devices at its ends."""
    within = [(tp, cp, stage) for stage in range(layout.pp) for cp in range(layout.cp) for tp in range(layout.tp)]
    rows: list[tuple[int, int, int]] = []  # stage, and within a replica the number of the source and of the target

    def place(tp: int, cp: int, stage: int) -> int:
        return layout.place(tp, cp, stage, 0)

    for tp, cp, stage in within:
        source = place(tp, cp, stage)
        rows.append((stage, source, source))  # its own memory
        rows += [(stage, source, place((tp + step) % layout.tp, cp, stage)) for step in _steps(layout.tp)]
        rows += [(stage, source, place(tp, (cp + step) % layout.cp, stage)) for step in _steps(layout.cp)]
        for target in {(stage + 1) % layout.pp, (stage - 1) % layout.pp} - {stage}:
            if abs(target - stage) == 1 or layout.chunks > 1:
                rows.append((stage, source, place(tp, cp, target)))
    inside = np.array(rows, np.int64)
    outer, inner = np.divmod(np.arange(layout.dp), layout.ep)  # inner: which of the replicas that split the experts
    base = outer * layout.strides["dp"] + inner * layout.strides["ep"]  # number of a replica's first device
    of_stage, sources, targets = inside[:, 0], base[:, None] + inside[:, 1], base[:, None] + inside[:, 2]
    for step in _steps(layout.ep):
        to = base - inner * layout.strides["ep"] + (inner + step) % layout.ep * layout.strides["ep"]
        devices = np.array([(stage, place(tp, cp, stage)) for tp, cp, stage in within], np.int64)
        of_stage = np.concatenate([of_stage, devices[:, 0]])
        sources = np.concatenate([sources, base[:, None] + devices[:, 1]], axis=1)
        targets = np.concatenate([targets, to[:, None] + devices[:, 1]], axis=1)
    return of_stage, sources, targets


def _steps(size: int) -> Sequence[int]:
    """Distances within a group of the pairs that are looked at."""
    return range(1, size) if size <= _NEAR else (1, size - 1)


def _forms(machine: Machine, draws: Draws) -> Ints:
    """By shape a number, equal for those that take equally long, whatever they are called."""
    numbers: dict[object, int] = {}
    forms = []
    for cost in draws.costs:
        demand = cost.demand
        rates = tuple(sorted((amount, machine.capacities[name].rate) for name, amount in demand.amounts))
        forms.append(numbers.setdefault((demand.latency, demand.floor, demand.share, rates), len(numbers)))
    return np.array(forms, np.int64)


def _meeting(machine: Machine, draws: Draws, path: Ints, between: Sequence[Cost]) -> Words:
    """By row a word for what it draws and for all that draws on the same capacity, equal where both are."""
    rates = np.array([machine.capacities[name].rate for cost in draws.costs for name, _ in cost.demand.amounts], np.float64)
    drawn = mixed(draws.amounts().view(np.uint64) ^ mixed(path.astype(np.uint64)))
    exchanges = [_drawn(cost.demand) for cost in between]
    numbers: dict[object, int] = {}
    total = np.zeros(machine.capacity_numbers, np.uint64)
    np.add.at(total, draws.capacity, drawn)
    total = mixed(total)
    for number in np.unique(draws.capacity).tolist() if between else ():
        name = machine.capacity_name(number)
        drawn_by_all = tuple([exchange.get(name) for exchange in exchanges])
        total[number] += np.uint64(numbers.setdefault(drawn_by_all, len(numbers)))
    starts = np.cumsum([0, *(len(cost.demand.amounts) for cost in draws.costs)])[:-1]
    row = np.repeat(starts[draws.shape] - draws.first[:-1], np.diff(draws.first)) + np.arange(len(draws.capacity))
    return mixed(drawn ^ mixed(total[draws.capacity]) ^ mixed(rates[row].view(np.uint64)))


def _drawn(demand: Demand) -> Mapping[str, tuple[str, float]]:
    """By capacity the amount, to the digits that do not depend on the order of a sum, and the part that is held."""
    held = dict(demand.holds)
    drawn = {name: (f"{amount:.12e}", held.get(name, 0.0)) for name, amount in demand.amounts}
    return {name: ("", part) for name, part in demand.holds} | drawn


def _foreign(layout: Layout, draws: Draws, pair: Ints, stage: Ints, sources: Ints) -> int:
    """The first replica on other nodes that draws on a capacity of the first replica; 0 if there is none."""
    replicas, paths = sources.shape
    node = sources // layout.per_node
    near = np.zeros((replicas, int(stage.max(initial=0)) + 1), np.bool_)
    for number in range(near.shape[1]):
        of_stage = node[:, stage == number]
        near[:, number] = np.isin(of_stage, of_stage[0]).any(axis=1)
    drawn = np.unique(draws.capacity[pair < paths])
    replica = pair // paths
    away = np.isin(draws.capacity, drawn) & ~near[replica, stage[pair % paths]]
    first: int = replica[away].min(initial=replicas) % replicas
    return int(first)


def unlike_hosts(machine: Machine, hosts: Sequence[str], threads: int) -> str:
    """The first difference between the hosts of the GPUs, or their lack of cores, in words; "" if there is none.

    Args:
        hosts: the host of each GPU.
        threads: that each GPU keeps busy.
    """
    gpus = Counter(hosts)
    if len(set(gpus.values())) > 1:
        return "the hosts do not all have as many of the GPUs"
    models = [machine.device(name).model if name else None for name in gpus]
    if any(model != models[0] for model in models):
        return "the hosts are not all alike"
    if isinstance(models[0], Cpu | Sockets) and threads * max(gpus.values(), default=0) > models[0].cores:
        return "the threads of several copies share cores"
    return ""


def unlike_exchanges(devices: Sequence[str], demands: Iterable[Demand]) -> str:
    """The first GPU that an exchange among all replicas loads differently, in words; "" if there is none."""
    for demand in demands:
        load = {name: (amount, 0.0) for name, amount in demand.amounts} | {name: (0.0, part) for name, part in demand.holds}
        for device in devices:
            for part in ("compute", "memory"):
                if load.get(f"{device}.{part}") != load.get(f"{devices[0]}.{part}"):
                    return f"an exchange asks more or less of {device} than of {devices[0]}"
    return ""
