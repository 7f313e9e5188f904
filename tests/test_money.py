"""Prices of providers, payments over years, break-even and materials: laws that hold for all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim import api
from hwsim.costs.cash_flow import CashFlow
from hwsim.costs.machine_price import price_of
from hwsim.costs.materials import materials_of
from hwsim.costs.prices import load_prices
from hwsim.devices.offers import PAYMENT_OPTIONS
from hwsim.planning import PlanAnswer, plan
from hwsim.spec import SpecError, names
from hwsim.units import DAY, YEAR
from tests.command import hwsim
from tests.planning_cases import LOOP

LIBRARY = load_prices()
STEP = "hwsim: workload/1\ntrain: {model: resnet-50, global_batch: 256, steps: 1, dtype: fp16}\n"
CLUSTER = "hwsim: machine/1\nuse: scale/planning-cluster\nlet: {%s}\n"


def test_every_price_of_the_library_has_all_fields() -> None:
    listed = LIBRARY.library
    named = [(name, price) for table in (listed.parts, listed.machines, listed.others) for name, price in table.items()]
    spans = {"1_year": (YEAR, YEAR), "3_year": (3 * YEAR, 3 * YEAR), "block": (1.0, YEAR / 2)}
    for name, price in named:
        for payment in PAYMENT_OPTIONS:
            least, most = spans.get(payment, (0.0, 0.0))
            for offer in price.of(payment):
                instance = payment == "purchase" or offer.instance or offer.stores
                assert all([offer.provider, offer.region, offer.date, offer.source, instance]), name
                assert offer.mark in ("list", "street", "cloud list", "estimate"), name
                assert least <= offer.term <= most, name


@pytest.mark.parametrize("name", [name for name in names("machine") if LIBRARY.instance_providers(name)])
def test_an_instance_has_a_price_of_its_provider_or_none(name: str) -> None:
    for way, priced in price_of(api.load_machine(name)).items():
        assert {item.provider for item in priced.items} <= LIBRARY.instance_providers(name)
        assert bool(priced.missing) == (priced.amount is None), way
        assert not priced.missing or f"{name}, an instance of AWS" in priced.missing[0]
    elsewhere = price_of(api.load_machine(name), load_prices(provider="Nebius"))
    assert all(priced.amount is None for priced in elsewhere.values())


def test_an_instance_without_a_price_names_the_nearest_and_a_change_of_its_parts_has_none() -> None:
    (missing,) = price_of(api.load_machine("p5.48xlarge"))["1_year"].missing
    assert "nearest: on demand 55.04 USD/h, spot 15.93 USD/h, capacity block 39.33 USD/h, h100-sxm elsewhere" in missing
    other = api.load_machine("hwsim: machine/1\nuse: p5.48xlarge\nparts: {nic: {use: connectx-7-ndr400}}\n")
    assert price_of(other)["on_demand"].missing == ("p5.48xlarge, an instance of AWS, with other parts",)
    with pytest.raises(SpecError, match="one of AMD, AWS, Azure"):
        load_prices(provider="Amazon")


def test_superseded_offers_do_not_count_and_one_gpu_is_no_node() -> None:
    (item,) = price_of(api.load_machine("dgx-h100"))["on_demand"].items
    assert (item.offers, item.provider) == (7, "Lambda")  # without Azure's of 2024, and those of one GPU
    (azure,) = price_of(api.load_machine("dgx-h100"), load_prices(provider="Azure"))["on_demand"].items
    assert azure.amount.value * 3600 == pytest.approx(98.32)


YEARS = st.floats(0.1, 8.0).map(lambda years: years * YEAR)
RATES = st.floats(0.0, 0.5)


@given(YEARS, st.floats(0.0, 0.9), st.integers(1, 9), st.floats(1.0, 400.0))
def test_without_growth_and_discount_payments_are_plain_sums(seconds: float, residual: float, count: int, days: float) -> None:
    plain, nearly = CashFlow(machines=count), CashFlow(discount=1e-12, machines=count)
    lifetime, term = 4 * YEAR, days * DAY
    assert plain.used(seconds) == seconds
    assert plain.bought(seconds, lifetime, residual) == pytest.approx((1 - residual) * seconds / lifetime)
    assert nearly.used(seconds, term) == pytest.approx(plain.used(seconds, term), rel=1e-6)
    assert nearly.bought(seconds, lifetime, residual) == pytest.approx(plain.bought(seconds, lifetime, residual), rel=1e-6)


@given(YEARS, RATES, RATES, st.integers(1, 50))
def test_growth_adds_and_discount_subtracts(seconds: float, growth: float, discount: float, count: int) -> None:
    flow, grown, plain = CashFlow(growth, discount, count), CashFlow(growth, 0.0, count), CashFlow(machines=count)
    assert flow.used(seconds) <= grown.used(seconds) * (1 + 1e-9)
    assert grown.used(seconds) >= plain.used(seconds) * (1 - 1e-9)
    by_year = sum(n / count * max(0.0, min(seconds - year * YEAR, YEAR)) for year, n in enumerate(grown.counts(seconds)))
    assert grown.used(seconds) == pytest.approx(by_year)
    assert grown.bought(seconds, 4 * YEAR, 0.0) == pytest.approx(by_year / (4 * YEAR))


@given(st.floats(1e3, 1e6), st.floats(1e-5, 1e-2), st.floats(1e-4, 1e-1), RATES)
def test_the_break_even_solves_its_equation(price: float, running: float, rent: float, discount: float) -> None:
    flow = CashFlow(discount=discount)
    after = flow.break_even(price, running, rent)
    paid_for = flow.discounted(0.0, 1e4 * YEAR if after is None else after)
    assert after is None or price + running * paid_for == pytest.approx(rent * paid_for, rel=1e-6)
    assert after is not None or price + running * paid_for >= rent * paid_for * (1 - 1e-6)


def paid(**more: Any) -> PlanAnswer:
    fixed = {"machine": "dgx-h100", "workload": LOOP, "minimise": "cost", "period": "3 year"}
    return plan({**fixed, "vary": {"replicas": [3]}, **more})


@pytest.mark.parametrize("rent", ["purchase", "on_demand", "3_year"])
@pytest.mark.parametrize("more", [{}, {"growth": "20 %", "discount": "8 %", "residual": "10 %"}])
def test_the_payments_of_a_plan_add_up_and_hold_its_cost(rent: str, more: dict[str, str]) -> None:
    answer = paid(rent=rent, **more)
    assert max(map(len, str(answer).splitlines())) <= 100
    best = answer.best
    rows = {row.way: row for row in best.use.payments[0]}
    assert list(rows) == ["purchase", "on_demand", "1_year", "3_year", "spot", "block"]
    assert rows[rent].total.value == pytest.approx(best.numbers["cost"].value)
    if not more:
        assert rows["on_demand"].total.value == pytest.approx(3 * 31.92 * 3 * 365 * 24)
        assert rows["purchase"].items["machines"] == pytest.approx(3 * 310_000 * 3 / 4)
    for row in rows.values():
        assert sum(row.items.values()) == pytest.approx(row.total.value)


def test_growth_needs_a_period_and_payments_are_not_varied() -> None:
    trained = STEP.replace("steps: 1", "steps: 1, epochs: 2, samples: 1000")
    with pytest.raises(SpecError, match="`growth` applies to a period of use"):
        plan({"machine": "dgx-h100", "workload": trained, "minimise": "cost", "growth": "20 %"})
    with pytest.raises(SpecError, match="`rent` is a key of the plan"):
        paid(vary={"rent": ["purchase", "on_demand"]})


@pytest.mark.parametrize("let", ["nodes: 128, oversubscription: 2", "nodes: 1024", "node: mi300x-8, nodes: 3", "rails: 1"])
def test_materials_add_up_to_the_purchase_price_and_tiers_to_the_switches(let: str) -> None:
    machine = api.load_machine(CLUSTER % let)
    bought = price_of(machine)["purchase"]
    rows = materials_of(machine.layout, bought)
    assert sum(row.amount.value for row in rows if row.amount is not None) == pytest.approx(bought.amount.value)
    assert all(sum(count for _, count in row.tiers) == row.count for row in rows if row.tiers)


def test_an_unpriced_part_under_a_cost_limit_makes_the_cost_unknown() -> None:
    machine = CLUSTER % "nodes: 2, switch: rosetta"
    answer = plan({"machine": machine, "workload": STEP, "minimise": "step", "require": "price at most 1e9 USD", "simulate": 0})
    assert "the cost is unknown: no purchase price for switch* (rosetta)" in answer.rejected[0].reasons[0].text


def test_every_command_refuses_to_rank_prices_of_different_kinds(tmp_path: Path) -> None:
    price = "price: {on_demand: {value: %s USD/h, mark: %s}}"
    core = "hwsim: machine/1\nclass: ideal\nparts: {cpu: {kind: cpu, use: d2l-laptop-cpu, " + price + "}}\n"
    for name, paid_for in (("a", (1, "cloud list")), ("b", (2, "estimate"))):
        (tmp_path / f"{name}.yaml").write_text(core % paid_for)
    (tmp_path / "w.yaml").write_text(LOOP)
    a, b, w = (tmp_path / f"{name}.yaml" for name in "abw")
    options = ("--by", "cost", "--prices", "library", "--rent", "on-demand")
    assert "not comparable (" in hwsim("compare", a, b, w, *options).output
    sensitive = hwsim("sensitivity", a, w, "--against", b).output
    assert "not comparable: an estimated rent against a rent" in " ".join(sensitive.split())
    marks = ("--vary", "machine.cpu.price.on_demand.mark=list,estimate")
    assert "cost cannot rank prices of different kinds" in " ".join(hwsim("sweep", a, w, *marks, *options).output.split())
