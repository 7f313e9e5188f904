"""Cost of a run: of machines that were bought, or that are rented.

    bought     (price - residual) / lifetime x time + hosting x power + energy at the meter x price of energy
    on demand  price x time, each machine in whole billing steps
    reserved   price x whole terms: the days that are paid, be they used or not
    volumes    price x time, added to each of these

Hosting is paid for the power of all parts loaded, whatever the run draws. A rent has room, cooling and energy in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from hwsim.costs.amount import Amount, total
from hwsim.costs.energy import Energy
from hwsim.costs.prices import Prices, load_prices
from hwsim.costs.pricing import Priced, PricedItem
from hwsim.devices.offers import Way
from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.units import YEAR

MONTH: Final = YEAR / 12
USUAL_PUE: Final = Amount(1.3, 1.08, 1.58)  # the best operators' and the mean of a survey (Uptime Institute, 2023)
WITHOUT: Final = {
    "energy": "a price of energy: electricity of a site",
    "hosting": "a price of hosting",
}


@dataclass(frozen=True, slots=True)
class CostItem:
    """A part of a cost: what it is for, and USD; basis: price and amount that it comes from, where no other line has them."""

    name: str
    amount: Amount
    basis: str = ""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a run, in USD.

    Args:
        total: None if a price is missing: `missing` says of what; `known` is the sum of the others.
        items: what it adds up from, the largest first.
        way: how machines are paid for.
        seconds: the time of the run; paid: seconds of rent that are paid, at least those.
        prices: the offers behind it, the dearest first.
    """

    total: Amount | None
    items: tuple[CostItem, ...]
    missing: tuple[str, ...]
    way: Way
    seconds: float
    paid: float
    prices: tuple[PricedItem, ...] = ()

    @property
    def said(self) -> list[str]:
        """Provider, mark and date of its prices, and the age of old ones, in words."""
        return said_of(self.prices)

    @property
    def known(self) -> Amount:
        """The sum of what has a price."""
        return total(item.amount for item in self.items)

    def at_rate(self, seconds: float) -> Amount | None:
        """USD of `seconds` in which machines do the same, all that is paid for in use."""
        return None if self.total is None or self.paid <= 0 else self.total * (seconds / self.paid)

    def each(self, count: float) -> Amount | None:
        """USD of one of `count` things that the run did: tokens, requests, epochs."""
        return None if self.total is None or count <= 0 else self.total * (1.0 / count)


def cost_of(
    priced: Priced,
    seconds: float,
    energy: Energy | None = None,
    prices: Prices | None = None,
    nodes: int = 1,
    *,
    half: float = 0.0,
    in_terms: bool = True,
    spares: float = 0.0,
    on: float = 1.0,
) -> Cost:
    """Cost of `nodes` such machines in `seconds`.

    Args:
        priced: one machine, in the way that it is paid for.
        energy: spent by one machine in that time; needed where machines are bought.
        half: error of the time: half the width of its 90 % range, as a logarithm.
        spares: machines that stand by, over those that work: they cost as much, but for energy.
        on: part of the machines that is paid for, of what is started and stopped by the load; energy is as it was spent.
        in_terms: a rent is paid in whole terms and billing steps; False: of a time that is part of a longer use.
    """
    lists = load_prices() if prices is None else prices
    missing, price = list(priced.missing), priced.amount
    items: list[CostItem] = []
    paid = seconds
    if price is None:
        missing = missing or ["the machine"]
    elif priced.way == "purchase":
        worn = price * (nodes * on * (1.0 - lists.residual) * seconds / lists.lifetime)
        items.append(CostItem("machines", worn.wider(half)))
        items += _running(energy, lists, seconds, nodes, half, missing, on)
    else:
        step = max(each.billed for each in priced.items)
        paid = seconds if step <= 0 or not in_terms else math.ceil(seconds / step * (1 - 1e-12)) * step
        items.append(CostItem("rent", (price * (paid * nodes * on)).wider(half if paid == seconds else 0.0)))
    if priced.volumes:
        items.append(CostItem("volumes", (total(volume.amount for volume in priced.volumes) * (seconds * nodes)).wider(half)))
    if spares > 0:
        held = [item.amount for item in items if not item.name.startswith("energy")]
        items.append(CostItem("spares", total(held) * spares))
    items.sort(key=lambda each: (-each.amount.value, each.name))
    full = None if missing else total(each.amount for each in items)
    return Cost(full, tuple(items), tuple(dict.fromkeys(missing)), priced.way, seconds, paid, priced.all_items)


def _running(
    energy: Energy | None, prices: Prices, seconds: float, nodes: int, half: float, missing: list[str], on: float
) -> Sequence[CostItem]:
    """Energy and room of what was bought."""
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
                    energy.plug.of(pue),
                    f"energy with {'a usual ' if prices.site.pue is None else ''}PUE {pue.value:g}",
                )
            items.append(CostItem(name, joules.of(tariff) * nodes))
        else:
            items.append(
                CostItem("hosting", (tariff * (energy.loaded * seconds * nodes * on)).wider(half), _hosted(tariff, energy, nodes))
            )
    return items


def _hosted(tariff: Amount, energy: Energy, nodes: int) -> str:
    """ "150 USD/kW/month for 9.44 kW, all parts loaded"; "" of none."""
    if tariff.value <= 0:
        return ""
    months = f"{tariff.value * 1000.0 * MONTH:.3g} USD/kW/month"
    return f"{months} for {format_quantity(energy.loaded * nodes, 'W')}, all parts loaded"


def said_of(items: Sequence[PricedItem]) -> list[str]:
    """Provider, mark, date and term of prices, and the age of old ones, in words."""
    out = []
    for item in items:
        text = f"{item.name}: {item}"
        if item.offers > 1:
            text += f", the middle one of {item.offers}"
        if item.old:
            text += f"; {item.months} months old"
        out.append(text)
    return out
