"""The training of a workload as options of `hwsim estimate`; flags that are given win."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hwsim.spec import Mistake, Mistakes, SpecError, Tree, find, names, read, resolve, tree_of
from hwsim.spec.paths import apply_set
from hwsim.workload.training.schema import TrainKeys
from hwsim.workload.training.stated import SAME, is_auto, sizes_of

SIZES = ("tp", "pp", "dp", "cp", "ep", "order")


def training_of(source: str, settings: Mapping[str, str]) -> tuple[Tree, dict[str, str]] | None:
    """(its `train:`, settings that are left for the machine) of a workload; None if the source is a model.

    Raises:
        SpecError: the workload has mistakes, or trains nothing.
    """
    named = source in names("workload") and source not in names("model")
    if not named and not source.endswith((".yaml", ".yml")):
        return None
    tree = read(find("workload" if named else "model", source))
    if tree.text("hwsim") != "workload/1":
        return None
    nothing, left = tree_of({"hwsim": "machine/1"}), dict[str, str]()
    for path, value in settings.items():
        if path.startswith("machine."):
            left[path] = value
        else:
            tree = apply_set(nothing, tree, path, value).workload
    mistakes = Mistakes()
    train = resolve(tree, mistakes, kind="workload").get("train")
    mistakes.raise_if_any()
    if train is None:
        raise SpecError(
            [Mistake(tree.place, "the workload has no `train:` to estimate", "`hwsim simulate` runs it; or name a model")]
        )
    return train, left


def options_of(train: Tree, options: Mapping[str, Any], given: set[str]) -> tuple[Tree, dict[str, Any], set[str]]:
    """(the model, options with what the file states, names of those that are stated).

    Raises:
        SpecError: its mistakes.
    """
    from hwsim.spec import decode_all

    mistakes = Mistakes()
    keys = decode_all(train, TrainKeys, mistakes)
    sizes = sizes_of(keys, mistakes)
    mistakes.raise_if_any()
    filled = dict(options)
    stated = {name: getattr(sizes, name) for name in SIZES}
    stated |= {name: getattr(keys, name) for name in (*SAME, "sequence_parallel", "dtype", "tokens")}
    if train.get("framework") is not None:
        stated["framework"] = keys.framework
    if is_auto(keys):
        stated["plan"] = "auto"
    filled |= {name: value for name, value in stated.items() if name not in given}
    return keys.model, filled, given | ({key for key, _ in train.items()} & set(stated))
