"""Warnings: what was accepted and is probably not meant, or cannot be built. Each has a code that a script can test.

A run goes on with its warnings. A question without an answer is a mistake (`hwsim.spec.mistakes`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from hwsim.records import dataclass
from hwsim.spec.mistakes import Place, one_line

CODES: Final = (
    "accesses-in-the-mean", "class-guessed", "clients-in-step", "collectives-apart", "disk-overfull", "faster-apart",
    "idle-workers", "lone-barrier", "name-ends-in-digit", "never-asked", "no-effect", "not-calibrated", "not-folded",
    "not-measured", "nothing-makes-it", "overloaded", "part-of-a-day", "power-over-budget", "requests-cut",
    "runtime-replaced", "services-stuck", "set-in-both", "slower-than-slot", "stall-loses-nothing", "still-filling",
    "timeout-too-short", "tokens-gathered", "unlike-provenance", "wider-format", "working-set-too-large",
)  # fmt: skip
"""docs/warnings.md says what each means."""
EXCEEDS: Final = frozenset({"disk-overfull", "overloaded", "power-over-budget", "services-stuck", "working-set-too-large"})
"""Codes of runs that use more of something than the machine has: such a machine cannot do what was simulated."""


@dataclass(frozen=True, slots=True)
class Warning:
    """A statement that is accepted but probably not meant.

    Args:
        code: one of `CODES`.
        text: what was found, in one line.
        place: where it stands; None if it stands in no single place of a file.

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
        """Whether the machine has less of something than the run uses."""
        return self.code in EXCEEDS

    @property
    def message(self) -> str:
        """The text after its place."""
        return f"{self.place}: {self.text}" if self.place is not None and self.place.file else self.text

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def as_dict(self) -> dict[str, Any]:
        """The warning for JSON: code, text, place ("file:line:column" or null)."""
        return {"code": self.code, "text": self.text, "place": str(self.place) if self.place and self.place.file else None}


def different(*groups: Iterable[Warning]) -> tuple[Warning, ...]:
    """All warnings of the groups in their order, each once."""
    return tuple(dict.fromkeys(each for group in groups for each in group))
