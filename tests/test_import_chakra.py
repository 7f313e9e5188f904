from __future__ import annotations

import struct
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from hwsim.api import load_machine
from hwsim.engine import simulate
from hwsim.importers import chakra
from hwsim.importers.chakra_nodes import TYPES, Attribute, Damaged, Kind, Node, Tensors, Trace, pack, parse
from hwsim.importers.predicting import predict
from hwsim.importers.recording import What
from hwsim.importers.replay import explain
from hwsim.spec import SpecError

VALUES: dict[str, int | float | bool | str | bytes] = {
    "double": -1.5, "float": 0.25, "int32": -7, "int64": -(2**63), "uint32": 2**32 - 1, "uint64": 2**64 - 1, "sint32": -3,
    "sint64": -(2**40), "fixed32": 4, "fixed64": 2**63, "sfixed32": -5, "sfixed64": -6, "bool": True, "string": "two µs",
    "bytes": b"\x00\xff",
}  # fmt: skip


def every_type() -> tuple[Attribute, ...]:
    single = [Attribute(f"a {name}", name, value) for name, value in VALUES.items()]
    several = [Attribute(f"some {name}", f"{name}_list", (value, value)) for name, value in VALUES.items()]
    return (*single, *several, Attribute("none", "int64_list", ()), Attribute("bare", "", ()))


def ints(**values: int) -> tuple[Attribute, ...]:
    return tuple(Attribute(name, "int64", value) for name, value in values.items())


GPU = Attribute("is_cpu_op", "bool", False)
STEP = (
    Node(1, "forward", Kind.COMP, duration=30, attributes=(GPU, *ints(num_ops=10**9))),
    Node(2, "backward", Kind.COMP, data=(1,), duration=60, attributes=(GPU,)),
    Node(3, "gradients", Kind.COLLECTIVE, data=(1,), duration=50, attributes=(GPU, *ints(comm_type=0, comm_size=4096))),
    Node(4, "note", Kind.METADATA, data=(3,)),
    Node(5, "optimizer", Kind.COMP, controls=(2,), data=(4,), duration=5, attributes=(GPU,)),
)


def write(directory: Path, *ranks: tuple[Node, ...]) -> list[Path]:
    files = [directory / f"step.{number}.et" for number in range(len(ranks))]
    for file, nodes in zip(files, ranks, strict=True):
        file.write_bytes(pack(Trace("0.0.4", (), nodes)))
    return files


def test_what_is_written_is_read() -> None:
    tensors = Tensors("[1]", "[[2, 3]]", "['Tensor(float)']")
    node = Node(0, "", Kind.COMP, (1, 300), (2**40,), 5, 6, tensors, Tensors(), every_type())
    trace = Trace("0.0.4", every_type(), (node, *STEP))
    assert parse(pack(trace)) == trace


def test_protobuf_reads_and_writes_the_same_bytes() -> None:
    pytest.importorskip("google.protobuf")
    message = protobuf_message()
    data = pack(Trace("0.0.4", (), (Node(7, "x", Kind.SEND, (1, 2), (3,), 4, 5, attributes=every_type()),)))
    start = 2 + data[0]  # behind the metadata and the length, which takes two bytes
    node = message("Node").FromString(data[start + 1 :])
    assert (node.id, node.name, list(node.ctrl_deps), list(node.data_deps)) == (7, "x", [1, 2], [3])
    assert (node.start_time_micros, node.duration_micros) == (4, 5)
    for name, value in VALUES.items():
        values = {each.name: each for each in node.attr}
        assert getattr(values[f"a {name}"], f"{name}_val") == value
        assert list(getattr(values[f"some {name}"], f"{name}_list").values) == [value, value]
    assert node.SerializeToString(deterministic=True) == data[start + 1 :]


