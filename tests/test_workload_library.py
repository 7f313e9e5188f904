"""The workloads that come with hwsim say what they say they do."""

from __future__ import annotations

import pytest

import hwsim
from hwsim.engine import simulate
from hwsim.graph.opgraph import OpGraph
from hwsim.machine import build
from hwsim.spec import Mistakes, find, names, read
from hwsim.spec.expectation import parse_expectation
from hwsim.spec.paths import apply_set
from hwsim.workload import lower, read_workload


def load(machine: str, workload: str, **changes: object) -> tuple[OpGraph, dict[str, str]]:
    """The graph, and what is expected of it."""
    mistakes = Mistakes()
    one, two = read(find("machine", machine)), read(find("workload", workload))
    for path, value in changes.items():
        one, two, _ = apply_set(one, two, path, value)
    built, found = build(one, mistakes), read_workload(two, mistakes)
    mistakes.raise_if_any()
    assert built is not None
    assert found is not None
    return lower(found, built, mistakes), found.expect.plain() if found.expect else {}


def milliseconds(machine: str, workload: str, **changes: object) -> float:
    return simulate(load(machine, workload, **changes)[0]).makespan * 1e3


PROGRAMS = [name for name in names("workload") if {"program", "programs"} & set(dict(read(find("workload", name)).items()))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_workload_of_the_library_keeps_its_promise(name: str) -> None:
    promised = read(find("workload", name)).get("expect")
    assert promised is not None
    machine = str(promised.text("machine"))
    _, expect = load(machine, name)
    assert parse_expectation(expect["makespan"]).check(hwsim.simulate(machine, name).makespan_s)  # its events too


def test_waiting_once_and_waiting_every_time() -> None:
    assert simulate(load("d2l-laptop", "d2l/async-loop")[0]).makespan_fs == 30_020_000_000_000
    assert simulate(load("d2l-laptop", "d2l/async-loop", blocking=True)[0]).makespan_fs == 50_000_000_000_000


def test_a_cpu_and_a_gpu_together_take_as_long_as_the_slower() -> None:
    alone = [milliseconds("d2l-gpu-workstation", "d2l/parallel-cpu-gpu", **{other: 0}) for other in ("cpu", "gpu")]
    assert alone == pytest.approx([166.7, 655.1], rel=0.01)
    assert milliseconds("d2l-gpu-workstation", "d2l/parallel-cpu-gpu") == pytest.approx(max(alone))


def test_copies_hide_behind_products_unless_they_share_the_stream() -> None:
    assert milliseconds("d2l-gpu-workstation", "d2l/copy-overlap") == pytest.approx(10 * 16.57 + 9.61, rel=1e-3)
    assert milliseconds("d2l-gpu-workstation", "d2l/copy-overlap", stream="compute") == pytest.approx(165.7 + 96.1, rel=1e-3)
