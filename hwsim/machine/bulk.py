"""Very many transfers at once: the pairs that are alike are found by their numbers, and worked out once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from itertools import permutations
from typing import Final

import numpy as np

from hwsim.demand import Cost
from hwsim.machine.attached import Attached
from hwsim.machine.capacities import oversubscription
from hwsim.machine.handling import Handling
from hwsim.machine.layout import Part
from hwsim.machine.net import BOTH
from hwsim.machine.numbering import Draws, Floats, Numbering
from hwsim.machine.placed import UnknownName
from hwsim.machine.routes import Route
from hwsim.machine.skeleton import Place, Skeleton, Skeletons
from hwsim.machine.transfer import Transfers
from hwsim.machine.wires import Ints
from hwsim.machine.wiring import Ends
from hwsim.records import dataclass

_MOST: Final = 1 << 62
_MANY_COSTS: Final = 20_000  # that are not worth keeping
ABSOLUTE, FROM, TO, OUT, IN = range(5)  # what a row's number is relative to: nothing, either host, either host's wire


@dataclass(frozen=True, slots=True)
class _Kind:
    """Pairs that are alike. shape: the number of what they cost. rows: of each capacity what its number is relative to,
    the number, and of a wire of a host which of the three."""

    shape: int
    rows: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class _Shape:
    """Cost of a route, without names. places: for each capacity, which device or link on the route has it."""

    a: str
    b: str
    places: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Pairs of one skeleton: one kind of them, and by row where on the way outside the hosts the capacity stands."""

    kind: _Kind
    places: tuple[Place | None, ...]


