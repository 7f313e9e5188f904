"""Bill of materials of a machine: nodes, NICs, switches by tier, cables and storage, with their counts and purchase prices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set
from typing import Final

from hwsim.costs.amount import Amount
from hwsim.costs.machine_price import PricedMachine, cable_ends
from hwsim.machine.layout import Layout
from hwsim.records import dataclass
from hwsim.ticks import total

ROLES: Final = {"gpu": "GPU", "cpu": "CPU", "nic": "NIC", "switch": "switch", "filesystem": "storage", "raid": "storage",
                "ssd": "disk", "hdd": "disk", "disk": "disk"}  # fmt: skip
_Counted = tuple[str, str, int, bool]


@dataclass(frozen=True, slots=True)
class Material:
    """Equal parts on a bill of materials.

    Args:
        role: what the parts are: node, GPU, NIC, switch, cable end, storage, or the surcharge of a changed node.
        name: name of the part in the library, else in the file.
        count: number of parts.
        inside: whether they are included in the price of their node.
        amount: purchase price of all of them (USD); None if they have none of their own.
        tiers: number of switches of each tier.
    """

    role: str
    name: str
    count: int
    inside: bool = False
    amount: Amount | None = None
    tiers: tuple[tuple[str, int], ...] = ()


def materials_of(layout: Layout, bought: PricedMachine, copies: int = 1) -> tuple[Material, ...]:
    """Return the bill of materials of equal machines; the amounts add up to their purchase price.

    Args:
        layout: parts of a machine.
        bought: its purchase price.
        copies: number of machines.
    """
    prices = {item.name: item for item in bought.items}
    counts: Counter[tuple[str, str, bool]] = Counter()
    for role, name, count, inside in _parts(layout, {item.name for item in bought.items if item.whole}, 1):
        counts[role, name, inside] += count
    rows = []
    for (role, name, inside), count in counts.items():
        item = None if inside else prices.get(name)
        amount = None if item is None else item.amount * (copies * count / item.count)
        tiers = [] if item is None else _tiers(layout, name, count)
        rows.append(
            Material(role, name, copies * count, inside, amount, tuple((tier, copies * number) for tier, number in tiers))
        )
    others = [item for item in bought.items if all(row.name != item.name or row.amount is None for row in rows)]
    return *rows, *(Material("surcharge", item.name, copies * item.count, amount=item.amount * copies) for item in others)


def _parts(layout: Layout, whole: Set[str], many: int, nested: str = "", *, inside: bool = False) -> Iterator[_Counted]:
    """Yield (role, name, count, whether it is part of a priced node) of the parts of `many` equal machines."""
    if nested or layout.file in whole:
        yield "node", layout.file or nested, many, inside
    inside = inside or layout.file in whole
    computes = any(part.kind in ("gpu", "cpu") for part in layout.parts)
    for part in layout.parts:
        if part.child is not None:
            yield from _parts(part.child, whole, many * len(part.names), part.family, inside=inside)
        elif part.kind in ROLES and not part.made:
            role = "node switch" if part.kind == "switch" and computes else ROLES[part.kind]
            yield role, part.use or part.family, many * len(part.names), inside
    for _, name, ends in cable_ends(layout):
        yield "cable end", name, many * ends, inside


def _tiers(layout: Layout, name: str, count: int) -> list[tuple[str, int]]:
    """Return the number of switches of each tier of a topology whose switches are counted by one part without links.

    Every switch of the lowest tier is modelled. The rest is divided by the links of the higher tiers.
    """
    wires, made = layout.wires, [part for part in layout.parts if part.made and part.kind == "switch"]
    made.sort(key=lambda part: -len(part.names))
    counted = any(part.use == name and part.kind == "switch" and not wires.degree(part.start) for part in layout.parts)
    if not counted or len(made) < 2 or (rest := count - len(made[0].names)) < len(made) - 1:
        return []
    spans = [(part.start, part.start + len(part.names)) for part in made[1:]]
    links = [sum(total(wires.count[(end >= a) & (end < b)]) for end in (wires.a, wires.b)) for a, b in spans]  # integers
    all_links = sum(links)  # integers
    upper = [round(rest * link / all_links) for link in links[:-1]]
    counts = [len(made[0].names), *upper, rest - sum(upper)]  # integers
    return [(part.family.rpartition("-")[2], number) for part, number in zip(made, counts, strict=True)]
