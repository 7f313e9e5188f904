"""Routes and transfers: which way, how long, and drawing what."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim.api import load_machine
from hwsim.machine import Machine, NoRoute, UnknownName

CPU = "kind: cpu, cores: 2, flop: {fp32: 1 GFLOP/s}, memory: {bandwidth: 100 GB/s, latency: 100 ns}"
GPU = "kind: gpu, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 1 TB/s}"


def machine(text: str) -> Machine:
    return load_machine("hwsim: machine/1\nclass: ideal\n" + text)


@pytest.fixture(scope="module")
def p3() -> Machine:
    return load_machine("p3.16xlarge")


@pytest.fixture(scope="module")
def server() -> Machine:
    return load_machine("d2l-4gpu-pcie")


def path(of: Machine, a: str, b: str) -> str:
    return " ".join([a, *(link.target for link in of.route(a, b))])


def test_routes_cross_switches_and_cpus_but_no_gpu(p3: Machine) -> None:
    assert path(p3, "gpu0", "gpu1") == "gpu0 gpu1"
    assert path(p3, "gpu0", "gpu5") == "gpu0 psw0 cpu0 cpu1 psw2 gpu5"
    assert path(p3, "gpu6", "nic") == "gpu6 psw3 cpu1 cpu0 nic"
    assert path(p3, "gpu0", "gpu0") == "gpu0"


def test_a_group_of_sockets_is_reached_at_the_nearest(p3: Machine) -> None:
    assert [link.target for link in p3.route("cpu", "gpu7")] == ["psw3", "gpu7"]
    assert p3.route("cpu", "gpu7")[0].source == "cpu1"
    assert p3.route("cpu", "nic")[0].source == "cpu0"


def test_nvlinks_of_the_hybrid_cube_mesh_are_all_used_and_some_double(p3: Machine) -> None:
    for gpu in p3.select("gpu*"):
        links = [link for link in p3.links if link.kind == "nvlink" and link.source == gpu]
        assert sum(link.count for link in links) == 6
        assert len(links) == 4
    assert p3.route("gpu0", "gpu3")[0].bandwidth == pytest.approx(50e9)
    assert p3.route("gpu0", "gpu1")[0].bandwidth == pytest.approx(25e9)
    for ring in ("0 1 2 3 7 6 5 4", "0 3 2 1 5 6 7 4"):  # both rings of d2l 13.7.2 run over NVLink alone
        order = [f"gpu{n}" for n in ring.split()]
        assert all(len(p3.route(a, b)) == 1 for a, b in zip(order, [*order[1:], order[0]], strict=True))


def test_fewest_hops_come_before_width_and_width_before_names() -> None:
    of = machine(
        "parts: {a: {kind: nic, bandwidth: 1 GB/s}, b: {kind: nic, bandwidth: 1 GB/s}, s: {kind: switch, count: 3}}\n"
        "links:\n"
        "  - {between: [a, [s0, s1]], kind: direct, bandwidth: 1 GB/s}\n"
        "  - {between: [a, s2], kind: direct, bandwidth: 2 GB/s}\n"
        "  - {between: [[s0, s1, s2], b], kind: direct, bandwidth: 3 GB/s}\n"
    )
    assert path(of, "a", "b") == "a s2 b"
    assert path(of, "s0", "s1") == "s0 b s1"


@given(st.integers(0, 2**32))
def test_routes_are_shortest_and_deterministic(seed: int) -> None:
    rng = random.Random(seed)
    n = rng.randint(2, 9)
    pairs = {(a, b) for a in range(n) for b in range(a + 1, n) if rng.random() < 0.4}
    if not pairs:
        return
    entries = [f"  - {{between: [s{a}, s{b}], kind: direct, bandwidth: {rng.randint(1, 3)} GB/s}}" for a, b in sorted(pairs)]
    text = f"parts: {{s: {{kind: switch, count: {n}}}}}\nlinks:\n"
    of = machine(text + "\n".join(entries))
    rng.shuffle(entries)
    shuffled = machine(text + "\n".join(entries))
    hops = {(a, b): 0 if a == b else 1 if (a, b) in pairs or (b, a) in pairs else 99 for a in range(n) for b in range(n)}
    widths = {(link.source, link.target): link.bandwidth for link in of.links}
    for k in range(n):
        for a in range(n):
            for b in range(n):
                hops[a, b] = min(hops[a, b], hops[a, k] + hops[k, b])
    for a in range(n):
        for b in range(n):
            if hops[a, b] >= 99:
                with pytest.raises(NoRoute):
                    of.route(f"s{a}", f"s{b}")
                continue
            route = of.route(f"s{a}", f"s{b}")
            assert route == shuffled.route(f"s{a}", f"s{b}")
            assert len(route) == hops[a, b]
            best = _widest(f"s{a}", f"s{b}", hops[a, b], widths)
            assert min((link.bandwidth for link in route), default=best) == best


def _widest(a: str, b: str, hops: int, widths: dict[tuple[str, str], float]) -> float:
    """By trying every way of that many hops."""
    if hops == 0:
        return float("inf") if a == b else 0.0
    return max(
        (min(width, _widest(via, b, hops - 1, widths)) for (source, via), width in widths.items() if source == a), default=0.0
    )


@given(st.floats(1, 1e15))
def test_a_transfer_alone_takes_latency_and_its_bytes_at_the_narrowest(size: float) -> None:
    of = machine(
        f"parts: {{cpu: {{{CPU}}}, psw: {{kind: switch, latency: 150 ns}}, gpu: {{{GPU}}}}}\n"
        "links:\n"
        "  - {between: [cpu, psw], kind: pcie, bandwidth: 16 GB/s, latency: 500 ns}\n"
        "  - {between: [psw, gpu], kind: pcie, bandwidth: 8 GB/s, latency: 300 ns}\n"
    )
    cost = of.transfer("cpu", "gpu", size)
    assert cost.demand.latency == pytest.approx(100e-9 + 500e-9 + 150e-9 + 300e-9)
    assert cost.demand.alone(of.rates()) == pytest.approx(cost.demand.latency + size / 8e9)
    assert cost.demand.share == size
    assert [name for name, _ in cost.demand.amounts] == ["cpu.memory", "gpu.memory", "pcie:cpu->psw", "pcie:psw->gpu"]
    assert all(moved == (name, size, "B") for moved, (name, _) in zip(cost.moved, cost.demand.amounts, strict=True))
    explained = {term.label for term in cost.why}
    assert explained == {"latency", "memory cpu", "memory gpu", "link cpu->psw", "link psw->gpu"}
    assert max(term.seconds for term in cost.why if term.kind != "latency") == pytest.approx(size / 8e9)


def test_a_copy_in_place_reads_and_writes_the_memory(server: Machine) -> None:
    cost = server.transfer("gpu0", "gpu0", 616e9)
    assert dict(cost.demand.amounts) == pytest.approx({"gpu0.memory": 2.0})
    assert [(name, unit) for name, _, unit in cost.moved] == [("gpu0.memory", "B")]
    assert cost.moved[0][1] == pytest.approx(2 * 616e9)
    assert cost.demand.share == pytest.approx(2 * 616e9)


def test_a_copy_in_place_on_a_group_uses_every_socket(p3: Machine) -> None:
    cost = p3.transfer("cpu", "cpu", 76.8e9)
    assert dict(cost.demand.amounts) == pytest.approx({"cpu0.memory": 1.0, "cpu1.memory": 1.0})


def test_nothing_to_move_still_takes_the_latency(p3: Machine) -> None:
    assert p3.transfer("gpu0", "gpu1", 0).demand.amounts == ()


def test_the_directions_of_a_link_are_independent_unless_half_duplex() -> None:
    for duplex, shared in (("full", False), ("half", True)):
        of = machine(
            f"parts: {{cpu: {{{CPU}}}, gpu: {{{GPU}}}}}\n"
            f"links: [{{name: bus, between: [gpu, cpu], kind: direct, bandwidth: 1 GB/s, duplex: {duplex}}}]\n"
        )
        there, back = of.route("cpu", "gpu")[0].capacity, of.route("gpu", "cpu")[0].capacity
        assert (there == back) is shared
        assert {there, back} <= set(of.capacities)


def test_a_nic_sends_and_receives_at_its_own_rate() -> None:
    node = f"{{kind: machine, count: 2, parts: {{cpu: {{{CPU}}}, nic: {{kind: nic, bandwidth: 2 GB/s, latency: 1 us}}}},"
    of = machine(
        f"parts:\n  node: {node} links: [{{between: [cpu, nic], kind: pcie, gen: 3, lanes: 8}}]}}\n"
        "  sw: {kind: switch, bandwidth: 3 GB/s}\n"
        "links: [{topology: star, of: node*.nic, hub: sw, kind: ethernet, rate: 100 Gb/s}]\n"
    )
    cost = of.transfer("node0.cpu", "node1.cpu", 2e9)
    drawn = dict(cost.demand.amounts)
    assert drawn["node0.nic.tx"] == drawn["node1.nic.rx"] == drawn["sw.backplane"] == 2e9
    assert "node0.nic.rx" not in drawn
    assert cost.demand.alone(of.rates()) == pytest.approx(1.0 + 2e-6 + 200e-9)


def test_reading_through_a_link_is_bound_by_the_narrower_of_both() -> None:
    of = machine(
        f"parts: {{cpu: {{{CPU}}}, disk: {{kind: disk, read: 4 GB/s, latency: 1 ms}}, loose: {{kind: disk, read: 4 GB/s}}}}\n"
        "links: [{between: [cpu, disk], kind: pcie, bandwidth: 2 GB/s}]\n"
    )
    rates = of.rates()
    assert of.read("disk", 4e9).demand.alone(rates) == pytest.approx(1.001)
    assert of.read("disk", 4e9, to="cpu").demand.alone(rates) == pytest.approx(2.001, rel=1e-6)
    assert of.transfer("cpu", "disk", 4e9).demand.alone(rates) == pytest.approx(2.001, rel=1e-6)
    assert of.read("disk", 4e3, 1000, "random", to="cpu").demand.alone(rates) == pytest.approx(1.001)
    assert of.read("loose", 4e9, to="cpu").demand.alone(rates) == pytest.approx(1.0)
    assert dict(of.read("disk", 4e9, to="cpu").demand.amounts)["disk.media"] == pytest.approx(1.0)
    assert of.transfer("disk", "cpu", 4e9).demand.alone(rates) == pytest.approx(2.001, rel=1e-6)
    with pytest.raises(UnknownName, match="cpu is a cpu: expected a disk"):
        of.read("cpu", 1.0)


def test_no_route_says_why() -> None:
    of = machine(
        f"parts: {{cpu: {{{CPU}}}, gpu: {{{GPU}, count: 3}}}}\nlinks: [{{topology: line, of: gpu*, kind: nvlink, gen: 2}}]\n"
    )
    with pytest.raises(NoRoute, match="no route from gpu0 to gpu2"):
        of.route("gpu0", "gpu2")  # a GPU forwards nothing
    with pytest.raises(NoRoute, match="from cpu to gpu0") as caught:
        of.transfer("cpu", "gpu0", 1.0)
    assert caught.value.hint == "no link ends at cpu"
    with pytest.raises(UnknownName):
        of.transfer("cpu", "gpu7", 1.0)


def test_what_says_it_forwards_is_passed_through() -> None:
    parts = f"parts: {{tpu: {{{GPU}, count: 4, forwards: true}}}}\n"
    text = parts + "links: [{topology: ring, of: tpu*, kind: direct, bandwidth: 50 GB/s}]\n"
    assert path(machine(text), "tpu0", "tpu2") == "tpu0 tpu1 tpu2"
