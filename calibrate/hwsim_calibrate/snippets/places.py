"""Snippets that look up, set, search, order and count: places in arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from hwsim_calibrate.clocks import Call
from hwsim_calibrate.sizes import Size
from hwsim_calibrate.snippets.along import along_an_axis
from hwsim_calibrate.snippets.forms import Build, of_frames, of_two, of_words
from hwsim_calibrate.suites.arrays import DTYPES, indices, numbers


def _middle(function: Callable[..., Any]) -> Build:
    def build(size: Size) -> Call:
        values, axis = along_an_axis(size)
        middle = values.shape[axis or 0] // 2
        return (lambda: function(values, middle)) if axis is None else lambda: function(values, middle, axis=axis)

    return build


def _sort(function: Callable[..., Any]) -> Build:
    def build(size: Size) -> Call:
        values = size.values()
        if "across" in size.words:
            grid = values[: math.isqrt(size.n) ** 2].reshape(math.isqrt(size.n), -1)
            return lambda: function(grid, axis=0)
        return (lambda: function(values, kind="stable")) if "stable" in size.words else lambda: function(values)

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


def _along(size: Size) -> Call:
    grid = size.grid()
    at = np.argsort(grid, axis=1)
    return lambda: np.take_along_axis(grid, at, axis=1)


def _isin(size: Size) -> Call:
    values, wanted = indices(size.n, 10 * size.n), indices(50, 10 * size.n)
    return lambda: np.isin(values, wanted)


def _crossed(size: Size) -> Call:
    """Every third place of an array set."""
    values = np.zeros(3 * size.n, DTYPES[size.dtype])
    return lambda: values.__setitem__(slice(None, None, 3), 1)


def _reversed(size: Size) -> Call:
    values = numbers(size.dtype, 2 * size.n)
    return lambda: values[::2] + values[1::2]


def _shuffle(size: Size) -> Call:
    values, draw = numbers(size.dtype, *((size.n, 6) if "rows" in size.words else (size.n,))), np.random.default_rng(0)
    return lambda: draw.shuffle(values)


def _unique(size: Size) -> Call:
    values = size.values()
    return (lambda: np.unique(values, return_counts=True)) if "more" in size.words else lambda: np.unique(values)


SNIPPETS: Final[Mapping[str, Build]] = {
    **{name: of_two(getattr(np, name)) for name in ("intersect1d", "setdiff1d", "union1d")},
    "sort rows": of_frames(np.sort), "argsort rows": of_frames(np.argsort), "unique": _unique,
    "histogram": of_words("histogram", bins=50),
    "histogram2d": of_two(lambda first, second: np.histogram2d(first, second, bins=40)),
    "partition": _middle(np.partition), "argpartition": _middle(np.argpartition), "compress": _compress, "setmask": _setmask,
    "index": _index, "indices": _indices, "takecolumns": _columns, "put": _put, "putindices": _put_indices, "add_at": _add_at,
    "searchsorted": _searched, "nonzero": _nonzero, "bincount": _bincount, "where": _where, "sort": _sort(np.sort),
    "argsort": _sort(np.argsort), "interp": _interp, "take_along_axis": _along, "lexsort": _lexsort,
    "index_cast": _index_cast, "isin": _isin, "across": _reversed, "crossed": _crossed, "shuffle": _shuffle,
}  # fmt: skip
