"""Is every what-if line the run with its own `--set`, and is the limit always tried?"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hwsim import api
from hwsim.results.result import Result
from hwsim.spec import SpecError
from hwsim.views.explain.explanation import Explanation, explain
from hwsim.views.explain.say import text
from hwsim.views.explain.what_if import HALF, WhatIf
from tests.command import hwsim

ROOT = Path(api.__file__).parent.parent
QUICK = [
    ("c5.18xlarge", "d2l/cloud-iops"),
    ("d2l-channels", "d2l/channel-layout"),
    ("d2l-copies", "d2l/dma-or-cpu-copy"),
    ("d2l-disks", "d2l/hdd-random-vs-sequential"),
    ("d2l-gpu-workstation", "d2l/cpu-gpu-split"),
    ("d2l-laptop", "d2l/async-matmul"),
    ("d2l-quad-core", "d2l/stride"),
    ("d2l-sf-amsterdam", "d2l/sf-amsterdam-round-trip"),
    ("d2l-two-nodes", "d2l/ethernet-small-messages"),
    ("desktop", "d2l/false-sharing"),
    ("dgx-h100", "bert-large"),
]
MORE_THAN_TWICE: dict[tuple[str, str], str] = {}  # pairs where twice as good is more than twice as fast, and why


def library() -> list[tuple[str, str]]:
    """Every workload of the library with the machine that it expects, and a few pairs more."""
    found = []
    for file in sorted((ROOT / "workloads").rglob("*.yaml")):
        machine = re.search(r"expect: \{machine: ([^,}]+)", file.read_text(encoding="utf-8"))
        if machine and file.parent.name not in ("frameworks", "models", "runtimes"):
            found.append((machine[1].strip(), str(file.relative_to(ROOT / "workloads").with_suffix("").as_posix())))
    return [
        *found,
        ("dgx-a100", "resnet50-dp"),
        ("dgx-h100", "bert-large"),
        ("p3dn.24xlarge", "resnet50-dp"),
        ("desktop", "d2l/ssd-queue-depth"),
    ]


def run(machine: Any, workload: Any, settings: Mapping[str, str] | None = None) -> api.Run:
    return api.simulated(machine, workload, set=settings)


def lines(found: Explanation) -> dict[str, WhatIf]:
    return {one.change: one for one in found.what_if or ()}


def holds(machine: Any, workload: Any, most: int | None = None) -> None:
    """Lines beside their runs, all or `most` spread over them, and what is true of all of them."""
    first = run(machine, workload)
    found = explain(first)
    assert found.what_if, found.left
    settable = [one for one in found.what_if if not one.hypothetical]
    step = math.ceil(len(settable) / (most or len(settable) or 1)) or 1
    compared = settable[::step]
    for one in found.what_if:
        assert "twice as fast" not in one.change or one.hypothetical
        if one in compared:
            other = run(machine, workload, dict(one.settings))
            assert one.makespan_fs == other.timeline.makespan_fs, one.change
        if found.measure is None and one.makespan_fs:
            assert one.speedup == first.timeline.makespan_fs / one.makespan_fs
            twice = 2 * (1 + 1e-9) if (machine, workload) not in MORE_THAN_TWICE else float("inf")
            assert one.speedup <= twice or one.makespan_fs < 10, one.change
    the_limit_is_tried(first, found)


def the_limit_is_tried(first: Result, found: Explanation) -> None:
    """Half of the limit would give 1 / (1 - share / 2): some line gives half of that, or the next limit is close behind."""
    top = found.accounting[0]
    best = max(one.speedup for one in found.what_if or ())
    if found.measure is None and top.share > 0.9 and best < 1 + HALF * (1 / (1 - top.share / 2) - 1):
        assert any(one.combined or one.hypothetical for one in found.what_if or ()) or found.left, first.workload


@pytest.mark.parametrize(("machine", "workload"), QUICK)
def test_a_line_is_the_run_with_its_own_set(machine: str, workload: str) -> None:
    holds(machine, workload)


@pytest.mark.slow
@pytest.mark.parametrize(("machine", "workload"), [pair for pair in library() if pair not in QUICK])
def test_lines_of_the_library_are_runs_with_their_own_set(machine: str, workload: str) -> None:
    holds(machine, workload, most=3 if workload.startswith("serving/") else None)


@pytest.mark.parametrize(
    ("machine", "workload", "change", "speedup"),
    [
        ("desktop", "d2l/false-sharing", "coherence.cluster of cpu halved", 1.937),
        ("d2l-two-nodes", "d2l/ethernet-small-messages", "overhead.* of nic halved", 1.930),
        ("d2l-disks", "d2l/hdd-random-vs-sequential", "latency of hdd halved", 1.992),
        ("desktop", "d2l/ssd-queue-depth", "latency of disk halved", 1.898),
        ("d2l-copies", "d2l/dma-or-cpu-copy", "copies.pageable of gpu doubled", 1.572),
        ("d2l-sf-amsterdam", "d2l/sf-amsterdam-round-trip", "length of link fibre halved", 2.0),
        ("d2l-sf-amsterdam", "d2l/sf-amsterdam-round-trip", "rate of link fibre doubled", 1.0),
        ("d2l-quad-core", "d2l/stride", "memory.bandwidth of cpu doubled", 1.514),
        ("d2l-quad-core", "d2l/misaligned-access", "memory.latency of cpu halved", 1.854),
        ("d2l-ps-cluster", "d2l/ps-scaling", "bandwidth of link network doubled", 2.0),
        ("d2l-laptop", "d2l/hybridize", "layer of the runtime halved", 2.0),
    ],
)
def test_a_floor_gets_better_with_the_number_behind_it(machine: str, workload: str, change: str, speedup: float) -> None:
    assert lines(explain(run(machine, workload)))[change].speedup == pytest.approx(speedup, rel=2e-3)


def wired(nic: str, cable: str) -> dict[str, object]:
    """Two computers with a card each, and a cable between the cards."""
    end = {"kind": "cpu", "cores": 4, "memory": {"bandwidth": "400 GB/s"}, "flop": {"fp32": "1 TFLOP/s"}}
    return {
        "hwsim": "machine/1",
        "class": "ideal",
        "parts": {"here": end, "there": end, "card": {"kind": "nic", "bandwidth": nic, "count": 2}},
        "links": [
            {"name": "slot", "between": ["here", "card0"], "kind": "direct", "bandwidth": "200 GB/s"},
            {"name": "slot2", "between": ["there", "card1"], "kind": "direct", "bandwidth": "200 GB/s"},
            {"name": "cable", "between": ["card0", "card1"], "kind": "ethernet", "rate": cable, "latency": "1 us"},
        ],
    }


SEND = {"hwsim": "workload/1", "program": [{"copy": {"from": "here", "to": "there", "bytes": "1 GB"}}]}


def test_a_card_and_a_cable_of_equal_rate_are_improved_at_once_and_that_is_said() -> None:
    first = run(wired("400 Gb/s", "400 Gb/s"), SEND)
    found = explain(first)
    assert found.what_if is not None
    best, *others = found.what_if
    assert best.combined
    assert best.speedup == pytest.approx(2.0, rel=1e-3)
    assert dict(best.settings) == {"machine.card.bandwidth": "800 Gb/s", "machine.links.cable.rate": "800 Gb/s"}
    assert all(other.speedup < 1.001 for other in others)
    assert "(only together)" in text(found)
    alone = explain(run(wired("800 Gb/s", "400 Gb/s"), SEND))
    assert not any(one.combined for one in alone.what_if or ())
    assert lines(alone)["rate of link cable doubled"].speedup > 1.99


def test_links_of_one_name_are_changed_together_by_their_places() -> None:
    found = lines(explain(run("d2l-ps-cluster", "d2l/ps-scaling")))
    settings = dict(found["bandwidth of link network doubled"].settings)
    assert settings == {"machine.links.0.bandwidth": "2.5 GB/s", "machine.links.1.bandwidth": "2.5 GB/s"}


def test_a_setting_of_the_run_stays_and_its_file_may_be_standard_input() -> None:
    first = run("d2l-laptop", "d2l/async-loop", {"blocking": "true"})
    one = lines(explain(first))["time of add halved"]
    again = run("d2l-laptop", "d2l/async-loop", {"blocking": "true", **dict(one.settings)})
    assert one.makespan_fs == again.timeline.makespan_fs
    work = (ROOT / "workloads" / "d2l" / "async-loop.yaml").read_text(encoding="utf-8")
    told = hwsim("explain", "d2l-laptop", "-", "--set", "blocking=true", stdin=work).stdout
    assert "time of add halved" in told


def test_text_and_json_say_how_to_make_the_change() -> None:
    told = hwsim("explain", "desktop", "d2l/false-sharing").stdout
    assert '--set "machine.cpu.coherence.cluster=10.3 ns"' in told
    found = json.loads(hwsim("explain", "desktop", "d2l/false-sharing", "--json").stdout)
    assert found["what_if"][0]["set"] == {"machine.cpu.coherence.cluster": "10.3 ns"}
    assert found["what_if_measure"] == "makespan"
    assert not found["what_if"][0]["hypothetical"]


def test_what_no_number_says_is_called_hypothetical() -> None:
    first = run("p3.16xlarge", "d2l/multi-gpu-lenet")
    found = explain(first)
    best = (found.what_if or ())[0]
    assert best.hypothetical
    assert best.change == "dispatch on cpu* in half the time"
    assert best.settings == ()
    assert "dispatch on cpu* in half the time (hypothetical)" in text(found)


TRAIN = "hwsim: workload/1\ntrain: {model: llama-3-8b, global_batch: 8, parallel: {tp: 4}, gpus: 4, steps: 1}\n"


def test_kernels_of_a_model_are_tried_with_the_rates_of_the_gpu() -> None:
    found = lines(explain(run("dgx-h100", TRAIN)))
    faster = found["flop.*, vector.* of gpu doubled"]
    assert dict(faster.settings)["machine.gpu.flop.bf16"] == "1978.8 TFLOP/s"
    assert faster.speedup > 1.3
    assert not [one for one in found.values() if one.hypothetical and one.change.startswith("kernels")]


CHAT = """
hwsim: workload/1
infer: {model: llama-3-8b, arrivals: {every: 20 ms}, requests: 12, prompt: 2000, output: 8, device: gpu0}
"""


def test_a_service_is_measured_by_its_own_measure() -> None:
    first = run("dgx-h100", CHAT)
    found = explain(first)
    assert (found.measure.name, found.measure.value) == ("ttft_p95", first.serving[0].values()["ttft_p95"])
    best = (found.what_if or ())[0]
    other = run("dgx-h100", CHAT, dict(best.settings))
    measured = other.serving[0].values()["ttft_p95"]
    assert dict(best.measured)["ttft_p95"] == measured
    assert best.speedup == pytest.approx(found.measure.value / measured)
    assert not any(one.hypothetical or one.combined for one in found.what_if or ())
    assert any("time to first token (p95)" in said for said in found.sentences)
    said = json.loads(json.dumps([dict(one.measured) for one in found.what_if or ()]))
    assert all({"ttft_p95", "tpot_p95", "tokens_per_s"} == set(record) for record in said)


def test_a_service_whose_requests_come_at_once_is_measured_by_its_tokens() -> None:
    at_once = CHAT.replace("arrivals: {every: 20 ms}, ", "")
    found = explain(run("dgx-h100", at_once))
    assert found.measure.name == "tokens_per_s"
    assert (found.what_if or ())[0].speedup > 1.1


def test_a_service_that_waits_for_requests_is_not_called_busy_and_writes_more_than_no_tokens() -> None:
    seldom = run("dgx-h100", CHAT.replace("every: 20 ms", "every: 1 h").replace("requests: 12", "requests: 3"))
    said = text(explain(seldom))
    assert "`arrivals` takes 2.00 h (99.9 %)" in said
    assert "up to 0 s" not in said
    assert "tokens_per_s 0.0" in said  # 24 tokens in two hours
    assert "not tried: arrivals: the workload file fixes them" in " ".join(said.split())


def test_a_service_beside_a_training_leaves_the_op_graph_alone() -> None:
    jobs = (
        "hwsim: workload/1\njobs:\n  learn: {device: gpu0..3, train: {model: llama-3-8b, global_batch: 8, parallel: {tp: 4}}}\n"
        "  chat: {device: gpu4, infer: {model: llama-3-8b, arrivals: {every: 10 ms}, requests: 4, prompt: 100, output: 5}}\n"
    )
    found = explain(run("dgx-h100", jobs))
    assert found.measure is None
    assert found.what_if
    assert not any(one.hypothetical for one in found.what_if)


BESIDE = """
hwsim: workload/1
jobs:
  learn: {device: gpu0..3, train: {model: llama-3-8b, global_batch: 8, parallel: {tp: 4}}}
  chat:
    device: gpu4
    infer: {model: llama-3-8b, arrivals: {poisson: 0.1 1/s}, requests: 8, prompt: 100, output: 5, server: {host: {api: 0 s}}}
