from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hwsim.api import load_machine
from hwsim.engine import simulate
from hwsim.importers import chakra
from hwsim.importers.chakra_nodes import ChakraNodeKind, ChakraTrace, attribute, node, pack, parse
from hwsim.importers.predicting import predict
from hwsim.importers.recording import What
from hwsim.importers.replay import explain
from hwsim.spec import SpecError


def ints(**values: int) -> tuple[Any, ...]:
    return tuple(attribute(name, "int64", value) for name, value in values.items())


GPU = attribute("is_cpu_op", "bool", False)
STEP = (
    node(1, "forward", ChakraNodeKind.COMP, duration=30, attributes=(GPU, *ints(num_ops=10**9))),
    node(2, "backward", ChakraNodeKind.COMP, data=(1,), duration=60, attributes=(GPU,)),
    node(3, "gradients", ChakraNodeKind.COLLECTIVE, data=(1,), duration=50, attributes=(GPU, *ints(comm_type=0, comm_size=4096))),
    node(4, "note", ChakraNodeKind.METADATA, data=(3,)),
    node(5, "optimizer", ChakraNodeKind.COMP, controls=(2,), data=(4,), duration=5, attributes=(GPU,)),
)


def write(directory: Path, *ranks: tuple[Any, ...]) -> list[Path]:
    files = [directory / f"step.{number}.et" for number in range(len(ranks))]
    for file, nodes in zip(files, ranks, strict=True):
        file.write_bytes(pack(ChakraTrace("0.0.4", (), nodes)))
    return files


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


def test_dependencies_that_the_times_contradict_are_listed(tmp_path: Path) -> None:
    nodes = (
        node(1, "a", ChakraNodeKind.COMP, start=5, duration=10),
        node(2, "b", ChakraNodeKind.COMP, data=(1,), start=7, duration=1),
    )
    recording = chakra.read(write(tmp_path, nodes))
    assert edges(recording.ranks[0]) == []
    assert [(left.name, left.count) for left in recording.left] == [("dependencies", 1)]


def test_a_machine_gives_times_to_nodes_that_have_none(tmp_path: Path) -> None:
    amounts = (GPU, *ints(num_ops=14 * 10**9, tensor_size=10**6))
    nodes = (
        node(1, "a", ChakraNodeKind.COMP, attributes=amounts),
        node(2, "b", ChakraNodeKind.COMP, data=(1,), duration=70, attributes=amounts),
    )
    replay = explain(chakra.read(write(tmp_path, nodes)))
    predicted = predict(replay, load_machine("d2l-gpu-workstation"))
    rows = {row.name: (row.how, row.time) for row in predicted.rows}
    assert [rows[name][0] for name in "ab"] == ["predicted", "kept"]
    assert [rows[name][1] for name in "ab"] == pytest.approx([14e9 / 966e9, 70e-6], rel=0.01)
    assert simulate(predicted.graph).makespan == pytest.approx(14e9 / 966e9 + 70e-6, rel=0.01)
    assert predicted.assumed


def test_groups_say_which_ranks_exchange(tmp_path: Path) -> None:
    group = (*ints(comm_type=7, comm_size=64), attribute("pg_name", "string", "dp"))
    files = write(tmp_path, *[(node(1, "x", ChakraNodeKind.COLLECTIVE, attributes=group),)] * 3)
    (tmp_path / "comm_group.json").write_text('{"dp": [0, 2], "tp": [1]}')
    collective = chakra.read([*files, tmp_path / "comm_group.json"]).ranks[2].facts[0].collective
    assert collective is not None
    assert (collective.name, collective.ranks, collective.elements_out) == ("reduce-scatter", (0, 2), 32)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "byte 0: the file is empty"),
        (pack(ChakraTrace("0.0.4", (), STEP))[:-3], "node 4 is truncated, or is not a Chakra message"),
        (b"\x07\n\x050.0.4\x03\xff\xff\xff", "byte 8: node 0 is truncated"),
        (b"\x07\n\x050.0.4\x02\x2f\x00", "byte 8: node 0"),
        (b"\x07\n\x050.0.4\x02\x78\x01", "has no field of a node"),
        (b"\xff" * 30, "byte 0: the first message, GlobalMetadata, is truncated"),
        (b'{"nodes": [{"id": 1}]}', "not JSON"),
        (
            pack(ChakraTrace("", (), (node(1, "a", ChakraNodeKind.COMP), node(1, "b", ChakraNodeKind.COMP)))),
            "the id of another node",
        ),
        (
            pack(
                ChakraTrace("", (), (node(1, "a", ChakraNodeKind.COMP, data=(2,)), node(2, "b", ChakraNodeKind.COMP, data=(1,))))
            ),
            "a dependency cycle",
        ),
    ],
)
def test_a_damaged_file_is_one_error_with_its_place(data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "x.0.et").write_bytes(data)
    with pytest.raises(SpecError, match=r"x\.0\.et") as error:
        chakra.read([tmp_path / "x.0.et"])
    assert words in str(error.value)


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
