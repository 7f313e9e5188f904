"""`train:` of a network of convolutions or a perceptron: its keys read and checked, and the plan with every number known.

    train:
      model: resnet-50
      global_batch: 512
      parallel: {dp: rest}
      synchronise: {by: parameter-server, server: cpu}

`dp` replicas of the network work on parts of the batch, `pp` GPUs have the next layers each, and `tp` GPUs share the channels (or
units) of every layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, TypeVar

from hwsim.families.training.workload.kinds import Kinds, kinds_of
from hwsim.families.training.workload.layout import Layout, layout_of
from hwsim.families.training.workload.plan import Buckets, Held, Plan
from hwsim.families.training.workload.schema import ParallelKeys, SynchroniseKeys, TrainKeys
from hwsim.machine import Machine
from hwsim.models.architectures import Network
from hwsim.models.architectures.split import CannotSplit, Piece, blocks, split
from hwsim.models.architectures.unit_layers import UPDATED, activation_bytes, layer_of
from hwsim.models.architectures.units import Unit, size
from hwsim.models.framework import Software
from hwsim.models.layer import Kernel, kernels
from hwsim.models.memory import KEPT, in_flight
from hwsim.models.plan import ParallelPlan, Schedule
from hwsim.models.stages import Stage, network_cut, network_stages
from hwsim.ops.exchange import AUTO, chosen
from hwsim.spec import Mistakes, Tree, decode
from hwsim.spec.shelf import shared_by
from hwsim.units import BYTES

Keys = TypeVar("Keys")
USUAL: Final = "pytorch-ngc"  # framework, unless the file names another one
OF_TRANSFORMERS: Final = (
    "sequence", "sequence_parallel", "imbalance", "chunks", "uneven", "sharding", "shards", "recompute", "tokens", "detail",
)  # fmt: skip


def check(keys: TrainKeys, tree: Tree, mistakes: Mistakes) -> tuple[SynchroniseKeys | None, ParallelKeys]:
    """Note every mistake that needs no machine to be seen; the keys of the parts."""
    for key in OF_TRANSFORMERS:
        if tree.get(key) is not None:
            mistakes.add(tree.key_place(key), f"a network has no `{key}`: that is of transformers")
    if keys.parallel is not None and not keys.parallel.is_mapping:
        mistakes.add(keys.parallel.place, "plans of a network are not searched", "such as {dp: rest}")
    synchronise = _synchronise(keys.synchronise, mistakes)
    parallel = keys.parallel if keys.parallel is not None and keys.parallel.is_mapping else None
    return synchronise, (None if parallel is None else decode(parallel, ParallelKeys, mistakes)) or ParallelKeys()


def _synchronise(tree: Tree | None, mistakes: Mistakes) -> SynchroniseKeys | None:
    """The keys of `synchronise`; its text alone is `by`."""
    if tree is None:
        return SynchroniseKeys()
    keys = decode(tree if tree.is_mapping else Tree({"by": tree}, tree.place), SynchroniseKeys, mistakes)
    if keys is not None and keys.algorithm is not None and keys.algorithm.value != AUTO:
        chosen(keys.algorithm, mistakes)
    return keys


def planned(
    keys: TrainKeys,
    network: Network,
    software: Software,
    tree: Tree,
    machine: Machine,
    devices: tuple[str, ...],
    mistakes: Mistakes,
) -> Plan | None:
    """The keys with every number known; None once the mistakes are noted."""
    before = len(mistakes)

    def wrong(key: str, message: str, hint: str | None = None) -> None:
        value = tree.get(key)
        mistakes.add(value.place if value is not None else tree.place, message, hint)

    synchronise, parallel = check(keys, tree, mistakes)
    if parallel.cp > 1 or parallel.ep > 1:
        wrong("parallel", "a network has no sequences and no experts to split: dp, tp and pp")
    if not devices:
        return None
    replicas = max(1, len(devices) // (parallel.tp * parallel.pp)) if parallel.dp == "rest" else parallel.dp
    for message in fitting(parallel.tp, parallel.pp, replicas, len(devices)):
        wrong("parallel", message)
        return None
    batch, left = divmod(keys.global_batch, replicas)
    if left:
        wrong("global_batch", f"a batch of {keys.global_batch} cannot be split evenly over {replicas} copies")
    if len(mistakes) > before or synchronise is None:
        return None
    microbatches = max(1, batch // keys.microbatch) if tree.get("microbatch") is not None else 1
    if microbatches > 1 and batch % keys.microbatch:
        wrong("microbatch", f"a copy's {batch} examples cannot be split evenly into micro-batches of {keys.microbatch}")
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
    network: Network,
    software: Software,
    synchronise: SynchroniseKeys,
    layout: Layout,
    kinds: Kinds,
    batch: int,
    microbatches: int,
) -> Plan:
    dtype, rule = keys.dtype or "fp32", keys.optimizer if tree.get("optimizer") is not None else "sgd"
    schedule: Schedule = keys.schedule if layout.pp > 1 else "1f1b"
    stages = _stages(network, layout, kinds, batch // microbatches, dtype, UPDATED[rule])
    bucket = synchronise.bucket if keys.buckets is None else network.parameters * software.gradient / keys.buckets
    laid = ParallelPlan(pp=layout.pp, schedule=schedule, global_batch=keys.global_batch)
    kept = KEPT[rule] if synchronise.by == "all-reduce" else 0.0
    sizes = (("tp", layout.tp), ("pp", layout.pp), ("dp", layout.dp))
    return Plan(
        layout=layout,
        kinds=kinds,
        stages=stages,
        held=[held(stage, dtype, kept, in_flight(laid, stage.number, microbatches)) for stage in stages],
        batch=batch,
        microbatches=microbatches,
        schedule=schedule,
        steps=keys.steps,
        exchange=Buckets(
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


def _stages(network: Network, layout: Layout, kinds: Kinds, batch: int, dtype: str, updated: float) -> tuple[Stage, ...]:
    """The stages of `batch` examples at once.  If there is one it hangs on the network alone, and runs of a study share it."""
    shared: dict[tuple[object, ...], tuple[Network, tuple[Stage, ...]]] | None
    shared = shared_by("stages") if layout.pp == 1 else None
    key = id(network), layout.tp, batch, dtype, updated
    if shared is not None and key in shared:
        return shared[key][1]
    stages = network_stages(_cut(network, layout, kinds, batch, dtype), batch, dtype, updated)
    if shared is not None:
        shared[key] = network, stages
    return stages


def _cut(network: Network, layout: Layout, kinds: Kinds, batch: int, dtype: str) -> tuple[tuple[Piece, ...], ...]:
    """The layers of each stage, as the slowest kind of GPU has them equally long."""
    batch = max(1, batch)

    def kernels_in(unit: Unit) -> list[Kernel]:
        layer = layer_of(unit, batch, dtype)
        return [*kernels(layer.forward), *kernels(layer.backward)]

    slowest = kinds.slowest(kernel for unit in network.chain() for kernel in kernels_in(unit))
    return network_cut(network, layout.pp, layout.tp, lambda unit: math.fsum(map(slowest.seconds, kernels_in(unit))))


def held(stage: Stage, dtype: str, kept: float, flying: float) -> Held:
    """Bytes that each GPU of a stage holds.

    Weights, gradients and what the optimizer keeps (`kept` bytes a parameter) are in 32 bit. The weights are held in the format
    of the products as well, where that is another, and so is what forward passes of micro-batches in flight leave for backward.
    """
    parameters = sum(layer.parameters for layer in stage.layers)
    narrow = {"weights as computed with": BYTES[dtype] * parameters} if BYTES[dtype] < 4 else {}
    always = {"weights": 4.0 * parameters, **narrow, "gradients": 4.0 * parameters, "optimizer": kept * parameters}
    return Held(always={**always, "activations": flying * activation_bytes(stage.layers)}, kept=0.0)


def fitting(tp: int, pp: int, dp: int, gpus: int) -> Iterator[str]:
    """A line if the parts of a plan do not come to the GPUs there are."""
    if tp > 1 and pp > 1:
        yield "a network is cut into stages or its layers are split, not both: tp 1 or pp 1"
    elif tp * pp * dp != gpus:
        yield f"tp {tp} x pp {pp} x dp {dp} = {tp * pp * dp} GPUs, but there are {gpus}"


def problems(network: Network, parallel: ParallelKeys, schedule: Schedule) -> Iterator[tuple[str, str]]:
    """(key, message) of every constraint that a plan breaks."""
    units = network.chain()
    count = len(blocks(units))
    if parallel.pp > count:
        yield "parallel", f"pp {parallel.pp} stages, but the network has only {count} blocks to cut between"
    try:
        split(units, parallel.tp)
    except CannotSplit as error:
        yield "parallel", str(error)
    if schedule == "interleaved":
        yield "schedule", "stages of a network are not interleaved: 1f1b or gpipe"
