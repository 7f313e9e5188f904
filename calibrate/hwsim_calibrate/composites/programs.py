"""Small numpy programs, which are both timed and recorded as lists of calls.

Each function prepares arrays and returns a step that can run any number of times. The steps hardly change the values, so
infinities and denormal numbers do not occur. `DEVELOPMENT` programs were used to develop the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from hwsim_calibrate.recording.operands import Array

Step = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Program:
    """A program.

    Args:
        name: name of the program.
        make: function that prepares the step.
        blind: whether the program serves only for validation.
    """

    name: str
    make: Callable[[], Step]
    blind: bool = True


def near_one(*shape: int, dtype: Any = np.float32, seed: int = 7) -> Array:
    """Return random numbers between 0.6 and 1.4."""
    drawn: Array = np.random.default_rng(seed).random(shape, dtype=np.float32) * np.float32(0.8) + np.float32(0.6)
    return drawn.astype(dtype)


def places(count: int, below: int) -> Array:
    """Return `count` random integers from 0 to `below` - 1."""
    return np.random.default_rng(3).integers(0, below, count)


# ---- used to develop the model ----


def mlp_step(batch: int, wide: int, hidden: int, classes: int, dtype: Any) -> Step:
    """Train one step: a hidden layer, softmax, gradient descent."""
    x, w1, b1 = (
        near_one(batch, wide, dtype=dtype),
        near_one(wide, hidden, dtype=dtype) / dtype(wide),
        near_one(hidden, dtype=dtype),
    )
    w2, b2 = near_one(hidden, classes, dtype=dtype) / dtype(hidden), near_one(classes, dtype=dtype)
    y, rate = np.eye(classes, dtype=dtype)[places(batch, classes)], dtype(1e-7)

    def step() -> None:
        z = x @ w1 + b1
        h = np.maximum(z, dtype(0))
        scores = h @ w2 + b2
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        g = (e / e.sum(axis=1, keepdims=True) - y) / dtype(batch)
        gh = (g @ w2.T) * (z > dtype(0))
        np.subtract(w2, rate * (h.T @ g), out=w2)
        np.subtract(b2, rate * g.sum(axis=0), out=b2)
        np.subtract(w1, rate * (x.T @ gh), out=w1)
        np.subtract(b1, rate * gh.sum(axis=0), out=b1)

    return step


def layernorm(rows: int, wide: int, dtype: Any) -> Step:
    """Apply layer normalization: normalize rows to mean 0 and variance 1, scale and shift."""
    x, scale, shift = near_one(rows, wide, dtype=dtype), near_one(wide, dtype=dtype), near_one(wide, dtype=dtype)
    part = dtype(1.0 / wide)

    def step() -> object:
        away = x - x.sum(axis=1, keepdims=True) * part
        spread = (away * away).sum(axis=1, keepdims=True) * part
        return away / np.sqrt(spread + dtype(1e-5)) * scale + shift

    return step


def attention(length: int, wide: int, dtype: Any) -> Step:
    """Compute one attention head: scores, softmax, weighted sums."""
    q, k, v = (near_one(length, wide, dtype=dtype, seed=seed) for seed in (1, 2, 3))
    root = dtype(wide**-0.5)

    def step() -> object:
        scores = (q @ k.T) * root
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        return (e / e.sum(axis=1, keepdims=True)) @ v

    return step


def adam(count: int, dtype: Any) -> Step:
    """Apply one step of Adam to a long vector, in place."""
    p, g, m, v = (near_one(count, dtype=dtype, seed=seed) for seed in range(4))
    t, u = near_one(count, dtype=dtype), near_one(count, dtype=dtype)

    def step() -> None:
        np.multiply(m, dtype(0.9), out=m)
        np.multiply(g, dtype(0.1), out=t)
        np.add(m, t, out=m)
        np.multiply(v, dtype(0.99), out=v)
        np.multiply(g, g, out=t)
        np.multiply(t, dtype(0.01), out=t)
        np.add(v, t, out=v)
        np.sqrt(v, out=u)
        np.add(u, dtype(1e-8), out=u)
        np.divide(m, u, out=t)
        np.multiply(t, dtype(1e-9), out=t)
        np.subtract(p, t, out=p)

    return step


def normal_dot(side: int, times: int) -> Step:
    """Draw and multiply random matrices: the benchmark of asynchronous computation in the textbook."""

    def step() -> None:
        for _ in range(times):
            a = np.random.normal(size=(side, side))  # noqa: NPY002 (as in the textbook)
            np.dot(a, a)

    return step


F4, F8 = np.float32, np.float64
DEVELOPMENT: Final = (
    Program("mlp small", partial(mlp_step, 64, 100, 64, 10, F4), blind=False),
    Program("mlp large", partial(mlp_step, 512, 784, 512, 10, F4), blind=False),
    Program("layernorm small", partial(layernorm, 32, 200, F4), blind=False),
    Program("layernorm large", partial(layernorm, 2000, 1000, F4), blind=False),
    Program("attention", partial(attention, 256, 64, F4), blind=False),
    Program("adam small", partial(adam, 3000, F4), blind=False),
    Program("adam large", partial(adam, 2_000_000, F4), blind=False),
)
TEXT: Final = Program("10 x normal(1000, 1000) and dot", partial(normal_dot, 1000, 10))
