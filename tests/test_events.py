"""Parts and links that slow down, fail and come back while a workload runs."""

from __future__ import annotations

import math
from typing import Any

import pytest

import hwsim
from hwsim.prepare import load_machine, prepare
from hwsim.spec import SpecError
from hwsim.views.explain.explanation import explain
from hwsim.views.explain.say import text

# Its copies begin at once, so that times are whole.
FOUR = {"hwsim": "machine/1", "class": "ideal", "use": "d2l-4gpu-pcie", "parts": {"gpu": {"copies": {"setup": "0 s"}}}}
COPY = {"copy": {"from": "gpu0", "to": "gpu1", "bytes": "16 GB"}}  # one second over 16 GB/s


def seconds(*events: dict[str, Any], do: dict[str, Any] = COPY) -> float:
    workload = {"hwsim": "workload/1", "program": [do], "events": list(events)}
    return hwsim.simulate(FOUR, workload).timeline.makespan


HALF: dict[str, Any] = {"at": "0 s", "link": "slots", "speed": "50 %"}
SWITCH: dict[str, Any] = {"at": "0 s", "part": "psw", "speed": "25 %"}


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([HALF], 2.0),
        ([{**HALF, "at": "500 ms"}], 1.5),
        ([{**HALF, "at": "200 ms", "for": "200 ms"}], 1.1),  # what a slow spell takes is made up for afterwards
        ([{"at": "500 ms", "link": "slots", "down": "3 s"}], 4.0),
        ([{"at": "0 s", "link": "slots", "of": "gpu3", "down": "9 s"}], 1.0),
        ([{"at": "0 s", "link": "slots", "of": "gpu1", "down": "9 s"}], 10.0),
        ([HALF, {"at": "1 s", "link": "slots", "down": "1 s"}], 3.0),  # what is down carries nothing, whatever else slows it
        ([HALF, SWITCH], 4.0),  # of a link and the switch that it leaves the slower counts
        ([SWITCH, HALF], 4.0),
    ],
)
def test_a_link_carries_what_its_events_leave(events: list[dict[str, Any]], expected: float) -> None:
    assert seconds(*events) == pytest.approx(expected)


def test_what_overlapping_events_on_one_part_leave_multiplies() -> None:
    """16 GB at 16 GB/s: 4 s at a quarter; 1 s at half and 2 s at a quarter; 16 MB/s are left of a tenth of a tenth of a tenth."""
    assert seconds(HALF, HALF) == pytest.approx(4.0)
    assert seconds(HALF, {**HALF, "at": "1 s"}) == pytest.approx(3.0)
    assert seconds(HALF, {**HALF, "for": "2 s"}) == pytest.approx(3.0)  # 8 GB in 2 s at a quarter, the rest at half
    assert seconds(*[{**HALF, "speed": "10 %"}] * 3) == pytest.approx(1000.0)
    work = {"compute": {"device": "gpu0", "flop": "100 TFLOP"}}
    slow = {"at": "0 s", "part": "gpu0", "speed": "50 %"}
    assert seconds(slow, {**slow, "part": "gpu*", "speed": "20 %"}, do=work) == pytest.approx(10 * seconds(do=work))


def test_a_jitter_and_a_slow_spell_multiply() -> None:
    noisy = {"at": "0 s", "link": "slots", "of": "gpu1", "jitter": "20 %", "every": "200 us", "for": "9 s"}
    assert seconds(noisy, HALF) == pytest.approx(2.4, rel=0.02)
    assert seconds(noisy, {**noisy, "seed": 1}) == pytest.approx(1.44, rel=0.02)


@pytest.mark.parametrize("way", [{"engine": "simpy"}, {"fold": "never"}, {"fold": "always"}])
def test_overlapping_events_have_one_answer_on_every_way(way: dict[str, Any]) -> None:
    pieces = [
        {"compute": {"flop": "10 TFLOP", "updates": "x"}},
        {"allreduce": {"among": "gpu*", "bytes": "160 MB", "updates": "x"}},
    ]
    slow = [{"at": f"{instant} s", "part": "gpu*", "speed": "50 %", "for": "2 s"} for instant in (0, 0.5, 1.5)]
    program = {"each": "gpu*", "do": [{"repeat": {"times": 4, "do": pieces}}, {"wait": "all"}]}
    for events in (slow, slow[::-1]):
        workload = {"hwsim": "workload/1", "program": program, "events": events}
        assert hwsim.simulate(FOUR, workload, **way).timeline.makespan == hwsim.simulate(FOUR, workload).timeline.makespan


