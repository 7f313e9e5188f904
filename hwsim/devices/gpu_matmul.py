"""Matmuls on a GPU: the result is cut into tiles, which the SMs compute in waves.

A matmul (m x k) by (k x n) is cut into tiles of rows x columns of the result, and k into `splits` pieces whose partial results
are summed afterwards (split-K):

    tiles = ceil(m / rows) ceil(n / columns) splits batch
    waves = tiles / SMs, at least 1; a partial last wave counts for more than its tiles
    tile  = max(2 rows columns (k / splits + prologue) / rate, bytes of its rows and columns of the operands / loads)
    time  = ((waves x tile)^4 + memory^4)^(1/4) + time to sum the pieces

The library takes the tile and the splits with the shortest time. `rate` and `loads` apply to one SM. `memory` is the time to
transfer each matrix to or from memory once. If a separate kernel first casts (quantizes) the first operand to the number format
of the matmul, it takes

    cast.start + m x cast.row / SMs + bytes / (cast.rate x SMs)

**Source**: tiles and waves as in NVIDIA, "Matrix Multiplication Background User's Guide", DU-09799-001, 2023, chapters
2 and 3; prologue and splits as in CUTLASS, "Efficient GEMM in CUDA". The constants are fitted; each part file names the data.
**Error**: see `docs/validation/components.md`; a few per cent for matmuls with more than 128 rows and columns.
**Range**: skinny matmuls (a side of 128 or less) depend on the kernels of the library: a tenth of them is off by a third or
more. Libraries without split-K (older ones, and most block-scaled kernels) take up to four times as long for some of them;
`software` of an op and `splits` of a part model this. Strides that hit the same memory channel (powers of two on AMD's GCN) are
not modelled. Weights come from memory, because a model is larger than the cache. In a benchmark that repeatedly multiplies by
the same few weights, they stay in the cache: give such an op a `working_set`.

More work never takes less time if both matmuls are equally well aligned. A size rounded up to a multiple of 16 or 128 bytes can
take less (`Alignment`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from hwsim.demand import fourth_power, fourth_root, soft_max
from hwsim.devices.kind import prefix_problems
from hwsim.devices.work import MatmulShape
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import BYTES, Bytes, BytesPerSecond, Ratio, Seconds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ROUNDING: Final = 4.0  # sharpness of the knee between computing and memory; 3 to 6 fit the published matmuls equally well
PIECES: Final = 4.0  # bytes of an element of a partial result, in fp32
MAX_TILE_ASPECT: Final = 8  # maximum aspect ratio of a tile in libraries
MIN_SPLIT_STEPS: Final = 64  # minimum steps of k in a piece: the pipeline depth of a kernel
PLAN_CACHE_SIZE: Final = 8192  # matmuls whose best cut is cached

VARIANTS: Final = (["block"], ["weights"])  # second words of keys that name a variant, not a library

NEAR: Final = 1.0 + 1e-9  # ratio of times that are equal except for rounding

_TIME: Final = attrgetter("time")

# Number formats whose tiles replace those of a number format without tiles, best first.
LIKE: Final[Mapping[str, tuple[str, ...]]] = {
    "fp64": ("fp32",),
    "fp32": (),
    "tf32": ("fp16", "bf16", "fp32"),
    "fp16": ("bf16", "fp32"),
    "bf16": ("fp16", "fp32"),
    "fp8": ("int8", "fp16", "bf16", "fp32"),
    "fp4": ("fp8", "int8", "fp16", "bf16", "fp32"),
    "int64": ("fp64", "fp32"),
    "int32": ("fp32",),
    "bool": ("int8", "fp32"),
    "int8": ("fp8", "fp16", "bf16", "fp32"),
    "int4": ("int8", "fp8", "fp16", "bf16", "fp32"),
}


@dataclass(frozen=True, slots=True)
class Alignment:
    """The slowdown of a matmul whose matrix rows do not start at aligned addresses.

    The alignment is the largest power of two that divides both n and k (the lengths of the rows, in bytes).

    **Source** of the defaults of 16 and 128 bytes: NVIDIA, "Matrix Multiplication Background User's Guide", section 2.2.
    """

    least: Bytes = field("row alignment required for vector loads", default=16.0, exclusive_minimum=0.0)
    best: Bytes = field("row alignment required for loads at full speed", default=128.0, exclusive_minimum=0.0)
    between: Ratio = field("share of the speed at an alignment between `least` and `best`", default=1.0, exclusive_minimum=0.0)
    below: Ratio = field("share of the speed at an alignment below `least`", default=1.0, exclusive_minimum=0.0)

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid combination of keys."""
        if self.best < self.least:
            yield "best", f"expected at least `least`, {self.least:g} B, got {self.best:g} B", None
        if self.below > self.between:
            yield "below", f"expected at most `between`, {self.between:g}, got {self.below:g}", None

    def keeps(self, n: int, k: int, width: float) -> float:
        """Return the share of the speed that remains, for elements of `width` bytes.

        >>> tensor = Alignment(between=0.75, below=0.4)
        >>> tensor.keeps(4096, 4096, 2), tensor.keeps(4096, 4072, 2), tensor.keeps(4096, 4095, 2)
        (1.0, 0.75, 0.4)
        """
        step = min(n & -n, k & -k) * width
        if step >= self.best:
            return 1.0
        return self.between if step >= self.least else self.below


