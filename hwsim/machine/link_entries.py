"""The `links:` of a machine file: which devices are connected, and whether their lanes and ports suffice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from hwsim import links
from hwsim.formats import natural
from hwsim.links import LinkKind
from hwsim.machine.classes import check_class, with_class_defaults
from hwsim.machine.contents import UnknownName, listed
from hwsim.machine.layout import Layout, LayoutPart
from hwsim.machine.names import NameIndex
from hwsim.machine.schema import LINK_KEYS, PART_KEYS, LinkEntry, topology_keys
from hwsim.machine.topologies import TOPOLOGIES, Edge, EdgeColumns, Topology
from hwsim.machine.wires import Bundle, Ints, pair_keys
from hwsim.origins import Origin
from hwsim.spec import Mistakes, Tree, Warning, decode, did_you_mean
from hwsim.spec.library import of_user

MAX_LINKS: Final = 2_000_000  # maximum links of one entry
_UNLIMITED: Final = 1 << 60
_MANY: Final = 64  # names above which the next call often has the same ones


def wire_all(
    layout: Layout, entries: Sequence[Tree], mistakes: Mistakes, warnings: list[Warning], *, ideal: bool = False
) -> None:
    """Add the wires of all entries to the layout; ideal: whether their machine states `class: ideal`."""
    names = NameIndex(layout)
    for tree in entries:
        kind = tree.get("kind")
        if kind is not None and isinstance(kind.value, str) and kind.value not in links.KINDS:
            mistakes.add(kind.place, f"unknown kind of link '{kind.value}'", did_you_mean(kind.value, links.KINDS))
            continue
        entry = decode(tree, LinkEntry, mistakes, ignore=dict(tree.items()))
        if entry is not None:
            others = topology_keys() if tree.get("topology") is not None else frozenset()
            ignore = LINK_KEYS | others | (PART_KEYS - {"count"})
            check_class(tree, entry.kind, mistakes)
            model = decode(
                with_class_defaults(tree, entry.kind, ideal=ideal), links.KINDS[entry.kind], mistakes, ignore=ignore, sourced=True
            )
            if model is not None:
                _as_on_other_hosts(model, tree)
                _wire(layout, names, tree, entry, model, mistakes, warnings)


def _as_on_other_hosts(model: LinkKind, tree: Tree) -> None:
    """Mark rates of the library's slots as defaults: they were measured on one host, and hosts differ."""
    if model.joins == "host":
        for key in ("efficiency", "fetches"):
            origin, node = model.sources.get(key), tree.get(key)
            if origin is not None and node is not None and origin.kind in ("fitted", "measured") and not of_user(node):
                object.__setattr__(model, "sources", {**model.sources, key: Origin("default", str(origin), known="device")})


def _wire(
    layout: Layout, names: NameIndex, tree: Tree, entry: LinkEntry, model: LinkKind, mistakes: Mistakes, warnings: list[Warning]
) -> None:
    try:
        edges = _edges(layout, names, tree, entry, mistakes)
    except UnknownName as error:
        key = "between" if entry.between is not None else "of"
        mistakes.add(tree.key_place(key), error.message, error.hint)
        return
    if not edges.a:
        return
    numbers = DeviceNumbers(layout)
    a, b, count = numbers.numbers(edges.a), numbers.numbers(edges.b), np.array(edges.counts, np.int32)
    name = entry.name or entry.kind
    wrong = np.flatnonzero((a < 0) | (b < 0))
    twice = _first_again(layout, name, a, b)
    if len(wrong) and (twice is None or wrong[0] <= twice):
        row = int(wrong[0])
        for end, number in ((edges.a[row], a[row]), (edges.b[row], b[row])):
            if number < 0:
                sockets = layout.find(end) is None
                message = f"{end} is {'several sockets' if sockets else 'a machine'}: expected a device"
                mistakes.add(
                    tree.place, message, f"name one of them, or {end}*" if sockets else f"name a device in it: {end}.NAME"
                )
        return
    itself = np.flatnonzero(a == b)
    if len(itself):
        mistakes.add(tree.key_place("between" if entry.of is None else "of"), f"{edges.a[itself[0]]} is linked to itself")
        return
    if twice is not None:
        message = f"{edges.a[twice]} and {edges.b[twice]} are linked twice by '{name}'"
        mistakes.add(tree.place, message, "give one of the links another `name:`")
        return
    if model.generation():
        for trained, wires in _trained(layout, name, model, a, b, tree, warnings):
            layout.wires.add(Bundle(name, trained, entry.routing, a[wires], b[wires], count[wires]))
    else:
        layout.wires.add(Bundle(name, model, entry.routing, a, b, count))
    if model.budget:
        _check_budget(layout, model.budget, (a, b, model.uses() * count.astype(np.int64)), tree, mistakes)


