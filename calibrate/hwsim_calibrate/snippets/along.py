"""Snippets that go along values: reductions, running sums, windows, functions of smooth numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from hwsim_calibrate.clocks import Call
from hwsim_calibrate.sizes import Size
from hwsim_calibrate.snippets.forms import Build, of_grid, of_two, of_values, of_words
from hwsim_calibrate.suites.arrays import DTYPES, Array, numbers


def along_an_axis(size: Size) -> tuple[Array, int | None]:
    """Values and the axis to go along: of `rows` of `table` elements, in `across` columns, or all in one."""
    values = size.values()
    if "rows" not in size.words and "across" not in size.words:
        return values, None
    grid = values[: max(size.n // size.table, 1) * size.table].reshape(-1, size.table)
    return grid, 1 if "rows" in size.words else 0


def _percentile(size: Size) -> Call:
    values, axis = along_an_axis(size)
    return lambda: np.percentile(values, [25, 75], axis=axis)


def _median(size: Size) -> Call:
    values, axis = along_an_axis(size)
    return lambda: np.median(values, axis=axis)


def _missing(function: Callable[..., Any]) -> Build:
    """A function that passes over what is missing: nothing, or every other number."""

    def build(size: Size) -> Call:
        values = numbers(size.dtype, size.n)
        if "missing" in size.words:
            values[size.mask()] = np.nan
        return lambda: function(values)

    return build


def _windows(name: str) -> Build:
    """A reduction of each of many windows that overlap, of `table` elements."""

    def build(size: Size) -> Call:
        windows = np.lib.stride_tricks.sliding_window_view(numbers(size.dtype, size.n // size.table + size.table), size.table)
        return lambda: getattr(windows, name)(axis=1)

    return build


def _smooth(function: np.ufunc) -> Build:
    """A function of numbers that grow evenly, so that its branches are guessed."""

    def build(size: Size) -> Call:
        values = np.linspace(0.0, 0.3 * size.n, size.n).astype(DTYPES[size.dtype])
        return lambda: function(values)

    return build


def _signed(size: Size) -> Call:
    """Powers of numbers of both signs, which are slower than powers of positive numbers."""
    values = np.linspace(-1.0, 1.0, size.n).astype(DTYPES[size.dtype])
    return lambda: values**3


def _accumulated(function: np.ufunc) -> Build:
    def build(size: Size) -> Call:
        values = size.values()
        return lambda: function.accumulate(values)

    return build


SNIPPETS: Final[Mapping[str, Build]] = {
    **{name: of_words(name) for name in (
        "count_nonzero", "diff", "gradient", "nan_to_num", "ptp", "cumprod", "round", "unwrap", "trapezoid",
    )},
    **{name: _missing(getattr(np, name)) for name in (
        "nansum", "nanmean", "nanmax", "nanmin", "nanstd", "nanvar", "nanmedian",
    )},
    **{name: _smooth(getattr(np, name)) for name in ("sin", "cos", "tan")},
    **{f"window {name}": _windows(name) for name in ("min", "max", "mean", "sum", "std")},
    **{name: of_two(getattr(np, name)) for name in ("isclose", "allclose", "array_equal")},
    **{name: of_grid(getattr(np, name)) for name in ("cov", "corrcoef")},
    "gradient 2": of_grid(np.gradient), "median": _median, "percentile": _percentile, "power": _signed,
    "cummax": _accumulated(np.maximum), "cummin": _accumulated(np.minimum),
    "polyval": of_values(lambda values: np.polyval([1.0, 2.0, 3.0, 4.0], values)),
    "clip": of_values(lambda values: np.clip(values, 0, 1)), "clip method": of_values(lambda values: values.clip(0, 1)),
}  # fmt: skip
