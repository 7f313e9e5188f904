"""Collectives on machines: the text's numbers, rings over NVLinks, flows and their derivations."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim import api
from hwsim.api import Run
from hwsim.communication import ALGORITHMS, CannotCollect, Flows, Operation, Overheads, Task, find_rings
from hwsim.communication.algorithms.in_network import InNetwork
from hwsim.communication.algorithms.parameter_server import ParameterServer
from hwsim.communication.algorithms.ring import RingAlgorithm
from hwsim.communication.placement import has_in_network_reduction, place
from hwsim.communication.selection import RINGS
from hwsim.machine import Machine, build
from hwsim.machine.topologies.direct import CUBE_MESH
from hwsim.spec import Mistakes, find, names, read, read_text
from hwsim.units import parse

MB = 1e6


def library(name: str) -> Machine:
    return made(read(find("machine", name)))


def made(tree: object) -> Machine:
    mistakes = Mistakes()
    found = build(tree if not isinstance(tree, str) else read_text(tree), mistakes)  # type: ignore[arg-type]
    mistakes.raise_if_any()
    assert found is not None
    return found


PCIE, NVLINK = library("d2l-4gpu-pcie"), library("d2l-8gpu-nvlink")
SWITCHED = """
hwsim: machine/1
class: ideal
parts:
  gpu: {{kind: gpu, count: {gpus}, flop: {{fp32: 1 TFLOP/s}}, memory: {{size: 1 GB, bandwidth: 10 TB/s}}}}
  sw: {{kind: switch, reduces: true}}
links: [{{between: [gpu*, sw], kind: direct, bandwidth: {rate} GB/s, latency: {latency} us}}]
"""
CLUSTER = """
hwsim: machine/1
class: ideal
parts:
  node:
    kind: machine
    count: 4
    parts:
      gpu: {kind: gpu, count: 4, flop: {fp32: 1 TFLOP/s}, memory: {size: 1 GB, bandwidth: 10 TB/s}}
      sw: {kind: switch}
      out: {kind: switch}
    links:
      - {between: [gpu*, sw], kind: nvlink, bandwidth: 100 GB/s}
      - {between: [gpu*, out], kind: direct, bandwidth: 10 GB/s}
  fabric: {kind: switch}