@dataclass(frozen=True, slots=True)
class Cast:
    """A kernel before the matmul that casts the first operand from 16 bits to the number format of the matmul.

    **Source**: fitted to kernels of serving frameworks, which quantize activations per token; each part names the data.
    """

    start: Seconds = field("startup time of the cast kernel, and of the matmul kernel after it", default=0.0)
    row: Seconds = field("time of one row of the first operand on one SM", default=0.0)
    rate: BytesPerSecond | None = field("bytes read and written per second by one SM (default: the memory bandwidth)",
                                        default=None, exclusive_minimum=0.0)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tiling:
    """The matmul kernels of a GPU's library for one number format."""

    efficiency: Ratio = field("sustained share of the peak in large matmuls (clocks, power, instructions)",
                              default=1.0, exclusive_minimum=0.0)  # fmt: skip
    smallest: int = field("shorter side of the smallest tile", default=16, minimum=1)
    rows: int | None = field("longer side of the smallest tile, set by the matrix instruction (default: `smallest`)",
                             default=None, minimum=1)  # fmt: skip
    largest: int = field("number of elements of the largest tile", default=256 * 128, minimum=1)
    edge: float = field("edge loss e: a tile of a x b reaches 1 / (1 + e (1/a + 1/b)) of the speed of an infinite tile",
                        default=0.0, minimum=0.0)  # fmt: skip
    prologue: float = field("time of the prologue and epilogue of a tile, in steps of k", default=0.0, minimum=0.0)
    splits: int = field("maximum number of pieces that k is split into (split-K)", default=1, minimum=1)
    adding: Seconds = field("startup time of the sum over the split-K pieces", default=0.0)
    lost: Ratio = field("wave quantization: share of the idle slots of the last wave that is lost", default=1.0)
    loads: BytesPerSecond | None = field("bandwidth of operands into one SM; unlimited if omitted",
                                         default=None, exclusive_minimum=0.0)  # fmt: skip
    transposed: Ratio = field("operand bandwidth for a second operand stored as n x k, relative to `loads`",
                              default=1.0, exclusive_minimum=0.0)  # fmt: skip
    memory: Ratio | None = field("share of the memory bandwidth reached if half of the last-level cache holds part of the first "
                                 "operand (default: `sustained`, with every operand read from memory)",
                                 default=None, exclusive_minimum=0.0)  # fmt: skip
    start: Seconds = field("startup time of a matmul, on top of the kernel launch", default=0.0)
    cast: Cast | None = field("cast of the first operand to the number format of the matmul (default: no cast)", default=None)
    alignment: Alignment = field("slowdown of matmuls with unaligned rows", default_factory=Alignment)

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid combination of keys."""
        longer = max(self.smallest, self.rows or 0)
        if self.largest < self.smallest * longer:
            yield "largest", f"expected at least the smallest tile, {longer} x {self.smallest}, got {self.largest}", None
        yield from prefix_problems("alignment", self.alignment.problems())

    def arriving(self, product: MatmulShape) -> float:
        """Return the operand bandwidth of an SM (B/s) for the layout of a matmul's operands."""
        loads = math.inf if self.loads is None else self.loads
        return loads * self.transposed if product.transposed else loads

    def relative(self, rows: int, columns: int) -> float:
        """Return the speed of a tile relative to the largest tile.

        >>> Tiling(edge=8.0, largest=16384).relative(128, 128), round(Tiling(edge=8.0, largest=16384).relative(64, 64), 2)
        (1.0, 0.9)
        """
        side = math.sqrt(self.largest)
        return min(1.0, (1.0 + 2.0 * self.edge / side) / (1.0 + self.edge * (1.0 / rows + 1.0 / columns)))


@dataclass(frozen=True, slots=True)
class Chip:
    """The numbers of a GPU that determine a matmul.

    Args:
        multiprocessors: number of SMs.
        peak: FLOP/s of all SMs in the number format of the computation.
        bandwidth: memory bandwidth (B/s), at which split-K pieces are summed.
    """

    multiprocessors: int
    peak: float
    bandwidth: float


