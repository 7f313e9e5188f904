"""What `import hwsim` offers."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import hwsim
from hwsim import api
from hwsim.machine import Machine
from hwsim.workload import GraphBuilder, Workload

COPY = {"copy": {"from": "cpu", "to": "gpu0", "bytes": "160 MB"}}
WORKLOAD = {"hwsim": "workload/1", "let": {"n": 2}, "program": [{"repeat": {"times": "$n", "do": [COPY]}}]}
TEXT = "hwsim: workload/1\nprogram:\n  - copy: {from: cpu, to: gpu0, bytes: 160 MB}\nexpect: {makespan: 10 ms +- 1 %}\n"


def test_a_workload_may_be_a_file_a_text_plain_data_or_loaded(tmp_path: Path) -> None:
    path = tmp_path / "copy.yaml"
    path.write_text(TEXT, encoding="utf-8")
    sources: list[api.Source | Workload] = [
        path,
        str(path),
        TEXT,
        api.load_workload(path),
        {"hwsim": "workload/1", "program": [COPY]},
    ]
    assert {hwsim.simulate("d2l-4gpu-pcie", source).timeline.makespan_fs for source in sources} == {
        10_005 * 10**9
    }  # 5 us to begin, and 10 ms
    assert hwsim.simulate("d2l-4gpu-pcie", path).workload == "copy"


def test_a_machine_may_be_loaded_and_an_op_graph_written_in_python() -> None:
    machine = api.load_machine("d2l-4gpu-pcie")
    builder = GraphBuilder(machine.capacities[name] for name in sorted(machine.capacities))
    builder.op("mine", device="gpu0", cost=machine.transfer("cpu", "gpu0", 160e6))
    run = hwsim.simulate(machine, builder.build())
    assert run.makespan_s == pytest.approx(0.010005)
    assert run.devices["gpu0"] == "gpu"


def test_loads_knows_a_machine_from_a_workload(root: Path) -> None:
    assert isinstance(hwsim.loads((root / "machines" / "d2l-4gpu-pcie.yaml").read_text(encoding="utf-8")), Machine)
    assert isinstance(hwsim.loads(TEXT), Workload)


def test_set_takes_values_and_changes_nothing_else() -> None:
    one, two = (hwsim.simulate("d2l-4gpu-pcie", WORKLOAD, set=given) for given in ({}, {"n": 4}))
    assert two.makespan_s == pytest.approx(2 * one.makespan_s)
    assert two.settings == (("n", "4"),)
    assert hwsim.simulate("d2l-4gpu-pcie", WORKLOAD).makespan_s == one.makespan_s


def test_what_is_loaded_cannot_be_set() -> None:
    with pytest.raises(TypeError, match="a loaded machine or workload cannot be changed"):
        hwsim.simulate(api.load_machine("d2l-4gpu-pcie"), WORKLOAD, set={"n": 3})


def test_mistakes_of_settings_come_together() -> None:
    with pytest.raises(hwsim.SpecError) as caught:
        hwsim.simulate("d2l-4gpu-pcie", WORKLOAD, set={"m": 1, "machine.gpux.count": 2})
    assert len(caught.value.mistakes) == 2


def test_a_violated_expectation_carries_the_run() -> None:
    with pytest.raises(api.ExpectationFailed, match=r"makespan 10 ms \+- 1 %: it is 5\.005 ms") as caught:
        hwsim.simulate("d2l-4gpu-pcie", TEXT.replace("160 MB", "80 MB"))
    assert caught.value.run.makespan_s == pytest.approx(0.005005)
    run = hwsim.simulate("d2l-4gpu-pcie", TEXT.replace("160 MB", "80 MB"), expect=False)
    assert [verdict.status for verdict in run.verdicts] == ["skipped"]


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        ("{makespn: 3 ms +- 1 %}", "did you mean 'makespan'"),
        ("{makespan: 3 ms}", "has no tolerance"),
        ("{makespan: 3 GB +- 1 %}", "expected a time, got a size"),
        ("{makespan: [1]}", "expected a text, got a list"),
        ("{machine: 3, makespan: at most 1 s}", "expected the name of a machine"),
        ("3 ms", "expected a mapping"),
    ],
)
def test_an_expectation_that_cannot_be_read_is_a_mistake(expect: str, said: str) -> None:
    with pytest.raises(hwsim.SpecError, match=said):
        hwsim.simulate("d2l-4gpu-pcie", TEXT.partition("expect")[0] + f"expect: {expect}\n")


def test_a_run_travels_between_processes() -> None:
    run = hwsim.simulate("d2l-4gpu-pcie", TEXT)
    assert pickle.loads(pickle.dumps(run)).to_json(ops=True) == run.to_json(ops=True)


def test_progress_is_told_at_the_end_at_least() -> None:
    told: list[tuple[int, int]] = []
    big = {"hwsim": "workload/1", "program": [{"repeat": {"times": 60000, "do": [{"busy": {"device": "cpu", "time": "1 us"}}]}}]}
    hwsim.simulate("d2l-laptop", big, progress=lambda done, known: told.append((done, known)))
    assert told
    assert all(0 < done <= known for done, known in told)


def test_mistakes_of_a_workload_come_with_those_of_its_machine() -> None:
    machine = {"hwsim": "machine/1", "class": "ideal", "parts": {"gpu": {"kind": "gpu", "use": "d2l-gpus"}}}
    workload = {"hwsim": "workload/1", "program": [{"busy": {"device": "gpu", "time": "15 MB"}}]}
    with pytest.raises(hwsim.SpecError) as raised:
        hwsim.simulate(machine, workload)
    assert "there is no gpu 'd2l-gpus'" in str(raised.value)
    assert "'15 MB' is a size, but a time is needed here" in str(raised.value)
