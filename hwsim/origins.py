"""Sources of numbers, as data: each goes with its number from the file into the answer, and is text only where it is printed.

    kind     what sort of source it is, one of `Kind`; all that is decided by a source is decided by it
    ref      the document, measurement or file, for readers
    spread   one standard deviation of ln(number), where the file or the class says it
    known    of a number that a class fills in: which devices it is from

>>> source = Origin("fitted", "d2l 13.1", 0.05)
>>> str("rate, of one core: " + source + ", twice"), ("rate: " + source).kind
('rate, of one core: fitted, d2l 13.1, spread 5 %, twice', 'fitted')
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal, get_args

from hwsim.formats import percent
from hwsim.records import dataclass

# What a file may say, then: any other text of a file, what a class fills in (an ideal without a class), and what a user states
# in place of a number of the library, or goes with that (`hwsim.machine.proportions`).
Known = Literal["datasheet", "standard", "measured", "fitted", "recalled", "twin", "guess", "elsewhere"]
Kind = Known | Literal["stated", "default", "what-if"]
SOURCES: Final[tuple[Known, ...]] = get_args(Known)
LEAST_SURE: Final[tuple[Kind, ...]] = (  # those whose numbers are unsure
    "elsewhere", "guess", "what-if", "twin", "default", "recalled", "datasheet", "fitted", "measured",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Origin:
    """Source of a number.

    Args:
        before, after: what else a derivation says of the number, around the source.
    """

    kind: Kind
    ref: str = ""
    spread: float | None = None
    known: Literal["", "device", "generation", "outside"] = ""
    before: str = ""
    after: str = ""

    @property
    def doubts(self) -> bool:
        """Whether a number from it is unsure: `spread: 0` says that it is exact."""
        return self.kind in LEAST_SURE if self.spread is None else self.spread > 0

    @property
    def plain(self) -> Origin:
        """The source alone."""
        return replace(self, before="", after="") if self.before or self.after else self

    def replace(self, old: str, new: str) -> Origin:
        """The same with another name in what the derivation says."""
        return replace(self, before=self.before.replace(old, new), after=self.after.replace(old, new))

    def __radd__(self, before: str) -> Origin:
        return replace(self, before=before + self.before)

    def __add__(self, after: str) -> Origin:
        return replace(self, after=self.after + after)

    def __format__(self, spec: str) -> str:
        raise TypeError("a source is added to words (+), so that it stays one; where it is printed it is {source!s}")

    def __str__(self) -> str:
        if self.kind == "default":
            text = f"default: {self.ref}" if self.ref else "default"
        else:
            text = self.ref if self.kind == "stated" else f"{self.kind}, {self.ref}" if self.ref else self.kind
            text += "" if not self.spread else f", spread {percent(self.spread, '.6g')}"
        return f"{self.before}{text}{self.after}"


class Unsure(float):
    """A number that a file gives with a source that doubts it."""

    origin: Origin

    def __new__(cls, value: float, origin: Origin) -> Unsure:
        number = super().__new__(cls, value)
        number.origin = origin
        return number


Cited = Origin | str  # of a number in a derivation: its source, or words of how it comes about, which nothing doubts
GIVEN: Final = Origin("stated", "as given")
IDEAL: Final = Origin("default")
