"""Time of a training step in closed form, for every model, without the simulator.

    stage  = its layers forward, recomputed and backward, for one micro-batch
    step   = micro-batches x longest stage + the other stages / chunks + sends + gradients + optimizer + host
    sends  = sends of one micro-batch in both directions, plus:
             1f1b: (micro-batches - 1) x the time for which a round trip through the last stages delays the longest stage;
             interleaved: sends of the first group of micro-batches, forward and backward

For equal stages this is the pipeline formula (m + (p - 1)/v) x stage, with a bubble of (p - 1)/(v m + p - 1) (Narayanan et al.
2021). With fewer micro-batches than stages, the first micro-batch passes all stages, and each further micro-batch adds the
longest virtual stage.

Gradient exchanges overlap computation. For transformers, `hwsim.models.overlap` defines the overlap. CNNs and MLPs send gradients
in buckets; a bucket is sent when its layers are done and the previous bucket has arrived:

    end of bucket i = max(end of its layers, end of bucket i - 1) + its collective

The GPU waits if the host needs longer to launch the kernels of a CNN or MLP than the GPU to compute them. For a transformer, a
pass of a micro-batch through a virtual stage takes the longer of its kernels with exchanges and their number x `issue`.

**Source**: buckets: Li et al., "PyTorch Distributed", arXiv:2006.15704, section 3.2.3.
**Error**: see `docs/validation/models.md`.
**Range**: identical GPUs; collectives that do not slow concurrent kernels. Stages exchange gradients simultaneously over shared
links, each from the end of its last backward pass; sends between stages share no link with other traffic. Over 1,200 random plans
on nine machines, step times are 0.85x to 1.2x the simulated ones, half of them within 0.2 %. The fabric is modelled as in
`Cluster`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hwsim.devices.roofline import peak_of
from hwsim.models import overlap
from hwsim.models.architectures import FeedForwardNetwork, Model
from hwsim.models.cluster import Cluster, buckets
from hwsim.models.framework import Framework, Software
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.layer import Exchange, Item, Kernel, Layer, Operation, exchanges, kernels, launches
from hwsim.models.memory import Footprint, stage_parameters
from hwsim.models.plan import DerivedPlan, ParallelPlan, derive_plan
from hwsim.models.stages import PipelineStage, TrainingStepWork, adding_of, ending_of, gathered_of, network_load, transformer_load
from hwsim.records import dataclass

BUCKET: Final = 25 * 2**20  # bytes; torch.nn.parallel.DistributedDataParallel, bucket_cap_mb
Seconds = Callable[[Item], float]
Exchanging = Callable[[Exchange], float]
GroupExchange = tuple[Operation, float, int, int, int]


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """An estimated training step.

    Args:
        seconds: step time in steady state (s).
        shares: time of each kind of work (s); the sum is the step time: convolution, matmul, attention, elementwise, output, tp,
            cp, ep, pp (sends), dp, gradients, bubble, accumulate, optimizer, host.
        mfu: model FLOP (forward, and twice as much backward) relative to the GPUs' peak.
        hfu: model FLOP plus recomputed FLOP, relative to the GPUs' peak.
        memory: memory of the stage that needs most.
        verdict: whether the memory suffices, or how tight it is.
    """

    laid: DerivedPlan
    seconds: float
    shares: Mapping[str, float]
    mfu: float
    hfu: float
    memory: Footprint
    verdict: str

    @property
    def fits(self) -> bool:
        """Whether the memory may suffice, which includes `tight`."""
        return not self.verdict.startswith("does not fit")

    @property
    def tokens_per_second(self) -> float:
        """Tokens per second of a transformer; examples per second of a CNN or MLP."""
        return self.laid.tokens / self.seconds


def estimate(
    model: Model, plan: ParallelPlan, cluster: Cluster, framework: Framework | Software, times: KernelTimes | None = None
) -> TrainingStep:
    """Return the step of a plan on all GPUs of a cluster.

    Args:
        framework: `Framework` for a transformer, `Software` for a CNN or MLP.
        times: kernel times of earlier estimates, on the same GPUs with the same framework.

    Raises:
        WrongPlan: the plan does not fit the model or the cluster.
    """
    return step(derive_plan(model, plan, cluster.gpus), cluster, framework, times or times_of(cluster, framework))


def times_of(cluster: Cluster, framework: Framework | Software) -> KernelTimes:
    """Return the kernel times on the GPUs of a cluster."""
    return KernelTimes(cluster.gpu, framework if isinstance(framework, Framework) else framework.kernels)


def step(laid: DerivedPlan, cluster: Cluster, framework: Framework | Software, times: KernelTimes,
         exchange: Exchanging | None = None) -> TrainingStep:  # fmt: skip
    """Return the step of a plan whose numbers are derived; as `estimate`.

    Args:
        exchange: function from an exchange to its seconds (default: `collective`); if set, a single replica exchanges gradients,
            too.
    """
    cluster = with_framework_network(cluster, framework)
    seconds = seconds_by(times, exchange or (lambda item: collective(item, laid, cluster)))
    if isinstance(framework, Framework):
        load = transformer_load(laid, framework)
    else:
        load = network_load(laid, lambda layer: Passes.of(layer, seconds).seconds)
    layers = {layer.name: Passes.of(layer, seconds) for layer in load.layers}
    if isinstance(framework, Framework) and framework.issue > 0:
        load = _with_host_waits(load, layers, framework.issue)
    lengths = [_length(stage.layers, layers) for stage in load.stages]
    longest = load.stages[lengths.index(max(lengths))]
    shares = _pipeline(load, longest, layers, seconds)
    if isinstance(framework, Framework):
        _gradients_in_pieces(shares, load, layers, seconds, cluster)
        if framework.step > 0:
            _add(shares, {"host": framework.step})
    else:
        _gradients_in_buckets(shares, load, longest, layers, seconds, framework, exchanged=exchange is not None or laid.dp > 1)
    total = math.fsum(shares.values())
    peak = peak_of(cluster.gpu.flop, laid.plan.dtype, "gpu")[1] * laid.gpus
    return TrainingStep(
        laid=laid,
        seconds=total,
        shares=shares,
        mfu=load.flop / (peak * total),
        hfu=(load.flop + load.recomputed_flop) / (peak * total),
        memory=load.memory,
        verdict=load.memory.verdict(cluster.gpu.memory.size),
    )


def first_stage_bound(laid: DerivedPlan, cluster: Cluster, framework: Framework, times: KernelTimes) -> tuple[float, float]:
    """Return lower bounds of the seconds that exchanges between replicas and updates add: to a step, and to each micro-batch."""
    cluster = with_framework_network(cluster, framework)
    parameters, pieces = stage_parameters(laid.transformer, laid.plan, 0), laid.plan.chunks * overlap.pieces(laid, 0)
    ending = ending_of(laid, framework, parameters)
    last = math.fsum(map(times.seconds, kernels(ending)))
    for item in exchanges(ending):
        exposed = (overlap.in_buckets(item, pieces) if item.name == "gradients" else item).exposed
        last += exposed * item.times * replica_exchange(item, laid, cluster, 0)(item.size)
    passing = math.fsum(map(times.seconds, adding_of(laid, framework, parameters)))
    for item in gathered_of(laid, framework, parameters):
        passing += item.exposed * item.times * pieces * collective(replace(item, size=item.size / pieces), laid, cluster)
    return last, passing


def with_framework_network(cluster: Cluster, framework: Framework | Software) -> Cluster:
    """Return the cluster with the network bandwidth that the framework's collectives reach."""
    if isinstance(framework, Framework) and (framework.network != 1.0 or framework.bucket is not None):
        return replace(cluster, network=cluster.network * framework.network, bucket=framework.bucket)
    return cluster


