"""A folded run is the run with all its ranks, bit for bit: every op of every rank, every capacity."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hwsim
from hwsim.api import Run, prepare
from hwsim.communication.algorithms import Algorithm
from hwsim.communication.algorithms.halving_doubling import HalvingDoubling
from hwsim.communication.algorithms.hierarchical import Hierarchical
from hwsim.communication.algorithms.ring import RingAlgorithm
from hwsim.communication.plan import Operation, RankGroup
from hwsim.communication.rounds import Round
from hwsim.communication.steps import ExplicitSend, _Order, explicit_sends
from hwsim.demand import Cost
from hwsim.graph.fold import Fold, quotient
from hwsim.results.differences import differences
from hwsim.spec import SpecError
from tests import command
from tests.each import each
from tests.present import present

Spec = dict[str, Any]


def cluster(
    nodes: int = 4, gpus: int = 4, *, rails: bool = False, pods: int = 1, slow_spine: bool = False, slow: int | None = None
) -> Spec:
    """Nodes of GPUs on a switch, a host, a card (or one for each GPU), under one leaf or under two and a spine.

    slow: the node whose card has half the rate.
    """
    several = gpus > 1
    gpu = "gpu*" if several else "gpu"

    def link(name: str, ends: list[str], rate: str, **more: Any) -> Spec:
        return {"name": name, "between": ends, "kind": "direct", "bandwidth": rate, "latency": "1 us", **more}

    def node(rate: str) -> Spec:
        cards = ["gpu*", "nic*"] if rails and several else ["gpu" if rails else "cpu", "nic"]
        return {
            "kind": "machine",
            "parts": {
                "cpu": {"kind": "cpu", "cores": 16, "flop": {"fp32": "500 GFLOP/s"}, "memory": {"bandwidth": "100 GB/s"}},
                "gpu": {"kind": "gpu", "flop": {"fp32": "10 TFLOP/s"}, "memory": {"bandwidth": "1000 GB/s"}, **count(gpus)},
                "nvs": {"kind": "switch"},
                "nic": {"kind": "nic", "bandwidth": rate, "latency": "1 us", **count(gpus if rails else 1)},
            },
            "links": [
                link("nv", ["nvs", gpu], "100 GB/s"),
                link("slot", ["cpu", gpu], "16 GB/s"),
                link("card", cards, "32 GB/s", **({"per": 1} if rails and several else {})),
            ],
        }

    card = ".nic*" if rails and several else ".nic"
    parts: Spec = {"leaf": {"kind": "switch", **count(pods)}}
    links: list[Spec] = []
    families = {"node": list(range(nodes))} if slow is None else {"node": list(range(nodes - 1)), "other": [0]}
    for family, members in families.items():
        parts[family] = {**node("25 GB/s" if family == "node" else "12.5 GB/s"), **count(len(members))}
        own = "*" if len(members) > 1 else ""
        if pods == 1:
            links.append(wire("fabric", "leaf", f"{family}{own}{card}", "25 GB/s"))
        else:
            half = len(members) // 2
            for pod, few in enumerate((members[:half], members[half:])):
                links.append(wire("fabric", f"leaf{pod}", f"{family}{few[0]}..{few[-1]}{card}", "25 GB/s"))
    if pods > 1:
        parts["spine"] = {"kind": "switch"}
        links.append(wire("up", "spine", "leaf*", "10 GB/s" if slow_spine else "800 GB/s"))
    return {"hwsim": "machine/1", "class": "ideal", "name": "cluster", "parts": parts, "links": links}


def count(number: int) -> Spec:
    return {"count": number} if number > 1 else {}


def wire(name: str, a: str, b: str, rate: str) -> Spec:
    return {"name": name, "between": [a, b], "kind": "direct", "bandwidth": rate, "latency": "2 us"}


def program(*statements: Spec, each: str = "gpu*", **top: Any) -> Spec:
    return {"hwsim": "workload/1", "program": {"each": each, "do": list(statements)}, **top}


def both(machine: Spec | str, workload: Spec) -> tuple[Run, Run]:
    """Folded, and with all ranks."""
    folded, whole = (hwsim.simulate(machine, workload, fold=how, expect=False) for how in ("always", "never"))
    return folded, whole


def classes(run: Run) -> list[int]:
    alike = run.timeline.flat.graph.alike
    assert alike is not None, run.timeline.flat.graph.unfolded
    return sorted(size for _, size in alike.classes())


STEP: list[Spec] = [
    {"matmul": {"name": "forward", "m": 1024, "n": 1024, "k": 1024, "writes": {"y": "4 MB"}}},
    {"copy": {"name": "save", "from": "$self", "to": "cpu", "bytes": "1 MB", "reads": "y"}},
    {"allreduce": {"name": "sum", "among": "gpu*", "bytes": "10 MB", "algorithm": "ring"}},
]

statement = st.one_of(
    st.just({"matmul": {"name": "mm", "m": 2048, "n": 2048, "k": 2048, "writes": {"y": "16 MB"}}}),
    st.sampled_from(["1 ms", "10 us * ($rank + 1)", "1 ms * ($rank % 2 + 1)"]).map(
        lambda time: {"busy": {"name": "work", "device": "$self", "time": time}}
    ),
    st.just({"busy": {"name": "host", "device": "cpu", "time": "1 ms"}}),
    st.just({"copy": {"name": "out", "from": "$self", "to": "cpu", "bytes": "16 MB"}}),
    st.just({"copy": {"name": "in", "from": "cpu", "to": "$self", "bytes": "16 MB", "writes": {"z": "16 MB"}}}),
    st.just({"wait": "all"}),
    st.just({"barrier": "all"}),
    st.builds(
        lambda kind, **keys: {kind: {"name": "all", "bytes": "10 MB", **keys}},
        st.sampled_from(["allreduce", "allgather", "reduce-scatter"]),
        among=st.sampled_from(["gpu*", "world", "world"]),
        algorithm=st.sampled_from(["ring", "halving-doubling", "hierarchical", "rings-both-ways"]),
        steps=st.sampled_from(["steady", "explicit"]),
        chunks=st.sampled_from([1, 1, 2]),
    ),
    st.builds(
        lambda **keys: {"allreduce": {"name": "some", "bytes": "10 MB", "algorithm": "ring", **keys}},
        among=st.sampled_from(["tp", "dp"]),
        steps=st.sampled_from(["steady", "explicit"]),
    ),
)  # fmt: skip

events: st.SearchStrategy[list[Spec]] = st.one_of(
    st.just([]),
    st.just([]),
    st.just([{"at": "1 ms", "part": "node0.gpu0", "speed": "50 %"}]),
    st.just(
        [
            {"at": "0 s", "link": "fabric", "of": "node1.nic*", "speed": "30 %"},
            {"at": "2 ms", "part": "node*.gpu0", "speed": "90 %"},
        ]
    ),
)  # fmt: skip


@st.composite
def cases(draw: st.DrawFn, most: int) -> tuple[Spec, Spec]:
    gpus = draw(st.sampled_from([2, 4, 8]))
    nodes = draw(st.sampled_from([n for n in (2, 3, 4, 8, 16, 32) if n * gpus <= most]))
    pods = draw(st.sampled_from([1, 2])) if nodes % 2 == 0 and nodes > 2 else 1
    slow = draw(st.sampled_from([None, None, 0])) if pods == 1 and nodes > 2 else None
    machine = cluster(nodes, gpus, rails=draw(st.booleans()), pods=pods, slow_spine=draw(st.booleans()), slow=slow)
    body = draw(st.lists(statement, min_size=1, max_size=4))
    times = draw(st.integers(1, 3))
    top: Spec = {
        "groups": {"world": {"of": "gpu*"}, "tp": {"of": "gpu*", "size": gpus}, "dp": {"of": "gpu*", "stride": gpus}},
        "events": draw(events),
    }
    if draw(st.booleans()):
        top["runtime"] = {"dispatch": "10 us", "return": "5 us", "queue_depth": 4}
    return machine, program({"repeat": {"times": times, "do": body}}, **top)


def assert_same(machine: Spec, workload: Spec) -> None:
    folded, whole = both(machine, workload)
    if folded.timeline.flat.graph.alike is None:
        assert (folded.timeline.end == whole.timeline.end).all()
        return
    assert not list(differences(folded.timeline, whole.timeline))
    peaks = {memory.device: memory.peak for memory in whole.memory}
    assert all(peaks[memory.device] == memory.peak for memory in folded.memory)
    assert folded.ops.total == whole.ops.total


@given(cases(16))
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_a_folded_run_is_the_run_with_all_ranks(case: tuple[Spec, Spec]) -> None:
    assert_same(*case)


@pytest.mark.slow
@given(cases(256))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_folded_run_is_the_run_with_all_ranks_of_a_large_cluster(case: tuple[Spec, Spec]) -> None:
    assert_same(*case)


@pytest.mark.parametrize(
    ("machine", "found"),
    [
        (cluster(4, 4), [16]),
        (cluster(4, 4, rails=True), [16]),
        (cluster(4, 4, pods=2), [16]),  # the spine never binds
        (cluster(4, 4, slow=0), [4, 12]),
    ],
)
def test_equal_ranks_are_one_class(machine: Spec, found: list[int]) -> None:
    folded, whole = both(machine, program(*STEP))
    assert classes(folded) == found
    assert not list(differences(folded.timeline, whole.timeline))


def test_what_the_ranks_share_is_shared_by_all_of_them() -> None:
    folded, whole = both(cluster(1, 8), program({"copy": {"from": "$self", "to": "cpu", "bytes": "160 MB"}}))
    assert classes(folded) == [8]
    assert folded.timeline.makespan_fs == whole.timeline.makespan_fs
    alone = hwsim.simulate(cluster(1, 8), program({"copy": {"from": "$self", "to": "cpu", "bytes": "160 MB"}}, each="gpu0"))
    assert folded.makespan_s > 1.2 * alone.makespan_s


def test_a_straggler_makes_classes_and_changes_no_number() -> None:
    slow = [{"at": "1 ms", "part": "node1.gpu2", "speed": "50 %"}]
    folded, whole = both(cluster(4, 4), program({"repeat": {"times": 3, "do": STEP}}, events=slow))
    assert classes(folded) == [1, 3, 12]  # it, its neighbours at the host, everybody else
    assert not list(differences(folded.timeline, whole.timeline))


def test_the_ops_of_any_rank_have_its_own_names() -> None:
    folded, whole = both(cluster(4, 4), program(*STEP, runtime={"dispatch": "10 us", "return": "5 us"}))
    for rank in (0, 5, 15):
        one, other = folded.rank(rank), whole.rank(rank)
        assert [(row.name, row.device, row.queue, row.start_s, row.end_s) for row in one] == [
            (row.name, row.device, row.queue, row.start_s, row.end_s) for row in other
        ]
    with pytest.raises(IndexError):
        folded.rank(16)


def test_reports_of_a_folded_run_count_all_ranks() -> None:
    folded, whole = both(cluster(4, 4), program(*STEP))
    one, other = folded.to_json(), whole.to_json()
    assert one["op_count"] == other["op_count"]
    assert one["fold"] == {"ranks": 16, "classes": [{"program": "node0.gpu0", "ranks": 16}]}
    assert other["fold"] is None
    lines = [line for line in str(folded).splitlines() if not line.strip().startswith("ranks")]
    used = [line for line in str(whole).splitlines() if "not used" not in line and not line.startswith("    ")]
    assert [line for line in lines if line.strip().startswith(("forward", "save", "sum", "time"))] == [
        line for line in used if line.strip().startswith(("forward", "save", "sum", "time"))
    ]
    json.dumps(one)


# ---- step by step


@pytest.mark.parametrize("algorithm", ["ring", "halving-doubling", "hierarchical"])
def test_a_collective_send_by_send_is_folded_to_one_send_of_each_class(algorithm: str) -> None:
    send = {"allreduce": {"among": "node*.gpu*", "bytes": "10 MB", "algorithm": algorithm, "steps": "explicit"}}
    alone = {"hwsim": "workload/1", "program": [send]}
    for workload in (alone, program(send, each="node*.gpu*")):
        folded, whole = both(cluster(4, 4), workload)
        assert not list(differences(folded.timeline, whole.timeline))
        assert folded.ops.total == whole.ops.total
        assert 3 * len(folded.timeline) <= len(whole.timeline)


STAR = """\
hwsim: machine/1
class: ideal
name: a star
parts:
  gpu: {{kind: gpu, count: {ranks}, flop: {{fp32: 1 TFLOP/s}}, memory: {{bandwidth: 1000 GB/s}}}}
  switch: {{kind: switch}}
