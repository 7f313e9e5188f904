"""Conversion between rows of the suites and the library calls of `hwsim.devices.kernels`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from hwsim.devices.work import Into, LibraryCall, elementwise_call, lookup_call, product_call, reduce_call
from hwsim.units import BYTES
from hwsim_calibrate.store import Amounts, Param, Row

REDUCTIONS: Final = (
    "all", "any", "argmax", "argmin", "cummax", "cummin", "cumprod", "cumsum", "max", "mean", "min", "prod", "std", "sum", "var",
)  # fmt: skip
DRAWN: Final = ("normal", "uniform", "standard_normal", "random", "integers", "permutation")
GENERATED: Final = ("standard_normal", "random", "integers", "permutation")  # by a Generator in the suites
VIEWS: Final = ("slice", "transpose", "reshape")
COMPARISONS: Final = ("equal", "greater", "greater_equal", "less", "less_equal", "not_equal")
TWO: Final = (
    *COMPARISONS, "add", "arctan2", "bitwise_and", "bitwise_or", "bitwise_xor", "copysign", "divide", "float_power",
    "floor_divide", "fmax", "fmin", "fmod", "gcd", "heaviside", "hypot", "left_shift", "logaddexp", "logical_and", "logical_or",
    "logical_xor", "maximum", "minimum", "multiply", "power", "remainder", "right_shift", "subtract",
)  # fmt: skip
TRUTH: Final = (*COMPARISONS, "isfinite", "isinf", "isnan", "logical_and", "logical_not", "logical_or", "logical_xor", "signbit")
REAL: Final = {"complex128": "fp64", "complex64": "fp32"}  # format of absolute values
SINGLE: Final = {"int8": "fp16", "int16": "fp32", "int32": "fp64", "int64": "fp64"}  # result format of functions of integers
FLOAT_RESULTS: Final = ("arctan2", "cos", "divide", "exp", "exp2", "log", "log10", "log2", "sin", "sqrt", "tan", "tanh")


def result_of(op: str, dtype: str) -> str:
    """Return the number format of a function's result; "" if it is the same as the input's.

    >>> result_of("greater", "fp64"), result_of("sqrt", "int64"), result_of("add", "int8")
    ('bool', 'fp64', '')
    """
    if op in TRUTH:
        return "" if dtype == "bool" else "bool"
    if op == "absolute":
        return REAL.get(dtype, "")
    if op == "divide" and dtype.startswith("int"):
        return "fp64"
    return SINGLE.get(dtype, "") if op in FLOAT_RESULTS else ""


SORTED: Final = ("sort", "argsort")
COPIES: Final = ("copyto", "copy", "astype", "fill")
# Functions whose bytes are not a multiple of their elements; workloads contain them as `compute` with a `function`.
_GENERAL: Final = """
    allclose angle append argpartition array_equal block cholesky column_stack compress convolve corrcoef
    count_nonzero cov cross delete det diag diff dstack ediff1d eig eigh eigvals eigvalsh einsum fft
    fft2 fftn fftshift flip gradient histogram histogram2d ifft ifft2 ifftn imag insert interp intersect1d inv irfft
    irfft2 irfftn isclose isin ix_ kron lstsq lexsort matrix_power matrix_rank median nan_to_num nanmax nanmean nanmedian
    nanmin nanpercentile nanstd nansum nanvar nonzero norm outer pad partition percentile pinv polyfit polyval ptp
    put_along_axis qr real repeat rfft rfft2 rfftn roll rot90 searchsorted setdiff1d setmask shuffle slogdet solve
    stack svd svdvals take_along_axis tile trapezoid tril triu union1d unique unwrap vander vstack
