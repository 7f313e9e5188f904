"""Chakra execution traces as nodes, read and written without protobuf: its wire format needs two hundred lines.

A file is a chain of messages, each with its length before it: first `GlobalMetadata`, then one `Node` for each op
(mlcommons/chakra: schema/protobuf/et_def.proto). Attributes keep their types:
a file that is read and written again is the same.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from enum import IntEnum
from typing import Final

from hwsim.records import dataclass

Value = int | float | bool | str | bytes | tuple[int | float | bool | str | bytes, ...]


class Kind(IntEnum):
    """Kinds of nodes (`NodeType`)."""

    INVALID = 0
    METADATA = 1
    MEM_LOAD = 2
    MEM_STORE = 3
    COMP = 4
    SEND = 5
    RECV = 6
    COLLECTIVE = 7


COLLECTIVES: Final = (  # `CollectiveCommType`, as hwsim's ops are called
    "allreduce", "reduce", "allgather", "gather", "scatter", "broadcast", "alltoall", "reduce-scatter", "reduce-scatter",
    "barrier",
)  # fmt: skip
TYPES: Final = {  # number of an attribute's field; a list of such values is the next number
    3: "double", 5: "float", 7: "int32", 9: "int64", 11: "uint32", 13: "uint64", 15: "sint32", 17: "sint64",
    19: "fixed32", 21: "fixed64", 23: "sfixed32", 25: "sfixed64", 27: "bool", 29: "string", 31: "bytes",
}  # fmt: skip
_NUMBERS: Final = {name: number for number, name in TYPES.items()} | {
    f"{name}_list": number + 1 for number, name in TYPES.items()
}
_FIXED: Final = {"double": "<d", "float": "<f", "fixed32": "<I", "fixed64": "<Q", "sfixed32": "<i", "sfixed64": "<q"}
_TEXTS: Final = frozenset({"string", "bytes"})
_SPAN: Final = 1 << 64


@dataclass(frozen=True, slots=True)
class Attribute:
    """A named value; type: of `TYPES`, with "_list" behind if the value is a tuple, "" if it has none."""

    name: str
    type: str
    value: Value


@dataclass(frozen=True, slots=True)
class Tensors:
    """Inputs or outputs of a node, each a text as the framework writes it."""

    values: str = ""
    shapes: str = ""
    types: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """An op. controls, data: numbers of the nodes that it waits for. start, duration: us, 0 also if they are not known."""

    number: int
    name: str
    kind: int
    controls: tuple[int, ...] = ()
    data: tuple[int, ...] = ()
    start: int = 0
    duration: int = 0
    inputs: Tensors | None = None
    outputs: Tensors | None = None
    attributes: tuple[Attribute, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """A file: the version of its format, its own attributes, its nodes."""

    version: str
    attributes: tuple[Attribute, ...]
    nodes: tuple[Node, ...]


class Damaged(ValueError):
    """Bytes that are no such message; byte: where, counted from 0 in the file."""

    def __init__(self, message: str, byte: int) -> None:
        super().__init__(message)
        self.byte = byte


def parse(data: bytes) -> Trace:
    """The nodes of an `.et` file.

    Raises:
        Damaged: it is cut off, or is something else.
    """
    rows = _messages(data)
    first = next(rows, None)
    if first is None:
        raise Damaged("the file is empty", 0)
    try:
        version, attributes_of_file = _head(data[first[0] : first[1]])
    except (Damaged, struct.error, UnicodeDecodeError) as error:
        raise Damaged(f"its first message is no GlobalMetadata: {error}", first[0]) from None
    seen: dict[bytes, Attribute] = {}  # most attributes come again
    nodes = []
    for number, (start, end) in enumerate(rows):
        try:
            nodes.append(_node(data[start:end], seen))
        except Damaged as error:
            raise Damaged(f"node {number}: {error}", start + error.byte) from None
        except (struct.error, UnicodeDecodeError, ValueError) as error:
            raise Damaged(f"node {number} is no message of Chakra: {error}", start) from None
    return Trace(version, attributes_of_file, tuple(nodes))


def pack(trace: Trace) -> bytes:
    """The `.et` file of nodes."""
    head = _text(1, trace.version) + b"".join(_chunk(2, _packed(item)) for item in trace.attributes)
    rows = (head, *(_packed_node(node) for node in trace.nodes))
    return b"".join(_varint(len(row)) + row for row in rows)


# ---------------------------------------------------------------- reading


def _messages(data: bytes) -> Iterator[tuple[int, int]]:
    at, size = 0, len(data)
    while at < size:
        length, start = _read(data, at)
        if start + length > size:
            raise Damaged(f"cut off: a message of {length:,} bytes, and {size - start:,} are left", start)
        at = start + length
        yield start, at


def _read(data: bytes, at: int) -> tuple[int, int]:
    """An integer of seven bits a byte, and where it ends."""
    value = shift = 0
    start = at
    try:
        while True:
            byte = data[at]
            at += 1
            if byte < 128:
                return value | byte << shift, at
            value |= (byte & 127) << shift
            shift += 7
            if shift > 63:
                raise Damaged("an integer of more than 64 bits", start)
    except IndexError:
        raise Damaged("cut off within an integer", start) from None


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field: an integer, or the bytes of a text, a message or a number of fixed width."""
    at, size = 0, len(data)
    while at < size:
        start = at
        key, at = _read(data, at)
        wire = key & 7
        if wire == 0:
            value, at = _read(data, at)
            yield key >> 3, value
            continue
        if wire == 2:
            length, at = _read(data, at)
        elif wire == 1:
            length = 8
        elif wire == 5:
            length = 4
        else:
            raise Damaged(f"a field of wire type {wire}", start)
        if at + length > size:
            raise Damaged(f"cut off: a field of {length:,} bytes, and {size - at:,} are left", start)
        yield key >> 3, data[at : at + length]
        at += length


