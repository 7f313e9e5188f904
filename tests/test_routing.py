"""Routing: which of equally good ways, one by a hash or all of them; every pair still reaches every other."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim import api as hwsim
from hwsim.machine import Machine

CPU = "{kind: cpu, cores: 4, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 1 TB/s}}"
NODE = f"{{kind: machine, count: %d, parts: {{cpu: {CPU}, nic: {{kind: nic, bandwidth: 100 Gb/s}}}}, "
NODE += "links: [{between: [cpu, nic], kind: direct, bandwidth: 64 GB/s}]}"


def cluster(nodes: int, routing: str, topology: str = "topology: leaf-spine, leaf_ports: 4, spines: 4") -> Machine:
    link = f"{{name: fabric, of: node*.nic, kind: infiniband, rate: 100 Gb/s, {topology}{routing and ', routing: ' + routing}}}"
    return hwsim.load_machine(f"hwsim: machine/1\nclass: ideal\nparts: {{node: {NODE % nodes}}}\nlinks: [{link}]\n")


def graph(links: list[str], switches: int, routing: str) -> Machine:
    said = [link.replace("}", f", routing: {routing}}}") for link in links]
    return hwsim.load_machine(
        f"hwsim: machine/1\nclass: ideal\nparts: {{s: {{kind: switch, count: {switches}, latency: 1 us}}}}\n"
        f"links: [{', '.join(said)}]\n"
    )


def spine(machine: Machine, a: int, b: int) -> str:
    return next(link.target for link in machine.route(f"node{a}.cpu", f"node{b}.cpu") if "spine" in link.target)


def alone(machine: Machine, a: str, b: str, size: float = 1e9) -> float:
    return machine.transfer(a, b, size).demand.alone(machine.rates())


def test_single_takes_one_spine_ecmp_all_of_them_each_pair_its_own() -> None:
    far = [(a, b) for a in range(4) for b in range(4, 16)]
    single, ecmp = cluster(16, ""), cluster(16, "ecmp")
    assert {spine(single, a, b) for a, b in far} == {"fabric-spine0"}
    used = Counter(spine(ecmp, a, b) for a, b in far)
    assert len(used) == 4
    assert max(used.values()) < 2 * len(far) / 4
    assert all(spine(ecmp, a, b) == spine(cluster(16, "ecmp"), a, b) for a, b in far[:5])


def test_adaptive_draws_an_equal_part_from_every_way() -> None:
    machine = cluster(8, "adaptive")
    cost = machine.transfer("node0.cpu", "node4.cpu", 1e9)
    drawn = {name: amount for name, amount in cost.demand.amounts if "spine" in name}
    assert len(drawn) == 8
    assert set(drawn.values()) == {0.25e9}
    whole = {name: amount for name, amount in cost.demand.amounts if name.startswith("fabric:node") or name.endswith("node4.nic")}
    assert set(whole.values()) == {1e9}
    assert {name: amount for name, amount, _ in cost.moved if "spine" in name} == drawn


def test_pairs_that_collide_under_ecmp_do_not_under_adaptive() -> None:
    """Four hosts of one leaf send to four of another: with as many spines as hosts there is room for all."""
    slowest = {}
    for routing in ("single", "ecmp", "adaptive"):
        machine = cluster(8, routing)
        load: Counter[str] = Counter()
        for a in range(4):
            for name, amount in machine.transfer(f"node{a}.cpu", f"node{a + 4}.cpu", 1e9).demand.amounts:
                load[name] += amount / machine.capacities[name].rate  # type: ignore[assignment]
        slowest[routing] = max(load.values())
    assert slowest["single"] == pytest.approx(4 * 1e9 / 12.5e9)
    assert slowest["adaptive"] == pytest.approx(1e9 / 12.5e9)
    assert slowest["adaptive"] < slowest["ecmp"] < slowest["single"]


def random_graph(seed: int) -> tuple[list[str], int]:
    rng = random.Random(seed)
    n = rng.randint(2, 8)
    pairs = {(a, b) for a in range(n) for b in range(a + 1, n) if rng.random() < 0.5}
    return [f"{{between: [s{a}, s{b}], kind: direct, bandwidth: {rng.randint(1, 2)} GB/s}}" for a, b in sorted(pairs)], n


@settings(max_examples=15)
@given(st.integers(0, 2**32))
def test_every_pair_is_routed_alike_and_adaptive_is_never_slower_than_ecmp_nor_ecmp_than_single(seed: int) -> None:
    links, n = random_graph(seed)
    if not links:
        return
    machines = {routing: graph(links, n, routing) for routing in ("single", "ecmp", "adaptive")}
    order = random.Random(seed).sample(links, len(links))
    shuffled = {routing: graph(order, n, routing) for routing in machines}
    for a in range(n):
        for b in range(n):
            ends = f"s{a}", f"s{b}"
            if machines["single"]._routes.find(*ends) is None:
                assert all(network._routes.find(*ends) is None for network in machines.values())
                continue
            routes = {routing: network.route(*ends) for routing, network in machines.items()}
            assert len({len(route) for route in routes.values()}) == 1
            for routing, route in routes.items():
                assert all(one.target == two.source for one, two in pairwise(route))
                assert (a == b) or (route[0].source, route[-1].target) == ends
                assert shuffled[routing].transfer(*ends, 1e9) == machines[routing].transfer(*ends, 1e9)
            single, ecmp, adaptive = (alone(machine, *ends) for machine in machines.values())
            assert ecmp == pytest.approx(single)
            assert adaptive <= ecmp * (1 + 1e-12)


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_what_adaptive_sends_in_comes_out_again_at_every_device(seed: int) -> None:
    links, n = random_graph(seed)
    if not links:
        return
    machine = graph(links, n, "adaptive")
    for b in range(1, n):
        if machine._routes.find("s0", f"s{b}") is None:
            continue
        way = machine._routes.route("s0", f"s{b}")
        balance: Counter[str] = Counter()
        for link, part in way.shares or [(link, 1.0) for link in way.links]:
            balance[link.source] -= part  # type: ignore[assignment]
            balance[link.target] += part  # type: ignore[assignment]
        assert {name: round(left, 9) for name, left in balance.items() if abs(left) > 1e-9} == {"s0": -1, f"s{b}": 1}


def test_a_torus_spreads_over_all_shortest_ways() -> None:
    parts = "tpu: {kind: gpu, count: 64, forwards: true, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 1 TB/s}}"
    machine = hwsim.load_machine(
        f"hwsim: machine/1\nclass: ideal\nparts: {{{parts}}}\n"
        "links: [{topology: torus, of: tpu*, size: [8, 8], kind: direct, bandwidth: 10 GB/s, routing: adaptive}]\n"
    )
    way = machine._routes.route("tpu0", "tpu18")  # two rows and two columns away: C(4, 2) ways
    assert {round(part * 6) for link, part in way.shares if link.source == "tpu0"} == {3}
    assert alone(machine, "tpu0", "tpu18", 10e9) == pytest.approx(0.5)
    assert alone(machine, "tpu0", "tpu2", 10e9) == pytest.approx(1.0)


def test_links_of_equal_width_between_the_same_two_share_the_bytes() -> None:
    links = [f"{{name: {name}, between: [s0, s1], kind: direct, bandwidth: 1 GB/s}}" for name in ("a", "b")]
    assert alone(graph(links, 2, "adaptive"), "s0", "s1") == pytest.approx(0.5)
    assert alone(graph(links, 2, "ecmp"), "s0", "s1") == pytest.approx(1.0)


def test_the_last_byte_comes_on_the_slowest_way_and_backplanes_take_their_part() -> None:
    machine = hwsim.load_machine(
        "hwsim: machine/1\nclass: ideal\n"
        f"parts: {{here: {CPU}, there: {CPU}, fast: {{kind: switch, bandwidth: 1 GB/s}}, "
        "slow: {kind: switch, latency: 3 us}}\n"
        "links: [{between: [[here, there], [fast, slow]], kind: direct, bandwidth: 2 GB/s, routing: adaptive}]\n"
    )
    cost = machine.transfer("here", "there", 1e9)
    assert cost.demand.latency == pytest.approx(3e-6)
    assert dict(cost.demand.amounts)["fast.backplane"] == 0.5e9
    assert cost.demand.alone(machine.rates()) == pytest.approx(0.5 + 3e-6)
    assert {term.label for term in cost.why if "part" in term.formula} >= {
        "link here->fast",
        "link slow->there",
        "backplane fast",
    }


def test_only_the_links_that_say_so_spread() -> None:
    """Two cards in each node: the program chooses one, whatever the fabric does behind it."""
    node = NODE % 8
    node = node.replace("kind: nic,", "kind: nic, count: 2,").replace("[cpu, nic]", "[cpu, nic*]")
    fabric = (
        "{topology: leaf-spine, leaf_ports: 8, spines: 2, of: node*.nic*, kind: infiniband, rate: 100 Gb/s, routing: adaptive}"
    )
    machine = hwsim.load_machine(f"hwsim: machine/1\nclass: ideal\nparts: {{node: {node}}}\nlinks: [{fabric}]\n")
    names = [name for name, _ in machine.transfer("node0.cpu", "node7.cpu", 1e9).demand.amounts]
    assert [name for name in names if "nic1" in name] == []
    assert len([name for name in names if "spine" in name]) == 4


def test_a_hash_does_not_depend_on_the_process() -> None:
    machine = cluster(12, "ecmp")
    assert "".join(spine(machine, index, 8)[-1] for index in range(8)) == "22223213"