# ---- layers ----


@dataclass(frozen=True, slots=True)
class Passes:
    """Time of each kind of work of a layer for one micro-batch (s); `backward` includes the recomputation."""

    forward: Mapping[str, float]
    backward: Mapping[str, float]

    @classmethod
    def of(cls, layer: Layer, seconds: Seconds) -> Passes:
        return cls(by_kind(layer.forward, seconds), by_kind((*layer.recompute, *layer.backward), seconds))

    @property
    def seconds(self) -> float:
        return math.fsum(self.forward.values()) + math.fsum(self.backward.values())


def seconds_by(times: KernelTimes, exchange: Exchanging) -> Seconds:
    """Return a function from an item of a layer to its exposed seconds."""

    def seconds(item: Item) -> float:
        return times.seconds(item) if isinstance(item, Kernel) else item.times * item.exposed * exchange(item)

    return seconds


def by_kind(items: Iterable[Item], seconds: Seconds) -> dict[str, float]:
    """Return the seconds of each kind of kernel, and of the exchanges of each axis."""
    shares: dict[str, float] = {}
    for item in items:
        kind = item.kind if isinstance(item, Kernel) else item.axis
        shares[kind] = shares.get(kind, 0.0) + seconds(item)
    return shares


def _with_host_waits(load: TrainingStepWork, layers: dict[str, Passes], issue: float) -> TrainingStepWork:
    """Return the work with a layer per stage for the time in which its GPUs wait for the host, and add the layers' times."""
    launched = {layer.name: (launches(layer.forward), launches((*layer.recompute, *layer.backward))) for layer in load.layers}
    stages, waits = list[PipelineStage](), list[Layer]()
    for stage in load.stages:
        host = Layer(f"host {stage.number}", ())
        spent = [0.0, 0.0]
        for part in _virtual_stages(stage, load.laid.plan.pp):
            for index, direction in enumerate(("forward", "backward")):
                alone = math.fsum(count * math.fsum(getattr(layers[name], direction).values()) for name, count in part)
                spent[index] += max(0.0, issue * math.fsum(count * launched[name][index] for name, count in part) - alone)
        layers[host.name] = Passes(*({"host": seconds} if seconds else {} for seconds in spent))
        stages.append(replace(stage, layers=(*stage.layers, host)))
        inner = load.laid.plan.pp - len(load.stages) if stage.number == 1 else 0  # equal stages, of which `load` has one
        waits.append(replace(host, times=1 + inner))
    return replace(load, stages=tuple(stages), layers=(*load.layers, *waits))


