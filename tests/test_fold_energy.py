"""Energy of a folded run is that of the run with all its ranks: of every device, at the most, and in all."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hwsim
from hwsim.costs.energy import Energy, energy_of
from hwsim.studies.measures import NoSuchNumber, measure, number
from tests.test_fold import Spec, cases
from tests.test_fold import cluster as nodes_of
from tests.test_fold_library import FAST, PAIRS, cluster, is_folded, simulated, training

WATTS = {"cpu": {"idle": "20 W", "loaded": "100 W"}, "gpu": {"idle": "50 W", "loaded": "400 W"}, "nic": {"loaded": "20 W"}}
FOLDED = ("bert-large", "d2l/allreduce-160mb", "d2l/hierarchical-ps", "d2l/two-nvlink-rings", "d2l/kvstore-push-pull")
NETWORK = {"model": "d2l-lenet", "global_batch": 128, "steps": 2}


def powered(machine: Spec, other: str) -> Spec:
    """The machine of a test with power; other: of GPUs in its slow node, which draw more for the same work."""
    for name, node in machine["parts"].items():
        for part in node.get("parts", {}).values():
            if part["kind"] in WATTS:
                part["power"] = dict(WATTS[part["kind"]])
        if name == other:
            node["parts"]["gpu"]["power"] = {"idle": "60 W", "loaded": "700 W"}
    return machine


def energies(machine: Any, workload: Any) -> tuple[bool, Energy, Energy]:
    """(whether it folds, its energy folded, its energy with all ranks)."""
    few, many = (simulated(machine, workload, how) for how in ("always", "never"))
    folded, whole = energy_of(few), energy_of(many)
    assert folded is not None
    assert whole is not None
    return is_folded(few), folded, whole


def energy_differs(folded: Energy, whole: Energy) -> list[str]:
    """What folding changes of the energy, of each part too."""
    numbers = [(name, getattr(folded, name), getattr(whole, name)) for name in ("watts", "peak", "loaded", "seconds")]
    numbers += [("joules", folded.joules.value, whole.joules.value), ("plug", folded.wall.value, whole.wall.value)]
    for one, other in zip(folded.items, whole.items, strict=True):
        numbers += [(one.name, one.joules, other.joules), (f"{one.name} busy", one.busy, other.busy)]
        assert (one.name, one.count) == (other.name, other.count)
    return [
        f"{name}: {a!r}, with all ranks {b!r}" for name, a, b in numbers if not math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    ]


@given(cases(16), st.sampled_from(["node", "other"]))
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_ranks_that_stand_for_others_draw_what_these_would(case: tuple[Spec, Spec], hungry: str) -> None:
    machine, workload = case
    _, folded, whole = energies(powered(machine, hungry), workload)
    assert energy_differs(folded, whole) == []


@pytest.mark.parametrize(("machine", "workload"), [pair for pair in PAIRS if pair[1] in FOLDED])
def test_library_workloads_draw_as_much_folded(machine: str, workload: str) -> None:
    told, folded, whole = energies(machine, workload)
    assert told
    assert energy_differs(folded, whole) == []


def hosts(nodes: int, gpus: int) -> Spec:
    """Nodes whose hosts have power."""
    return powered(nodes_of(nodes, gpus), "")


@pytest.mark.parametrize(
    ("machine", "workload"),
    [
        ("dgx-a100", "resnet50-dp"),
        (hosts(4, 4), {"hwsim": "workload/1", "train": NETWORK}),
        (cluster(FAST, FAST, FAST, FAST), training(parallel={"tp": 2}, sharding="zero-3")),
        (hosts(2, 2), {"hwsim": "workload/1", "train": {**NETWORK, "checkpoint": {"every": 1, "bandwidth": "1 GB/s"}}}),
        (cluster(FAST, FAST), training(parallel={"tp": 2, "pp": 2}, sharding="zero-1", recompute="full")),
        (cluster(FAST), training(parallel={"cp": 2}, sharding="zero-3")),
    ],
)
def test_a_replica_that_stands_for_others_draws_what_these_would(machine: Any, workload: Any) -> None:
    told, folded, whole = energies(machine, workload)
    assert told
    assert energy_differs(folded, whole) == []


def test_every_part_of_a_folded_training_is_as_busy_as_with_all_ranks() -> None:
    folded, whole = (hwsim.simulate("dgx-a100", "resnet50-dp", fold=fold) for fold in ("always", "never"))
    for name in ("gpu0.compute", "gpu5.compute", "gpu5.memory", "cpu0.cores", "cpu1.cores", "nvlink:gpu3->nvs"):
        busy = [number(run, measure(f"busy:{name}"), dict) for run in (folded, whole)]
        assert busy[0] == pytest.approx(busy[1], rel=1e-9)
    assert number(folded, measure("busy:cpu0.cores"), dict) > 0
    with pytest.raises(NoSuchNumber, match=r"'busy:gpu5\.foo'"):
        number(folded, measure("busy:gpu5.foo"), dict)