"""


def test_what_arrivals_fix_is_not_what_changes_are_ranked_by() -> None:
    """The makespan moves by no change, so the service's own measure is told, and is that of the run with the change."""
    first = run("dgx-h100", BESIDE)
    found = explain(first)
    assert (found.measure.service, found.measure.name) == ("chat", "ttft_p95")
    best = (found.what_if or ())[0]
    other = run("dgx-h100", BESIDE, dict(best.settings))
    assert first.makespan_s / other.makespan_s == pytest.approx(1, abs=1e-3)
    assert best.speedup == pytest.approx(found.measure.value / other.serving[0].values()["ttft_p95"])
    assert best.speedup > 1.2
    assert "Arrivals set the time of the run, so speedups are of the service." in text(found)


def test_no_block_of_an_explanation_stands_there_twice() -> None:
    first = run("dgx-h100", BESIDE)
    blocks = [block.strip() for block in text(explain(first), verbose=True).split("\n\n")]
    assert len(blocks) == len(set(blocks))


TWO_NODES: dict[str, Any] = {
    "hwsim": "machine/1",
    "class": "ideal",
    "parts": {"node": {"kind": "machine", "use": "dgx-a100", "count": 2}, "leaf": {"kind": "switch"}},
    "links": [{"name": "net", "between": ["node*.nic*", "leaf"], "kind": "infiniband", "rate": "200 Gb/s"}],
}
SUM: dict[str, Any] = {"hwsim": "workload/1", "program": [{"allreduce": {"name": "g", "among": "node*.gpu*", "bytes": "1 GB"}}]}


