"""Operands of the cases: arrays with the same numbers in every run."""

from __future__ import annotations

import math
import random
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
DTYPES: Final[dict[str, Any]] = {
    "fp16": np.float16, "fp32": np.float32, "fp64": np.float64,
    "int8": np.uint8, "int16": np.int16, "int32": np.int32, "int64": np.int64, "bool": np.bool_,
    "complex64": np.complex64, "complex128": np.complex128,
}  # fmt: skip
_PIECE: Final = 1 << 18
_PAGE: Final = 4096
_LINE: Final = 64
_OFFSETS: Final = random.Random(0)  # continues across rounds


def width(dtype: str) -> int:
    """Return the bytes per element.

    >>> width("fp32"), width("bool")
    (4, 1)
    """
    return int(np.dtype(DTYPES[dtype]).itemsize)


def numbers(dtype: str, *shape: int) -> Array:
    """Return a new array of random numbers between 0.5 and 1.5, with all its pages touched.

    Integers are between 1 and 9. int8 is unsigned, as in images.

    >>> numbers("fp32", 3, 2).shape
    (3, 2)
    """
    array = _placed(dtype, shape)
    flat, piece = array.reshape(-1), _piece(dtype)
    for start in range(0, flat.size, _PIECE):
        flat[start : start + _PIECE] = piece[: min(_PIECE, flat.size - start)]
    return array


def blank(dtype: str, *shape: int) -> Array:
    """Return a new array of zeros as a destination, with all its pages touched."""
    array = _placed(dtype, shape)
    array.fill(0)
    return array


def _placed(dtype: str, shape: tuple[int, ...]) -> Array:
    """Return memory at a random offset within a page, aligned to cache lines.

    The allocator places all large arrays at the same page offset. If source and destination of a copy have the same offset, AMD
    Zen takes up to ten times as long (`rep movsb` detects false overlaps), which is not typical of programs.
    """
    size = math.prod(shape) * width(dtype)
    raw = np.empty(size + _PAGE, np.uint8)
    begin = _OFFSETS.randrange(_PAGE // _LINE) * _LINE
    array: Array = raw[begin : begin + size].view(DTYPES[dtype]).reshape(shape)
    return array


def indices(count: int, below: int, seed: int = 0) -> NDArray[np.int64]:
    """Return random indices into an array of `below` elements."""
    return np.random.default_rng(seed).integers(0, below, count, dtype=np.int64)


@lru_cache
def _piece(dtype: str) -> Array:
    draw = np.random.default_rng(0)
    if dtype.startswith("int"):
        return np.asarray(draw.integers(1, 10, _PIECE).astype(DTYPES[dtype]))
    drawn = draw.random(_PIECE, dtype=np.float32) + np.float32(0.5)
    if dtype == "bool":
        return np.asarray(drawn > 1)
    return np.asarray(drawn.astype(DTYPES[dtype]))
