"""A call of numpy as an op of hwsim: its kind, shape, number format, how its operands lie and where the result goes.

A call without an op, or with a number format that hwsim lacks, is `busy`: it takes the time it took when it was recorded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hwsim.devices.work import Call, Into, elementwise_call, general_call, lookup_call, product_call, reduce_call
from hwsim_calibrate.calls import REDUCTIONS
from hwsim_calibrate.recording.operands import (
    FEW,
    SAMPLE,
    Array,
    dtype_of,
    layout,
    layout_reduced,
    order_of,
    root,
    runs_of,
    span,
    stored_transposed,
)
from hwsim_calibrate.recording.ops import op_of
from hwsim_calibrate.recording.tape import Describe, Described, NoOp, Performed

SAME_AS: Final = {
    "true_divide": "divide", "amax": "max", "amin": "min", "fliplr": "flip", "flipud": "flip", "quantile": "percentile",
    "hstack": "concatenate", "ifftshift": "fftshift", "matrix_transpose": "transpose",
}  # fmt: skip
ACCUMULATED: Final = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin"}
REDUCED: Final = {"add": "sum", "maximum": "max", "minimum": "min", "multiply": "prod", "logical_or": "any", "logical_and": "all"}
VIEWS: Final = {
    **dict.fromkeys(("swapaxes", "moveaxis", "T", "mT", "transpose"), "transpose"),
    **dict.fromkeys(("reshape", "ravel", "squeeze", "expand_dims"), "reshape"),
}
ALONG_FIRST: Final = (
    "median",
    "nanmedian",
    "unique",
    "histogram",
    "ptp",
    "nansum",
    "nanmean",
    "nanmax",
    "nanmin",
    "nanstd",
    "nanvar",
)
ALONG_SECOND: Final = ("partition", "argpartition", "percentile", "quantile", "nanpercentile")
SOLVED: Final = (
    "solve", "inv", "det", "slogdet", "cholesky", "qr", "eig", "eigh", "eigvals", "eigvalsh", "svd", "svdvals", "pinv", "lstsq",
    "matrix_rank", "matrix_power",
)  # fmt: skip
TRANSFORMED: Final = ("fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
OPAQUE: Final = (
    "allclose", "angle", "lexsort", "append", "array_equal", "block", "column_stack", "cross", "cov", "corrcoef", "delete",
    "diag", "diff",
    "dstack", "ediff1d", "fftshift", "flip", "fliplr", "flipud", "gradient", "histogram2d", "hstack", "ifftshift", "imag",
    "insert", "intersect1d", "isclose", "isin", "ix_", "kron", "outer", "pad", "polyfit", "polyval",
    "put_along_axis", "real",
    "repeat", "roll", "rot90", "setdiff1d", "stack", "take_along_axis", "tile", "trapezoid", "tril", "triu", "union1d",
    "unwrap",
    "vander", "vstack",
)  # fmt: skip
PRODUCTS: Final = ("matmul", "dot", "inner", "vdot", "vecdot", "matvec", "vecmat")
MOVES: Final = ("copy", "copyto", "astype", "fill", "concatenate", "take", "takerows", "zeros")  # without arithmetic
# FLOP of a core in the time of drawing one number, for machines without measured functions: 25 ns for a normal distribution and
# 5 ns for an even one, at the 40 GFLOP/s of a core with AVX2.
POWERS: Final[dict[float, str]] = {2: "square", 0.5: "sqrt", -1: "reciprocal"}  # what numpy computes instead
CACHED: Final = 4096.0  # elements of a table that is looked up in order: each line comes once
DRAWN: Final = {"uniform": 200.0, "random": 200.0, "integers": 200.0, "permutation": 400.0}
OTHERWISE_DRAWN: Final = 1000.0
WITHOUT_OP: Final = "hwsim has no op for it"


def ufunc(done: Performed) -> Described:
    """A ufunc called, or one of its methods: `add`, `add.reduce`."""
    name, _, method = done.name.partition(".")
    name = SAME_AS.get(name, name)
    result = done.result[0] if isinstance(done.result, tuple) else done.result
    if name in PRODUCTS and not method:
        return product(done)
    if method == "reduce":
        return _reduced(done, REDUCED.get(name, name), done.option("axis", 1, 0))
    if method == "accumulate" and name in ACCUMULATED:
        return _reduced(done, ACCUMULATED[name], done.options.get("axis", 0))
    if method == "outer" and _odd(*done.args, result) is None:
        return _elementwise(done, name, [np.asarray(done.args[0])[..., None], np.asarray(done.args[1])], result, "new")
    if method == "at" and np.ndim(done.args[1]) == 1:
        return scattered(done, "add_at")
    if method or isinstance(done.result, tuple) or _odd(*done.args, result) is not None:
        return unknown(done)
    arrays = [each for each in done.args if isinstance(each, np.ndarray) and each.ndim]
    scalar, more = len(arrays) < len(done.args), ""
    if name == "power" and arrays and done.args[0] is arrays[0]:
        exponent = done.args[1] if scalar else None
        name = next((replacement for value, replacement in POWERS.items() if np.isscalar(exponent) and exponent == value), name)
        more = "signed" if name == "power" and bool(np.any(arrays[0].reshape(-1)[:SAMPLE] < 0)) else ""
    return _elementwise(
        done, name, arrays, result, _into(done, *arrays), scalar=scalar and name not in POWERS.values(), more=more
    )


def reduction(done: Performed) -> Described:
    """`np.sum(a, axis)` and other reductions."""
    return _reduced(done, done.name, done.option("axis", 1))


def reduction_method(done: Performed) -> Described:
    """`a.sum(axis)` and other reductions."""
    return _reduced(done, done.name, done.option("axis", 1), " method")


def product(done: Performed) -> Described:
    """A product of matrices or vectors."""
    left, right, result = np.asarray(done.args[0]), np.asarray(done.args[1]), np.asarray(done.result)
    _refuse_odd(left, right, result)
    if not left.ndim or not right.ndim:
        return _elementwise(done, "multiply", [each for each in (left, right) if each.ndim], done.result, "new", scalar=True)
    if done.name == "vdot":
        left, right = left.ravel(), right.ravel()
    if done.name == "inner" and right.ndim > 1:
        right = np.swapaxes(right, -1, -2)
    if done.name == "dot" and right.ndim > 2:
        raise NoOp(WITHOUT_OP)
    k = left.shape[-1]
    m, n = left.shape[-2] if left.ndim > 1 else 1, right.shape[-1] if right.ndim > 1 else 1
    if done.name == "dot" and left.ndim > 2:
        m = int(left.size // max(k, 1))
    if min(m, n, k) < 1 or not result.size:
        raise NoOp("an empty product")
    form = "b" if stored_transposed(right) else "a" if stored_transposed(left) else ""
    one_matrix = left.ndim == 2 and right.ndim == 2 and m == n and span(left) == span(right)
    if one_matrix and stored_transposed(left) != stored_transposed(right):
        form = "gram"
    batch, since = max(int(result.size // max(m * n, 1)), 1), done.since(left, right, *_with_axes(result))
    call = product_call(m, k, n, dtype=dtype_of(result), batch=batch, form=form, into=_new_or_out(done), since=since)
    return _described(call, result.shape, since)


def einsum(done: Performed) -> Described:
    """Sums of products by the letters of their axes: a multiply-add for each combination and further operand."""
    letters, *factors = done.args
    operands, result = [np.asarray(each) for each in factors], np.asarray(done.result)
    if not isinstance(letters, str) or "." in letters or _odd(*operands, result) is not None:
        return unknown(done)
    inputs = letters.replace(" ", "").partition("->")[0].split(",")
    lengths = {
        letter: size for term, each in zip(inputs, operands, strict=True) for letter, size in zip(term, each.shape, strict=True)
    }
    steps = float(math.prod(lengths.values()) * max(2 * (len(operands) - 1), 1))
    inner = [term[-1:] for term in letters.replace(" ", "").partition("->")[0].split(",")]
    out = letters.replace(" ", "").partition("->")[2][-1:]
    form = "inner" if len(set(inner)) == 1 and out != inner[0] else "outer" if out and out in inner else "mixed"
    return _general(done, "einsum", steps, operands, result, form=form if len(operands) > 1 else "one")


def moved(done: Performed) -> Described:
    """A copy (`copy`, `ravel`, ...), or a view where nothing is copied."""
    source, result = np.asarray(done.args[0]), np.asarray(done.result)
    if root(result) is root(source):
        return view(done)
    _refuse_odd(result, source)
    if dtype_of(source) != dtype_of(result):
        return _converted(done, "astype", source, result)
    if done.name in ("reshape", "ravel"):
        return _elementwise(done, "copyto", [source], result.reshape(source.shape), "new")
    return _elementwise(done, "copy", [source], result, "new")


def astype(done: Performed) -> Described:
    """`a.astype(...)`: a copy even to the same format, unless `copy=False`."""
    source, result = done.args[0], np.asarray(done.result)
    if root(result) is root(source):
        return view(done)
    _refuse_odd(result, source)
    return _converted(done, "astype", source, result)


def copied_to(done: Performed) -> Described:
    """`np.copyto(to, from)`, and `to[...] = from`."""
    target, source = done.args[0], np.asarray(done.args[1])
    _refuse_odd(target, source)
    if not source.ndim:
        return _elementwise(done, "fill", [], target, "out")
    if dtype_of(source) != dtype_of(target):
        return _converted(done, "copyto", source, target)
    return _elementwise(done, "copyto", [source], target, "out")


def filled(done: Performed) -> Described:
    """`a.fill(value)`."""
    _refuse_odd(done.args[0])
    return _elementwise(done, "fill", [], done.args[0], "out")


def created(done: Performed) -> Described:
    """An array that needs no input: `zeros`, `full`, `arange`, ..."""
    if not isinstance(done.result, np.ndarray):
        return unknown(done)
    _refuse_odd(done.result)
    kind = done.name.removesuffix("_like")
    if kind == "empty":
        done.since(done.result)
        raise NoOp("room alone: the first call that writes to it pays for its pages")
    return _elementwise(done, "fill" if kind in ("ones", "full") else kind, [], done.result, "new")


def from_objects(done: Performed) -> Described:
    """`np.array(...)`: a copy of an array; made from anything else it is Python's work."""
    if done.args and isinstance(done.args[0], np.ndarray):
        return moved(done)
    raise NoOp("made from objects of Python")


