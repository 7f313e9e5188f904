"""How a machine hangs together, as text and as JSON (`hwsim: topology/1`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hwsim import links
from hwsim.units import format_quantity, natural
from hwsim.views.kit.view import Heading
from hwsim.views.topology.bisection import Bisection
from hwsim.views.topology.find import Alike, Pair, Topology

_LISTED: Final = 8  # ranges of names that are written out
_MEANINGS: Final = {
    "NV": "NVn  n NVLinks, also through their switches",
    "PIX": "PIX  one PCIe switch",
    "PXB": "PXB  several PCIe switches",
    "PHB": "PHB  a CPU",
    "SYS": "SYS  the link between CPUs",
    "NET": "NET  a network",
}


def text(topology: Topology, heading: Heading, **_: object) -> str:
    """Parts, links, bisection bandwidth, distances and, of few devices, how each pair is linked."""
    lines = [f"{heading.machine}: {topology.devices} devices, {topology.connections} connections", ""]
    lines += _parts(topology.alike)
    if not topology.of:
        return "\n".join([*lines, "", "no two GPUs, network cards or CPUs to go between: name others with --of"]) + "\n"
    lines += ["", f"between {len(topology.of)} devices: {ranges(topology.of)}"]
    lines += [f"  {label:<11} {said}" if label else f"  {'':<11} {said}" for label, said in _figures(topology)]
    if topology.pairs:
        lines += ["", *_matrix(topology)]
    return "\n".join(lines) + "\n"


def document(topology: Topology) -> dict[str, Any]:
    """All numbers in SI units."""
    numbers: dict[str, Any] = {
        "devices": [
            {
                "family": each.family,
                "kind": each.kind,
                "names": list(each.names),
                "links": [
                    {"count": one.count, "what": one.what, "bandwidth_bytes_per_s": one.bandwidth, "to": one.to}
                    for one in each.links
                ],
            }
            for each in topology.alike
        ],
        "of": list(topology.of),
        "bisection": [_bisection(each) for each in topology.bisections],
        "pairs": [
            {"from": each.a, "to": each.b, "how": each.how, "hops": each.hops, "bandwidth_bytes_per_s": each.bandwidth}
            for each in topology.pairs
        ],
    }
    if topology.reach is not None:
        numbers["distance"] = {
            "diameter_hops": topology.reach.diameter,
            "farthest": list(topology.reach.farthest),
            "mean_hops": topology.reach.mean,
            "narrowest_bytes_per_s": topology.reach.narrowest,
            "narrowest_pair": list(topology.reach.worst),
            "pairs_apart": topology.reach.apart,
        }
    return numbers


def ranges(names: Sequence[str]) -> str:
    """Names with their numbers as ranges.

    >>> ranges(["gpu0", "gpu1", "gpu2", "gpu5", "cpu"]), ranges(["node0.gpu0", "node0.gpu1", "node1.gpu0", "node1.gpu1"])
    ('gpu0..2, gpu5, cpu', 'node0..1.gpu0..1')
    """
    found = _joined([[name] for name in names])
    shown = found if len(found) <= _LISTED else [*found[: _LISTED - 1], f"... ({len(names)} in all)"]
    return ", ".join(shown)


def _joined(groups: Sequence[Sequence[str]]) -> list[str]:
    """Ranges of the last numbers, then of the numbers of the machines around them."""
    plain: dict[str, list[str]] = {}
    for (name,) in groups:
        node, dot, own = name.rpartition(".")
        plain.setdefault(node + dot, []).append(own)
    inside = {node: ", ".join(_runs(own)) for node, own in plain.items()}
    alike: dict[str, list[str]] = {}
    for node, own in inside.items():
        alike.setdefault(own, []).append(node[:-1])
    return [
        f"{where}.{own}" if where else own for own, nodes in alike.items() for where in (_runs(nodes) if nodes != [""] else [""])
    ]


def _runs(names: Sequence[str]) -> list[str]:
    """gpu0, gpu1, gpu2 as gpu0..2."""
    found: list[tuple[str, int | None, int | None]] = []
    for name in names:
        stem = name.rstrip("0123456789")
        number = int(name[len(stem) :]) if name[len(stem) :] else None
        before = found[-1] if found else None
        if before is not None and number is not None and before[0] == stem and before[2] is not None and number == before[2] + 1:
            found[-1] = stem, before[1], number
        else:
            found.append((stem, number, number))
    return [
        stem if first is None else f"{stem}{first}" if first == last else f"{stem}{first}..{last}" for stem, first, last in found
    ]


def _parts(alike: Sequence[Alike]) -> Iterator[str]:
    families = [each.family for each in alike]
    called = [each.family if families.count(each.family) == 1 else ranges(each.names) for each in alike]
    width = max((len(each) for each in called), default=0)
    count = max((len(str(len(each.names))) for each in alike), default=0)
    for each, name in zip(alike, called, strict=True):
        said = [f"{one.count} {one.what} ({format_quantity(one.bandwidth, 'B/s')} each way) to {one.to}" for one in each.links]
        said = said or ["no link"]
        every = "each: " if len(each.names) > 1 else ""
        head = f"{len(each.names):>{count}} {each.kind:<10} {name:<{width}}  "
        yield f"{head}{every}{said[0]}"
        yield from (" " * (len(head) + len(every)) + one for one in said[1:])


def _figures(found: Topology) -> Iterator[tuple[str, str]]:
    if not found.bisections:
        yield "bisection", "none: links do not connect them all"
    for at, each in enumerate(found.bisections):
        alone = f" over {links.KINDS[each.over].called} alone" if each.over else ""
        yield "" if at else "bisection", f"{format_quantity(each.bandwidth, 'B/s')} each way{alone}: {_limits(each)}"
        how = f"the least of all {each.cuts} ways to halve them" if each.exact else f"at most that: the least of {each.cuts} ways"
        if each.exact and each.cuts == 1:
            how = "any way to halve them"
        one, other = map(ranges, each.halves)
        yield "", f"{how}: {one} {'against' if ',' in one + other else 'and'} {other}"
    if found.reach is None:
        return
    far, narrow = found.reach.farthest, found.reach.worst
    hops = "1 hop" if found.reach.diameter == 1 else f"{found.reach.diameter} hops"
    yield "diameter", f"{hops}, such as {far[0]} to {far[1]}; {found.reach.mean:.3g} on the average"
    yield "narrowest", f"{format_quantity(found.reach.narrowest, 'B/s')} each way, such as {narrow[0]} to {narrow[1]}"
    if found.reach.apart:
        yield "apart", f"{found.reach.apart // 2} pairs have no route"


def _limits(each: Bisection) -> str:
    """What the worst cut goes through; the peak of its wires where that is more."""
    parts = [
        f"{one.count} {links.KINDS[one.what].called}" if one.what in links.KINDS else f"{one.what} (its own rate), {one.count}"
        for one in each.limits
    ]
    wires = f", {format_quantity(each.wires, 'B/s')} on the wires" if each.wires > 1.001 * each.bandwidth else ""
    return " and ".join(parts) + wires


def _matrix(found: Topology) -> Iterator[str]:
    """How / hops and the bandwidth in GB/s of every pair, in the manner of `nvidia-smi topo -m`."""
    by: dict[tuple[str, str], Pair] = {(each.a, each.b): each for each in found.pairs}
    short = {name: name.rpartition(".")[2] for name in found.of}
    if len(set(short.values())) < len(short):
        short = {name: name for name in found.of}
    how = {pair: f"{each.how}/{each.hops}" for pair, each in by.items()}
    wide = {pair: format(each.bandwidth / 1e9, ".3g") for pair, each in by.items()}
    yield from _table("link/hops", found.of, short, how)
    yield ""
    if len(set(wide.values())) == 1 and len(found.of) > 2:
        yield f"GB/s  {next(iter(wide.values()))} between any two"
    else:
        yield from _table("GB/s", found.of, short, wide)
    used = sorted({"NV" if pair.how.startswith("NV") else pair.how for pair in found.pairs} & _MEANINGS.keys(), key=natural)
    if used:
        yield ""
        yield "; ".join(_MEANINGS[each] for each in used)


def _table(title: str, of: Sequence[str], short: Mapping[str, str], cells: Mapping[tuple[str, str], str]) -> Iterator[str]:
    first = max(len(title), *(len(each) for each in short.values()))
    wide = max(len(each) for each in [*short.values(), *cells.values()])
    yield f"{title:<{first}}  " + " ".join(f"{short[name]:>{wide}}" for name in of)
    for a in of:
        row = ("X" if a == b else cells.get((a, b), "-") for b in of)
        yield f"{short[a]:<{first}}  " + " ".join(f"{one:>{wide}}" for one in row)


def _bisection(each: Bisection) -> dict[str, Any]:
    return {
        "bandwidth_bytes_per_s": each.bandwidth,
        "wires_bytes_per_s": each.wires,
        "exact": each.exact,
        "halvings_tried": each.cuts,
        "over": each.over or "all links",
        "halves": [list(half) for half in each.halves],
        "limits": [{"what": one.what, "count": one.count, "bandwidth_bytes_per_s": one.bandwidth} for one in each.limits],
    }
