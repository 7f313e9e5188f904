"""Ranges where events, unlike sides and comparisons meet: no line of an answer says what another one excludes."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hwsim
from hwsim.families.services.results.uncertainty import work_interval
from hwsim.results.errors import NORMAL
from hwsim.sensitivities.analysis import sensitivity
from hwsim.spec import SpecError

SPREAD = 0.5
CPU = {"kind": "cpu", "cores": 4, "flop": {"fp32": "1 TFLOP/s"}, "memory": {"size": "64 GiB", "bandwidth": "100 GB/s"}}
LINK = {"between": ["cpu", "disk"], "kind": "direct", "bandwidth": "10 GB/s"}


def machine(link: dict[str, Any] = LINK, **read: Any) -> dict[str, Any]:
    disk = {"kind": "disk", "read": {"value": "1 GB/s", "spread": SPREAD} if not read else read["read"]}
    return {"hwsim": "machine/1", "class": "ideal", "parts": {"cpu": CPU, "disk": disk}, "links": [link]}


def program(*ops: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return {"hwsim": "workload/1", "program": [*ops, {"wait": "all"}], **keys}


READ = {"read": {"from": "disk", "bytes": "1 GB"}}


@settings(max_examples=20)
@given(at=st.integers(0, 3000), lasts=st.integers(1, 20_000), speed=st.sampled_from([None, 50, 90]))
def test_a_time_that_a_file_states_for_an_event_is_as_long_at_both_ends(at: int, lasts: int, speed: int | None) -> None:
    what = {"down": f"{lasts} ms"} if speed is None else {"speed": f"{speed} %", "for": f"{lasts} ms"}
    workload = program(READ, events=[{"at": f"{at} ms", "part": "disk", **what}])
    found = hwsim.simulate(machine(), workload).interval
    factor = math.exp(SPREAD * NORMAL[90])
    ends = [hwsim.simulate(machine(read=f"{1e9 * by} B/s"), workload).makespan_s for by in (factor, 1 / factor)]
    assert [found.low, found.high] == pytest.approx(ends, rel=0.02)


@settings(max_examples=10)
@given(lasts=st.integers(1, 100_000), count=st.sampled_from([1, 20_000]))
def test_an_outage_is_no_error_of_the_op_that_waits_for_it(lasts: int, count: int) -> None:
    """In jobs, and in runs of many ops, whose ends no further runs find."""
    read = {"repeat": {"times": count, "do": [{"read": {"from": "disk", "bytes": f"{10**9 // count} B"}}]}}
    events = [{"at": "100 ms", "part": "disk", "down": f"{lasts} ms"}]
    run = hwsim.simulate(
        machine(), {"hwsim": "workload/1", "jobs": {"a": {"program": [read, {"wait": "all"}]}}, "events": events}
    )
    assert run.makespan_s == pytest.approx(1 + lasts / 1e3, rel=1e-3)
    for found in (run.job_intervals[0], run.interval if count > 1 else None):
        if found is not None:
            assert found.stated == pytest.approx(lasts / 1e3 / run.makespan_s, rel=1e-3)
            assert found.half == pytest.approx(SPREAD * NORMAL[90] / run.makespan_s, rel=1e-3)


def test_a_spread_of_what_a_slow_host_does_reaches_both_ends() -> None:
    busy = {"repeat": {"times": 20, "do": [{"busy": {"device": "cpu", "time": "1 us"}}]}}
    runtime = {"dispatch": {"value": "1 ms", "spread": 0.2}}
    found = hwsim.simulate(
        machine(), program(busy, runtime=runtime, events=[{"at": "0 s", "part": "cpu", "speed": "50 %"}])
    ).interval
    assert (found.below, found.above) == pytest.approx([0.2 * NORMAL[90]] * 2, rel=0.02)


def test_a_range_with_unlike_sides_is_the_same_wherever_it_is_said() -> None:
    """A link holds a disk whose rate is unsure back: a faster one would help nothing, a slower one takes longer."""
    narrow = machine({**LINK, "bandwidth": "1 GB/s"})
    alone = hwsim.simulate(narrow, program(READ)).interval
    assert sensitivity(narrow, program(READ)).ends == pytest.approx([alone.low, alone.high])
    assert alone.below < 0.01 < 0.7 < alone.above
    for seconds, told in ((1.7, False), (3.0, True)):  # the range of the reading holds the first
        said = str(hwsim.compare(narrow, program(READ), machine(read=f"{1 / seconds} GB/s"), program(READ), by="time"))
        assert ("statistically tied" not in said) == told


def test_no_steady_state_is_waited_for_beside_a_job_on_the_same_parts() -> None:
    shop = {"device": "cpu", "warm_up": "until steady", "arrivals": {"every": "100 ms"}, "request": [READ]}
    services = {"hwsim": "workload/1", "services": {"x": shop}, "requests": 50}
    hwsim.simulate(machine(read="1 GB/s"), services)
    with pytest.raises(SpecError, match="the load has no steady state"):
        hwsim.simulate(machine(read="1 GB/s"), {**services, "jobs": {"backup": {"start": "2 s", "program": [READ]}}})


def test_a_parameter_s_spread_is_felt_or_refused_as_if_it_stood_at_the_number() -> None:
    by_name = {**machine(read="$rate"), "let": {"rate": {"value": "1 GB/s", "spread": SPREAD}}}
    one, other = (hwsim.simulate(file, program(READ)).interval for file in (machine(), by_name))
    assert (one.low, one.high) == pytest.approx((other.low, other.high))
    services = {"x": {"device": "cpu", "arrivals": {"every": "2 s"}, "request": [READ]}}
    served = [hwsim.simulate(file, {"hwsim": "workload/1", "services": services, "requests": 5}) for file in (machine(), by_name)]
    halves = [work_interval(run).half for run in served if run.services is not None]
    assert halves == pytest.approx([halves[0]] * 2)
    assert halves[0] > SPREAD * NORMAL[90]


def test_nor_of_a_model_that_is_served_beside_another_job() -> None:
    """What the other job does to requests of the beginning would be cut off with the warm-up."""
    served = {"model": "gpt2", "device": "gpu0", "warm_up": "until steady", "arrivals": {"every": "100 ms"}, "requests": 10}
    jobs = {"s": {"infer": served}, "t": {"start": "200 ms", "program": [{"busy": {"device": "gpu0", "time": "1 s"}}]}}
    with pytest.raises(SpecError, match="the load has no steady state"):
        hwsim.simulate("dgx-h100", {"hwsim": "workload/1", "jobs": jobs})
    hwsim.simulate("dgx-h100", {"hwsim": "workload/1", "jobs": {"s": jobs["s"]}})
