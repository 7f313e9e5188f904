"""Requests of services at disks: streams that interrupt each other, Pollaczek and Khinchine, arrays, sums and sizes."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isclose, sqrt
from statistics import fmean
from typing import Any

import numpy as np
import pytest

import hwsim
from benchmarks.queues import pollaczek
from hwsim.devices.arm import HeadPositioning, RandomSeeks, SeekCurve
from hwsim.devices.disk import Disk
from hwsim.devices.hdd import Hdd
from hwsim.devices.ssd import Ssd, WriteCache
from hwsim.devices.storage import Direction, StorageAccesses
from hwsim.devices.volume import Volume
from hwsim.families.requests.hdd import HddSimulation
from hwsim.families.requests.requests import columns
from hwsim.families.services.results.responses import ServiceResponses, Services
from hwsim.prepare import prepare
from hwsim.workload.load.numbers import stream, uniform
from tests.service_cases import MACHINE, program_of
from tests.test_crowds import HDD

ARM: dict[str, Any] = {
    **MACHINE,
    "parts": {"cpu": MACHINE["parts"]["cpu"], "disk": {
        "kind": "hdd", "rpm": 7200, "seek": {"cylinders": 1000, "track": "1 ms", "average": "8 ms", "full": "16 ms"},
        "outer": "200 MB/s", "inner": "100 MB/s", "size": "1 TB", "overhead": "0.2 ms", "cache": "64 MiB", "write_cache": True,
    }},
    "links": [],
}  # fmt: skip


def ran(statement: dict[str, Any], arrivals: dict[str, Any], requests: int = 640) -> tuple[Services, ServiceResponses]:
    service = {"device": "cpu", "arrivals": arrivals, "request": [statement]}
    run = hwsim.simulate(ARM, {"hwsim": "workload/1", "services": {"s": service}, "requests": requests})
    assert run.services is not None
    return run.services, run.services.answers[0]


def _mean_way(times: int, clients: int, requests: int = 640) -> float:
    """Mean of the ways that are drawn: for each access, but where an access follows the one before."""
    key, ways = stream(0, "s", "0 way"), HDD.ways()
    visits = [2 * access for access in range(1 if clients == 1 else times)]
    return fmean(
        ways.at(uniform(key, root, visit), uniform(key, root, visit + 1)) for root in range(requests) for visit in visits
    )


@pytest.mark.parametrize("clients", [1, 2, 8])
@pytest.mark.parametrize(("times", "depth"), [(1, 1), (16, 1), (16, 4)])
def test_streams_of_clients_pay_the_way_back_to_each(clients: int, times: int, depth: int) -> None:
    """By hand: a client's accesses alone follow each other; among others the arm comes back for every `depth` of them."""
    read = {"from": "disk", "bytes": "1 MB", "times": times, "depth": depth}
    services, answers = ran({"read": read}, {"clients": clients})
    mean, each = HDD.ways().mean, 1e6 / HDD.stretch(times * 1e6 / 1e12)
    way = _mean_way(times, clients) if depth == 1 else mean
    visits = 1.0 if clients == 1 else times / depth
    taken = visits * (HDD.overhead + way / min(clients, HDD.queue) ** HDD.gain) + times * each
    assert answers.throughput_per_s == pytest.approx(1 / taken, rel=1e-3 * clients)  # the last ones are fewer
    (rung,) = [step for step in services.throughput_limits if step.name == "disk.media"]
    assert rung.measured_utilization == pytest.approx(1.0, rel=1e-3)
    there = visits * (HDD.overhead + mean / min(clients, HDD.queue) ** HDD.gain) + times * each  # no more than the clients
    assert rung.service_demand_s == pytest.approx(there, rel=1e-3)
    alone = HDD.overhead + mean + times * each
    (statement,) = services.statements
    assert statement.seconds == pytest.approx(alone)
    assert statement.cost is not None
    (line,) = [term for term in statement.cost.why if term.label == "media"]
    assert line.seconds == pytest.approx(alone)
    assert dict(services.unloaded_s)["s"] == pytest.approx(alone)


def test_one_access_takes_the_same_at_random_and_in_sequence() -> None:
    """Where each request asks for one piece, it is somewhere on the disk, whatever it is called."""
    rates = {
        access: ran({"read": {"from": "disk", "bytes": "64 kB", "access": access, "region": "1 GB"}}, {"clients": 4})[
            1
        ].throughput_per_s
        for access in ("sequential", "random")
    }
    assert rates["sequential"] == pytest.approx(rates["random"], rel=1e-3)


def test_more_streams_than_an_arm_holds_have_no_steady_state() -> None:
    """45 streams a second: for their bytes alone there is room, for the ways to them there is not."""
    read = {"read": {"from": "disk", "bytes": "4 MB"}}
    services, answers = ran(read, {"poisson": "45 1/s"}, 2000)
    assert 20 < services.throughput_limits[0].limit_per_s < 45 < 200e6 / 4e6
    assert answers.queue_growth_per_s > 0
    assert answers.latency is None
    assert ran(read, {"poisson": "20 1/s"}, 2000)[1].latency is not None


