"""How long flash lasts: it may be programmed so often, or the maker vouches for so many bytes.

    lifetime = endurance / (written x amplification),   endurance = size x cycles
    lifetime = written / rate                            where the maker states the bytes (TBW), amplification included
    written = drive writes per day x size x warranty     where the maker states those (DWPD)

Source: JESD218 and JESD219 (JEDEC) define what a maker states.  Range: wear levelling spreads it evenly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Bytes, Seconds

YEAR: Final = 365.25 * 86400.0


@dataclass(frozen=True, slots=True)
class Endurance:
    """One of: bytes written in all, drive writes per day, cycles of each block."""

    written: Bytes | None = field("bytes the maker vouches for (TBW)", default=None, exclusive_minimum=0.0, example="1.2 PB")
    per_day: float | None = field("drive writes per day the maker vouches for (DWPD)", default=None, exclusive_minimum=0.0)
    warranty: Seconds = field("how long, with `per_day`", default=5 * YEAR)
    cycles: float | None = field("how often each block can be programmed and erased", default=None, exclusive_minimum=0.0)

    def problems(self) -> Iterator[tuple[str, str, str | None]]:
        """(key, message, hint) of what cannot be."""
        if sum(each is not None for each in (self.written, self.per_day, self.cycles)) != 1:
            yield "written", "the endurance is given once", "one of `written: 1.2 PB`, `per_day: 1`, `cycles: 3000`"

    def bytes(self, size: float | None, amplification: float = 1.0) -> float | None:
        """What the host may write in all; None where the size is needed and not known.

        >>> Endurance(per_day=1.0, warranty=5 * 365 * 86400.0).bytes(1e12) / 1e15
        1.825
        """
        if self.written is not None:
            return self.written
        if size is None:
            return None
        if self.per_day is not None:
            return self.per_day * size * self.warranty / 86400.0
        return (self.cycles or 0.0) * size / amplification
