"""The JSON Schema of workload files: the top level, the statements, and every kind of op."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hwsim.ops import OPS, ExchangeOp, FetchOp
from hwsim.spec.schema import json_schema
from hwsim.workload.file import FORMAT, Each, Workload
from hwsim.workload.pipeline import PipelineKeys, StageKeys
from hwsim.workload.reading import STATEMENTS
from hwsim.workload.serving.schema import InferKeys

_STATEMENTS: Final = {"type": "array", "items": {"$ref": "#/$defs/Statement"}}
_WORDS: Final[Mapping[str, Any]] = {  # statements that may also be written as a name or a list of names
    "wait": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
    "barrier": [{"type": "string"}],
}


def workload_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a workload file."""
    out = json_schema(Workload, header=FORMAT)
    definitions = out.setdefault("$defs", {})
    kinds = {**STATEMENTS, **OPS}
    statement = {kind: _embedded(cls, definitions) for kind, cls in sorted(kinds.items())}
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
    _replace(out["properties"]["expect"], {"type": "object", "additionalProperties": {"type": "string"}})
    program = {"anyOf": [_STATEMENTS, _embedded(Each, definitions)]}
    _replace(out["properties"]["program"], program)
    _replace(out["properties"]["programs"], {"type": "object", "additionalProperties": program})
    pipeline = _embedded(PipelineKeys, definitions)
    inside = {kind: statement[kind] for kind in sorted(OPS)}
    needed = [key for key in inside["read"]["required"] if key != "bytes"]  # which the dataset may say
    inside["read"] = {**inside["read"], "required": needed}
    stage = _embedded(StageKeys, definitions)
    op = {**definitions["Statement"], "title": "op of a stage", "properties": inside}
    do = {"type": "array", "items": op, "description": stage["properties"]["do"]["description"]}
    definitions["Stage"] = {"title": "stage", **stage, "properties": {**inside, **stage["properties"], "do": do}}
    stages = {"type": "array", "items": {"$ref": "#/$defs/Stage"}}
    pipeline["properties"]["stages"] = stages | {"description": pipeline["properties"]["stages"]["description"]}
    _replace(out["properties"]["pipeline"], pipeline)
    _replace(out["properties"]["train"], _training(definitions))
    _replace(out["properties"]["infer"], _serving(definitions))
    services = {"type": "object", "additionalProperties": _service(definitions)}
    _replace(out["properties"]["services"], services)
    _replace(definitions["Job"]["properties"]["services"], services)
    return out


def _service(definitions: dict[str, Any]) -> dict[str, Any]:
    """A service; a value of its ops may be a draw, so that their keys are not checked here."""
    from hwsim.workload.services import schema

    request = {"type": "array", "items": {"$ref": "#/$defs/Request"}}
    ops = {kind: {"type": "object"} for kind, op in OPS.items() if not issubclass(op, ExchangeOp | FetchOp)}
    inside = {}
    for kind, cls in schema.STATEMENTS.items():
        inside[kind] = _embedded(cls, definitions)
        for key in ("do", "miss"):
            if key in inside[kind]["properties"]:
                _replace(inside[kind]["properties"][key], request)
    inside["ask"] = {"anyOf": [{"type": "string"}, inside["ask"]]}
    way = _embedded(schema.WayKeys, definitions)
    _replace(way["properties"]["do"], request)
    definitions["Request"] = {
        "title": "statement of a request",
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
        "properties": {
            **ops,
            **inside,
            "choose": {"type": "object", "additionalProperties": way},
            "together": {"type": "array", "items": request},
        },
    }
    service = _embedded(schema.ServiceKeys, definitions)
    _replace(service["properties"]["request"], request)
    return service


def _training(definitions: dict[str, Any]) -> dict[str, Any]:
    from hwsim.workload.training.schema import EvaluateKeys, ParallelKeys, SynchroniseKeys, TrainKeys

    train = _embedded(TrainKeys, definitions)
    _replace(train["properties"]["model"], {"anyOf": [{"type": "string"}, {"type": "object"}]})
    _replace(train["properties"]["parallel"], {"anyOf": [{"const": "auto"}, _embedded(ParallelKeys, definitions)]})
    ways: dict[str, Any] = {"enum": ["all-reduce", "parameter-server"]}
    _replace(train["properties"]["synchronise"], {"anyOf": [ways, _embedded(SynchroniseKeys, definitions)]})
    _replace(train["properties"]["evaluate"], _embedded(EvaluateKeys, definitions))
    return train


def _serving(definitions: dict[str, Any]) -> dict[str, Any]:
    infer = _embedded(InferKeys, definitions)
    _replace(infer["properties"]["model"], {"anyOf": [{"type": "string"}, {"type": "object"}]})
    return infer


def _replace(kept: dict[str, Any], schema: dict[str, Any]) -> None:
    """Another schema for a key whose description stays."""
    description = kept["description"]
    kept.clear()
    kept.update(schema, description=description)


def _embedded(cls: type, definitions: dict[str, Any]) -> dict[str, Any]:
    schema = json_schema(cls)
    definitions.update(schema.pop("$defs", {}))
    del schema["$schema"]
    if "do" in schema["properties"]:
        schema["properties"]["do"] = _STATEMENTS | {"description": schema["properties"]["do"].get("description", "")}
    return schema
