"""Op graphs as files."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from numpy.typing import NDArray

import hwsim
from hwsim import api
from hwsim.engine import simulate
from hwsim.graph.files import COLUMNS, load_graph, save_graph
from hwsim.graph.opgraph import OpGraph, Queue
from hwsim.spec import SpecError, yaml_parser
from tests import command
from tests.engine_graphs import graph_of
from tests.strategies import graphs, make_block

Arrays = dict[str, NDArray[Any]]
TABLES = ("labels", "costs", "capacities", "queues", "pools", "buffers")


def same(one: OpGraph, other: OpGraph) -> bool:
    return (
        all(getattr(one, table) == getattr(other, table) for table in TABLES)
        and np.array_equal(one.ties, other.ties)
        and len(one.blocks) == len(other.blocks)
        and all(
            (mine.times, mine.turns) == (its.times, its.turns)
            and np.array_equal(mine.iteration, its.iteration)
            and all(np.array_equal(getattr(mine, column), getattr(its, column)) for column in (*COLUMNS, "edges"))
            for mine, its in zip(one.blocks, other.blocks, strict=True)
        )
    )


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graphs())
def test_a_graph_that_was_saved_is_the_graph_that_is_loaded(tmp_path: Path, graph: OpGraph) -> None:
    assert same(load_graph(save_graph(graph, tmp_path / "graph.npz")), graph)


@pytest.mark.parametrize("workload", ["d2l/async-loop", "d2l/bucketed-overlap"])
def test_what_a_workload_was_lowered_to_runs_from_a_file_as_the_workload_does(workload: str, tmp_path: Path) -> None:
    lowered = api.prepare("d2l-laptop" if workload.endswith("loop") else "d2l-4gpu-pcie", workload)
    path = save_graph(lowered.graph, tmp_path / "graph.npz")
    assert same(load_graph(path), lowered.graph)  # buffers, derivations, choices and all
    run = hwsim.simulate(lowered.machine, path)
    assert run.timeline.end.tolist() == simulate(lowered.graph).end.tolist()
    assert run.workload == "graph"


def test_errors_of_formulas_come_back_from_a_file(tmp_path: Path) -> None:
    run = api.simulate("dgx-h100", "resnet50-dp", set={"gpus": 1}, expect=False)
    graph = load_graph(save_graph(run.timeline.flat.graph, tmp_path / "g.npz"))
    assert any(term.doubts for cost in graph.costs for term in cost.why)
    assert all(doubt.seconds >= 0 for cost in graph.costs for term in cost.why for doubt in term.doubts)


def test_the_command_line_takes_a_graph_for_a_workload(tmp_path: Path) -> None:
    path = save_graph(api.prepare("d2l-laptop", "d2l/async-loop").graph, tmp_path / "loop.npz")
    ran = command.hwsim("simulate", "d2l-laptop", path)
    assert "30.0 ms" in ran.output
    refused = command.hwsim("simulate", "d2l-laptop", path, "--set", "n=3", code=2)
    assert "`set` is not supported" in refused.output


def test_a_graph_made_for_another_machine_is_refused_by_name(tmp_path: Path) -> None:
    path = save_graph(api.prepare("d2l-laptop", "d2l/async-loop").graph, tmp_path / "loop.npz")
    with pytest.raises(SpecError, match=r"'cpu.cores' has rate 4 in the op graph, but 24 on the machine"):
        hwsim.simulate("d2l-4gpu-pcie", path)


def chain(ops: int) -> OpGraph:
    edges = [(op, op + 1, 0) for op in range(ops - 1)]
    return graph_of(make_block([-1] * ops, time=[1000] * ops, queue=[0] * ops, edges=edges), queues=[Queue("q", "d")])


# ---------------------------------------------------------------- files that are none


def archive(path: Path, change: Callable[[Arrays], None]) -> Path:
    save_graph(graph_of(make_block([-1, -1], time=[1, 2], edges=[(0, 1, 0)])), path)
    with np.load(path) as found:
        arrays = {name: found[name] for name in found.files}
    change(arrays)
    np.savez(path, **arrays)
    return path


def put(name: str, values: Any) -> Callable[[Arrays], None]:
    return lambda arrays: arrays.update({name: np.array(values)})


def other_tables(**said: Any) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        tables = {**json.loads(arrays["tables"].tobytes()), **said}
        arrays["tables"] = np.frombuffer(json.dumps(tables).encode(), np.uint8)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays.pop("tables"), "no array 'tables'"),
        (lambda arrays: arrays.pop("0.cost"), "'0.cost' is missing"),
        (put("0.label", [0, 3]), r"'0.label': expected values of 0 to 2"),
        (put("0.label", [0, 7, 1]), r"'0.cost' is not a column of 3"),
        (put("0.cost", [0, 0]), r"'0.cost': expected values of -1"),
        (put("0.time", [0, -1]), r"'0.time': expected values of 0 or more"),
        (put("0.time", [0.5, 1.0]), r"'0.time' is not a column of 2 whole numbers"),
        (put("0.size", [1.0, np.nan]), r"'0.size': expected finite values of 0 or more"),
        (put("0.edges", [[0, 2, 0]]), r"'0.edges': expected values of 0 to 1"),
        (put("0.edges", [[0, 1, -1]]), r"'0.edges': expected values of 0 or more"),
        (put("0.edges", [0, 1, 0]), r"'0.edges': expected rows of three"),
        (put("ties", [[0, 0, 1, 0, 0]]), "a tie refers to op 0 of block 1"),
        (other_tables(hwsim="workload/1"), "expected the format 'opgraph/1', got 'workload/1'"),
        (other_tables(pools=[{"name": "p", "servers": 0}]), "expected at least one"),
        (other_tables(labels=[{"nom": "x"}]), "invalid tables of an op graph"),
        (other_tables(labels=3), "invalid tables of an op graph"),
        (put("tables", [255, 255]), "damaged"),
        (put("0.time", [{}, {}]), "damaged"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_name(change: Callable[[Arrays], None], message: str, tmp_path: Path) -> None:
    path = archive(tmp_path / "graph.npz", change)
    with pytest.raises(SpecError, match=message) as caught:
        load_graph(path)
    assert str(path) in str(caught.value)


def test_a_file_cut_short_or_flipped_anywhere_is_a_graph_or_a_mistake(tmp_path: Path) -> None:
    path = save_graph(graph_of(make_block([-1, -1], time=[1, 2], edges=[(0, 1, 0)])), tmp_path / "graph.npz")
    whole = path.read_bytes()
    for index in range(0, len(whole), 7):
        for damaged in (whole[:index], whole[:index] + bytes([whole[index] ^ 0x55]) + whole[index + 1 :]):
            path.write_bytes(damaged)
            try:
                load_graph(path)
            except SpecError as error:
                assert str(path) in str(error)  # noqa: PT017 (most bytes must fail, some may not)


@pytest.mark.parametrize("content", [b"", b"hwsim: workload/1\n", b"PK"])
def test_a_file_that_is_no_archive_is_a_mistake(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    path.write_bytes(content)
    with pytest.raises(SpecError, match=r"not an npz archive|damaged"):
        load_graph(path)
    with pytest.raises(SpecError, match="does not exist"):
        load_graph(tmp_path / "none.npz")


def test_an_archive_runs_no_code(tmp_path: Path) -> None:
    path = archive(tmp_path / "graph.npz", lambda arrays: None)
    packed = io.BytesIO()
    np.save(packed, np.array([{"a": 1}], object), allow_pickle=True)
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("extra.npy", packed.getvalue())
    with pytest.raises(SpecError, match="damaged"):
        load_graph(path)


def test_only_npz_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ends in \.npz"):
        save_graph(chain(2), tmp_path / "graph.yaml")


def test_yaml_that_is_too_large_names_the_alternative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_parser, "MAX_NODES", 10)
    with pytest.raises(SpecError, match=r"more than 10 values") as caught:
        yaml_parser.read_text("hwsim: workload/1\nprogram: [" + "1, " * 20 + "1]\n")
    assert "graph.npz" in str(caught.value)
