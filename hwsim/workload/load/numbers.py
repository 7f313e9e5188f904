"""Counter-based random numbers: a draw is a hash of (seed, statement, request, visit) and independent of earlier draws.

A faster disk, another order of events or an additional service therefore changes no other draw, and runs are compared with common
random numbers. Each component is mixed in a round of its own: if components were combined by xor before a single round, different
statements would draw the same numbers.

`log`, `exp`, `sine` and `normal` use only sums, products and square roots, whose rounding IEEE 754 prescribes: a scalar and an
array have the same bits on every computer. Their error is a few units in the last place.

**Source**: the rounds are those of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014);
`normal` is algorithm AS 241 (Wichura, 1988).
"""

from __future__ import annotations

import math
from functools import reduce
from hashlib import blake2b
from typing import Any, Final, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Floats = NDArray[np.float64]
Number = TypeVar("Number", float, Floats)

_MASK: Final = 2**64 - 1
_STEP: Final = 0x9E3779B97F4A7C15
_FIRST: Final = 0xBF58476D1CE4E5B9
_SECOND: Final = 0x94D049BB133111EB
_PARTS: Final = 2.0**-52  # resolution of the top 52 bits; centred, so that a number is never 0 or 1, and exact


def mixed(state: int, number: int) -> int:
    """Return the 64-bit hash of a state and a number (one round)."""
    state = ((state ^ number) + _STEP) & _MASK
    state = ((state ^ (state >> 30)) * _FIRST) & _MASK
    state = ((state ^ (state >> 27)) * _SECOND) & _MASK
    return state ^ (state >> 31)


def mixed_all(state: Words | int, number: Words | int) -> Words:
    """Return `mixed` of an array."""
    column = np.bitwise_xor(np.asarray(state, np.uint64), np.asarray(number, np.uint64)) + np.uint64(_STEP)
    column = (column ^ (column >> np.uint64(30))) * np.uint64(_FIRST)
    column = (column ^ (column >> np.uint64(27))) * np.uint64(_SECOND)
    return column ^ (column >> np.uint64(31))


def stream(seed: int, *names: str | int) -> int:
    """Return the key of a random stream: a 64-bit hash of the seed and the names."""
    return reduce(mixed, (_word(name) for name in (*_words(seed), *names)), 0)


def uniform(key: int, request: int, visit: int = 0) -> float:
    """Return a uniform number in (0, 1) for a request at its first visit of a statement (visit 0) or a later one."""
    return ((mixed(mixed(key, request), visit) >> 12) + 0.5) * _PARTS


def uniforms(key: int, requests: Words, visit: Words | int = 0) -> Floats:
    """Return `uniform` of an array of requests."""
    return ((mixed_all(mixed_all(key, requests), visit) >> np.uint64(12)).astype(np.float64) + 0.5) * _PARTS


def _words(seed: int) -> list[int]:
    """A seed of any size in words of 64 bits."""
    words = [seed & _MASK]
    while seed := seed >> 64:
        words.append(seed & _MASK)
    return words


def _word(name: str | int) -> int:
    return name & _MASK if isinstance(name, int) else int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


# ---- functions with the same bits everywhere ----

HALF_ROOT: Final = math.sqrt(0.5)
LN2_HIGH: Final = 6.93147180369123816490e-01  # the last 20 bits are 0, so that integer multiples are exact
LN2_LOW: Final = 1.90821492927058770002e-10
LOG_TERMS: Final = tuple(1.0 / number for number in range(23, 0, -2))
EXP_TERMS: Final = tuple(1.0 / math.factorial(number) for number in range(14, -1, -1))
_SINE: Final = tuple((-1.0) ** number / math.factorial(2 * number + 1) for number in range(11, -1, -1))


def zipf_probabilities(count: int, skew: float) -> Floats:
    """Return the probabilities of a Zipf distribution: the n-th item has a probability proportional to n^-skew."""
    weights = np.array([rank**-skew for rank in range(1, count + 1)], np.float64)
    return weights / math.fsum(weights.tolist())


def log(number: Number) -> Number:
    """Return the natural logarithm of a positive number."""
    value: Any = number
    part, power = np.frexp(value) if isinstance(value, np.ndarray) else math.frexp(value)
    low = part < HALF_ROOT
    part, exponent = part * (1.0 + low), (power - low * 1) * 1.0
    ratio = (part - 1.0) / (part + 1.0)
    logarithm: Any = 2.0 * ratio * _polynomial(LOG_TERMS, ratio * ratio) + exponent * LN2_LOW + exponent * LN2_HIGH
    return cast("Number", logarithm)


def exp(number: Number) -> Number:
    """Return e to the power of a number between -700 and 700."""
    nearest: Any = number * (1 / math.log(2)) + 0.5
    turns: Any = np.floor(nearest) if isinstance(nearest, np.ndarray) else math.floor(nearest)
    rest: Any = (number - turns * LN2_HIGH) - turns * LN2_LOW
    part = _polynomial(EXP_TERMS, rest)
    power: Any = np.ldexp(part, turns.astype(np.int32)) if isinstance(part, np.ndarray) else math.ldexp(part, turns)
    return cast("Number", power)


def sine(turns: Number) -> Number:
    """Return the sine of an angle in turns."""
    part: Any = turns - np.floor(turns + 0.5)  # -1/2 to 1/2
    part = np.where(part > 0.25, 0.5 - part, np.where(part < -0.25, -0.5 - part, part))
    angle = part * (2 * math.pi)
    sines = angle * _polynomial(_SINE, angle * angle)
    return cast("Number", sines if sines.ndim else float(sines))


def _polynomial(factors: tuple[float, ...], number: Any) -> Any:
    """Horner's scheme; factors in order of falling powers."""
    total: Any = factors[0]
    for factor in factors[1:]:
        total = total * number + factor
    return total


MIDDLE: Final = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457, 13731.693765509461125,
     1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    (5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867, 5394.1960214247511077,
     687.1870074920579083, 42.313330701600911252, 1.0),
)  # fmt: skip
SIDES: Final = (
    (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
     3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
     0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0),
)  # fmt: skip
TAILS: Final = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
     0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772),
    (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
     0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0),
)  # fmt: skip


def normal(share: Number) -> Number:
    """Return the quantile of the standard normal distribution."""
    value: Any = share
    return cast("Number", _normals(value) if isinstance(value, np.ndarray) else _normal(value))


def _normal(share: float) -> float:
    middle = share - 0.5
    if abs(middle) <= 0.425:
        return float(middle * _ratio(MIDDLE, 0.180625 - middle * middle))
    root = math.sqrt(-log(min(share, 1.0 - share)))
    far = float(_ratio(SIDES, root - 1.6) if root <= 5.0 else _ratio(TAILS, root - 5.0))
    return -far if middle < 0 else far


def _normals(share: Floats) -> Floats:
    middle = share - 0.5
    normals: Floats = middle * _ratio(MIDDLE, 0.180625 - middle * middle)
    outside = np.abs(middle) > 0.425
    share, middle = share[outside], middle[outside]
    root = np.sqrt(-log(np.minimum(share, 1.0 - share)))
    far = np.where(root <= 5.0, _ratio(SIDES, root - 1.6), _ratio(TAILS, root - 5.0))
    normals[outside] = np.where(middle < 0, -far, far)
    return normals


def _ratio(both: tuple[tuple[float, ...], tuple[float, ...]], number: Any) -> Any:
    above, below = both
    return _polynomial(above, number) / _polynomial(below, number)
