"""A served model played in runs and on SimPy's clock, iteration by iteration: the same to the femtosecond; and laws of queues."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hwsim
from hwsim.actors.serving import alone
from hwsim.api import load_machine
from hwsim.results.critical import limited_by
from hwsim.results.serving import ServiceStatistics
from tests.test_infer import FREE, SMALL

KINDS: dict[str, dict[str, Any]] = {
    "one copy": {"device": "gpu0"},
    "four pairs": {"device": "gpu*", "parallel": {"tp": 2}, "arrivals": {"poisson": "1500 1/s"}},
    "little room": {"device": "gpu0", "memory": "3.2 %", "arrivals": "all at once"},
    "sglang": {"device": "gpu0..1", "framework": "sglang", "server": {"sequences": 6, "look": 10}},
    "tensorrt-llm": {"device": "gpu0", "framework": "tensorrt-llm", "server": {"sequences": 9}},
    "sarathi": {"device": "gpu0", "framework": "sarathi-serve"},
    "static": {"device": "gpu0", "batching": "static", "batch": 7},
    "chunks": {"device": "gpu0", "chunk": 128, "batch": 5},
    "clients in conversations": {
        "device": "gpu0",
        "arrivals": {"clients": 8, "think": "20 ms"},
        "sessions": {"turns": {"uniform": [2, 6]}, "think": {"lognormal": {"median": "30 ms", "sigma": 1}}},
    },
    "windows": {"device": "gpu0", "model": {**SMALL, "window": 256, "cache": "window"}, "output": {"uniform": [1, 400]}},
    "guesses": {"device": "gpu0", "speculate": {"tokens": 2, "acceptance": "70 %"}},
    "before": {"device": "gpu0", "prefill": 1000, "server": FREE},
    "groups": {"device": "gpu*", "model": "qwen3-30b-a3b", "parallel": {"tp": 1, "groups": 4, "ep": 4}, "requests": 25},
    "offload": {
        "device": ["gpu0", "gpu2"],
        "memory": "3.2 %",
        "shared": {"distinct": 40},
        "requests": 120,
        "offload": {"host": "400 MB"},
    },
    "offload to a disk": {
        "device": "gpu0",
        "memory": "3.2 %",
        "shared": {"distinct": 40},
        "requests": 120,
        "offload": {"host": "100 MB", "disk": {"device": "disk0", "size": "3 GB"}, "write": "back"},
    },
    "clients": {"device": "gpu0..1", "arrivals": {"clients": 5, "think": {"exponential": "50 ms"}}},
    "conversations": {
        "device": "gpu0",
        "sessions": {"turns": {"uniform": [1, 5]}, "think": {"exponential": "40 ms"}},
        "prompt": 300,
    },
}


def served(engine: Any, **keys: Any) -> hwsim.Run:
    infer = {"model": SMALL, "arrivals": {"poisson": "300 1/s"}, "requests": 40, "prompt": {"lognormal": {"median": 500}},
             "output": {"uniform": [1, 90]}, "seed": 3, **keys}  # fmt: skip
    return hwsim.simulate(load_machine("dgx-h100"), {"hwsim": "workload/1", "infer": infer}, engine=engine)


def only(run: hwsim.Run) -> ServiceStatistics:
    [found] = run.serving
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_runs_and_iterations_one_by_one_come_to_the_same(kind: str) -> None:
    runs, ones = served("auto", **KINDS[kind]), served("simpy", **KINDS[kind])
    assert runs.timeline.makespan_fs == ones.timeline.makespan_fs
    assert only(runs) == only(ones)
    assert only(runs).rows
    assert all(tier.brought_tokens for tier in only(runs).tiers)
    assert len(runs.timeline) < len(ones.timeline)
    for mine, theirs in zip(runs.usage, ones.usage, strict=True):
        assert mine.capacity == theirs.capacity
        assert mine.busy_fs == pytest.approx(theirs.busy_fs, rel=1e-9)
        assert mine.moved == pytest.approx(theirs.moved, rel=1e-9)


@pytest.mark.parametrize("kind", ["four pairs", "clients"])
def test_sums_in_place_of_rows_take_no_longer(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a run with too many rows each copy's sums are kept: copies that wait for requests wait side by side."""
    rows = served("auto", **KINDS[kind])
    monkeypatch.setattr(alone, "ROWS", 5)
    sums = served("auto", **KINDS[kind])
    assert len(sums.timeline) < len(rows.timeline)
    assert sums.timeline.makespan_fs == pytest.approx(rows.timeline.makespan_fs, rel=2e-3)  # ops that share meet others
    assert only(sums) == only(rows)
    for mine, theirs in zip(sums.usage, rows.usage, strict=True):
        assert mine.busy_fs == pytest.approx(theirs.busy_fs, rel=2e-3)


