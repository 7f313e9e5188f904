"""A batch served: its prefill, and the tokens that follow, each a pass of its own.

    first token   = a prefill of all prompts at once
    next tokens   = a step of decoding each, the context from the prompt's length on; the mean of the first and the last of
                    them, for a step's time is linear in the context but for steps of tiles

**Error**: of single passes, see `docs/validation/models.md`.
**Range**: sequences alike that start together; no continuous batching, no chunks of a prefill, no time between passes.
"""

from __future__ import annotations

from typing import Literal

from hwsim.models.architectures.transformer import Transformer
from hwsim.models.cluster import Cluster
from hwsim.models.frameworks import Framework
from hwsim.models.memory import Footprint, kv_capacity, serving_memory
from hwsim.models.serving import Pass, decode, one_pass, prefill
from hwsim.models.speed import Speed
from hwsim.records import dataclass

Phase = Literal["prefill", "decode"]


@dataclass(frozen=True, slots=True)
class Service:
    """What a batch takes on one tensor-parallel group.

    Args:
        first: the prefill; steps: the first and the last step of decoding, none of a prefill alone.
        seconds: of the pass asked for: the prefill, or a step of decoding in the mean; total: until the last token.
        memory: at the end; verdict: whether it fits; capacity: tokens of context that would.
        copies: groups that the cluster has.
    """

    phase: Phase
    tp: int
    batch: int
    prompt: int
    output: int
    dtype: str
    first: Pass
    steps: tuple[Pass, Pass] | None
    seconds: float
    total: float
    memory: Footprint
    verdict: str
    capacity: int | None
    copies: int

    @property
    def shares(self) -> dict[str, float]:
        """Seconds of the pass asked for by what they go to."""
        if self.steps is None:
            return dict(self.first.shares)
        here, there = self.steps
        return {name: (here.shares.get(name, 0.0) + seconds) / 2 for name, seconds in there.shares.items()}

    @property
    def tokens_per_second(self) -> float:
        """Of one group: tokens read in a prefill, written in decoding."""
        return self.batch * (self.prompt if self.steps is None else 1) / self.seconds


def serve(
    model: Transformer,
    cluster: Cluster,
    framework: Framework,
    *,
    phase: Phase,
    tp: int,
    batch: int,
    prompt: int,
    output: int,
    dtype: str,
) -> Service:
    """A batch of prompts of so many tokens, and so many tokens written after each.

    Raises:
        WrongPlan: the heads do not come out even, or there are not as many GPUs.
    """
    speed = Speed(cluster.gpu, framework)
    kind = framework.attention
    first = one_pass(model, prefill(batch, prompt, tp=tp, dtype=dtype, attention=kind), cluster, framework, speed)
    steps, seconds, total = None, first.seconds, first.seconds
    if phase == "decode":
        here = one_pass(model, decode(batch, prompt + 1, tp=tp, dtype=dtype, attention=kind), cluster, framework, speed)
        there = one_pass(model, decode(batch, prompt + output, tp=tp, dtype=dtype, attention=kind), cluster, framework, speed)
        steps = here, there
        seconds = (here.seconds + there.seconds) / 2
        total += (output - 1) * seconds  # the prefill brings the first
    size = cluster.gpu.memory.size
    memory = serving_memory(model, tp, batch * (prompt + (output if steps else 0)), dtype)
    return Service(
        phase=phase,
        tp=tp,
        batch=batch,
        prompt=prompt,
        output=output if steps else 0,
        dtype=dtype,
        first=first,
        steps=steps,
        seconds=seconds,
        total=total,
        memory=memory,
        verdict=memory.verdict(size),
        capacity=None if size is None else kv_capacity(model, tp, size, dtype),
        copies=max(1, cluster.gpus // tp),
    )
