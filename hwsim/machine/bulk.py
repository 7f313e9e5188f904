"""Costs of very many transfers as columns: equivalent pairs of devices are found by their numbers, and computed once.

A collective among n GPUs has up to n^2 pairs of source and target, far too many for a `Cost` each. In a machine of equal nodes,
most pairs differ only in the names of their devices. Finding the class of a pair and its capacities takes about a microsecond.

Terms:

    pair         source and target device, by number (`hwsim.machine.layout`)
    host, core   host: an inner machine, or a device that forwards no traffic; core: all other devices (`hwsim.machine.hosts`)
    capacity     by number (`hwsim.machine.capacity_numbers`)
    code         integer of a pair; pairs with equal codes are equivalent: at equal places in equal hosts with equal wiring
    class        `_PairClass`: the pairs with one code and handling; it has a shape, and capacities relative to the hosts
    shape        `_Shape`: a cost without names; several classes can have one shape
    relative     (base, offset, direction): a capacity number relative to a host of the pair, valid for all pairs of the class
    pattern      `_Pattern`: a class in terms of a skeleton (`hwsim.machine.skeleton`), which serves pairs over other switches
    row          entry of the column of capacities: one for each pair and capacity

Example: four nodes, of which node0 and node1 are linked to switch sw0, node2 and node3 to sw1. Transfers within a switch have one
shape, transfers between the switches another. Both pairs between the switches also have one code, thus one class.

    >>> from hwsim.machine import build
    >>> from hwsim.spec import Mistakes, tree_of
    >>> parts = {"ram": {"kind": "memory", "bandwidth": "90 GB/s"}, "nic": {"kind": "nic", "bandwidth": "10 GB/s"}}
    >>> slot = {"kind": "pcie", "bandwidth": "20 GB/s", "between": ["ram", "nic"]}
    >>> node = {"kind": "machine", "count": 4, "parts": parts, "links": [slot]}
    >>> lan = {"kind": "direct", "name": "lan", "bandwidth": "10 GB/s", "between": ["sw*", "node*.nic"], "per": 2}
    >>> up = {"kind": "direct", "name": "up", "bandwidth": "10 GB/s", "between": ["sw0", "sw1"]}
    >>> file = {"hwsim": "machine/1", "class": "ideal", "parts": {"node": node, "sw": {"kind": "switch", "count": 2}}}
    >>> machine = build(tree_of(file | {"links": [lan, up]}), Mistakes())
    >>> draws = machine.draws(["node0.ram", "node2.ram", "node0.ram"], ["node1.ram", "node3.ram", "node2.ram"], 1e6)
    >>> draws.shape.tolist(), draws.first.tolist()
    ([0, 0, 1], [0, 8, 16, 25])
    >>> for pair in (0, 1):
    ...     start = draws.first[pair]
    ...     print(*(machine.capacity_name(number) for number in draws.capacity[start : start + 4].tolist()))
    lan:node0.nic->sw0 lan:sw0->node1.nic node0.nic.tx node0.ram.memory
    lan:node2.nic->sw1 lan:sw1->node3.nic node2.nic.tx node2.ram.memory
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from itertools import permutations
from typing import Final, NamedTuple

import numpy as np

from hwsim.demand import Cost
from hwsim.machine.capacities import oversubscription
from hwsim.machine.capacity_numbers import CapacityNumbers, Floats, Handlings, TransferDraws, TransferSample, kinds_of
from hwsim.machine.contents import UnknownName
from hwsim.machine.host_wires import HostWires
from hwsim.machine.net import BOTH
from hwsim.machine.routes import Route
from hwsim.machine.skeleton import Place, Skeleton, Skeletons
from hwsim.machine.transfer import Transfers
from hwsim.machine.transfer_options import TransferOptions
from hwsim.machine.wires import Ints
from hwsim.records import dataclass

_SPAN: Final = 8  # codes per row, up to which a table of all codes is faster than sorting
_MANY_COSTS: Final = 20_000  # number of costs above which they are not cached
# Base of a relative number: none; the first capacity of the source host or of the target host; the first wire between the source
# host or the target host and the core.
ABSOLUTE, FROM, TO, OUT, IN = range(5)
_Relative = tuple[int, int, int]  # base, offset from it, direction of a wire of a host (0 out, 1 in, BOTH)


@dataclass(frozen=True, slots=True)
class _PairClass:
    """A class of equivalent pairs.

    Args:
        shape: index of their shape.
        capacities: relative number of each capacity of the shape.
    """

    shape: int
    capacities: tuple[_Relative, ...]


@dataclass(frozen=True, slots=True)
class _Shape:
    """A cost of a transfer without names.

    Args:
        a, b: source and target of an example.
        handling: options of the transfer.
        locations: for each capacity ("device", "link" or "both", index of the device or link on the route, kind of a device's
            capacity).
    """

    a: str
    b: str
    handling: TransferOptions
    locations: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A class of pairs with one skeleton.

    Args:
        pair_class: class of the pairs over the switches of an example.
        places: for each capacity its place in the skeleton; None within a host.
    """

    pair_class: _PairClass
    places: tuple[Place | None, ...]


