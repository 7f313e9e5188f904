"""Exchanges of groups that are alike but for names, costed once for all of them, are what each is by itself."""

from __future__ import annotations

from typing import Any

import pytest

import hwsim.communication.renaming
from hwsim.communication.renaming import renamed
from hwsim.machine import Machine
from hwsim.machine.libraries.nccl import RINGS
from hwsim.prepare import load_machine
from hwsim.workload.training.exchanges import Exchanges
from tests.test_training_sends import MIXED


def rails(nodes: int) -> Machine:
    return load_machine({"hwsim": "machine/1", "use": "scale/rail-fat-tree", "let": {"nodes": nodes, "per_leaf": 4}})


def by_rail(nodes: list[int]) -> list[tuple[str, ...]]:
    """A group for each of two rails through these nodes, and one that changes rails."""
    straight = [tuple([f"node{node}.gpu{gpu}" for node in nodes]) for gpu in range(2)]
    return [*straight, tuple([f"node{node}.gpu{2 + at % 2}" for at, node in enumerate(nodes)])]


@pytest.mark.parametrize("nodes", [[0, 1], [0, 1, 2, 5, 6], list(range(40))])
@pytest.mark.parametrize("operation", RINGS)
def test_costed_once_is_costed_one_by_one(nodes: list[int], operation: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, groups = rails(40), by_rail(nodes)
    assert renamed(machine, groups)[1] is not None
    together = Exchanges(machine).cost(groups, operation, 3e8)
    monkeypatch.setattr(hwsim.communication.renaming, "renamed", lambda _, groups: [None] * len(groups))
    assert Exchanges(machine).cost(groups, operation, 3e8) == together


def test_what_differs_is_costed_by_itself() -> None:
    rail, other, crossing = renamed(rails(40), by_rail([0, 1, 2, 5, 6]))
    assert rail is None
    assert other is not None
    assert (other.first, other.names["node5.gpu0.memory"]) == (0, "node5.gpu1.memory")
    assert crossing is None
    mixed = load_machine(MIXED)
    unlike = [("fast0.gpu0", "fast1.gpu0"), ("slow0.gpu0", "slow1.gpu0"), ("fast0.gpu1", "slow1.gpu1")]
    assert renamed(mixed, unlike) == [None] * 3
    assert renamed(mixed, [("fast0.gpu0", "fast0.gpu1"), ("fast1.gpu0", "fast1.gpu1")]) == [None] * 2  # within nodes
