"""Why a run took as long as it did: exact accounting, arithmetic that comes out, and sentences that are true."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from hwsim import api
from hwsim.demand import Capacity, Cost, Demand, Term
from hwsim.engine import Deadlock, simulate
from hwsim.graph.builder import GraphBuilder
from hwsim.graph.flat import flatten
from hwsim.graph.opgraph import Label, OpGraph
from hwsim.ops import OPS
from hwsim.results.critical import critical_path, op_segments
from hwsim.results.invariants import checked_text
from hwsim.results.result import Result
from hwsim.results.usage import usage
from hwsim.ticks import FEMTO
from hwsim.units import parse
from hwsim.views.explain.derivation import derivations, substitute_inputs
from hwsim.views.explain.explanation import Explanation, NoSuchOp, explain
from hwsim.views.explain.say import text
from hwsim.views.explain.what_if import LARGEST, MOST
from tests.explain_cases import MACHINE, STATEMENTS, workload
from tests.strategies import graphs

MS = FEMTO // 1000
LINK = Capacity("slot:gpu->cpu", 1e9, "B", "way", link="slot", ends=("gpu", "cpu"))
CORES = Capacity.of("cpu", "cores", 2.0)
LAPTOP, STATION = "d2l-laptop", "d2l-gpu-workstation"


def explained(graph: OpGraph, **options: Any) -> tuple[Result, Explanation]:
    timeline = simulate(graph)
    result = Result("machine", "workload", timeline, usage(timeline))
    return result, explain(result, **options)


def accounting(graph: OpGraph) -> list[tuple[str, int]]:
    return [(str(row.cause), row.time_fs) for row in critical_path(simulate(graph)).limited_by]


def of_library(machine: str, name: str, **settings: object) -> Explanation:
    return explain(api.simulate(machine, name, set=settings, expect=False))


@st.composite
def labelled(draw: st.DrawFn) -> OpGraph:
    """Any graph, its ops called and placed like those of real ones."""
    graph = draw(graphs())
    kinds = ["dispatch", "return", "copy", "busy", "matmul", "op"]
    labels = tuple(
        Label(f"op{n}", draw(st.sampled_from(kinds)), draw(st.sampled_from(["", "cpu", "gpu0", "gpu1"]))) for n in range(4)
    )
    blocks = [
        replace(block, label=np.array(draw(st.lists(st.integers(0, 3), min_size=len(block), max_size=len(block))), np.int64))
        for block in graph.blocks
    ]
    graph = replace(graph, labels=labels, blocks=tuple(blocks))
    try:
        simulate(graph)
    except Deadlock:
        reject()
    return graph


# ---- accounting


@given(labelled())
@settings(max_examples=100)
def test_causes_steps_pieces_activities_and_derivations_account_for_the_makespan_exactly(graph: OpGraph) -> None:
    result, found = explained(graph, again=False)
    makespan = result.timeline.makespan_fs
    assert sum(row.time_fs for row in found.accounting) == makespan
    assert sum(step.time_fs for run in found.runs for step in run.steps) == makespan
    assert sum(piece.end_fs - piece.start_fs for piece in found.path) == makespan
    assert sum(part.time_fs for part in found.activities.parts) == makespan
    edges = [0, *(run.end_fs for run in found.runs)]
    assert [run.start_fs for run in found.runs] == edges[:-1]
    assert edges[-1] == makespan
    assert all(0 <= row.path_fs <= row.total_fs <= makespan for row in found.activities.rows)
    for derivation in found.derivations:
        assert derivation.unloaded_s * (1 - 1e-9) - 3e-15 <= derivation.min_s <= derivation.max_s, derivation


def test_issuing_and_returning_are_causes_of_their_own() -> None:
    builder = GraphBuilder([CORES])
    stated = Cost(
        Demand(amounts=((CORES.name, 1e-3),), floor=1e-3),
        why=(Term("time", "given", (("given", "1 ms", ""),), 1e-3, kind="stated"),),
    )
    first = builder.op("x", kind="dispatch", device="cpu", cost=stated)
    work = builder.op("x", kind="busy", device="cpu", cost=stated, size=3.0, after=[first])
    builder.op("x", kind="return", device="cpu", time=0.002, after=[work])
    assert accounting(builder.build()) == [("x on cpu", 3 * MS), ("return on cpu", 2 * MS), ("dispatch on cpu", MS)]


def test_issuing_slowed_down_by_others_is_the_capacity() -> None:
    builder = GraphBuilder([CORES])
    stated = Cost(Demand(amounts=((CORES.name, 1e-3),), floor=1e-3), why=(Term("time", "given", (), 1e-3, kind="stated"),))
    for _ in range(4):
        builder.op("x", kind="dispatch", device="cpu", cost=stated)
    assert accounting(builder.build()) == [("cpu.cores", 2 * MS)]


def test_time_without_a_server_is_the_pool_whatever_its_holder_does() -> None:
    builder = GraphBuilder([])
    pool = builder.pool("workers", 1)
    early = builder.op("early", device="cpu", time=0.001)
    builder.op("holder", device="cpu", time=0.003, take=pool, give=pool)
    builder.op("late", device="cpu", time=0.004, take=pool, give=pool, after=[early])
    assert accounting(builder.build()) == [("late on cpu", 4 * MS), ("waiting for workers", 2 * MS), ("holder on cpu", MS)]


def test_of_two_pools_waited_for_the_inner_one_is_named() -> None:
    """`c` waits for the worker of `b`, which itself waits for the lock of `a`."""
    builder = GraphBuilder([])
    lock, workers = builder.pool("lock", 1), builder.pool("workers", 1)
    builder.op("a", device="cpu", time=0.005, take=lock, give=lock)
    began = builder.op("begin", device="cpu", time=0.001, take=workers)
    locked = builder.op("b", device="cpu", time=0.002, take=lock, give=lock, after=[began])
    done = builder.op("end", device="cpu", time=0.0, give=workers, after=[locked])
    builder.op("c", device="cpu", time=0.001, take=workers, give=workers, after=[])
    assert done.op == 3
    assert dict(accounting(builder.build())) == {
        "waiting for lock": 4 * MS, "waiting for workers": 3 * MS, "c on cpu": MS,
    }  # fmt: skip


# ---- the path


def test_a_round_that_repeats_is_told_once() -> None:
    found = of_library(LAPTOP, "d2l/async-loop", blocking=True)
    [run] = found.runs
    assert run.times == 1000
    assert [(step.label.kind, step.ops, step.time_fs) for step in run.steps] == [
        ("dispatch", 1000, 12 * MS), ("busy", 1000, 30 * MS), ("return", 1000, 8 * MS),
    ]  # fmt: skip


def test_equal_ops_in_a_row_are_one_step() -> None:
    found = of_library(LAPTOP, "d2l/async-loop")
    assert [(run.times, run.steps[0].ops) for run in found.runs] == [(1, 1), (1, 1000), (1, 1)]


# ---- derivations


@pytest.fixture(scope="module", params=STATEMENTS)
def run(request: pytest.FixtureRequest) -> api.Run:
    return api.simulate(MACHINE, workload(request.param))


NUMBER = re.compile(r"(\d[\d.]*(?:e-?\d+)?)(?: (1/s|[A-Za-wyz%][A-Za-z]*(?:/s)?))?")


def value(text: str) -> float:
    """What the arithmetic of a line comes to, in SI units."""
    plain = NUMBER.sub(lambda found: repr(parse(" ".join(filter(None, found.groups()))).value), text)
    result = eval(plain.replace(" x ", " * ").replace("^", "**"), {"__builtins__": {}}, {"ceil": math.ceil, "max": max})
    return float(result)


def test_the_numbers_put_in_come_to_the_time_of_the_line(run: api.Run) -> None:
    for derivation in derivations(run.timeline, np.arange(len(run.timeline))):
        for line in derivation.lines:
            assert value(line.numbers) == pytest.approx(line.time_s, rel=1e-5), line
        assert value(derivation.unloaded.partition(" = ")[0]) == pytest.approx(derivation.unloaded_s, rel=1e-3), (
            derivation.unloaded
        )


def test_latencies_and_the_longest_line_are_what_the_op_takes_alone(run: api.Run) -> None:
    graph = run.timeline.flat.graph
    rates = {capacity.name: capacity.rate for capacity in graph.capacities}
    assert graph.costs
    for cost in graph.costs:
        latency = sum(term.seconds for term in cost.why if term.kind == "latency")
        assert latency + max(term.seconds for term in cost.why if term.kind != "latency") == pytest.approx(
            cost.demand.alone(rates), rel=1e-12
        )
        assert {term.capacity for term in cost.why} <= {*rates, ""}


def test_each_part_of_a_latency_is_a_cause_of_what_holds_it(run: api.Run) -> None:
    timeline = run.timeline
    flat = timeline.flat
    for op in np.flatnonzero(flat.cost >= 0).tolist():
        label, cost = flat.graph.labels[flat.label[op]], flat.graph.costs[flat.cost[op]]
        if label.kind in ("dispatch", "return"):
            continue
        due: dict[str, float] = {}
        for term in (one for one in cost.why if one.label == "latency" and one.seconds > 0):
            before, colon, _ = term.capacity.partition(":")
            name = f"link {before}" if colon else before.rpartition(".")[0] or label.device
            due[name] = due.get(name, 0.0) + term.seconds * FEMTO
        found: dict[str, int] = {}
        for piece in op_segments(timeline, np.array([op])):
            if piece.cause.kind == "latency":
                found[piece.cause.name] = found.get(piece.cause.name, 0) + piece.end_fs - piece.start_fs
        assert found == pytest.approx(due, abs=1)
        assert sum(found.values()) == round(cost.demand.latency * FEMTO)


def test_a_way_over_air_and_fibre_waits_for_each_of_them() -> None:
    memory = {"bandwidth": "10 GB/s"}
    host = {"kind": "cpu", "flop": {"fp32": "1 TFLOP/s"}, "cores": 1, "memory": memory}
    parts = {"phone": host, "host": host, "box": {"kind": "switch", "latency": "0.5 ms"}}
    wire = {"kind": "direct", "bandwidth": "1 GB/s"}
    air = {**wire, "name": "air", "between": ["phone", "box"], "latency": "1.5 ms"}
    fibre = {**wire, "name": "fibre", "between": ["box", "host"], "latency": "1 ms"}
    send = {"copy": {"name": "ask", "from": "phone", "to": "host", "bytes": "1 B"}}
    run = api.simulate(
        {"hwsim": "machine/1", "class": "ideal", "parts": parts, "links": [air, fibre]},
        {"hwsim": "workload/1", "program": [send]},
    )
    found = {str(share.cause): share.time_fs for share in critical_path(run.timeline).limited_by if share.cause.kind == "latency"}
    assert found == {"latency on link air": 1.5e12, "latency on link fibre": 1e12, "latency on box": 5e11}


def test_every_kind_of_op_is_derived_in_a_golden_file() -> None:
    fetched = {"asnumpy", "item", "print"}  # copies by another name
    assert set(STATEMENTS) == set(OPS) - fetched


@pytest.mark.parametrize("kind", STATEMENTS)
def test_the_text_reads_as_it_did(kind: str, root: Path, update: bool) -> None:
    run = api.simulate(MACHINE, workload(kind))
    found = text(explain(run), verbose=True)
    golden = root / "tests" / "golden" / f"explain-{kind}.txt"
    if update:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(checked_text(found), encoding="utf-8", newline="\n")
    assert found == golden.read_text(encoding="utf-8"), "see `pytest --update`"
    assert max(map(len, found.splitlines())) <= 100


def test_two_bounds_of_an_op_are_told_with_their_shares() -> None:
    links = [Capacity("slot0", 1e9, "B"), Capacity("slot1", 1e9, "B")]
    builder = GraphBuilder(links)
    for device, mega in (("gpu0", 60), ("gpu1", 10)):
        cost = Cost(Demand(latency=20e-3, amounts=((f"slot{device[-1]}", mega * 1e6),)))
        builder.op("x", kind="copy", device=device, cost=cost)
    _, found = explained(builder.build(), again=False)
    assert found.sentences[0] == "`x` takes all 80.0 ms, bound by slot0 75 %, latency of gpu* 25 %."


def test_names_are_put_in_as_words_not_as_parts_of_words() -> None:
    term = Term(
        "accesses", "ceil(times / at once) x time", (("times", "64", ""), ("at once", "8", ""), ("time", "2 us", "")), 16e-6
    )
    assert substitute_inputs(term) == "ceil(64 / 8) x 2 us"


def test_ops_of_different_length_are_not_derived_as_one() -> None:
    """Both are issued, neither has a derivation: what tells them apart is only what they draw."""
    builder = GraphBuilder([CORES])
    for milliseconds in (1, 2):
        builder.op("x", kind="dispatch", device="cpu", cost=Cost(Demand(amounts=((CORES.name, milliseconds * 1e-3),))))
    _, found = explained(builder.build(), op="x", again=False)
    assert [derivation.count for derivation in found.derivations] == [1, 1]


def test_an_op_that_had_to_share_says_what_and_how_long() -> None:
    builder = GraphBuilder([LINK])
    for name in ("one", "two"):
        cost = Cost(Demand(amounts=((LINK.name, 1e6),), share=1e6), why=(Term("link", "bytes / bandwidth", (), 1e-3),))
        builder.op(name, kind="copy", device="gpu", cost=cost)
    _, found = explained(builder.build(), again=False)
    assert found.derivations[0].reasons == ("shared slot:gpu->cpu for 2.000 ms",)


def test_an_op_that_waited_for_a_server_says_for_which() -> None:
    builder = GraphBuilder([])
    pool = builder.pool("workers", 1)
    for _ in range(3):
        builder.op("x", device="cpu", time=0.001, take=pool, give=pool)
    _, found = explained(builder.build(), again=False)
    assert found.derivations[0].reasons == ("waited up to 2.000 ms for workers before it started",)


def test_only_ops_of_the_run_can_be_asked_for() -> None:
    run = api.simulate(STATION, "d2l/copy-overlap")
    assert [derivation.name for derivation in explain(run, op="matmul", again=False).derivations] == ["matmul"]
    with pytest.raises(NoSuchOp, match="no op 'z'") as error:
        explain(run, op="z", again=False)
    assert error.value.names == ("matmul", "copy to CPU")


def test_a_collective_is_derived_by_its_steps() -> None:
    program = [{"allreduce": {"name": "sum", "among": "gpu*", "bytes": "160 MB", "algorithm": "ps-gpu0"}}, {"wait": "all"}]
    run = api.simulate("d2l-4gpu-pcie", {"hwsim": "workload/1", "program": program})
    assert [derivation.name for derivation in explain(run, op="sum", again=False).derivations] == ["sum: push", "sum: pull"]


# ---- what if


def times(found: Explanation) -> dict[str, float]:
    return {one.change: one.makespan_fs / MS for one in found.what_if or () if one.makespan_fs is not None}


def test_a_pool_can_have_twice_the_servers() -> None:
    builder = GraphBuilder([])
    pool = builder.pool("workers", 2)
    for _ in range(8):
        builder.op("x", device="cpu", time=0.001, take=pool, give=pool)
    _, found = explained(builder.build())
    assert times(found)["twice as many servers in workers"] == 2.0


PHOTOS = """\
hwsim: workload/1
let: {workers: 2}
pipeline:
  batches: 20
  ahead: 4
  stages:
    - read: {from: disk, bytes: 1 MB}
    - busy: {name: decode, device: cpu, time: 300 ms}
      at_once: WORKERS
    - busy: {name: train, device: gpu, time: 30 ms}
