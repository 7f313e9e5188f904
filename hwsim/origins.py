"""Sources of numbers as data: a source accompanies its number from the file to the answer and becomes text only in output.

    kind     kind of source, one of `Kind`; all decisions that depend on a source depend on its kind
    ref      document, measurement or file, for readers
    spread   standard deviation of ln(number), if the file or the class states it
    known    for a class default: devices from which it was derived

>>> source = Origin("fitted", "d2l 13.1", 0.05)
>>> str("rate, of one core: " + source + ", twice"), ("rate: " + source).kind
('rate, of one core: fitted, d2l 13.1, spread 5 %, twice', 'fitted')
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal, NamedTuple, get_args

from hwsim.formats import percent
from hwsim.records import dataclass

# Kinds that a file may state. In addition, stated: a number without a kind of source; default: filled in by a class, or an ideal
# value without a class; what-if: a number changed by the user, or derived from such a change (`hwsim.machine.proportions`).
Known = Literal["datasheet", "standard", "measured", "fitted", "recalled", "twin", "guess", "elsewhere"]
Kind = Known | Literal["stated", "default", "what-if"]
SOURCES: Final[tuple[Known, ...]] = get_args(Known)
UNCERTAIN_KINDS: Final[tuple[Kind, ...]] = (  # kinds of sources whose numbers are uncertain, the most uncertain first
    "elsewhere", "guess", "what-if", "twin", "default", "recalled", "datasheet", "fitted", "measured",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Origin:
    """A source of a number.

    Args:
        kind: kind of source.
        ref: document, measurement or file.
        spread: standard deviation of ln(number); None: not stated.
        known: for a class default: the devices from which it was derived.
        before: text of a derivation before the source.
        after: text of a derivation after the source.
    """

    kind: Kind
    ref: str = ""
    spread: float | None = None
    known: Literal["", "device", "generation", "outside"] = ""
    before: str = ""
    after: str = ""

    @property
    def doubts(self) -> bool:
        """Whether a number from this source is uncertain; `spread: 0` means exact."""
        return self.kind in UNCERTAIN_KINDS if self.spread is None else self.spread > 0

    @property
    def step(self) -> float:
        """Change of ln(number) with which sensitivities are computed: the spread, else 0.25."""
        return self.spread or 0.25

    @property
    def plain(self) -> Origin:
        """Source without the text around it."""
        return replace(self, before="", after="") if self.before or self.after else self

    def replace(self, old: str, new: str) -> Origin:
        """Return a copy with another name in the text around it."""
        return replace(self, before=self.before.replace(old, new), after=self.after.replace(old, new))

    def __radd__(self, before: str) -> Origin:
        return Origin(self.kind, self.ref, self.spread, self.known, before + self.before, self.after)  # faster than `replace`

    def __add__(self, after: str) -> Origin:
        return Origin(self.kind, self.ref, self.spread, self.known, self.before, self.after + after)

    def __format__(self, spec: str) -> str:
        raise TypeError("add a source to text with +, or print it as {source!s}")

    def __str__(self) -> str:
        if self.kind == "default":
            text = f"default: {self.ref}" if self.ref else "default"
        else:
            text = self.ref if self.kind == "stated" else f"{self.kind}, {self.ref}" if self.ref else self.kind
            text += "" if not self.spread else f", spread {percent(self.spread, '.6g')}"
        return f"{self.before}{text}{self.after}"


class UncertainNumber(float):
    """A number of a file whose source makes it uncertain."""

    origin: Origin

    def __new__(cls, value: float, origin: Origin) -> UncertainNumber:
        number = super().__new__(cls, value)
        number.origin = origin
        return number


Cited = Origin | str  # source of a number in a derivation, or an exact description
GIVEN: Final = Origin("stated", "as given")
IDEAL: Final = Origin("default")

# Basis of the numbers behind a time. known: measured on this device; source: on this device by another source; device: on devices
# of the same generation; generation: on other generations only; outside: nothing comparable; stated: time stated in the workload.
Case = Literal["known", "source", "device", "generation", "outside", "stated"]
CASES: Final[tuple[Case, ...]] = ("known", "source", "device", "generation", "outside")  # least uncertain first


def case_of(source: Cited, guess: Case = "device") -> Case | None:
    """Return the case of a number with this source; None for ideal values, plain statements, standards and descriptions.

    Args:
        source: source or description.
        guess: case of a guess that is not taken from another part with the same chip.

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


class UncertaintySource(NamedTuple):
    """A source of uncertainty of a derivation line, whose size is in `errors.yaml`.

    Args:
        regime: key of the errors in `errors.yaml`, such as "product/big" or "nccl/large".
        case: basis of the numbers.
        key: group of lines that share one error, such as "h100-sxm matmul.fp16": they are too long or too short together.
        seconds: part of the line (s) that the error affects.
    """

    regime: str
    case: Case
    key: str
    seconds: float


PLAIN: Final = "number"  # first part of the regime of a number without model errors: "number/guess.latency"
MAX_KEY_LETTERS: Final = 90  # maximum length of a source in the key of its error
_UNMEASURED: Final = frozenset[Kind](("elsewhere", "guess", "what-if", "twin", "default"))


def number_uncertainty(name: str, source: Origin, of: str = "any", seconds: float = 0.0) -> UncertaintySource:
    """Return the uncertainty of a single number, from its spread or its kind of source.

    Args:
        name: name of the number.
        source: source of the number.
        of: quantity: "latency", "bandwidth", "efficiency" or "any".
        seconds: time (s) that depends on it.

    >>> number_uncertainty("time", Origin("guess", "as others"))[:3]
    ('number/guess.any', 'device', 'time: guess, as others')
    >>> number_uncertainty("rate", Origin("stated", "as given", 0.1)).regime
    'number/=0.1'
    """
    kind = "guess" if source.kind in ("twin", "what-if") or source.plain == IDEAL else source.kind
    regime = f"{PLAIN}/{kind}.{of}" if source.spread is None else f"{PLAIN}/={source.spread!r}"
    case: Case = (case_of(source) or "device") if source.kind in _UNMEASURED else "known"
    text = f"{name}: {source.plain!s}"
    return UncertaintySource(regime, case, text if len(text) <= MAX_KEY_LETTERS else text[:MAX_KEY_LETTERS] + "...", seconds)
