"""JSON Schema for editors, generated from the dataclasses that decode the files."""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from hwsim.spec.decode import FieldPlan, plan, title
from hwsim.spec.numbers import NUMBER_KEYS, Bounds
from hwsim.spec.tree import Tree
from hwsim.units import RATIO, Dimension

_EXPRESSION: Final = {"type": "string", "pattern": r"\$[A-Za-z_]"}
_NUMBER: Final = r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?"
_WITH_UNIT: Final = rf"^{_NUMBER}\s*(?![eE][-+]?[0-9]+$)([A-Za-z%µμ]|1/)|\$[A-Za-z_]"


def json_schema(
    cls: type, *, header: str | None = None, ignore: Mapping[str, Any] | None = None, sourced: bool = False
) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a schema class.

    Args:
        header: required value of the key `hwsim` (`machine/1`); None: no such key.
        ignore: schemas of keys that are decoded elsewhere (`kind`, `use`, `count`).
        sourced: whether every mapping may have `source:` and `ref:`.
    """
    writer = _SchemaWriter(sourced)
    body = writer.mapping(cls)
    body["properties"] = {**({"hwsim": {"const": header}} if header else {}), **(ignore or {}), **body["properties"]}
    if header:
        body["required"] = ["hwsim", *body.get("required", [])]
    out = {"$schema": "https://json-schema.org/draft/2020-12/schema", **body}
    if writer.definitions:
        out["$defs"] = dict(sorted(writer.definitions.items()))
    return out


class _SchemaWriter:
    def __init__(self, sourced: bool) -> None:
        self.sourced = sourced
        self.definitions: dict[str, Any] = {}

    def mapping(self, cls: type) -> dict[str, Any]:
        properties = {entry.key: self._field(entry) for entry in plan(cls)}
        if self.sourced:
            properties |= {"source": {"type": "string"}, "ref": {"type": "string"}}
        required = [entry.key for entry in plan(cls) if entry.required]
        doc = (inspect.getdoc(cls) or "").split("\n", 1)[0]
        out: dict[str, Any] = {"title": title(cls), "type": "object", "additionalProperties": False, "properties": properties}
        if doc and not doc.startswith(cls.__name__ + "("):
            out["description"] = doc
        return out | ({"required": required} if required else {})

    def _field(self, entry: FieldPlan) -> dict[str, Any]:
        out = self.value(entry.annotation, entry.bounds)
        if entry.doc:
            out = {**out, "description": entry.doc + (f" (recorded only: {entry.record})" if entry.record else "")}
        if isinstance(entry.default, str | int | float | bool) and not _has_unit(entry.annotation):
            out = {**out, "default": entry.default}
        if entry.example:
            out = {**out, "examples": [entry.example]}
        return out

    def value(self, annotation: Any, bounds: Bounds) -> dict[str, Any]:
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            dimension = next((argument for argument in arguments[1:] if isinstance(argument, Dimension)), None)
            return self.value(arguments[0], bounds) if dimension is None else self._quantity(dimension)
        if origin in (Union, types.UnionType):
            return {"anyOf": [{"type": "null"} if type_ is type(None) else self.value(type_, bounds) for type_ in arguments]}
        if origin is Literal:
            return {"anyOf": [{"enum": list(arguments)}, _EXPRESSION]}
        if origin is tuple:
            if arguments[-1] is Ellipsis:
                element = self.value(arguments[0], dataclasses.replace(bounds, one_or_many=False))
                array = {"type": "array", "items": element}
                return {"anyOf": [element, array]} if bounds.one_or_many else {"anyOf": [array, _EXPRESSION]}
            return {"type": "array", "prefixItems": [self.value(type_, bounds) for type_ in arguments], "items": False}
        if isinstance(origin, type) and issubclass(origin, Mapping):
            sources = {"properties": {"source": {"type": "string"}, "ref": {"type": "string"}}} if self.sourced else {}
            return {"type": "object", "additionalProperties": self.value(arguments[1], bounds)} | sources
        if annotation is Tree:
            return {}  # decoded by another module
        if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
            name = annotation.__name__
            if name not in self.definitions:
                self.definitions[name] = {}  # a schema may be recursive
                self.definitions[name] = self.mapping(annotation)
                if hasattr(annotation, "kind"):  # a part inside a part: `use:` may supply all keys
                    self.definitions[name]["properties"]["use"] = {"type": "string"}
                    self.definitions[name].pop("required", None)
            return {"$ref": f"#/$defs/{name}"}
        if annotation is str:
            return {"type": "string"} if bounds.choices is None else {"anyOf": [{"enum": list(bounds.choices)}, _EXPRESSION]}
        if annotation is bool:
            return {"anyOf": [{"type": "boolean"}, _EXPRESSION]}
        if annotation in (int, float):
            number: dict[str, Any] = {"type": "number" if annotation is float else "integer"}
            limits = {"minimum": bounds.minimum, "maximum": bounds.maximum, "exclusiveMinimum": bounds.exclusive_minimum}
            number |= {key: limit for key, limit in limits.items() if limit is not None}
            return {"anyOf": [number, _EXPRESSION, _with_source(number)]}
        return {}

    def _quantity(self, dimension: Dimension) -> dict[str, Any]:
        text = {"type": "string", "pattern": _WITH_UNIT, "examples": [dimension.example]}
        plain = (
            [{"type": "number", "minimum": 0, "maximum": 1}]
            if dimension is RATIO
            else [{"type": "number"}]
            if dimension.plain
            else []
        )
        return {"title": dimension.name, "anyOf": [text, *plain, _with_source({"anyOf": [text, *plain]})]}


def _with_source(value: dict[str, Any]) -> dict[str, Any]:
    """The schema of `{value: ..., source: datasheet, ref: "..."}`."""
    inner: dict[str, Any] = {key: {} for key in NUMBER_KEYS} | {"value": value}
    return {"type": "object", "required": ["value"], "additionalProperties": False, "properties": inner}


def _has_unit(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return any(isinstance(argument, Dimension) for argument in get_args(annotation))
    return any(_has_unit(argument_type) for argument_type in get_args(annotation))
