"""Completion at a place of a file: keys and values of its schema, names of the library, and the file's parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from hwsim.explorer.position import Position, position
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
    schema = _schema(file)
    by_label = dict[str, dict[str, str]]()
    for option in _options(file, schema, place, text):
        by_label.setdefault(option["label"], option)
    word = place.word.casefold()
    fitting = [each for each in by_label.values() if word in each["label"].casefold()]
    fitting.sort(key=lambda each: not each["label"].casefold().startswith(word))
    return {"from": column - len(place.word), "options": fitting[:MOST]}


@cache
def _schema(file: str) -> Schema:
    return machine_schema() if file == "machine" else workload_schema()


def _options(file: str, document: Schema, place: Position, text: str) -> Iterator[dict[str, str]]:
    if place.word.startswith("$"):
        yield from (_option(f"${name}", "name", "a parameter of this file") for name in _parameters(text))
        return
    inside = list(_at(document, [document], place.path, place))
    if not place.is_value:
        before = place.before
        for schema in _fitting(inside, before):
            required = schema.get("required", ())
            for key, value in schema.get("properties", {}).items():
                if key not in before:
                    yield _option(key, "key", _says(document, value) + (" (needed)" if key in required else ""), f"{key}: ")
        return
    key = place.levels[-1].key if place.levels else ""
    if key == "use" or key in _NAMED:
        yield from _library(file, place, key)
    for schema in inside:
        for value in (*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())):
            yield _option(str(value), "value", _says(document, schema))
        if schema.get("type") == "boolean":
            yield from (_option(each, "value", _says(document, schema)) for each in ("true", "false"))
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
    before = place.before
    kind = _NAMED.get(key) or (
        file
        if key == "use" and not around
        else before.get("kind") or _NAMED.get(owner) or ("collectives" if owner == "collectives" else owner)
    )
    for name in names(kind) if kind == "collectives" or folder(kind).is_dir() else names("part"):
        yield _option(name, "name", f"{kind} of the library")


def _parameters(text: str) -> list[str]:
    """Names under `let:`, as far as the text can be read."""
    called, inside = list[str](), False
    for line in text.splitlines():
        if line.startswith("let:"):
            inside = True
            rest = line.removeprefix("let:").strip()
            if rest.startswith("{"):
                called += [each.partition(":")[0].strip() for each in rest.strip("{} ").split(",")]
        elif inside and line[:1].isspace():
            called.append(line.partition(":")[0].strip())
        else:
            inside = False
    return [each for each in dict.fromkeys(called) if each.isidentifier()]


# ---- the schema ----


def _at(document: Schema, schemas: Iterable[Schema], path: Iterable[str], place: Position) -> Iterator[Schema]:
    """The schemas that a value at a path may follow."""
    reached = list(_flat(document, schemas))
    levels = list(place.levels)
    for at, step in enumerate(path):
        before = levels[at].seen if at < len(levels) else {}
        reached = list(_flat(document, _below(_fitting(reached, before), step)))
    yield from reached


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


def _fitting(schemas: Iterable[Schema], before: Mapping[str, str]) -> list[Schema]:
    """The mappings whose `kind` is the one that is written; all, where none is."""
    found = list(schemas)
    kind = before.get("kind", "")
    chosen = [each for each in found if kind and kind in _kinds(each)]
    return chosen or found


def _kinds(schema: Schema) -> tuple[str, ...]:
    kind = schema.get("properties", {}).get("kind", {})
    return (*kind.get("enum", ()), *([kind["const"]] if "const" in kind else ()))


def _flat(document: Schema, schemas: Iterable[Schema], depth: int = 0) -> Iterator[Schema]:
    """Every alternative of schemas, with references followed."""
    for schema in schemas:
        if not isinstance(schema, dict) or depth > DEEPEST:
            continue
        if (name := schema.get("$ref")) is not None:
            yield from _flat(document, [document["$defs"][name.rpartition("/")[2]]], depth + 1)
        several = [each for key in ("anyOf", "oneOf", "allOf") for each in schema.get(key, ())]
        yield from _flat(document, several, depth + 1)
        if not several or "properties" in schema:
            yield schema


def _says(document: Schema, schema: Schema) -> str:
    """The first line of a description."""
    text = schema.get("description") or next(
        (each["description"] for each in _flat(document, [schema]) if "description" in each), ""
    )
    return str(text or schema.get("title", "")).partition("\n")[0][:140]
