"""The payments for an option side by side: buy, rent on demand, reserve, spot; break-even; bill of materials."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property

from hwsim.costs.amount import Amount
from hwsim.costs.cash_flow import CashFlow
from hwsim.costs.cost import MoneyCost, cost_of
from hwsim.costs.energy import Energy
from hwsim.costs.machine_price import PricedItem, PricedMachine, price_of
from hwsim.costs.materials import Material, materials_of
from hwsim.costs.prices import Prices
from hwsim.devices.offers import PaymentOption
from hwsim.planning.outlay import OptionOutlay
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class Payment:
    """The cost of an option by one payment option.

    Args:
        way: payment option.
        total: cost of all replicas (USD).
        items: parts of the total by name: machines, energy, hosting, ... (USD).
        prices: prices of one replica, largest first.
        break_even_s: time of use after which buying is cheaper than this rent (seconds); None: never.
    """

    way: PaymentOption
    total: Amount
    items: Mapping[str, float]
    prices: tuple[PricedItem, ...]
    break_even_s: float | None


@dataclass(frozen=True)
class OptionUse:
    """The use of an option, which sets its cost.

    Args:
        prices: price lists, with the site.
        facts: numbers of its machine.
        seconds: time of use (seconds).
        energy: energy of one replica in that time.
        cash: growth and discount rate.
        spares: number of spare nodes.
        half: half width of the 90 % interval of the time's logarithm.
        replicas: number of replicas.
    """

    prices: Prices
    facts: OptionOutlay
    seconds: float
    energy: Energy | None
    cash: CashFlow
    spares: float
    half: float
    replicas: int

    def cost(self, priced: PricedMachine) -> MoneyCost:
        """Return the cost of one replica, including spare nodes."""
        more = priced.times(1.0 + self.spares / self.facts.nodes)
        return cost_of(more, self.seconds, self.energy, self.prices, half=self.half, cash=self.cash)

    @cached_property
    def payments(self) -> tuple[tuple[Payment, ...], Mapping[PaymentOption, tuple[str, ...]]]:
        """The payment options with their costs, or with the parts that have no price; empty for interpolated machines."""
        found, lacking = list[Payment](), dict[PaymentOption, tuple[str, ...]]()
        priced = price_of(self.facts.machine(), self.prices) if self.facts.machine is not None and self.seconds else {}
        buying = None if not priced else cost_of(priced["purchase"], self.seconds, self.energy, self.prices)
        for way, machine in priced.items():
            cost, after = self.cost(machine), None
            price = priced["purchase"].amount
            if way != "purchase" and price is not None and machine.amount is not None and buying is not None and buying.total:
                running = [item.amount.value for item in buying.items if item.name.startswith(("energy", "hosting"))]
                after = self.cash.break_even(price.value, math.fsum(running) / self.seconds, machine.amount.value)
            if cost.total is None:
                lacking[way] = cost.missing
                continue
            items = {item.name.partition(" ")[0]: item.amount.value * self.replicas for item in cost.items}
            found.append(Payment(way, cost.total * self.replicas, items, cost.prices, after))
        return tuple(found), lacking

    @cached_property
    def materials(self) -> tuple[tuple[Material, ...], tuple[str, ...]]:
        """The bill of materials of all replicas, and its parts without a purchase price."""
        if self.facts.machine is None:
            return (), ()
        machine = self.facts.machine()
        bought = price_of(machine, self.prices, ("purchase",))["purchase"]
        return materials_of(machine.layout, bought, self.replicas), bought.missing
