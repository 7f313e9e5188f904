"""The part of a micro-batch on a GPU, and the kinds of kernels in transformer layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from hwsim.devices import MatmulShape, Work
from hwsim.models.layer import Kernel, Kind
from hwsim.records import dataclass
from hwsim.units import BYTES

Attention = Literal["plain", "flash"]
NARROW: Final = ("fp8", "fp4")  # formats of matmuls in a training whose activations have 16 bits


@dataclass(frozen=True, slots=True)
class MicrobatchSlice:
    """The part of a micro-batch on one GPU.

    Args:
        sequences: sequences of the micro-batch.
        tokens: tokens of each sequence that are computed: all of them, or the decoded one.
        context: tokens that each of them attends to, including itself, with full attention.
        tensor: GPUs that split a layer's matrices.
        sharded: norms and residuals are split over these GPUs, too (sequence parallel).
        expert: GPUs that split a layer's experts.
        ring: GPUs that split each sequence (context parallel).
        dtype: data type of activations.
        products: data type of matmuls, if it differs.
        attention: attention scores in memory (plain) or on chip (flash).
        cache: keys and values are written to a cache, as in a server.
        kept: data type of the cache, if it differs.
        variant: variant of the matmul kernels, a key of `matmul` ("fp8-block").
        weight: bytes per weight of linear layers, if it differs from the matmuls' data type.
        weight_of_experts: bytes per weight of experts, if it differs.
        routed: format of the expert kernels, a key of `FORMATS`, if it differs from the matmuls' data type.
        together: groups of a server's GPUs with separate sequences and common experts; `expert` then counts GPUs of all groups,
            and the remaining GPUs split each expert.
        imbalance: tokens of the most loaded expert-parallel GPU, relative to the average.
        flex: a token is sent once to each node and GPU with experts of it, instead of once per expert.
        dispatched: exposed share of the exchange of tokens with experts.
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
    flex: bool = False
    dispatched: float = 1.0

    @property
    def of_expert(self) -> int:
        """GPUs that split each expert."""
        return max(1, self.tensor * self.together // self.expert) if self.cache else self.tensor

    @property
    def stored(self) -> str:
        """Data type of weights and of the cache of a server."""
        return self.kept or self.dtype

    @property
    def rows(self) -> int:
        """Tokens of the micro-batch on this GPU."""
        return max(1, self.sequences * self.tokens // self.ring)

    @property
    def width(self) -> float:
        return BYTES[self.dtype]


def product(
    name: str,
    rows: int,
    columns: int,
    depth: int,
    part: MicrobatchSlice,
    batch: int = 1,
    kind: Kind = "matmul",
    *,
    narrow: bool = False,
) -> Kernel:
    """Return a matmul of (rows x depth) by (depth x columns), a linear layer for `rows` tokens.

    A server's 8-bit kernel also casts its input; a training casts in separate kernels (`with_fp8_casts`).

    Args:
        narrow: the second factor consists of weights, which may have another format (`MicrobatchSlice.weight`).
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
        product=MatmulShape(
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


def with_fp8_casts(kernel: Kernel, part: MicrobatchSlice) -> Iterator[Kernel]:
    """Yield a matmul of a training, preceded by the cast of both factors to fp8 if it computes in fp8."""
    shape = kernel.work.product
    if part.products in NARROW and not part.cache and shape is not None and kernel.work.dtype != part.dtype:
        yield cast(f"cast-{kernel.name}", (shape.m + shape.n) * shape.k * shape.batch, part)
    yield kernel


def cast(name: str, count: float, part: MicrobatchSlice) -> Kernel:
    """Return the cast of `count` numbers to 8 bits: one kernel finds the maximum, one scales and converts."""
    work = Work(reads=2 * count * part.width, writes=count, dtype=part.dtype, kernels=2)
    return Kernel(name, "cast", work)


def transposition(name: str, shape: MatmulShape, times: float = 1.0) -> Kernel:
    """Return the transposition of both factors and the gradient of `times` matmuls; 8-bit matrix units read along the depth."""
    count = (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n) * shape.batch * times
    return Kernel(name, "cast", Work(reads=float(count), writes=float(count), dtype="fp8", kernels=3))


def memory_kernel(name: str, reads: float, writes: float, dtype: str, kind: Kind = "elementwise", across: int = 0) -> Kernel:
    """Return a kernel that only moves bytes."""
    return Kernel(name, kind, Work(reads=reads, writes=writes, dtype=dtype), across=across)
