"""Spare time: an op that ends later by it delays nothing, and by a femtosecond more delays the end by that femtosecond."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

import hwsim
from hwsim.graph.opgraph import Queue
from hwsim.results import slack as slack_module
from hwsim.results.critical import critical_path
from hwsim.results.slack import slack
from hwsim.results.timeline import Timeline
from hwsim.views.explain.say import text
from tests.engine_graphs import graph_of, play_open
from tests.strategies import make_block

PROGRAM = """
hwsim: workload/1
program:
  - busy: {name: a, device: gpu, time: 5 ms, writes: x}
  - copy: {name: back, from: gpu, to: cpu, bytes: 32 MB, reads: x}
  - busy: {name: b, device: gpu, time: 30 ms}
  - wait: all
"""
MACHINE = """
hwsim: machine/1
class: ideal
parts:
  cpu: {kind: cpu, use: d2l-server-cpu}
  gpu: {kind: gpu, use: d2l-gpu}
links:
  - {name: slot, between: [cpu, gpu], kind: direct, bandwidth: 16 GB/s, latency: 0 s}
"""


def played(times: list[int], queues: list[int], edges: list[tuple[int, int]]) -> Timeline:
    """A run of ops that share nothing."""
    body = make_block([-1] * len(times), time=times, queue=queues, edges=[[a, b, 0] for a, b in edges])
    return play_open(graph_of(body, queues=[Queue("one", "gpu0"), Queue("two", "gpu0")]))


@pytest.mark.parametrize("seed", range(8))
def test_a_delay_by_the_spare_time_delays_nothing_and_more_delays_the_end(seed: int) -> None:
    dice = random.Random(seed)
    many = 25
    times = [dice.choice([0, 1, dice.randrange(10**12)]) for _ in range(many)]
    queues = [dice.choice([-1, 0, 1]) for _ in range(many)]
    edges = [(a, b) for b in range(1, many) for a in range(b) if dice.random() < 0.08]
    run = played(times, queues, edges)
    spare = slack(run)
    assert spare is not None
    assert spare.min() == 0
    assert (spare[critical_path(run).op] == 0).all()
    for op in range(many):
        for more in (0, 1):
            late = [time + (int(spare[op]) + more if number == op else 0) for number, time in enumerate(times)]
            assert played(late, queues, edges).makespan_fs == run.makespan_fs + more


def test_explain_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = hwsim.explain(MACHINE, PROGRAM, op="back")
    assert "spare: it could end 27.99 ms later" in text(found, op=True)
    assert found.to_json()["derivations"][0]["slack_s"] == {
        "ops": 1,
        "min": pytest.approx(0.027995),
        "max": pytest.approx(0.027995),
    }
    assert "spare:" not in text(hwsim.explain(MACHINE, PROGRAM, op="b"), op=True)
    monkeypatch.setattr(slack_module, "LARGEST", 2)
    assert hwsim.explain(MACHINE, PROGRAM, op="back").to_json()["derivations"][0]["slack_s"] is None


def test_ops_that_never_ended_are_named_beside_those_that_did() -> None:
    run = played([5, 7, 5], [-1] * 3, [(0, 2), (1, 2)])
    assert run.unfinished() == []
    assert replace(run, end=np.array([5, -1, -1])).unfinished() == [1, 2]
