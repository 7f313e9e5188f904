"""Cost of a run on machines that are bought or rented.

    bought     (price - residual) / lifetime x time + hosting x power + energy at the meter x price of energy
    on demand  price x time, each machine in whole billing increments
    reserved   price x whole terms, including unused days
    volumes    price x time, added to each of these

With growth or a discount rate, these are present values (`cash_flow`).
Hosting is charged for the power with all parts loaded, whatever the run draws. A rent includes space, cooling and energy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hwsim.costs.amount import Amount, total
from hwsim.costs.cash_flow import CashFlow, whole_terms
from hwsim.costs.energy import Energy
from hwsim.costs.machine_price import PricedItem, PricedMachine
from hwsim.costs.prices import Prices, load_prices
from hwsim.devices.offers import PaymentOption
from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.units import YEAR

MONTH: Final = YEAR / 12
USUAL_PUE: Final = Amount(1.3, 1.08, 1.58)  # interval from the best operators to the survey average (Uptime Institute, 2023)
WITHOUT: Final = {"energy": "a price of energy: electricity of a site", "hosting": "a price of hosting"}


@dataclass(frozen=True, slots=True)
class CostItem:
    """A part of a cost: name, amount (USD), and its basis (price and quantity) if no other line states it."""

    name: str
    amount: Amount
    basis: str = ""


@dataclass(frozen=True, slots=True)
class MoneyCost:
    """The cost of a run, in USD.

    Args:
        total: total; None if a price is missing (`known` is the sum of the known prices).
        items: parts of the cost, largest first.
        way: payment option.
        seconds: time of the run (seconds).
        paid: rental time that is charged, at least `seconds` (seconds).
        prices: offers behind the cost, largest first.
        missing: names of parts without a price.
    """

    total: Amount | None
    items: tuple[CostItem, ...]
    missing: tuple[str, ...]
    way: PaymentOption
    seconds: float
    paid: float
    prices: tuple[PricedItem, ...] = ()

    @property
    def said(self) -> list[str]:
        """Provider, mark and date of the prices, and the age of old ones, as text."""
        return cost_assumptions(self.prices)

    @property
    def known(self) -> Amount:
        """Sum of the items with a known price."""
        return total(item.amount for item in self.items)

    def at_rate(self, seconds: float) -> Amount | None:
        """Return the cost of `seconds` of the same work, if all charged time is used (USD)."""
        return None if self.total is None or self.paid <= 0 else self.total * (seconds / self.paid)

    def each(self, count: float) -> Amount | None:
        """Return the cost of one of `count` units of work, such as tokens, requests or epochs (USD)."""
        return None if self.total is None or count <= 0 else self.total * (1.0 / count)


def cost_of(
    priced: PricedMachine,
    seconds: float,
    energy: Energy | None = None,
    prices: Prices | None = None,
    nodes: int = 1,
    *,
    half: float = 0.0,
    in_terms: bool = True,
    spares: float = 0.0,
    on: float = 1.0,
    cash: CashFlow | None = None,
) -> MoneyCost:
    """Return the cost of `nodes` machines over `seconds`.

    Args:
        priced: price of one machine for the payment option.
        seconds: time of use (seconds).
        energy: energy of one machine in that time; required if machines are bought.
        prices: price lists.
        nodes: number of machines.
        half: half width of the 90 % interval of the time's logarithm.
        spares: spare machines / working machines; they cost the same, except for energy.
        on: share of the machines that is charged, with autoscaling; the energy is not scaled.
        in_terms: whether a rent is charged in whole terms and billing increments; False for a part of a longer use.
        cash: growth and discount rate; default: neither.
    """
    flow = cash or CashFlow()
    used = flow.used(seconds) / seconds if seconds else 1.0
    lists = load_prices() if prices is None else prices
    missing, price = list(priced.missing), priced.amount
    items: list[CostItem] = []
    paid = seconds
    if price is None:
        missing = missing or ["the machine"]
    elif priced.way == "purchase":
        worn = price * (nodes * on * flow.bought(seconds, lists.lifetime, lists.residual))
        items.append(CostItem("machines", worn.wider(half)))
        items += [replace(item, amount=item.amount * used) for item in _running(energy, lists, seconds, nodes, half, missing, on)]
    else:
        step = max(charge.billed for charge in priced.items)
        paid = whole_terms(seconds, step if in_terms else 0.0)
        rent = price * (flow.used(seconds, step if in_terms else 0.0) * nodes * on)
        items.append(CostItem("rent", rent.wider(half if paid == seconds else 0.0)))
    if priced.volumes:
        stored = total(volume.amount for volume in priced.volumes) * (seconds * used * nodes)
        items.append(CostItem("volumes", stored.wider(half)))
    if spares > 0:
        held = [item.amount for item in items if not item.name.startswith("energy")]
        items.append(CostItem("spares", total(held) * spares))
    items.sort(key=lambda each: (-each.amount.value, each.name))
    full = None if missing else total(cost.amount for cost in items)
    return MoneyCost(full, tuple(items), tuple(dict.fromkeys(missing)), priced.way, seconds, paid, priced.all_items)


def _running(
    energy: Energy | None, prices: Prices, seconds: float, nodes: int, half: float, missing: list[str], on: float
) -> Sequence[CostItem]:
    """Yield energy and hosting of bought machines."""
    if energy is None:
        missing.append("the energy of a machine whose parts have no power")
        return ()
    missing += [f"the energy of {name}" for name in energy.missing]
    items = []
    for name, tariff in (("energy", prices.site.electricity), ("hosting", prices.site.hosting)):
        if tariff is None:
            missing.append(WITHOUT[name])
        elif name == "energy":
            joules, name = energy.joules, "energy"
            if energy.site.pue is None:
                pue = prices.site.pue or USUAL_PUE
                joules, name = (
                    energy.wall.of(pue),
                    f"energy with {'a usual ' if prices.site.pue is None else ''}PUE {pue.value:g}",
                )
            items.append(CostItem(name, joules.of(tariff) * nodes))
        else:
            items.append(
                CostItem("hosting", (tariff * (energy.loaded * seconds * nodes * on)).wider(half), _hosted(tariff, energy, nodes))
            )
    return items


def _hosted(tariff: Amount, energy: Energy, nodes: int) -> str:
    """Return text such as "150 USD/kW/month for 9.44 kW, all parts loaded"; "" without hosting."""
    if tariff.value <= 0:
        return ""
    months = f"{tariff.value * 1000.0 * MONTH:.3g} USD/kW/month"
    return f"{months} for {format_quantity(energy.loaded * nodes, 'W')}, all parts loaded"


def cost_assumptions(items: Sequence[PricedItem]) -> list[str]:
    """Yield provider, mark, date and term of prices, and the age of old ones, as text."""
    out = []
    for item in items:
        text = f"{item.name}: {item}"
        if item.offers > 1:
            text += f", the middle one of {item.offers}"
        if item.old:
            text += f"; {item.months} months old"
        out.append(text)
    return out
