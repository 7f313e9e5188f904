"""Fit of the tiles of a GPU's matmuls of one number format.

The model is a vectorized version of `hwsim.devices.gpu_matmul`; a test compares both. Measurements cannot separate peak and
efficiency, so the peak is the sustained rate of large matmuls, and the efficiency remains 100 %.

Split-k adds two parameters (the maximum number of splits, and the time of the reduction) and would always fit the noise better.
It is used only if it reduces the loss, the negative log-likelihood, by more than log(rows). This is the Bayesian information
criterion, which charges log(rows) / 2 per parameter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product as pairs
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim.devices.gpu_matmul import MIN_SPLIT_STEPS, PIECES, ROUNDING, Alignment, Tiling, tiles_of
from hwsim.devices.work import Work
from hwsim_calibrate.fit.least_squares import Floats, Problem, solve

# (shorter side of the smallest tile, elements of the largest tile, maximum number of splits of k)
TILES: Final = tuple(pairs((16, 32, 64), (128 * 128, 256 * 128), (1, 4, 16, 64)))
# Parameter -> (start value, spread as a factor e^spread). `balance` is the side of the square tile whose operands load as fast as
# it is computed; in this unit, `loads` is similar on all GPUs.
TYPICAL: Final = {
    "prologue": (64.0, 1.0), "edge": (8.0, 0.7), "lost": (0.4, 0.8), "balance": (100.0, 0.5), "start": (3e-6, 1.0),
    "adding": (2e-6, 1.0), "transposed": (0.9, 0.3), "between": (1.0, 0.3), "below": (0.7, 0.7),
}  # fmt: skip
NAMES: Final = ("rate", *TYPICAL)
SHARES: Final = ("lost", "transposed", "between", "below")  # at most 1
STEP: Final = 1e-4  # for numerical derivatives
ROUGH_STEPS: Final = 8  # of the solver for each choice of tiles
FINAL_COUNT: Final = 3  # choices of tiles that are solved to convergence
_ALIGNED: Final = Alignment()


Tiles = tuple[int, int, int]


class TimedMatmul(NamedTuple):
    """A measured matmul with its time (s).

    memory: time for transferring its matrices once between memory and GPU (s).
    """

    work: Work
    seconds: float
    memory: float


class Chip(NamedTuple):
    """Properties of the GPU: multiprocessors, memory bandwidth (B/s), and time between consecutive kernels (s)."""

    multiprocessors: int
    bandwidth: float
    launch: float


class MatmulModel:
    """The times of some matmuls with given tiles, as a function of the parameters."""

    def __init__(self, rows: Sequence[TimedMatmul], chip: Chip, tiles: Tiles) -> None:
        shapes = [row.work.product for row in rows if row.work.product is not None]
        smallest, largest, splits = tiles
        pieces = [2.0**power for power in range(splits.bit_length())]
        m, n, k = (np.array([[float(getattr(shape, key))] for shape in shapes]) for key in "mnk")
        self.cuts = np.array([(a, b, s) for a, b in tiles_of(smallest, largest) for s in pieces], np.float64).T
        rows_, columns, split = self.cuts
        self.side, self.chip, self.depth = math.sqrt(largest), chip, k / split
        self.tiles = np.ceil(m / rows_) * np.ceil(n / columns) * split
        self.operands = np.minimum(m, rows_) + np.minimum(n, columns)
        self.moved = np.where(self.depth < np.where(split > 1, MIN_SPLIT_STEPS, 0), np.inf, 0.0)  # libraries have no such kernel
        self.moved += np.where(split > 1, PIECES * m * n * (split + 1) / chip.bandwidth, 0.0)
        self.memory = np.array([[row.memory] for row in rows])
        widths = [row.work.reads / (shape.k * (shape.m + shape.n)) for row, shape in zip(rows, shapes, strict=True)]
        step = np.array([[min(s.n & -s.n, s.k & -s.k) * width] for s, width in zip(shapes, widths, strict=True)])
        self.below = step < _ALIGNED.least
        self.between = (step < _ALIGNED.best) & ~self.below
        self.transposed = np.array([[shape.transposed] for shape in shapes])

    def seconds(self, x: Floats, cut: NDArray[np.int64] | None = None) -> Floats:
        """Return the time (s) of every matmul with every cut, or with one cut per matmul."""
        value = dict(zip(NAMES, np.exp(x), strict=True))
        value |= {name: min(value[name], 1.0) for name in SHARES}

        def select(array: Floats) -> Floats:
            every = np.broadcast_to(array, self.tiles.shape)
            return every if cut is None else np.take_along_axis(every, cut, 1)

        (rows, columns, splits), depth, edge = map(select, self.cuts), select(self.depth), value["edge"]
        aligned = np.where(self.below, value["below"], np.where(self.between, value["between"], 1.0))
        rate = aligned * value["rate"] / self.chip.multiprocessors
        relative = np.minimum(1.0, (1.0 + 2.0 * edge / self.side) / (1.0 + edge * (1.0 / rows + 1.0 / columns)))
        side = np.where(self.transposed, value["balance"] / value["transposed"], value["balance"])
        tile = np.maximum(
            2.0 * rows * columns * (depth + value["prologue"]) / (rate * relative), side * select(self.operands) * depth / rate
        )
        exact = select(self.tiles) / self.chip.multiprocessors
        busy = np.where(exact <= 1.0, 1.0, value["lost"] * np.ceil(exact) + (1.0 - value["lost"]) * exact) * tile
        longer = np.maximum(busy, self.memory)
        both = longer * ((busy / longer) ** ROUNDING + (self.memory / longer) ** ROUNDING) ** (1.0 / ROUNDING)
        adding = np.where(splits > 1, value["adding"] + select(self.moved), 0.0)
        return np.asarray(both + adding + value["start"] + self.chip.launch, np.float64)

    def times(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the time (s) of each matmul with its fastest cut, and the derivatives by each x."""
        every = self.seconds(x)
        fastest = every.argmin(axis=1)[:, None]
        value = np.take_along_axis(every, fastest, 1)[:, 0]
        slopes = [(self.seconds(x + STEP * unit, fastest)[:, 0] - value) / STEP for unit in np.eye(len(x))]
        return value, np.stack(slopes, axis=1)


