"""Services under load: laws that hold for every program, and the rules of lines, locks, timeouts and branches."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hwsim
from hwsim.spec import SpecError
from hwsim.workload.load.arrivals import ArrivalKeys, instants
from hwsim.workload.load.draws import Exponential, RandomDraws
from hwsim.workload.load.numbers import stream
from tests.service_cases import FIFO, MACHINE, Pool, busy, played, run, twin, workload

POISSON = {"poisson": "1000 1/s"}
MS = 10**12  # fs


OPEN: dict[str, Any] = {"device": "cpu", "arrivals": POISSON}


def exponential(mean: str) -> dict[str, str]:
    return {"exponential": mean}


def fixed(time: Any) -> dict[str, Any]:
    return {"busy": {"time": time, "fixed": True}}


# ---- laws ----


@st.composite
def services(draw: st.DrawFn) -> dict[str, Any]:
    """Two services, the first of which asks the second, with everything that a program may have."""
    times = st.sampled_from(["200 us", "1 ms", {"exponential": "1 ms"}, {"uniform": ["100 us", "2 ms"]}])
    ask: dict[str, Any] = {"service": "b", "times": draw(st.integers(0, 2))}
    if draw(st.booleans()):
        ask |= {"timeout": draw(st.sampled_from(["1 ms", "5 ms"])), "retries": draw(st.integers(0, 2))}
        ask |= {"backoff": {"first": "1 ms", "jitter": "50 %"}, "refused": draw(st.sampled_from(["fail", "retry"]))}
    inner = draw(st.sampled_from(["plain", "lock", "maybe", "cache", "choose", "together"]))
    work = busy(draw(times), draw(st.sampled_from(["cpu", "one"])), "inner")
    wrapped: dict[str, Any] = {
        "plain": work,
        "lock": {"lock": {"name": "l", "group": draw(st.integers(1, 3)), "do": [work]}},
        "maybe": {"maybe": {"ratio": "40 %", "do": [work]}},
        "cache": {"cache": {"hit": "60 %", "miss": [work]}},
        "choose": {"choose": {"x": {"share": "30 %", "do": [work]}, "y": {"share": "70 %"}}},
        "together": {"together": [[work], [busy("300 us")]]},
    }[inner]
    arrivals = draw(st.sampled_from([{"poisson": "600 1/s"}, {"every": "1 ms"}, {"clients": 5, "think": "2 ms"}]))
    second: dict[str, Any] = {"device": "cpu", "request": [busy(draw(times)), {"send": {"to": "client", "bytes": "100 kB"}}]}
    if draw(st.booleans()):
        second |= {"workers": draw(st.integers(1, 3)), "queue_limit": draw(st.integers(0, 5))}
        second |= {"abandoned": draw(st.sampled_from(["finish", "drop"]))}
    first = {"device": "cpu", "arrivals": arrivals, "request": [busy(draw(times)), {"ask": ask}, wrapped]}
    if draw(st.booleans()):
        first["workers"] = draw(st.integers(1, 4))
    return {"a": first, "b": second}


@settings(max_examples=25, deadline=None)
@given(services(), st.booleans())
def test_requests_are_conserved_and_littles_law_holds_to_the_femtosecond(files: dict[str, Any], fifo: bool) -> None:
    play = played(files, set=FIFO if fifo else None, requests=150)
    a, b = play.notes
    assert a.came_count == a.entered == 150
    for notes in (a, b):
        answered = notes.answers.count
        assert notes.here == notes.line == 0
        assert answered + notes.refused + notes.failed + notes.wasted + notes.dropped == notes.entered
        assert notes.stay == notes.area  # every request from its coming to its end, and the integral of those there
        assert sum(len(window.answers) for window in notes.windows) == answered
        assert sum(latency_bin.count for latency_bin in notes.above.values()) == answered
    assert b.retries <= b.timeouts + b.refused + b.failed
    assert a.failed <= a.entered


@settings(max_examples=10, deadline=None)
@given(services())
def test_a_run_is_the_same_again_and_another_seed_is_another_run(files: dict[str, Any]) -> None:
    runs = [played(files, requests=60, seed=seed) for seed in (1, 1)]
    assert runs[0].now == runs[1].now
    assert [notes.area for notes in runs[0].notes] == [notes.area for notes in runs[1].notes]
    files = {"a": {"device": "cpu", "arrivals": POISSON, "request": [busy("1 ms")]}}
    assert played(files, requests=50, seed=1).now != played(files, requests=50, seed=2).now


def test_as_many_workers_as_cores_is_first_come_first_served() -> None:
    """Shared cores with at most four requests at once are four servers: M/G/4, to the femtosecond."""
    work = [busy(exponential("3 ms"))]
    shared = played({"a": {"device": "cpu", "arrivals": POISSON, "workers": 4, "request": work}})
    fifo = played({"a": {"device": "cpu", "arrivals": POISSON, "request": work}}, set=FIFO)
    assert shared.now == pytest.approx(fifo.now, abs=2000)
    assert shared.notes[0].area == pytest.approx(fifo.notes[0].area, rel=1e-12)


# ---- the same rules as SimPy processes ----


def drawn(name: str, statement: str, mean: float, count: int) -> list[int]:
    draws = RandomDraws(stream(0, name, statement), Exponential(mean))
    return [round(round(mean * 1e15) * max(draws.at(number) / mean, 0.0)) for number in range(count)]


def came(rate: float, count: int, name: str = "a") -> list[int]:
    return list(islice(instants(ArrivalKeys(poisson=rate), 0, name), count))


def stays(play: Any) -> int:
    return int(play.notes[0].stay)


COUNT = 400


def test_workers_and_a_lock_as_simpy_processes() -> None:
    """Three workers hold their place while they wait for a lock."""
    request_ = [fixed(exponential("1 ms")), {"lock": {"name": "l", "do": [fixed(exponential("700 us"))]}}]
    play = played({"a": {**OPEN, "workers": 3, "request": request_}}, requests=COUNT)
    first, second = drawn("a", "1 busy", 1e-3, COUNT), drawn("a", "3 busy", 700e-6, COUNT)
    state: dict[str, Pool] = {}

    def request(env: Any, number: int) -> Any:
        workers, lock = state.setdefault("w", Pool(env, 3)), state.setdefault("l", Pool(env, 1))
        yield workers.take()
        yield env.timeout(first[number])
        yield lock.take()
        yield env.timeout(second[number])
        lock.give()
        workers.give()

    assert stays(play) == pytest.approx(sum(twin(request, came(1000, COUNT))), abs=COUNT * 4)


def test_branches_side_by_side_as_simpy_processes() -> None:
    branches = [[fixed(exponential("1 ms"))], [{"lock": {"name": "l", "do": [fixed(exponential("800 us"))]}}]]
    play = played({"a": {**OPEN, "request": [{"together": branches}]}}, requests=COUNT)
    first, second = drawn("a", "2 busy", 1e-3, COUNT), drawn("a", "4 busy", 800e-6, COUNT)
    state: dict[str, Pool] = {}

    def request(env: Any, number: int) -> Any:
        lock = state.setdefault("l", Pool(env, 1))

        def locked() -> Any:
            yield lock.take()
            yield env.timeout(second[number])
            lock.give()

        yield env.all_of([env.timeout(first[number]), env.process(locked())])

    assert stays(play) == pytest.approx(sum(twin(request, came(1000, COUNT))), abs=COUNT * 4)


@pytest.mark.parametrize("abandoned", ["finish", "drop"])
def test_timeouts_and_retries_as_simpy_processes(abandoned: str) -> None:
    """An attempt that is given up stays in line; it is worked on for nobody, or thrown away at its turn."""
    ask = {"service": "b", "timeout": "5 ms", "retries": 1, "backoff": "2 ms"}
    files = {
        "a": {"arrivals": {"poisson": "300 1/s"}, "request": [{"ask": ask}]},
        "b": {"device": "cpu", "workers": 1, "abandoned": abandoned, "request": [fixed("3.1 ms")]},
    }
    play = played(files, requests=COUNT)
    state: dict[str, Any] = {}
    seen = {"wasted": 0, "dropped": 0, "timeouts": 0, "failed": 0}

    def server(env: Any, attempt: dict[str, Any]) -> Any:
        pool = state.setdefault("w", Pool(env, 1))
        yield pool.take()
        if abandoned == "drop" and attempt["gone"]:  # it does not keep the worker
            seen["dropped"] += 1
            pool.give()
            return
        yield env.timeout(3_100_000_000_000)
        pool.give()
        if attempt["gone"]:
            seen["wasted"] += 1
        else:
            attempt["answer"].succeed()

    def request(env: Any, _: int) -> Any:
        for _attempt in range(2):
            attempt = {"gone": False, "answer": env.event()}
            env.process(server(env, attempt))
            answer = attempt["answer"]
            yield env.any_of([answer, env.timeout(5 * MS)])
            if answer.triggered:
                return
            attempt["gone"] = True
            seen["timeouts"] += 1
            if _attempt == 0:
                yield env.timeout(2 * MS)
        seen["failed"] += 1

    took = twin(request, came(300, COUNT))
    a, b = play.notes
    assert {"wasted": b.wasted, "dropped": b.dropped, "timeouts": b.timeouts, "failed": a.failed} == seen
    assert a.stay == pytest.approx(sum(took), abs=COUNT * 4)


# ---- rules ----


def test_a_full_line_refuses_and_a_stopped_service_waits() -> None:
    files = {"a": {"device": "cpu", "arrivals": {"every": "1 ms"}, "workers": 1, "queue_limit": 3, "request": [busy("500 us")]}}
    quiet = run(files, requests=100)["a"]
    assert (quiet.refused, quiet.completed) == (0, 100)
    stopped = run(files, requests=100, events=[{"at": "20.2 ms", "service": "a", "down": "10 ms"}])["a"]
    assert stopped.refused == 10 - 3
    assert stopped.completed == 100 - 7


def test_an_event_makes_caches_miss() -> None:
    files = {
        "a": {"device": "cpu", "arrivals": {"every": "1 ms"}, "request": [{"cache": {"hit": "100 %", "miss": [{"ask": "b"}]}}]},
        "b": {"device": "cpu", "request": [busy("10 us")]},
    }
    assert run(files, requests=1000)["b"].arrived == 0
    cold = run(files, requests=1000, events=[{"at": "100 ms", "service": "a", "hit": "0 %", "for": "200 ms"}])["b"]
    assert cold.arrived == 200
    hit = {"service": "a", "hit": "100 %"}  # at each moment the lowest that is given, whichever begins or ends first
    miss = {**hit, "hit": "0 %"}
    events = [
        {**hit, "at": "0 s"}, {**miss, "at": "100 ms", "for": "200 ms"}, {**hit, "at": "150 ms", "for": "10 ms"},
        {**miss, "at": "300 ms", "for": "100 ms"},
    ]  # fmt: skip
    assert (
        run(files, requests=1000, events=events)["b"].arrived
        == run(files, requests=1000, events=events[::-1])["b"].arrived
        == 300
    )


def test_a_value_that_is_kept_is_the_same_in_later_statements() -> None:
    request = [{"busy": {"time": {"uniform": ["1 ms", "3 ms"]}, "as": "first", "fixed": True}}, fixed("2 * $first")]
    notes = played({"a": {"device": "cpu", "arrivals": POISSON, "request": request}}, requests=500).notes[0]
    plain = played({"a": {"device": "cpu", "arrivals": POISSON, "request": request[:1]}}, requests=500).notes[0]
    assert notes.stay == pytest.approx(3 * plain.stay, rel=1e-9)


def test_each_choice_has_its_own_percentiles() -> None:
    choose = {"small": {"share": "90 %", "do": [busy("1 ms")]}, "large": {"share": "10 %", "do": [busy("10 ms")]}}
    found = run({"a": {"device": "cpu", "arrivals": {"every": "20 ms"}, "request": [{"choose": choose}]}}, requests=1000)
    assert found["a.small"].completed + found["a.large"].completed == found["a"].completed == 1000
    assert found["a.large"].completed == pytest.approx(100, abs=40)
    for name, time in (("a.small", 1e-3), ("a.large", 10e-3)):
        settled = found[name].latency
        assert settled.mean.value == pytest.approx(time)


def test_an_overload_has_no_percentiles() -> None:
    files = {"a": {"device": "one", "arrivals": POISSON, "request": [busy(exponential("1.2 ms"), "one")]}}
    found = run(files, requests=20_000)["a"]
    assert found.latency is None
    assert found.queue_growth_per_s == pytest.approx(1000 - 1 / 1.2e-3, rel=0.2)
    with pytest.raises(hwsim.ExpectationFailed, match="no steady state"):
        hwsim.simulate(MACHINE, workload(files, requests=20_000, expect={"a.latency_p99": "at most 1 s"}), expect=True)


# ---- beside others ----


def test_a_service_shares_with_a_job_as_the_engine_shares() -> None:
    """One request at a time, and a copy of the job on the same link: each has half of it meanwhile."""
    service = {"a": {"device": "cpu", "arrivals": {"every": "1 s"}, "request": [{"send": {"to": "client", "bytes": "100 MB"}}]}}
    file = {"hwsim": "workload/1", "jobs": {
        "copies": {"start": "50 ms", "program": [{"copy": {"from": "cpu", "to": "client", "bytes": "50 MB"}}]},
        "service": {"services": service, "requests": 1},
    }}  # fmt: skip
    found = hwsim.simulate(MACHINE, file)
    [answers] = found.services.answers
    assert answers.name == "service.a"
    assert answers.latency.mean.value == pytest.approx(150e-3)
    assert {job.name: job.end_s for job in found.jobs}["copies"] == pytest.approx(150e-3)


def test_a_lock_is_of_its_job_whatever_that_of_another_is_called() -> None:
    held = {"lock": {"name": "l", "do": [fixed("2 ms")]}}
    job = {"services": {"a": {"device": "cpu", "arrivals": {"every": "3 ms"}, "request": [held]}}, "requests": 100}
    found = hwsim.simulate(MACHINE, {"hwsim": "workload/1", "jobs": {"one": job, "two": job}}).services
    assert [answer.latency.mean.value for answer in found.answers if answer.latency is not None] == pytest.approx([2e-3, 2e-3])


def test_two_services_share_one_disk() -> None:
    def files(second: str) -> dict[str, Any]:
        read = [{"read": {"from": "disk", "bytes": "1 MB"}}]
        return {
            "a": {"device": "cpu", "arrivals": {"every": "2 ms"}, "request": read},
            "b": {"device": "cpu", "arrivals": {"every": second}, "request": read},
        }

    crowded, quiet = run(files("2 ms"), requests=1000)["a"], run(files("2 s"), requests=1000)["a"]
    assert crowded.latency.mean.value == pytest.approx(2 * quiet.latency.mean.value, rel=0.05)


# ---- mistakes ----


@pytest.mark.parametrize(
    ("services", "keys", "message"),
    [
        ({"a": {"arrivals": POISSON, "request": [{"call": {"do": []}}]}}, {}, "requests have no statement 'call'"),
        ({"a": {"arrivals": POISSON, "request": [{"ask": "nobody"}]}}, {}, "no service 'nobody'"),
        ({"a": {"request": [busy("1 ms")]}}, {}, "no request ever arrives"),
        ({"a": {"arrivals": POISSON, "request": [{"busy": {"time": "1 ms", "after": "x"}}]}}, {}, "`after` has no effect"),
        ({"a": {"arrivals": POISSON, "request": [{"choose": {"x": {"share": "50 %"}}}]}}, {}, "add up to 100 %, got 50 %"),
        ({"a": {"arrivals": POISSON, "queue_limit": 3, "request": [busy("1 ms")]}}, {}, "`queue_limit` has no effect"),
        ({"a": {"arrivals": POISSON, "request": [{"ask": {"service": "a", "retries": 2}}]}}, {}, "`retries` has no effect"),
        ({"a": {"arrivals": POISSON, "request": [busy("$photo")]}}, {}, "photo"),
        ({"a": {"arrivals": POISSON, "request": [busy({"exponential": "-1 ms"})]}}, {}, "must be more than 0"),
        ({"a": {"arrivals": POISSON, "request": [busy("1 ms")]}}, {"events": [{"at": "1 s", "service": "b", "down": "1 s"}]},
         "no service 'b'"),
        ({"a": {"arrivals": POISSON, "request": [busy("1 ms")]}}, {"events": [{"at": "1 s", "service": "a", "hit": "1 %"}]},
         "has no `cache`"),
        ({"a": {"arrivals": {"poisson": "1 1/s", "every": "1 s"}, "request": [busy("1 ms")]}}, {}, "exactly one of"),
        ({"a": {"arrivals": POISSON, "request": [{"together": [busy("1 ms")]}]}}, {}, "a list of lists"),
        ({"a": {"arrivals": POISSON, "request": [{"lock": {"name": "l", "do": [{"lock": {"name": "l", "do": []}}]}}]}}, {},
         "would never get it"),
        ({"a": {"arrivals": POISSON, "request": [{"allreduce": {"among": "cpu", "bytes": 1}}]}}, {}, "cannot take part"),
    ],
)  # fmt: skip
def test_mistakes_are_told(services: dict[str, Any], keys: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        hwsim.simulate(MACHINE, workload({name: {"device": "cpu", **service} for name, service in services.items()}, **keys))


def test_a_run_needs_an_end() -> None:
    services = {"a": {"device": "cpu", "arrivals": POISSON, "request": [busy("1 ms")]}}
    with pytest.raises(SpecError, match="the run has no end"):
        hwsim.simulate(MACHINE, {"hwsim": "workload/1", "services": services})
    with pytest.raises(SpecError, match="expected one of them"):
        hwsim.simulate(MACHINE, workload(services, requests=3) | {"for": "1 s"})
