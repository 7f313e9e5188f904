"""Parallel plans of a training: tensor, pipeline, data, expert and context parallel, and the batch of a step.

    plan = ParallelPlan(tensor=8, pipeline=8, microbatch=1, global_batch=1536)
    laid = lay(model, plan, gpus=1024)      # every mistake at once, or the numbers that follow

GPUs are numbered in the order of the machine; `order` says which group lies on neighbours: tensor, then context, then expert,
then pipeline, then data, unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from hwsim.models.architectures import Model, Network, Transformer
from hwsim.models.architectures.split import blocks
from hwsim.models.layer import Axis
from hwsim.records import dataclass
from hwsim.spec.fields import field

Schedule = Literal["gpipe", "1f1b", "interleaved"]
Sharding = Literal["none", "zero-0", "zero-1", "zero-2", "zero-3", "fsdp"]
Recompute = Literal["none", "selective", "full"]
Optimizer = Literal["adam", "sgd"]
Dtype = Literal["fp32", "tf32", "bf16", "fp16", "fp8"]


class WrongPlan(ValueError):
    """The plan does not fit the model or the machine; `mistakes`: a line each, with the key it is about."""

    def __init__(self, mistakes: tuple[tuple[str, str], ...]) -> None:
        super().__init__("; ".join(message for _, message in mistakes))
        self.mistakes = mistakes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """GPUs of each kind of parallelism, and their order."""

    tp: int = field("tensor parallelism: GPUs that split every matrix", default=1, minimum=1)
    pp: int = field("pipeline parallelism: stages of consecutive layers", default=1, minimum=1)
    dp: int | Literal["rest"] = field("data parallelism: replicas of the model; rest: the remaining GPUs", default="rest")
    cp: int = field("context parallelism: GPUs that split every sequence", default=1, minimum=1)
    ep: int = field("expert parallelism: GPUs of a data-parallel group that split the experts", default=1, minimum=1)
    order: tuple[Axis, ...] = field("parallel groups in rank order; the first consists of neighbouring GPUs",
                                    default=("tp", "cp", "ep", "pp", "dp"), example="[tp, pp, dp]")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelPlan(Sizes):
    """A parallel plan."""

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
        """Number format of weights and activations in memory: bf16 if products are computed in fp8."""
        return "bf16" if self.dtype == "fp8" else self.dtype

    @property
    def fullest(self) -> float:
        """Tokens for the experts of the fullest GPU over the mean; 1 where every GPU has all experts."""
        return self.imbalance if self.ep > 1 else 1.0

    @property
    def level(self) -> int:
        """ZeRO's stage: 0 to 3."""
        return {"none": 0, "zero-0": 0, "zero-1": 1, "zero-2": 2, "zero-3": 3, "fsdp": 3}[self.sharding]

    @property
    def gathers(self) -> bool:
        """Whether weights are gathered for every micro-batch; stages of a pipeline gather theirs once a step, and keep them."""
        return self.level == 3 and self.pp == 1


