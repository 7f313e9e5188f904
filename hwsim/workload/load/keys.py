"""Keys of a distribution in place of a time, a size or a count: `time: {exponential: 10 ms}`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from hwsim.records import dataclass
from hwsim.spec import Place, Problem, SpecError, field, place_field
from hwsim.spec.confined import refuse_outside
from hwsim.units import COUNT, SIZE, TIME, Bytes, Dimension, Seconds, UnitError, parse_as
from hwsim.workload.load.draws import Constant, Distribution, Exponential, Lognormal, Pareto, Uniform, UniformInteger, Values

WAYS: Final = ("exponential", "lognormal", "uniform", "pareto", "values")
MAX_FILE_VALUES: Final = 1_000_000  # values of a file


class _Keys:
    """A base of the draws of all dimensions: exactly one of `WAYS` is given."""

    __slots__ = ()
    dimension: Dimension

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid combination of keys."""
        names = [name for name in WAYS if getattr(self, name) is not None]
        example = self.dimension.example
        if len(names) != 1:
            got = " and ".join(names) or "none of them"
            yield "", f"a distribution needs exactly one of {', '.join(WAYS)}, got {got}", f"exponential: {example}"
            return
        [name], value = names, getattr(self, names[0])
        if name == "uniform" and value[0] > value[1]:
            yield "uniform", f"the lower limit {value[0]:.6g} is above the upper limit {value[1]:.6g}", "uniform: [LOW, HIGH]"
        if name == "values" and not value:
            yield "values", "`values` is empty", f"values: [{example}]"
        if name == "pareto" and value.most is None and value.shape <= 1:
            yield "pareto", f"the mean is infinite with a `shape` of {value.shape:g} and no `most`", "most: the largest value"
        if name == "pareto" and value.most is not None and value.most <= value.least:
            yield "pareto", f"`most` ({value.most:.6g}) is not above `least` ({value.least:.6g})", "increase `most`"

    @property
    def distribution(self) -> Distribution:
        """The distribution in SI units.

        Raises:
            SpecError: the file of values cannot be read.
        """
        keys: Any = self
        if keys.exponential is not None:
            return Exponential(keys.exponential)
        if keys.lognormal is not None:
            return Lognormal(keys.lognormal.median, keys.lognormal.sigma)
        if keys.uniform is not None:
            return UniformInteger(*keys.uniform) if self.dimension is COUNT else Uniform(*keys.uniform)
        if keys.pareto is not None:
            bound = {} if keys.pareto.most is None else {"most": keys.pareto.most}
            return Pareto(keys.pareto.shape, keys.pareto.least, **bound)
        values = keys.values if isinstance(keys.values, tuple) else _read(keys.values, self.dimension, keys.place)
        return Values(tuple(sorted(values)))


_SIGMA: Final = "standard deviation of the natural logarithm; the mean is median x exp(sigma^2 / 2)"
_SHAPE: Final = "tail index: the probability of a value above x falls as x to the power of -shape"
_FILE: Final = "values of equal probability: a list, or a file with one per line, whose path is relative to the workload file"
_EXPONENTIAL, _UNIFORM = "mean of an exponential distribution", "lower and upper limit of a uniform distribution"
_LOGNORMAL, _PARETO = "log-normal distribution", "Pareto distribution: mostly small values and a few very large ones"
_MEDIAN, _LEAST = "median of the distribution", "minimum of the distribution"
_LARGEST: Final = "maximum of the distribution (default: unbounded)"


@dataclass(frozen=True, slots=True)
class TimeLognormal:
    """A log-normal distribution of a time."""

    median: Seconds = field(_MEDIAN, exclusive_minimum=0.0)
    sigma: float = field(_SIGMA, default=1.0, minimum=0.0, maximum=5.0)


@dataclass(frozen=True, slots=True)
class TimePareto:
    """A Pareto distribution of a time, with a few very long times."""

    least: Seconds = field(_LEAST, exclusive_minimum=0.0)
    shape: float = field(_SHAPE, default=1.5, exclusive_minimum=0.0)
    most: Seconds | None = field(_LARGEST, default=None, exclusive_minimum=0.0)


@dataclass(frozen=True, slots=True)
class TimeDraw(_Keys):
    """A distribution of a time, drawn for each request; exactly one key."""

    dimension = TIME
    exponential: Seconds | None = field(_EXPONENTIAL, default=None, exclusive_minimum=0.0, example="10 ms")
    lognormal: TimeLognormal | None = field(_LOGNORMAL, default=None, example="{median: 2 ms, sigma: 0.5}")
    uniform: tuple[Seconds, Seconds] | None = field(_UNIFORM, default=None, example="[1 ms, 3 ms]")
    pareto: TimePareto | None = field(_PARETO, default=None, example="{least: 1 ms, shape: 1.5}")
    values: tuple[Seconds, ...] | str | None = field(_FILE, default=None, example="[1 ms, 2 ms, 20 ms]")
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class SizeLognormal:
    """A log-normal distribution of a size."""

    median: Bytes = field(_MEDIAN, exclusive_minimum=0.0)
    sigma: float = field(_SIGMA, default=1.0, minimum=0.0, maximum=5.0)


