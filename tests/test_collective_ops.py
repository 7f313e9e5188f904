"""Collectives in workloads: who meets, what waits for whom, and the figures of the text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hwsim
from hwsim.spec import SpecError
from hwsim.workload.groups import CannotGroup, RankGroups

FOUR = "d2l-4gpu-pcie"


def program(*statements: dict[str, Any], each: str = "", **top: Any) -> dict[str, Any]:
    body: Any = {"each": each, "do": list(statements)} if each else list(statements)
    return {"hwsim": "workload/1", "program": body, **top}


def allreduce(**keys: Any) -> dict[str, Any]:
    return {"allreduce": {"among": "gpu*", "bytes": "160 MB", **keys}}


def busy(milliseconds: float, device: str = "$self", **keys: Any) -> dict[str, Any]:
    return {"busy": {"name": "work", "device": device, "time": f"{milliseconds} ms", **keys}}


def seconds(machine: str, workload: dict[str, Any]) -> float:
    return hwsim.simulate(machine, workload).timeline.makespan


def test_a_program_per_node_has_a_collective_of_its_own() -> None:
    machine = """
hwsim: machine/1
class: ideal
parts:
  node: {kind: machine, use: d2l-4gpu-pcie, count: 2}
"""
    run = hwsim.simulate(machine, program(allreduce(), each="node*"))
    assert run.timeline.makespan == pytest.approx(0.015, rel=0.01)  # side by side
    assert len([usage for usage in run.usage if "slots" in usage.capacity and usage.moved > 0]) == 16


def test_groups_meet_apart() -> None:
    pairs = program(allreduce(among="pair"), each="gpu*", groups={"pair": {"of": "gpu*", "size": 2}})
    run = hwsim.simulate(FOUR, pairs)
    assert run.timeline.makespan == pytest.approx(160e6 / 16e9, rel=0.01)  # 2 (2 - 1) / 2 of the bytes each way


def test_a_program_alone_speaks_for_all_groups() -> None:
    pairs = program(allreduce(among="pair"), groups={"pair": {"of": "gpu*", "stride": 2}})
    assert hwsim.simulate(FOUR, pairs).timeline.makespan == pytest.approx(160e6 / 16e9, rel=0.01)


def test_a_member_without_a_program_is_named() -> None:
    with pytest.raises(SpecError, match=r"gpu3 never arrives at 'allreduce'"):
        hwsim.simulate(FOUR, program(allreduce(), each="gpu0..2"))


def test_only_what_comes_in_pieces_is_overlapped() -> None:
    backward = {"busy": {"name": "backward", "device": "$self", "time": "20 ms"}}
    with pytest.raises(SpecError, match="op 'backward' has no `pieces`"):
        hwsim.simulate(FOUR, program(backward, allreduce(overlaps="backward"), each="gpu*"))


def test_the_kind_of_an_algorithm_is_answered_with_its_names() -> None:
    with pytest.raises(SpecError, match=r"known: ps-cpu, ps-gpu0, ps-sharded, \{kind: parameter-server\}"):
        hwsim.simulate(FOUR, program(allreduce(algorithm="parameter-server")))


def test_two_collectives_of_one_program_run_one_after_the_other() -> None:
    twice = program(allreduce(name="a"), allreduce(name="b"), each="gpu*")
    assert hwsim.simulate(FOUR, twice).timeline.makespan == pytest.approx(0.030, rel=0.01)


def test_repeated_steps_are_the_same_as_written_out() -> None:
    body = [busy(3, writes="g"), allreduce(updates="g", name="grads")]
    written = hwsim.simulate(FOUR, program(*body * 5, each="gpu*"))
    looped = hwsim.simulate(FOUR, program({"repeat": {"times": 5, "do": body}}, each="gpu*"))
    assert looped.timeline.makespan_fs == written.timeline.makespan_fs


def test_a_runtime_issues_collectives_too() -> None:
    made = program(allreduce(), {"wait": "all"}, each="gpu*", runtime={"dispatch": "1 ms", "return": "2 ms"})
    assert hwsim.simulate(FOUR, made).timeline.makespan == pytest.approx(0.001 * 4 + 0.015 + 0.002 * 4, abs=0.011)


def test_bad_plans_are_said_at_their_place() -> None:
    with pytest.raises(SpecError, match="does not support all-to-all"):
        hwsim.simulate(FOUR, program({"alltoall": {"among": "gpu*", "bytes": "1 MB", "algorithm": "ring"}}))
    with pytest.raises(SpecError, match="root 'cpu' does not take part"):
        hwsim.simulate(FOUR, program({"broadcast": {"among": "gpu*", "bytes": "1 MB", "root": "cpu"}}))


def test_groups_divide_or_say_why_not() -> None:
    assert RankGroups(of=("x",), size=2, stride=2).parts("abcdefgh") == (("a", "c"), ("b", "d"), ("e", "g"), ("f", "h"))
    with pytest.raises(CannotGroup, match=r"7 members cannot be divided into groups of 2$"):
        RankGroups(of=("x",), size=2).parts("abcdefg")


# ---- the library of the machine

H100 = "p5.48xlarge"


def test_a_machine_with_measured_numbers_chooses_and_says_what_came_second() -> None:
    run = hwsim.simulate(H100, program(allreduce(name="grads")))
    (chosen,) = run.to_json()["collectives"]
    assert (chosen["op"], chosen["algorithm"], chosen["channels"]) == ("grads", "nvls, simple", 16)
    assert chosen["time_s"] == pytest.approx(run.timeline.makespan)
    assert chosen["runner_up_s"] > chosen["time_s"]
    assert "next best ring, simple" in str(run.timeline.flat.graph.costs[0].why[0].inputs[0][2])
    assert "grads: nvls, simple, 16 channels; next best ring, simple +" in run.summary(verbose=True)


def test_a_machine_without_takes_a_ring_and_chooses_nothing() -> None:
    run = hwsim.simulate(FOUR, program(allreduce()))
    assert run.to_json()["collectives"] == []
    assert run.timeline.makespan == pytest.approx(seconds(FOUR, program(allreduce(algorithm="ring"))), rel=0, abs=0)


def test_an_all_reduce_of_2_gib_on_eight_h100_is_what_was_measured() -> None:
    """Not fitted: aws-samples/aws-do-eks@701c554a6f00, nccl-test/README.md, 8019.8 us on p5.48xlarge."""
    assert seconds(H100, program(allreduce(bytes="2 GiB"))) == pytest.approx(8019.8e-6, rel=0.02)


def test_a_named_algorithm_takes_what_was_measured_of_it() -> None:
    machine = "hwsim: machine/1\nuse: p5.48xlarge\ncollectives: {use: h200}\n"
    times = {
        name: seconds(machine, program(allreduce(algorithm=name, bytes="1 GiB"))) for name in ("auto", "ring", "nvls", "direct")
    }
    assert times["auto"] == pytest.approx(times["nvls"])
    assert times["ring"] == pytest.approx(1.75 * 2**30 / 365.6e9, rel=0.02)  # NCCL_NVLS_ENABLE=0, 8 GiB on 8 H200
    assert times["direct"] > times["nvls"]


@pytest.mark.parametrize(
    "operation", ["all-to-all", "all-gather", "reduce-scatter", "broadcast", "reduce", "gather", "scatter", "barrier"]
)
@pytest.mark.parametrize("machine", [H100, FOUR])
def test_auto_knows_something_for_every_operation(operation: str, machine: str) -> None:
    body = {"collective": {"operation": operation, "among": "gpu*", "bytes": "64 MB", "algorithm": "auto"}}
    steady = seconds(machine, program(body))
    body["collective"]["steps"] = "explicit"
    for time in (steady, seconds(machine, program(body))):
        assert 0 < time < 0.1 or (operation == "barrier" and machine == FOUR)  # whose links have no latency


@pytest.mark.parametrize(("algorithm", "size"), [("ring", "256 MiB"), ("auto", "512 KiB")])
def test_single_sends_with_measured_numbers_take_as_long_as_the_estimate(algorithm: str, size: str) -> None:
    steady, explicit = (
        seconds(H100, program(allreduce(algorithm=algorithm, bytes=size, steps=steps))) for steps in ("steady", "explicit")
    )
    assert explicit == pytest.approx(steady, rel=1e-3 if algorithm == "ring" else 0.15)  # LL steps faster than the links' guess


def test_several_nodes_share_what_their_machine_says() -> None:
    machine = """
