"""Programs that were written before the model was first scored on them."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from hwsim_calibrate.composites.programs import F4, F8, Program, Step, attention, layernorm, mlp_step, near_one, places


def k_means(points: int, wide: int, groups: int, dtype: Any) -> Step:
    """Run one step of k-means: distances by a matmul, nearest centres, new centres by a matmul."""
    x, centres, one_hot = near_one(points, wide, dtype=dtype), near_one(groups, wide, dtype=dtype), np.eye(groups, dtype=dtype)

    def step() -> object:
        apart = (x * x).sum(axis=1)[:, None] - dtype(2) * (x @ centres.T) + (centres * centres).sum(axis=1)[None, :]
        belongs = one_hot[np.argmin(apart, 1)]
        return (belongs.T @ x) / (belongs.sum(axis=0)[:, None] + dtype(1))

    return step


def convolution(channels: int, side: int, kernel: int, filters: int, dtype: Any) -> Step:
    """Apply a convolution by im2col and a matmul, with bias and ReLU."""
    image, out = near_one(channels, side, side, dtype=dtype), side - kernel + 1
    seen = np.lib.stride_tricks.sliding_window_view(image, (kernel, kernel), (1, 2)).transpose(0, 3, 4, 1, 2)
    columns = np.ones((channels, kernel, kernel, out, out), dtype)
    weights, bias = near_one(filters, channels * kernel * kernel, dtype=dtype), near_one(filters, 1, dtype=dtype)

    def step() -> object:
        np.copyto(columns, seen)
        return np.maximum(weights @ columns.reshape(channels * kernel * kernel, out * out) + bias, dtype(0))

    return step


def blocked_matmul(side: int, block: int, dtype: Any) -> Step:
    """Multiply matrices block by block."""
    a, b, c = (near_one(side, side, dtype=dtype, seed=seed) for seed in (1, 2, 3))

    def step() -> None:
        for i in range(0, side, block):
            for j in range(0, side, block):
                c[i : i + block, j : j + block] = a[i : i + block] @ b[:, j : j + block]

    return step


def stencil(side: int, dtype: Any) -> Step:
    """Run one Jacobi iteration on a grid."""
    a, b = near_one(side, side, dtype=dtype), near_one(side, side, dtype=dtype)

    def step() -> None:
        b[1:-1, 1:-1] = (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]) * dtype(0.25)

    return step


def heat(count: int, turns: int, dtype: Any) -> Step:
    """Run several steps of the one-dimensional heat equation, in place."""
    u = near_one(count, dtype=dtype)

    def step() -> None:
        for _ in range(turns):
            u[1:-1] += dtype(0.1) * (u[2:] - dtype(2) * u[1:-1] + u[:-2])

    return step


def momentum(count: int, dtype: Any) -> Step:
    """Apply one step of gradient descent with momentum and weight decay."""
    p, g, v = (near_one(count, dtype=dtype, seed=seed) for seed in range(3))

    def step() -> None:
        np.multiply(v, dtype(0.9), out=v)
        np.add(v, g * dtype(1e-9) + p * dtype(1e-9), out=v)
        np.subtract(p, v * dtype(1e-9), out=p)

    return step


def softmax_loss(rows: int, classes: int, dtype: Any) -> Step:
    """Compute softmax and the log-likelihood."""
    scores, one_hot = near_one(rows, classes, dtype=dtype), np.eye(classes, dtype=dtype)[places(rows, classes)]

    def step() -> object:
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        p = e / e.sum(axis=1, keepdims=True)
        return np.sum(np.log(p) * one_hot)

    return step


def page_rank(nodes: int, edges: int, dtype: Any) -> Step:
    """Run one PageRank step: gather ranks along the edges and sum them by target."""
    rank, share = near_one(nodes, dtype=dtype), near_one(nodes, dtype=dtype)
    source, target = places(edges, nodes), np.sort(places(edges, nodes))

    def step() -> object:
        flow = np.take(rank * share, source)
        return np.bincount(target, flow, nodes) * 0.85 + 0.15

    return step


def neighbours(nodes: int, degree: int, wide: int, dtype: Any) -> Step:
    """Apply a graph network layer: gather and average the neighbours' rows, and multiply."""
    x, w, edges = near_one(nodes, wide, dtype=dtype), near_one(wide, wide, dtype=dtype), places(nodes * degree, nodes)

    def step() -> object:
        mean = x[edges].reshape(nodes, degree, wide).sum(axis=1) * dtype(1.0 / degree)
        return np.maximum(mean @ w, dtype(0))

    return step


def embedding(words: int, wide: int, batch: int, dtype: Any) -> Step:
    """Look up, scale and sum the rows of an embedding table."""
    table, index = near_one(words, wide, dtype=dtype), places(batch, words)

    def step() -> object:
        return (table[index] * dtype(0.5)).sum(axis=0)

    return step


