"""Whatever lies between two computers, a GPU's traffic leaves by its own cards and enters by those of the other GPU."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import pytest

from hwsim import api as hwsim
from hwsim.communication import timing
from hwsim.devices import Nic
from hwsim.machine import TOPOLOGIES, Link, Machine

FABRICS = {  # name of the case -> what stands in a `links:` entry
    "fat-tree, one leaf a rail": "topology: fat-tree, leaf_ports: 4, rails: 4",
    "fat-tree, two leaves a rail": "topology: fat-tree, leaf_ports: 2, rails: 4",
    "fat-tree, fewer rails than cards": "topology: fat-tree, leaf_ports: 4, rails: 2",
    "fat-tree, pods": "topology: fat-tree, leaf_ports: 1, rails: 4, pod: 2",
    "leaf-spine": "topology: leaf-spine, leaf_ports: 4, spines: 2",
    "leaf-spine, ecmp": "topology: leaf-spine, leaf_ports: 4, spines: 2, routing: ecmp",
    "leaf-spine, adaptive": "topology: leaf-spine, leaf_ports: 4, spines: 2, routing: adaptive",
    "dragonfly": "topology: dragonfly, leaf_ports: 4, routers: 2, global_ports: 1",
    "tree": "topology: tree, root: root, fan_out: [4, 4]",
    "star": "topology: star, hub: root",
    "torus": "topology: torus, size: [4, 4]",
    "ring": "topology: ring",
    "line": "topology: line",
    "fully-connected": "topology: fully-connected",
}
HELD_ELSEWHERE = {"hybrid-cube-mesh"}  # of the GPUs of one computer
ONE_WAY = {"leaf-spine, ecmp", "torus", "ring", "fully-connected"}  # the way back may be another of equally good ones


def cluster(fabric: str, gpus: int = 4, cards: int = 4, nodes: int = 4) -> Machine:
    """Nodes of GPUs and cards, two PCIe switches under a CPU."""
    cpu = "{kind: cpu, cores: 8, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 100 GB/s}}"
    parts = f"cpu: {cpu}, s: {{kind: switch, count: 2}}, gpu: {{kind: gpu, use: a100-sxm-40gb, count: {gpus}}}, "
    parts += f"nic: {{kind: nic, bandwidth: 200 Gb/s, ports: 64, count: {cards}}}, "
    half = "[{name: up, between: [cpu, s*], kind: pcie, gen: 4, lanes: 16}, "
    half += f"{{name: slot, between: [s*, gpu*], per: {gpus // 2}, kind: pcie, gen: 4, lanes: 16}}, "
    half += f"{{name: card, between: [s*, nic*], per: {cards // 2}, kind: pcie, gen: 4, lanes: 16}}]"
    node = f"node: {{kind: machine, count: {nodes}, parts: {{{parts}}}, links: {half}}}"
    link = f"{{name: fabric, of: node*.nic*, kind: infiniband, rate: 200 Gb/s, {fabric}}}"
    root = ", root: {kind: switch}" if "root" in fabric else ""
    return hwsim.load_machine(f"hwsim: machine/1\nclass: ideal\nparts: {{{node}{root}}}\nlinks: [{link}]\n")


def cards_passed(machine: Machine, a: str, b: str) -> tuple[set[str], set[str]]:
    """Cards over which the bytes leave the computer of the one, and enter that of the other."""
    way = machine._routes.route(a, b)
    links = [link for link, _ in way.shares] or list(way.links)
    inside = [link for link in links if not link.model.network]
    return ({link.target for link in inside if is_card(machine, link.target)},
            {link.source for link in inside if is_card(machine, link.source)})  # fmt: skip


def is_card(machine: Machine, name: str) -> bool:
    return isinstance(machine.device(name).model, Nic)


def own(machine: Machine, name: str) -> set[str]:
    cards = machine._routes._cards
    return set(cards.own(name))


def pairs(machine: Machine) -> list[tuple[str, str]]:
    gpus = machine.devices_of("gpu")
    return [(a, b) for a, b in permutations(gpus, 2) if machine.node_of(a) != machine.node_of(b)]


def stops(links: tuple[Link, ...]) -> list[str]:
    return [links[0].source, *(link.target for link in links)]


def violations(machine: Machine) -> list[tuple[str, str]]:
    return [(a, b) for a, b in pairs(machine) if cards_passed(machine, a, b) != (own(machine, a), own(machine, b))]


def test_every_generator_is_held_to_the_law() -> None:
    assert {fabric.split("topology: ")[1].split(",")[0] for fabric in FABRICS.values()} | HELD_ELSEWHERE == set(TOPOLOGIES)


@pytest.mark.parametrize("fabric", FABRICS)
def test_traffic_passes_the_cards_of_its_ends_whatever_lies_between(fabric: str) -> None:
    assert violations(cluster(FABRICS[fabric])) == []


@pytest.mark.parametrize("fabric", ["fat-tree, two leaves a rail", "leaf-spine", "star", "torus"])
@pytest.mark.parametrize(("gpus", "cards"), [(2, 4), (4, 2)])
def test_so_it_does_over_several_cards_each_and_over_shared_ones(fabric: str, gpus: int, cards: int) -> None:
    said = FABRICS[fabric].replace("size: [4, 4]", f"size: [2, {2 * cards}]")
    found = cluster(said, gpus, cards)
    wrong = violations(found)
    assert all(cards_passed(found, a, b)[0] <= own(found, a) and cards_passed(found, a, b)[1] <= own(found, b) for a, b in wrong)
    if fabric != "torus":  # the ways over some cards are longer there
        assert wrong == []


@pytest.mark.parametrize("fabric", sorted(set(FABRICS) - ONE_WAY))
def test_the_way_back_is_the_way_there(fabric: str) -> None:
    machine = cluster(FABRICS[fabric])
    assert all(stops(machine.route(a, b)) == stops(machine.route(b, a))[::-1] for a, b in pairs(machine))


@pytest.mark.parametrize("fabric", sorted(set(FABRICS) - {"line"}))  # its ends have one neighbour
def test_a_collective_draws_as_much_of_every_card(fabric: str) -> None:
    machine = cluster(FABRICS[fabric])
    load: Counter[str] = Counter()
    for index in range(4):  # as copies of a training that is split over the GPUs of each node
        group = [f"node{node}.gpu{index}" for node in range(4)]
        for phase in timing.timed(machine, None, "all-reduce", group, 1e9).phases:
            for name, amount, _ in phase.cost.moved:
                load[name] += amount  # type: ignore[assignment]
    passed = [amount for name, amount in load.items() if name.endswith((".tx", ".rx"))]
    assert len(passed) == 2 * 16
    assert max(passed) == pytest.approx(min(passed))


def test_over_two_leaves_a_pod_reduces_as_fast_as_at_one() -> None:
    seconds = []
    for leaf in (4, 2):
        machine = hwsim.load_machine(
            f"hwsim: machine/1\nclass: ideal\nuse: scale/dgx-a100-pod\nlet: {{nodes: 4, per_leaf: {leaf}}}\n"
        )
        assert violations(machine) == []
        flows = timing.timed(machine, None, "all-reduce", [f"node{node}.gpu1" for node in range(4)], 1e9)
        seconds.append(flows.alone(machine.rates()))
    assert seconds[1] == pytest.approx(seconds[0], rel=1e-3)


def test_machines_of_the_library_with_cards_keep_to_them() -> None:
    assert violations(hwsim.load_machine("scale/rail-fat-tree")) == []


@pytest.mark.parametrize("node", ["dgx-a100", "dgx-h100", "p3dn.24xlarge", "p4d.24xlarge", "p5.48xlarge"])
def test_nodes_of_the_library_keep_to_their_cards_on_two_leaves(node: str) -> None:
    link = "{name: fabric, of: node*.nic*, kind: infiniband, rate: 100 Gb/s, topology: leaf-spine, leaf_ports: 4, spines: 1}"
    machine = hwsim.load_machine(
        f"hwsim: machine/1\nclass: ideal\nparts: {{node: {{kind: machine, use: {node}, count: 2}}}}\nlinks: [{link}]\n"
    )
    assert violations(machine) == []
