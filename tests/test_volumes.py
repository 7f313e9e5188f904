"""Volumes: storage that is rented along with a machine."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hwsim import api
from hwsim.costs.amount import Amount
from hwsim.costs.cost import cost_of
from hwsim.costs.energy import energy_at
from hwsim.costs.machine_price import price_of
from hwsim.costs.power import power_of
from hwsim.costs.prices import load_prices
from hwsim.devices.offers import PAYMENT_OPTIONS, PaymentOption
from hwsim.planning import plan
from hwsim.spec import SpecError
from hwsim.units import MONTH
from tests.command import hwsim
from tests.test_costs import PRICES

DISKS = """hwsim: machine/1
name: a computer with a volume
parts:
  cpu: {kind: cpu, cores: 8, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 100 GB/s}, class: ideal,
        power: {idle: 20 W, loaded: 100 W},
        price: {purchase: 4000 USD, on_demand: 1 USD/h, reserved: {value: 0.5 USD/h, term: 1 day}}}
  disk: {kind: volume, iops: 3000 1/s, bandwidth: 125 MiB/s, size: 500 GiB, class: ideal,
         price: {capacity: 0.08 USD/GiB/month, iops: {over: 3000 1/s, each: 0.005 USD/month},
                 throughput: {over: 125 MiB/s, each: 0.04 USD/month, of: 1 MiB/s}}}
"""


def rent_of(machine: str, way: PaymentOption = "on_demand") -> float:
    """USD a month of the volumes of a machine."""
    priced = price_of(api.load_machine(machine), load_prices())
    return sum(volume.amount.value for volume in priced[way].volumes) * MONTH


@pytest.mark.parametrize(("key", "value", "more"), [
    ("iops: 3000 1/s", "iops: 3000 1/s", 0.0),
    ("iops: 3000 1/s", "iops: 100 1/s", 0.0),
    ("iops: 3000 1/s", "iops: 16000 1/s", 65.0),
    ("bandwidth: 125 MiB/s", "bandwidth: 1000 MiB/s", 35.0),
    ("size: 500 GiB", "size: 1 TiB", 0.08 * 524),
])  # fmt: skip
def test_a_volume_costs_by_size_accesses_and_bytes(key: str, value: str, more: float) -> None:
    machine = DISKS.replace(key + ",", value + ",")
    for way in PAYMENT_OPTIONS:
        assert rent_of(machine, way) == pytest.approx(40.0 + more)


def test_a_volume_is_paid_along_with_each_way_to_pay() -> None:
    machine, prices = api.load_machine(DISKS), load_prices(PRICES.replace("parts: {cpu: 2000 USD}\n", ""))
    priced, seconds = price_of(machine, prices), 12 * 3600.0
    assert priced["purchase"].missing == ()
    assert (priced["purchase"].amount, priced["on_demand"].amount) == (Amount.exact(4000.0), Amount.exact(1.0 / 3600.0))
    volume = 40.0 / MONTH * seconds
    energy = energy_at(machine, seconds, {})
    for way in ("on_demand", "block"):  # a reserved day is paid in whole at half the price; the volume is not
        cost = cost_of(priced[way], seconds, None, prices)
        assert cost.total.value == pytest.approx(12.0 + volume)
    bought = cost_of(priced["purchase"], seconds, energy, prices)
    assert {item.name: item.amount.value for item in bought.items}["volumes"] == pytest.approx(volume)
    three = cost_of(priced["purchase"], seconds, energy, prices, nodes=3)
    assert {charge.name: charge.amount.value for charge in three.items}["volumes"] == pytest.approx(3 * volume)


def test_tiers_of_a_volume_meet() -> None:
    cases = (("32 kIOPS", 2080.0), ("64 kIOPS", 2080.0 + 1456.0), ("100 kIOPS", 2080.0 + 1456.0 + 1152.0))
    for iops, paid in cases:
        machine = DISKS[: DISKS.index("  disk:")] + f"  disk: {{kind: volume, use: ebs-io2, iops: {iops}, size: 100 GiB}}\n"
        assert rent_of(machine) == pytest.approx(12.5 + paid)


def test_the_price_of_an_instance_stands_with_another_volume() -> None:
    lists = load_prices()
    usual = price_of(api.load_machine("c5.18xlarge"), lists)
    other = price_of(api.load_machine({"hwsim": "machine/1", "use": "c5.18xlarge", "parts": {"disk": {"use": "ebs-io2"}}}), lists)
    assert usual["on_demand"].amount is not None
    assert usual["on_demand"].amount == other["on_demand"].amount
    assert [volume.name for volume in other["on_demand"].volumes] == ["ebs-io2"]


def test_a_volume_without_a_price_or_size_is_named() -> None:
    without = re.sub(r",\s*price: {capacity.*}}}", "}", DISKS, flags=re.DOTALL)
    assert price_of(api.load_machine(without))["purchase"].missing == ("disk",)
    assert price_of(api.load_machine(DISKS.replace("size: 500 GiB, ", "")))["purchase"].missing == ("disk",)


@pytest.mark.parametrize(("old", "new", "says"), [
    ("iops: {over: 3000 1/s,", "iops: {over: 3000 GB,", "3000 GB"),
    ("each: 0.04 USD/month,", "each: 0.04 USD,", "price per time"),
    ("of: 1 MiB/s", "of: 0 MiB/s", "expected more than 0, got 0"),
    ("iops: {over: 3000 1/s, each: 0.005 USD/month}", "iops: [{over: 9 1/s, each: 1 USD/h}, {over: 9 1/s, each: 1 USD/h}]",
     "in increasing order of `over`"),
    ("{capacity: 0.08 USD/GiB/month,", "{capacity: 0.08 USD/GiB/month, value: 1 USD/h,", "either `value` or `capacity`"),
    ("{capacity: 0.08 USD/GiB/month,", "{capacity: 5 USD/month,", "5 USD/month"),
    ("{capacity: 0.08 USD/GiB/month,", "{capacity: 0.08 USD/GiB,", "applies to a rental"),
])  # fmt: skip
def test_a_wrong_price_of_a_volume_says_where(old: str, new: str, says: str) -> None:
    assert old in DISKS
    with pytest.raises(SpecError, match=re.escape(says)):
        api.load_machine(DISKS.replace(old, new))


READS = """hwsim: workload/1
program:
  - read: {from: disk, bytes: 16 KiB, times: 21600000, access: random, depth: 64}
