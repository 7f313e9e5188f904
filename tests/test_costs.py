"""Costs: energy, carbon and money of runs; the laws that hold for all of them, closed forms, and what has no price."""

from __future__ import annotations

import pytest

from hwsim import api
from hwsim.costs import cost_of, energy_at, energy_of, load_prices, power_of, price_of
from hwsim.spec import SpecError

MACHINE = """
hwsim: machine/1
name: two GPUs
parts:
  cpu: {kind: cpu, cores: 8, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 100 GB/s}, power: {idle: 20 W, loaded: 100 W}}
  gpu: {kind: gpu, count: 2, flop: {fp32: 10 TFLOP/s}, memory: {bandwidth: 1 TB/s}, class: ideal,
        power: {idle: 50 W, loaded: 400 W, memory: 250 W}, price: {purchase: 10000 USD, on_demand: 2 USD/h}}
links:
  - {between: [cpu, gpu*], kind: pcie, gen: 4, lanes: 16}
"""
WORKLOAD = """
hwsim: workload/1
program:
  - compute: {device: gpu0, flop: 10 TFLOP, dtype: fp32}
  - compute: {device: gpu0, bytes: 1 TB}
"""


def test_energy_of_a_closed_form() -> None:
    run = api.simulate(MACHINE, WORKLOAD)
    energy = energy_of(run)
    assert energy is not None
    seconds = run.makespan_s
    assert energy.complete
    gpus = 50.0 * 2 * seconds + 350.0 + 200.0
    assert energy.joules.value == pytest.approx(gpus * 1.25 + 20.0 * seconds, rel=1e-9)
    assert sum(each.joules for each in energy.items) == pytest.approx(energy.joules.value, rel=1e-12)


def test_energy_at_is_the_same_law() -> None:
    machine = api.load_machine(MACHINE)
    power = power_of(machine)
    idle, loaded = energy_at(machine, 10.0, {}), energy_at(machine, 10.0, {"gpu": 1.0, "cpu": 1.0})
    assert idle is not None
    assert loaded is not None
    assert idle.joules.value == pytest.approx(power.idle.value * 10)
    assert loaded.joules.value == pytest.approx(power.loaded.value * 10)


def test_a_part_without_a_price_is_named_never_0() -> None:
    machine = api.load_machine(MACHINE)
    priced = price_of(machine, load_prices("hwsim: prices/1\nsite: {electricity: 0.1 USD/kWh, hosting: 0 USD/kW/month}\n"))
    assert priced.purchase is not None
    assert priced.purchase.value == 20000
    assert priced.missing == ("cpu",)
    cost = cost_of(priced, 3600.0, energy_at(machine, 3600.0, {}), load_prices())
    assert cost.total is None
    assert "cpu" in cost.missing


def test_a_rent_of_gpus_has_the_node_in_it() -> None:
    priced = price_of(api.load_machine(MACHINE))
    cost = cost_of(priced, 7200.0, rent="on_demand")
    assert cost.total is not None
    assert cost.total.value == pytest.approx(8.0)


def test_mistakes_have_their_place() -> None:
    with pytest.raises(SpecError, match=r"<text>:3:\d+: '3 USD/h' is a price per time, but an amount of money is needed"):
        load_prices("hwsim: prices/1\nparts:\n  a: {purchase: 3 USD/h}\n")