def test_several_links_of_a_machine_inside_are_set_in_any_order() -> None:
    sets = {"machine.node.links.nics.gen": 3, "machine.node.links.slots.gen": 3, "machine.node.links.nvlink.latency": "1 us"}
    found = [api.prepare(TWO_NODES, SUM, set=dict(order)).machine for order in (sets.items(), reversed(sets.items()))]
    for name in ("nics", "slots"):
        rates = [one.links_called(name)[0].bandwidth for one in found]
        assert rates[0] == rates[1] == pytest.approx(_bandwidth(TWO_NODES, name) / 2)
    with pytest.raises(SpecError, match="no link 'nope'"):
        api.prepare(TWO_NODES, SUM, set=sets | {"machine.node.links.nope.gen": 5})


def _bandwidth(machine: dict[str, Any], name: str) -> float:
    return api.prepare(machine, SUM).machine.links_called(name)[0].bandwidth


def test_what_a_flow_over_a_card_and_a_cable_needs_is_both() -> None:
    found = explain(api.simulate(TWO_NODES, SUM))
    best = (found.what_if or ())[0]
    assert best.combined
    assert dict(best.settings).keys() == {"machine.links.net.rate", "machine.node.nic.bandwidth"}
    assert best.makespan_s == api.simulate(TWO_NODES, SUM, set=dict(best.settings)).makespan_s


