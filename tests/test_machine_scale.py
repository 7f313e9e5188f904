"""Large machines: nothing is made before it is asked for, and what is made is the same as if all of it were."""

from __future__ import annotations

import gc
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim import api
from hwsim.communication import selection
from hwsim.communication.selection import bus
from hwsim.formats import natural
from hwsim.machine import Link, Machine, PlacedDevice
from hwsim.machine.contents import NoRoute, UnknownName
from hwsim.machine.transfer_options import TransferOptions
from hwsim.spec import SpecError, find, read, tree_of
from hwsim.spec.paths import apply_set
from tests.command import hwsim
from tests.eager_net import drawn_of, eager_routes

CPU = "kind: cpu, cores: 2, flop: {fp32: 1 GFLOP/s}, memory: {bandwidth: 100 GB/s}"
GPU = "kind: gpu, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 1 TB/s, latency: 300 ns}"
PCIE = "kind: pcie, gen: 3, lanes: 8"
FABRICS = (
    "topology: star, hub: sw0",
    "topology: leaf-spine, leaf_ports: 2",
    "topology: leaf-spine, leaf_ports: 4, spines: 2",
    "topology: fat-tree, leaf_ports: 2, rails: 2",
    "topology: fat-tree, leaf_ports: 1, rails: 2, pod: 1",
    "topology: dragonfly, leaf_ports: 2, routers: 2, global_ports: 6",
)
KINDS = (
    "kind: direct, bandwidth: 10 GB/s, latency: 1 us",
    "kind: infiniband, rate: 400 Gb/s",
    "kind: direct, bandwidth: 10 GB/s, duplex: half",
    "kind: direct, bandwidth: 7 GB/s, two_way: 1.5",
)


def machine(text: str) -> Machine:
    return api.load_machine(f"hwsim: machine/1\nclass: ideal\n{text}")


# ---- random clusters ----


