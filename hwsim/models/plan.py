"""Parallel plans of a training: tensor, pipeline, data, expert and context parallelism, and the batch of a step.

    plan = ParallelPlan(tp=8, pp=8, microbatch=1, global_batch=1536)
    laid = lay(model, plan, gpus=1024)      # raises all mistakes at once, or returns the derived numbers

GPUs are numbered in machine order. `order` defines which groups consist of neighbouring GPUs; by default tensor, context, expert,
pipeline, data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from hwsim.models.architectures import FeedForwardNetwork, Model, Transformer
from hwsim.models.architectures.slices import NARROW
from hwsim.models.architectures.split import blocks
from hwsim.models.layer import Axis
from hwsim.records import dataclass
from hwsim.spec.fields import field

Schedule = Literal["gpipe", "1f1b", "interleaved"]
Sharding = Literal["none", "zero-0", "zero-1", "zero-2", "zero-3", "fsdp"]
Recompute = Literal["none", "selective", "full"]
Optimizer = Literal["adam", "sgd"]
Dtype = Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp4"]


Size = TypeVar("Size", int, NDArray[np.int64])


class WrongPlan(ValueError):
    """The plan does not fit the model or the machine.

    `mistakes`: (key, message) of each problem.
    """

    def __init__(self, mistakes: tuple[tuple[str, str], ...]) -> None:
        super().__init__("; ".join(message for _, message in mistakes))
        self.mistakes = mistakes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """GPUs of each kind of parallelism, and the rank order of the groups."""

    tp: int = field("tensor parallelism: GPUs that split every matrix", default=1, minimum=1)
    pp: int = field("pipeline parallelism: stages of consecutive layers", default=1, minimum=1)
    dp: int | Literal["rest"] = field("data parallelism: replicas of the model; rest: the remaining GPUs", default="rest")
    cp: int = field("context parallelism: GPUs that split every sequence", default=1, minimum=1)
    ep: int = field("expert parallelism: GPUs of a data-parallel group that split the experts", default=1, minimum=1)
    order: tuple[Axis, ...] = field("parallel groups in rank order; the first consists of neighbouring GPUs",
                                    default=("tp", "cp", "ep", "pp", "dp"), example="[tp, pp, dp]")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelPlan(Sizes):
    """A parallel plan of a training."""

    imbalance: float = field("tokens of the most loaded expert-parallel GPU, relative to the average", default=1.0, minimum=1.0)
    sequence_parallel: bool = field("norms and residuals are split over the tensor-parallel group", default=False)
    microbatch: int = field("sequences of a micro-batch of one replica", default=1, minimum=1)
    global_batch: int = field("sequences of a training step, over all replicas", minimum=1)
    sequence: int | None = field("tokens of a sequence (default: the model's maximum)", default=None, minimum=1)
    schedule: Schedule = field("pipeline schedule: order of forward and backward passes", default="1f1b")
    chunks: int = field("model chunks (virtual stages) per pipeline stage of the interleaved schedule", default=1, minimum=1)
    uneven: bool = field("stages may differ by one layer; the embedding and the output count as one layer each", default=False)
    sharding: Sharding = field(
        "state sharded over the replicas: optimizer (1), also gradients (2), also weights (3, fsdp)", default="zero-0"
    )
    shards: int | None = field("replicas that share one sharded set (default: all)", default=None, minimum=1)
    recompute: Recompute = field("activations that backward recomputes: none, attention scores or whole layers", default="none")
    optimizer: Optimizer = field("optimizer that updates the weights", default="adam")
    dtype: Dtype = field("data type of activations and matmuls", default="bf16")

    @property
    def stored(self) -> Dtype:
        """Data type of weights and activations in memory: bf16 if matmuls run in fp8 or fp4."""
        return "bf16" if self.dtype in NARROW else self.dtype

    @property
    def fullest(self) -> float:
        """Expert tokens of the most loaded GPU, relative to the average; 1 without expert parallelism."""
        return self.imbalance if self.ep > 1 else 1.0

    @property
    def level(self) -> int:
        """ZeRO stage, 0 to 3."""
        return {"none": 0, "zero-0": 0, "zero-1": 1, "zero-2": 2, "zero-3": 3, "fsdp": 3}[self.sharding]

    @property
    def gathers(self) -> bool:
        """Whether weights are gathered for every micro-batch. Pipeline stages gather weights once per step and keep them."""
        return self.level == 3 and self.pp == 1


@dataclass(frozen=True, slots=True)
class DerivedPlan:
    """A parallel plan with the numbers that follow from a GPU count.

    Args:
        dp: data-parallel replicas.
        microbatches: micro-batches per replica and step.
        sequence: tokens per example; 1 for a CNN or MLP.
        layers: blocks of the longest stage of a transformer; 0 for a CNN or MLP.
    """

    model: Model
    plan: ParallelPlan
    gpus: int
    dp: int
    microbatches: int
    sequence: int
    layers: int

    @property
    def transformer(self) -> Transformer:
        """The model, which must be a transformer."""
        if not isinstance(self.model, Transformer):
            raise TypeError("the plan's model is not a transformer")
        return self.model

    @property
    def routed(self) -> bool:
        """Whether the model has a router that sends tokens to experts."""
        return isinstance(self.model, Transformer) and any(kind.experts > 1 for kind in self.model.kinds)

    @property
    def network(self) -> FeedForwardNetwork:
        """The model, which must be a CNN or MLP."""
        if isinstance(self.model, Transformer):
            raise TypeError("the plan's model is a transformer")
        return self.model

    def stride(self, axis: Axis) -> int:
        """Return the distance between neighbours of a group in rank order."""
        return self.strides[axis]

    @property
    def strides(self) -> dict[Axis, int]:
        """Distance between neighbours of a group in rank order, by axis."""
        return strides_of(self.plan.order, tp=self.plan.tp, cp=self.plan.cp, pp=self.plan.pp, ep=self.plan.ep, dp=self.dp)

    def sharing(self, copies: int, stage: int) -> NDArray[np.int64]:
        """Return the ranks of the groups that exchange gradients or weights of a stage: groups x ranks.

        Each group consists of `copies` consecutive replicas. There is one group for each tensor-parallel part.
        """
        plan = self.plan
        return _sharing(plan.order, (plan.tp, plan.cp, plan.pp, plan.ep, self.dp), copies, stage)

    def layers_of(self, stage: int) -> int:
        """Return the number of layers of a stage."""
        return sum(self.parts_of(stage))  # integers

    def parts_of(self, stage: int) -> tuple[int, ...]:
        """Return the number of layers of each virtual stage of a stage."""
        return parts_of(self.transformer, self.plan, stage)

    def kinds_of(self, stage: int) -> dict[int, int]:
        """Return the number of layers of a stage by layer kind."""
        return kinds_of(self.transformer, self.plan, stage)

    @property
    def shards(self) -> int:
        """Replicas that share one set of optimizer states, gradients or weights."""
        return min(self.dp, self.plan.shards or self.dp)

    @property
    def sharers(self) -> int:
        """GPUs that share one such set. GPUs that split a sequence (cp) share the set as well."""
        return self.shards * self.plan.cp

    @property
    def summing(self) -> int:
        """GPUs whose gradients are summed."""
        return self.dp * self.plan.cp

    @property
    def tokens(self) -> int:
        """Tokens of a step, or examples for a CNN or MLP."""
        return self.plan.global_batch * self.sequence

    @property
    def unit(self) -> str:
        """Unit of `tokens`: tokens or examples."""
        return "tokens" if isinstance(self.model, Transformer) else "examples"


@lru_cache(64)
def _sharing(order: tuple[Axis, ...], sizes: tuple[int, ...], copies: int, stage: int) -> NDArray[np.int64]:
    tp, cp, pp, ep, dp = sizes
    strides, copy = strides_of(order, tp=tp, cp=cp, pp=pp, ep=ep, dp=dp), np.arange(dp)
    copied = (copy % ep * strides["ep"] + copy // ep * strides["dp"]).reshape(-1, 1, copies, 1)
    parts = np.arange(tp).reshape(-1, 1, 1) * strides["tp"]
    groups: NDArray[np.int64] = stage * strides["pp"] + parts + copied + np.arange(cp) * strides["cp"]
    return groups.reshape(-1, copies * cp)


def strides_of(order: Sequence[Axis], *, tp: Size, cp: Size, pp: Size, ep: Size, dp: Size) -> dict[Axis, Size]:
    """Return the distance between neighbours of a group in rank order, by axis; of arrays, for each element.

    Replicas that split the experts (ep) are a subset of the data-parallel replicas. They are neighbours unless `order` places ep.

    >>> strides_of(("tp", "pp", "dp"), tp=2, cp=1, pp=4, ep=2, dp=4)
    {'tp': 1, 'cp': 0, 'pp': 2, 'ep': 8, 'dp': 16}
    """
    sizes: dict[Axis, Size] = {"tp": tp, "cp": cp, "pp": pp, "ep": ep, "dp": dp // ep}
    strides, stride = dict.fromkeys(sizes, 0 * tp), tp // tp
    for axis in order:
        inner: tuple[Axis, ...] = ("ep", "dp") if axis == "dp" and "ep" not in order else (axis,)
        for name in inner:
            strides[name] = stride
            stride = stride * sizes[name]
    return strides


def derive_plan(model: Model, plan: ParallelPlan, gpus: int) -> DerivedPlan:
    """Return the plan on `gpus` GPUs with all derived numbers.

    Raises:
        WrongPlan: all mistakes of the plan.
    """
    mistakes = tuple(problems(model, plan, gpus))
    if mistakes:
        raise WrongPlan(mistakes)
    dp = replicas(plan, gpus)
    return DerivedPlan(
        model=model,
        plan=plan,
        gpus=gpus,
        dp=dp,
        microbatches=plan.global_batch // (dp * plan.microbatch),
        sequence=(plan.sequence or model.sequence) if isinstance(model, Transformer) else 1,
        layers=max(sum(parts_of(model, plan, stage)) for stage in range(min(2, plan.pp)))  # integers
        if isinstance(model, Transformer)
        else 0,
    )


def parts_of(model: Transformer, plan: ParallelPlan, stage: int) -> tuple[int, ...]:
    """Return the number of layers of each virtual stage of a stage, in the order in which its GPUs run them.

    If the layers do not divide evenly, the embedding and the output count as one layer each, and the first virtual stages get one
    layer more.

    >>> model = Transformer(layers=126, hidden=128, heads=1, vocab=1)
    >>> [parts_of(model, ParallelPlan(pp=16, chunks=8, global_batch=1), stage) for stage in (0, 1, 15)]
    [(0, 1, 1, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1, 1, 0)]
    >>> [sum(parts_of(model, ParallelPlan(pp=12, global_batch=1), stage)) for stage in range(12)]
    [10, 11, 11, 11, 11, 11, 11, 11, 10, 10, 10, 9]
    """
    virtual_stages = plan.pp * plan.chunks
    if model.layers % virtual_stages == 0:
        return (model.layers // virtual_stages,) * plan.chunks
    least, more = divmod(model.layers + 2, virtual_stages)
    numbers = range(stage, virtual_stages, plan.pp)
    return tuple(max(0, least + (number < more) - (number in (0, virtual_stages - 1))) for number in numbers)


def runs_of(model: Transformer, plan: ParallelPlan, stage: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return the (kind, count) pairs of consecutive equal layers, for each virtual stage of a stage.

    >>> from hwsim.models.architectures.layer_parts import LayerRun
    >>> runs = (LayerRun(layers=1, experts=1), LayerRun(layers=3))
    >>> model = Transformer(layers=4, hidden=128, heads=1, vocab=1, experts=8, runs=runs)
    >>> [runs_of(model, ParallelPlan(pp=2, global_batch=1), stage) for stage in (0, 1)]
    [(((0, 1), (1, 1)),), (((1, 2),),)]
    """
    if not model.runs:
        return tuple(((0, part),) if part else () for part in parts_of(model, plan, stage))
    lengths = [parts_of(model, plan, other) for other in range(plan.pp)]
    runs = []
    for chunk in range(plan.chunks):
        before = sum(sum(other[:chunk]) for other in lengths) + sum(other[chunk] for other in lengths[:stage])  # integers
        runs.append(model.between(before, before + lengths[stage][chunk]))
    return tuple(runs)


