"""Element by element: one operand or two, into a fresh array, a given one, or in place."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hwsim_calibrate.clocks import Call
from hwsim_calibrate.kernels.kernel import Kernel, Params, elements, shape_of, word
from hwsim_calibrate.store import Amounts
from hwsim_calibrate.suites.arrays import DTYPES, Array, blank, numbers, width

_ONE: Final = (
    "absolute", "ceil", "cos", "exp", "exp2", "expm1", "floor", "log", "log1p", "logical_not", "negative", "reciprocal", "rint",
    "sign", "sin", "sqrt", "square", "tanh",
)  # fmt: skip
_TWO: Final = ("add", "arctan2", "divide", "maximum", "minimum", "multiply", "power", "subtract")
_COMPARED: Final = ("equal", "greater", "greater_equal", "less", "less_equal", "not_equal")
OPS: Final = (*_ONE, *_TWO, *_COMPARED)


def build(op: str, params: Params) -> Kernel:
    """A ufunc by its name."""
    count, dtype, into = elements(params), word(params, "dtype", "fp64"), word(params, "into", "new")
    other = word(params, "other", "array") if op not in _ONE else ""
    second = {"array": count, "same": 0, "row": shape_of(params)[-1], "column": shape_of(params)[0], "mask": count / width(dtype)}
    result = width("bool") if op in _COMPARED else width(dtype)
    reads = (count + second.get(other, 0)) * width(dtype)
    return Kernel(Amounts(count, reads, count * result), lambda _: _call(op, params, dtype, into, other))


def _call(op: str, params: Params, dtype: str, into: str, other: str) -> Call:
    function: Any = getattr(np, op)
    first = _first(params, dtype)
    if into not in ("new", "out", "self"):
        raise ValueError(f"into '{into}'")
    operands = (first, *(_second(other, first, dtype, near_one=into == "self") if other else ()))
    if into == "new":
        return _bound(function, operands)
    result = blank("bool" if op in _COMPARED else dtype, *first.shape) if into == "out" else first
    return lambda: function(*operands, out=result)


def _bound(function: Any, operands: tuple[Any, ...]) -> Call:
    """Without the cost of unpacking a tuple, which a program does not pay."""
    if len(operands) == 1:
        (only,) = operands
        return lambda: function(only)
    one, two = operands
    return lambda: function(one, two)


def _first(params: Params, dtype: str) -> Array:
    shape = shape_of(params)
    layout = word(params, "layout", "flat")
    if layout == "strided":  # as a[:, 1:-1]: a gap behind every row
        return numbers(dtype, *shape[:-1], shape[-1] + 2)[..., 1:-1]
    if layout == "columns":
        return numbers(dtype, *shape[::-1]).T
    return numbers(dtype, *shape)


def _second(other: str, first: Array, dtype: str, *, near_one: bool) -> tuple[Any, ...]:
    """The second operand; repeated in place it must not run into infinity or, which is slow, into denormal numbers."""
    if other == "scalar":
        return (DTYPES[dtype](1.0 if near_one else 1.5),)
    if other == "same":
        return (first,)
    if other == "mask":
        return (numbers(dtype, *first.shape) > 1,)
    shapes = {"array": first.shape, "row": first.shape[-1:], "column": (first.shape[0], *([1] * (first.ndim - 1)))}
    found = numbers(dtype, *shapes[other])
    if near_one:
        found.fill(1)
    return (found,)
