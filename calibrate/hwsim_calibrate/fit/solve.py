"""Least squares of logarithms for times that are sums of positive terms, with a loss that outliers cannot bend.

    t_i = sum_j A_ij exp(x_j)          residual_i = log t_i - log y_i

minimised: sum of s^2 (sqrt(1 + (residual / s)^2) - 1) x weight, and a weak pull of every x towards where it started.
Gauss-Newton steps with Levenberg's damping; a few columns of A may themselves depend on x (capacities of caches).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SCALE: Final = 0.07  # residuals beyond it count in proportion, not squared
PULL: Final = 0.05  # of the starting values: an x without a measurement stays there


@dataclass(frozen=True, slots=True)
class Problem:
    """times(x): times, and their derivatives by each x; start, spread: the expected x and its uncertainty."""

    times: Callable[[Floats], tuple[Floats, Floats]]
    measured: Floats
    start: Floats
    spread: Floats
    weights: Floats


def solve(problem: Problem, guess: Floats | None = None, *, steps: int = 60, scale: float = SCALE) -> Floats:
    """The x of least loss; from `guess`, if there is one."""
    x = problem.start.copy() if guess is None else guess.copy()
    aim, damping = np.log(problem.measured), 1e-3
    loss, gradient, curvature = _look(problem, x, aim, scale)
    for _ in range(steps):
        for _ in range(12):
            step = np.linalg.solve(curvature + damping * np.diag(np.diag(curvature) + 1e-9), -gradient)
            trial = x + np.clip(step, -1.5, 1.5)
            new = _look(problem, trial, aim, scale)
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


def _look(problem: Problem, x: Floats, aim: Floats, scale: float) -> tuple[float, Floats, Floats]:
    """Loss, gradient and curvature at x."""
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
