"""The topology of a machine as text and JSON (`hwsim: topology/2`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from hwsim import links
from hwsim.formats import format_quantity, natural
from hwsim.machine.contents import within
from hwsim.views.kit.document import select_attributes
from hwsim.views.kit.table import table
from hwsim.views.kit.view import Heading
from hwsim.views.topology.bisection import Bisection
from hwsim.views.topology.find import DeviceGroup, MachineTopology

_LISTED: Final = 8  # largest number of ranges
_MEANINGS: Final = {
    "NV": "NVn  n NVLinks, also through their switches",
    "PIX": "PIX  one PCIe switch",
    "PXB": "PXB  several PCIe switches",
    "PHB": "PHB  a CPU",
    "SYS": "SYS  the link between CPUs",
    "NET": "NET  a network",
}


def text(topology: MachineTopology, heading: Heading, **_: object) -> str:
    """Return devices, links, bisection bandwidth, distances, and the route of each pair for few devices."""
    machine = topology.machine
    lines = [f"{heading.machine}: {len(machine.devices)} devices, {len(machine.links) // 2} connections", ""]
    lines += _parts(topology.alike)
    if not topology.of:
        return "\n".join([*lines, "", "fewer than two GPUs, NICs or CPUs: select other devices with --of"]) + "\n"
    lines += ["", f"between {len(topology.of)} devices: {ranges(topology.of)}", *table(_distances(topology), "<11 <", gap=" ")]
    if topology.pairs:
        lines += ["", *_matrix(topology)]
    return "\n".join(lines) + "\n"


def document(topology: MachineTopology) -> dict[str, Any]:
    """Return the topology as dicts and lists in SI units."""
    numbers: dict[str, Any] = {
        "devices": [
            {
                **select_attributes(alike, "family", "kind", "names"),
                "links": [
                    select_attributes(to, "count", "to", label="label", bandwidth_bytes_per_s="bandwidth") for to in alike.links
                ],
            }
            for alike in topology.alike
        ],
        "of": list(topology.of),
        "bisection": [_bisection(bisection) for bisection in topology.bisections],
        "pairs": [
            {"from": pair.a, **select_attributes(pair, "hops", route="how", to="b", bandwidth_bytes_per_s="bandwidth")}
            for pair in topology.pairs
        ],
    }
    if topology.reach is not None:
        numbers["distance"] = select_attributes(
            topology.reach,
            "farthest",
            diameter_hops="diameter",
            mean_hops="mean",
            unreachable_pairs="apart",
        )
    return numbers


def ranges(names: Sequence[str]) -> str:
    """Return names with ranges of their numbers.

    >>> ranges(["gpu0", "gpu1", "gpu2", "gpu5", "cpu"]), ranges(["node0.gpu0", "node0.gpu1", "node1.gpu0", "node1.gpu1"])
    ('gpu0..2, gpu5, cpu', 'node0..1.gpu0..1')
    """
    parts = _joined(names)
    return ", ".join(parts if len(parts) <= _LISTED else [*parts[: _LISTED - 1], f"... ({len(names)} in all)"])


def _joined(names: Sequence[str]) -> list[str]:
    """Return ranges of the last numbers, then of the numbers of the machines around them."""
    inside: dict[str, list[str]] = {}
    for name in names:
        node, last = within(name)
        inside.setdefault(node, []).append(last)
    nodes_with: dict[str, list[str]] = {}
    for node, members in inside.items():
        nodes_with.setdefault(", ".join(_runs(members)), []).append(node)
    return [
        f"{where}.{members}" if where else members
        for members, nodes in nodes_with.items()
        for where in ([""] if nodes == [""] else _runs(nodes))
    ]


def _runs(names: Sequence[str]) -> list[str]:
    """Return ranges of consecutive numbers: gpu0, gpu1, gpu2 become gpu0..2."""
    runs: list[tuple[str, int | None, int | None]] = []
    for name in names:
        stem = name.rstrip("0123456789")
        number = int(name[len(stem) :]) if name[len(stem) :] else None
        if runs and number is not None and runs[-1][0] == stem and runs[-1][2] == number - 1:
            runs[-1] = stem, runs[-1][1], number
        else:
            runs.append((stem, number, number))
    return [
        stem if first is None else f"{stem}{first}" if first == last else f"{stem}{first}..{last}" for stem, first, last in runs
    ]


def _parts(groups: Sequence[DeviceGroup]) -> Iterator[str]:
    families = [alike.family for alike in groups]
    names = [alike.family if families.count(alike.family) == 1 else ranges(alike.names) for alike in groups]
    width = max(map(len, names), default=0)
    count = max((len(str(len(alike.names))) for alike in groups), default=0)
    for alike, name in zip(groups, names, strict=True):
        links_to = [f"{to.count} {to.label} ({format_quantity(to.bandwidth, 'B/s')} each way) to {to.to}" for to in alike.links]
        head = f"{len(alike.names):>{count}} {alike.kind:<10} {name:<{width}}  " + ("each: " if len(alike.names) > 1 else "")
        for number, link in enumerate(links_to or ["no link"]):
            yield f"{' ' * len(head) if number else head}{link}"


def _distances(topology: MachineTopology) -> Iterator[tuple[str, str]]:
    """Yield (label, text) of each line; "" continues the previous label."""
    if not topology.bisections:
        yield "bisection", "none: the links do not connect all of them"
    for number, bisection in enumerate(topology.bisections):
        alone = f" over {links.KINDS[bisection.over].called} only" if bisection.over else ""
        bandwidth = format_quantity(bisection.bandwidth, "B/s")
        yield "" if number else "bisection", f"{bandwidth} each way{alone}: {_limits(bisection)}"
        how = f"upper bound, minimum of {bisection.cuts} halvings"
        if bisection.exact:
            how = f"minimum of all {bisection.cuts} halvings" if bisection.cuts > 1 else "any halving"
        half, rest = map(ranges, bisection.halves)
        yield "", f"{how}: {half} {'against' if ',' in half + rest else 'and'} {rest}"
    if topology.reach is None:
        return
    reach = topology.reach
    hops = "1 hop" if reach.diameter == 1 else f"{reach.diameter} hops"
    yield "diameter", f"{hops} ({' to '.join(reach.farthest)}), average {reach.mean:.3g}"
    if reach.apart:
        yield "no route", f"between {reach.apart // 2} pairs"


def _limits(bisection: Bisection) -> str:
    """Return the full links of the worst halving, with their peak if it is higher."""
    parts = [
        f"{cut.count} {links.KINDS[cut.kind].called}" if cut.kind in links.KINDS else f"{cut.count} {cut.kind}"
        for cut in bisection.limits
    ]
    faster = bisection.wires > 1.001 * bisection.bandwidth
    return " and ".join(parts) + (f", {format_quantity(bisection.wires, 'B/s')} with headers" if faster else "")


def _matrix(topology: MachineTopology) -> Iterator[str]:
    """Yield the kind of route, hops and bandwidth (GB/s) of each pair in the format of `nvidia-smi topo -m`."""
    how = {(pair.a, pair.b): f"{pair.how}/{pair.hops}" for pair in topology.pairs}
    widths = {(pair.a, pair.b): f"{pair.bandwidth / 1e9:.3g}" for pair in topology.pairs}
    yield from _square("link/hops", topology.of, how)
    yield ""
    if len(set(widths.values())) == 1 and len(topology.of) > 2:
        yield f"GB/s  {next(iter(widths.values()))} between any two"
    else:
        yield from _square("GB/s", topology.of, widths)
    kinds = {"NV" if pair.how.startswith("NV") else pair.how for pair in topology.pairs} & _MEANINGS.keys()
    if kinds:
        yield ""
        yield "; ".join(_MEANINGS[kind] for kind in sorted(kinds, key=natural))


def _square(title: str, devices: Sequence[str], cells: dict[tuple[str, str], str]) -> list[str]:
    """Return a table with a row and a column per device; all columns have equal width."""
    short = [within(name)[1] for name in devices]
    if len(set(short)) < len(short):
        short = list(devices)
    rows = [
        (a, *("X" if name == other else cells.get((name, other), "-") for other in devices))
        for a, name in zip(short, devices, strict=True)
    ]
    first, width = max(map(len, [title, *short])) + 1, max(map(len, [*short, *cells.values()]))
    return table([(title, *short), *rows], " ".join([f"<{first}", *(f">{width}" for _ in devices)]), indent="", gap=" ")


def _bisection(bisection: Bisection) -> dict[str, Any]:
    numbers = select_attributes(
        bisection, "exact", bandwidth_bytes_per_s="bandwidth", wires_bytes_per_s="wires", halvings_tried="cuts"
    )
    limits = [select_attributes(cut, "count", kind="kind", bandwidth_bytes_per_s="bandwidth") for cut in bisection.limits]
    halves = [list(half) for half in bisection.halves]
    return {**numbers, "over": bisection.over or "all links", "halves": halves, "limits": limits}
