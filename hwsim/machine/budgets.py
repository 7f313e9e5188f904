"""What a device has only so much of: lanes, ports, NVLinks, DIMM slots; and what the power supply of a machine gives.

Links beyond what a device has are mistakes.  More power than the supply gives is a warning: parts rarely all draw their most.
"""

from __future__ import annotations

from collections.abc import Sequence

from hwsim.devices import Device
from hwsim.links import LinkKind
from hwsim.machine.layout import Layout
from hwsim.machine.topologies import Edge
from hwsim.spec import Mistakes, Tree
from hwsim.units import format_quantity


def check_links(layout: Layout, edges: Sequence[Edge], model: LinkKind, tree: Tree, mistakes: Mistakes) -> None:
    """Lanes, ports and NVLinks at both ends; the first device that has too few is named."""
    short: dict[str, None] = {}
    for edge in edges:
        for end in (edge.a, edge.b):
            used = layout.used.get((end, model.budget), 0) + model.uses() * edge.count
            layout.used[end, model.budget] = used
            most = getattr(layout.devices[end].model, model.budget, None) if model.budget else None
            if most is not None and used > most:
                short[end] = None
    if short:
        end = next(iter(short))
        most, used = getattr(layout.devices[end].model, model.budget), layout.used[end, model.budget]
        more = f" (and {len(short) - 1} more)" if len(short) > 1 else ""
        mistakes.add(tree.place, f"{end} has {most} {model.budget}, but {used} are used{more}")


def check_dimms(model: Device, tree: Tree, mistakes: Mistakes) -> None:
    """No more memory modules than slots."""
    slots, memory = getattr(model, "dimm_slots", None), getattr(model, "memory", None)
    dimms = getattr(memory, "dimms", None)
    if slots is not None and dimms is not None and dimms > slots:
        at = tree.get("memory") or tree
        mistakes.add(
            at.key_place("dimms"), f"{dimms} DIMMs, but there are {slots} slots", "fewer and larger ones, or another CPU"
        )


def check_power(layout: Layout, name: str, supply: float | None, warnings: list[str]) -> None:
    """Whether the supply of a machine gives what its parts draw at the most; `layout.power` knows that."""
    if supply is not None and layout.power > supply:
        drawn, given = format_quantity(layout.power, "W"), format_quantity(supply, "W")
        where = f"machine '{name}'" if name else "the machine"
        warnings.append(f"{where}: its parts draw up to {drawn}, but its supply gives {given}")
