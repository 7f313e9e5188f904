"""Work of the GPUs of a pipeline stage for one micro-batch and at the end of a step.

The closed form sums these lists, and the op graph simulates them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from hwsim.devices import Work
from hwsim.models.architectures import FeedForwardNetwork
from hwsim.models.architectures.slices import MicrobatchSlice
from hwsim.models.architectures.split import LayerShard, split, stages
from hwsim.models.architectures.transformer_layers import block, block_name, embedding_layer, head_layer
from hwsim.models.architectures.unit_layers import UPDATED, flop_of, layer_of, layers_of, optimizer
from hwsim.models.architectures.units import NetworkUnit, size
from hwsim.models.framework import Framework
from hwsim.models.layer import Exchange, Item, Kernel, Layer, Operation
from hwsim.models.memory import Footprint, activations, network_memory, stage_parameters, training_memory
from hwsim.models.plan import DerivedPlan, distinct_stages, runs_of
from hwsim.records import dataclass
from hwsim.units import BYTES


@dataclass(frozen=True, slots=True)
class PipelineStage:
    """The work of the GPUs of one pipeline stage.

    Args:
        layers: layers, for one micro-batch.
        passed: bytes that each GPU sends to the next stage per micro-batch, and receives back; 0 for a single stage.
        gathered: exchanges of fully sharded weights and gradients, for each micro-batch.
        adding: kernels that add the gradients of a micro-batch to the sum.
        ending: kernels and exchanges once per step, after the last micro-batch.
        parts: blocks of each virtual stage; empty: equally many.
        runs: (block name, number of consecutive blocks) by virtual stage, if blocks differ; else empty.
    """

    number: int
    layers: tuple[Layer, ...]
    passed: float
    gathered: tuple[Exchange, ...] = ()
    adding: tuple[Kernel, ...] = ()
    ending: tuple[Item, ...] = ()
    parts: tuple[int, ...] = ()
    runs: tuple[tuple[tuple[str, int], ...], ...] = ()

    @property
    def blocks(self) -> tuple[Layer, ...]:
        """Blocks of a transformer stage, one for each layer kind."""
        return tuple(layer for layer in self.layers if layer.name.startswith("block"))


def slice_of(laid: DerivedPlan, framework: Framework) -> MicrobatchSlice:
    """Return the part of a micro-batch on one GPU."""
    plan = laid.plan
    return MicrobatchSlice(
        sequences=plan.microbatch,
        tokens=laid.sequence,
        context=laid.sequence,
        tensor=plan.tp,
        sharded=plan.sequence_parallel,
        expert=plan.ep,
        imbalance=plan.fullest,
        ring=plan.cp,
        dtype=plan.stored,
        products=plan.dtype if plan.dtype != plan.stored else "",
        attention=framework.attention,
        flex=framework.dispatcher == "flex",
        dispatched=framework.dispatched,
    )


@dataclass(frozen=True, slots=True)
class TrainingStepWork:
    """The work of a training step on the GPUs, for the closed form.

    Args:
        layers: layers of the model, for one micro-batch.
        stages: stages that may be the longest, including the first and the last.
        sent: bytes that each stage except the last sends per micro-batch, and receives back.
        flop: model FLOP of a step on all GPUs.
        recomputed_flop: FLOP of the recomputation.
        memory: memory of the stage that needs most.
        numbers: numbers in the inputs of a step that the host prepares for one GPU.
    """

    laid: DerivedPlan
    layers: tuple[Layer, ...]
    stages: tuple[PipelineStage, ...]
    sent: tuple[float, ...]
    flop: float
    recomputed_flop: float
    memory: Footprint
    numbers: int = 0


# ---- transformers ----


def transformer_load(laid: DerivedPlan, framework: Framework) -> TrainingStepWork:
    """Return the work of a transformer's step. With equal layers, it contains the first, second and last stage."""
    model, plan = laid.transformer, laid.plan
    stages = tuple(stage_of(laid, framework, number) for number in distinct_stages(model, plan))
    recomputed = 0.0
    if plan.recompute == "full":
        recomputed = laid.tokens * model.forward_flop(laid.sequence)
    elif plan.recompute == "selective" and framework.attention == "plain":
        recomputed = (
            laid.tokens * laid.sequence * math.fsum(2.0 * kind.layers * (kind.queries + kind.attended) for kind in model.kinds)
        )
    return TrainingStepWork(
        laid=laid,
        layers=(stages[0].layers[0], *blocks_of(laid, framework), stages[-1].layers[-1]),
        stages=stages,
        sent=(stages[0].passed,) * (plan.pp - 1),
        flop=laid.tokens * model.training_flop(laid.sequence),
        recomputed_flop=recomputed,
        memory=largest_stage_memory(laid, framework),
    )


