"""Requests of services at one disk are streams that interrupt each other: alone, in a loop, on the ladder and in words."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import pytest

import hwsim
from hwsim.devices.disk import Disk
from hwsim.devices.hdd import Hdd
from hwsim.devices.ssd import Ssd, WriteCache
from hwsim.devices.storage import Asked, Direction
from hwsim.devices.volume import Volume
from hwsim.families.services.results.answers import Answers, Services
from hwsim.workload.load.numbers import stream, uniform
from tests.service_cases import MACHINE
from tests.test_crowds import HDD

ARM: dict[str, Any] = {
    **MACHINE,
    "parts": {"cpu": MACHINE["parts"]["cpu"], "disk": {
        "kind": "hdd", "rpm": 7200, "seek": {"cylinders": 1000, "track": "1 ms", "average": "8 ms", "full": "16 ms"},
        "outer": "200 MB/s", "inner": "100 MB/s", "size": "1 TB", "overhead": "0.2 ms", "cache": "64 MiB", "write_cache": True,
    }},
    "links": [],
}  # fmt: skip


def ran(statement: dict[str, Any], arrivals: dict[str, Any], requests: int = 640) -> tuple[Services, Answers]:
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
    assert answers.per_s == pytest.approx(1 / taken, rel=1e-3 * clients)  # the last ones are fewer
    (rung,) = [step for step in services.ladder if step.name == "disk.media"]
    assert rung.used == pytest.approx(1.0, rel=1e-3)
    there = visits * (HDD.overhead + mean / min(clients, HDD.queue) ** HDD.gain) + times * each  # no more than the clients
    assert rung.per_request_s == pytest.approx(there, rel=1e-3)
    alone = HDD.overhead + mean + times * each
    (statement,) = services.statements
    assert statement.seconds == pytest.approx(alone)
    assert statement.cost is not None
    (line,) = [term for term in statement.cost.why if term.label == "media"]
    assert line.seconds == pytest.approx(alone)
    assert dict(services.alone)["s"] == pytest.approx(alone)


def test_one_access_takes_the_same_at_random_and_in_sequence() -> None:
    """Where each request asks for one piece, it is somewhere on the disk, whatever it is called."""
    rates = {
        access: ran({"read": {"from": "disk", "bytes": "64 kB", "access": access, "region": "1 GB"}}, {"clients": 4})[1].per_s
        for access in ("sequential", "random")
    }
    assert rates["sequential"] == pytest.approx(rates["random"], rel=1e-3)


def test_more_streams_than_an_arm_holds_have_no_steady_state() -> None:
    """45 streams a second: for their bytes alone there is room, for the ways to them there is not."""
    read = {"read": {"from": "disk", "bytes": "4 MB"}}
    services, answers = ran(read, {"poisson": "45 1/s"}, 2000)
    assert 20 < services.ladder[0].limit_per_s < 45 < 200e6 / 4e6
    assert answers.growth_per_s > 0
    assert answers.latency is None
    assert ran(read, {"poisson": "20 1/s"}, 2000)[1].latency is not None


def devices() -> dict[str, tuple[Any, Direction, Asked, float]]:
    """Devices with a stock, what is asked, and the seconds of a request once it is used up."""
    arm = Hdd(
        **{key: getattr(HDD, key) for key in ("rpm", "seek", "outer", "inner", "size", "overhead")}, cache=64e6, write_cache=True
    )
    page = Asked(size=4096, access="random")
    cells = Ssd(
        read=3e9, write=1e9, latency=90e-6, iops=300e3, write_iops=50e3, cache=WriteCache(size=1e9, write=2e9, iops=200e3)
    )
    bought = Volume(iops=100, bandwidth=1e9, burst_iops=3000, credits=5.4e6)
    behind = HDD.overhead + HDD.ways().mean / HDD.queue**HDD.gain + 4096 / HDD.stretch(1.0)
    return {
        "arm": (arm, "write", page, behind),
        "cells": (cells, "write", page, 1 / 50e3),
        "cells in sequence": (cells, "write", Asked(size=1e6), 1e6 / 1e9),
        "credits": (bought, "read", page, 1 / 100),
    }


@pytest.mark.parametrize("name", devices())
def test_a_stock_is_used_up_by_those_who_come_for_ever(name: str) -> None:
    device, direction, asked, behind = devices()[name]
    of_service = Asked(size=asked.size, access=asked.access, of_service=True)
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
    assert run.services.answers[0].per_s == pytest.approx(rate, rel=5e-3)
    assert Disk(read_bandwidth=1e9, latency=0.01, queue=queue).serve("d", "read", Asked(size=2e6)).demand.latency == 0.01
