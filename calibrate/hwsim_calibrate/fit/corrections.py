"""Corrections: ratios of measured times to the formula, which are interpolated between similar calls and shrunk towards 1.

The table is `kernels.corrections` of a machine file. Leave-one-out cross-validation over the measured calls selects the width of
the interpolation and the amount of shrinkage.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from hwsim.devices.kernels import Corrections, key_of
from hwsim.devices.work import LibraryCall
from hwsim_calibrate.fit.least_squares import Floats

FEW: Final = 6  # sizes of a function for interpolation
WIDTHS: Final = (0.35, 0.7, 1.0, 1.5, 2.5)
SHRINKS: Final = (0.1, 0.3, 1.0, 3.0)
DEFAULT: Final = Corrections(width=1.0, shrink=0.3)


def correct(calls: Sequence[LibraryCall], ratios: Floats) -> Corrections:
    """Return the table of ratios of measured to calculated time."""
    width, shrink = choose(calls, ratios) if len(calls) > 2 else (DEFAULT.width, DEFAULT.shrink)
    points: dict[str, dict[tuple[float, ...], list[float]]] = {}
    for call, ratio in zip(calls, ratios.tolist(), strict=True):
        points.setdefault(key_of(call), {}).setdefault(call.point, []).append(ratio)
    table: Mapping[str, tuple[tuple[float, ...], ...]] = {
        key: tuple((*point, float(f"{math.exp(float(np.mean(np.log(values)))):.4g}")) for point, values in sorted(entry.items()))
        for key, entry in sorted(points.items())
    }
    return Corrections(width=width, shrink=shrink, few=FEW, points=table)


def choose(calls: Sequence[LibraryCall], ratios: Floats) -> tuple[float, float]:
    """Return the (width, shrink) with the smallest leave-one-out error, for functions with large_groups sizes."""
    groups: dict[str, list[int]] = {}
    for index, call in enumerate(calls):
        groups.setdefault(key_of(call), []).append(index)
    log = np.log(ratios)
    best, least_error = (DEFAULT.width, DEFAULT.shrink), math.inf
    large_groups = [members for members in groups.values() if len(members) > FEW] or list(groups.values())
    distances = [_distances([calls[member] for member in members]) for members in large_groups]
    logs = [log[members] for members in large_groups]
    for width in WIDTHS:
        weights = [np.exp(-squared / (2.0 * width**2)) for squared in distances]
        for shrink in SHRINKS:
            left = [ours - near @ ours / (near.sum(1) + shrink) for near, ours in zip(weights, logs, strict=True)]
            error = float(np.minimum(np.abs(np.concatenate(left)), 0.5).mean())
            if error < least_error:
                best, least_error = (width, shrink), error
    return best


def _distances(calls: Sequence[LibraryCall]) -> Floats:
    """Return squared distances in log2 of the size; the distance of a call to itself is infinite."""
    places = np.log2(np.array([call.point for call in calls]))
    squared: Floats = ((places[:, None, :] - places[None, :, :]) ** 2).sum(2)
    return np.where(squared < 1e-12, np.inf, squared)
