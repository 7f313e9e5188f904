"""What a machine has only so much of: lanes, ports, DIMM slots, power."""

from __future__ import annotations

import pytest

from hwsim import api
from hwsim.machine import Machine
from hwsim.spec import SpecError

CPU = "kind: cpu, cores: 4, flop: {fp32: 1 GFLOP/s}, lanes: 20"
GPU = "kind: gpu, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 1 TB/s}, lanes: 16, power: 300 W"


def machine(text: str) -> Machine:
    return api.load_machine("hwsim: machine/1\nclass: ideal\n" + text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            (
                f"parts: {{cpu: {{{CPU}, memory: {{bandwidth: 9 GB/s}}}}, gpu: {{{GPU}, count: 2}}}}\n"
                "links: [{between: [cpu, gpu*], kind: pcie, gen: 3, lanes: 16}]"
            ),
            "cpu has 20 lanes, but 32 are used",
        ),
        (
            (
                "parts: {nic: {kind: nic, bandwidth: 1 GB/s, ports: 1}, sw: {kind: switch, count: 2}}\n"
                "links: [{between: [nic, sw*], kind: ethernet, rate: 1 Gb/s}]"
            ),
            "nic has 1 ports, but 2 are used",
        ),
        (
            "parts: {sw: {kind: switch, nvlinks: 3, count: 2}}\nlinks: [{between: [sw0, sw1], kind: nvlink, gen: 2, links: 4}]",
            "sw0 has 3 nvlinks, but 4 are used (and 1 more)",
        ),
        (f"parts: {{cpu: {{{CPU}, dimm_slots: 4, memory: {{bandwidth: 9 GB/s, dimms: 6}}}}}}", "6 DIMMs, but there are 4 slots"),
    ],
)
def test_more_than_there_is_is_a_mistake(text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        machine(text)
    assert message in str(caught.value)


def test_a_link_runs_at_the_generation_of_the_slower_end() -> None:
    """Each card of a group at its own, and said; a slot slower than its card needs no word."""
    cards = ", ".join(f"{name}: {{{GPU}, pcie: {gen}}}" for name, gen in (("old", 3), ("new", 5), ("newer", 6)))
    parts = f"parts: {{cpu: {{{CPU.replace('20', '48')}, memory: {{bandwidth: 9 GB/s}}}}, {cards}}}"
    made = machine(f"{parts}\nlinks: [{{between: [cpu, [old, new, newer]], kind: pcie, gen: 5, lanes: 16}}]")
    alone = machine(f"{parts}\nlinks: [{{between: [cpu, old], kind: pcie, gen: 3, lanes: 16}}]")
    rates = {name: made.capacities[f"pcie:cpu->{name}"].rate for name in ("old", "new", "newer")}
    assert rates["old"] == alone.capacities["pcie:cpu->old"].rate
    assert rates["new"] == rates["newer"] == pytest.approx(4 * rates["old"])
    (warning,) = made.warnings
    assert warning.text == "pcie: old has PCIe 3, its slot 5: the link runs at 3"
    assert alone.warnings == ()


def test_more_power_than_the_supply_gives_is_warned_of() -> None:
    parts = f"parts: {{gpu: {{{GPU}, count: 4}}, sw: {{kind: switch, power: 50 W}}}}"
    assert machine(parts).warnings == ()
    assert machine(f"supply: 2 kW\n{parts}").warnings == ()
    (warning,) = machine(f"supply: 1 kW\n{parts}").warnings
    assert warning.text == "the machine: its parts draw up to 1.25 kW, but its power supply delivers 1 kW"


def test_power_counts_through_machines_inside() -> None:
    node = f"{{kind: machine, count: 3, name: node, parts: {{gpu: {{{GPU}}}}}}}"
    assert machine(f"supply: 1 kW\nparts: {{node: {node}}}").warnings == ()
    assert len(machine(f"supply: 800 W\nparts: {{node: {node}}}").warnings) == 1


@pytest.mark.parametrize("name", ["dgx-2", "dgx-a100", "dgx-h100", "workstation"])
def test_supplies_of_real_machines_suffice(name: str) -> None:
    assert api.load_machine(name).warnings == ()
