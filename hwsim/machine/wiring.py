"""The `links:` of a machine file: who is connected to whom, and whether their lanes and ports suffice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from hwsim import links
from hwsim.links import LinkKind
from hwsim.machine.budgets import check_links
from hwsim.machine.ends import Ends, first_again
from hwsim.machine.layout import Layout
from hwsim.machine.names import Names
from hwsim.machine.naming import UnknownName, listed
from hwsim.machine.parts import Part
from hwsim.machine.schema import LINK_KEYS, PART_KEYS, LinkEntry, topology_keys
from hwsim.machine.topologies import TOPOLOGIES, Edge, Edges, Topology
from hwsim.machine.wires import Bundle
from hwsim.spec import Mistakes, Tree, decode, did_you_mean
from hwsim.units import natural

MOST_LINKS: Final = 2_000_000


def wire_all(layout: Layout, entries: Sequence[Tree], mistakes: Mistakes) -> None:
    """Add the wires of all entries to the layout."""
    names = Names(layout)
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
    topology = topology_keys() if tree.get("topology") is not None else frozenset()
    ignore = LINK_KEYS | topology | (PART_KEYS - {"count"})
    return decode(tree, links.KINDS[kind], mistakes, ignore=ignore, sourced=True)


def _wire(layout: Layout, names: Names, tree: Tree, entry: LinkEntry, model: LinkKind, mistakes: Mistakes) -> None:
    try:
        edges = _edges(layout, names, tree, entry, mistakes)
    except UnknownName as error:
        key = "between" if entry.between is not None else "of"
        mistakes.add(tree.key_place(key), error.message, error.hint)
        return
    if not edges:
        return
    numbers = Ends(layout)
    a, b = numbers.numbers(edges.a), numbers.numbers(edges.b)
    bundle = Bundle(entry.name or entry.kind, model, entry.routing, a, b, np.array(edges.counts, np.int32))
    wrong = np.flatnonzero((a < 0) | (b < 0))
    twice = first_again(layout, bundle)
    if len(wrong) and (twice is None or wrong[0] <= twice):
        at = int(wrong[0])
        for end, number in ((edges.a[at], a[at]), (edges.b[at], b[at])):
            if number < 0:
                sockets = layout.find(end) is None
                message = f"{end} is several sockets" if sockets else f"{end} is a machine, not a device"
                mistakes.add(
                    tree.place, message, f"name one of them, or {end}*" if sockets else f"name a device in it: {end}.NAME"
                )
        return
    itself = np.flatnonzero(a == b)
    if len(itself):
        mistakes.add(tree.key_place("between" if entry.of is None else "of"), f"{edges.a[itself[0]]} would be linked to itself")
        return
    if twice is not None:
        message = f"{edges.a[twice]} and {edges.b[twice]} are linked twice by '{bundle.name}'"
        mistakes.add(tree.place, message, "give one of the two links another `name:`")
        return
    layout.wires.add(bundle)
    check_links(layout, bundle, tree, mistakes)


def _edges(layout: Layout, names: Names, tree: Tree, entry: LinkEntry, mistakes: Mistakes) -> Edges:
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
    return Edges([], [])


def _between(names: Names, tree: Tree, entry: LinkEntry, mistakes: Mistakes) -> Edges:
    if entry.of is not None:
        mistakes.add(tree.key_place("of"), "'of' goes with a `topology`, not with `between`")
        return Edges([], [])
    a, b = (names.select(group) for group in entry.between or ())
    if entry.per is not None:
        if len(a) * entry.per != len(b):
            message = f"{len(a)} x {entry.per} is {len(a) * entry.per}, but there are {len(b)} on the other side"
            mistakes.add(tree.key_place("per"), message, f"{listed(a)} to {listed(b)}")
            return Edges([], [])
        return Edges([each for each in a for _ in range(entry.per)], b)
    if len(a) * len(b) > MOST_LINKS:
        mistakes.add(tree.key_place("between"), f"more than {MOST_LINKS} links", "put a switch in between, or use `per:`")
        return Edges([], [])
    if set(a).isdisjoint(b):
        return Edges([x for x in a for _ in b], b * len(a))
    pairs = {frozenset((x, y)): Edge(x, y) for x in a for y in b if x != y}
    if not pairs:
        mistakes.add(tree.key_place("between"), f"{listed(a)} would be linked to itself")
    return Edges.of(list(pairs.values()))


def _topology(layout: Layout, names: Names, tree: Tree, entry: LinkEntry, mistakes: Mistakes) -> Edges:
    at = tree.key_place("topology")
    kind = TOPOLOGIES.get(entry.topology or "")
    if kind is None:
        mistakes.add(at, f"there is no topology '{entry.topology}'", did_you_mean(entry.topology or "", TOPOLOGIES))
        return Edges([], [])
    if entry.per is not None:
        mistakes.add(tree.key_place("per"), "'per' goes with `between`, not with a topology")
    keys = tree.without(*(key for key, _ in tree.items() if key not in topology_keys()))
    topology = decode(keys, kind, mistakes)
    members = names.select(entry.of or ())
    if topology is None:
        return Edges([], [])
    try:
        edges = Edges.of(topology.edges(members))
        strange = sorted(set(edges.a).union(edges.b).difference(members))  # new switches, and what the machine calls so
        own = _switches(layout, entry.name or entry.kind, topology, strange)
    except ValueError as error:
        mistakes.add(tree.key_place("of"), str(error), f"these are: {listed(members)}")
        return Edges([], [])
    ends = {end: own.get(end) or names.one(end) for end in strange}
    return Edges([ends.get(end, end) for end in edges.a], [ends.get(end, end) for end in edges.b], edges.counts)


def _switches(layout: Layout, name: str, topology: Topology, ends: Sequence[str]) -> dict[str, str]:
    """Put the switches that a topology brings into the layout; how each is called there.

    Raises:
        ValueError: a part is called so already.
    """
    switch = getattr(topology, "switch", None)
    if switch is None:
        return {}
    found = {end: f"{name}-{end[1:]}" for end in ends if end.startswith("@")}
    families: dict[str, list[str]] = {}
    for full in found.values():
        if layout.local(full) is not None:
            raise ValueError(f"a part is called {full} already, as a switch of this topology would be")
        families.setdefault(f"{name}-{full[len(name) + 1 :].rstrip('0123456789-')}", []).append(full)
    for family, names in families.items():
        layout.add(Part(family, sorted(names, key=natural), False, "switch", switch))
    return found
