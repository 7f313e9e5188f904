"""Trainings of which most replicas are alike and some are not: one of each class is simulated, and the run is that of all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import hwsim
from hwsim.costs.energy import energy_of
from hwsim.results.choices import choices
from hwsim.results.differences import replicas_differ
from hwsim.views.summary.say import summary
from tests.test_fold_energy import energy_differs, powered
from tests.test_fold_library import simulated

Spec = dict[str, Any]

MODEL = {"layers": 4, "hidden": 1024, "heads": 8, "vocab": 32000, "sequence": 1024, "positions": "rotary", "bias": False}
EXPERTS = {**MODEL, "experts": 8, "top_k": 2}
RATE = {"kind": "direct", "latency": "1 us"}


def cluster(kinds: tuple[str, ...], gpus: int, *, cards: int = 1, leaves: int = 1) -> Spec:
    """Nodes of GPUs of a kind each, behind one or all cards, at one or several leaves below a core."""
    parts: Spec = {f"leaf{index}": {"kind": "switch"} for index in range(leaves)}
    links: list[Spec] = []
    if leaves > 1:
        parts["core"] = {"kind": "switch"}
        links += [{"name": f"up{up}", "between": [f"leaf{up}", "core"], **RATE, "bandwidth": "20 GB/s"} for up in range(leaves)]
    for n, kind in enumerate(kinds):
        parts[f"n{n}"] = {
            "kind": "machine",
            "parts": {
                "cpu": {"kind": "cpu", "cores": 32, "flop": {"fp32": "500 GFLOP/s"}, "memory": {"bandwidth": "100 GB/s"}},
                "gpu": {"kind": "gpu", "use": kind, "count": gpus},
                "nvs": {"kind": "switch"},
                "nic": {"kind": "nic", "bandwidth": "25 GB/s", "latency": "1 us", "count": cards},
            },
            "links": [
                {"name": "nv", "between": ["nvs", "gpu*"], **RATE, "bandwidth": "100 GB/s"},
                {"name": "slot", "between": ["cpu", "gpu*"], **RATE, "bandwidth": "16 GB/s"},
                {"name": "card", "between": ["cpu", "nic*"], **RATE, "bandwidth": "32 GB/s"},
            ],
        }
        links.append({"name": f"f{n}", "between": [f"n{n}.nic*", f"leaf{n % leaves}"], **RATE, "bandwidth": "25 GB/s"})
    return {"hwsim": "machine/1", "class": "ideal", "name": "cluster", "parts": parts, "links": links}


def training(events: list[Spec], **keys: Any) -> Spec:
    train = {"model": MODEL, "global_batch": 48, "framework": "torchtitan", **keys}
    return {"hwsim": "workload/1", "train": train, **({"events": events} if events else {})}


def network(events: list[Spec], **keys: Any) -> Spec:
    train = {"model": "d2l-lenet", "global_batch": 192, "steps": 2, **keys}
    return {"hwsim": "workload/1", "train": train, **({"events": events} if events else {})}


def differs(machine: Any, workload: Any) -> tuple[tuple[tuple[int, int], ...], list[str]]:
    """(replicas that were simulated, with the number that each represents; what that changes)."""
    few, many = (simulated(machine, workload, how) for how in ("always", "never"))
    classes = few.trainings[0].classes
    if not classes:
        return (), [] if few.timeline.makespan_fs == many.timeline.makespan_fs else ["unfolded runs differ"]
    found = list(replicas_differ(few.timeline, many.timeline))
    peaks = [[(memory.device, memory.peak) for memory in run.memory] for run in (few, many)]
    found += [f"memory of {a}" for a, b in zip(*peaks, strict=True) if a != b]
    folded, whole = energy_of(few), energy_of(many)
    assert folded is not None
    assert whole is not None
    return classes, found + energy_differs(folded, whole)


A, H = "a100-sxm-40gb", "h100-sxm"
SLOW = {"at": "0 s", "speed": "80 %"}
NETWORKS: list[Spec] = [{}, {"optimizer": "adam"}]
PLANS: list[Spec] = [
    {"parallel": {"tp": 2}, "sharding": "zero-1"},
    {"parallel": {"tp": 2, "pp": 2}},
    {"parallel": {"tp": 2, "pp": 2, "order": ["tp", "dp", "pp"]}},
    {"parallel": {"pp": 2, "order": ["dp", "pp"]}, "microbatch": 1},
    {"sharding": "zero-3"},
    {"parallel": {"cp": 2}, "sharding": "zero-3"},
    {"parallel": {"tp": 4, "pp": 2}, "detail": "stage"},
]


PLACES = (["n1.gpu0", "n4.gpu3"], ["n0.gpu0"], ["n5.gpu3"])


@pytest.mark.parametrize(
    ("plan", "slow"),
    [*((plan, PLACES[index % 3]) for index, plan in enumerate(PLANS)), *((PLANS[1], slow) for slow in PLACES[::2])],
)  # each plan with one of them, one plan with all
def test_slow_gpus_are_simulated_beside_one_of_the_others(plan: Spec, slow: list[str]) -> None:
    machine = powered(cluster((A,) * 6, 4, cards=4), "")
    classes, found = differs(machine, training([{**SLOW, "part": slow}], **plan))
    assert found == []
    assert classes or plan["parallel"]["tp"] * plan["parallel"]["pp"] == 8  # of three replicas, two would be too many


@st.composite
def odd(draw: st.DrawFn) -> tuple[Spec, Spec]:
    """A machine and a training with some odd GPUs, nodes or links."""
    nodes, gpus = draw(st.sampled_from([(4, 4), (6, 4), (4, 8), (8, 2), (6, 2)]))
    kinds = tuple(draw(st.sampled_from([A, A, A, H])) for _ in range(nodes)) if draw(st.booleans()) else (A,) * nodes
    machine = powered(cluster(kinds, gpus, cards=draw(st.sampled_from([1, gpus])), leaves=draw(st.sampled_from([1, 2]))), "")
    names = [f"n{node}.gpu{gpu}" for node in range(nodes) for gpu in range(gpus)]
    events: list[Spec] = []
    for name in draw(st.lists(st.sampled_from(names), max_size=3, unique=True)):
        event: Spec = {"at": f"{draw(st.integers(0, 60))} ms", "part": name}
        event |= {"down": "3 ms"} if draw(st.booleans()) else {"speed": f"{draw(st.integers(20, 95))} %"}
        if "speed" in event and draw(st.booleans()):
            event["for"] = f"{draw(st.integers(1, 50))} ms"
        events.append(event)
    if draw(st.booleans()):
        node = draw(st.integers(0, nodes - 1))
        events.append({"at": "0 s", "link": f"f{node}", "speed": "50 %"})
    if draw(st.integers(0, 3)) == 0:
        return machine, network(events, **draw(st.sampled_from(NETWORKS)))
    plan = draw(st.sampled_from(PLANS))
    if draw(st.integers(0, 3)) == 0:
        plan = {**plan, "model": EXPERTS, "parallel": {**plan.get("parallel", {}), "ep": draw(st.sampled_from([2, 4]))}}
        plan |= {"imbalance": draw(st.sampled_from([1.0, 1.5]))}
    if draw(st.integers(0, 3)) == 0:
        sharded = draw(st.booleans())
        plan = {**plan, "checkpoint": {"every": 1, "bandwidth": "1 GB/s", "sharded": sharded}}
    return machine, training(events, **plan)


@given(odd())
@settings(max_examples=7, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_a_training_with_odd_ones_is_that_of_all_its_replicas(case: tuple[Spec, Spec]) -> None:
    machine, workload = case
    try:
        _, found = differs(machine, workload)
    except hwsim.SpecError as error:
        if not any(word in str(error) for word in ("divide", "multiple")):  # a plan that does not fit the GPUs
            raise
        assume(False)
    assert found == []


@pytest.mark.parametrize("imbalance", [1.0, 1.4])
@pytest.mark.parametrize(
    ("plan", "ep"),
    [({"parallel": {}}, 2), ({"parallel": {"tp": 2, "pp": 2}}, 2), ({"parallel": {"cp": 2}, "sharding": "zero-3"}, 4)],
)
def test_what_a_group_of_experts_exchanges_is_a_tie_of_all_of_it(plan: Spec, ep: int, imbalance: float) -> None:
    """Over uplinks that the path of one replica to another takes in one direction alone."""
    plan = {**plan, "model": EXPERTS, "parallel": {**plan["parallel"], "ep": ep}, "imbalance": imbalance}
    classes, found = differs(powered(cluster((A,) * 8, 2, leaves=2), ""), training([], **plan))
    assert found == []
    assert classes


def test_what_is_printed_is_that_of_all_replicas() -> None:
    machine = cluster((A,) * 12, 4, cards=4)
    workload = training([{**SLOW, "part": "n3.gpu1"}], parallel={"tp": 4}, global_batch=96)
    few, many = (summary(simulated(machine, workload, how), verbose=True).splitlines() for how in ("always", "never"))
    said = [line for line in few if line.startswith("  replicas ")]
    assert said == ["  replicas       2 of 12 simulated: replica 0 (11 identical), replica 3"]
    assert [line for line in few if line not in said] == many


def test_collectives_of_one_name_with_several_choices_are_told_apart_by_their_size() -> None:
    run = simulated("dgx-a100", "resnet50-dp")
    titles = [choice.title for choice in choices(run.timeline)]
    assert len(titles) > 1
    assert len(set(titles)) == len(titles)
    assert all(title.startswith("gradients of ") and title.endswith(" MB") for title in titles)


def test_one_slow_gpu_of_4096_is_a_class_of_its_own() -> None:
    """As long as with all 512 replicas, to the femtosecond, when it was compared; those take twenty seconds."""
    train = {"model": "llama-3-8b", "global_batch": 4096, "framework": "torchtitan", "sharding": "zero-3", "steps": 1}
    train |= {"detail": "stage", "parallel": {"tp": 8}}
    workload = {"hwsim": "workload/1", "train": train, "events": [{**SLOW, "part": "node300.gpu3"}]}
    run = hwsim.simulate("scale/rail-fat-tree", workload, set={"let.nodes": 512})
    assert run.trainings[0].classes == ((0, 511), (300, 1))