@dataclass(frozen=True, slots=True)
class SizePareto:
    """A Pareto distribution of a size, with a few very large sizes."""

    least: Bytes = field(_LEAST, exclusive_minimum=0.0)
    shape: float = field(_SHAPE, default=1.5, exclusive_minimum=0.0)
    most: Bytes | None = field(_LARGEST, default=None, exclusive_minimum=0.0)


@dataclass(frozen=True, slots=True)
class SizeDraw(_Keys):
    """A distribution of a number of bytes, drawn for each request; exactly one key."""

    dimension = SIZE
    exponential: Bytes | None = field(_EXPONENTIAL, default=None, exclusive_minimum=0.0, example="16 kB")
    lognormal: SizeLognormal | None = field(_LOGNORMAL, default=None, example="{median: 3 MB, sigma: 0.6}")
    uniform: tuple[Bytes, Bytes] | None = field(_UNIFORM, default=None, example="[1 kB, 3 kB]")
    pareto: SizePareto | None = field(_PARETO, default=None, example="{least: 10 kB, shape: 1.2, most: 1 GB}")
    values: tuple[Bytes, ...] | str | None = field(_FILE, default=None, example="[4 kB, 64 kB]")
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class CountLognormal:
    """A log-normal distribution of a count."""

    median: float = field(_MEDIAN, minimum=1.0)
    sigma: float = field(_SIGMA, default=1.0, minimum=0.0, maximum=5.0)


@dataclass(frozen=True, slots=True)
class CountPareto:
    """A Pareto distribution of a count, with a few very large counts."""

    least: float = field(_LEAST, exclusive_minimum=0.0)
    shape: float = field(_SHAPE, default=1.5, exclusive_minimum=0.0)
    most: float | None = field(_LARGEST, default=None, exclusive_minimum=0.0)


@dataclass(frozen=True, slots=True)
class CountDraw(_Keys):
    """A distribution of a whole number, such as tokens, drawn for each request; exactly one key."""

    dimension = COUNT
    exponential: float | None = field(_EXPONENTIAL, default=None, exclusive_minimum=0.0, example="300")
    lognormal: CountLognormal | None = field(_LOGNORMAL, default=None, example="{median: 600, sigma: 1}")
    uniform: tuple[int, int] | None = field(
        "lower and upper limit of a uniform distribution", default=None, minimum=1, example="[100, 900]"
    )
    pareto: CountPareto | None = field(_PARETO, default=None, example="{least: 100, shape: 1.5, most: 30000}")
    values: tuple[float, ...] | str | None = field(_FILE, default=None, example="[128, 512, 4096]")
    place: Place = place_field()


def distribution_of(value: float | TimeDraw | SizeDraw | CountDraw) -> Distribution:
    """Return the distribution of a constant or of a draw."""
    return Constant(value) if isinstance(value, int | float) else value.distribution


def near(name: str, place: Place) -> Path:
    """Return the path of a file that a workload names; raise SpecError if the file may not be read."""
    path = (place.folder or Path()) / name
    refuse_outside(path, place)
    return path


def _read(name: str, dimension: Dimension, place: Place) -> list[float]:
    """The numbers of a file with one per line; empty lines and lines that begin with # are ignored."""
    try:
        lines = near(name, place).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        hint = f"a text file with one value per line, such as {dimension.example}"
        raise SpecError.of(place, f"the file '{name}' cannot be read: {error.__class__.__name__}", hint) from error
    numbers: list[float] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            numbers.append(_value(line.strip(), dimension))
        except (UnitError, ValueError) as error:
            message = f"line {number} of '{name}': expected {dimension.name}, got '{line.strip()[:40]}'"
            raise SpecError.of(place, message, f"one value per line, such as {dimension.example}") from error
        if len(numbers) > MAX_FILE_VALUES:
            raise SpecError.of(place, f"the file '{name}' has more than the maximum of {MAX_FILE_VALUES:,} values", None)
    if not numbers:
        raise SpecError.of(place, f"the file '{name}' contains no values", f"one value per line, such as {dimension.example}")
    return numbers


def _value(text: str, dimension: Dimension) -> float:
    try:
        value = float(text)
    except ValueError:
        value = parse_as(text, dimension)
    if not 0 <= value < 1e18:
        raise ValueError(text)
    return value
