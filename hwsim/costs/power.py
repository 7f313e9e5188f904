"""Power of a machine: idle and loaded power of its parts, or of a node that was measured as a whole.

    part      idle + (loaded - idle) x busy
    GPU       idle + (loaded - idle) x matrix-bound + (memory - idle) x memory-bound
    CPU       idle + (loaded - idle) x busy x (1 - 0.3 (1 - busy))
    node      the sum of its parts, and 25 % of its GPUs' power for fans and power supplies; where it was measured as a whole,
              its parts are scaled so that idle and loaded come to what was measured

**Source**: idle of a GPU 80 W of 700 W (an H200 that serves; api.serialalice.pt/alice-benchmark, 2026-06). A node of eight H100
rated at 10.2 kW drew 8.4 kW at the most and 76 % of its rating in the mean of trainings (Latif et al., arXiv:2412.08602;
arXiv:2506.14551): the ratings of its GPUs alone are 5.6 kW. CPU servers of SPECpower_ssj2008: idle 0.16 to 0.22 and full load
0.96 to 1.06 of the chips' TDP, at the wall. A straight line between them is 12 % too high at half load since 2021.
**Error**: energy of a node +-15 % with a measured curve, +-35 % from ratings. TDP times hours is 28 % below what an H100 node
draws in a training, its rating 32 % above (arXiv:2506.14551: errors of 27 to 37 %).
**Range**: clocks and power caps are as usual; memory modules of a CPU are in its power.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from hwsim.costs.amount import Amount
from hwsim.costs.library_match import is_as_listed
from hwsim.devices.power_curves import GpuPowerCurve, PowerCurve
from hwsim.machine import Machine
from hwsim.machine.layout import Layout, LayoutPart
from hwsim.records import dataclass

MEASURED: Final = 0.15  # relative half width of the energy of measured nodes
RATED: Final = 0.35  # relative half width of the energy of parts with a rating
GUESSED: Final = 0.5  # relative half width of a class default of idle power
BESIDES: Final = 0.25  # power of fans and power supplies / power of the GPUs
BEND: Final = 0.3  # curvature of the power curve of a CPU
MEMORY: Final = 0.65  # power of a GPU in memory-bound kernels / loaded power
IDLE: Final = {"cpu": 0.2, "gpu": 0.12, "nic": 0.7, "switch": 0.8, "hdd": 0.65, "raid": 0.65, "ssd": 0.25, "disk": 0.4}
USUAL_IDLE: Final = 0.5
SMALL: Final = {  # kind: default idle and loaded power of small parts (watts)
    "nic": (14.0, 20.0), "ssd": (5.0, 20.0), "hdd": (5.0, 8.0), "disk": (5.0, 10.0),
}  # fmt: skip
FREE: Final = frozenset({"memory", "volume", "filesystem"})  # kinds without own power: part of the CPU, or remote


@dataclass(frozen=True, slots=True)
class PowerItem:
    """The power of identical parts.

    Args:
        name: name of the parts, such as "node*.gpu*".
        kind: kind of device.
        count: number of parts.
        idle: idle power of one part (watts).
        loaded: power of one part at full load (watts).
        memory: power of a GPU in memory-bound kernels (watts).
        besides: share of the power for fans and power supplies.
        measured: whether the node was measured as a whole.
        guessed: whether the idle power is a class default.
        source: source of the loaded power.
        part: identity of the part in its layout.
    """

    name: str
    kind: str
    count: int
    idle: float
    loaded: float
    memory: float
    besides: float
    measured: bool
    guessed: bool
    source: str
    part: int
    changed: float = 1.0

    @property
    def draw(self) -> tuple[str, float, float, float]:
        """Key that is equal for devices with equal power."""
        return self.kind, self.idle, self.loaded, self.memory

    def above_idle(self, busy: float, memory: float = 0.0) -> float:
        """Return the average power of one part above idle (watts).

        busy: share of time at full rate.
        memory: share of time bound by memory (GPU).
        """
        busy = min(max(busy, 0.0), 1.0)
        if self.kind == "cpu":
            return (self.loaded - self.idle) * busy * (1.0 - BEND * (1.0 - busy))
        memory = min(max(memory, 0.0), 1.0 - busy)
        return (self.loaded - self.idle) * busy + (self.memory - self.idle) * memory


@dataclass(frozen=True, slots=True)
class Power:
    """The wall power of a machine (watts).

    Args:
        idle: idle power of all parts with a known power.
        loaded: loaded power of all parts with a known power.
        items: power by part.
        missing: names of parts without `power:`.
    """

    idle: Amount
    loaded: Amount
    items: tuple[PowerItem, ...]
    missing: tuple[str, ...] = ()


def power_of(machine: Machine) -> Power:
    """Return the power of a machine, idle and with all parts busy."""
    missing: list[str] = []
    items = tuple(_items(machine.layout, "", 1, missing))
    idle = [_range(item, item.idle, GUESSED if item.guessed else RATED) for item in items]
    loaded = [_range(part, part.loaded, RATED) for part in items]
    return Power(_sum(idle), _sum(loaded), items, tuple(dict.fromkeys(missing)))


def _range(item: PowerItem, watts: float, rated: float) -> Amount:
    return Amount.within(watts * item.count * (1.0 + item.besides), MEASURED if item.measured else rated)


def _sum(amounts: list[Amount]) -> Amount:
    """Return the sum of amounts with a common error: ratings are all too high, or all too low."""
    return Amount(*(math.fsum(getattr(amount, end) for amount in amounts) for end in ("value", "low", "high")))


def _items(layout: Layout, inside: str, many: int, missing: list[str]) -> Iterator[PowerItem]:
    """Yield the parts of a scope and of its inner scopes, `many` times."""
    lacking: list[str] = []
    items = [power_item for part in layout.parts for power_item in _of_part(part, inside, many, lacking)]
    if layout.drawn is None or not is_as_listed(layout):  # a node with other GPUs does not draw what that one was measured to
        missing += lacking
        yield from items
        return
    yield from _scaled(layout, items, inside, many)


def _of_part(part: LayoutPart, inside: str, many: int, missing: list[str]) -> Iterator[PowerItem]:
    name = inside + (f"{part.family}*" if part.numbered else part.family)
    count = many * len(part.names)
    if part.child is not None:
        yield from _items(part.child, f"{name}.", count, missing)
        return
    power = getattr(part.model, "power", None)
    kind = part.kind
    if power is None and kind == "raid":  # its disks draw it
        array: Any = part.model
        power, count, kind = array.member.power, count * array.members, array.member.kind
    small = SMALL.get(kind)
    if power is None and small is not None:
        yield PowerItem(name, part.kind, count, small[0], small[1], small[0], 0.0, False, True, "default: a usual one", id(part))
        return
    if power is None:
        if part.kind not in FREE:
            missing.append(name)
        return
    drawn = (
        power if isinstance(power, PowerCurve) else PowerCurve(loaded=power) if power > 0 else PowerCurve(loaded=0.0, idle=0.0)
    )
    share = IDLE.get(part.kind, USUAL_IDLE)
    idle = drawn.loaded * share if drawn.idle is None else drawn.idle
    stated = drawn.memory if isinstance(drawn, GpuPowerCurve) else None
    memory = max(idle, drawn.loaded * MEMORY) if stated is None else stated
    sources = getattr(part.model, "sources", {})
    source = str(sources.get("power") or sources.get("power.loaded") or "")
    besides = BESIDES if part.kind == "gpu" else 0.0
    rated = part.model.rated if part.model is not None else None
    yield PowerItem(
        name, part.kind, count, idle, drawn.loaded, memory, besides, False, drawn.idle is None, source, id(part),
        drawn.loaded / rated if rated else 1.0,
    )  # fmt: skip


def _scaled(layout: Layout, items: list[PowerItem], inside: str, many: int) -> Iterator[PowerItem]:
    """Return the parts of a machine that was measured as a whole, scaled to the measured power."""
    curve = layout.drawn if isinstance(layout.drawn, PowerCurve) else PowerCurve(loaded=layout.drawn or 0.0)
    before = [(part.idle / part.changed if part.guessed else part.idle, part) for part in items]  # watts as they were measured
    idle = math.fsum(rest * part.count * (1.0 + part.besides) for rest, part in before) / many
    above = math.fsum((part.loaded / part.changed - rest) * part.count * (1.0 + part.besides) for rest, part in before) / many
    measured = layout.drawn_source.kind == "measured"
    at_rest = curve.idle if curve.idle is not None else min(idle, curve.loaded) if items else curve.loaded * USUAL_IDLE
    if not items or idle <= 0 or above <= 0:
        yield from _in_place(layout, PowerCurve(loaded=curve.loaded, idle=at_rest), inside, many, measured=measured)
        return
    low, high = at_rest / idle, (curve.loaded - at_rest) / above
    for item in items:
        factor = 1.0 + item.besides
        rest = item.idle * low * factor
        yield replace(
            item,
            idle=rest,
            loaded=rest + (item.loaded - item.idle) * high * factor,
            memory=rest + (item.memory - item.idle) * high * factor,
            besides=0.0,
            measured=measured and item.changed == 1.0,
            guessed=item.guessed and curve.idle is None,
            source=str(layout.drawn_source),
        )


def _in_place(layout: Layout, curve: PowerCurve, inside: str, many: int, *, measured: bool) -> Iterator[PowerItem]:
    """Return the power of a machine whose parts have none, assigned to its GPUs, or to its CPUs without GPUs."""
    kinds = [part for part in layout.parts if part.kind == "gpu"] or [part for part in layout.parts if part.kind == "cpu"]
    kinds = kinds or layout.parts[:1]
    several = sum(len(part.names) for part in kinds)
    for part in kinds:
        name = inside + (f"{part.family}*" if part.numbered else part.family)
        idle, loaded = (curve.idle or 0.0) / several, curve.loaded / several
        yield PowerItem(
            name, part.kind, many * len(part.names), idle, loaded, max(idle, loaded * MEMORY), 0.0, measured, False,
            str(layout.drawn_source), id(part),
        )  # fmt: skip