def histogram(count: int, bins: int) -> Step:
    """Compute a weighted histogram."""
    x, weight = near_one(count, dtype=F8), near_one(count, dtype=F8)

    def step() -> object:
        index = (x * (bins / 2.0)).astype(np.int64)
        return np.bincount(index, weight, bins)

    return step


def pca(rows: int, wide: int, dtype: Any) -> Step:
    """Run one subspace iteration on centred data."""
    x, basis = near_one(rows, wide, dtype=dtype), near_one(wide, 8, dtype=dtype)

    def step() -> object:
        away = x - x.mean(axis=0)
        image = away.T @ (away @ basis)
        return image / np.sqrt((image * image).sum(axis=0))

    return step


def standardise(rows: int, wide: int, dtype: Any) -> Step:
    """Normalize each column to mean 0 and variance 1."""
    x = near_one(rows, wide, dtype=dtype)

    def step() -> object:
        away = x - x.mean(axis=0)
        return away / np.sqrt((away * away).mean(axis=0) + dtype(1e-6))

    return step


def logistic(rows: int, wide: int, dtype: Any) -> Step:
    """Run one step of logistic regression."""
    x, y, w = near_one(rows, wide, dtype=dtype), near_one(rows, dtype=dtype), near_one(wide, dtype=dtype) * dtype(1e-3)

    def step() -> None:
        p = dtype(1) / (dtype(1) + np.exp(-(x @ w)))
        np.subtract(w, dtype(1e-9) * (x.T @ (p - y)), out=w)

    return step


def black_scholes(count: int, dtype: Any) -> Step:
    """Price options by Black–Scholes, with tanh for the normal distribution."""
    spot, strike, time = (near_one(count, dtype=dtype, seed=seed) for seed in range(3))

    def step() -> object:
        root = np.sqrt(time) * dtype(0.2)
        d1 = (np.log(spot / strike) + time * dtype(0.07)) / root
        n1 = dtype(0.5) + dtype(0.5) * np.tanh(d1 * dtype(0.8))
        n2 = dtype(0.5) + dtype(0.5) * np.tanh((d1 - root) * dtype(0.8))
        return spot * n1 - strike * np.exp(time * dtype(-0.05)) * n2

    return step


def gelu(rows: int, wide: int, dtype: Any) -> Step:
    """Apply a linear layer with GELU."""
    x, w, b = near_one(rows, wide, dtype=dtype), near_one(wide, 4 * wide, dtype=dtype), near_one(4 * wide, dtype=dtype)

    def step() -> object:
        h = x @ w + b
        return h * (dtype(1) + np.tanh(h * dtype(0.8) + h * h * h * dtype(0.036))) * dtype(0.5)

    return step


def recurrent(batch: int, wide: int, turns: int, dtype: Any) -> Step:
    """Run several steps of a recurrent network."""
    x, h0 = near_one(turns, batch, wide, dtype=dtype), near_one(batch, wide, dtype=dtype)
    wx, wh, b = near_one(wide, wide, dtype=dtype), near_one(wide, wide, dtype=dtype), near_one(wide, dtype=dtype)

    def step() -> object:
        h = h0
        for turn in range(turns):
            h = np.tanh(x[turn] @ wx + h @ wh + b)
        return h

    return step


def batch_norm(rows: int, wide: int, dtype: Any) -> Step:
    """Apply batch normalization and ReLU."""
    x, scale, shift = near_one(rows, wide, dtype=dtype), near_one(wide, dtype=dtype), near_one(wide, dtype=dtype)

    def step() -> object:
        mean = x.sum(axis=0) * dtype(1.0 / rows)
        away = x - mean
        part = (away * away).sum(axis=0) * dtype(1.0 / rows)
        return np.maximum(away * (scale / np.sqrt(part + dtype(1e-5))) + shift, dtype(0))

    return step


def knn(queries: int, points: int, wide: int, dtype: Any) -> Step:
    """Find nearest neighbours: scores of all pairs, sorted rows, top ten."""
    q, x = near_one(queries, wide, dtype=dtype), near_one(points, wide, dtype=dtype, seed=1)

    def step() -> object:
        return np.sort(q @ x.T)[:, -10:]

    return step


def power_iteration(side: int, turns: int, dtype: Any) -> Step:
    """Run several power iterations of a matrix."""
    a, v0 = near_one(side, side, dtype=dtype), near_one(side, dtype=dtype)

    def step() -> object:
        v = v0
        for _ in range(turns):
            v = a @ v
            v = v / np.sqrt((v * v).sum())
        return v

    return step


def gradient_of_least_squares(rows: int, wide: int, dtype: Any) -> Step:
    """Compute the gradient X^T (X W - Y) and apply a step."""
    x, w, y = near_one(rows, wide, dtype=dtype), near_one(wide, 16, dtype=dtype), near_one(rows, 16, dtype=dtype)

    def step() -> None:
        np.subtract(w, (x.T @ (x @ w - y)) * dtype(1e-12), out=w)

    return step


