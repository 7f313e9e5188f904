"""Classes of identical data-parallel replicas of stage groups, of which only the first is simulated.

The comparison covers the paths between the devices of a replica: between neighbours of the groups that split a matrix or a
sequence, between experts, and between stages. Two replicas are identical if their GPUs have the same kinds at the same
coordinates and the same events, and if corresponding paths

- take equally long and use equal amounts of capacities with equal rates and the same events,
- share these capacities with the same paths of replicas of the same classes, and with the same traffic among all replicas.

Replicas that split the experts communicate together, so each of them has the paths between all of them. The classes are the
coarsest ones of `hwsim.graph.fold.refine`, over replicas and capacities. Capacities that only exchanges among all replicas use
are identical if they have the same rate and traffic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from typing import Final

import numpy as np

from hwsim.families.training.workload.kinds import GpuKinds
from hwsim.families.training.workload.layout import DeviceLayout
from hwsim.families.training.workload.replica_classes import ReplicaClasses, count_represented, few_enough, list_represented
from hwsim.graph.fold import CannotFold, Classes
from hwsim.graph.fold.refine import Ints, Ties, is_equitable, numbered, refine
from hwsim.machine import Machine
from hwsim.machine.capacity_numbers import TransferDraws
from hwsim.models.capacity_amounts import Capacities, Flags, HiddenCapacities, NumberedCost, rounding_classes
from hwsim.records import dataclass

Marks = Mapping[str, Hashable]  # events of a capacity during the run, by its name

_SIZE: Final = 1e6  # size of the compared transfer on each path (B)
_NEAR: Final = 8  # largest group of devices of which all paths are compared, not only those between neighbours
_MOST: Final = 64  # maximum number of replicas that share capacities with a representative
_PARTS: Final = ("compute", "memory")  # capacities of a GPU


@dataclass(frozen=True, slots=True, eq=False)
class _Paths:
    """The capacities that the paths of all replicas use, in columns.

    Args:
        stage: stage of each path.
        sources: index of the source device, by replica and path.
        targets: index of the target device, by replica and path.
        draws: capacities used by each path.
        replica: replica of each row.
        path: path of each row.
        place: index into `numbers` of the capacity of each row.
        amount: index of the amount of each row among the different amounts.
        numbers: indices of the capacities of the machine, ascending.
    """

    stage: Ints
    sources: Ints
    targets: Ints
    draws: TransferDraws
    replica: Ints
    path: Ints
    place: Ints
    amount: Ints
    numbers: Ints


def stage_replica_classes(
    capacities: Capacities,
    layout: DeviceLayout,
    kinds: GpuKinds,
    between: Sequence[NumberedCost],
    used: Callable[[int], tuple[Set[str], Set[str]]],
    marks: Marks,
    *,
    uneven: bool,
) -> ReplicaClasses:
    """Return the classes of identical replicas.

    Args:
        capacities: capacities of the machine; those of `between` are known.
        layout: placement on devices.
        kinds: kinds of GPUs.
        between: costs of exchanges among all replicas, and of checkpoints.
        used: function from a replica to the names of the capacities of its ops without exchanges among all replicas: its own
            ones, and those of the replicas with which it shares experts.
        marks: events of capacities.
        uneven: whether the first of the replicas that split the experts receives more tokens than the others.

    Raises:
        CannotFold: most replicas differ; the message has the reason.
        NoRoute: devices of a group are not linked.
    """
    machine = capacities.machine
    held = Counter(map(machine.node_of, layout.devices)).values()
    if len(held) > 1 and len(set(held)) > 1:
        raise CannotFold("the nodes have different numbers of the GPUs")
    paths = _paths_of(machine, layout, uneven=uneven)
    capacities.drawn(paths.draws)
    colours, why = _of_replicas(machine, layout, kinds, paths, marks)
    replicas, numbers = len(colours), paths.numbers
    look = _looks(capacities, between, marks)
    classes = _classes(colours, numbered(look[numbers]), paths)
    of = Classes.by(numbered(classes[:replicas]))
    if not few_enough(len(of), replicas):
        raise CannotFold(why or _difference(layout, of))
    of_things = numbered(classes[replicas:])
    kept = _kept(paths, of, of_things)
    near = {first: _near(layout, paths, of, first) for first in of.first.tolist()}
    shown = {place: machine.capacity_name(int(numbers[place])) for place in kept}
    gpus = _gpus(layout, paths, of_things)
    members = {f"{some[0]}.{part}": tuple([f"{name}.{part}" for name in some]) for some, _ in gpus for part in _PARTS}
    alike = {name: len(some) for name, some in members.items()}
    of_gpus = {f"{name}.memory" for some, _ in gpus for name in some}  # exchanges of experts use them in other replicas
    of_shown = {shown[place]: int(of_things[place]) for place in kept if shown[place] not in of_gpus}
    alike |= count_represented(of_shown, Counter(of_things.tolist()))
    members |= list_represented(of_shown, _devices(capacities, paths, of_things, of_shown))
    hidden = np.zeros(machine.capacity_numbers, np.bool_)
    hidden[numbers] = True
    for (first_name, *_), memories in gpus:
        for part in _PARTS:  # the capacities of a GPU have successive indices
            hidden[memories + capacities.number(f"{first_name}.{part}") - capacities.number(f"{first_name}.memory")] = True
    for some in _elsewhere(between, hidden, look):
        name = machine.capacity_name(int(some[0]))
        alike[name] = len(some)
        hidden[some] = True
        if machine.capacities[name].device:
            members[name] = tuple(map(machine.capacity_name, some.tolist()))
    hidden[[capacities.number(name) for name in alike]] = False
    hidden_names = HiddenCapacities(machine, hidden)
    for first in of.first.tolist():
        used_alone, shared = used(first)
        if unseen := sorted((used_alone | {name for name in shared if name not in hidden_names}) - alike.keys()):
            raise CannotFold(f"replica {first} uses {unseen[0]}, which is on none of its compared paths")
    return ReplicaClasses(of, near, alike, {name: some for name, some in members.items() if len(some) > 1}, hidden_names)


def _looks(capacities: Capacities, between: Sequence[NumberedCost], marks: Marks) -> Ints:
    """Return the initial colour of each capacity, from its kind, its amounts in exchanges, and its events."""
    look = capacities.of(np.arange(capacities.machine.capacity_numbers)).astype(np.int64)
    unused = len(capacities.kinds)
    for cost in between:
        numbers, holds = cost.rows.numbers, cost.holds
        keys = [look[numbers], rounding_classes(cost.rows.amounts), *([] if holds is None else [holds])]
        columns = [np.unique(key, return_inverse=True)[1].ravel() for key in keys]
        code = columns[0]
        for column in columns[1:]:
            code = code * (int(column.max(initial=0)) + 1) + column
        look[numbers] = unused + np.unique(code, return_inverse=True)[1].ravel()
        unused += len(numbers)
    happens: dict[Hashable, int] = {}
    for name, mark in marks.items():
        number = capacities.number(name)
        look[number] = happens.setdefault((int(look[number]), mark), unused + len(happens))
    return look


def _elsewhere(between: Sequence[NumberedCost], seen: Flags, look: Ints) -> Iterable[Ints]:
    """Return the capacities that only exchanges among all replicas use, grouped by colour; `seen`: flags of other capacities."""
    is_drawn = np.zeros(len(seen), np.bool_)
    for cost in between:
        is_drawn[cost.rows.numbers] = True
    drawn = np.flatnonzero(is_drawn & ~seen)
    order = np.argsort(look[drawn], kind="stable")
    ends = np.flatnonzero(np.diff(look[drawn[order]])) + 1
    return [some for some in np.split(drawn[order], ends) if len(some)]


def _devices(known: Capacities, paths: _Paths, of_things: Ints, shown: Mapping[str, int]) -> Iterable[tuple[str, int]]:
    """Return (name, class) of the capacities of devices in the classes of `shown`."""
    places = np.flatnonzero(known.are_of_devices(paths.numbers) & np.isin(of_things, list(shown.values())))
    names = map(known.machine.capacity_name, paths.numbers[places].tolist())
    return zip(names, of_things[places].tolist(), strict=True)


def _classes(colours: Ints, things: Ints, paths: _Paths) -> Ints:
    """Return the classes of the replicas, followed by those of the capacities.

    Raises:
        CannotFold: two different replicas or capacities have the same hash.
    """
    label = paths.amount * np.int64(len(paths.stage)) + paths.path
    first = np.concatenate([2 * colours, 2 * things + 1])
    ties = Ties.of(len(first), paths.replica, np.int32(len(colours)) + paths.place, label)
    classes = refine(first, ties)
    if classes is None or not is_equitable(first, ties, classes):
        raise CannotFold("two different replicas have the same hash")
    return classes


def _paths_of(machine: Machine, layout: DeviceLayout, *, uneven: bool) -> _Paths:
    stage, sources, targets, inside = _ends(layout)
    names = np.array(layout.devices, object)
    draws = machine.draws(names[sources.ravel()].tolist(), names[targets.ravel()].tolist(), _SIZE)
    numbers, place = np.unique(draws.capacity, return_inverse=True)
    replica, path = np.divmod(draws.pairs().astype(np.int32), np.int32(sources.shape[1]))
    amounts = np.array([amount for cost in draws.costs for _, amount in cost.demand.amounts], np.float64)
    _, amount = np.unique(amounts, return_inverse=True)
    place, amount = place.ravel().astype(np.int32), amount.ravel()[draws.rows()]
    shared = np.flatnonzero(path >= inside)  # each of the replicas that split the experts has the paths of all of them
    member = replica[shared] % layout.ep
    if uneven:  # the traffic then depends on the replica
        amount *= layout.ep
        amount[shared] += member
    others = [replica[shared] - member + (member + step) % layout.ep for step in range(1, layout.ep)]
    replica = np.concatenate([replica, *others])
    path, place, amount = (np.concatenate([column, *[column[shared]] * len(others)]) for column in (path, place, amount))
    return _Paths(stage, sources, targets, draws, replica, path, place, amount, numbers)


def _ends(layout: DeviceLayout) -> tuple[Ints, Ints, Ints, int]:
    """Return (stage by path, source and target device by replica and path, index of the first path to other replicas)."""
    within = [(tp, cp, stage) for stage in range(layout.pp) for cp in range(layout.cp) for tp in range(layout.tp)]
    rows: list[tuple[int, int, int]] = []  # (stage, source, target within a replica)

    def place(tp: int, cp: int, stage: int) -> int:
        return layout.place(tp, cp, stage, 0)

    for tp, cp, stage in within:
        source = place(tp, cp, stage)
        rows.append((stage, source, source))  # memory of the device
        rows += [(stage, source, place((tp + step) % layout.tp, cp, stage)) for step in _steps(layout.tp)]
        rows += [(stage, source, place(tp, (cp + step) % layout.cp, stage)) for step in _steps(layout.cp)]
        for target in {(stage + 1) % layout.pp, (stage - 1) % layout.pp} - {stage}:
            if abs(target - stage) == 1 or layout.chunks > 1:
                rows.append((stage, source, place(tp, cp, target)))
    inside = np.array(rows, np.int64)
    outer, inner = np.divmod(np.arange(layout.dp), layout.ep)  # inner: index among the replicas that split the experts
    base = outer * layout.strides["dp"] + inner * layout.strides["ep"]  # index of the first device of a replica
    of_stage, sources, targets = inside[:, 0], base[:, None] + inside[:, 1], base[:, None] + inside[:, 2]
    for step in _steps(layout.ep):
        to = base - inner * layout.strides["ep"] + (inner + step) % layout.ep * layout.strides["ep"]
        devices = np.array([(stage, place(tp, cp, stage)) for tp, cp, stage in within], np.int64)
        of_stage = np.concatenate([of_stage, devices[:, 0]])
        sources = np.concatenate([sources, base[:, None] + devices[:, 1]], axis=1)
        targets = np.concatenate([targets, to[:, None] + devices[:, 1]], axis=1)
    return of_stage, sources, targets, len(inside)


def _steps(size: int) -> Sequence[int]:
    """Return the distances of the compared pairs within a group."""
    return range(1, size) if size <= _NEAR else (1, size - 1)


def _forms(machine: Machine, draws: TransferDraws) -> Ints:
    """Return a number for each shape of a path, equal for shapes with equal times and rates."""
    numbers: dict[object, int] = {}
    forms = []
    for cost in draws.costs:
        demand = cost.demand
        rates = tuple(sorted((amount, machine.capacities[name].rate) for name, amount in demand.amounts))
        forms.append(numbers.setdefault((demand.latency, demand.floor, demand.share, rates), len(numbers)))
    return np.array(forms, np.int64)


def _of_replicas(machine: Machine, layout: DeviceLayout, kinds: GpuKinds, paths: _Paths, marks: Marks) -> tuple[Ints, str]:
    """Return (initial colours of the replicas, description of the first difference; "" if there is none)."""
    replicas, count = paths.sources.shape
    form = _forms(machine, paths.draws)[paths.draws.shape].reshape(replicas, count)
    loops = np.flatnonzero((paths.sources == paths.targets).all(axis=0))  # a path for each device
    happens: dict[str, list[Hashable]] = {}
    for name, mark in marks.items():
        capacity = machine.capacities[name]
        happens.setdefault(capacity.device, []).append((capacity.kind, mark))
    devices, looks = layout.devices, dict[Hashable, int]()
    colours = []
    for replica, row in enumerate(form):
        look: Hashable = row.tobytes()
        if kinds.of or happens:
            names = [devices[number] for number in paths.sources[replica, loops].tolist()]
            look = look, tuple([(kinds.of.get(name), tuple(happens.get(name, ()))) for name in names])
        colours.append(looks.setdefault(look, len(looks)))
    why = ""
    if (unlike := np.argwhere(form != form[0])).size:
        replica, path = unlike[0].tolist()
        source, target = (devices[ends[replica, path]] for ends in (paths.sources, paths.targets))
        first = f"{devices[paths.sources[0, path]]} to {devices[paths.targets[0, path]]}"
        why = f"replica {replica} has another path from {source} to {target} than the first replica from {first}"
    elif not kinds.identical(layout):
        why = "replicas have different kinds of GPUs"
    return np.array(colours, np.int64), why


def _difference(layout: DeviceLayout, of: Classes) -> str:
    """Return a description of the first replica that differs from replica 0."""
    replica = int(np.flatnonzero(of.of != of.of[0])[0])
    return (
        f"most of the {layout.dp:,} replicas differ: there are {len(of):,} classes, and replica {replica} shares its paths "
        f"with other replicas than the first does"
    )


def _kept(paths: _Paths, of: Classes, things: Ints) -> list[int]:
    """Return the indices of the capacities that representatives use.

    Raises:
        CannotFold: replicas of two classes share capacities that their representatives do not share.
    """
    of_row = of.of[paths.replica]
    is_first = of.first[of_row] == paths.replica
    drawing = np.unique(things[paths.place] * len(of) + of_row) // len(of)  # class of capacities, once per class of replicas
    wanted = np.bincount(drawing, minlength=int(things.max(initial=-1)) + 1)
    drawn = np.unique(paths.place[is_first] * len(of) + of_row[is_first]) // len(of)
    places, counts = np.unique(drawn, return_counts=True)
    if (counts != wanted[things[places]]).any():
        raise CannotFold("replicas of different classes share links that their representatives do not share")
    kept: list[int] = places.tolist()
    return kept


def _near(layout: DeviceLayout, paths: _Paths, of: Classes, first: int) -> tuple[int, ...]:
    """Return the represented replicas that share nodes or capacities with a representative, including itself.

    Raises:
        CannotFold: there are too many of them.
    """
    mine = np.unique(paths.place[paths.replica == first])
    sharing = set(np.unique(paths.replica[np.isin(paths.place, mine)]).tolist())
    size = layout.ep  # number of replicas that split the experts
    together = set(range(first // size * size, first // size * size + size))
    node = paths.sources // layout.per_node
    on_nodes = np.isin(node, node[sorted(together)]).any(axis=1)
    near = (sharing | together | set(np.flatnonzero(on_nodes).tolist())) & set(np.flatnonzero(of.of == of.of[first]).tolist())
    if len(near) > max(_MOST, size):
        raise CannotFold(f"{len(near):,} replicas share links with replica {first}: expected at most {max(_MOST, size)}")
    return tuple(sorted(near))


def _gpus(layout: DeviceLayout, paths: _Paths, things: Ints) -> Sequence[tuple[tuple[str, ...], Ints]]:
    """Return (GPUs of a class, indices of their memories) for each class, representatives first."""
    loops = (paths.sources == paths.targets).all(axis=0)
    rows = np.flatnonzero(loops[paths.path])
    rows = rows[np.argsort(paths.replica[rows], kind="stable")]  # representatives first
    devices = paths.sources[paths.replica[rows], paths.path[rows]].tolist()
    gpus: dict[int, dict[str, int]] = {}
    for number, place in zip(devices, paths.place[rows].tolist(), strict=True):
        gpus.setdefault(int(things[place]), {})[layout.devices[number]] = int(paths.numbers[place])
    return [(tuple(memories), np.array(list(memories.values()), np.int64)) for memories in gpus.values()]