def _virtual_stages(stage: PipelineStage, pp: int) -> Iterator[tuple[tuple[str, float], ...]]:
    """Yield the (layer name, count) of each virtual stage of a stage."""
    runs = stage.runs or tuple((("block", part),) for part in stage.parts)
    for index, run in enumerate(runs):
        ahead = (("embedding", 1.0),) if stage.number == index == 0 else ()
        yield (*ahead, *run, *((("head", 1.0),) if stage.number == pp - 1 and index == len(runs) - 1 else ()))


def collective(exchange: Exchange, laid: DerivedPlan, cluster: Cluster, stage: int = 0) -> float:
    """Return the seconds of an exchange, while other groups and earlier stages run the same exchange.

    The gradients of a CNN or MLP are summed by the machine's library.

    Args:
        stage: stage whose gradients or weights are exchanged.
    """
    if isinstance(laid.model, FeedForwardNetwork) and exchange.axis == "dp":
        return cluster.reduced(exchange.size, laid.dp)
    if exchange.axis == "dp":
        return replica_exchange(exchange, laid, cluster, stage)(exchange.size)
    return cluster.seconds(*group_exchange(exchange, laid))


def group_exchange(exchange: Exchange, laid: DerivedPlan) -> GroupExchange:
    """Return (operation, bytes on the links of the most loaded GPU, ranks, distance between ranks) of an exchange of layers."""
    sizes = {"tp": laid.plan.tp, "cp": laid.plan.cp, "ep": laid.plan.ep, "pp": 2}
    max_bytes = exchange.size * max(exchange.received, exchange.sent)
    return exchange.operation, max_bytes, sizes[exchange.axis], laid.stride(exchange.axis), exchange.copies


def replica_exchange(exchange: Exchange, laid: DerivedPlan, cluster: Cluster, stage: int) -> Callable[[float], float]:
    """Return a function from bytes to the seconds of an exchange between replicas, as `collective`."""
    copies, bucket = (laid.shards, cluster.bucket) if exchange.name == "weights" else (laid.dp, None)
    parameters = [stage_parameters(laid.transformer, laid.plan, number) for number in range(stage + 1 if stage else 0)]
    groups, stride = laid.sharing(copies, stage), laid.stride("pp")

    def seconds(size: float) -> float:
        count = buckets(size, bucket)
        before = [
            (groups - (stage - number) * stride, size / count * parameters[number] / parameters[stage]) for number in range(stage)
        ]
        return count * cluster.among(exchange.operation, size / count, groups, before)

    return seconds


def _pipeline(load: TrainingStepWork, longest: PipelineStage, layers: Mapping[str, Passes], seconds: Seconds) -> dict[str, float]:
    """Return the seconds of all micro-batches in the longest stage, of the bubble and of the sends."""
    plan, m = load.laid.plan, load.laid.microbatches
    shares: dict[str, float] = {}
    for layer in longest.layers:
        _add(shares, layers[layer.name].forward, m * layer.times)
        _add(shares, layers[layer.name].backward, m * layer.times)
    if plan.pp > 1:
        stage, whole = _length(longest.layers, layers), _length(load.layers, layers)
        filled = (whole - stage) / plan.chunks
        shares["bubble"] = max(filled, whole + (m - 1) * _longest_part(load, layers) - m * stage) if plan.chunks > 1 else filled
        sends = [seconds(Exchange("activations", "send", "pp", size)) for size in load.sent]
        lengths = [_length(part.layers, layers) for part in load.stages]
        if plan.pp > len(lengths):  # inner stages are equal
            lengths[1:-1] = [(whole - lengths[0] - lengths[-1]) / (plan.pp - 2)] * (plan.pp - 2)
        waited = (m - 1) * max(0.0, _interval(lengths, sends) - stage) if plan.schedule != "gpipe" else 0.0
        if plan.chunks > 1:
            waited = 2.0 * min(m, plan.pp) * plan.chunks * max(sends)
        shares["pp"] = waited + 2.0 * math.fsum(sends)
    return shares


