"""Uncertain inputs of a machine and a workload, each with its 90 % range and the settings for both ends.

The range follows from the `spread:` of the number, or from the spread of its class or of its kind of source (`errors.yaml`).
Counts, sizes and names are certain. Model constants (curves of kernels, caches and collectives) are correlated, so they are not
varied: the errors of their models are used.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from hwsim.formats import format_count, format_quantity
from hwsim.machine.classes import completed_file
from hwsim.records import dataclass
from hwsim.results.error_weights import error_of_number
from hwsim.results.errors import NORMAL, table
from hwsim.results.interval import LEVEL, spread_of
from hwsim.spec import Mistakes, Tree, origin_of, resolve
from hwsim.spec.numbers import uncertain_numbers
from hwsim.views.explain.numbers import FileNumber, FileNumbers, scalar_text

MODELS: Final = re.compile(  # keys of model constants
    r"(matmul|attention|experts|kernels|occupancy|sustained|reductions|convolutions|collectives)(\.|$)"
    r"|.*(ramp|chase|sharpness)(\.|$)"
)
NO_TIME: Final = re.compile(r"(power|price|supply|lanes|links|ports|nvlinks)(\.|$)")  # keys without effect on the time
OWN: Final = "its own spread"
SIZES: Final = frozenset({"B", "W", "USD", "J"})


@dataclass(frozen=True, slots=True)
class UncertainInput:
    """An uncertain input.

    Args:
        name: name, as in the waterfall: `gpu.memory.bandwidth`, `link slots.bandwidth`.
        number: number in its file, with the path for `--set`.
        sigma: standard deviation of ln(number).
        source: source, as a short text.
        options: options that have it (0: A, 1: B).
    """

    name: str
    number: FileNumber
    sigma: float
    source: str
    options: tuple[int, ...] = (0,)

    @property
    def place(self) -> tuple[str, float, str, float]:
        """Key by which inputs of two options are identified: path, value, source and spread."""
        return self.number.path, self.number.value, self.source, self.sigma

    @property
    def half(self) -> float:
        """Half width of the range, as a logarithm."""
        return NORMAL[LEVEL] * self.sigma

    def times(self, factor: float) -> tuple[str, str]:
        """Return the setting (path, value) of the number times a factor."""
        return self.number.path, self.number.times(factor)

    @property
    def factors(self) -> tuple[float, float]:
        """Ends of the range over the value; shares are limited to 100 %."""
        above = math.exp(self.half)
        is_share = self.number.written.rstrip().endswith("%") and self.number.value <= 1
        return math.exp(-self.half), min(above, 1 / self.number.value) if is_share else above

    @property
    def low(self) -> tuple[str, str]:
        """Setting of the lower end."""
        return self.times(self.factors[0])

    @property
    def high(self) -> tuple[str, str]:
        """Setting of the upper end."""
        return self.times(self.factors[1])

    @property
    def range(self) -> str:
        """Range in the unit of the file: `1210–1990 GB/s`."""
        low, high = (self.number.times(factor).partition(" ") for factor in self.factors)
        if not low[1]:
            return "–".join(format_quantity(self.number.value * factor, self.number.unit) for factor in self.factors)
        return f"{short(float(low[0]))}–{short(float(high[0]))} {high[2]}"


def short(number: float) -> str:
    """Return a number with three digits, or all digits before the point.

    >>> short(1.23456), short(1213.7), short(2.9436e7), short(0.00012)
    ('1.23', '1214', '29,400,000', '0.00012')
    """
    return f"{number:.0f}" if 1000 <= abs(number) < 1e6 else format_count(number)


def joined(options: Sequence[Sequence[UncertainInput]]) -> tuple[UncertainInput, ...]:
    """Return the inputs of all options, each once, with the options that have it.

    If only one of two options has an input, its name starts with the letter of the option (`A cpu.clock`). Ambiguous names end
    with the place of the number (`link slots.bandwidth (links.3)`).
    """
    places = [{term.place: term for term in terms} for terms in options]
    found = []
    for place, term in {**places[-1], **places[0]}.items():
        have = tuple(number for number, terms in enumerate(places) if place in terms)
        letter = "" if len(have) == len(places) else f"{'AB'[have[0]]} "
        found.append(replace(term, name=f"{letter}{term.name}", options=have))
    counts = Counter(term.name for term in found)
    named = [term if counts[term.name] == 1 else replace(term, name=f"{term.name} ({_stands(term.number)})") for term in found]
    return tuple(sorted(named, key=lambda term: term.name))


def _stands(number: FileNumber) -> str:
    return number.path.removeprefix("machine.").removesuffix(f".{number.key}")


def terms_of(machine: Tree, workload: Tree) -> tuple[UncertainInput, ...]:
    """Return the uncertain inputs of a machine and a workload, by path.

    Raises:
        SpecError: the machine file has errors.
    """
    mistakes = Mistakes()
    completed = completed_file(resolve(machine, mistakes))
    mistakes.raise_if_any()
    numbers = {number.path: number for number in FileNumbers(completed).everything()}
    terms = [term for number in numbers.values() if (term := _term(number)) is not None]
    terms += _stated(workload)
    return tuple(sorted(terms, key=lambda term: term.number.path))


def _term(number: FileNumber) -> UncertainInput | None:
    if number.source.spread and number.source.kind != "default":
        sigma, source = number.source.spread, OWN
    elif MODELS.match(number.key) or NO_TIME.match(number.key) or number.unit in SIZES or _is_count(number):
        return None
    else:
        regime = error_of_number(number.key, number.source)
        sigma = (spread_of(regime, table()) or 0.0) if regime else 0.0
        source = str(number.source).partition(",")[0]
    return UncertainInput(f"{number.part}.{number.key}", number, sigma, source) if sigma > 0 else None


def _is_count(number: FileNumber) -> bool:
    return number.unit == "1" and float(number.value).is_integer() and not number.written.rstrip().endswith("%")


def _stated(workload: Tree) -> Iterator[UncertainInput]:
    """Yield the numbers of a workload with a `spread:`, such as `{value: 15 ms, spread: 20 %}`."""
    for path, node in uncertain_numbers(workload):
        value, origin = node.get("value") or node, origin_of(node)
        quantity = value.quantity
        if quantity is not None and quantity.value and origin is not None and origin.spread:
            unit = "1/s" if quantity.dimension.unit == "Hz" else quantity.dimension.unit
            name = ".".join(path[1:] if path[0] == "let" else ("workload", *path))
            yield UncertainInput(
                name, FileNumber("the workload", path[-1], name, quantity.value, unit, scalar_text(value)), origin.spread, OWN
            )


__all__ = ["UncertainInput", "joined", "terms_of"]