def _trained(
    layout: Layout, name: str, model: LinkKind, a: Ints, b: Ints, tree: Tree, warnings: list[Warning]
) -> Iterator[tuple[LinkKind, Ints | slice]]:
    """Yield the model at each generation that links run at (that of the slower end), and the wires that do."""
    wanted = model.generation()
    limits = _available(layout, model.trains)
    generations = np.minimum(np.minimum(limits[a], limits[b]), wanted)
    if int(generations.min()) == wanted:
        yield model, slice(None)
        return
    for gen in sorted(set(generations.tolist())):
        wires = np.flatnonzero(generations == gen)
        if gen < wanted:
            first = int(wires[0])
            end = layout.name(int(a[first] if limits[a[first]] == gen else b[first]))
            text = f"{name}: {end} has {model.called} {gen}, its slot {wanted}: the link runs at {gen}"
            warnings.append(Warning("older-pcie-card", text, tree.place))
        yield model.at(gen), wires


def _edges(layout: Layout, names: NameIndex, tree: Tree, entry: LinkEntry, mistakes: Mistakes) -> EdgeColumns:
    """Return the pairs that an entry connects, without duplicates; raise UnknownName."""
    if (entry.between is None) == (entry.topology is None):
        hint = "between: [cpu, gpu*]   or   topology: ring, of: gpu*"
        mistakes.add(tree.place, "expected either `between` or `topology`", hint)
    elif entry.between is not None:
        return _between(names, tree, entry, mistakes)
    elif entry.of is None:
        mistakes.add(tree.place, f"`topology: {entry.topology}` requires `of`: the parts that it connects", "of: gpu*")
    else:
        return _topology(layout, names, tree, entry, mistakes)
    return EdgeColumns([], [], [])


def _between(names: NameIndex, tree: Tree, entry: LinkEntry, mistakes: Mistakes) -> EdgeColumns:
    if entry.of is not None:
        mistakes.add(tree.key_place("of"), "`of` requires `topology`, got `between`", "omit `of`")
        return EdgeColumns([], [], [])
    a, b = (names.select(group) for group in entry.between or ())
    if entry.per is not None:
        if len(a) * entry.per != len(b):
            message = f"`per: {entry.per}` connects {len(a)} x {entry.per} = {len(a) * entry.per} devices, got {len(b)}"
            mistakes.add(tree.key_place("per"), message, f"{listed(a)} to {listed(b)}")
            return EdgeColumns([], [], [])
        return EdgeColumns.all_of([name for name in a for _ in range(entry.per)], b)
    if len(a) * len(b) > MAX_LINKS:
        mistakes.add(tree.key_place("between"), f"more than {MAX_LINKS} links", "put a switch in between, or use `per:`")
        return EdgeColumns([], [], [])
    if set(a).isdisjoint(b):
        return EdgeColumns.all_of([x for x in a for _ in b], b * len(a))
    pairs = {frozenset((x, y)): Edge(x, y) for x in a for y in b if x != y}
    if not pairs:
        mistakes.add(tree.key_place("between"), f"{listed(a)} is linked to itself")
    return EdgeColumns.of(list(pairs.values()))


