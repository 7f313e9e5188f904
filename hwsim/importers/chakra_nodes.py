"""Protobuf messages of Chakra execution traces (mlcommons/chakra: schema/protobuf/et_def.proto).

A file is a sequence of length-prefixed messages: one `GlobalMetadata`, then one `Node` per op. The message classes are built from
a table of fields in a private descriptor pool, so that no generated code is needed and other schemas in the process do not clash.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from enum import IntEnum
from io import BytesIO
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.proto import parse_length_prefixed, serialize_length_prefixed

Value = int | float | bool | str | bytes | tuple[int | float | bool | str | bytes, ...]
TYPES: Final = (
    "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64",
    "bool", "string", "bytes",
)  # fmt: skip
_FIELDS: Final = {  # message -> number, type and name of each field; * for repeated fields
    "Tensors": "1 string values, 2 string shapes, 3 string types",
    "GlobalMetadata": "1 string version, 2 Attribute* attr",
    "Node": "1 uint64 id, 2 string name, 3 int32 type, 4 uint64* ctrl_deps, 5 uint64* data_deps, 6 uint64 start_time_micros, "
    "7 uint64 duration_micros, 8 Tensors inputs, 9 Tensors outputs, 10 Attribute* attr",
    "Attribute": "1 string name"
    + "".join(f", {3 + 2 * n} {name} {name}_val, {4 + 2 * n} {name}s {name}_list" for n, name in enumerate(TYPES)),
    **{f"{name}s": f"1 {name}* values" for name in TYPES},
}


class ChakraNodeKind(IntEnum):
    """Types of nodes (`NodeType`)."""

    INVALID = 0
    METADATA = 1
    MEM_LOAD = 2
    MEM_STORE = 3
    COMP = 4
    SEND = 5
    RECV = 6
    COLLECTIVE = 7


COLLECTIVES: Final = (  # `CollectiveCommType` -> name of hwsim's op
    "allreduce", "reduce", "allgather", "gather", "scatter", "broadcast", "alltoall", "reduce-scatter", "reduce-scatter",
    "barrier",
)  # fmt: skip


class DamagedTrace(ValueError):
    """An error for an invalid message.

    Args:
        byte: position in the file, from 0.
    """

    def __init__(self, message: str, byte: int) -> None:
        super().__init__(message)
        self.byte = byte


class ChakraTrace(NamedTuple):
    """The content of a file: format version, attributes and nodes."""

    version: str
    attributes: Sequence[Any]
    nodes: Sequence[Any]


def _messages() -> tuple[Any, Any, Any]:
    """Return the message classes of attributes, nodes and file headers."""
    file = FileDescriptorProto(name="et_def.proto", package="chakra", syntax="proto3")
    for message, fields in _FIELDS.items():
        made = file.message_type.add(name=message)
        for number, kind, name in (field.split() for field in fields.split(", ")):
            plain = kind.rstrip("*")
            field = made.field.add(name=name, number=int(number), label=1 if plain == kind else 3)
            if plain in TYPES:
                field.type = FieldDescriptorProto.Type.Value(f"TYPE_{plain.upper()}")
            else:
                field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".chakra.{plain}"
            if message == "Attribute" and int(number) > 1:
                field.oneof_index = 0
        if message == "Attribute":
            made.oneof_decl.add(name="value")
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    attribute, node, head = (
        GetMessageClass(pool.FindMessageTypeByName(f"chakra.{name}")) for name in ("Attribute", "Node", "GlobalMetadata")
    )
    return attribute, node, head


_Attribute, _Node, _Head = _messages()


def attribute(name: str, kind: str, value: Value) -> Any:
    """Return an attribute message.

    Args:
        kind: type of the value, one of `TYPES`.
    """
    return _Attribute(name=name, **{f"{kind}_val": value})


def node(
    number: int,
    name: str,
    kind: int,
    controls: Iterable[int] = (),
    data: Iterable[int] = (),
    start: int = 0,
    duration: int = 0,
    attributes: Iterable[Any] = (),
) -> Any:
    """Return a node message.

    Args:
        controls: ids of control dependencies.
        data: ids of data dependencies.
        start: start time (us); 0 if unknown.
        duration: duration (us); 0 if unknown.
    """
    return _Node(
        id=number, name=name, type=kind, ctrl_deps=controls, data_deps=data, start_time_micros=start, duration_micros=duration,
        attr=attributes,
    )  # fmt: skip


def parse(data: bytes) -> ChakraTrace:
    """Parse an `.et` file.

    Raises:
        Damaged: the file is truncated or of another format.
    """
    file, messages = BytesIO(data), list[Any]()
    while (byte := file.tell()) < len(data):
        name = f"node {len(messages) - 1}" if messages else "the first message, GlobalMetadata,"
        try:
            message = parse_length_prefixed(_Node if messages else _Head, file)
        except (DecodeError, EOFError, OverflowError, ValueError):
            raise DamagedTrace(f"{name} is truncated, or is not a Chakra message", byte) from None
        if messages and not message.ListFields():
            raise DamagedTrace(f"{name} has no field of a node", byte)
        messages.append(message)
    if not messages:
        raise DamagedTrace("the file is empty", 0)
    return ChakraTrace(messages[0].version, messages[0].attr, messages[1:])


def pack(trace: ChakraTrace) -> bytes:
    """Serialize a trace as an `.et` file."""
    file = BytesIO()
    for message in (_Head(version=trace.version, attr=trace.attributes), *trace.nodes):
        serialize_length_prefixed(message, file)
    return file.getvalue()


def attributes_of(attributes: Iterable[Any]) -> dict[str, Value]:
    """Return the values of attributes by name."""
    kinds = [(attribute, attribute.WhichOneof("value") or "") for attribute in attributes]
    return {
        attr.name: tuple(getattr(attr, kind).values) if kind.endswith("list") else getattr(attr, kind) if kind else ()
        for attr, kind in kinds
    }


def number_of(values: Sequence[Value | None], otherwise: int = 0) -> int:
    """Return the first value that is a number, or the text of one, as an integer."""
    for value in values:
        if isinstance(value, int | float | str):
            with suppress(ValueError, OverflowError):  # no number, not finite, or too many digits
                return int(value)
    return otherwise
