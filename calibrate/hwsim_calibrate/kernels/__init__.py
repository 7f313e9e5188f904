"""Calls of numpy by name: an op and its params, in the words of `suites`, become a call that can be timed.

The same table serves the grid of the suite `kernels` and the ops of one workload (`--for`): what is timed in isolation is
what a program calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from hwsim_calibrate.case import CannotMeasure, Case
from hwsim_calibrate.kernels import drawing, elementwise, mixed, moving, products, reductions
from hwsim_calibrate.kernels.kernel import Kernel, Params

Build = Callable[[str, Params], Kernel]

# Op: what makes a call of it.  A new op is a function and a line here.
KERNELS: Final[Mapping[str, Build]] = {
    **dict.fromkeys(elementwise.OPS, elementwise.build),
    **dict.fromkeys(reductions.OPS, reductions.build),
    "matmul": products.matmul,
    **moving.OPS,
    **drawing.OPS,
    **mixed.OPS,
}


def kernel_case(op: str, params: Params, suite: str = "kernels") -> Case:
    """The case of one call.

    Raises:
        CannotMeasure: no such op, or params that it does not take.
    """
    if op not in KERNELS:
        raise CannotMeasure(f"no kernel is called '{op}'")
    try:
        found = KERNELS[op](op, params)
    except (KeyError, TypeError, ValueError) as error:
        raise CannotMeasure(f"{op}: {error!r} among {dict(params)}") from error
    return Case(suite, op, dict(params), found.work, found.make)


def known(op: str, params: Params) -> bool:
    """Whether there is such a call."""
    try:
        kernel_case(op, params)
    except CannotMeasure:
        return False
    return True


__all__ = ["KERNELS", "Kernel", "Params", "kernel_case", "known"]