hwsim: machine/1
class: ideal
parts:
  node: {kind: machine, use: dgx-h100, count: 2}
  fabric: {kind: switch}
links: [{between: [node*.nic*, fabric], kind: infiniband, use: ndr400}]
"""
    across = hwsim.simulate(machine, program(allreduce(among="node*.gpu*", bytes="1 GiB")))
    inside = hwsim.simulate(machine, program(allreduce(among="node0.gpu*", bytes="1 GiB")))
    assert across.to_json()["collectives"][0]["algorithm"].startswith("nvls-tree")
    assert inside.to_json()["collectives"][0]["algorithm"] == "nvls, simple"
    assert across.timeline.makespan > inside.timeline.makespan


def test_overheads_in_place_add_to_every_algorithm() -> None:
    plain = seconds(FOUR, program(allreduce(algorithm="ring")))
    more = {"machine.collectives": {"start": "1 ms", "step": "10 us", "efficiency": "80 %"}}
    slow = hwsim.simulate(FOUR, program(allreduce(algorithm="ring")), set=more).timeline.makespan
    assert slow == pytest.approx(plain / 0.8 + 1e-3 + 6 * 10e-6, rel=1e-3)
    assert "next best" in hwsim.simulate(FOUR, program(allreduce(algorithm="auto")), set=more).summary(verbose=True)


def test_mpi_among_cpus_takes_its_curve() -> None:
    machine = """
