"""A matrix product C = A B: (m x k) by (k x n), `batch` times.

    matmul: {device: gpu, m: 2000, n: 2000, k: 2000}

    flop = 2 m n k batch        traffic = (m k + k n + m n) batch x bytes per element

Runs on the queue `compute` of its device. The traffic is the least there can be: every matrix
crosses to memory once, as if blocking for caches were perfect.

Quantised layers of served models: `dtype: fp8` computes in fp8. Where the GPU knows what casting takes, A comes in 16 bits and
is cast first, and C leaves in 16 bits. `scales: block` takes kernels with a scale for each block. `dtype: bf16, weights: int4`
reads B in four bits and computes in bf16. `software: vllm` takes the kernels of that framework, where the part tells them apart.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from hwsim.devices import Gpu, Product, Work, product_call
from hwsim.ops.op import CalledOp, Dtype, Placed, Scope, compute, refuse_unknown
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import BYTES

CAST: Final = 2.0  # bytes of an element of A before it is cast, and of C


@dataclass(frozen=True, slots=True, kw_only=True)
class Matmul(CalledOp):
    """(m x k) by (k x n), `batch` times."""

    kind: ClassVar[str] = "matmul"

    m: int = field("rows of A and C", minimum=1)
    n: int = field("columns of B and C", minimum=1)
    k: int = field("columns of A, rows of B", minimum=1)
    batch: int = field("independent products of this size", default=1, minimum=1)
    dtype: Dtype = field("type of the elements", default="fp32")
    transposed: bool = field("B is stored as n x k, as the weights of a linear layer (x @ w.T)", default=False)
    weights: Dtype | None = field("type in which B is stored, where that is not the one it is computed in", default=None)
    scales: Literal["tensor", "block"] = field("of narrow types: one for a tensor, or one for each block", default="tensor")
    software: str = field("whose kernels, where a gpu tells them apart (`matmul: {fp8-vllm: ...}`)", default="", example="vllm")
    cast: bool | None = field(
        "A comes in 16 bits and is cast to `dtype`, C leaves in 16 bits (default: where the gpu's `matmul` has a `cast`)",
        default=None,
    )

    def lower(self, scope: Scope) -> Placed:
        refuse_unknown(scope, self.device, "matmul", "software", self.software)
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
        shape = Product(
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
        """Whether A is cast before the product."""
        if self.cast is not None:
            return self.cast
        _, model = scope.computing(self.device)
        tiles = model.tiles(self.dtype, self._variant, self.software) if isinstance(model, Gpu) else None
        return tiles is not None and tiles.cast is not None
