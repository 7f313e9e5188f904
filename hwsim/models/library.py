"""Files of models: by path, or by a name of `workloads/models`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from hwsim.models.architectures import ARCHITECTURES, Model, Network, Transformer
from hwsim.spec import Mistakes, SpecError, Tree, decode_all, did_you_mean, find, read, resolve
from hwsim.spec.schema import json_schema
from hwsim.spec.shelf import shared_by
from hwsim.units import BYTES

M = TypeVar("M", Transformer, Network)
_ENTRY: Final = frozenset({"hwsim", "kind", "name", "notes", "use", "let"})
_SCHEMA: Final[Mapping[str, Any]] = {
    "name": {"type": "string"},
    "notes": {"type": "string"},
    "use": {"type": "string"},
    "let": {"type": "object"},
}


def load_model(name: str, relative_to: Path | None = None) -> Model:
    """The model of the library called that, of a file, or of the content of one.

    Raises:
        SpecError: there is no such file, or it has mistakes.
    """
    return read_model(read(name) if "\n" in name else model_file(find("model", name, relative_to)))


def model_file(path: Path) -> Tree:
    """The content of the file of a model; a config of Hugging Face (.json) is turned into one.

    Raises:
        SpecError: there is no such file, or a config says what no model can.
    """
    if path.suffix != ".json":
        return read(path)
    from hwsim.models.configs import as_tree, config_tree, translated

    tree, name = config_tree(path)
    return tree if tree.get("hwsim") is not None else as_tree(translated(tree, name))


def load_transformer(name: str, relative_to: Path | None = None) -> Transformer:
    """As `load_model`, of a transformer.

    >>> round(load_transformer("llama-3-70b").parameters / 1e9, 2)
    70.55
    """
    return _only(Transformer, load_model(name, relative_to), name, "no transformer")


def load_network(name: str, relative_to: Path | None = None) -> Network:
    """As `load_model`, of a network of convolutions or a perceptron.

    >>> load_network("resnet-50").parameters
    25557032
    """
    return _only(Network, load_model(name, relative_to), name, "a transformer")


def _only(architecture: type[M], model: Model, name: str, wrong: str) -> M:
    if not isinstance(model, architecture):
        raise SpecError.of(None, f"the model {name} is {wrong}")
    return model


def read_model(tree: Tree) -> Model:
    """The model that a file (or the `model:` of a workload) writes.

    Raises:
        SpecError: all its mistakes.
    """
    mistakes = Mistakes()
    resolved = resolve(tree, mistakes, kind="model")
    kind = resolved.text("kind") or Transformer.kind
    if kind not in ARCHITECTURES:
        mistakes.add(resolved.key_place("kind"), f"there is no kind of model '{kind}'", did_you_mean(kind, ARCHITECTURES))
    architecture = ARCHITECTURES.get(kind, Transformer)
    return decode_all(resolved, architecture, mistakes, ignore=_ENTRY, sourced=True)


def written_model(tree: Tree, mistakes: Mistakes) -> Model | None:
    """The model that the `model:` of a workload names, or whose dimensions stand there; None once mistakes are noted."""
    if not tree.is_mapping and not isinstance(tree.value, str):
        mistakes.add(tree.place, f"a model is a name or its dimensions, not {tree.what()}", "such as llama-3-8b")
        return None
    try:
        if tree.is_mapping:
            return read_model(tree)
        written = model_file(find("model", str(tree.value), tree.place.folder, tree.place))
        shared: dict[int, tuple[Tree, Model]] | None = shared_by("models")
        if shared is None:
            return read_model(written)
        if id(written) not in shared:
            shared[id(written)] = written, read_model(written)
        return shared[id(written)][1]
    except SpecError as error:
        mistakes.extend(error.mistakes)
        return None


def model_of(tree: Tree) -> Model:
    """The model that a file names or writes out.

    Raises:
        SpecError: its mistakes.
    """
    mistakes = Mistakes()
    model = written_model(tree, mistakes)
    if model is None:
        raise SpecError(mistakes)
    return model


def model_schema() -> dict[str, Any]:
    """The JSON Schema of a model file, of any architecture."""
    schemas: list[dict[str, Any]] = []
    definitions: dict[str, Any] = {}
    version = ""
    for kind, cls in ARCHITECTURES.items():
        schema = json_schema(cls, header="model/1", ignore={**_SCHEMA, "kind": {"const": kind}}, sourced=True)
        definitions |= schema.pop("$defs", {})
        version = schema.pop("$schema")
        if (required := schema.pop("required", None)) is not None:  # `use:` may bring all of it
            schema["anyOf"] = [{"required": required}, {"required": ["use"]}]
        schemas.append(schema)
    return {"$schema": version, "title": "model", "oneOf": schemas, "$defs": dict(sorted(definitions.items()))}


def described(model: Model) -> Iterator[str]:
    """Lines on a model: parameters, FLOP, bytes."""
    if not isinstance(model, Transformer):
        yield f"parameters: {model.parameters:,}; in 32 bit {4 * model.parameters / 1e6:.4g} MB"
        flop = model.forward_flop / 1e9
        yield f"operations of one example: forward {flop:.4g} GFLOP, training {3 * flop:.4g} GFLOP"
        return
    active, s = model.active_parameters, model.sequence
    yield f"parameters: {model.parameters:,} ({_short(model.parameters)})"
    if active < model.parameters:
        yield f"parameters a token meets: {active:,} ({_short(active)})"
    if len(model.kinds) == 1:
        yield f"of each layer: {model.layer_parameters:,}; of the embedding: {model.embedding_parameters:,}"
    else:
        kinds = "; ".join(f"{kind.layers} of {kind.layer_parameters:,}" for kind in model.kinds)
        yield f"layers: {kinds}; of the embedding: {model.embedding_parameters:,}"
    yield f"FLOP per token, sequences of {s}: forward {model.forward_flop(s):.4g}, training {model.training_flop(s):.4g}"
    yield f"weights in 16 bit: {2 * model.parameters / 1e9:.4g} GB; trained with Adam: {18 * model.parameters / 1e9:.4g} GB"
    if model.quantised is not None:
        some = f"{model.quantised.of} in {model.quantised.format}"
        yield f"weights of a server, {some}, the rest in 16 bit: {model.weight_bytes(2.0) / 1e9:.4g} GB"
    if model.patches is not None:
        return
    form = "16 bit" if model.kept("bf16") == "bf16" else model.kept("bf16")
    kv = model.kv_bytes(BYTES[model.kept("bf16")])
    bounded = ", bounded by windows" if model.cache == "window" else ""
    yield f"KV cache in {form}: {kv / 1e3:.4g} kB per token, {kv * model.cached(s) / 1e9:.4g} GB for {s} tokens{bounded}"


def _short(count: int) -> str:
    """
    >>> _short(70_553_706_496), _short(124_439_808)
    ('70.6 G', '124 M')
    """
    return f"{count / 1e9:.3g} G" if count >= 1e9 else f"{count / 1e6:.3g} M"
