"""Random numbers: those of `numpy.random` as older programs call it, and those of a `Generator`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from hwsim_calibrate.clocks import Call
from hwsim_calibrate.kernels.kernel import Kernel, Params, elements, shape_of, word
from hwsim_calibrate.store import Amounts
from hwsim_calibrate.suites.arrays import width

_FORMATS: Final[Mapping[str, Any]] = {"fp32": np.float32, "fp64": np.float64}


def _legacy(op: str, params: Params) -> Kernel:
    """numpy.random.normal(size=...), numpy.random.uniform(size=...): fp64 only."""
    function: Any = {"normal": np.random.normal, "uniform": np.random.uniform}[op]
    shape = shape_of(params)
    return Kernel(Amounts(elements(params), 0, 8.0 * elements(params)), lambda _: lambda: function(size=shape))


def _generator(op: str, params: Params) -> Kernel:
    """default_rng().standard_normal, .random, .integers, .permutation."""
    dtype, shape = word(params, "dtype", "fp64"), shape_of(params)

    def call() -> Call:
        draw = np.random.default_rng(0)
        calls: dict[str, Call] = {
            "standard_normal": lambda: draw.standard_normal(shape, _FORMATS[dtype]),
            "random": lambda: draw.random(shape, _FORMATS[dtype]),
            "integers": lambda: draw.integers(0, 1000, shape),
            "permutation": lambda: draw.permutation(shape[0]),
        }
        return calls[op]

    return Kernel(Amounts(elements(params), 0, float(elements(params) * width(dtype))), lambda _: call())


OPS: Final[Mapping[str, Callable[[str, Params], Kernel]]] = {
    "integers": _generator,
    "normal": _legacy,
    "permutation": _generator,
    "random": _generator,
    "standard_normal": _generator,
    "uniform": _legacy,
}
