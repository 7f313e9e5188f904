"""Costs: energy, carbon and money of runs; the laws that hold for all of them, closed forms, and what has no price."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim import api
from hwsim.costs.amount import Amount, total
from hwsim.costs.bill import Paying, bill_of
from hwsim.costs.cost import cost_of
from hwsim.costs.energy import Energy, energy_at, energy_of
from hwsim.costs.machine_price import PricedMachine, price_of
from hwsim.costs.power import BEND, BESIDES, power_of
from hwsim.costs.prices import Prices, load_prices
from hwsim.costs.site import Site
from hwsim.results.result import Result
from hwsim.ticks import FEMTO
from hwsim.units import DAY, YEAR
from tests.command import hwsim
from tests.present import present
from tests.test_train_checks import CLUSTER, training

PARTS = """
  cpu: {kind: cpu, cores: 8, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 100 GB/s}, power: {idle: 20 W, loaded: 100 W}}
  gpu: {kind: gpu, count: 2, flop: {fp32: 10 TFLOP/s}, memory: {bandwidth: 1 TB/s}, class: ideal,
        power: {idle: 50 W, loaded: 400 W, memory: 250 W}, price: {purchase: 10000 USD, on_demand: 2 USD/h}}
"""
MACHINE = f"hwsim: machine/1\nname: two GPUs\nparts:{PARTS}links:\n  - {{between: [cpu, gpu*], kind: pcie, gen: 4, lanes: 16}}\n"
WORKLOAD = """hwsim: workload/1
program:
  - compute: {device: gpu0, flop: 10 TFLOP, dtype: fp32}
  - compute: {device: gpu0, bytes: 1 TB}