def generated(done: Performed) -> Described:
    """Random numbers of a `Generator`, which draws them another way than the functions of `np.random`."""
    return drawn(done, "generator")


def drawn(done: Performed, form: str = "") -> Described:
    """Random numbers."""
    array = np.asarray(done.result)
    _refuse_odd(array)
    since = done.since(array)
    call = elementwise_call(
        done.name, form=form, dtype=dtype_of(array), count=float(array.size), inputs=0, into=_new_or_out(done), since=since
    )
    keys = {**_described(call, array.shape, since).keys, "inputs": 0, "flop_each": DRAWN.get(done.name, OTHERWISE_DRAWN)}
    return Described("elementwise", keys, since, call=call)


def shuffled(done: Performed) -> Described:
    """`shuffle`: an array put into any order, in its place."""
    array = np.asarray(done.args[0])
    return _general(done, "shuffle", float(array.shape[0]), [array], array)


def indexed(done: Performed) -> Described:
    """`a[i]`, `np.take(a, i)`: elements or rows by an index."""
    table, result = done.args[0], np.asarray(done.result)
    _refuse_odd(result, table)
    if isinstance(done.args[1], tuple):
        return _looked_up(done, table, [np.asarray(each) for each in done.args[1] if isinstance(each, np.ndarray | list)], result)
    index = np.asarray(done.args[1])
    if index.dtype == np.bool_:
        form = runs_of(index)
        return _general(done, "compress", float(index.size), [index], result, form=form, dtype=dtype_of(table), more=[table])
    is_flat = done.name == "take" and done.option("axis", 2) is None
    if not isinstance(done.args[1], np.ndarray | list) or not (is_flat or done.option("axis", 2) in (None, 0)):
        return _looked_up(done, table, [index], result)
    by_row = table.ndim > 1 and not is_flat
    length = table.size / max(table.shape[0], 1) if by_row else 1.0
    return _found(done, "takerows" if by_row else "take" if done.name == "take" else "index", table, index, result, length)


