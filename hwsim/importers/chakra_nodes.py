"""Chakra execution traces as messages of protobuf (mlcommons/chakra: schema/protobuf/et_def.proto).

A file is a chain of messages, each with its length before it: first `GlobalMetadata`, then one `Node` for each op. The messages
are made of the table of their fields, in a pool of their own: no code is generated, and a schema of another program in the
process is another one.
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
_FIELDS: Final = {  # of each message: number, type and name; * where there are many
    "Tensors": "1 string values, 2 string shapes, 3 string types",
    "GlobalMetadata": "1 string version, 2 Attribute* attr",
    "Node": "1 uint64 id, 2 string name, 3 int32 type, 4 uint64* ctrl_deps, 5 uint64* data_deps, 6 uint64 start_time_micros, "
    "7 uint64 duration_micros, 8 Tensors inputs, 9 Tensors outputs, 10 Attribute* attr",
    "Attribute": "1 string name"
    + "".join(f", {3 + 2 * n} {name} {name}_val, {4 + 2 * n} {name}s {name}_list" for n, name in enumerate(TYPES)),
    **{f"{name}s": f"1 {name}* values" for name in TYPES},
}


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


class Damaged(ValueError):
    """Bytes that are no such message; byte: where, counted from 0 in the file."""

    def __init__(self, message: str, byte: int) -> None:
        super().__init__(message)
        self.byte = byte


class Trace(NamedTuple):
    """A file: the version of its format, its own attributes, its nodes."""

    version: str
    attributes: Sequence[Any]
    nodes: Sequence[Any]


def _messages() -> tuple[Any, Any, Any]:
    """The classes of attributes, nodes and the head of a file."""
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
    """A named value; kind: of `TYPES`."""
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
    """An op. controls, data: numbers of the nodes that it waits for. start, duration: us, 0 also if they are not known."""
    return _Node(
        id=number, name=name, type=kind, ctrl_deps=controls, data_deps=data, start_time_micros=start, duration_micros=duration,
        attr=attributes,
    )  # fmt: skip


def parse(data: bytes) -> Trace:
    """The nodes of an `.et` file.

    Raises:
        Damaged: it is cut off, or is something else.
    """
    file, messages = BytesIO(data), list[Any]()
    while (at := file.tell()) < len(data):
        what = f"node {len(messages) - 1}" if messages else "its first message, GlobalMetadata,"
        try:
            message = parse_length_prefixed(_Node if messages else _Head, file)
        except (DecodeError, EOFError, OverflowError, ValueError):
            raise Damaged(f"{what} is cut off, or no message of Chakra", at) from None
        if messages and not message.ListFields():
            raise Damaged(f"{what}: nothing in it is a node's", at)
        messages.append(message)
    if not messages:
        raise Damaged("the file is empty", 0)
    return Trace(messages[0].version, messages[0].attr, messages[1:])


def pack(trace: Trace) -> bytes:
    """The `.et` file of nodes."""
    file = BytesIO()
    for message in (_Head(version=trace.version, attr=trace.attributes), *trace.nodes):
        serialize_length_prefixed(message, file)
    return file.getvalue()


def attributes_of(attributes: Iterable[Any]) -> dict[str, Value]:
    """Values by name."""
    kinds = [(each, each.WhichOneof("value") or "") for each in attributes]
    return {
        each.name: tuple(getattr(each, kind).values) if kind.endswith("list") else getattr(each, kind) if kind else ()
        for each, kind in kinds
    }


def number_of(values: Sequence[Value | None], otherwise: int = 0) -> int:
    """The first of some values that is a number, or a text of one, as an integer."""
    for value in values:
        if isinstance(value, int | float | str):
            with suppress(ValueError, OverflowError):  # no number, none that is finite, thousands of digits
                return int(value)
    return otherwise
