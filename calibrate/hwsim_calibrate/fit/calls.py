"""Rows of the kernel suites as the calls that `hwsim.devices.kernels` knows, and back: which row measures a call."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from hwsim.devices.work import Call, Into, elementwise_call, lookup_call, product_call, reduce_call
from hwsim.units import BYTES
from hwsim_calibrate.store import Param, Row

REDUCTIONS: Final = ("all", "any", "argmax", "argmin", "cumsum", "max", "mean", "min", "prod", "std", "sum", "var")
DRAWN: Final = ("normal", "uniform", "standard_normal", "random", "integers", "permutation")
VIEWS: Final = ("slice", "transpose", "reshape")
COMPARED: Final = ("equal", "greater", "greater_equal", "less", "less_equal", "not_equal", "logical_not")
TWO: Final = (*COMPARED[:-1], "add", "arctan2", "divide", "maximum", "minimum", "multiply", "power", "subtract")
SORTED: Final = ("sort", "argsort")
SUITES: Final = ("kernels", "workload", "memory", "allocation")  # whose rows are calls of numpy
GATHERED: Final = 65536  # indices of a gather of the suite `memory`


def call_of(row: Row) -> Call | None:
    """The call that a row timed; None if it is none of a library of arrays."""
    params = row.params
    if row.clock != "cpu" or _int(params.get("threads", 1)) != 1:
        return None
    if row.suite in ("memory", "allocation"):
        return _of_memory(row.op, _int(params.get("bytes", 0)))
    return call_from(row.op, params)


def _of_memory(op: str, size: int) -> Call | None:
    """Those cases of the other suites that are single calls: `size` is their working set."""
    match op:
        case "copy":
            return elementwise_call("copyto", dtype="fp64", count=size // 16, inputs=1, into="out")
        case "read":
            return reduce_call("maximum.reduce", dtype="fp64", count=size // 8)
        case "write":
            return elementwise_call("fill", dtype="fp64", count=size // 8, inputs=0, into="out")
        case "gather":
            return lookup_call("take", dtype="fp64", count=GATHERED, table=size // 8, into="out")
        case "fill":
            return elementwise_call("fill", form="empty", dtype="int8", count=size, inputs=0, into="new")
        case _:
            return None


def call_from(op: str, params: Mapping[str, Param]) -> Call | None:
    """The call of an op in the words of the suites."""
    shape = _shape(params)
    count, dtype, into = float(math.prod(shape)), str(params.get("dtype", "fp64")), _into(params)
    rows = float(math.prod(shape[:-1]))
    if op in VIEWS:
        return Call(function=op, count=0.0, into="out")
    if not shape:
        return None
    if op == "matmul":
        turned = str(params.get("transposed", "none"))
        m, k, n = shape
        batch = _int(params.get("batch", 1))
        return product_call(m, k, n, dtype=dtype, batch=batch, form="" if turned == "none" else turned, into=into)
    if op in REDUCTIONS:
        axis = {"0": "columns", "1": "rows"}.get(str(params.get("axis", "none")), "")
        form = " ".join(word for word in (axis, "method" if params.get("method") else "") if word)
        return reduce_call(op, dtype=dtype, count=count, form=form, rows=rows if axis else 1.0)
    if op in DRAWN:
        return elementwise_call(op, dtype=dtype, count=count, inputs=0)
    if op in ("take", "takerows"):
        index = float(_int(params["index"]))
        length = float(shape[-1]) if op == "takerows" else 1.0
        return lookup_call(op, dtype=dtype, count=index, table=count, length=length, into="out" if op == "take" else "new")
    if op == "bincount":
        return elementwise_call(op, dtype="fp64", count=count, inputs=2, into="out")
    if op in SORTED:
        result = "int64" if op == "argsort" else ""
        return elementwise_call(op, dtype=dtype, count=count, rows=rows, result=result)
    if op == "window":
        return _window(shape, dtype)
    if op in ("copyto", "copy", "astype", "fill", "concatenate"):
        return _moved(op, params, shape, dtype)
    return _ufunc(op, params, shape, dtype, into)


def _ufunc(op: str, params: Mapping[str, Param], shape: tuple[int, ...], dtype: str, into: Into) -> Call:
    count, rows = float(math.prod(shape)), float(math.prod(shape[:-1]))
    other = str(params.get("other", "array")) if op in TWO else "none"
    layout = str(params.get("layout", "flat"))
    form = "" if other in ("array", "none") else other
    if layout != "flat":
        form = {"strided": "strided", "columns": "across"}[layout]
    inputs = 2 if other in ("array", "mask") else 1
    broken = layout != "flat" or other in ("row", "column")
    return elementwise_call(
        op,
        dtype=dtype,
        count=count,
        inputs=inputs,
        form=form,
        rows=rows if broken else 1.0,
        into=into,
        result="bool" if op in COMPARED else "",
    )


def _moved(op: str, params: Mapping[str, Param], shape: tuple[int, ...], dtype: str) -> Call:
    """Copies: of another type they are named for it, `copyto fp64`, with the type of the result."""
    count, rows = float(math.prod(shape)), float(math.prod(shape[:-1]))
    layout, source = str(params.get("layout", "flat")), str(params.get("source", dtype))
    if op == "concatenate":
        return elementwise_call(op, dtype=dtype, count=2 * count, inputs=1)
    if op == "fill":
        return elementwise_call(op, dtype=dtype, count=count, inputs=0, into="out")
    form = {"strided": "strided", "columns": "across"}.get(layout, "") or (f"from {source}" if source != dtype else "")
    into: Into = "out" if op == "copyto" else "new"
    return elementwise_call(op, dtype=dtype, count=count, inputs=1, form=form, rows=rows if layout != "flat" else 1.0, into=into)


def _window(shape: tuple[int, ...], dtype: str) -> Call:
    """A copy of windows: an inner loop for each row of the image that a window's corner goes along."""
    channels, height, width, side = shape
    loops = float(channels * side * side * (height - side + 1))
    return elementwise_call(
        "copyto", dtype=dtype, count=loops * (width - side + 1), inputs=1, form="strided", rows=loops, into="out"
    )


