"""The capacities that paths between the devices of replicas use, in one row per replica and capacity.

Replicas have one template if corresponding paths have equal shapes (`Machine.draws_among`) and share capacities at the same
positions. They differ only in the numbers of their capacities, so the amounts of a template are compared once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

import numpy as np

from hwsim.families.training.workload.layout import DeviceLayout
from hwsim.graph.fold.refine import Ints
from hwsim.machine.capacity_numbers import TransferDraws, TransferSample
from hwsim.models.capacity_amounts import Capacities

_SIZE: Final = 1e6  # size of the compared transfer on each path (B)
_NEAR: Final = 8  # largest group of devices of which all paths are compared, not only those between neighbours
_AT_ONCE: Final = 1 << 14  # maximum number of paths that are listed together
_AMOUNTS: Final = 1 << 32  # upper bound of the numbers of amounts


class ReplicaPaths(NamedTuple):
    """The capacities of all replicas.

    Args:
        sources: index of the source device, by replica and path.
        targets: index of the target device, by replica and path.
        template: template of each replica.
        forms: for each template the form of each path, equal for paths with equal times and rates.
        gpus: index into `numbers` of the memory of each GPU, replica by replica.
        replica: replica of each row.
        place: index into `numbers` of the capacity of each row.
        label: number of the row's amounts, equal for equal amounts on equal paths.
        numbers: indices of the capacities of the machine, ascending.
    """

    sources: Ints
    targets: Ints
    template: Ints
    forms: Sequence[Ints]
    gpus: Ints
    replica: Ints
    place: Ints
    label: Ints
    numbers: Ints


class _Template(NamedTuple):
    """The rows of the paths of equal replicas.

    Args:
        forms: form of each path.
        starts: first row of each path.
        same: for each row the first row with the same capacity.
        firsts: first row of each capacity.
        labels: label of each capacity.
    """

    forms: Ints
    starts: Ints
    same: Ints
    firsts: Ints
    labels: Ints


def list_paths(known: Capacities, layout: DeviceLayout, *, uneven: bool) -> ReplicaPaths:
    """Return the paths of all replicas; the kinds of their capacities are known afterwards.

    Args:
        uneven: whether the first of the replicas that split the experts receives more tokens than the others.
    """
    sources, targets, inside = _ends(layout)
    listing = _Listing(known, tuple(layout.devices))
    template, gpus, rows = listing.rows(sources[:, :inside], targets[:, :inside], 0, layout.tp * layout.cp * layout.pp)
    forms = [made.forms for made in listing.templates]
    if layout.ep > 1:
        others, _, shared = listing.rows(sources[:, inside:], targets[:, inside:], inside, 0)
        pairs, template = np.unique(np.stack([template, others]), axis=1, return_inverse=True)
        forms = [np.concatenate([listing.templates[number].forms for number in pair]) for pair in pairs.T.tolist()]
        member = shared[0] % layout.ep
        rows[2], shared[2] = rows[2] * layout.ep, shared[2] * layout.ep + (member if uneven else 0)  # traffic by member
        steps = [(member + step) % layout.ep - member for step in range(layout.ep)]  # each has the paths of all of them
        rows = np.concatenate([rows, *[np.stack([shared[0] + step, *shared[1:]]) for step in steps]], axis=1)
    place = np.zeros(known.machine.capacity_numbers, np.int32)
    place[rows[1]] = 1
    numbers = np.flatnonzero(place).astype(np.int32)
    place[numbers] = np.arange(len(numbers))
    return ReplicaPaths(sources, targets, template.ravel(), forms, place[gpus].ravel(), rows[0], place[rows[1]], rows[2], numbers)


class _Listing:
    """A list of the rows of replicas, with the templates found so far."""

    def __init__(self, known: Capacities, devices: tuple[str, ...]) -> None:
        self._known, self._devices, self._rates = known, devices, known.machine.rates()
        self._shapes: dict[TransferSample, int] = {}
        self._looks: list[tuple[int, list[int]]] = []  # form and numbers of the amounts, by shape
        self._numbers: dict[Hashable, int] = {}  # of forms, amounts and labels
        self._by_shapes: dict[bytes, list[int]] = {}  # templates by the shapes of their paths
        self.templates: list[_Template] = []

    def rows(self, sources: Ints, targets: Ints, start: int, loops: int) -> tuple[Ints, Ints, Ints]:
        """Return the template of each replica, the capacities of its first paths, and (replica, capacity, label) by row.

        Args:
            sources, targets: ends of each path, by replica and path.
            start: index of the first path among all.
            loops: number of the first paths.
        """
        replicas, paths = sources.shape
        template, firsts = np.empty(replicas, np.int32), np.empty((replicas, loops), np.int32)
        rows: list[Ints] = []
        at_once = max(1, _AT_ONCE // paths)
        for low in range(0, replicas, at_once):
            source, target = (column[low : low + at_once].ravel() for column in (sources, targets))
            draws = self._known.machine.draws_among(self._devices, source, target, _SIZE)
            shapes = self._shapes_of(draws).reshape(-1, paths)
            equal: dict[bytes, list[int]] = {}
            for replica, shape in enumerate(shapes):
                equal.setdefault(shape.tobytes(), []).append(replica)
            for key, several in equal.items():
                some, known = np.array(several), self._by_shapes.setdefault(key, [])
                begins = draws.first[some * paths]
                capacity = draws.capacity[begins[:, None] + np.arange(draws.first[(some[0] + 1) * paths] - begins[0])]
                index = 0
                while len(some):
                    if index == len(known):
                        known.append(len(self.templates))
                        self.templates.append(self._template(shapes[some[0]], capacity[0], start))
                    made = self.templates[known[index]]
                    own = capacity[:, made.firsts]
                    is_equal = (capacity == capacity[:, made.same]).all(axis=1)
                    is_equal &= np.diff(np.sort(own, axis=1), axis=1).all(axis=1)
                    equals, own = low + some[is_equal], own[is_equal]
                    template[equals], firsts[equals] = known[index], capacity[is_equal][:, made.starts[:loops]]
                    columns = np.repeat(equals, own.shape[1]), own.ravel(), np.tile(made.labels, len(own))
                    rows.append(np.stack(columns).astype(np.int32))
                    some, capacity, index = some[~is_equal], capacity[~is_equal], index + 1
        return template, firsts, np.concatenate(rows, axis=1)

    def _shapes_of(self, draws: TransferDraws) -> Ints:
        """Return the number of the shape of each path, and record the kinds of its capacities."""
        self._known.drawn(draws)
        for sample, cost in zip(draws.kinds, draws.costs, strict=True):
            if sample not in self._shapes:
                self._shapes[sample], demand = len(self._shapes), cost.demand
                rates = tuple(sorted((amount, self._rates[name]) for name, amount in demand.amounts))
                form = self._number((demand.latency, demand.floor, demand.share, rates))
                self._looks.append((form, [self._number(amount) for _, amount in demand.amounts]))
        return np.array([self._shapes[sample] for sample in draws.kinds], np.int32)[draws.shape]

    def _number(self, value: Hashable) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def _template(self, shapes: Ints, capacity: Ints, start: int) -> _Template:
        forms, amounts = zip(*(self._looks[shape] for shape in shapes.tolist()), strict=True)
        sizes = np.array(list(map(len, amounts)))
        codes = np.repeat(np.arange(start, start + len(sizes)), sizes) * _AMOUNTS + np.concatenate(amounts)
        _, firsts, index, counts = np.unique(capacity, return_index=True, return_inverse=True, return_counts=True)
        rows = np.split(codes[np.lexsort((codes, index.ravel()))], np.cumsum(counts)[:-1])
        labels = np.array([self._number(row.tobytes()) for row in rows])
        return _Template(np.array(forms), np.cumsum(sizes) - sizes, firsts[index.ravel()], firsts, labels)


def _ends(layout: DeviceLayout) -> tuple[Ints, Ints, int]:
    """Return (source and target device by replica and path, index of the first path to other replicas).

    The first paths are those from each device to itself, that is its memory.
    """
    replica = np.arange(layout.dp, dtype=np.int32)[:, None]
    stage, cp, tp = (axis.ravel() for axis in np.indices((layout.pp, layout.cp, layout.tp), np.int32))
    here = layout.place(tp, cp, stage, replica)
    ends = [(here, here)]
    ends += [(here, layout.place((tp + step) % layout.tp, cp, stage, replica)) for step in _steps(layout.tp)]
    ends += [(here, layout.place(tp, (cp + step) % layout.cp, stage, replica)) for step in _steps(layout.cp)]
    for step in {1, layout.pp - 1}:
        target = (stage + step) % layout.pp
        is_next = (target != stage) & ((abs(target - stage) == 1) | (layout.chunks > 1))
        ends.append((here[:, is_next], layout.place(tp, cp, target, replica)[:, is_next]))
    inside = sum(source.shape[1] for source, _ in ends)  # integers
    member = replica % layout.ep
    ends += [(here, layout.place(tp, cp, stage, replica - member + (member + step) % layout.ep)) for step in _steps(layout.ep)]
    sources, targets = (np.concatenate(columns, axis=1) for columns in zip(*ends, strict=True))
    return sources, targets, inside


def _steps(size: int) -> Sequence[int]:
    """Return the distances of the compared pairs within a group."""
    return range(1, size) if size <= _NEAR else (1, size - 1)
