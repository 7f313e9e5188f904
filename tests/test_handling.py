"""How bytes are moved: messages of a protocol, pinned and pageable memory, engines, cores and kernels."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim import api
from hwsim.demand import Cost
from hwsim.machine import Machine, TransferOptions
from hwsim.ops.op import CannotPlace
from hwsim.units import parse
from hwsim.views.explain.derivation import substitute_inputs

HOST = "kind: cpu, cores: 4, flop: {fp32: 1 GFLOP/s}, memory: {bandwidth: 50 GB/s}, core_bandwidth: 16 GB/s"
GPU = (
    "kind: gpu, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 1 TB/s}, copies: {setup: 2 us, fetch: 1 us, waited: 30 us,"
    " fill: 8 kB, local: 80 %, local_setup: 4 us, pageable: 4 GB/s, kernel_host: 5 GB/s, kernel_peer: 20 GB/s,"
    " store_setup: 100 ns, stores: 8 GB/s}"
)
sizes = st.floats(1, 1e11)


def machine(text: str) -> Machine:
    return api.load_machine("hwsim: machine/1\nclass: ideal\n" + text)


@pytest.fixture(scope="module")
def box() -> Machine:
    slot = "{between: [cpu, gpu*], kind: pcie, gen: 3, lanes: 16, efficiency: 80 %, fetches: 90 %, two_way: 1.5}"
    bridge = "{between: [gpu0, gpu1], kind: nvlink, gen: 2}"
    return machine(f"parts: {{cpu: {{{HOST}}}, gpu: {{{GPU}, count: 2}}}}\nlinks: [{slot}, {bridge}]\n")


@pytest.fixture(scope="module")
def net() -> Machine:
    nic = "{kind: nic, bandwidth: 10 Gb/s, protocol: tcp, overhead: {tcp: 3 us, udp: 2 us, rdma: 100 ns}, message_rate: 5e6 1/s}"
    node = f"{{kind: machine, count: 2, parts: {{cpu: {{{HOST}}}, nic: {nic}}}, "
    slot = "links: [{between: [cpu, nic], kind: pcie, gen: 3, lanes: 8}]}"
    switch = "{kind: switch, latency: 1 us, forwarding: store-and-forward}"
    wire = "{between: [node*.nic, sw], kind: ethernet, rate: 10 Gb/s, mtu: 1500 B, length: 100 m}"
    return machine(f"parts: {{node: {node}{slot}, sw: {switch}}}\nlinks: [{wire}]\n")


def alone(of: Machine, a: str, b: str, size: float, handling: TransferOptions | None = None) -> float:
    return of.transfer(a, b, size, handling or TransferOptions()).demand.alone(of.rates())


LINK = 16 * 8e9 * 128 / 130 / 8 * 0.8


def test_a_copy_out_of_a_gpu_is_set_up_and_flows(box: Machine) -> None:
    assert alone(box, "gpu0", "cpu", 1e6) == pytest.approx(2e-6 + 1e6 / LINK)


def test_a_copy_into_a_gpu_fetches_fills_and_is_slower(box: Machine) -> None:
    fill = 1e6 * 8e3 / (1e6 + 8e3) / LINK
    assert alone(box, "cpu", "gpu0", 1e6) == pytest.approx(3e-6 + fill + 1e6 / (0.9 * LINK))


def test_waiting_for_a_copy_takes_longer(box: Machine) -> None:
    more = alone(box, "gpu0", "cpu", 1e6, TransferOptions(waited=True)) - alone(box, "gpu0", "cpu", 1e6)
    assert more == pytest.approx(30e-6)


def test_pageable_memory_goes_through_a_core_and_three_times_through_memory(box: Machine) -> None:
    cost = box.transfer("cpu", "gpu0", 1e9, TransferOptions(pages="pageable"))
    drawn = dict(cost.demand.amounts)
    assert drawn["cpu.memory"] == pytest.approx(3 * 1e9 / 50e9)
    assert drawn["cpu.cores"] == pytest.approx(1e9 / 4e9)
    assert cost.demand.body(box.rates()) == pytest.approx(1e9 / 4e9)


def test_without_a_rate_of_its_own_a_pageable_copy_is_a_core_reading_and_writing() -> None:
    gpu = "kind: gpu, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 1 TB/s}"
    slot = "{between: [cpu, gpu], kind: pcie, bandwidth: 16 GB/s}"
    of = machine(f"parts: {{cpu: {{{HOST}}}, gpu: {{{gpu}}}}}\nlinks: [{slot}]\n")
    assert alone(of, "cpu", "gpu", 16e9) == pytest.approx(1.0)
    assert alone(of, "cpu", "gpu", 16e9, TransferOptions(pages="pageable")) == pytest.approx(2.0)


def test_a_core_that_copies_does_nothing_else(box: Machine) -> None:
    cost = box.transfer("cpu", "gpu0", 1e6, TransferOptions(by="cpu"))
    assert dict(cost.demand.holds) == {"cpu.cores": 0.25}
    assert cost.demand.body(box.rates()) == pytest.approx(1e6 / 8e9)
    assert alone(box, "cpu", "gpu0", 1, TransferOptions(by="cpu")) == pytest.approx(100e-9)


def test_a_core_that_reads_over_the_bus_waits_for_every_line() -> None:
    gpu = GPU.replace("memory: {bandwidth: 1 TB/s}", "memory: {bandwidth: 1 TB/s, latency: 400 ns}")
    slot = "{between: [cpu, gpu], kind: pcie, bandwidth: 16 GB/s, latency: 300 ns}"
    of = machine(f"parts: {{cpu: {{{HOST}}}, gpu: {{{gpu}}}}}\nlinks: [{slot}]\n")
    by = TransferOptions(by="cpu")
    assert alone(of, "gpu", "cpu", 8, by) == pytest.approx(1e-6, rel=0.01)  # there, the memory, and back
    assert alone(of, "gpu", "cpu", 32, by) == pytest.approx(2e-6, rel=0.01)
    assert alone(of, "gpu", "cpu", 1e6, by) == pytest.approx(2e-6 + (1e6 - 64) * 1e-6 / (7 * 64))
    assert alone(of, "cpu", "gpu", 1e6, by) < 0.1 * alone(of, "gpu", "cpu", 1e6, by)  # stores are posted
    stated = machine(
        f"parts: {{cpu: {{{HOST}}}, gpu: {{{gpu.replace('stores:', 'loads: 500 MB/s, stores:')}}}}}\nlinks: [{slot}]\n"
    )
    assert alone(stated, "gpu", "cpu", 1e6, by) == pytest.approx(2e-6 + 1e6 / 500e6)


def test_a_kernel_that_copies_has_its_own_rate(box: Machine) -> None:
    assert alone(box, "gpu0", "cpu", 1e9, TransferOptions(by="sm")) == pytest.approx(0.2)
    assert alone(box, "gpu0", "gpu1", 1e9, TransferOptions(by="sm")) == pytest.approx(0.05)


def test_a_copy_inside_a_gpu_reads_and_writes_at_what_is_reached(box: Machine) -> None:
    assert alone(box, "gpu0", "gpu0", 1e9) == pytest.approx(4e-6 + 2e9 / (0.8 * 1e12))


def test_both_directions_share_what_the_link_carries_together(box: Machine) -> None:
    there, back = (dict(box.transfer(*ends, 1e9).demand.amounts) for ends in (("cpu", "gpu0"), ("gpu0", "cpu")))
    shared = there.keys() & back.keys() - {"cpu.memory", "gpu0.memory"}
    assert shared == {"pcie:cpu<->gpu0"}
    assert box.rates()["pcie:cpu<->gpu0"] == pytest.approx(1.5 * LINK)


def test_one_message_of_tcp_takes_both_ends_the_way_and_its_frames(net: Machine) -> None:
    wire = 4096 + 3 * 90
    expected = (
        2 * 3e-6  # both ends
        + 1e-6  # the switch
        + 1538 / 1.25e9  # which stores a packet
        + 2 * 100 / (2 / 3 * 299792458)
        + wire / 1.25e9
    )
    assert alone(net, "node0.cpu", "node1.cpu", 4096) == pytest.approx(expected)


def test_many_messages_are_bound_by_a_core_then_by_the_card_then_by_the_wire(net: Machine) -> None:
    def each(size: float, protocol: str, n: int = 100_000) -> float:
        handling = TransferOptions(protocol=protocol, messages=n)  # type: ignore[arg-type]
        return alone(net, "node0.cpu", "node1.cpu", n * size, handling) / n

    assert each(8, "tcp") == pytest.approx(3e-6, rel=1e-3)
    assert each(8, "udp") == pytest.approx(2e-6, rel=1e-3)
    assert each(8, "rdma") == pytest.approx(1 / 5e6, rel=1e-2)
    assert each(1e5, "tcp") == pytest.approx((1e5 + 70 * 90) / 1.25e9, rel=1e-2)


def test_cores_are_busy_with_tcp_and_not_with_rdma(net: Machine) -> None:
    tcp = dict(net.transfer("node0.cpu", "node1.cpu", 1e3, TransferOptions(protocol="tcp", messages=10)).demand.amounts)
    rdma = dict(net.transfer("node0.cpu", "node1.cpu", 1e3, TransferOptions(protocol="rdma", messages=10)).demand.amounts)
    assert tcp["node0.cpu.cores"] == tcp["node1.cpu.cores"] == pytest.approx(30e-6)
    assert "node0.cpu.cores" not in rdma


@pytest.mark.parametrize("slot", ["kind: pcie", "kind: direct"])
@pytest.mark.parametrize("wire", ["kind: direct, bandwidth: 10 Gb/s", "kind: ethernet, rate: 10 Gb/s, mtu: 1500 B"])
@pytest.mark.parametrize("middle", [True, False])
def test_a_card_sends_what_leaves_and_receives_what_arrives_by_whatever_link_its_host_has_it(
    slot: str, wire: str, middle: bool
) -> None:
    """A direct link from a card to its own host is no network: else both directions would draw from each half of the card."""
    card = "{kind: nic, bandwidth: 10 Gb/s, protocol: rdma, overhead: {rdma: 1 us}, message_rate: 5e6 1/s, count: 2}"
    ends = f"{{between: [nic0, sw], {wire}}}, {{between: [nic1, sw], {wire}}}" if middle else f"{{between: [nic0, nic1], {wire}}}"
    slots = ", ".join(f"{{between: [host{n}, nic{n}], {slot}, bandwidth: 16 GB/s}}" for n in range(2))
    of = machine(f"parts: {{host: {{{HOST}, count: 2}}, nic: {card}, sw: {{kind: switch}}}}\nlinks: [{slots}, {ends}]\n")
    demand = of.transfer("host0", "host1", 1e9, TransferOptions(protocol="rdma")).demand
    drawn = {capacity for capacity, _ in demand.amounts if capacity.startswith("nic")}
    assert drawn == {"nic0.tx", "nic0.tx_messages", "nic1.rx", "nic1.rx_messages"}


def test_an_oversubscribed_switch_shares_its_backplane() -> None:
    hosts = f"{{{HOST}, count: 4}}"
    of = machine(
        f"parts: {{host: {hosts}, sw: {{kind: switch, oversubscription: 2}}}}\n"
        "links: [{between: [host*, sw], kind: direct, bandwidth: 1 GB/s}]\n"
    )
    assert of.rates()["sw.backplane"] == pytest.approx(2e9)
    assert dict(of.transfer("host0", "host1", 1e9).demand.amounts)["sw.backplane"] == 1e9


handlings = st.builds(
    TransferOptions, pages=st.sampled_from(["pinned", "pageable"]), by=st.sampled_from(["dma", "cpu", "sm"]), waited=st.booleans()
)
ends = st.sampled_from([("cpu", "gpu0"), ("gpu0", "cpu"), ("gpu0", "gpu1"), ("gpu0", "gpu0"), ("cpu", "cpu")])


@given(ends, sizes, sizes, handlings)
def test_more_bytes_are_never_faster(
    box: Machine, way: tuple[str, str], size: float, more: float, handling: TransferOptions
) -> None:
    few, many = (alone(box, *way, amount, handling) for amount in (size, size + more))
    assert 0 <= few <= many * (1 + 1e-12) < math.inf


@given(st.floats(1, 1e6), st.integers(1, 1000), st.integers(0, 1000), st.sampled_from(["tcp", "udp", "rdma"]))
def test_more_messages_are_never_faster(net: Machine, size: float, count: int, more: int, protocol: str) -> None:
    few, many = (
        alone(net, "node0.cpu", "node1.cpu", n * size, TransferOptions(protocol=protocol, messages=n))  # type: ignore[arg-type]
        for n in (count, count + more)
    )
    assert few <= many * (1 + 1e-12)


@given(ends, sizes, handlings)
def test_the_derivation_says_what_the_demand_takes(
    box: Machine, way: tuple[str, str], size: float, handling: TransferOptions
) -> None:
    _agrees(box, box.transfer(*way, size, handling))


@given(st.floats(1, 1e6), st.integers(1, 1000), st.sampled_from(["tcp", "udp", "rdma"]))
def test_so_it_does_with_messages(net: Machine, size: float, count: int, protocol: str) -> None:
    handling = TransferOptions(protocol=protocol, messages=count)  # type: ignore[arg-type]
    _agrees(net, net.transfer("node0.cpu", "node1.cpu", size * count, handling))


def _agrees(of: Machine, cost: Cost) -> None:
    latency = sum(term.seconds for term in cost.why if term.kind == "latency")
    body = max((term.seconds for term in cost.why if term.kind != "latency"), default=0.0)
    assert cost.demand.latency == pytest.approx(latency)
    assert cost.demand.body(of.rates()) == pytest.approx(body, rel=1e-9)
    for term in cost.why:
        if any(name in term.formula for name, _, _ in term.inputs):
            assert _worked_out(substitute_inputs(term)) == pytest.approx(term.seconds, rel=1e-4)


def _worked_out(numbers: str) -> float:
    """The arithmetic of a line, units put in SI."""
    plain = re.sub(r"[0-9.]+(?:e[+-]?[0-9]+)?(?: (?!x )(?:1/s|[A-Za-z%][A-Za-z%/]*))?", lambda found: _si(found.group()), numbers)
    return float(eval(plain.replace(" x ", " * "), {"__builtins__": {}}))


def _si(text: str) -> str:
    number, _, unit = text.partition(" ")
    return repr(float(number)) if not unit else repr(parse(text).value) if unit != "m/s" else repr(float(number))


def test_nobody_to_move_it_is_a_mistake(box: Machine) -> None:
    from hwsim.ops.op import Scope
    from hwsim.ops.transfer import Copy

    with pytest.raises(CannotPlace, match="requires a cpu at one end, got gpu0 and gpu1"):
        Copy(source="gpu0", target="gpu1", bytes=1.0, by="cpu").lower(Scope(box))
    with pytest.raises(CannotPlace, match="pageable"):
        Copy(source="gpu0", target="gpu1", bytes=1.0, memory="pageable").lower(Scope(box))
