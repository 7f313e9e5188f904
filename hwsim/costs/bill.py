"""Energy and cost of a run: in total, per token or request, per hour and year, and for an entire training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from hwsim.costs.energy import energy_of, part_on, stretched
from hwsim.costs.site import Site
from hwsim.families_interface import family_reports
from hwsim.records import dataclass

if TYPE_CHECKING:  # few ask for money
    from hwsim.costs.amount import Amount
    from hwsim.costs.cost import MoneyCost
    from hwsim.costs.energy import Energy
    from hwsim.costs.machine_price import PricedMachine
    from hwsim.costs.prices import Prices
    from hwsim.devices.offers import PaymentOption
    from hwsim.machine import Machine
    from hwsim.results.result import Result

MILLION: Final = 1e6


class Paying(NamedTuple):
    """A payment option and a site of machines; `prices` is None if only energy is computed."""

    prices: Prices | None = None
    way: PaymentOption = "purchase"
    site: Site | None = None

    @property
    def place(self) -> Site:
        """Site of the user, whose numbers override those of the prices' site."""
        stands = self.prices.site if self.prices is not None else Site()
        return stands if self.site is None else self.site.over(stands)

    @property
    def lists(self) -> Prices | None:
        """Prices with that site."""
        return None if self.prices is None else replace(self.prices, site=self.place)


@dataclass(frozen=True, slots=True)
class CostPerItem:
    """The energy and cost of one unit of work.

    Args:
        name: unit, such as "1 M tokens" or "request"; prompt and output tokens share the time of iterations ("by time").
        count: number of units in the run; of a service, in steady state.
        joules: energy at the meter (joules).
        cost: cost without unused days of a reservation (USD).
    """

    name: str
    count: float
    joules: Amount | None
    cost: Amount | None


@dataclass(frozen=True, slots=True)
class Bill:
    """The energy and cost of a run.

    Args:
        energy: energy of the run; None if no part has a power.
        cost: cost of the run; None without prices.
        whole: time, energy and cost of the entire training; None if the run is not a training with a stated length.
        each: energy and cost per token, request or epoch.
        notes: items that are not included, as text.
    """

    energy: Energy | None
    cost: MoneyCost | None
    whole: tuple[float, Energy | None, MoneyCost | None] | None = None
    each: tuple[CostPerItem, ...] = ()
    notes: tuple[str, ...] = ()


def bill_of(result: Result, paying: Paying | None = None) -> Bill:
    """Return energy and cost of a run; without prices, only the energy.

    paying: payment option; default: the one of the run, or the prices in the machine file.
    """
    how: Paying = paying or result.paying or stated_payment(result) or Paying()
    energy = energy_of(result, how.place)
    machine, prices = result.built, how.lists
    half, factor = stretched(result)
    priced, cost = None, None
    if prices is not None and machine is not None:
        from hwsim.costs.cost import cost_of
        from hwsim.costs.machine_price import price_of

        priced = price_of(machine, prices)[how.way]
        cost = cost_of(priced, factor * result.makespan_s, energy, prices, half=half, in_terms=False, on=part_on(result))
    entire = _whole(result, energy, priced, how)
    notes = tuple(text for report in family_reports(result) for text in report.unused(result)) if cost is not None else ()
    return Bill(energy, cost, entire, tuple(_each(result, energy, cost)), notes)


def stated_payment(result: Result) -> Paying | None:
    """Return the payment option of a machine with prices in its file: bought, else rented; None without prices."""
    machine = result.built
    if machine is None or not machine.layout.priced:
        return None
    from hwsim.costs.prices import load_prices
    from hwsim.devices.offers import PAYMENT_OPTIONS

    return Paying(load_prices(), next(way for way in PAYMENT_OPTIONS if any(price.of(way) for price in machine.layout.prices())))


def _whole(
    result: Result, energy: Energy | None, priced: PricedMachine | None, how: Paying
) -> tuple[float, Energy | None, MoneyCost | None] | None:
    """Return (seconds, energy, cost) of the entire training that the run samples, with failures if their rates are known."""
    whole = next(filter(None, (report.whole(result) for report in family_reports(result))), None)
    if whole is None:
        return None
    half, factor = stretched(result)
    seconds, spares = factor * whole[0], whole[1]
    spent = None if energy is None else energy.times(whole[0] / result.makespan_s)
    if priced is None:
        return seconds, spent, None
    from hwsim.costs.cost import cost_of

    return seconds, spent, cost_of(priced, seconds, spent, how.lists, half=half, spares=spares)


def _each(result: Result, energy: Energy | None, cost: MoneyCost | None) -> Iterator[CostPerItem]:
    """Return energy and cost per unit of work, if the run does one kind of work."""
    if result.jobs:
        return
    counts = (count for report in family_reports(result) for count in report.counts(result))
    for name, count, more, share in counts:
        if count > 0 and share > 0:
            going = count * more / share  # for energy and cost alike
            joules = None if energy is None else energy.joules * (1.0 / going)
            yield CostPerItem(name, count, joules, None if cost is None else cost.each(going))


def per(bill: Bill, unit: str, count: float) -> Bill:
    """Return the bill with the cost per million units, of `count` units in the run."""
    energy, cost = bill.energy, bill.cost
    if count <= 0 or (energy is None and cost is None):
        return bill
    millions = count / MILLION
    joules = None if energy is None else energy.joules * (1.0 / millions)
    return replace(bill, each=(CostPerItem(f"1 M {unit}", millions, joules, None if cost is None else cost.each(millions)),))


def closed_form_bill(
    machine: Machine,
    seconds: float,
    energy: Energy | None,
    paying: Paying,
    nodes: int = 1,
    half: float = 0.0,
    spares: float = 0.0,
) -> Bill:
    """Return the bill of `nodes` machines over `seconds`.

    energy: energy of one machine.
    spares: number of spare machines / `nodes`.
    """
    spent = None if energy is None else energy.machines(nodes)
    prices = paying.lists
    if prices is None:
        return Bill(spent, None)
    from hwsim.costs.cost import cost_of
    from hwsim.costs.machine_price import price_of

    unwired = ("without switches and cables between the nodes: --nodes describes none",)
    cost = cost_of(price_of(machine, prices)[paying.way], seconds, energy, prices, nodes, half=half, spares=spares)
    return Bill(spent, cost, notes=unwired if nodes > 1 and paying.way == "purchase" else ())