def largest_stage_memory(laid: DerivedPlan, framework: Framework) -> Footprint:
    """Return the memory of the stage that needs most."""
    stages = distinct_stages(laid.transformer, laid.plan)
    return max((training_memory(laid, framework, stage) for stage in stages), key=lambda need: need.total)


def stage_of(laid: DerivedPlan, framework: Framework, number: int = 0) -> PipelineStage:
    """Return the work of one stage of a transformer: embedding (first stage), blocks, head (last stage)."""
    model, plan, part = laid.transformer, laid.plan, slice_of(laid, framework)
    kinds = laid.kinds_of(number)
    blocks = blocks_of(laid, framework)
    middle = tuple(
        replace(layer, times=kinds.get(kind, 0)) for kind, layer in enumerate(blocks) if kind in kinds or not model.runs
    )
    layers = (
        *((embedding_layer(model, part),) if number == 0 else ()),
        *middle,
        *((head_layer(model, part, copied=plan.pp > 1 and model.tied),) if number == plan.pp - 1 else ()),
    )
    parted = part.tensor if framework.split or part.sharded else 1
    parameters = stage_parameters(model, plan, number)
    return PipelineStage(
        number=number,
        layers=layers,
        passed=blocks[0].output_bytes / parted if plan.pp > 1 else 0.0,
        gathered=gathered_of(laid, framework, parameters),
        adding=adding_of(laid, framework, parameters),
        ending=ending_of(laid, framework, parameters),
        parts=laid.parts_of(number),
        runs=tuple(tuple((block_name(kind), count) for kind, count in run) for run in runs_of(model, plan, number))
        if model.runs
        else (),
    )


def blocks_of(laid: DerivedPlan, framework: Framework) -> tuple[Layer, ...]:
    """Return the blocks of the whole model for one micro-batch, one layer per layer kind."""
    plan, part = laid.plan, slice_of(laid, framework)
    return tuple(
        replace(
            block(
                kind, part, plan.recompute, framework.exposed, framework.repeated, stops=framework.stops, name=block_name(number)
            ),
            kept_bytes=activations(kind, plan, laid.sequence, framework.attention, framework.repeated),
            times=kind.layers,
        )
        for number, kind in enumerate(laid.transformer.kinds)
    )


def gathered_of(laid: DerivedPlan, framework: Framework, parameters: float) -> tuple[Exchange, ...]:
    """Return the all-gathers of sharded weights before forward and backward, and the reduce-scatter of gradients."""
    if not laid.plan.gathers or laid.sharers == 1:
        return ()
    width = BYTES[laid.plan.stored]
    return (
        Exchange("weights", "all-gather", "dp", parameters * width, framework.gradients, framework.gathered),
        Exchange(
            "gradients", "reduce-scatter", "dp", parameters * framework.gradient_bytes(laid.plan.stored), framework.gradients
        ),
    )


def adding_of(laid: DerivedPlan, framework: Framework, parameters: float) -> tuple[Kernel, ...]:
    """Return the kernel that adds the gradients of one micro-batch to the sum."""
    if laid.microbatches == 1 or framework.accumulate <= 0:
        return ()
    size = framework.accumulate * parameters / (laid.sharers if laid.plan.level == 2 or laid.plan.gathers else 1)
    return (Kernel("accumulate", "optimizer", Work(reads=0.6 * size, writes=0.4 * size, dtype="fp32")),)


