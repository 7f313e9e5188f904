"""Snippets of reductions, cumulative functions, sliding windows and functions of smooth values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from hwsim_calibrate.clocks import Call
from hwsim_calibrate.snippet_inputs import Inputs
from hwsim_calibrate.snippets.builders import Build, of_grid, of_two, of_values, of_words
from hwsim_calibrate.suites.arrays import DTYPES, Array, numbers


def values_and_axis(inputs: Inputs) -> tuple[Array, int | None]:
    """Return values and an axis: `rows` of `table` elements along axis 1, the same `across` axis 0, or flat values."""
    values = inputs.values()
    if "rows" not in inputs.words and "across" not in inputs.words:
        return values, None
    grid = values[: max(inputs.n // inputs.table, 1) * inputs.table].reshape(-1, inputs.table)
    return grid, 1 if "rows" in inputs.words else 0


def _percentile(inputs: Inputs) -> Call:
    values, axis = values_and_axis(inputs)
    return lambda: np.percentile(values, [25, 75], axis=axis)


def _median(inputs: Inputs) -> Call:
    values, axis = values_and_axis(inputs)
    return lambda: np.median(values, axis=axis)


def _missing(function: Callable[..., Any]) -> Build:
    """Build a function that ignores NaN; with `missing`, half of the values are NaN."""

    def build(inputs: Inputs) -> Call:
        values = numbers(inputs.dtype, inputs.n)
        if "missing" in inputs.words:
            values[inputs.mask()] = np.nan
        return lambda: function(values)

    return build


def _windows(name: str) -> Build:
    """Build a reduction of overlapping windows of `table` elements."""

    def build(inputs: Inputs) -> Call:
        values = numbers(inputs.dtype, inputs.n // inputs.table + inputs.table)
        windows = np.lib.stride_tricks.sliding_window_view(values, inputs.table)
        return lambda: getattr(windows, name)(axis=1)

    return build


def _smooth(function: np.ufunc) -> Build:
    """Build a function of increasing values, whose branches are predicted well."""

    def build(inputs: Inputs) -> Call:
        values = np.linspace(0.0, 0.3 * inputs.n, inputs.n).astype(DTYPES[inputs.dtype])
        return lambda: function(values)

    return build


def _signed(inputs: Inputs) -> Call:
    """Build a power of values with both signs, which is slower than a power of positive values."""
    values = np.linspace(-1.0, 1.0, inputs.n).astype(DTYPES[inputs.dtype])
    return lambda: values**3


def _accumulated(function: np.ufunc) -> Build:
    def build(inputs: Inputs) -> Call:
        values = inputs.values()
        return lambda: function.accumulate(values)

    return build


SNIPPETS: Final[dict[str, Build]] = {
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