def test_a_busy_part_that_sets_no_time_gives_way_to_one_that_does() -> None:
    """The stages' times are stated, so that neither clock nor FLOP play a part; the disk hides, all but its first read."""
    machine = """
hwsim: machine/1
class: ideal
parts: {cpu: {kind: cpu, use: d2l-server-cpu}, disk: {kind: disk, read: 160 MB/s}, gpu: {kind: gpu, use: d2l-gpu}}
links:
  - {name: cable, between: [disk, cpu], kind: direct, bandwidth: 4 GB/s}
  - {name: slot, between: [cpu, gpu], kind: direct, bandwidth: 16 GB/s}
"""
    workload = """
hwsim: workload/1
pipeline:
  batches: 100
  stages:
    - read: {from: disk, bytes: 7 MB}
    - busy: {name: decode, device: cpu, time: 180 ms}
    - busy: {name: train, device: gpu, time: 30 ms}
"""
    first = run(machine, workload)
    assert {row.capacity: row.utilization > 0.03 for row in first.usage}.items() >= {
        "gpu.compute": True,
        "cpu.cores": True,
    }.items()
    found = lines(explain(first))
    assert not {"clock of cpu doubled", "flop.*, vector.fp16 of gpu doubled"} & found.keys()
    assert found["read of disk doubled"].makespan_fs == first.timeline.makespan_fs - 7 * 10**15 // 320
    assert all(one.makespan_fs != first.timeline.makespan_fs for one in found.values())
