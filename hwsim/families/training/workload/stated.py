"""The parallel plan that a `train:` states, before a machine is known: one reading for simulation and planning."""

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
USUAL: Final = "megatron-core"  # framework, unless the file names another one
SAME: Final = ("microbatch", "global_batch", "sequence", "imbalance", "schedule", "chunks", "uneven", "sharding", "shards",
               "recompute", "optimizer")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stated:
    """A training of a transformer as its file states it.

    Args:
        fixed: names of fields of the plan that the file states.
        auto: whether sizes are to be looked for.
    """

    keys: TrainKeys
    model: Transformer
    framework: Framework
    plan: ParallelPlan
    fixed: frozenset[str]
    auto: bool


def stated(tree: Tree, dtype: Dtype, mistakes: Mistakes, *, needs_batch: bool = True) -> Stated | None:
    """The training that a `train:` of a transformer writes; None for another network, or once mistakes are noted.

    Args:
        dtype: number format where the file names none.
        needs_batch: whether the batch of a step has to be there.
    """
    if not needs_batch and tree.get("global_batch") is None:
        tree = tree.put("global_batch", tree_of(1, tree.place))
    keys = decode(tree, TrainKeys, mistakes)
    model = None if keys is None else written_model(keys.model, mistakes)
    if keys is None or not isinstance(model, Transformer):
        return None
    place = tree.key_place("framework")
    try:
        framework = framework_of(model, USUAL if tree.get("framework") is None else keys.framework, place.folder, place)
    except SpecError as error:
        mistakes.extend(error.mistakes)
        return None
    plan = plan_of(keys, dtype, mistakes)
    if plan is None or not isinstance(framework, Framework):
        return None
    names = {key for key, _ in tree.items()} & {field.name for field in dataclasses.fields(ParallelPlan)}
    return Stated(keys, model, framework, plan, frozenset(names), is_auto(keys))


def plan_of(keys: TrainKeys, dtype: Dtype, mistakes: Mistakes) -> ParallelPlan | None:
    """The parallel plan that keys write, with what they leave out; None once a mistake is noted."""
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
    """The sizes of the plan, as far as the file states them."""
    if keys.parallel is None or is_auto(keys):
        return ParallelKeys()
    if not keys.parallel.is_mapping:
        message = f"`parallel` is a mapping or auto, not {keys.parallel.what()}"
        mistakes.add(keys.parallel.place, message, f"such as parallel: {SIZE}")
        return None
    return decode(keys.parallel, ParallelKeys, mistakes)


def is_auto(keys: TrainKeys) -> bool:
    """Whether sizes are to be looked for."""
    return keys.parallel is not None and keys.parallel.value == "auto"
