"""Programs by an author who had not read the suites; they were scored once."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from hwsim_calibrate.composites.ordinary import sieve
from hwsim_calibrate.composites.programs import Program, Step


def mixed_portfolio(days: int, assets: int) -> Step:
    """Compute daily returns, their covariance, and the volatility of a portfolio."""
    prices = np.exp(np.cumsum(np.random.default_rng(1).normal(0.0, 0.01, (days, assets)), axis=0))
    weights = np.full(assets, 1.0 / assets)

    def step() -> object:
        returns = np.diff(np.log(prices), axis=0)
        centred = returns - returns.mean(axis=0)
        covariance = centred.T @ centred / (len(returns) - 1)
        return np.sqrt(weights @ covariance @ weights)

    return step


def sessions(events: int, users: int) -> Step:
    """Split a click stream into sessions: sort events by user and time, split at gaps."""
    rng = np.random.default_rng(2)
    user, time = rng.integers(0, users, events), rng.integers(0, 24 * 3600, events)

    def step() -> object:
        order = np.lexsort((time, user))
        who, when = user[order], time[order]
        new = np.ones(len(who), dtype=bool)
        new[1:] = (who[1:] != who[:-1]) | (when[1:] - when[:-1] > 1800)
        return np.bincount(np.cumsum(new) - 1)

    return step


def blur(height: int, width: int) -> Step:
    """Blur an 8-bit greyscale image over 3 x 3 pixels."""
    image = np.random.default_rng(3).integers(0, 256, (height, width), dtype=np.uint8)

    def step() -> object:
        wide = image.astype(np.int32)
        rows = wide[:-2] + wide[1:-1] + wide[2:]
        both = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]
        return (both // 9).astype(np.uint8)

    return step


def equalise(pixels: int) -> Step:
    """Equalize the histogram of an 8-bit image."""
    image = np.random.default_rng(4).integers(20, 180, pixels, dtype=np.uint8)

    def step() -> object:
        counts = np.bincount(image, minlength=256)
        below = np.cumsum(counts)
        table = ((below - below[0]) * 255 // max(1, int(below[-1] - below[0]))).astype(np.uint8)
        return table[image]

    return step


def logistic_step(samples: int, features: int) -> Step:
    """Run one step of logistic regression in single precision."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(samples, features)).astype(np.float32)
    y = (rng.random(samples) > 0.5).astype(np.float32)
    w = np.zeros(features, dtype=np.float32)

    def step() -> object:
        p = 1.0 / (1.0 + np.exp(-(x @ w)))
        gradient = x.T @ (p - y) / np.float32(len(y))
        return w - np.float32(0.1) * gradient

    return step


def nearest(points: int, centres: int) -> Step:
    """Find the nearest centre of each point in the plane."""
    rng = np.random.default_rng(6)
    a, b = rng.random((points, 2)), rng.random((centres, 2))

    def step() -> object:
        apart = a[:, None, :] - b[None, :, :]
        return np.argmin((apart * apart).sum(axis=2), axis=1)

    return step