class Bulk:
    """Behind `Machine.draws`."""

    def __init__(self, transfers: Transfers) -> None:
        self._routes, self._transfers = transfers.routes, transfers
        self._net, self._hosts = self._routes.net, self._routes.hosts
        self._ends, self.numbering = Ends(self._net.layout), Numbering(self._net)
        self._skeletons = Skeletons(self._net.layout, self._hosts, self.numbering, transfers.backplanes)
        self._patterns: dict[tuple[Handling, Hashable], _Pattern] = {}
        self._kinds: dict[tuple[Handling, tuple[int, ...]], _Kind | None] = {}
        self._shapes: dict[object, int] = {}
        self._known: list[_Shape] = []
        self._insides: dict[tuple[int, tuple[int, ...]], bool] = {}  # places in hosts, and whether traffic between them is alike
        self._latest: tuple[Sequence[str], Ints] = (), np.empty(0, np.int32)  # names that were asked for, and their numbers

    def part_of(self, name: str) -> Part | None:
        """The part of a device; None if the name is no device's."""
        return self._ends.part_of(name)

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

    def draws(self, names: Sequence[str], sources: Ints, targets: Ints, size: float | Floats, handling: Handling) -> Draws:
        """See `Machine.draws`; sources, targets: places among the names."""
        if handling.by == "cpu":
            raise ValueError("copies by a core are for `transfer`")
        numbers = self._numbers(names)
        a, b = numbers[sources], numbers[targets]
        some = size if isinstance(size, float | int) else 1.0
        keys = self._keys(a, b)
        _, first, which = np.unique(_codes(keys), return_index=True, return_inverse=True)
        order = np.argsort(which, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(which, minlength=len(first)))]).tolist()
        kinds: list[tuple[Ints, _Kind]] = []
        for at in np.argsort(first, kind="stable").tolist():
            pairs, example = order[bounds[at] : bounds[at + 1]], int(first[at])
            key = handling, tuple(int(column[example]) for column in keys)
            if key not in self._kinds:
                ends = names[int(sources[example])], names[int(targets[example])]
                self._kinds[key] = self._kind(*ends, int(a[example]), int(b[example]), some, handling)
            kind = self._kinds[key]
            if kind is not None:
                kinds.append((pairs, kind))
                continue
            kinds += [
                (np.array([pair]), self._single(names[int(sources[pair])], names[int(targets[pair])], some, handling))
                for pair in pairs.tolist()
            ]
        return self._filled(a, b, kinds, size, handling)

    def _numbers(self, names: Sequence[str]) -> Ints:
        if isinstance(names, tuple) and names is self._latest[0]:
            return self._latest[1]
        numbers = self._ends.numbers(names)
        missing = np.flatnonzero(numbers < 0)
        if len(missing):
            raise UnknownName(f"there is no device '{names[int(missing[0])]}'", "groups of sockets are for `transfer`")
        self._latest = names, numbers
        return numbers

    def _keys(self, a: Ints, b: Ints) -> tuple[Ints, ...]:
        """Columns that are equal for pairs that are alike."""
        attached = self._hosts.attached
        if attached is None or not self._shared:
            return a, b
        h, k = self._hosts.owner[a], self._hosts.owner[b]
        same = (h == k) & (h >= 0)
        start = self._hosts.starts
        inner_a, inner_b = (np.where(at >= 0, end - start[at] if len(start) else 0, end) for end, at in ((a, h), (b, k)))
        kind_h, kind_k = ((np.where(at >= 0, attached.kind[at], -1) if len(start) else at) for at in (h, k))
        ports = np.where(same, attached.ports[h] if len(start) else 0, 0)
        return same.astype(np.int64), np.where(same, ports, kind_h), inner_a, np.where(same, 0, kind_k), inner_b

    @cached_property
    def _shared(self) -> bool:
        """Whether equal hosts have equal ways: none passes through a third, and no card of another computer is near."""
        if not (self._hosts.apart and self._backplanes_alike()):
            return False
        return self._hosts.closed or all(part.kind != "nic" for part in self._net.layout.every())

    def _backplanes_alike(self) -> bool:
        """Whether switches at equal places of hosts pass on as much: it follows from the links that lead out there, too."""
        layout, attached = self._net.layout, self._attached
        if all(oversubscription(part) is None for scope in layout.scopes()[1:] for part in scope.parts):
            return True
        host = np.repeat(np.arange(len(self._hosts.starts)), np.diff(attached.first))
        rates: dict[tuple[int, int], float | None] = {}
        for at, local in zip(host.tolist(), attached.local.tolist(), strict=True):
            rate = self._transfers.backplanes.rate(layout.name(int(self._hosts.starts[at]) + local))
            if rates.setdefault((int(attached.ports[at]), local), rate) != rate:
                return False
        return True

    def _kind(self, source: str, target: str, a: int, b: int, size: float, handling: Handling) -> _Kind | None:
        """None where such pairs are to be worked out one by one."""
        if not self._shared or not (a == b or self._hosts.alike(a, b)):
            return None
        h, k = int(self._hosts.owner[a]), int(self._hosts.owner[b])
        skeleton = self._skeletons.of(a, b) if h != k or h < 0 else None
        pattern = None if skeleton is None else self._patterns.get((handling, skeleton.key))
        if pattern is not None and skeleton is not None:
            return self._placed(pattern, skeleton, (h, k))
        way = self._routes.route(source, target)
        if any(link.routing == "ecmp" for link in (*way.links, *(link for link, _ in way.shares))):
            return None
        shape, numbers = self._shape(source, target, way, size, handling)
        kind = _Kind(shape, tuple(self._relative(number, h, k) for number in numbers))
        if skeleton is not None:
            places = tuple(self._skeletons.place(number, skeleton.layers, (h, k)) for number in numbers)
            self._patterns[handling, skeleton.key] = _Pattern(kind, places)
        return kind

    def _placed(self, pattern: _Pattern, skeleton: Skeleton, hosts: tuple[int, int]) -> _Kind:
        """The same over other switches."""
        rows = [
            row if place is None else self._relative(self._skeletons.number(place, skeleton.layers, hosts), *hosts)
            for row, place in zip(pattern.kind.rows, pattern.places, strict=True)
        ]
        return _Kind(pattern.kind.shape, tuple(rows))

    def _single(self, source: str, target: str, size: float, handling: Handling) -> _Kind:
        shape, numbers = self._shape(source, target, self._routes.route(source, target), size, handling)
        return _Kind(shape, tuple((ABSOLUTE, number, 0) for number in numbers))

    def _shape(self, source: str, target: str, way: Route, size: float, handling: Handling) -> tuple[int, list[int]]:
        """Cost of a route, and the numbers of the capacities that it draws from."""
        links = [link for link, _ in way.shares] or list(way.links)
        ends = (end for link in links for end in (link.source, link.target))
        stops = list(dict.fromkeys([source, *(link.target for link in way.links), *ends]))
        place = {name: at for at, name in enumerate(stops)}
        signature = (
            handling,
            tuple(
                (id(spot.part.model) if (spot := self._net.layout.find(name)) else 0, self._transfers.backplanes.rate(name))
                for name in stops
            ),
            tuple((place[link.source], place[link.target], id(link.model), link.name, link.count) for link in links),
            tuple(part for _, part in way.shares),
            tuple(place[link.target] for link in way.links),
        )
        shape = self._shapes.get(signature)
        if shape is None:
            cost = self._transfers.cost(source, target, size or 1.0, handling)
            of = {link.capacity: ("link", at, "") for at, link in enumerate(links)}
            of |= {link.both: ("both", at, "") for at, link in enumerate(links) if link.both}
            places = []
            for name, _ in cost.demand.amounts:
                device, _, suffix = name.rpartition(".")
                places.append(of[name] if name in of else ("device", place[device], suffix))
            shape = self._shapes[signature] = len(self._known)
            self._known.append(_Shape(source, target, tuple(places)))
        numbers = []
        for holder, at, suffix in self._known[shape].places:
            if holder == "device":
                numbers.append(self.numbering.device(stops[at], suffix))
            else:
                layout, prefix, wire, slot = self._net.wire_of[links[at].capacity if holder == "link" else links[at].both]
                numbers.append(self.numbering.wire(prefix, layout, wire, slot))
        return shape, numbers

    @cached_property
    def _slots(self) -> Ints:
        """By host the first number of its capacities."""
        table = self.numbering.table(self._net.layout)
        part = self._hosts.part_of_host
        starts, each = np.array(table.starts, np.int64), np.array(table.each, np.int64)  # count
        sizes = np.array([each.each for each in self._net.layout.parts], np.int64)
        firsts = np.array([each.start for each in self._net.layout.parts], np.int64)  # count
        slots: Ints = starts[part] + (self._hosts.starts - firsts[part]) // sizes[part] * each[part]
        return slots.astype(np.int32)

    @cached_property
    def _row_of_wire(self) -> Ints:
        """By wire of the outermost scope its row in `Attached`, -1 within the core."""
        found = np.full(len(self._net.layout.wires), -1, np.int64)
        attached = self._attached
        found[attached.wire] = np.arange(len(attached.wire))
        return found

    @property
    def _attached(self) -> Attached:
        found = self._hosts.attached
        if found is None:
            raise ValueError("hosts are linked to hosts")
        return found

    def _relative(self, number: int, h: int, k: int) -> tuple[int, int, int]:
        """A capacity's number relative to its host, which holds for other hosts like these."""
        table = self.numbering.table(self._net.layout)
        if number < table.wires:
            for host, relative_to in ((h, FROM), (k, TO)):
                if host >= 0:
                    part = int(self._hosts.part_of_host[host])
                    if 0 <= number - int(self._slots[host]) < table.each[part]:
                        return relative_to, number - int(self._slots[host]), 0
            return ABSOLUTE, number, 0
        wire, slot = divmod(number - table.wires, 3)
        row, attached = int(self._row_of_wire[wire]), self._attached
        for host, relative_to in ((h, OUT), (k, IN)):
            if host >= 0 and attached.first[host] <= row < attached.first[host + 1]:
                way = slot if slot == BOTH or attached.out[row] else 1 - slot
                return relative_to, row - int(attached.first[host]), way
        return ABSOLUTE, number, 0

    def _filled(self, a: Ints, b: Ints, kinds: Sequence[tuple[Ints, _Kind]], size: float | Floats, handling: Handling) -> Draws:
        """The columns."""
        shape, many = np.zeros(len(a), np.int64), np.zeros(len(a), np.int64)
        order: dict[int, int] = {}
        forms: dict[tuple[int, ...], list[tuple[Ints, _Kind]]] = {}  # by what their rows are relative to
        for pairs, kind in sorted(kinds, key=lambda each: int(each[0][0])):
            order.setdefault(kind.shape, len(order))
            forms.setdefault(tuple(relative_to for relative_to, _, _ in kind.rows), []).append((pairs, kind))
        columns = [(form, some, *_joined([pairs for pairs, _ in some])) for form, some in forms.items()]
        for form, some, pairs, which in columns:
            shape[pairs] = np.array([order[kind.shape] for _, kind in some])[which]
            many[pairs] = len(form)
        nothing = np.asarray(size) <= 0
        if nothing.any():
            many = np.where(nothing, 0, many)
        first = np.concatenate([[0], np.cumsum(many)])
        capacity = np.empty(int(first[-1]), np.int32)
        for form, some, pairs, which in columns if len(capacity) else ():
            if nothing.any():
                pairs, which = pairs[~nothing[pairs]], which[~nothing[pairs]]
            rows = np.array([kind.rows for _, kind in some], np.int32).reshape(len(some), len(form), 3).transpose(1, 2, 0).copy()
            start, hosts = first[pairs], [self._hosts.owner[ends[pairs]] for ends in (a, b)]
            for at, (relative_to, (_, number, slot)) in enumerate(zip(form, rows, strict=True)):
                host = hosts[0 if relative_to in (FROM, OUT) else 1]
                capacity[start + at] = self._number(relative_to, number[which], slot, which, host)
        shape, costs = self._priced(shape, list(order), size, handling)
        return Draws(shape, costs, first, capacity)

    def _priced(
        self, shape: Ints, route_of_shape: Sequence[int], size: float | Floats, handling: Handling
    ) -> tuple[Ints, tuple[Cost, ...]]:
        """Per pair the place of its cost, and the costs in the order of their first pairs. route_of_shape: routes by shape."""
        routes = [self._known[each] for each in route_of_shape]
        if isinstance(size, float | int):
            return shape, tuple(self._transfers.cost(each.a, each.b, size, handling) for each in routes)
        sizes, which = np.unique(size, return_inverse=True)
        _, first, kind = np.unique(shape * len(sizes) + which.ravel(), return_index=True, return_inverse=True)
        place = np.empty(len(first), np.int64)
        order = np.argsort(first, kind="stable")
        place[order] = np.arange(len(first))
        price = self._transfers.cost if len(first) < _MANY_COSTS else self._transfers.once
        costs = [
            price(routes[route].a, routes[route].b, each, handling)
            for route, each in zip(shape[first[order]].tolist(), size[first[order]].tolist(), strict=True)
        ]
        return place[kind.ravel()], tuple(costs)

    def _number(self, relative_to: int, number: Ints, slot: Ints, which: Ints, hosts: Ints) -> Ints:
        """Inverse of `_relative`, for rows that are relative to the same host or wire; slot: by kind; which: by row its kind."""
        if relative_to == ABSOLUTE:
            return number
        if relative_to in (FROM, TO):
            numbers: Ints = self._slots[hosts] + number
            return numbers
        attached, slot = self._attached, slot[which]
        rows = attached.first[hosts] + number
        ways = np.where((slot == BOTH) | attached.out[rows], slot, 1 - slot)
        wires: Ints = self.numbering.table(self._net.layout).wires + 3 * attached.wire[rows] + ways
        return wires


def _joined(columns: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Columns concatenated, and for each row the index of its column."""
    return np.concatenate(columns), np.repeat(np.arange(len(columns)), [len(each) for each in columns])


def _codes(columns: Sequence[Ints]) -> Ints:
    """A number for each row, equal where all columns are."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        low = int(column.min(initial=0))
        span = int(column.max(initial=0)) - low + 1
        if int(codes.max(initial=0)) + 1 > _MOST // span:
            _, codes = np.unique(codes, return_inverse=True)
        codes = codes * span + (column - low)
    return codes
