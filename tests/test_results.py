"""What a run did, counted from its timeline, and why it took so long."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, reject

from hwsim.demand import Capacity, Cost, Demand, Term
from hwsim.engine import Deadlock, simulate
from hwsim.graph.builder import GraphBuilder
from hwsim.graph.opgraph import Label, OpGraph
from hwsim.results.cause import Causes
from hwsim.results.checks import PER_OP
from hwsim.results.critical import CriticalPath, critical_path, limited_by
from hwsim.results.result import Result
from hwsim.results.timeline import Timeline
from hwsim.results.usage import Usage, usage
from hwsim.ticks import FEMTO
from tests.strategies import graphs

MS = FEMTO // 1000
LINK = Capacity("bus:cpu->gpu0", 16e9, "B", "way", link="bus", ends=("cpu", "gpu0"))
GPU = Capacity.of("gpu0", "compute")
CORES = Capacity.of("cpu", "cores", 2.0)


def copy(size: float, latency: float = 0.0) -> Cost:
    return Cost(Demand(latency=latency, amounts=((LINK.name, size),), share=size))


def kernel(seconds: float, flop: float) -> Cost:
    return Cost(Demand(amounts=((GPU.name, seconds),), floor=seconds), moved=((GPU.name, flop, "FLOP"),))


def by_name(rows: tuple[Usage, ...]) -> dict[str, Usage]:
    return {row.capacity: row for row in rows}


def causes(timeline: Timeline) -> list[tuple[str, int]]:
    return [(str(row.cause), row.time_fs) for row in limited_by(timeline)]


def assert_tiles(path: CriticalPath, timeline: Timeline) -> None:
    segments = list(path)
    edges = [segment.start_fs for segment in segments] + [timeline.makespan_fs]
    assert edges[0] == 0
    assert [segment.end_fs for segment in segments] == edges[1:]
    assert all(segment.start_fs < segment.end_fs for segment in segments)
    assert sum(row.time_fs for row in path.limited_by) == timeline.makespan_fs


# ---- usage


def test_a_copy_alone_is_busy_after_its_latency_and_fills_its_link() -> None:
    builder = GraphBuilder([LINK, GPU])
    builder.op("copy", device="gpu0", cost=copy(160e6, latency=0.010))
    rows = by_name(usage(simulate(builder.build())))
    assert rows[LINK.name].busy_s == 0.010
    assert rows[LINK.name].moved == 160e6
    assert rows[LINK.name].rate == 16e9
    assert rows[LINK.name].utilization == pytest.approx(0.5)
    assert rows[GPU.name] == Usage(GPU.name, 0, 0.0, "s", 0.0, 1, "compute", "gpu0")
    assert rows[GPU.name].rate == 0


def test_device_time_is_told_as_the_work_behind_it_and_scaled_by_size() -> None:
    builder = GraphBuilder([GPU])
    queue = builder.queue("stream", "gpu0")
    builder.op("matmul", device="gpu0", queue=queue, cost=kernel(1e-3, 5e9))
    builder.op("matmul", device="gpu0", queue=queue, cost=kernel(1e-3, 5e9), size=3.0)
    [row] = usage(simulate(builder.build()))
    assert (row.moved, row.unit) == (20e9, "FLOP")
    assert row.rate == pytest.approx(5e12)


def test_work_in_different_units_falls_back_to_device_time() -> None:
    builder = GraphBuilder([GPU])
    queue = builder.queue("stream", "gpu0")
    builder.op("matmul", device="gpu0", queue=queue, cost=kernel(1e-3, 5e9))
    builder.op("gather", device="gpu0", queue=queue, cost=Cost(Demand(amounts=((GPU.name, 2e-3),)), ((GPU.name, 7.0, "1"),)))
    [row] = usage(simulate(builder.build()))
    assert row.moved == pytest.approx(3e-3)
    assert row.unit == "s"


def test_what_is_held_counts_as_used_while_the_body_runs() -> None:
    builder = GraphBuilder([GPU, LINK])
    builder.op("reduce", device="gpu0", cost=Cost(Demand(0.001, ((LINK.name, 16e6),), holds=((GPU.name, 0.25),))))
    rows = by_name(usage(simulate(builder.build())))
    assert rows[GPU.name].busy_fs == MS
    assert rows[GPU.name].utilization == pytest.approx(0.125)


def test_ops_that_hold_more_than_all_of_a_capacity_hold_all_of_it() -> None:
    builder = GraphBuilder([GPU])
    for _ in range(4):
        builder.op("reduce", device="gpu0", cost=Cost(Demand(floor=0.001, holds=((GPU.name, 0.5),))))
    builder.op("wait", device="gpu0", time=0.002)
    [row] = usage(simulate(builder.build()))
    assert (row.busy_fs, row.utilization) == (MS, 0.5)


def test_usage_is_right_beyond_what_64_bits_hold() -> None:
    day = 86400.0
    builder = GraphBuilder([GPU])
    queue = builder.queue("stream", "gpu0")
    for _ in range(3):
        builder.op("train", device="gpu0", queue=queue, cost=kernel(day, 1e18))
    timeline = simulate(builder.build())
    assert timeline.start.dtype == object
    [row] = usage(timeline)
    assert row.busy_fs == 3 * 86400 * FEMTO
    assert_tiles(critical_path(timeline), timeline)
    assert causes(timeline) == [(GPU.name, 3 * 86400 * FEMTO)]


def test_an_empty_run_has_no_usage_and_no_cause() -> None:
    timeline = simulate(GraphBuilder([GPU]).build())
    assert usage(timeline) == (Usage(GPU.name, 0, 0.0, "s", 0.0, 1, "compute", "gpu0"),)
    assert limited_by(timeline) == ()
    assert list(Result("m", "w", timeline).ops) == []


# ---- what limits a run


def test_a_chain_is_limited_by_each_of_its_parts_in_turn() -> None:
    builder = GraphBuilder([LINK, GPU])
    first = builder.op("issue", device="cpu", time=0.002)
    moved = builder.op("copy", device="gpu0", cost=copy(16e6, latency=0.003), after=[first])
    builder.op("short", device="cpu", time=0.001, after=[first])
    builder.op("train", device="gpu0", cost=kernel(0.004, 1e9), after=[moved])
    timeline = simulate(builder.build())
    assert_tiles(critical_path(timeline), timeline)
    assert causes(timeline) == [(GPU.name, 4 * MS), ("latency on gpu0", 3 * MS), ("issue on cpu", 2 * MS), (LINK.name, MS)]


def test_a_floor_is_called_by_the_line_of_the_derivation_that_set_it() -> None:
    why = (
        Term("latency", "", (), 1.0, kind="latency"),
        Term("memory", "bytes / rate", (), 2e-3),
        Term("queue depth", "n / depth", (), 6e-3),
    )
    builder = GraphBuilder([CORES])
    builder.op("read", device="cpu", cost=Cost(Demand(amounts=((CORES.name, 6e-3),), floor=6e-3), why=why))
    assert causes(simulate(builder.build())) == [("queue depth on cpu", 6 * MS)]


def test_causes_are_right_where_labels_times_costs_need_more_than_32_bits() -> None:
    count = 2**16
    links = tuple(Capacity(f"link{number}", 1e9, "B") for number in range(2))
    labels = tuple(Label(f"send {number}", "send", "nic") for number in range(count))
    costs = tuple(Cost(Demand(amounts=((f"link{number % 2}", 1.0 + number // 2),))) for number in range(count))
    last = np.array([count - 1, count - 2, 0], np.int32)  # by cost, then by label: pairs beyond 2^32
    causes = Causes(OpGraph((), labels, costs, links))
    pairs, pair_of = causes.pairs(last, last[::-1].copy())
    assert [causes.alone(pairs)[pair] for pair in pair_of.tolist()] == [1, 0, 0]
    assert [causes.table[parts[0][0]].name for parts in causes.latencies(causes.pairs(last, last)[0])] == ["nic"] * 3


def test_an_op_that_is_held_back_for_a_while_has_two_causes() -> None:
    """Alone the first op is bound by its GPU; while the second one runs, by the link they share."""
    builder = GraphBuilder([LINK, GPU])
    both = Cost(Demand(amounts=((LINK.name, 48e6), (GPU.name, 4e-3)), share=48e6))
    builder.op("stream", device="gpu0", cost=both)
    builder.op("copy", device="gpu0", cost=copy(16e6))
    timeline = simulate(builder.build())
    assert_tiles(critical_path(timeline), timeline)
    assert {name for name, _ in causes(timeline)} == {LINK.name, GPU.name}


def test_who_waits_for_a_server_waits_for_the_op_that_had_it() -> None:
    builder = GraphBuilder([])
    pool = builder.pool("workers", 1)
    for name in ("a", "b", "c"):
        builder.op(name, device="cpu", time=0.001, take=pool, give=pool)
    timeline = simulate(builder.build())
    assert [segment.op for segment in critical_path(timeline)] == [0, 1, 2]


def test_of_predecessors_that_end_together_the_first_is_named() -> None:
    builder = GraphBuilder([])
    before = [builder.op(name, device="cpu", time=0.001) for name in ("a", "b")]
    builder.op("c", device="cpu", time=0.001, after=before[::-1])
    assert [segment.op for segment in critical_path(simulate(builder.build()))] == [0, 2]


def test_time_in_which_nothing_was_due_is_called_waiting() -> None:
    builder = GraphBuilder([])
    builder.op("late", device="cpu", time=0.001)
    timeline = simulate(builder.build())
    later = Timeline(timeline.flat, timeline.start + MS, timeline.end + MS, timeline.granted, timeline.flow_class)
    assert_tiles(critical_path(later), later)
    assert causes(later) == [("late on cpu", MS), ("waiting to start on cpu", MS)]


def played(graph: OpGraph) -> Timeline:
    try:
        return simulate(graph)
    except Deadlock:
        reject()


@given(graphs())
def test_causes_tile_the_run_exactly(graph: OpGraph) -> None:
    timeline = played(graph)
    assert_tiles(critical_path(timeline), timeline)


@given(graphs())
def test_ops_of_the_path_follow_one_another(graph: OpGraph) -> None:
    timeline = played(graph)
    path = list(critical_path(timeline))
    for one, two in pairwise(path):
        assert one.op == two.op or timeline.end[one.op] <= timeline.start[two.op]
        assert timeline.start[one.op] <= one.start_fs <= one.end_fs <= timeline.end[one.op]


@given(graphs())
def test_nothing_is_used_more_than_it_can_be(graph: OpGraph) -> None:
    timeline = played(graph)
    rates = {capacity.name: capacity.rate for capacity in graph.capacities}
    for row in usage(timeline):
        assert 0 <= row.busy_fs <= timeline.makespan_fs
        rounded = PER_OP * len(timeline) / max(1, timeline.makespan_fs)
        assert 0 <= row.utilization <= 1 + 1e-9 + rounded
        assert row.utilization * timeline.makespan <= row.busy_s * (1 + 1e-9 + rounded) + PER_OP * 1e-15 * (1 + len(timeline))
        if row.unit != "FLOP":
            assert row.rate <= rates[row.capacity] * (1 + 1e-9)


@given(graphs())
def test_usage_agrees_with_a_count_op_by_op(graph: OpGraph) -> None:
    timeline = played(graph)
    flat = timeline.flat
    for row in usage(timeline):
        marks = set()
        amount = 0.0
        for op in range(len(timeline)):
            if flat.cost[op] < 0:
                continue
            demand = graph.costs[flat.cost[op]].demand
            begin = int(timeline.start[op] + flat.time[op]) + round(demand.latency * FEMTO)
            if row.capacity in dict(demand.amounts):
                marks.add((min(begin, int(timeline.end[op])), int(timeline.end[op])))
                amount += dict(demand.amounts)[row.capacity] * flat.size[op]
            if row.capacity in dict(demand.holds):
                marks.add((min(begin, int(timeline.end[op])), int(timeline.end[op])))
        covered = 0
        edges = sorted({edge for mark in marks for edge in mark})
        for low, high in pairwise(edges):
            covered += (high - low) * any(start <= low and high <= end for start, end in marks)
        assert row.busy_fs == covered
        if row.unit != "FLOP":
            assert row.moved == pytest.approx(amount)


# ---- the result


def small() -> Result:
    builder = GraphBuilder([GPU])
    queue = builder.queue("stream", "gpu0")
    with builder.repeat(3):
        builder.op("train", kind="busy", device="gpu0", queue=queue, cost=kernel(1e-3, 1e9))
    builder.op("end")
    timeline = simulate(builder.build())
    return Result("a box", "three steps", timeline, usage(timeline))


def test_ops_are_rows_without_the_joins() -> None:
    ops = small().ops
    assert len(ops) == 3
    assert ops[-1] == ops[2]
    assert [row.iteration for row in ops[1:]] == [1, 2]
    row = ops[1]
    assert (row.name, row.kind, row.device, row.queue, row.program) == ("train", "busy", "gpu0", "stream", "main")
    assert (row.start_s, row.end_s, row.duration_s) == (0.001, 0.002, 0.001)
    with pytest.raises(IndexError):
        ops[3]
