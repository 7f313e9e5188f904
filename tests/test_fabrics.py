"""Collectives between nodes take the constants of their network, and nothing else changes."""

from __future__ import annotations

import pytest

from hwsim import api
from hwsim.communication import timing
from hwsim.communication.measured import measured
from hwsim.machine import Machine
from hwsim.machine.libraries.fabric import Fabric
from hwsim.spec import SpecError


def cluster(nic: str, wire: str, more: str = "", nodes: int = 2) -> Machine:
    return api.load_machine(f"""
hwsim: machine/1
{more}
parts:
  node:
    kind: machine
    count: {nodes}
    parts:
      cpu: {{kind: cpu, use: xeon-8480}}
      gpu: {{kind: gpu, use: h100-sxm, count: 2}}
      nvs: {{kind: switch, use: nvswitch-h100}}
      nic: {{kind: nic, {nic}}}
    links:
      - {{between: [cpu, gpu*], kind: pcie, use: pcie5-x16}}
      - {{between: [cpu, nic], kind: pcie, use: pcie5-x16}}
      - {{between: [gpu*, nvs], kind: nvlink, use: nvlink4, links: 18}}
  leaf: {{kind: switch}}
links: [{{between: [node*.nic, leaf], kind: {wire}}}]
""")


def small(machine: Machine, nodes: int = 2) -> float:
    gpus = machine.devices_of("gpu")[: 2 * nodes]
    return timing.timed(machine, None, "all-reduce", gpus, 8.0).alone(machine.rates())


INFINIBAND, EFA = ("use: connectx-7-ndr400", "infiniband, use: ndr400"), ("use: efa-400g", "ethernet, use: 400gbe")


def test_a_step_of_a_small_message_is_that_of_the_network() -> None:
    """Two nodes: two steps between them, whatever else an all-reduce has."""
    steps = [measured(Fabric, name).ll for name in ("infiniband", "efa")]
    assert small(cluster(*EFA)) - small(cluster(*INFINIBAND)) == pytest.approx(2 * (steps[1] - steps[0]), rel=0.01)


def test_within_a_node_the_network_does_not_matter() -> None:
    assert small(cluster(*EFA), nodes=1) == small(cluster(*INFINIBAND), nodes=1)


def test_a_stated_network_comes_before_that_of_the_card() -> None:
    stated = cluster(*EFA, more="collectives: {fabric: {use: infiniband}}")
    assert small(stated) == pytest.approx(small(cluster(*INFINIBAND)), rel=0.01)


@pytest.mark.parametrize("order", [(0, 0, 1), (0, 1, 0), (1, 0, 0)])
def test_nodes_on_different_networks_are_refused_in_any_order_unless_the_machine_states_one(order: tuple[int, ...]) -> None:
    def mixed(more: str) -> Machine:
        nodes = "".join(
            f"""
  n{number}:
    kind: machine
    parts:
      cpu: {{kind: cpu, use: xeon-8480}}
      gpu: {{kind: gpu, use: h100-sxm}}
      nic: {{kind: nic, {(INFINIBAND, EFA)[network][0]}}}
    links: [{{between: [cpu, gpu], kind: pcie, use: pcie5-x16}}, {{between: [cpu, nic], kind: pcie, use: pcie5-x16}}]"""
            for number, network in enumerate(order)
        )
        links = "\n".join(f"  - {{between: [n{n}.nic, leaf], kind: {(INFINIBAND, EFA)[way][1]}}}" for n, way in enumerate(order))
        return api.load_machine(f"hwsim: machine/1\n{more}\nparts:{nodes}\n  leaf: {{kind: switch}}\nlinks:\n{links}\n")

    with pytest.raises(SpecError, match="different networks: efa, infiniband"):
        small(mixed(""), nodes=3)
    assert small(mixed("collectives: {fabric: {use: roce}}"), nodes=3) > 0


@pytest.mark.parametrize("size", [8.0, 1e6])
def test_a_training_takes_no_tree_of_a_library_file_whichever_way_the_machine_names_the_network(size: float) -> None:
    """With `tree:` of its own, it does."""

    def time(machine: Machine) -> float:
        flows = timing.timed(machine, None, "all-reduce", machine.devices_of("gpu"), size, trees=False)
        return flows.alone(machine.rates())

    stated, own = (cluster(*EFA, f"collectives: {{fabric: {{use: efa{tree}}}}}", nodes=32) for tree in ("", ", tree: 99 %"))
    assert time(stated) == pytest.approx(time(cluster(*EFA, nodes=32)), rel=1e-9)
    assert time(own) != time(stated)


def test_a_card_on_an_unknown_network_is_a_mistake_of_the_machine() -> None:
    with pytest.raises(SpecError, match="no fabric 'nonsense'"):
        cluster(f"{EFA[0]}, fabric: nonsense", EFA[1])


@pytest.mark.parametrize(
    ("nic", "wire", "case"),
    [(*INFINIBAND, "device"), ("use: slingshot-200", "slingshot, use: slingshot-200", "generation")],
)
def test_a_network_that_nobody_measured_is_less_certain(nic: str, wire: str, case: str) -> None:
    machine = cluster(nic, wire)
    flows = timing.timed(machine, None, "all-reduce", machine.devices_of("gpu"), 8.0)
    doubts = [doubt for phase in flows.phases for term in phase.cost.why for doubt in term.doubts]
    assert {(doubt.regime, doubt.case) for doubt in doubts} == {("network/small", case)}


def test_a_class_with_a_steady_rate_keeps_its_write_cache() -> None:
    """`unless: write` excludes the cache where a file states the rate, not where the class itself fills it in."""
    drives = {
        rate: api.load_machine(f"hwsim: machine/1\nparts: {{d: {{kind: ssd, class: client-gen4, size: 2 TB{rate}}}}}\n")
        for rate in ("", ", write: 2 GB/s")
    }
    caches = {rate: getattr(machine.device("d").model, "cache") for rate, machine in drives.items()}  # noqa: B009
    assert caches[""].size == pytest.approx(400e9)
    assert caches[", write: 2 GB/s"] is None
