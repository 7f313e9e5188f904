"""Chakra nodes as JSON: what the feeder reads (`workload_graph`), and what the jsonizer writes (messages one after another)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from hwsim.importers.chakra_nodes import Attribute, Damaged, Kind, Node, Tensors, Trace, number_of
from hwsim.importers.columns import US, microseconds

_KINDS: Final = {
    "INVALID_NODE": Kind.INVALID,
    "METADATA_NODE": Kind.METADATA,
    "MEM_LOAD_NODE": Kind.MEM_LOAD,
    "MEM_STORE_NODE": Kind.MEM_STORE,
    "COMP_NODE": Kind.COMP,
    "COMM_SEND_NODE": Kind.SEND,
    "COMM_RECV_NODE": Kind.RECV,
    "COMM_COLL_NODE": Kind.COLLECTIVE,
}
_NUMBER: Final = ("id",)  # keys in small letters without "_", as each form spells them otherwise
_KIND: Final = ("type", "nodetype")
_START: Final = ("starttimemicros", "starttime", "start")
_DURATION: Final = ("durationmicros", "runtime", "duration")
_OWN: Final = frozenset(
    {*_NUMBER, *_KIND, *_START, *_DURATION, "name", "ctrldeps", "datadeps", "inputs", "outputs", "attr", "attrs"}
)


def parse(data: bytes) -> Trace:
    """The nodes of a JSON file.

    Raises:
        Damaged: it is no JSON, or has no nodes.
    """
    try:
        messages = list(_messages(data.decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        raise Damaged("the file is no UTF-8 text", error.start) from None
    except RecursionError:
        raise Damaged("lists and mappings are nested too deep", 0) from None
    nodes: list[Any] = []
    version = ""
    attributes_of_file: tuple[Attribute, ...] = ()
    for message in messages:
        if isinstance(message, list):
            nodes += message
            continue
        plain = _lowered(message)
        if isinstance(listed := plain.get("workloadgraph", plain.get("nodes")), list):
            if "schema" in plain and "nodes" in plain:
                raise Damaged("this is a host execution trace of PyTorch: read it as `host`", 0)
            nodes += listed
        elif "id" in plain or _any(plain, _KIND) is not None:
            nodes.append(message)
        else:
            version, attributes_of_file = str(plain.get("version", "")), tuple(_attributes(plain.get("attr")))
    if not nodes:
        raise Damaged("there are no nodes in it: neither `workload_graph` nor messages with an id", 0)
    return Trace(version, attributes_of_file, tuple(_node(number, entry) for number, entry in enumerate(nodes)))


def groups(data: bytes) -> dict[str, tuple[int, ...]] | None:
    """Ranks of each process group by name, if that is what the file has (ASTRA-sim's comm_group.json)."""
    try:
        listed_value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(listed_value, dict) or not listed_value:
        return None
    result = {}
    for name, ranks in listed_value.items():
        if not isinstance(ranks, list) or not all(type(rank) is int for rank in ranks):
            return None
        result[name] = tuple(ranks)
    return result


def _messages(text: str) -> Iterator[Any]:
    """Values one after another, with white space between."""
    decoder, at = json.JSONDecoder(parse_float=Decimal), 0  # times since 1970 have more digits than a float
    while at < len(text) and text[at].isspace():
        at += 1
    if at == len(text):
        raise Damaged("the file is empty", 0)
    while at < len(text):
        try:
            value, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise Damaged(f"no JSON at line {error.lineno}, column {error.colno}: {error.msg}", error.pos) from None
        if not isinstance(value, dict | list):
            raise Damaged("a value that is neither a mapping nor a list", at)
        yield value
        at = end
        while at < len(text) and (text[at].isspace() or text[at] == ","):
            at += 1


def _lowered(message: Mapping[str, Any]) -> dict[str, Any]:
    return {key.replace("_", "").lower(): value for key, value in message.items()}


def _any(message: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((message[key] for key in keys if key in message), None)


def _node(place: int, message: Any) -> Node:
    if not isinstance(message, dict):
        raise Damaged(f"node {place} is no mapping", 0)
    plain = _lowered(message)
    kind = _any(plain, _KIND)
    if isinstance(kind, str) and kind.upper() in _KINDS:
        kind = _KINDS[kind.upper()]
    attributes = [*_attributes(plain.get("attr", plain.get("attrs")))]
    attributes += [_typed(key, value) for key, value in message.items() if key.replace("_", "").lower() not in _OWN]
    times: dict[str, int] = {}
    for name, keys in (("hwsim.start_fs", _START), ("hwsim.duration_fs", _DURATION)):
        time = _time(place, _any(plain, keys))
        times[name] = time // US
        if time % US and not any(each.name == name for each in attributes):
            attributes.append(Attribute(name, "int64", time))
    return Node(
        number_of((_any(plain, _NUMBER),), place),
        str(plain.get("name", "")),
        number_of((kind,)),
        _numbers(plain.get("ctrldeps")),
        _numbers(plain.get("datadeps")),
        times["hwsim.start_fs"],
        times["hwsim.duration_fs"],
        _tensors(plain.get("inputs")),
        _tensors(plain.get("outputs")),
        tuple(attributes),
    )


def _time(place: int, value: Any) -> int:
    """Femtoseconds of a number of microseconds; 0 for none."""
    try:
        return microseconds(str(value)) if value is not None else 0
    except ValueError as error:
        raise Damaged(f"node {place}: {error}", 0) from None


def _numbers(listed_value: Any) -> tuple[int, ...]:
    several = listed_value if isinstance(listed_value, list) else [] if listed_value is None else [listed_value]
    return tuple(number_of((entry,), -1) for entry in several)


def _tensors(listed_value: Any) -> Tensors | None:
    if not isinstance(listed_value, dict):
        return None
    plain = _lowered(listed_value)
    return Tensors(*("" if plain.get(key) is None else str(plain[key]) for key in ("values", "shapes", "types")))


def _attributes(listed_value: Any) -> Iterator[Attribute]:
    """Those of protobuf's JSON: {"name": "stream", "int64Val": "7"}; of lists: {"values": [...]}."""
    for entry in listed_value if isinstance(listed_value, list) else []:
        if not isinstance(entry, dict):
            continue
        name = str(entry.get("name", ""))
        for key, value in _lowered(entry).items():
            if key.endswith("val"):
                yield _of_type(name, key.removesuffix("val"), value)
            elif key.endswith("list") and isinstance(value, dict):
                yield _typed(name, value.get("values", []))
            elif key == "value":
                yield _typed(name, value)


def _of_type(name: str, kind: str, value: Any) -> Attribute:
    if kind in ("double", "float"):
        return Attribute(name, kind, float(value))
    if kind in ("bool", "string"):
        return Attribute(name, kind, value)
    if kind == "bytes":
        return Attribute(name, "string", str(value))
    return Attribute(name, kind, number_of((float(value) if isinstance(value, Decimal) else value,)))


def _typed(name: str, value: Any) -> Attribute:
    """A value of JSON with the type that Chakra's own tools give it."""
    if isinstance(value, bool):
        return Attribute(name, "bool", value)
    if isinstance(value, int):
        return Attribute(name, "int64", value)
    if isinstance(value, float | Decimal):
        return Attribute(name, "double", float(value))
    if isinstance(value, list):
        if value and all(isinstance(entry, bool) for entry in value):
            return Attribute(name, "bool_list", tuple(value))
        if all(type(entry) is int for entry in value):
            return Attribute(name, "int64_list", tuple(value))
        return Attribute(name, "string_list", tuple(str(entry) for entry in value))
    return Attribute(name, "string", "" if value is None else str(value))
