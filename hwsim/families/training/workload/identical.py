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
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from itertools import pairwise
from typing import Final

import numpy as np

from hwsim import ticks
from hwsim.demand import device_of
from hwsim.families.training.workload.kinds import GpuKinds
from hwsim.families.training.workload.layout import DeviceLayout
from hwsim.families.training.workload.replica_classes import ReplicaClasses, few_enough
from hwsim.families.training.workload.replica_paths import ReplicaPaths, list_paths
from hwsim.graph.fold import CannotFold, Classes
from hwsim.graph.fold.refine import Ints, Ties, is_equitable, numbered, refine
from hwsim.machine import Machine
from hwsim.models.capacity_amounts import Capacities, HiddenCapacities, NumberedCost, rounding_classes

Marks = Mapping[str, Hashable]  # events of a capacity during the run, by its name

_MOST: Final = 64  # maximum number of replicas that share capacities with a representative
_PARTS: Final = ("compute", "memory")  # capacities of a GPU


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
    paths = list_paths(capacities, layout, uneven=uneven)
    colours, why = _of_replicas(machine, layout, kinds, paths, marks)
    replicas, numbers = len(colours), paths.numbers
    look = _looks(capacities, between, marks)
    of_replicas, of_things = _classes(colours, numbered(look[numbers]), paths)
    of = Classes.by(of_replicas)
    if not few_enough(len(of), replicas):
        replica = int(np.flatnonzero(of.of != of.of[0])[0])
        sharing = f"there are {len(of):,} classes, and replica {replica} shares its paths with other replicas than the first does"
        raise CannotFold(why or f"most of the {layout.dp:,} replicas differ: {sharing}")
    kept = _kept(paths, of, of_things)
    near = {first: _near(layout, paths, of, first) for first in of.first.tolist()}
    groups = _on_paths(capacities, paths, of_things, kept)
    hidden = np.zeros(machine.capacity_numbers, np.bool_)
    hidden[numbers] = True
    hidden[np.concatenate(groups)] = True
    is_elsewhere = np.zeros(len(hidden), np.bool_)  # only exchanges among all replicas use these
    for cost in between:
        is_elsewhere[cost.rows.numbers] = True
    elsewhere = np.flatnonzero(is_elsewhere & ~hidden)
    hidden[elsewhere] = True
    alike, members = dict[str, int](), dict[str, Sequence[str]]()
    for some in (*groups, *(elsewhere[same] for same in _groups(look[elsewhere]))):
        name = machine.capacity_name(int(some[0]))
        hidden[some[0]], alike[name] = False, len(some)
        if len(some) > 1 and machine.capacities[name].device:
            members[name] = machine.capacity_names(some)
    hidden_names = HiddenCapacities(machine, hidden)
    for first in of.first.tolist():
        used_alone, shared = used(first)
        if unseen := sorted((used_alone | {name for name in shared if name not in hidden_names}) - alike.keys()):
            raise CannotFold(f"replica {first} uses {unseen[0]}, which is on none of its compared paths")
    return ReplicaClasses(of, near, alike, members, hidden_names)


def _looks(capacities: Capacities, between: Sequence[NumberedCost], marks: Marks) -> Ints:
    """Return the initial colour of each capacity, from its kind, its amounts in exchanges, and its events."""
    look = capacities.of(np.arange(capacities.machine.capacity_numbers)).astype(np.int64)
    unused = len(capacities.kinds)
    rounded: dict[int, Ints] = {}  # by the id of the amounts, which equal stages share
    for cost in between:
        numbers, holds = cost.rows.numbers, cost.holds
        if id(cost.rows.amounts) not in rounded:
            rounded[id(cost.rows.amounts)] = rounding_classes(cost.rows.amounts)
        code = look[numbers]
        parts = [] if holds is None else [np.unique(holds, return_inverse=True)[1].ravel()]
        for column in (rounded[id(cost.rows.amounts)], *parts):
            code = code * (int(column.max(initial=0)) + 1) + column
        different, code = ticks.numbered(code)
        look[numbers] = unused + code
        unused += len(different)
    happens: dict[Hashable, int] = {}
    for name, mark in marks.items():
        number = capacities.number(name)
        look[number] = happens.setdefault((int(look[number]), mark), unused + len(happens))
    return look


def _on_paths(known: Capacities, paths: ReplicaPaths, of_things: Ints, kept: Ints) -> list[Ints]:
    """Return, for each used capacity on paths or of GPUs, the capacities that it represents, itself first."""
    machine, numbers, gpus, groups = known.machine, paths.numbers, paths.gpus, list[Ints]()
    for some in _groups(of_things[gpus]):  # representatives first
        memories = numbers[gpus[some]]
        device = device_of(machine.capacity_name(int(memories[0])), "memory")
        groups += [memories + known.number(f"{device}.{part}") - memories[0] for part in _PARTS]  # they have successive indices
    shown = kept[np.isin(kept, gpus, invert=True)]  # exchanges of experts use GPUs of other replicas
    is_shown = np.zeros(len(numbers), np.bool_)
    is_shown[shown] = True
    by_class, ends = np.argsort(of_things, kind="stable"), np.cumsum(np.bincount(of_things))
    for some in _groups(of_things[shown]):
        first, *others = shown[some].tolist()
        same = by_class[ends[of_things[first] - 1] if of_things[first] else 0 : ends[of_things[first]]]
        groups += [numbers[[first, *same[~is_shown[same]]]], *(numbers[[other]] for other in others)]
    return groups


