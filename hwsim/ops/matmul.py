"""A matrix product C = A B: (m x k) by (k x n), `batch` times.

    matmul: {device: gpu, m: 2000, n: 2000, k: 2000}

    flop = 2 m n k batch        traffic = (m k + k n + m n) batch x bytes per element

Runs on the queue `compute` of its device. The traffic is the least there can be: every matrix
crosses to memory once, as if blocking for caches were perfect.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.devices import Product, Work, product_call
from hwsim.ops.op import CalledOp, Dtype, Placed, Scope, compute
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import BYTES


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

    def lower(self, scope: Scope) -> Placed:
        flop = 2.0 * self.m * self.n * self.k * self.batch
        factors = (self.m * self.k + self.k * self.n) * self.batch * BYTES[self.dtype]
        output = self.m * self.n * self.batch * BYTES[self.dtype]
        batch, times = (" batch", f" x {self.batch}") if self.batch > 1 else ("", "")
        sources = {
            "flop": f"2 m n k{batch} = 2 x {self.m} x {self.n} x {self.k}{times}",
            "traffic": f"(m k + k n + m n){batch} x {BYTES[self.dtype]:g} B",
        }
        shape = Product(self.m, self.n, self.k, self.batch, self.transposed)
        call = product_call(
            self.m,
            self.k,
            self.n,
            dtype=self.dtype,
            batch=self.batch,
            form=self.form or ("b" if self.transposed else ""),
            into=self.into,
            since=self.ages(3),
            cores=self.cores,
        )
        work = Work(
            flop=flop, reads=factors, writes=output, dtype=self.dtype, mix="matmul", product=shape, call=self.as_called(call)
        )
        return compute(scope, self, work, output=output, said=sources)
