"""Products of matrices."""

from __future__ import annotations

import numpy as np

from hwsim_calibrate.clocks import Call
from hwsim_calibrate.kernels.kernel import Kernel, Params, shape_of, word
from hwsim_calibrate.store import Amounts
from hwsim_calibrate.suites.arrays import blank, numbers, width


def matmul(_: str, params: Params) -> Kernel:
    """(m x k) by (k x n), `batch` times; shape is [m, k, n]."""
    m, k, n = shape_of(params)
    batch = params.get("batch", 1)
    if not isinstance(batch, int):
        raise ValueError(f"batch '{batch}'")
    each = width(word(params, "dtype", "fp64"))
    work = Amounts(2.0 * m * k * n * batch, float((m * k + k * n) * batch * each), float(m * n * batch * each))
    return Kernel(work, lambda _: _call(params, (m, k, n), batch))


def _call(params: Params, shape: tuple[int, int, int], batch: int) -> Call:
    (m, k, n), dtype, turned = shape, word(params, "dtype", "fp64"), word(params, "transposed", "none")
    if turned not in ("none", "a", "b"):
        raise ValueError(f"transposed '{turned}'")
    outer = (batch,) if batch > 1 else ()
    one = numbers(dtype, *outer, k, m).swapaxes(-1, -2) if turned == "a" else numbers(dtype, *outer, m, k)
    two = numbers(dtype, *outer, n, k).swapaxes(-1, -2) if turned == "b" else numbers(dtype, *outer, k, n)
    if word(params, "into", "new") == "new":
        return lambda: one @ two
    result = blank(dtype, *outer, m, n)
    return lambda: np.matmul(one, two, result)
