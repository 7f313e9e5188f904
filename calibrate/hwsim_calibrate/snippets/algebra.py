"""Snippets of linear algebra, Fourier transforms, convolution and einsum."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from hwsim_calibrate.clocks import Call
from hwsim_calibrate.snippet_inputs import Inputs
from hwsim_calibrate.snippets.builders import Build, of_frames, of_grid, of_square, of_two
from hwsim_calibrate.suites.arrays import numbers


def _tall(function: Callable[..., Any]) -> Build:
    """Build a function of a matrix with 12x as many rows as columns."""

    def build(inputs: Inputs) -> Call:
        matrix = numbers(inputs.dtype, 12 * inputs.n, inputs.n)
        return lambda: function(matrix)

    return build


def _solve(inputs: Inputs) -> Call:
    matrix, right = inputs.square(), numbers(inputs.dtype, inputs.n)
    return lambda: np.linalg.solve(matrix, right)


def _lstsq(inputs: Inputs) -> Call:
    rows, dtype = 4 * inputs.n, inputs.dtype
    matrix, right = numbers(dtype, rows, inputs.n) + np.eye(rows, inputs.n), numbers(dtype, rows)
    return lambda: np.linalg.lstsq(matrix, right, rcond=None)


def _transform(function: Callable[..., Any]) -> Build:
    def build(inputs: Inputs) -> Call:
        is_complex = inputs.dtype.startswith("complex")
        values = numbers("fp64" if is_complex and function is np.fft.rfft else inputs.dtype, inputs.n)
        return lambda: function(values)

    return build


def _inverse(function: Callable[..., Any]) -> Build:
    def build(inputs: Inputs) -> Call:
        values = np.fft.fft(numbers("fp64", inputs.n)) if function is np.fft.ifft else np.fft.rfft(numbers("fp64", inputs.n))
        return lambda: function(values)

    return build


def _convolve(inputs: Inputs) -> Call:
    values, weights = numbers(inputs.dtype, inputs.n), numbers(inputs.dtype, inputs.table)
    return lambda: np.convolve(values, weights, "same")


def _einsum(inputs: Inputs) -> Call:
    side = max(math.isqrt(inputs.n), 2)
    first, second = numbers(inputs.dtype, side, side), numbers(inputs.dtype, side, side)
    if "outer" in inputs.words:
        return lambda: np.einsum("ij,jk->ik", first, second)
    if "inner" in inputs.words:
        return lambda: np.einsum("ij,ij->i", first, second)
    if "one" in inputs.words:
        return lambda: np.einsum("ij->j", first)
    if "path" in inputs.words:
        square = first[: side // 4, : side // 4].copy()
        return lambda: np.einsum("ij,jk,ik->i", first[:, : side // 4], square, first[:, : side // 4], optimize=True)
    if "short" in inputs.words:
        heads = numbers(inputs.dtype, 4, max(side // 4, 2), 4, 32)
        if "within" in inputs.words:
            return lambda: np.einsum("bqhd,bkhd->bhqk", heads, heads)
        weights = numbers(inputs.dtype, 4, 4, max(side // 4, 2), max(side // 4, 2))
        return lambda: np.einsum("bhqk,bkhd->bqhd", weights, heads)
    return lambda: np.einsum("ij,jk,kl->il", first[:16, :16], second[:16, :16], first[:16, :16])


def _norm(inputs: Inputs) -> Call:
    if "axis" in inputs.words:
        grid = numbers(inputs.dtype, max(inputs.n // 16, 1), 16)
        return lambda: np.linalg.norm(grid, axis=1)
    values = numbers(inputs.dtype, inputs.n)
    return lambda: np.linalg.norm(values)


def _points(inputs: Inputs) -> Call:
    first, second = numbers(inputs.dtype, max(inputs.n // 3, 1), 3), numbers(inputs.dtype, max(inputs.n // 3, 1), 3)
    return lambda: np.cross(first, second)


def _polyfit(inputs: Inputs) -> Call:
    x, y = numbers(inputs.dtype, inputs.n), numbers(inputs.dtype, inputs.n)
    return lambda: np.polyfit(x, y, 3)


def _kron(inputs: Inputs) -> Call:
    left, right = numbers(inputs.dtype, 8, 8), numbers(inputs.dtype, max(math.isqrt(inputs.n) // 8, 1), 8)
    return lambda: np.kron(left, right)


def _tensordot(inputs: Inputs) -> Call:
    left, right = inputs.grid(), inputs.grid()
    return lambda: np.tensordot(left, right, 1)


SNIPPETS: Final[dict[str, Build]] = {
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