@st.composite
def nodes(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Parts and links of a node: GPUs and cards behind one or two switches, a CPU, or each other; an NVSwitch perhaps."""
    gpus, nics = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    forwards = draw(st.sampled_from(["", "", "", ", forwards: true"]))
    wait = draw(st.sampled_from(["", ", latency: 100 ns", ", protocol: rdma, overhead: {rdma: 1 us}, message_rate: 1e8 1/s"]))
    parts = [f"gpu: {{{GPU}{forwards}, count: {gpus}}}", f"nic: {{kind: nic, bandwidth: 50 GB/s{wait}, count: {nics}}}"]
    links: list[str] = []
    match draw(st.sampled_from(["switch", "switches", "cpus", "pairs"])):
        case "switch":
            parts.append("psw: {kind: switch}")
            links += [f"{{between: [psw, gpu*], {PCIE}}}", f"{{name: cards, between: [psw, nic*], {PCIE}}}"]
        case "switches":
            parts += ["psw: {kind: switch, count: 2}", f"cpu: {{{CPU}}}"]
            links.append(f"{{name: up, between: [cpu, psw*], {PCIE}}}")
            links += [f"{{name: g{index}, between: [psw{index % 2}, gpu{index}], {PCIE}}}" for index in range(gpus)]
            links += [f"{{name: n{nic}, between: [psw{nic % 2}, nic{nic}], {PCIE}}}" for nic in range(nics)]
        case "cpus":
            parts.append(f"cpu: {{{CPU}, count: 2}}")
            links += ["{name: sockets, between: [cpu0, cpu1], kind: direct, bandwidth: 20 GB/s}"]
            links += [f"{{between: [cpu0, gpu*], {PCIE}}}", f"{{name: cards, between: [cpu1, nic*], {PCIE}}}"]
        case _:
            pairs = {(slot % gpus, slot % nics) for slot in range(max(gpus, nics))}
            links += [f"{{name: g{a}{b}, between: [gpu{a}, nic{b}], {PCIE}}}" for a, b in sorted(pairs)]
    if gpus > 1 and draw(st.booleans()):
        parts.append("nvs: {kind: switch, latency: 10 ns}")
        links.append("{between: [gpu*, nvs], kind: nvlink, gen: 2}")
    return parts, links


@st.composite
def clusters(draw: st.DrawFn) -> tuple[str, str]:
    """A cluster of equal nodes, and the same with every node and switch written out."""
    families = {name: (draw(st.integers(2, 4)), draw(nodes())) for name in draw(st.sampled_from([["node"], ["node", "box"]]))}
    kind, routing = draw(st.sampled_from(KINDS)), draw(st.sampled_from(["single", "single", "ecmp", "adaptive"]))
    over = draw(st.sampled_from(["", ", oversubscription: 2", ", latency: 70 ns"]))
    head = draw(st.booleans())
    members = [f"{name}*.nic*" for name in families]
    cards = [
        f"{name}{index}.nic{nic}"
        for name, (many, (parts, _)) in families.items()
        for index in range(many)
        for nic in range(_many(parts, "nic"))
    ]
    links = [f"{{name: between, topology: ring, of: sw*, {kind}, routing: {routing}}}"]
    if draw(st.booleans()):
        fabric = draw(st.sampled_from(FABRICS))
        links.append(f"{{name: fabric, {fabric}, of: [{', '.join(map(repr, members))}], {kind}, routing: {routing}}}")
    else:
        links += [
            f"{{name: port{port}, between: [{card}, sw{draw(st.integers(0, 2))}], {kind}, routing: {routing}}}"
            for port, card in enumerate(cards)
        ]
    if draw(st.integers(0, 4)) == 0:  # a card at two switches: then ways lead through nodes
        links += [f"{{name: second{switch}, between: [{cards[0]}, sw{switch}], {kind}}}" for switch in range(3)]
    if draw(st.integers(0, 6)) == 0:
        links.append(f"{{name: short, between: [node0.gpu0, node1.nic0], {kind}}}")
    if head:
        links.append(f"{{name: head, between: [head, sw1], {kind}}}")
    top = [f"  sw: {{kind: switch, count: 3{over}}}", *([f"  head: {{{CPU}}}"] if head else [])]
    out = [f"  sw{switch}: {{kind: switch{over}}}" for switch in range(3)] + top[1:]
    few, all_of = list(top), list(out)
    for name, (many, (parts, inner)) in families.items():
        few += _node(name, parts, inner, many)
        for node in range(many):
            all_of += _node(f"{name}{node}", parts, inner, None)
    ends = "\nlinks:\n" + "\n".join(f"  - {link}" for link in links) + "\n"
    numbered = ends.replace("sw*", "sw0, sw1, sw2") if "of: sw*" not in ends else ends.replace("of: sw*", "of: [sw0, sw1, sw2]")
    for name, (many, _) in families.items():
        every = ", ".join(f"'{name}{node}.nic*'" for node in range(many))
        numbered = numbered.replace(f"'{name}*.nic*'", every)
    return "parts:\n" + "\n".join(few) + ends, "parts:\n" + "\n".join(all_of) + numbered


def _many(parts: list[str], name: str) -> int:
    line = next(part for part in parts if part.startswith(f"{name}:"))
    return int(line.rpartition("count: ")[2].rstrip("}"))


def _node(name: str, parts: list[str], links: list[str], many: int | None) -> list[str]:
    count = [] if many is None else [f"    count: {many}"]
    body = [f"  {name}:", "    kind: machine", *count, "    parts:", *(f"      {part}" for part in parts)]
    return [*body, *(["    links:", *(f"      - {link}" for link in links)] if links else [])]


@settings(deadline=None, max_examples=25)
@given(clusters())
def test_equal_nodes_are_the_nodes_written_out(texts: tuple[str, str]) -> None:
    few, full = map(machine, texts)
    assert [*few.devices] == [*full.devices] == sorted(few.devices, key=natural)
    assert [*few.nodes] == [*full.nodes]
    assert [repr(device.model) for device in few.devices.values()] == [repr(unit.model) for unit in full.devices.values()]
    assert [*few.links] == [*full.links]
    assert [*few.capacities.items()] == [*full.capacities.items()]
    assert (len(few.devices), len(few.nodes), len(few.links), len(few.capacities)) == tuple(
        len([*mapping]) for mapping in (few.devices, few.nodes, few.links, few.capacities)
    )
    names = [*few.devices]
    for a, b in zip(names[::3], reversed(names), strict=False):
        assert _told(few, a, b) == _told(full, a, b)


@settings(deadline=None, max_examples=30)
@given(clusters(), st.randoms(use_true_random=False))
def test_ways_put_together_are_those_of_a_search(texts: tuple[str, str], random: object) -> None:
    of = machine(texts[0])
    search = eager_routes(of)
    for a, b in _pairs(of, random, 60):
        assert of._routes.find(a, b) == search.find(a, b)


@settings(deadline=None, max_examples=30)
@given(clusters(), st.randoms(use_true_random=False), st.sampled_from([1e6, 5.0, 0.0]), st.sampled_from([1.0, 3.0]))
def test_transfers_in_columns_are_those_one_by_one(texts: tuple[str, str], random: object, size: float, messages: float) -> None:
    of = machine(texts[0])
    pairs = [(a, b) for a, b in _pairs(of, random, 120) if of._routes.find(a, b) is not None]
    if not pairs:
        return
    handling = TransferOptions(messages=messages)
    found = of.draws([a for a, _ in pairs], [b for _, b in pairs], size, handling)
    for index, (a, b) in enumerate(pairs):
        demand = of._transfers.cost(a, b, size, handling).demand
        assert drawn_of(of, found, index) == dict(demand.amounts)
        one = found.costs[found.shape[index]].demand
        assert (one.latency, one.floor, one.share, one.holds) == (demand.latency, demand.floor, demand.share, demand.holds)
    assert [*dict.fromkeys(found.shape.tolist())] == [*range(len(found.costs))]


@settings(deadline=None, max_examples=25)
@given(clusters())
def test_rings_at_equal_places_of_equal_nodes_carry_the_same(texts: tuple[str, str]) -> None:
    of = machine(texts[0])
    for node in of.nodes:
        gpus = of.devices_of("gpu", node)
        if len(gpus) > 1 and all(of._routes.find(a, b) is not None for a, b in permutations(gpus, 2)):
            assert bus(of, gpus) == selection._bus(of, gpus, "all-reduce", selection.RINGS)
            assert bus(of, gpus[::-1]) == selection._bus(of, gpus[::-1], "all-reduce", selection.RINGS)


NET = "kind: direct, bandwidth: 10 GB/s, latency: 1 us"
CARDS = "{gpu: {%s}, nic: {kind: nic, bandwidth: 50 GB/s}}, links: [{between: [gpu, nic], %s}]" % (GPU, PCIE)  # noqa: UP031 (braces)
UNLIKE = {
    "a way through a third node is shorter": (
        f"parts: {{node: {{kind: machine, count: 4, parts: {CARDS}}}, sw: {{kind: switch, count: 5}}}}\n"
        f"links: [{{topology: line, of: sw*, {NET}}}, {{name: a, between: [node0.nic, sw0], {NET}}}, "
        f"{{name: b, between: [node1.nic, sw4], {NET}}}, {{name: c, between: [node2.nic, [sw0, sw4]], {NET}}}, "
        f"{{name: d, between: [node3.nic, sw2], {NET}}}]\n"
    ),
    "as near by a switch as by a device of the node, and in another order by name": (
        f"parts: {{node: {{kind: machine, count: 3, parts: {{gpu: {{{GPU}}}, nic: {{kind: nic, bandwidth: 50 GB/s}}, "
        f"psw: {{kind: switch}}}}, links: [{{between: [nic, [gpu, psw]], {PCIE}}}]}}, node1-x: {{kind: switch}}, "
        f"z: {{kind: switch}}, head: {{{CPU}}}}}\n"
        f"links: [{{between: [node*.nic, node1-x], {NET}}}, {{name: b, between: [node*.psw, z], {NET}}}, "
        f"{{name: c, between: [z, [node1-x, head]], {NET}}}]\n"
    ),
    "the switches are linked by other wires": (
        f"parts: {{node: {{kind: machine, count: 4, parts: {CARDS}}}, sw: {{kind: switch, count: 4}}}}\n"
        f"links: [{{name: ports, between: [sw*, node*.nic], per: 1, {NET}}}, {{name: fast, between: [sw0, sw1], {NET}}}, "
        "{name: slow, between: [sw2, sw3], kind: direct, bandwidth: 1 GB/s, latency: 9 us}]\n"
    ),
    "the switch of a node passes on what its links bring, and one of them is wider": (
        f"parts: {{node: {{kind: machine, count: 3, parts: {{gpu: {{{GPU}, count: 2}}, "
        "psw: {kind: switch, oversubscription: 4}}, "
        "links: [{between: [psw, gpu*], kind: direct, bandwidth: 8 GB/s}]}, sw: {kind: switch}}\n"
        f"links: [{{name: a, between: [[node0.psw, node2.psw], sw], {NET}}}, "
        "{name: b, between: [node1.psw, sw], kind: direct, bandwidth: 100 GB/s, latency: 1 us}]\n"
    ),
    "the switches are others": (
        f"parts: {{node: {{kind: machine, count: 4, parts: {CARDS}}}, a: {{kind: switch}}, "
        "b: {kind: switch, latency: 50 ns}}\n"
        f"links: [{{name: ports, between: [[a, b], node*.nic], per: 2, {NET}}}]\n"
    ),
    "cards stand beside devices that share them": (
        f"parts: {{gpu: {{{GPU}, count: 4}}, psw: {{kind: switch}}, nic: {{kind: nic, bandwidth: 50 GB/s, count: 2}}, "
        f"z: {{kind: switch}}, head: {{{CPU}}}}}\n"
        f"links: [{{between: [psw, [gpu*, nic*]], {PCIE}}}, {{name: net, between: [z, [nic*, head]], {NET}}}]\n"
    ),
}


@pytest.mark.parametrize("text", UNLIKE.values(), ids=UNLIKE)
def test_pairs_that_only_look_alike_are_told_apart(text: str) -> None:
    of = machine(text)
    search = eager_routes(of)
    ends = [name for name, placed in of.devices.items() if placed.kind in ("gpu", "cpu")]
    pairs = [(a, b) for a in ends for b in ends if search.find(a, b) is not None]
    assert [of._routes.find(a, b) for a, b in pairs] == [search.find(a, b) for a, b in pairs]
    found = of.draws([a for a, _ in pairs], [b for _, b in pairs], 1e6)
    for index, (a, b) in enumerate(pairs):
        names = {of.capacity_name(int(limit)) for limit in found.capacity[found.first[index] : found.first[index + 1]]}
        demand = of._transfers.cost(a, b, 1e6).demand
        assert names == {name for name, _ in demand.amounts}
        like = found.costs[found.shape[index]].demand.amounts
        assert sorted(of.capacities[name].rate for name, _ in like) == sorted(of.capacities[name].rate for name in names)
        assert found.costs[found.shape[index]].demand.latency == demand.latency


@settings(deadline=None, max_examples=20)
@given(clusters())
def test_every_capacity_has_one_number(texts: tuple[str, str]) -> None:
    of = machine(texts[0])
    named = []
    for number in range(of.capacity_numbers):
        try:
            named.append(of.capacity_name(number))
        except UnknownName:
            continue
    assert sorted(named) == sorted(of.capacities)
    with pytest.raises(UnknownName):
        of.capacity_name(of.capacity_numbers)
    together = of.capacity_names(np.array([*map(of.capacity_number, named)]))
    assert [*together] == named
    assert of.holders(together, "").tolist() == of.device_numbers.numbers([of.capacities[name].device for name in named]).tolist()


@settings(deadline=None, max_examples=20)
@given(clusters())
def test_every_device_has_one_number(texts: tuple[str, str]) -> None:
    of = machine(texts[0])
    named = [*of.devices]
    others = ["", "gpu0.", *of.nodes, *(f"other.{name}" for name in named), *(f"{name}.{name}" for name in named)]
    numbers = of.device_numbers.numbers([*named, *others]).tolist()
    assert [*map(of.layout.name, numbers[: len(named)])] == named
    assert numbers[len(named) :] == [-1] * len(others)
    index, parts = of.device_numbers.parts
    assert [parts[index[number]].model for number in numbers[: len(named)]] == [of.devices[name].model for name in named]
    assert index[-1] == -1


def _pairs(of: Machine, random: object, many: int) -> list[tuple[str, str]]:
    pairs = [(a, b) for a in of.devices for b in of.devices]
    return random.sample(pairs, min(many, len(pairs)))  # type: ignore[attr-defined, no-any-return]


def _told(of: Machine, a: str, b: str) -> object:
    try:
        return of.route(a, b), of.transfer(a, b, 1e6)
    except NoRoute as error:
        return error.message, error.hint


# ---- names in order ----

STEMS = ["a", "a1", "a1b", "a-x", "b", "a_", "A"]


@settings(deadline=None, max_examples=30)
@given(st.dictionaries(st.sampled_from(STEMS), st.tuples(st.integers(0, 12), st.booleans()), min_size=1))
def test_names_that_interleave_are_in_natural_order(parts: dict[str, tuple[int, bool]]) -> None:
    lines = []
    for name, (many, node) in parts.items():
        count = f", count: {many}" if many else ""
        inner = f"kind: machine, parts: {{x: {{kind: switch, count: 2}}, x-y: {{{CPU}, count: 2}}}}" if node else "kind: switch"
        lines.append(f"  {name}: {{{inner}{count}}}\n")
    try:
        of = machine("parts:\n" + "".join(lines))
    except SpecError as error:
        assert "two parts are called" in str(error)  # noqa: PT017 (some of these names do collide)
        return
    for names in (of.devices, of.nodes, of.groups):
        assert [*names] == sorted(names, key=natural)
        assert len([*names]) == len(names) == len(set(names))
    for name, placed in of.devices.items():
        assert of.select(name) == (name,)
        assert name == ".".join(
            word for word in (placed.node, f"{placed.family}{'' if placed.index is None else placed.index}") if word
        )
    assert "a01" not in of.devices
    assert of.devices_of("switch") == tuple(name for name, placed in of.devices.items() if placed.kind == "switch")


# ---- large machines ----


def rail_fat_tree(nodes: int, pods: int) -> Machine:
    tree, workload = read(find("machine", "scale/rail-fat-tree")), tree_of({"hwsim": "workload/1", "program": []})
    for path, value in (("let.nodes", nodes), ("let.pods", pods)):
        tree, workload, _ = apply_set(tree, workload, path, str(value))
    return api.load_machine(tree)


@pytest.fixture(scope="module")
def large() -> Machine:
    return rail_fat_tree(12_500, 4)


def _made(kind: type) -> int:
    return sum(issubclass(type(item), kind) for item in gc.get_objects())  # isinstance asks what a proxy stood for


def test_100000_gpus_are_counted_and_named_without_being_made() -> None:
    before = _made(PlacedDevice), _made(Link)
    of = rail_fat_tree(12_500, 4)
    leaves = 8 * -(-12_500 // 32)
    assert len(of.devices) == 12_500 * 17 + leaves + 4 + 1
    assert len(of.nodes) == 12_500
    assert len(of.links) == 2 * (12_500 * 24 + leaves + 4)
    gpus = of.select("gpu*")
    assert (len(gpus), gpus[8], gpus[-1]) == (100_000, "node1.gpu0", "node12499.gpu7")
    assert of.select("node*.gpu*") is not gpus
    assert of.select("node*.gpu*") == gpus == of.devices_of("gpu")
    assert of.select("node3.gpu0..2") == ("node3.gpu0", "node3.gpu1", "node3.gpu2")
    assert of.select("gpu1", "node9") == ("node9.gpu1",)
    assert len(of.select("node96..126.nic*")) == 31 * 8
    assert of.one("node12499.nvs") == "node12499.nvs"
    with pytest.raises(UnknownName, match="there is no node12500"):
        of.select("node12499..12500.gpu*")
    assert len(of.capacities) > 1_000_000
    assert of.capacities["fabric:node77.nic3->fabric-leaf3-2"].rate == pytest.approx(50e9)
    assert "fabric:node77.nic3->fabric-leaf3-3" not in of.capacities
    assert [sample.name for sample in of.samples(gpus)] == ["node0.gpu0"]
    assert (_made(PlacedDevice) - before[0], _made(Link) - before[1]) < (20, 20)


def test_a_route_makes_the_links_it_passes(large: Machine) -> None:
    before = _made(Link)
    route = large.route("node0.gpu0", "node12499.gpu5")
    stops = [link.target for link in route]
    assert stops[1:-2] == ["fabric-leaf0-0", "fabric-spine0", "fabric-core", "fabric-spine3", "fabric-leaf5-390"]
    assert _made(Link) - before < 100
    assert [link.target for link in large.links_from("node5.nic2")] == ["fabric-leaf2-0", "node5.gpu2"]


def test_a_ring_of_100000_is_a_handful_of_shapes(large: Machine) -> None:
    before = _made(Link), _made(PlacedDevice)
    gpus = large.select("gpu*")
    found = large.draws(gpus, (*gpus[1:], gpus[0]), 1e6)
    assert len(found.shape) == 100_000
    assert len(found.costs) == 3  # inside a node, within a pod, between pods
    assert (found.shape == 0).sum() == 87_500
    assert (found.shape == 2).sum() == 4
    assert max(found.capacity) < large.capacity_numbers
    for pair in (0, 7, 8 * 3124 + 7, 99_999):
        rows = slice(int(found.first[pair]), int(found.first[pair + 1]))
        names = {large.capacity_name(int(number)) for number in found.capacity[rows]}
        assert names == {name for name, _ in large.transfer(gpus[pair], gpus[(pair + 1) % 100_000], 1e6).demand.amounts}
    assert _made(Link) - before[0] < 1_000
    assert _made(PlacedDevice) - before[1] < 500


def test_a_graph_of_a_large_machine_lists_what_its_ops_use(large: Machine) -> None:
    copy = {"copy": {"from": "node0.gpu0", "to": "node9.gpu0", "bytes": "1 MB"}}
    run = api.simulate(large, api.load_workload({"hwsim": "workload/1", "program": [copy]}))
    graph = run.timeline.flat.graph
    assert {capacity.name for capacity in graph.capacities} == {
        name for name, _ in large.transfer("node0.gpu0", "node9.gpu0", 1e6).demand.amounts
    }
    assert graph.unlisted == len(large.capacities) - len(graph.capacities)
    assert f"{graph.unlisted:,} idle" in str(run)


def test_nobody_gets_every_pair_of_a_large_machine_listed() -> None:
    done = hwsim("show", "--topology", "scale/rail-fat-tree", "--set", "let.nodes=2000", code=2)
    assert "topology with 34,507 devices: expected at most 20,000" in done.output
    hwsim("show", "--topology", "scale/rail-fat-tree")


def test_a_switch_of_100000_ports_is_linked_in_columns() -> None:
    before = _made(Link)
    of = machine(
        f"parts: {{sw: {{kind: switch, oversubscription: 4}}, gpu: {{{GPU}, count: 100000}}}}\n"
        "links: [{name: port, between: [sw, gpu*], kind: direct, bandwidth: 1 GB/s}]\n"
    )
    assert of.capacities["sw.backplane"].rate == pytest.approx(100_000 * 1e9 / 4)
    assert [link.capacity for link in of.route("gpu99999", "gpu0")] == ["port:gpu99999->sw", "port:sw->gpu0"]
    assert len(of.capacities) == 400_001
    assert _made(Link) - before < 10
