"""Random numbers by hash and their distributions, as `hwsim.workload.load` has them, to the bit."""

from __future__ import annotations

import math

import numpy as np

from hwsim.engine.kernels.words import bare
from hwsim.workload.load.numbers import EXP_TERMS, HALF_ROOT, LN2_HIGH, LN2_LOW, LOG_TERMS, MIDDLE, SIDES, TAILS

CONSTANT, EXPONENTIAL, LOGNORMAL, UNIFORM, PARETO, VALUES, WHOLE = range(7)
KEY, CODE, FIRST_VALUE, PARAMETERS = range(4)  # of a row that says what is drawn

_STEP, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _12 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(12)
_PARTS = 2.0**-52
_PER_LN2 = 1 / math.log(2)
_MIDDLE, _BELOW_MIDDLE = MIDDLE
_SIDES, _BELOW_SIDES = SIDES
_TAILS, _BELOW_TAILS = TAILS


@bare
def mixed(state, number):
    """One round: 64 bits of a state and a number."""
    state = (state ^ number) + _STEP
    state = (state ^ (state >> _30)) * _FIRST
    state = (state ^ (state >> _27)) * _SECOND
    return state ^ (state >> _31)


@bare
def uniform(key, request, visit):
    """A number in (0, 1)."""
    word = mixed(mixed(key, np.uint64(request)), np.uint64(visit))
    return (float(word >> _12) + 0.5) * _PARTS


@bare
def _horner(factors, number):
    """The highest power first."""
    found = factors[0]
    for at in range(1, len(factors)):
        found = found * number + factors[at]
    return found


@bare
def log(number):
    """The natural logarithm of a positive number."""
    part, power = math.frexp(number)
    low = 1.0 if part < HALF_ROOT else 0.0
    part = part * (1.0 + low)
    exponent = float(power) - low
    ratio = (part - 1.0) / (part + 1.0)
    return 2.0 * ratio * _horner(LOG_TERMS, ratio * ratio) + exponent * LN2_LOW + exponent * LN2_HIGH


@bare
def exp(number):
    """e to the power of a number between -700 and 700."""
    turns = math.floor(number * _PER_LN2 + 0.5)
    rest = (number - turns * LN2_HIGH) - turns * LN2_LOW
    return math.ldexp(_horner(EXP_TERMS, rest), int(turns))


@bare
def normal(share):
    """The number that this share of a standard normal distribution is below."""
    middle = share - 0.5
    if abs(middle) <= 0.425:
        near = 0.180625 - middle * middle
        return middle * (_horner(_MIDDLE, near) / _horner(_BELOW_MIDDLE, near))
    root = math.sqrt(-log(min(share, 1.0 - share)))
    if root <= 5.0:
        far = _horner(_SIDES, root - 1.6) / _horner(_BELOW_SIDES, root - 1.6)
    else:
        far = _horner(_TAILS, root - 5.0) / _horner(_BELOW_TAILS, root - 5.0)
    return -far if middle < 0 else far


@bare
def drawn(state, number, request, visit):
    """A draw of a request, equal to `Draws.at`."""
    row = state.table[number]
    first, second, cut = state.floats[row[PARAMETERS], 0], state.floats[row[PARAMETERS], 1], state.floats[row[PARAMETERS], 3]
    share = uniform(np.uint64(row[KEY]), request, visit)
    code = row[CODE]
    if code == EXPONENTIAL:
        return -first * log(1.0 - share)
    if code == LOGNORMAL:
        return first * exp(second * normal(share))
    if code == UNIFORM:
        return first + (second - first) * share
    if code == PARETO:
        return second * exp(log(1.0 - share * (1.0 - cut)) * (-1.0 / first))
    if code == VALUES:
        return state.floats[row[FIRST_VALUE] + np.int64(share * first), 0]
    if code == WHOLE:
        return min(np.floor(share * (second - first + 1.0)) + first, second)
    return share * 0.0 + first
