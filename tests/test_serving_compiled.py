"""A served model played by the compiled library is Python's, bit for bit: what is drawn, and all that is said of its requests."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hwsim import api
from hwsim.api import load_machine
from hwsim.engine import core
from hwsim.engine.fast import Choice
from hwsim.families.serving.actors import alone, compiled, costs
from hwsim.families.serving.actors.replica import DoesNotFit
from hwsim.families.serving.actors.service import Service
from hwsim.families.serving.results import log as served
from hwsim.families.serving.results.statistics import ServiceStatistics
from hwsim.families.serving.running import Models
from hwsim.graph.opgraph import OpGraph
from hwsim.machine import Machine
from hwsim.prepare import prepare
from hwsim.spec import SpecError
from tests.test_infer import FREE, SMALL

installed = pytest.mark.skipif(not core.is_there(), reason=f"nothing to compare Python with: {core.found()}")
FRAMEWORKS = ("vllm", "sglang", "tensorrt-llm", "sarathi-serve")


@pytest.fixture(scope="module")
def machine() -> Machine:
    return load_machine("dgx-h100")


def services(machine: Machine, choice: Choice, infer: dict[str, Any]) -> tuple[Service, OpGraph]:
    lowered = prepare(machine, {"hwsim": "workload/1", "infer": {"model": SMALL, **infer}})
    planned = lowered.doors["infer"]
    assert isinstance(planned, Models)
    [plan] = planned.plans
    return Service(plan, lowered.machine, fast=choice), lowered.graph


def told(machine: Machine, choice: Choice, infer: dict[str, Any]) -> tuple[ServiceStatistics | None, list[Any]]:
    """All that is said of a service, and what it draws."""
    service, empty = services(machine, choice, infer)
    graph = service.graph(empty)
    [body] = graph.blocks
    columns = [getattr(body, name).tolist() for name in ("label", "cost", "size", "time", "queue", "edges")]
    return service.statistics(), [*columns, graph.labels, graph.costs, graph.queues]


def alike(machine: Machine, infer: dict[str, Any]) -> ServiceStatistics | None:
    """What both ways say, which is the same."""
    if not compiled.covers(services(machine, "always", infer)[0].plan):
        raise AssertionError("Python plays it")
    found, expected = told(machine, "always", infer), told(machine, "never", infer)
    assert found[0] == expected[0]
    assert found[1] == expected[1]
    return found[0]


def servers() -> st.SearchStrategy[dict[str, Any]]:
    """Settings of a server, few of them changed."""
    keys: dict[str, st.SearchStrategy[Any]] = {
        "prompts": st.sampled_from(["beside", "before", "alone"]),
        "chunked": st.booleans(),
        "budget": st.integers(16, 4096),
        "sequences": st.integers(1, 40),
        "admit": st.sampled_from(["prompt", "answer", "ratio"]),
        "spare": st.sampled_from(["0 %", "1 %", "5 %"]),
        "look": st.integers(1, 30),
        "ahead": st.integers(0, 1),
        "block": st.sampled_from([1, 4, 16, 64]),
        "prefixes": st.booleans(),
        "ratio": st.just({"first": "10 %", "least": "2 %", "steps": 200}),
    }
    return st.fixed_dictionaries({}, optional=keys)


def infers() -> st.SearchStrategy[dict[str, Any]]:
    """Services of all kinds that the library plays."""
    lengths = st.one_of(
        st.integers(1, 900),
        st.builds(lambda median: {"lognormal": {"median": median, "sigma": 1.2}}, st.integers(5, 400)),
        st.builds(lambda least, more: {"uniform": [least, least + more]}, st.integers(1, 300), st.integers(0, 300)),
    )
    arrivals = st.one_of(
        st.just("all at once"),
        st.sampled_from([{"poisson": "200 1/s"}, {"poisson": "2000 1/s"}, {"every": "4 ms"}, {"poisson": "3 1/s"}]),
    )
    shared = st.one_of(st.builds(lambda count: {"distinct": count}, st.integers(1, 20)), st.just({"tokens": 200, "groups": 3}))
    model = st.sampled_from([SMALL, {**SMALL, "window": 96, "cache": "window"}])
    required = {
        "model": model,
        "framework": st.sampled_from(FRAMEWORKS),
        "arrivals": arrivals,
        "prompt": lengths,
        "output": lengths,
        "requests": st.integers(1, 90),
        "seed": st.integers(0, 99),
        "server": servers(),
        "device": st.sampled_from(["gpu0", "gpu0..3"]),
    }
    think = st.sampled_from(["10 ms", "3 s", {"exponential": "50 ms"}])
    turns = st.one_of(st.integers(1, 7), st.just({"uniform": [1, 9]}))
    optional = {
        "sessions": st.fixed_dictionaries({"turns": turns, "think": think}),
        "clients": st.fixed_dictionaries({"clients": st.integers(1, 30)}, optional={"think": think}),
        "memory": st.sampled_from(["3.2 %", "3.3 %", "4 %", "18.6 %", "19 %"]),
        "shared": shared,
        "router": st.sampled_from(["least", "waiting", "round robin"]),
        "parallel": st.sampled_from([{"tp": 1}, {"tp": 2}]),
        "warm_up": st.sampled_from(["until steady", "50 ms"]),
    }
    return st.fixed_dictionaries(required, optional=optional)


@installed
@settings(max_examples=60, deadline=None)
@given(infers(), st.sampled_from([0, core.PATIENCE]))
def test_a_service_is_played_the_same(machine: Machine, infer: dict[str, Any], patience: int) -> None:
    if infer["device"] == "gpu0":
        infer.pop("parallel", None)
    if "clients" in infer:
        infer["arrivals"] = infer.pop("clients")
    if "block" in infer["server"] and infer["model"] is not SMALL:
        del infer["server"]["block"]
    try:
        service, empty = services(machine, "always", infer)
    except SpecError:  # the memory is too small for the model, or the model reads less
        assume(False)
        return
    try:
        service.graph(empty)
    except DoesNotFit as error:
        with pytest.raises(DoesNotFit, match=re.escape(str(error))):
            told(machine, "never", infer)
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core, "PATIENCE", patience)
        alike(machine, infer)


KINDS: dict[str, dict[str, Any]] = {
    "put off": {"device": "gpu0", "memory": "3.2 %", "arrivals": "all at once", "output": {"uniform": [100, 900]}},
    "pairs": {"device": "gpu*", "parallel": {"tp": 2}, "arrivals": {"poisson": "1500 1/s"}},
    "stages": {"device": "gpu*", "parallel": {"tp": 2, "pp": 2}, "arrivals": {"poisson": "900 1/s"}},
    "windows": {"device": "gpu0", "model": {**SMALL, "window": 256, "cache": "window"}},
    "ratio": {
        "device": "gpu0",
        "server": {"admit": "ratio", "ratio": {"first": "10 %", "least": "2 %", "steps": 200}},
        "memory": "3.2 %",
        "arrivals": "all at once",
        "output": {"uniform": [100, 900]},
    },
    "before": {"device": "gpu0", "prefill": 1000, "server": FREE},
    "prefixes": {"device": "gpu0..1", "memory": "3.2 %", "shared": {"distinct": 40}},
    "clients": {"device": "gpu0..1", "arrivals": {"clients": 40, "think": {"exponential": "20 ms"}}},
    "conversations": {"device": "gpu0", "sessions": {"turns": {"uniform": [1, 9]}, "think": {"exponential": "300 ms"}}},
    "clients in conversations": {
        "device": "gpu0..1",
        "arrivals": {"clients": 12},
        "sessions": {"turns": 6, "think": "5 ms"},
        "memory": "3.2 %",
        "prompt": 90,
    },
}
USUAL: dict[str, Any] = {"requests": 200, "prompt": {"lognormal": {"median": 300}}, "output": {"uniform": [1, 90]}, "seed": 3}


@installed
@pytest.mark.parametrize("kind", KINDS)
def test_sums_and_samples_are_the_same(kind: str, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, least in ((alone, "ROWS", 7), (served, "ROWS", 60), (served, "SAMPLE", 20), (served, "BLOCK", 16)):
        monkeypatch.setattr(module, name, least)
    found = alike(machine, {"arrivals": {"poisson": "300 1/s"}, **USUAL, **KINDS[kind]})
    assert found is not None
    assert found.sampled
    assert (kind not in ("put off", "ratio")) or found.put_off


@installed
def test_a_day_has_more_femtoseconds_than_64_bits(machine: Machine) -> None:
    late = {"day": {"mean": "0.002 1/s", "peak": "0.004 1/s"}}
    found = alike(machine, {**USUAL, "arrivals": late, "device": "gpu0"})
    assert found is not None
    assert found.span_s * 1e15 > 2**64


@installed
@pytest.mark.parametrize("keys", [
    {"arrivals": {"clients": 30, "think": "9 ms"}},
    {"sessions": {"turns": {"uniform": [1, 40]}, "think": "9 ms"}, "prompt": 10},
    {"arrivals": {"clients": 30}, "sessions": {"turns": {"uniform": [1, 40]}, "think": "9 ms"}, "prompt": 10},
])  # fmt: skip
def test_requests_that_follow_are_fed_in_pieces(keys: dict[str, Any], machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "FED", 7)  # fewer than ask at once, and than a conversation has
    alike(machine, {**USUAL, "device": "gpu0..1", "arrivals": {"poisson": "300 1/s"}, "output": {"uniform": [1, 20]}, **keys})


@installed
def test_iterations_of_hours_are_left_to_python(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "LONGEST", 10**9)
    service, empty = services(machine, "always", {"device": "gpu0", "arrivals": "all at once", **USUAL})
    expected, _ = told(machine, "never", {"device": "gpu0", "arrivals": "all at once", **USUAL})
    service.graph(empty)
    assert service.statistics() == expected


@pytest.mark.parametrize("parallel", [1, 2])
def test_a_run_of_years_is_a_few_ops_to_the_femtosecond(parallel: int, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    infer = {
        "model": SMALL,
        **USUAL,
        "requests": 20,
        "arrivals": "all at once",
        "device": "gpu0..1",
        "parallel": {"tp": parallel},
    }
    whole = api.simulate(machine, {"hwsim": "workload/1", "infer": infer})
    monkeypatch.setattr(costs, "LONGEST", 10**9)
    cut = api.simulate(machine, {"hwsim": "workload/1", "infer": infer})
    monkeypatch.setattr(costs, "MOST_PIECES", 2)
    few = api.simulate(machine, {"hwsim": "workload/1", "infer": infer})
    assert whole.timeline.makespan == cut.timeline.makespan == few.timeline.makespan
    assert len(whole.timeline.end) <= len(few.timeline.end) < len(cut.timeline.end)


def test_what_the_library_does_not_know_is_played_by_python(machine: Machine) -> None:
    rest: list[dict[str, Any]] = [
        {"speculate": {"tokens": 2, "acceptance": "70 %"}},
        {"batching": "static", "batch": 4},
        {"router": {"prefix": 2}},
        {"offload": {"host": "1 GB"}},
        {"scale": {"least": 1, "most": 2, "target": 8, "start": "1 s"}, "device": "gpu0..1"},
    ]
    for keys in rest:
        service, _ = services(machine, "always", {"device": "gpu0", **USUAL, **keys})
        assert not compiled.covers(service.plan), keys


@given(st.lists(st.integers(-(2**100), 2**100)))
def test_numbers_of_two_words_come_back(values: list[int]) -> None:
    words = compiled.words(values)
    assert words.dtype == np.int64
    assert compiled.whole(words.reshape(-1, 2)).tolist() == values
