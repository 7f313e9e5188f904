"""A matrix product (GEMM) C = A B of an m x k by a k x n matrix, `batch` times.

    matmul: {device: gpu, m: 2000, n: 2000, k: 2000}

    flop = 2 m n k batch        traffic = (m k + k n + m n) batch x bytes per element

The op runs on the queue `compute` of its device. The traffic is the minimum: every matrix is transferred to or from memory once,
as with perfect blocking for caches.

Quantized layers: `dtype: fp8` is the product alone, of operands in fp8. With `cast: true`, A is read in 16 bits and cast first,
and C is written in 16 bits. `software: vllm` selects the kernels of that framework, if the GPU distinguishes them, and
`scales: block` those with one scale per block: they are parts of layers, so their default is to cast. `dtype: bf16,
weights: int4` reads B in four bits and computes in bf16.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from hwsim.devices import Gpu, MatmulShape, Work, product_call
from hwsim.ops.op import CalledOp, Dtype, LoweredOp, Scope, check_library_name, compute
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import BYTES

CAST: Final = 2.0  # bytes per element of A before the cast, and of C


@dataclass(frozen=True, slots=True, kw_only=True)
class Matmul(CalledOp):
    """A product of an m x k by a k x n matrix, `batch` times."""

    kind: ClassVar[str] = "matmul"

    m: int = field("number of rows of A and C", minimum=1)
    n: int = field("number of columns of B and C", minimum=1)
    k: int = field("number of columns of A and of rows of B", minimum=1)
    batch: int = field("number of independent products of this size", default=1, minimum=1)
    dtype: Dtype = field("data type of the elements and of the arithmetic", default="fp32")
    transposed: bool = field("whether B is stored as n x k, like the weights of a linear layer (x @ w.T)", default=False)
    weights: Dtype | None = field("data type in which B is stored (default: `dtype`)", default=None)
    scales: Literal["tensor", "block"] = field("scales of narrow data types: one per tensor or per block", default="tensor")
    software: str = field("framework of the kernels, if in the gpu's `matmul` ({fp8-vllm: ...})", default="", example="vllm")
    cast: bool | None = field(
        "whether A is cast from 16 bits to `dtype` and C is written in 16 bits, if the gpu's `matmul` has a `cast` (default: with"
        " `software` or `scales: block`, which are kernels of a framework's layers)",
        default=None,
    )

    def lower(self, scope: Scope) -> LoweredOp:
        check_library_name(scope, self.device, "matmul", "software", self.software)
        width, weight = BYTES[self.dtype], BYTES[self.weights or self.dtype]
        casts = self._casts(scope)
        made = CAST if casts else width
        flop = 2.0 * self.m * self.n * self.k * self.batch
        factors = (self.m * self.k * width + self.k * self.n * weight) * self.batch
        output = self.m * self.n * self.batch * made
        batch, times = (" batch", f" x {self.batch}") if self.batch > 1 else ("", "")
        traffic = f"(m k + k n + m n){batch} x {width:g} B"
        if not width == weight == made:
            traffic = f"(m k x {width:g} B + k n x {weight:g} B + m n x {made:g} B){batch}"
        sources = {"flop": f"2 m n k{batch} = 2 x {self.m} x {self.n} x {self.k}{times}", "traffic": traffic}
        shape = MatmulShape(
            self.m,
            self.n,
            self.k,
            self.batch,
            self.transposed,
            weight=weight if weight != width else 0.0,
            cast=CAST if casts else 0.0,
            variant=self._variant,
            software=self.software,
        )
        call = product_call(
            self.m,
            self.k,
            self.n,
            dtype=self.dtype,
            batch=self.batch,
            form=self.form or ("b" if self.transposed else ""),
            into=self.into,
            since=self.ages(3),
        )
        work = Work(
            flop=flop, reads=factors, writes=output, dtype=self.dtype, mix="matmul", product=shape, call=self.as_called(call)
        )
        return compute(scope, self, work, output=output, said=sources)

    @property
    def _variant(self) -> str:
        if self.weights is not None and self.weights != self.dtype:
            return f"{self.weights}-weights"
        return f"{self.dtype}-block" if self.scales == "block" else ""

    def _casts(self, scope: Scope) -> bool:
        """Return whether A is cast before the product."""
        if self.cast is not None:
            return self.cast
        if not self.software and self.scales == "tensor":
            return False
        _, model = scope.computing(self.device)
        tiles = model.tiles(self.dtype, self._variant, self.software) if isinstance(model, Gpu) else None
        return tiles is not None and tiles.cast is not None