def life(side: int) -> Step:
    """Simulate one generation of Conway's Game of Life on a torus."""
    board = np.random.default_rng(7).random((side, side)) < 0.3

    def step() -> object:
        cells = board.astype(np.uint8)
        around = sum(np.roll(cells, (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0))
        return (around == 3) | (board & (around == 2))

    return step


def option_price(paths: int, steps: int) -> Step:
    """Price a European option by simulated paths, with random numbers drawn in the step."""
    rng = np.random.default_rng(8)

    def step() -> object:
        noise = rng.standard_normal((steps, paths))
        last = 100.0 * np.exp((0.0001 * noise.shape[0]) + 0.01 * noise.sum(axis=0))
        return np.maximum(last - 100.0, 0.0).mean()

    return step


def spectrum(samples: int, window: int) -> Step:
    """Compute a spectrogram: windows of a signal, their Fourier transforms, and the power."""
    signal = np.random.default_rng(9).normal(size=samples)
    shape = np.hanning(window)

    def step() -> object:
        frames = signal[: samples // window * window].reshape(-1, window) * shape
        waves = np.fft.rfft(frames, axis=1)
        return 10.0 * np.log10(waves.real**2 + waves.imag**2 + 1e-12)

    return step


def ranks(count: int) -> Step:
    """Compute the Spearman correlation of two columns."""
    rng = np.random.default_rng(10)
    x = rng.normal(size=count)
    y = x + rng.normal(size=count)

    def step() -> object:
        a, b = np.argsort(np.argsort(x)), np.argsort(np.argsort(y))
        return np.corrcoef(a, b)[0, 1]

    return step


def group_means(rows: int, groups: int) -> Step:
    """Compute mean and standard deviation of a column by group."""
    rng = np.random.default_rng(11)
    group, value = rng.integers(0, groups, rows), rng.random(rows)

    def step() -> object:
        counts = np.bincount(group, minlength=groups)
        mean = np.bincount(group, value, groups) / counts
        square = np.bincount(group, value * value, groups) / counts
        return mean, np.sqrt(np.maximum(square - mean * mean, 0.0))

    return step


def joined(left: int, right: int) -> Step:
    """Look up the keys of one table in another, sorted table."""
    rng = np.random.default_rng(12)
    keys = np.unique(rng.integers(0, 10 * right, right))
    price = rng.random(len(keys))
    wanted = rng.integers(0, 10 * right, left)

    def step() -> object:
        index = np.searchsorted(keys, wanted)
        index[index == len(keys)] = 0
        matched = keys[index] == wanted
        return np.where(matched, price[index], 0.0).sum()

    return step


def heat(side: int) -> Step:
    """Run ten steps of heat conduction on a plate, in place."""
    start = np.random.default_rng(13).random((side, side))

    def step() -> object:
        plate = start.copy()
        for _ in range(10):
            plate[1:-1, 1:-1] += 0.1 * (
                plate[2:, 1:-1] + plate[:-2, 1:-1] + plate[1:-1, 2:] + plate[1:-1, :-2] - 4.0 * plate[1:-1, 1:-1]
            )
        return plate

    return step


def julia(side: int, turns: int) -> Step:
    """Iterate a Julia set over a grid of complex numbers."""
    axis = np.linspace(-1.5, 1.5, side)
    plane = axis[:, None] + 1j * axis[None, :]

    def step() -> object:
        z = plane.copy()
        count = np.zeros(z.shape, dtype=np.int32)
        for _ in range(turns):
            inside = (z.real * z.real + z.imag * z.imag) < 4.0
            z = np.where(inside, z * z - 0.8 + 0.156j, z)
            count += inside
        return count

    return step


def gravity(bodies: int) -> Step:
    """Compute the accelerations of bodies under gravity."""
    rng = np.random.default_rng(14)
    place, mass = rng.random((bodies, 3)), rng.random(bodies)

    def step() -> object:
        apart = place[None, :, :] - place[:, None, :]
        square = np.einsum("ijk,ijk->ij", apart, apart) + 1e-3
        return (apart * (mass / square**1.5)[:, :, None]).sum(axis=1)

    return step


def whiten(samples: int, features: int) -> Step:
    """Normalize the columns of a table to mean 0 and variance 1, and clip outliers."""
    table = np.random.default_rng(15).normal(3.0, 2.0, (samples, features))

    def step() -> object:
        z = (table - table.mean(axis=0)) / table.std(axis=0)
        return np.clip(z, -3.0, 3.0)

    return step


def softmax_loss(batch: int, classes: int) -> Step:
    """Compute the cross entropy of a batch in single precision."""
    rng = np.random.default_rng(16)
    scores = rng.normal(size=(batch, classes)).astype(np.float32)
    labels = rng.integers(0, classes, batch)

    def step() -> object:
        shifted = scores - scores.max(axis=1, keepdims=True)
        logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return -logs[np.arange(batch), labels].mean()

    return step


def power_iteration(size: int) -> Step:
    """Run twenty power iterations towards the largest eigenvalue."""
    matrix = np.random.default_rng(17).random((size, size))

    def step() -> object:
        v = np.ones(size)
        for _ in range(20):
            v = matrix @ v
            v /= np.linalg.norm(v)
        return v @ matrix @ v

    return step


def least_squares(samples: int, degree: int) -> Step:
    """Fit a polynomial to noisy points."""
    rng = np.random.default_rng(18)
    x = np.linspace(-1.0, 1.0, samples)
    y = np.sin(3.0 * x) + 0.1 * rng.normal(size=samples)

    def step() -> object:
        powers = x[:, None] ** np.arange(degree + 1)
        return np.linalg.solve(powers.T @ powers, powers.T @ y)

    return step


def distinct(count: int, kind_count: int) -> Step:
    """Count the values of a column with few distinct values, sorted by frequency."""
    values = np.random.default_rng(19).integers(0, kind_count, count)

    def step() -> object:
        kinds, counts = np.unique(values, return_counts=True)
        order = np.argsort(counts)[::-1]
        return kinds[order], counts[order]

    return step


def drawdown(days: int) -> Step:
    """Compute the maximum drawdown from an earlier peak."""
    value = np.cumsum(np.random.default_rng(20).normal(size=days)) + 1000.0

    def step() -> object:
        peak = np.maximum.accumulate(value)
        return ((peak - value) / peak).max()

    return step


def transposed_sum(rows: int, columns: int) -> Step:
    """Transpose and reverse a table, and add it to its copy."""
    table = np.random.default_rng(21).random((rows, columns))

    def step() -> object:
        turned = np.ascontiguousarray(table.T[::-1])
        return turned + turned[:, ::-1]

    return step


def crc_bytes(count: int) -> Step:
    """Compute a table-driven checksum of bytes, and parity bits."""
    rng = np.random.default_rng(22)
    data = rng.integers(0, 256, count, dtype=np.uint8)
    table = rng.integers(0, 2**32, 256, dtype=np.uint32)

    def step() -> object:
        mixed = table[data] ^ (np.arange(count, dtype=np.uint32) * np.uint32(2654435761))
        return np.bitwise_xor.reduce(mixed), np.count_nonzero(data & 1)

    return step


def top_scores(count: int, best: int) -> Step:
    """Select the best scores above a threshold, in order."""
    scores = np.random.default_rng(23).random(count)

    def step() -> object:
        kept = scores[scores > 0.5]
        top = np.partition(kept, len(kept) - best)[-best:]
        return np.sort(top)[::-1]

    return step


def exponential_average(rows: int, columns: int) -> Step:
    """Compute an exponential moving average over the rows of a table."""
    table = np.random.default_rng(24).random((rows, columns))

    def step() -> object:
        out = np.empty_like(table)
        out[0] = table[0]
        for row in range(1, rows):
            out[row] = 0.9 * out[row - 1] + 0.1 * table[row]
        return out

    return step


def resample(count: int, factor: int) -> Step:
    """Average every `factor` samples, and interpolate back."""
    x = np.random.default_rng(25).normal(size=count)
    times = np.arange(count, dtype=np.float64)

    def step() -> object:
        coarse = x[: count // factor * factor].reshape(-1, factor).mean(axis=1)
        return np.interp(times, times[factor // 2 :: factor][: len(coarse)], coarse)

    return step


def quantiles(samples: int, columns: int) -> Step:
    """Compute the quartiles and the outliers of every column."""
    table = np.random.default_rng(26).standard_t(3, (samples, columns))

    def step() -> object:
        low, middle, high = np.percentile(table, [25.0, 50.0, 75.0], axis=0)
        reach = 1.5 * (high - low)
        return middle, ((table < low - reach) | (table > high + reach)).sum(axis=0)

    return step


def page_rank(nodes: int, edges: int) -> Step:
    """Run five PageRank steps over a list of edges."""
    rng = np.random.default_rng(27)
    source, target = rng.integers(0, nodes, edges), rng.integers(0, nodes, edges)
    out = np.maximum(np.bincount(source, minlength=nodes), 1)

    def step() -> object:
        rank = np.full(nodes, 1.0 / nodes)
        for _ in range(5):
            rank = 0.15 / nodes + 0.85 * np.bincount(target, rank[source] / out[source], nodes)
        return rank

    return step


def coordinates(count: int) -> Step:
    """Compute great-circle distances from a point, in single precision."""
    rng = np.random.default_rng(28)
    lat = rng.uniform(-1.5, 1.5, count).astype(np.float32)
    lon = rng.uniform(-3.1, 3.1, count).astype(np.float32)

    def step() -> object:
        a = np.sin((lat - np.float32(0.9)) / 2) ** 2 + np.cos(lat) * np.float32(0.62) * np.sin((lon - np.float32(0.2)) / 2) ** 2
        return np.float32(12742.0) * np.arcsin(np.sqrt(np.minimum(a, np.float32(1.0))))

    return step


FRESH: Final = (
    Program("mixed portfolio", partial(mixed_portfolio, 2_500, 60)),
    Program("sessions", partial(sessions, 100_000, 5_000)),
    Program("blur", partial(blur, 1080, 1920)),
    Program("equalise", partial(equalise, 500_000)),
    Program("logistic step", partial(logistic_step, 20_000, 100)),
    Program("nearest centre", partial(nearest, 20_000, 32)),
    Program("game of life", partial(life, 600)),
    Program("option price", partial(option_price, 20_000, 50)),
    Program("spectrum", partial(spectrum, 400_000, 512)),
    Program("sieve", partial(sieve, 1_000_000)),
    Program("rank correlation", partial(ranks, 50_000)),
    Program("group means", partial(group_means, 300_000, 200)),
    Program("table join", partial(joined, 100_000, 50_000)),
    Program("heat", partial(heat, 300)),
    Program("julia", partial(julia, 200, 20)),
    Program("gravity", partial(gravity, 400)),
    Program("whiten", partial(whiten, 40_000, 50)),
    Program("softmax loss", partial(softmax_loss, 256, 1000)),
    Program("power iteration", partial(power_iteration, 500)),
    Program("least squares", partial(least_squares, 10_000, 7)),
    Program("distinct kinds", partial(distinct, 200_000, 300)),
    Program("drawdown", partial(drawdown, 1_500_000)),
    Program("transposed sum", partial(transposed_sum, 1500, 1000)),
    Program("checksum", partial(crc_bytes, 300_000)),
    Program("top scores", partial(top_scores, 400_000, 100)),
    Program("exponential average", partial(exponential_average, 400, 2000)),
    Program("resample", partial(resample, 300_000, 10)),
    Program("quartiles", partial(quantiles, 20_000, 20)),
    Program("page rank", partial(page_rank, 20_000, 200_000)),
    Program("coordinates", partial(coordinates, 200_000)),
)