def monte_carlo(count: int) -> Step:
    """Price an option by Monte Carlo simulation."""

    def step() -> object:
        drawn = np.random.normal(size=count)  # noqa: NPY002 (legacy programs use it)
        return np.maximum(np.exp(drawn * 0.2 - 0.02) - 1.0, 0.0).mean()

    return step


def wave(count: int, dtype: Any) -> Step:
    """Compute sine and cosine of a phase, and their power."""
    t = near_one(count, dtype=dtype)

    def step() -> object:
        phase = t * dtype(3.0)
        s, c = np.sin(phase), np.cos(phase)
        return np.sqrt(s * s + c * c + dtype(0.1))

    return step


def running_sum(count: int, dtype: Any) -> Step:
    """Compute absolute differences, with their maximum and sum."""
    x = near_one(count, dtype=dtype)

    def step() -> object:
        change = np.absolute(x[1:] - x[:-1])
        return np.max(change), np.sum(change)

    return step


def low_rank(rows: int, rank: int, dtype: Any) -> Step:
    """Add a product of thin matrices to a large matrix, in place."""
    w, a, b = near_one(rows, rows, dtype=dtype), near_one(rows, rank, dtype=dtype), near_one(rank, rows, dtype=dtype)

    def step() -> None:
        np.add(w, (a @ b) * dtype(1e-9), out=w)

    return step


def turn(rows: int, columns: int, dtype: Any) -> Step:
    """Copy the transpose of a matrix, and scale it."""
    a, b = near_one(rows, columns, dtype=dtype), near_one(columns, rows, dtype=dtype)

    def step() -> None:
        np.copyto(b, a.T)
        np.multiply(b, dtype(1.0000001), out=b)

    return step


BLIND: Final = (
    Program("mlp medium", partial(mlp_step, 128, 300, 200, 20, F4)),
    Program("mlp fp64", partial(mlp_step, 200, 400, 100, 10, F8)),
    Program("layernorm medium fp64", partial(layernorm, 500, 400, F8)),
    Program("attention long", partial(attention, 900, 64, F4)),
    Program("attention tiny", partial(attention, 24, 16, F4)),
    Program("k-means small", partial(k_means, 600, 8, 6, F4)),
    Program("k-means large", partial(k_means, 40_000, 24, 24, F4)),
    Program("convolution small", partial(convolution, 3, 32, 5, 8, F4)),
    Program("convolution large", partial(convolution, 24, 66, 3, 48, F4)),
    Program("blocked matmul small", partial(blocked_matmul, 160, 32, F8)),
    Program("blocked matmul large", partial(blocked_matmul, 600, 150, F8)),
    Program("stencil small", partial(stencil, 60, F8)),
    Program("stencil medium", partial(stencil, 500, F8)),
    Program("stencil large", partial(stencil, 1500, F8)),
    Program("heat", partial(heat, 20_000, 5, F8)),
    Program("momentum small", partial(momentum, 10_000, F4)),
    Program("momentum large", partial(momentum, 1_500_000, F4)),
    Program("softmax loss", partial(softmax_loss, 2000, 100, F4)),
    Program("page rank small", partial(page_rank, 5000, 40_000, F8)),
    Program("page rank large", partial(page_rank, 400_000, 1_500_000, F8)),
    Program("neighbours", partial(neighbours, 6000, 8, 32, F4)),
    Program("embedding", partial(embedding, 100_000, 64, 4000, F4)),
    Program("histogram", partial(histogram, 300_000, 64)),
    Program("pca step", partial(pca, 3000, 120, F8)),
    Program("standardise", partial(standardise, 5000, 60, F4)),
    Program("logistic", partial(logistic, 4000, 250, F8)),
    Program("black-scholes small", partial(black_scholes, 1500, F8)),
    Program("black-scholes large", partial(black_scholes, 400_000, F8)),
    Program("gelu layer", partial(gelu, 256, 192, F4)),
    Program("recurrent", partial(recurrent, 32, 96, 6, F4)),
    Program("batch norm", partial(batch_norm, 1500, 300, F4)),
    Program("nearest neighbours", partial(knn, 48, 3000, 24, F4)),
    Program("power iteration", partial(power_iteration, 700, 5, F8)),
    Program("least squares", partial(gradient_of_least_squares, 6000, 100, F4)),
    Program("monte carlo", partial(monte_carlo, 200_000)),
    Program("wave", partial(wave, 50_000, F8)),
    Program("differences", partial(running_sum, 600_000, F4)),
    Program("low rank", partial(low_rank, 1024, 24, F4)),
    Program("turn", partial(turn, 600, 900, F4)),
)
