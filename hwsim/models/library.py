"""Models by name: workloads/models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hwsim.models.architectures.transformer import Transformer
from hwsim.spec import Mistakes, Tree, decode, find, read, resolve

_ENTRY: Final = frozenset({"hwsim", "kind", "name", "notes", "use", "let"})


def load_model(name: str, relative_to: Path | None = None) -> Transformer:
    """The model of the library called that, or of a file.

    >>> round(load_model("llama-3-70b").parameters / 1e9, 2)
    70.55

    Raises:
        SpecError: there is no such file, or it has mistakes.
    """
    return read_model(read(find("model", name, relative_to)))


def read_model(tree: Tree) -> Transformer:
    """The model that a file (or the `model:` of a workload) writes.

    Raises:
        SpecError: all its mistakes.
    """
    mistakes = Mistakes()
    whole = resolve(tree, mistakes, kind="model")
    if whole.text("kind") not in (None, Transformer.kind):
        mistakes.add(whole.place, f"'{whole.text('kind')}' is no transformer")
    mistakes.raise_if_any()
    found = decode(whole, Transformer, mistakes, ignore=_ENTRY, sourced=True)
    mistakes.raise_if_any()
    if found is None:
        raise TypeError("no model was read, and no mistake noted")
    return found


def described(model: Transformer) -> Iterator[str]:
    """What follows from its dimensions, a line each."""
    active, s = model.active_parameters, model.sequence
    yield f"parameters: {_thousands(model.parameters)} ({_short(model.parameters)})"
    if active < model.parameters:
        yield f"parameters a token meets: {_thousands(active)} ({_short(active)})"
    yield f"of each layer: {_thousands(model.layer_parameters)}; of the embedding: {_thousands(model.embedding_parameters)}"
    yield f"FLOP per token, sequences of {s}: forward {model.forward_flop(s):.4g}, training {model.training_flop(s):.4g}"
    yield f"weights in 16 bit: {2 * model.parameters / 1e9:.4g} GB; trained with Adam: {18 * model.parameters / 1e9:.4g} GB"
    kv = model.kv_bytes()
    yield f"KV cache in 16 bit: {kv / 1e3:.4g} kB per token, {kv * s / 1e9:.4g} GB for {s} tokens"


def _thousands(count: int) -> str:
    return f"{count:,}"


def _short(count: int) -> str:
    """
    >>> _short(70_553_706_496), _short(124_439_808)
    ('70.6 G', '124 M')
    """
    return f"{count / 1e9:.3g} G" if count >= 1e9 else f"{count / 1e6:.3g} M"
