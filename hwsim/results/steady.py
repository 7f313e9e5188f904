"""How much of a long loop was simulated, and what the rest was taken from."""

from __future__ import annotations

from hwsim.records import dataclass
from hwsim.ticks import FEMTO
from hwsim.units import format_quantity


@dataclass(frozen=True, slots=True)
class Steady:
    """What was simulated of a loop of `times` iterations.

    turns: iterations that repeat together: more than one if an op waits for one of several iterations ago.
    period: fs from so many to the next, 0 if they never repeated (`why` says what was in the way).
    identical: successive iterations that were found the same but for that shift.
    """

    times: int
    simulated: int
    period: int = 0
    identical: int = 0
    why: str = ""
    turns: int = 1

    def __str__(self) -> str:
        if not self.period:
            return f"all {self.times:,} iterations simulated"
        many = "one" if self.turns == 1 else str(self.turns)
        return (
            f"{self.simulated:,} of {self.times:,} iterations simulated; {self.identical} in a row "
            f"were the same to the femtosecond, {many} every {format_quantity(self.period / FEMTO, 's')}"
        )
