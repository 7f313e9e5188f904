"""Limits on the size of a run, checked before the simulation, with estimates of memory and time.

`hwsim --no-limits COMMAND` disables the limits, as does HWSIM_LIMITS=off in the environment (also for the processes of a study).
"""

from __future__ import annotations

import os
from typing import Final, NamedTuple

from hwsim.formats import format_duration, format_quantity
from hwsim.spec.mistakes import Place, SpecError

VARIABLE: Final = "HWSIM_LIMITS"
_FEWER: Final = "percentiles need far fewer requests (docs/load.md)"
REQUESTS: Final = "requests of services"
LOOKS: Final = "looks of an autoscaler"
LIFTED: Final = "or disable the limit: hwsim --no-limits COMMAND ..."


class RunLimit(NamedTuple):
    """A limit on a count, with memory (bytes) and time (s) per unit, measured to within a factor of three."""

    most: int
    bytes: float
    seconds: float
    hint: str


LIMITS: Final = {
    "ops": RunLimit(30_000_000, 300.0, 3e-6, "reduce the iterations: most loops reach a steady state after a few"),
    "requests": RunLimit(10_000_000, 0.0, 1e-4, _FEWER),
    REQUESTS: RunLimit(100_000_000, 0.0, 1e-5, _FEWER),
    LOOKS: RunLimit(30_000_000, 0.0, 1e-5, "increase `every` of `scale`, or reduce the number of requests"),
    "clients": RunLimit(3_000_000, 400.0, 1e-5, "use an arrival rate, which represents any number of clients"),
}


def refuse_beyond(unit: str, count: int, place: Place | None = None) -> None:
    """Raise SpecError if a run exceeds a limit, unless limits are disabled.

    Args:
        unit: key of `LIMITS`.
        count: lower bound of the count.
        place: place in the file.
    """
    limit = LIMITS[unit]
    if count <= limit.most or os.environ.get(VARIABLE) == "off":
        return
    memory = f"{format_quantity(count * limit.bytes, 'B')} of memory and " if limit.bytes else ""
    message = f"{count:,} {unit} exceed the limit of {limit.most:,}; they would take about {memory}"
    raise SpecError.of(place, message + format_duration(count * limit.seconds, 3), f"{limit.hint}; {LIFTED}")


__all__ = ["LIMITS", "LOOKS", "REQUESTS", "refuse_beyond"]
