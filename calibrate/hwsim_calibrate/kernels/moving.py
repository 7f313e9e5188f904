"""Elements that change their place: copies, fills, gathers, sorting; and views, which move nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from hwsim_calibrate.clocks import Call
from hwsim_calibrate.kernels.kernel import Kernel, Params, elements, shape_of, whole, word
from hwsim_calibrate.store import Amounts
from hwsim_calibrate.suites.arrays import DTYPES, Array, blank, indices, numbers, width

_INDEX: Final = 8  # bytes


def _copyto(_: str, params: Params) -> Kernel:
    """From another type (`source`), from a transposed array (`layout: columns`), or into rows with gaps (`strided`)."""
    count, dtype, layout = elements(params), word(params, "dtype", "fp64"), word(params, "layout", "flat")
    source = word(params, "source", dtype)

    def call() -> Call:
        shape = shape_of(params)
        given = numbers(source, *shape[::-1]).T if layout == "columns" else numbers(source, *shape)
        to = blank(dtype, *shape[:-1], shape[-1] + 2)[..., 1:-1] if layout == "strided" else blank(dtype, *shape)
        return lambda: np.copyto(to, given, casting="unsafe")

    return Kernel(Amounts(0, count * width(source), count * width(dtype)), lambda _: call())


def _copy(_: str, params: Params) -> Kernel:
    dtype = word(params, "dtype", "fp64")
    size = float(elements(params) * width(dtype))
    return Kernel(Amounts(0, size, size), lambda _: numbers(dtype, *shape_of(params)).copy)


def _astype(_: str, params: Params) -> Kernel:
    count, dtype, source = elements(params), word(params, "dtype", "fp64"), word(params, "source", "fp32")
    work = Amounts(0, count * width(source), count * width(dtype))

    def call() -> Call:
        given, to = numbers(source, *shape_of(params)), DTYPES[dtype]
        return lambda: given.astype(to)

    return Kernel(work, lambda _: call())


def _fill(_: str, params: Params) -> Kernel:
    dtype = word(params, "dtype", "fp64")

    def call() -> Call:
        to = blank(dtype, *shape_of(params))
        return lambda: to.fill(1)

    return Kernel(Amounts(0, 0, elements(params) * width(dtype)), lambda _: call())


def _take(_: str, params: Params) -> Kernel:
    """Elements of a flat array of `n`, at `index` random places."""
    count, dtype, n = whole(params, "index"), word(params, "dtype", "fp64"), whole(params, "n")

    def call() -> Call:
        table, at, to = numbers(dtype, n), indices(count, n), blank(dtype, count)
        return lambda: np.take(table, at, out=to, mode="clip")

    return Kernel(Amounts(0, count * (width(dtype) + _INDEX), count * width(dtype)), lambda _: call())


def _takerows(_: str, params: Params) -> Kernel:
    """Rows of an array by a random index: a[i]."""
    (rows, columns), count, dtype = shape_of(params), whole(params, "index"), word(params, "dtype", "fp64")
    size = float(count * columns * width(dtype))

    def call() -> Call:
        table, at = numbers(dtype, rows, columns), indices(count, rows)
        return lambda: table[at]

    return Kernel(Amounts(0, size + count * _INDEX, size), lambda _: call())


def _bincount(_: str, params: Params) -> Kernel:
    """Weights added up by group, `groups` of them."""
    n, groups = whole(params, "n"), whole(params, "groups")

    def call() -> Call:
        which, weights = indices(n, groups), numbers("fp64", n)
        return lambda: np.bincount(which, weights, groups)

    return Kernel(Amounts(n, 16.0 * n, 8.0 * groups), lambda _: call())


def _sort(op: str, params: Params) -> Kernel:
    """Sorted along the last axis: from a copy each time, for sorting what is sorted takes another time."""
    count, dtype = elements(params), word(params, "dtype", "fp64")
    size = float(count * width(dtype))

    def call() -> Call:
        drawn = np.random.default_rng(1).random(shape_of(params)).astype(DTYPES[dtype])
        function: Callable[[Array], Any] = np.argsort if op == "argsort" else np.sort
        return lambda: function(drawn)

    return Kernel(Amounts(count, size, float(count * _INDEX) if op == "argsort" else size), lambda _: call())


def _window(_: str, params: Params) -> Kernel:
    """im2col: every side x side window of an image of channels x height x width, copied out."""
    (channels, height, wide, side), dtype = shape_of(params), word(params, "dtype", "fp32")
    size = float(channels * (height - side + 1) * (wide - side + 1) * side * side * width(dtype))

    def call() -> Call:
        image = numbers(dtype, channels, height, wide)
        seen = np.lib.stride_tricks.sliding_window_view(image, (side, side), (1, 2)).transpose(0, 3, 4, 1, 2)
        to = blank(dtype, *seen.shape)
        return lambda: np.copyto(to, seen)

    return Kernel(Amounts(0, size, size), lambda _: call())


def _concatenate(_: str, params: Params) -> Kernel:
    dtype = word(params, "dtype", "fp64")
    size = float(2 * elements(params) * width(dtype))

    def call() -> Call:
        parts = [numbers(dtype, *shape_of(params)) for _ in range(2)]
        return lambda: np.concatenate(parts)

    return Kernel(Amounts(0, size, size), lambda _: call())


def _views(op: str, _: Params) -> Kernel:
    def call() -> Call:
        array = numbers("fp64", 8, 8)
        found: dict[str, Call] = {
            "slice": lambda: array[1:-1, :-2],
            "transpose": lambda: array.T,
            "reshape": lambda: array.reshape(4, 16),
            "pass": lambda: None,
        }
        return found[op]

    return Kernel(Amounts(), lambda _: call())


OPS: Final[Mapping[str, Callable[[str, Params], Kernel]]] = {
    "argsort": _sort,
    "astype": _astype,
    "bincount": _bincount,
    "concatenate": _concatenate,
    "copy": _copy,
    "copyto": _copyto,
    "fill": _fill,
    "pass": _views,
    "reshape": _views,
    "slice": _views,
    "sort": _sort,
    "take": _take,
    "takerows": _takerows,
    "transpose": _views,
    "window": _window,
}
