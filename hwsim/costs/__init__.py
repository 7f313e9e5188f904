"""Costs: what machines draw and cost: power, energy, carbon and money of a run or of a closed form, each with its range.

    prices = load_prices("prices.yaml")                               None: the library's alone
    machine = api.load_machine("dgx-h100")
    energy = energy_at(machine, 3600, {"gpu": 0.8, "gpu.memory": 0.15})   or energy_of(result)
    cost = cost_of(price_of(machine, prices)["on_demand"], 3600, energy, prices, nodes=8)

Names are imported on first use: the energy of a run takes neither prices nor their files.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

_HOMES: Final = {
    "Amount": "amount", "total": "amount",
    "Bill": "bill", "Paying": "bill", "bill_of": "bill", "closed": "bill",
    "Cost": "cost", "CostItem": "cost", "cost_of": "cost", "said_of": "cost",
    "Energy": "energy", "EnergyItem": "energy", "energy_at": "energy", "energy_of": "energy",
    "Power": "power", "PowerItem": "power", "power_of": "power",
    "Prices": "prices", "check_prices": "prices", "load_prices": "prices",
    "Priced": "pricing", "PricedItem": "pricing", "price_of": "pricing", "unlike_prices": "pricing",
    "Site": "site", "read_site": "site",
}  # fmt: skip

if TYPE_CHECKING:
    from hwsim.costs.amount import Amount, total
    from hwsim.costs.bill import Bill, Paying, bill_of, closed
    from hwsim.costs.cost import Cost, CostItem, cost_of, said_of
    from hwsim.costs.energy import Energy, EnergyItem, energy_at, energy_of
    from hwsim.costs.power import Power, PowerItem, power_of
    from hwsim.costs.prices import Prices, check_prices, load_prices
    from hwsim.costs.pricing import Priced, PricedItem, price_of, unlike_prices
    from hwsim.costs.site import Site, read_site

__all__ = [
    "Amount", "Bill", "Cost", "CostItem", "Energy", "EnergyItem", "Paying", "Power", "PowerItem", "Priced", "PricedItem",
    "Prices", "Site", "bill_of", "check_prices", "closed", "cost_of", "energy_at", "energy_of", "load_prices", "power_of",
    "price_of", "read_site", "said_of", "total", "unlike_prices",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'hwsim.costs' has no attribute '{name}'")
    value: object = getattr(import_module(f"hwsim.costs.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
