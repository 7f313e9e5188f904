"""A better number of a machine never makes a run slower, and none helps much more than what `explain` names.

Twice as good is at least as good as it is, ten times at least as good as twice, or a file refuses the value. Where neither
changes the time something else binds, which the run names. Sizes, shares and counts have no better direction (see
`hwsim.views.explain.numbers`).
The pairs have one queue of work or few: with many a faster part may make the whole slower (Graham, 1969).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Final

import pytest

from hwsim import api
from hwsim.machine.classes import completed_file
from hwsim.results.critical import critical_path
from hwsim.spec import Mistakes, SpecError, find, read, resolve
from hwsim.views.explain.explanation import explain
from hwsim.views.explain.numbers import FileNumber, FileNumbers
from tests.test_what_if import library

PAIRS: Final = (
    ("c5.18xlarge", "d2l/cloud-iops"),
    ("d2l-4gpu-pcie", "d2l/two-gpu-mlp"),
    ("d2l-channels", "d2l/channel-layout"),
    ("d2l-copies", "d2l/dma-or-cpu-copy"),
    ("d2l-disks", "d2l/hdd-random-vs-sequential"),
    ("d2l-laptop", "d2l/async-matmul"),
    ("d2l-platters", "d2l/hdd-density"),
    ("d2l-ps-cluster", "d2l/ps-scaling"),
    ("d2l-quad-core", "d2l/measure-cache-size"),
    ("d2l-quad-core", "d2l/misaligned-access"),
    ("d2l-sf-amsterdam", "d2l/sf-amsterdam-round-trip"),
    ("d2l-tensor-cores", "d2l/tensor-cores"),
    ("d2l-two-nodes", "d2l/ethernet-small-messages"),
    ("desktop", "d2l/false-sharing"),
)
MORE: Final = tuple(pair for pair in sorted(set(library())) if pair[1].startswith("d2l/") and pair not in PAIRS)
FEW: Final = 12  # numbers of a pair by default
RARER: Final = {"tREFI": "doubled"}  # seconds that are better longer: a memory is refreshed less often
FELT: Final = 0.02  # gain of a number that `explain` has to name, or another that gains as much
NEAR: Final = 0.01  # of a clock, which moves several rates and times at once
CURVE: Final = 1e-6  # a curve through three numbers (seeks of a disk) may rise a little where one of them falls
MANY: Final = 30  # numbers of a pair in the slow test


@cache
def numbers_of(machine: str) -> tuple[FileNumber, ...]:
    mistakes = Mistakes()
    completed = completed_file(resolve(read(find("machine", machine)), mistakes))
    mistakes.raise_if_any()
    return tuple({number.path: number for number in FileNumbers(completed).everything() if number.better}.values())


def makespan(machine: str, workload: str, number: FileNumber, factor: float) -> float | None:
    """Femtoseconds with a number that many times as good; None where its file refuses it."""
    better = RARER.get(number.key.rpartition(".")[2], number.better)
    text = number.times(factor if better == "doubled" else 1 / factor)
    try:
        return api.simulated(machine, workload, set={number.path: text}, interval=False).timeline.makespan_fs
    except SpecError:
        return None


def broken(machine: str, workload: str, numbers: list[FileNumber]) -> list[str]:
    """What breaks the law, a sentence each."""
    run = api.simulated(machine, workload, interval=False)
    first, found = run.timeline.makespan_fs, list[str]()
    rows = explain(run).what_if or ()
    best = max((row.speedup for row in rows), default=1.0)
    assert critical_path(run.timeline).limited_by
    for number in numbers:
        twice, tenfold = (makespan(machine, workload, number, factor) for factor in (2, 10))
        times = [time for time in (first, twice, tenfold) if time is not None]
        if any(later > before * (1 + CURVE) for before, later in pairwise(times)):
            found.append(f"{number.path} better slows: {times}")
        if twice is not None and first > twice * (1 + FELT) and first / twice > best * (1 + NEAR):
            found.append(f"{number.path} makes it {first / twice:.3f} times as fast, and the best of `explain` {best:.3f} times")
        idle = set(times) == {first} and len(times) > 1
        promised = [row for row in rows if idle and dict(row.settings).keys() == {number.path} and row.speedup > 1]
        found += [f"{row.change} is to help, and twice {number.path} does not" for row in promised]
    return found


def drawn(numbers: Sequence[FileNumber], count: int, seed: str) -> list[FileNumber]:
    return random.Random(seed).sample(numbers, min(count, len(numbers)))


@pytest.mark.parametrize(("machine", "workload"), PAIRS)
def test_a_better_number_never_slows_and_none_helps_more_than_is_named(machine: str, workload: str) -> None:
    assert broken(machine, workload, drawn(numbers_of(machine), FEW, workload)) == []


@pytest.mark.slow
@pytest.mark.parametrize(("machine", "workload"), [*PAIRS, *MORE])
def test_no_better_number_slows(machine: str, workload: str) -> None:
    assert broken(machine, workload, drawn(numbers_of(machine), MANY, workload)) == []


def test_geometry_has_no_better_direction() -> None:
    """A cable is better short; a platter that is narrow has fewer bytes on its tracks."""
    by_key = {number.key: number.better for number in FileNumbers(read(find("machine", "d2l-sf-amsterdam"))).everything()}
    assert by_key["length"] == "halved"
    platters = {number.key: number.better for number in FileNumbers(read(find("machine", "d2l-platters"))).everything()}
    assert (platters["platter.outer"], platters["platter.inner"], platters["rpm"]) == ("", "", "doubled")
