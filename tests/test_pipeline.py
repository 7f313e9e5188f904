"""Pipelines: closed forms of their time, laws, the page cache, checkpoints."""

from __future__ import annotations

import random
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import hwsim
from hwsim.families.pipeline.starvation import pipelines
from hwsim.families.pipeline.workload.cache import hit_rate
from hwsim.families.pipeline.workload.schedule import bodies
from hwsim.spec import SpecError

FEMTO = 10**15
US = 10**9
MACHINE: dict[str, Any] = yaml.safe_load("""
hwsim: machine/1
class: ideal
parts:
  cpu: {kind: cpu, cores: 64, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 100 GB/s, size: 64 GB}}
  gpu: {kind: gpu, use: d2l-gpu, count: 4}
  disk: {kind: filesystem, bandwidth: 1 GB/s}
links: [{name: slots, between: [cpu, gpu*], kind: pcie, bandwidth: 16 GB/s}]
""")


def workload(stages: list[Any], **keys: Any) -> dict[str, Any]:
    return {"hwsim": "workload/1", "pipeline": {**keys, "stages": stages}}


def busy(name: str, us: float, **keys: Any) -> dict[str, Any]:
    return {"busy": {"name": name, "device": "cpu", "time": f"{us} us"}, **keys}


def fs(stages: list[Any], **keys: Any) -> int:
    return hwsim.simulate(MACHINE, workload(stages, **keys)).timeline.makespan_fs


def by_hand(times: list[list[int]], ahead: list[int], workers: list[int]) -> int:
    """times[stage][batch]: a batch begins when it is there, a worker is free, and there is room behind."""
    batches = len(times[0])
    end = [[0] * batches for _ in times]
    for batch in range(batches):
        for stage in range(len(times)):
            waits = [0]
            if batch >= workers[stage]:
                waits.append(end[stage][batch - workers[stage]])
            if stage:
                waits.append(end[stage - 1][batch])
            if stage + 1 < len(times) and (back := batch - ahead[stage] - workers[stage + 1]) >= 0:
                waits.append(end[stage + 1][back])
            end[stage][batch] = max(waits) + times[stage][batch]
    return max(max(row) for row in end) if batches else 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4), st.integers(1, 4)), min_size=1, max_size=4), st.integers(0, 25))
def test_stages_with_workers_and_buffers_take_what_they_take_by_hand(line: list[tuple[int, int, int]], batches: int) -> None:
    stages = [busy(f"s{n}", time, ahead=ahead, at_once=workers) for n, (time, ahead, workers) in enumerate(line)]
    expected = by_hand([[time * US] * batches for time, _, _ in line], [row[1] for row in line], [row[2] for row in line])
    assert fs(stages, batches=batches) == expected


def test_the_host_takes_batches_over_one_after_another() -> None:
    stages = [busy("decode", 40, at_once=8, handoff="10 us"), busy("train", 4)]
    assert fs(stages, batches=100, ahead=16) == (40 + 100 * 10 + 4) * US


def test_several_ops_of_a_stage_follow_one_another() -> None:
    both = [{"busy": {"name": name, "device": "cpu", "time": time}} for name, time in (("read", "5 us"), ("decode", "7 us"))]
    inner = {"name": "worker", "do": both}
    assert fs([inner, busy("train", 3)], batches=50) == (50 * 12 + 3) * US
    assert fs([{**inner, "at_once": 2}, busy("train", 3)], batches=50, ahead=4) == (25 * 12 + 2 * 3) * US


@pytest.mark.parametrize(("items", "cores", "rounds"), [(64, 64, 8), (64, 4, 16), (9, 64, 2)])
def test_workers_share_the_cores_there_are(items: int, cores: int, rounds: int) -> None:
    few = {**MACHINE, "parts": {**MACHINE["parts"], "cpu": {**MACHINE["parts"]["cpu"], "cores": cores}}}
    eight = {"busy": {"device": "cpu", "time": "6 ms", "times": items, "workers": 8}}
    assert hwsim.simulate(few, workload([eight], batches=1)).makespan_s == pytest.approx(rounds * 6e-3)


def test_a_stage_of_all_gpus_exchanges_each_batch() -> None:
    """Four batches of 5 ms, each with 160 MB summed in 15 ms by a ring of four GPUs."""
    sums = {"allreduce": {"among": "gpu*", "bytes": "160 MB", "algorithm": "ring"}}
    stage = {"do": [{"busy": {"device": "$self", "time": "5 ms"}}, sums]}
    told = hwsim.simulate("d2l-4gpu-pcie", workload([stage], each="gpu*", batches=4))
    assert told.makespan_s == pytest.approx(4 * 0.020, rel=0.01)


# ---- laws


def reading(size: str = "64 GB", *, shuffle: bool = True, epochs: int = 3) -> dict[str, Any]:
    stages = [{"read": {"from": "disk", "depth": 4}}, busy("train", 100)]
    data = {"samples": 20_000, "bytes": "100 kB", "shuffle": shuffle}
    return workload(stages, batch=100, epochs=epochs, dataset=data, cache={"bytes": size}, ahead=4)


