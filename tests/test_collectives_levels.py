"""Collectives as flows, step by step and as plans: where the levels agree, and by how much they may not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hwsim
from hwsim.communication import ALGORITHMS, RankGroup
from tests.test_collectives import walk

MIB = 1 << 20
PORT, HOP = 12.5e9, 1e-6  # of every link
STAR = """
hwsim: machine/1
class: ideal
parts:
  gpu: {{kind: gpu, count: {n}, flop: {{fp32: 1 TFLOP/s}}, memory: {{bandwidth: 100 TB/s}}}}
  switch: {{kind: switch}}
links: [{{name: ports, between: [switch, gpu*], kind: direct, bandwidth: 12.5 GB/s, latency: 1 us}}]
"""
CROSSBAR = ("ring", "direct", "halving-doubling", "recursive-doubling", "binomial-tree", "ps-gpu0", "ps-sharded", "torus")


def allreduce(size: float, algorithm: str = "ring", **keys: Any) -> dict[str, Any]:
    return {"allreduce": {"among": "gpu*", "bytes": f"{size!r} B", "algorithm": algorithm, **keys}}


def run(n: int, *statements: dict[str, Any], machine: str = STAR, **top: Any) -> Any:
    return hwsim.simulate(machine.format(n=n), {"hwsim": "workload/1", "program": list(statements), **top})


def both(n: int, size: float, algorithm: str = "ring", *others: dict[str, Any], **top: Any) -> tuple[float, float]:
    """(as flows, step by step): when the collective ends, whatever else goes on."""
    found = []
    for steps in ("steady", "explicit"):
        timeline = run(n, allreduce(size, algorithm, steps=steps), *others, **top).timeline
        labels = timeline.flat.graph.labels
        mine = [index for index, label in enumerate(timeline.flat.label.tolist()) if labels[label].name.startswith("allreduce")]
        found.append(float(timeline.end[mine].max()) / 1e15)
    return found[0], found[1]


# ---- the engine and the plans


@given(name=st.sampled_from(CROSSBAR), n=st.integers(2, 12), size=st.integers(1, 64 * MIB))
@settings(max_examples=25)
def test_as_flows_the_engine_is_within_a_femtosecond_of_its_plan(name: str, n: int, size: int) -> None:
    closed = walk(ALGORITHMS[name].plan("all-reduce", RankGroup(n)), size, 2 * HOP, PORT)
    timeline = run(n, allreduce(size, name)).timeline
    assert timeline.makespan_fs == pytest.approx(closed * 1e15, abs=len(timeline.end) + 1, rel=1e-15)


@given(name=st.sampled_from(CROSSBAR), n=st.sampled_from([2, 4, 8]), size=st.integers(1, 64 * MIB))
@settings(max_examples=15)
def test_step_by_step_the_engine_is_within_a_femtosecond_a_step_of_its_plan(name: str, n: int, size: int) -> None:
    plan = ALGORITHMS[name].plan("all-reduce", RankGroup(n))
    fs = walk(plan, size, 2 * HOP, PORT) * 1e15
    assert run(n, allreduce(size, name, steps="explicit")).timeline.makespan_fs == pytest.approx(fs, abs=plan.steps + 1)


SIMGRID = {8: 0.014028000, 64: 0.016002000, 256: 0.016957500}  # s; a ring of 100 MB on this star, 3.32, model CM02


@pytest.mark.parametrize("n", [8, 64, pytest.param(256, marks=pytest.mark.slow)])
def test_step_by_step_a_ring_ends_when_simgrid_ends_it(n: int) -> None:
    whole_bytes = n * (100_000_000 // n)  # its chunks are
    assert run(n, allreduce(whole_bytes, steps="explicit")).makespan_s == pytest.approx(SIMGRID[n], rel=1e-9)


# ---- flows and single sends


def test_flows_count_the_steps_that_fill_a_tree_as_full_ones() -> None:
    flows, steps = both(8, 64 * MIB, "double-tree")
    assert steps <= flows <= 1.06 * steps


def background(size: float) -> dict[str, Any]:
    return {"copy": {"from": "gpu0", "to": "gpu1", "bytes": f"{size!r} B", "queue": "background"}}


@pytest.mark.parametrize("n", [4, 8, 16])
@pytest.mark.parametrize("part", [0.5, 1, 20])
def test_flows_beside_steady_traffic_are_at_most_a_tenth_too_fast(n: int, part: float) -> None:
    flows, steps = both(n, 16 * MIB, "ring", background(part * 16 * MIB))
    assert 0.9 * steps <= flows <= 1.02 * steps


def moving(n: int, whole: float, windows: float, speed: str) -> list[dict[str, Any]]:
    """One link after the other is slow, each for a part of the time."""
    each = whole / n * windows
    return [
        {"at": f"{rank * each!r} s", "link": "ports", "of": f"gpu{rank}", "speed": speed, "for": f"{each!r} s"}
        for rank in range(n)
    ]


@pytest.mark.parametrize("n", [4, 8, 16])
@pytest.mark.parametrize("windows", [0.5, 1, 2, 4])
def test_flows_are_never_too_fast_when_congestion_moves_along_the_ring(n: int, windows: float) -> None:
    whole = 2 * (n - 1) / n * 64 * MIB / PORT
    flows, steps = both(n, 64 * MIB, events=moving(n, whole, windows, "50 %"))
    assert (1 - 2e-3) * steps <= flows <= 1.15 * steps  # 2e-3: the latencies of the steps, which pass while a link is slow


def test_flows_are_too_slow_by_a_quarter_when_the_moving_congestion_leaves_a_tenth() -> None:
    whole = 2 * 15 / 16 * 64 * MIB / PORT
    flows, steps = both(16, 64 * MIB, events=moving(16, whole, 1, "10 %"))
    assert steps <= flows <= 1.26 * steps


# ---- laws


def test_two_collectives_on_the_same_links_take_as_long_as_both_one_after_the_other() -> None:
    one = run(8, allreduce(64 * MIB)).makespan_s
    two = run(8, allreduce(64 * MIB, name="a", queue="a"), allreduce(64 * MIB, name="b", queue="b")).makespan_s
    assert two == pytest.approx(2 * one, rel=2e-3)  # their latencies pass side by side


@pytest.mark.parametrize("steps", ["steady", "explicit"])
@pytest.mark.parametrize("part", [0.3, 1.0, 3.0])
def test_the_fullest_link_works_until_it_is_done(steps: str, part: float) -> None:
    size = 256 * MIB
    made = run(4, allreduce(size, steps=steps), background(part * size))
    through = 2 * 3 / 4 * size + part * size
    latency = 6 * 2 * HOP
    assert through / PORT <= made.makespan_s <= through / PORT * 1.001 + latency


UNEVEN = """
hwsim: machine/1
class: ideal
parts:
  gpu: {{kind: gpu, count: 4, flop: {{fp32: 1 TFLOP/s}}, memory: {{bandwidth: 100 TB/s}}}}
  switch: {{kind: switch}}