@dataclass(frozen=True, slots=True)
class Laid:
    """A plan with the numbers that follow from a number of GPUs.

    Args:
        dp: data-parallel replicas.
        microbatches: micro-batches of each replica in a step.
        sequence: tokens of an example; 1 for a network that reads none.
        layers: blocks of the longest stage of a transformer; 0 of another network.
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
        """The model, where it is a transformer."""
        if not isinstance(self.model, Transformer):
            raise TypeError("the plan is not of a transformer")
        return self.model

    @property
    def routed(self) -> bool:
        """Whether a router sends its tokens to experts."""
        return isinstance(self.model, Transformer) and any(kind.experts > 1 for kind in self.model.kinds)

    @property
    def network(self) -> Network:
        """The model, where it is a network of convolutions or a perceptron."""
        if isinstance(self.model, Transformer):
            raise TypeError("the plan is of a transformer")
        return self.model

    def stride(self, axis: Axis) -> int:
        """Distance between neighbours of a group in the order of the GPUs."""
        return self.strides[axis]

    @property
    def strides(self) -> dict[Axis, int]:
        """By axis the distance of neighbours."""
        return strides_of(self.plan.order, tp=self.plan.tp, cp=self.plan.cp, pp=self.plan.pp, ep=self.plan.ep, dp=self.dp)

    def sharing(self, copies: int, stage: int) -> tuple[tuple[int, ...], ...]:
        """Places of the GPUs that exchange gradients or weights of a stage: each `copies` that follow, once for each part."""
        plan, strides = self.plan, self.strides
        splits = [part * strides["cp"] for part in range(plan.cp)]
        copied = [copy % plan.ep * strides["ep"] + copy // plan.ep * strides["dp"] for copy in range(self.dp)]
        begin = stage * strides["pp"]
        return tuple(
            tuple([begin + part * strides["tp"] + copy + split for copy in copied[first : first + copies] for split in splits])
            for first in range(0, self.dp, copies)
            for part in range(plan.tp)
        )

    def layers_of(self, stage: int) -> int:
        """Layers of a stage."""
        return sum(self.parts_of(stage))  # integers

    def parts_of(self, stage: int) -> tuple[int, ...]:
        """Layers of each virtual stage of a stage."""
        return parts_of(self.transformer, self.plan, stage)

    def kinds_of(self, stage: int) -> dict[int, int]:
        """Layers of each kind of a stage."""
        return kinds_of(self.transformer, self.plan, stage)

    @property
    def shards(self) -> int:
        """Copies that share a set of optimizer states, gradients or weights."""
        return min(self.dp, self.plan.shards or self.dp)

    @property
    def sharers(self) -> int:
        """GPUs that share such a set: those that split a sequence share theirs as well."""
        return self.shards * self.plan.cp

    @property
    def summing(self) -> int:
        """GPUs whose gradients are added up."""
        return self.dp * self.plan.cp

    @property
    def tokens(self) -> int:
        """Tokens of a step, or examples of a network that reads no tokens."""
        return self.plan.global_batch * self.sequence

    @property
    def unit(self) -> str:
        """Which of the two: tokens, examples."""
        return "tokens" if isinstance(self.model, Transformer) else "examples"


def strides_of(order: Sequence[Axis], *, tp: int, cp: int, pp: int, ep: int, dp: int) -> dict[Axis, int]:
    """By axis the distance of neighbours in the order of the GPUs.

    Replicas that split the experts (ep) are a part of the data-parallel ones (dp), next to them unless the order names ep.

    >>> strides_of(("tp", "pp", "dp"), tp=2, cp=1, pp=4, ep=2, dp=4)
    {'tp': 1, 'cp': 0, 'pp': 2, 'ep': 8, 'dp': 16}
    """
    sizes: dict[Axis, int] = {"tp": tp, "cp": cp, "pp": pp, "ep": ep, "dp": dp // ep}
    strides, stride = dict.fromkeys(sizes, 0), 1
    for axis in order:
        for name in ("ep", "dp") if axis == "dp" and "ep" not in order else (axis,):
            strides[name] = stride
            stride *= sizes[name]
    return strides


def lay(model: Model, plan: ParallelPlan, gpus: int) -> Laid:
    """The plan on `gpus` GPUs.

    Raises:
        WrongPlan: all that does not fit.
    """
    mistakes = tuple(problems(model, plan, gpus))
    if mistakes:
        raise WrongPlan(mistakes)
    dp = replicas(plan, gpus)
    return Laid(
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
    """Layers of each virtual stage of a stage, those that follow each other on its GPUs.

    The embedding and the output count as a layer each if layers do not divide, and the first virtual stages have one more.

    >>> model = Transformer(layers=126, hidden=128, heads=1, vocab=1)
    >>> [parts_of(model, ParallelPlan(pp=16, chunks=8, global_batch=1), stage) for stage in (0, 1, 15)]
    [(0, 1, 1, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1, 1, 0)]
    >>> [sum(parts_of(model, ParallelPlan(pp=12, global_batch=1), stage)) for stage in range(12)]
    [10, 11, 11, 11, 11, 11, 11, 11, 10, 10, 10, 9]
    """
    many = plan.pp * plan.chunks
    if model.layers % many == 0:
        return (model.layers // many,) * plan.chunks
    least, more = divmod(model.layers + 2, many)
    numbers = range(stage, many, plan.pp)
    return tuple(max(0, least + (number < more) - (number in (0, many - 1))) for number in numbers)


def runs_of(model: Transformer, plan: ParallelPlan, stage: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """(kind, how many follow each other) of the layers of each virtual stage of a stage.

    >>> from hwsim.models.architectures.layer_parts import Run
    >>> runs = (Run(layers=1, experts=1), Run(layers=3))
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
    """Layers of each kind of a stage."""
    counts: dict[int, int] = {}
    for run in runs_of(model, plan, stage):
        for kind, many in run:
            counts[kind] = counts.get(kind, 0) + many
    return counts


