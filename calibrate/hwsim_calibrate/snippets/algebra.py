"""Snippets of linear algebra, transforms and sums of products."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from hwsim_calibrate.clocks import Call
from hwsim_calibrate.sizes import Size
from hwsim_calibrate.snippets.forms import Build, of_frames, of_grid, of_square, of_two
from hwsim_calibrate.suites.arrays import numbers


def _tall(function: Callable[..., Any]) -> Build:
    """A function of a matrix with twelve times as many rows as columns."""

    def build(size: Size) -> Call:
        matrix = numbers(size.dtype, 12 * size.n, size.n)
        return lambda: function(matrix)

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


def _norm(size: Size) -> Call:
    if "axis" in size.words:
        grid = numbers(size.dtype, max(size.n // 16, 1), 16)
        return lambda: np.linalg.norm(grid, axis=1)
    values = numbers(size.dtype, size.n)
    return lambda: np.linalg.norm(values)


def _points(size: Size) -> Call:
    first, second = numbers(size.dtype, max(size.n // 3, 1), 3), numbers(size.dtype, max(size.n // 3, 1), 3)
    return lambda: np.cross(first, second)


def _polyfit(size: Size) -> Call:
    x, y = numbers(size.dtype, size.n), numbers(size.dtype, size.n)
    return lambda: np.polyfit(x, y, 3)


def _kron(size: Size) -> Call:
    left, right = numbers(size.dtype, 8, 8), numbers(size.dtype, max(math.isqrt(size.n) // 8, 1), 8)
    return lambda: np.kron(left, right)


def _tensordot(size: Size) -> Call:
    left, right = size.grid(), size.grid()
    return lambda: np.tensordot(left, right, 1)


SNIPPETS: Final[Mapping[str, Build]] = {
    **{f"tall {name}": _tall(partial(getattr(np.linalg, name), **more)) for name, more in (
        ("svd", {"full_matrices": False}), ("qr", {}), ("pinv", {}),
    )},
    **{name: of_two(getattr(np, name)) for name in ("dot", "outer")},
    **{name: of_square(getattr(np.linalg, name)) for name in (
        "inv", "det", "slogdet", "cholesky", "qr", "eig", "eigh", "eigvals", "eigvalsh", "svd", "pinv",
        "matrix_rank",
    )},
    **{name: _transform(getattr(np.fft, name)) for name in ("fft", "rfft")},
    **{name: _inverse(getattr(np.fft, name)) for name in ("ifft", "irfft")},
    **{name: of_grid(getattr(np.fft, name)) for name in ("fft2", "rfft2", "ifft2")},
    "rfft rows": of_frames(np.fft.rfft), "fft rows": of_frames(np.fft.fft),
    "matrix_power": of_square(lambda matrix: np.linalg.matrix_power(matrix, 3)),
    "solve": _solve, "lstsq": _lstsq, "convolve": _convolve, "einsum": _einsum, "norm": _norm, "cross": _points,
    "kron": _kron, "tensordot": _tensordot, "polyfit": _polyfit,
}  # fmt: skip
