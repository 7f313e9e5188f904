"""The part of a micro-batch that a GPU has, and the kinds of kernels that layers of transformers are made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from hwsim.devices import Product, Work
from hwsim.models.layer import Kernel, Kind
from hwsim.records import dataclass
from hwsim.units import BYTES

Attention = Literal["plain", "flash"]


@dataclass(frozen=True, slots=True)
class Slice:
    """The part of a micro-batch on one GPU.

    Args:
        sequences: sequences of the micro-batch.
        tokens: tokens of each sequence that are computed: all of them, or the one that is decoded.
        context: tokens that each of them looks at, itself included, where it sees all.
        tensor: GPUs that a layer's matrices are split over.
        sharded: norms and residuals are split over them as well (sequence parallel).
        expert: GPUs that a layer's experts are split over; imbalance: tokens of the fullest of them over their mean.
        ring: GPUs that each sequence is split over (context parallel).
        dtype: number format of activations; products: of matrix products, if another.
        cache: keys and values are written to a cache, as a server does; kept: their number format there, if another.
        variant: kind of the products, a word of `matmul`, if they have kernels of their own ("fp8-block").
        weight: bytes of a weight of the linear maps, if not of the products' format; weight_of_experts: of the experts.
        routed: format of the experts' kernels, a word of `FORMATS`, if another than the products'.
        together: groups of GPUs of a server that have sequences of their own, and whose tokens go through the same experts;
            `expert` is then of all their GPUs, and each expert is split over what is left of them.
    """

    sequences: int
    tokens: int
    context: int
    tensor: int = 1
    sharded: bool = False
    expert: int = 1
    ring: int = 1
    dtype: str = "bf16"
    products: str = ""
    attention: Attention = "flash"
    cache: bool = False
    kept: str = ""
    variant: str = ""
    weight: float = 0.0
    weight_of_experts: float = 0.0
    routed: str = ""
    together: int = 1
    imbalance: float = 1.0

    @property
    def of_expert(self) -> int:
        """GPUs that each expert is split over."""
        return max(1, self.tensor * self.together // self.expert) if self.cache else self.tensor

    @property
    def stored(self) -> str:
        """Number format of weights and of the cache of a server."""
        return self.kept or self.dtype

    @property
    def rows(self) -> int:
        """Tokens of the micro-batch on this GPU."""
        return max(1, self.sequences * self.tokens // self.ring)

    @property
    def width(self) -> float:
        return BYTES[self.dtype]


def product(
    name: str, rows: int, columns: int, depth: int, part: Slice, batch: int = 1, kind: Kind = "matmul", *, narrow: bool = False
) -> Kernel:
    """(rows x depth) by (depth x columns): a linear map of that many tokens.

    The kernel of a server that computes in 8 bits casts what comes in (a training does so apart: `casting`).
    narrow: the second factor is weights that may be kept in another format (`Slice.weight`).
    """
    dtype = part.products or part.dtype
    casts = part.width if part.cache and part.products and kind == "matmul" else 0.0
    weight = part.weight if narrow else 0.0
    work = Work(
        flop=2.0 * rows * columns * depth * batch,
        reads=(rows * depth + depth * columns) * batch * BYTES[dtype]
        if weight <= 0
        else (rows * depth * BYTES[dtype] + depth * columns * weight) * batch,
        writes=rows * columns * batch * part.width,
        dtype=dtype,
        mix="matmul",
        product=Product(
            max(1, rows),
            max(1, columns),
            max(1, depth),
            batch,
            weight=weight,
            cast=casts,
            variant="int4-weights" if 0 < weight < 1 and not part.products else part.variant if narrow else "",
        ),
    )
    return Kernel(name, kind, work)


def casting(kernel: Kernel, part: Slice) -> Iterator[Kernel]:
    """A product of a training, after both of its factors have been turned into 8-bit numbers, if it computes in them."""
    shape = kernel.work.product
    if part.products == "fp8" and not part.cache and shape is not None and kernel.work.dtype != part.dtype:
        yield cast(f"cast-{kernel.name}", (shape.m + shape.n) * shape.k * shape.batch, part)
    yield kernel


def cast(name: str, count: float, part: Slice) -> Kernel:
    """So many numbers in 8 bits: one kernel looks for the largest of an array, one scales and converts."""
    work = Work(reads=2 * count * part.width, writes=count, dtype=part.dtype, kernels=2)
    return Kernel(name, "cast", work)


def transposition(name: str, shape: Product) -> Kernel:
    """Both factors and the gradient of a product the other way round, as 8-bit matrix units read them along the depth."""
    count = (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n) * shape.batch
    return Kernel(name, "cast", Work(reads=float(count), writes=float(count), dtype="fp8", kernels=3))


def moving(name: str, reads: float, writes: float, dtype: str, kind: Kind = "elementwise", across: int = 0) -> Kernel:
    """A kernel that only moves bytes."""
    return Kernel(name, kind, Work(reads=reads, writes=writes, dtype=dtype), across=across)
