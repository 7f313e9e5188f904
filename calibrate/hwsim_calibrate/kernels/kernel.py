"""What all kernels have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from hwsim_calibrate.case import Make
from hwsim_calibrate.store import Amounts, Param

Params = Mapping[str, Param]


@dataclass(frozen=True, slots=True)
class Kernel:
    """What one call does, and how it is made."""

    work: Amounts
    make: Make


def shape_of(params: Params) -> tuple[int, ...]:
    """`shape`, or `n` as one axis.

    >>> shape_of({"n": 8}), shape_of({"shape": (2, 3)})
    ((8,), (2, 3))
    """
    said = params["shape"] if "shape" in params else (params["n"],)
    found = tuple(each for each in said if isinstance(each, int) and each > 0) if isinstance(said, tuple) else ()
    if not found or found != said:
        raise ValueError(f"'{said}' is no shape")
    return found


def elements(params: Params) -> int:
    """Of the array in all."""
    return math.prod(shape_of(params))


def whole(params: Params, key: str) -> int:
    """A whole number above 0."""
    said = params[key]
    if not isinstance(said, int) or said < 1:
        raise ValueError(f"`{key}` is no number from 1 on")
    return said


def word(params: Params, key: str, otherwise: str) -> str:
    """A word, or what is meant without it."""
    return str(params.get(key, otherwise))
