"""A tornado: the result at both ends of the range of each uncertain input, with the other inputs unchanged.

All inputs of a part are first varied together. If the result does not change at either end, none of them is varied alone;
otherwise the group is halved until single inputs are left (group testing).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Literal

from hwsim.records import dataclass
from hwsim.sensitivities.terms import UncertainInput

Settings = Mapping[str, str]
End = Literal["low", "high"]
Evaluate = Callable[[Sequence[UncertainInput], End], float | None]


@dataclass(frozen=True, slots=True)
class TornadoBar:
    """The result at both ends of the range of an input or of a model error.

    Args:
        name: name of the input or of the model error.
        at_low: result at the lower end.
        at_high: result at the upper end.
        answer: result with the value itself.
        range: range, as text.
        source: source of the range.
        term: input; None for a model error.
        is_counted: whether the interval includes this error separately; else it is part of a model error.
        refused: end that the files do not allow ("low" or "high"); "" if both are allowed.
    """

    name: str
    at_low: float
    at_high: float
    answer: float
    range: str
    source: str
    term: UncertainInput | None = None
    is_counted: bool = True
    refused: str = ""

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """Settings of both ends; empty for a model error."""
        return () if self.term is None else (self.term.low, self.term.high)

    @property
    def low(self) -> float:
        """Lowest result."""
        return min(self.at_low, self.at_high, self.answer)

    @property
    def high(self) -> float:
        """Highest result."""
        return max(self.at_low, self.at_high, self.answer)

    @property
    def swing(self) -> float:
        """Highest minus lowest result."""
        return self.high - self.low


def tornado(
    answer: float, terms: Sequence[UncertainInput], evaluate: Evaluate, progress: Callable[[int, int], None] | None = None
) -> tuple[TornadoBar, ...]:
    """Return a bar for each input that changes the result, longest first.

    Args:
        answer: result with all inputs at their values.
        terms: inputs.
        evaluate: function that returns the result with some inputs at one end, or None if the files do not allow it.
        progress: function that is called with (inputs done, total).
    """
    bars: list[TornadoBar] = []
    done = 0
    for _, members in groupby(sorted(terms, key=_part), key=_part):
        group = list(members)
        bars += _searched(answer, group, evaluate)
        done += len(group)
        if progress is not None:
            progress(done, len(terms))
    return ordered(bars)


def ordered(bars: Sequence[TornadoBar]) -> tuple[TornadoBar, ...]:
    """Sort bars by swing; bars that are part of model errors are last."""
    return tuple(sorted(bars, key=lambda bar: (not bar.is_counted, -bar.swing, bar.name)))


def _part(term: UncertainInput) -> tuple[str, tuple[int, ...]]:
    return term.number.part, term.options


def _searched(answer: float, terms: Sequence[UncertainInput], evaluate: Evaluate) -> list[TornadoBar]:
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
    return [TornadoBar(term.name, low, high, answer, term.range, term.source, term, refused=refused)]
