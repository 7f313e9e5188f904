"""Power of parts and machines: the key `power:`.

power: 700 W                                        maximum
power: {idle: 80 W, loaded: 700 W, memory: 455 W}   idle, in matmuls, in memory-bound kernels
"""

from __future__ import annotations

from collections.abc import Iterator

from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Watts


@dataclass(frozen=True, slots=True)
class PowerCurve:
    """The power of a part, or of a whole machine at the wall."""

    loaded: Watts = field("power at full load: in large matmuls, with all cores busy, or at full transfer rate")
    idle: Watts | None = field("idle power (default: a share of `loaded` that depends on the kind of device)", default=None)

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid combination of keys."""
        if self.idle is not None and self.idle > self.loaded:
            yield "idle", f"expected at most `loaded`, {self.loaded:g} W, got {self.idle:g} W", "are the two exchanged?"


@dataclass(frozen=True, slots=True)
class GpuPowerCurve(PowerCurve):
    """The power of a GPU, whose kernels are compute-bound or memory-bound."""

    memory: Watts | None = field("power in memory-bound kernels (default: 65 % of `loaded`)", default=None)

    def problems(self) -> Iterator[Problem]:
        yield from PowerCurve.problems(self)
        if self.memory is not None and not (self.idle or 0.0) <= self.memory <= self.loaded:
            yield "memory", f"expected a power between `idle` and `loaded`, {self.loaded:g} W, got {self.memory:g} W", None


def loaded_watts(power: float | PowerCurve | None) -> float | None:
    """Return the maximum power of a part (W), from its `power:`."""
    return power.loaded if isinstance(power, PowerCurve) else power