"""


def test_a_plan_finds_the_accesses_that_pay(tmp_path: Path) -> None:
    machine, workload = tmp_path / "machine.yaml", tmp_path / "reads.yaml"
    machine.write_text(DISKS)
    workload.write_text(READS)
    asked = {
        "hwsim": "plan/1", "machine": str(machine), "workload": str(workload), "minimise": "cost", "rent": "on_demand",
        "vary": {"machine.disk.iops": ["3 kIOPS", "8 kIOPS", "12 kIOPS"]},
    }  # fmt: skip
    answer = plan(asked)
    assert dict(answer.best.point.values)["machine.disk.iops"] == "8 kIOPS"
    assert plan({**asked, "rent": "purchase"}).best is None  # for how long?
    for_long = plan({**asked, "rent": "purchase", "period": "1 year", "require": ["time at most 1 h"],
                     "site": {"pue": 1.2, "electricity": "0.1 USD/kWh", "hosting": "100 USD/kW/month"}})  # fmt: skip
    assert dict(for_long.best.point.values)["machine.disk.iops"] == "8 kIOPS"


def test_a_price_may_be_worked_out_in_the_file() -> None:
    """As any other number of a machine: so many disks of a price each."""
    text = """
hwsim: machine/1
let: {disks: 3}
parts:
  cpu: {kind: cpu, use: ryzen-9-5950x, price: 100 USD}
  disk:
    {kind: raid, level: 0, members: $disks, hdd: {use: hdd-7200rpm}, price: {purchase: {value: $disks * 240 USD, date: 2026-06}}}
"""
    bought = price_of(api.load_machine(text))["purchase"].amount
    assert bought.value == pytest.approx(820.0)


def test_an_array_draws_what_its_disks_draw() -> None:
    text = "hwsim: machine/1\nparts: {cpu: {kind: cpu, use: ryzen-9-5950x}, disk: {KIND}}"
    kinds = [f"kind: raid, level: 6, members: {members}, hdd: {{use: hdd-7200rpm}}" for members in (4, 16)]
    alone, small, large = (
        power_of(api.load_machine(text.replace("KIND", kind))).loaded.value for kind in ("kind: hdd, use: hdd-7200rpm", *kinds)
    )
    of_one = (large - small) / 12
    assert of_one > 1.0
    assert small - alone == pytest.approx(3 * of_one)


# ---- files of studies, and the best of several plans


def test_a_study_says_how_its_machines_are_paid_for(tmp_path: Path) -> None:
    (tmp_path / "machine.yaml").write_text(DISKS)
    (tmp_path / "reads.yaml").write_text(READS)
    file = tmp_path / "study.yaml"
    head = (
        "hwsim: study/1\nmachine: machine.yaml\nworkload: reads.yaml\npoints: {grid: {machine.disk.iops: [3 kIOPS, 8 kIOPS]}}\n"
    )
    file.write_text(head + "measure: cost\nprices: library\nrent: on_demand\nsite: {pue: 1.2}\n")
    rows = json.loads(hwsim("study", file, "--json").output)["rows"]
    file.write_text(head + "measure: cost\n")
    (tmp_path / "study.journal.jsonl").unlink()
    options = ("--prices", "library", "--rent", "on-demand", "--site", "pue=1.2")
    assert json.loads(hwsim("study", file, "--json", *options).output)["rows"] == rows
    assert [row["measures"]["cost_usd"] for row in rows] == sorted((row["measures"]["cost_usd"] for row in rows), reverse=True)


@pytest.mark.parametrize(("lines", "says"), [
    ("rent: on_demand", "7:1: `rent` requires `prices`"),
    ("prices: library\nprovider: AWSS", "8:1: unknown provider 'AWSS'"),
    ("prices: nowhere", "7:1:"),
    ("prices: library\nrent: on-demand", "8:7:"),
    ("site: {pue: 0.9}", "7:13: a PUE must be at least 1"),
])  # fmt: skip
def test_a_study_with_wrong_prices_says_where(tmp_path: Path, lines: str, says: str) -> None:
    file = tmp_path / "study.yaml"
    head = "hwsim: study/1\nmachine: p3.16xlarge\nworkload: resnet50-dp\npoints:\n  grid:\n    gpus: [4, 8]\n"
    file.write_text(head + lines + "\n")
    assert says in hwsim("study", file, code=2).output


def test_the_best_of_several_plans_has_a_bill() -> None:
    asked = ("estimate", "dgx-h100", "llama-3-8b", "--plan", "auto", "--global-batch", 64, "--tokens", "1e12")
    paid = ("--prices", "library", "--rent", "on-demand")
    found = json.loads(hwsim(*asked, *paid, "--json").output)
    best = found["plans"][0]
    assert found["cost"]["used_s"] == pytest.approx(1e12 / best["tokens_per_s"])
    assert "cost of the fastest plan\n  energy" in hwsim(*asked, *paid).output
    assert "cost" not in json.loads(hwsim(*asked, "--json").output)
