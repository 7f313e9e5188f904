"""Prices: what has none, whose list decides, ranges, ages, and mistakes in files of prices."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwsim import api
from hwsim.costs.cost import cost_of
from hwsim.costs.energy import energy_at
from hwsim.costs.library_match import is_as_listed
from hwsim.costs.machine_price import price_of
from hwsim.costs.prices import Prices, load_prices
from tests.command import hwsim
from tests.test_costs import MACHINE, PRICES
from tests.test_train_checks import CLUSTER


def test_a_part_without_a_price_is_named_never_0() -> None:
    machine = api.load_machine(MACHINE)
    priced = price_of(machine, load_prices(PRICES.replace("cpu: 2000 USD", "")))
    assert priced["purchase"].amount.value == 20000
    assert priced["purchase"].missing == ("cpu",)
    cost = cost_of(priced["purchase"], 3600.0, energy_at(machine, 3600.0, {}), load_prices(PRICES))
    assert cost.total is None
    assert "cpu" in cost.missing
    assert cost.known.value > 0


def test_a_user_s_list_comes_before_the_file_and_the_file_before_the_library() -> None:
    machine = api.load_machine(MACHINE.replace("gpu: {kind: gpu,", "gpu: {kind: gpu, use: a100-sxm-40gb,"))

    def price(text: str) -> list[float]:
        priced = price_of(machine, load_prices(text))
        found = {way: item.amount.value for way, bill in priced.items() for item in bill.items if item.name == "a100-sxm-40gb"}
        return [found["purchase"], found["on_demand"] * 3600]

    assert price(PRICES) == pytest.approx([20000, 4])
    assert price(PRICES.replace("cpu: 2000 USD", "gpu: 7 USD")) == pytest.approx([14, 4])
    assert price(PRICES.replace("cpu: 2000 USD", "a100-sxm-40gb: {on_demand: 9 USD/h}")) == pytest.approx([20000, 18])


def test_the_price_of_a_whole_machine_is_not_the_sum_of_its_parts() -> None:
    listed = PRICES + "machines: {dgx-h100: {purchase: {value: 250000 USD, mark: quote}}}\n"
    prices = load_prices(listed)
    whole = price_of(api.load_machine("dgx-h100"), prices)
    assert [(item.name, item.amount.value) for item in whole["purchase"].all_items] == [("dgx-h100", 250000)]
    cluster = price_of(api.load_machine(CLUSTER), prices)
    assert {item.name: item.amount.value for item in cluster["purchase"].all_items} == {"dgx-h100": 500000, "cable": 3200}
    assert cluster["purchase"].missing == ("leaf",)


def test_a_machine_with_other_parts_has_not_the_price_of_its_name() -> None:
    same = "hwsim: machine/1\nuse: dgx-h100\n"
    other = same + "parts: {cpu: {kind: cpu, use: epyc-7742}}\n"
    assert is_as_listed(api.load_machine(same).layout)
    assert not is_as_listed(api.load_machine(other).layout)
    assert [item.name for item in price_of(api.load_machine(same))["purchase"].all_items] == ["dgx-h100"]
    assert "dgx-h100" not in [item.name for item in price_of(api.load_machine(other))["purchase"].items]


def test_a_node_with_other_network_cards_costs_what_they_cost_more() -> None:
    node, other = (
        price_of(api.load_machine("hwsim: machine/1\nuse: dgx-h100\n" + parts))
        for parts in ("", "parts: {nic: {use: connectx-8-xdr800}}\n")
    )
    assert not other["purchase"].missing
    assert other["purchase"].amount.value - node["purchase"].amount.value == pytest.approx(8 * (2500 - 1700))
    assert other["purchase"].amount.high > node["purchase"].amount.high
    assert [item.name for item in other["purchase"].all_items] == [
        "dgx-h100",
        "connectx-8-xdr800 in place of connectx-7-ndr400",
    ]


def test_cables_of_a_faster_network_cost_more() -> None:
    faster = CLUSTER.replace("ndr400", "xdr800")
    for text, name in ((CLUSTER, "cable"), (faster, "cable-800")):
        items = {item.name: item.amount for item in price_of(api.load_machine(text))["purchase"].all_items}
        assert {"cable", "cable-800"} & items.keys() == {name}
        assert items[name].high / items[name].low > 2
        own = price_of(api.load_machine(text), load_prices(PRICES))
        assert [item.amount.value / item.count for item in own["purchase"].all_items if item.name == name] == [100]


def test_of_several_offers_the_middle_one_decides_with_the_range_of_all() -> None:
    offers = "{value: 3 USD/h, provider: a}, {value: 9 USD/h, provider: b, date: 2026-01}, {value: 10 USD/h, provider: c}"
    text = PRICES.replace("cpu: 2000 USD", f"gpu: {{on_demand: [{offers}]}}")
    machine = api.load_machine(MACHINE)
    (item,) = price_of(machine, load_prices(text))["on_demand"].all_items
    assert (item.provider, item.date, item.offers) == ("b", "2026-01", 3)
    assert [rate * 3600 / 2 for rate in (item.amount.low, item.amount.value, item.amount.high)] == pytest.approx([3, 9, 10])
    (alone,) = price_of(machine, load_prices(text, provider="c"))["on_demand"].all_items
    assert alone.provider == "c"
    assert alone.amount.value * 3600 / 2 == pytest.approx(10)


def test_prices_of_bytes_are_for_what_a_part_holds() -> None:
    text = "hwsim: machine/1\nparts:\n  disk: {kind: disk, count: 3, read: 100 MB/s, size: 16 TB}\n"
    priced = price_of(api.load_machine(text), load_prices("hwsim: prices/1\nparts: {disk: {purchase: 0.015 USD/GB}}\n"))
    assert priced["purchase"].amount.value == pytest.approx(3 * 240)
    none = price_of(
        api.load_machine(text.replace(", size: 16 TB", "")), load_prices("hwsim: prices/1\nparts: {disk: 0.015 USD/GB}\n")
    )
    assert none["purchase"].missing == ("disk*",)


def test_a_rent_of_gpus_has_the_node_in_it() -> None:
    cost = cost_of(price_of(api.load_machine(MACHINE))["on_demand"], 7200.0)
    assert cost.total.value == pytest.approx(8.0)
    bare = price_of(api.load_machine(MACHINE.replace(", on_demand: 2 USD/h", "")), Prices())
    assert set(bare["on_demand"].missing) == {"cpu", "gpu*"}


@pytest.mark.parametrize(
    ("mark", "low", "high"),
    [
        ("mark: quote", 0.9, 1.1),
        ("mark: estimate", 0.65, 1.35),
        ("mark: street", 0.8, 1.2),
        ("source: guess", 0.65, 1.35),
        ("", 1, 1),
    ],
)
def test_a_mark_is_a_range(mark: str, low: float, high: float) -> None:
    marked = f"{{value: 1000 USD, {mark}}}" if mark else "1000 USD"
    priced = price_of(api.load_machine(MACHINE), load_prices(f"hwsim: prices/1\nparts: {{cpu: {marked}}}\n"))
    item = next(item for item in priced["purchase"].all_items if item.name == "cpu")
    assert [item.amount.low, item.amount.high] == pytest.approx([1000 * low, 1000 * high])


def test_old_prices_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795500000")  # 2026-11-23
    text = PRICES.replace("cpu: 2000 USD", "cpu: {purchase: {value: 2000 USD, date: 2023-11, provider: somebody}}")
    cost = cost_of(price_of(api.load_machine(MACHINE), load_prices(text))["purchase"], 1.0)
    assert "cpu: somebody, 2023-11; 36 months old" in cost.said
    young = cost_of(price_of(api.load_machine(MACHINE), load_prices(PRICES))["purchase"], 1.0)
    assert not any("old" in note for note in young.said)


@pytest.mark.parametrize(
    ("line", "place", "said"),
    [
        ("parts: {a: {purchase: 3 USD/h}}", "2:23", "'3 USD/h' is a price per time, but an amount of money is needed"),
        ("parts: {a: 5}", "2:12", "5 has no unit"),
        ("parts: {a: -5 USD}", "2:12", "cannot be negative"),
        ("parts: {a: {purchase: {value: 5 USD, low: 6 USD}}}", "2:43", "expected at most the value"),
        ("parts: {a: {purchase: {value: 5 USD, mark: sure}}}", "2:44", "'sure' is not one of"),
        ("parts: {a: {reserved: 5 USD/h}}", "2:23", "the reservation has no `term`"),
        ("parts: {a: {on_demand: {value: 5 USD/h, term: 1 day}}}", "2:41", "`term` applies to a `reserved` price"),
        ("parts: {a: {}}", "2:12", "the price has no amount"),
        ("parts: {a: {purchase: []}}", "2:23", "the list of prices is empty"),
        ("date: soon", "2:7", "'soon' is not a date"),
        ("site: {pue: 0.9}", "2:13", "a PUE must be at least 1"),
        ("site: {grid: 400 W}", "2:14", "'400 W' is a power, but a carbon intensity is needed"),
        ("site: nowhere", "2:7", "unknown site 'nowhere'"),
        ("others: {rope: 3 USD}", "2:10", "unknown entry 'rope' of `others`"),
        ("lifetime: 0 year", "2:11", "must be more than 0"),
    ],
)
def test_mistakes_have_their_place(tmp_path: Path, line: str, place: str, said: str) -> None:
    (tmp_path / "p.yaml").write_text(f"hwsim: prices/1\n{line}\n")
    printed = hwsim("check", tmp_path / "p.yaml", code=2).output
    assert f"p.yaml:{place}: " in printed
    assert said in printed


@pytest.mark.parametrize(
    ("power", "place", "said"),
    [
        ("{idle: 90 W, loaded: 80 W}", "4:75", "expected at most `loaded`, 80 W, got 90 W"),
        ("{idle: 1 W, loaded: 8 W, memory: 9 W}", "4:99", "unknown key 'memory' in power curve"),
        ("{idle: 1 W}", "4:74", "'loaded' is missing"),
        ("5 kWh", "4:74", "'5 kWh' is an energy, but a power is needed"),
    ],
)
def test_power_that_contradicts_itself(tmp_path: Path, power: str, place: str, said: str) -> None:
    text = "hwsim: machine/1\nname: m\nparts:\n  disk: {kind: disk, read: 100 MB/s, size: 16 TB, latency: 10 ms, power: "
    (tmp_path / "m.yaml").write_text(text + power + "}\n")
    printed = hwsim("check", tmp_path / "m.yaml", code=2).output
    assert f"m.yaml:{place}: " in printed
    assert said in printed
