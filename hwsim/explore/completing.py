"""What can be written at a place of a file: keys and values of its schema, names of the library, and the file's parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from hwsim.explore.position import Position, position
from hwsim.machine.schema import machine_schema
from hwsim.spec import names
from hwsim.spec.library import folder
from hwsim.workload.schema import workload_schema

MOST: Final = 60  # options
DEEPEST: Final = 60
_NAMED: Final = {"model": "model", "draft": "model", "framework": "framework", "runtime": "runtime", "failures": "failures"}
Schema = Mapping[str, Any]


def complete(file: str, text: str, line: int, column: int) -> dict[str, Any]:
    """Options at a line and column, both from 1: those that begin with the word there, and those that contain it."""
    place = position(text, line, column)
    whole = _schema(file)
    found = dict[str, dict[str, str]]()
    for option in _options(file, whole, place, text):
        found.setdefault(option["label"], option)
    word = place.word.casefold()
    fitting = [each for each in found.values() if word in each["label"].casefold()]
    fitting.sort(key=lambda each: not each["label"].casefold().startswith(word))
    return {"from": column - len(place.word), "options": fitting[:MOST]}


@cache
def _schema(file: str) -> Schema:
    return machine_schema() if file == "machine" else workload_schema()


def _options(file: str, whole: Schema, place: Position, text: str) -> Iterator[dict[str, str]]:
    if place.word.startswith("$"):
        yield from (_option(f"${name}", "name", "a parameter of this file") for name in _parameters(text))
        return
    inside = list(_at(whole, [whole], place.path, place))
    if not place.is_value:
        beside = place.beside
        for schema in _fitting(inside, beside):
            required = schema.get("required", ())
            for key, value in schema.get("properties", {}).items():
                if key not in beside:
                    yield _option(key, "key", _says(whole, value) + (" (needed)" if key in required else ""), f"{key}: ")
        return
    key = place.levels[-1].key if place.levels else ""
    if key == "use" or key in _NAMED:
        yield from _library(file, place, key)
    for schema in inside:
        for value in (*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())):
            yield _option(str(value), "value", _says(whole, schema))
        if schema.get("type") == "boolean":
            yield from (_option(each, "value", _says(whole, schema)) for each in ("true", "false"))
    for schema in inside:
        for value in schema.get("examples", ()):
            if isinstance(value, str | int | float):
                yield _option(str(value), "value", "such as")
    yield from (_option(f"${name}", "name", "a parameter of this file") for name in _parameters(text))


def _option(label: str, kind: str, says: str, insert: str = "") -> dict[str, str]:
    return {"label": label, "kind": kind, "says": says, "insert": insert or label}


def _library(file: str, place: Position, key: str) -> Iterator[dict[str, str]]:
    """Names of the library that fit a key."""
    around = [level for level in place.levels[:-1] if not level.is_list]
    owner = around[-1].key if around else ""
    beside = place.beside
    kind = _NAMED.get(key) or (
        file
        if key == "use" and not around
        else beside.get("kind") or _NAMED.get(owner) or ("collectives" if owner == "collectives" else owner)
    )
    for name in names(kind) if kind == "collectives" or folder(kind).is_dir() else names("part"):
        yield _option(name, "name", f"{kind} of the library")


def _parameters(text: str) -> list[str]:
    """Names under `let:`, as far as the text can be read."""
    found, inside = list[str](), False
    for line in text.splitlines():
        if line.startswith("let:"):
            inside = True
            rest = line.removeprefix("let:").strip()
            if rest.startswith("{"):
                found += [each.partition(":")[0].strip() for each in rest.strip("{} ").split(",")]
        elif inside and line[:1].isspace():
            found.append(line.partition(":")[0].strip())
        else:
            inside = False
    return [each for each in dict.fromkeys(found) if each.isidentifier()]


# ---- the schema ----


def _at(whole: Schema, schemas: Iterable[Schema], path: Iterable[str], place: Position) -> Iterator[Schema]:
    """The schemas that a value at a path may follow."""
    found = list(_flat(whole, schemas))
    levels = list(place.levels)
    for at, step in enumerate(path):
        beside = levels[at].seen if at < len(levels) else {}
        found = list(_flat(whole, _below(_fitting(found, beside), step)))
    yield from found


def _below(schemas: Iterable[Schema], step: str) -> Iterator[Schema]:
    for schema in schemas:
        if step == "-":
            if isinstance(schema.get("items"), dict):
                yield schema["items"]
            continue
        properties = schema.get("properties", {})
        if step in properties:
            yield properties[step]
        elif isinstance(schema.get("additionalProperties"), dict):
            yield schema["additionalProperties"]


def _fitting(schemas: Iterable[Schema], beside: Mapping[str, str]) -> list[Schema]:
    """The mappings whose `kind` is the one that is written; all, where none is."""
    found = list(schemas)
    kind = beside.get("kind", "")
    chosen = [each for each in found if kind and kind in _kinds(each)]
    return chosen or found


def _kinds(schema: Schema) -> tuple[str, ...]:
    kind = schema.get("properties", {}).get("kind", {})
    return (*kind.get("enum", ()), *([kind["const"]] if "const" in kind else ()))


def _flat(whole: Schema, schemas: Iterable[Schema], depth: int = 0) -> Iterator[Schema]:
    """Every alternative of schemas, with references followed."""
    for schema in schemas:
        if not isinstance(schema, dict) or depth > DEEPEST:
            continue
        if (name := schema.get("$ref")) is not None:
            yield from _flat(whole, [whole["$defs"][name.rpartition("/")[2]]], depth + 1)
        several = [each for key in ("anyOf", "oneOf", "allOf") for each in schema.get(key, ())]
        yield from _flat(whole, several, depth + 1)
        if not several or "properties" in schema:
            yield schema


def _says(whole: Schema, schema: Schema) -> str:
    """The first line of a description."""
    text = schema.get("description") or next(
        (each["description"] for each in _flat(whole, [schema]) if "description" in each), ""
    )
    return str(text or schema.get("title", "")).partition("\n")[0][:140]
