"""Planner of `train:`: trainings of models, lowered to ops on devices and flows on links.

The module of an architecture (`transformers`, `networks`) derives a plan from the keys, with the layers of every stage. The other
modules are the same for all models.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hwsim.devices import CannotCompute
from hwsim.families.training.workload.request import TrainingRequest
from hwsim.families.training.workload.schema import TrainKeys
from hwsim.machine import Machine, UnknownName
from hwsim.models.architectures import Transformer
from hwsim.models.framework import framework_of
from hwsim.models.library import written_model
from hwsim.spec import Mistakes, SpecError, Tree, decode
from hwsim.workload.programs import MAIN

if TYPE_CHECKING:  # few trainings write checkpoints
    from hwsim.failures import FailingJob
    from hwsim.families.training.workload.checkpoints import TrainingCheckpoints
    from hwsim.families.training.workload.plan import TrainingPlan

__all__ = ["TrainKeys", "TrainingRequest", "add_training", "check_training"]


def add_training(asked: TrainingRequest) -> None:
    """Append a training to the graph, or note its mistakes."""
    tree, machine, mistakes = asked.tree, asked.machine, asked.mistakes
    keys, architecture, model, framework = _read(tree, mistakes)
    if keys is None or model is None:
        return
    devices = _devices(keys, tree, machine, mistakes)
    if framework is None:
        architecture.check(keys, tree, mistakes)
        return
    from hwsim.families.training.workload.lowering import lower
    from hwsim.families.training.workload.plan import PieceExchange

    try:
        plan = architecture.planned(keys, model, framework, tree, machine, devices, mistakes)
    except (CannotCompute, UnknownName) as error:
        mistakes.add((tree.get("device") or tree).place, error.message, error.hint)
        return
    loader = None
    if keys.loader is not None and plan is not None and (loading := tree.get("loader")) is not None:
        from hwsim.families.training.workload.loader import placed_loader

        groups = [plan.layout.group(0, replica) for replica in range(plan.layout.dp)]
        name = "loader" if asked.name == MAIN else f"{asked.name}.loader"
        loader = placed_loader(keys.loader, loading, keys.global_batch, machine, groups, name, mistakes)
        if loader is not None and tree.get("steps") is None:
            plan = replace(plan, steps=loader.steps)
    saved, job = _disturbed(keys, plan, tree, machine, mistakes)
    if plan is not None and not len(mistakes):
        if isinstance(plan.exchange, PieceExchange) and (asked.marks or asked.others):
            used = plan.layout.devices
            own = {capacity.name: gpu for gpu in used for capacity in machine.device(gpu).model.capacities(gpu)}
            shared = frozenset(used).intersection(asked.others)
            slowed = {own[name] for name, when in asked.marks.items() if name in own and _changes_speed(when)}
            disturbed = frozenset(asked.marks.keys() - own.keys()) | shared
            plan = replace(plan, exchange=replace(plan.exchange, disturbed=disturbed, slowed=shared | slowed))
        lower(plan, asked, saved, job, loader)


def _changes_speed(when: Any) -> bool:
    """Return whether changes of a capacity, None for jitter, do more than stop it."""
    return when is None or any(speed not in (0.0, 1.0) for _, speed in when)


def _disturbed(
    keys: TrainKeys, plan: TrainingPlan | None, tree: Tree, machine: Machine, mistakes: Mistakes
) -> tuple[TrainingCheckpoints | None, FailingJob | None]:
    """Return (checkpoints, job with failure rates), each None if absent or if mistakes were noted."""
    if keys.checkpoint is None and keys.failures is None:
        return None, None
    from hwsim.families.training.workload.checkpoints import check, job_for, refuse_hopeless, saved_by

    check(keys, tree, mistakes)
    if plan is None or len(mistakes):
        return None, None
    saved, job = saved_by(keys, plan, machine, mistakes), job_for(keys, machine, plan.layout.devices, mistakes)
    if saved is not None and job is not None:
        refuse_hopeless(saved, job, machine, tree, mistakes)
    return saved, job


def check_training(tree: Tree, mistakes: Mistakes) -> None:
    """Note the mistakes of a `train:` that do not depend on the machine."""
    keys, architecture, model, _ = _read(tree, mistakes)
    if keys is not None and model is not None:
        architecture.check(keys, tree, mistakes)
    if keys is not None and keys.loader is not None and (loader := tree.get("loader")) is not None:
        from hwsim.families.training.workload.loader import check as check_loader

        check_loader(keys.loader, loader, mistakes)
    if keys is not None and (keys.checkpoint is not None or keys.failures is not None):
        from hwsim.families.training.workload.checkpoints import check

        check(keys, tree, mistakes)


def _read(tree: Tree, mistakes: Mistakes) -> tuple[TrainKeys | None, ModuleType, Any, Any]:
    """Return (keys, module of the architecture, model, framework); None for those with mistakes."""
    keys = decode(tree, TrainKeys, mistakes)
    _refuse_half(tree, mistakes)
    model = None if keys is None else written_model(keys.model, mistakes)
    architecture = import_module(f"{__name__}.{'transformers' if isinstance(model, Transformer) else 'networks'}")
    if keys is None or model is None:
        return keys, architecture, None, None
    place = tree.key_place("framework")
    try:
        name = architecture.USUAL if tree.get("framework") is None else keys.framework
        return keys, architecture, model, framework_of(model, name, place.folder, place, work="train")
    except SpecError as error:
        for mistake in error.mistakes:
            mistakes.add(mistake.place or place, mistake.message, mistake.hint)
        return keys, architecture, model, None


def _devices(keys: TrainKeys, tree: Tree, machine: Machine, mistakes: Mistakes) -> tuple[str, ...]:
    """Return the devices of the training; () if mistakes were noted."""
    named = tree.get("device")
    try:
        devices = machine.devices_of("gpu") if named is None else machine.select(keys.device)
    except UnknownName as error:
        mistakes.add(tree.key_place("device"), error.message, error.hint)
        return ()
    if not devices:
        few = "" if machine.devices_of("gpu") else f": a model is trained on GPUs, and {machine.name or 'the machine'} has none"
        mistakes.add((named or tree).place, f"no device is named{few}", "device: gpu*")
    if keys.gpus is not None and keys.gpus > len(devices):
        mistakes.add(
            tree.key_place("gpus"),
            f"`gpus: {keys.gpus}` exceeds the {len(devices)} GPUs of the machine",
            "omit `gpus` to use all of them",
        )
        return ()
    return devices[: keys.gpus]


def _refuse_half(tree: Tree, mistakes: Mistakes) -> None:
    """Note `epochs` without `samples` or vice versa, and `epochs` next to `tokens`."""
    epochs, samples, tokens = tree.get("epochs"), tree.get("samples"), tree.get("tokens")
    if (epochs is None) != (samples is None):
        given, missing, example = ("epochs", "samples", "1281167") if samples is None else ("samples", "epochs", "90")
        mistakes.add(tree.key_place(given), f"`{given}` has no effect without `{missing}`", f"add `{missing}: {example}`")
    elif epochs is not None and tokens is not None:
        message = "both `tokens` and `epochs` set the length of the training: expected one of them"
        mistakes.add(tree.key_place("epochs"), message, "omit `epochs` and `samples`")
