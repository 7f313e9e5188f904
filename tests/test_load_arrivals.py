"""Arrivals: rates, order, and the same requests under another rate; days as the exact inverse of their cumulative rate."""

from __future__ import annotations

import math
import tracemalloc
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hwsim
from hwsim import ticks
from hwsim.results.expect import PartOfDay
from hwsim.ticks import FEMTO
from hwsim.workload.load.arrivals import ArrivalKeys, BurstKeys, DayKeys, blocks, instants, thoughts
from hwsim.workload.load.draws import Exponential
from hwsim.workload.load.keys import CountDraw, CountLognormal, TimeDraw, TimePareto
from tests.service_cases import MACHINE, busy, workload
from tests.test_infer import SMALL

DAY = DayKeys(mean=300.0, peak=500.0, at=14 * 3600.0)
OPEN = (
    ArrivalKeys(poisson=40.0),
    ArrivalKeys(every=0.025),
    ArrivalKeys(bursts=BurstKeys(poisson=4.0, size=10)),
    ArrivalKeys(bursts=BurstKeys(poisson=4.0, size=CountDraw(uniform=(1, 19)))),
    ArrivalKeys(bursts=BurstKeys(poisson=0.05, size=800)),
    ArrivalKeys(day=DayKeys(mean=40.0, peak=60.0, cycle=100.0, at=30.0)),
)


@pytest.mark.parametrize("keys", OPEN, ids=repr)
def test_arrivals_come_in_order_at_the_rate_that_is_said(keys: ArrivalKeys) -> None:
    came = list(islice(instants(keys, 3, "web"), 40_000))
    assert came == sorted(came)
    assert keys.rate == pytest.approx(40.0)
    groups = keys.bursts.poisson / 40 * 40_000 if keys.bursts else 40_000
    assert 40_000 / (came[-1] / FEMTO) == pytest.approx(40.0, rel=4 / math.sqrt(groups))
    assert came[:100] == list(islice(instants(keys, 3, "web"), 100))
    if keys.every is None:
        assert came[:100] != list(islice(instants(keys, 4, "web"), 100))
        assert came[:100] != list(islice(instants(keys, 3, "wec"), 100))


@settings(max_examples=20)
@given(st.floats(1e-3, 1e9), st.integers(0, 99))
def test_another_rate_stretches_the_same_requests(rate: float, seed: int) -> None:
    base = np.array(list(islice(instants(ArrivalKeys(poisson=1.0), seed), 50)), np.float64)
    other = np.array(list(islice(instants(ArrivalKeys(poisson=rate), seed), 50)), np.float64)
    np.testing.assert_allclose(other * rate, base, rtol=1e-9, atol=50 * rate)


def test_poisson_has_exponential_gaps_and_bursts_vary_more() -> None:
    def dispersion(keys: ArrivalKeys) -> float:
        came = np.array(list(islice(instants(keys, 1), 50_000)), np.float64) / FEMTO
        counts = np.histogram(came, bins=np.arange(0, came[-1], 2.5))[0]
        return float(counts.var() / counts.mean())

    assert dispersion(OPEN[0]) == pytest.approx(1, rel=0.15)
    assert dispersion(OPEN[2]) == pytest.approx(10, rel=0.2)
    assert dispersion(OPEN[1]) < 0.01


@given(
    st.floats(0, 1), st.floats(0, 86_400), st.floats(1, 1e5), st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=9)
)
def test_a_day_is_inverted_exactly(swing: float, at: float, cycle: float, shares: list[float]) -> None:
    keys = DayKeys(mean=10.0, peak=10.0 * (1 + swing), at=at, cycle=cycle)
    turns = keys.turns(np.array(shares))
    phase = 2 * math.pi * math.fmod(at, cycle) / cycle
    for share, turn in zip(shares, turns.tolist(), strict=True):
        came = turn + swing / (2 * math.pi) * (math.sin(2 * math.pi * turn - phase) + math.sin(phase))
        assert came == pytest.approx(share, abs=1e-11)
    assert sorted(turns.tolist()) == pytest.approx(keys.turns(np.sort(shares)).tolist(), abs=1e-5)


def test_a_day_is_busiest_at_its_peak() -> None:
    keys = DayKeys(mean=3.0, peak=6.0, cycle=1000.0, at=700.0)
    came = np.array(list(islice(instants(ArrivalKeys(day=keys), 0), 60_000)), np.float64) / FEMTO
    hours = np.histogram(came % 1000, bins=20, range=(0, 1000))[0] / (came[-1] / 1000) / 50
    for number, rate in enumerate(hours):
        middle = np.mean([keys.rate(50 * number + index) for index in range(50)])
        assert rate == pytest.approx(float(middle), rel=0.1, abs=0.15)
    assert keys.rate(700.0) == pytest.approx(6.0)
    assert keys.rate(200.0) == pytest.approx(0.0, abs=1e-12)