"""


@pytest.mark.parametrize(
    ("workers", "path", "change"),
    [
        ("$workers", "workers", "workers of decode doubled"),
        ("2", "workload.pipeline.stages.1.at_once", "at_once of decode doubled"),
    ],
)
def test_a_stage_can_have_twice_the_workers_and_may_still_bind(workers: str, path: str, change: str) -> None:
    photos = PHOTOS.replace("WORKERS", workers)
    found = explain(api.simulate(STATION, photos))
    row = next(row for row in found.what_if or () if row.change == change)
    assert row.settings == ((path, "4"),)
    assert row.makespan_fs == api.simulate(STATION, photos, set=dict(row.settings)).timeline.makespan_fs
    assert f"{change}; still bound by fixed duration of decode" in text(found)
    assert "then bound by fixed duration of decode" not in text(found)


def test_workers_computed_by_an_expression_are_not_doubled() -> None:
    found = explain(api.simulate(STATION, PHOTOS.replace("WORKERS", "$workers * 1")))
    assert not any("workers" in row.change or "at_once" in row.change for row in found.what_if or ())


def test_what_is_tried_is_capped_and_the_rest_counted() -> None:
    names = [f"part{letter}.x" for letter in "abcdefghijklmnop"]
    builder = GraphBuilder([Capacity(name, 1.0) for name in names])
    queue = builder.queue("all", "d")
    for name in names:
        builder.op("x", device="d", cost=Cost(Demand(amounts=((name, 1e-3),))), queue=queue)
    _, found = explained(builder.build())
    assert found.what_if is not None
    most = MOST[0][1]
    assert len(found.what_if) == most
    assert found.untried == len(names) - most
    assert all(one.hypothetical for one in found.what_if)  # an op graph has no files


def test_a_large_run_is_simulated_again_only_if_asked() -> None:
    builder = GraphBuilder([])
    queue = builder.queue("stream", "gpu")
    with builder.repeat(LARGEST + 1):
        builder.op("x", device="gpu", time=1e-6, queue=queue)
    _, found = explained(builder.build())
    assert found.what_if is None


@given(labelled())
@settings(max_examples=20)
def test_what_is_tried_accounts_for_its_time_too_the_best_first(graph: OpGraph) -> None:
    _, found = explained(graph)
    assert found.what_if is not None
    assert [one.speedup for one in found.what_if] == sorted((one.speedup for one in found.what_if), reverse=True)
    assert all(sum(row.time_fs for row in one.limited_by) == (one.makespan_fs or 0) for one in found.what_if)


# ---- sentences


@pytest.mark.parametrize(
    ("machine", "name", "settings", "rows", "speedup", "said"),
    [
        (LAPTOP, "d2l/async-loop", {}, {"add": (30.0, 30.0), "host": (12.0, 0.02)}, 2.0, "`host` takes 12.0 ms: "),
        (
            LAPTOP, "d2l/async-loop", {"blocking": True}, {"add": (30.0, 30.0), "host": (20.0, 20.0)}, 1.43,
            "`host` takes 20.0 ms (40 %), bound by host CPU.",
        ),
        (STATION, "d2l/copy-overlap", {}, {"matmul": (165.7, 165.7), "copy to CPU": (96.15, 9.62)}, 1.68, "but the last 9.61 ms"),
        (
            STATION, "d2l/parallel-cpu-gpu", {}, {"matmul on CPU": (655.2, 655.2), "matmul on GPU": (165.7, 0.0)}, 2.0,
            "`matmul on CPU` takes all 655 ms, bound by CPU cores.",
        ),
    ],
)  # fmt: skip
def test_a_teacher_would_say(
    machine: str, name: str, settings: dict[str, object], rows: dict[str, tuple[float, float]], speedup: float, said: str
) -> None:
    found = of_library(machine, name, **settings)
    assert {row.name: pytest.approx((1e3 * row.total_s, 1e3 * row.path_s), rel=1e-3) for row in found.activities.rows} == rows
    assert found.what_if is not None
    assert found.what_if[0].speedup == pytest.approx(speedup, abs=0.005)
    assert said in " ".join(found.sentences)


def test_a_run_without_time_is_said_to_be_one() -> None:
    _, found = explained(GraphBuilder([]).build())
    assert found.sentences == ("No op takes any time.",)
    assert [*found.accounting, *found.runs, *found.derivations, *(found.what_if or ())] == []


# ---- times that a model says


TRAIN = "hwsim: workload/1\ntrain: {model: llama-3-8b, global_batch: 8, parallel: {tp: 4}, gpus: 4, detail: layer, steps: 1}\n"


def test_a_floor_is_called_after_the_op_whose_it_is() -> None:
    found = explain(api.simulate("dgx-h100", TRAIN), again=False)
    named = {str(row.cause): row.cause.kind for row in found.accounting}
    assert named["kernels of forward on gpu0"] == named["kernels of optimizer on gpu0"] == "floor"
    assert named["flow of gather (tp) on gpu0"] == "floor"
    assert not [name for name in named if name.startswith("floor") or name.endswith(".compute")]


def test_part_of_a_collective_says_which_part_and_comes_out() -> None:
    [found] = explain(api.simulate("dgx-h100", TRAIN), op="gather (tp)", again=False).derivations
    latency, flow = found.lines
    assert latency.formula == "part x waiting"
    assert "the rest overlaps kernels" in latency.inputs[0][2]
    for line in (latency, flow):
        assert value(line.numbers) == pytest.approx(line.time_s, rel=1e-3)


def test_a_run_with_a_service_can_be_flattened_again_but_nothing_is_tried_on_its_op_graph() -> None:
    jobs = (
        "hwsim: workload/1\njobs:\n  learn: {device: gpu0..3, train: {model: llama-3-8b, global_batch: 8, parallel: {tp: 4}}}\n"
    )
    jobs += "  chat: {device: gpu4, infer: {model: llama-3-8b, arrivals: {every: 10 ms}, requests: 4, prompt: 100, output: 5}}\n"
    run = api.simulate("dgx-h100", jobs)
    flat = run.timeline.flat
    again = flatten(flat.graph)
    assert [again.label.tolist(), again.cost.tolist(), again.queue.tolist()] == [
        flat.label.tolist(), flat.cost.tolist(), flat.queue.tolist(),
    ]  # fmt: skip
    found = explain(run)
    assert found.what_if
    assert not [one for one in found.what_if if one.hypothetical]
