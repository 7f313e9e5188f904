"""Warnings of keys of a training without effect."""

from __future__ import annotations

from collections.abc import Iterator

from hwsim.spec import Mistakes, Tree, Warning
from hwsim.workload.file import Workload
from hwsim.workload.unused_keys import no_effect


def idle_keys(workload: Workload) -> Iterator[Warning]:
    """Yield a warning for each key without effect."""
    for train in workload.trees("train"):
        if not train.is_mapping:
            continue
        if train.get("shards") is not None and train.text("sharding") in (None, "none", "zero-0"):
            yield no_effect(train, ["shards"], "nothing is sharded", "`sharding: zero-1` shards the optimizer")
        if (uneven := train.get("uneven")) is not None and uneven.value is True and (even := _divided(train)):
            yield no_effect(train, ["uneven"], even, "all stages have as many")


def _divided(train: Tree) -> str:
    """Return the reason why the stages of a training have equal numbers of layers; "" if they differ or if this is unknown."""
    from hwsim.families.training.workload.specification import specified_training  # models are slow to import

    known = specified_training(train, "bf16", Mistakes(), needs_batch=False)
    if known is None or known.auto:  # a searched plan may have any number of stages
        return ""
    pp, chunks, layers = known.plan.pp, known.plan.chunks, known.model.layers
    if layers % (pp * chunks):
        return ""
    return f"{pp} divides {layers} layers" if chunks == 1 else f"{pp} x {chunks} divides {layers} layers"
