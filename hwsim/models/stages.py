"""What the GPUs of a stage do for one micro-batch and at the end of a step: kernels, and collectives between them.

The same lists feed the estimate, which adds them up, and the op graph, which plays them.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from hwsim.devices import Work
from hwsim.models import kernels
from hwsim.models.frameworks import Framework
from hwsim.models.kernels import Kernel, Slice
from hwsim.models.memory import stage_parameters
from hwsim.models.plan import Axis, Laid
from hwsim.models.transformer import Transformer
from hwsim.units import BYTES

What = Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "send"]


@dataclass(frozen=True, slots=True)
class Collect:
    """A collective among the GPUs of an axis.

    Args:
        size: bytes of one rank's whole array, as nccl-tests count; of a send, of the message.
        exposed: part of it that nothing hides.
    """

    name: str
    what: What
    axis: Axis
    size: float
    exposed: float = 1.0
    times: float = 1.0


Item = Kernel | Collect


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of a stage, for one micro-batch.  again: what backward computes again before it begins."""

    forward: tuple[Item, ...]
    again: tuple[Item, ...]
    backward: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """What the GPUs of one stage do.

    Args:
        layers: how many `layer`s.
        first, last: forward and backward of the embedding, and of the output; empty for stages that have none.
        passed: bytes that each GPU sends to the next stage for a micro-batch, and gets back; 0 for a single stage.
        gathered: what fully sharded weights cost for each micro-batch.
        adding: for each micro-batch, its gradients to those of the ones before.
        ending: once a step, after the last micro-batch.
    """

    number: int
    layers: int
    layer: Layer
    first: tuple[Kernel, ...]
    last: tuple[Kernel, ...]
    passed: float
    gathered: tuple[Collect, ...]
    adding: tuple[Kernel, ...]
    ending: tuple[Item, ...]


def slice_of(laid: Laid, framework: Framework) -> Slice:
    """What one GPU has of a micro-batch."""
    plan = laid.plan
    dtype = "bf16" if plan.dtype == "fp8" else plan.dtype
    return Slice(
        sequences=plan.microbatch,
        tokens=laid.sequence,
        context=laid.sequence,
        tensor=plan.tp,
        sharded=plan.sequence_parallel,
        expert=plan.ep,
        ring=plan.cp,
        dtype=dtype,
        products="fp8" if plan.dtype == "fp8" else "",
        attention=framework.attention,
    )


def layer_of(laid: Laid, framework: Framework) -> Layer:
    """One layer, with the collectives of tensor, context and expert parallel in it."""
    return _layer(laid.model, slice_of(laid, framework), laid.plan.recompute, framework.exposed, framework.repeated)


@lru_cache(maxsize=1024)
def _layer(model: Transformer, part: Slice, recompute: str, exposed: float, repeated: float) -> Layer:
    ahead = _with_collectives(model, part, kernels.forward(model, part), ("projection", "down"), exposed)
    back = _with_collectives(model, part, kernels.backward(model, part), ("d-qkv", "d-up"), exposed)
    again: tuple[Item, ...] = ()
    if recompute == "full":
        again = ahead
    elif recompute == "selective":
        scores = [each for each in kernels.forward(model, part) if each.share == "attention" and not each.flash]
        cheap = [each for each in kernels.forward(model, part) if each.share == "elementwise"] if repeated > 0 else []
        parts = [each for each in kernels.forward(model, part) if each.share == "matmul"] if repeated > 0 else []
        again = (*scores, *cheap, *(dataclasses.replace(each, times=repeated) for each in parts))
    return Layer(ahead, again, back)


