"""What an op asks of a computing device, in amounts that no device changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mix = Literal["matmul", "vector", "reduce", "random"]


@dataclass(frozen=True, slots=True)
class Product:
    """The shape of a matrix product: (m x k) by (k x n), `batch` times."""

    m: int
    n: int
    k: int
    batch: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Operations and memory traffic of one op.

    Args:
        flop: arithmetic operations; for mix "random", how many numbers are drawn.
        reads, writes: bytes read and written.
        dtype: number format it computes in.
        mix: which units it uses, and how well.
        cores: of a cpu; None for all of them.
        product: the shape of a matrix product, where it is one.
        working_set: bytes it goes over again and again, which a cache may hold; None: everything comes from memory once.
    """

    flop: float = 0.0
    reads: float = 0.0
    writes: float = 0.0
    dtype: str = "fp32"
    mix: Mix = "vector"
    cores: int | None = None
    product: Product | None = None
    working_set: float | None = None

    @property
    def traffic(self) -> float:
        """Bytes read and written."""
        return self.reads + self.writes
