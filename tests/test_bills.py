"""Bills: what each request comes to in energy and in cost, and what is paid for the room."""

from __future__ import annotations

import pytest

from hwsim.api import simulate
from hwsim.costs.bill import Paying, bill_of
from hwsim.costs.prices import load_prices
from hwsim.planning import plan
from hwsim.units import YEAR
from hwsim.views.summary.costs import lines
from tests.present import present

LOOP = "hwsim: workload/1\nprogram:\n  - busy: {device: cpu, time: 10 us}\n"


def test_energy_and_cost_of_a_request_are_of_the_same_service() -> None:
    settings = {"workload.infer.requests": 8, "rate": "20 1/s"}
    run = simulate("dgx-h100", "llama3-8b-serving", set=settings, expect=False)
    bill = bill_of(run, Paying(load_prices(), "on_demand"))
    service = run.serving[0]
    assert service.settled_per_s > 1.2 * service.requests_per_s  # the end of the run is a good part of it
    assert bill.energy is not None
    assert bill.cost is not None
    by_time = {f"1 M {part} tokens, by time" for part in ("prompt", "output")}
    assert {unit.name for unit in bill.each} == {"request", "1 M output tokens", *by_time}
    answers = next(unit for unit in bill.each if unit.name == "1 M output tokens")
    parts = [unit.count * unit.cost.value for unit in bill.each if unit.name in by_time and unit.cost is not None]
    # what is read and what is written share it all
    assert sum(parts) == pytest.approx(answers.count * present(answers.cost).value)
    for unit in bill.each:
        assert unit.cost is not None
        shares = present(unit.joules).value / bill.energy.joules.value, unit.cost.value / present(bill.cost.total).value
        assert shares[0] == pytest.approx(shares[1])
    request = next(unit for unit in bill.each if unit.name == "request")
    assert present(request.joules).value == pytest.approx(bill.energy.joules.value / run.makespan_s / service.settled_per_s)


def test_hosting_has_a_line_with_its_price_its_power_and_its_part() -> None:
    run = simulate("workstation", LOOP, expect=False)
    bill = bill_of(run, Paying(load_prices()))
    assert bill.cost is not None
    item = next(charge for charge in bill.cost.items if charge.name == "hosting")
    assert item.amount.value == pytest.approx(195 / 1000 * present(bill.energy).loaded * run.makespan_s / (YEAR / 12))
    (said,) = [text for title, text in lines(bill) if title == "hosting"]
    assert said.startswith("195 USD/kW/month for ")
    assert f"{item.amount.value / bill.cost.known.value:.0%}".replace("%", " %") in said


def test_a_cost_of_a_plan_says_what_it_adds_up_from() -> None:
    asked = {"machine": "workstation", "workload": LOOP, "minimise": "cost", "period": "1 month", "vary": {"replicas": [3]}}
    answer = plan(asked)
    assert answer.best is not None
    assert sum(item.amount.value for item in answer.best.items) == pytest.approx(answer.best.numbers["cost"].value)
    assert "195 USD/kW/month for " in answer.summary(verbose=True)
    free = plan({**asked, "site": {"hosting": "0 USD/kW/month"}})
    assert "USD/kW/month" not in free.summary(verbose=True)
