"""Inputs of snippets: number of elements, number format, and order of the values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from hwsim_calibrate.suites.arrays import DTYPES, Array, indices, numbers

MIN_DISTINCT: Final = 10  # distinct values of `few`


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of a snippet.

    Args:
        n: number of elements.
        dtype: number format.
        words: order or layout of the values: sorted, few (distinct), runs, rare, rows, across, ...
        table: number of elements of a lookup table, or length of a row or window.
    """

    n: int
    dtype: str = "fp64"
    words: tuple[str, ...] = ()
    table: int = 1000

    def values(self) -> Array:
        """Return values in the order of `words`."""
        kind = np.dtype(DTYPES[self.dtype]).kind
        draw = np.random.default_rng(1)
        if "few" in self.words:
            return draw.integers(0, max(MIN_DISTINCT, min(self.n // 16, 200)), self.n).astype(DTYPES[self.dtype])
        if kind in "iu":
            below = {"int8": 100, "int16": 30_000}.get(self.dtype, 2**31 - 1)
            drawn: Array = draw.integers(0, min(self.n, below), self.n).astype(DTYPES[self.dtype])
        else:
            drawn = draw.random(self.n) > 0.5 if kind == "b" else draw.random(self.n).astype(DTYPES[self.dtype])
        return np.sort(drawn) if "sorted" in self.words else drawn

    def square(self) -> Array:
        """Return a well-conditioned n x n matrix."""
        drawn = np.random.default_rng(1).random((self.n, self.n))
        symmetric = drawn + drawn.T + 2.0 * self.n * np.eye(self.n)
        return np.asarray((symmetric / (2.0 * self.n)).astype(DTYPES[self.dtype]))

    def grid(self) -> Array:
        """Return about `n` values with as many rows as columns."""
        side = max(math.isqrt(self.n), 1)
        return numbers(self.dtype, side, side)

    def mask(self) -> Array:
        """Return a mask with a random half set; `runs`: the first half; `rare`: a random 7 %."""
        return (
            np.arange(self.n) < self.n // 2
            if "runs" in self.words
            else np.random.default_rng(2).random(self.n) < (0.07 if "rare" in self.words else 0.5)
        )

    def indices(self, below: int | None = None) -> Array:
        """Return `n` indices below a limit (default: `table`), in random order or `sorted`."""
        drawn = indices(self.n, below or self.table)
        return np.sort(drawn) if "sorted" in self.words else drawn