def _longest_part(load: TrainingStepWork, layers: Mapping[str, Passes]) -> float:
    """Return the seconds of a micro-batch in the longest virtual stage, forward and backward."""
    lengths = list[float]()
    for stage in load.stages:
        parts = _virtual_stages(stage, load.laid.plan.pp)
        lengths += [math.fsum(count * layers[name].seconds for name, count in part) for part in parts]
        if f"host {stage.number}" in layers:
            lengths[-1] += layers[f"host {stage.number}"].seconds / load.laid.plan.chunks
    return max(lengths)


def _interval(lengths: Sequence[float], sends: Sequence[float]) -> float:
    """Return the seconds between two micro-batches of a 1f1b schedule whose sends do not block kernels.

    The last d stages process d micro-batches at once. In d intervals, each micro-batch passes all of them, and the sends between
    them in both directions.

    >>> _interval([1.0, 1.0], [0.0]), _interval([1.0, 1.0], [0.5]), _interval([2.0, 1.0], [0.5])
    (1.0, 1.5, 2.0)
    """
    stages = len(lengths)
    return max(
        *lengths, *((math.fsum(lengths[index:]) + 2.0 * math.fsum(sends[index:])) / (stages - index) for index in range(stages))
    )


def _length(stage: Iterable[Layer], layers: Mapping[str, Passes]) -> float:
    return math.fsum(layer.times * layers[layer.name].seconds for layer in stage)


def _add(shares: dict[str, float], more: Mapping[str, float], times: float = 1.0) -> None:
    for name, seconds in more.items():
        shares[name] = shares.get(name, 0.0) + times * seconds


# ---- gradients and optimizer ----


def _gradients_in_pieces(
    shares: dict[str, float], load: TrainingStepWork, layers: Mapping[str, Passes], seconds: Seconds, cluster: Cluster
) -> None:
    """Add gradient accumulation, the optimizer and the exposed exchanges between replicas of a transformer to `shares`.

    A later stage starts a step later and ends it earlier than the first stage, so its exchanges have that time in addition.
    """
    laid, first = load.laid, load.stages[0]
    if first.adding:
        shares["accumulate"] = laid.microbatches * math.fsum(map(seconds, first.adding))
    lengths = {stage.number: _length(stage.layers, layers) for stage in load.stages}
    ends = list[tuple[dict[str, float], float]]()
    for stage in load.stages:
        before = math.fsum(lengths.get(number, lengths.get(1, 0.0)) for number in range(stage.number)) / laid.plan.chunks
        ends.append((_end_shares(stage, laid, layers, seconds, cluster), before))
    ending, before = max(ends, key=lambda end: math.fsum(end[0].values()) - end[1])
    _add(shares, ending)
    if before > 0:
        shares["bubble"] = max(0.0, shares["bubble"] - before)
    if first.gathered:
        shares["dp"] = _gather_seconds(first, laid, layers, cluster)


def _end_shares(
    stage: PipelineStage, laid: DerivedPlan, layers: Mapping[str, Passes], seconds: Seconds, cluster: Cluster
) -> dict[str, float]:
    """Return the seconds of a stage at the end of a step, by kind of work."""
    passes = _pass_seconds(stage.blocks, layers)
    shares = by_kind(kernels(stage.ending), seconds)
    for item in exchanges(stage.ending):
        _add(shares, {"dp": _wait_seconds(item, stage.number, passes, laid, cluster)})
    return shares


def _pass_seconds(stage: Iterable[Layer], layers: Mapping[str, Passes]) -> tuple[float, float]:
    """Return the seconds of a micro-batch in some layers, forward and backward."""
    listed = [(layer.times, layers[layer.name]) for layer in stage]
    forward = math.fsum(count * math.fsum(passes.forward.values()) for count, passes in listed)
    return forward, math.fsum(count * math.fsum(passes.backward.values()) for count, passes in listed)


