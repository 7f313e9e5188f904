"""Descriptions of numpy calls as ops: kind, shape, number format, layout of the operands and location of the result.

A call without a corresponding op or with an unsupported number format becomes `busy` with its recorded time.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hwsim.devices.work import elementwise_call
from hwsim_calibrate.calls import REDUCTIONS
from hwsim_calibrate.recording.algebra import contracted, convolved, einsum, interpolated, norm, product, solved, transformed
from hwsim_calibrate.recording.descriptions import (
    SAME_AS,
    converted,
    described,
    elementwise,
    first_result,
    first_unsupported,
    flat_arrays,
    general,
    new_or_out,
    reduced,
    require_supported,
    target_of,
    unknown,
    view,
)
from hwsim_calibrate.recording.lookups import (
    ALONG_FIRST,
    arranged,
    chosen,
    counted,
    counted_true,
    indexed,
    ordered,
    ordered_by_keys,
    scattered,
    searched,
)
from hwsim_calibrate.recording.operands import SAMPLE, dtype_of, root, smooth
from hwsim_calibrate.recording.tape import Describe, Described, NoOp, Performed

ACCUMULATED: Final = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin"}
REDUCED: Final = {"add": "sum", "maximum": "max", "minimum": "min", "multiply": "prod", "logical_or": "any", "logical_and": "all"}
ALONG_SECOND: Final = ("partition", "argpartition", "percentile", "quantile", "nanpercentile")
SOLVED: Final = (
    "solve", "inv", "det", "slogdet", "cholesky", "qr", "eig", "eigh", "eigvals", "eigvalsh", "svd", "svdvals", "pinv", "lstsq",
    "matrix_rank", "matrix_power",
)  # fmt: skip
TRANSFORMED: Final = ("fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
OPAQUE: Final = (
    "allclose", "angle", "append", "array_equal", "block", "column_stack", "cross", "cov", "corrcoef", "delete", "diag",
    "diff", "dstack", "ediff1d", "fftshift", "flip", "fliplr", "flipud", "gradient", "histogram2d", "hstack", "ifftshift",
    "imag", "insert", "intersect1d", "isclose", "isin", "ix_", "kron", "outer", "pad", "polyfit", "polyval", "real", "repeat",
    "roll", "rot90", "setdiff1d", "stack", "tile", "trapezoid", "tril", "triu", "union1d", "unwrap", "vander", "vstack",
)  # fmt: skip
PRODUCTS: Final = ("matmul", "dot", "inner", "vdot", "vecdot", "matvec", "vecmat")
BRANCHED: Final = ("sin", "cos", "tan")  # in fp64, the polynomial depends on the range of the argument
POWERS: Final[dict[float, str]] = {2: "square", 0.5: "sqrt", -1: "reciprocal"}  # exponent -> function that numpy uses instead
# Equivalent FLOP of one random number, for machines without measured functions: 25 ns for a normal distribution and 5 ns for a
# uniform distribution, at the 40 GFLOP/s of a core with AVX2.
DRAWN: Final = {"uniform": 200.0, "random": 200.0, "integers": 200.0, "permutation": 400.0}
BYTE_VALUES: Final = 256
OTHERWISE_DRAWN: Final = 1000.0


def ufunc(done: Performed) -> Described:
    """Describe a call of a ufunc or of one of its methods: `add`, `add.reduce`."""
    name, _, method = done.name.partition(".")
    name = SAME_AS.get(name, name)
    result = done.result[0] if isinstance(done.result, tuple) else done.result
    if name in PRODUCTS and not method:
        return product(done)
    if method == "reduce":
        return reduced(done, REDUCED.get(name, name), done.option("axis", 1, 0))
    if method == "accumulate" and name in ACCUMULATED:
        return reduced(done, ACCUMULATED[name], done.options.get("axis", 0))
    if method == "outer" and first_unsupported(*done.args, result) is None:
        return elementwise(done, name, [np.asarray(done.args[0])[..., None], np.asarray(done.args[1])], result, "new")
    if method == "at" and np.ndim(done.args[1]) == 1:
        return scattered(done, "add_at")
    if method or isinstance(done.result, tuple) or first_unsupported(*done.args, result) is not None:
        return unknown(done)
    arrays = [argument for argument in done.args if isinstance(argument, np.ndarray) and argument.ndim]
    scalar, more = len(arrays) < len(done.args), ""
    if name == "power" and arrays and done.args[0] is arrays[0]:
        exponent = done.args[1] if scalar else None
        name = next((replacement for value, replacement in POWERS.items() if np.isscalar(exponent) and exponent == value), name)
        more = "signed" if name == "power" and bool(np.any(arrays[0].reshape(-1)[:SAMPLE] < 0)) else ""
    if name in BRANCHED and len(arrays) == 1 and arrays[0].dtype == np.float64 and smooth(arrays[0]):
        more = "smooth"
    return elementwise(
        done, name, arrays, result, target_of(done, *arrays), scalar=scalar and name not in POWERS.values(), more=more
    )


def reduction(done: Performed) -> Described:
    """Describe `np.sum(a, axis)` and other reductions."""
    return reduced(done, done.name, done.option("axis", 1))


def reduction_method(done: Performed) -> Described:
    """Describe `a.sum(axis)` and other reductions."""
    return reduced(done, done.name, done.option("axis", 1), " method")


def moved(done: Performed) -> Described:
    """Describe a copy (`copy`, `ravel`, ...), or a view if nothing is copied."""
    source, result = np.asarray(done.args[0]), np.asarray(done.result)
    if root(result) is root(source):
        return view(done)
    require_supported(result, source)
    if dtype_of(source) != dtype_of(result):
        return converted(done, "astype", source, result)
    if done.name in ("reshape", "ravel"):
        return elementwise(done, "copyto", [source], result.reshape(source.shape), "new")
    return elementwise(done, "copy", [source], result, "new")


def astype(done: Performed) -> Described:
    """Describe `a.astype(...)`, which copies even to the same format unless `copy=False`."""
    source, result = done.args[0], np.asarray(done.result)
    if root(result) is root(source):
        return view(done)
    require_supported(result, source)
    return converted(done, "astype", source, result)


def copied_to(done: Performed) -> Described:
    """Describe `np.copyto(to, from)` and `to[...] = from`."""
    target, source = done.args[0], np.asarray(done.args[1])
    require_supported(target, source)
    if not source.ndim:
        return elementwise(done, "fill", [], target, "out")
    if dtype_of(source) != dtype_of(target):
        return converted(done, "copyto", source, target)
    return elementwise(done, "copyto", [source], target, "out")


def filled(done: Performed) -> Described:
    """Describe `a.fill(value)`."""
    require_supported(done.args[0])
    return elementwise(done, "fill", [], done.args[0], "out")


def created(done: Performed) -> Described:
    """Describe the creation of an array without input: `zeros`, `full`, `arange`, ..."""
    if not isinstance(done.result, np.ndarray):
        return unknown(done)
    require_supported(done.result)
    kind = done.name.removesuffix("_like")
    if kind == "empty":
        done.since(done.result)
        raise NoOp("only an allocation; the first call that writes to the array causes the page faults")
    return elementwise(done, "fill" if kind in ("ones", "full") else kind, [], done.result, "new")


def from_objects(done: Performed) -> Described:
    """Describe `np.array(...)` of an array as a copy; conversions of Python objects have no op."""
    if done.args and isinstance(done.args[0], np.ndarray):
        return moved(done)
    raise NoOp("created from Python objects")


def generated(done: Performed) -> Described:
    """Describe random numbers of a `Generator`, whose algorithms differ from the functions of `np.random`."""
    return drawn(done, "generator")


def drawn(done: Performed, form: str = "") -> Described:
    """Describe random numbers."""
    array = np.asarray(done.result)
    require_supported(array)
    if done.name == "integers" and array.dtype.itemsize == 1 and _all_bytes(done):
        form = f"{form} full".strip()
    since = done.since(array)
    call = elementwise_call(
        done.name, form=form, dtype=dtype_of(array), count=float(array.size), inputs=0, into=new_or_out(done), since=since
    )
    keys = {**described(call, array.shape, since).keys, "inputs": 0, "flop_each": DRAWN.get(done.name, OTHERWISE_DRAWN)}
    return Described("elementwise", keys, since, call=call)


def _all_bytes(done: Performed) -> bool:
    """Return whether the range of random bytes has all 256 values, so that no value is rejected."""
    low, high = done.option("low", 0, 0), done.option("high", 1)
    return bool(np.all((np.asarray(low) if high is None else np.subtract(high, low)) == BYTE_VALUES))


def shuffled(done: Performed) -> Described:
    """Describe an in-place `shuffle`."""
    array = np.asarray(done.args[0])
    return general(done, "shuffle", float(array.shape[0]), [array], array, form="rows" if array.ndim > 1 else "")


def along_axis(done: Performed) -> Described:
    """Describe `take_along_axis` and `put_along_axis`: one element per index."""
    table, index = np.asarray(done.args[0]), np.asarray(done.args[1])
    result = np.asarray(done.result) if isinstance(done.result, np.ndarray) else index
    return general(done, done.name, float(index.size), [table, index], result, dtype=dtype_of(table))


def opaque(done: Performed) -> Described:
    """Describe a function by its largest number of elements: of its arrays or its result."""
    arrays = [array for array in flat_arrays(done.args) if array.ndim]
    result = first_result(done)
    if arrays and isinstance(done.result, np.ndarray) and root(result) is root(arrays[0]):
        return view(done)
    count = float(max([result.size, *(array.size for array in arrays)]))
    if done.name in ("cov", "corrcoef") and result.ndim:  # one product for each pair of variables
        count *= result.shape[0]
    first = max(arrays, key=np.size) if arrays else result
    return general(done, SAME_AS.get(done.name, done.name), count, arrays, result, dtype=dtype_of(first))


def joined(done: Performed) -> Described:
    """Describe `np.concatenate([...])`."""
    result = done.result
    require_supported(result, *done.args[0])
    (age,) = done.since(result)
    call = elementwise_call("concatenate", dtype=dtype_of(result), count=float(result.size), since=(age, age))
    return described(call, result.shape, (age, age))


def pointwise(done: Performed) -> Described:
    """Describe `clip` and `round`, elementwise functions of the first argument."""
    array = done.args[0]
    if not isinstance(array, np.ndarray) or first_unsupported(array, done.result) is not None:
        return unknown(done)
    bounds = [argument for argument in done.args[1:] if isinstance(argument, np.ndarray) and argument.ndim]
    return elementwise(done, done.name, [array, *bounds], done.result, target_of(done, array), scalar=not bounds)


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
    **dict.fromkeys(("convolve", "correlate"), convolved),
    **dict.fromkeys(OPAQUE, opaque),
    **dict.fromkeys(("take_along_axis", "put_along_axis"), along_axis),
    "lexsort": ordered_by_keys, "norm": norm, "interp": interpolated, "tensordot": contracted, "astype": astype,
    "bincount": counted,
    "concatenate": joined, "copyto": copied_to,
    "einsum": einsum, "take": indexed,
    "where": chosen,
}  # fmt: skip
METHODS: Final[dict[str, Describe]] = {
    **dict.fromkeys((name for name in REDUCTIONS if hasattr(np.ndarray, name)), reduction_method),
    **dict.fromkeys(("copy", "flatten", "ravel", "reshape"), moved),
    **dict.fromkeys(("clip", "round"), pointwise),
    **dict.fromkeys(
        ("choose", "compress", "conj", "conjugate", "diagonal", "squeeze", "swapaxes", "trace", "transpose", "view"), unknown),
    "argpartition": arranged, "nonzero": counted_true, "repeat": opaque, "searchsorted": searched, "argsort": ordered,
    "astype": astype, "dot": product, "take": indexed,
}  # fmt: skip
IN_PLACE: Final[dict[str, Describe]] = {"fill": filled, "partition": arranged, "put": unknown, "sort": ordered}