def _found(done: Performed, function: str, table: Array, index: Array, result: Array, length: float = 1.0) -> Described:
    """Elements or rows of a table by their index: one in order passes through the caches once."""
    since = done.since(table, index, *_with_axes(result))
    function = "index_cast" if function == "index" and index.dtype != np.int64 else function
    reach = min(float(table.size), CACHED) if order_of(index.reshape(-1)) == "sorted" and length <= 1 else float(table.size)
    call = lookup_call(
        function, dtype=dtype_of(table), count=float(max(index.size, 1)), table=reach,
        length=length, into=_new_or_out(done), since=since,
    )  # fmt: skip
    return _described(call, (), since)


def _looked_up(done: Performed, table: Array, indices: Sequence[Array], result: Array) -> Described:
    """By several indices, by masks and slices, or along another axis: each element of the result is found by itself."""
    if not indices or any(each.dtype == np.bool_ for each in indices):
        done.since(table, *_with_axes(result))
        raise NoOp("an index of bool among others")
    function = "indices" if len(indices) > 1 else "takecolumns"
    since = done.since(table, indices[0], *_with_axes(result))
    call = lookup_call(
        function, dtype=dtype_of(table), count=float(max(result.size, 1)), table=float(table.size), into=_new_or_out(done),
        since=since,
    )  # fmt: skip
    return _described(call, (), since)


