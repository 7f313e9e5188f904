"""Distances between all pairs of some devices.

A set of devices is an integer with one bit per device, so a step from all devices to their neighbours is one `or` per link.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from hwsim.machine import Link, Machine
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class HopDistances:
    """Distances over all pairs.

    Args:
        diameter: largest distance (hops).
        farthest: first pair with that distance.
        mean: average distance (hops).
        apart: number of ordered pairs without a route.
    """

    diameter: int
    farthest: tuple[str, str]
    mean: float
    apart: int


def reach(machine: Machine, members: Sequence[str]) -> HopDistances | None:
    """Return the distances over all pairs; None if no pair is connected."""
    ends = {link.source for link in machine.links}
    forwards = {name for name in ends if machine.devices[name].forwards}
    full = _levels(machine.links, members, forwards)
    hops = [(level, mask.bit_count()) for masks in full for level, mask in enumerate(masks) if level]
    pairs = sum(count for _, count in hops)
    if pairs == 0:
        return None
    diameter = max(level for level, count in hops if count)
    farthest = next(
        (name, members[_lowest(masks[diameter])])
        for name, masks in zip(members, full, strict=True)
        if len(masks) > diameter and masks[diameter]
    )
    n = len(members)
    mean = sum(level * count for level, count in hops) / pairs  # integers
    return HopDistances(diameter, farthest, mean, n * (n - 1) - pairs)


def _levels(links: Collection[Link], members: Sequence[str], forwards: set[str]) -> list[list[int]]:
    """Return by member and number of hops the members at that distance, as bits."""
    near = neighbours(links)
    seen = {name: 1 << index for index, name in enumerate(members)}
    front = dict(seen)
    levels = [[0] for _ in members]
    while front:
        come: dict[str, int] = {}
        for name, mask in front.items():
            for target in near.get(name, ()):
                come[target] = come.get(target, 0) | mask
        front = {}
        for index, name in enumerate(members):
            levels[index].append(come.get(name, 0) & ~seen[name])
        for name, mask in come.items():
            new = mask & ~seen.get(name, 0)
            if new:
                seen[name] = seen.get(name, 0) | new
                if name in forwards:
                    front[name] = new
    return levels


def neighbours(links: Iterable[Link]) -> dict[str, set[str]]:
    """Return the devices that the links of each device lead to."""
    near: dict[str, set[str]] = {}
    for link in links:
        near.setdefault(link.source, set()).add(link.target)
    return near


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1
