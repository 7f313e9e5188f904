"""A served model played in runs and on a clock with others, iteration by iteration: the same; and laws of queues."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import hwsim
from hwsim.families.serving.actors import costs
from hwsim.families.serving.actors import unclocked as alone
from hwsim.families.serving.results.statistics import ServiceStatistics
from hwsim.results.critical import limited_by
from hwsim.views.summary.document import document
from tests.served import dgx
from tests.test_infer import FREE, SMALL

KINDS: dict[str, dict[str, Any]] = {
    "one copy": {"device": "gpu0"},
    "more femtoseconds than 64 bits": {"device": "gpu0", "arrivals": {"day": {"mean": "0.002 1/s", "peak": "0.004 1/s"}}},
    "four pairs": {"device": "gpu*", "parallel": {"tp": 2}, "arrivals": {"poisson": "1500 1/s"}},
    "stages": {"device": "gpu*", "parallel": {"tp": 2, "pp": 2}, "arrivals": {"poisson": "600 1/s"}},
    "stages one after another": {
        "device": "gpu0..3",
        "parallel": {"pp": 4},
        "arrivals": "all at once",
        "batching": "static",
        "batch": 7,
    },
    "little room": {"device": "gpu0", "memory": "3.2 %", "arrivals": "all at once"},
    "sglang": {"device": "gpu0..1", "framework": "sglang", "server": {"sequences": 6, "look": 10}},
    "tensorrt-llm": {"device": "gpu0", "framework": "tensorrt-llm", "server": {"sequences": 9}},
    "sarathi": {"device": "gpu0", "framework": "sarathi-serve"},
    "static": {"device": "gpu0", "batching": "static", "batch": 7},
    "chunks": {"device": "gpu0", "server": {"budget": 128}, "batch": 5},
    "clients in conversations": {
        "device": "gpu0",
        "arrivals": {"clients": 8, "think": "20 ms"},
        "sessions": {"turns": {"uniform": [2, 6]}, "think": {"lognormal": {"median": "30 ms", "sigma": 1}}},
    },
    "windows": {"device": "gpu0", "model": {**SMALL, "window": 256, "cache": "window"}, "output": {"uniform": [1, 400]}},
    "guesses": {"device": "gpu0", "speculate": {"tokens": 2, "acceptance": "70 %"}},
    "before": {"device": "gpu0", "server": {**FREE, "prompts": "before", "chunked": False, "budget": 1000}},
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


MANY, SOME = {"count": 40, "rank": 16}, {"count": 40, "rank": 16, "skew": 1.0, "slots": 3}
GUESSES = {"tokens": 2, "acceptance": ["80 %", "50 %"]}
ALIKE: dict[str, Any] = {"shared": {"tokens": 900, "groups": 9, "skew": 1}, "arrivals": {"poisson": "2500 1/s"}}
KINDS |= {
    **{f"router {name}": {**ALIKE, "device": "gpu0..2", "router": router, "requests": 120} for name, router in {
        "waiting": "waiting", "in turn": "round robin", "scores": {"prefix": 2, "queue": 1, "room": 1}}.items()},
    "adapters of guesses": {"device": "gpu0", "adapters": MANY, "speculate": GUESSES},
    "adapters on demand": {"device": "gpu0", "adapters": SOME, "memory": "3.4 %", "offload": {"host": "400 MB"},
                           "shared": {"distinct": 40}, "requests": 120},
    "adapters on demand of guesses": {"device": "gpu0", "adapters": SOME, "speculate": GUESSES, "arrivals": "all at once"},
    "a draft": {"device": "gpu0..1", "memory": "4 %", "speculate": {**GUESSES, "draft": "gpt2"}, "requests": 60},
}  # fmt: skip


NOTHING: list[dict[str, str]] = [{"at": "0 s", "part": "nic7", "speed": "99 %"}]  # it puts the run on a clock


def served(way: str, **keys: Any) -> hwsim.Run:
    """Play a served model alone in runs ("auto"), by the plain engine ("simpy"), or iteration by iteration ("clock")."""
    engine: Any = "auto" if way == "clock" else way
    infer = {"model": SMALL, "arrivals": {"poisson": "300 1/s"}, "requests": 25, "prompt": {"lognormal": {"median": 500}},
             "output": {"uniform": [1, 90]}, "seed": 3, **keys}  # fmt: skip
    events = {"events": NOTHING} if way == "clock" else {}
    return hwsim.simulate(dgx(), {"hwsim": "workload/1", "infer": infer, **events}, engine=engine)


def only(run: hwsim.Run) -> ServiceStatistics:
    [found] = run.serving
    return found


def same(runs: hwsim.Run, ones: hwsim.Run, *, stages: bool = False) -> None:
    """Times, requests, causes and use of capacities are the same; only sums of parts of a second are rounded otherwise."""
    assert runs.timeline.makespan_fs == ones.timeline.makespan_fs
    assert only(runs) == only(ones)
    causes = [{str(share.cause): share.time_fs for share in run.limited_by} for run in (runs, ones)]
    assert causes[0] == causes[1]
    for mine, theirs in zip(runs.usage, ones.usage, strict=True):
        assert mine.capacity == theirs.capacity
        if not stages:  # batches at once overlap otherwise, as a run has all of its kernels and then all of its exchanges
            assert mine.busy_fs == pytest.approx(theirs.busy_fs, rel=1e-9)
        assert mine.moved == pytest.approx(theirs.moved, rel=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_runs_and_iterations_one_by_one_come_to_the_same(kind: str) -> None:
    runs, ones = served("auto", **KINDS[kind]), served("clock", **KINDS[kind])
    same(runs, ones, stages="stages" in kind)
    assert only(runs).rows
    assert all(tier.loaded_tokens for tier in only(runs).tiers)
    assert len(runs.timeline) < len(ones.timeline) or "stages" in kind  # whose batches slow each other on links


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


@pytest.mark.parametrize("parallel", [1, 2])
def test_a_run_of_years_is_a_few_ops_to_the_femtosecond(parallel: int, monkeypatch: pytest.MonkeyPatch) -> None:
    keys: dict[str, Any] = {"device": "gpu0..1", "parallel": {"tp": parallel}, "arrivals": "all at once", "requests": 20}
    whole = served("auto", **keys).timeline
    monkeypatch.setattr(costs, "LONGEST", 10**9)
    cut = served("auto", **keys).timeline
    monkeypatch.setattr(costs, "MOST_PIECES", 2)
    few = served("auto", **keys).timeline
    assert whole.makespan == cut.makespan == few.makespan
    assert len(whole.end) <= len(few.end) < len(cut.end)


@pytest.mark.parametrize("way", ["auto", "clock"])
def test_a_client_that_asks_when_it_is_answered_waits_for_its_answers_not_for_arrivals(way: str) -> None:
    run = served(way, device="gpu0", arrivals={"clients": 1, "think": "30 ms"}, requests=20)
    shares = {str(share.cause): share.time_s for share in limited_by(run.timeline)}
    assert "arrivals" not in shares or shares["arrivals"] < 0.04  # the first one thinks, too
    assert shares["clients"] >= 19 * 30e-3 * (1 - 1e-9)
    assert shares["clients"] < 0.7 * run.makespan_s


def test_a_pipeline_of_n_stages_serves_n_batches_at_once_each_as_one_gpu_with_more_host_time_and_sends() -> None:
    """Every stage is as busy as the others; n batches of as many clients get n times the tokens, but for host and sends."""
    keys: dict[str, Any] = {"prompt": 64, "output": 400, "shared": None, "server": FREE}
    one = only(served("auto", device="gpu0", **keys, arrivals={"clients": 8}, requests=80))
    run = served("auto", device="gpu0..3", parallel={"pp": 4}, **keys, arrivals={"clients": 32}, requests=320)
    found = only(run)
    many, few = (dict(service.time_by_use) for service in (found, one))
    kept = [(spent["prefill"] + spent["decode"]) / sum(spent.values()) for spent in (many, few)]  # fits
    assert kept[0] < kept[1]
    assert found.tokens_per_s == pytest.approx(4 * one.tokens_per_s * kept[0] / kept[1], rel=0.05)
    assert found.batch_mean == pytest.approx(one.batch_mean, rel=0.05)
    busy = [row.busy_fs for row in run.usage if row.capacity in {f"gpu{stage}.memory" for stage in range(4)}]
    assert len(busy) == 4
    assert len(set(busy)) == 1
    assert all(row.utilization <= 1 for row in run.usage)


def test_a_pipeline_is_told_as_less_sure_the_more_stages_it_has() -> None:
    found = [only(served("auto", device=f"gpu0..{pp - 1}", parallel={"pp": pp})).case for pp in (1, 2, 4)]
    assert found[1:] == ["generation", "outside"]
    assert found[0] not in found[1:]


APART: dict[str, Any] = {"prefill": {"device": "gpu0..1", "parallel": {"pp": 2}}, "decode": {"device": "gpu4..6"}}


@pytest.mark.parametrize("way", ["auto", "simpy"])
@pytest.mark.parametrize(
    "keys",
    [
        {"split": APART},
        {"device": "gpu0..5", "parallel": {"pp": 3}, "memory": "3.2 %"},
        {"device": "gpu0..2", "arrivals": {"clients": 4, "think": "5 ms"}},
        {"device": "gpu0..2", "warm_up": "5 ms", "router": "round robin"},
        {"device": "gpu0..2", "arrivals": "all at once", "batch": 2},
    ],
)
def test_no_request_is_lost_through_outages(way: Any, keys: dict[str, Any]) -> None:
    """Whoever has a GPU that stands still waits: all that come are answered."""
    infer = {"model": SMALL, "arrivals": {"poisson": "300 1/s"}, "requests": 60, "prompt": 500, "output": 40, **keys}
    events = [{"at": f"{time} ms", "part": f"gpu{time % 7}", "down": "70 ms"} for time in (15, 30, 60, 95, 200)]
    run = hwsim.simulate(dgx(), {"hwsim": "workload/1", "infer": infer, "events": events}, engine=way)
    found = only(run)
    assert found.requests + found.warm_up == 60
    assert found.latency.max > 0.07


@pytest.mark.parametrize(("key", "value"), [("scale", {"start": "1 s", "least": 1, "target": 8}), ("offload", {"host": "1 GB"})])
def test_what_stages_are_not_modelled_with_is_refused(key: str, value: dict[str, Any]) -> None:
    with pytest.raises(hwsim.SpecError, match=f"pipeline parallelism is not modelled with `{key}`"):
        served("auto", device="gpu0..1", parallel={"pp": 2}, **{key: value})


def test_copies_that_read_prompts_have_stages_of_their_own() -> None:
    read, write = {"device": "gpu0..3", "parallel": {"pp": 2}}, {"device": "gpu4..7", "parallel": {"pp": 4}}
    run = served("auto", split={"prefill": read, "decode": write})
    found = only(run)
    assert (found.replicas, found.prefill_replicas) == (3, 2)
    assert {row.replica for row in found.rows} <= {0, 1, 2}
    assert sum(spent for _, spent in found.time_by_use) <= 3 * found.duration_s  # fits
    assert all(row.utilization <= 1 for row in run.usage)


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


SPEEDS = st.lists(st.sampled_from([1.0, 0.9, 0.75, 0.5, 0.4]), min_size=8, max_size=8)


@settings(max_examples=12, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(st.sampled_from([(1, 2), (2, 2), (1, 4), (2, 4), (4, 1), (4, 2)]), SPEEDS, st.sampled_from(["auto", "simpy"]))
def test_every_stage_goes_at_the_speed_of_its_own_gpus(split: tuple[int, int], speeds: list[float], engine: Any) -> None:
    """A batch alone takes the sum of its stages, each as its slowest GPU; as many as there are stages wait for the slowest."""
    (tp, pp), count = split, split[0] * split[1]
    infer = {"model": SMALL, "device": f"gpu0..{count - 1}", "parallel": {"tp": tp, "pp": pp}, "prompt": 300, "output": 40}
    events = [{"at": "0 s", "part": f"gpu{index}", "speed": f"{100 * speed} %"} for index, speed in enumerate(speeds)]

    def found(requests: int, events: Any = None) -> ServiceStatistics:
        workload = {"hwsim": "workload/1", "infer": {**infer, "requests": requests}, **({"events": events} if events else {})}
        return only(hwsim.simulate(dgx(), workload, engine=engine, interval=False))

    stages = [1 / min(speeds[stage * tp : (stage + 1) * tp]) for stage in range(pp)]
    as_it_is = found(1)
    kernels = pp * (dict(as_it_is.time_by_use)["prefill"] + dict(as_it_is.time_by_use)["decode"])  # of all batches in the mean
    more = kernels * (sum(stages) / pp - 1)
    assert found(1, events).latency.mean == pytest.approx(as_it_is.latency.mean + more, rel=1e-9)
    full, slowest = found(pp, events).latency.mean, as_it_is.latency.mean + kernels * (max(stages) - 1)
    assert as_it_is.latency.mean + more <= full * (1 + 1e-9)  # with the others it is no faster
    assert full <= slowest * 1.01  # links between stages are shared


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
    assert found.queueing.mean == pytest.approx(expected, rel=0.15)
    assert found.in_flight_mean == pytest.approx(found.requests_per_s * found.latency.mean, rel=1e-9)


# ---- the law: whichever way and whichever engine plays it ----

ARRIVALS: list[Any] = [
    {"poisson": "20 1/s"},
    {"poisson": "400 1/s"},
    {"every": "9 ms"},
    "all at once",
    {"clients": 3, "think": "20 ms"},
    {"clients": 2, "think": {"exponential": "30 ms"}},
]
LENGTHS: list[Any] = [1, 40, {"uniform": [1, 90]}]
DRAWN: dict[str, list[Any]] = {
    "device": ["gpu0", "gpu6", "gpu0..1", ["gpu1", "gpu4"]],
    "parallel": [None, None, {"tp": 2}, {"pp": 2}],
    "framework": [None, "sglang", "tensorrt-llm", "sarathi-serve"],
    "arrivals": ARRIVALS,
    "prompt": [20, 700, {"lognormal": {"median": 300}}],
    "output": LENGTHS,
    "requests": [1, 9, 30],
    "shared": [None, None, {"tokens": 300, "groups": 3}],
    "memory": [None, None, "3.2 %"],
    "batch": [None, 7],
    "batching": [None, None, None, "static"],
    "seed": [1, 2, 3],
}


def random_keys() -> st.SearchStrategy[dict[str, Any]]:
    drawn = st.fixed_dictionaries({key: st.sampled_from(values) for key, values in DRAWN.items()})
    return drawn.map(lambda keys: {key: value for key, value in keys.items() if value is not None}).filter(
        lambda keys: (
            ("parallel" not in keys or keys["device"] not in ("gpu0", "gpu6"))
            and ("memory" not in keys or not {"framework", "parallel"} & keys.keys())
            and (keys.get("batching") != "static" or ("batch" in keys and not {"shared", "memory", "framework"} & keys.keys()))
        )
    )


@settings(max_examples=10, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(random_keys())
def test_whichever_engine_plays_it_the_answer_is_the_same_to_the_byte(keys: dict[str, Any]) -> None:
    runs = served("auto", **keys)
    assert document(runs, ops=True, rank=None) == document(served("simpy", **keys), ops=True, rank=None)
    same(runs, served("clock", **keys), stages="pp" in keys.get("parallel", {}))
