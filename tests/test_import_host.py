"""Reading execution traces of PyTorch's host: old and new schemas, who waits for whose tensors, and shapes for a profile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hwsim.importers.formats import read
from hwsim.importers.host_trace import ORDER, with_shapes
from hwsim.importers.recording import Collective, Rank, What
from hwsim.importers.say import shaped
from hwsim.importers.say import text as words
from hwsim.spec import SpecError
from tests.traces import kineto, run, write_kineto


def tensor(storage: int) -> list[Any]:
    return [storage + 100, storage, 0, 6, 4, "cuda:0"]


def new(number: int, parent: int, name: str, reads: list[int], writes: list[int], tid: int = 1, **attrs: Any) -> dict[str, Any]:
    """A node of schema 1.1."""

    def side(storages: list[int]) -> dict[str, Any]:
        return {"values": [*map(tensor, storages), 3], "shapes": [[2, 3]] * len(storages) + [[]],
                "types": ["Tensor(float)"] * len(storages) + ["Int"], "strides": [[3, 1]] * len(storages) + [[]]}  # fmt: skip

    said = {"rf_id": number, "scope": 0, "tid": tid, **attrs}
    listed = [{"name": key, "type": "uint64", "value": value} for key, value in said.items()]
    return {"id": number, "name": name, "ctrl_deps": parent, "inputs": side(reads), "outputs": side(writes), "attrs": listed}


def old(number: int, parent: int, name: str, reads: list[int], writes: list[int]) -> dict[str, Any]:
    """A node of schema 1.0: lists of their own, and attributes as keys."""
    return {
        "id": number, "name": name, "parent": parent, "rf_id": number, "scope": 0, "tid": 1,
        "inputs": [*map(tensor, reads), 3], "input_shapes": [[2, 3]] * len(reads) + [[]],
        "input_types": ["Tensor(float)"] * len(reads) + ["Int"],
        "outputs": [*map(tensor, writes)], "output_shapes": [[2, 3]] * len(writes),
        "output_types": ["Tensor(float)"] * len(writes),
    }  # fmt: skip


THREAD = {"id": 2, "name": "[pytorch|profiler|execution_trace|thread]", "ctrl_deps": 1, "parent": 1}


def traced(path: Path, *nodes: dict[str, Any], schema: str = "1.1.1-chakra.0.0.4") -> Rank:
    path.write_text(json.dumps({"schema": schema, "pid": 7, "nodes": [THREAD, *nodes]}), encoding="utf-8")
    return read("host", [path]).ranks[0]


@pytest.mark.parametrize(("node", "schema"), [(new, "1.1.1-chakra.0.0.4"), (old, "1.0.2-chakra.0.0.4")])
def test_ops_nest_and_wait_for_the_last_writer(tmp_path: Path, node: Any, schema: str) -> None:
    rank = traced(
        tmp_path / "a.json",
        node(5, 4, "aten::addmm", [1, 2], [9]), node(4, 2, "aten::linear", [1, 2], [9]),  # in the order in which they ended
        node(6, 2, "aten::relu_", [9], [9]), node(7, 2, "aten::mul", [9, 1], [3]), node(8, 2, "aten::add", [3, 9], [4]),
        schema=schema,
    )  # fmt: skip
    names = [rank.names[name] for name in rank.slices.name]
    assert names == ["aten::linear", "aten::addmm", "aten::relu_", "aten::mul", "aten::add"]
    start, end = rank.slices.start, rank.slices.end
    assert start[0] < start[1]
    assert end[1] == end[0] <= start[2]
    assert rank.stated is not None
    edges = {(names[a], names[b]) for a, b in zip(rank.stated.before, rank.stated.then, strict=True)}
    assert edges == {("aten::addmm", "aten::relu_"), ("aten::relu_", "aten::mul"), ("aten::mul", "aten::add"),
                     ("aten::relu_", "aten::add")}  # fmt: skip
    facts = rank.facts[rank.slices.facts[1]]
    assert (facts.shapes, facts.dtypes, facts.values) == (((2, 3), (2, 3), ()), ("float", "float", "Int"), ("", "", "3"))


def test_it_says_that_it_has_no_times(tmp_path: Path) -> None:
    traced(tmp_path / "a.json", new(3, 2, "ProfilerStep#1", [], [], scope=7), new(4, 3, "aten::mm", [1], [2]))
    recording = read("host", [tmp_path / "a.json"])
    assert not recording.timed
    assert ORDER in words(recording)
    assert [What(what).name for what in recording.ranks[0].slices.what] == ["MARK", "OP"]


def test_collectives_have_the_ranks_of_their_group(tmp_path: Path) -> None:
    groups = new(3, 2, "## process_group:init ##", [], [])
    groups["inputs"]["values"] = [json.dumps([{"pg_name": "1", "ranks": [0, 4], "pg_size": 2}])]
    said: dict[str, Any] = {
        "collective_name": "allreduce",
        "in_msg_nelems": 5,
        "out_msg_nelems": 5,
        "dtype": "BFloat16",
        "pg_name": "1",
    }
    rank = traced(tmp_path / "a.json", groups, new(4, 2, "record_param_comms", [1], [1], **said))
    facts = rank.facts[rank.slices.facts[-1]]
    assert facts.collective == Collective("allreduce", 5, 5, "bf16", (0, 4), 2, "1")


def test_shapes_for_a_profile_without_them(tmp_path: Path) -> None:
    events = [{key: value for key, value in each.items() if key != "shapes"} for each in run(steps=1)]
    profile = read("kineto", [write_kineto(tmp_path / "p.json", kineto(events))])
    assert shaped(profile.ranks[0]) == 0
    ops = [each["name"] for each in events if each["what"] == "cpu_op"]
    traced(tmp_path / "h.json", *(new(number, 2, name, [1], [2]) for number, name in enumerate(ops, 3)))
    host = read("host", [tmp_path / "h.json"])
    joined = with_shapes(profile, host)
    assert shaped(joined.ranks[0]) == len(ops)
    assert joined.ranks[0].slices.start is profile.ranks[0].slices.start
    traced(tmp_path / "h.json", *(new(number, 2, name, [1], [2]) for number, name in enumerate([*ops[:3], "aten::add"], 3)))
    with pytest.raises(SpecError, match=r"op 4 of thread 1 is 'aten::addmm' in .*, and 'aten::add' here"):
        with_shapes(profile, read("host", [tmp_path / "h.json"]))


def test_ops_of_the_same_microsecond_have_the_order_of_the_trace(tmp_path: Path) -> None:
    """Of two that begin together the profile has the longer one first, whatever ran first; others must be in order."""
    spans = [("aten::item", 0, 9), ("aten::_local_scalar_dense", 1, 0), ("aten::select", 1, 2), ("aten::add", 5, 3)]
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 100 + start, "dur": length}
        for name, start, length in spans
    ]
    (tmp_path / "p.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}), encoding="utf-8")
    profile = read("kineto", [tmp_path / "p.json"])
    in_order = ["aten::item", "aten::_local_scalar_dense", "aten::select", "aten::add"]
    for names in (in_order, [in_order[0], in_order[2], in_order[1], in_order[3]]):
        traced(tmp_path / "h.json", *(new(number, 2, name, [1], [2]) for number, name in enumerate(names, 3)))
        joined = with_shapes(profile, host := read("host", [tmp_path / "h.json"])).ranks[0]
        assert shaped(joined) == 4
        assert [joined.names[number] for number in joined.slices.name] == [profile.ranks[0].names[number] for number in
                                                                           profile.ranks[0].slices.name]  # fmt: skip
        assert [rank.names[number] for rank in host.ranks for number in rank.slices.name] == names
    traced(tmp_path / "h.json", *(new(number, 2, name, [1], [2]) for number, name in enumerate(in_order[1:], 3)))
    with pytest.raises(SpecError, match="op 1 of thread 1"):
        with_shapes(profile, read("host", [tmp_path / "h.json"]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"traceEvents": []}', "there is no list 'nodes' of nodes; it has 'traceEvents'"),
        ('{"schema": "1.1", "nodes": [{"id": 3, "name": "a"', "the file is cut off"),
        ('{"schema": "1.1", "nodes": [{"id": "x", "name": "a"}]}', "an id is no number"),
        ('{"schema": "1.1", "nodes": [{"id": 3, "name": "a"}, {"id": 3, "name": "b"}]}', "id 3 is given twice"),
        ('{"schema": "1.1", "nodes": [{"id": 3, "name": "a", "inputs": 5}]}', "a value is missing or of another kind"),
        ('{"schema": "1.1", "nodes": [{"id": 3}]}', "a value is missing or of another kind"),
        ('{"schema": "1.1", "nodes": []}', "it has no event that is read"),
    ],
)
def test_other_and_damaged_files_are_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "a.json").write_text(content, encoding="utf-8")
    with pytest.raises(SpecError, match=message):
        read("host", [tmp_path / "a.json"])


def test_a_published_pair_is_joined_and_others_are_not(reference_data: Path) -> None:
    folder = reference_data / "traces/cpu"
    host = read("host", [folder / "mlp.host_et.json.gz"])
    profile = read("kineto", [folder / "mlp.pt.trace.json.gz"])
    joined = with_shapes(profile, host).ranks[0]
    assert int((joined.slices.what == What.OP).sum()) == 633
    own, their = profile.ranks[0], host.ranks[0]
    for mine, facts in zip(own.slices.facts.tolist(), their.slices.facts.tolist(), strict=True):
        if mine >= 0 and facts >= 0:  # both say the shapes of tensors; the trace has more of what is none
            tensors = own.facts[mine].shapes
            assert tensors is not None
            assert [shape for shape in tensors if shape] == [shape for shape in their.facts[facts].shapes or () if shape]
    with pytest.raises(SpecError, match="op 7 of thread 1 is 'aten::conv2d'"):
        with_shapes(read("kineto", [folder / "resnet18ish.pt.trace.json.gz"]), host)
