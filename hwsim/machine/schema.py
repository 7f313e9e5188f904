"""The schema of machine files: what stands at the top, in a part and in a link besides the keys of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Final, Literal

from hwsim import devices, links
from hwsim.devices.owning import PowerCurve
from hwsim.machine.placed import Routing
from hwsim.machine.topologies import TOPOLOGIES
from hwsim.records import dataclass
from hwsim.spec import Place, Tree, field, place_field
from hwsim.units import Watts

HEADER: Final = "machine/1"
PART_HEADER: Final = "part/1"


@dataclass(frozen=True, slots=True)
class MachineFile:
    """A machine: its parts by name, and the links between them."""

    parts: Mapping[str, Tree] = field("devices and machines by name")
    links: tuple[Tree, ...] = field("what connects them", default=())
    name: str = field("what a reader calls it", default="")
    notes: str = field("anything worth knowing", default="", record="for readers")
    class_: Literal["ideal"] | None = field(
        "ideal: what its parts and links leave out is not filled in, but free and at its peak", key="class", default=None
    )
    supply: Watts | None = field("what its power supply gives; unchecked if left out", default=None, exclusive_minimum=0.0)
    power: Watts | PowerCurve | None = field(
        "what all of it draws at its plug, as measured: its parts are scaled to that",
        default=None,
        example="{idle: 2 kW, loaded: 8.4 kW}",
    )
    price: Tree | None = field("of all of it, instead of the sum of its parts", default=None, example="310000 USD")
    let: Mapping[str, Any] = field("parameters, used as $name", default_factory=dict)
    collectives: Tree | None = field(
        "the library its devices exchange data with, or several by kind", default=None, example="{use: h200}"
    )


@dataclass(frozen=True, slots=True)
class PartEntry:
    """Keys of any part, whatever its kind."""

    kind: str = field("what it is", choices=(*devices.KINDS, "machine"))
    use: str | None = field("a part or machine of the library, or a file; the keys beside it override", default=None)
    count: int | None = field("how many: gpu0, gpu1, ...; a lone part without a number if left out", default=None, minimum=1)
    name: str = field("what a reader calls it", default="", record="for readers")
    notes: str = field("anything worth knowing", default="", record="for readers")
    class_: str | None = field(
        "what it is alike, which fills in what it leaves out: nvidia/hopper, or `ideal` for nothing (default: by its other keys)",
        key="class",
        default=None,
        example="ideal",
    )
    price: Tree | None = field("what one of it costs, bought or rented", default=None, example="30000 USD")
    fidelity: Literal["formula", "requests"] = field("its closed form, or every single request", default="formula")


@dataclass(frozen=True, slots=True)
class LibraryEntry:
    """Keys of any communication library, whatever its kind."""

    kind: Literal["mpi", "nccl", "overheads", "own"] = field("what it is", default="overheads")
    use: str | None = field("measured numbers of the library, or a file; the keys beside it override", default=None)
    name: str = field("what a reader calls it", default="", record="for readers")
    notes: str = field("anything worth knowing", default="", record="for readers")


@dataclass(frozen=True, slots=True)
class LinkEntry:
    """Keys of any link, whatever its kind: `between` two groups of parts, or a `topology` of one."""

    kind: str = field("what it is made of", choices=links.KINDS)
    name: str | None = field("what it is called; its kind if left out", default=None)
    notes: str = field("anything worth knowing", default="", record="for readers")
    use: str | None = field("a link of the library, or a file; the keys beside it override", default=None)
    between: tuple[str | tuple[str, ...], str | tuple[str, ...]] | None = field("[A, B]: every A with every B", default=None)
    class_: str | None = field(
        "what it is alike, which fills in what it leaves out; `ideal` for nothing (default: by its other keys)",
        key="class",
        default=None,
        example="ideal",
    )
    per: int | None = field("with `between`: each A gets the next so many of B", default=None, minimum=1)
    topology: str | None = field(f"with `of`: {', '.join(TOPOLOGIES)}", default=None)
    of: tuple[str, ...] | None = field("with `topology`: the parts it connects", default=None, one_or_many=True)
    routing: Routing = field("which of equally good ways over its links: the first, one by a hash, or all", default="single")
    place: Place = place_field()


PART_KEYS: Final = frozenset({"hwsim", *(each.metadata.get("key", each.name) for each in fields(PartEntry))})
LINK_KEYS: Final = frozenset(each.metadata.get("key", each.name) for each in fields(LinkEntry) if each.name != "place")


@cache
def topology_keys() -> frozenset[str]:
    """Keys of all topologies."""
    kinds: list[Any] = list(TOPOLOGIES.values())
    return frozenset(each.name for kind in kinds for each in fields(kind))


def machine_schema() -> dict[str, Any]:
    """The JSON Schema of machine files."""
    from hwsim.spec.schema import json_schema

    out = json_schema(MachineFile, header=HEADER, ignore={"use": {"type": "string"}}, sourced=True)
    definitions: dict[str, Any] = {}
    parts = [_entry(cls, PartEntry, definitions) for cls in devices.KINDS.values()]
    inner = json_schema(PartEntry, sourced=True)
    inner.pop("$schema")
    machine = {**inner, "properties": {**inner["properties"], "kind": {"const": "machine"}}, "additionalProperties": True}
    kinds = [_entry(cls, LinkEntry, definitions, *TOPOLOGIES.values()) for cls in links.KINDS.values()]
    out["properties"]["parts"] |= {"type": "object", "additionalProperties": {"oneOf": [*parts, machine]}}
    kinds.append({"type": "object", "required": ["kind"], "properties": {"kind": {"pattern": "^\\$"}}})  # of a parameter
    by_name = {"type": "object", "additionalProperties": {"type": "object"}}  # of a machine it uses: changes by the links' names
    out["properties"]["links"] = {"anyOf": [{"type": "array", "items": {"oneOf": kinds}}, by_name]}
    out["properties"]["collectives"] = {**out["properties"]["collectives"], **_libraries(definitions)}
    return {**out, "$defs": dict(sorted(definitions.items()))}


def part_schema() -> dict[str, Any]:
    """The JSON Schema of the files of the library of parts, of devices and of links."""
    from hwsim.machine.libraries.kinds import KINDS as LIBRARIES

    definitions: dict[str, Any] = {}
    header = {"hwsim": {"const": PART_HEADER}}
    kinds = [_entry(cls, PartEntry, definitions) for cls in devices.KINDS.values()]
    kinds += [_entry(cls, LinkEntry, definitions) for cls in links.KINDS.values()]
    kinds += [_entry(cls, LibraryEntry, definitions) for cls in LIBRARIES.values()]
    for kind in kinds:
        kind["properties"] = {**header, **kind["properties"]}
    schema = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": schema, "title": "part", "oneOf": kinds, "$defs": dict(sorted(definitions.items()))}


def _libraries(definitions: dict[str, Any]) -> dict[str, Any]:
    """One library with or without its kind, or several by kind."""
    from hwsim.machine.libraries.kinds import KINDS

    kinds = {name: _entry(cls, LibraryEntry, definitions) for name, cls in KINDS.items()}
    for kind in kinds.values():
        kind.pop("required")
    by_kind = {"type": "object", "additionalProperties": False, "minProperties": 1, "properties": dict(kinds)}
    return {"anyOf": [*kinds.values(), by_kind]}


def _entry(cls: Any, entry: type, definitions: dict[str, Any], *also: type) -> dict[str, Any]:
    """The keys of one kind and of any entry. Nothing is required but the kind: `use:` may bring the rest."""
    from hwsim.spec.schema import json_schema

    properties: dict[str, Any] = {}
    for schema_class in (cls, *also, entry):
        schema = json_schema(schema_class, sourced=True)
        for name, inner in schema.get("$defs", {}).items():  # nor of a section: `use:` may have brought its other keys
            definitions[name] = {key: value for key, value in inner.items() if key != "required"}
        properties |= schema["properties"]
    properties["kind"] = {"const": cls.kind}
    return {
        "title": cls.kind,
        "type": "object",
        "required": ["kind"],
        "additionalProperties": False,
        "properties": properties,
    }
