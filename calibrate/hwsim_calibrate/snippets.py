"""Calls of numpy that are neither elementwise nor a product, each a line of Python as programs write it.

A snippet is timed like any other call. What it does in the words of the model (steps, bytes, form) is found by recording it once,
so that what is fitted is what a recorder finds in a program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from hwsim_calibrate.clocks import Call
from hwsim_calibrate.sizes import Size
from hwsim_calibrate.suites.arrays import DTYPES, Array, indices, numbers

Build = Callable[[Size], Call]


def _one(name: str, **options: Any) -> Build:
    """A function of numpy of one array in the order that the words say."""

    def build(size: Size) -> Call:
        values, function = size.values(), getattr(np, name)
        return lambda: function(values, **options)

    return build


def _two(function: Callable[..., Any]) -> Build:
    def build(size: Size) -> Call:
        first, second = numbers(size.dtype, size.n), numbers(size.dtype, size.n)
        return lambda: function(first, second)

    return build


def _square(function: Callable[..., Any]) -> Build:
    def build(size: Size) -> Call:
        matrix = size.square()
        return lambda: function(matrix)

    return build


def _grid(function: Callable[..., Any]) -> Build:
    def build(size: Size) -> Call:
        grid = size.grid()
        return lambda: function(grid)

    return build


def _unique(size: Size) -> Call:
    values = size.values()
    return (lambda: np.unique(values, return_counts=True)) if "more" in size.words else lambda: np.unique(values)


def _middle(function: Callable[..., Any]) -> Build:
    def build(size: Size) -> Call:
        values, axis = _along_an_axis(size)
        middle = values.shape[axis or 0] // 2
        return (lambda: function(values, middle)) if axis is None else lambda: function(values, middle, axis=axis)

    return build


def _along_an_axis(size: Size) -> tuple[Array, int | None]:
    """Values and the axis to go along: of `rows` of `table` elements, in `across` columns, or all in one."""
    values = size.values()
    if "rows" not in size.words and "across" not in size.words:
        return values, None
    grid = values[: max(size.n // size.table, 1) * size.table].reshape(-1, size.table)
    return grid, 1 if "rows" in size.words else 0


def _percentile(size: Size) -> Call:
    values, axis = _along_an_axis(size)
    return lambda: np.percentile(values, [25, 75], axis=axis)


def _median(size: Size) -> Call:
    values, axis = _along_an_axis(size)
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


def _smooth(function: np.ufunc) -> Build:
    """A function of numbers that grow evenly, so that its branches are guessed."""

    def build(size: Size) -> Call:
        values = np.linspace(0.0, 0.3 * size.n, size.n).astype(DTYPES[size.dtype])
        return lambda: function(values)

    return build


def _tall(function: Callable[..., Any]) -> Build:
    """A function of a matrix with twelve times as many rows as columns."""

    def build(size: Size) -> Call:
        matrix = numbers(size.dtype, 12 * size.n, size.n)
        return lambda: function(matrix)

    return build


def _compress(size: Size) -> Call:
    values, mask = numbers(size.dtype, size.n), size.mask()
    return lambda: values[mask]


def _setmask(size: Size) -> Call:
    values, mask = numbers(size.dtype, size.n), size.mask()
    if "scalar" in size.words:
        return lambda: values.__setitem__(mask, 1)
    given = values[mask]
    return lambda: values.__setitem__(mask, given)


def _index(size: Size) -> Call:
    table, at = numbers(size.dtype, size.table), size.places()
    return lambda: table[at]


def _indices(size: Size) -> Call:
    side = math.isqrt(size.table)
    table, first, second = numbers(size.dtype, side, side), size.places(side), size.places(side)[::-1].copy()
    return lambda: table[first, second]


def _columns(size: Size) -> Call:
    side = max(math.isqrt(size.table), 1)
    table, at = numbers(size.dtype, side, side), indices(max(size.n // side, 1), side)
    return lambda: table[:, at]


def _put(size: Size) -> Call:
    table, at, given = numbers(size.dtype, size.table), size.places(), numbers(size.dtype, size.n)
    return lambda: table.__setitem__(at, given)


def _put_indices(size: Size) -> Call:
    side = math.isqrt(size.table)
    table, first, second = numbers(size.dtype, side, side), size.places(side), size.places(side)[::-1].copy()
    return lambda: table.__setitem__((first, second), 1)


def _add_at(size: Size) -> Call:
    table, at, given = np.zeros(size.table, DTYPES[size.dtype]), size.places(), numbers(size.dtype, size.n)
    return lambda: np.add.at(table, at, given)


def _searched(size: Size) -> Call:
    most = 1e6 if size.dtype.startswith("int") else 1.0
    table = np.sort(np.random.default_rng(3).random(size.table) * most).astype(DTYPES[size.dtype])
    values = (np.random.default_rng(4).random(size.n) * most).astype(DTYPES[size.dtype])
    if "sorted" in size.words:
        values.sort()
    return lambda: np.searchsorted(table, values)


def _nonzero(size: Size) -> Call:
    values = size.mask() if size.dtype == "bool" else numbers(size.dtype, size.n)
    return lambda: np.nonzero(values)


def _bincount(size: Size) -> Call:
    groups = size.places().astype(np.uint8 if "narrow" in size.words else np.int64)
    if "plain" in size.words:
        return lambda: np.bincount(groups)
    weights = numbers("fp64", size.n)
    return lambda: np.bincount(groups, weights)


def _where(size: Size) -> Call:
    first, mask = numbers(size.dtype, size.n), size.mask()
    if "scalar" in size.words:
        zero = DTYPES[size.dtype](0)
        return lambda: np.where(mask, first, zero)
    second = numbers(size.dtype, size.n)
    return lambda: np.where(mask, first, second)


def _sort(function: Callable[..., Any]) -> Build:
    def build(size: Size) -> Call:
        values = size.values()
        if "across" in size.words:
            grid = values[: math.isqrt(size.n) ** 2].reshape(math.isqrt(size.n), -1)
            return lambda: function(grid, axis=0)
        return (lambda: function(values, kind="stable")) if "stable" in size.words else lambda: function(values)

    return build


def _solve(size: Size) -> Call:
    matrix, right = size.square(), numbers(size.dtype, size.n)
    return lambda: np.linalg.solve(matrix, right)


def _lstsq(size: Size) -> Call:
    matrix, right = numbers(size.dtype, 4 * size.n, size.n) + np.eye(4 * size.n, size.n), numbers(size.dtype, 4 * size.n)
    return lambda: np.linalg.lstsq(matrix, right, rcond=None)


def _transform(function: Callable[..., Any]) -> Build:
    def build(size: Size) -> Call:
        is_complex = size.dtype.startswith("complex")
        values = numbers("fp64" if is_complex and function is np.fft.rfft else size.dtype, size.n)
        return lambda: function(values)

    return build


def _frames(function: Callable[..., Any]) -> Build:
    """Many short rows at once."""

    def build(size: Size) -> Call:
        frames = numbers(size.dtype, max(size.n // size.table, 1), size.table)
        return lambda: function(frames)

    return build


def _inverse(function: Callable[..., Any]) -> Build:
    def build(size: Size) -> Call:
        values = np.fft.fft(numbers("fp64", size.n)) if function is np.fft.ifft else np.fft.rfft(numbers("fp64", size.n))
        return lambda: function(values)

    return build


def _convolve(size: Size) -> Call:
    values, weights = numbers(size.dtype, size.n), numbers(size.dtype, size.table)
    return lambda: np.convolve(values, weights, "same")


def _einsum(size: Size) -> Call:
    side = max(math.isqrt(size.n), 2)
    first, second = numbers(size.dtype, side, side), numbers(size.dtype, side, side)
    if "outer" in size.words:
        return lambda: np.einsum("ij,jk->ik", first, second)
    if "inner" in size.words:
        return lambda: np.einsum("ij,ij->i", first, second)
    if "one" in size.words:
        return lambda: np.einsum("ij->j", first)
    if "path" in size.words:
        square = first[: side // 4, : side // 4].copy()
        return lambda: np.einsum("ij,jk,ik->i", first[:, : side // 4], square, first[:, : side // 4], optimize=True)
    if "short" in size.words:
        heads = numbers(size.dtype, 4, max(side // 4, 2), 4, 32)
        if "within" in size.words:
            return lambda: np.einsum("bqhd,bkhd->bhqk", heads, heads)
        weights = numbers(size.dtype, 4, 4, max(side // 4, 2), max(side // 4, 2))
        return lambda: np.einsum("bhqk,bkhd->bqhd", weights, heads)
    return lambda: np.einsum("ij,jk,kl->il", first[:16, :16], second[:16, :16], first[:16, :16])


def _signed(size: Size) -> Call:
    """Powers of numbers of both signs, which are slower than powers of positive numbers."""
    values = np.linspace(-1.0, 1.0, size.n).astype(DTYPES[size.dtype])
    return lambda: values**3


def _accumulated(function: np.ufunc) -> Build:
    def build(size: Size) -> Call:
        values = size.values()
        return lambda: function.accumulate(values)

    return build


def _lexsort(size: Size) -> Call:
    first, second = indices(size.n, 10**6), indices(size.n, max(size.n // 10, 1), seed=1)
    if size.dtype == "fp64":
        values = numbers("fp64", size.n)
        return lambda: np.lexsort((values, second))
    return lambda: np.lexsort((first, second))


def _index_cast(size: Size) -> Call:
    table, at = numbers(size.dtype, size.table), size.places().astype(np.uint8 if size.table <= 256 else np.int32)
    return lambda: table[at]


def _interp(size: Size) -> Call:
    at, known = np.random.default_rng(4).random(size.n), np.linspace(0, 1, size.table)
    if "sorted" in size.words:
        at.sort()
    values = known**2
    return lambda: np.interp(at, known, values)


def _norm(size: Size) -> Call:
    if "axis" in size.words:
        grid = numbers(size.dtype, max(size.n // 16, 1), 16)
        return lambda: np.linalg.norm(grid, axis=1)
    values = numbers(size.dtype, size.n)
    return lambda: np.linalg.norm(values)


def _crossed(size: Size) -> Call:
    """Every third place of an array set."""
    values = np.zeros(3 * size.n, DTYPES[size.dtype])
    return lambda: values.__setitem__(slice(None, None, 3), 1)


def _joined(function: Callable[..., Any]) -> Build:
    def build(size: Size) -> Call:
        parts = [numbers(size.dtype, size.n // 2) for _ in range(2)]
        return lambda: function(parts)

    return build


def _along(size: Size) -> Call:
    grid = size.grid()
    at = np.argsort(grid, axis=1)
    return lambda: np.take_along_axis(grid, at, axis=1)


def _points(size: Size) -> Call:
    first, second = numbers(size.dtype, max(size.n // 3, 1), 3), numbers(size.dtype, max(size.n // 3, 1), 3)
    return lambda: np.cross(first, second)


def _isin(size: Size) -> Call:
    values, wanted = indices(size.n, 10 * size.n), indices(50, 10 * size.n)
    return lambda: np.isin(values, wanted)


def _reversed(size: Size) -> Call:
    values = numbers(size.dtype, 2 * size.n)
    return lambda: values[::2] + values[1::2]


def _made(function: str | Callable[[int], Any]) -> Build:
    """An array of `n`; a function by its name is looked up when it is called, as in a program."""
    if isinstance(function, str):
        return lambda size: lambda: getattr(np, function)(size.n)
    return lambda size: lambda: function(size.n)


def _legacy(name: str) -> Build:
    return lambda size: lambda: getattr(np.random, name)(size.n)


def _of(function: Callable[[Array], Any]) -> Build:
    """A function of one array."""

    def build(size: Size) -> Call:
        values = numbers(size.dtype, size.n)
        return lambda: function(values)

    return build


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


def _polyfit(size: Size) -> Call:
    x, y = numbers(size.dtype, size.n), numbers(size.dtype, size.n)
    return lambda: np.polyfit(x, y, 3)


def _kron(size: Size) -> Call:
    left, right = numbers(size.dtype, 8, 8), numbers(size.dtype, max(math.isqrt(size.n) // 8, 1), 8)
    return lambda: np.kron(left, right)


def _tensordot(size: Size) -> Call:
    left, right = size.grid(), size.grid()
    return lambda: np.tensordot(left, right, 1)


def _shuffle(size: Size) -> Call:
    values, draw = numbers(size.dtype, *((size.n, 6) if "rows" in size.words else (size.n,))), np.random.default_rng(0)
    return lambda: draw.shuffle(values)


# A new snippet is a line here; the suite `kernels` says at which sizes it is timed.
SNIPPETS: Final[Mapping[str, Build]] = {
    **{name: _one(name) for name in (
        "count_nonzero", "diff", "gradient", "nan_to_num", "ptp", "cumprod", "round", "unwrap", "trapezoid",
    )},
    **{name: _missing(getattr(np, name)) for name in (
        "nansum", "nanmean", "nanmax", "nanmin", "nanstd", "nanvar", "nanmedian",
    )},
    **{name: _smooth(getattr(np, name)) for name in ("sin", "cos", "tan")},
    **{f"window {name}": _windows(name) for name in ("min", "max", "mean", "sum", "std")},
    **{f"tall {name}": _tall(partial(getattr(np.linalg, name), **more)) for name, more in (
        ("svd", {"full_matrices": False}), ("qr", {}), ("pinv", {}),
    )},
    **{name: _two(getattr(np, name)) for name in (
        "isclose", "allclose", "array_equal", "dot", "outer", "intersect1d", "setdiff1d", "union1d",
    )},
    **{name: _square(getattr(np.linalg, name)) for name in (
        "inv", "det", "slogdet", "cholesky", "qr", "eig", "eigh", "eigvals", "eigvalsh", "svd", "pinv",
        "matrix_rank",
    )},
    **{name: _transform(getattr(np.fft, name)) for name in ("fft", "rfft")},
    **{name: _inverse(getattr(np.fft, name)) for name in ("ifft", "irfft")},
    **{name: _grid(getattr(np.fft, name)) for name in ("fft2", "rfft2", "ifft2")},
    **{name: _joined(getattr(np, name)) for name in ("stack", "vstack", "column_stack", "dstack")},
    **{name: _grid(getattr(np, name)) for name in ("cov", "corrcoef", "tril", "triu")},
    "gradient 2": _grid(np.gradient), "pad": _grid(lambda grid: np.pad(grid, 1)),
    "rfft rows": _frames(np.fft.rfft), "fft rows": _frames(np.fft.fft), "sort rows": _frames(np.sort),
    "argsort rows": _frames(np.argsort),
    "matrix_power": _square(lambda matrix: np.linalg.matrix_power(matrix, 3)),
    "arange": _made("arange"), "zeros": _made("zeros"), "ones": _made("ones"),
    "eye": _made(lambda n: np.eye(math.isqrt(n))), "linspace": _made(lambda n: np.linspace(0.0, 1.0, n)),
    "full": _made(lambda n: np.full(n, 2.5)), "hanning": _made("hanning"),
    "median": _median, "copy": _copied, "unique": _unique, "histogram": _one("histogram", bins=50),
    "partition": _middle(np.partition),
    "argpartition": _middle(np.argpartition), "percentile": _percentile, "compress": _compress, "setmask": _setmask,
    "index": _index, "indices": _indices, "takecolumns": _columns, "put": _put, "putindices": _put_indices, "add_at": _add_at,
    "searchsorted": _searched, "nonzero": _nonzero, "bincount": _bincount, "where": _where, "sort": _sort(np.sort),
    "argsort": _sort(np.argsort), "solve": _solve, "lstsq": _lstsq, "convolve": _convolve, "einsum": _einsum, "interp": _interp,
    "norm": _norm, "take_along_axis": _along, "cross": _points, "power": _signed, "cummax": _accumulated(np.maximum),
    "cummin": _accumulated(np.minimum),
    "lexsort": _lexsort, "index_cast": _index_cast, "isin": _isin, "across": _reversed, "crossed": _crossed,
    "kron": _kron, "tensordot": _tensordot, "polyfit": _polyfit, "shuffle": _shuffle,
    "repeat": _of(lambda values: np.repeat(values, 2)), "tile": _of(lambda values: np.tile(values, 2)),
    "roll": _of(lambda values: np.roll(values, 5)), "append": _of(lambda values: np.append(values, 1.0)),
    "diag": _diag,
    "polyval": _of(lambda values: np.polyval([1.0, 2.0, 3.0, 4.0], values)),
    "clip": _of(lambda values: np.clip(values, 0, 1)), "clip method": _of(lambda values: values.clip(0, 1)),
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
    "histogram2d": _two(lambda first, second: np.histogram2d(first, second, bins=40)),
    "legacy random": _legacy("rand"),
    "legacy integers": _made(lambda n: np.random.randint(0, 1000, n)),  # noqa: NPY002
}  # fmt: skip
