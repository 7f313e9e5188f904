"""Programs that were used to develop the suites: tables, images, integers, sorting, simulations."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from hwsim_calibrate.composites.programs import F4, Program, Step


def group_means(rows: int, groups: int) -> Step:
    """Group a table by a key: sums, counts, and the groups sorted by their means."""
    draw = np.random.default_rng(1)
    key, value = draw.integers(0, groups, rows), draw.random(rows)

    def step() -> object:
        total, count = np.bincount(key, weights=value, minlength=groups), np.bincount(key, minlength=groups)
        mean = total / np.maximum(count, 1)
        order = np.argsort(mean)
        return mean[order], count[order]

    return step


def image_filter(side: int) -> Step:
    """Filter an 8-bit image: brighten, clip, blur, threshold, histogram."""
    image = np.random.default_rng(2).integers(0, 256, (side, side)).astype(np.uint8)

    def step() -> object:
        bright = np.clip(image.astype(np.float32) * F4(1.2) + F4(10), 0, 255)
        blurred = (bright[:-2] + bright[1:-1] + bright[2:]) / F4(3)
        mask = blurred > 128
        histogram = np.bincount(image.ravel(), minlength=256)
        return np.where(mask, blurred, F4(0)).astype(np.uint8), histogram, 255 - image

    return step


def life(side: int, turns: int) -> Step:
    """Simulate Conway's Game of Life on integers."""
    start = np.random.default_rng(3).integers(0, 2, (side, side))

    def step() -> object:
        board = start
        for _ in range(turns):
            near = sum(np.roll(np.roll(board, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1)) - board
            board = ((near == 3) | ((board == 1) & (near == 2))).astype(np.int64)
        return board.sum()

    return step


def sieve(count: int) -> Step:
    """Find primes by the sieve of Eratosthenes."""

    def step() -> object:
        prime = np.ones(count, dtype=bool)
        prime[:2] = False
        for i in range(2, int(count**0.5) + 1):
            if prime[i]:
                prime[i * i :: i] = False
        return np.flatnonzero(prime)

    return step


def rank(rows: int) -> Step:
    """Compute ranks, quantiles and the top tenth of a column."""
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
    """Simulate bounded random walks of many particles."""
    draw = np.random.default_rng(5)

    def step() -> object:
        moves = draw.integers(-1, 2, (turns, paths))
        positions = np.cumsum(moves, axis=0)
        positions = np.clip(positions, -10, 10)
        return np.unique(positions[-1], return_counts=True), (positions == 0).mean()

    return step


def spectrum(count: int) -> Step:
    """Find the peaks in the smoothed power spectrum of a windowed signal."""
    time = np.linspace(0.0, 1.0, count)
    signal = np.sin(2 * np.pi * 50 * time) + 0.3 * np.random.default_rng(6).normal(size=count)

    def step() -> object:
        power = np.abs(np.fft.rfft(signal * np.hanning(count))) ** 2
        smooth = np.convolve(power, np.ones(5) / 5, "same")
        peaks = np.nonzero((smooth[1:-1] > smooth[:-2]) & (smooth[1:-1] > smooth[2:]))[0]
        return peaks, smooth[peaks]

    return step


def distances(points: int) -> Step:
    """Compute all pairwise distances of points, nearest neighbours and a histogram."""
    x = np.random.default_rng(7).random((points, 3))

    def step() -> object:
        apart = x[:, None, :] - x[None, :, :]
        d = np.sqrt((apart**2).sum(axis=-1))
        np.fill_diagonal(d, np.inf)
        near = d.argmin(axis=1)
        return near, np.histogram(d[np.isfinite(d)], bins=20)[0]

    return step


def large_temporaries(count: int) -> Step:
    """Evaluate an expression on long columns with temporary arrays."""
    draw = np.random.default_rng(8)
    x, y = draw.random(count), draw.random(count)

    def step() -> object:
        d = np.sqrt(x * x + y * y)
        z = (x - y) / (d + 1.0)
        w = np.exp(-z) * 0.5 + z
        return (w[::2] + w[1::2]).sum(), np.where(z > 0.1, z, 0.0).mean()

    return step


def hashes(count: int) -> Step:
    """Hash integers by shifts and multiplications, and count the buckets."""
    key = np.random.default_rng(9).integers(0, 2**31, count)

    def step() -> object:
        h = key ^ (key >> 16)
        h = (h * 73244475) & 0xFFFFFFFF
        h = h ^ (h >> 16)
        bucket = h % 1024
        return np.bincount(bucket, minlength=1024).max(), np.unique(bucket).size

    return step


def linear_model(rows: int, columns: int) -> Step:
    """Solve least squares by normal equations, with residuals and their standard deviation."""
    draw = np.random.default_rng(10)
    x, y = draw.random((rows, columns)), draw.random(rows)

    def step() -> object:
        gram = x.T @ x + 1e-3 * np.eye(columns)
        w = np.linalg.solve(gram, x.T @ y)
        left = y - x @ w
        return np.linalg.norm(left), left.std(), np.linalg.inv(gram).trace()

    return step


def join(rows: int) -> Step:
    """Join two tables by their keys."""
    draw = np.random.default_rng(11)
    left, right = draw.integers(0, rows, rows), np.sort(draw.integers(0, rows, rows // 2))
    value = draw.random(rows // 2)

    def step() -> object:
        rows_of_right = np.searchsorted(right, left)
        rows_of_right[rows_of_right == len(right)] = 0
        matched = right[rows_of_right] == left
        return value[rows_of_right[matched]].sum(), matched.sum()

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
