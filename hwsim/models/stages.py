"""What the GPUs of a pipeline stage do for one micro-batch and at the end of a step.

The same lists feed the closed form, which sums them, and the op graph, which plays them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hwsim.devices import Work
from hwsim.models.architectures.transformer_layers import Slice, block, embedding_layer, head_layer
from hwsim.models.frameworks import Framework
from hwsim.models.layer import Exchange, Item, Kernel, Layer, Operation, kernels
from hwsim.models.memory import activations, stage_parameters
from hwsim.models.plan import Laid
from hwsim.records import dataclass
from hwsim.units import BYTES


@dataclass(frozen=True, slots=True)
class Stage:
    """What the GPUs of one pipeline stage do.

    Args:
        layers: for one micro-batch.
        passed: bytes that each GPU sends to the next stage for a micro-batch, and gets back; 0 for a single stage.
        gathered: exchanges of fully sharded weights and gradients, for each micro-batch.
        adding: kernels that add the gradients of a micro-batch to those of the ones before.
        ending: kernels and exchanges once a step, after the last micro-batch.
    """

    number: int
    layers: tuple[Layer, ...]
    passed: float
    gathered: tuple[Exchange, ...]
    adding: tuple[Kernel, ...]
    ending: tuple[Item, ...]

    @property
    def layer(self) -> Layer:
        """One of its blocks."""
        return _block(self.layers)

    @property
    def first(self) -> tuple[Kernel, ...]:
        """Forward and backward of the embedding; empty for a stage without it."""
        return _both(self.layers, "embedding")

    @property
    def last(self) -> tuple[Kernel, ...]:
        """Forward and backward of the head; empty for a stage without it."""
        return _both(self.layers, "head")


def _block(layers: Sequence[Layer]) -> Layer:
    return next(layer for layer in layers if layer.name == "block")


def _both(layers: Sequence[Layer], name: str) -> tuple[Kernel, ...]:
    return tuple(kernel for layer in layers if layer.name == name for kernel in kernels((*layer.forward, *layer.backward)))


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


def layers_of(laid: Laid, framework: Framework, number: int) -> tuple[Layer, ...]:
    """The layers of one stage: embedding (the first stage), blocks, head (the last stage)."""
    model, plan, part = laid.model, laid.plan, slice_of(laid, framework)
    kept = activations(model, plan, laid.sequence, framework.attention)
    middle = block(model, part, plan.recompute, framework.exposed, framework.repeated)
    return (
        *((embedding_layer(model, part),) if number == 0 else ()),
        replace(middle, kept_bytes=kept, times=laid.layers_of(number)),
        *((head_layer(model, part, copied=plan.pp > 1 and model.tied),) if number == plan.pp - 1 else ()),
    )


def stage_of(laid: Laid, framework: Framework, number: int = 0) -> Stage:
    """Everything that the GPUs of one stage do."""
    layers, part = layers_of(laid, framework, number), slice_of(laid, framework)
    parted = part.tensor if framework.split or part.sharded else 1
    own = stage_parameters(laid.model, laid.plan, number)
    return Stage(
        number=number,
        layers=layers,
        passed=_block(layers).output_bytes / parted if laid.plan.pp > 1 else 0.0,
        gathered=_gathered(laid, framework, own),
        adding=_adding(laid, framework, own),
        ending=_ending(laid, framework, own),
    )


def _gathered(laid: Laid, framework: Framework, own: float) -> tuple[Exchange, ...]:
    """Weights from the copies that hold them, before forward and before backward; gradients back to them."""
    if laid.plan.level < 3 or laid.shards == 1:
        return ()
    width = BYTES["bf16" if laid.plan.dtype == "fp8" else laid.plan.dtype]
    return (
        Exchange("weights", "all-gather", "dp", own * width, framework.gradients, framework.gathered),
        Exchange("gradients", "reduce-scatter", "dp", own * framework.gradient, framework.gradients),
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
        operation: Operation = "all-reduce" if plan.level == 0 or laid.shards < laid.dp else "reduce-scatter"
        found.append(Exchange("gradients", operation, "dp", own * framework.gradient, framework.gradients))
    each = framework.adam if plan.optimizer == "adam" else framework.adam / 2
    bytes_moved = own / shards * each
    found.append(Kernel("optimizer", "optimizer", Work(reads=0.6 * bytes_moved, writes=0.4 * bytes_moved, dtype="fp32")))
    if laid.shards > 1 and plan.level in (1, 2):
        width = BYTES["bf16" if plan.dtype == "fp8" else plan.dtype]
        found.append(Exchange("weights", "all-gather", "dp", own * width, framework.gradients))
    return tuple(found)
