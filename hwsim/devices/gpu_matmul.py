"""Matrix products on a GPU: the result is cut into tiles, which the multiprocessors compute in waves.

A product (m x k) by (k x n) is cut into tiles of rows x columns of the result, and k into `splits` pieces whose partial
results are added up afterwards:

    tiles = ceil(m / rows) ceil(n / columns) splits batch
    waves = tiles / multiprocessors; not below 1, and a last wave that is not full counts for more than its tiles
    tile  = max(2 rows columns (k / splits + prologue), balance (rows + columns) (k / splits)) / rate of a multiprocessor
    time  = ((waves x tile)^4 + memory^4)^(1/4) + adding up

and the library takes the tile and the splits that make this least. `memory` is the time in which every matrix crosses
to memory once.

**Source**: tiles and waves as in NVIDIA, "Matrix Multiplication Background User's Guide", DU-09799-001, 2023, chapters
2 and 3; prologue and splits as in CUTLASS, "Efficient GEMM in CUDA". The constants are fitted: each part file says to what.
**Error**: see `docs/validation/components.md`; a few per cent for products with more than 128 rows and columns.
**Range**: skinny products (a side of 128 or less) depend on which kernel a library happens to have: a tenth of them is off by
a third and more. Strides that hit the same memory channel (powers of two on AMD's GCN) are not modelled.

More work never takes less time between products that are equally well aligned; a size rounded up to a multiple of 16 or
128 bytes may take less (`Alignment`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from hwsim.demand import soft_max
from hwsim.devices.work import Product
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Bytes, Ratio, Seconds

ROUNDING: Final = 4.0  # sharpness of the knee between computing and memory; 3 to 6 fit the published products alike
PIECES: Final = 4.0  # bytes of an element of a partial result: they are added up in fp32
SLENDER: Final = 8  # a tile's longer side over its shorter: no library ships tiles beyond

# A number format without tiles of its own is multiplied by the kernels of another one.
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
    """The part of its speed that a product keeps when rows of the matrices do not start at round addresses.

    Decisive is the largest power of two that divides both n and k (the lengths of the rows, in bytes).

    **Source** of the defaults of 16 and 128 bytes: NVIDIA, "Matrix Multiplication Background User's Guide", section 2.2.
    """

    least: Bytes = field("rows at multiples of fewer bytes cannot be loaded in vectors", default=16.0, exclusive_minimum=0.0)
    best: Bytes = field("rows at multiples of this are loaded at full speed", default=128.0, exclusive_minimum=0.0)
    between: Ratio = field("part of the speed that is kept from `least` up to `best`", default=1.0, exclusive_minimum=0.0)
    below: Ratio = field("part of the speed that is kept below `least`", default=1.0, exclusive_minimum=0.0)

    def problems(self) -> Iterator[Problem]:
        """(key, message, hint) of what cannot be."""
        if self.best < self.least:
            yield "best", "is less than `least`", None
        if self.below > self.between:
            yield "below", "worse aligned would be faster than better aligned", None

    def keeps(self, n: int, k: int, width: float) -> float:
        """Part of the speed, for elements of `width` bytes.

        >>> tensor = Alignment(between=0.75, below=0.4)
        >>> tensor.keeps(4096, 4096, 2), tensor.keeps(4096, 4072, 2), tensor.keeps(4096, 4095, 2)
        (1.0, 0.75, 0.4)
        """
        step = min(n & -n, k & -k) * width
        if step >= self.best:
            return 1.0
        return self.between if step >= self.least else self.below


@dataclass(frozen=True, slots=True)
class Tiling:
    """The products of matrices of one number format, as a GPU's library computes them."""

    efficiency: Ratio = field("part of the peak that large products sustain (clocks, power, instructions)", default=1.0,
                              exclusive_minimum=0.0)  # fmt: skip
    smallest: int = field("shorter side of its smallest tile", default=16, minimum=1)
    largest: int = field("elements of its largest tile", default=256 * 128, minimum=1)
    edge: float = field("a tile of sides a, b reaches 1 / (1 + edge (1/a + 1/b)) of what an endless one would", default=0.0,
                        minimum=0.0)  # fmt: skip
    prologue: float = field("steps of k that starting and ending a tile take", default=0.0, minimum=0.0)
    splits: int = field("most pieces that k is cut into", default=1, minimum=1)
    adding: Seconds = field("to start adding up the pieces of k", default=0.0)
    lost: Ratio = field("part of the room in a wave that is not full which is lost", default=1.0)
    balance: float = field("side of the square tile whose operands arrive just as fast as it is computed", default=0.0,
                           minimum=0.0)  # fmt: skip
    transposed: Ratio = field("speed at which operands arrive where the second factor is stored as n x k", default=1.0,
                              exclusive_minimum=0.0)  # fmt: skip
    start: Seconds = field("of a product, beyond the launch of its kernel", default=0.0)
    alignment: Alignment = field("what it costs when rows do not start at round addresses", default_factory=Alignment)

    def problems(self) -> Iterator[Problem]:
        """(key, message, hint) of what cannot be."""
        if self.largest < self.smallest**2:
            yield "largest", f"a tile of {self.smallest} x {self.smallest} is larger", None
        for key, message, hint in self.alignment.problems():
            yield f"alignment.{key}", message, hint

    def side(self, product: Product) -> float:
        """`balance`, for the way in which this product's factors are stored."""
        return self.balance / self.transposed if product.transposed else self.balance

    def relative(self, rows: int, columns: int) -> float:
        """Speed of a tile over the speed of the largest.

        >>> Tiling(edge=8.0, largest=16384).relative(128, 128), round(Tiling(edge=8.0, largest=16384).relative(64, 64), 2)
        (1.0, 0.9)
        """
        side = math.sqrt(self.largest)
        return min(1.0, (1.0 + 2.0 * self.edge / side) / (1.0 + self.edge * (1.0 / rows + 1.0 / columns)))


