"""Very many transfers at once: the pairs that are alike are found by their numbers, and worked out once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from itertools import permutations
from typing import Final, NamedTuple

import numpy as np

from hwsim.demand import Cost
from hwsim.machine.attached import Attached
from hwsim.machine.capacities import oversubscription
from hwsim.machine.handling import Handling
from hwsim.machine.layout import Part
from hwsim.machine.net import BOTH
from hwsim.machine.numbering import Draws, Floats, Handlings, Numbering, Sample, kinds_of
from hwsim.machine.placed import UnknownName
from hwsim.machine.routes import Route
from hwsim.machine.skeleton import Place, Skeleton, Skeletons
from hwsim.machine.transfer import Transfers
from hwsim.machine.wires import Ints
from hwsim.machine.wiring import Ends
from hwsim.records import dataclass

_SPAN: Final = 8  # numbers for each row, up to which a table of all of them is quicker than sorting
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
    handling: Handling
    places: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Pairs of one skeleton: one kind of them, and by row where on the way outside the hosts the capacity stands."""

    kind: _Kind
    places: tuple[Place | None, ...]


class _Rows(NamedTuple):
    """Capacities of pairs, whatever their sizes.

    route: by pair the place of its route among the routes, which are in the order of their first pairs.  first, capacity: see
    `Draws`.
    """

    route: Ints
    routes: list[_Shape]
    first: Ints
    capacity: Ints


