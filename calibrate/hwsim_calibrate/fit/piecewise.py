"""Times by size in straight pieces: start and rate of each, as messages, transfers and reads of files have them.

    t = start + bytes / rate          from `least` bytes on, until the next piece

The borders have the least relative error (dynamic programming over the sizes). There are no more pieces than pay for themselves
(Bayes' information criterion), each with at least three sizes.

Source: pieces by size as in SimGrid's calibration of networks (pycewise); relative instead of absolute errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

LEAST: Final = 3  # sizes of a piece
MOST: Final = 4  # pieces
NOISE: Final = 0.01  # relative: an error below it is none


@dataclass(frozen=True, slots=True)
class Piece:
    """One straight piece: bytes it begins at, seconds before the first byte, bytes per second."""

    least: float
    start: float
    rate: float

    def seconds(self, size: float) -> float:
        return self.start + size / self.rate


@dataclass(frozen=True, slots=True)
class Pieces:
    """All of them, the smallest sizes first."""

    pieces: tuple[Piece, ...]

    def seconds(self, size: float) -> float:
        """Time of `size` bytes."""
        return next((each for each in reversed(self.pieces) if size >= each.least), self.pieces[0]).seconds(size)

    @property
    def start(self) -> float:
        """Start of the smallest sizes, in seconds."""
        return self.pieces[0].start

    @property
    def rate(self) -> float:
        """Rate of the largest sizes, in B/s."""
        return self.pieces[-1].rate


def pieces_of(points: Sequence[tuple[float, float]], most: int = MOST) -> Pieces:
    """The pieces through (bytes, seconds).

    >>> line = pieces_of([(size, 2e-6 + size / 1e9) for size in (0, 1e3, 1e4, 1e5, 1e6)])
    >>> len(line.pieces), round(line.start * 1e6, 3), round(line.rate / 1e9, 3)
    (1, 2.0, 1.0)

    Raises:
        ValueError: fewer than two sizes.
    """
    ordered = sorted(points)
    if len({size for size, _ in ordered}) < 2:
        raise ValueError("a start and a rate need at least two sizes")
    count, best = len(ordered), math.inf
    chosen: tuple[Piece, ...] = ()
    for pieces in range(1, max(1, min(most, count // LEAST)) + 1):
        error, cut = _cut(ordered, pieces)
        criterion = count * math.log(error / count + NOISE**2) + 3 * pieces * math.log(count)
        if criterion < best:
            best, chosen = criterion, cut
    return Pieces(chosen)


def _cut(points: Sequence[tuple[float, float]], pieces: int) -> tuple[float, tuple[Piece, ...]]:
    """(sum of squared relative errors, the pieces) of the best borders."""
    count, least = len(points), LEAST if pieces > 1 else 1
    rows: list[dict[int, tuple[float, tuple[Piece, ...]]]] = [{0: (0.0, ())}]
    for _ in range(pieces):
        row: dict[int, tuple[float, tuple[Piece, ...]]] = {}
        for begin, (error, before) in rows[-1].items():
            for end in range(begin + least, count + 1):
                more, piece = _line(points[begin:end])
                if error + more < row.get(end, (math.inf, ()))[0]:
                    row[end] = (error + more, (*before, piece))
        rows.append(row)
    return rows[-1].get(count, (math.inf, ()))


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, Piece]:
    """The line of least squared relative errors, neither start nor rate below nothing."""
    size, time = (np.array(each, np.float64) for each in zip(*points, strict=True))
    weight = 1.0 / time
    s, ss, sx = float((weight**2).sum()), float((size**2 * weight**2).sum()), float((size * weight**2).sum())
    y, xy = float(weight.sum()), float((size * weight).sum())
    scale = s * ss - sx * sx
    start, slope = 0.0, 0.0
    if scale > 1e-12 * s * ss:
        start, slope = (y * ss - xy * sx) / scale, (s * xy - sx * y) / scale
    if start < 0:
        start, slope = 0.0, xy / ss
    if slope <= 0:
        start, slope = y / s, 1e-18
    error = float((((start + slope * size) * weight - 1.0) ** 2).sum())
    return error, Piece(float(size[0]), start, 1.0 / slope)
