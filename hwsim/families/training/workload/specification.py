"""The parallel plan of a `train:` without a machine, for simulation and planning."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from hwsim.families.training.workload.schema import ParallelKeys, TrainKeys
from hwsim.models import Framework, ParallelPlan, Transformer
from hwsim.models.framework import framework_of
from hwsim.models.library import written_model
from hwsim.models.plan import Dtype, Sizes
from hwsim.records import dataclass
from hwsim.spec import Mistakes, SpecError, Tree, decode, tree_of

SIZE: Final = "{tp: 8, pp: 4, dp: rest}"
USUAL: Final = "megatron-core"  # default framework
SAME: Final = ("microbatch", "global_batch", "sequence", "imbalance", "schedule", "chunks", "uneven", "sharding", "shards",
               "recompute", "optimizer")  # fmt: skip


@dataclass(frozen=True, slots=True)
class SpecifiedTraining:
    """The training of a transformer as specified in its file.

    Args:
        keys: keys of `train:`.
        model: transformer.
        framework: training framework.
        plan: parallel plan, with defaults.
        fixed: fields of the plan that the file sets.
        auto: whether the parallel plan is searched.
    """

    keys: TrainKeys
    model: Transformer
    framework: Framework
    plan: ParallelPlan
    fixed: frozenset[str]
    auto: bool


def specified_training(tree: Tree, dtype: Dtype, mistakes: Mistakes, *, needs_batch: bool = True) -> SpecifiedTraining | None:
    """Return the training of a transformer, or None for another model or if mistakes were noted.

    Args:
        tree: tree of `train:`.
        dtype: default number format.
        mistakes: list for mistakes.
        needs_batch: whether `global_batch` is required.
    """
    if not needs_batch and tree.get("global_batch") is None:
        tree = tree.put("global_batch", tree_of(1, tree.place))
    keys = decode(tree, TrainKeys, mistakes)
    model = None if keys is None else written_model(keys.model, mistakes)
    if keys is None or not isinstance(model, Transformer):
        return None
    place = tree.key_place("framework")
    try:
        framework = framework_of(
            model, USUAL if tree.get("framework") is None else keys.framework, place.folder, place, work="train"
        )
    except SpecError as error:
        mistakes.extend(error.mistakes)
        return None
    plan = plan_of(keys, dtype, mistakes)
    if plan is None or not isinstance(framework, Framework):
        return None
    names = {key for key, _ in tree.items()} & {field.name for field in dataclasses.fields(ParallelPlan)}
    return SpecifiedTraining(keys, model, framework, plan, frozenset(names), is_auto(keys))


def plan_of(keys: TrainKeys, dtype: Dtype, mistakes: Mistakes) -> ParallelPlan | None:
    """Return the parallel plan with defaults, or None if a mistake was noted."""
    sizes = sizes_of(keys, mistakes)
    if sizes is None:
        return None
    same: dict[str, Any] = {name: getattr(keys, name) for name in SAME}
    same |= {field.name: getattr(sizes, field.name) for field in dataclasses.fields(Sizes)}
    return ParallelPlan(
        sequence_parallel=sizes.tp > 1 if keys.sequence_parallel is None else keys.sequence_parallel,
        dtype=keys.dtype or dtype,
        **same,
    )


def sizes_of(keys: TrainKeys, mistakes: Mistakes) -> ParallelKeys | None:
    """Return the sizes of the plan in the file, or None if a mistake was noted."""
    if keys.parallel is None or is_auto(keys):
        return ParallelKeys()
    if not keys.parallel.is_mapping:
        message = f"`parallel`: expected a mapping or auto, got {keys.parallel.what()}"
        mistakes.add(keys.parallel.place, message, f"parallel: {SIZE}")
        return None
    return decode(keys.parallel, ParallelKeys, mistakes)


def is_auto(keys: TrainKeys) -> bool:
    """Whether the parallel plan is searched."""
    return keys.parallel is not None and keys.parallel.value == "auto"
