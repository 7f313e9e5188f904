"""Energy and cost of a run as lines of the summary and entries of the JSON document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from hwsim.devices.offers import PAYMENT_TITLES
from hwsim.formats import format_duration, format_quantity, percent
from hwsim.units import YEAR
from hwsim.views.kit.document import select_attributes

if TYPE_CHECKING:
    from hwsim.costs.amount import Amount
    from hwsim.costs.bill import Bill
    from hwsim.costs.cost import MoneyCost
    from hwsim.costs.energy import Energy

SHOWN: Final = 4  # largest number of prices
HOUR: Final = 3600.0  # seconds
MONEY: Final = ((1e9, " G"), (1e6, " M"), (1e3, " k"))


def usd(value: float) -> str:
    """Return an amount of money.

    >>> usd(28_912_345), usd(1234.5), usd(0.01234), usd(2.5e-7), usd(0)
    ('28.9 M USD', '1.23 k USD', '0.0123 USD', '2.5e-7 USD', '0 USD')
    """
    for least, prefix in MONEY:
        if abs(value) >= 0.9995 * least:
            return f"{value / least:.3g}{prefix} USD"
    return format_quantity(value, "USD")


def mass(value: float) -> str:
    """Return a mass of carbon dioxide given in kg.

    >>> mass(1.9e6), mass(12.3), mass(0.00004), mass(433.0)
    ('1900 t', '12.3 kg', '0.04 g', '433 kg')
    """
    if abs(value) >= 999.5:
        return format_quantity(value, "t")
    return f"{value:.3g} kg" if abs(value) >= 0.9995 else format_quantity(value, "g")


def joules(value: float) -> str:
    """Return an energy; in kWh from 1 kWh on.

    >>> joules(485.0), joules(3.6e6), joules(1.2e13)
    ('485 J', '1 kWh', '3.33 GWh')
    """
    return format_quantity(value, "Wh" if abs(value) >= 3.5982e6 else "J")


def between(amount: Amount, form: Any) -> str:
    """Return the 90 % interval of an amount in words; "" without uncertainty."""
    return "" if amount.low == amount.high else f"90 % interval {form(amount.low)} to {form(amount.high)}"


def energy_text(energy: Energy, *, power: bool = True) -> str:
    """Return an energy with its interval, power, carbon and basis in one line."""
    pue = energy.site.pue
    where = "wall power" if pue is None else f"facility power, PUE {pue.value:g}"
    around = between(energy.joules, joules).removeprefix("90 % interval ")
    parts = [f"{joules(energy.joules.value)}{f' ({around})' if around else ''}"]
    if power:
        mean, peak = format_quantity(energy.watts, "W"), format_quantity(energy.peak, "W")
        parts.append(f"average {mean}, peak {peak}" + (" wall power" if pue is not None else ""))
    if energy.shared:
        parts.append("GPUs of running replicas with their share of the machine")
    if energy.carbon is not None:
        parts.append(f"{mass(energy.carbon.value)} CO2")
    basis = "a measured power curve" if energy.measured else "rated power"
    text = f"{', '.join(parts)} ({where}, from {basis})"
    if energy.missing:
        text += f"; power unknown: {', '.join(energy.missing[:SHOWN])}{', ...' if len(energy.missing) > SHOWN else ''}"
    return text


def cost_text(cost: MoneyCost) -> str:
    """Return a cost with its items and interval in one line."""
    if cost.total is None:
        missing = ", ".join(cost.missing[:SHOWN]) + (
            f" and {len(cost.missing) - SHOWN} more" if len(cost.missing) > SHOWN else ""
        )
        rest = f"; the rest {usd(cost.known.value)}" if cost.items else ""
        return f"unknown; without a price: {missing}{rest}"
    parts = [f"{item.name} {usd(item.amount.value)}" for item in cost.items] if len(cost.items) > 1 else []
    text = usd(cost.total.value) + (f" ({', '.join(parts)})" if parts else "")
    if around := between(cost.total, usd):
        text += f"; {around}"
    if cost.paid > cost.seconds * (1 + 1e-9):
        text += f"; billed for {format_quantity(cost.paid, 's')}, used for {format_quantity(cost.seconds, 's')}"
    return text


PRICE_KEYS: Final = ("name", "count", "date", "mark", "provider", "instance", "region", "source", "offers", "old")
WAYS: Final = {**PAYMENT_TITLES, "purchase": "bought"}


def lines(bill: Bill) -> Iterator[tuple[str, str]]:
    """Yield (label, text) of the lines of a bill in the summary."""
    if bill.energy is not None:
        yield "energy", energy_text(bill.energy)
    if bill.cost is not None:
        yield "cost", f"{WAYS[bill.cost.way]}: {cost_text(bill.cost)}"
        hour, year = map(bill.cost.at_rate, (HOUR, YEAR))
        if hour is not None and year is not None:
            yield "", f"{usd(hour.value)} per hour, {usd(year.value)} per year at this rate"
        yield from based_lines(bill.cost)
    units = [f"{unit.name} {_each(unit.joules, unit.cost)}" for unit in bill.each]
    if units and (bill.cost is not None or bill.energy is not None):
        yield "per unit", ", ".join(units)
    if bill.whole is not None:
        yield from whole_lines(*bill.whole)
    if bill.cost is not None:
        yield from price_lines(bill.cost)
    for note in bill.notes:
        yield "", note


def based_lines(cost: MoneyCost) -> Iterator[tuple[str, str]]:
    """Yield the basis of items that no other line explains, such as hosting by power."""
    for item in cost.items:
        if item.basis:
            part = item.amount.value / cost.known.value if cost.known.value > 0 else 0.0
            all_of_it = "the cost" if cost.total is not None else "the known cost"
            yield item.name, f"{item.basis}: {percent(part, '.0f')} of {all_of_it}"


def whole_lines(seconds: float, energy: Energy | None, cost: MoneyCost | None) -> Iterator[tuple[str, str]]:
    """Yield the lines of an entire training."""
    took = format_duration(seconds)
    if energy is not None:
        yield "whole training", f"{took}: {energy_text(energy, power=False)}"
    if cost is not None:
        yield "", f"{WAYS[cost.way]}: {cost_text(cost)}"


def price_lines(cost: MoneyCost) -> Iterator[tuple[str, str]]:
    """Yield provider and date of the prices."""
    texts = cost.said
    for index, text in enumerate(texts[:SHOWN]):
        yield ("prices" if not index else ""), text
    if len(texts) > SHOWN:
        yield "", f"and {len(texts) - SHOWN} more"


def _each(energy: Amount | None, cost: Amount | None) -> str:
    texts = [joules(energy.value)] if energy is not None else []
    return " and ".join([*texts, usd(cost.value)] if cost is not None else texts)


# ---- JSON ----


def as_dict(bill: Bill) -> dict[str, Any]:
    """Return the entries `energy` and `cost` of a document."""
    entries: dict[str, Any] = {"energy": None if bill.energy is None else energy_dict(bill.energy)}
    entries["cost"] = None if bill.cost is None else cost_dict(bill.cost)
    if bill.cost is not None:
        entries["cost"] |= {"hour_usd": amount(bill.cost.at_rate(HOUR)), "year_usd": amount(bill.cost.at_rate(YEAR))}
    if bill.notes:
        entries["cost"] |= {"notes": list(bill.notes)}
    entries["per_unit"] = [
        {"name": unit.name, "count": unit.count, "energy_joules": amount(unit.joules), "cost_usd": amount(unit.cost)}
        for unit in bill.each
    ]
    if bill.whole is not None:
        seconds, energy, cost = bill.whole
        entries["entire_training"] = {
            "seconds": seconds,
            "energy": None if energy is None else energy_dict(energy),
            "cost": None if cost is None else cost_dict(cost),
        }
    return entries


def amount(given: Amount | None) -> dict[str, float] | None:
    """Return a value and its 90 % interval; None without a value."""
    return None if given is None else {"value": given.value, "low": given.low, "high": given.high}


def energy_dict(energy: Energy) -> dict[str, Any]:
    """Return an energy as an entry: J, W and kg of carbon dioxide."""
    return {
        "joules": amount(energy.joules),
        "wall_joules": amount(energy.wall),
        "mean_watts": energy.watts,
        "peak_watts": energy.peak,
        "full_load_watts": energy.loaded,
        "basis": "measured" if energy.measured else "ratings",
        "pue": amount(energy.site.pue),
        "carbon_kg": amount(energy.carbon),
        "parts": [select_attributes(item, "name", "kind", "count", "joules", "busy") for item in energy.items],
        "missing": list(energy.missing),
    }


def cost_dict(cost: MoneyCost) -> dict[str, Any]:
    """Return a cost as an entry, in USD."""
    return {
        "payment": cost.way,
        "total_usd": amount(cost.total),
        "known_usd": amount(cost.known),
        "used_s": cost.seconds,
        "paid_s": cost.paid,
        "items": [
            {"name": item.name, "usd": amount(item.amount), **({"basis": item.basis} if item.basis else {})}
            for item in cost.items
        ],
        "missing": list(cost.missing),
        "prices": [
            {
                **select_attributes(price, *PRICE_KEYS, term_s="term"),
                "usd": amount(price.amount),
            }
            for price in cost.prices
        ],
    }
