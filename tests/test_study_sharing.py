"""Points share what their changes leave alone, and every one is what a run alone finds, to the last digit and word."""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextvars import Context
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.api import simulate
from hwsim.engine import Deadlock
from hwsim.graph.equality import is_same
from hwsim.origins import Origin
from hwsim.spec import SpecError
from hwsim.spec.memo import memo_table, same, shared
from hwsim.spec.tree import tree_of
from hwsim.studies import point
from hwsim.studies.point import Content, read_source, run_point
from hwsim.views.explain.document import as_dict
from hwsim.views.explain.explanation import explain
from tests.random_pairs import random_pair

TRAINING = "d2l-8gpu-nvlink", {
    "hwsim": "workload/1",
    "let": {"gpus": 4, "dtype": "fp16", "framework": "mxnet-ngc", "each": 32},
    "train": {"model": "d2l-resnet-18", "gpus": "$gpus", "global_batch": "$each * $gpus", "dtype": "$dtype",
              "framework": "$framework", "steps": 2},
}  # fmt: skip
UNLIKE = {
    "hwsim": "machine/1", "class": "ideal",
    "parts": {"cpu": {"kind": "cpu", "use": "d2l-server-cpu"}, "gpu0": {"kind": "gpu", "use": "d2l-gpu"},
              "gpu1": {"kind": "gpu", "use": "v100-sxm2-16gb"}},
    "links": [{"name": "slot0", "between": ["cpu", "gpu0"], "kind": "pcie", "bandwidth": "16 GB/s"},
              {"name": "slot1", "between": ["cpu", "gpu1"], "kind": "pcie", "bandwidth": "8 GB/s"}],
}, {
    "hwsim": "workload/1", "source": "made for a test", "let": {"slow": "2 ms"},
    "runtime": {"dispatch": "5 us", "return": "8 us", "call": "20 us", "issue": "1 us", "queue_depth": 3},
    "programs": {
        "early": [
            {"repeat": {"times": 7, "do": [
                {"copy": {"name": "x0", "from": "cpu", "to": "gpu0", "bytes": "16 MB", "writes": "x"}},
                {"call": {"do": [{"busy": {"name": "a", "device": "gpu0", "time": "$slow", "reads": "x"}},
                                 {"busy": {"name": "b", "device": "gpu0", "time": "300 us", "updates": "y"}}]}},
            ]}},
            {"barrier": "both"}, {"wait": "all"},
        ],
        "late": [
            {"busy": {"name": "late", "device": "cpu", "time": "1 ms"}},
            {"repeat": {"times": 4, "do": [{"copy": {"name": "x1", "from": "cpu", "to": "gpu1", "bytes": "48 MB"}},
                                           {"busy": {"name": "c", "device": "gpu1", "time": "2.5 ms", "block": True}}]}},
            {"barrier": "both"},
        ],
    },
}  # fmt: skip
PAIRS: dict[str, tuple[Any, Any, dict[str, list[object]]]] = {
    "training": (*TRAINING, {
        "machine.links.nvlink.bandwidth": ["25 GB/s", "10 GB/s", "3 GB/s"],
        "machine.gpu.memory.bandwidth": ["900 GB/s", "700 GB/s"],
        "machine.gpu.use": ["v100-sxm2-16gb", "a100-sxm-40gb"],
        "machine.cpu.cores": [4, 16],
        "gpus": [1, 2, 4, 5],
        "dtype": ["fp32", "fp16"],
        "framework": ["pytorch-ngc", "mxnet-ngc"],
        "each": [16, 32],
    }),
    "exchange": ("d2l-4gpu-pcie", "d2l/allreduce-160mb", {
        "machine.gpu.count": [2, 4], "machine.links.uplink.lanes": [4, 8, 16], "algorithm": ["ring", "binomial-tree", "auto"],
    }),
    "loader": ("d2l-gpu-workstation", "d2l/data-loading", {
        "workers": [1, 2, 4], "machine.cpu.cores": [2, 6], "machine.disk.use": ["hdd-7200rpm", "nvme-990pro"],
    }),
    "loop": ("d2l-laptop", "d2l/async-loop", {
        "n": [10, 20], "workload.runtime.queue_depth": [1, 4], "blocking": [True, False],
        "workload.runtime.dispatch": ["12 us", "40 us", "0 s", "1 h"], "workload.runtime.return": ["8 us", "0 s"],
        "workload.program.0.repeat.do.0.busy.time": ["30 us", "7 us"], "workload.source": ["nowhere"],
    }),
    "unlike": (*UNLIKE, {
        "workload.runtime.dispatch": ["5 us", "90 us"], "workload.runtime.issue": ["0 s", "1 us"],
        "workload.runtime.per_op": ["0 s", "3 us"], "workload.programs.late.0.busy.time": ["1 ms", "9 ms"], "slow": ["4 ms"],
        "machine.links.slot1.bandwidth": ["2 GB/s", "16 GB/s"], "machine.gpu1.memory.bandwidth": ["100 GB/s", "600 GB/s"],
    }),
}  # fmt: skip