@dataclass(frozen=True, slots=True)
class TilePlan:
    """A way to cut a matmul into tiles, and its duration.

    Args:
        rows: rows of a tile.
        columns: columns of a tile.
        splits: number of pieces of k.
        tiles: number of tiles of the result x splits x batch.
        waves: number of waves, at least 1.
        computing: time of the arithmetic of one tile (s).
        loading: time to load the operands of one tile (s).
        adding: time to sum the pieces of k (s).
        time: duration of the whole matmul (s).
    """

    rows: int
    columns: int
    splits: int
    tiles: int
    waves: float
    computing: float
    loading: float
    adding: float
    time: float

    @property
    def tile(self) -> float:
        """Time of one tile on one SM (s)."""
        return max(self.computing, self.loading)


def waves(tiles: int, multiprocessors: int, lost: float) -> float:
    """Return the time of all tiles over the time of one tile: 1 up to one tile per SM, then between proportional and whole waves.

    >>> waves(108, 108, 1.0), waves(109, 108, 1.0), waves(162, 108, 0.5), waves(1, 108, 0.5)
    (1.0, 2.0, 1.75, 1.0)
    """
    exact = tiles / multiprocessors
    return 1.0 if exact <= 1.0 else lost * math.ceil(exact) + (1.0 - lost) * exact


@functools.cache
def tiles_of(smallest: int, largest: int, rows: int | None = None) -> tuple[tuple[int, int], ...]:
    """Return the tile sizes of a library, largest first: powers of two times the smallest side, one side at least `rows`.

    >>> tiles_of(64, 16384)
    ((128, 128), (64, 256), (256, 64), (64, 128), (128, 64), (64, 64))
    >>> tiles_of(64, 16384, 128)
    ((128, 128), (64, 256), (256, 64), (64, 128), (128, 64))
    """
    sides = [smallest << step for step in range(10) if smallest << step <= 256] or [smallest]
    fits = [(a, b) for a in sides for b in sides if a * b <= largest and max(a, b) <= MAX_TILE_ASPECT * min(a, b)]
    tiles = [(a, b) for a, b in fits if max(a, b) >= (rows or smallest)]
    return tuple(sorted(tiles, key=lambda tile: (-tile[0] * tile[1], tile[0] + tile[1], tile)))


def tile_plan(
    product: MatmulShape,
    widths: tuple[float, float],
    tiling: Tiling,
    chip: Chip,
    memory: float,
    rows: int,
    columns: int,
    splits: int,
) -> TilePlan:
    """Return one way to cut a matmul."""
    m, n, k, batch = product.m, product.n, product.k, product.batch
    aligned = tiling.alignment.keeps(n, k, widths[0])
    rate = tiling.efficiency * aligned * chip.peak / chip.multiprocessors
    product_tiles = math.ceil(m / rows) * math.ceil(n / columns) * batch
    step = 2.0 * rows * columns / (rate * tiling.relative(rows, columns))
    arriving = (min(m, rows) * widths[0] + min(n, columns) * widths[1]) / (tiling.arriving(product) * aligned)
    depth = k / splits
    computing, loading = step * (depth + tiling.prologue), arriving * depth
    turns = waves(product_tiles * splits, chip.multiprocessors, tiling.lost)
    moved = PIECES * m * n * batch * (splits + 1) / chip.bandwidth
    adding = tiling.adding + moved if splits > 1 else 0.0
    time = soft_max(turns * max(computing, loading), memory, ROUNDING) + adding
    return TilePlan(rows, columns, splits, product_tiles * splits, turns, computing, loading, adding, time)