hwsim: machine/1
class: ideal
collectives: {mpi: {use: openmpi-ucx-edr}, nccl: {use: h200}}
parts:
  cpu: {kind: cpu, use: d2l-server-cpu, count: 4}
  switch: {kind: switch}
links: [{between: [cpu*, switch], kind: infiniband, rate: 100 Gb/s}]
"""
    from hwsim.communication.measured import measured
    from hwsim.machine.libraries.mpi import Mpi

    mpi = measured(Mpi, "openmpi-ucx-edr")
    for kind, operation, size in (("allreduce", "all-reduce", 1e6), ("alltoall", "all-to-all", 4e6)):
        body = {kind: {"among": "cpu*", "bytes": f"{size:.0f} B"}}
        counted = size / 4 if operation == "all-to-all" else size
        assert seconds(machine, program(body)) == pytest.approx(mpi.seconds(operation, 4, counted), rel=0.05)
    assert seconds(machine, program({"allreduce": {"among": "cpu*", "bytes": "1 MB", "algorithm": "ring"}})) > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{use: h20}", "there is no collectives 'h20'"),
        ("{kind: ncll, start: 1 us}", "unknown kind of library 'ncll'"),
        ("{start: 1 GB}", "but a time is needed here"),
        ("h200", "`collectives` is 'h200': expected a mapping"),
        ("{nccl: {kind: mpi, use: openmpi-ucx-edr}}", "expected kind nccl, got mpi"),
    ],
)
def test_mistakes_in_collectives_are_said(text: str, message: str) -> None:
    machine = f"""
