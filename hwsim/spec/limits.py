"""Limits on the size of a run, looked at before the work is done: how much a run may ask for, and what that would cost.

`hwsim --no-limits COMMAND`, or HWSIM_LIMITS=off in the environment (which processes of a study see too), lifts them.
"""

from __future__ import annotations

import os
from typing import Final, NamedTuple

from hwsim.formats import format_quantity, lasting
from hwsim.spec.mistakes import Place, SpecError

VARIABLE: Final = "HWSIM_LIMITS"
_FEWER: Final = "percentiles are known after far fewer requests (docs/load.md)"
REQUESTS: Final = "requests of services"
LOOKS: Final = "looks of an autoscaler"
LIFTED: Final = "hwsim --no-limits COMMAND ... goes beyond the limit"


class Limit(NamedTuple):
    """The most of a thing, and what one costs: bytes and seconds, measured, to within a factor of three."""

    most: int
    bytes: float
    seconds: float
    hint: str


LIMITS: Final = {
    "ops": Limit(30_000_000, 300.0, 3e-6, "repeat less often: most loops settle after a few iterations"),
    "requests": Limit(10_000_000, 0.0, 1e-4, _FEWER),
    REQUESTS: Limit(100_000_000, 0.0, 1e-5, _FEWER),
    LOOKS: Limit(30_000_000, 0.0, 1e-5, "`every:` of its `scale:` may be longer, or what it serves shorter"),
    "clients": Limit(3_000_000, 400.0, 1e-5, "a rate of arrivals stands for any number of clients"),
}


def refuse_beyond(unit: str, count: int, place: Place | None = None) -> None:
    """Raise if a run asks for more than the limit.

    Args:
        unit: a key of `LIMITS`.
        count: how many there are at least.

    Raises:
        SpecError: there are too many, and limits are not lifted; it says what they would take.
    """
    limit = LIMITS[unit]
    if count <= limit.most or os.environ.get(VARIABLE) == "off":
        return
    memory = f"{format_quantity(count * limit.bytes, 'B')} of memory and " if limit.bytes else ""
    message = f"{count:,} {unit} would take about {memory}{lasting(count * limit.seconds, 3)}"
    raise SpecError.of(place, f"{message}; the limit is {limit.most:,}", f"{limit.hint}; {LIFTED}")


__all__ = ["LIMITS", "LOOKS", "REQUESTS", "refuse_beyond"]
