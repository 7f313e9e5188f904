"""Arrays to work on: the same numbers in every run, made quickly."""

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
_PLACES: Final = random.Random(0)  # goes on from round to round


def width(dtype: str) -> int:
    """Bytes of an element.

    >>> width("fp32"), width("bool")
    (4, 1)
    """
    return int(np.dtype(DTYPES[dtype]).itemsize)


def numbers(dtype: str, *shape: int) -> Array:
    """An array of its own memory, all of it touched, with numbers between 0.5 and 1.5 that no branch can learn.

    Whole numbers are 1 to 9; bytes are without sign, as images have them.

    >>> numbers("fp32", 3, 2).shape
    (3, 2)
    """
    array = _placed(dtype, shape)
    flat, piece = array.reshape(-1), _piece(dtype)
    for start in range(0, flat.size, _PIECE):
        flat[start : start + _PIECE] = piece[: min(_PIECE, flat.size - start)]
    return array


def blank(dtype: str, *shape: int) -> Array:
    """An array to write to, all of it touched."""
    array = _placed(dtype, shape)
    array.fill(0)
    return array


def _placed(dtype: str, shape: tuple[int, ...]) -> Array:
    """Memory that begins anywhere in a page, by whole cache lines, at another place each time.

    An allocator gives all large arrays the same place in their pages, in every round. Where both operands of a copy have it, AMD
    Zen takes up to ten times as long (`rep movsb` confuses the two), which other programs need not meet.
    """
    size = math.prod(shape) * width(dtype)
    raw = np.empty(size + _PAGE, np.uint8)
    begin = _PLACES.randrange(_PAGE // _LINE) * _LINE
    array: Array = raw[begin : begin + size].view(DTYPES[dtype]).reshape(shape)
    return array


def indices(count: int, below: int, seed: int = 0) -> NDArray[np.int64]:
    """Random places in an array."""
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
