"""One set of GEMM constants for many GPUs: used for GPUs without measured GEMMs.

Constants are in units that GPUs have in common: launch times in cycles, bandwidth of a multiprocessor in bytes per 16-bit
operation of its peak, and the others as in `hwsim.devices.gpu_matmul`, whose formulas are evaluated here for all GEMMs and
splits at once (a test compares both).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.devices import Gpu, MatmulShape
from hwsim.devices.gpu_matmul import MIN_SPLIT_STEPS, PIECES, Alignment, Cast, Tiling, tiles_of
from hwsim.devices.gpu_matmul_cost import CACHED_OPERAND_SHARE
from hwsim.devices.gpu_memory import Launch
from hwsim_calibrate.fit.least_squares import Problem, solve

Floats = NDArray[np.float64]
Constants = Mapping[str, float]

# Initial value of a fit, and its prior spread as a factor e^spread.
TYPICAL: Final[Mapping[str, tuple[float, float]]] = {
    "efficiency": (0.75, 0.3),
    "cycles": (5000.0, 0.5),
    "memory": (0.8, 0.3),
    "prologue": (100.0, 1.0),
    "edge": (15.0, 1.0),
    "lost": (0.15, 1.0),
    "loads": (0.018, 0.7),
    "adding": (2.5e-6, 0.5),
    "cast": (4e-6, 1.0),
    "row": (5e-8, 2.0),
    "rate": (20e9, 1.0),
}
CASTS: Final = ("cast", "row", "rate")
OWN: Final = ("efficiency", "memory", "cycles")  # constants that three measurements of a new GPU would determine
MOST: Final[Mapping[str, float]] = {"efficiency": 1.0, "memory": 1.0, "lost": 1.0, "edge": 80.0}
STEP: Final = 1e-4  # step of a numerical derivative
GRAPH: Final = 1.3e-6  # time between consecutive kernels of a GPU without a stated value


@dataclass(frozen=True, slots=True)
class Tiles:
    """Tiles of a kind of kernels: shorter and longer side of the smallest, elements of the largest, maximum splits of k."""

    smallest: int
    rows: int
    largest: int
    splits: int


@dataclass(frozen=True, slots=True)
class Timed:
    """A GEMM on a GPU, and its time. widths: bytes per element of both factors; out: of the result."""

    gpu: Gpu
    dtype: str
    product: MatmulShape
    widths: tuple[float, float]
    out: float
    cast: float
    seconds: float
    weight: float = 1.0


class Batch:
    """Times of these GEMMs with any constants."""

    def __init__(self, rows: Sequence[Timed], tiles: Tiles) -> None:
        cuts = [
            (a, b, 2.0**power)
            for a, b in tiles_of(tiles.smallest, tiles.largest, tiles.rows)
            for power in range(tiles.splits.bit_length())
        ]
        self.rows, self.columns, self.splits = np.array(cuts, np.float64).T
        self.side = math.sqrt(tiles.largest)

        def column(values: Iterable[float | None]) -> Floats:
            return np.array([list(values)], np.float64).T

        m, n, k = (column([getattr(row.product, key) for row in rows]) for key in "mnk")
        self.sms = column([row.gpu.sms for row in rows])
        self.peak = column([row.gpu.flop[row.dtype] for row in rows])
        self.half = column([row.gpu.flop["bf16"] for row in rows])
        self.bandwidth = column([row.gpu.memory.bandwidth for row in rows])
        self.clock = column([row.gpu.clock or 1.9e9 for row in rows])
        first, second, out = (column(width) for width in zip(*((*row.widths, row.out) for row in rows), strict=True))
        left = m * k * first
        room = CACHED_OPERAND_SHARE * column([row.gpu.l2.size if row.gpu.l2 else 1.0 for row in rows])
        self.crossing = n * k * second + m * n * out + left / (1.0 + (room / left) ** 4)
        self.depth = k / self.splits
        self.tiles = np.ceil(m / self.rows) * np.ceil(n / self.columns) * self.splits
        self.operands = np.minimum(m, self.rows) * first + np.minimum(n, self.columns) * second
        self.moved = np.where(self.splits > 1, PIECES * m * n * (self.splits + 1) / self.bandwidth, 0.0)
        self.moved += np.where((self.splits > 1) & (self.depth < MIN_SPLIT_STEPS), np.inf, 0.0)
        before = column([row.cast for row in rows])
        self.lines = np.where(before > 0, m, 0.0)
        self.converted = np.where(before > 0, m * k * (before + first), 0.0)
        self.held = self.converted <= room
        self.measured = np.array([row.seconds for row in rows])
        self.weights = np.array([row.weight for row in rows])

    def seconds(self, value: Constants, at: NDArray[np.int64] | None = None) -> Floats:
        """Return the time of every GEMM and split, or of one split of each GEMM."""

        def of(array: Floats) -> Floats:
            every = np.broadcast_to(array, self.tiles.shape)
            return every if at is None else np.take_along_axis(every, at, 1)

        value = {key: min(constant, MOST.get(key, math.inf)) for key, constant in value.items()}
        rows, columns, edge = of(self.rows), of(self.columns), value["edge"]
        rate = value["efficiency"] * self.peak / self.sms
        relative = np.minimum(1.0, (1.0 + 2.0 * edge / self.side) / (1.0 + edge * (1.0 / rows + 1.0 / columns)))
        computing = 2.0 * rows * columns * (of(self.depth) + value["prologue"]) / (rate * relative)
        loading = of(self.operands) * of(self.depth) / (value["loads"] * self.half / self.sms)
        exact = of(self.tiles) / self.sms
        turns = np.where(exact <= 1.0, 1.0, value["lost"] * np.ceil(exact) + (1.0 - value["lost"]) * exact)
        busy = turns * np.maximum(computing, loading)
        memory = self.crossing / (self.bandwidth * value["memory"])
        most = np.maximum(busy, memory)
        both = most * (1.0 + (np.minimum(busy, memory) / most) ** 4) ** 0.25
        adding = np.where(of(self.splits) > 1, value["adding"], 0.0) + of(self.moved)
        speed = value["rate"] * self.sms
        speed = np.where(self.held, speed, np.minimum(speed, self.bandwidth * value["memory"]))
        cast = np.where(self.lines > 0, value["cast"] + self.lines * value["row"] / self.sms + self.converted / speed, 0.0)
        return np.asarray(both + adding + cast + value["cycles"] / self.clock, np.float64)


def fit(
    rows: Sequence[Timed], tiles: Tiles, *, known: Constants | None = None, free: Sequence[str] = (), steps: int = 40
) -> dict[str, float]:
    """Return the constants with the least error; of `known` constants, only `free` ones change."""
    batch = Batch(rows, tiles)
    start = {key: value for key, (value, _) in TYPICAL.items()} | dict(known or {})
    casts = any(row.cast > 0 for row in rows)
    names = list(free) or [key for key in TYPICAL if (casts or key not in CASTS) and (tiles.splits > 1 or key != "adding")]

    def value(x: Floats) -> dict[str, float]:
        return start | dict(zip(names, np.exp(x).tolist(), strict=True))

    def times(x: Floats) -> tuple[Floats, Floats]:
        every = batch.seconds(value(x))
        at = every.argmin(axis=1)[:, None]
        took = np.take_along_axis(every, at, 1)[:, 0]
        slopes = [(batch.seconds(value(x + STEP * unit), at)[:, 0] - took) / STEP for unit in np.eye(len(x))]
        return took, np.stack(slopes, axis=1)

    guess = np.log([start[key] for key in names])
    spread = np.array([TYPICAL[key][1] for key in names])
    found = value(solve(Problem(times, batch.measured, guess, spread, batch.weights), steps=steps, scale=0.05))
    return {key: min(constant, MOST.get(key, math.inf)) for key, constant in found.items()}


def tiling(constants: Constants, gpu: Gpu, tiles: Tiles, *, casts: bool) -> Tiling:
    """Return the constants as in this GPU's file."""
    launch = gpu.launch.by("graph")[1] if isinstance(gpu.launch, Launch) else GRAPH
    return Tiling(
        efficiency=constants["efficiency"],
        smallest=tiles.smallest,
        rows=tiles.rows,
        largest=tiles.largest,
        splits=tiles.splits,
        edge=constants["edge"],
        prologue=constants["prologue"],
        lost=constants["lost"],
        loads=constants["loads"] * gpu.flop["bf16"] / (gpu.sms or 1),
        memory=constants["memory"],
        adding=constants["adding"],
        start=max(constants["cycles"] / (gpu.clock or 1.9e9) - launch, 1e-9),
        cast=Cast(start=constants["cast"], row=constants["row"], rate=constants["rate"]) if casts else None,
        alignment=Alignment(),
    )