def ending_of(laid: DerivedPlan, framework: Framework, parameters: float) -> tuple[Item, ...]:
    """Return the gradient sum over all replicas, the optimizer, and the all-gather of updated weights if replicas share it."""
    plan, items = laid.plan, list[Item]()
    shards = laid.sharers if plan.level >= 1 else 1
    if laid.summing > 1 and not plan.gathers:
        operation: Operation = "all-reduce" if plan.level == 0 or laid.shards < laid.dp else "reduce-scatter"
        size = parameters * framework.gradient_bytes(plan.stored)
        items.append(Exchange("gradients", operation, "dp", size, framework.gradients))
    moved = framework.adam if plan.optimizer == "adam" else framework.adam / 2
    bytes_moved = parameters / shards * moved
    items.append(Kernel("optimizer", "optimizer", Work(reads=0.6 * bytes_moved, writes=0.4 * bytes_moved, dtype="fp32")))
    if laid.sharers > 1 and plan.level > 0 and not plan.gathers:
        width = BYTES[plan.stored]
        items.append(Exchange("weights", "all-gather", "dp", parameters * width, framework.gradients))
    return tuple(items)


# ---- networks of convolutions, perceptrons ----


def network_load(laid: DerivedPlan, seconds: Callable[[Layer], float]) -> TrainingStepWork:
    """Return the work of a step of a CNN or MLP.

    Args:
        seconds: function from a layer to its seconds for one micro-batch, which determines the stage boundaries.
    """
    network, plan = laid.network, laid.plan
    layers = layers_of(network, plan.microbatch, plan.dtype)
    named = {layer.name: layer for layer in layers}
    cuts = network_cut(network, plan.pp, 1, lambda unit: seconds(named[unit.name]))
    stages = network_stages(cuts, plan.microbatch, plan.dtype, UPDATED[plan.optimizer])
    memories = [network_memory(stage.layers, plan, stage.number, laid.microbatches) for stage in stages]
    return TrainingStepWork(
        laid=laid,
        layers=layers,
        stages=stages,
        sent=tuple(stage.passed for stage in stages[:-1]),
        flop=3.0 * flop_of(network) * plan.global_batch,
        recomputed_flop=0.0,
        memory=max(memories, key=lambda need: need.total),
        numbers=laid.microbatches * plan.microbatch * size(network.input),
    )


def network_cut(
    network: FeedForwardNetwork, pp: int, tp: int, seconds: Callable[[NetworkUnit], float]
) -> tuple[tuple[LayerShard, ...], ...]:
    """Return the layers of each stage.

    Stage boundaries lie between blocks and minimize the longest stage. A single stage may be split over `tp` GPUs.
    """
    units = network.chain()
    if pp == 1:
        return (split(units, tp),)
    return tuple(tuple(LayerShard(unit) for unit in part) for part in stages(units, pp, seconds))


def network_stages(cuts: Sequence[Sequence[LayerShard]], batch: int, dtype: str, updated: float) -> tuple[PipelineStage, ...]:
    """Return the stages of the training of a CNN or MLP for `batch` examples at once.

    Args:
        updated: bytes that the update of a parameter moves.
    """
    made = []
    for number, pieces in enumerate(cuts):
        layers = tuple(
            _with_exchanges(piece, layer_of(piece.unit, batch, dtype, training=True, first=number == i == 0), batch, dtype)
            for i, piece in enumerate(pieces)
        )
        passed = layers[-1].output_bytes if number < len(cuts) - 1 else 0.0
        made.append(PipelineStage(number, layers, passed, ending=(optimizer(layers, updated),)))
    return tuple(made)


def _with_exchanges(piece: LayerShard, layer: Layer, batch: int, dtype: str) -> Layer:
    """Return a layer with the exchanges of split channels: inputs before it, and gradients after their computation."""
    if not piece.gathers and not piece.scatters:
        return layer
    width = batch * BYTES[dtype]
    gather = Exchange(f"gather {layer.name}", "all-gather", "tp", piece.gathers * width)
    scatter = Exchange(f"scatter {layer.name}", "reduce-scatter", "tp", piece.scatters * width)
    first, rest = layer.backward[:1], layer.backward[1:]
    return replace(
        layer,
        forward=(gather, *layer.forward) if piece.gathers else layer.forward,
        backward=(*first, scatter, *rest) if piece.scatters and first else layer.backward,
    )
