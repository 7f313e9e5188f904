"""Snippets that make arrays: filled, drawn, copied and joined."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from hwsim_calibrate.clocks import Call
from hwsim_calibrate.sizes import Size
from hwsim_calibrate.snippets.forms import Build, of_grid, of_values
from hwsim_calibrate.suites.arrays import DTYPES, numbers


def _made(function: str | Callable[[int], Any]) -> Build:
    """An array of `n`; a function by its name is looked up when it is called, as in a program."""
    if isinstance(function, str):
        return lambda size: lambda: getattr(np, function)(size.n)
    return lambda size: lambda: function(size.n)


def _legacy(name: str) -> Build:
    return lambda size: lambda: getattr(np.random, name)(size.n)


def _drawn(function: Callable[[np.random.Generator, int], Any]) -> Build:
    """Numbers of a generator."""

    def build(size: Size) -> Call:
        draw = np.random.default_rng(0)
        return lambda: function(draw, size.n)

    return build


def _any_drawn(name: str) -> Build:
    """Numbers of a distribution as it is without parameters."""
    return _drawn(lambda draw, n: getattr(draw, name)(size=n))


def _integers(size: Size) -> Call:
    draw, below = np.random.default_rng(0), 256 if "full" in size.words else 10
    kind = DTYPES[size.dtype] if size.dtype.startswith("int") else np.int64
    return lambda: draw.integers(0, below, size.n, dtype=kind)


def _diag(size: Size) -> Call:
    values = numbers(size.dtype, max(math.isqrt(size.n), 1))
    return lambda: np.diag(values)


def _copied(size: Size) -> Call:
    """A copy: as it lies, `across` a grid or a `long` one, `strided` in rows of twenty, across in `pieces` of ten."""
    pieces = numbers(size.dtype, max(size.n // 200, 1), 10, 20) if size.words else numbers(size.dtype, size.n)
    if "strided" in size.words:
        return lambda: pieces.transpose(1, 0, 2).copy()
    if "pieces" in size.words:
        parts = numbers(size.dtype, max(size.n // 200, 1), 11, 20)[:, :10]
        return lambda: parts.transpose(2, 0, 1).copy()
    if "across" in size.words:
        grid = size.grid() if "long" not in size.words else pieces.reshape(-1, 200)
        return lambda: np.ascontiguousarray(grid.T)
    return lambda: np.copy(pieces)


def _joined(function: Callable[..., Any]) -> Build:
    def build(size: Size) -> Call:
        parts = [numbers(size.dtype, size.n // 2) for _ in range(2)]
        return lambda: function(parts)

    return build


SNIPPETS: Final[Mapping[str, Build]] = {
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
