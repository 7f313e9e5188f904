"""Snippets that create arrays: fill, random numbers, copy and concatenation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from hwsim_calibrate.clocks import Call
from hwsim_calibrate.snippet_inputs import Inputs
from hwsim_calibrate.snippets.builders import Build, of_grid, of_values
from hwsim_calibrate.suites.arrays import DTYPES, numbers


def _made(function: str | Callable[[int], Any]) -> Build:
    """Build the creation of `n` elements. A function name is resolved at the time of the call, as in a program."""
    if isinstance(function, str):
        return lambda inputs: lambda: getattr(np, function)(inputs.n)
    return lambda inputs: lambda: function(inputs.n)


def _legacy(name: str) -> Build:
    return lambda inputs: lambda: getattr(np.random, name)(inputs.n)


def _drawn(function: Callable[[np.random.Generator, int], Any]) -> Build:

    def build(inputs: Inputs) -> Call:
        draw = np.random.default_rng(0)
        return lambda: function(draw, inputs.n)

    return build


def _any_drawn(name: str) -> Build:
    """Build random numbers of a distribution with default parameters."""
    return _drawn(lambda draw, n: getattr(draw, name)(size=n))


def _integers(inputs: Inputs) -> Call:
    draw, below = np.random.default_rng(0), 256 if "full" in inputs.words else 10
    kind = DTYPES[inputs.dtype] if inputs.dtype.startswith("int") else np.int64
    return lambda: draw.integers(0, below, inputs.n, dtype=kind)


def _diag(inputs: Inputs) -> Call:
    values = numbers(inputs.dtype, max(math.isqrt(inputs.n), 1))
    return lambda: np.diag(values)


def _copied(inputs: Inputs) -> Call:
    """Build a contiguous copy, or of a transposed (`long`) grid, of `strided` rows of 20, or of transposed `pieces` of 10."""
    pieces = numbers(inputs.dtype, max(inputs.n // 200, 1), 10, 20) if inputs.words else numbers(inputs.dtype, inputs.n)
    if "strided" in inputs.words:
        return lambda: pieces.transpose(1, 0, 2).copy()
    if "pieces" in inputs.words:
        parts = numbers(inputs.dtype, max(inputs.n // 200, 1), 11, 20)[:, :10]
        return lambda: parts.transpose(2, 0, 1).copy()
    if "across" in inputs.words:
        grid = inputs.grid() if "long" not in inputs.words else pieces.reshape(-1, 200)
        return lambda: np.ascontiguousarray(grid.T)
    return lambda: np.copy(pieces)


def _joined(function: Callable[..., Any]) -> Build:
    def build(inputs: Inputs) -> Call:
        parts = [numbers(inputs.dtype, inputs.n // 2) for _ in range(2)]
        return lambda: function(parts)

    return build


SNIPPETS: Final[dict[str, Build]] = {
    "arange": _made("arange"), "zeros": _made("zeros"), "ones": _made("ones"),
    "eye": _made(lambda n: np.eye(math.isqrt(n))), "linspace": _made(lambda n: np.linspace(0.0, 1.0, n)),
    "full": _made(lambda n: np.full(n, 2.5)), "hanning": _made("hanning"), "diag": _diag, "copy": _copied,
    **{name: _joined(getattr(np, name)) for name in ("stack", "vstack", "column_stack", "dstack")},
    **{name: of_grid(getattr(np, name)) for name in ("tril", "triu")},
    "pad": of_grid(lambda grid: np.pad(grid, 1)),
    "repeat": of_values(lambda values: np.repeat(values, 2)), "tile": of_values(lambda values: np.tile(values, 2)),
    "roll": of_values(lambda values: np.roll(values, 5)), "append": of_values(lambda values: np.append(values, 1.0)),
    "choice": _drawn(lambda draw, n: draw.choice(n, n)), "exponential": _drawn(lambda draw, n: draw.exponential(1.0, n)),
    "poisson": _drawn(lambda draw, n: draw.poisson(5.0, n)), "gamma": _drawn(lambda draw, n: draw.gamma(2.0, 1.0, n)),
    "binomial": _drawn(lambda draw, n: draw.binomial(20, 0.5, n)), "beta": _drawn(lambda draw, n: draw.beta(2.0, 3.0, n)),
    "normal of a generator": _drawn(lambda draw, n: draw.normal(0.0, 1.0, n)),
    "uniform of a generator": _drawn(lambda draw, n: draw.uniform(0.0, 1.0, n)),
    **{name: _any_drawn(name) for name in (
        "lognormal", "laplace", "standard_cauchy", "rayleigh", "logistic", "gumbel",
    )},
    "dirichlet": _drawn(lambda draw, n: draw.dirichlet([1.0] * 50, max(n // 50, 1))),
    "chisquare": _drawn(lambda draw, n: draw.chisquare(3.0, n)), "geometric": _drawn(lambda draw, n: draw.geometric(0.3, n)),
    "standard_t": _drawn(lambda draw, n: draw.standard_t(5.0, n)), "weibull": _drawn(lambda draw, n: draw.weibull(1.5, n)),
    "integers": _integers,
    "legacy random": _legacy("rand"),
    "legacy integers": _made(lambda n: np.random.randint(0, 1000, n)),  # noqa: NPY002
}  # fmt: skip
