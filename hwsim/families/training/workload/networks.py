"""Training plan of a CNN or MLP from the keys of `train:`.

    train:
      model: resnet-50
      global_batch: 512
      parallel: {dp: rest}
      synchronise: {by: parameter-server, server: cpu}

`dp` replicas process parts of the batch, `pp` GPUs have successive layers, and `tp` GPUs split the channels (or units) of every
layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, TypeVar

from hwsim.families.training.workload.kinds import GpuKinds, kinds_of
from hwsim.families.training.workload.layout import DeviceLayout, layout_of
from hwsim.families.training.workload.plan import BucketExchange, StageMemory, TrainingPlan
from hwsim.families.training.workload.schema import ParallelKeys, SynchroniseKeys, TrainKeys
from hwsim.machine import Machine
from hwsim.models.architectures import FeedForwardNetwork
from hwsim.models.architectures.split import CannotSplit, LayerShard, blocks, split
from hwsim.models.architectures.unit_layers import UPDATED, activation_bytes, layer_of
from hwsim.models.architectures.units import NetworkUnit, size
from hwsim.models.framework import Software
from hwsim.models.layer import Kernel, kernels
from hwsim.models.memory import KEPT, in_flight
from hwsim.models.plan import ParallelPlan, Schedule
from hwsim.models.stages import PipelineStage, network_cut, network_stages
from hwsim.ops.exchange import AUTO, read_algorithm
from hwsim.spec import Mistakes, Tree, decode
from hwsim.spec.memo import memo_table
from hwsim.units import BYTES

Keys = TypeVar("Keys")
USUAL: Final = "pytorch-ngc"  # default framework
OF_TRANSFORMERS: Final = (
    "sequence", "sequence_parallel", "imbalance", "chunks", "uneven", "sharding", "shards", "recompute", "tokens", "detail",
)  # fmt: skip


def check(keys: TrainKeys, tree: Tree, mistakes: Mistakes) -> tuple[SynchroniseKeys | None, ParallelKeys]:
    """Note the mistakes that do not depend on the machine, and return the keys of `synchronise` and `parallel`."""
    for key in OF_TRANSFORMERS:
        if tree.get(key) is not None:
            mistakes.add(tree.key_place(key), f"`{key}` has no effect on a CNN or MLP: it is for transformers")
    if keys.parallel is not None and not keys.parallel.is_mapping:
        mistakes.add(keys.parallel.place, "`parallel: auto` is for transformers", "parallel: {dp: rest}")
    synchronise = _synchronise(keys.synchronise, mistakes)
    parallel = keys.parallel if keys.parallel is not None and keys.parallel.is_mapping else None
    return synchronise, (None if parallel is None else decode(parallel, ParallelKeys, mistakes)) or ParallelKeys()


def _synchronise(tree: Tree | None, mistakes: Mistakes) -> SynchroniseKeys | None:
    """Return the keys of `synchronise`; a text is the value of `by`."""
    if tree is None:
        return SynchroniseKeys()
    keys = decode(tree if tree.is_mapping else Tree({"by": tree}, tree.place), SynchroniseKeys, mistakes)
    if keys is not None and keys.algorithm is not None and keys.algorithm.value != AUTO:
        read_algorithm(keys.algorithm, mistakes)
    return keys


def planned(
    keys: TrainKeys,
    network: FeedForwardNetwork,
    software: Software,
    tree: Tree,
    machine: Machine,
    devices: tuple[str, ...],
    mistakes: Mistakes,
) -> TrainingPlan | None:
    """Return the training plan, or None if mistakes were noted."""
    before = len(mistakes)

    def wrong(key: str, message: str, hint: str | None = None) -> None:
        value = tree.get(key)
        mistakes.add(value.place if value is not None else tree.place, message, hint)

    synchronise, parallel = check(keys, tree, mistakes)
    if parallel.cp > 1 or parallel.ep > 1:
        wrong("parallel", "a CNN or MLP has no sequences and no experts to split: use dp, tp and pp")
    if not devices:
        return None
    replicas = max(1, len(devices) // (parallel.tp * parallel.pp)) if parallel.dp == "rest" else parallel.dp
    for message in size_mistakes(parallel.tp, parallel.pp, replicas, len(devices)):
        wrong("parallel", message)
        return None
    batch, left = divmod(keys.global_batch, replicas)
    if left:
        wrong("global_batch", f"a batch of {keys.global_batch} cannot be split evenly over {replicas} replicas")
    if len(mistakes) > before or synchronise is None:
        return None
    microbatches = max(1, batch // keys.microbatch) if tree.get("microbatch") is not None else 1
    if microbatches > 1 and batch % keys.microbatch:
        wrong("microbatch", f"{batch} examples per replica cannot be split evenly into microbatches of {keys.microbatch}")
    for key, message in problems(network, parallel, keys.schedule):
        wrong(key, message)
    if len(mistakes) > before:
        return None
    kinds = kinds_of(machine, devices, software.kernels)
    layout = layout_of(machine, devices, tp=parallel.tp, pp=parallel.pp, dp=replicas)
    return _plan(keys, tree, network, software, synchronise, layout, kinds, batch, microbatches)


def _plan(
    keys: TrainKeys,
    tree: Tree,
    network: FeedForwardNetwork,
    software: Software,
    synchronise: SynchroniseKeys,
    layout: DeviceLayout,
    kinds: GpuKinds,
    batch: int,
    microbatches: int,
) -> TrainingPlan:
    dtype, rule = keys.dtype or "fp32", keys.optimizer if tree.get("optimizer") is not None else "sgd"
    schedule: Schedule = keys.schedule if layout.pp > 1 else "1f1b"
    stages = _stages(network, layout, kinds, batch // microbatches, dtype, UPDATED[rule])
    bucket = synchronise.bucket if keys.buckets is None else network.parameters * software.gradient / keys.buckets
    laid = ParallelPlan(pp=layout.pp, schedule=schedule, global_batch=keys.global_batch)
    kept = KEPT[rule] if synchronise.by == "all-reduce" else 0.0
    sizes = (("tp", layout.tp), ("pp", layout.pp), ("dp", layout.dp))
    return TrainingPlan(
        layout=layout,
        kinds=kinds,
        stages=stages,
        held=[stage_memory(stage, dtype, kept, in_flight(laid, stage.number, microbatches)) for stage in stages],
        batch=batch,
        microbatches=microbatches,
        schedule=schedule,
        steps=keys.steps,
        exchange=BucketExchange(
            size=bucket,
            bytes=software.gradient,
            updated=UPDATED[rule],
            overlap=synchronise.overlap,
            by=synchronise.by,
            servers=synchronise.server,
            algorithm=synchronise.algorithm,
            software=software,
            numbers=size(network.input),
            one_thread=keys.threads == "one",
        ),
        network=1.0,
        dtype=dtype,
        text=" x ".join(f"{axis} {count}" for axis, count in sizes if count > 1) or "one GPU",
        count=keys.global_batch,
        unit="images",
        flop=3.0 * keys.global_batch * network.forward_flop,
        state=network.parameters * (4.0 + KEPT[rule]),
        total=keys.epochs * keys.samples if keys.epochs and keys.samples else 0.0,
    )


def _stages(
    network: FeedForwardNetwork, layout: DeviceLayout, kinds: GpuKinds, batch: int, dtype: str, updated: float
) -> tuple[PipelineStage, ...]:
    """Return the stages for `batch` examples; runs of a study share the stages of a network that is not split."""
    shared: dict[tuple[object, ...], tuple[FeedForwardNetwork, tuple[PipelineStage, ...]]] | None
    shared = memo_table("stages") if layout.pp == 1 else None
    key = id(network), layout.tp, batch, dtype, updated
    if shared is not None and key in shared:
        return shared[key][1]
    stages = network_stages(_cut(network, layout, kinds, batch, dtype), batch, dtype, updated)
    if shared is not None:
        shared[key] = network, stages
    return stages


def _cut(
    network: FeedForwardNetwork, layout: DeviceLayout, kinds: GpuKinds, batch: int, dtype: str
) -> tuple[tuple[LayerShard, ...], ...]:
    """Return the layers of each stage, cut so that all stages take equally long on the slowest kind of GPU."""
    batch = max(1, batch)

    def kernels_in(unit: NetworkUnit) -> list[Kernel]:
        layer = layer_of(unit, batch, dtype)
        return [*kernels(layer.forward), *kernels(layer.backward)]

    slowest = kinds.slowest(kernel for unit in network.chain() for kernel in kernels_in(unit))
    return network_cut(network, layout.pp, layout.tp, lambda unit: math.fsum(map(slowest.seconds, kernels_in(unit))))


def stage_memory(stage: PipelineStage, dtype: str, kept: float, flying: float) -> StageMemory:
    """Return the memory of each GPU of a stage (B).

    Weights, gradients and optimizer states (`kept` bytes per parameter) have 32 bits. If matmuls use a narrower format, the
    weights exist in it, too. The activations of the microbatches in flight have the format of matmuls.
    """
    parameters = sum(layer.parameters for layer in stage.layers)
    narrow = {"weights as computed with": BYTES[dtype] * parameters} if BYTES[dtype] < 4 else {}
    always = {"weights": 4.0 * parameters, **narrow, "gradients": 4.0 * parameters, "optimizer": kept * parameters}
    return StageMemory(always={**always, "activations": flying * activation_bytes(stage.layers)}, kept=0.0)


def size_mistakes(tp: int, pp: int, dp: int, gpus: int) -> Iterator[str]:
    """Yield a message if the sizes of a plan do not match the number of GPUs."""
    if tp > 1 and pp > 1:
        yield "a CNN or MLP cannot use both tp and pp: expected tp 1 or pp 1"
    elif tp * pp * dp != gpus:
        yield f"tp {tp} x pp {pp} x dp {dp} = {tp * pp * dp} GPUs, but there are {gpus}"


def problems(network: FeedForwardNetwork, parallel: ParallelKeys, schedule: Schedule) -> Iterator[tuple[str, str]]:
    """Yield (key, message) of every violated constraint of a plan."""
    units = network.chain()
    count = len(blocks(units))
    if parallel.pp > count:
        yield "parallel", f"pp {parallel.pp} stages, but the network has only {count} blocks"
    try:
        split(units, parallel.tp)
    except CannotSplit as error:
        yield "parallel", str(error)
    if schedule == "interleaved":
        yield "schedule", "a CNN or MLP has no interleaved schedule: expected 1f1b or gpipe"