@pytest.mark.parametrize("engine", ["auto", "simpy"])
def test_a_client_that_asks_when_it_is_answered_waits_for_its_answers_not_for_arrivals(engine: Any) -> None:
    run = served(engine, device="gpu0", arrivals={"clients": 1, "think": "30 ms"}, requests=20)
    shares = {str(share.cause): share.time_s for share in limited_by(run.timeline)}
    assert "arrivals" not in shares or shares["arrivals"] < 0.04  # the first one thinks, too
    assert shares["clients"] >= 19 * 30e-3 * (1 - 1e-9)
    assert shares["clients"] < 0.7 * run.makespan_s


def test_beside_another_job_that_leaves_its_devices_alone_it_takes_as_long() -> None:
    infer = {"model": SMALL, "requests": 30, "prompt": 700, "output": 40, "arrivals": {"poisson": "200 1/s"}}
    busy = {"device": "gpu7", "program": [{"busy": {"device": "gpu7", "time": "300 ms"}}]}
    both = hwsim.simulate("dgx-h100", {"hwsim": "workload/1", "jobs": {"chat": {"device": "gpu0", "infer": infer}, "x": busy}})
    alone = hwsim.simulate("dgx-h100", {"hwsim": "workload/1", "infer": {"device": "gpu0", **infer}})
    assert only(both).rows == only(alone).rows


def test_a_disturbance_in_the_middle_of_a_run_slows_it() -> None:
    infer = {"model": "llama-3-8b", "requests": 1, "prompt": 100, "output": 100, "device": "gpu0"}
    events = [{"at": "20 ms", "part": "gpu0", "speed": "50 %"}]
    alone = hwsim.simulate("dgx-h100", {"hwsim": "workload/1", "infer": infer})
    slowed = hwsim.simulate("dgx-h100", {"hwsim": "workload/1", "infer": infer, "events": events})
    assert slowed.makespan_s > 1.05 * alone.makespan_s
    always = [
        hwsim.simulate("dgx-h100", {"hwsim": "workload/1", "infer": infer, "events": [events[0] | {"at": "0 s", "speed": speed}]})
        for speed in ("80 %", "50 %")
    ]
    less, half = (run.makespan_s - alone.makespan_s for run in always)
    assert half == pytest.approx(4 * less, rel=1e-3)  # kernels take 5/4, or twice; what is no kernel takes as long
    assert half > 0.9 * alone.makespan_s


# ---- laws of queues: an encoder that reads one request at a time ----


@pytest.mark.parametrize("load", [0.3, 0.6])
@pytest.mark.parametrize("prompt", [256, {"uniform": [16, 500]}, {"lognormal": {"median": 100, "sigma": 1.2}}])
def test_waits_at_an_encoder_are_pollaczek_khinchine(load: float, prompt: Any) -> None:
    keys: dict[str, Any] = {"model": "bert-base", "device": "gpu0", "dtype": "fp16", "batch": 1, "framework": "fastertransformer"}
    times = [row.end_s - row.begin_s for row in only(served("auto", **keys, prompt=prompt, requests=200)).rows]
    mean = float(np.mean(times))
    found = only(served("auto", **{**keys, "seed": 5}, prompt=prompt, requests=3000, arrivals={"poisson": f"{load / mean} 1/s"}))
    service = np.array([row.end_s - row.begin_s for row in found.rows])
    rate = found.offered_per_s
    expected = rate * float(np.mean(service**2)) / (2 * (1 - rate * float(service.mean())))
    assert found.wait.mean == pytest.approx(expected, rel=0.15)
    assert found.in_system_mean == pytest.approx(found.requests_per_s * found.latency.mean, rel=1e-9)
