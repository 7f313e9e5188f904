"""JSON Schema of workload files: top level, statements and ops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hwsim.families_interface import FAMILIES, family_interface
from hwsim.ops import OPS, FetchOp
from hwsim.spec.schema import json_schema
from hwsim.workload.file import FORMAT, RankProgram, Workload
from hwsim.workload.parser import STATEMENTS

_STATEMENTS: Final = {"type": "array", "items": {"$ref": "#/$defs/Statement"}}
_WORDS: Final[Mapping[str, Any]] = {  # short forms of statements: a name or a list of names
    "wait": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
    "barrier": [{"type": "string"}],
}


def workload_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a workload file."""
    out = json_schema(Workload, header=FORMAT)
    definitions = out.setdefault("$defs", {})
    kinds = {**STATEMENTS, **OPS}
    statement = {kind: embedded(cls, definitions) for kind, cls in sorted(kinds.items())}
    fetches = {kind: [{"type": "string"}] for kind, op in OPS.items() if issubclass(op, FetchOp)}
    for kind, words in {**_WORDS, **fetches}.items():
        statement[kind] = {"anyOf": [*words, statement[kind]]}
    definitions["Statement"] = {
        "title": "statement",
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
        "properties": statement,
    }
    put_schema(out["properties"]["expect"], {"type": "object", "additionalProperties": {"type": "string"}})
    program = {"anyOf": [_STATEMENTS, embedded(RankProgram, definitions)]}
    put_schema(out["properties"]["program"], program)
    put_schema(out["properties"]["programs"], {"type": "object", "additionalProperties": program})
    for key in FAMILIES:
        family_interface(key).schema(out, definitions)
    return out


def put_schema(kept: dict[str, Any], schema: dict[str, Any]) -> None:
    """Replace the schema of a key in place, except for its description."""
    description = kept["description"]
    kept.clear()
    kept.update(schema, description=description)


def embedded(cls: type, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a class for use inside another schema; add its definitions to `definitions`."""
    schema = json_schema(cls)
    definitions.update(schema.pop("$defs", {}))
    del schema["$schema"]
    if "do" in schema["properties"]:
        schema["properties"]["do"] = _STATEMENTS | {"description": schema["properties"]["do"].get("description", "")}
    return schema