def devices() -> dict[str, tuple[Any, Direction, StorageAccesses, float]]:
    """Devices with a stock, what is asked, and the seconds of a request once it is used up."""
    arm = Hdd(
        **{key: getattr(HDD, key) for key in ("rpm", "seek", "outer", "inner", "size", "overhead")}, cache=64e6, write_cache=True
    )
    page = StorageAccesses(size=4096, access="random")
    cells = Ssd(
        read=3e9, write=1e9, latency=90e-6, iops=300e3, write_iops=50e3, cache=WriteCache(size=1e9, write=2e9, iops=200e3)
    )
    bought = Volume(iops=100, bandwidth=1e9, burst_iops=3000, credits=5.4e6)
    behind = HDD.overhead + HDD.ways().mean / HDD.queue**HDD.gain + 4096 / HDD.stretch(1.0)
    return {
        "arm": (arm, "write", page, behind),
        "cells": (cells, "write", page, 1 / 50e3),
        "cells in sequence": (cells, "write", StorageAccesses(size=1e6), 1e6 / 1e9),
        "credits": (bought, "read", page, 1 / 100),
    }


@pytest.mark.parametrize("name", devices())
def test_a_stock_is_used_up_by_those_who_come_for_ever(name: str) -> None:
    device, direction, asked, behind = devices()[name]
    of_service = StorageAccesses(size=asked.size, access=asked.access, of_service=True)
    drawn = dict(device.serve("d", direction, of_service).demand.amounts)["d.media"]
    assert drawn == pytest.approx(behind, rel=1e-6)
    assert dict(device.serve("d", direction, asked).demand.amounts)["d.media"] < behind * 0.6


@pytest.mark.parametrize(("queue", "rate"), [(1, 1 / 0.012), (4, 4 / 0.012)])
def test_a_plain_disk_serves_as_many_as_its_queue_takes(queue: int, rate: float) -> None:
    """An arm (queue 1) has the latency of each request, flash has four at once; 2 MB at 1 GB/s alone."""
    machine = {**ARM, "parts": {**ARM["parts"], "disk": {
        "kind": "disk", "read": "1 GB/s", "latency": "10 ms", "queue": queue,
    }}}  # fmt: skip
    service = {"device": "cpu", "arrivals": {"clients": 4}, "request": [{"read": {"from": "disk", "bytes": "2 MB"}}]}
    run = hwsim.simulate(machine, {"hwsim": "workload/1", "services": {"s": service}, "requests": 2000})
    assert run.services is not None
    assert run.services.answers[0].throughput_per_s == pytest.approx(rate, rel=5e-3)
    assert (
        Disk(read_bandwidth=1e9, latency=0.01, queue=queue).serve("d", "read", StorageAccesses(size=2e6)).demand.latency == 0.01
    )


READ: dict[str, Any] = {"from": "disk", "bytes": "16 KiB", "access": "random"}
ALONE = HDD.overhead + HDD.ways().mean + 16384 / HDD.stretch(1.0)


def asked(arrivals: dict[str, Any], set: dict[str, Any] | None = None, requests: int = 40_000, **keys: Any) -> ServiceResponses:  # noqa: A002
    """The answers of a service that reads."""
    service = {"device": "cpu", "arrivals": arrivals, "request": [{"read": {**READ, **keys}}]}
    found = hwsim.simulate(ARM, {"hwsim": "workload/1", "services": {"s": service}, "requests": requests}, set=set).services
    return found.answers[0]


def moments(ways: HeadPositioning, parts: int = 200_000) -> tuple[float, float]:
    """Mean and variance of ways, by the distances and the turn."""
    seeks = np.vectorize(ways.seeks.at)((np.arange(parts) + 0.5) / parts)
    return float(seeks.mean()) + ways.turn / 2 + ways.settle, float(seeks.var()) + ways.turn**2 / 12


@pytest.mark.parametrize(
    "seeks", [HDD.seek.within(1.0), HDD.seek.within(0.02), RandomSeeks(SeekCurve(1e-3, 1e-4, 5e-3, 1e-7, 400.0), 9e4)]
)
def test_ways_that_are_drawn_have_the_mean_of_the_closed_form(seeks: RandomSeeks) -> None:
    ways = HeadPositioning(seeks, 8e-3, 0.8e-3)
    assert moments(ways, 20_000)[0] == pytest.approx(ways.mean, rel=1e-4)
    assert ways.at(0.5, 0.25) == ways.seeks.at(0.5) + 2e-3 + 0.8e-3


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_in_order_of_arrival_the_wait_is_that_of_pollaczek_and_khinchine(load: float) -> None:
    """The closed form of the second moment: a turn's is a third of its square."""
    answers = asked({"poisson": f"{load / ALONE} 1/s"}, {"machine.disk.gain": 0})
    exact = pollaczek(load / ALONE, ALONE, moments(HDD.ways(), 20_000)[1] / ALONE**2)
    assert answers.latency.mean.value == pytest.approx(exact, rel=1.5 * answers.latency.mean.half)
    constant = pollaczek(load / ALONE, ALONE, 0.0)
    assert answers.latency.mean.low > constant


