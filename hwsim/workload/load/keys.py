"""Distributions as a file says them, where a time, an amount of bytes or a number may stand: `time: {exponential: 10 ms}`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from hwsim.records import dataclass
from hwsim.spec import Place, Problem, SpecError, field, place_field
from hwsim.spec.confined import refuse_outside
from hwsim.units import COUNT, SIZE, TIME, Bytes, Dimension, Seconds, UnitError, parse_as
from hwsim.workload.load.draws import Constant, Distribution, Exponential, Lognormal, Pareto, Uniform, Values, Whole

WAYS: Final = ("exponential", "lognormal", "uniform", "pareto", "values")
MOST: Final = 1_000_000  # numbers of a file


class _Keys:
    """Keys that all dimensions have in common: exactly one of `WAYS` is given."""

    __slots__ = ()
    dimension: Dimension

    def problems(self) -> Iterator[Problem]:
        """(key, message, hint) of what cannot be."""
        given = [name for name in WAYS if getattr(self, name) is not None]
        example = self.dimension.example
        if len(given) != 1:
            message = f"{self.dimension.name} is drawn in one way, not in {len(given)}"
            yield "", message, f"exponential: {example}, lognormal, uniform: [LOW, HIGH], pareto, or values: [{example}, ...]"
            return
        value: Any = getattr(self, given[0])
        if given[0] == "uniform" and value[0] > value[1]:
            yield "uniform", f"it goes from {value[0]:.6g} down to {value[1]:.6g}", "write the smaller number first"
        if given[0] == "values" and not value:
            yield "values", "there is none to draw", None
        if given[0] == "pareto" and value.most is None and value.shape <= 1:
            yield "pareto", f"with a shape of {value.shape:g} and no largest value its mean is infinite", "most: the largest"
        if given[0] == "pareto" and value.most is not None and value.most <= value.least:
            yield "pareto", "its largest value is not above its least", "most above least"

    @property
    def distribution(self) -> Distribution:
        """The distribution that the key states, in SI units.

        Raises:
            SpecError: a file of values that cannot be read.
        """
        keys: Any = self
        if keys.exponential is not None:
            return Exponential(keys.exponential)
        if keys.lognormal is not None:
            return Lognormal(keys.lognormal.median, keys.lognormal.sigma)
        if keys.uniform is not None:
            return Whole(*keys.uniform) if self.dimension is COUNT else Uniform(*keys.uniform)
        if keys.pareto is not None:
            bound = {} if keys.pareto.most is None else {"most": keys.pareto.most}
            return Pareto(keys.pareto.shape, keys.pareto.least, **bound)
        values = keys.values if isinstance(keys.values, tuple) else _read(keys.values, self.dimension, keys.place)
        return Values(tuple(sorted(values)))


_SIGMA: Final = "standard deviation of the logarithm; the mean is median x exp(sigma^2 / 2)"
_SHAPE: Final = "how fast large ones become rare: the share above x falls as x to the power of -shape"
_FILE: Final = "each as likely as the others: a list, or a file with one a line; paths start from the workload's"


@dataclass(frozen=True, slots=True)
class TimeLognormal:
    """Times whose logarithms are spread normally."""

    median: Seconds = field("half of them are below", exclusive_minimum=0.0)
    sigma: float = field(_SIGMA, default=1.0, minimum=0.0, maximum=5.0)


@dataclass(frozen=True, slots=True)
class TimePareto:
    """Times with a few very long ones."""

    least: Seconds = field("the shortest", exclusive_minimum=0.0)
    shape: float = field(_SHAPE, default=1.5, exclusive_minimum=0.0)
    most: Seconds | None = field("the longest (default: any)", default=None, exclusive_minimum=0.0)


@dataclass(frozen=True, slots=True)
class TimeDraw(_Keys):
    """Distribution of a time, drawn for each request; one key."""

    dimension = TIME
    exponential: Seconds | None = field("without memory, with this mean", default=None, exclusive_minimum=0.0, example="10 ms")
    lognormal: TimeLognormal | None = field("around a median", default=None, example="{median: 2 ms, sigma: 0.5}")
    uniform: tuple[Seconds, Seconds] | None = field("any from the first to the second", default=None, example="[1 ms, 3 ms]")
    pareto: TimePareto | None = field("a few are very long", default=None, example="{least: 1 ms, shape: 1.5}")
    values: tuple[Seconds, ...] | str | None = field(_FILE, default=None, example="[1 ms, 2 ms, 20 ms]")
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class SizeLognormal:
    """Sizes whose logarithms are spread normally."""

    median: Bytes = field("half of them are below", exclusive_minimum=0.0)
    sigma: float = field(_SIGMA, default=1.0, minimum=0.0, maximum=5.0)


@dataclass(frozen=True, slots=True)
class SizePareto:
    """Sizes with a few very large ones."""

    least: Bytes = field("the smallest", exclusive_minimum=0.0)
    shape: float = field(_SHAPE, default=1.5, exclusive_minimum=0.0)
    most: Bytes | None = field("the largest (default: any)", default=None, exclusive_minimum=0.0)


@dataclass(frozen=True, slots=True)
class SizeDraw(_Keys):
    """Distribution of a number of bytes, drawn for each request; one key."""

    dimension = SIZE
    exponential: Bytes | None = field("without memory, with this mean", default=None, exclusive_minimum=0.0, example="16 kB")
    lognormal: SizeLognormal | None = field("around a median", default=None, example="{median: 3 MB, sigma: 0.6}")
    uniform: tuple[Bytes, Bytes] | None = field("any from the first to the second", default=None, example="[1 kB, 3 kB]")
    pareto: SizePareto | None = field("a few are very large", default=None, example="{least: 10 kB, shape: 1.2, most: 1 GB}")
    values: tuple[Bytes, ...] | str | None = field(_FILE, default=None, example="[4 kB, 64 kB]")
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class CountLognormal:
    """Numbers whose logarithms are spread normally."""

    median: float = field("half of them are below", minimum=1.0)
    sigma: float = field(_SIGMA, default=1.0, minimum=0.0, maximum=5.0)


@dataclass(frozen=True, slots=True)
class CountPareto:
    """Numbers with a few very large ones."""

    least: float = field("the smallest", exclusive_minimum=0.0)
    shape: float = field(_SHAPE, default=1.5, exclusive_minimum=0.0)
    most: float | None = field("the largest (default: any)", default=None, exclusive_minimum=0.0)


@dataclass(frozen=True, slots=True)
class CountDraw(_Keys):
    """Distribution of a whole number of tokens or other things, drawn for each request; one key."""

    dimension = COUNT
    exponential: float | None = field("without memory, with this mean", default=None, exclusive_minimum=0.0, example="300")
    lognormal: CountLognormal | None = field("around a median", default=None, example="{median: 600, sigma: 1}")
    uniform: tuple[int, int] | None = field(
        "any number from the first to the second", default=None, minimum=1, example="[100, 900]"
    )
    pareto: CountPareto | None = field("a few are very large", default=None, example="{least: 100, shape: 1.5, most: 30000}")
    values: tuple[float, ...] | str | None = field(_FILE, default=None, example="[128, 512, 4096]")
    place: Place = place_field()


def distribution_of(value: float | TimeDraw | SizeDraw | CountDraw) -> Distribution:
    """The distribution of a number (always the same value) or of a draw."""
    return Constant(value) if isinstance(value, int | float) else value.distribution


def near(name: str, place: Place) -> Path:
    """The path of a file that a workload names; raises SpecError if it may not be read."""
    path = (place.folder or Path()) / name
    refuse_outside(path, place)
    return path


def _read(name: str, dimension: Dimension, place: Place) -> list[float]:
    """The numbers of a file, one a line; empty lines and those that begin with # say nothing."""
    try:
        lines = near(name, place).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        hint = f"a file with one number a line, such as {dimension.example}"
        raise SpecError.of(place, f"the file '{name}' cannot be read: {error.__class__.__name__}", hint) from error
    numbers: list[float] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            numbers.append(_value(line.strip(), dimension))
        except (UnitError, ValueError) as error:
            message = f"line {number} of '{name}' is no value: {line.strip()[:40]}"
            raise SpecError.of(place, message, f"one number a line, such as {dimension.example}") from error
        if len(numbers) > MOST:
            raise SpecError.of(place, f"the file '{name}' has more than {MOST:,} values", None)
    if not numbers:
        raise SpecError.of(place, f"the file '{name}' has no value", f"one number a line, such as {dimension.example}")
    return numbers


def _value(text: str, dimension: Dimension) -> float:
    try:
        value = float(text)
    except ValueError:
        value = parse_as(text, dimension)
    if not 0 <= value < 1e18:
        raise ValueError(text)
    return value
