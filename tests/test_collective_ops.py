"""Collectives in workloads: who meets, what waits for whom, and the figures of the text."""

from __future__ import annotations

from typing import Any

import pytest

import hwsim
from hwsim.spec import SpecError
from hwsim.workload.groups import CannotGroup, RankGroups

FOUR = "d2l-4gpu-pcie"
MESH = "p3.16xlarge"


def program(*statements: dict[str, Any], each: str = "", **top: Any) -> dict[str, Any]:
    body: Any = {"each": each, "do": list(statements)} if each else list(statements)
    return {"hwsim": "workload/1", "program": body, **top}


def allreduce(**keys: Any) -> dict[str, Any]:
    return {"allreduce": {"among": "gpu*", "bytes": "160 MB", **keys}}


def busy(milliseconds: float, device: str = "$self", **keys: Any) -> dict[str, Any]:
    return {"busy": {"name": "work", "device": device, "time": f"{milliseconds} ms", **keys}}


def seconds(machine: str, workload: dict[str, Any]) -> float:
    return hwsim.simulate(machine, workload).timeline.makespan


@pytest.mark.parametrize(("algorithm", "milliseconds"), [("ps-gpu0", 60), ("ps-cpu", 80), ("ps-sharded", 15), ("ring", 15)])
def test_the_text_s_four_gpus_synchronise_as_it_says(algorithm: str, milliseconds: float) -> None:
    run = hwsim.simulate(FOUR, program(allreduce(algorithm=algorithm)))
    assert run.timeline.makespan == pytest.approx(milliseconds / 1e3, rel=0.01)


ANY = ("ring", "ps-gpu0", "ps-sharded", "direct", "halving-doubling", "double-tree", "binomial-tree")


@pytest.mark.parametrize("algorithm", ANY)
def test_explicit_steps_on_an_idle_machine_agree_with_flows(algorithm: str) -> None:
    steady, explicit = (seconds(FOUR, program(allreduce(algorithm=algorithm, steps=steps))) for steps in ("steady", "explicit"))
    assert 0.5 * steady <= explicit <= 1.26 * steady  # a send need not wait for a round: it may help, or get in the way


def test_a_ring_step_by_step_is_the_ring_as_a_flow() -> None:
    levels = [seconds(MESH, program(allreduce(algorithm="rings-both-ways", steps=steps))) for steps in ("steady", "explicit")]
    assert levels[1] == pytest.approx(levels[0], rel=0.02)


def test_under_each_it_is_one_collective_that_waits_for_the_last_to_come() -> None:
    alone = hwsim.simulate(FOUR, program(allreduce())).timeline.makespan
    late = program(busy(0), allreduce(), each="gpu*")
    assert hwsim.simulate(FOUR, late).timeline.makespan == pytest.approx(alone)
    skewed = program({"busy": {"device": "$self", "time": "10 ms * $rank", "writes": "g"}}, allreduce(updates="g"), each="gpu*")
    assert hwsim.simulate(FOUR, skewed).timeline.makespan == pytest.approx(0.030 + alone)


def test_a_program_per_node_has_a_collective_of_its_own() -> None:
    machine = """
hwsim: machine/1
parts:
  node: {kind: machine, use: d2l-4gpu-pcie, count: 2}
"""
    run = hwsim.simulate(machine, program(allreduce(), each="node*"))
    assert run.timeline.makespan == pytest.approx(0.015, rel=0.01)  # side by side
    assert len([each for each in run.usage if "slots" in each.capacity and each.moved > 0]) == 16


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


def test_buckets_overlap_what_makes_them() -> None:
    backward = {"busy": {"name": "backward", "device": "$self", "time": "20 ms"}}
    pieces = {"compute": {"name": "backward", "device": "$self", "flop": "0.3 TFLOP", "pieces": 8}}
    whole = hwsim.simulate(FOUR, program(pieces, {"wait": "backward"}, allreduce(), each="gpu*")).timeline.makespan
    hidden = hwsim.simulate(FOUR, program(pieces, allreduce(overlaps="backward"), each="gpu*")).timeline.makespan
    alone = hwsim.simulate(FOUR, program(pieces, each="gpu*")).timeline.makespan
    assert hidden < whole
    assert hidden >= max(alone, 0.015)
    assert hidden == pytest.approx(alone + 0.015 / 8, rel=0.01) or hidden >= 0.015
    with pytest.raises(SpecError, match="'backward' does not come in pieces"):
        hwsim.simulate(FOUR, program(backward, allreduce(overlaps="backward"), each="gpu*"))


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
    with pytest.raises(SpecError, match="there is no algorithm 'rign'"):
        hwsim.simulate(FOUR, program(allreduce(algorithm="rign")))
    with pytest.raises(SpecError, match="does no all-to-all"):
        hwsim.simulate(FOUR, program({"alltoall": {"among": "gpu*", "bytes": "1 MB", "algorithm": "ring"}}))
    with pytest.raises(SpecError, match="root 'cpu' does not take part"):
        hwsim.simulate(FOUR, program({"broadcast": {"among": "gpu*", "bytes": "1 MB", "root": "cpu"}}))


def test_groups_divide_or_say_why_not() -> None:
    assert RankGroups(of=("x",), size=2, stride=2).parts("abcdefgh") == (("a", "c"), ("b", "d"), ("e", "g"), ("f", "h"))
    with pytest.raises(CannotGroup, match="7 members do not make groups of 2"):
        RankGroups(of=("x",), size=2).parts("abcdefg")