def _gather_seconds(stage: PipelineStage, laid: DerivedPlan, layers: Mapping[str, Passes], cluster: Cluster) -> float:
    """Return the seconds that gathering weights and scattering gradients add to the computation.

    The weights and gradients of a piece overlap the previous piece. Blocks have many pieces; embedding and head are part of one.
    A backward pass exchanges both.
    """
    piece_count, m = laid.plan.chunks * overlap.pieces(laid, stage.number), laid.microbatches
    weights, gradients = stage.gathered  # both have the same exposed share
    gather, scatter = (collective(replace(item, size=item.size / piece_count), laid, cluster) for item in stage.gathered)
    blocks, whole = _pass_seconds(stage.blocks, layers), _pass_seconds(stage.layers, layers)
    left = 0.0
    for moving, alone, block, passed in zip(
        (gather, (weights.times - 1.0) * gather + scatter), (gather, scatter), blocks, whole, strict=True
    ):
        left += gradients.exposed * m * piece_count * moving + (1.0 - gradients.exposed) * alone
        hidden = (1.0 - gradients.exposed) * moving - block / piece_count
        left += max(0, m * piece_count - m - 1) * overlap.exposed_seconds(hidden, 0.0) + m * overlap.exposed_seconds(
            hidden, passed - block
        )
    return left


def _wait_seconds(item: Exchange, stage: int, passes: tuple[float, float], laid: DerivedPlan, cluster: Cluster) -> float:
    """Return the seconds that a stage waits for an exchange at the end of a step.

    Args:
        passes: seconds of one forward and of one backward pass.
    """
    forward, backward = passes
    seconds = replica_exchange(item, laid, cluster, stage)
    alone = item.times * seconds(item.size)
    if item.exposed >= 1.0:
        return item.exposed * alone
    if item.name == "weights":
        return item.exposed * alone + overlap.exposed_seconds(
            (1.0 - item.exposed) * alone, overlap.overlap_seconds(laid, forward)
        )
    pieces = overlap.pieces(laid, stage)
    bucket_count = laid.plan.chunks * pieces
    exposed = overlap.in_buckets(item, bucket_count).exposed
    bucket = seconds(item.size / bucket_count)
    behind = overlap.overlap_seconds(laid, backward, pieces)
    return exposed * alone + overlap.exposed_seconds((1.0 - exposed) * bucket_count * bucket, behind)


def _gradients_in_buckets(
    shares: dict[str, float],
    load: TrainingStepWork,
    stage: PipelineStage,
    layers: Mapping[str, Passes],
    seconds: Seconds,
    software: Software,
    *,
    exchanged: bool,
) -> None:
    """Add optimizer, host and exposed gradient buckets of a CNN or MLP to `shares`."""
    laid = load.laid
    _add(shares, by_kind(stage.ending, seconds))
    busy = math.fsum(shares.values())
    tensors = sum(layer.tensors for layer in stage.layers)  # one update kernel per tensor
    issued = laid.microbatches * sum(len(layer.forward) + len(layer.backward) for layer in stage.layers) + 1 + tensors
    waited = max(0.0, software.issuing(laid.plan.dtype, issued, load.numbers) - busy)
    shares["host"] = software.step + waited
    if exchanged:
        marks, elapsed = [], 0.0
        for layer in reversed(stage.layers):
            elapsed += math.fsum(layers[layer.name].backward.values())
            marks.append((elapsed * (busy + waited) / busy, layer.parameters * software.gradient))
        shares["dp"] = exposed_bucket_seconds(
            marks, lambda size: seconds(Exchange("gradients", "all-reduce", "dp", size)), BUCKET
        )
    if laid.dp > 1:
        _add(shares, {"dp": software.array * tensors})


def exposed_bucket_seconds(marks: Sequence[tuple[float, float]], exchange: Callable[[float], float], bucket: float) -> float:
    """Return the seconds of the gradient exchange after the end of the backward pass.

    Args:
        marks: (seconds from the start of the backward pass, gradient bytes that are ready then), in order.
        exchange: function from bytes to the seconds of their exchange.
        bucket: bytes of a bucket.

    >>> exposed_bucket_seconds([(1.0, 10.0), (2.0, 10.0)], lambda size: size / 10.0, bucket=10.0)
    1.0
    """
    end = marks[-1][0] if marks else 0.0
    free, filled = 0.0, 0.0
    for index, (when, ready_bytes) in enumerate(marks):
        filled += ready_bytes
        if filled > 0 and (filled >= bucket or index == len(marks) - 1):
            free = max(free, when) + exchange(filled)
            filled = 0.0
    return max(0.0, free - end)