def stages_told_apart(model: Transformer, plan: ParallelPlan) -> tuple[int, ...]:
    """Stages that may be the longest or the fullest: of equal layers the first, the second and the last, else all."""
    return tuple(range(plan.pp)) if model.runs else tuple(sorted({0, min(1, plan.pp - 1), plan.pp - 1}))


def groups(microbatches: int, stages: int) -> tuple[int, ...]:
    """Micro-batches of each group that, interleaved, passes a virtual stage before the next one begins.

    >>> groups(8, 4), groups(11, 4), groups(3, 4)
    ((4, 4), (6, 5), (3,))
    """
    count = max(1, microbatches // stages)
    least, more = divmod(microbatches, count)
    return tuple(least + (number < more) for number in range(count))


def replicas(plan: ParallelPlan, gpus: int) -> int:
    """Data-parallel replicas: as the plan says, or all GPUs that are left."""
    return max(1, gpus // (plan.tp * plan.pp * plan.cp)) if plan.dp == "rest" else plan.dp


def problems(model: Model, plan: ParallelPlan, gpus: int) -> Iterator[tuple[str, str]]:
    """(key, message) of every constraint that the plan breaks."""
    tp, pp, cp, dp = plan.tp, plan.pp, plan.cp, replicas(plan, gpus)
    axes = " x ".join(f"{name} {size}" for name, size in (("tp", tp), ("pp", pp), ("cp", cp)) if size > 1 or name != "cp")
    if plan.dp == "rest":
        if gpus % (tp * pp * cp):
            yield "dp", f"{axes} = {tp * pp * cp} does not divide {gpus} GPUs"
    elif tp * pp * cp * dp != gpus:
        yield "dp", f"{axes} x dp {dp} = {tp * pp * cp * dp} GPUs, but there are {gpus}"
    if isinstance(plan.dp, int) and plan.dp < 1:
        yield "dp", f"dp {plan.dp} is no number of replicas"
        return
    yield from _of_transformer(model, plan, dp) if isinstance(model, Transformer) else _of_network(model, plan)
    examples = dp * plan.microbatch
    if plan.global_batch % examples:
        yield (
            "global_batch",
            f"a global batch of {plan.global_batch} is no multiple of dp {dp} x microbatch {plan.microbatch} = {examples}",
        )
    if plan.shards is not None and dp % plan.shards:
        yield "shards", f"{plan.shards} shards do not divide dp {dp}"
    if len(set(plan.order)) < len(plan.order):
        yield "order", "an axis stands twice in `order`"
    missing = [axis for axis, size in (("tp", tp), ("cp", cp), ("pp", pp), ("dp", dp)) if size > 1 and axis not in plan.order]
    if missing:
        yield "order", f"`order` leaves out {', '.join(missing)}"


def _of_transformer(model: Transformer, plan: ParallelPlan, dp: int) -> Iterator[tuple[str, str]]:
    tp, pp, cp = plan.tp, plan.pp, plan.cp
    if model.heads % tp:
        yield "tp", f"tp {tp} does not divide {model.heads} heads"
    else:
        yield from dict.fromkeys(uneven_widths(model, tp))
    if pp > model.layers:
        yield "pp", f"pp {pp} stages, but only {model.layers} layers"
    elif model.layers % pp and not plan.uneven:
        yield "pp", f"pp {pp} does not divide {model.layers} layers: with `uneven` stages differ by one"
    elif pp * plan.chunks > model.layers + 2:
        yield "chunks", f"pp {pp} x {plan.chunks} chunks are more than {model.layers} layers, the embedding and the output"
    elif model.layers % (pp * plan.chunks) and not plan.uneven:
        yield (
            "chunks",
            f"{plan.chunks} chunks do not divide the {model.layers // pp} layers of a stage: with `uneven` these differ",
        )
    if plan.chunks > 1 and plan.schedule != "interleaved":
        yield "schedule", f"{plan.chunks} chunks of a stage need `schedule: interleaved`, not {plan.schedule}"
    if (plan.sequence or model.sequence) % cp:
        yield "cp", f"cp {cp} does not divide sequences of {plan.sequence or model.sequence} tokens"
    if plan.sequence_parallel and tp == 1:
        yield "sequence_parallel", "sequence parallel splits what tensor parallel leaves whole: it needs tp > 1"
    experts = sorted({kind.experts for kind in model.kinds if kind.experts > 1})
    if plan.ep > 1 and not experts:
        yield "ep", f"ep {plan.ep}, but the model has no experts"
    elif any(count % plan.ep for count in experts):
        yield "ep", f"ep {plan.ep} does not divide {next(count for count in experts if count % plan.ep)} experts"
    elif plan.ep > 1 and dp % plan.ep:
        yield "ep", f"ep {plan.ep} does not divide dp {dp}: replicas split the experts among them"
    elif plan.ep > 1:
        most = min(plan.ep * min(1.0, kind.experts / plan.ep / kind.top_k) for kind in model.kinds if kind.experts > 1)
        if plan.imbalance > most:
            message = (
                f"an imbalance of {plan.imbalance:g}, but all tokens that may go to one of {plan.ep} GPUs are {most:g} x the mean"
            )
            yield "imbalance", message


def uneven_widths(model: Transformer, tp: int) -> Iterator[tuple[str, str]]:
    """(key, message) of widths that the GPUs of a tensor-parallel group do not divide, the first of each kind of layer."""
    for kind in model.kinds:
        if kind.latent is None and kind.of_kv_heads % tp and tp % kind.of_kv_heads:
            yield "tp", f"tp {tp} neither divides {kind.of_kv_heads} heads of keys and values nor is a multiple of them"
        elif kind.of_ffn % tp:
            yield "tp", f"tp {tp} does not divide a feed-forward width of {kind.of_ffn}"
        elif kind.shared % tp:
            yield "tp", f"tp {tp} does not divide a width of {kind.shared} beside the experts"


def _of_network(model: Network, plan: ParallelPlan) -> Iterator[tuple[str, str]]:
    count = len(blocks(model.chain())) if plan.pp > 1 else plan.pp
    if plan.pp > count:
        yield "pp", f"pp {plan.pp} stages, but the network has only {count} blocks to cut between"
    if plan.tp > 1:
        yield "tp", f"tp {plan.tp}: no closed form of split channels; `hwsim simulate` with a `train:` plays them"
    if plan.cp > 1 or plan.ep > 1:
        yield "cp" if plan.cp > 1 else "ep", "a network has no sequences and no experts to split: dp and pp"
    if plan.chunks > 1 or plan.schedule == "interleaved":
        yield "schedule", "stages of a network are not interleaved: 1f1b or gpipe"
    if plan.level > 0:
        yield "sharding", f"the replicas of a network share no state: sharding none, not {plan.sharding}"
    if plan.recompute != "none" or plan.sequence_parallel or plan.sequence is not None:
        yield "recompute", "a network of convolutions or a perceptron has no sequences and recomputes nothing"