def protobuf_message() -> Any:
    """The messages of Chakra's schema, made at run time, as any version of protobuf takes them."""
    descriptor_pb2, descriptor_pool, message_factory = (
        import_module(f"google.protobuf.{name}") for name in ("descriptor_pb2", "descriptor_pool", "message_factory")
    )

    file = descriptor_pb2.FileDescriptorProto(name="et_def.proto", package="ChakraProtoMsg", syntax="proto3")
    kinds = {name: getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{name.upper()}") for name in TYPES.values()}

    def field(message: Any, number: int, name: str, kind: Any, repeated: bool = False) -> Any:
        made = message.field.add(name=name, number=number, label=3 if repeated else 1)
        if isinstance(kind, str) and kind not in kinds:
            made.type, made.type_name = 11, f".ChakraProtoMsg.{kind}"
        else:
            made.type = kinds.get(kind, kind)
        return made

    attribute = file.message_type.add(name="AttributeProto")
    field(attribute, 1, "name", "string")
    attribute.oneof_decl.add(name="value")
    for number, name in TYPES.items():
        field(file.message_type.add(name=f"{name}_l"), 1, "values", name, repeated=True)
        field(attribute, number, f"{name}_val", name).oneof_index = 0
        field(attribute, number + 1, f"{name}_list", f"{name}_l").oneof_index = 0
    node = file.message_type.add(name="Node")
    single = {1: ("id", "uint64"), 2: ("name", "string"), 3: ("type", "int32"), 6: ("start_time_micros", "uint64")}
    for number, (name, kind) in (single | {7: ("duration_micros", "uint64")}).items():
        field(node, number, name, kind)
    field(node, 4, "ctrl_deps", "uint64", repeated=True)
    field(node, 5, "data_deps", "uint64", repeated=True)
    field(node, 10, "attr", "AttributeProto", repeated=True)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"ChakraProtoMsg.{name}"))


