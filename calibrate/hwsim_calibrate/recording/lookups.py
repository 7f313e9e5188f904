"""Descriptions of lookups, searches, sorting and counting, whose time depends on locations and on the order of values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from hwsim.devices.work import elementwise_call, lookup_call
from hwsim_calibrate.recording.descriptions import (
    SAME_AS,
    WITHOUT_OP,
    described,
    elementwise,
    first_unsupported,
    general,
    new_or_out,
    require_supported,
    unknown,
    with_axes,
)
from hwsim_calibrate.recording.operands import FEW, SAMPLE, Array, dtype_of, order_of, runs_of
from hwsim_calibrate.recording.tape import Described, NoOp, Performed

ALONG_FIRST: Final = (
    "median", "nanmedian", "unique", "histogram", "ptp", "nansum", "nanmean", "nanmax", "nanmin", "nanstd", "nanvar",
)  # fmt: skip
CACHED: Final = 4096.0  # effective elements of a table for sorted indices, which use each cache line once


def indexed(done: Performed) -> Described:
    """Describe `a[i]` and `np.take(a, i)`."""
    table, result = done.args[0], np.asarray(done.result)
    require_supported(result, table)
    if isinstance(done.args[1], tuple):
        return _mixed_lookup(done, table, [np.asarray(key) for key in done.args[1] if isinstance(key, np.ndarray | list)], result)
    index = np.asarray(done.args[1])
    if index.dtype == np.bool_:
        form = runs_of(index)
        return general(done, "compress", float(index.size), [index], result, form=form, dtype=dtype_of(table), more=[table])
    is_flat = done.name == "take" and done.option("axis", 2) is None
    if not isinstance(done.args[1], np.ndarray | list) or not (is_flat or done.option("axis", 2) in (None, 0)):
        return _mixed_lookup(done, table, [index], result)
    by_row = table.ndim > 1 and not is_flat
    length = table.size / max(table.shape[0], 1) if by_row else 1.0
    function = "takerows" if by_row else "take" if done.name == "take" else "index"
    return _single_lookup(done, function, table, index, result, length)


def _single_lookup(done: Performed, function: str, table: Array, index: Array, result: Array, length: float = 1.0) -> Described:
    """Describe a lookup by one index array; sorted indices use each cache line once."""
    since = done.since(table, index, *with_axes(result))
    function = "index_cast" if function == "index" and index.dtype != np.int64 else function
    reach = min(float(table.size), CACHED) if order_of(index.reshape(-1)) == "sorted" and length <= 1 else float(table.size)
    call = lookup_call(
        function, dtype=dtype_of(table), count=float(max(index.size, 1)), table=reach,
        length=length, into=new_or_out(done), since=since,
    )  # fmt: skip
    return described(call, (), since)


def _mixed_lookup(done: Performed, table: Array, indices: Sequence[Array], result: Array) -> Described:
    """Describe a lookup by several indices or along another axis, which finds each element of the result separately."""
    if not indices or any(index.dtype == np.bool_ for index in indices):
        done.since(table, *with_axes(result))
        raise NoOp("a boolean mask is combined with other indices")
    function = "indices" if len(indices) > 1 else "takecolumns"
    since = done.since(table, indices[0], *with_axes(result))
    call = lookup_call(
        function, dtype=dtype_of(table), count=float(max(result.size, 1)), table=float(table.size), into=new_or_out(done),
        since=since,
    )  # fmt: skip
    return described(call, (), since)


def assigned(done: Performed) -> Described:
    """Describe `a[i] = value` by an index or a mask."""
    return scattered(done, "put")


def scattered(done: Performed, function: str) -> Described:
    """Describe writes or additions to the elements that an index or a mask selects."""
    table, key = np.asarray(done.args[0]), done.args[1]
    require_supported(table)
    given = [np.asarray(argument) for argument in done.args[2:] if isinstance(argument, np.ndarray) and argument.ndim]
    require_supported(*given)
    if isinstance(key, tuple):
        lists = [np.asarray(item) for item in key if isinstance(item, np.ndarray | list)]
        if not lists or any(index.dtype == np.bool_ for index in lists):
            raise NoOp("a boolean mask is combined with other indices")
        others = [item for item in key if not isinstance(item, np.ndarray | list)]
        function, index = function + "indices", lists[0]
        lengths = [length for item, length in zip(key, table.shape, strict=False) if isinstance(item, slice)]
        count = (
            float(math.prod(lengths) * max(np.broadcast_shapes(*(array.shape for array in lists)), default=1))
            if others
            else float(max(array.size for array in lists))
        )
    else:
        index = np.asarray(key)
        if index.dtype == np.bool_:
            form = " ".join(word for word in ("" if given else "scalar", runs_of(index)) if word)
            return general(
                done, "setmask", float(index.size), [index, *given], table, form=form, dtype=dtype_of(table), into="out"
            )
        count = float(index.size) * (table.size / max(table.shape[0], 1))
    since = done.since(table, index, *given[:1])
    reach = min(float(table.size), CACHED) if order_of(index.reshape(-1)) == "sorted" else float(table.size)
    call = lookup_call(
        function, dtype=dtype_of(table), count=max(count, 1.0), table=reach, into="out", since=since[:2] + since[1:2]
    )
    return described(call, (), since)


def searched(done: Performed) -> Described:
    """Describe `np.searchsorted(a, v)` and `np.digitize(v, a)`: one bisection per value."""
    table, values = np.asarray(done.args[0]), np.asarray(done.args[1])
    if done.name == "digitize":
        table, values = values, table
    steps = float(values.size) * math.log2(max(table.size, 2))
    form = "sorted" if order_of(values.reshape(-1)) == "sorted" else ""
    return general(done, "searchsorted", steps, [table, values], np.asarray(done.result), form=form, dtype=dtype_of(table))


def arranged(done: Performed) -> Described:
    """Describe `unique`, `partition`, `median`, ...: functions whose time depends on the order of the values."""
    array = np.asarray(done.args[0])
    options = [word for word in ("return_inverse", "return_counts", "return_index") if done.options.get(word)]
    words = ["more"] if options else []
    axis = done.option("axis", 1) if done.name in ALONG_FIRST else done.option("axis", 2)
    rows = 1.0 if axis is None or array.ndim < 2 else array.size / max(array.shape[int(axis)], 1)
    result = done.result[0] if isinstance(done.result, tuple) else done.result
    order = order_of(array if array.ndim else array.reshape(1))
    if done.name == "unique" and order != "sorted":
        order = "few" if np.size(result) * FEW <= array.size else ""
    words += [order] if order else []
    if axis is not None and array.ndim > 1:
        words = [*(["across"] if int(axis) % array.ndim < array.ndim - 1 else ["rows"]), *words]
    if done.name.startswith("nan"):
        words = ["missing"] if array.dtype.kind == "f" and bool(np.isnan(array.reshape(-1)[:SAMPLE]).any()) else []
    name = SAME_AS.get(done.name, done.name)
    return general(done, name, float(array.size), [array], np.asarray(result), form=" ".join(words), rows=rows)


def counted_true(done: Performed) -> Described:
    """Describe `nonzero`, `flatnonzero`, `argwhere`, and `where` with one argument."""
    array = np.asarray(done.args[0])
    result = done.result[0] if isinstance(done.result, tuple) and done.result else done.result
    form = runs_of(array) if array.dtype == np.bool_ and array.ndim else ""
    name = "nonzero" if done.name in ("where", "flatnonzero", "argwhere") else done.name
    return general(done, name, float(array.size), [array], np.asarray(result), form=form)


def ordered(done: Performed) -> Described:
    """Describe `sort` and `argsort`."""
    array = done.args[0]
    if dtype_of(array) == "":
        raise NoOp(WITHOUT_OP)
    axis = done.option("axis", 1, -1)
    across = axis is not None and axis not in (-1, array.ndim - 1)
    rows = array.size / max(array.shape[-1 if axis is None else int(axis)], 1) if array.ndim > 1 and axis is not None else 1.0
    stable = "stable" if done.option("kind", 2) in ("stable", "mergesort") or done.options.get("stable") else ""
    order = order_of(np.swapaxes(array, int(axis), -1) if across else array)
    form = " ".join(word for word in ("across" if across else "", stable, order) if word)
    since = done.since(array, done.result if isinstance(done.result, np.ndarray) else array)
    indices = "int64" if done.name == "argsort" else ""
    call = elementwise_call(
        done.name, dtype=dtype_of(array), count=float(array.size), rows=max(rows, 1.0), result=indices, since=since, form=form
    )
    return described(call, array.shape, since)


def ordered_by_keys(done: Performed) -> Described:
    """Describe `lexsort`: one merge sort per key."""
    keys = [np.asarray(key) for key in done.args[0]]
    length = float(keys[0].shape[-1]) if keys else 1.0
    steps = math.log2(max(length, 2.0)) * sum(key.size for key in keys)
    return general(done, "lexsort", steps, keys, np.asarray(done.result), form=order_of(keys[0]), dtype=dtype_of(keys[0]))


def chosen(done: Performed) -> Described:
    """Describe `np.where(mask, a, b)`."""
    if len(done.args) < 3:
        return counted_true(done)
    if first_unsupported(done.result, *done.args) is not None:
        return unknown(done)
    arrays = [argument for argument in done.args[1:] if isinstance(argument, np.ndarray) and argument.ndim]
    mask = np.asarray(done.args[0])
    runs = runs_of(mask) if mask.dtype == np.bool_ and mask.ndim and mask.size == np.size(done.result) else ""
    return elementwise(done, done.name, arrays, done.result, "new", more=runs, dtype=dtype_of(np.asarray(done.result)))


def counted(done: Performed) -> Described:
    """Describe `np.bincount(groups, weights)`."""
    arrays = [argument for argument in done.args[:2] if isinstance(argument, np.ndarray)]
    weights = done.options.get("weights")
    arrays += [weights] if isinstance(weights, np.ndarray) else []
    groups = np.asarray(done.args[0]).reshape(-1)
    words = ["" if len(arrays) > 1 else "plain", "" if groups.dtype == np.int64 else "narrow", order_of(groups)]
    count, form = float(np.size(done.args[0])), " ".join(word for word in words if word)
    since = done.since(*arrays, done.result)
    call = elementwise_call(done.name, dtype="fp64", count=count, inputs=len(arrays), form=form, into="out", since=since)
    return described(call, np.shape(done.args[0]), since)