@dataclass(frozen=True, slots=True)
class Chip:
    """The numbers of a GPU that a product needs.

    Args:
        peak: FLOP/s of all multiprocessors, in the format the product is computed in.
        bandwidth: B/s of the memory. Pieces of k are added up through it.
    """

    multiprocessors: int
    peak: float
    bandwidth: float


@dataclass(frozen=True, slots=True)
class Cut:
    """A way to cut a product into tiles, and how long it takes.

    Args:
        tiles: tiles of the result, times splits, times batch.
        waves: in the time of one tile; at least 1.
        computing, loading: seconds of one tile in the arithmetic units, and for its operands to arrive.
        adding: seconds to add up the pieces of k.
        time: seconds of the whole product.
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
        """Seconds of one tile on one multiprocessor."""
        return max(self.computing, self.loading)


def waves(tiles: int, multiprocessors: int, lost: float) -> float:
    """Time of a number of tiles over the time of one: 1 up to one a multiprocessor, then between proportional and whole waves.

    >>> waves(108, 108, 1.0), waves(109, 108, 1.0), waves(162, 108, 0.5), waves(1, 108, 0.5)
    (1.0, 2.0, 1.75, 1.0)
    """
    exact = tiles / multiprocessors
    return 1.0 if exact <= 1.0 else lost * math.ceil(exact) + (1.0 - lost) * exact


@functools.cache
def tiles_of(smallest: int, largest: int) -> tuple[tuple[int, int], ...]:
    """Sides of the tiles a library has: powers of two times the smallest side, the largest first.

    >>> tiles_of(64, 16384)
    ((128, 128), (64, 256), (256, 64), (64, 128), (128, 64), (64, 64))
    """
    sides = [smallest << step for step in range(10) if smallest << step <= 256] or [smallest]
    tiles = [(a, b) for a in sides for b in sides if a * b <= largest and max(a, b) <= SLENDER * min(a, b)]
    return tuple(sorted(tiles, key=lambda tile: (-tile[0] * tile[1], tile[0] + tile[1], tile)))


def cuts(product: Product, width: float, tiling: Tiling, chip: Chip, memory: float) -> Iterator[Cut]:
    """Every way to cut the product.

    Args:
        width: bytes of an element.
        memory: seconds in which every matrix crosses to memory once.
    """
    m, n, k, batch = product.m, product.n, product.k, product.batch
    aligned = tiling.alignment.keeps(n, k, width)
    rate = tiling.efficiency * aligned * chip.peak / chip.multiprocessors
    side = tiling.side(product)
    for rows, columns in tiles_of(tiling.smallest, tiling.largest):
        product_tiles = math.ceil(m / rows) * math.ceil(n / columns) * batch
        relative = tiling.relative(rows, columns)
        splits = 1
        while splits <= tiling.splits:
            depth = k / splits
            computing = 2.0 * rows * columns * (depth + tiling.prologue) / (rate * relative)
            loading = side * (min(m, rows) + min(n, columns)) * depth / rate
            turns = waves(product_tiles * splits, chip.multiprocessors, tiling.lost)
            moved = PIECES * m * n * batch * (splits + 1) / chip.bandwidth
            adding = tiling.adding + moved if splits > 1 else 0.0
            time = soft_max(turns * max(computing, loading), memory, ROUNDING) + adding
            yield Cut(rows, columns, splits, product_tiles * splits, turns, computing, loading, adding, time)
            splits *= 2


def best(product: Product, width: float, tiling: Tiling, chip: Chip, memory: float) -> Cut:
    """The fastest way to cut the product; of equals the one of the largest tiles.

    >>> chip = Chip(multiprocessors=4, peak=4e12, bandwidth=1e12)
    >>> cut = best(Product(512, 512, 1000), 4, Tiling(largest=128 * 128), chip, 0.0)
    >>> (cut.rows, cut.columns, cut.tiles, cut.waves, cut.time) == (128, 128, 16, 4.0, 2 * 512**2 * 1000 / 4e12)
    True
    """
    return min(cuts(product, width, tiling, chip, memory), key=lambda cut: cut.time)


def tiles_like(dtype: str, formats: Collection[str]) -> str | None:
    """The format among `known` whose tiles products computed in `dtype` have; None: nothing is known of tiles like theirs.

    >>> tiles_like("int8", ("fp32", "fp16")), tiles_like("fp32", ("fp16",))
    ('fp16', None)
    """
    return next((name for name in (dtype, *LIKE.get(dtype, ())) if name in formats), None)
