"""Topologies: every member reaches every other, over as many links as the name says."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim import api as hwsim
from hwsim.machine import Machine
from hwsim.machine.topologies.clos import FatTree, LeafSpine
from hwsim.machine.topologies.direct import TorusTopology
from hwsim.machine.topologies.dragonfly import Dragonfly
from hwsim.machine.topologies.tree import TreeTopology
from hwsim.spec import SpecError

NODE = "{kind: machine, count: %d, parts: {cpu: {kind: cpu, cores: 4, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 100 GB/s}}, "
NODE += "nic: {kind: nic, bandwidth: 400 Gb/s, count: %d}}, links: [{between: [cpu, nic*], kind: direct, bandwidth: 64 GB/s}]}"


def cluster(nodes: int, nics: int, topology: str) -> Machine:
    link = f"{{name: fabric, of: node*.nic*, kind: infiniband, rate: 400 Gb/s, {topology}}}"
    return hwsim.load_machine(f"hwsim: machine/1\nclass: ideal\nparts: {{node: {NODE % (nodes, nics)}}}\nlinks: [{link}]\n")


def crossed(machine: Machine, a: str, b: str) -> list[str]:
    return [link.target for link in machine.route(a, b)]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.booleans())
def test_a_torus_links_every_member_to_its_neighbours_in_every_dimension(size: list[int], wrap: bool) -> None:
    count = 1
    for extent in size:
        count *= extent
    members = [f"m{index}" for index in range(count)]
    degrees = Counter(end for edge in TorusTopology(tuple(size), wrap).edges(members) for end in (edge.a, edge.b))
    if wrap:
        assert set(degrees.values()) <= {sum(2 if extent > 2 else 1 if extent == 2 else 0 for extent in size)}
    assert (
        len({frozenset((edge.a, edge.b)) for edge in TorusTopology(tuple(size), wrap).edges(members)})
        == sum(degrees.values()) // 2
    )


def test_members_of_one_leaf_do_not_leave_it() -> None:
    machine = cluster(8, 1, "topology: leaf-spine, leaf_ports: 4")
    assert crossed(machine, "node0.nic0", "node3.nic0") == ["fabric-leaf0", "node3.nic0"]
    assert crossed(machine, "node0.nic0", "node4.nic0") == ["fabric-leaf0", "fabric-spine0", "fabric-leaf1", "node4.nic0"]
    up = next(link for link in machine.links if (link.source, link.target) == ("fabric-leaf0", "fabric-spine0"))
    assert up.bandwidth == pytest.approx(4 * 400e9 / 8)


def test_oversubscription_narrows_the_uplinks() -> None:
    machine = cluster(8, 1, "topology: leaf-spine, leaf_ports: 4, oversubscription: 2")
    up = next(link for link in machine.links if (link.source, link.target) == ("fabric-leaf0", "fabric-spine0"))
    assert up.bandwidth == pytest.approx(2 * 400e9 / 8)


def test_rails_keep_counterparts_of_all_nodes_at_one_leaf() -> None:
    machine = cluster(4, 8, "topology: fat-tree, leaf_ports: 4, rails: 8")
    for rail in range(8):
        assert crossed(machine, f"node0.nic{rail}", f"node3.nic{rail}") == [f"fabric-leaf{rail}-0", f"node3.nic{rail}"]
    assert "fabric-spine0" in crossed(machine, "node0.nic0", "node1.nic1")


def test_pods_meet_in_the_core() -> None:
    machine = cluster(8, 2, "topology: fat-tree, leaf_ports: 2, rails: 2, pod: 2")
    assert "fabric-core" not in crossed(machine, "node0.nic0", "node3.nic0")
    assert "fabric-core" in crossed(machine, "node0.nic0", "node4.nic0")


def test_switches_of_a_topology_may_have_latency() -> None:
    plain, slow = (
        cluster(4, 1, f"topology: leaf-spine, leaf_ports: 2{more}").transfer("node0.nic0", "node3.nic0", 1.0).demand.latency
        for more in ("", ", switch: {latency: 1 us}")
    )
    assert slow - plain == pytest.approx(3e-6)


def test_ports_that_do_not_divide_are_said() -> None:
    with pytest.raises(SpecError, match=r"4 ports / oversubscription 3 "):
        cluster(8, 1, "topology: leaf-spine, leaf_ports: 4, oversubscription: 3")
    with pytest.raises(SpecError, match=r"a torus of 2 x 2 requires 4 members, got 8"):
        cluster(8, 1, "topology: torus, size: [2, 2]")
    with pytest.raises(ValueError, match="expected a whole number per switch"):
        LeafSpine(4, spines=8).edges([f"m{index}" for index in range(8)])
    assert FatTree(4).edges(["a"]).a == ["@leaf0"]


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 4), st.data())
def test_in_a_dragonfly_one_link_leads_to_every_other_group(p: int, a: int, h: int, data: st.DataObject) -> None:
    groups = data.draw(st.integers(2, a * h + 1))
    topology = Dragonfly(p, a, h)
    members = [f"m{index}" for index in range(p * a * groups)]
    edges = topology.edges(members)
    used: Counter[str] = Counter()
    between: Counter[tuple[str, ...]] = Counter()
    for edge in edges:
        if edge.b.startswith("@"):
            pair = tuple(sorted(name.partition("-")[0] for name in (edge.a, edge.b)))
            between[pair] += edge.count
            if pair[0] != pair[1]:
                used[edge.a] += edge.count
                used[edge.b] += edge.count
    outside = {pair: count for pair, count in between.items() if pair[0] != pair[1]}
    assert len(outside) == groups * (groups - 1) // 2
    assert set(outside.values()) == {a * h // (groups - 1)}
    assert max(used.values()) <= h  # no router has more links than ports
    assert len({end for edge in edges for end in (edge.a, edge.b) if end.startswith("@")}) == a * groups
    assert len({frozenset((edge.a, edge.b)) for edge in edges}) == len(edges)


def test_a_dragonfly_is_crossed_in_at_most_three_links_between_routers() -> None:
    machine = cluster(36, 2, "topology: dragonfly, leaf_ports: 2, routers: 4, global_ports: 2")  # 9 groups: the most
    stops = [len(crossed(machine, "node0.nic0", f"node{n}.nic{k}")) for n in range(1, 36) for k in range(2)]
    assert max(stops) == 5  # in, at most three links between routers, out
    with pytest.raises(SpecError, match="80 members form 10 groups"):
        cluster(40, 2, "topology: dragonfly, leaf_ports: 2, routers: 4, global_ports: 2")


def test_a_tree_hangs_members_below_switches_below_a_root() -> None:
    gpu = "{kind: gpu, count: 8, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 1 TB/s}}"
    cpu = "{kind: cpu, count: 2, cores: 4, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 100 GB/s}}"
    machine = hwsim.load_machine(
        f"hwsim: machine/1\nclass: ideal\nparts: {{cpu: {cpu}, gpu: {gpu}}}\n"
        "links: [{name: tree, topology: tree, root: [cpu0, cpu1], fan_out: [2, 2], of: gpu*, kind: pcie, gen: 3, lanes: 16,"
        " switch: {latency: 150 ns}}, {between: [cpu0, cpu1], kind: qpi}]\n"
    )
    assert crossed(machine, "gpu0", "gpu1") == ["tree-switch0", "gpu1"]
    assert crossed(machine, "gpu0", "gpu3") == ["tree-switch0", "cpu0", "tree-switch1", "gpu3"]
    assert crossed(machine, "gpu0", "gpu7") == ["tree-switch0", "cpu0", "cpu1", "tree-switch3", "gpu7"]
    assert machine.device("tree-switch3").kind == "switch"
    assert TreeTopology(("cpu",), (4,)).edges("ab") == TreeTopology(("cpu",), (2,)).edges("ab")
    deep = TreeTopology(("cpu",), (2, 2, 2))
    assert {edge.a for edge in deep.edges("abcdefgh")} == {
        "cpu",
        *(f"@switch{n}-{index}" for n in (1, 2) for index in range(2 * n)),
    }
    with pytest.raises(ValueError, match="a tree of 2 x 2 supports 1 to 4 members, got 5"):
        TreeTopology(("cpu",), (2, 2)).edges("abcde")