class _PairColumns(NamedTuple):
    """Capacities of pairs, for any size of the transfers.

    Args:
        route: for each pair the index of its shape in `routes`.
        routes: shapes in the order of their first pairs.
        first, capacity: see `TransferDraws`.
    """

    route: Ints
    routes: list[_Shape]
    first: Ints
    capacity: Ints


class BulkTransfers:
    """A calculator of many transfers: the implementation of `Machine.draws` and of lookups over many names."""

    def __init__(self, transfers: Transfers) -> None:
        self._routes, self._transfers = transfers.routes, transfers
        self._net, self._hosts = self._routes.net, self._routes.hosts
        self._ends, self.numbering = transfers.device_numbers, CapacityNumbers(self._net)
        self._skeletons = Skeletons(self._net.layout, self._hosts, self.numbering, transfers.backplanes)
        self._patterns: dict[tuple[TransferOptions, Hashable], _Pattern] = {}  # by handling and skeleton
        self._classes: dict[tuple[TransferOptions, int], _PairClass | None] = {}  # by handling and code
        self._shape_indexes: dict[object, int] = {}  # by route without names
        self._shapes: list[_Shape] = []
        self._insides: dict[tuple[int, tuple[int, ...]], bool] = {}  # by wiring and places in a host: whether `inside` has a key
        # Latest pairs: the next call often has the same pairs with other sizes.
        self._drawn: tuple[Sequence[TransferOptions], tuple[Ints, Ints, Ints], _PairColumns] | None = None

    def inside(self, names: Sequence[str]) -> Hashable:
        """See `Machine.inside`."""
        numbers, hosts = self._ends.numbers(names), self._hosts
        attached, owners = hosts.attached, {int(hosts.owner[number]) for number in numbers.tolist() if number >= 0}
        if attached is None or len(owners) != 1 or min(owners) < 0 or int(numbers.min()) < 0 or not self._shared:
            return None
        host = owners.pop()
        key = int(attached.ports[host]), tuple((numbers - hosts.starts[host]).tolist())
        if key not in self._insides:
            child = self._net.layout.parts[int(hosts.part_of_host[host])].child
            hashed = child is None or any("ecmp" in scope.wires.routings for scope in child.scopes())
            self._insides[key] = not hashed and all(hosts.alike(a, b) for a, b in permutations(numbers.tolist(), 2))
        return key if self._insides[key] else None

    def draws(
        self, names: Sequence[str], sources: Ints, targets: Ints, size: float | Floats, handling: Handlings
    ) -> TransferDraws:
        """See `Machine.draws_among`."""
        handlings, handling_of = (
            ((handling,), np.zeros(len(sources), np.int64)) if isinstance(handling, TransferOptions) else handling
        )
        if any(option.by == "cpu" for option in handlings):
            raise ValueError("copies by a core are supported only by `transfer`")
        a, b = self._numbered(names, sources, targets)
        last = self._drawn
        if last is not None and last[0] == handlings and all(map(np.array_equal, last[1], (a, b, handling_of))):
            columns = last[2]
        else:
            columns = self._columns(a, b, handlings, handling_of)
            self._drawn = handlings, (a, b, handling_of), columns
        first, capacity = columns.first, columns.capacity
        is_empty = np.broadcast_to(np.asarray(size) <= 0, a.shape)
        if is_empty.any():
            row_counts = np.diff(first)
            capacity = capacity[np.repeat(~is_empty, row_counts)]
            first = np.concatenate([[0], np.cumsum(np.where(is_empty, 0, row_counts))])
        shape, samples = _sized(columns, size)
        return TransferDraws(shape, samples, first, capacity, self.priced)

    def priced(self, samples: Sequence[TransferSample], times: float) -> tuple[Cost, ...]:
        """Return the costs of transfers of `times` the bytes of the samples."""
        price = self._transfers.cost if len(samples) < _MANY_COSTS else self._transfers.once
        return tuple([price(a, b, times * size, handling) for a, b, size, handling in samples])

    def _columns(self, a: Ints, b: Ints, handlings: Sequence[TransferOptions], handling_of: Ints) -> _PairColumns:
        owner = self._hosts.owner[a]
        is_within_host = (owner == self._hosts.owner[b]) & (owner >= 0)
        codes = np.where(is_within_host, self._code(a, b, within_host=True), self._code(a, b, within_host=False))
        class_of_pair, first_pairs = _renumbered(codes * len(handlings) + handling_of)
        found = [
            self._class_of(int(codes[pair]), int(a[pair]), int(b[pair]), handlings[handling_of[pair]])
            for pair in first_pairs.tolist()
        ]
        classes = [pair_class for pair_class in found if pair_class is not None]
        if len(classes) < len(found):  # pairs without a class get one each, after all others
            index_of_class = np.cumsum([pair_class is not None for pair_class in found]) - 1
            single_pairs = np.flatnonzero(np.array([pair_class is None for pair_class in found])[class_of_pair])
            class_of_pair = index_of_class[class_of_pair]
            class_of_pair[single_pairs] = np.arange(len(classes), len(classes) + len(single_pairs))
            classes += [self._single(int(a[pair]), int(b[pair]), handlings[handling_of[pair]]) for pair in single_pairs.tolist()]
        return self._filled(a, b, classes, class_of_pair)

    def _class_of(self, code: int, a: int, b: int, handling: TransferOptions) -> _PairClass | None:
        key = handling, code
        if key not in self._classes:
            self._classes[key] = self._new_class(a, b, handling)
        return self._classes[key]

    def _numbered(self, names: Sequence[str], sources: Ints, targets: Ints) -> tuple[Ints, Ints]:
        """Return the device numbers of all pairs; a group of sockets is replaced by the socket nearest to the other end."""
        numbers = self._ends.numbers(names)
        a, b = numbers[sources], numbers[targets]
        for pair in np.flatnonzero((a < 0) | (b < 0)).tolist():
            ends = self._transfers.ends(names[int(sources[pair])], names[int(targets[pair])])
            a[pair], b[pair] = self._ends.numbers(ends)
            if a[pair] < 0:
                raise UnknownName(f"copies within the sockets '{ends[0]}' are supported only by `transfer`")
        return a, b

    def _code(self, a: Ints, b: Ints, *, within_host: bool) -> Ints:
        place, place_count = self._places[within_host]
        code: Ints = 2 * (place[a] * place_count + place[b]) + within_host
        return code

    @cached_property
    def _places(self) -> tuple[tuple[Ints, int], tuple[Ints, int]]:
        """For each device the number of its place, and the number of places: for pairs of two hosts, and within one host.

        Devices have one place if they are at equal positions in equal hosts that are linked to the same devices of the core (two
        hosts), or whose wires end at the same positions (one host). Every device of the core has its own place.
        """
        owner, starts, number = self._hosts.owner, self._hosts.starts, np.arange(len(self._hosts.owner))
        attached = self._hosts.attached
        if attached is None or not self._shared or not len(starts):
            return (number, len(number)), (number, len(number))
        position = number - starts[owner]
        position_count = int(position[owner >= 0].max()) + 1
        places = []
        for kind_of_host in (attached.kind, attached.ports):
            core_start = (int(kind_of_host.max()) + 1) * position_count
            place = np.where(owner >= 0, kind_of_host[owner] * position_count + position, core_start + number)
            places.append((place, core_start + len(number)))
        return places[0], places[1]

    @cached_property
    def _shared(self) -> bool:
        """Whether equal hosts have equal routes: no route passes through a third host or uses a NIC of another host."""
        if not (self._hosts.apart and self._has_equal_backplanes()):
            return False
        return self._hosts.closed or all(part.kind != "nic" for part in self._net.layout.every())

    def _has_equal_backplanes(self) -> bool:
        """Return whether switches at equal positions in hosts have equal backplanes, which depend on links to the core, too."""
        layout, attached = self._net.layout, self._attached
        if all(oversubscription(part) is None for scope in layout.scopes()[1:] for part in scope.parts):
            return True
        host_of_wire = np.repeat(np.arange(len(self._hosts.starts)), np.diff(attached.first))
        rates: dict[tuple[int, int], float | None] = {}
        for host, local in zip(host_of_wire.tolist(), attached.local.tolist(), strict=True):
            rate = self._transfers.backplanes.rate(layout.name(int(self._hosts.starts[host]) + local))
            if rates.setdefault((int(attached.ports[host]), local), rate) != rate:
                return False
        return True

    def _new_class(self, a: int, b: int, handling: TransferOptions) -> _PairClass | None:
        """Return the class of a pair; None if pairs with its code are not equivalent."""
        if not self._shared or not (a == b or self._hosts.alike(a, b)):
            return None
        hosts = int(self._hosts.owner[a]), int(self._hosts.owner[b])
        skeleton = self._skeletons.of(a, b) if hosts[0] != hosts[1] or hosts[0] < 0 else None
        pattern = None if skeleton is None else self._patterns.get((handling, skeleton.key))
        if pattern is not None and skeleton is not None:
            return self._moved(pattern, skeleton, hosts)
        source, target = self._net.layout.name(a), self._net.layout.name(b)
        route = self._routes.route(source, target)
        if any(link.routing == "ecmp" for link in (*route.links, *(link for link, _ in route.shares))):
            return None
        shape, numbers = self._shape(source, target, route, handling)
        pair_class = _PairClass(shape, tuple(self._relative(number, *hosts) for number in numbers))
        if skeleton is not None:
            places = tuple(self._skeletons.place(number, skeleton.layers, hosts) for number in numbers)
            self._patterns[handling, skeleton.key] = _Pattern(pair_class, places)
        return pair_class

    def _moved(self, pattern: _Pattern, skeleton: Skeleton, hosts: tuple[int, int]) -> _PairClass:
        """Return the class of a pattern over the switches of another skeleton."""
        capacities = [
            relative if place is None else self._relative(self._skeletons.number(place, skeleton.layers, hosts), *hosts)
            for relative, place in zip(pattern.pair_class.capacities, pattern.places, strict=True)
        ]
        return _PairClass(pattern.pair_class.shape, tuple(capacities))

    def _single(self, a: int, b: int, handling: TransferOptions) -> _PairClass:
        source, target = self._net.layout.name(a), self._net.layout.name(b)
        shape, numbers = self._shape(source, target, self._routes.route(source, target), handling)
        return _PairClass(shape, tuple((ABSOLUTE, number, 0) for number in numbers))

    def _shape(self, source: str, target: str, route: Route, handling: TransferOptions) -> tuple[int, list[int]]:
        """Return the index of the shape of a route, and the numbers of its capacities."""
        links = [link for link, _ in route.shares] or list(route.links)
        ends = (end for link in links for end in (link.source, link.target))
        stops = list(dict.fromkeys([source, *(link.target for link in route.links), *ends]))
        index_of = {name: index for index, name in enumerate(stops)}
        signature = (
            handling,
            tuple(
                (id(spot.part.model) if (spot := self._net.layout.find(name)) else 0, self._transfers.backplanes.rate(name))
                for name in stops
            ),
            tuple((index_of[link.source], index_of[link.target], id(link.model), link.name, link.count) for link in links),
            tuple(part for _, part in route.shares),
            tuple(index_of[link.target] for link in route.links),
        )
        shape = self._shape_indexes.get(signature)
        if shape is None:
            cost = self._transfers.cost(source, target, 1.0, handling)
            location_of = {link.capacity: ("link", index, "") for index, link in enumerate(links)}
            location_of |= {link.both: ("both", index, "") for index, link in enumerate(links) if link.both}
            for index, stop in enumerate(stops):
                part = spot.part if (spot := self._net.layout.find(stop)) is not None else None
                location_of |= {f"{stop}.{kind}": ("device", index, kind) for kind in (() if part is None else kinds_of(part))}
            shape = self._shape_indexes[signature] = len(self._shapes)
            self._shapes.append(_Shape(source, target, handling, tuple(location_of[name] for name, _ in cost.demand.amounts)))
        numbers = []
        for holder, index, kind in self._shapes[shape].locations:
            if holder == "device":
                numbers.append(self.numbering.device(stops[index], kind))
            else:
                layout, prefix, wire, slot = self._net.wire_of[links[index].capacity if holder == "link" else links[index].both]
                numbers.append(self.numbering.wire(prefix, layout, wire, slot))
        return shape, numbers

    @cached_property
    def _host_capacities(self) -> Ints:
        """For each host the number of its first capacity."""
        table = self.numbering.table(self._net.layout)
        part = self._hosts.part_of_host
        starts, each = np.array(table.starts, np.int64), np.array(table.each, np.int64)  # count
        sizes = np.array([part.each for part in self._net.layout.parts], np.int64)
        first_devices = np.array([part.start for part in self._net.layout.parts], np.int64)  # count
        numbers: Ints = starts[part] + (self._hosts.starts - first_devices[part]) // sizes[part] * each[part]
        return numbers.astype(np.int32)

    @cached_property
    def _row_of_wire(self) -> Ints:
        """For each wire of the outermost scope its row in `HostWires`; -1 within the core."""
        rows = np.full(len(self._net.layout.wires), -1, np.int64)
        attached = self._attached
        rows[attached.wire] = np.arange(len(attached.wire))
        return rows

    @property
    def _attached(self) -> HostWires:
        attached = self._hosts.attached
        if attached is None:
            raise ValueError("hosts are linked to hosts")
        return attached

    def _relative(self, number: int, source_host: int, target_host: int) -> _Relative:
        """Return a capacity number relative to its host, which holds for all hosts of the class."""
        table = self.numbering.table(self._net.layout)
        if number < table.wires:
            for host, base in ((source_host, FROM), (target_host, TO)):
                if host >= 0:
                    part = int(self._hosts.part_of_host[host])
                    if 0 <= number - int(self._host_capacities[host]) < table.each[part]:
                        return base, number - int(self._host_capacities[host]), 0
            return ABSOLUTE, number, 0
        wire, slot = divmod(number - table.wires, 3)
        row, attached = int(self._row_of_wire[wire]), self._attached
        for host, base in ((source_host, OUT), (target_host, IN)):
            if host >= 0 and attached.first[host] <= row < attached.first[host + 1]:
                direction = slot if slot == BOTH or attached.out[row] else 1 - slot
                return base, row - int(attached.first[host]), direction
        return ABSOLUTE, number, 0

    def _filled(self, a: Ints, b: Ints, classes: Sequence[_PairClass], class_of_pair: Ints) -> _PairColumns:
        """Return the columns of all pairs, computed together for the classes whose capacities have the same bases."""
        classes_by_bases: dict[tuple[int, ...], list[int]] = {}
        for index, pair_class in enumerate(classes):
            classes_by_bases.setdefault(tuple(base for base, _, _ in pair_class.capacities), []).append(index)
        row_counts = np.array([len(pair_class.capacities) for pair_class in classes], np.int64)
        first = np.concatenate([[0], np.cumsum(row_counts[class_of_pair])])
        capacity = np.empty(int(first[-1]), np.int32)
        for bases, members in classes_by_bases.items():
            member_of_class = np.full(len(classes), -1, np.int32)
            member_of_class[members] = np.arange(len(members))
            pairs = np.flatnonzero(member_of_class[class_of_pair] >= 0)
            member, start, ends = member_of_class[class_of_pair[pairs]], first[pairs], (a[pairs], b[pairs])
            relative = np.array([classes[index].capacities for index in members], np.int32).reshape(len(members), len(bases), 3)
            for row, (base, (offset, direction)) in enumerate(zip(bases, relative[:, :, 1:].transpose(1, 2, 0), strict=True)):
                hosts = self._hosts.owner[ends[0 if base in (FROM, OUT) else 1]]
                capacity[start + row] = self._absolute(base, offset[member], direction[member], hosts)
        route, first_pairs = _renumbered(np.array([pair_class.shape for pair_class in classes], np.int64)[class_of_pair])
        routes = [self._shapes[classes[index].shape] for index in class_of_pair[first_pairs].tolist()]
        return _PairColumns(route, routes, first, capacity)

    def _absolute(self, base: int, offset: Ints, direction: Ints, hosts: Ints) -> Ints:
        """Return the capacity numbers of relative numbers of one base; the inverse of `_relative`."""
        if base == ABSOLUTE:
            return offset
        numbers: Ints
        if base in (FROM, TO):
            numbers = self._host_capacities[hosts] + offset
        else:
            attached, rows = self._attached, self._attached.first[hosts] + offset
            slots = np.where((direction == BOTH) | attached.out[rows], direction, 1 - direction)
            numbers = self.numbering.table(self._net.layout).wires + 3 * attached.wire[rows] + slots
        return numbers


