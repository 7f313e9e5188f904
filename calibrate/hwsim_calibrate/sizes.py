"""The operands of a snippet: how many elements, their number format, and how they lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from hwsim_calibrate.suites.arrays import DTYPES, Array, indices, numbers

FEW: Final = 10  # different values of `few`, at least


@dataclass(frozen=True, slots=True)
class Size:
    """The operands of a snippet: `n` elements of a number format; words: how they lie; table: elements that are looked up in."""

    n: int
    dtype: str = "fp64"
    words: tuple[str, ...] = ()
    table: int = 1000

    def values(self) -> Array:
        """Numbers in the order that the words say."""
        kind = np.dtype(DTYPES[self.dtype]).kind
        draw = np.random.default_rng(1)
        if "few" in self.words:
            return draw.integers(0, max(FEW, min(self.n // 16, 200)), self.n).astype(DTYPES[self.dtype])
        if kind in "iu":
            below = {"int8": 100, "int16": 30_000}.get(self.dtype, 2**31 - 1)
            drawn: Array = draw.integers(0, min(self.n, below), self.n).astype(DTYPES[self.dtype])
        else:
            drawn = draw.random(self.n) > 0.5 if kind == "b" else draw.random(self.n).astype(DTYPES[self.dtype])
        return np.sort(drawn) if "sorted" in self.words else drawn

    def square(self) -> Array:
        """A well-conditioned matrix of n x n."""
        drawn = np.random.default_rng(1).random((self.n, self.n))
        symmetric = drawn + drawn.T + 2.0 * self.n * np.eye(self.n)
        return np.asarray((symmetric / (2.0 * self.n)).astype(DTYPES[self.dtype]))

    def grid(self) -> Array:
        """The values as about as many rows as columns."""
        side = max(math.isqrt(self.n), 1)
        return numbers(self.dtype, side, side)

    def mask(self) -> Array:
        """Any half of the places; `runs`: one half; `rare`: any few."""
        return (
            np.arange(self.n) < self.n // 2
            if "runs" in self.words
            else np.random.default_rng(2).random(self.n) < (0.07 if "rare" in self.words else 0.5)
        )

    def places(self, below: int | None = None) -> Array:
        """`n` places below a number, in any order or `sorted`."""
        drawn = indices(self.n, below or self.table)
        return np.sort(drawn) if "sorted" in self.words else drawn