def test_a_day_goes_on_for_years() -> None:
    """Past the 2.6 hours that an int64 of femtoseconds holds, and in order."""
    slow = ArrivalKeys(day=DayKeys(mean=1e-4, peak=1.9e-4))
    came = list(islice(instants(slow, 0), 20_000))
    assert came == sorted(came)
    assert came[-1] > 5 * 365 * 86_400 * FEMTO
    assert all(isinstance(instant, int) for instant in came[-5:])


def test_memory_does_not_grow_with_the_requests() -> None:
    tracemalloc.start()
    for keys in (OPEN[0], ArrivalKeys(bursts=BurstKeys(poisson=1.0, size=10**9))):
        for _ in islice(blocks(keys, 0), 100):
            pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3e6


def test_the_last_request_may_not_come_after_the_longest_time() -> None:
    with pytest.raises(ticks.TooLong):
        list(islice(instants(ArrivalKeys(poisson=1e-8), 0), 100))
    with pytest.raises(ticks.TooLong):
        list(islice(instants(ArrivalKeys(day=DayKeys(mean=1e-8, peak=1e-8)), 0), 100))


def test_clients_think() -> None:
    keys = ArrivalKeys(clients=3, think=TimeDraw(exponential=2.0))
    assert keys.closed
    assert keys.rate is None
    assert keys.thinking == Exponential(2.0)
    drawn = thoughts(keys, 0, "web")
    assert np.mean([drawn.at(index) for index in range(20_000)]) == pytest.approx(2.0, rel=0.03)
    assert thoughts(ArrivalKeys(clients=3), 0).at(5) == 0.0
    with pytest.raises(TypeError, match="clients"):
        next(instants(keys, 0))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (ArrivalKeys(), "clients, got none of them"),
        (ArrivalKeys(poisson=1.0, clients=2), "clients, got poisson and clients"),
        (ArrivalKeys(poisson=1.0, think=1.0), "`think` is valid only with `clients`"),
        (ArrivalKeys(day=DayKeys(mean=1.0, peak=2.1)), "more than twice `mean`"),
        (ArrivalKeys(day=DayKeys(mean=1.0, peak=0.9)), "below `mean`"),
        (ArrivalKeys(clients=1, think=TimeDraw(pareto=TimePareto(least=1.0, shape=1.0))), "the mean is infinite"),
        (ArrivalKeys(clients=1, think=TimeDraw(uniform=(2.0, 1.0))), "the lower limit 2 is above the upper limit 1"),
        (ArrivalKeys(clients=1, think=TimeDraw(values=())), "`values` is empty"),
        (ArrivalKeys(bursts=BurstKeys(poisson=1.0, size=CountDraw())), "values, got none of them"),
        (
            ArrivalKeys(bursts=BurstKeys(poisson=1.0, size=CountDraw(exponential=2.0, lognormal=CountLognormal(3.0)))),
            "values, got exponential and lognormal",
        ),
        (ArrivalKeys(clients=1, think=TimeDraw(pareto=TimePareto(least=2.0, most=1.0))), "`most` (1) is not above `least` (2)"),
    ],
)
def test_what_cannot_be_is_said(keys: ArrivalKeys, said: str) -> None:
    (problem,) = keys.problems()
    assert said in problem[1]


@pytest.mark.parametrize(
    "keys",
    [
        ArrivalKeys(clients=1, think=TimeDraw(uniform=(2.0, 2.0))),
        *(ArrivalKeys(day=DayKeys(mean=1.0, peak=peak)) for peak in (1.0, 2.0)),
    ],
)
def test_what_just_can_be_is_not_refused(keys: ArrivalKeys) -> None:
    assert list(keys.problems()) == []


