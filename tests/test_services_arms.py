"""Accesses of services to hard disks: means, Pollaczek and Khinchine, the drive request by request, arrays, sums and sizes."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isclose, sqrt
from typing import Any

import numpy as np
import pytest

import hwsim
from benchmarks.queues import pollaczek
from hwsim.devices.arm import Curve, Distances, Reach
from hwsim.families.requests.hdd import HddSimulation
from hwsim.families.requests.requests import columns
from hwsim.families.services.results.answers import Answers
from hwsim.prepare import prepare
from tests.service_cases import program_of
from tests.test_crowds import HDD
from tests.test_services_streams import ARM

READ: dict[str, Any] = {"from": "disk", "bytes": "16 KiB", "access": "random"}
ALONE = HDD.overhead + HDD.ways().mean + 16384 / HDD.stretch(1.0)


def asked(arrivals: dict[str, Any], set: dict[str, Any] | None = None, requests: int = 40_000, **keys: Any) -> Answers:  # noqa: A002
    """The answers of a service that reads."""
    service = {"device": "cpu", "arrivals": arrivals, "request": [{"read": {**READ, **keys}}]}
    found = hwsim.simulate(ARM, {"hwsim": "workload/1", "services": {"s": service}, "requests": requests}, set=set).services
    return found.answers[0]


def moments(ways: Reach, parts: int = 200_000) -> tuple[float, float]:
    """Mean and variance of ways, by the distances and the turn."""
    seeks = np.vectorize(ways.seeks.at)((np.arange(parts) + 0.5) / parts)
    return float(seeks.mean()) + ways.turn / 2 + ways.settle, float(seeks.var()) + ways.turn**2 / 12


@pytest.mark.parametrize(
    "seeks", [HDD.seek.within(1.0), HDD.seek.within(0.02), Distances(Curve(1e-3, 1e-4, 5e-3, 1e-7, 400.0), 9e4)]
)
def test_ways_that_are_drawn_have_the_mean_of_the_closed_form(seeks: Distances) -> None:
    ways = Reach(seeks, 8e-3, 0.8e-3)
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
    assert [each.seconds for each in run.services.statements] == pytest.approx([ALONE, ALONE])
    (warning,) = [each.message for each in run.warnings if each.code == "accesses-in-the-mean"]
    assert f"takes its mean, {1e3 * ALONE:.3g} ms," in warning


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
    assert [each.code for each in run.warnings].count("accesses-in-the-mean") == 1
    assert isclose(run.services.answers[0].latency.percentiles[0][1].value, ALONE, rel_tol=0.01)
