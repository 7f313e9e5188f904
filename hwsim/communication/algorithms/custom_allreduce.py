"""Custom all-reduce kernels of a framework: the sends of `direct` with the framework's time (machines/parts/own).

Source: `hwsim.machine.libraries.custom_allreduce`.
Range: all-reduce among the GPUs of one node; otherwise frameworks use NCCL.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hwsim.communication.algorithms.algorithm import Algorithm, Presets
from hwsim.communication.algorithms.direct import DirectExchange
from hwsim.communication.plan import CollectivePlan, Operation, RankGroup
from hwsim.communication.rounds import Round
from hwsim.records import dataclass
from hwsim.spec import names
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem, did_you_mean


@dataclass(frozen=True, slots=True)
class OwnKernel(Algorithm):
    """A custom all-reduce kernel in which every rank reads from all others."""

    kind: ClassVar[str] = "own"
    operations: ClassVar[tuple[Operation, ...]] = ("all-reduce",)
    presets: ClassVar[Presets | None] = {name: {"of": name} for name in ("sglang", "trtllm", "vllm")}

    of: str = field("framework of the all-reduce kernel: a file in machines/parts/own", default="vllm", example="trtllm")

    def problems(self) -> Iterator[Problem]:
        known = names("own")
        if self.of not in known:
            yield "of", f"no custom all-reduce '{self.of}' in machines/parts/own", did_you_mean(self.of, known)

    def plan(self, operation: Operation, group: RankGroup) -> CollectivePlan:
        return DirectExchange().plan(operation, group)

    def rounds(self, operation: Operation, group: RankGroup) -> tuple[Round, ...]:
        return DirectExchange().rounds(operation, group)
