"""Keys of a training that change nothing."""

from __future__ import annotations

from collections.abc import Iterator

from hwsim.spec import SpecError, Tree, Warning
from hwsim.workload.file import Workload
from hwsim.workload.unheeded import no_effect


def idle_keys(workload: Workload) -> Iterator[Warning]:
    """A warning for each of them."""
    for train in workload.trees("train"):
        if not train.is_mapping:
            continue
        if train.get("shards") is not None and train.text("sharding") in (None, "none", "zero-0"):
            yield no_effect(train, ["shards"], "nothing is sharded", "`sharding: zero-1` shards the optimizer")
        if (uneven := train.get("uneven")) is not None and uneven.value is True and (even := _divided(train)):
            yield no_effect(train, ["uneven"], even, "all stages have as many")


def _divided(train: Tree) -> str:
    """Sentence that the stages of a training come out even; "" if they do not, or it is not known."""
    parallel, model = train.get("parallel"), train.get("model")
    stages = parallel.get("pp") if parallel is not None and parallel.is_mapping else None
    if parallel is not None and not parallel.is_mapping:
        return ""  # a plan to be found may have any number of stages
    pp = stages.value if stages is not None else 1
    layers = model.get("layers") if model is not None and model.is_mapping else None
    many = layers.value if layers is not None else None
    if model is not None and isinstance(model.value, str):
        from hwsim.models import load_transformer  # models are slow to import

        try:
            many = getattr(load_transformer(model.value), "layers", None)
        except SpecError:  # no transformer, or one with mistakes: the training itself says so
            return ""
    chunks = given.value if (given := train.get("chunks")) is not None else 1
    if not isinstance(pp, int) or not isinstance(many, int) or not isinstance(chunks, int) or many % (pp * chunks):
        return ""
    return f"{pp} divides {many} layers" if chunks == 1 else f"{pp} x {chunks} divides {many} layers"
