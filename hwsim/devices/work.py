"""What an op asks of a computing device, in amounts that no device changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.devices.calls import Call

Mix = Literal["matmul", "vector", "reduce", "random"]
Start = Literal["stream", "graph", "host"]


@dataclass(frozen=True, slots=True)
class Product:
    """The shape of a matrix product: (m x k) by (k x n), `batch` times.

    transposed: the second factor is stored as n x k, as the weights of a linear layer are.
    element: bytes of an element of the factors; 0: as many as the bytes read say, which holds where each is read once.
    """

    m: int
    n: int
    k: int
    batch: int = 1
    transposed: bool = False
    element: float = 0.0


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
        in_place: of the bytes written, those to places it reads as well: a cache need not fetch their lines for the writing.
        isa: class of instructions a cpu uses (scalar, sse, avx2, avx512, neon, sve); "" for its widest.
        instructions: that a cpu executes, arithmetic included; 0 where nobody counted them.
        branches, mispredicted: of these instructions, and the part of the branches whose way is guessed wrong.
        threads: of a core that work on it (SMT).
        kernels: of a gpu that do it one after another; each has to be started.
        start: who starts them: the one before in the stream, a graph, or the host, which waits for each.
        remote: part of the traffic that goes to the memory of another domain or socket.
        call: the call of a library that it is, for a machine whose calls were measured.
    """

    flop: float = 0.0
    reads: float = 0.0
    writes: float = 0.0
    dtype: str = "fp32"
    mix: Mix = "vector"
    cores: int | None = None
    product: Product | None = None
    working_set: float | None = None
    in_place: float = 0.0
    isa: str = ""
    instructions: float = 0.0
    branches: float = 0.0
    mispredicted: float = 0.0
    threads: int = 1
    remote: float = 0.0
    kernels: int = 1
    start: Start = "stream"
    call: Call | None = None

    @property
    def traffic(self) -> float:
        """Bytes read and written."""
        return self.reads + self.writes
