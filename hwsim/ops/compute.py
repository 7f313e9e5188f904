"""Work stated as amounts: `flop` operations and `bytes` of memory traffic on one device.

    compute: {device: gpu, flop: 640 GFLOP, bytes: 2 GB, dtype: fp16, pieces: 8}

The op runs on the queue `compute` of its device.

**Error.** The user states the amounts; the traffic that really reaches memory depends on caches and fusion.

On a CPU with measured `kernels`, it may be a call of a `function` that is neither elementwise nor a matmul:

    compute: {device: cpu, function: searchsorted, flop: 1.7e6, bytes: 1.6 MB, result: 800 kB, dtype: fp64, mix: vector}
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.devices import LibraryCall, Mix, Work, general_call
from hwsim.ops.op import CalledOp, Dtype, LoweredOp, Scope, compute
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import Bytes, Flop, Ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute(CalledOp):
    """Work of `flop` and `bytes` on one device, in `pieces` consecutive ops of equal size."""

    kind: ClassVar[str] = "compute"

    flop: Flop = field("number of arithmetic operations; a multiply-add counts as two", default=0.0, example="640 GFLOP")
    bytes: Bytes = field("bytes moved between the device and its memory", default=0.0, example="2 GB")
    dtype: Dtype = field("data type of the arithmetic", default="fp32")
    mix: Mix = field("kind of arithmetic, which sets units and efficiency: matmul, vector, reduce or random", default="matmul")
    instructions: float = field("number of CPU instructions, for work that is mostly not arithmetic", default=0.0, minimum=0)
    branches: float = field("number of branches among the instructions", default=0.0, minimum=0)
    mispredicted: Ratio = field("fraction of the branches that the CPU mispredicts", default=0.0, maximum=1.0)
    threads: int = field("number of hardware threads used per core", default=1, minimum=1)
    remote: Ratio = field("fraction of the traffic that goes to the memory of another socket", default=0.0, maximum=1.0)
    pieces: int = field("number of ops that the work is cut into, each with its own launch latency", default=1, minimum=1)

    function: str = field(
        "library function in the cpu's `kernels`; `flop` counts its steps",
        default="",
        example="searchsorted",
    )
    rows: float = field("number of inner loops of `function`", default=1.0, minimum=1)
    result: Bytes = field("bytes written, out of `bytes`", default=0.0)

    def lower(self, scope: Scope) -> LoweredOp:
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

    def _call(self) -> LibraryCall | None:
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
