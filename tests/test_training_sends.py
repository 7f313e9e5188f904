"""Sends of a training, timed once for all pairs over equal routes, are what each is by itself."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.communication.timing import timed
from hwsim.machine import Machine
from hwsim.models.sends import Sends
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
    sends = Sends(built)
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
