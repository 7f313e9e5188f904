"""Files of models of any kind: what they must be, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hwsim.models import library, networks
from hwsim.models.architectures.cnn import Cnn
from hwsim.models.architectures.mlp import Mlp
from hwsim.models.architectures.transformer import Transformer
from hwsim.spec import Tree
from hwsim.spec.schema import json_schema

KINDS: Final[Mapping[str, type[Transformer] | type[Cnn] | type[Mlp]]] = {"cnn": Cnn, "mlp": Mlp, "transformer": Transformer}
_ENTRY: Final[Mapping[str, Any]] = {
    "name": {"type": "string"},
    "notes": {"type": "string"},
    "use": {"type": "string"},
    "let": {"type": "object"},
}


def facts(tree: Tree) -> tuple[str, ...]:
    """What follows from a model's dimensions, a line each.

    Raises:
        SpecError: all mistakes of the file.
    """
    if tree.text("kind") in networks.NETWORKS:
        return tuple(networks.described(networks.read_network(tree)))
    return tuple(library.described(library.read_model(tree)))


def model_schema() -> dict[str, Any]:
    """The JSON Schema of a model file, of any kind."""
    found: list[dict[str, Any]] = []
    definitions: dict[str, Any] = {}
    schema = ""
    for kind, cls in KINDS.items():
        one = json_schema(cls, header="model/1", ignore={**_ENTRY, "kind": {"const": kind}}, sourced=True)
        definitions |= one.pop("$defs", {})
        schema = one.pop("$schema")
        found.append(one)
    return {"$schema": schema, "title": "model", "oneOf": found, "$defs": dict(sorted(definitions.items()))}