def _integers(value: int | bytes) -> Iterator[int]:
    """Repeated integers: one by one, or packed."""
    if isinstance(value, int):
        yield value
        return
    at = 0
    while at < len(value):
        item, at = _read(value, at)
        yield item


def _head(data: bytes) -> tuple[str, tuple[Attribute, ...]]:
    version, attributes_of_file = "", []
    for number, value in _fields(data):
        if number == 1:
            version = _bytes(value).decode()
        elif number == 2:
            attributes_of_file.append(_attribute(_bytes(value)))
    return version, tuple(attributes_of_file)


def _node(data: bytes, seen: dict[bytes, Attribute]) -> Node:
    integers = dict.fromkeys((1, 3, 6, 7), 0)
    name = ""
    controls: list[int] = []
    waits: list[int] = []
    tensors: dict[int, Tensors] = {}
    attributes = []
    for number, value in _fields(data):
        if number == 10:
            value = _bytes(value)
            if value not in seen:
                seen[value] = _attribute(value)
            attributes.append(seen[value])
        elif number in integers:
            if not isinstance(value, int):
                raise Damaged(f"field {number} is no integer", 0)
            integers[number] = value
        elif number == 2:
            name = _bytes(value).decode()
        elif number in (4, 5):
            (controls if number == 4 else waits).extend(_integers(value))
        elif number in (8, 9):
            texts = dict(_fields(_bytes(value)))
            tensors[number] = Tensors(*(_bytes(texts.get(item, b"")).decode() for item in (1, 2, 3)))
    if name == "" and not any(integers.values()) and not attributes:
        raise Damaged("nothing in it is a node's", 0)
    return Node(
        integers[1],
        name,
        integers[3],
        tuple(controls),
        tuple(waits),
        integers[6],
        integers[7],
        tensors.get(8),
        tensors.get(9),
        tuple(attributes),
    )


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise Damaged("a number where a text or message belongs", 0)
    return value


def _attribute(data: bytes) -> Attribute:
    name, kind, content = "", "", b""
    result: Value = ()
    for number, value in _fields(data):
        if number == 1:
            name = _bytes(value).decode()
        elif number in TYPES:
            kind = TYPES[number]
            result = _scalar(kind, value)
        elif number - 1 in TYPES:
            kind, content = f"{TYPES[number - 1]}_list", _bytes(value)
            result = tuple(_listed(TYPES[number - 1], content))
    return Attribute(name, kind, result)


