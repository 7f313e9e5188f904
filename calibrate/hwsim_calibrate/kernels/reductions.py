"""An array to a number, or to one per row or column."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hwsim_calibrate.clocks import Call
from hwsim_calibrate.kernels.kernel import Kernel, Params, elements, shape_of, word
from hwsim_calibrate.store import Amounts
from hwsim_calibrate.suites.arrays import numbers, width

OPS: Final = ("all", "any", "argmax", "argmin", "cumsum", "max", "mean", "min", "prod", "std", "sum", "var")
_WIDE: Final = ("argmax", "argmin")  # whose results are int64


def build(op: str, params: Params) -> Kernel:
    """A reduction by its name; `keep` for keepdims."""
    count, dtype, shape = elements(params), word(params, "dtype", "fp64"), shape_of(params)
    axis = {"none": None, "0": 0, "1": 1}[word(params, "axis", "none")]
    if axis is not None and axis >= len(shape):
        raise ValueError(f"axis {axis} of {len(shape)}")
    left = count if op == "cumsum" else 1 if axis is None else count // shape[axis]
    work = Amounts(count, count * width(dtype), left * (width("int64") if op in _WIDE else width(dtype)))
    return Kernel(work, lambda _: _call(op, params, dtype, axis))


def _call(op: str, params: Params, dtype: str, axis: int | None) -> Call:
    array = numbers(dtype, *shape_of(params))
    if params.get("method"):  # a.sum(1, keepdims=True) goes through Python
        method: Any = getattr(array, op)
        return lambda: method(axis, keepdims=True)
    function: Any = getattr(np, op)
    return lambda: function(array, axis)