hwsim: machine/1
class: ideal
collectives: {text}
parts: {{gpu: {{kind: gpu, use: d2l-gpu}}}}
"""
    with pytest.raises(SpecError, match=message):
        hwsim.simulate(machine, program({"busy": {"device": "gpu", "time": "1 s"}}))


# ---- algorithms written in a workload


def test_a_plan_of_ones_own_runs_and_a_wrong_one_is_refused_at_its_steps() -> None:
    pair = {"kind": "written", "operation": "all-reduce", "ranks": 2, "chunks": 1}
    there, back = {"from": 0, "to": 1, "chunk": 0, "reduce": True}, {"from": 1, "to": 0, "chunk": 0}
    among = {"among": "gpu0..1"}
    good = program(allreduce(algorithm={**pair, "steps": [[there], [back]]}, **among))
    assert seconds(FOUR, good) == pytest.approx(2 * 160e6 / 16e9, rel=0.01)
    with pytest.raises(SpecError, match="ranks 1 missing") as refused:
        hwsim.simulate(
            FOUR, yaml_of("{kind: written, operation: all-reduce, ranks: 2, chunks: 1, steps: [[{from: 0, to: 1, chunk: 0}]]}")
        )
    assert "steps:" in str(refused.value)
    with pytest.raises(SpecError, match="expected a plan for all-reduce among 4 ranks"):
        hwsim.simulate(FOUR, program(allreduce(algorithm={**pair, "steps": [[there], [back]]})))


def yaml_of(algorithm: str) -> str:
    return f"""
hwsim: workload/1
program:
  - allreduce:
      among: gpu0..1
      bytes: 160 MB
      algorithm: {algorithm}
"""


def test_servers_beside_the_workers_and_rings_both_ways() -> None:
    machine = """
hwsim: machine/1
class: ideal
parts:
  gpu: {kind: gpu, use: d2l-gpu, count: 4}
  server: {kind: cpu, use: d2l-server-cpu, count: 4}
  switch: {kind: switch}