def fit_tiles(rows: Sequence[TimedMatmul], chip: Chip) -> tuple[float, Tiling]:
    """Return the sustained rate of large matmuls (FLOP/s), and the tiling that fits the matmuls best."""
    measured = np.array([row.seconds for row in rows])
    fastest = max(row.work.flop / row.seconds for row in rows)
    start = np.log([fastest, *(value for value, _ in TYPICAL.values())])
    spread = np.array([0.5, *(width for _, width in TYPICAL.values())])

    def solve_for(tiles: Tiles, guess: Floats | None, steps: int) -> tuple[float, Tiles, Floats]:
        model = MatmulModel(rows, chip, tiles)
        x = solve(Problem(model.times, measured, start, spread, np.ones(len(rows))), guess, steps=steps)
        return float(np.log1p((np.log(model.times(x)[0] / measured) / 0.05) ** 2).sum()), tiles, x

    rough = sorted((solve_for(tiles, None, ROUGH_STEPS) for tiles in TILES), key=lambda trial: trial[0])
    unsplit = next(place for place, (_, tiles, _) in enumerate(rough) if tiles[2] == 1)
    final = [solve_for(rough[place][1], rough[place][2], 60) for place in sorted({*range(FINAL_COUNT), unsplit})]
    _, (smallest, largest, splits), x = min(final, key=lambda trial: trial[0] + (math.log(len(rows)) if trial[1][2] > 1 else 0.0))
    number: dict[str, Any] = {name: float(f"{value:.4g}") for name, value in zip(NAMES, np.exp(x).tolist(), strict=True)}
    number |= {name: min(number[name], 1.0) for name in SHARES}
    rate, between, below = (number.pop(name) for name in ("rate", "between", "below"))
    widths = [row.work.reads / (shape.k * (shape.m + shape.n)) for row in rows if (shape := row.work.product) is not None]
    loads = float(f"{widths[0] * rate / chip.multiprocessors / number.pop('balance'):.4g}")
    alignment = Alignment(between=between, below=min(below, between))
    if splits == 1:
        number["adding"] = 0.0
    return rate, Tiling(smallest=smallest, loads=loads, largest=largest, splits=splits, alignment=alignment, **number)
