"""Costs: what machines draw and cost: power, energy, carbon and money of a run or of a closed form, each with its range."""

from __future__ import annotations

from hwsim.costs.amount import Amount, total
from hwsim.costs.bill import Bill, Paying, bill_of
from hwsim.costs.cost import Cost, CostItem, cost_of
from hwsim.costs.energy import Energy, EnergyItem, energy_at, energy_of
from hwsim.costs.power import Power, PowerItem, power_of
from hwsim.costs.prices import Prices, check_prices, load_prices
from hwsim.costs.pricing import Priced, PricedItem, price_of
from hwsim.costs.site import Site, read_site

__all__ = [
    "Amount", "Bill", "Cost", "CostItem", "Energy", "EnergyItem", "Paying", "Power", "PowerItem", "Priced", "PricedItem",
    "Prices", "Site", "bill_of", "check_prices", "cost_of", "energy_at", "energy_of", "load_prices", "power_of", "price_of",
    "read_site", "total",
]  # fmt: skip