def measured_as(call: Call) -> tuple[str, dict[str, Param]] | None:
    """The op and params of the row that measures a call, in the words of the suites; None if no suite can."""
    function, form, dtype = call.function, call.form, call.dtype
    rows = max(int(call.rows), 1)
    shape: tuple[int, ...] = (rows, max(int(call.count / rows), 1))
    if function in VIEWS:  # of whatever size: nothing moves
        return function, {}
    if call.count < 1:
        return None
    if call.product is not None:
        made: dict[str, Param] = {"shape": (call.product.m, call.product.k, call.product.n), "dtype": dtype, "into": call.into}
        made["transposed"] = form if form in ("a", "b") else "none"
        return "matmul", made | ({"batch": call.product.batch} if call.product.batch > 1 else {})
    if function in ("matvec", "vecmat"):
        long = max(int(call.count / rows), 1)
        size = (rows, long, 1) if function == "matvec" else (1, rows, long)
        return "matmul", {"shape": size, "dtype": dtype, "into": call.into, "transposed": "none"}
    if function in REDUCTIONS:
        words = form.split()
        axis = "1" if "rows" in words else "0" if "columns" in words else "none"
        where: dict[str, Param] = {"n": int(call.count)} if axis == "none" else {"shape": shape}
        return function, where | {"dtype": dtype, "axis": axis} | ({"method": True} if "method" in words else {})
    if function in DRAWN:
        return function, {"n": int(call.count), "dtype": dtype}
    if function in ("take", "takerows"):
        return _looked_up(call)
    if function == "bincount":
        return None
    if function in SORTED:
        return function, ({"shape": shape} if rows > 1 else {"n": int(call.count)}) | {"dtype": dtype}
    return _pointwise(call, rows, shape)


def _looked_up(call: Call) -> tuple[str, dict[str, Param]]:
    table = max(int(call.span / BYTES[call.dtype]), 1)
    if call.function == "take":
        return "take", {"n": table, "dtype": call.dtype, "index": int(call.lookups)}
    length = max(int(call.count / call.lookups), 1)
    return "takerows", {"shape": (max(table // length, 1), length), "dtype": call.dtype, "index": int(call.lookups)}


def _pointwise(call: Call, rows: int, shape: tuple[int, ...]) -> tuple[str, dict[str, Param]] | None:
    function, form = call.function, call.form
    made: dict[str, Param] = ({"shape": shape} if rows > 1 else {"n": int(call.count)}) | {"dtype": call.dtype}
    if function == "concatenate":
        return function, {"n": max(int(call.count) // 2, 1), "dtype": call.dtype}
    if function in ("copyto", "copy", "astype", "fill"):
        if form.startswith("from "):
            return function, {**made, "source": form.removeprefix("from ")}
        return function, made | ({"layout": {"strided": "strided", "across": "columns"}[form]} if form else {})
    made["into"] = call.into
    if function in TWO:
        made["other"] = form if form in ("scalar", "row", "column", "same", "mask") else "array"
    if form in ("strided", "across"):
        made["layout"] = "columns" if form == "across" else form
    return function, made


def _shape(params: Mapping[str, Param]) -> tuple[int, ...]:
    said = params.get("shape", (params["n"],) if "n" in params else ())
    return tuple(_int(each) for each in said) if isinstance(said, tuple | list) else ()


def _into(params: Mapping[str, Param]) -> Into:
    said = params.get("into", "new")
    return "out" if said == "out" else "self" if said == "self" else "new"


def _int(said: object) -> int:
    return int(said) if isinstance(said, int | float) else 1