class Bulk:
    """Behind `Machine.draws`."""

    def __init__(self, transfers: Transfers) -> None:
        self._routes, self._transfers = transfers.routes, transfers
        self._net, self._hosts = self._routes.net, self._routes.hosts
        self._ends, self.numbering = Ends(self._net.layout), Numbering(self._net)
        self._skeletons = Skeletons(self._net.layout, self._hosts, self.numbering, transfers.backplanes)
        self._patterns: dict[tuple[Handling, Hashable], _Pattern] = {}
        self._kinds: dict[tuple[Handling, int], _Kind | None] = {}  # by code
        self._shapes: dict[object, int] = {}
        self._known: list[_Shape] = []
        self._insides: dict[tuple[int, tuple[int, ...]], bool] = {}  # places in hosts, and whether traffic between them is alike
        self._latest: tuple[Sequence[str], Ints] = (), np.empty(0, np.int32)  # names that were asked for, and their numbers
        # Pairs that were asked for last: other sizes are next.
        self._drawn: tuple[Sequence[Handling], tuple[Ints, Ints, Ints], _Rows] | None = None

    def part_of(self, name: str) -> Part | None:
        """The part of a device; None if the name is no device's."""
        spot = self._net.layout.find(name)
        return None if spot is None or spot.part.child is not None else spot.part

    def of_each_part(self, names: Sequence[str]) -> list[str]:
        """The first of the names of each part, and every name that is no device's once."""
        part = self._ends.parts[self._ends.numbers(names)]  # of the last one, -1, where it is no device
        first = np.full(int(part.max(initial=0)) + 1, -1)
        first[part[::-1]] = np.arange(len(names))[::-1]
        place = {names[at]: at for at in first[first >= 0].tolist() if part[at] > 0}
        for at in np.flatnonzero(part == 0).tolist():
            place.setdefault(names[at], at)
        return sorted(place, key=place.__getitem__)

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

    def draws(self, names: Sequence[str], sources: Ints, targets: Ints, size: float | Floats, handling: Handlings) -> Draws:
        """See `Machine.draws_among`."""
        hows, how = ((handling,), np.zeros(len(sources), np.int64)) if isinstance(handling, Handling) else handling
        if any(each.by == "cpu" for each in hows):
            raise ValueError("copies by a core are for `transfer`")
        a, b = self._numbered(names, sources, targets)
        last = self._drawn
        if last is not None and last[0] == hows and all(map(np.array_equal, last[1], (a, b, how))):
            rows = last[2]
        else:
            rows = self._rows(a, b, hows, how)
            self._drawn = hows, (a, b, how), rows
        first, capacity = rows.first, rows.capacity
        nothing = np.broadcast_to(np.asarray(size) <= 0, a.shape)
        if nothing.any():
            many = np.diff(first)
            capacity = capacity[np.repeat(~nothing, many)]
            first = np.concatenate([[0], np.cumsum(np.where(nothing, 0, many))])
        shape, kinds = _sized(rows, size)
        return Draws(shape, kinds, first, capacity, self.priced)

    def priced(self, kinds: Sequence[Sample], times: float) -> tuple[Cost, ...]:
        """The costs of transfers of so many times their bytes."""
        price = self._transfers.cost if len(kinds) < _MANY_COSTS else self._transfers.once
        return tuple([price(a, b, times * size, handling) for a, b, size, handling in kinds])

    def _rows(self, a: Ints, b: Ints, hows: Sequence[Handling], how: Ints) -> _Rows:
        """The capacities of each pair."""
        owner = self._hosts.owner[a]
        same = (owner == self._hosts.owner[b]) & (owner >= 0)
        codes = np.where(same, self._code(a, b, same=True), self._code(a, b, same=False))
        which, firsts = _in_turn(codes * len(hows) + how)
        kind_of_code = [
            self._kind_of(code, int(a[at]), int(b[at]), hows[by])
            for code, by, at in zip(codes[firsts].tolist(), how[firsts].tolist(), firsts.tolist(), strict=True)
        ]
        kinds = [kind for kind in kind_of_code if kind is not None]
        if len(kinds) < len(kind_of_code):
            place = np.cumsum([kind is not None for kind in kind_of_code]) - 1
            alone = np.flatnonzero(np.array([kind is None for kind in kind_of_code])[which])
            which = place[which]
            which[alone] = np.arange(len(kinds), len(kinds) + len(alone))
            kinds += [self._single(int(a[pair]), int(b[pair]), hows[how[pair]]) for pair in alone.tolist()]
        return self._filled(a, b, kinds, which)

    def _kind_of(self, code: int, a: int, b: int, handling: Handling) -> _Kind | None:
        key = handling, code
        if key not in self._kinds:
            self._kinds[key] = self._kind(a, b, handling)
        return self._kinds[key]

    def _numbered(self, names: Sequence[str], sources: Ints, targets: Ints) -> tuple[Ints, Ints]:
        """Numbers of the ends of each pair; of a group of sockets, of the one nearest to the other end."""
        if not isinstance(names, tuple) or names is not self._latest[0]:
            self._latest = names, self._ends.numbers(names)
        numbers = self._latest[1]
        a, b = numbers[sources], numbers[targets]
        for pair in np.flatnonzero((a < 0) | (b < 0)).tolist():
            ends = self._transfers.ends(names[int(sources[pair])], names[int(targets[pair])])
            a[pair], b[pair] = self._ends.numbers(ends)
            if a[pair] < 0:
                raise UnknownName(f"copies within the sockets '{ends[0]}' are for `transfer`")
        return a, b

    def _code(self, a: Ints, b: Ints, *, same: bool) -> Ints:
        """A number that is equal for pairs that are alike. same: they are in one host."""
        place, count = self._places[same]
        code: Ints = 2 * (place[a] * count + place[b]) + same
        return code

    @cached_property
    def _places(self) -> tuple[tuple[Ints, int], tuple[Ints, int]]:
        """By device a number, and how many there are: equal at equal places of hosts that are linked alike; and of hosts with
        wires at equal places. Devices outside of hosts have their own."""
        owner, starts, number = self._hosts.owner, self._hosts.starts, np.arange(len(self._hosts.owner))
        attached = self._hosts.attached
        if attached is None or not self._shared or not len(starts):
            return (number, len(number)), (number, len(number))
        within = number - starts[owner]
        most = int(within[owner >= 0].max()) + 1
        numbers = []
        for alike in (attached.kind, attached.ports):
            outside = (int(alike.max()) + 1) * most
            numbers.append((np.where(owner >= 0, alike[owner] * most + within, outside + number), outside + len(number)))
        return numbers[0], numbers[1]

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

    def _kind(self, a: int, b: int, handling: Handling) -> _Kind | None:
        """None where such pairs are to be worked out one by one."""
        if not self._shared or not (a == b or self._hosts.alike(a, b)):
            return None
        h, k = int(self._hosts.owner[a]), int(self._hosts.owner[b])
        skeleton = self._skeletons.of(a, b) if h != k or h < 0 else None
        pattern = None if skeleton is None else self._patterns.get((handling, skeleton.key))
        if pattern is not None and skeleton is not None:
            return self._placed(pattern, skeleton, (h, k))
        source, target = self._net.layout.name(a), self._net.layout.name(b)
        way = self._routes.route(source, target)
        if any(link.routing == "ecmp" for link in (*way.links, *(link for link, _ in way.shares))):
            return None
        shape, numbers = self._shape(source, target, way, handling)
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

    def _single(self, a: int, b: int, handling: Handling) -> _Kind:
        source, target = self._net.layout.name(a), self._net.layout.name(b)
        shape, numbers = self._shape(source, target, self._routes.route(source, target), handling)
        return _Kind(shape, tuple((ABSOLUTE, number, 0) for number in numbers))

    def _shape(self, source: str, target: str, way: Route, handling: Handling) -> tuple[int, list[int]]:
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
            cost = self._transfers.cost(source, target, 1.0, handling)
            of = {link.capacity: ("link", at, "") for at, link in enumerate(links)}
            of |= {link.both: ("both", at, "") for at, link in enumerate(links) if link.both}
            for at, stop in enumerate(stops):
                part = spot.part if (spot := self._net.layout.find(stop)) is not None else None
                of |= {f"{stop}.{kind}": ("device", at, kind) for kind in (() if part is None else kinds_of(part))}
            places = [of[name] for name, _ in cost.demand.amounts]
            shape = self._shapes[signature] = len(self._known)
            self._known.append(_Shape(source, target, handling, tuple(places)))
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

    def _filled(self, a: Ints, b: Ints, kinds: Sequence[_Kind], which: Ints) -> _Rows:
        """The columns. which: by pair its kind."""
        forms: dict[tuple[int, ...], list[int]] = {}  # kinds by what their rows are relative to
        for at, kind in enumerate(kinds):
            forms.setdefault(tuple(relative_to for relative_to, _, _ in kind.rows), []).append(at)
        first = np.concatenate([[0], np.cumsum(np.array([len(kind.rows) for kind in kinds], np.int64)[which])])
        capacity = np.empty(int(first[-1]), np.int32)
        for form, some in forms.items():
            place = np.full(len(kinds), -1, np.int32)
            place[some] = np.arange(len(some))
            pairs = np.flatnonzero(place[which] >= 0)
            of_pair, start, hosts = place[which[pairs]], first[pairs], [self._hosts.owner[ends[pairs]] for ends in (a, b)]
            rows = np.array([kinds[each].rows for each in some], np.int32).reshape(len(some), len(form), 3)
            for row, (relative_to, (number, slot)) in enumerate(zip(form, rows[:, :, 1:].transpose(1, 2, 0), strict=True)):
                host = hosts[0 if relative_to in (FROM, OUT) else 1]
                capacity[start + row] = self._number(relative_to, number[of_pair], slot, of_pair, host)
        route, firsts = _in_turn(np.array([kind.shape for kind in kinds], np.int64)[which])
        return _Rows(route, [self._known[kinds[each].shape] for each in which[firsts].tolist()], first, capacity)

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


