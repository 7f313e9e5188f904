"""What a file says of a training of a transformer -> a plan on devices, or a line for everything that cannot be."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from hwsim.collectives import CannotCollect
from hwsim.devices import Gpu
from hwsim.machine import Machine, NoRoute, UnknownName
from hwsim.models import Framework, Laid, NotAlike, ParallelPlan, Transformer, WrongPlan, cluster_of, lay, load_framework
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, SpecError, Tree, decode
from hwsim.workload.training.kinds import kinds_of
from hwsim.workload.training.schema import ParallelKeys, TrainKeys

OF_NETWORKS: Final = ("shares", "synchronise", "threads", "evaluate")  # what is of no transformer
IN_PARALLEL: Final = ("tp", "pp", "dp", "cp", "ep", "order")
SIZE: Final = "{tp: 8, pp: 4, dp: rest}"


@dataclass(frozen=True, slots=True)
class Planned:
    """A training that fits its devices: the plan, the devices in order, and the software.

    gpus: the kinds of them; kind: which of these each device is, empty where there is one.
    """

    laid: Laid
    devices: tuple[str, ...]
    gpus: tuple[Gpu, ...]
    kind: tuple[int, ...]
    framework: Framework


def planned(keys: TrainKeys, model: Transformer, tree: Tree, machine: Machine, mistakes: Mistakes) -> Planned | None:
    """The plan that a file says or leaves to be found; None once what is wrong is noted."""
    devices = _devices(keys, tree, machine, mistakes)
    framework = _framework(keys, tree, mistakes)
    _foreign(keys, tree, mistakes)
    if devices is None or framework is None:
        return None
    kinds = kinds_of(machine, devices)
    if isinstance(kinds, str):
        mistakes.add(_place(tree, "device"), f"{kinds} is no gpu: a transformer trains on gpus", "such as device: gpu*")
        return None
    gpus, kind = kinds
    auto = _is_auto(keys)
    plan = _plan(keys, gpus, mistakes)
    if plan is None:
        return None
    try:
        laid = _found(plan, model, tree, machine, devices, framework) if auto else lay(model, plan, len(devices))
    except WrongPlan as error:
        for key, message in error.mistakes:
            mistakes.add(_place(tree, key), message)
        return None
    except (NotAlike, NoRoute, CannotCollect) as error:
        mistakes.add(_place(tree, "parallel"), f"no plan can be found: {error}", f"say it, such as parallel: {SIZE}")
        return None
    return Planned(laid, devices, gpus, kind, framework)


def check_keys(keys: TrainKeys, tree: Tree, mistakes: Mistakes) -> None:
    """Note every mistake that needs no machine to be seen."""
    _framework(keys, tree, mistakes)
    _foreign(keys, tree, mistakes)
    _parallel(keys, mistakes)


def _is_auto(keys: TrainKeys) -> bool:
    return keys.parallel is not None and keys.parallel.value == "auto"


def _foreign(keys: TrainKeys, tree: Tree, mistakes: Mistakes) -> None:
    """Keys that would do nothing."""
    for key in OF_NETWORKS:
        if tree.get(key) is not None:
            mistakes.add(tree.key_place(key), f"a transformer has no `{key}`: that is of networks of convolutions")
    if keys.schedule == "interleaved" and keys.chunks == 1:
        message = "an interleaved schedule has several chunks of every stage, not one"
        mistakes.add(tree.key_place("schedule"), message, "such as chunks: 2")


def _devices(keys: TrainKeys, tree: Tree, machine: Machine, mistakes: Mistakes) -> tuple[str, ...] | None:
    try:
        found = machine.select(keys.device)
    except UnknownName as error:
        if tree.get("device") is None:
            mistakes.add(tree.place, f"a transformer trains on gpus, and {machine.name or 'the machine'} has no {keys.device[0]}",
                         "a machine with gpus, or `device:` with what they are called there")  # fmt: skip
        else:
            mistakes.add(_place(tree, "device"), error.message, error.hint)
        return None
    if not found:
        mistakes.add(_place(tree, "device"), "no device is named", "such as device: gpu*")
        return None
    if keys.gpus is not None and keys.gpus > len(found):
        mistakes.add(_place(tree, "gpus"), f"{keys.gpus} GPUs, but there are {len(found)}", "left out: all of them")
        return None
    return found[: keys.gpus]


def _framework(keys: TrainKeys, tree: Tree, mistakes: Mistakes) -> Framework | None:
    place = _place(tree, "framework")
    try:
        return load_framework(keys.framework, beside(place))
    except SpecError as error:
        for each in error.mistakes:
            mistakes.add(each.place or place, each.message, each.hint)
        return None


def beside(place: Place) -> Path | None:
    """The folder of the file that says so, for files it names."""
    return Path(place.file).parent if place.file and not place.file.startswith("<") else None


def _parallel(keys: TrainKeys, mistakes: Mistakes) -> ParallelKeys | None:
    """How it is laid over the devices, as far as the file says it."""
    if keys.parallel is None or _is_auto(keys):
        return ParallelKeys()
    if not keys.parallel.is_mapping:
        message = f"`parallel` is a mapping or auto, not {keys.parallel.what()}"
        mistakes.add(keys.parallel.place, message, f"such as parallel: {SIZE}")
        return None
    return decode(keys.parallel, ParallelKeys, mistakes)


def _plan(keys: TrainKeys, gpus: Sequence[Gpu], mistakes: Mistakes) -> ParallelPlan | None:
    said = _parallel(keys, mistakes)
    if said is None:
        return None
    dtype = keys.dtype or ("bf16" if all("bf16" in gpu.flop for gpu in gpus) else "fp16")
    return ParallelPlan(
        tp=said.tp,
        pp=said.pp,
        dp=said.dp,
        cp=said.cp,
        ep=said.ep,
        order=tuple(axis for axis in said.order) if keys.parallel is not None else ParallelPlan(global_batch=1).order,
        sequence_parallel=said.tp > 1 if keys.sequence_parallel is None else keys.sequence_parallel,
        microbatch=keys.microbatch,
        global_batch=keys.global_batch,
        sequence=keys.sequence,
        schedule=keys.schedule,
        chunks=keys.chunks,
        uneven=keys.uneven,
        sharding=keys.sharding,
        shards=keys.shards,
        recompute=keys.recompute,
        optimizer=keys.optimizer,
        dtype=dtype,
    )


def _found(
    plan: ParallelPlan, model: Transformer, tree: Tree, machine: Machine, devices: tuple[str, ...], framework: Framework
) -> Laid:
    """The fastest plan by its estimate, of those that fit; if none does, the one that needs least."""
    from hwsim.models.search import search

    fixed = {key for key, _ in tree.items()} & {each.name for each in dataclasses.fields(ParallelPlan)}
    best = search(model, plan, cluster_of(machine, devices), framework, fixed)
    step = best.steps[0] if best.steps else best.nearest
    if step is None:
        raise WrongPlan((("parallel", f"no plan lays it over {len(devices)} devices"),))
    return step.laid


def _place(tree: Tree, key: str) -> Place:
    """Where a key of the plan stands, or what would hold it."""
    inside = tree.get("parallel")
    if key in IN_PARALLEL and inside is not None:
        return inside.key_place(key)
    return tree.key_place(key)


def words(laid: Laid) -> str:
    """A plan in a line.

    >>> from hwsim.models import load_transformer
    >>> words(lay(load_transformer("gpt2"), ParallelPlan(tp=2, dp=2, global_batch=8), 4))
    'tp 2 x pp 1 x dp 2, microbatch 1 x 4, nothing sharded, nothing recomputed, bf16, adam'
    """
    plan = laid.plan
    sizes: Mapping[str, int] = {"tp": plan.tp, "cp": plan.cp, "pp": plan.pp, "dp": laid.dp, "ep": plan.ep}
    shown = " x ".join(f"{name} {size}" for name, size in sizes.items() if size > 1 or name in ("tp", "pp", "dp"))
    parts = [shown, f"microbatch {plan.microbatch} x {laid.microbatches}"]
    if plan.pp > 1:
        parts.append(f"{plan.schedule}, {plan.chunks} chunks" if plan.chunks > 1 else plan.schedule)
    parts += ["sequence parallel"] if plan.sequence_parallel else []
    parts += [plan.sharding] if plan.level else ["nothing sharded"] if laid.dp > 1 else []
    parts.append({"none": "nothing recomputed", "selective": "scores recomputed", "full": "layers recomputed"}[plan.recompute])
    return ", ".join([*parts, plan.dtype, plan.optimizer])