def _topology(layout: Layout, names: NameIndex, tree: Tree, entry: LinkEntry, mistakes: Mistakes) -> EdgeColumns:
    place = tree.key_place("topology")
    kind = TOPOLOGIES.get(entry.topology or "")
    if kind is None:
        mistakes.add(place, f"unknown topology '{entry.topology}'", did_you_mean(entry.topology or "", TOPOLOGIES))
        return EdgeColumns([], [], [])
    if entry.per is not None:
        mistakes.add(tree.key_place("per"), "`per` requires `between`, got `topology`", "omit `per`")
    keys = tree.without(*(key for key, _ in tree.items() if key not in topology_keys()))
    topology = decode(keys, kind, mistakes, sourced=True)
    members = names.select(entry.of or ())
    if topology is None:
        return EdgeColumns([], [], [])
    try:
        edges = EdgeColumns.of(topology.edges(members))
        strange = sorted(set(edges.a).union(edges.b).difference(members))  # added switches, and existing devices
        switches = _switches(layout, entry.name or entry.kind, topology, strange)
    except ValueError as error:
        mistakes.add(tree.key_place("of"), str(error), f"members: {listed(members)}")
        return EdgeColumns([], [], [])
    ends = {end: switches.get(end) or names.one(end) for end in strange}
    return EdgeColumns([ends.get(end, end) for end in edges.a], [ends.get(end, end) for end in edges.b], edges.counts)


def _switches(layout: Layout, name: str, topology: Topology, ends: Sequence[str]) -> dict[str, str]:
    """Add the switches of a topology to the layout; return the name of each there.

    Raises:
        ValueError: a part has such a name already.
    """
    switch = getattr(topology, "switch", None)
    if switch is None:
        return {}
    names = {end: f"{name}-{end[1:]}" for end in ends if end.startswith("@")}
    families: dict[str, list[str]] = {}
    for full in names.values():
        if layout.local(full) is not None:
            raise ValueError(f"the name {full} of a switch of this topology is also the name of a part")
        families.setdefault(f"{name}-{full[len(name) + 1 :].rstrip('0123456789-')}", []).append(full)
    for family, members in families.items():
        layout.add(LayoutPart(family, sorted(members, key=natural), False, "switch", switch, made=True))
    return names


class DeviceNumbers:
    """A cache of device numbers by name.

    >>> from hwsim.machine.layout import NumberedNames
    >>> layout = Layout()
    >>> layout.add(LayoutPart("sw", NumberedNames("sw", 3), True, "switch"))
    >>> DeviceNumbers(layout).numbers(["sw2", "sw0", "cpu"]).tolist()
    [2, 0, -1]
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._scopes: dict[str, tuple[int, dict[str, int]]] = {}  # by scope its first number, and the offsets of its devices
        self._offsets: dict[int, dict[str, int]] = {}  # by layout: equal scopes share their offsets
        self._latest: tuple[tuple[str, ...], Ints] = (), np.empty(0, np.int32)  # the next call often has the same names

    def numbers(self, names: Sequence[str]) -> Ints:
        """Return the device number of each name; -1 if there is no such device."""
        if len(names) >= _MANY and tuple(names) == self._latest[0]:
            return self._latest[1]
        part, member = (self._layout.local(names[0]) if names else None) or (None, 0)
        if part is not None and part.child is None and list(names) == [*part.names[member : member + len(names)]]:
            numbers = np.arange(part.start + member, part.start + member + len(names), dtype=np.int32)
        else:
            numbers = np.fromiter(map(self._number, names), np.int32, len(names))
        if len(names) >= _MANY:
            self._latest = tuple(names), numbers
        return numbers

    def _number(self, name: str) -> int:
        scope, _, own = name.rpartition(".")
        if scope not in self._scopes:
            spot = self._layout.find(scope)  # None of the outermost scope
            self._scopes[scope] = (0, {}) if spot is None else (spot.number, self._offsets.setdefault(id(spot.part.child), {}))
        start, offsets = self._scopes[scope]
        if own not in offsets:
            spot = self._layout.find(name)
            offsets[own] = -1 if spot is None or spot.part.child is not None else spot.number - start
        return start + offsets[own] if offsets[own] >= 0 else -1

    @cached_property
    def parts(self) -> tuple[Ints, tuple[LayoutPart, ...]]:
        """Index of each device's part, equal in equal machines, ending with -1 for names without a device; and the parts."""
        places: dict[int, tuple[int, LayoutPart]] = {}

        def within(layout: Layout) -> Ints:
            runs = [
                np.tile(within(part.child), len(part.names))
                if part.child is not None
                else np.full(len(part.names), places.setdefault(id(part), (len(places), part))[0], np.int32)
                for part in layout.parts
            ]
            return np.concatenate([np.empty(0, np.int32), *runs])

        return np.append(within(self._layout), np.int32(-1)), tuple([part for _, part in places.values()])

    def of_each_part(self, names: Sequence[str]) -> list[str]:
        """Return the first of the names that belongs to each part, and each name without a device once, in order."""
        part = self.parts[0][self.numbers(names)]
        lone = {names[index]: index for index in np.flatnonzero(part < 0)[::-1].tolist()}  # without a device
        firsts = np.unique(part, return_index=True)[1] if len(names) else part
        return [names[index] for index in sorted({*firsts.tolist(), *lone.values()})]


