"""A recurrent network over sequences: LSTM, GRU, or plain RNN.

    rnn: {device: gpu, cell: lstm, tokens: 128, batch: 32, input: 512, hidden: 1024, layers: 2}

    each layer    one matmul for all tokens: (tokens batch) x (gates hidden) x input
                  one matmul per token: batch x (gates hidden) x hidden, then the elementwise functions of the cell

In the backward pass, each matmul becomes two. The layers run one after another. With `both`, the network reads the sequence in
both directions and passes both results to the next layer. The op runs on the queue `compute` of its device.

**Source**: Hochreiter and Schmidhuber, Neural Computation 9(8), 1997 (LSTM); Cho et al., arXiv:1406.1078 (GRU); Appleyard et al.,
arXiv:1604.01946 (one matmul for all input tokens).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final, Literal

from hwsim.devices import MatmulShape, Work
from hwsim.ops.kernel_sequence import KernelStep, compute_sequence
from hwsim.ops.op import ComputeOp, Dtype, LoweredOp, Scope
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import BYTES

GATES: Final = {"lstm": 4, "gru": 3, "rnn": 1}
FLOP_EACH: Final = 10.0  # FLOP per gate element: activation function and products with the state


@dataclass(frozen=True, slots=True, kw_only=True)
class Rnn(ComputeOp):
    """A recurrent network that runs `tokens` steps of `batch` sequences."""

    kind: ClassVar[str] = "rnn"

    cell: Literal["lstm", "gru", "rnn"] = field("cell type: 4 (lstm), 3 (gru) or 1 (rnn) gates", default="lstm")
    tokens: int = field("sequence length: number of steps (tokens)", minimum=1)
    batch: int = field("number of sequences", default=1, minimum=1)
    input: int = field("input size: number of elements per token", minimum=1)
    hidden: int = field("hidden size: number of elements of the state", minimum=1)
    layers: int = field("number of stacked layers", default=1, minimum=1)
    both: bool = field("whether the network is bidirectional", default=False)
    passes: Literal["forward", "backward"] = field("states (forward), or gradients", key="pass", default="forward")
    dtype: Dtype = field("data type of the elements", default="fp32")

    def lower(self, scope: Scope) -> LoweredOp:
        steps: list[KernelStep] = []
        for layer in range(self.layers):
            width = self.input if layer == 0 else self.hidden * (2 if self.both else 1)
            for _ in range(2 if self.both else 1):
                steps += self._layer(width)
        output = self.tokens * self.batch * self.hidden * (2 if self.both else 1) * BYTES[self.dtype]
        return compute_sequence(scope, self, steps, output)

    def _layer(self, width: int) -> Iterator[KernelStep]:
        gates, size = GATES[self.cell] * self.hidden, BYTES[self.dtype]
        rows = self.tokens * self.batch
        cell = Work(
            flop=FLOP_EACH * self.batch * gates, reads=2 * self.batch * gates * size, writes=2 * self.batch * self.hidden * size,
            dtype=self.dtype, working_set=3 * self.batch * gates * size,
        )  # fmt: skip
        yield KernelStep("cell", cell, self.tokens)
        if self.passes == "forward":
            yield KernelStep("input", self._product(rows, gates, width))
            yield KernelStep("recurrent", self._product(self.batch, gates, self.hidden, reused=True), self.tokens)
            return
        yield KernelStep("recurrent", self._product(self.batch, self.hidden, gates, reused=True), self.tokens)
        yield KernelStep("input", self._product(rows, width, gates))
        yield KernelStep("weights", self._product(gates, width + self.hidden, rows))

    def _product(self, m: int, n: int, k: int, *, reused: bool = False) -> Work:
        """reused: whether the second factor is the same in every step, so that a cache may hold it."""
        size = BYTES[self.dtype]
        return Work(
            flop=2.0 * m * n * k, reads=(m * k + k * n) * size, writes=m * n * size, dtype=self.dtype, mix="matmul",
            product=MatmulShape(m, n, k, element=size), working_set=(m * k + k * n + m * n) * size if reused else None,
        )  # fmt: skip
