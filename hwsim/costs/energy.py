"""Energy of a run from the busy times of its parts, and of a closed form from shares of time (see `hwsim.costs.power`).

A GPU kernel is matrix-bound for the time of its arithmetic at the achieved peak, and memory-bound for the time by which its
memory traffic takes longer. Overlapping kernels do not draw more than the GPU's maximum.

**Source**, **Error**, **Range**: as in `hwsim.costs.power`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final

from hwsim.costs.amount import Amount
from hwsim.costs.busy import DeviceBusyTimes, busy_in
from hwsim.costs.power import MEASURED, RATED, Power, PowerItem, power_of
from hwsim.costs.site import Site
from hwsim.families_interface import family_reports
from hwsim.machine import Machine
from hwsim.records import dataclass
from hwsim.results.result import Result

RATED_PART: Final = 0.1  # largest share of rated parts (NICs, switches) in a measured energy
HERE: Final = Site()  # no site: energy at the wall plug


@dataclass(frozen=True, slots=True)
class EnergyItem:
    """The energy of identical parts (joules); `busy`: average share of time at full rate or bound by memory."""

    name: str
    kind: str
    count: int
    joules: float
    busy: float = 0.0


@dataclass(frozen=True, slots=True)
class Energy:
    """The energy of a run.

    Args:
        joules: energy at the meter (joules); includes cooling if the site has a PUE.
        seconds: time of the run (seconds).
        wall: energy at the wall plugs of the machines, before PUE (joules).
        watts: average wall power (watts).
        peak: peak wall power (watts).
        loaded: wall power with all parts busy (watts).
        shared: whether the energy covers only the GPUs of running replicas (see `part_on`).
        items: energy by part, in file order; sums to `joules`.
        missing: parts without `power:`, which are not included.
        measured: whether all nodes were measured as a whole.
        carbon: CO2 (kg); None if the carbon intensity is unknown.
    """

    joules: Amount
    seconds: float
    wall: Amount
    watts: float
    peak: float
    loaded: float
    items: tuple[EnergyItem, ...]
    missing: tuple[str, ...] = ()
    measured: bool = False
    carbon: Amount | None = None
    site: Site = field(default_factory=Site)
    shared: bool = False

    @property
    def complete(self) -> bool:
        """Whether every part has a known power."""
        return not self.missing

    def times(self, factor: float) -> Energy:
        """Return the energy of several such runs in sequence."""
        return Energy(
            self.joules * factor, self.seconds * factor, self.wall * factor, self.watts, self.peak, self.loaded,
            tuple(EnergyItem(item.name, item.kind, item.count, item.joules * factor, item.busy) for item in self.items),
            self.missing, self.measured, None if self.carbon is None else self.carbon * factor, self.site, self.shared,
        )  # fmt: skip

    def machines(self, many: int) -> Energy:
        """Return the energy of several such machines."""
        return Energy(
            self.joules * many, self.seconds, self.wall * many, self.watts * many, self.peak * many, self.loaded * many,
            tuple(EnergyItem(item.name, item.kind, item.count * many, item.joules * many, item.busy) for item in self.items),
            self.missing, self.measured, None if self.carbon is None else self.carbon * many, self.site, self.shared,
        )  # fmt: skip


def energy_of(result: Result, site: Site | None = None) -> Energy | None:
    """Return the energy of a run on its machine; None if no part has a power.

    The idle power of stopped replicas is not included (see `part_on`).

    site: site with PUE and carbon intensity; default: energy at the wall plugs.
    """
    machine = result.built
    if machine is None:
        return None
    power = power_of(machine)
    if not power.items:
        return None
    by_part, above = busy_in(result, machine, power)
    half, factor = stretched(result)
    on, most = part_on(result), part_on(result, at_most=True)
    return _energy(power, result.makespan_s, by_part, site or HERE, above=above, half=half, on=on, most=most).times(factor)


def stretched(result: Result) -> tuple[float, float]:
    """Return (half width of the interval, factor of the user's measurements) of the time that is charged."""
    if not result.sure:
        return 0.0, 1.0
    sure = result.interval
    return (sure.reach, 1.0) if result.of_kernels else (sure.half, sure.factor)


def part_on(result: Result, *, at_most: bool = False) -> float:
    """Return the share of the machine's GPU-hours that is charged: all, except for a single service with autoscaling.

    With autoscaling, it is the share in which replicas ran; GPUs outside the service are not charged.

    Args:
        result: the run.
        at_most: return the share of GPUs at the largest number of replicas instead.
    """
    return min((report.part_on(result, at_most=at_most) for report in family_reports(result)), default=1.0)


def energy_at(
    machine: Machine, seconds: float, busy: Mapping[str, float], site: Site | None = None, *, half: float = 0.0
) -> Energy | None:
    """Return the energy over `seconds`, with every part of a kind busy for a share of the time; None if no part has a power.

    busy: busy share by kind of part: {"gpu": 0.8, "gpu.memory": 0.15, "cpu": 0.1}; `gpu.memory`: bound by memory; default: idle.
    half: half width of the 90 % interval of the time's logarithm.
    """
    power = power_of(machine)
    if not power.items:
        return None
    by_part = {
        item.part: [
            DeviceBusyTimes(busy.get(item.kind, 0.0) * seconds, busy.get(f"{item.kind}.memory", 0.0) * seconds, item.count)
        ]
        for item in power.items
    }
    return _energy(power, seconds, by_part, site or HERE, above=power.loaded.value if busy else None, half=half)


COMPUTING: Final = frozenset({"convolution", "matmul", "attention", "output"})  # kinds of compute-bound work in closed form
MOVING: Final = frozenset({"elementwise", "accumulate", "optimizer"})


def busy_of(shares: Mapping[str, float], full: float = 1.0) -> dict[str, float]:
    """Return the `busy` argument of `energy_at` from the time of a step or batch by kind of work.

    full: share of the matmul time at the GPU's full rate; the rest is bound by memory, as for single tokens.

    >>> busy_of({"matmul": 6.0, "elementwise": 1.0, "tp": 2.0, "bubble": 1.0})
    {'gpu': 0.6, 'gpu.memory': 0.1}
    """
    seconds = math.fsum(shares.values())
    products = math.fsum(spent for kind, spent in shares.items() if kind in COMPUTING)
    memory = math.fsum(spent for kind, spent in shares.items() if kind in MOVING) + products * (1.0 - full)
    return {"gpu": products * full / seconds, "gpu.memory": memory / seconds} if seconds > 0 else {}


def _energy(
    power: Power, seconds: float, busy: Mapping[int, list[DeviceBusyTimes]], site: Site, *, above: float | None = None, half:
    float = 0.0,
    on: float = 1.0, most: float = 1.0,
) -> Energy:  # fmt: skip
    """Return the energy of parts with these busy times.

    Args:
        power: power of the machine.
        seconds: time (seconds).
        busy: busy times by part.
        site: site with PUE and carbon intensity.
        above: peak power of the GPUs above idle (watts); None: their average.
        half: half width of the 90 % interval of the time's logarithm.
        on: average share of the idle power that is drawn.
        most: largest share of the idle power that is drawn.
    """
    rows: list[EnergyItem] = []
    busy = _spread(power.items, busy)
    besides = rated = 0.0
    steady = 0.0  # watts of all but GPUs above idle
    for item in power.items:
        spent, full = _of_item(item, seconds, busy.get(item.part, ()), on)
        rows.append(EnergyItem(item.name, item.kind, item.count, spent, full))
        besides += spent * item.besides
        rated += 0.0 if item.measured else spent * (1.0 + item.besides)
        if item.kind != "gpu" and seconds > 0:
            steady += spent / seconds - item.idle * item.count * on
    if besides > 0:
        rows.append(EnergyItem("fans and power supplies", "", 1, besides))
    value = math.fsum(row.joules for row in rows)
    sure = MEASURED + (RATED - MEASURED) * (min(rated / value, 1.0) if value > 0 else 1.0)
    plug = Amount.within(value, sure).wider(half)
    joules = plug
    if site.pue is not None:
        joules = plug.of(site.pue)
        rows.append(EnergyItem("cooling and distribution", "", 1, joules.value - plug.value))
    mean = value / seconds if seconds > 0 else power.idle.value
    loaded = power.loaded.value
    peak = mean if above is None else min(loaded * most, max(mean, power.idle.value * most + steady + above))
    carbon = None if site.grid is None else joules.of(site.grid)
    is_measured = rated < RATED_PART * value
    return Energy(joules, seconds, plug, mean, peak, loaded, tuple(rows), power.missing, is_measured, carbon, site, on < 1.0)


def _spread(items: Sequence[PowerItem], busy: Mapping[int, list[DeviceBusyTimes]]) -> dict[int, list[DeviceBusyTimes]]:
    """Return busy times by part; a device that represents more devices than its part has also represents equal parts."""
    placed: dict[int, list[DeviceBusyTimes]] = {}
    left = {item.part: item.count for item in items}
    rest: list[tuple[PowerItem, DeviceBusyTimes]] = []
    for item in items:
        for device in busy.get(item.part, ()):
            many = min(device.many, left[item.part])
            left[item.part] -= many
            placed.setdefault(item.part, []).append(device._replace(many=many))
            if device.many > many:
                rest.append((item, device._replace(many=device.many - many)))
    for item, device in rest:
        for room in items:
            many = min(device.many, left[room.part])
            if many and room.draw == item.draw:
                left[room.part] -= many
                placed.setdefault(room.part, []).append(device._replace(many=many))
                device = device._replace(many=device.many - many)
    return placed


def _of_item(item: PowerItem, seconds: float, busy: Iterable[DeviceBusyTimes], on: float) -> tuple[float, float]:
    """Return (energy of all devices of an item in joules, their average busy share)."""
    idle = item.idle * item.count * seconds * on
    if seconds <= 0:
        return 0.0, 0.0
    parts, shares = [], []
    for device in busy:
        full = min(device.full / seconds, 1.0)
        memory = min(device.memory / seconds, 1.0 - full)
        parts.append(device.many * item.above_idle(full, memory) * seconds)
        shares.append(device.many * (full + memory))
    return idle + math.fsum(parts), math.fsum(shares) / item.count