def _sized(columns: _PairColumns, size: float | Floats) -> tuple[Ints, tuple[TransferSample, ...]]:
    """Return for each pair the index of its (route, size), and a sample of each, in the order of their first pairs."""
    sizes = np.atleast_1d(size)
    if len(sizes) == 0 or bool((sizes == sizes[0]).all()):
        same_size = float(sizes[0]) if len(sizes) else 0.0
        return columns.route, tuple([TransferSample(route.a, route.b, same_size, route.handling) for route in columns.routes])
    different, size_index = np.unique(sizes, return_inverse=True)
    index, first = _renumbered(columns.route * len(different) + size_index.ravel())
    found = zip([columns.routes[route] for route in columns.route[first].tolist()], sizes[first].tolist(), strict=True)
    return index, tuple([TransferSample(route.a, route.b, pair_size, route.handling) for route, pair_size in found])


def _renumbered(codes: Ints) -> tuple[Ints, Ints]:
    """Return the codes renumbered from 0 in the order of their first rows, and these first rows.

    >>> _renumbered(np.array([7, 3, 7, 5]))
    (array([0, 1, 0, 2]), array([0, 1, 3]))
    """
    count = len(codes)
    if int(codes.max(initial=0)) > _SPAN * count:
        _, codes = np.unique(codes, return_inverse=True)
    first = np.full(int(codes.max(initial=-1)) + 1, count)
    first[codes[::-1]] = np.arange(count - 1, -1, -1)  # reversed: numpy keeps the last assignment
    firsts = np.sort(first[first < count])
    number = np.empty(len(first), np.int64)
    number[codes[firsts]] = np.arange(len(firsts))
    return number[codes], firsts
