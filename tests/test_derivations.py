"""Derivations that are written when they are read say what they always said, whatever was asked for before."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import permutations

import pytest

import hwsim
from hwsim.machine import Machine
from hwsim.models.exchanges import scaled


def machine(name: str) -> Machine:
    run = hwsim.simulate(name, {"hwsim": "workload/1", "program": []}, expect=False)
    assert run.built is not None
    return run.built


@pytest.mark.parametrize("name", ["d2l-4gpu-pcie", "dgx-a100"])
def test_a_transfer_costs_the_same_whatever_was_asked_for_before(name: str) -> None:
    known, names = machine(name), ("cpu", "gpu0", "gpu1") if name.startswith("d2l") else ("cpu0", "gpu0", "gpu5")
    pairs = list(permutations(names, 2))
    for a, b in pairs:
        known.transfer(a, b, 1e6)
    for a, b in pairs:
        fresh = machine(name).transfer(a, b, 3e6)
        assert known.transfer(a, b, 3e6) == fresh
        assert tuple(known.transfer(a, b, 3e6).why) == tuple(fresh.why)


def test_a_derivation_is_a_sequence_of_its_lines() -> None:
    cost = machine("d2l-4gpu-pcie").transfer("cpu", "gpu0", 1e6)
    sent = pickle.loads(pickle.dumps(cost))
    lines = tuple(cost.why)
    assert lines == cost.why == sent.why
    assert (len(cost.why), cost.why[0], cost.why[1:]) == (len(lines), lines[0], lines[1:])
    assert repr(cost.why) == repr(lines)
    listed = replace(cost, why=lines)
    assert listed == cost == sent
    assert hash(listed) == hash(cost)
    assert replace(cost, why=lines[1:]) != cost


@pytest.mark.parametrize(("times", "said"), [(0.25, ("part", "25 %")), (3.0, ("times", "3"))])
def test_a_part_is_at_most_all_and_more_is_so_many_times(times: float, said: tuple[str, str]) -> None:
    cost = machine("d2l-4gpu-pcie").transfer("cpu", "gpu0", 1e6)
    assert {term.inputs[0][:2] for term in scaled(cost, times).why} == {said}