def test_an_event_after_the_end_changes_nothing() -> None:
    assert seconds({"at": "1 h", "link": "slots", "down": "1 h"}) == pytest.approx(1.0)


def test_jitter_slows_by_its_mean_and_is_the_same_for_the_same_seed() -> None:
    noisy = {"at": "0 s", "link": "slots", "jitter": "20 %", "every": "5 ms", "for": "10 s"}
    assert seconds(noisy) == seconds(noisy)
    assert seconds({**noisy, "seed": 1}) != seconds(noisy)
    alone = {**noisy, "of": "gpu1"}
    assert 1.1 < seconds(alone) < 1.3
    assert seconds(noisy) > seconds(alone)  # of two links on the way the slower counts
    assert seconds({**noisy, "jitter": "0 %"}) == pytest.approx(1.0)


@pytest.mark.parametrize("mean", [0.05, 0.5, 2.0])
def test_what_is_longer_than_the_pieces_of_a_jitter_takes_its_mean_longer_too(mean: float) -> None:
    """Speeds of intervals of equal length would have the harmonic mean instead: 4.8 %, 38 % and 117 %."""
    noisy = {"at": "0 s", "link": "slots", "of": "gpu1", "jitter": mean, "every": "200 us", "for": "4 s"}
    assert seconds(noisy) - 1.0 == pytest.approx(mean, rel=0.03)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"at": "1 s", "speed": "50 %"}, "exactly one of `part`, `link` and `service`"),
        ({"at": "1 s", "part": "gpu0"}, "exactly one of `speed`, `down` and `jitter`"),
        ({"at": "1 s", "part": "gpu9", "speed": "50 %"}, "gpu9"),
        ({"at": "1 s", "part": "gpu0", "jitter": "5 %"}, "`jitter` requires `for` and `every`"),
        ({"at": "1 s", "part": "gpu0", "speed": "50 %", "every": "1 s"}, "`every` is valid only with `jitter`"),
        ({"at": "1 s", "link": "slot", "speed": "50 %"}, "there is no link 'slot'"),
        ({"at": "1 s", "link": "slots", "of": "cpu", "down": "1 s"}, "no link 'slots' ends at cpu"),
    ],
)
def test_mistakes_in_events_are_said(event: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        seconds(event)


def test_explain_tries_its_changes_with_the_events_at_the_same_times() -> None:
    down = {"at": "500 ms", "link": "slots", "down": "3 s"}
    run = hwsim.simulate(FOUR, {"hwsim": "workload/1", "program": [COPY], "events": [down]})
    found = explain(run).what_if
    assert found is not None
    [faster] = [one for one in found if one.change == "bandwidth of link slots doubled"]
    assert faster.makespan_s == pytest.approx(0.5)  # it has ended when the link goes down
    assert all(one.makespan_s is None or one.speedup >= 1 - 1e-9 for one in found)
    late = {**down, "at": "100 ms"}
    run = hwsim.simulate(FOUR, {"hwsim": "workload/1", "program": [COPY], "events": [late]})
    [faster] = [one for one in explain(run).what_if or () if one.change == "bandwidth of link slots doubled"]
    assert faster.makespan_s == pytest.approx(3.5)


def test_events_are_named_in_the_summary_the_document_and_the_explanation() -> None:
    events = [{"at": "500 ms", "link": "slots", "of": "gpu0", "down": "3 s"}, {"at": "1 s", "part": "gpu1", "speed": "50 %"}]
    run = hwsim.simulate(FOUR, {"hwsim": "workload/1", "program": [COPY], "events": events})
    said = ["link slots of gpu0 down from 500 ms for 3.00 s", "gpu1 at 50 % of its speed from 1.00 s to the end"]
    assert all(f"event          {one}" in str(run) for one in said)
    assert all(f"event: {one}" in text(explain(run)) for one in said)
    assert run.to_json()["events"][0] == {
        "part": "link slots of gpu0",
        "at_s": 0.5,
        "duration_s": 3.0,
        "speed": 0.0,
        "jitter": 0.0,
    }


def test_jitter_is_drawn_until_the_run_ends_and_changes_it_as_all_of_it_would() -> None:
    jitter = {"at": "100 ms", "link": "slots", "jitter": "20 %", "every": "10 ms", "for": "50 s"}
    slow = {"at": "300 ms", "link": "slots", "of": "gpu1", "speed": "10 %", "for": "100 ms"}
    workload = {"hwsim": "workload/1", "program": [COPY], "events": [jitter, slow]}
    changes = prepare(FOUR, workload).changes
    found = list(changes)
    assert found == sorted(found)
    assert len(found) == len(changes) > 20_000  # until 50 s, and the copy takes one or two
    slow_at = [change.at for change in found if change.fraction <= 0.1]  # no interval of the jitter alone is as slow
    assert min(slow_at) == 3 * 10**14
    assert max(slow_at) < 4 * 10**14
    makespan = hwsim.simulate(FOUR, workload).timeline.makespan
    until = [{**jitter, "for": f"{10 * math.ceil(100 * makespan)} ms"}, slow]
    assert hwsim.simulate(FOUR, {**workload, "events": until}).timeline.makespan == makespan > 1.2


CPU = {"kind": "cpu", "cores": 4, "flop": {"fp32": "1 TFLOP/s"}, "memory": {"size": "64 GiB", "bandwidth": "100 GB/s"}}
DISKS = {
    "disk": {"kind": "disk", "read": "1 GB/s", "write": "1 GB/s", "latency": "0 s"},
    "hdd": {"kind": "hdd", "use": "hdd-7200rpm"},
    "ssd": {"kind": "ssd", "use": "nvme-990pro"},
    "vol": {"kind": "volume", "use": "ebs-gp3", "size": "2 TB"},
    "raid": {"kind": "raid", "level": 5, "members": 4, "stripe": "1 MiB", "ssd": {"use": "nvme-pm9a3"}},
}
ENDS: dict[str, dict[str, Any]] = {
    "flat": {},
    "back": {"oversubscription": 4},
    "narrow": {"bandwidth": "500 MB/s"},
}  # switches, each with a CPU behind it
PARTS: dict[str, Any] = {
    "cpu": CPU,
    "gpu": {"kind": "gpu", "flop": {"fp32": "10 TFLOP/s"}, "memory": {"size": "64 GiB", "bandwidth": "1 TB/s"}},
    "nic": {"kind": "nic", "bandwidth": "8 Gb/s"},
    "far": CPU,
    "pool": {"kind": "memory", "size": "1 TiB", "bandwidth": "50 GB/s"},
    **DISKS,
    **{name: {"kind": "switch", **keys} for name, keys in ENDS.items()},
    **{f"x{name}": CPU for name in ENDS},
}
LINKS = [
    *({"between": ["cpu", name], "kind": "direct", "bandwidth": "80 GB/s"} for name in ("gpu", "nic", "pool", *DISKS, *ENDS)),
    {"between": ["nic", "far"], "kind": "direct", "bandwidth": "80 GB/s"},
    *({"between": [name, f"x{name}"], "kind": "direct", "bandwidth": "80 GB/s"} for name in ENDS),
]
ALL: dict[str, Any] = {"hwsim": "machine/1", "class": "ideal", "parts": PARTS, "links": LINKS}
FELT: dict[str, list[dict[str, Any]]] = {
    "cpu": [
        {"busy": {"device": "cpu", "time": "10 s"}},
        {"compute": {"device": "cpu", "flop": "10 TFLOP"}},
        {"elementwise": {"device": "cpu", "count": 10**11}},
    ],
    "gpu": [
        {"busy": {"device": "gpu", "time": "10 s"}},
        {"compute": {"device": "gpu", "flop": "99 TFLOP"}},
        {"elementwise": {"device": "gpu", "count": 10**12}},
    ],
    "pool": [{"copy": {"from": "cpu", "to": "pool", "bytes": "500 GB"}}],
    "nic": [{"copy": {"from": "cpu", "to": "far", "bytes": "10 GB"}}],
    **{name: [{"read": {"from": name, "bytes": "10 GB"}}, {"write": {"to": name, "bytes": "10 GB"}}] for name in DISKS},
    **{name: [{"copy": {"from": "cpu", "to": f"x{name}", "bytes": "10 GB"}}] for name in ENDS},
}


@pytest.mark.parametrize(("part", "do"), [(part, do) for part, program in FELT.items() for do in program])
def test_every_kind_of_part_feels_every_kind_of_event(part: str, do: dict[str, Any]) -> None:
    def took(*events: dict[str, Any]) -> float:
        workload = {"hwsim": "workload/1", "program": [do], "events": [{"part": part, **event} for event in events]}
        return hwsim.simulate(ALL, workload).timeline.makespan

    alone = took()
    for fraction in (0.1, 0.8):
        assert took({"at": f"{fraction * alone} s", "down": "3 s"}) == pytest.approx(alone + 3, rel=0.01)
    assert took({"at": "0 s", "speed": "50 %"}) == pytest.approx(2 * alone, rel=0.01)
    assert took({"at": f"{alone / 2} s", "speed": "50 %"}) == pytest.approx(1.5 * alone, rel=0.01)
    noisy = {"at": "0 s", "jitter": "20 %", "every": f"{alone / 1000} s", "for": f"{2 * alone} s"}
    assert took(noisy) == pytest.approx(1.2 * alone, rel=0.05)


def test_a_part_that_is_simulated_request_by_request_knows_no_events() -> None:
    parts = {**PARTS, "hdd": {"kind": "hdd", "use": "barracuda-7200", "fidelity": "requests"}}
    read = {"read": {"from": "hdd", "bytes": "4 KiB", "times": 20, "access": "random"}}
    workload = {"hwsim": "workload/1", "program": [read], "events": [{"at": "0 s", "part": "hdd", "down": "1 s"}]}
    with pytest.raises(SpecError, match="an event changes hdd, but a request-level simulation"):
        hwsim.simulate({**ALL, "parts": parts}, workload)


def test_an_event_where_nothing_works_is_told() -> None:
    events = [{"at": "1 h", "part": "gpu0", "down": "1 s"}, {"at": "0 s", "link": "slots", "of": "gpu3", "speed": "50 %"}]
    run = hwsim.simulate(FOUR, {"hwsim": "workload/1", "program": [COPY], "events": events})
    assert [warning.code for warning in run.warnings] == ["no-effect", "no-effect"]
    assert "the event on link slots of gpu3 has no effect: no op of the run uses it" in run.warnings[0].text
    assert run.warnings[1].text == "an event at 60.0 min has no effect: the run ends at 1.00 s"
    for instant, warned in (("999 ms", 0), ("1 s", 1)):
        end = [{"at": instant, "link": "slots", "down": "1 ms"}]
        assert len(hwsim.simulate(FOUR, {"hwsim": "workload/1", "program": [COPY], "events": end}).warnings) == warned


def test_what_slows_an_exchange_is_felt_by_layer_and_refused_by_stage() -> None:
    """One op of a stage holds computing and exchanges: half of a link's speed would hide behind the computing."""
    train = {"model": "gpt2", "dtype": "fp32", "global_batch": 8, "sequence": 512, "parallel": {"tp": 4}}
    slow = [{"at": "0 s", "part": "psw", "speed": "50 %"}]

    def took(detail: str, events: list[dict[str, Any]]) -> float:
        workload = {"hwsim": "workload/1", "train": {**train, "detail": detail}, "events": events}
        return hwsim.simulate("d2l-4gpu-pcie", workload).timeline.makespan

    assert took("layer", slow) > 1.1 * took("layer", [])
    with pytest.raises(SpecError, match=r"slows slots:psw->gpu0, but .* kernels and communication in one op") as refused:
        took("stage", slow)
    assert "detail: layer" in str(refused.value)


@pytest.mark.parametrize(
    ("device", "parallel", "felt"), [("gpu0", {}, "gpu0 cpu0"), ("gpu0..3", {"tp": 4}, "nvs gpu0 gpu3 cpu0")]
)
def test_a_served_model_warns_of_the_events_that_it_does_not_feel(device: str, parallel: dict[str, int], felt: str) -> None:
    infer = {"model": "llama-3-8b", "device": device, "parallel": parallel, "arrivals": {"poisson": "20 1/s"}, "prompt": 200}
    work = {"hwsim": "workload/1", "infer": {**infer, "output": 20}, "requests": 6}
    machine = load_machine("dgx-h100")
    alone = hwsim.simulate(machine, work).makespan_s
    for part in ("nvs", "nic0", "gpu0", "gpu3", "gpu7", "cpu0", "cpu1", "disk0", "psw0"):
        run = hwsim.simulate(machine, {**work, "events": [{"at": "0 s", "part": part, "speed": "50 %"}]})
        warned = [warning.code for warning in run.warnings if warning.code == "no-effect"]
        assert (run.makespan_s == alone, len(warned)) == ((False, 0) if part in felt.split() else (True, 1))