def _first_again(layout: Layout, name: str, a: Ints, b: Ints) -> int | None:
    """Return the first wire between devices that a wire of the same name connects already; None if there is none."""
    keys = pair_keys(a, b)
    _, first = np.unique(keys, return_index=True)
    again = np.ones(len(keys), np.bool_)
    again[first] = False
    for bundle in layout.wires.bundles:
        if bundle.name == name:
            again |= np.isin(keys, pair_keys(bundle.a, bundle.b))
    for part in layout.parts:
        if part.child is not None:  # an inner machine may contain the wire
            inside = (a >= part.start) & (a < part.start + part.size) & (b >= part.start) & (b < part.start + part.size)
            for row in np.flatnonzero(inside).tolist():
                (member, end), (other_member, other_end) = (divmod(int(column[row]) - part.start, part.each) for column in (a, b))
                again[row] |= member == other_member and _joined(part.child, name, end, other_end)
    rows = np.flatnonzero(again)
    return int(rows[0]) if len(rows) else None


def _joined(layout: Layout, name: str, a: int, b: int) -> bool:
    """Return whether a wire of a name connects two devices, in this scope or in an inner machine with both."""
    if any(other == b and layout.wires.of(wire)[0].name == name for wire, other in layout.wires.at(a)):
        return True
    (part, member, end), (same, other_member, other_end) = layout.at(a), layout.at(b)
    return part is same and member == other_member and part.child is not None and _joined(part.child, name, end, other_end)


def _check_budget(layout: Layout, budget: str, taken: tuple[Ints, Ints, Ints], tree: Tree, mistakes: Mistakes) -> None:
    """Add a mistake for the first device that has too few lanes, ports or NVLinks.

    Args:
        budget: key of the devices that states their number.
        taken: both ends of each wire, and the number that it uses at each end.
    """
    if not layout.limits(budget):
        return
    a, b, per_wire = taken
    added = np.bincount(np.concatenate([a, b]), np.concatenate([per_wire, per_wire]), layout.size).astype(np.int64)
    before = layout.used.get(budget)
    layout.used[budget] = added if before is None else added + np.pad(before, (0, layout.size - len(before)))
    used, available = _used(layout, budget), _available(layout, budget)
    device_count = int(((used > available) & (added > 0)).sum())
    if device_count:
        end = _first_short(taken, used - added, available)
        more = f" (and {device_count - 1} more)" if device_count > 1 else ""
        mistakes.add(tree.place, f"{layout.name(end)} has {available[end]} {budget}, but {used[end]} are used{more}")


def _first_short(taken: tuple[Ints, Ints, Ints], used: Ints, available: Ints) -> int:
    """Return the device that first exceeds its budget, wire by wire."""
    for a, b, count in zip(*(column.tolist() for column in taken), strict=True):
        for end in (a, b):
            used[end] += count
            if used[end] > available[end]:
                return int(end)
    raise ValueError("no device exceeds its budget")


def _used(layout: Layout, budget: str) -> Ints:
    """Return the budget that wires of a scope and of inner machines use, by device number."""
    used = np.zeros(layout.size, np.int64)
    direct = layout.used.get(budget)
    if direct is not None:
        used[: len(direct)] = direct
    for part in layout.parts:
        if part.child is not None:
            used[part.start : part.start + part.size] += np.tile(_used(part.child, budget), len(part.names))
    return used


def _available(layout: Layout, budget: str) -> Ints:
    """Return the budget of each device, by number."""
    available = np.full(layout.size, _UNLIMITED, np.int64)
    for part in layout.parts:
        devices = slice(part.start, part.start + part.size)
        if part.child is not None:
            available[devices] = np.tile(_available(part.child, budget), len(part.names))
        elif (limit := getattr(part.model, budget, None)) is not None:
            available[devices] = limit
    return available
