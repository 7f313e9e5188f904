"""Minimize errors over parameters: coordinate search, least squares, and simplex."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Error = Callable[[Sequence[float]], float]
Floats = NDArray[np.float64]


def descend(error: Error, start: Sequence[float], *, step: float = 0.2, rounds: int = 60, finest: float = 1e-4) -> list[float]:
    """Return positive parameters at a local minimum; the search increases and decreases one at a time by a shrinking factor.

    Deterministic, and good enough for errors of a few parameters that are not all too entangled.

    >>> [round(each, 2) for each in descend(lambda p: (p[0] - 3) ** 2 + (p[1] - 0.5) ** 2, [1.0, 1.0])]
    [3.0, 0.5]
    """
    best, at = error(start), list(start)
    steps = [step] * len(at)
    for _ in range(rounds):
        for index in range(len(at)):
            moved = False
            for factor in (1.0 + steps[index], 1.0 / (1.0 + steps[index])):
                while True:
                    trial = list(at)
                    trial[index] *= factor
                    found = error(trial)
                    if not found < best:
                        break
                    best, at, moved = found, trial, True
                if moved:
                    break
            steps[index] = steps[index] * 1.3 if moved else steps[index] / 2
        if max(steps) < finest:
            break
    return at


def least_squares(
    errors: Callable[[Floats], Floats], start: Floats, *, rounds: int = 40, typical: float = 0.1, step: float = 1e-4
) -> Floats:
    """Return the parameters of least error by damped Gauss-Newton steps; errors far above `typical` have less weight.

    Source: K. Levenberg, "A method for the solution of certain non-linear problems in least squares", 1944; the weights are
    those of a pseudo-Huber loss.

    >>> [round(float(each), 3) for each in least_squares(lambda p: np.array([p[0] - 3, 10 * (p[1] - p[0] ** 2)]), np.ones(2))]
    [3.0, 9.0]
    """
    at, damping = start.astype(np.float64), 1e-2
    found = errors(at)
    weight = _weights(found, typical)
    loss = _loss(found, typical)
    for _ in range(rounds):
        slopes = np.stack([(errors(at + step * unit) - found) / step for unit in np.eye(len(at))], axis=1)
        normal, gradient = slopes.T @ (slopes * weight[:, None]), slopes.T @ (weight * found)
        for _ in range(8):
            damped = normal + damping * np.diag(np.diag(normal) + 1e-3)
            moved = at + np.clip(-np.linalg.solve(damped, gradient), -1.0, 1.0)
            tried = errors(moved)
            if _loss(tried, typical) < loss:
                break
            damping *= 4
        else:
            return at
        gained = loss - _loss(tried, typical)
        at, found, damping = moved, tried, max(damping / 4, 1e-7)
        loss, weight = _loss(found, typical), _weights(found, typical)
        if gained < 1e-7 * loss:
            break
    return at


def _weights(found: Floats, typical: float) -> Floats:
    weights: Floats = 1 / np.sqrt(1 + (found / typical) ** 2)
    return weights


def _loss(found: Floats, typical: float) -> float:
    return float(np.sum(typical**2 * (np.sqrt(1 + (found / typical) ** 2) - 1)))


def simplex(error: Error, start: Sequence[float], *, step: float = 0.35, most: int = 300) -> tuple[list[float], float]:
    """Return parameters (as logarithms) and their error, by a shrinking simplex (Nelder and Mead, 1965).

    Better than `descend` where parameters are entangled.  most: calls of `error`.

    >>> [round(each, 2) for each in simplex(lambda p: (p[0] - 3) ** 2 + (p[0] - p[1]) ** 2, [1.0, 1.0], most=120)[0]]
    [3.0, 3.0]
    """
    size = len(start)
    points = [np.array(start, float) + shift for shift in np.vstack([np.zeros(size), step * np.eye(size)])]
    values = [error(point) for point in points]
    calls = size + 1
    while calls < most:
        order = np.argsort(values, kind="stable")
        points, values = [points[index] for index in order], [values[index] for index in order]
        middle = np.mean(points[:-1], axis=0)
        mirrored = 2 * middle - points[-1]
        found = error(mirrored)
        calls += 1
        if found < values[0]:
            further = 3 * middle - 2 * points[-1]
            beyond = error(further)
            calls += 1
            points[-1], values[-1] = (further, beyond) if beyond < found else (mirrored, found)
        elif found < values[-2]:
            points[-1], values[-1] = mirrored, found
        else:
            nearer = (middle + (mirrored if found < values[-1] else points[-1])) / 2
            within = error(nearer)
            calls += 1
            if within < min(found, values[-1]):
                points[-1], values[-1] = nearer, within
            else:
                points = [points[0], *((point + points[0]) / 2 for point in points[1:])]
                values = [values[0], *(error(point) for point in points[1:])]
                calls += size
    best = int(np.argmin(values))
    return [float(parameter) for parameter in points[best]], float(values[best])
