"""Two demands on one full link get what the rule says, whatever else either of them draws elsewhere."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import hwsim
from hwsim.communication import ALGORITHMS, Task
from hwsim.communication.link_flows import flows_of, link_kinds
from hwsim.demand import Cost
from hwsim.machine import Machine
from hwsim.prepare import loads

NODES = """
hwsim: machine/1
class: ideal
parts:
  node:
    kind: machine
    count: {nodes}
    parts:
      gpu: {{kind: gpu, count: 4, flop: {{fp32: 1 TFLOP/s}}, memory: {{bandwidth: 100 TB/s}}}}
      nvs: {{kind: switch}}
      out: {{kind: switch}}
    links:
      - {{name: near, between: [gpu*, nvs], kind: nvlink, bandwidth: {near} GB/s}}
      - {{name: slots, between: [gpu*, out], kind: direct, bandwidth: {near} GB/s}}
  core: {{kind: switch}}
links: [{{name: cards, between: [node*.out, core], kind: ethernet, rate: 80 Gb/s}}]
"""
# Seconds that 100 MB of each rank keep one direction of the link of a node of 10 GB/s busy, in both phases where there are two:
# S times 2 (n - 1)/n; S once each way; S in each of two trees and ways; a part from each to each; from each to the first.
BUSY = {"ring": 17.5e-3, "hierarchical-pipelined": 10e-3, "double-tree": 20e-3, "direct": 40e-3}
ACROSS, INSIDE = ("node0.gpu3", "node1.gpu3"), ("node0.gpu2", "node0.gpu3")


def summed(near: float, algorithm: str, way: tuple[str, str], copied: float) -> float:
    """When an all-reduce of 100 MB ends that starts with a copy."""
    program: list[dict[str, Any]] = [
        {"allreduce": {"name": "sum", "among": "gpu*", "bytes": "100 MB", "algorithm": algorithm, "queue": "one"}},
        {"copy": {"from": way[0], "to": way[1], "bytes": f"{copied} B", "queue": "two"}},
    ]
    run = hwsim.simulate(NODES.format(near=near, nodes=2), {"hwsim": "workload/1", "program": program})
    return max(row.end_s for row in run.ops if row.name.startswith("sum"))


@pytest.mark.parametrize(("algorithm", "near"), list(product(BUSY, (80, 4000))))
def test_beside_a_copy_a_collective_has_half_of_the_link_between_nodes_however_fast_the_others_are(
    algorithm: str, near: float
) -> None:
    assert summed(near, algorithm, ACROSS, 10e9) == pytest.approx(2 * BUSY[algorithm], rel=0.02)


def test_where_the_links_in_a_node_bind_it_alone_it_still_has_half_of_the_other() -> None:
    """150 MB at 10 GB/s in a node, 100 MB at 10 GB/s between nodes: alone 15 ms and an eighth of 10 ms to fill the pipeline."""
    alone, across, inside = (
        summed(10, "hierarchical-pipelined", way, copied) for way, copied in ((ACROSS, 1.0), (ACROSS, 10e9), (INSIDE, 10e9))
    )
    assert alone == pytest.approx(16.25e-3, rel=0.01)
    assert across == pytest.approx(20e-3, rel=0.01)
    assert inside == pytest.approx(30e-3, rel=0.01)


def test_a_ring_as_a_flow_and_message_by_message_share_a_link_alike() -> None:
    """The messages of a ring cross a link one at a time, so both are one flow there."""
    program: list[dict[str, Any]] = [
        {"allreduce": {"name": "sum", "among": "gpu*", "bytes": "100 MB", "algorithm": "ring", "steps": "explicit"}},
        {"copy": {"from": ACROSS[0], "to": ACROSS[1], "bytes": "10 GB", "queue": "two"}},
    ]
    run = hwsim.simulate(NODES.format(near=4000, nodes=2), {"hwsim": "workload/1", "program": program})
    assert max(row.end_s for row in run.ops if row.name.startswith("sum")) == pytest.approx(2 * BUSY["ring"], rel=0.02)


def test_flows_together_draw_what_the_phase_draws_named_or_in_columns() -> None:
    machine = loads(NODES.format(near=100, nodes=128))
    assert isinstance(machine, Machine)
    gpus = machine.devices_of("gpu")
    found = []
    for columns in (False, True):
        (phase,) = Task(machine, "all-reduce", gpus, 1e9, columns=columns).flows(ALGORITHMS["hierarchical-pipelined"]).phases
        assert (phase.cost.wide is not None) is columns
        flows = flows_of(machine, phase.cost, link_kinds(machine))
        assert [flow.over for flow in flows] == ["", "nvlink", "direct"]
        assert sorted(draw for flow in flows for draw in _draws(flow.cost)) == _draws(phase.cost)
        alone = phase.cost.in_full().demand.alone(machine.rates())
        assert [flow.cost.in_full().demand.alone(machine.rates()) for flow in flows] == [alone] * 3
        found.append([flow.cost.demand.share for flow in flows])
    assert found[0] == pytest.approx(found[1], rel=1e-12)


def _draws(cost: Cost) -> list[tuple[str, float]]:
    return sorted(cost.in_full().demand.amounts)
