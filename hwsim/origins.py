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
from typing import Final, Literal, NamedTuple, get_args

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
    def step(self) -> float:
        """How far a number is moved to see what follows it, as a logarithm: by its spread, or by 0.25."""
        return self.spread or 0.25

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

# How well the numbers behind a time are known: of this very device; of another source's runs of it; from devices of the same
# generation; from other generations alone; from nothing alike; or the workload gives the time.
Case = Literal["known", "source", "device", "generation", "outside", "stated"]
CASES: Final[tuple[Case, ...]] = ("known", "source", "device", "generation", "outside")  # the surest first


def case_of(source: Cited, guess: Case = "device") -> Case | None:
    """The case of a number with this source; None for an ideal, for what a file states or a standard fixes, and for words.

    Args:
        guess: case of a guess that is not from another part with the same chip.

    >>> case_of(Origin("default", "nvidia/hopper, 3 parts, 6 %", 0.06, "device")), case_of(Origin("default"))
    ('device', None)
    >>> case_of(Origin("guess", "as the A100"), guess="generation"), case_of(Origin("twin", "as the H100"), guess="generation")
    ('generation', 'device')
    >>> case_of(Origin("fitted", "half of the sizes; no guess")), case_of("guess, in words alone")
    ('known', None)
    """
    if not isinstance(source, Origin):
        return None
    match source.kind:
        case "default":
            return source.known or None
        case "guess":
            return guess
        case "what-if":
            return "generation"
        case "elsewhere":
            return "source"
        case "fitted" | "measured":
            return "known"
        case "datasheet" | "recalled" | "twin":
            return "device"
        case _:
            return None


class Doubt(NamedTuple):
    """Seconds of a line whose error has one cause; how large it is stands in `errors.yaml`.

    Args:
        regime: which errors it has, a key of `errors.yaml`: "product/big", "nccl/large".
        case: how well its numbers are known.
        key: who shares the error: "h100-sxm matmul.fp16"; seconds under one key are too long or too short together.
        seconds: seconds of the line that hang on it.
    """

    regime: str
    case: Case
    key: str
    seconds: float


PLAIN: Final = "number"  # first word of the regime of a number that no model's errors cover: "number/guess.latency"
LETTERS: Final = 90  # of the source of a number in the name of its error
_UNMEASURED: Final = frozenset[Kind](("elsewhere", "guess", "what-if", "twin", "default"))


def doubt_of(name: str, source: Origin, of: str = "any", seconds: float = 0.0) -> Doubt:
    """The error of a number alone, by its own spread or by its source.

    Args:
        of: what it is a number of: "latency", "bandwidth", "efficiency" or "any".

    >>> doubt_of("time", Origin("guess", "as others"))[:3], doubt_of("rate", Origin("stated", "as given", 0.1)).regime
    (('number/guess.any', 'device', 'time: guess, as others'), 'number/=0.1')
    """
    kind = "guess" if source.kind in ("twin", "what-if") or source.plain == IDEAL else source.kind
    regime = f"{PLAIN}/{kind}.{of}" if source.spread is None else f"{PLAIN}/={source.spread!r}"
    case: Case = (case_of(source) or "device") if source.kind in _UNMEASURED else "known"
    text = f"{name}: {source.plain!s}"
    return Doubt(regime, case, text if len(text) <= LETTERS else text[:LETTERS] + "...", seconds)