def assigned(done: Performed) -> Described:
    """`a[i] = value`, by an index or a mask."""
    return scattered(done, "put")


def scattered(done: Performed, function: str) -> Described:
    """Values written, or added, where an index or a mask says."""
    table, at = np.asarray(done.args[0]), done.args[1]
    _refuse_odd(table)
    given = [np.asarray(each) for each in done.args[2:] if isinstance(each, np.ndarray) and each.ndim]
    _refuse_odd(*given)
    if isinstance(at, tuple):
        lists = [np.asarray(each) for each in at if isinstance(each, np.ndarray | list)]
        if not lists or any(each.dtype == np.bool_ for each in lists):
            raise NoOp("an index of bool among others")
        others = [each for each in at if not isinstance(each, np.ndarray | list)]
        function, index = function + "indices", lists[0]
        lengths = [length for each, length in zip(at, table.shape, strict=False) if isinstance(each, slice)]
        count = (
            float(math.prod(lengths) * max(np.broadcast_shapes(*(each.shape for each in lists)), default=1))
            if others
            else float(max(each.size for each in lists))
        )
    else:
        index = np.asarray(at)
        if index.dtype == np.bool_:
            form = " ".join(word for word in ("" if given else "scalar", runs_of(index)) if word)
            return _general(
                done, "setmask", float(index.size), [index, *given], table, form=form, dtype=dtype_of(table), into="out"
            )
        count = float(index.size) * (table.size / max(table.shape[0], 1))
    since = done.since(table, index, *given[:1])
    reach = min(float(table.size), CACHED) if order_of(index.reshape(-1)) == "sorted" else float(table.size)
    call = lookup_call(
        function, dtype=dtype_of(table), count=max(count, 1.0), table=reach, into="out", since=since[:2] + since[1:2]
    )
    return _described(call, (), since)


