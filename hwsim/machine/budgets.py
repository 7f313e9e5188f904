"""What a device has only so much of: lanes, ports, NVLinks, DIMM slots; and what the power supply of a machine gives.

Links beyond what a device has are mistakes.  More power than the supply gives is a warning: parts rarely all draw their most.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hwsim.devices import Device
from hwsim.machine.layout import Layout
from hwsim.machine.wires import Bundle, Ints
from hwsim.spec import Mistakes, Tree, Warning
from hwsim.units import format_quantity

_ANY: Final = 1 << 60


def check_links(layout: Layout, bundle: Bundle, tree: Tree, mistakes: Mistakes) -> None:
    """Lanes, ports and NVLinks at both ends; the first device that has too few is named."""
    budget, model = bundle.model.budget, bundle.model
    if not budget or all(getattr(part.model, budget, None) is None for part in layout.every()):
        return
    each = model.uses() * bundle.count.astype(np.int64)
    ends = np.concatenate([bundle.a, bundle.b])
    taken = np.bincount(ends, np.concatenate([each, each]), layout.size).astype(np.int64)  # count
    before = layout.used.get(budget)
    layout.used[budget] = taken if before is None else taken + np.pad(before, (0, layout.size - len(before)))
    used, most = _used(layout, budget), _most(layout, budget)
    short = (used > most) & (taken > 0)
    many = int(short.sum())
    if many:
        end = _first(bundle, each, used - taken, most)
        more = f" (and {many - 1} more)" if many > 1 else ""
        mistakes.add(tree.place, f"{layout.name(end)} has {most[end]} {budget}, but {used[end]} are used{more}")


def _first(bundle: Bundle, each: Ints, used: Ints, most: Ints) -> int:
    """The device that had too few first, wire by wire."""
    for a, b, count in zip(bundle.a.tolist(), bundle.b.tolist(), each.tolist(), strict=True):
        for end in (a, b):
            used[end] += count
            if used[end] > most[end]:
                return int(end)
    raise ValueError("every device has enough")


def _used(layout: Layout, budget: str) -> Ints:
    """What the wires of a scope and of the machines inside it take, by number."""
    found = np.zeros(layout.size, np.int64)
    own = layout.used.get(budget)
    if own is not None:
        found[: len(own)] = own
    for part in layout.parts:
        if part.child is not None:
            found[part.start : part.start + part.size] += np.tile(_used(part.child, budget), len(part.names))
    return found


def _most(layout: Layout, budget: str) -> Ints:
    """What each device has, by number."""
    found = np.full(layout.size, _ANY, np.int64)
    for part in layout.parts:
        where = slice(part.start, part.start + part.size)
        if part.child is not None:
            found[where] = np.tile(_most(part.child, budget), len(part.names))
        elif (most := getattr(part.model, budget, None)) is not None:
            found[where] = most
    return found


def check_dimms(model: Device, tree: Tree, mistakes: Mistakes) -> None:
    """No more memory modules than slots."""
    slots, memory = getattr(model, "dimm_slots", None), getattr(model, "memory", None)
    dimms = getattr(memory, "dimms", None)
    if slots is not None and dimms is not None and dimms > slots:
        at = tree.get("memory") or tree
        mistakes.add(
            at.key_place("dimms"), f"{dimms} DIMMs, but there are {slots} slots", "fewer and larger ones, or another CPU"
        )


def check_power(layout: Layout, name: str, supply: float | None, warnings: list[Warning]) -> None:
    """Whether the supply of a machine gives what its parts draw at the most; `layout.power` knows that."""
    if supply is not None and layout.power > supply:
        drawn, given = format_quantity(layout.power, "W"), format_quantity(supply, "W")
        where = f"machine '{name}'" if name else "the machine"
        text = f"{where}: its parts draw up to {drawn}, but its supply gives {given}"
        warnings.append(Warning("power-over-budget", text))
