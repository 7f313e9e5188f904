"""How much of a long loop was simulated, and what the rest was taken from."""

from __future__ import annotations

from dataclasses import dataclass

from hwsim.ticks import FEMTO
from hwsim.units import format_quantity


@dataclass(frozen=True, slots=True)
class Steady:
    """What was simulated of a loop of `times` iterations.

    period: fs from one to the next, 0 if they never repeated (`why` says what was in the way).
    identical: successive iterations that were found the same but for that shift.
    """

    times: int
    simulated: int
    period: int = 0
    identical: int = 0
    why: str = ""

    def __str__(self) -> str:
        if not self.period:
            return f"all {self.times:,} iterations simulated"
        return (
            f"{self.simulated:,} of {self.times:,} iterations simulated; {self.identical} in a row "
            f"were the same to the femtosecond, one every {format_quantity(self.period / FEMTO, 's')}"
        )