def test_without_times_an_op_starts_when_it_can(tmp_path: Path) -> None:
    recording = chakra.read(write(tmp_path, STEP, STEP))
    rank = recording.ranks[1]
    spans = {
        rank.names[name]: (start, end)
        for name, start, end in zip(
            rank.slices.name.tolist(), (rank.slices.start // 10**9).tolist(), (rank.slices.end // 10**9).tolist(), strict=True
        )
    }
    assert spans == {"forward": (0, 30), "backward": (30, 90), "gradients": (30, 80), "optimizer": (90, 95)}
    assert [lane.name for lane in rank.lanes] == ["compute", "network"]
    collective = next(facts.collective for facts in rank.facts if facts.collective)
    assert (collective.name, collective.elements_in, collective.size) == ("allreduce", 4096, 2)
    pairs = {(rank.names[rank.slices.name[a]], rank.names[rank.slices.name[b]]) for a, b in edges(rank)}
    assert ("gradients", "optimizer") in pairs  # through the node of no work
    assert ("backward", "optimizer") in pairs
    assert [(left.name, left.count) for left in recording.left] == [("metadata", 2)]


def edges(rank: Any) -> list[tuple[int, int]]:
    return list(zip(rank.stated.before.tolist(), rank.stated.then.tolist(), strict=True))


def test_own_attributes_keep_femtoseconds(tmp_path: Path) -> None:
    own = [ints(**{"hwsim.start_fs": start, "hwsim.duration_fs": 77, "stream": 9}) for start in (1_234_567_891, 1_234_567_970)]
    nodes = tuple(Node(number, "k", Kind.COMP, start=1, attributes=each) for number, each in enumerate(own))
    rank = chakra.read(write(tmp_path, nodes)).ranks[0]
    assert (rank.slices.start.tolist(), rank.slices.duration.tolist()) == ([0, 79], [77, 77])
    assert rank.lanes[0].number == 9


def test_dependencies_that_the_times_contradict_are_listed(tmp_path: Path) -> None:
    nodes = (Node(1, "a", Kind.COMP, start=5, duration=10), Node(2, "b", Kind.COMP, data=(1,), start=7, duration=1))
    recording = chakra.read(write(tmp_path, nodes))
    assert edges(recording.ranks[0]) == []
    assert [(left.name, left.count) for left in recording.left] == [("dependencies", 1)]


def test_a_machine_gives_times_to_nodes_that_have_none(tmp_path: Path) -> None:
    amounts = (GPU, *ints(num_ops=14 * 10**9, tensor_size=10**6))
    nodes = (Node(1, "a", Kind.COMP, attributes=amounts), Node(2, "b", Kind.COMP, data=(1,), duration=70, attributes=amounts))
    replay = explain(chakra.read(write(tmp_path, nodes)))
    predicted = predict(replay, load_machine("d2l-gpu-workstation"))
    rows = {row.name: (row.how, row.time) for row in predicted.rows}
    assert [rows[name][0] for name in "ab"] == ["predicted", "kept"]
    assert [rows[name][1] for name in "ab"] == pytest.approx([14e9 / 966e9, 70e-6], rel=0.01)
    assert simulate(predicted.graph).makespan == pytest.approx(14e9 / 966e9 + 70e-6, rel=0.01)
    assert predicted.assumed


def test_groups_say_which_ranks_exchange(tmp_path: Path) -> None:
    group = (*ints(comm_type=7, comm_size=64), Attribute("pg_name", "string", "dp"))
    files = write(tmp_path, *[(Node(1, "x", Kind.COLLECTIVE, attributes=group),)] * 3)
    (tmp_path / "comm_group.json").write_text('{"dp": [0, 2], "tp": [1]}')
    collective = chakra.read([*files, tmp_path / "comm_group.json"]).ranks[2].facts[0].collective
    assert collective is not None
    assert (collective.name, collective.ranks, collective.elements_out) == ("reduce-scatter", (0, 2), 32)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "byte 0: the file is empty"),
        (pack(Trace("0.0.4", (), STEP))[:-3], "cut off: a message of"),
        (b"\x07\n\x050.0.4\x03\xff\xff\xff", "cut off within an integer"),
        (b"\x07\n\x050.0.4\x02\x2f\x00", "node 0"),
        (b"\xff" * 30, "an integer of more than 64 bits"),
        (b'{"nodes": [{"id": 1}]}', "not their JSON"),
        (pack(Trace("", (), (Node(1, "a", Kind.COMP), Node(1, "b", Kind.COMP)))), "the number of another one"),
        (pack(Trace("", (), (Node(1, "a", Kind.COMP, data=(2,)), Node(2, "b", Kind.COMP, data=(1,))))), "in a circle"),
    ],
)
def test_a_damaged_file_is_one_error_with_its_place(data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "x.0.et").write_bytes(data)
    with pytest.raises(SpecError, match=r"x\.0\.et") as error:
        chakra.read([tmp_path / "x.0.et"])
    assert words in str(error.value)


def test_bytes_cut_anywhere_are_refused_or_shorter() -> None:
    data = pack(Trace("0.0.4", every_type(), (*STEP, Node(9, "x", Kind.COMP, attributes=every_type()))))
    for end in range(len(data)):
        with suppress(Damaged):
            assert len(parse(data[:end]).nodes) <= len(STEP) + 1
    for at in range(0, len(data), 3):
        with suppress(Damaged):
            parse(data[:at] + struct.pack("B", data[at] ^ 0x55) + data[at + 1 :])


def test_every_published_file_is_read_and_written_again(reference_data: Path) -> None:
    files = sorted((reference_data / "traces" / "chakra").rglob("*.et"))
    if not files:
        pytest.skip("no Chakra traces in the reference data")
    for file in files:
        assert pack(parse(file.read_bytes())) == file.read_bytes()
    rings = [file for file in files if "custom_allreduce" in file.name]
    recording = chakra.read(rings)
    assert [rank.number for rank in recording.ranks] == list(range(8))
    rank = recording.ranks[3]
    assert sum(rank.slices.what == What.KERNEL) == 35
    peers = {facts.collective.peer for facts in rank.facts if facts.collective}
    assert peers == {2, 4}
