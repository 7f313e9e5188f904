"""Work given as amounts: `flop` operations and `bytes` of memory traffic on one device.

    compute: {device: gpu, flop: 640 GFLOP, bytes: 2 GB, dtype: fp16, pieces: 8}

Runs on the queue `compute` of its device. Error: the amounts are the user's; what reaches memory
depends on caches and fusion.

On a CPU with measured `kernels` it may be a call of a `function` that is neither elementwise nor a product:

    compute: {device: cpu, function: searchsorted, flop: 1.7e6, bytes: 1.6 MB, result: 800 kB, dtype: fp64, mix: vector}
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.devices import Call, Mix, Work, general_call
from hwsim.ops.op import CalledOp, Dtype, Placed, Scope, compute
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import Bytes, Flop, Ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute(CalledOp):
    """`flop` and `bytes` on one device, in `pieces` ops of equal size that follow each other."""

    kind: ClassVar[str] = "compute"

    flop: Flop = field("arithmetic operations; a multiply-add is two", default=0.0, example="640 GFLOP")
    bytes: Bytes = field("bytes moved between the device and its memory", default=0.0, example="2 GB")
    dtype: Dtype = field("type it computes in", default="fp32")
    mix: Mix = field("which units and efficiency: matmul, vector, reduce or random", default="matmul")
    instructions: float = field("instructions a cpu executes, where arithmetic is not what it does most", default=0.0, minimum=0)
    branches: float = field("of them, branches", default=0.0, minimum=0)
    mispredicted: Ratio = field("part of the branches whose way a cpu guesses wrong", default=0.0, maximum=1.0)
    threads: int = field("hardware threads of each core that work on it", default=1, minimum=1)
    remote: Ratio = field("part of the traffic that goes to another socket's memory", default=0.0, maximum=1.0)
    pieces: int = field("ops it is cut into: each pays the launch latency, all share the work", default=1, minimum=1)

    function: str = field(
        "function of a library that it is, where those were measured on the cpu (`kernels`); `flop` counts its steps",
        default="",
        example="searchsorted",
    )
    rows: float = field("of the function: inner loops it takes", default=1.0, minimum=1)
    result: Bytes = field("part of the bytes that it writes", default=0.0)

    def lower(self, scope: Scope) -> Placed:
        work = Work(
            flop=self.flop,
            reads=self.bytes if self.function else max(self.bytes - self.result, 0.0),
            writes=0.0 if self.function else min(self.result, self.bytes),
            call=self._call(),
            dtype=self.dtype,
            mix=self.mix,
            instructions=self.instructions,
            branches=self.branches,
            mispredicted=self.mispredicted,
            threads=self.threads,
            remote=self.remote,
        )
        return compute(scope, self, work, pieces=self.pieces)

    def _call(self) -> Call | None:
        if not self.function:
            return None
        return self.as_called(
            general_call(
                self.function,
                dtype=self.dtype,
                count=self.flop,
                reads=max(self.bytes - self.result, 0.0),
                writes=self.result,
                form=self.form,
                rows=self.rows,
                into=self.into,
                since=self.ages(2),
            )
        )