def test_a_run_says_that_it_is_a_part_of_a_day() -> None:
    """What comes in a part of a day, a trace or a ramp is not all; nothing is expected of it, whatever `find` tries."""
    day = DayKeys(mean=300.0, peak=600.0)
    for share in (0.01, 0.3, 1.0, 2.7):  # the instant up to which so many come, and so many up to that instant
        seconds = day.lasts(share * 300 * 86400)
        swing = (math.sin(2 * math.pi * (seconds - day.at) / 86400) + math.sin(2 * math.pi * day.at / 86400)) / (2 * math.pi)
        assert seconds / 86400 + swing == pytest.approx(share)
    keys = ArrivalKeys(day=day)
    assert keys.part_of_load("", 20_000, 3600.0)
    assert keys.part_of_load("", 300 * 86_400, 80_000.0) == keys.part_of_load("", 0, 86_400.0) == ()
    assert [bool(keys.part_of_load("", 0, share * 86_400.0)) for share in (0.94, 0.96)] == [True, False]
    assert ArrivalKeys(poisson=1.0).part_of_load("", 1, 1.0) == ()
    assert ArrivalKeys(clients=3, think=2.0).part_of_load("", 1, 1.0)
    assert ArrivalKeys(clients=3, think=2.0, ramp=1.0).part_of_load("", 1, 1.0) == ()
    asked = {"day": {"mean": "100 1/s", "peak": "150 1/s", "cycle": "40 s"}}
    service = {"s": {"device": "cpu", "arrivals": asked, "request": [busy("1 ms")]}}
    whole = workload(service, requests=4000, expect={"s.latency_p99": "at most 1 s"})
    with pytest.raises(hwsim.SpecError, match="of the cycle of"):
        hwsim.find(MACHINE, whole, "workload.services.s.arrivals.day.mean")


RAMP = {"clients": 10, "think": "100 ms", "ramp": "10 s"}
CUT: dict[str, tuple[dict[str, Any], int, int]] = {  # arrivals, requests of all of it, and of a part
    "day": ({"day": {"mean": "10 1/s", "peak": "15 1/s", "cycle": "40 s"}}, 420, 200),
    "ramp": (RAMP, 2000, 100),
    "think": ({"clients": 10, "think": "5 s"}, 40, 6),
    "trace": ({"trace": "trace.csv"}, 400, 200),
}


@pytest.mark.parametrize("start", [0.0, 30.0, 61.0, 250.0])
def test_a_day_that_starts_later_has_the_rate_of_its_time(start: float) -> None:
    day = DayKeys(mean=1000.0, peak=1800.0, at=40.0, cycle=100.0, start=start)
    came = np.array(list(islice(instants(ArrivalKeys(day=day), 3), 150_000))) / FEMTO
    assert came[-1] == pytest.approx(day.lasts(150_000), rel=0.01)
    for time in range(0, 120, 7):
        count = int(((came >= time) & (came < time + 1)).sum())
        assert count == pytest.approx(day.rate(time + 0.5), abs=5 * math.sqrt(day.peak))
    assert not ArrivalKeys(day=day).part_of_load("", 150_000, 0.0)
    assert len(ArrivalKeys(day=day).part_of_load("", 20_000, 0.0)) == (start != 30.0)  # of 11 s; 30 s to 41 s have the peak


@pytest.mark.parametrize("engine", ["auto", "simpy"])
@pytest.mark.parametrize("kind", CUT)
@pytest.mark.parametrize("served", [False, True])
def test_a_run_that_ends_before_its_load_is_all_there_is_refused(kind: str, engine: Any, tmp_path: Path, *, served: bool) -> None:
    arrivals, whole, part = CUT[kind]
    lines = [f"{number / 20 + number % 3},20,5" for number in range(400)]
    (tmp_path / "trace.csv").write_text("\n".join(["arrival,prompt,output", *lines]), encoding="utf-8")
    if kind == "trace":
        arrivals = {"trace": str(tmp_path / "trace.csv")}
    infer: dict[str, Any] = {"model": SMALL, "device": "gpu0", "arrivals": arrivals}
    if kind != "trace":
        infer |= {"prompt": 20, "output": 5}
    shop = {"s": {"device": "cpu", "arrivals": arrivals, "request": [busy("1 ms")]}}

    def asked(requests: int, expect: Any) -> Any:
        if served:
            return {"hwsim": "workload/1", "infer": {**infer, "requests": requests}, "expect": expect}
        return workload(shop, requests=requests, expect=expect)

    machine: Any = "dgx-h100" if served else MACHINE
    expect = {"latency_p99" if served else "s.latency_p99": "at most 1 s"}
    run = hwsim.simulate(machine, asked(whole, expect), expect=True, engine=engine, interval=False)
    assert run.met
    assert "partial-cycle" not in {warning.code for warning in run.warnings}
    with pytest.raises(PartOfDay, match=r"is expected, and .*the run covers"):
        hwsim.simulate(machine, asked(part, expect), expect=True, engine=engine, interval=False)
    warned = hwsim.simulate(machine, asked(part, {}), engine=engine, interval=False).warnings
    assert [warning.code for warning in warned] == ["partial-cycle"]
