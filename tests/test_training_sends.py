"""Sends and exchanges of a training, costed once for those that are alike but for names, are what each is by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.communication.equivalence import RingLook, RingLooks
from hwsim.communication.timing import timed
from hwsim.machine import Machine
from hwsim.machine.libraries.nccl import RINGS
from hwsim.models.exchanges import CollectiveCosts
from hwsim.models.sends import SendCosts
from hwsim.prepare import load_machine

MIXED: Mapping[str, object] = {
    "hwsim": "machine/1",
    "parts": {"hub": {"kind": "switch", "use": "quantum-hdr"}}
    | {
        name: {
            "kind": "machine",
            "count": count,
            "parts": {
                "gpu": {"kind": "gpu", "use": gpu, "count": 2},
                "sw": {"kind": "switch", "use": "pex88096"},
                "nic": {"kind": "nic", "use": nic},
            },
            "links": [
                {"between": ["gpu*", "sw"], "kind": "pcie", "use": "pcie4-x16"},
                {"between": ["nic", "sw"], "kind": "pcie", "use": "pcie4-x16"},
            ],
        }
        for name, count, gpu, nic in (
            ("fast", 2, "a100-sxm-40gb", "connectx-6-hdr200"),
            ("slow", 2, "v100-sxm2-16gb", "connectx-6-hdr200"),
        )
    },
    "links": [{"topology": "star", "hub": "hub", "of": ["fast*.nic", "slow*.nic"], "kind": "infiniband", "use": "hdr200"}],
}


@cache
def machine(name: str) -> Machine:
    return load_machine(dict(MIXED) if name == "mixed" else name)


@pytest.mark.parametrize("name", ["dgx-a100", "gb200-nvl72", "mixed", "scale/rail-fat-tree"])
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_each_send_draws_and_takes_what_it_does_by_itself(name: str, data: st.DataObject) -> None:
    built = machine(name)
    gpus = st.sampled_from(built.devices_of("gpu"))
    pair = st.tuples(gpus, gpus).filter(lambda ends: ends[0] != ends[1])
    sends = SendCosts(built)
    for pairs in data.draw(st.lists(st.lists(pair, min_size=1, max_size=6), min_size=1, max_size=3)):
        for size in data.draw(st.lists(st.sampled_from([0.0, 1e3, 25e6]), min_size=1, max_size=2)):
            for ends, costs in zip(pairs, sends.of(pairs, size), strict=True):
                alone = [phase.cost for phase in timed(built, None, "send", ends, size).phases]
                assert len(costs) == len(alone)
                for cost, one in zip(costs, alone, strict=True):
                    mine, theirs = cost.demand, one.demand
                    assert (mine.latency, mine.floor, mine.share, mine.amounts) == (
                        theirs.latency,
                        theirs.floor,
                        theirs.share,
                        theirs.amounts,
                    )
                    assert (cost.moved, cost.choice, cost.exchange, cost.why) == (one.moved, one.choice, one.exchange, one.why)


def rails(nodes: int) -> Machine:
    return load_machine({"hwsim": "machine/1", "use": "scale/rail-fat-tree", "let": {"nodes": nodes, "per_leaf": 4}})


def by_rail(nodes: list[int]) -> list[tuple[str, ...]]:
    """A group for each of two rails through these nodes, and one that changes rails."""
    straight = [tuple([f"node{node}.gpu{gpu}" for node in nodes]) for gpu in range(2)]
    return [*straight, tuple([f"node{node}.gpu{2 + index % 2}" for index, node in enumerate(nodes)])]


def like_first(machine: Machine, groups: Sequence[tuple[str, ...]]) -> list[bool]:
    """By group whether it is the same as the first one but for names."""
    first, *others = RingLooks(machine).of(groups)
    return [isinstance(other, RingLook) and first is not None and other.key == first.key for other in others]


ONE_A_NODE = [[0, 1], [0, 1, 2, 5, 6], list(range(40))]


@pytest.mark.parametrize("nodes", ONE_A_NODE)
@pytest.mark.parametrize("operation", RINGS)
def test_costed_once_is_costed_one_by_one(nodes: list[int], operation: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, groups = rails(40), by_rail(nodes)
    assert like_first(machine, groups)[0]
    together = CollectiveCosts(machine).cost(groups, operation, 3e8)
    monkeypatch.setattr(RingLooks, "of", lambda _, groups: [None] * len(groups))
    assert CollectiveCosts(machine).cost(groups, operation, 3e8) == together


ALIKE = {
    "one of each node": ("node{}.gpu2", range(4), range(8, 12)),
    "two of each node": ("node{}.gpu0..1", range(3), range(4, 7)),
    "all of each node": ("node{}.gpu*", range(2), range(6, 8)),
    "all of one node": ("node{}.gpu*", [0], [9]),
}


@pytest.mark.parametrize(("pattern", "first", "second"), ALIKE.values(), ids=ALIKE)
@pytest.mark.parametrize("operation", RINGS)
def test_one_elsewhere_is_what_it_is_by_itself(pattern: str, first: Any, second: Any, operation: Any) -> None:
    """Groups on other nodes: their names, their derivation too, as if nothing had been timed before."""
    machine = rails(40)
    ones, others = (tuple([name for node in some for name in machine.select(pattern.format(node))]) for some in (first, second))
    assert like_first(machine, [ones, others]) == [True]
    exchanging = CollectiveCosts(machine)
    exchanging.cost([ones], operation, 3e8)
    found, alone = exchanging.cost([others], operation, 3e8), CollectiveCosts(machine).cost([others], operation, 3e8)
    assert found == alone
    assert found.why == alone.why
    assert found != exchanging.cost([ones], operation, 3e8)


def test_what_differs_is_costed_by_itself() -> None:
    machine = rails(40)
    groups = by_rail([0, 1, 2, 5, 6])
    assert like_first(machine, groups) == [True, False]
    rail, other, _ = RingLooks(machine).of(groups)
    assert other is not None
    here, there = (np.array([machine.capacity_number(f"node5.gpu{gpu}.memory")]) for gpu in range(2))
    assert rail.to(other, here) == there
    assert rail.to(other, there) is None  # not on its ring
    mixed = load_machine(MIXED)
    unlike = [("fast0.gpu0", "fast1.gpu0"), ("slow0.gpu0", "slow1.gpu0"), ("fast0.gpu1", "slow1.gpu1")]
    assert like_first(mixed, unlike) == [False] * 2
    assert like_first(mixed, [("fast0.gpu0", "fast0.gpu1"), ("slow0.gpu0", "slow0.gpu1")]) == [False]
    assert RingLooks(machine).of([("node0.gpu0", "node1.gpu0", "node0.gpu1")]) == [None]  # nodes in turns