def _with_collectives(
    model: Transformer, part: Slice, found: tuple[Kernel, ...], after: tuple[str, str], exposed: float
) -> tuple[Item, ...]:
    """Tensor parallel: the sum over the GPUs of the group after attention and after the feed-forward network."""
    size = part.rows * model.hidden * part.width
    made: list[Item] = []
    for kernel in found:
        if part.expert > 1 and kernel.name in ("dispatch", "combine", "d-dispatch", "d-combine"):
            made.append(Collect("tokens", "all-to-all", "ep", size * model.top_k / (part.tensor if part.sharded else 1)))
        if part.ring > 1 and kernel.flash:
            keys = 2.0 * part.sequences * part.context * max(model.keys / part.tensor, model.of_head) * part.width
            turns = 2.0 if kernel.name.startswith("d-") else 1.0
            made.append(Collect("keys and values", "all-gather", "cp", keys, exposed=0.5, times=turns))
        made.append(kernel)
        if part.tensor > 1 and kernel.name in after:
            if part.sharded:
                made.append(Collect("gather", "all-gather", "tp", size, exposed))
                made.append(Collect("scatter", "reduce-scatter", "tp", size, exposed))
            else:
                made.append(Collect("sum", "all-reduce", "tp", size, exposed))
    return tuple(made)


def stage_of(laid: Laid, framework: Framework, number: int = 0) -> Stage:
    """Everything that the GPUs of one stage do."""
    model, plan, part = laid.model, laid.plan, slice_of(laid, framework)
    first = kernels.embedding(model, part) * 2 if number == 0 else ()
    last = kernels.output(model, part) if number == plan.pp - 1 else ()
    parted = part.tensor if framework.split or part.sharded else 1
    passed = part.rows * model.hidden * part.width / parted if plan.pp > 1 else 0.0
    own = stage_parameters(model, plan, number)
    return Stage(
        number=number,
        layers=laid.layers,
        layer=layer_of(laid, framework),
        first=first,
        last=last,
        passed=passed,
        gathered=_gathered(laid, framework, own),
        adding=_adding(laid, framework, own),
        ending=_ending(laid, framework, own),
    )


def _gathered(laid: Laid, framework: Framework, own: float) -> tuple[Collect, ...]:
    """Weights from the copies that hold them, before forward and before backward; gradients back to them."""
    if laid.plan.level < 3 or laid.shards == 1:
        return ()
    width = BYTES["bf16" if laid.plan.dtype == "fp8" else laid.plan.dtype]
    return (
        Collect("weights", "all-gather", "dp", own * width, framework.gradients, framework.gathered),
        Collect("gradients", "reduce-scatter", "dp", own * framework.gradient, framework.gradients),
    )


def _adding(laid: Laid, framework: Framework, own: float) -> tuple[Kernel, ...]:
    """The gradients of one micro-batch added to the sum so far."""
    if laid.microbatches == 1 or framework.accumulate <= 0:
        return ()
    size = framework.accumulate * own / (laid.shards if laid.plan.level >= 2 else 1)
    return (Kernel("accumulate", "optimizer", Work(reads=0.6 * size, writes=0.4 * size, dtype="fp32")),)


def _ending(laid: Laid, framework: Framework, own: float) -> tuple[Item, ...]:
    """Gradients of all copies added up, the optimizer, and the updated weights back to those who share."""
    plan, found = laid.plan, list[Item]()
    shards = laid.shards if plan.level >= 1 else 1
    if laid.dp > 1 and plan.level < 3:
        what: What = "all-reduce" if plan.level == 0 or laid.shards < laid.dp else "reduce-scatter"
        found.append(Collect("gradients", what, "dp", own * framework.gradient, framework.gradients))
    each = framework.adam if plan.optimizer == "adam" else framework.adam / 2
    bytes_moved = own / shards * each
    found.append(Kernel("optimizer", "optimizer", Work(reads=0.6 * bytes_moved, writes=0.4 * bytes_moved, dtype="fp32")))
    if laid.shards > 1 and plan.level in (1, 2):
        width = BYTES["bf16" if plan.dtype == "fp8" else plan.dtype]
        found.append(Collect("weights", "all-gather", "dp", own * width, framework.gradients))
    return tuple(found)