def _groups(classes: Ints) -> Sequence[Ints]:
    """Return the ascending indices of the elements of each class."""
    order = np.argsort(classes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(classes[order])) + 1) if len(classes) else []


def _classes(colours: Ints, looks: Ints, paths: ReplicaPaths) -> tuple[Ints, Ints]:
    """Return the classes of the replicas, and of the capacities.

    Capacities that only one replica uses belong to its colour, so only those that several share are refined.

    Raises:
        CannotFold: two different replicas or capacities have the same hash.
    """
    is_shared = np.bincount(paths.place, minlength=len(looks)) > 1
    shared, rows = np.flatnonzero(is_shared), np.flatnonzero(is_shared[paths.place])
    replica, place, label = (np.delete(column, rows) for column in (paths.replica, paths.place, paths.label))
    code = label * (int(looks.max(initial=0)) + np.int64(1)) + looks[place]
    span = int(code.max(initial=0)) + 1
    codes = np.sort(replica * np.int64(span) + code)
    ends = np.searchsorted(codes, np.arange(len(colours) + 1) * span).tolist()
    codes %= span
    seen: dict[tuple[int, bytes], int] = {}
    own = (codes[low:high].tobytes() for low, high in pairwise(ends))
    first = [seen.setdefault(key, len(seen)) for key in zip(colours.tolist(), own, strict=True)]
    del codes
    elements = np.concatenate([2 * np.array(first, np.int64), 2 * looks[shared] + 1])
    index = np.zeros(len(looks), np.int32)
    index[shared] = np.arange(len(first), len(elements))
    ties = Ties.of(len(elements), paths.replica[rows], index[paths.place[rows]], paths.label[rows])
    classes = refine(elements, ties)
    if classes is None or not is_equitable(elements, ties, classes):
        raise CannotFold("two different replicas have the same hash")
    of, things = numbered(classes[: len(first)]), np.empty(len(looks), np.int64)
    things[shared] = classes[len(first) :]
    code += of[replica] * span
    things[place] = len(elements) + ticks.numbered(code)[1]
    return of, ticks.numbered(things)[1]


def _of_replicas(machine: Machine, layout: DeviceLayout, kinds: GpuKinds, paths: ReplicaPaths, marks: Marks) -> tuple[Ints, str]:
    """Return (initial colours of the replicas, description of the first difference; "" if there is none)."""
    forms, first = [form.tobytes() for form in paths.forms], paths.forms[paths.template[0]]
    happens: dict[str, list[Hashable]] = {}
    for name, mark in marks.items():
        capacity = machine.capacities[name]
        happens.setdefault(capacity.device, []).append((capacity.kind, mark))
    devices, looks = layout.devices, dict[Hashable, int]()
    colours = []
    for replica, template in enumerate(paths.template.tolist()):
        look: Hashable = forms[template]
        if kinds.of or happens:
            names = [name for stage in range(layout.pp) for name in layout.group(stage, replica)]
            look = look, tuple([(kinds.of.get(name), tuple(happens.get(name, ()))) for name in names])
        colours.append(looks.setdefault(look, len(looks)))
    why = ""
    if (unlike := np.array([(form != first).any() for form in paths.forms])[paths.template]).any():
        replica = int(unlike.argmax())
        path = int((paths.forms[paths.template[replica]] != first).argmax())
        source, target = (devices[ends[replica, path]] for ends in (paths.sources, paths.targets))
        first = f"{devices[paths.sources[0, path]]} to {devices[paths.targets[0, path]]}"
        why = f"replica {replica} has another path from {source} to {target} than the first replica from {first}"
    elif kinds.of and len(looks) > 1:
        why = "replicas have different kinds of GPUs"
    return np.array(colours, np.int64), why


def _kept(paths: ReplicaPaths, of: Classes, things: Ints) -> Ints:
    """Return the indices of the capacities that representatives use.

    Raises:
        CannotFold: replicas of two classes share capacities that their representatives do not share.
    """
    of_row = of.of[paths.replica].astype(np.int64)
    is_first = of.first[of_row] == paths.replica
    drawing = ticks.distinct(things[paths.place] * len(of) + of_row) // len(of)  # class of capacities, once per class of replicas
    wanted = np.bincount(drawing, minlength=int(things.max(initial=-1)) + 1)
    drawn = ticks.distinct(paths.place[is_first] * np.int64(len(of)) + of_row[is_first]) // len(of)
    places, counts = np.unique(drawn, return_counts=True)
    if (counts != wanted[things[places]]).any():
        raise CannotFold("replicas of different classes share links that their representatives do not share")
    return places


def _near(layout: DeviceLayout, paths: ReplicaPaths, of: Classes, first: int) -> tuple[int, ...]:
    """Return the represented replicas that share nodes or capacities with a representative, including itself.

    Raises:
        CannotFold: there are too many of them.
    """
    mine = ticks.distinct(paths.place[paths.replica == first])
    sharing = set(paths.replica[np.isin(paths.place, mine)].tolist())
    size = layout.ep  # number of replicas that split the experts
    together = set(range(first // size * size, first // size * size + size))
    node = paths.sources // layout.per_node
    on_nodes = np.isin(node, node[sorted(together)]).any(axis=1)
    near = (sharing | together | set(np.flatnonzero(on_nodes).tolist())) & set(np.flatnonzero(of.of == of.of[first]).tolist())
    if len(near) > max(_MOST, size):
        raise CannotFold(f"{len(near):,} replicas share links with replica {first}: expected at most {max(_MOST, size)}")
    return tuple(sorted(near))