# ---- epochs and the cache


def test_the_first_epoch_reads_from_the_disk_and_the_second_from_memory() -> None:

    run = hwsim.simulate(MACHINE, reading("2 GB", epochs=2))
    (found,) = pipelines(run.timeline)
    first, second = found.epochs
    assert first.rate == pytest.approx(100)  # 10 MB at 1 GB/s
    assert second.rate > 5 * first.rate
    media = next(one for one in run.usage if one.capacity == "disk.media")
    assert media.moved == pytest.approx(2e9)


def test_what_does_not_fit_is_read_again() -> None:
    run = hwsim.simulate(MACHINE, reading("1 GB", epochs=5))
    missed = 4 - sum(hit_rate(0.5, epoch, shuffled=True) for epoch in range(1, 5))
    media = next(one for one in run.usage if one.capacity == "disk.media")
    assert media.moved == pytest.approx((1 + missed) * 2e9)
    assert run.makespan_s == pytest.approx((1 + missed) * 2, rel=0.15)


def played(part: float, *, shuffled: bool, hosts: int = 1) -> list[float]:
    """The hit rates of one host's epochs, sample by sample: what goes is chosen at random."""
    draw, count = random.Random(7), 20_000
    size, order = round(part * count), list(range(count))
    held: set[int] = set()
    places: list[int] = []
    found = []
    for _ in range(4):
        if shuffled:
            draw.shuffle(order)
        own, hits = order[: count // hosts], 0
        for sample in own:
            if sample in held:
                hits += 1
            elif len(held) < size:
                places.append(sample)
                held.add(sample)
            else:
                at = draw.randrange(size)
                held.remove(places[at])
                held.add(sample)
                places[at] = sample
        found.append(hits / len(own))
    return found


@pytest.mark.parametrize("part", [0.2, 0.65, 0.9])
@pytest.mark.parametrize("shuffled", [True, False])
def test_hit_rates_are_those_of_a_cache_played_sample_by_sample(part: float, shuffled: bool) -> None:
    assert hit_rate(part, 3, shuffled=shuffled) == pytest.approx(played(part, shuffled=shuffled)[3], abs=0.012)


def test_a_cache_is_no_larger_than_the_memory_of_its_hosts() -> None:
    two = {**MACHINE, "parts": {**MACHINE["parts"], "other": MACHINE["parts"]["cpu"]}}
    assert hwsim.simulate(two, reading("128 GB")).makespan_s == hwsim.simulate(two, reading("64 GB")).makespan_s
    with pytest.raises(SpecError, match="the cache has 65 GB, but cpu has 64 GB"):
        hwsim.simulate(MACHINE, reading("65 GB"))
    with pytest.raises(SpecError, match="cpu and other have 128 GB"):
        hwsim.simulate(two, reading("129 GB"))


def test_a_page_cache_misses_as_often_as_was_measured() -> None:
    for shuffled, missed in ((True, 0.53), (False, 0.66)):  # Mohan et al. 2021, section 7.1
        assert 1 - hit_rate(0.65, 1, shuffled=shuffled) == pytest.approx(missed, abs=0.06)


@pytest.mark.parametrize("hosts", [4, 8])
def test_of_several_hosts_each_sees_other_samples_every_epoch(hosts: int) -> None:
    found = played(0.9, shuffled=True, hosts=hosts)
    assert [hit_rate(0.9, epoch, shuffled=True, hosts=hosts) for epoch in range(3)] == pytest.approx(found[:3], abs=0.02)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=4), st.integers(0, 40), st.integers(0, 12), st.integers(1, 6))
def test_the_bodies_are_the_batches_in_order(epochs: list[int], batches: int, every: int, reach: int) -> None:
    found = [batch for body in bodies(tuple(epochs), batches, every, reach) for _ in range(body.times) for batch in body.batches]
    assert [batch.epoch for batch in found] == [epoch for epoch in epochs for _ in range(batches)]
    assert [number for number, batch in enumerate(found, 1) if batch.saves] == [
        number for number in range(1, len(found) + 1) if every and number % every == 0
    ]


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 14), st.integers(2, 4), st.tuples(*[st.integers(0, 4)] * 2), st.tuples(*[st.integers(1, 3)] * 2))
def test_epochs_that_differ_flow_into_each_other_as_by_hand(
    batches: int, epochs: int, ahead: tuple[int, ...], workers: tuple[int, ...]
) -> None:
    stages = [
        {"read": {"from": "disk"}, "ahead": ahead[0]},
        busy("decode", 700, ahead=ahead[1], at_once=workers[0]),
        busy("train", 900, at_once=workers[1]),
    ]
    data = {"samples": batches, "bytes": "2 MB"}  # 2 ms from the disk, then far less
    result = hwsim.simulate(MACHINE, workload(stages, batch=1, epochs=epochs, dataset=data, cache={"bytes": "64 GB"}))
    reads = [round(op.duration_s * FEMTO) for op in result.ops if op.name == "read"]
    assert max(reads) > 5 * min(reads)
    count = batches * epochs
    expected = by_hand([reads, [700 * US] * count, [900 * US] * count], [*ahead, 0], [1, *workers])
    assert result.timeline.makespan_fs == pytest.approx(expected, abs=count)  # durations in seconds, rounded


