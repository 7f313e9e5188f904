"""A tornado: the result at both ends of the range of each uncertain input, with the other inputs unchanged.

All inputs of a part are first varied together. If the result does not change at either end, none of them is varied alone;
otherwise the group is halved until single inputs are left (group testing).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Literal

from hwsim.records import dataclass
from hwsim.sensitivities.terms import Term

Settings = Mapping[str, str]
End = Literal["low", "high"]
Evaluate = Callable[[Sequence[Term], End], float | None]


@dataclass(frozen=True, slots=True)
class Bar:
    """The result at both ends of the range of an input or of a model error.

    Args:
        name: the number, or the error of a model.
        at_low, at_high: answers at its lower and its upper end.
        answer: the answer itself, which lies between them.
        range: the ends in words; source: where the range is from.
        term: the number; None for an error of a model.
        is_counted: whether the interval of the answer has this error as its own; else it is in the error of a model.
        refused: an end that the files do not allow: "low", "high" or "".
    """

    name: str
    at_low: float
    at_high: float
    answer: float
    range: str
    source: str
    term: Term | None = None
    is_counted: bool = True
    refused: str = ""

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """What is set for both ends; empty for an error of a model."""
        return () if self.term is None else (self.term.low, self.term.high)

    @property
    def low(self) -> float:
        """The lowest answer, which may be the answer itself."""
        return min(self.at_low, self.at_high, self.answer)

    @property
    def high(self) -> float:
        """The highest answer."""
        return max(self.at_low, self.at_high, self.answer)

    @property
    def swing(self) -> float:
        """From the lowest to the highest."""
        return self.high - self.low


def tornado(
    answer: float, terms: Sequence[Term], evaluate: Evaluate, progress: Callable[[int, int], None] | None = None
) -> tuple[Bar, ...]:
    """Return a bar for each input that changes the result, the longest first.

    Args:
        evaluate: the answer with some numbers at their lower or upper ends; None where the files do not allow them.
    """
    bars: list[Bar] = []
    done = 0
    for _, members in groupby(sorted(terms, key=_part), key=_part):
        group = list(members)
        bars += _searched(answer, group, evaluate)
        done += len(group)
        if progress is not None:
            progress(done, len(terms))
    return ordered(bars)


def ordered(bars: Sequence[Bar]) -> tuple[Bar, ...]:
    """Bars by their swing, those within the errors of models last."""
    return tuple(sorted(bars, key=lambda bar: (not bar.is_counted, -bar.swing, bar.name)))


def _part(term: Term) -> tuple[str, tuple[int, ...]]:
    return term.number.part, term.options


def _searched(answer: float, terms: Sequence[Term], evaluate: Evaluate) -> list[Bar]:
    ends = [evaluate(terms, "low"), evaluate(terms, "high")]
    if all(end == answer for end in ends):
        return []
    if len(terms) > 1:
        half = len(terms) // 2
        return _searched(answer, terms[:half], evaluate) + _searched(answer, terms[half:], evaluate)
    term = terms[0]
    refused = next((name for name, end in zip(("low", "high"), ends, strict=True) if end is None), "")
    low, high = (answer if end is None else end for end in ends)
    if low == high == answer:
        return []
    return [Bar(term.name, low, high, answer, term.range, term.source, term, refused=refused)]