@functools.cache
def _cut_ways(tiling: Tiling) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the rows, columns and splits of all ways to cut, and the speed of their tiles relative to the largest tile."""
    import numpy as np

    powers = range(tiling.splits.bit_length())
    ways = [(*tile, 1 << power) for tile in tiles_of(tiling.smallest, tiling.largest, tiling.rows) for power in powers]
    rows, columns, splits = np.array(ways, np.float64).T
    return rows, columns, splits, np.array([tiling.relative(int(a), int(b)) for a, b, _ in ways])


def by_rows(
    rows: Floats, depths: Floats, product: MatmulShape, widths: tuple[float, float], tiling: Tiling, chip: Chip, memory: Floats
) -> tuple[Floats, Floats]:
    """Return (time, SM time) of a matmul in s for each number of rows and depth (k), as `fastest_tile_plan` does.

    memory: time (s) to transfer each matrix to or from memory once, for each number of rows.
    """
    import numpy as np

    aligned = np.array([tiling.alignment.keeps(product.n, int(depth), widths[0]) for depth in depths])
    time, busy = _times(rows[:, None], depths[:, None], aligned[:, None], product, widths, tiling, chip, memory[:, None])
    best_indices = time.argmin(axis=1)[:, None]
    return np.take_along_axis(time, best_indices, 1)[:, 0], np.take_along_axis(busy, best_indices, 1)[:, 0]


def _times(
    m: Any, k: Any, aligned: Any, product: MatmulShape, widths: tuple[float, float], tiling: Tiling, chip: Chip, memory: Any
) -> tuple[Floats, Floats]:
    """Return (time, SM time) with m rows and depth k for each of `_cut_ways`, as `tile_plan` does except for rounding."""
    import numpy as np

    n, batch = product.n, product.batch
    rows, columns, splits, relative = _cut_ways(tiling)
    rate = tiling.efficiency * aligned * chip.peak / chip.multiprocessors
    depth = k / splits
    computing = 2.0 * rows * columns / (rate * relative) * (depth + tiling.prologue)
    operands = np.minimum(m, rows) * widths[0] + np.minimum(n, columns) * widths[1]
    tile = np.maximum(computing, operands * (depth / (tiling.arriving(product) * aligned)))
    exact = np.ceil(m / rows) * np.ceil(n / columns) * (batch * splits) / chip.multiprocessors
    turns = np.where(exact <= 1.0, 1.0, tiling.lost * np.ceil(exact) + (1.0 - tiling.lost) * exact)
    high, low = np.maximum(turns * tile, memory), np.minimum(turns * tile, memory)
    time = high * fourth_root(1.0 + fourth_power(low / high))
    cut = splits > 1
    time += np.where(cut, tiling.adding + PIECES * m * n * batch / chip.bandwidth * (splits + 1.0), 0.0)
    return np.where(cut & (splits * MIN_SPLIT_STEPS > k), np.inf, time), exact * tile


@functools.lru_cache(maxsize=PLAN_CACHE_SIZE)
def fastest_tile_plan(product: MatmulShape, widths: tuple[float, float], tiling: Tiling, chip: Chip, memory: float) -> TilePlan:
    """Return the fastest way to cut a matmul; among equals, the one with the largest tiles.

    >>> chip = Chip(multiprocessors=4, peak=4e12, bandwidth=1e12)
    >>> cut = fastest_tile_plan(MatmulShape(512, 512, 1000), (4, 4), Tiling(largest=128 * 128), chip, 0.0)
    >>> (cut.rows, cut.columns, cut.tiles, cut.waves, cut.time) == (128, 128, 16, 4.0, 2 * 512**2 * 1000 / 4e12)
    True
    """
    aligned = tiling.alignment.keeps(product.n, product.k, widths[0])
    times, _ = _times(product.m, product.k, aligned, product, widths, tiling, chip, memory)
    rows, columns, splits, _ = _cut_ways(tiling)
    ways = [
        tile_plan(product, widths, tiling, chip, memory, int(rows[index]), int(columns[index]), int(splits[index]))
        for index in (times <= times.min() * NEAR).nonzero()[0]
    ]
    return min(ways, key=_TIME)


def format_of(key: str) -> str | None:
    """Return the number format of a key of `matmul`: the key itself or its prefix; None if there is none.

    >>> format_of("fp8-block"), format_of("int4-weights"), format_of("fp6")
    ('fp8', 'int4', None)
    """
    name = key.partition("-")[0]
    return name if name in BYTES else None


def software_of(key: str) -> str:
    """Return the library whose kernels a key of `matmul` describes; "" if it names none.

    >>> software_of("fp8-vllm"), software_of("fp8-block"), software_of("fp8-block-vllm"), software_of("bf16")
    ('vllm', '', 'vllm', '')
    """
    words = key.split("-")[1:]
    return "-".join(words[1:] if words[:1] in VARIANTS else words)


def tiles_like(dtype: str, formats: Collection[str], variant: str = "", software: str = "") -> str | None:
    """Return the key in `formats` whose tiles apply to matmuls in `dtype`; None if there is no similar key.

    Args:
        dtype: number format of the matmul.
        formats: available keys.
        variant: kernel variant: "fp8-block", "int4-weights".
        software: library of the kernels, if the part distinguishes libraries.

    >>> tiles_like("int8", ("fp32", "fp16")), tiles_like("fp32", ("fp16",))
    ('fp16', None)
    >>> tiles_like("fp8", ("fp8", "fp8-vllm"), software="vllm"), tiles_like("fp8", ("fp8", "fp16"), "fp8-block", "vllm")
    ('fp8-vllm', 'fp8')
    """
    for name in (variant, dtype, *LIKE.get(dtype, ())):
        if software and f"{name}-{software}" in formats:
            return f"{name}-{software}"
        if name in formats:
            return name
    return None