"""
PRICES = """hwsim: prices/1
date: 2026-06
site: {electricity: 0.10 USD/kWh, hosting: 150 USD/kW/month, pue: 1.2, grid: 400 g/kWh}
parts: {cpu: 2000 USD}
others: {cable: 100 USD}
"""


def energy(machine: Any, workload: Any, site: Site | None = None, **options: Any) -> Energy:
    return present(energy_of(api.simulate(machine, workload, expect=False, **options), site))


# ---- energy: closed forms, and another way to the same number


def by_ops(run: Result) -> float:
    """Joules above idle of the GPUs, op by op, of ops that do not overlap on a GPU."""
    graph, layout = run.timeline.flat.graph, present(run.built).layout
    joules = 0.0
    for op in range(len(run.timeline)):
        number = int(run.timeline.flat.cost[op])
        if number < 0:
            continue
        demand = graph.costs[number].demand
        took = (int(run.timeline.end[op]) - int(run.timeline.start[op])) / FEMTO - demand.latency
        amounts = dict(demand.amounts)
        for name in {amount.rpartition(".")[0] for amount in amounts if ".compute" in amount or amount.endswith(".memory")}:
            spot = layout.find(name)
            if spot is None or spot.part.kind != "gpu":
                continue
            power: Any = spot.part.model and spot.part.model.power
            full = min(amounts.get(f"{name}.compute", 0.0) * float(run.timeline.flat.size[op]), took)
            memory = min(amounts.get(f"{name}.memory", 0.0) * float(run.timeline.flat.size[op]), took - full)
            joules += (power.loaded - power.idle) * full + (power.memory - power.idle) * memory
    return joules


@given(
    st.lists(st.tuples(st.integers(0, 1), st.floats(0, 5), st.floats(0, 5)), min_size=1, max_size=6),
    st.floats(10, 200), st.floats(1, 3), st.floats(0, 1),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_energy_is_that_of_the_ops_and_obeys_its_laws(
    kernels: list[tuple[int, float, float]], idle: float, over: float, part: float
) -> None:
    loaded = idle * over
    curve = f"{{idle: {idle!r} W, loaded: {loaded!r} W, memory: {idle + part * (loaded - idle)!r} W}}"
    machine = MACHINE.replace("{idle: 50 W, loaded: 400 W, memory: 250 W}", curve)
    ops = [
        {"compute": {"device": f"gpu{gpu}", "flop": f"{flop!r} TFLOP", "bytes": f"{moved!r} TB", "dtype": "fp32"}}
        for gpu, flop, moved in kernels
    ]
    run = api.simulate(machine, {"hwsim": "workload/1", "program": ops}, interval=False)
    found, power = present(energy_of(run)), power_of(api.load_machine(machine))
    seconds = run.makespan_s
    assert found.joules.value == pytest.approx(power.idle.value * seconds + (1 + BESIDES) * by_ops(run), rel=1e-9)
    assert math.fsum(item.joules for item in found.items) == pytest.approx(found.joules.value, rel=1e-12)
    assert power.idle.value * seconds * (1 - 1e-9) <= found.joules.value <= power.loaded.value * seconds * (1 + 1e-9)
    assert found.watts <= found.peak * (1 + 1e-9)
    assert found.peak <= power.loaded.value * (1 + 1e-9)
    assert found.joules.low <= found.joules.value <= found.joules.high


@given(st.floats(0, 1), st.floats(0, 1), st.floats(1, 1e6))
def test_energy_of_shares_lies_between_idle_and_loaded(full: float, memory: float, seconds: float) -> None:
    machine = api.load_machine(MACHINE)
    power = power_of(machine)
    found = present(energy_at(machine, seconds, {"gpu": full, "gpu.memory": memory, "cpu": full}))
    assert power.idle.value * seconds <= found.joules.value * (1 + 1e-12)
    assert found.joules.value <= power.loaded.value * seconds * (1 + 1e-12)
    more = present(energy_at(machine, seconds, {"gpu": min(1.0, full + 0.1), "gpu.memory": memory, "cpu": full}))
    assert more.joules.value >= found.joules.value * (1 - 1e-12)


def test_a_machine_at_rest_and_at_work_draws_what_its_parts_say() -> None:
    machine = api.load_machine(MACHINE)
    power = power_of(machine)
    assert (power.idle.value, power.loaded.value) == (20 + 100 * 1.25, 100 + 800 * 1.25)
    idle, loaded = present(energy_at(machine, 10.0, {})), present(energy_at(machine, 10.0, {"gpu": 1.0, "cpu": 1.0}))
    assert idle.joules.value == pytest.approx(power.idle.value * 10)
    assert loaded.joules.value == pytest.approx(power.loaded.value * 10)


def test_a_cpu_at_half_load_draws_less_than_the_middle() -> None:
    machine = api.load_machine(MACHINE.replace("count: 2", "count: 1"))
    half, none = present(energy_at(machine, 1.0, {"cpu": 0.5})), present(energy_at(machine, 1.0, {}))
    assert half.joules.value - none.joules.value == pytest.approx(80 * 0.5 * (1 - BEND / 2))
    assert pytest.approx(1.12, abs=0.02) == (20 + 40) / (20 + 80 * 0.5 * (1 - BEND / 2))  # SPECpower since 2021


def test_what_is_left_out_is_of_the_kind() -> None:
    text = MACHINE.replace("power: {idle: 50 W, loaded: 400 W, memory: 250 W}", "power: 400 W")
    gpu = next(item for item in power_of(api.load_machine(text)).items if item.kind == "gpu")
    assert (gpu.idle, gpu.loaded, gpu.memory) == (48, 400, 260)
    assert gpu.guessed


def test_a_measured_node_scales_its_parts() -> None:
    text = MACHINE.replace("name: two GPUs", "power: {idle: 200 W, loaded: 900 W, source: measured, ref: a meter}")
    machine = api.load_machine(text)
    power = power_of(machine)
    assert all(item.measured for item in power.items)
    assert [power.idle.value, power.loaded.value] == pytest.approx([200, 900])
    assert power.loaded.high == pytest.approx(900 * 1.15)
    found = energy(text, WORKLOAD, interval=False)
    assert found.measured
    assert found.joules.high == pytest.approx(found.joules.value * 1.15)
    rated = power_of(api.load_machine(text.replace("source: measured", "source: recalled")))
    assert not any(item.measured for item in rated.items)


def test_a_measured_curve_is_not_of_a_node_with_other_gpus() -> None:
    same, other = ("hwsim: machine/1\nuse: dgx-h100\n" + more for more in ("", "parts: {gpu: {kind: gpu, use: b200}}\n"))
    assert all(item.measured for item in power_of(api.load_machine(same)).items)
    changed = power_of(api.load_machine(other))
    assert not any(item.measured for item in changed.items)
    assert changed.loaded.value > 8 * 1000


def test_a_node_whose_parts_say_nothing_draws_what_it_says() -> None:
    text = MACHINE.replace("name: two GPUs", "power: {idle: 200 W, loaded: 900 W, source: measured}")
    text = text.replace(", power: {idle: 20 W, loaded: 100 W}", "").replace(
        "power: {idle: 50 W, loaded: 400 W, memory: 250 W}, ", ""
    )
    machine = api.load_machine(text)
    power = power_of(machine)
    assert [power.idle.value, power.loaded.value] == pytest.approx([200, 900])
    assert power.missing == ()


def test_parts_without_power_are_named_and_a_machine_without_any_has_no_energy() -> None:
    without = MACHINE.replace(", power: {idle: 20 W, loaded: 100 W}", "")
    found = energy(without, WORKLOAD)
    assert found.missing == ("cpu",)
    assert not found.complete
    bare = without.replace("power: {idle: 50 W, loaded: 400 W, memory: 250 W}, ", "")
    assert energy_of(api.simulate(bare, WORKLOAD)) is None
    assert api.simulate(bare, WORKLOAD).to_json()["energy"] is None


# ---- ranks that are folded, long runs, mixed machines


def test_a_long_loop_draws_as_often_as_it_runs() -> None:
    ops = [{"compute": {"device": "gpu0", "flop": "1 GFLOP"}}, {"compute": {"device": "gpu1", "bytes": "0.1 GB"}}]
    loop = {"hwsim": "workload/1", "program": [{"repeat": {"times": 1000, "do": ops}}]}
    whole = energy(MACHINE, loop)
    twice: dict[str, Any] = json.loads(json.dumps(loop))
    twice["program"][0]["repeat"]["times"] = 2000
    assert energy(MACHINE, twice).joules.value == pytest.approx(2 * whole.joules.value, rel=1e-9)


def test_gpus_of_two_kinds_draw_each_their_own() -> None:
    parts = (
        PARTS
        + "  old"
        + PARTS.partition("  gpu")[2].replace("count: 2, ", "").replace("400 W", "300 W").replace("10 TFLOP", "5 TFLOP")
    )
    machine = f"hwsim: machine/1\nparts:{parts}links:\n  - {{between: [cpu, [gpu*, old]], kind: pcie, gen: 4, lanes: 16}}\n"
    run = api.simulate(machine, WORKLOAD.replace("device: gpu0, bytes", "device: old, bytes"))
    found = present(energy_of(run))
    by_name = {item.name: item.joules for item in found.items}
    assert by_name["gpu*"] == pytest.approx(100 * run.makespan_s + 350)
    assert by_name["old"] == pytest.approx(50 * run.makespan_s + 200)


def test_cooling_and_carbon_are_of_the_site() -> None:
    plug, meter = energy(MACHINE, WORKLOAD), energy(MACHINE, WORKLOAD, load_prices(PRICES).site)
    assert meter.joules.value == pytest.approx(1.2 * plug.joules.value)
    assert math.fsum(item.joules for item in meter.items) == pytest.approx(meter.joules.value)
    assert present(meter.carbon).value == pytest.approx(meter.joules.value / 3.6e6 * 0.4)
    assert plug.carbon is None


def test_a_node_in_training_draws_what_was_measured() -> None:
    """76 % of its 10.2 kW in the mean of trainings, 8.4 kW at the most (arXiv:2506.14551, arXiv:2412.08602)."""
    machine = api.load_machine("dgx-h100")
    found = present(energy_at(machine, 1.0, {"gpu": 0.85, "gpu.memory": 0.08, "cpu": 0.1}))
    assert found.measured
    assert found.wall.low <= 7752 <= found.wall.high


# ---- costs


def bought(seconds: float, **options: Any) -> tuple[PricedMachine, Energy, Any]:
    machine = api.load_machine(MACHINE)
    prices = load_prices(PRICES)
    spent = present(energy_at(machine, seconds, {"gpu": 1.0, "cpu": 1.0}, prices.site))
    priced = price_of(machine, prices)["purchase"]
    return priced, spent, cost_of(priced, seconds, spent, prices, **options)


@given(st.floats(1, 1e9), st.integers(1, 1000))
@settings(max_examples=30, deadline=None)
def test_what_is_bought_costs_wear_room_and_energy(seconds: float, nodes: int) -> None:
    _, spent, cost = bought(seconds, nodes=nodes)
    items = {item.name: item.amount.value for item in cost.items}
    assert items["machines"] == pytest.approx(nodes * 22000 * seconds / (4 * YEAR), rel=1e-9)
    assert items["hosting"] == pytest.approx(nodes * 150 / 1000 * spent.loaded * seconds / (YEAR / 12), rel=1e-9)
    assert items["energy"] == pytest.approx(nodes * spent.joules.value / 3.6e6 * 0.10, rel=1e-9)
    assert present(cost.total).value == pytest.approx(math.fsum(items.values()), rel=1e-12)


def test_a_residual_and_a_lifetime_are_of_the_list() -> None:
    prices = load_prices(PRICES + "lifetime: 2 year\nresidual: 20 %\n")
    machine = api.load_machine(MACHINE)
    cost = cost_of(price_of(machine, prices)["purchase"], YEAR, energy_at(machine, YEAR, {}), prices)
    assert next(item.amount.value for item in cost.items if item.name == "machines") == pytest.approx(22000 * 0.8 / 2)


@pytest.mark.parametrize(("days", "paid"), [(1, 14), (14, 14), (14.001, 28), (60, 70)])
def test_whole_terms_of_a_rent_are_paid(days: float, paid: float) -> None:
    machine = api.load_machine(MACHINE.replace("on_demand: 2 USD/h", "reserved: {value: 1 USD/h, term: 14 day}"))
    cost = cost_of(price_of(machine, Prices())["block"], days * DAY)
    assert present(cost.total).value == pytest.approx(2 * paid * 24)
    assert [cost.paid, cost.seconds] == pytest.approx([paid * DAY, days * DAY])


def test_hours_that_are_billed_in_whole() -> None:
    machine = api.load_machine(MACHINE.replace("on_demand: 2 USD/h", "on_demand: {value: 2 USD/h, billed: 1 h}"))
    cost = cost_of(price_of(machine, Prices())["on_demand"], 3601)
    assert present(cost.total).value == pytest.approx(8)


def test_a_site_without_a_pue_has_a_usual_one() -> None:
    prices = load_prices(PRICES.replace(", pue: 1.2", ""))
    machine = api.load_machine(MACHINE)
    spent = present(energy_at(machine, 3600, {}))
    cost = cost_of(price_of(machine, prices)["purchase"], 3600, spent, prices)
    item = next(charge for charge in cost.items if "energy" in charge.name)
    assert item.name == "energy with a usual PUE 1.3"
    assert item.amount.value == pytest.approx(1.3 * spent.wall.value / 3.6e6 * 0.1)


def test_spares_cost_all_but_energy() -> None:
    machine, prices = api.load_machine(MACHINE), load_prices(PRICES)
    spent = energy_at(machine, 1e6, {}, prices.site)
    costs = [cost_of(price_of(machine, prices)["purchase"], 1e6, spent, prices, spares=spares) for spares in (0.0, 0.1)]
    held = math.fsum(item.amount.value for item in costs[0].items if item.name != "energy")
    assert costs[1].known.value - costs[0].known.value == pytest.approx(0.1 * held)


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 0.9)), min_size=1, max_size=5))
def test_sums_keep_their_ranges(given_: list[tuple[float, float]]) -> None:
    amounts = [Amount.within(value, part) for value, part in given_]
    found = total(amounts)
    assert found.value == pytest.approx(math.fsum(amount.value for amount in amounts))
    assert found.low <= found.value <= found.high
    assert found.high <= math.fsum(summand.high for summand in amounts) * (1 + 1e-12)
    assert (found * 3).value == pytest.approx(3 * found.value)


# ---- what commands say


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in (("m", MACHINE), ("w", WORKLOAD), ("p", PRICES)):
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def test_simulate_says_cost_if_it_is_asked_for(files: Path) -> None:
    both = files / "m.yaml", files / "w.yaml"
    assert "without a price: cpu" in hwsim("simulate", *both).output  # its file has prices
    (files / "bare.yaml").write_text(MACHINE.replace(", price: {purchase: 10000 USD, on_demand: 2 USD/h}", ""))
    assert "energy" not in hwsim("simulate", files / "bare.yaml", files / "w.yaml").output
    printed = hwsim("simulate", *both, "--prices", files / "p.yaml").output
    assert "PUE 1.2" in printed
    assert "cost           bought: " in printed
    rented = hwsim("simulate", *both, "--prices", files / "p.yaml", "--rent", "on-demand").output
    assert "4 USD per hour" in rented
    assert "CO2" in hwsim("simulate", *both, "--site", "pue=1.1,grid=50 g/kWh").output


def test_energy_is_always_in_the_document(files: Path) -> None:
    both = files / "m.yaml", files / "w.yaml"
    (files / "bare.yaml").write_text(MACHINE.replace(", price: {purchase: 10000 USD, on_demand: 2 USD/h}", ""))
    assert json.loads(hwsim("simulate", files / "bare.yaml", files / "w.yaml", "--json").output)["cost"] is None
    plain = json.loads(hwsim("simulate", *both, "--json").output)
    assert plain["cost"]["missing"] == ["cpu"]
    assert plain["energy"]["joules"]["value"] == pytest.approx(energy(MACHINE, WORKLOAD).joules.value)
    assert math.fsum(part["joules"] for part in plain["energy"]["parts"]) == pytest.approx(plain["energy"]["joules"]["value"])
    priced = json.loads(hwsim("simulate", *both, "--json", "--prices", files / "p.yaml").output)
    assert priced["cost"]["total_usd"]["value"] == pytest.approx(
        math.fsum(item["usd"]["value"] for item in priced["cost"]["items"])
    )
    assert priced["cost"]["missing"] == []


def test_rows_of_a_sweep_are_compared_by_energy_and_cost(files: Path) -> None:
    swept = "sweep", files / "m.yaml", files / "w.yaml", "--vary", "machine.gpu.power.loaded=400 W,800 W"
    assert "978 J" in hwsim(*swept, "--by", "energy").output
    cheap, dear = json.loads(hwsim(*swept, "--by", "cost", "--json", "--prices", files / "p.yaml", "--workers", 1).output)["rows"]
    assert cheap["measures"]["cost_usd"] < dear["measures"]["cost_usd"]
    assert "it requires a price of every part: --prices" in hwsim(*swept, "--by", "cost", code=2).output
    assert "it requires the carbon" in hwsim(*swept, "--by", "carbon", code=2).output


def test_a_training_costs_what_its_tokens_cost(files: Path) -> None:
    estimated = (
        "estimate",
        "dgx-h100",
        "llama-3-8b",
        "--global-batch",
        64,
        "--tp",
        8,
        "--tokens",
        1e12,
        "--json",
        "--rent",
        "on-demand",
    )
    (files / "p.yaml").write_text("hwsim: prices/1\nmachines: {dgx-h100: {on_demand: 24 USD/h}}\n")
    one = json.loads(hwsim(*estimated, "--prices", files / "p.yaml").output)
    two = json.loads(hwsim(*estimated, "--prices", files / "p.yaml", "--nodes", 2).output)
    assert one["cost"]["total_usd"]["value"] == pytest.approx(24 * one["training"]["seconds"] / 3600)
    assert one["per_unit"][0]["cost_usd"]["value"] * 1e6 == pytest.approx(one["cost"]["total_usd"]["value"])
    assert two["cost"]["total_usd"]["value"] == pytest.approx(2 * 24 * two["training"]["seconds"] / 3600)
    assert 0.8 < two["energy"]["joules"]["value"] / one["energy"]["joules"]["value"] < 1.3


def test_a_training_of_a_run_has_the_bill_of_all_of_it() -> None:
    workload = training(steps=2)
    workload["train"]["tokens"] = 1e12
    paying = Paying(load_prices("hwsim: prices/1\nparts: {h100-sxm: {on_demand: 3 USD/h}}\nmachines: {}\n"), "on_demand")
    bill = bill_of(api.simulate(CLUSTER, workload, paying=paying))
    seconds, spent, cost = present(bill.whole)
    assert cost is not None
    assert spent is not None
    assert bill.energy is not None
    assert spent.joules.value / bill.energy.joules.value == pytest.approx(seconds / bill.energy.seconds)
    (each,) = bill.each
    assert each.name == "1 M tokens"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--rent", "1-year"), "--rent requires --prices"),
        (("--provider", "AWS"), "--provider requires --prices"),
        (("--site", "mars"), "unknown site 'mars'"),
        (("--site", "pue=0.5"), "a PUE must be at least 1"),
        (("--prices", "library", "--provider", "Nobody"), "unknown provider 'Nobody'"),
        (("--prices", "none-such"), "there is no prices 'none-such'"),
    ],
)
def test_options_that_say_nothing_are_refused(files: Path, options: tuple[str, ...], said: str) -> None:
    assert said in " ".join(hwsim("simulate", files / "m.yaml", files / "w.yaml", *options, code=2).output.split())