def _listed(kind: str, data: bytes) -> Iterator[int | float | bool | str | bytes]:
    for _, value in _fields(data):
        if kind in _TEXTS:
            yield _scalar(kind, value)
        elif kind in _FIXED:
            for item in struct.iter_unpack(_FIXED[kind], _bytes(value)):
                yield item[0]
        else:
            for integer in _integers(value):
                yield _scalar(kind, integer)


def _scalar(kind: str, value: int | bytes) -> int | float | bool | str | bytes:
    if kind == "string":
        return _bytes(value).decode()
    if kind == "bytes":
        return _bytes(value)
    if kind in _FIXED:
        number: int | float = struct.unpack(_FIXED[kind], _bytes(value))[0]
        return number
    if not isinstance(value, int):
        raise Damaged(f"a value of type {kind} that is no integer", 0)
    if kind == "bool":
        return value != 0
    if kind in ("sint32", "sint64"):
        return value >> 1 ^ -(value & 1)
    return value - _SPAN if kind in ("int32", "int64") and value >= _SPAN >> 1 else value


# ---------------------------------------------------------------- writing


def _varint(value: int) -> bytes:
    value &= _SPAN - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _chunk(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _text(number: int, text: str) -> bytes:
    return _chunk(number, text.encode()) if text else b""


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value) if value else b""


def _packed_node(node: Node) -> bytes:
    parts = [_integer(1, node.number), _text(2, node.name), _integer(3, node.kind)]
    for number, waits in ((4, node.controls), (5, node.data)):
        if waits:
            parts.append(_chunk(number, b"".join(map(_varint, waits))))
    parts += [_integer(6, node.start), _integer(7, node.duration)]
    for number, tensors in ((8, node.inputs), (9, node.outputs)):
        if tensors is not None:
            parts.append(_chunk(number, _text(1, tensors.values) + _text(2, tensors.shapes) + _text(3, tensors.types)))
    parts += [_chunk(10, _packed(item)) for item in node.attributes]
    return b"".join(parts)


def _packed(attribute: Attribute) -> bytes:
    head = _text(1, attribute.name)
    if not attribute.type:
        return head
    number, value = _NUMBERS[attribute.type], attribute.value
    if not isinstance(value, tuple):
        return head + _tagged(number, attribute.type, value)
    kind = attribute.type.removesuffix("_list")
    if kind in _TEXTS:
        return head + _chunk(number, b"".join(_tagged(1, kind, item) for item in value))
    data = b"".join(_bare(kind, item) for item in value)
    return head + _chunk(number, _chunk(1, data) if data else b"")


def _tagged(number: int, kind: str, value: int | float | bool | str | bytes) -> bytes:
    wire = 2 if kind in _TEXTS else 0 if kind not in _FIXED else 1 if struct.calcsize(_FIXED[kind]) == 8 else 5
    data = _bare(kind, value)
    return _varint(number << 3 | wire) + (_varint(len(data)) if wire == 2 else b"") + data


def _bare(kind: str, value: int | float | bool | str | bytes) -> bytes:
    if isinstance(value, str | bytes):
        return value.encode() if isinstance(value, str) else value
    if kind in _FIXED:
        return struct.pack(_FIXED[kind], value)
    integers = int(value)
    return _varint(integers << 1 ^ integers >> 63 if kind in ("sint32", "sint64") else integers)


def attributes_of(pairs: Iterable[Attribute]) -> dict[str, Value]:
    """Values by name."""
    return {item.name: item.value for item in pairs}


def number_of(values: Sequence[Value | None], otherwise: int = 0) -> int:
    """The first of some values that is a number, or a text of one, as an integer."""
    for value in values:
        if isinstance(value, int | float | str):
            with suppress(ValueError, OverflowError):  # no number, none that is finite, thousands of digits
                return int(value)
    return otherwise
