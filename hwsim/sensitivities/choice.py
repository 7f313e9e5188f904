"""The choice between two options with an uncertain ratio: probability of a wrong choice, value of a measurement, break-even.

    now               ln(ratio) is normally distributed around its value d, with standard deviation s = half / 1.645;
                      the choice is wrong with probability Phi(-|d| / s)
    with one error    of share p of s^2: the choice follows the new centre M, which is normal around d with s sqrt(p);
    measured          it is wrong with the mean, over M, of Phi(-|M| / (s sqrt(1 - p)))

**Source**: pre-posterior analysis, Raiffa and Schlaifer, "Applied statistical decision theory", 1961, quoted from memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from hwsim.results.errors import NORMAL
from hwsim.results.interval import LEVEL

SLICES: Final = 400  # steps of the integral over M
FAR: Final = 6.0  # limits of the integral (standard deviations)
SCAN: Final = (1.1, 1.25, 1.5, 2.0, 3.0, 4.0)  # factors at which the order is evaluated
CLOSE: Final = 1e-3  # precision of a factor


def wrong_now(value: float, half: float) -> float:
    """Return the probability that the apparently better option is worse.

    Args:
        value: ratio of the options.
        half: half width of its 90 % interval, as a logarithm.

    >>> round(wrong_now(1.0, 0.1), 3), wrong_now(1.2, 0.0), round(wrong_now(math.exp(0.1), 0.1), 3)
    (0.5, 0.0, 0.05)
    """
    if half <= 0:
        return 0.0 if value != 1 else 0.5
    return _phi(-abs(math.log(value)) * NORMAL[LEVEL] / half)


def wrong_after(value: float, half: float, share: float) -> float:
    """Return the average probability of a wrong choice after an error with this share of the variance is measured.

    >>> round(wrong_after(1.0, 0.1, 1.0), 3), round(wrong_after(1.05, 0.1, 0.0), 4) == round(wrong_now(1.05, 0.1), 4)
    (0.0, True)
    """
    if half <= 0 or share <= 0:
        return wrong_now(value, half)
    if share >= 1:
        return 0.0
    sigma, middle = half / NORMAL[LEVEL], math.log(value)
    moved, left = sigma * math.sqrt(share), sigma * math.sqrt(1.0 - share)
    step = 2 * FAR / SLICES
    places = [-FAR + (number + 0.5) * step for number in range(SLICES)]
    weights = [math.exp(-place * place / 2) for place in places]
    missed = [_phi(-abs(middle + moved * place) / left) for place in places]
    return math.fsum(w * m for w, m in zip(weights, missed, strict=True)) / math.fsum(weights)


def _phi(place: float) -> float:
    """Return the standard normal distribution function."""
    return 0.5 * math.erfc(-place / math.sqrt(2.0))


def break_even(gain: Callable[[float], float | None]) -> float | None:
    """Return the factor nearest to 1, between 1/4 and 4, at which a gain crosses 1; None if there is none.

    Args:
        gain: function that returns the ratio of the options with an input times a factor; None if not allowed.

    >>> round(break_even(lambda factor: 1.2 / factor), 3), break_even(lambda factor: 1.2)
    (1.2, None)
    """
    start = gain(1.0)
    if start is None or start <= 0 or start == 1.0:
        return 1.0 if start == 1.0 else None
    inside = [1.0, 1.0]  # last factors with the original order, rising and falling
    is_open = [True, True]
    for step in SCAN:
        for index, factor in enumerate((step, 1 / step)):
            if not is_open[index]:
                continue
            value = gain(factor)
            if value is None or value <= 0:
                is_open[index] = False
            elif (value - 1) * (start - 1) <= 0:
                return _between(gain, inside[index], factor, start)
            else:
                inside[index] = factor
    return None


def _between(gain: Callable[[float], float | None], inside: float, outside: float, start: float) -> float | None:
    while abs(math.log(outside / inside)) > CLOSE:
        middle = math.sqrt(inside * outside)
        value = gain(middle)
        if value is None:
            return None
        if (value - 1) * (start - 1) <= 0:
            outside = middle
        else:
            inside = middle
    return math.sqrt(inside * outside)
