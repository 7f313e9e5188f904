"""Warnings about valid input that is probably unintended, or that the machine cannot do; each has a code for scripts.

A run continues after a warning. Invalid input is a mistake (`hwsim.spec.mistakes`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from hwsim.records import dataclass
from hwsim.spec.mistakes import Place, one_line

CODES: Final = (
    "ambiguous-parameter", "class-guessed", "disk-full", "duplicate-collectives", "idle-workers", "lone-barrier",
    "mean-access-time", "mixed-provenance", "name-ends-in-digit", "never-written", "no-effect", "no-expert-dispatch",
    "no-requests", "no-steady-state", "no-work-lost", "not-calibrated", "not-folded", "not-measured", "older-pcie-card",
    "overloaded", "partial-cycle", "power-over-budget", "requests-truncated", "runtime-replaced", "service-deadlock",
    "size-in-bits", "split-access-faster", "synchronized-clients", "timeout-too-short", "unsupported-format",
    "working-set-too-large",
)  # fmt: skip
"""Codes of all warnings; docs/warnings.md explains them."""
EXCEEDS: Final = frozenset({"disk-full", "overloaded", "power-over-budget", "service-deadlock", "working-set-too-large"})
"""Codes of runs that exceed a capacity of the machine, which therefore cannot do what was simulated."""


@dataclass(frozen=True, slots=True)
class Warning:
    """A warning about valid input that is probably unintended.

    Args:
        code: one of `CODES`.
        text: finding in one line.
        place: position in a file; None without a single position.

    >>> print(Warning("power-over-budget", "its parts draw up to 2.8 kW, but its supply gives 2 kW"))
    power-over-budget: its parts draw up to 2.8 kW, but its supply gives 2 kW
    """

    code: str
    text: str
    place: Place | None = None

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise ValueError(f"there is no warning '{self.code}'")
        object.__setattr__(self, "text", one_line(self.text))

    @property
    def exceeds(self) -> bool:
        """Whether the run exceeds a capacity of the machine."""
        return self.code in EXCEEDS

    @property
    def message(self) -> str:
        """Text with the place in front."""
        return f"{self.place}: {self.text}" if self.place is not None and self.place.file else self.text

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def as_dict(self) -> dict[str, Any]:
        """Return the warning for JSON: code, text, place ("file:line:column" or null)."""
        return {"code": self.code, "text": self.text, "place": str(self.place) if self.place and self.place.file else None}


def distinct_warnings(*groups: Iterable[Warning]) -> tuple[Warning, ...]:
    """Return the warnings of all groups in order, without duplicates."""
    return tuple(dict.fromkeys(warning for group in groups for warning in group))
