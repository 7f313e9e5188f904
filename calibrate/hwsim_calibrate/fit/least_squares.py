"""Robust least squares of logarithms, for times that are sums of positive terms.

    t_i = sum_j A_ij exp(x_j)          residual_i = log t_i - log y_i

The loss is the sum of weight x s^2 (sqrt(1 + (residual / s)^2) - 1), a pseudo-Huber loss, plus a weak prior for every x at its
start value. The solver is Levenberg-Marquardt. Some columns of A may depend on x, such as cache capacities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SCALE: Final = 0.07  # residual from which the loss is linear instead of quadratic
PULL: Final = 0.05  # weight of the prior, which determines an x without measurements


@dataclass(frozen=True, slots=True)
class Problem:
    """A fit.

    Args:
        times: function of x that returns the times and their derivatives by each x.
        measured: measured times (s).
        start: expected x.
        spread: uncertainty of the expected x.
        weights: weight of each measurement.
    """

    times: Callable[[Floats], tuple[Floats, Floats]]
    measured: Floats
    start: Floats
    spread: Floats
    weights: Floats


def solve(problem: Problem, guess: Floats | None = None, *, steps: int = 60, scale: float = SCALE) -> Floats:
    """Return the x with the smallest loss, starting from `guess` or from the expected x."""
    x = problem.start.copy() if guess is None else guess.copy()
    aim, damping = np.log(problem.measured), 1e-3
    loss, gradient, curvature = _linearize(problem, x, aim, scale)
    for _ in range(steps):
        for _ in range(12):
            step = np.linalg.solve(curvature + damping * np.diag(np.diag(curvature) + 1e-9), -gradient)
            trial = x + np.clip(step, -1.5, 1.5)
            new = _linearize(problem, trial, aim, scale)
            if new[0] <= loss:
                break
            damping *= 4.0
        else:
            return x
        gained = loss - new[0]
        x, (loss, gradient, curvature) = trial, new
        damping = max(damping / 5.0, 1e-9)
        if gained < 1e-7 * loss:
            break
    return x


def _linearize(problem: Problem, x: Floats, aim: Floats, scale: float) -> tuple[float, Floats, Floats]:
    """Return loss, gradient and curvature at x."""
    times, slopes = problem.times(x)
    residual = np.log(times) - aim
    root = np.sqrt(1.0 + (residual / scale) ** 2)
    weight = problem.weights / root
    jacobian = slopes / times[:, None]
    pull = PULL * (x - problem.start) / problem.spread
    loss = float((problem.weights * scale**2 * (root - 1.0)).sum() * 2.0 + (SCALE * pull**2 * SCALE).sum())
    weak = (PULL * SCALE / problem.spread) ** 2
    gradient = jacobian.T @ (weight * residual) + weak * (x - problem.start)
    curvature = (jacobian * weight[:, None]).T @ jacobian + np.diag(weak)
    return loss, gradient, curvature
