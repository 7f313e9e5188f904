"""Network cards: every device takes its own, so that all cards of a node carry traffic at once."""

from __future__ import annotations

from collections import Counter

import pytest

from hwsim import api as hwsim
from hwsim.communication import timing
from hwsim.machine import Machine

GIB = 2**30


def two(node: str, link: str) -> Machine:
    parts = f"{{node: {{kind: machine, use: {node}, count: 2}}, sw: {{kind: switch, ports: 64}}}}"
    return hwsim.load_machine(f"hwsim: machine/1\nclass: ideal\nparts: {parts}\nlinks: [{{between: [node*.nic*, sw], {link}}}]\n")


def node(gpus: int, cards: int) -> Machine:
    """Two nodes of so many GPUs and cards behind one switch."""
    parts = f"s: {{kind: switch}}, gpu: {{kind: gpu, use: a100-sxm-40gb, pcie: 5, count: {gpus}}}, "
    parts += f"nic: {{kind: nic, bandwidth: 100 Gb/s, count: {cards}}}"
    links = "[{name: slot, between: [s, gpu*], kind: pcie, gen: 5, lanes: 16}, "
    links += "{name: card, between: [s, nic*], kind: pcie, gen: 4, lanes: 16}]"
    machine = f"{{node: {{kind: machine, count: 2, parts: {{{parts}}}, links: {links}}}, sw: {{kind: switch}}}}"
    return hwsim.load_machine(
        f"hwsim: machine/1\nclass: ideal\nparts: {machine}\n"
        f"links: [{{between: [node*.nic*, sw], kind: ethernet, rate: 100 Gb/s}}]\n"
    )


def cards(machine: Machine, a: str, b: str) -> dict[str, float]:
    """Bytes out of every card for one byte between the two."""
    drawn = machine.transfer(a, b, 1e9).moved
    return {name.removesuffix(".tx"): amount / 1e9 for name, amount, _ in drawn if name.endswith(".tx")}


def busbw(machine: Machine, size: float) -> float:
    """As nccl-tests print it, in B/s."""
    gpus = machine.select("node*.gpu*")
    flows = timing.timed(machine, None, "all-reduce", gpus, size)
    return 2 * (len(gpus) - 1) / len(gpus) * size / flows.alone(machine.rates())


@pytest.mark.parametrize(
    ("gpus", "have", "gpu", "expected"),
    [(2, 2, 0, [0]), (2, 2, 1, [1]), (2, 8, 1, [4, 5, 6, 7]), (4, 2, 1, [0]), (4, 2, 2, [1]), (1, 3, 0, [0, 1, 2])],
)
def test_a_gpu_takes_the_cards_at_its_place(gpus: int, have: int, gpu: int, expected: list[int]) -> None:
    machine = node(gpus, have)
    found = cards(machine, f"node0.gpu{gpu}", f"node1.gpu{gpu}")
    assert found == pytest.approx({f"node0.nic{card}": 1 / len(expected) for card in expected})


def test_the_ends_each_choose_on_their_own_side() -> None:
    stops = [link.target for link in node(2, 2).route("node0.gpu1", "node1.gpu0")]
    assert stops == ["node0.s", "node0.nic1", "sw", "node1.nic0", "node1.s", "node1.gpu0"]


def test_a_spread_transfer_is_as_fast_as_its_cards_together() -> None:
    seconds = {have: (m := node(1, have)).transfer("node0.gpu0", "node1.gpu0", 4e9).demand.alone(m.rates()) for have in (1, 2, 4)}
    assert seconds[1] / seconds[2] == pytest.approx(2, rel=1e-3)
    assert seconds[1] / seconds[4] == pytest.approx(4, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "link"), [("dgx-h100", "kind: infiniband, use: ndr400"), ("p5.48xlarge", "kind: ethernet, use: 100gbe")]
)
def test_every_gpu_of_a_node_sends_at_50_gb_s_to_its_twin_at_once(name: str, link: str) -> None:
    machine = two(name, link)
    load: Counter[str] = Counter()
    for gpu in range(8):
        for capacity, amount in machine.transfer(f"node0.gpu{gpu}", f"node1.gpu{gpu}", 1e9).demand.amounts:
            load[capacity] += amount / machine.capacities[capacity].rate  # type: ignore[assignment]
    assert 1e9 / max(load.values()) == pytest.approx(50e9, rel=0.03)


@pytest.mark.parametrize(
    ("name", "link", "low", "high"),
    [
        ("dgx-h100", "kind: infiniband, use: ndr400", 350e9, 480e9),
        ("dgx-a100", "kind: infiniband, use: hdr200", 180e9, 200e9),
        ("p5.48xlarge", "kind: ethernet, use: 100gbe", 300e9, 480e9),  # a tree between two nodes sends each byte once
        ("p4d.24xlarge", "kind: ethernet, use: 100gbe", 50e9, 0.75 * 50e9 * 15 / 8),  # a tree is faster than rings
    ],
)
def test_two_nodes_all_reduce_at_the_rate_of_all_their_cards(name: str, link: str, low: float, high: float) -> None:
    assert low <= busbw(two(name, link), 8 * GIB) <= high