# ---- checkpoints


def trained(mode: str, every: Any, *, size: str = "100 MB", batches: int = 100, **keys: Any) -> float:
    stages = [busy("load", 500), {"busy": {"name": "train", "device": "gpu0", "time": "1 ms"}}]
    save = {"every": every, "bytes": size, "to": "disk", "mode": mode, **keys}
    return hwsim.simulate(MACHINE, workload(stages, batches=batches, checkpoint=save)).makespan_s


def test_a_synchronous_checkpoint_stops_the_training_for_copy_and_write() -> None:
    copy, write = 100e6 / 16e9, 100e6 / 1e9
    assert trained("sync", 25) == pytest.approx(0.1005 + 4 * (copy + write), rel=1e-4)


def test_an_asynchronous_one_only_for_the_copy() -> None:
    copy, write = 10e6 / 16e9, 10e6 / 1e9
    assert trained("async", 25, size="10 MB") == pytest.approx(0.1005 + 4 * copy + write, rel=1e-3)


def test_an_asynchronous_one_waits_for_the_write_before() -> None:
    copy, write = 100e6 / 16e9, 100e6 / 1e9  # 25 batches take 25 ms, a write 100 ms
    assert trained("async", 25) == pytest.approx(0.0005 + 0.025 + 4 * (copy + write), rel=1e-3)


def test_time_between_checkpoints_is_counted_in_batches_of_the_slowest_stage() -> None:
    assert trained("sync", "25 ms") == trained("sync", 25)
    assert trained("sync", "epoch") == trained("sync", 100)
    assert trained("sync", 1000) == pytest.approx(0.1005)


@pytest.mark.parametrize(
    ("save", "said"),
    [
        ({"every": 0}, "expected a positive number of batches"),
        ({"every": "soon"}, "soon"),
        ({"every": 10, "to": "gpu0"}, "expected a disk"),
    ],
)
def test_what_is_wrong_with_a_checkpoint_is_said(save: dict[str, Any], said: str) -> None:
    keys = {"every": 1, "bytes": "1 MB", "to": "disk", **save}
    with pytest.raises(SpecError, match=said):
        hwsim.simulate(MACHINE, workload([busy("train", 1)], batches=10, checkpoint=keys))


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_the_rate_of_a_pipeline_is_at_most_that_of_its_slowest_stage(workers: int) -> None:
    decode = busy("decode", 384_000, at_once=workers)
    run = hwsim.simulate("d2l-4gpu-pcie", workload([decode, busy("train", 30)], batches=200, ahead=8))
    (use,) = pipelines(run.timeline)
    assert use.settled.rate == pytest.approx(use.settled.slowest[0].rate, rel=1e-6)


@pytest.mark.parametrize("train", [29.5, 30.0, 30.5])
def test_no_other_stage_is_slower_than_the_slowest(train: float) -> None:
    run = hwsim.simulate("d2l-4gpu-pcie", workload([busy("read", 30), busy("train", train)], batches=200, ahead=8))
    (use,) = pipelines(run.timeline)
    slowest, then = use.settled.slowest
    assert then is not None
    assert slowest.rate <= then.rate


def test_how_many_batches_there_are_must_be_said() -> None:
    with pytest.raises(SpecError, match="the number of batches is missing"):
        hwsim.simulate(MACHINE, workload([busy("train", 1)]))
    data = {"samples": 100, "bytes": "1 kB"}
    with pytest.raises(SpecError, match="less than one batch for each of 4"):
        hwsim.simulate(MACHINE, workload([busy("train", 1)], batch=30, each="gpu*", dataset=data))


@settings(max_examples=20)
@given(st.data())
def test_a_pipeline_that_begins_later_does_all_later(data: st.DataObject) -> None:
    workers, every = data.draw(st.tuples(st.integers(1, 6), st.sampled_from((0, 1, 2, 5))))
    stages = [busy("read", 3, at_once=workers, ahead=data.draw(st.integers(1, 8))), busy("use", data.draw(st.integers(1, 9)))]
    keys = {"batches": data.draw(st.integers(1, 12)), "epochs": data.draw(st.integers(1, 2)), "stages": stages}
    saved = {"checkpoint": {"every": every, "to": "disk", "bytes": "1 kB"}} if every else {}
    times = []
    for start in (0, 7):
        job = {"start": f"{start} us", "pipeline": {**keys, **saved}}
        run = hwsim.simulate(MACHINE, {"hwsim": "workload/1", "jobs": {"one": job}})
        ops = [(op.name, op.start_s, op.end_s) for op in run.ops if op.name != "start"]
        times.append([(name, round((begin * 1e6) - start, 6), round((end * 1e6) - start, 6)) for name, begin, end in sorted(ops)])
    assert times[0] == times[1]