def kinds_of(model: Transformer, plan: ParallelPlan, stage: int) -> dict[int, int]:
    """Return the number of layers of a stage by layer kind."""
    counts: dict[int, int] = {}
    for run in runs_of(model, plan, stage):
        for kind, count in run:
            counts[kind] = counts.get(kind, 0) + count
    return counts


def distinct_stages(model: Transformer, plan: ParallelPlan) -> tuple[int, ...]:
    """Return the stages that may be the slowest or need most memory: with equal layers the first, second and last, else all."""
    return tuple(range(plan.pp)) if model.runs else tuple(sorted({0, min(1, plan.pp - 1), plan.pp - 1}))


def groups(microbatches: int, stages: int) -> tuple[int, ...]:
    """Return the micro-batches per group of an interleaved schedule; a group passes a virtual stage before the next one starts.

    >>> groups(8, 4), groups(11, 4), groups(3, 4)
    ((4, 4), (6, 5), (3,))
    """
    count = max(1, microbatches // stages)
    least, more = divmod(microbatches, count)
    return tuple(least + (number < more) for number in range(count))


def replicas(plan: ParallelPlan, gpus: int) -> int:
    """Return the number of data-parallel replicas: the plan's `dp`, or as many as the remaining GPUs allow."""
    return max(1, gpus // (plan.tp * plan.pp * plan.cp)) if plan.dp == "rest" else plan.dp


def powers_up_to(limit: int) -> tuple[int, ...]:
    """Return the powers of two up to `limit`.

    >>> powers_up_to(8)
    (1, 2, 4, 8)
    """
    return tuple(1 << exponent for exponent in range(limit.bit_length()))


def problems(model: Model, plan: ParallelPlan, gpus: int) -> Iterator[tuple[str, str]]:
    """Yield (key, message) of every constraint that the plan breaks."""
    tp, pp, cp, dp = plan.tp, plan.pp, plan.cp, replicas(plan, gpus)
    axes = " x ".join(f"{name} {size}" for name, size in (("tp", tp), ("pp", pp), ("cp", cp)) if size > 1 or name != "cp")
    if plan.dp == "rest":
        if gpus % (tp * pp * cp):
            yield "dp", f"{axes} = {tp * pp * cp} does not divide {gpus} GPUs"
    elif tp * pp * cp * dp != gpus:
        yield "dp", f"{axes} x dp {dp} = {tp * pp * cp * dp} GPUs, but there are {gpus}"
    if isinstance(plan.dp, int) and plan.dp < 1:
        yield "dp", f"dp {plan.dp}: expected at least 1 replica"
        return
    yield from _transformer_problems(model, plan, dp) if isinstance(model, Transformer) else _network_problems(model, plan)
    examples = dp * plan.microbatch
    if plan.global_batch % examples:
        yield (
            "global_batch",
            f"a global batch of {plan.global_batch} is not a multiple of dp {dp} x microbatch {plan.microbatch} = {examples}",
        )
    if plan.shards is not None and dp % plan.shards:
        yield "shards", f"{plan.shards} shards do not divide dp {dp}"
    if len(set(plan.order)) < len(plan.order):
        yield "order", "`order` lists an axis twice"
    missing = [axis for axis, size in (("tp", tp), ("cp", cp), ("pp", pp), ("dp", dp)) if size > 1 and axis not in plan.order]
    if missing:
        yield "order", f"`order` lacks {', '.join(missing)}"


def _transformer_problems(model: Transformer, plan: ParallelPlan, dp: int) -> Iterator[tuple[str, str]]:
    tp, pp, cp = plan.tp, plan.pp, plan.cp
    if model.heads % tp:
        yield "tp", f"tp {tp} does not divide {model.heads} heads"
    else:
        yield from dict.fromkeys(uneven_widths(model, tp))
    if pp > model.layers:
        yield "pp", f"pp {pp} stages, but only {model.layers} layers"
    elif model.layers % pp and not plan.uneven:
        yield "pp", f"pp {pp} does not divide {model.layers} layers; `uneven: true` allows stages that differ by one layer"
    elif pp * plan.chunks > model.layers + 2:
        yield "chunks", f"pp {pp} x {plan.chunks} chunks exceed {model.layers} layers plus embedding and output"
    elif model.layers % (pp * plan.chunks) and not plan.uneven:
        yield (
            "chunks",
            f"{plan.chunks} chunks do not divide the {model.layers // pp} layers of a stage; `uneven: true` allows it",
        )
    if plan.chunks > 1 and plan.schedule != "interleaved":
        yield "schedule", f"{plan.chunks} chunks per stage require `schedule: interleaved`, got {plan.schedule}"
    if (plan.sequence or model.sequence) % cp:
        yield "cp", f"cp {cp} does not divide sequences of {plan.sequence or model.sequence} tokens"
    if plan.sequence_parallel and tp == 1:
        yield "sequence_parallel", "sequence parallelism requires tensor parallelism (tp > 1)"
    experts = sorted({kind.experts for kind in model.kinds if kind.experts > 1})
    if plan.ep > 1 and not experts:
        yield "ep", f"ep {plan.ep}, but the model has no experts"
    elif any(count % plan.ep for count in experts):
        yield "ep", f"ep {plan.ep} does not divide {next(count for count in experts if count % plan.ep)} experts"
    elif plan.ep > 1 and dp % plan.ep:
        yield "ep", f"ep {plan.ep} does not divide dp {dp}, whose replicas share the experts"
    elif plan.ep > 1:
        limit = min(plan.ep * min(1.0, kind.experts / plan.ep / kind.top_k) for kind in model.kinds if kind.experts > 1)
        if plan.imbalance > limit:
            message = f"imbalance {plan.imbalance:g}: one of {plan.ep} GPUs can receive at most {limit:g} x the average tokens"
            yield "imbalance", message


def uneven_widths(model: Transformer, tp: int) -> Iterator[tuple[str, str]]:
    """Yield (key, message) of layer widths that are not divisible by `tp`; the first one of each layer kind."""
    for kind in model.kinds:
        if kind.latent is None and kind.of_kv_heads % tp and tp % kind.of_kv_heads:
            yield "tp", f"tp {tp} neither divides {kind.of_kv_heads} KV heads nor is a multiple of them"
        elif kind.of_ffn % tp:
            yield "tp", f"tp {tp} does not divide a feed-forward width of {kind.of_ffn}"
        elif kind.shared % tp:
            yield "tp", f"tp {tp} does not divide a shared-expert width of {kind.shared}"


def _network_problems(model: FeedForwardNetwork, plan: ParallelPlan) -> Iterator[tuple[str, str]]:
    count = len(blocks(model.chain())) if plan.pp > 1 else plan.pp
    if plan.pp > count:
        yield "pp", f"pp {plan.pp} stages, but the network has only {count} blocks"
    if plan.tp > 1:
        yield (
            "tp",
            f"tp {plan.tp}: estimates do not support tensor parallelism of a CNN or MLP; use `hwsim simulate` with `train:`",
        )
    if plan.cp > 1 or plan.ep > 1:
        yield "cp" if plan.cp > 1 else "ep", "a CNN or MLP has no sequences and no experts to split: use dp and pp"
    if plan.chunks > 1 or plan.schedule == "interleaved":
        yield "schedule", "a CNN or MLP does not support the interleaved schedule: use 1f1b or gpipe"
    if plan.level > 0:
        yield "sharding", f"a CNN or MLP does not support sharding: expected none, got {plan.sharding}"
    if plan.recompute != "none" or plan.sequence_parallel or plan.sequence is not None:
        yield "recompute", "a CNN or MLP does not support recompute, sequence parallelism or a sequence length"
