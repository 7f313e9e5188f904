"""What `hwsim show --topology` says: bisection bandwidth against brute force and textbooks, distances against routes."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.api import load_machine
from hwsim.machine import Machine, NoRoute
from hwsim.views.kit.view import Heading, Unshowable
from hwsim.views.topology import say
from hwsim.views.topology.bisection import bisection
from hwsim.views.topology.draw import figure
from hwsim.views.topology.find import find as topology
from hwsim.views.topology.layout import arrange
from hwsim.views.topology.reach import reach
from tests.command import hwsim

GPU = "kind: gpu, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 1 TB/s}"
NODE = "{kind: machine, count: %d, parts: {cpu: {kind: cpu, cores: 4, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 100 GB/s}}, "
NODE += "nic: {kind: nic, bandwidth: 400 Gb/s, count: %d}}, links: [{between: [cpu, nic*], kind: direct, bandwidth: 64 GB/s}]}"


def machine(text: str) -> Machine:
    return load_machine("hwsim: machine/1\nclass: ideal\n" + text)


def cluster(nodes: int, nics: int, fabric: str) -> Machine:
    link = f"{{name: fabric, of: node*.nic*, kind: infiniband, rate: 400 Gb/s, {fabric}}}"
    return machine(f"parts: {{node: {NODE % (nodes, nics)}}}\nlinks: [{link}]\n")


def gpus(count: int, topology_: str) -> Machine:
    return machine(
        f"parts: {{gpu: {{{GPU}, count: {count}}}}}\nlinks: [{{{topology_}, of: gpu*, kind: direct, bandwidth: 1 GB/s}}]\n"
    )


def halved(of: Machine, family: str = "gpu*", over: str = "") -> tuple[float, bool]:
    found = bisection(of, of.select(family), over)
    return found.bandwidth, found.exact


@pytest.mark.parametrize(
    ("count", "which", "links"),
    [
        (8, "topology: line", 1),
        (8, "topology: ring", 2),
        (12, "topology: fully-connected", 36),
        (8, "topology: torus, size: [4, 2]", 4),
        (16, "topology: torus, size: [4, 4]", 8),
        (64, "topology: torus, size: [4, 4, 4]", 32),
        (16, "topology: torus, size: [4, 4], wrap: false", 4),
        (8, "topology: hybrid-cube-mesh", 6),
    ],
)
def test_bisections_of_textbooks(count: int, which: str, links: int) -> None:
    """Dally and Towles, 2004, chapter 5: 2 N / k channels each way across a torus of k a side, half of that across a mesh."""
    assert halved(gpus(count, which)) == (links * 1e9, count <= 12)


@pytest.mark.parametrize(
    ("name", "port", "published"),
    [  # both ways, quoted from memory: DGX-2 datasheet 2.4 TB/s; A100: half of 4.8 TB/s of all GPUs; DGX H100 datasheet 3.6 TB/s
        ("dgx-2", 150e9, 2.4e12),
        ("dgx-a100", 300e9, 2.4e12),
        ("p4d.24xlarge", 300e9, 2.4e12),
        ("dgx-h100", 450e9, 3.6e12),
        ("p5.48xlarge", 450e9, 3.6e12),
    ],
)
def test_nvswitch_machines_do_not_block(name: str, port: float, published: float) -> None:
    of = load_machine(name)
    members = of.select("gpu*")
    found = bisection(of, members, "nvlink")
    assert found.exact
    assert found.wires == pytest.approx(len(members) / 2 * port)
    assert 2 * found.wires == pytest.approx(published)
    carried = sum(link.bandwidth for link in of.links if link.source == "gpu0" and link.kind == "nvlink")
    assert found.bandwidth == pytest.approx(len(members) / 2 * carried)
    everything = bisection(of, members)
    assert everything.bandwidth > found.bandwidth  # PCIe adds to it


def test_the_hybrid_cube_mesh_is_cut_between_its_two_squares() -> None:
    found = bisection(load_machine("p3.16xlarge"), [f"gpu{n}" for n in range(8)], "nvlink")
    assert found.halves == (tuple(f"gpu{n}" for n in range(4)), tuple(f"gpu{n}" for n in range(4, 8)))
    assert found.bandwidth == 6 * 25e9
    assert [(limit.kind, limit.count) for limit in found.limits] == [("nvlink", 6)]


def test_fat_trees_keep_what_their_oversubscription_leaves() -> None:
    assert halved(cluster(16, 1, "topology: leaf-spine, leaf_ports: 4"), "nic*") == (8 * 50e9, True)
    assert halved(cluster(16, 1, "topology: leaf-spine, leaf_ports: 4, oversubscription: 2"), "nic*") == (4 * 50e9, True)
    assert halved(cluster(16, 1, "topology: leaf-spine, leaf_ports: 4, spines: 4"), "nic*") == (8 * 50e9, True)


def test_a_backplane_and_a_slow_card_limit_too() -> None:
    switch = f"parts: {{gpu: {{{GPU}, count: 4}}, sw: {{kind: switch, bandwidth: 3 GB/s}}}}\n"
    of = machine(switch + "links: [{topology: star, hub: sw, of: gpu*, kind: direct, bandwidth: 2 GB/s}]\n")
    found = bisection(of, of.select("gpu*"))
    assert found.bandwidth == 3e9
    assert found.limits[0].kind == "switch"
    link = "{name: fabric, of: node*.nic*, kind: infiniband, rate: 800 Gb/s, topology: leaf-spine, leaf_ports: 4}"
    narrow = machine(f"parts: {{node: {NODE % (4, 1)}}}\nlinks: [{link}]\n")
    limits = bisection(narrow, narrow.select("nic*"))
    assert (limits.bandwidth, limits.limits[0].kind) == (2 * 50e9, "nic")


def random_machine(seed: int) -> Machine | None:
    rng = random.Random(seed)
    n, switches = rng.randint(2, 7), rng.randint(0, 4)
    names = [f"gpu{index}" for index in range(n)] + [f"s{number}" for number in range(switches)]
    pairs = [(a, b) for a, b in combinations(names, 2) if rng.random() < 0.45]
    if not pairs:
        return None
    links = [f"{{between: [{a}, {b}], kind: direct, bandwidth: {rng.randint(1, 4)} GB/s}}" for a, b in pairs]
    parts = f"gpu: {{{GPU}, count: {n}}}" + (f", s: {{kind: switch, count: {switches}}}" if switches else "")
    return machine(f"parts: {{{parts}}}\nlinks: [{', '.join(links)}]\n")


def least_cut(of: Machine, members: Sequence[str]) -> float:
    """Max-flow is min-cut: by trying every side that every device may be on."""
    devices = list(of.devices)
    least = float("inf")
    for mask in range(1 << len(devices)):
        side = {name for index, name in enumerate(devices) if mask >> index & 1}
        if sum(name in side for name in members) == len(members) // 2:
            least = min(least, sum(link.bandwidth for link in of.links if link.source in side and link.target not in side))
    return least


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_a_bisection_is_the_least_of_all_balanced_cuts(seed: int) -> None:
    of = random_machine(seed)
    if of is None:
        return
    members = of.select("gpu*")
    found = bisection(of, members)
    if found is None:
        return  # they do not hang together
    assert found.exact
    assert found.bandwidth == pytest.approx(least_cut(of, members))
    assert sum(limit.bandwidth for limit in found.limits) == pytest.approx(found.bandwidth)
    assert sorted((*found.halves[0], *found.halves[1])) == sorted(members)


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_distances_are_those_of_the_routes(seed: int) -> None:
    of = random_machine(seed)
    if of is None:
        return
    members = of.select("gpu*")
    routes = {}
    for a, b in combinations(members, 2):
        try:
            routes[a, b] = of.route(a, b)
        except NoRoute:
            continue
    found = reach(of, members)
    if not routes:
        assert found is None
        return
    assert found.diameter == max(len(route) for route in routes.values())
    assert len(of.route(*found.farthest)) == found.diameter
    assert found.mean == pytest.approx(sum(len(route) for route in routes.values()) / len(routes))
    assert found.apart == 2 * (len(members) * (len(members) - 1) // 2 - len(routes))


def test_pairs_are_called_as_nvidia_smi_does() -> None:
    found = topology(load_machine("p3.16xlarge"))
    pairs = {(pair.a, pair.b): pair for pair in found.pairs}
    assert [pairs["gpu0", f"gpu{n}"].how for n in range(1, 8)] == ["NV1", "NV1", "NV2", "NV2", "SYS", "SYS", "SYS"]
    assert pairs["gpu0", "gpu5"].hops == 5
    assert {route.how for route in topology(load_machine("dgx-a100")).pairs} == {"NV12"}
    assert {route.how for route in topology(load_machine("d2l-4gpu-pcie")).pairs} == {"PIX"}
    assert {route.how for route in topology(load_machine("g4dn.12xlarge")).pairs} == {"PHB", "SYS"}
    assert {route.how for route in topology(load_machine("p2.16xlarge")).pairs} == {"PIX", "PXB", "PHB", "SYS"}


def test_a_pair_under_adaptive_routing_has_the_bandwidth_of_all_its_ways() -> None:
    parts = f"parts: {{gpu: {{{GPU}, count: 4}}, s: {{kind: switch, count: 3}}}}\n"
    widths = {}
    for routing in ("single", "ecmp", "adaptive"):
        of = machine(parts + f"links: [{{between: [gpu*, s*], kind: direct, bandwidth: 1 GB/s, routing: {routing}}}]\n")
        widths[routing] = {round(pair.bandwidth) for pair in topology(of).pairs}
    assert widths == {"single": {1e9}, "ecmp": {1e9}, "adaptive": {3e9}}


def test_what_cannot_be_halved_is_said() -> None:
    laptop = load_machine("d2l-laptop")
    assert topology(laptop).of == ()
    assert "--of" in say.text(topology(laptop), Heading("laptop"))
    apart = machine(f"parts: {{gpu: {{{GPU}, count: 2}}}}\n")
    said = say.text(topology(apart), Heading("apart"))
    assert "none: the links do not connect all of them" in said
    with pytest.raises(Unshowable):
        topology(laptop, of="gpu*")


def test_a_thousand_gpus_take_seconds_and_are_nodes_times_ports() -> None:
    of = machine(
        "parts: {node: {kind: machine, count: 128, use: dgx-h100}}\n"
        "links: [{name: fabric, topology: fat-tree, of: node*.nic*, leaf_ports: 32, rails: 8, kind: infiniband, use: ndr400}]\n"
    )
    found = topology(of)
    assert len(found.of) == 1024
    assert found.pairs == ()
    assert found.bisections[0].bandwidth == 64 * 8 * 50e9
    assert not found.bisections[0].exact
    assert "node0..63.gpu0..7 and node64..127.gpu0..7" in say.text(found, Heading("rails"))
    drawn = arrange(of)
    assert [frame.label for frame in drawn.frames] == ["node*  × 128"]
    assert len(drawn.boxes) < 40


@pytest.mark.parametrize("name", ["p3.16xlarge", "dgx-2", "dgx-h100", "d2l-two-nodes", "d2l-laptop", "p5.48xlarge"])
def test_nothing_is_drawn_over_something_else(name: str) -> None:
    drawn = arrange(load_machine(name))
    for a, b in combinations(drawn.boxes.values(), 2):
        assert a.y != b.y or abs(a.x - b.x) >= (a.width + b.width) / 2 - 1e-9, f"{a.label} and {b.label}"


def test_a_ring_stands_on_a_circle_and_every_kind_of_link_has_a_line_in_the_legend() -> None:
    assert arrange(gpus(20, "topology: ring")).round
    svg = b"".join(figure(topology(load_machine("p3.16xlarge")), Heading("p3"), ".svg")).decode()
    for said in ("2 × NVLink 2: 50 GB/s each way", "NVLink 2: 25 GB/s each way", "PCIe 3 x16", "2 × QPI", "gpu7", "psw3"):
        assert said in svg


def test_the_command_prints_draws_and_refuses(tmp_path_factory: pytest.TempPathFactory) -> None:

    folder = tmp_path_factory.mktemp("figures")
    hwsim("show", "p3.16xlarge", "--topology", folder / "p3.svg")
    assert (folder / "p3.svg").stat().st_size > 5000
    told = hwsim("show", "dgx-a100", "--topology", "--of", "gpu0..3", "--json")
    found = json.loads(told.output)
    assert found["hwsim"] == "topology/2"
    assert found["of"] == ["gpu0", "gpu1", "gpu2", "gpu3"]
    assert len(found["pairs"]) == 12
    assert found["bisection"][0]["exact"] is True
    assert hwsim("show", "--topology", "dgx-a100").output.startswith("NVIDIA DGX A100")
    assert "--topology" in hwsim("show", "dgx-a100", "--json", code=2).output
    assert ".png, .svg or .pdf" in hwsim("show", "dgx-a100", "--topology", "a.gif", code=2).output
    slow = hwsim("show", "d2l-8gpu-nvlink", "--topology", "--set", "machine.links.slots.bandwidth=8 GB/s")
    assert "(8 GB/s each way)" in slow.output


def test_no_pair_is_wider_or_narrower_than_what_its_route_says() -> None:
    parts = "a: {kind: cpu, use: d2l-server-cpu}, b: {kind: cpu, use: d2l-server-cpu}, c: {kind: cpu, use: d2l-server-cpu}"
    links = "{between: [a, b], kind: wifi, use: wifi-6}, {between: [b, c], kind: ethernet, use: 10gbe}"
    air = machine(f"parts: {{{parts}}}\nlinks: [{links}]\n")
    found = topology(air)
    for pair in found.pairs:
        assert pair.bandwidth == min(link.bandwidth for link in air.route(pair.a, pair.b))
    said = say.text(found, Heading("air"))
    assert any(cut in said for cut in ("a against b, c", "b, c against a", "a, b against c", "c against a, b"))
