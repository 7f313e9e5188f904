"""Ordinary programs that were looked at while the suites were written: tables, images, whole numbers, sorting, simulations."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from hwsim_calibrate.composites.programs import F4, Program, Step


def group_means(rows: int, groups: int) -> Step:
    """A table grouped by a key: sums, counts, and the groups in order of their means."""
    draw = np.random.default_rng(1)
    key, value = draw.integers(0, groups, rows), draw.random(rows)

    def step() -> object:
        total, count = np.bincount(key, weights=value, minlength=groups), np.bincount(key, minlength=groups)
        mean = total / np.maximum(count, 1)
        order = np.argsort(mean)
        return mean[order], count[order]

    return step


def image_filter(side: int) -> Step:
    """A picture of bytes: brightened, clipped, blurred, thresholded, counted."""
    image = np.random.default_rng(2).integers(0, 256, (side, side)).astype(np.uint8)

    def step() -> object:
        bright = np.clip(image.astype(np.float32) * F4(1.2) + F4(10), 0, 255)
        blurred = (bright[:-2] + bright[1:-1] + bright[2:]) / F4(3)
        mask = blurred > 128
        histogram = np.bincount(image.ravel(), minlength=256)
        return np.where(mask, blurred, F4(0)).astype(np.uint8), histogram, 255 - image

    return step


def life(side: int, turns: int) -> Step:
    """The game of life on whole numbers."""
    start = np.random.default_rng(3).integers(0, 2, (side, side))

    def step() -> object:
        board = start
        for _ in range(turns):
            near = sum(np.roll(np.roll(board, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1)) - board
            board = ((near == 3) | ((board == 1) & (near == 2))).astype(np.int64)
        return board.sum()

    return step


def sieve(count: int) -> Step:
    """Primes by crossing out."""

    def step() -> object:
        prime = np.ones(count, dtype=bool)
        prime[:2] = False
        for i in range(2, int(count**0.5) + 1):
            if prime[i]:
                prime[i * i :: i] = False
        return np.flatnonzero(prime)

    return step


def rank(rows: int) -> Step:
    """Ranks, quantiles and the best tenth of a column."""
    value = np.random.default_rng(4).normal(size=rows)

    def step() -> object:
        order = np.argsort(value)
        ranks = np.empty_like(order)
        ranks[order] = np.arange(rows)
        low, high = np.percentile(value, [5, 95])
        kept = value[(value > low) & (value < high)]
        return ranks, np.median(kept), np.sort(kept)[-rows // 10 :]

    return step


def walk(paths: int, turns: int) -> Step:
    """Random walks of many particles, kept within bounds."""
    draw = np.random.default_rng(5)

    def step() -> object:
        moves = draw.integers(-1, 2, (turns, paths))
        at = np.cumsum(moves, axis=0)
        at = np.clip(at, -10, 10)
        return np.unique(at[-1], return_counts=True), (at == 0).mean()

    return step


def spectrum(count: int) -> Step:
    """A signal windowed, transformed, its power smoothed and its peaks found."""
    time = np.linspace(0.0, 1.0, count)
    signal = np.sin(2 * np.pi * 50 * time) + 0.3 * np.random.default_rng(6).normal(size=count)

    def step() -> object:
        power = np.abs(np.fft.rfft(signal * np.hanning(count))) ** 2
        smooth = np.convolve(power, np.ones(5) / 5, "same")
        peaks = np.nonzero((smooth[1:-1] > smooth[:-2]) & (smooth[1:-1] > smooth[2:]))[0]
        return peaks, smooth[peaks]

    return step


def distances(points: int) -> Step:
    """All pairs of points in space: distances, nearest neighbours, a histogram."""
    x = np.random.default_rng(7).random((points, 3))

    def step() -> object:
        apart = x[:, None, :] - x[None, :, :]
        d = np.sqrt((apart**2).sum(axis=-1))
        np.fill_diagonal(d, np.inf)
        near = d.argmin(axis=1)
        return near, np.histogram(d[np.isfinite(d)], bins=20)[0]

    return step


def large_temporaries(count: int) -> Step:
    """An expression on long columns, each part in an array of its own."""
    draw = np.random.default_rng(8)
    x, y = draw.random(count), draw.random(count)

    def step() -> object:
        d = np.sqrt(x * x + y * y)
        z = (x - y) / (d + 1.0)
        w = np.exp(-z) * 0.5 + z
        return (w[::2] + w[1::2]).sum(), np.where(z > 0.1, z, 0.0).mean()

    return step


def hashes(count: int) -> Step:
    """Whole numbers mixed by shifts and multiplications, put into buckets."""
    key = np.random.default_rng(9).integers(0, 2**31, count)

    def step() -> object:
        h = key ^ (key >> 16)
        h = (h * 73244475) & 0xFFFFFFFF
        h = h ^ (h >> 16)
        bucket = h % 1024
        return np.bincount(bucket, minlength=1024).max(), np.unique(bucket).size

    return step


def linear_model(rows: int, columns: int) -> Step:
    """Least squares by normal equations, residuals and their spread."""
    draw = np.random.default_rng(10)
    x, y = draw.random((rows, columns)), draw.random(rows)

    def step() -> object:
        gram = x.T @ x + 1e-3 * np.eye(columns)
        w = np.linalg.solve(gram, x.T @ y)
        left = y - x @ w
        return np.linalg.norm(left), left.std(), np.linalg.inv(gram).trace()

    return step


def join(rows: int) -> Step:
    """Two tables joined by their keys."""
    draw = np.random.default_rng(11)
    left, right = draw.integers(0, rows, rows), np.sort(draw.integers(0, rows, rows // 2))
    value = draw.random(rows // 2)

    def step() -> object:
        at = np.searchsorted(right, left)
        at[at == len(right)] = 0
        matched = right[at] == left
        return value[at[matched]].sum(), matched.sum()

    return step


ORDINARY: Final = (
    Program("group means", partial(group_means, 200_000, 500), blind=False),
    Program("image filter", partial(image_filter, 700), blind=False),
    Program("game of life", partial(life, 200, 2), blind=False),
    Program("sieve", partial(sieve, 300_000), blind=False),
    Program("ranks", partial(rank, 60_000), blind=False),
    Program("random walk", partial(walk, 3000, 60), blind=False),
    Program("spectrum", partial(spectrum, 40_000), blind=False),
    Program("distances", partial(distances, 250), blind=False),
    Program("large temporaries", partial(large_temporaries, 1_500_000), blind=False),
    Program("hashes", partial(hashes, 150_000), blind=False),
    Program("linear model", partial(linear_model, 8000, 30), blind=False),
    Program("join", partial(join, 50_000), blind=False),
)