def contracted(done: Performed) -> Described:
    """`np.tensordot`: a product of matrices after their axes are put in order."""
    left, right, result = (np.asarray(each) for each in (*done.args[:2], done.result))
    _refuse_odd(left, right, result)
    k = max(round(math.sqrt(left.size * right.size / max(result.size, 1))), 1)
    since = done.since(left, right, *_with_axes(result))
    call = product_call(max(left.size // k, 1), k, max(right.size // k, 1), dtype=dtype_of(result), since=since)
    return _described(call, result.shape, since)


def searched(done: Performed) -> Described:
    """`np.searchsorted(a, v)`, `np.digitize(v, a)`: a bisection for each value."""
    table, values = np.asarray(done.args[0]), np.asarray(done.args[1])
    if done.name == "digitize":
        table, values = values, table
    steps = float(values.size) * math.log2(max(table.size, 2))
    form = "sorted" if order_of(values.reshape(-1)) == "sorted" else ""
    return _general(done, "searchsorted", steps, [table, values], np.asarray(done.result), form=form, dtype=dtype_of(table))


def arranged(done: Performed) -> Described:
    """`unique`, `partition`, `median`, `percentile`,
    ...: functions of an array whose time depends on the order of its values."""
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
    name = SAME_AS.get(done.name, done.name)
    return _general(done, name, float(array.size), [array], np.asarray(result), form=" ".join(words), rows=rows)


def counted_true(done: Performed) -> Described:
    """`nonzero`, `flatnonzero`, `argwhere`, and `where` of one argument: places that are not 0."""
    array = np.asarray(done.args[0])
    result = done.result[0] if isinstance(done.result, tuple) and done.result else done.result
    form = runs_of(array) if array.dtype == np.bool_ and array.ndim else ""
    name = "nonzero" if done.name in ("where", "flatnonzero", "argwhere") else done.name
    return _general(done, name, float(array.size), [array], np.asarray(result), form=form)


def solved(done: Performed) -> Described:
    """Linear algebra: the order n^3 of operations of each matrix."""
    arrays = [np.asarray(each) for each in done.args if isinstance(each, np.ndarray)]
    matrix = arrays[0]
    if matrix.ndim < 2:
        return _general(done, done.name, float(matrix.size), arrays, _first_result(done))
    m, n = (float(each) for each in matrix.shape[-2:])
    batch = matrix.size / max(m * n, 1.0)
    columns = arrays[1].shape[-1] if len(arrays) > 1 and arrays[1].ndim > 1 else 1
    order = m * n * min(m, n) if done.name != "matrix_power" else m * n * n
    steps = batch * (order + (2.0 * m * n * columns if len(arrays) > 1 else 0.0))
    return _general(done, done.name, max(steps, 1.0), arrays, _first_result(done), rows=max(batch, 1.0))


def norm(done: Performed) -> Described:
    """`np.linalg.norm`: of a vector, of a matrix, or along an axis."""
    array = np.asarray(done.args[0])
    axis = done.option("axis", 2)
    return _general(
        done, "norm", float(array.size), [array], np.asarray(done.result), form="" if axis is None else "axis",
        rows=1.0 if axis is None else max(float(np.size(done.result)), 1.0),
    )  # fmt: skip


def transformed(done: Performed) -> Described:
    """A Fourier transform: 5 n log2 n operations for each of its rows; `rough` where n has a large prime factor."""
    array, result = np.asarray(done.args[0]), np.asarray(done.result)
    twice = done.name.endswith("2") or done.name.endswith("n")
    length = max(array.shape[-1], result.shape[-1])
    steps = 5.0 * max(array.size, result.size) * math.log2(max(max(array.size, result.size) if twice else length, 2))
    lengths = (array.shape if twice else (length,)) if array.ndim else (1,)
    form = "rough" if max(_largest_factor(each) for each in lengths) > 13 else ""
    kind = dtype_of(array if array.dtype.kind == "c" else result if result.dtype.kind == "c" else array)
    return _general(done, done.name, steps, [array], result, form=form, rows=array.size / max(length, 1), dtype=kind)


def interpolated(done: Performed) -> Described:
    """`np.interp(x, known, values)`: a bisection for each x; where they come in order, a step or two."""
    at = np.asarray(done.args[0])
    form = "sorted" if at.ndim and order_of(at) == "sorted" else ""
    arrays = [np.asarray(each) for each in done.args[:3]]
    steps = float(at.size) * (1.0 if form else math.log2(max(np.size(done.args[1]), 2)))
    return _general(done, "interp", steps, arrays, np.asarray(done.result), form=form, dtype="fp64")


def slid(done: Performed) -> Described:
    """`convolve`, `correlate`: a multiply-add for each pair."""
    first, second = (np.asarray(each) for each in done.args[:2])
    steps = 2.0 * float(np.size(done.result)) * min(first.size, second.size)
    return _general(done, "convolve", steps, [first, second], np.asarray(done.result), rows=float(np.size(done.result)))


def opaque(done: Performed) -> Described:
    """A function by the elements that it goes through: the larger of its first array and its result."""
    arrays = [each for each in _flat_arrays(done.args) if each.ndim]
    result = _first_result(done)
    if arrays and isinstance(done.result, np.ndarray) and root(result) is root(arrays[0]):
        return view(done)
    count = float(max([result.size, *(each.size for each in arrays)]))
    first = max(arrays, key=np.size) if arrays else result
    return _general(done, SAME_AS.get(done.name, done.name), count, arrays, result, dtype=dtype_of(first))


def _general(
    done: Performed, name: str, steps: float, arrays: Sequence[Array], result: Array, *, form: str = "", rows: float = 1.0,
    dtype: str = "", more: Sequence[Array] = (), into: Into | None = None,
) -> Described:  # fmt: skip
    """A call of `steps` steps that reads arrays and writes one."""
    kind = dtype or dtype_of(max(arrays, key=np.size) if arrays else result)
    if not kind:
        _refuse_odd(*arrays, result)
    ages = done.since(*(each for each in (*arrays, *more) if each.ndim), *_with_axes(result))
    reads = float(sum(each.nbytes for each in arrays) + (result.nbytes if more else 0))
    age, last = max(ages[:-1], default=reads), ages[-1] if ages and result.ndim else reads
    call = general_call(
        name, dtype=kind, count=max(steps, 1.0), reads=reads, writes=float(result.nbytes), form=form, rows=max(rows, 1.0),
        into=into or _new_or_out(done), since=(age, last),
    )  # fmt: skip
    return _described(call, (), (age, last))


def _first_result(done: Performed) -> Array:
    value = done.result
    while isinstance(value, tuple | list) and value:
        value = value[0]
    return np.asarray(value)


def _flat_arrays(values: Sequence[Any]) -> list[Array]:
    arrays: list[Array] = []
    for value in values:
        if isinstance(value, np.ndarray):
            arrays.append(value)
        elif isinstance(value, tuple | list):
            arrays += _flat_arrays(value[:64])
    return arrays


def _largest_factor(number: int) -> int:
    """The largest prime factor.

    >>> _largest_factor(1000), _largest_factor(1021)
    (5, 1021)
    """
    largest, factor = 1, 2
    while factor * factor <= number:
        while number % factor == 0:
            largest, number = factor, number // factor
        factor += 1
    return max(largest, number)


def joined(done: Performed) -> Described:
    """`np.concatenate([...])`."""
    result = done.result
    _refuse_odd(result, *done.args[0])
    (age,) = done.since(result)
    call = elementwise_call("concatenate", dtype=dtype_of(result), count=float(result.size), since=(age, age))
    return _described(call, result.shape, (age, age))


def ordered(done: Performed) -> Described:
    """`sort`, `argsort` along the last axis."""
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
    return _described(call, array.shape, since)


def chosen(done: Performed) -> Described:
    """`np.where(mask, a, b)`."""
    if len(done.args) < 3:
        return counted_true(done)
    if _odd(done.result, *done.args) is not None:
        return unknown(done)
    arrays = [each for each in done.args[1:] if isinstance(each, np.ndarray) and each.ndim]
    mask = np.asarray(done.args[0])
    runs = runs_of(mask) if mask.dtype == np.bool_ and mask.ndim and mask.size == np.size(done.result) else ""
    return _elementwise(done, done.name, arrays, done.result, "new", more=runs, dtype=dtype_of(np.asarray(done.result)))


def counted(done: Performed) -> Described:
    """`np.bincount(groups, weights)`."""
    arrays = [each for each in done.args[:2] if isinstance(each, np.ndarray)]
    weights = done.options.get("weights")
    arrays += [weights] if isinstance(weights, np.ndarray) else []
    groups = np.asarray(done.args[0]).reshape(-1)
    words = ["" if len(arrays) > 1 else "plain", "" if groups.dtype == np.int64 else "narrow", order_of(groups)]
    count, form = float(np.size(done.args[0])), " ".join(word for word in words if word)
    since = done.since(*arrays, done.result)
    call = elementwise_call(done.name, dtype="fp64", count=count, inputs=len(arrays), form=form, into="out", since=since)
    return _described(call, np.shape(done.args[0]), since)


def pointwise(done: Performed) -> Described:
    """`clip`, `round`: a function of each element of the first argument."""
    array = done.args[0]
    if not isinstance(array, np.ndarray) or _odd(array, done.result) is not None:
        return unknown(done)
    bounds = [each for each in done.args[1:] if isinstance(each, np.ndarray) and each.ndim]
    return _elementwise(done, done.name, [array, *bounds], done.result, _into(done, array), scalar=not bounds)


def view(done: Performed) -> Described:
    """A view of the same memory: no data moves."""
    call = Call(function=VIEWS.get(done.name, done.name))
    return Described(
        "elementwise", {"function": call.function, "count": 0, "inputs": 0, "flop_each": 0, "into": "out"}, call=call
    )


def unknown(done: Performed) -> Described:
    """Any other call: a view if its result is one, else busy."""
    results = done.result if isinstance(done.result, tuple | list) else (done.result,)
    arrays = [each for each in results if isinstance(each, np.ndarray)]
    given = {id(root(each)) for each in _flat_arrays(done.args)}
    only_arrays = arrays and len(arrays) == len(results) and done.options.get("out") is None
    if only_arrays and all(id(root(each)) in given for each in arrays):
        return view(done)
    done.since(*(each for each in (*done.args, *arrays) if isinstance(each, np.ndarray) and each.size))
    _refuse_odd(*done.args, *arrays)
    raise NoOp(WITHOUT_OP)


FUNCTIONS: Final[dict[str, Describe]] = {
    **dict.fromkeys(REDUCTIONS, reduction),
    **dict.fromkeys(("dot", "inner", "vdot", "matmul"), product),
    **dict.fromkeys(("copy", "ravel", "reshape"), moved),
    **dict.fromkeys(("sort", "argsort"), ordered),
    **dict.fromkeys(("clip", "round", "around", "nan_to_num"), pointwise),
    **dict.fromkeys(("zeros_like", "ones_like", "empty_like", "full_like"), created),
    **dict.fromkeys(("searchsorted", "digitize"), searched),
    **dict.fromkeys((*ALONG_FIRST, *ALONG_SECOND), arranged),
    **dict.fromkeys(("nonzero", "flatnonzero", "argwhere", "count_nonzero"), counted_true),
    **dict.fromkeys(SOLVED, solved),
    **dict.fromkeys(TRANSFORMED, transformed),
    **dict.fromkeys(("convolve", "correlate"), slid),
    **dict.fromkeys(OPAQUE, opaque),
    "norm": norm, "interp": interpolated, "tensordot": contracted, "astype": astype, "bincount": counted,
    "concatenate": joined, "copyto": copied_to,
    "einsum": einsum, "take": indexed,
    "where": chosen,
}  # fmt: skip
METHODS: Final[dict[str, Describe]] = {
    **dict.fromkeys((each for each in REDUCTIONS if hasattr(np.ndarray, each)), reduction_method),
    **dict.fromkeys(("copy", "flatten", "ravel", "reshape"), moved),
    **dict.fromkeys(("clip", "round"), pointwise),
    **dict.fromkeys(
        ("choose", "compress", "conj", "conjugate", "diagonal", "squeeze", "swapaxes", "trace", "transpose", "view"), unknown),
    "argpartition": arranged, "nonzero": counted_true, "repeat": opaque, "searchsorted": searched, "argsort": ordered,
    "astype": astype, "dot": product, "take": indexed,
}  # fmt: skip
IN_PLACE: Final[dict[str, Describe]] = {"fill": filled, "partition": arranged, "put": unknown, "sort": ordered}


def _elementwise(
    done: Performed, name: str, arrays: Sequence[Array], result: Any, into: Into, *, scalar: bool = False, more: str = "",
    dtype: str = "",
) -> Described:  # fmt: skip
    """A function of each element; `arrays` have any shape that broadcasts to the result's."""
    result = np.asarray(result)
    form, rows = layout(arrays, result)
    full = [each for each in arrays if each.size == result.size and each.ndim]
    dtype = dtype or dtype_of(full[0] if full else max(arrays, key=np.size) if arrays else result)
    if not form and len(full) == 2:
        formats = [dtype_of(each) for each in full]
        form = "mask" if "bool" in formats and dtype != "bool" else "same" if span(full[0]) == span(full[1]) else ""
    if not form and scalar:
        form = "scalar"
    form = more if more == "signed" else " ".join(word for word in (form, more) if word)
    inputs = full[:1] if form.startswith("same") else full
    since, made = done.since(*inputs, *_with_axes(result)), dtype_of(result)
    call = elementwise_call(
        name, dtype=dtype, count=float(result.size), inputs=len(inputs), form=form, rows=rows, into=into,
        result=made if made != dtype else "", since=since,
    )  # fmt: skip
    return _described(call, result.shape, since)


def _reduced(done: Performed, name: str, axis: Any, method: str = "") -> Described:
    array = np.asarray(done.args[0])
    _refuse_odd(array)
    form, rows = layout_reduced(array, axis)
    since = done.since(array)
    done.since(*_with_axes(np.asarray(done.result)))
    form = (form + method).strip()
    call = reduce_call(name, dtype=dtype_of(array), count=float(array.size), form=form, rows=rows, since=since)
    return _described(call, array.shape, since)


def _converted(done: Performed, function: str, source: Array, result: Array) -> Described:
    """A copy in another number format."""
    form = f"from {dtype_of(source)}" if dtype_of(source) != dtype_of(result) else ""
    into: Into = "out" if function == "copyto" else "new"
    since = done.since(source, result)
    call = elementwise_call(
        function, dtype=dtype_of(result), count=float(result.size), inputs=1, form=form, into=into, since=since
    )
    return _described(call, result.shape, since)


def _described(call: Call, shape: tuple[int, ...], since: tuple[float, ...]) -> Described:
    """The op that lowers to this call again, with the result's shape instead of its element count."""
    kind, keys = op_of(call)
    if "count" in keys and kind != "access":
        del keys["count"]
        keys = {"function": keys.pop("function"), "shape": list(shape) or [1], **keys}
    if keys["into"] == "new":
        del keys["into"]
    if kind == "elementwise" and call.function in MOVES:
        keys["flop_each"] = 0
    return Described(kind, keys, since, call=call)


def _into(done: Performed, *inputs: Array) -> Into:
    """Target of an elementwise result: a new array, one that exists, or an operand itself."""
    if done.options.get("out") is None:
        return "new"
    target = span(np.asarray(done.result[0] if isinstance(done.result, tuple) else done.result))
    return "self" if any(span(each) == target for each in inputs) else "out"


def _new_or_out(done: Performed) -> Into:
    return "new" if done.options.get("out") is None else "out"


def _with_axes(array: Array) -> tuple[Array, ...]:
    """The array, unless it is a single number."""
    return (array,) if array.ndim else ()


def _odd(*values: Any) -> Any:
    """The first array or number of a format that hwsim lacks."""
    return next((each for each in values if isinstance(each, np.ndarray | np.generic) and not dtype_of(each)), None)


def _refuse_odd(*values: Any) -> None:
    """Raise NoOp if a value has a number format that hwsim lacks."""
    odd = _odd(*values)
    if odd is not None:
        raise NoOp(f"hwsim has no number format {odd.dtype}")