def test_percentiles_are_those_of_the_drive_request_by_request() -> None:
    """At 80 % of what it serves in order of arrival, shortest positioning first; gain as fitted on two under way and more."""
    drive, requests = replace(HDD, gain=0.27), 20_000
    draws = np.random.default_rng(1)
    came = np.cumsum(draws.exponential(ALONE / 0.8, requests))
    places = columns(draws.integers(0, int(1e12), requests).tolist(), 16384, at=came.tolist())
    simulation = HddSimulation(drive)
    simulation.offer(places)
    simulation.advance(inf)
    taken = np.array(places.finish) - came
    answers = asked({"poisson": f"{0.8 / ALONE} 1/s"}, {"machine.disk.gain": 0.27})
    assert answers.latency.mean.value == pytest.approx(float(taken.mean()), rel=0.05)
    for share, known in answers.latency.percentiles:
        assert known.value == pytest.approx(float(np.percentile(taken, 100 * share)), rel=0.07)


def test_accesses_of_one_request_add_up() -> None:
    """Four, far from the next request: four times the mean, and of the variance."""
    mean, variance = moments(HDD.ways(), 20_000)
    answers = asked({"every": "1 s"}, requests=10_000, times=4)
    spread = 2 * sqrt(variance)
    assert answers.latency.mean.value == pytest.approx(4 * ALONE, abs=4 * spread / sqrt(10_000))
    high = dict(answers.latency.percentiles)[0.95].value
    assert high == pytest.approx(4 * (ALONE - HDD.ways().mean + mean) + 1.645 * spread, rel=0.02)  # near a normal distribution


@pytest.mark.parametrize("clients", [2, 12])
def test_disks_of_an_array_serve_as_many_as_one_op_of_that_depth(clients: int) -> None:
    member = {key: value for key, value in ARM["parts"]["disk"].items() if key not in ("cache", "write_cache", "kind")}
    disk = {"kind": "raid", "level": 0, "members": 4, "hdd": member}
    machine = {**ARM, "parts": {**ARM["parts"], "disk": disk}}
    service = {"device": "cpu", "arrivals": {"clients": clients}, "request": [{"read": READ}]}
    lowered = prepare(machine, {"hwsim": "workload/1", "services": {"s": service}, "requests": 20_000})
    assert [(station.kind, station.servers) for station in program_of(lowered).stations] == [("arms", 4)]
    run = hwsim.simulate(machine, {"hwsim": "workload/1", "services": {"s": service}, "requests": 20_000})
    program = {"read": {**READ, "times": 20_000, "depth": clients}}
    deep = hwsim.simulate(machine, {"hwsim": "workload/1", "program": [program]})
    assert run.makespan_s == pytest.approx(deep.makespan_s, rel=0.01)


def test_the_mean_that_an_array_is_warned_of_is_that_of_one_access() -> None:
    """Reads of one member and writes to two of four do not go one at a time: accesses take their mean."""
    member = {key: value for key, value in ARM["parts"]["disk"].items() if key not in ("cache", "write_cache", "kind")}
    disk = {"kind": "raid", "level": 10, "members": 4, "hdd": member}
    request = [{"read": READ}, {"write": {"to": "disk", "bytes": "16 KiB", "access": "random"}}]
    service = {"device": "cpu", "arrivals": {"every": "1 s"}, "request": request}
    machine = {**ARM, "parts": {**ARM["parts"], "disk": disk}}
    run = hwsim.simulate(machine, {"hwsim": "workload/1", "services": {"s": service}, "requests": 20})
    assert [statement.seconds for statement in run.services.statements] == pytest.approx([ALONE, ALONE])
    (warning,) = [notice.message for notice in run.warnings if notice.code == "mean-access-time"]
    assert f"takes its average time ({1e3 * ALONE:.3g} ms)," in warning


def test_a_larger_read_takes_longer_by_its_bytes_alone() -> None:
    """Sizes that are drawn lengthen an access, not its way."""
    drawn = asked({"every": "1 s"}, requests=4000, bytes={"uniform": ["1 MB", "9 MB"]})
    fixed = asked({"every": "1 s"}, requests=4000, bytes="5 MB")
    assert drawn.latency.mean.value == pytest.approx(fixed.latency.mean.value, rel=0.01)
    assert fixed.latency.mean.value == pytest.approx(ALONE + (5e6 - 16384) / HDD.stretch(1.0), rel=0.01)


def test_a_disk_that_jobs_use_too_takes_means_and_says_so() -> None:
    service = {"device": "cpu", "arrivals": {"every": "1 s"}, "request": [{"read": READ}]}
    jobs = {
        "web": {"services": {"s": service}, "requests": 20},
        "batch": {"program": [{"read": {"from": "disk", "bytes": "1 GB"}}]},
    }
    run = hwsim.simulate(ARM, {"hwsim": "workload/1", "jobs": jobs})
    assert [warning.code for warning in run.warnings].count("mean-access-time") == 1
    assert isclose(run.services.answers[0].latency.percentiles[0][1].value, ALONE, rel_tol=0.01)