links: [{{name: ports, between: [switch, gpu*], kind: direct, bandwidth: 12.5 GB/s, latency: 1 us}}]
"""


def test_two_million_sends_are_as_quick_as_two_thousand() -> None:
    star = STAR.format(ranks=1024)
    send = {"allreduce": {"among": "gpu*", "bytes": "100 MB", "algorithm": "ring", "steps": "explicit"}}
    run = hwsim.simulate(star, {"hwsim": "workload/1", "program": [send]})
    assert run.timeline.makespan_fs == 2046 * 9_812_500_000  # 1024 ranks, 2 us and 97,656.25 bytes a step
    assert run.to_json()["op_count"] == 2046 * 1024 + 1
    assert len(run.timeline) < 2100
    refused = r"2,095,104 explicit sends exceed the limit of 2,000,000 \(about 3.14 GB of memory\)"
    with pytest.raises(SpecError, match=refused):
        hwsim.simulate(star, {"hwsim": "workload/1", "program": [{"repeat": {"times": 2, "do": [send]}}]}, fold="never")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "ranks"), [("ring", 1000), ("halving-doubling", 1000), ("halving-doubling", 1024), ("rings-both-ways", 512)]
)
def test_a_thousand_ranks_folded_are_a_thousand_ranks(algorithm: str, ranks: int) -> None:
    steady = {"allreduce": {"among": "gpu*", "bytes": "100 MB", "algorithm": algorithm}}
    for workload in ({"hwsim": "workload/1", "program": [steady]}, program(STEP[0], steady)):
        folded, whole = both(STAR.format(ranks=ranks), workload)
        assert not list(differences(folded.timeline, whole.timeline))


@each("operation", ["all-reduce", "reduce-scatter", "all-gather"])
@each("algorithm", [RingAlgorithm(), RingAlgorithm(both=True), HalvingDoubling(), Hierarchical()])
@each("group", [RankGroup(2), RankGroup(5), RankGroup(8), RankGroup(6, (3, 3)), RankGroup(12, (4, 4, 4))])
@each("pieces", [1, 3])
def test_sends_of_steps_that_repeat_wait_for_what_those_of_the_plan_wait_for(
    algorithm: Algorithm, operation: Operation, group: RankGroup, pieces: int
) -> None:
    rounds = present(algorithm.repeated_steps(operation, group))
    plan = sorted(enumerate(explicit_sends(algorithm.plan(operation, group), 1e6, pieces=pieces)), key=way)
    other = sorted(enumerate(unrolled(rounds, 1e6, pieces)), key=way)
    number = {one: two for (one, _), (two, _) in zip(plan, other, strict=True)}
    before, mine = behind(plan), behind(other)
    for (one, send), (two, found) in zip(plan, other, strict=True):
        assert (send.step, send.source, send.target, send.reduce) == (found.step, found.source, found.target, found.reduce)
        assert send.size == pytest.approx(found.size)
        assert {number[predecessor] for predecessor in before[one]} == mine[two]


def unrolled(rounds: Sequence[Round], size: float, pieces: int) -> Iterator[ExplicitSend]:
    order = _Order(pieces)
    for step, stage in enumerate(round_ for round_ in rounds for _ in range(round_.times)):
        for source, target, share in stage.pairs:
            yield from order.message(step, source, target, share * size, stage.reduce)
        order.end_step()


def way(row: tuple[int, ExplicitSend]) -> tuple[int, int, int, int]:
    return row[1].step, row[1].source, row[1].target, row[0]


def behind(rows: list[tuple[int, ExplicitSend]]) -> dict[int, set[int]]:
    """All that each send waits for, directly or not."""
    found: dict[int, set[int]] = {}
    for one, send in sorted(rows):
        found[one] = set().union(*({predecessor, *found[predecessor]} for predecessor in send.after))
    return found


# ---- the command line, files


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    machine, workload = tmp_path / "star.yaml", tmp_path / "steps.yaml"
    machine.write_text(STAR.format(ranks=64))
    workload.write_text(json.dumps(program(*STEP[::2])))
    return str(machine), str(workload)


def test_fold_check_says_that_all_ops_are_the_same(files: tuple[str, str]) -> None:
    found = command.hwsim("simulate", *files, "--fold-check", "-q")
    assert "of 64 ranks are those of the" in found.stderr


def test_fold_check_exits_with_3_where_an_op_differs(files: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hwsim.results.differences.differences", lambda *_: iter(["op 3 of gpu5 is late"]))
    found = command.hwsim("simulate", *files, "--fold-check", "-q", code=3)
    assert "fold check: op 3 of gpu5 is late" in found.stderr


def test_any_rank_s_ops_can_be_asked_for(files: tuple[str, str]) -> None:
    rows = json.loads(command.hwsim("simulate", *files, "--json", "--ops", "--rank", "37").stdout)["ops"]
    assert {row["device"] for row in rows} == {"gpu37"}
    assert rows == [
        {**row, "op": mine["op"]}
        for mine, row in zip(
            rows,
            json.loads(command.hwsim("simulate", *files, "--json", "--ops", "--rank", "37", "--no-fold").stdout)["ops"],
            strict=True,
        )
    ]
    assert "0 to 63" in command.hwsim("simulate", *files, "--json", "--ops", "--rank", "64", code=2).stderr


def test_a_summary_says_which_ranks_were_simulated(files: tuple[str, str]) -> None:
    assert "64 in 1 class: gpu0 and 63 identical" in command.hwsim("simulate", *files).stdout
    assert "identical" not in command.hwsim("simulate", *files, "--no-fold").stdout


def test_a_folded_graph_goes_through_a_file(tmp_path: Path) -> None:
    graph = prepare(STAR.format(ranks=64), program(*STEP[::2])).graph
    read = hwsim.load_graph(hwsim.save_graph(graph, tmp_path / "graph.npz"))
    assert present(read.alike).classes() == present(graph.alike).classes() == (("gpu0", 64),)
    assert read.costs == graph.costs


# ---- what is refused


def test_jitter_leaves_nothing_to_fold_and_the_result_says_so() -> None:
    jitter = [{"at": "0 s", "part": "gpu*", "jitter": "5 %", "every": "1 ms", "for": "5 ms"}]
    run = hwsim.simulate(cluster(4, 4), program(*STEP, events=jitter), fold="always")
    assert run.timeline.flat.graph.alike is None
    assert "jitter is random" in run.timeline.flat.graph.unfolded
    assert "not-folded" in [warning.code for warning in run.warnings]
    assert "warning[not-folded]: all ranks are simulated: jitter is random" in str(run)


def test_one_rank_is_not_called_unlike_another() -> None:
    run = hwsim.simulate(
        cluster(1, 1), {"hwsim": "workload/1", "program": [{"busy": {"device": "node.gpu", "time": "1 ms"}}]}, fold="always"
    )
    assert (
        run.timeline.flat.graph.unfolded
        == "a single program issues all ops; folding (simulating one of several identical ranks) needs one program per rank"
    )


def test_pools_are_not_folded() -> None:
    stage = {"name": "read", "do": [{"busy": {"device": "node0.cpu", "time": "1 ms"}}]}
    jobs = {
        "load": {"pipeline": {"batches": 4, "stages": [stage]}},
        "work": {"program": {"each": "gpu*", "do": [{"busy": {"device": "$self", "time": "1 ms"}}]}},
    }  # fmt: skip
    run = hwsim.simulate(cluster(4, 4), {"hwsim": "workload/1", "jobs": jobs}, fold="always")
    assert run.timeline.flat.graph.alike is None
    assert "pools" in run.timeline.flat.graph.unfolded


def test_ranks_that_share_a_disk_are_all_counted_in_what_it_is_asked_for() -> None:
    machine = cluster(1, 8)
    parts = machine["parts"]["node"]["parts"]
    parts["disk"] = {"kind": "ssd", "use": "nvme-pm9a3", "size": "1 GB"}
    machine["parts"]["node"]["links"].append(wire("drive", "cpu", "disk", "4 GB/s"))
    folded, whole = both(machine, program({"write": {"to": "disk", "bytes": "200 MB"}}))
    assert classes(folded) == [8]
    assert folded.warnings == whole.warnings
    assert any("1.6 GB are written to" in warning.text for warning in whole.warnings)
    assert not list(differences(folded.timeline, whole.timeline))


def test_few_ranks_are_left_alone_unless_it_is_asked_for() -> None:
    assert hwsim.simulate(cluster(2, 2), program(*STEP)).timeline.flat.graph.alike is None
    assert hwsim.simulate(cluster(16, 4), program(*STEP)).timeline.flat.graph.alike is not None


# ---- a fold that is wrong is caught


def wrong(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    slow = [{"at": "1 us", "part": "node1.gpu2", "speed": "50 %"}]
    back = {"copy": {"name": "back", "from": "cpu", "to": "$self", "bytes": "9 MB"}}
    folded, whole = both(cluster(4, 4), program(*STEP, back, events=slow))
    monkeypatch.undo()
    return list(differences(folded.timeline, whole.timeline))


def test_the_check_finds_nothing_wrong_where_nothing_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not wrong(monkeypatch)


def test_a_wrong_multiplicity_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Fold.cost

    def once(self: Fold, op: int) -> Cost | None:
        cost = right(self, op)
        if cost is None or not cost.demand.times:
            return cost
        times = (max(1, cost.demand.times[0] - 1), *cost.demand.times[1:])
        return replace(cost, demand=replace(cost.demand, times=times))

    monkeypatch.setattr(Fold, "cost", once)
    assert wrong(monkeypatch)


def test_a_dropped_colour_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from hwsim.graph.fold import template

    monkeypatch.setattr(template, "_thing", lambda name, *_: name.translate(str.maketrans("", "", "0123456789")))
    monkeypatch.setattr(template, "_calm", lambda op, capacity, draw, draws, floors, lines, names, *_: np.zeros(len(names), bool))
    assert wrong(monkeypatch)


def test_classes_that_are_too_coarse_are_refused_without_a_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotient, "refine", lambda colours, ties, most=None: np.unique(colours, return_inverse=True)[1])
    machine = cluster(4, 4, slow=0)
    run = hwsim.simulate(machine, program(*STEP), fold="always")
    assert run.timeline.flat.graph.alike is None
    assert "have the same hash" in run.timeline.flat.graph.unfolded
