"""A recurrent network over sequences: LSTM, GRU, or plain.

    rnn: {device: gpu, cell: lstm, tokens: 128, batch: 32, input: 512, hidden: 1024, layers: 2}

    each layer    one product of all tokens: tokens batch x gates hidden over input
                  a product of each token: batch x gates hidden over hidden, and the cell's functions of its results

Backward, each product becomes two. The layers of a direction follow one another; `both` runs the sequence both ways, and gives
the next layer both results. Runs on the queue `compute` of its device.

**Source**: Hochreiter and Schmidhuber, Neural Computation 9(8), 1997 (LSTM); Cho et al., arXiv:1406.1078 (GRU); Appleyard et al.,
arXiv:1604.01946 (one product for all tokens of the input).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final, Literal

from hwsim.devices import Product, Work
from hwsim.ops.in_turn import Step, compute_in_turn
from hwsim.ops.op import ComputeOp, Dtype, Placed, Scope
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import BYTES

GATES: Final = {"lstm": 4, "gru": 3, "rnn": 1}
FLOP_EACH: Final = 10.0  # of a gate's element: its function and the products with the state


@dataclass(frozen=True, slots=True, kw_only=True)
class Rnn(ComputeOp):
    """`tokens` steps of `batch` sequences."""

    kind: ClassVar[str] = "rnn"

    cell: Literal["lstm", "gru", "rnn"] = field("what a step computes: four, three products or one", default="lstm")
    tokens: int = field("steps of a sequence", minimum=1)
    batch: int = field("sequences", default=1, minimum=1)
    input: int = field("numbers of a token", minimum=1)
    hidden: int = field("numbers of the state", minimum=1)
    layers: int = field("on top of each other", default=1, minimum=1)
    both: bool = field("the sequence is read both ways", default=False)
    passes: Literal["forward", "backward"] = field("the states, or the gradients", key="pass", default="forward")
    dtype: Dtype = field("type of the elements", default="fp32")

    def lower(self, scope: Scope) -> Placed:
        steps: list[Step] = []
        for layer in range(self.layers):
            width = self.input if layer == 0 else self.hidden * (2 if self.both else 1)
            for _ in range(2 if self.both else 1):
                steps += self._layer(width)
        output = self.tokens * self.batch * self.hidden * (2 if self.both else 1) * BYTES[self.dtype]
        return compute_in_turn(scope, self, steps, output)

    def _layer(self, width: int) -> Iterator[Step]:
        gates, size = GATES[self.cell] * self.hidden, BYTES[self.dtype]
        rows = self.tokens * self.batch
        cell = Work(
            flop=FLOP_EACH * self.batch * gates, reads=2 * self.batch * gates * size, writes=2 * self.batch * self.hidden * size,
            dtype=self.dtype, working_set=3 * self.batch * gates * size,
        )  # fmt: skip
        yield Step("cell", cell, self.tokens)
        if self.passes == "forward":
            yield Step("input", self._product(rows, gates, width))
            yield Step("recurrent", self._product(self.batch, gates, self.hidden, held=True), self.tokens)
            return
        yield Step("recurrent", self._product(self.batch, self.hidden, gates, held=True), self.tokens)
        yield Step("input", self._product(rows, width, gates))
        yield Step("weights", self._product(gates, width + self.hidden, rows))

    def _product(self, m: int, n: int, k: int, *, held: bool = False) -> Work:
        """held: the second factor is the same each time, and may stay in a cache."""
        size = BYTES[self.dtype]
        return Work(
            flop=2.0 * m * n * k, reads=(m * k + k * n) * size, writes=m * n * size, dtype=self.dtype, mix="matmul",
            product=Product(m, n, k, element=size), working_set=(m * k + k * n + m * n) * size if held else None,
        )  # fmt: skip
