"""Many that each ask a little of a disk come to the rate of one that asks for as much, in every engine, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import environ
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim import ticks
from hwsim.demand import AccessTime, Capacity, Crowd, Demand
from hwsim.devices.arm import Seek
from hwsim.devices.contention import ArrayMembers, Mixture, ParallelChips, QueuedArm, SequentialStreams
from hwsim.devices.disk import Disk
from hwsim.devices.hdd import Hdd
from hwsim.devices.kind import Storage
from hwsim.devices.raid import Raid
from hwsim.devices.ssd import Ssd, WriteCache
from hwsim.devices.storage import Direction, StorageAccesses, mixed_cost
from hwsim.engine import simulate
from hwsim.engine.crowds import ONE, table
from hwsim.graph.opgraph import Queue
from hwsim.results.timeline import Timeline
from hwsim.results.usage import usage
from published.hdd import DRIVES
from published.parts import part
from published.parts import table as rows_of
from tests.each import each
from tests.engine_graphs import graph_of, play_open
from tests.reference_engine import play
from tests.strategies import Tables, graphs, make_block, tables
from tests.test_engine_reference import engine

CASES = settings(max_examples=2000 if environ.get("HWSIM_THOROUGH") else 60, deadline=None)
MEDIA = Capacity("d.media", 1.0)

HDD = Hdd(rpm=7200, seek=Seek(1000, 1e-3, 8e-3, 16e-3), outer=200e6, inner=100e6, size=1e12, overhead=0.2e-3)
SSD = Ssd(read=3e9, write=1e9, latency=90e-6, write_latency=30e-6, iops=300e3, write_iops=80e3, turnaround=5e-6)
CACHED = replace(SSD, cache=WriteCache(size=1e9, write=2e9, iops=200e3, latency=20e-6))
PLAIN = Disk(read_bandwidth=500e6, latency=100e-6, queue=4)


eaches: st.SearchStrategy[AccessTime] = st.sampled_from([
    ParallelChips(1e-4, 3e5, 1.5, 64, 1 / 3e5),
    ParallelChips(1e-4, 1e5, float("inf"), 4, 0.0),
    QueuedArm(2e-3, 1e-2, 0.2, 32),
    ArrayMembers(QueuedArm(2e-3, 1e-2, 0.2, 32), 0.25),
    SequentialStreams(3e-3, 1e-3, 2e-3, 1e-2, 0.2, 32, together=1),
    SequentialStreams(3e-3, 1e-3, 2e-3, 1e-2, 0.2, 4, together=4),
    Mixture(((0.3, ParallelChips(1e-4, 3e5, 1.5, 64, 1 / 3e5)), (0.7, ParallelChips(3e-5, 1e5, 1.5, 64, 1e-5))), 1e-6),
])  # fmt: skip


@st.composite
def crowding(draw: st.DrawFn) -> Tables:
    """Costs of which most crowd at a capacity, whether they draw from it or not."""
    common = draw(tables())
    names = [capacity.name for capacity in common.capacities]
    made = []
    for cost in common.costs:
        one = Crowd(draw(st.sampled_from(names)), draw(st.sampled_from([1, 1, 2, 7, 40])), draw(eaches))
        if any(one.capacity == name for name, _ in cost.demand.holds):
            continue
        made.append(replace(cost, demand=replace(cost.demand, crowd=draw(st.sampled_from([one, one, None])))))
    return replace(common, costs=(*common.costs[:1], *made))


def columns(timeline: Timeline) -> list[object]:
    return [timeline.start.tolist(), timeline.end.tolist(), timeline.granted.tolist()]


@CASES
@given(st.data())
def test_crowds_are_the_same_in_every_engine(data: st.DataObject) -> None:
    graph = data.draw(graphs(data.draw(crowding())))
    assert engine(graph, closed=True)[0] == engine(graph, closed=False)[0] == play(graph)


@CASES
@given(st.data())
def test_arrivals_and_changing_rooms_meet_crowds(data: st.DataObject) -> None:
    common = data.draw(crowding())
    graph, other = data.draw(graphs(common)), data.draw(graphs(common))
    at = data.draw(st.integers(0, 10**9))
    limits = [(data.draw(st.integers(0, 10**9)), 0, fraction) for fraction in (0.3, 1.0)]
    naive = play(graph, later=[(at, other)], limits=limits)
    assert engine(graph, closed=False, later=[(at, other)], limits=limits)[0] == naive


def demand_of(device: Storage, asked: StorageAccesses, direction: Direction = "read") -> Demand:
    return (mixed_cost(device, "d", asked) if asked.written else device.serve("d", direction, asked)).demand


def together(*demands: Demand) -> Timeline:
    """Each as one op, all from 0 on."""
    return simulate(graph_of(make_block(range(len(demands))), costs=demands, capacities=[MEDIA]))


READS = StorageAccesses(size=4096, times=4000, access="random", depth=1)
CASES_OF: dict[str, tuple[Storage, Direction, StorageAccesses]] = {
    "hdd": (HDD, "read", READS),
    "hdd writes": (HDD, "write", READS),
    "hdd, synced": (HDD, "write", replace(READS, sync=True)),
    "ssd": (SSD, "read", READS),
    "ssd, large": (SSD, "read", replace(READS, size=131072)),
    "ssd writes": (SSD, "write", READS),
    "ssd, a tenth writes": (SSD, "read", replace(READS, written=0.1)),
    "ssd, cached": (CACHED, "write", READS),
    "plain": (PLAIN, "read", READS),
    "raid 0 of disks": (Raid(level=0, members=4, hdd=HDD), "read", READS),
    "raid 5 of ssds": (Raid(level=5, members=4, ssd=SSD), "write", READS),
}


@each("name", CASES_OF)
@each("split", [(1,) * 16, (16,) * 4, (1, 2, 5, 24), (3, 3, 3, 3, 40)])
def test_many_shallow_ops_are_one_deep_one(name: str, split: Sequence[int]) -> None:
    device, direction, asked = CASES_OF[name]
    deep = sum(split)
    one = demand_of(device, replace(asked, times=asked.times * deep, depth=deep, sync=False), direction)
    if asked.sync:
        split = (1,) * deep
    parts = [replace(asked, times=asked.times * depth, depth=depth) for depth in split]
    run = together(*(demand_of(device, access, direction) for access in parts))
    assert run.makespan == pytest.approx(one.alone({"d.media": 1.0}), rel=2e-3)
    assert run.end.min() == pytest.approx(run.end.max(), rel=2e-3)  # in proportion to their depth, so all at once


def test_an_access_alone_takes_what_it_takes_without_others() -> None:
    for device, direction, asked in CASES_OF.values():
        for depth in (1, 7, 64, 1000):
            demand = demand_of(device, replace(asked, depth=depth), direction)
            assert demand.crowd is not None
            alone, apart = (replace(demand, crowd=crowd) for crowd in (demand.crowd, None))
            graphs_of = [
                graph_of(make_block([0, 0, 0], queue=[0, 0, 0]), costs=[cost], capacities=[MEDIA], queues=[Queue("q", "")])
                for cost in (alone, apart)
            ]
            with_it, without = (columns(simulate(graph)) for graph in graphs_of)
            assert with_it == without == columns(play_open(graphs_of[0]))


def test_whoever_comes_later_slows_the_others_from_then_on() -> None:
    """Two readers of 1,000, the second from half-way on: each has half of rate(2), then the rest at rate(1)."""
    demand = demand_of(SSD, replace(READS, times=1000))
    alone = demand.alone({"d.media": 1.0})
    assert demand.crowd is not None
    slow, _ = demand.crowd.slowness(2)
    half = round(alone / 2 * ticks.FEMTO)
    run = simulate(graph_of(make_block([0, 0], time=[0, half]), costs=[demand], capacities=[MEDIA]))
    first, second = (run.end / ticks.FEMTO).tolist()
    assert first == pytest.approx(alone / 2 + alone / 2 * slow, rel=1e-8)
    assert second == pytest.approx(first + alone / 2, rel=1e-8)


def test_an_arm_among_many_is_busy_all_the_time_and_no_longer() -> None:
    run = together(*[demand_of(HDD, READS)] * 16)
    (row,) = usage(run)
    assert row.utilization == pytest.approx(1.0, rel=1e-6)
    deep = together(demand_of(HDD, replace(READS, times=16 * READS.times, depth=16)))
    assert usage(deep)[0].utilization == pytest.approx(1.0, rel=1e-6)


def test_the_table_is_the_curve() -> None:
    for curve in (
        ParallelChips(1e-4, 3e5, 1.5, 65536, 1 / 3e5),
        QueuedArm(2e-3, 1e-2, 0.2, 32),
        ParallelChips(1e-4, 4e4, float("inf"), 4, 0.0),
    ):
        for depth in (1, 5, 64):
            crowd = Crowd("d", depth, curve)
            assert table(crowd).at(depth) == (ONE, ONE)
            for under_way in (*range(depth, 100), 333, 5000, 70_001, 10**6):
                slow, light = table(crowd).at(under_way)
                exact = crowd.slowness(under_way)
                assert [slow / ONE, light / ONE] == pytest.approx(list(exact), rel=1e-3)


ORACLES = {"ssd": "mqsim_read_iops_vs_qd.csv", "hdd": "hdd_micro_ncq.csv"}


@pytest.mark.parametrize("clients", [1, 4, 16, 64])
@pytest.mark.parametrize("kind", ORACLES)
def test_clients_of_depth_one_follow_the_curve_of_the_device(kind: str, clients: int, reference_data: Path) -> None:
    """A closed loop without thinking, as fio with a depth: beside MQSim, and beside shortest positioning first."""
    rows = rows_of(reference_data / "oracles" / ORACLES[kind])
    kept = [row for row in rows if int(row["qd"]) == clients and {"SPTF", "RANDOM_UNIFORM"} & set(row.values())]
    assert kept
    for row in kept:
        if kind == "ssd":
            device: Storage = part(Ssd, "mqsim-default")
            size = float(row["size_B"])
        else:
            drive = part(Hdd, DRIVES[row["disk_seek_source"]])
            device, size = replace(drive, queue=64), 0.02e-3 * drive.rate(0.5)
        asked = StorageAccesses(size=size, times=1000, access="random", depth=1)
        run = together(*[demand_of(device, asked)] * clients)
        deep = demand_of(device, replace(asked, times=1000 * clients, depth=clients)).alone({"d.media": 1.0})
        assert run.makespan == pytest.approx(deep, rel=1e-3)
        assert clients * 1000 / run.makespan == pytest.approx(float(row["iops"]), rel=0.1)  # the error of the curve
