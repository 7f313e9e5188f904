"""Fused attention: the scores of each query with the keys it sees, their softmax, and the values they weigh, in one kernel.

    attention: {device: gpu0, batch: 4, tokens: 2048, heads: 32, kv_heads: 8, head: 128, dtype: bf16}
    attention: {device: gpu0, batch: 64, cached: 4096, heads: 32, kv_heads: 8, head: 128, dtype: bf16}

    flop = 4 x batch x heads x tokens x keys seen on average x head        traffic = queries, result, keys and values once

`backward` is the gradients of queries, keys and values, two and a half times the operations.

One query a sequence (`tokens: 1`) is a step of decoding, which reads the cache; more are a prefill.

Runs on the queue `compute` of its device. A GPU has kernels of its own for it (`attention:`); elsewhere it is a product of that
many operations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Final

from hwsim.demand import Cost
from hwsim.devices import Attended, Gpu, Work
from hwsim.devices.gpu_attention import LIBRARIES
from hwsim.formats import precise
from hwsim.ops.op import CannotPlace, ComputeOp, Dtype, Placed, Scope, compute, refuse_unknown
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import BYTES

BACKWARD: Final = 2.5  # operations of the gradients, for one of the results
SLOWER: Final = 1.174  # time of such an operation, for one of the results: as trainings show (hwsim/models/generations.py)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention(ComputeOp):
    """Attention of `tokens` queries of each sequence to all tokens before them."""

    kind: ClassVar[str] = "attention"

    batch: int = field("sequences", default=1, minimum=1)
    tokens: int = field("queries of each sequence; 1: a step of decoding", default=1, minimum=1)
    cached: int = field("tokens of each sequence before them, whose keys and values are there", default=0, minimum=0)
    heads: int = field("of the queries", minimum=1)
    kv_heads: int | None = field("of keys and values (default: as many)", default=None, minimum=1)
    head: int = field("numbers of a head's vector", minimum=1)
    dtype: Dtype = field("type of queries, keys, values and result", default="bf16")
    cache: Dtype | None = field("type of the cached keys and values (default: the same)", default=None)
    window: int = field("tokens that a query sees at most; 0: any number", default=0, minimum=0)
    causal: bool = field("a query sees only what came before it", default=True)
    stored: bool = field("new keys and values are written to a cache, as a server does", default=True)
    backward: bool = field("the gradients of queries, keys and values: five products in place of two", default=False)
    kernel: str = field(
        "whose kernel, a name of the gpu's `attention` (default: flash, else another that it has)", default="", example="tensorrt"
    )

    def lower(self, scope: Scope) -> Placed:
        if self.kv_heads is not None and self.heads % self.kv_heads:
            raise CannotPlace(f"{self.kv_heads} heads of keys and values do not divide {self.heads} heads", None)
        refuse_unknown(scope, self.device, "attention", "kernel", self.kernel)
        width = BYTES[self.dtype]
        call = Attended(
            sequences=self.batch,
            queries=self.tokens,
            cached=self.cached,
            heads=self.heads,
            kv_heads=self.kv_heads or self.heads,
            head=self.head,
            width=width,
            kv_width=BYTES[self.cache] if self.cache else width,
            causal=float(self.causal),
            window=self.window,
            written=float(self.stored),
            library=self.kernel or LIBRARIES[0],
        )
        output = call.outer / 2
        work = Work(flop=call.flop, reads=output + call.keys, writes=output, dtype=self.dtype, mix="matmul", attention=call)
        sources = {
            "flop": f"4 x {self.batch} x {self.heads} heads x {self.tokens} queries x {call.seen:g} keys x {self.head}",
            "traffic": "queries, result, keys and values once",
        }
        if not self.backward:
            return compute(scope, self, work, output=output, said=sources)
        if isinstance(scope.computing(self.device)[1], Gpu):
            placed = compute(scope, self, work, output=3 * output, said=sources)
            return replace(placed, cost=None if placed.cost is None else _backward(placed.cost))
        more = replace(work, flop=BACKWARD * work.flop, reads=3 * work.reads, writes=3 * work.writes, attention=None)
        return compute(scope, self, more, output=3 * output)


def _backward(cost: Cost) -> Cost:
    """The cost of the gradients: five products in place of two, each a little slower."""
    demand, times = cost.demand, BACKWARD * SLOWER
    amounts = tuple((name, times * amount) for name, amount in demand.amounts)
    why = tuple(
        term
        if term.kind == "latency"
        else replace(
            term,
            formula=f"({term.formula}) x gradients",
            inputs=(*term.inputs, ("gradients", precise(times, "1"), "five products in place of two, as they run in trainings")),
            seconds=times * term.seconds,
            doubts=tuple(doubt._replace(seconds=times * doubt.seconds) for doubt in term.doubts),
        )
        for term in cost.why
    )
    moved = tuple((name, (BACKWARD if unit == "FLOP" else 3.0) * amount, unit) for name, amount, unit in cost.moved)
    drawn = replace(demand, amounts=amounts, floor=times * demand.floor, share=times * demand.share)
    return replace(cost, demand=drawn, moved=moved, why=why)
