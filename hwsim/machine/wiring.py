"""The `links:` of a machine file: who is connected to whom, and whether their lanes and ports suffice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hwsim import links
from hwsim.links import LinkKind
from hwsim.machine.budgets import check_links
from hwsim.machine.layout import Layout, Wire
from hwsim.machine.names import Names, UnknownName, listed
from hwsim.machine.placed import PlacedDevice
from hwsim.machine.provenance import finish
from hwsim.machine.schema import LINK_KEYS, PART_KEYS, TOPOLOGY_KEYS, LinkEntry
from hwsim.machine.topologies import TOPOLOGIES, Edge, Topology, WithSwitches
from hwsim.spec import Mistakes, Tree, decode, did_you_mean

MOST_LINKS: Final = 2_000_000


def wire_all(layout: Layout, entries: Sequence[Tree], mistakes: Mistakes) -> None:
    """Add the wires of all entries to the layout."""
    names = Names(layout.devices, layout.nodes, layout.groups())
    for tree in entries:
        entry = _entry(tree, mistakes)
        model = None if entry is None else _model(entry.kind, tree, mistakes)
        if entry is not None and model is not None:
            _wire(layout, names, tree, entry, model, mistakes)


def _entry(tree: Tree, mistakes: Mistakes) -> LinkEntry | None:
    kind = tree.get("kind")
    if kind is not None and isinstance(kind.value, str) and kind.value not in links.KINDS:
        mistakes.add(kind.place, f"there is no kind of link '{kind.value}'", did_you_mean(kind.value, links.KINDS))
        return None
    return decode(tree.without(*(key for key, _ in tree.items() if key not in LINK_KEYS)), LinkEntry, mistakes)


def _model(kind: str, tree: Tree, mistakes: Mistakes) -> LinkKind | None:
    topology = TOPOLOGY_KEYS if tree.get("topology") is not None else frozenset()
    ignore = LINK_KEYS | topology | (PART_KEYS - {"count"})
    model = decode(tree, links.KINDS[kind], mistakes, ignore=ignore, sourced=True)
    if model is not None:
        finish(model, tree, mistakes)
    return model


def _wire(layout: Layout, names: Names, tree: Tree, entry: LinkEntry, model: LinkKind, mistakes: Mistakes) -> None:
    try:
        edges = _edges(layout, names, tree, entry, mistakes)
    except UnknownName as error:
        key = "between" if entry.between is not None else "of"
        mistakes.add(tree.key_place(key), error.message, error.hint)
        return
    before = len(mistakes)
    for edge in edges:
        for end in (edge.a, edge.b):
            if end not in layout.devices:
                sockets = end in layout.groups()
                message = f"{end} is several sockets" if sockets else f"{end} is a machine, not a device"
                mistakes.add(
                    tree.place, message, f"name one of them, or {end}*" if sockets else f"name a device in it: {end}.NAME"
                )
        if len(mistakes) > before:
            return
        if not layout.add_wire(Wire(entry.name or entry.kind, edge.a, edge.b, model, edge.count, entry.routing)):
            message = f"{edge.a} and {edge.b} are linked twice by '{entry.name or entry.kind}'"
            mistakes.add(tree.place, message, "give one of the two links another `name:`")
            return
    check_links(layout, edges, model, tree, mistakes)


def _edges(layout: Layout, names: Names, tree: Tree, entry: LinkEntry, mistakes: Mistakes) -> list[Edge]:
    """The pairs an entry connects, none twice; raises UnknownName."""
    if (entry.between is None) == (entry.topology is None):
        hint = "`between: [cpu, gpu*]` connects two groups, `topology: ring, of: gpu*` the members of one"
        mistakes.add(tree.place, "a link has either `between` or a `topology`", hint)
    elif entry.between is not None:
        return _between(names, tree, entry, mistakes)
    elif entry.of is None:
        mistakes.add(tree.place, f"'of' is missing: what the {entry.topology} connects", "such as `of: gpu*`")
    else:
        return _topology(layout, names, tree, entry, mistakes)
    return []


def _between(names: Names, tree: Tree, entry: LinkEntry, mistakes: Mistakes) -> list[Edge]:
    if entry.of is not None:
        mistakes.add(tree.key_place("of"), "'of' goes with a `topology`, not with `between`")
        return []
    a, b = (names.select(group) for group in entry.between or ())
    if entry.per is not None:
        if len(a) * entry.per != len(b):
            message = f"{len(a)} x {entry.per} is {len(a) * entry.per}, but there are {len(b)} on the other side"
            mistakes.add(tree.key_place("per"), message, f"{listed(a)} to {listed(b)}")
            return []
        return [Edge(a[at // entry.per], each) for at, each in enumerate(b)]
    if len(a) * len(b) > MOST_LINKS:
        mistakes.add(tree.key_place("between"), f"more than {MOST_LINKS} links", "put a switch in between, or use `per:`")
        return []
    pairs = {frozenset((x, y)): Edge(x, y) for x in a for y in b if x != y}
    if not pairs:
        mistakes.add(tree.key_place("between"), f"{listed(a)} would be linked to itself")
    return list(pairs.values())


def _topology(layout: Layout, names: Names, tree: Tree, entry: LinkEntry, mistakes: Mistakes) -> list[Edge]:
    at = tree.key_place("topology")
    kind = TOPOLOGIES.get(entry.topology or "")
    if kind is None:
        mistakes.add(at, f"there is no topology '{entry.topology}'", did_you_mean(entry.topology or "", TOPOLOGIES))
        return []
    if entry.per is not None:
        mistakes.add(tree.key_place("per"), "'per' goes with `between`, not with a topology")
    keys = tree.without(*(key for key, _ in tree.items() if key not in TOPOLOGY_KEYS))
    topology = decode(keys, kind, mistakes)
    members = names.select(entry.of or ())
    if topology is None:
        return []
    try:
        edges = topology.edges(members)
        own = _switches(layout, entry.name or entry.kind, topology, members)
    except ValueError as error:
        mistakes.add(tree.key_place("of"), str(error), f"these are: {listed(members)}")
        return []
    known = {**own, **dict.fromkeys(members)}
    return [Edge(_end(names, known, edge.a), _end(names, known, edge.b), edge.count) for edge in edges]


def _switches(layout: Layout, name: str, topology: Topology, members: Sequence[str]) -> dict[str, str | None]:
    """Put the switches that a topology brings into the layout; how each is called there.

    Raises:
        ValueError: a part is called so already.
    """
    if not isinstance(topology, WithSwitches):
        return {}
    found: dict[str, str | None] = {}
    for each in topology.switches(members):
        full = f"{name}-{each[1:]}"
        if full in layout.devices:
            raise ValueError(f"a part is called {full} already, as a switch of this topology would be")
        layout.devices[full] = PlacedDevice(full, f"{name}-{each[1:].rstrip('0123456789-')}", "switch", topology.switch, None, "")
        found[each] = full
    return found


def _end(names: Names, known: Mapping[str, str | None], name: str) -> str:
    """The full name of an end: a member's own, a new switch's, or what the machine calls so."""
    return known[name] or name if name in known else names.one(name)
