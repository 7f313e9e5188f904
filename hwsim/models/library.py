"""Model files, found by path or by name in `workloads/models`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from hwsim.models.architectures import ARCHITECTURES, FeedForwardNetwork, Model, Transformer
from hwsim.spec import Mistakes, SpecError, Tree, decode_all, did_you_mean, find, read, resolve
from hwsim.spec.memo import memo_table
from hwsim.spec.schema import json_schema
from hwsim.units import BYTES

M = TypeVar("M", Transformer, FeedForwardNetwork)
_ENTRY: Final = frozenset({"hwsim", "kind", "name", "notes", "use", "let"})
_SCHEMA: Final[Mapping[str, Any]] = {
    "name": {"type": "string"},
    "notes": {"type": "string"},
    "use": {"type": "string"},
    "let": {"type": "object"},
}


def load_model(name: str, relative_to: Path | None = None) -> Model:
    """Return the model with this name in the library, of a file, or of a file's content.

    Raises:
        SpecError: the file does not exist or contains mistakes.
    """
    return read_model(read(name) if "\n" in name else model_file(find("model", name, relative_to)))


def model_file(path: Path) -> Tree:
    """Return the content of a model file. A Hugging Face config (.json) is converted.

    Raises:
        SpecError: the file does not exist, or the config is not supported.
    """
    if path.suffix != ".json":
        return read(path)
    from hwsim.models.configs import as_tree, config_tree, translate_config

    tree, name = config_tree(path)
    return tree if tree.get("hwsim") is not None else as_tree(translate_config(tree, name))


def load_transformer(name: str, relative_to: Path | None = None) -> Transformer:
    """Return the transformer with this name; as `load_model`.

    >>> round(load_transformer("llama-3-70b").parameters / 1e9, 2)
    70.55
    """
    return _require(Transformer, load_model(name, relative_to), name, "a transformer, got a CNN or MLP")


def load_network(name: str, relative_to: Path | None = None) -> FeedForwardNetwork:
    """Return the CNN or MLP with this name; as `load_model`.

    >>> load_network("resnet-50").parameters
    25557032
    """
    return _require(FeedForwardNetwork, load_model(name, relative_to), name, "a CNN or MLP, got a transformer")


def _require(architecture: type[M], model: Model, name: str, wrong: str) -> M:
    if not isinstance(model, architecture):
        raise SpecError.of(None, f"model {name}: expected {wrong}")
    return model


def read_model(tree: Tree) -> Model:
    """Return the model of a file, or of the `model:` mapping of a workload.

    Raises:
        SpecError: all mistakes of the mapping.
    """
    mistakes = Mistakes()
    resolved = resolve(tree, mistakes, kind="model")
    kind = resolved.text("kind") or Transformer.kind
    if kind not in ARCHITECTURES:
        mistakes.add(resolved.key_place("kind"), f"unknown model kind '{kind}'", did_you_mean(kind, ARCHITECTURES))
    architecture = ARCHITECTURES.get(kind, Transformer)
    return decode_all(resolved, architecture, mistakes, ignore=_ENTRY, sourced=True)


def written_model(tree: Tree, mistakes: Mistakes) -> Model | None:
    """Return the model that the `model:` of a workload names or defines; None if mistakes were added."""
    if not tree.is_mapping and not isinstance(tree.value, str):
        mistakes.add(tree.place, f"`model`: expected a name or a mapping of dimensions, got {tree.what()}", "model: llama-3-8b")
        return None
    try:
        if tree.is_mapping:
            return read_model(tree)
        written = model_file(find("model", str(tree.value), tree.place.folder, tree.place))
        shared: dict[int, tuple[Tree, Model]] | None = memo_table("models")
        if shared is None:
            return read_model(written)
        if id(written) not in shared:
            shared[id(written)] = written, read_model(written)
        return shared[id(written)][1]
    except SpecError as error:
        mistakes.extend(error.mistakes)
        return None


def model_of(tree: Tree) -> Model:
    """Return the model that a tree names or defines.

    Raises:
        SpecError: all mistakes of the model.
    """
    mistakes = Mistakes()
    model = written_model(tree, mistakes)
    if model is None:
        raise SpecError(mistakes)
    return model


def model_schema() -> dict[str, Any]:
    """Return the JSON Schema of model files, for all architectures."""
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


def describe_model(model: Model) -> Iterator[str]:
    """Yield lines that summarize a model: parameters, FLOP, bytes."""
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
        quantised = f"{model.quantised.of} in {model.quantised.format}"
        yield f"weights of a server, {quantised}, the rest in 16 bit: {model.weight_bytes(2.0) / 1e9:.4g} GB"
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