links:
{links}
"""


def uneven(rates: list[float], algorithm: str, steps: str) -> int:
    links = "\n".join(
        f"  - {{between: [switch, gpu{rank}], kind: direct, bandwidth: {rate!r} GB/s, latency: 1 us}}"
        for rank, rate in enumerate(rates)
    )
    workload = {"hwsim": "workload/1", "program": [allreduce(8e6, algorithm, steps=steps)]}
    return int(hwsim.simulate(UNEVEN.format(links=links), workload).timeline.makespan_fs)


@given(
    rates=st.lists(st.floats(1.0, 100.0), min_size=4, max_size=4),
    faster=st.integers(0, 3),
    by=st.floats(1.0, 10.0),
    case=st.sampled_from(
        [("ring", "steady"), ("ring", "explicit"), ("direct", "steady"), ("double-tree", "steady"), ("ps-sharded", "explicit")]
    ),
)
@settings(max_examples=25)
def test_a_faster_link_never_slows_a_lone_collective(rates: list[float], faster: int, by: float, case: tuple[str, str]) -> None:
    before = uneven(rates, *case)
    better = [rate * by if rank == faster else rate for rank, rate in enumerate(rates)]
    assert uneven(better, *case) <= before + 16  # fs: of rounding each step


# ---- arrivals


def arriving(late: list[int], steps: str) -> tuple[int, dict[str, int]]:
    """(when it ends, how long each rank is in it), in fs, if rank r comes after late[r] us."""
    after = " + ".join(f"{wait} us * max(0, 1 - ($rank - {rank}) * ($rank - {rank}))" for rank, wait in enumerate(late))
    busy = {"busy": {"device": "$self", "time": after, "writes": "g"}}
    reduced = {"allreduce": {**allreduce(MIB, steps=steps)["allreduce"], "reads": "g"}}
    workload = {"hwsim": "workload/1", "program": {"each": "gpu*", "do": [busy, reduced]}}
    timeline = hwsim.simulate(STAR.format(n=len(late)), workload).timeline
    came: dict[str, int] = {}
    left: dict[str, int] = {}
    for index, number in enumerate(timeline.flat.label.tolist()):
        label = timeline.flat.graph.labels[number]
        if label.kind == "arrive":
            came[label.device] = int(timeline.start[index])
        elif label.kind == "allreduce":
            left[label.device] = max(left.get(label.device, 0), int(timeline.end[index]))
    return timeline.makespan_fs, {device: left[device] - came[device] for device in came}


@given(late=st.lists(st.integers(0, 5000), min_size=2, max_size=6))
@settings(max_examples=10)
def test_each_rank_is_in_it_from_its_arrival_until_all_are_done(late: list[int]) -> None:
    alone = run(len(late), allreduce(MIB)).timeline.makespan_fs
    end, inside = arriving(late, "steady")
    assert end == max(late) * 10**9 + alone
    assert [inside[f"gpu{rank}"] for rank in range(len(late))] == [end - wait * 10**9 for wait in late]


@given(late=st.lists(st.integers(0, 5000), min_size=2, max_size=5))
@settings(max_examples=10)
def test_step_by_step_what_came_early_may_already_have_begun(late: list[int]) -> None:
    alone = run(len(late), allreduce(MIB, steps="explicit")).timeline.makespan_fs
    end, inside = arriving(late, "explicit")
    assert max(late) * 10**9 < end <= max(late) * 10**9 + alone + 16
    assert max(inside.values()) <= end - min(late) * 10**9
