"""`train:` of a network of convolutions or a perceptron: its keys read, checked, and its steps added to the graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeVar

from hwsim import ticks
from hwsim.devices import CannotCompute, Gpu
from hwsim.devices.roofline import peak_of
from hwsim.graph.builder import GraphBuilder, OpRef
from hwsim.graph.opgraph import Speaks, Trained
from hwsim.machine import Machine, NoRoute, UnknownName
from hwsim.machine.libraries.operations import CannotCollect
from hwsim.models.architectures import Network
from hwsim.models.architectures.unit_layers import layer_of
from hwsim.models.framework import Software
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.layer import kernels
from hwsim.ops.exchange import AUTO, chosen
from hwsim.spec import Mistakes, Tree, decode
from hwsim.workload.file import Each
from hwsim.workload.programs import Program, find_programs
from hwsim.workload.training.network_alike import difference, exchanged
from hwsim.workload.training.network_items import Stage, cut, stage_of
from hwsim.workload.training.network_kernels import Costs
from hwsim.workload.training.network_memory import add_memory
from hwsim.workload.training.network_plan import (
    FOREIGN,
    EvaluateKeys,
    NetworkPlan,
    SynchroniseKeys,
    fitting,
    problems,
    shared,
    software_of,
)
from hwsim.workload.training.network_steps import Steps
from hwsim.workload.training.schema import ParallelKeys, TrainKeys

Keys = TypeVar("Keys")
EMITTED: Final = 64  # GPUs that are told one by one; of more, one copy stands for all where they do the same


def add_network(
    keys: TrainKeys,
    network: Network,
    tree: Tree,
    machine: Machine,
    builder: GraphBuilder,
    mistakes: Mistakes,
    *,
    name: str,
    start: float = 0.0,
    alike: bool = True,
) -> None:
    """Append the training of a network to the graph; what is wrong is noted.

    Args:
        tree: where the keys stand.  name: of its program.  start: seconds before the first step.
        alike: nothing else runs on the machine and nothing happens to it, so that one of many copies may stand for all.
    """
    programs = find_programs(name, tree, Each(keys.device, ()), machine, mistakes)[: keys.gpus]
    if keys.gpus is not None and 0 < len(programs) < keys.gpus:
        mistakes.add((tree.get("gpus") or tree).place, f"{keys.gpus} GPUs, but there are {len(programs)}")
    plan = _plan_of(keys, network, tree, len(programs), mistakes) if programs else None
    evaluate = _decoded(keys.evaluate, EvaluateKeys, mistakes)
    if plan is None or len(mistakes):
        return
    try:
        costs = _costs_of(programs, plan, machine)
        begin = builder.op("start", kind="start", program=name, time=start) if start else None
        unlike = _difference(plan, programs, costs, machine, name) if alike and len(programs) > EMITTED else ""
        one = alike and len(programs) > EMITTED and not unlike
        builder.unfolded = builder.unfolded or unlike
        copies = 1 if one else plan.dp
        steps = Steps(plan, machine, programs, costs, _stages(plan, costs), builder, name=name, copies=copies)
        ends = steps.add(begin)
        add_memory(plan, machine, steps, builder)
        if evaluate is not None:
            _evaluate(evaluate, plan, programs, ends, tree, machine, builder, mistakes, name)
        builder.training(replace(_worth(keys, plan, steps, costs, name, start), replicas=plan.dp if one else 1))
    except (CannotCollect, CannotCompute, NoRoute, UnknownName) as error:
        mistakes.add(tree.place, getattr(error, "message", str(error)), getattr(error, "hint", None))


def check_network(keys: TrainKeys, tree: Tree, mistakes: Mistakes) -> None:
    """Note every mistake that needs no machine to be seen."""
    _alone(keys, tree, mistakes)
    _decoded(keys.evaluate, EvaluateKeys, mistakes)


def _alone(keys: TrainKeys, tree: Tree, mistakes: Mistakes) -> tuple[SynchroniseKeys | None, ParallelKeys, Software | str]:
    """What the keys say of themselves; of the software what is wrong, if it is."""
    for key in FOREIGN:
        if tree.get(key) is not None:
            mistakes.add(tree.key_place(key), f"a network has no `{key}`: that is of transformers")
    if keys.parallel is not None and not keys.parallel.is_mapping:
        mistakes.add(keys.parallel.place, "plans of a network are not searched", "such as {dp: rest}")
    synchronise = _synchronise(keys.synchronise, mistakes)
    said = keys.parallel if keys.parallel is not None and keys.parallel.is_mapping else None
    software = software_of(tree, keys.framework)
    if isinstance(software, str):
        mistakes.add(tree.key_place("framework"), software)
    return synchronise, _decoded(said, ParallelKeys, mistakes) or ParallelKeys(), software


def _plan_of(keys: TrainKeys, network: Network, tree: Tree, gpus: int, mistakes: Mistakes) -> NetworkPlan | None:
    """The keys with every number known; None once what is wrong is noted."""
    before = len(mistakes)

    def wrong(key: str, message: str, hint: str | None = None) -> None:
        at = tree.get(key)
        mistakes.add(at.place if at is not None else tree.place, message, hint)

    synchronise, parallel, software = _alone(keys, tree, mistakes)
    if parallel.cp > 1 or parallel.ep > 1:
        wrong("parallel", "a network has no sequences and no experts to split: dp, tp and pp")
    copies = max(1, gpus // (parallel.tp * parallel.pp)) if parallel.dp == "rest" else parallel.dp
    for message in fitting(parallel.tp, parallel.pp, copies, gpus):
        wrong("parallel", message)
        return None
    batches = shared(keys.global_batch, copies, keys.shares)
    if isinstance(batches, str):
        wrong("shares" if keys.shares else "global_batch", batches, None if keys.shares else "`shares: [...]` says who gets what")
    if len(mistakes) > before or synchronise is None or isinstance(software, str) or isinstance(batches, str):
        return None
    parts = max(1, max(batches) // keys.microbatch) if tree.get("microbatch") is not None else 1
    if parts > 1 and max(batches) % keys.microbatch:
        wrong("microbatch", f"a copy's {max(batches)} examples cannot be split evenly into micro-batches of {keys.microbatch}")
    bucket = synchronise.bucket if keys.buckets is None else network.parameters * software.gradient / keys.buckets
    plan = NetworkPlan(
        network=network,
        software=software,
        dtype=keys.dtype or "fp32",
        batches=batches,
        microbatches=parts,
        pp=parallel.pp,
        tp=parallel.tp,
        schedule=keys.schedule,
        optimizer=keys.optimizer if tree.get("optimizer") is not None else "sgd",
        one_thread=keys.threads == "one",
        steps=keys.steps,
        by=synchronise.by,
        algorithm=synchronise.algorithm,
        servers=synchronise.server,
        asynchronous=synchronise.asynchronous,
        overlap=synchronise.overlap,
        bucket=bucket,
    )
    for key, message in problems(plan):
        wrong(key, message)
    return plan if len(mistakes) == before else None


def _decoded(tree: Tree | None, cls: type[Keys], mistakes: Mistakes) -> Keys | None:
    return None if tree is None else decode(tree, cls, mistakes)


def _synchronise(tree: Tree | None, mistakes: Mistakes) -> SynchroniseKeys | None:
    """The keys of `synchronise`, for which the name of a way may stand."""
    if tree is None:
        return SynchroniseKeys()
    found = decode(tree if tree.is_mapping else Tree({"by": tree}, tree.place), SynchroniseKeys, mistakes)
    if found is not None and found.algorithm is not None and found.algorithm.value != AUTO:
        chosen(found.algorithm, mistakes)
    return found


def _costs_of(programs: tuple[Program, ...], plan: NetworkPlan, machine: Machine) -> list[Costs]:
    """Of each device; devices of one kind share theirs.

    Raises:
        CannotCompute: a device that is no GPU.
    """
    known: list[Costs] = []
    found = []
    for program in programs:
        model = machine.device(program.own).model
        if not isinstance(model, Gpu):
            raise CannotCompute(f"'{program.own}' is a {machine.device(program.own).kind}: networks are trained on GPUs here")
        own = next((each for each in known if each.kernels.gpu is model or each.kernels.gpu == model), None)
        if own is None:
            own = Costs(KernelTimes(model, plan.software.kernels))
            known.append(own)
        found.append(own)
    return found


def _stages(plan: NetworkPlan, costs: list[Costs]) -> list[list[Stage]]:
    """Of each copy."""
    pieces = cut(plan, _slowest(plan, costs))
    known: dict[int, list[Stage]] = {}
    for batch in plan.batches:
        if batch not in known:
            size = batch // plan.microbatches
            known[batch] = [stage_of(each, size, plan.dtype, first=at == 0) for at, each in enumerate(pieces)]
    return [known[batch] for batch in plan.batches]


def _slowest(plan: NetworkPlan, costs: list[Costs]) -> Costs:
    """Of the kinds of GPUs the one that a whole network takes longest on: stages are cut as it has them."""
    kinds = list({id(each): each for each in costs}.values())
    if len(kinds) == 1:
        return kinds[0]
    layers = [layer_of(unit, max(1, plan.batches[0] // plan.microbatches), plan.dtype) for unit in plan.network.chain()]
    ops = [op for layer in layers for op in kernels((*layer.forward, *layer.backward))]
    return max(kinds, key=lambda each: math.fsum(map(each.seconds, ops)))


def _difference(plan: NetworkPlan, programs: tuple[Program, ...], costs: list[Costs], machine: Machine, name: str) -> str:
    """What tells copies apart, in words; "" if nothing does."""
    found = difference(plan, programs, costs, machine)
    if found:
        return found
    tried = Steps(plan, machine, programs, costs, _stages(plan, costs), GraphBuilder(), name=name, copies=1)
    tried.add()
    return exchanged(tried.devices, tried.issuing.exchanges.demands())


def _worth(keys: TrainKeys, plan: NetworkPlan, steps: Steps, costs: list[Costs], name: str, start: float) -> Trained:
    """What the steps go through."""
    images = sum(plan.batches)
    many = (("tp", plan.tp), ("pp", plan.pp), ("dp", plan.dp))
    kinds = {id(each): each for each in costs}
    peaks = {at: peak_of(each.kernels.gpu.flop, plan.dtype, "gpu")[1] for at, each in kinds.items()}
    several = len(kinds) > 1
    devices, speaks = _told(plan, steps.devices, costs)
    return Trained(
        program=name,
        plan=" x ".join(f"{axis} {count}" for axis, count in many if count > 1) or "one GPU",
        steps=plan.steps,
        count=images,
        unit="images",
        flop=3.0 * images * plan.network.forward_flop,
        peak=math.fsum(peaks[id(each)] for each in costs) if several else peaks[id(costs[0])] * len(steps.devices),
        gpus=len(steps.devices),
        devices=devices,
        speaks=speaks if several else (),
        kinds=tuple(
            tuple(device for device, each in zip(steps.devices, costs, strict=True) if id(each) == kind)
            for kind in (kinds if several else ())
        ),
        whole=keys.epochs * keys.samples if keys.epochs and keys.samples else 0.0,
        start=ticks.femtoseconds(start),
    )


def _told(plan: NetworkPlan, devices: Sequence[str], costs: list[Costs]) -> tuple[tuple[str, ...], tuple[Speaks, ...]]:
    """(of each stage the first device of every kind, how many GPUs each speaks for)."""
    found: dict[tuple[int, int], Speaks] = {}
    first: list[str] = []
    for stage in range(plan.pp):
        for copy in range(plan.dp):
            for part in range(plan.tp):
                at = plan.at(copy, stage, part)
                key = stage, id(costs[at])
                if key not in found:
                    first.append(devices[at])
                    found[key] = Speaks(devices[plan.at(0, stage, part)], 0)
                found[key] = found[key]._replace(teams=found[key].teams + 1)
    return tuple(first), tuple(found.values())


def _evaluate(
    keys: EvaluateKeys,
    plan: NetworkPlan,
    programs: tuple[Program, ...],
    ends: list[OpRef],
    tree: Tree,
    machine: Machine,
    builder: GraphBuilder,
    mistakes: Mistakes,
    name: str,
) -> None:
    """Batches of other examples, forward only, once the training has ended."""
    if keys.device:
        programs = find_programs(name, tree, Each(keys.device, ()), machine, mistakes)
    if not programs:
        return
    batch = keys.batch or sum(plan.batches)
    batches = shared(batch, len(programs), ())
    if isinstance(batches, str):
        mistakes.add(keys.place, batches)
        return
    only = replace(plan, batches=batches, pp=1, tp=1, microbatches=1, steps=-(-keys.samples // batch))
    costs = _costs_of(programs, only, machine)
    (pieces,) = cut(only, costs[0])
    stage = stage_of(pieces, batches[0], plan.dtype, first=True, training=False)
    Steps(only, machine, programs, costs, [[stage]] * len(programs), builder, name=name, copies=len(programs)).evaluate(ends)
