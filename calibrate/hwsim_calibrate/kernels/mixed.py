"""Different small calls one after another, as programs make them: each finds the code and the branches of the others.

A call takes longer there than in a loop of nothing but itself; by how much is one number of the fit (`kernels.among`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from hwsim_calibrate.kernels.kernel import Kernel, Params, whole
from hwsim_calibrate.store import Amounts


def step_of(side: int) -> Callable[[], None]:
    """A sequence of 20 calls on square arrays."""
    a, b, m = (np.full((side, side), 0.5, np.float32) for _ in range(3))
    to, row, column = np.ones((side, side), np.float32), np.ones(side, np.float32), np.ones((side, 1), np.float32)
    half, wide = np.float32(0.5), np.full((side, side), 0.5)

    def step() -> None:
        product = a @ m
        shifted = product + row
        kept = np.maximum(shifted, half)
        np.multiply(a, b, out=to)
        near = kept - kept.max(axis=1, keepdims=True)
        e = np.exp(near)
        p = e / e.sum(axis=1, keepdims=True)
        np.subtract(b, to, out=to)
        mask = p > half
        np.add(to, half, out=to)
        spread = np.sqrt(p * mask)
        total = spread.sum(axis=0)
        turned = m.T @ spread
        np.divide(turned, column, out=to)
        wide * 2.0 + wide
        np.argmin(turned, 1)
        total * half

    return step


def mixed(_: str, params: Params) -> Kernel:
    """`side` x `side` elements in each array."""
    side = whole(params, "side")
    return Kernel(Amounts(calls=20.0), lambda _: step_of(side))


OPS: Final[Mapping[str, Callable[[str, Params], Kernel]]] = {"mixed": mixed}
