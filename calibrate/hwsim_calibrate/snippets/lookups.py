"""Snippets of lookups, masks, searches, sorting and counting."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from hwsim_calibrate.clocks import Call
from hwsim_calibrate.snippet_inputs import Inputs
from hwsim_calibrate.snippets.builders import Build, of_frames, of_two, of_words
from hwsim_calibrate.snippets.reductions import values_and_axis
from hwsim_calibrate.suites.arrays import DTYPES, indices, numbers


def _middle(function: Callable[..., Any]) -> Build:
    def build(inputs: Inputs) -> Call:
        values, axis = values_and_axis(inputs)
        middle = values.shape[axis or 0] // 2
        return (lambda: function(values, middle)) if axis is None else lambda: function(values, middle, axis=axis)

    return build


def _sort(function: Callable[..., Any]) -> Build:
    def build(inputs: Inputs) -> Call:
        values = inputs.values()
        if "across" in inputs.words:
            grid = values[: math.isqrt(inputs.n) ** 2].reshape(math.isqrt(inputs.n), -1)
            return lambda: function(grid, axis=0)
        return (lambda: function(values, kind="stable")) if "stable" in inputs.words else lambda: function(values)

    return build


def _compress(inputs: Inputs) -> Call:
    values, mask = numbers(inputs.dtype, inputs.n), inputs.mask()
    return lambda: values[mask]


def _setmask(inputs: Inputs) -> Call:
    values, mask = numbers(inputs.dtype, inputs.n), inputs.mask()
    if "scalar" in inputs.words:
        return lambda: values.__setitem__(mask, 1)
    given = values[mask]
    return lambda: values.__setitem__(mask, given)


def _index(inputs: Inputs) -> Call:
    table, index = numbers(inputs.dtype, inputs.table), inputs.indices()
    return lambda: table[index]


def _indices(inputs: Inputs) -> Call:
    side = math.isqrt(inputs.table)
    table, first, second = numbers(inputs.dtype, side, side), inputs.indices(side), inputs.indices(side)[::-1].copy()
    return lambda: table[first, second]


def _columns(inputs: Inputs) -> Call:
    side = max(math.isqrt(inputs.table), 1)
    table, index = numbers(inputs.dtype, side, side), indices(max(inputs.n // side, 1), side)
    return lambda: table[:, index]


def _put(inputs: Inputs) -> Call:
    table, index, given = numbers(inputs.dtype, inputs.table), inputs.indices(), numbers(inputs.dtype, inputs.n)
    return lambda: table.__setitem__(index, given)


def _put_indices(inputs: Inputs) -> Call:
    side = math.isqrt(inputs.table)
    table, first, second = numbers(inputs.dtype, side, side), inputs.indices(side), inputs.indices(side)[::-1].copy()
    return lambda: table.__setitem__((first, second), 1)


def _add_at(inputs: Inputs) -> Call:
    table, index, given = np.zeros(inputs.table, DTYPES[inputs.dtype]), inputs.indices(), numbers(inputs.dtype, inputs.n)
    return lambda: np.add.at(table, index, given)


def _searched(inputs: Inputs) -> Call:
    maximum = 1e6 if inputs.dtype.startswith("int") else 1.0
    table = np.sort(np.random.default_rng(3).random(inputs.table) * maximum).astype(DTYPES[inputs.dtype])
    values = (np.random.default_rng(4).random(inputs.n) * maximum).astype(DTYPES[inputs.dtype])
    if "sorted" in inputs.words:
        values.sort()
    return lambda: np.searchsorted(table, values)


def _nonzero(inputs: Inputs) -> Call:
    values = inputs.mask() if inputs.dtype == "bool" else numbers(inputs.dtype, inputs.n)
    return lambda: np.nonzero(values)


def _bincount(inputs: Inputs) -> Call:
    groups = inputs.indices().astype(np.uint8 if "narrow" in inputs.words else np.int64)
    if "plain" in inputs.words:
        return lambda: np.bincount(groups)
    weights = numbers("fp64", inputs.n)
    return lambda: np.bincount(groups, weights)


def _where(inputs: Inputs) -> Call:
    first, mask = numbers(inputs.dtype, inputs.n), inputs.mask()
    if "scalar" in inputs.words:
        zero = DTYPES[inputs.dtype](0)
        return lambda: np.where(mask, first, zero)
    second = numbers(inputs.dtype, inputs.n)
    return lambda: np.where(mask, first, second)


def _lexsort(inputs: Inputs) -> Call:
    first, second = indices(inputs.n, 10**6), indices(inputs.n, max(inputs.n // 10, 1), seed=1)
    if inputs.dtype == "fp64":
        values = numbers("fp64", inputs.n)
        return lambda: np.lexsort((values, second))
    return lambda: np.lexsort((first, second))


def _index_cast(inputs: Inputs) -> Call:
    table, index = numbers(inputs.dtype, inputs.table), inputs.indices().astype(np.uint8 if inputs.table <= 256 else np.int32)
    return lambda: table[index]


def _interp(inputs: Inputs) -> Call:
    points, known = np.random.default_rng(4).random(inputs.n), np.linspace(0, 1, inputs.table)
    if "sorted" in inputs.words:
        points.sort()
    values = known**2
    return lambda: np.interp(points, known, values)


def _along(inputs: Inputs) -> Call:
    grid = inputs.grid()
    index = np.argsort(grid, axis=1)
    return lambda: np.take_along_axis(grid, index, axis=1)


def _isin(inputs: Inputs) -> Call:
    values, wanted = indices(inputs.n, 10 * inputs.n), indices(50, 10 * inputs.n)
    return lambda: np.isin(values, wanted)


def _crossed(inputs: Inputs) -> Call:
    """Set every third element of an array."""
    values = np.zeros(3 * inputs.n, DTYPES[inputs.dtype])
    return lambda: values.__setitem__(slice(None, None, 3), 1)


def _reversed(inputs: Inputs) -> Call:
    values = numbers(inputs.dtype, 2 * inputs.n)
    return lambda: values[::2] + values[1::2]


def _shuffle(inputs: Inputs) -> Call:
    values, draw = numbers(inputs.dtype, *((inputs.n, 6) if "rows" in inputs.words else (inputs.n,))), np.random.default_rng(0)
    return lambda: draw.shuffle(values)


def _unique(inputs: Inputs) -> Call:
    values = inputs.values()
    return (lambda: np.unique(values, return_counts=True)) if "more" in inputs.words else lambda: np.unique(values)


SNIPPETS: Final[dict[str, Build]] = {
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
