"""Classes of identical data-parallel replicas: the first represents the others, and ops are segments of passes.

The paths that the devices of a replica use among themselves are compared: between neighbours of the groups that split a matrix
or a sequence, between experts, and between stages. Two replicas are identical if their GPUs are of the same kinds in the same
places, if the same happens to them, and if the same paths of each

- take equally long and draw equally much of capacities of equal rates, to which the same happens,
- and meet there the same paths of replicas of the same classes, and as much of what all replicas exchange.

These are the coarsest classes of `hwsim.graph.fold.refine`, over replicas and capacities. A capacity that only exchanges among
all replicas draw from is like all others of its rate from which they draw as much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from typing import Final

import numpy as np

from hwsim.demand import Cost
from hwsim.graph.fold import CannotFold, Classes
from hwsim.graph.fold.refine import Ints, Ties, is_equitable, numbered, refine
from hwsim.machine import Machine
from hwsim.machine.numbering import Draws, Floats
from hwsim.records import dataclass
from hwsim.workload.training.kinds import Kinds
from hwsim.workload.training.layout import Layout
from hwsim.workload.training.represented import Represented, counted, few_enough, listed

Marks = Mapping[str, Hashable]  # what happens to a capacity during the run, by its name

_DIGITS: Final = str.maketrans("", "", "0123456789")
_SIZE: Final = 1e6  # bytes on each path
_NEAR: Final = 8  # devices of a group up to which all of its paths are looked at, not only those between neighbours
_MOST: Final = 64  # replicas that draw on what a representative draws from
_PARTS: Final = ("compute", "memory")  # of a GPU


@dataclass(frozen=True, slots=True, eq=False)
class _Paths:
    """Draws of the paths of all replicas, in columns.

    stage: by path. sources, targets: by replica and path the numbers of its ends. replica, path, place, amount: by row, place
    among the capacities drawn from. numbers, rates, families: by place; by name without digits.
    """

    stage: Ints
    sources: Ints
    targets: Ints
    draws: Draws
    replica: Ints
    path: Ints
    place: Ints
    amount: Floats
    numbers: Ints
    rates: Floats
    families: Ints


def represented(
    machine: Machine,
    layout: Layout,
    kinds: Kinds,
    between: Sequence[Cost],
    used: Callable[[int], tuple[Set[str], Set[str]]],
    marks: Marks,
) -> Represented:
    """The replicas that represent all.

    Args:
        between: what all replicas exchange, and what they write.
        used: names of the capacities that a replica's ops draw from, apart from exchanges among all replicas: its own
            capacities, and the capacities of the replicas with which it shares experts.
        marks: what happens to capacities.

    Raises:
        CannotFold: hardly any replica is like another, and why.
        NoRoute: devices that work together are not linked.
    """
    held = Counter(map(machine.node_of, layout.devices)).values()
    if len(held) > 1 and len(set(held)) > 1:
        raise CannotFold("the nodes do not all have as many of the GPUs")
    paths = _paths_of(machine, layout)
    names = _named(machine, paths, between)
    place_of = {name: place for place, name in enumerate(names)}
    drawn = _drawn(between)
    colours, why = _of_replicas(machine, layout, kinds, paths, marks)
    replicas = len(colours)
    happens = {
        place_of[name] if names else int(np.searchsorted(paths.numbers, machine.capacity_number(name))): mark
        for name, mark in marks.items()
        if (name in place_of if names else machine.capacity_number(name) in paths.numbers)
    }
    looks: dict[Hashable, int] = {}
    things = np.empty(len(paths.numbers), np.int64)
    for place, kind in enumerate(zip(paths.families.tolist(), paths.rates.tolist(), strict=True)):
        amounts = tuple(drawn.get(names[place], ())) if names else ()
        things[place] = looks.setdefault((kind, amounts, happens.get(place)), len(looks))
    classes = _classes(colours, things, paths)
    of = Classes.by(numbered(classes[:replicas]))
    if not few_enough(len(of), replicas):
        raise CannotFold(why or _difference(layout, of))
    if len(of) > 1 and not names:
        raise CannotFold("exchanges among very many devices are worked out in columns, and only where all replicas are alike")
    of_things = numbered(classes[replicas:])
    kept = _kept(paths, of, of_things)
    near = {first: _near(layout, paths, of, first) for first in of.first.tolist()}
    shown = {place: names[place] if names else machine.capacity_name(int(paths.numbers[place])) for place in kept}
    gpus = _gpus(layout, paths, of_things)
    members = {f"{some[0]}.{part}": tuple([f"{name}.{part}" for name in some]) for some in gpus for part in _PARTS}
    alike = {name: len(some) for name, some in members.items()}
    of_shown = {shown[place]: int(of_things[place]) for place in kept if shown[place] not in alike}
    alike |= counted(of_shown, Counter(of_things.tolist()))
    members |= listed(of_shown, zip(names, of_things.tolist(), strict=False))
    rates = machine.rates()
    others: dict[Hashable, list[str]] = {}
    for name, rows in drawn.items():
        if name not in place_of and name not in alike:
            look = name.translate(_DIGITS), rates[name], tuple(rows), marks.get(name)
            others.setdefault(look, []).append(name)
    alike |= {some[0]: len(some) for some in others.values()}
    members |= {some[0]: tuple(some) for some in others.values() if ":" not in some[0]}
    hidden = {*names, *(name for some in (*members.values(), *others.values()) for name in some)} - alike.keys()
    for first in of.first.tolist():
        used_alone, shared = used(first)
        if unseen := sorted((used_alone | (shared - hidden if names else set())) - alike.keys()):
            raise CannotFold(f"replica {first} of the model draws on {unseen[0]}, which no path between its neighbours does")
    return Represented(of, near, alike, {name: some for name, some in members.items() if len(some) > 1}, frozenset(hidden))


def _classes(colours: Ints, things: Ints, paths: _Paths) -> Ints:
    """Classes of the replicas, and of the capacities after them.

    Raises:
        CannotFold: the hash of two different ones is equal by chance.
    """
    _, amount = np.unique(paths.amount, return_inverse=True)
    label = amount.ravel() * np.int64(len(paths.stage)) + paths.path
    first = np.concatenate([2 * colours, 2 * things + 1])
    ties = Ties.of(len(first), paths.replica, len(colours) + paths.place, label)
    classes = refine(first, ties)
    if classes is None or not is_equitable(first, ties, classes):
        raise CannotFold("two different replicas came out as equal by chance")
    return classes


def _paths_of(machine: Machine, layout: Layout) -> _Paths:
    stage, sources, targets = _ends(layout)
    names = np.array(layout.devices, object)
    draws = machine.draws(names[sources.ravel()].tolist(), names[targets.ravel()].tolist(), _SIZE)
    pair = draws.pairs()
    numbers, place = np.unique(draws.capacity, return_inverse=True)
    place = place.ravel()
    of_shapes = np.array([machine.capacities[name].rate for cost in draws.costs for name, _ in cost.demand.amounts], np.float64)
    starts = np.cumsum([0, *(len(cost.demand.amounts) for cost in draws.costs)])[:-1]
    row = np.repeat(starts[draws.shape] - draws.first[:-1], np.diff(draws.first)) + np.arange(len(draws.capacity))
    rates, families = np.empty(len(numbers)), np.empty(len(numbers), np.int64)
    rates[place] = of_shapes[row]
    family_numbers: dict[str, int] = {}
    of_names = [name.translate(_DIGITS) for cost in draws.costs for name, _ in cost.demand.amounts]
    families[place] = np.array([family_numbers.setdefault(name, len(family_numbers)) for name in of_names], np.int64)[row]
    replica, path = np.divmod(pair, sources.shape[1])
    return _Paths(stage, sources, targets, draws, replica, path, place, draws.amounts(), numbers, rates, families)


def _ends(layout: Layout) -> tuple[Ints, Ints, Ints]:
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


def _named(machine: Machine, paths: _Paths, between: Sequence[Cost]) -> list[str]:
    """Names of the capacities drawn from; none where no exchange names any."""
    return [machine.capacity_name(number) for number in paths.numbers.tolist()] if between else []


def _drawn(between: Sequence[Cost]) -> dict[str, list[tuple[int, str, float]]]:
    """By capacity the costs that draw it: place, amount to the digits that do not depend on the order of a sum, part held."""
    drawn: dict[str, list[tuple[int, str, float]]] = {}
    texts: dict[float, str] = {}
    for place, cost in enumerate(between):
        held = dict(cost.demand.holds)
        rows = {name: ("", part) for name, part in held.items()}
        for name, amount in cost.demand.amounts:
            text = texts.get(amount)
            if text is None:
                text = texts[amount] = f"{amount:.12e}"
            rows[name] = text, held.get(name, 0.0)
        for name, row in rows.items():
            drawn.setdefault(name, []).append((place, *row))
    return drawn


def _forms(machine: Machine, draws: Draws) -> Ints:
    """By shape a number, equal for those that take equally long, whatever they are called."""
    numbers: dict[object, int] = {}
    forms = []
    for cost in draws.costs:
        demand = cost.demand
        rates = tuple(sorted((amount, machine.capacities[name].rate) for name, amount in demand.amounts))
        forms.append(numbers.setdefault((demand.latency, demand.floor, demand.share, rates), len(numbers)))
    return np.array(forms, np.int64)


def _of_replicas(machine: Machine, layout: Layout, kinds: Kinds, paths: _Paths, marks: Marks) -> tuple[Ints, str]:
    """(first colours of the replicas, the first difference among them in words; "" if there is none)."""
    replicas, count = paths.sources.shape
    form = _forms(machine, paths.draws)[paths.draws.shape].reshape(replicas, count)
    loops = np.flatnonzero((paths.sources == paths.targets).all(axis=0))  # a path for each device
    happens: dict[str, list[Hashable]] = {}
    for name, mark in marks.items():
        device, _, part = name.rpartition(".")
        happens.setdefault(device, []).append((part, mark))
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
        why = f"replica {replica} of the model takes another path from {source} to {target} than the first from {first}"
    elif not kinds.identical(layout):
        why = "copies of the model have other kinds of GPUs"
    return np.array(colours, np.int64), why


def _difference(layout: Layout, of: Classes) -> str:
    """The first replica that the first one does not represent, in words."""
    replica = int(np.flatnonzero(of.of != of.of[0])[0])
    return (
        f"hardly any of the {layout.dp:,} replicas of the model is like another: there are {len(of):,} classes, and replica "
        f"{replica} meets others on its paths than the first does"
    )


def _kept(paths: _Paths, of: Classes, things: Ints) -> list[int]:
    """Places of the capacities that representatives draw from.

    Raises:
        CannotFold: replicas of two classes share capacities that their representatives do not share.
    """
    of_row = of.of[paths.replica]
    is_first = of.first[of_row] == paths.replica
    drawing = np.unique(np.stack([things[paths.place], of_row]), axis=1)[0]  # class of capacities, once by class of replicas
    wanted = np.bincount(drawing, minlength=int(things.max(initial=-1)) + 1)
    drawn = np.unique(np.stack([paths.place[is_first], of_row[is_first]]), axis=1)[0]
    places, counts = np.unique(drawn, return_counts=True)
    if (counts != wanted[things[places]]).any():
        raise CannotFold("replicas of different classes share links that the first of each class do not share")
    kept: list[int] = places.tolist()
    return kept


def _near(layout: Layout, paths: _Paths, of: Classes, first: int) -> tuple[int, ...]:
    """Replicas that one represents, itself among them, and that share nodes or capacities with it.

    Raises:
        CannotFold: they are many.
    """
    mine = np.unique(paths.place[paths.replica == first])
    sharing = set(np.unique(paths.replica[np.isin(paths.place, mine)]).tolist())
    size = layout.ep  # replicas that split the experts exchange as one
    together = set(range(first // size * size, first // size * size + size))
    node = paths.sources // layout.per_node
    on_nodes = np.isin(node, node[sorted(together)]).any(axis=1)
    near = (sharing | together | set(np.flatnonzero(on_nodes).tolist())) & set(np.flatnonzero(of.of == of.of[first]).tolist())
    if len(near) > max(_MOST, size):
        raise CannotFold(f"{len(near):,} replicas of the model share links with replica {first}")
    return tuple(sorted(near))


def _gpus(layout: Layout, paths: _Paths, things: Ints) -> Iterable[tuple[str, ...]]:
    """The GPUs of each class, by their memories; representatives come first."""
    loops = (paths.sources == paths.targets).all(axis=0)
    rows = np.flatnonzero(loops[paths.path])
    rows = rows[np.argsort(paths.replica[rows], kind="stable")]  # representatives first
    devices = paths.sources[paths.replica[rows], paths.path[rows]].tolist()
    gpus: dict[int, dict[str, None]] = {}
    for number, of in zip(devices, things[paths.place[rows]].tolist(), strict=True):
        gpus.setdefault(of, {})[layout.devices[number]] = None
    return [tuple(names) for names in gpus.values()]
