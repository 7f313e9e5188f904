"""Numbers that stand in code: of standards, of papers, fitted, or the bounds and defaults of keys.

A formula is held by its laws and by published figures; a number among many (a table of a library's source, a header's bytes)
is held by nothing but itself. So every one is frozen in golden/constants.json: it changes on purpose, with `--update` and a
line in the change log, or not at all. A number stands there by the module that gives it its value.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import json
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

import hwsim

GOLDEN: Final = Path(__file__).parent / "golden" / "constants.json"
ROOMS: Final = (
    "communication", "demand", "devices", "engine", "failures", "families", "formats", "graph",
    "links", "machine", "models", "ticks", "units", "workload",
)  # fmt: skip
PLACES: Final = (
    "hwsim.families.services.actors.rows",
    "hwsim.families.services.actors.station_rows",
)  # of columns: `test_core.py`


def modules(room: str) -> Iterator[ModuleType]:
    package = importlib.import_module(f"hwsim.{room}")
    yield package
    for found in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{package.__name__}."):
        if found.name not in PLACES:
            yield importlib.import_module(found.name)


def assigned(module: ModuleType) -> set[str]:
    """Names that a module gives a value itself; those that it imports are another module's."""
    nodes = ast.walk(ast.parse(inspect.getsource(module)))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def plain(value: Any) -> str | None:
    """A number, or a table of numbers and texts, in words; None of anything else."""
    if isinstance(value, bool | str | None):
        return None
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, dict | tuple | list | set | frozenset) and value:
        return _table(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _table({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    return None


def _table(value: Any) -> str | None:
    parts: list[str] = []
    for row in (
        value.items() if isinstance(value, dict) else sorted(value, key=repr) if isinstance(value, set | frozenset) else value
    ):
        for one in row if isinstance(value, dict) else (row,):
            said = one if isinstance(one, str) else repr(one) if one is None or isinstance(one, bool) else plain(one)
            if said is None:
                return None
            parts.append(said)
    return f"({', '.join(parts)})" if any(character.isdigit() for part in parts for character in part) else None


def constants(room: str) -> Iterator[tuple[str, str]]:
    """(name, value) of every constant, default and bound of a room, by the module that defines it."""
    for module in modules(room):
        short, home = module.__name__.removeprefix("hwsim."), assigned(module)
        for name, value in vars(module).items():
            if name.isupper() and name in home and (said := plain(value)) is not None:
                yield f"{short}.{name}", said
            elif getattr(value, "__module__", None) == module.__name__ and callable(value):
                yield from _of_callable(f"{short}.{name}", value)


def _of_callable(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, type) and dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if (said := plain(field.default)) is not None:
                yield f"{name}.{field.name}", said
            bounds = {key: bound for key, bound in field.metadata.items() if isinstance(key, str)}
            for key, bound in bounds.items():
                if (said := plain(bound)) is not None:
                    yield f"{name}.{field.name}.{key}", said
    members = vars(value).items() if isinstance(value, type) else [("", value)]
    for member, function in members:
        if member in ("__init__", "__replace__"):
            continue
        function = getattr(function, "__func__", function)
        if inspect.isfunction(function):
            for key, parameter in inspect.signature(function).parameters.items():
                if parameter.default is not parameter.empty and (said := plain(parameter.default)) is not None:
                    yield f"{name}{'.' * bool(member)}{member}({key})", said


@pytest.mark.parametrize("room", ROOMS)
def test_numbers_in_code_are_what_they_were(room: str, update: bool) -> None:
    golden: dict[str, dict[str, str]] = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}
    now = dict(sorted(constants(room)))
    if update:
        GOLDEN.write_text(json.dumps(dict(sorted({**golden, room: now}.items())), indent=1) + "\n", encoding="utf-8")
        return
    was = golden.get(room, {})
    assert {name: now.get(name) for name in now.keys() | was.keys() if now.get(name) != was.get(name)} == {}


def test_the_golden_numbers_are_of_these_rooms() -> None:
    assert set(json.loads(GOLDEN.read_text(encoding="utf-8"))) == set(ROOMS)
    assert hwsim.__version__