@st.composite
def changes(draw: st.DrawFn, choices: Mapping[str, list[object]]) -> list[dict[str, object]]:
    """Some points of a study, each with some paths changed; points come again."""
    paths = draw(st.lists(st.sampled_from(sorted(choices)), min_size=1, max_size=3, unique=True))
    one = st.fixed_dictionaries({}, optional={path: st.sampled_from(choices[path]) for path in paths})
    return draw(st.lists(one, min_size=2, max_size=4))


@pytest.mark.parametrize("name", PAIRS)
@given(data=st.data())
@settings(max_examples=6, deadline=None)
def test_a_point_of_a_study_is_what_it_is_alone(name: str, data: st.DataObject) -> None:
    machine, workload, choices = PAIRS[name]
    both = read_source("machine", machine), read_source("workload", workload)
    study = f"{name} {data.draw(st.integers(0, 3))}"  # what earlier examples left is there, too
    for changed in data.draw(changes(choices)):
        assert run_point(*both, changed, (), study) == run_point(*both, changed)


@given(st.integers(0, 10_000), st.data())
@settings(max_examples=15, deadline=None)
def test_the_same_of_any_pair_to_the_last_op(seed: int, data: st.DataObject) -> None:
    """Each op, each derivation and each warning."""
    dice = random.Random(seed)
    machine, workload = random_pair(dice)
    links = [link["name"] for link in machine["links"]]
    rates = st.sampled_from(["1 GB/s", "2 GB/s", "40 GB/s"])
    shelf: dict[str, dict[Any, Any]] = {}
    for change in data.draw(st.lists(st.tuples(st.sampled_from(links), rates), min_size=2, max_size=4)):
        changed = {f"machine.links.{change[0]}.bandwidth": change[1]}
        found = []
        for among in (shelf, {}):
            with shared(among):
                try:
                    run = simulate(machine, workload, set=changed, expect=False)
                except (SpecError, Deadlock) as error:
                    found.append(str(error))
                else:
                    found.append(f"{run.to_json(ops=True)} {run.timeline.flat.graph.costs}")
        assert found[0] == found[1]


def test_what_a_change_leaves_alone_is_not_done_again() -> None:
    both = read_source("machine", TRAINING[0]), read_source("workload", TRAINING[1])
    runs = []
    shelf: dict[str, dict[Any, Any]] = {}
    for changed in ({}, {"machine.links.nvlink.bandwidth": "9 GB/s"}, {"machine.cpu.memory.size": "99 GB"}):
        with shared(shelf):
            runs.append(simulate(both[0].tree, both[1].tree, set=changed, expect=False))
    graphs = [run.simulated.flat.graph for run in runs]
    assert runs[2].simulated.start is runs[0].simulated.start, "a run is played once"
    assert is_same(graphs[2], graphs[0])
    assert not is_same(graphs[1], graphs[0])


def test_nothing_is_shared_outside_of_a_study() -> None:
    def shows() -> None:
        assert memo_table("files") is None
        with shared({}):
            assert memo_table("files") == {}
        assert memo_table("files") is None

    Context().run(shows)  # without the texts of the library that tests share


def test_trees_are_the_same_with_their_sources_only() -> None:
    one, other = tree_of({"a": [1, "x"]}), tree_of({"a": [1, "x"]})
    assert same(one, other)
    assert not same(one, tree_of({"a": [1, "y"]}))
    assert not same(one, tree_of({"a": [1.0, "x"]}))
    assert isinstance(other.value, dict)
    other.value["a"] = type(other)(other.value["a"].value, origin=Origin("guess"))
    assert not same(one, other)


def test_contents_with_the_same_values_are_equal() -> None:
    assert read_source("machine", "d2l-laptop") == Content.of("machine", read_source("machine", "d2l-laptop").tree)


def test_prices_alone_run_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    both = read_source("machine", TRAINING[0]), read_source("workload", TRAINING[1])
    runs: list[object] = []

    def counting(*arguments: Any, **more: Any) -> Any:
        runs.append(arguments)
        return simulate(*arguments, **more)

    monkeypatch.setattr(point, "simulate", counting)
    cheap, dear = ({"machine.gpu.price": price} for price in ("5000 USD", "9000 USD"))
    found = [run_point(*both, setting, (), "prices") for setting in (cheap, dear, cheap)]
    assert len(runs) == 1
    assert found[1] == run_point(*both, dear)
    assert found[0] == found[2]


def test_a_defect_in_one_point_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any, **more: Any) -> Any:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(point, "simulate", broken)
    both = read_source("machine", TRAINING[0]), read_source("workload", TRAINING[1])
    assert "contradicts itself: ZeroDivisionError: division by zero; this is a defect of hwsim" in run_point(*both, {}).error


@pytest.mark.parametrize("name", PAIRS)
def test_runs_made_again_for_an_explanation_are_what_they_are_alone(name: str) -> None:
    run = simulate(*PAIRS[name][:2], expect=False)
    alone: Any = explain.__wrapped__  # type: ignore[attr-defined]
    assert as_dict(explain(run), path=True) == as_dict(alone(run), path=True)
    assert memo_table("timelines") is None  # nothing is left