def _sized(rows: _Rows, size: float | Floats) -> tuple[Ints, tuple[Sample, ...]]:
    """Per pair the place of its route and size among those that differ, and these in the order of their first pairs."""
    sizes = np.atleast_1d(size)
    if len(sizes) == 0 or bool((sizes == sizes[0]).all()):
        one = float(sizes[0]) if len(sizes) else 0.0
        return rows.route, tuple([Sample(route.a, route.b, one, route.handling) for route in rows.routes])
    different, which = np.unique(sizes, return_inverse=True)
    place, first = _in_turn(rows.route * len(different) + which.ravel())
    found = [(rows.routes[route], each) for route, each in zip(rows.route[first].tolist(), sizes[first].tolist(), strict=True)]
    return place, tuple([Sample(route.a, route.b, each, route.handling) for route, each in found])


def _in_turn(codes: Ints) -> tuple[Ints, Ints]:
    """By row the number of its code, in the order of their first rows; and these rows.

    >>> _in_turn(np.array([7, 3, 7, 5]))
    (array([0, 1, 0, 2]), array([0, 1, 3]))
    """
    count = len(codes)
    if int(codes.max(initial=0)) > _SPAN * count:
        _, codes = np.unique(codes, return_inverse=True)
    first = np.full(int(codes.max(initial=-1)) + 1, count)
    first[codes[::-1]] = np.arange(count - 1, -1, -1)  # the last of equal places counts
    firsts = np.sort(first[first < count])
    number = np.empty(len(first), np.int64)
    number[codes[firsts]] = np.arange(len(firsts))
    return number[codes], firsts