links: [{between: [node*.out, fabric], kind: direct, bandwidth: 40 GB/s}]
"""


def switched(gpus: int, rate: float = 10.0, latency: float = 0.0) -> Machine:
    return made(SWITCHED.format(gpus=gpus, rate=rate, latency=latency))


def alone(machine: Machine, name: str, size: float, operation: Operation = "all-reduce", **options: object) -> float:
    flows = Task(machine, operation, machine.select("gpu*"), size).flows(ALGORITHMS[name], **options)  # type: ignore[arg-type]
    return flows.alone(machine.rates())


# ---- the text


def test_the_hybrid_cube_mesh_has_the_two_rings_of_the_text() -> None:
    double, single = find_rings(8, {(a, b): count for a, b, count in CUBE_MESH})
    assert (double.width, single.width) == (2, 1)
    assert used([double, single]) == {(a, b): count for a, b, count in CUBE_MESH}


def used(rings: object) -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    for ring in rings:  # type: ignore[attr-defined]
        for a, b in zip(ring.order, (*ring.order[1:], ring.order[0]), strict=True):
            pair = (min(a, b), max(a, b))
            found[pair] = found.get(pair, 0) + ring.width
    return found


@given(vertices=st.integers(2, 8), data=st.data())
@settings(max_examples=40, deadline=None)
def test_rings_use_no_link_twice_and_visit_everyone_once(vertices: int, data: st.DataObject) -> None:
    pairs = list(itertools.combinations(range(vertices), 2))
    edges = {pair: data.draw(st.integers(0, 3)) for pair in pairs}
    rings = find_rings(vertices, edges, steps=5000)
    assert rings == find_rings(vertices, dict(reversed(list(edges.items()))), steps=5000)
    for ring in rings:
        assert sorted(ring.order) == list(range(vertices))
        assert ring.width > 0
    if vertices > 2:
        assert all(count <= edges.get(pair, 0) for pair, count in used(rings).items())
        degrees = [sum(count for pair, count in edges.items() if vertex in pair) for vertex in range(vertices)]
        assert sum(ring.width for ring in rings) <= min(degrees) // 2


@pytest.mark.parametrize(("vertices", "rings"), [(3, 1), (5, 2), (8, 3), (12, 5)])
def test_a_full_mesh_is_as_many_rings_as_there_can_be(vertices: int, rings: int) -> None:
    mesh = dict.fromkeys(itertools.combinations(range(vertices), 2), 1)
    assert len(find_rings(vertices, mesh)) == rings


def test_sixteen_gpus_are_searched_in_bounded_time() -> None:
    assert find_rings(16, dict.fromkeys(itertools.combinations(range(16), 2), 1))


# ---- flows


def test_rings_through_meshed_nodes_use_every_link_once() -> None:
    """Eight GPUs linked each to each, an even number of nodes or an odd one: no link carries two rings one way."""
    for nodes in (2, 3):
        parts = f"{{node: {{kind: machine, use: mi300x-8, count: {nodes}}}, sw: {{kind: switch}}}}"
        link = "{between: [node*.nic*, sw], kind: infiniband, rate: 400 Gb/s}"
        machine = made(f"hwsim: machine/1\nclass: ideal\nparts: {parts}\nlinks: [{link}]\n")
        gpus = machine.select("node*.gpu*")
        ring = place(machine, RINGS, gpus).algorithm
        assert isinstance(ring, RingAlgorithm)
        used = Counter((a, b) for order in ring.orders for a, b in pairwise((*order, order[0])) if a // 8 == b // 8)
        assert set(used.values()) == {1}
        assert len(used) == nodes * 8 * 7
        between = Counter(a for order in ring.orders for a, b in pairwise((*order, order[0])) if a // 8 != b // 8)
        assert set(between.values()) == {1}
        assert len(between) == nodes * 8


def test_rings_through_nodes_use_every_card() -> None:
    machine = made(CLUSTER)
    flat = alone(machine, "ring", 160 * MB)
    rings = alone(machine, "rings", 160 * MB)
    assert flat == pytest.approx(2 * 15 / 16 * 160 * MB / 10e9)
    assert rings == pytest.approx(2 * 15 / 16 * 160 * MB / 40e9)


def test_a_hierarchy_sends_less_between_nodes_and_overlaps_in_pieces() -> None:
    machine = made(CLUSTER)
    inside, across = 2 * 3 / 4 * 160 * MB / 100e9, 2 * 3 / 4 * 40 * MB / 10e9
    assert alone(machine, "hierarchical", 160 * MB) == pytest.approx(inside + across)
    assert alone(machine, "hierarchical-pipelined", 160 * MB) == pytest.approx((inside + 8 * across) / 8)


@pytest.mark.parametrize("name", ["hierarchical", "hierarchical-pipelined"])
def test_nodes_of_unequal_size_add_up_their_bytes(name: str) -> None:
    machine = made(CLUSTER)
    some = [*machine.select("node0.gpu*"), *machine.select("node1.gpu0..1")]
    flows = Task(machine, "all-reduce", some, 160 * MB).flows(ALGORITHMS[name])
    across = sum(amount for phase in flows.phases for name, amount in phase.cost.demand.amounts if "fabric->node1" in name)
    assert across == pytest.approx(160 * MB)
    check(machine, flows)


def test_pieces_cost_their_latency_where_the_slowest_stage_waits() -> None:
    machine = made(CLUSTER)
    one, eight = (
        alone(machine, name, 16.0, overheads=Overheads(step=1e-6)) for name in ("hierarchical", "hierarchical-pipelined")
    )
    assert eight == pytest.approx(one + 7 * 6e-6, rel=1e-3)


def test_a_switch_that_adds_halves_the_bytes() -> None:
    machine = switched(8)
    assert alone(machine, "sharp", 160 * MB) == pytest.approx(160 * MB / 10e9)
    assert alone(machine, "nvls", 160 * MB) == pytest.approx(160 * MB * 9 / 8 / 10e9)


def test_only_a_switch_that_says_so_adds() -> None:
    plain = made(SWITCHED.replace(", reduces: true", "").format(gpus=4, rate=10.0, latency=0.0))
    for name in ("sharp", "nvls"):
        with pytest.raises(CannotCollect, match="switch 'sw' does not support in-network reduction"):
            alone(plain, name, 160 * MB)
    across = made(CLUSTER.replace("fabric: {kind: switch}", "fabric: {kind: switch, reduces: true}"))
    assert alone(across, "sharp", 160 * MB) > 0


@pytest.mark.parametrize("use", sorted(names("switch")))
def test_nothing_adds_for_a_pcie_or_ethernet_switch_of_the_library(use: str) -> None:
    """NVLink SHARP came with Hopper's NVSwitch, SHARP with InfiniBand's Switch-IB 2."""
    machine = made(
        f"hwsim: machine/1\nclass: ideal\nparts: {{cpu: {{kind: cpu, use: xeon-6248}}, sw: {{kind: switch, use: {use}}}}}\n"
    )
    adding = {"nvswitch-b200", "nvswitch-h100", "nvswitch-nvl72", "quantum-2-ndr", "quantum-hdr", "quantum-x800", "sb7800-edr"}
    assert has_in_network_reduction(machine, "sw") == (use in adding)


def test_overheads_come_on_top() -> None:
    machine = switched(4, latency=1.0)
    plain = alone(machine, "ring", 4e6)
    assert alone(machine, "ring", 4e6, overheads=Overheads(start=5e-6, step=1e-6)) == pytest.approx(plain + 5e-6 + 6e-6)
    half = Overheads(efficiency=0.5)
    assert alone(machine, "ring", 4e6, overheads=half) - 12e-6 == pytest.approx(2 * (plain - 12e-6))
    h = 1e6
    knee = (4e6 + h * (1 - math.exp(-4e6 / h))) / 4e6
    assert alone(machine, "ring", 4e6, overheads=Overheads(knee=h)) - 12e-6 == pytest.approx(knee * (plain - 12e-6))


def test_steps_between_nodes_cost_their_own_overhead() -> None:
    machine = made(CLUSTER)
    free = alone(machine, "hierarchical", 16.0)
    assert alone(machine, "hierarchical", 16.0, overheads=Overheads(step=1e-6, hop=9e-6)) == pytest.approx(free + 6e-6 + 54e-6)


@pytest.mark.parametrize(
    "name", [name for name in ALGORITHMS if "all-reduce" in ALGORITHMS[name].operations and name != "ps-cpu"]
)
@pytest.mark.parametrize("weights", [(), (1.0, 2.0, 1.0, 0.5)], ids=["even", "uneven"])
def test_every_derivation_comes_to_the_time(name: str, weights: tuple[float, ...]) -> None:
    machine = switched(4, latency=0.5)
    overheads = Overheads(start=3e-6, step=1e-6, knee=1e5, efficiency=0.9)
    flows = Task(machine, "all-reduce", machine.select("gpu*"), 4e6, weights).flows(ALGORITHMS[name], overheads)
    check(machine, flows)


def check(machine: Machine, flows: Flows) -> None:
    """What the engine and the explanations rely on."""
    rates = machine.rates()
    for phase in flows.phases:
        demand, why = phase.cost.demand, phase.cost.why
        assert [name for name, _ in demand.amounts] == sorted({name for name, _ in demand.amounts})
        assert all(amount > 0 and name in rates for name, amount in demand.amounts)
        assert {name for name, _, _ in phase.cost.moved} <= {name for name, _ in demand.amounts}
        latency = sum(term.seconds for term in why if term.kind == "latency")
        body = max((term.seconds for term in why if term.kind != "latency"), default=0.0)
        assert latency == pytest.approx(demand.latency)
        assert latency + body == pytest.approx(demand.alone(rates), rel=1e-9)
        for term in why:
            assert value(term.formula, term.inputs) == pytest.approx(term.seconds, rel=1e-4)


def value(formula: str, inputs: Sequence[tuple[str, str, object]]) -> float:
    names = {name: parse(said).value for name, said, _ in inputs}
    return float(eval(formula.replace(" x ", " * "), {"__builtins__": {}}, names))


@pytest.mark.parametrize("name", ["ring", "rings", "nvls", "direct", "hierarchical"])
def test_one_rank_has_nothing_to_do(name: str) -> None:
    machine = switched(1)
    assert alone(machine, name, 1e6) == 0.0


def test_what_cannot_be_is_said() -> None:
    machine = switched(4)
    gpus = machine.select("gpu*")
    with pytest.raises(CannotCollect, match="does not support all-to-all"):
        Task(machine, "all-to-all", gpus, 1.0).flows(RingAlgorithm())
    with pytest.raises(CannotCollect, match="duplicate device"):
        Task(machine, "all-reduce", ("gpu0", "gpu0"), 1.0).flows(RingAlgorithm())
    with pytest.raises(CannotCollect, match="lists a worker"):
        Task(machine, "all-reduce", gpus, 1.0).flows(ParameterServer(on="beside", at=("gpu0",)))
    with pytest.raises(CannotCollect, match="no switch"):
        Task(NVLINK, "all-reduce", ("gpu0", "gpu1"), 1.0).flows(InNetwork())


def all_reduced(ranks: int, size: str) -> Run:
    among = list(api.load_machine("gb200-nvl72").devices_of("gpu"))[:ranks]
    return api.simulate("gb200-nvl72", {"hwsim": "workload/1", "program": [{"allreduce": {"among": among, "bytes": size}}]})


@pytest.mark.parametrize(("ranks", "method", "case"), [
    (4, "ring, ll", "known"), (16, "ring, ll", "generation"), (33, "nvls, simple", "outside"), (72, "nvls, simple", "outside"),
])  # fmt: skip
def test_short_sums_of_a_whole_rack_are_done_in_its_switches(ranks: int, method: str, case: str) -> None:
    """NCCL's tables: a ring takes 6.6 + 1.2 (n - 1) us, a sum in the switch 25 us, from 32 GPUs at the most."""
    run = all_reduced(ranks, "8 kB")
    said = run.to_json()["collectives"]
    assert said[0]["algorithm"] == method
    assert run.interval.case == case
    assert run.makespan_s < 1e-4


def test_a_sum_of_more_gpus_takes_longer() -> None:
    for size in ("8 kB", "256 MB"):
        times = [all_reduced(ranks, size).makespan_s for ranks in (32, 33, 72)]
        assert times == sorted(times)


def test_a_way_may_wait_longest_for_a_switch_that_limits_nothing() -> None:
    """A full crossbar has no capacity of its own, and its latency is named by its name."""
    memory = {"size": "64 GiB", "bandwidth": "1 TB/s"}
    gpu = {"kind": "gpu", "flop": {"fp32": "10 TFLOP/s"}, "memory": memory, "count": 4}
    parts = {"gpu": gpu, "sw": {"kind": "switch", "latency": "1 us"}}
    links = [{"name": "w", "between": ["gpu*", "sw"], "kind": "direct", "bandwidth": "1 GB/s"}]
    machine = {"hwsim": "machine/1", "class": "ideal", "parts": parts, "links": links}
    run = api.simulate(machine, {"hwsim": "workload/1", "program": [{"allreduce": {"among": "gpu*", "bytes": "1 GB"}}]})
    assert run.timeline.makespan == pytest.approx(1.5 + 6e-6)