links: [{between: [[gpu*, server*], switch], kind: direct, bandwidth: 16 GB/s}]
"""
    beside = {"kind": "parameter-server", "servers": 4, "on": "beside", "at": "server*"}
    assert seconds(machine, program(allreduce(algorithm=beside))) == pytest.approx(2 * 160e6 / 16e9, rel=0.02)
    two = {**beside, "servers": 2}
    assert seconds(machine, program(allreduce(algorithm=two))) == pytest.approx(4 * 160e6 / 16e9, rel=0.02)
    assert seconds(FOUR, program(allreduce(algorithm={"kind": "ring", "both": True}))) == pytest.approx(0.015, rel=0.01)


@pytest.mark.parametrize(
    ("algorithm", "message", "at"),
    [
        ("{kind: parameter-server, servers: 4, on: beside, at: nobody*}", "nobody", "among"),
        ("{kind: parameter-server, servers: 9}", "9 servers exceed 2 workers", "algorithm"),
        ("{kind: parameter-server, at: cpu}", "`at` names separate devices", "algorithm"),
        ("{kind: ring, bth: true}", "unknown key 'bth'", "algorithm"),
        ("{kind: rign}", "unknown kind of algorithm 'rign'", "algorithm"),
        ("autp", "did you mean 'auto'", "algorithm"),
    ],
)
def test_what_is_wrong_with_an_algorithm_is_said_where_it_stands(algorithm: str, message: str, at: str) -> None:
    with pytest.raises(SpecError, match=message) as refused:
        hwsim.simulate(FOUR, yaml_of(algorithm))
    assert at == "among" or "algorithm:" in str(refused.value)


@pytest.mark.parametrize("machine", [FOUR, H100])
def test_uneven_parts_take_as_long_as_the_largest(machine: str) -> None:
    def gather(**keys: Any) -> dict[str, Any]:
        return program({"allgather": {"among": "gpu0..3", "bytes": "400 MB", "algorithm": "ring", **keys}})

    even = seconds(machine, gather(skew=[1, 1, 1, 1]))
    assert even == pytest.approx(seconds(machine, gather()), rel=0.01)
    assert seconds(machine, gather(skew=[3, 1, 1, 1])) > 1.05 * even
    with pytest.raises(SpecError, match="2 weights for 4 ranks"):
        hwsim.simulate(machine, gather(skew=[1, 2]))


# ---- beside other work


@pytest.mark.parametrize("algorithm", ["pairwise", "direct"])
@pytest.mark.parametrize("steps", ["steady", "explicit"])
def test_an_all_to_all_by_a_matrix_is_that_of_its_rows_where_they_are_even(algorithm: str, steps: str) -> None:
    def exchanged(**keys: Any) -> float:
        keys |= {"among": "gpu*", "bytes": "64 MB", "algorithm": algorithm, "steps": steps}
        return seconds(FOUR, program({"alltoall": keys}))

    even, skew = [1, 1, 1, 1], [5, 1, 2, 0]
    assert exchanged(matrix=[even] * 4) == pytest.approx(exchanged(), rel=1e-12)
    assert exchanged(matrix=[[weight] * 4 for weight in skew]) == pytest.approx(exchanged(skew=skew), rel=1e-12)
    hot = exchanged(matrix=[[1, 1, 1, 5]] * 4)  # the last receives what the first of `skew` sends
    assert hot == pytest.approx(exchanged(skew=[1, 1, 1, 5]), rel=1e-12)
    assert exchanged(matrix=[[0, 0, 0, 1], *[[0, 0, 0, 0]] * 3]) == pytest.approx(4 * 64e6 / 16e9, rel=1e-3)  # a single copy


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1, 1], [1, 1]], "`matrix` has 2 rows, one of 2 numbers: expected 4 x 4"),
        ([[1, 1, 1, 1]] * 3 + [[1]], "`matrix` has 4 rows, one of 1 numbers: expected 4 x 4"),
        ([[0] * 4] * 4, "the matrix is all zeros"),
    ],
)
def test_a_matrix_that_cannot_be(matrix: list[list[int]], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        hwsim.simulate(FOUR, program({"alltoall": {"among": "gpu*", "bytes": "64 MB", "matrix": matrix}}))


def test_a_kernel_beside_an_all_reduce_is_slower_by_the_multiprocessors_it_holds() -> None:
    work = {"compute": {"name": "work", "device": "$self", "flop": "400 GFLOP", "dtype": "fp16"}}
    alone = hwsim.simulate(H100, program(work, each="gpu*"))
    both = hwsim.simulate(H100, program(allreduce(bytes="16 GiB"), work, each="gpu*"))

    def took(run: hwsim.Run) -> float:
        return max(row.duration_s for row in run.ops if row.name == "work")

    assert took(both) == pytest.approx(took(alone) / (1 - 16 / 132), rel=0.01)


def test_waiting_for_the_last_to_arrive_is_part_of_each_rank_s_slice(tmp_path: Path) -> None:
    skewed = program({"busy": {"device": "$self", "time": "10 ms * $rank", "writes": "g"}}, allreduce(updates="g"), each="gpu*")
    run = hwsim.simulate(FOUR, skewed)
    rows = [row for row in run.ops if row.name == "allreduce"]
    assert [row.device for row in rows] == ["gpu0", "gpu1", "gpu2", "gpu3"]
    assert [row.start_s for row in rows] == pytest.approx([0, 0.01, 0.02, 0.03])
    assert [row.waiting_s for row in rows] == pytest.approx([0.03, 0.02, 0.01, 0])
    assert {row.end_s for row in rows} == {run.timeline.makespan}
    assert "allreduce: wait" in str(run)
    assert not [row for row in run.ops if row.kind == "arrive"]
    events = json.loads(run.trace(tmp_path / "run.json").read_text("utf-8"))["traceEvents"]
    slices = [event for event in events if event.get("args", {}).get("name") == "allreduce"]
    assert [slice_["args"].get("waiting_us", 0) for slice_ in slices] == [30000, 20000, 10000, 0]
    assert [event["ts"] for event in slices] == [0, 10000, 20000, 30000]
