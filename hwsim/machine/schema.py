"""Schema of machine files: keys at the top level, and keys common to all kinds of parts, libraries and links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Final, Literal

from hwsim import devices, links
from hwsim.devices.power_curves import PowerCurve
from hwsim.machine.contents import Routing
from hwsim.machine.topologies import TOPOLOGIES
from hwsim.records import dataclass
from hwsim.spec import Place, Tree, field, place_field
from hwsim.units import Watts

HEADER: Final = "machine/1"
PART_HEADER: Final = "part/1"


@dataclass(frozen=True, slots=True)
class MachineFile:
    """A machine file: parts by name, and the links between them."""

    parts: Mapping[str, Tree] = field("devices and inner machines by name")
    links: tuple[Tree, ...] = field("links between the parts", default=())
    name: str = field("name for readers, used in titles", default="")
    notes: str = field("remarks for readers", default="", record="for readers")
    class_: Literal["ideal"] | None = field(
        "ideal: no class defaults for omitted keys (no latency, peak rates)", key="class", default=None
    )
    supply: Watts | None = field("power of the power supply (default: unchecked)", default=None, exclusive_minimum=0.0)
    power: Watts | PowerCurve | None = field(
        "measured wall power of the whole machine, to which the power of its parts is scaled",
        default=None,
        example="{idle: 2 kW, loaded: 8.4 kW}",
    )
    price: Tree | None = field("price of the whole machine (default: sum of its parts)", default=None, example="310000 USD")
    let: Mapping[str, Any] = field("parameters of the file, referred to as $name", default_factory=dict)
    scores: Tree | None = field(
        "measurements of earlier runs, from `hwsim score -o FILE`, that correct and narrow intervals; not for inner machines",
        default=None,
        example="scores.yaml",
    )
    collectives: Tree | None = field("communication library, or several libraries by kind", default=None, example="{use: h200}")


@dataclass(frozen=True, slots=True)
class PartEntry:
    """A part of a machine: keys common to all kinds of parts."""

    kind: str = field("kind of device, or `machine`", choices=(*devices.KINDS, "machine"))
    use: str | None = field("part or machine of the library, or a file; other keys override it", default=None)
    count: int | None = field("number of parts: gpu0, gpu1, ... (default: one, not numbered)", default=None, minimum=1)
    name: str = field("name for readers", default="", record="for readers")
    notes: str = field("remarks for readers", default="", record="for readers")
    class_: str | None = field(
        "class whose defaults fill in omitted keys, such as nvidia/hopper; `ideal`: no defaults (default: by the other keys)",
        key="class",
        default=None,
        example="ideal",
    )
    price: Tree | None = field("price of one part, bought or rented", default=None, example="30000 USD")
    fidelity: Literal["formula", "requests"] = field("model: closed-form formula, or every request simulated", default="formula")


@dataclass(frozen=True, slots=True)
class LibraryEntry:
    """A communication library of a machine: keys common to all kinds."""

    kind: Literal["fabric", "mpi", "nccl", "overheads", "own"] = field("kind of communication library", default="overheads")
    use: str | None = field("measured constants of the library, or a file; other keys override it", default=None)
    name: str = field("name for readers", default="", record="for readers")
    notes: str = field("remarks for readers", default="", record="for readers")


@dataclass(frozen=True, slots=True)
class LinkEntry:
    """A link entry: keys common to all kinds of links `between` two groups of parts, or in a `topology` of one group."""

    kind: str = field("kind of link", choices=links.KINDS)
    name: str | None = field("name of the links (default: their kind)", default=None)
    notes: str = field("remarks for readers", default="", record="for readers")
    use: str | None = field("link of the library, or a file; other keys override it", default=None)
    between: tuple[str | tuple[str, ...], str | tuple[str, ...]] | None = field("[A, B]: links every A to every B", default=None)
    class_: str | None = field(
        "class whose defaults fill in omitted keys; `ideal`: no defaults (default: by the other keys)",
        key="class",
        default=None,
        example="ideal",
    )
    per: int | None = field("with `between`: number of consecutive B linked to each A (default: all)", default=None, minimum=1)
    topology: str | None = field(f"topology that connects the parts `of`: {', '.join(TOPOLOGIES)}", default=None)
    of: tuple[str, ...] | None = field("parts that the `topology` connects", default=None, one_or_many=True)
    routing: Routing = field("choice among equal-cost routes: first (single), by hash (ecmp), all (adaptive)", default="single")
    place: Place = place_field()


PART_KEYS: Final = frozenset({"hwsim", *(key.metadata.get("key", key.name) for key in fields(PartEntry))})
LINK_KEYS: Final = frozenset(key.metadata.get("key", key.name) for key in fields(LinkEntry) if key.name != "place")


@cache
def topology_keys() -> frozenset[str]:
    """Return the keys of all topologies."""
    kinds: list[Any] = list(TOPOLOGIES.values())
    return frozenset(key.name for kind in kinds for key in fields(kind))


def machine_schema() -> dict[str, Any]:
    """Return the JSON Schema of machine files."""
    from hwsim.spec.schema import json_schema

    out = json_schema(MachineFile, header=HEADER, ignore={"use": {"type": "string"}}, sourced=True)
    definitions: dict[str, Any] = {}
    parts = [_entry(cls, PartEntry, definitions) for cls in devices.KINDS.values()]
    inner = json_schema(PartEntry, sourced=True)
    inner.pop("$schema")
    machine = {**inner, "properties": {**inner["properties"], "kind": {"const": "machine"}}, "additionalProperties": True}
    kinds = [_entry(cls, LinkEntry, definitions, *TOPOLOGIES.values()) for cls in links.KINDS.values()]
    out["properties"]["parts"] |= {"type": "object", "additionalProperties": {"oneOf": [*parts, machine]}}
    kinds.append({"type": "object", "required": ["kind"], "properties": {"kind": {"pattern": "^\\$"}}})  # the kind is a parameter
    by_name = {"type": "object", "additionalProperties": {"type": "object"}}  # changes of a used machine, by name of the links
    out["properties"]["links"] = {"anyOf": [{"type": "array", "items": {"oneOf": kinds}}, by_name]}
    out["properties"]["collectives"] = {**out["properties"]["collectives"], **_libraries(definitions)}
    return {**out, "$defs": dict(sorted(definitions.items()))}


def part_schema() -> dict[str, Any]:
    """Return the JSON Schema of the library's files of devices, links and communication libraries."""
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
    """Return the schema of `collectives`: one library with or without `kind`, or several by kind."""
    from hwsim.machine.libraries.kinds import KINDS

    kinds = {name: _entry(cls, LibraryEntry, definitions) for name, cls in KINDS.items()}
    for kind in kinds.values():
        kind.pop("required")
    by_kind = {"type": "object", "additionalProperties": False, "minProperties": 1, "properties": dict(kinds)}
    return {"anyOf": [*kinds.values(), by_kind]}


def _entry(cls: Any, entry: type, definitions: dict[str, Any], *also: type) -> dict[str, Any]:
    """Return the keys of one kind and of its entry. Only `kind` is required, because `use:` may supply the others."""
    from hwsim.spec.schema import json_schema

    properties: dict[str, Any] = {}
    for schema_class in (cls, *also, entry):
        schema = json_schema(schema_class, sourced=True)
        for name, inner in schema.get("$defs", {}).items():  # `use:` may supply required keys of a section, too
            definitions[name] = {key: value for key, value in inner.items() if key != "required"}
        properties |= schema["properties"]
    properties["kind"] = {"const": cls.kind}
    return {"title": cls.kind, "type": "object", "required": ["kind"], "additionalProperties": False, "properties": properties}
