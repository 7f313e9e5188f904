"""`train:` the training of real models, lowered to ops on the devices and flows on the links."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar

from hwsim.graph.builder import GraphBuilder
from hwsim.machine import Machine
from hwsim.models.architectures import NETWORKS
from hwsim.models.library import read_network, read_transformer
from hwsim.spec import Mistakes, SpecError, Tree, decode, find, read
from hwsim.workload.training.schema import TrainKeys

Model = TypeVar("Model")

__all__ = ["TrainKeys", "add_training", "check_training"]


def add_training(
    tree: Tree,
    machine: Machine,
    builder: GraphBuilder,
    mistakes: Mistakes,
    *,
    name: str,
    start: float = 0.0,
    fold: Literal["auto", "always", "never"] = "auto",
    shared: bool = False,
) -> None:
    """Append a training to the graph; what is wrong is noted.

    Args:
        name: of its program.  start: seconds before the first step.
        fold: whether copies of a model that nothing tells apart are told by one of them: auto, if they are many; never, where
            something else runs on the machine, or happens to it.  shared: others may hold memory of the same devices.
    """
    keys = decode(tree, TrainKeys, mistakes)
    if keys is None:
        return
    _refuse_half(tree, mistakes)
    model = _model_of(keys.model, mistakes)
    if model is None:
        return
    if model.text("kind") in NETWORKS:
        from hwsim.workload.training.network import add_network

        network = _read(read_network, model, mistakes)
        if network is not None:
            add_network(keys, network, tree, machine, builder, mistakes, name=name, start=start, alike=fold != "never")
        return
    from hwsim.workload.training.transformer import add_transformer

    transformer = _read(read_transformer, model, mistakes)
    if transformer is not None:
        add_transformer(keys, transformer, tree, machine, builder, mistakes, name=name, start=start, fold=fold, shared=shared)


def check_training(tree: Tree, mistakes: Mistakes) -> None:
    """Note every mistake of a `train:` that needs no machine to be seen."""
    keys = decode(tree, TrainKeys, mistakes)
    _refuse_half(tree, mistakes)
    model = None if keys is None else _model_of(keys.model, mistakes)
    if keys is None or model is None:
        return
    if model.text("kind") in NETWORKS:
        from hwsim.workload.training.network import check_network

        if _read(read_network, model, mistakes) is not None:
            check_network(keys, tree, mistakes)
        return
    from hwsim.workload.training.planning import check_keys

    if _read(read_transformer, model, mistakes) is not None:
        check_keys(keys, tree, mistakes)


def _refuse_half(tree: Tree, mistakes: Mistakes) -> None:
    """Note a length of the whole training that is given in half, or twice."""
    epochs, samples, tokens = tree.get("epochs"), tree.get("samples"), tree.get("tokens")
    if (epochs is None) != (samples is None):
        given, missing, example = ("epochs", "samples", "1281167") if samples is None else ("samples", "epochs", "90")
        mistakes.add(tree.key_place(given), f"`{given}` has no effect without `{missing}`", f"add `{missing}: {example}`")
    elif epochs is not None and tokens is not None:
        message = "the whole training is given twice, by `tokens` and by `epochs`"
        mistakes.add(tree.key_place("epochs"), message, "leave out one of them")


def _model_of(tree: Tree, mistakes: Mistakes) -> Tree | None:
    """The file of a model, or the dimensions that stand in its place."""
    if tree.is_mapping:
        return tree
    if not isinstance(tree.value, str):
        mistakes.add(tree.place, f"a model is a name or its dimensions, not {tree.what()}", "such as llama-3-8b")
        return None
    near = Path(tree.place.file).parent if tree.place.file and not tree.place.file.startswith("<") else None
    try:
        return read(find("model", tree.value, near))
    except SpecError as error:
        for each in error.mistakes:
            mistakes.add(each.place or tree.place, each.message, each.hint)
        return None


def _read(reader: Callable[[Tree], Model], tree: Tree, mistakes: Mistakes) -> Model | None:
    try:
        return reader(tree)
    except SpecError as error:
        mistakes.extend(error.mistakes)
        return None
