"""Fused attention: one kernel computes the scores of each query with its keys, their softmax, and the weighted sum of the values.

    attention: {device: gpu0, batch: 4, tokens: 2048, heads: 32, kv_heads: 8, head: 128, dtype: bf16}
    attention: {device: gpu0, batch: 64, cached: 4096, heads: 32, kv_heads: 8, head: 128, dtype: bf16}

    flop = 4 x batch x heads x tokens x keys seen on average x head        traffic = queries, result, keys and values once

`backward` computes the gradients of queries, keys and values, with 2.5 times as many operations.

One query per sequence (`tokens: 1`) is a decode step, which reads the KV cache; more queries are a prefill.

The op runs on the queue `compute` of its device. A GPU has models of attention kernels (`attention:`); on other devices the time
is that of a matmul with as many operations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Final

from hwsim.demand import Cost
from hwsim.devices import AttentionCall, Gpu, Work
from hwsim.devices.gpu_attention import LIBRARIES
from hwsim.formats import precise
from hwsim.ops.op import CannotPlace, ComputeOp, Dtype, LoweredOp, Scope, check_library_name, compute
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import BYTES

BACKWARD: Final = 2.5  # FLOP of the backward pass per FLOP of the forward pass
SLOWER: Final = 1.174  # time per FLOP, backward over forward; fitted to trainings (hwsim/models/generations.py)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionOp(ComputeOp):
    """Attention of `tokens` queries of each sequence to all earlier tokens."""

    kind: ClassVar[str] = "attention"

    batch: int = field("number of sequences", default=1, minimum=1)
    tokens: int = field("number of queries (new tokens) per sequence; 1: a decode step", default=1, minimum=1)
    cached: int = field("number of earlier tokens per sequence whose keys and values are cached", default=0, minimum=0)
    heads: int = field("number of query heads", minimum=1)
    kv_heads: int | None = field("number of key and value heads (default: `heads`)", default=None, minimum=1)
    head: int = field("dimension of a head", minimum=1)
    dtype: Dtype = field("data type of queries, keys, values and result", default="bf16")
    cache: Dtype | None = field("data type of the cached keys and values (default: `dtype`)", default=None)
    window: int = field("maximum number of tokens that a query attends to (sliding window); 0: unlimited", default=0, minimum=0)
    causal: bool = field("whether a query attends only to itself and earlier tokens", default=True)
    stored: bool = field("whether new keys and values are written to a KV cache, as in serving", default=True)
    backward: bool = field("whether to compute the gradients of queries, keys and values (five matmuls)", default=False)
    kernel: str = field(
        "library in the gpu's `attention` (default: flash, else another)",
        default="",
        example="tensorrt",
    )

    def lower(self, scope: Scope) -> LoweredOp:
        if self.kv_heads is not None and self.heads % self.kv_heads:
            raise CannotPlace(f"`kv_heads: {self.kv_heads}` does not divide `heads: {self.heads}`", None)
        check_library_name(scope, self.device, "attention", "kernel", self.kernel)
        width = BYTES[self.dtype]
        call = AttentionCall(
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
    """Return the cost of the gradients: five matmuls instead of two, each slightly slower."""
    demand, times = cost.demand, BACKWARD * SLOWER
    amounts = tuple((name, times * amount) for name, amount in demand.amounts)
    why = tuple(
        term
        if term.kind == "latency"
        else replace(
            term,
            formula=f"({term.formula}) x gradients",
            inputs=(*term.inputs, ("gradients", precise(times, "1"), "five matmuls instead of two, at their rate in trainings")),
            seconds=times * term.seconds,
            doubts=tuple(doubt._replace(seconds=times * doubt.seconds) for doubt in term.doubts),
        )
        for term in cost.why
    )
    moved = tuple((name, (BACKWARD if unit == "FLOP" else 3.0) * amount, unit) for name, amount, unit in cost.moved)
    drawn = replace(demand, amounts=amounts, floor=times * demand.floor, share=times * demand.share)
    return replace(cost, demand=drawn, moved=moved, why=why)
