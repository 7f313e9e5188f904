"""Laws of the library's machines and prices: every machine exchanges data and trains, draws what its rating says, has sources."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from hwsim import api
from hwsim.communication import timing
from hwsim.costs.machine_price import price_of
from hwsim.costs.power import power_of
from hwsim.costs.prices import Prices, load_prices
from hwsim.devices.gpu_cases import case
from hwsim.devices.offers import PAYMENT_OPTIONS, Price
from hwsim.machine import Machine
from hwsim.models.cluster import cluster_of
from hwsim.spec import find, names, read
from hwsim.units import parse
from tests.each import each

POWERED = ("cpu", "gpu", "disk", "nic", "switch", "memory")  # kinds of parts that draw power
ELSEWHERE = ("machines/parts/memory/gddr", "machines/parts/memory/hbm")  # in the power of the GPU they are on
BUYERS = [
    "dgx-h200", "dgx-b200", "dgx-b300", "gb200-nvl72", "mi300x-8", "mi325x-8", "gaudi3-8", "l40s-8", "rtx-pro-6000-8",
    "gpu-workstation",
]  # fmt: skip
RATED = {  # loaded power over what its maker rates it at
    "dgx-2": 10.0e3, "dgx-a100": 6.5e3, "dgx-h100": 10.2e3, "dgx-h200": 10.2e3, "dgx-b200": 14.3e3, "dgx-b300": 14.5e3,
    "gb200-nvl72": 132e3,
}  # fmt: skip
CLUSTERS = {
    "one node": "{nodes: 1}",
    "an odd number": "{nodes: 7, node: dgx-h200}",
    "a second leaf": "{nodes: 33}",
    "Blackwell, 800 Gb/s": "{nodes: 3, node: dgx-b300, rate: xdr800, switch: quantum-x800, radix: 144}",
    "racks": "{nodes: 2, node: gb200-nvl72, cards: node*.tray*.nic*, rails: 4, trays: 18}",
    "no switch in a node": "{nodes: 3, node: mi300x-8}",
    "Ethernet": "{nodes: 5, node: gaudi3-8, fabric: ethernet, rate: 800gbe, switch: 800gbe-64}",
    "four cards": "{nodes: 3, node: l40s-8, rails: 4}",
    "3:1": "{nodes: 50, oversubscription: 3}",
    "1.5:1": "{nodes: 40, oversubscription: 1.5}",
    "64:1": "{nodes: 70, oversubscription: 64}",
}


@cache
def load(name: str) -> Machine:
    return api.load_machine(name)


def cluster(let: str) -> Machine:
    return api.load_machine(f"hwsim: machine/1\nuse: scale/planning-cluster\nlet: {let}\n")


def numbers(machine: Machine) -> dict[str, int]:
    """The whole numbers of its `let:`."""
    return {name: value for name, value in machine.let.items() if isinstance(value, int)}


def stated(machine: Machine, name: str) -> Any:
    """The model of a device, whatever its kind."""
    return machine.device(name).model


def with_gpus() -> list[str]:
    """Machines of the library with several GPUs; studies of scale have tests of their own."""
    whole = [name for name in names("machine") if "/" not in name and name != "storage-client"]  # whose GPUs only wait
    return [name for name in whole if len(load(name).devices_of("gpu")) > 1]


def all_reduce(machine: Machine, size: float) -> float:
    return timing.timed(machine, None, "all-reduce", machine.devices_of("gpu"), size).alone(machine.rates())


@pytest.mark.parametrize("name", BUYERS)
def test_what_buyers_compare_has_no_warning(name: str) -> None:
    assert load(name).warnings == ()


def test_an_all_reduce_is_no_faster_than_the_links_of_a_gpu() -> None:
    """Every GPU hands on all of its bytes: to a switch that adds once, to other GPUs nearly twice."""
    for name in with_gpus():
        machine = load(name)
        first = machine.devices_of("gpu")[0]
        peak = sum(link.count * link.model.peak() for link in machine.links_from(first))
        for size in (1e6, 1e9):
            assert size / all_reduce(machine, size) < peak, name
        assert all_reduce(machine, 8.0) > 1e-6 or machine.ideal, name


@pytest.mark.parametrize("name", BUYERS)
def test_what_buyers_compare_trains(name: str) -> None:
    gpus = len(load(name).devices_of("gpu"))
    run = api.simulate(
        name,
        "hwsim: workload/1\n"
        f"train: {{model: gpt2, sequence: 1024, microbatch: 1, global_batch: {gpus}, dtype: bf16, steps: 1}}\n",
    )
    [training] = run.trainings
    peak = gpus * stated(load(name), load(name).devices_of("gpu")[0]).flop["bf16"]
    assert 6 * 124e6 * 1024 * gpus / training.step_s < peak


@pytest.mark.parametrize("let", CLUSTERS.values(), ids=list(CLUSTERS))
def test_a_cluster_to_plan_with(let: str) -> None:
    machine = cluster(let)
    assert machine.warnings == ()
    let_of = numbers(machine)
    assert let_of["ports"] + let_of["up"] <= let_of["radix"]
    nodes = let_of["nodes"]
    leaves = [name for name in machine.devices_of("switch") if name.startswith("fabric-leaf")]
    assert len(leaves) == let_of["leaves"] == let_of["rails"] * -(-nodes * let_of["trays"] // let_of["ports"])
    spare = len(leaves) if nodes > 1 or len(leaves) > 1 else 0
    assert len([name for name in machine.devices_of("switch") if name.startswith("switch")]) >= spare
    gpus = machine.devices_of("gpu")
    if nodes > 1:
        other = next(name for name in reversed(gpus) if name.startswith(f"node{nodes - 1}."))
        seconds = machine.transfer(gpus[0], other, 1e9).demand.alone(machine.rates())
        cards = {stated(machine, name).bandwidth for name in machine.devices_of("nic")}
        assert 1e9 / seconds < max(cards) * max(1, len(machine.devices_of("nic")) // len(gpus))


@each("name", [name for name in names("part") if name.partition("/")[0] in POWERED])
def test_every_part_says_what_it_draws_and_who_says_so(name: str) -> None:
    kind, _, part = name.partition("/")
    file = find(kind, part)
    entry = f"{{kind: {read(file).text('kind') or kind}, use: {part}}}"
    [item] = power_of(api.load_machine(f"hwsim: machine/1\nparts: {{it: {entry}}}\n")).items
    assert item.source
    elsewhere = any(start in file.as_posix() for start in ELSEWHERE) or "provider's" in item.source or "on the c" in item.source
    assert (item.loaded == item.idle == 0) if elsewhere else (0 < item.idle < item.loaded)


@each("name", [name for name in names("machine") if "/" not in name and not name.startswith("d2l-")])
def test_the_power_of_every_machine_is_known(name: str) -> None:
    power = power_of(load(name))
    assert power.missing == ()
    assert 0 < power.idle.value < power.loaded.value


@pytest.mark.parametrize("name", RATED)
def test_a_node_draws_two_thirds_of_its_rating_to_all_of_it(name: str) -> None:
    """As measured on nodes of eight H100: 76 % in the mean of trainings, 82 % at the most."""
    assert 0.65 * RATED[name] <= power_of(load(name)).loaded.value <= RATED[name]


def listed() -> list[tuple[str, str, Price]]:
    prices: Prices = load_prices()
    tables = {"part": prices.library.parts, "machine": prices.library.machines, "other": prices.library.others}
    return [(kind, name, price) for kind, table in tables.items() for name, price in table.items()]


def test_every_price_has_a_date_a_mark_a_source_and_a_range() -> None:
    for _, name, price in listed():
        for way in PAYMENT_OPTIONS[1:]:
            for offer in price.of(way):
                assert offer.date, name
                assert offer.mark, name
                assert len(offer.source) > 10, name
                assert offer.provider or way == "purchase", name
                assert 0 <= offer.low <= offer.value <= offer.high, name


def test_prices_are_of_what_the_library_has() -> None:
    parts = {name.partition("/")[2] for name in names("part")}
    for kind, name, _ in listed():
        assert kind == "other" or name in (parts if kind == "part" else names("machine"))


def test_an_hour_of_a_machine_is_that_of_its_gpus() -> None:
    """Where a provider rents both, one is the other divided: a slip of either shows."""
    prices = load_prices()
    for name, price in prices.library.machines.items():
        machine = load(name)
        kinds = {part.use for part in machine.layout.parts if part.kind == "gpu"}
        count = len(machine.devices_of("gpu"))
        for way in PAYMENT_OPTIONS[1:]:
            found = (offer for use in kinds if (one := prices.library.parts.get(use)) for offer in one.of(way))
            of_parts = {(offer.provider, offer.region): offer for offer in found}
            for offer in price.of(way):
                other = of_parts.get((offer.provider, offer.region))
                if other is not None and other.term == offer.term:
                    assert other.value * count == pytest.approx(offer.value, rel=0.01), (name, offer.provider)


def test_a_cluster_is_priced_with_its_switches_and_cables() -> None:
    priced = price_of(cluster("{nodes: 4}"))
    assert priced["purchase"].missing == ()
    bought = {item.name: item.count for item in priced["purchase"].all_items}
    assert bought["dgx-h100"] == 4
    assert bought["quantum-2-ndr"] == 8 + 1
    assert bought["cable"] == 2 * (4 * 8 + 8 * 4)


def test_a_wire_inside_a_computer_is_no_cable_of_a_network() -> None:
    for name in ("desktop", "gaudi3-8", "gb200-nvl72"):
        assert "cable" not in {item.name for item in price_of(load(name))["purchase"].items}


def test_sites_have_a_grid_a_date_and_a_source() -> None:
    prices = load_prices()
    assert len(prices.sites) > 60
    for name, site in prices.sites.items():
        assert site.pue is not None, name
        assert 1.0 < site.pue.value < 2.0, name
        assert site.said, name
        if "-" in name:
            assert site.grid is not None, name
            assert parse("1 g/kWh").value <= site.grid.value <= parse("1000 g/kWh").value, name
    assert prices.site.electricity is not None
    assert prices.site.hosting is not None


@pytest.mark.parametrize(("name", "links"), [("mi300x-8", 7 * 48e9 * 0.93), ("gaudi3-8", 7 * 74.5e9)])
def test_an_estimate_counts_every_link_of_a_board_without_switch(name: str, links: float) -> None:
    """A ring takes one of the seven links of each GPU; their libraries take all."""
    found = cluster_of(load(name))
    assert found.inside_rate(8) == pytest.approx(links, rel=0.01)
    assert found.inside_rate(2) == pytest.approx(links / 7, rel=0.01)


@pytest.mark.parametrize(
    ("name", "worst"), [("dgx-h100", "known"), ("mi300x-8", "generation"), ("mi325x-8", "generation"), ("gaudi3-8", "outside")]
)
def test_kernels_that_nobody_measured_are_not_known(name: str, worst: str) -> None:
    gpu = stated(load(name), load(name).devices_of("gpu")[0])
    assert case(gpu, "matmul", "bf16") == case(gpu, "attention", "bf16") == worst