"""
GENERAL: Final = frozenset(_GENERAL.split())
SUITES: Final = ("kernels", "workload", "memory", "allocation")  # suites of numpy calls
GATHERED: Final = 65536  # indices of a gather of the suite `memory`
AXES: Final = {"0": "columns", "1": "rows"}  # axis of a reduction -> form
LAYOUTS: Final = {"strided": "strided", "columns": "across"}  # layout of the array -> form
# (suite, op) -> the call for a working set of `size` bytes.
IN_MEMORY: Final[Mapping[tuple[str, str], Any]] = {
    ("memory", "copy"): lambda size: elementwise_call("copyto", dtype="fp64", count=size // 16, inputs=1, into="out"),
    ("memory", "read"): lambda size: reduce_call("maximum.reduce", dtype="fp64", count=size // 8),
    ("memory", "write"): lambda size: elementwise_call("fill", dtype="fp64", count=size // 8, inputs=0, into="out"),
    ("memory", "gather"): lambda size: lookup_call("take", dtype="fp64", count=GATHERED, table=size // 8, into="out"),
    ("allocation", "fill"): lambda size: elementwise_call("fill", form="empty", dtype="int8", count=size, inputs=0, into="new"),
}


def call_of(row: Row) -> LibraryCall | None:
    """Return the call that a row timed; None if it is not a single-thread numpy call."""
    params = row.params
    if row.clock != "cpu" or _int(params.get("threads", 1)) != 1:
        return None
    if row.suite in ("memory", "allocation"):
        call = IN_MEMORY.get((row.suite, row.op))
        return call(_int(params.get("bytes", 0))) if call else None
    if "function" in params:
        from hwsim_calibrate.snippet_calls import call_of_params

        return call_of_params(params)
    return call_from(row.op, params)


def call_from(op: str, params: Mapping[str, Param]) -> LibraryCall | None:
    """Return the call of an op with its params; None if hwsim does not model it."""
    size = params.get("shape", (params["n"],) if "n" in params else ())
    shape = tuple(_int(length) for length in size) if isinstance(size, tuple | list) else ()
    count, dtype, into = float(math.prod(shape)), str(params.get("dtype", "fp64")), _into(params)
    rows = float(math.prod(shape[:-1]))
    if op in VIEWS:
        return LibraryCall(function=op, count=0.0, into="out")
    if not shape:
        return None
    if op == "matmul":
        turned, (m, k, n) = str(params.get("transposed", "none")), shape
        form, batch = "" if turned == "none" else turned, _int(params.get("batch", 1))
        return product_call(m, k, n, dtype=dtype, batch=batch, form=form, into=into)
    if op in REDUCTIONS:
        axis = AXES.get(str(params.get("axis", "none")), "")
        form = f"{axis} method".strip() if params.get("method") else axis
        return reduce_call(op, dtype=dtype, count=count, form=form, rows=rows if axis else 1.0)
    if op in DRAWN:
        return elementwise_call(op, form="generator" if op in GENERATED else "", dtype=dtype, count=count, inputs=0)
    if op in ("take", "takerows"):
        by_row, index = op == "takerows", float(_int(params["index"]))
        length = float(shape[-1]) if by_row else 1.0
        return lookup_call(op, dtype=dtype, count=index, table=count, length=length, into="new" if by_row else "out")
    if op == "bincount":
        return elementwise_call(op, dtype="fp64", count=count, inputs=2, into="out")
    if op in SORTED:
        return elementwise_call(op, dtype=dtype, count=count, rows=rows, result="int64" if op == "argsort" else "")
    if op == "window":  # a copy with an inner loop for each row of window positions
        channels, height, wide, side = shape
        loops = float(channels * side * side * (height - side + 1))
        count = loops * (wide - side + 1)
        return elementwise_call("copyto", dtype=dtype, count=count, inputs=1, form="strided", rows=loops, into="out")
    if op == "concatenate":
        return elementwise_call(op, dtype=dtype, count=2 * count, inputs=1)
    layout = LAYOUTS.get(str(params.get("layout", "flat")), "")
    if op in COPIES:  # the form names the source format: `from fp64`
        source = str(params.get("source", dtype))
        form = layout or (f"from {source}" if source != dtype else "")
        inputs, into = (0, "out") if op == "fill" else (1, "out" if op == "copyto" else "new")
        return elementwise_call(op, dtype=dtype, count=count, inputs=inputs, form=form, rows=rows if layout else 1.0, into=into)
    second = str(params.get("other", "array")) if op in TWO else "none"
    form = layout or ("" if second in ("array", "none") else second)
    return elementwise_call(
        op, dtype=dtype, count=count, inputs=2 if second in ("array", "mask") else 1, form=form,
        rows=rows if layout or second in ("row", "column") else 1.0, into=into,
        result=result_of(op, dtype),
    )  # fmt: skip


def amounts_of(call: LibraryCall) -> Amounts:
    """Return the work of a call."""
    return Amounts(call.count, sum(operand.bytes for operand in call.operands if operand.role == "read"), call.written)


def measured_as(call: LibraryCall) -> tuple[str, dict[str, Param]] | None:
    """Return the op and params of the case that times a call; None if no suite can time it."""
    function, form, rows = call.function, call.form, max(int(call.rows), 1)
    length = max(int(call.count / rows), 1)
    dtype: dict[str, Param] = {"dtype": call.dtype}
    size: dict[str, Param] = {"shape": (rows, length)} if rows > 1 else {"n": int(call.count)}
    if function in VIEWS:  # independent of the size, because no data moves
        return function, {}
    if call.count < 1 or function == "bincount":
        return None
    if call.product is not None:
        product = call.product
        batch = {"batch": product.batch} if product.batch > 1 else {}
        turned = form if form in ("a", "b") else "none"
        shape = (product.m, product.k, product.n)
        return "matmul", {"shape": shape, **dtype, "into": call.into, "transposed": turned, **batch}
    if function in ("matvec", "vecmat"):
        shape = (rows, length, 1) if function == "matvec" else (1, rows, length)
        return "matmul", {"shape": shape, **dtype, "into": call.into, "transposed": "none"}
    if function in REDUCTIONS:
        axis = next((axis for axis, name in AXES.items() if name in form.split()), "none")
        where: dict[str, Param] = {"n": int(call.count)} if axis == "none" else {"shape": (rows, length)}
        return function, where | dtype | {"axis": axis} | ({"method": True} if "method" in form.split() else {})
    if function in DRAWN:
        return function, {"n": int(call.count)} | dtype
    if function in ("take", "takerows"):
        table, index = max(int(call.span / BYTES[call.dtype]), 1), int(call.lookups)
        columns = max(int(call.count / call.lookups), 1)
        where = {"n": table} if function == "take" else {"shape": (max(table // columns, 1), columns)}
        return function, where | dtype | {"index": index}
    if function in SORTED:
        return function, size | dtype
    if function == "concatenate":
        return function, {"n": max(int(call.count) // 2, 1)} | dtype
    words = [word for word, name in LAYOUTS.items() if name == form]
    layout: dict[str, Param] = {"layout": words[0]} if words else {}
    if function in COPIES:
        return function, size | dtype | ({"source": form.removeprefix("from ")} if form.startswith("from ") else layout)
    second: dict[str, Param] = {"other": form if form in ("scalar", "row", "column", "same", "mask") else "array"}
    return function, size | dtype | {"into": call.into} | (second if function in TWO else {}) | layout


def _into(params: Mapping[str, Param]) -> Into:
    word = params.get("into", "new")
    return "out" if word == "out" else "self" if word == "self" else "new"


def _int(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 1
