"""The bill of a run: its energy and cost, of each thing that it did, of an hour and a year, and of an entire training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from hwsim.costs.energy import energy_of, part_on
from hwsim.costs.site import Site
from hwsim.doors import facts_of
from hwsim.records import dataclass

if TYPE_CHECKING:  # few ask for money
    from hwsim.costs.amount import Amount
    from hwsim.costs.cost import Cost
    from hwsim.costs.energy import Energy
    from hwsim.costs.prices import Prices
    from hwsim.costs.pricing import Priced
    from hwsim.devices.offers import Way
    from hwsim.machine import Machine
    from hwsim.results.result import Result

MILLION: Final = 1e6


class Paying(NamedTuple):
    """The way to pay for machines, and their site. prices: None for energy alone."""

    prices: Prices | None = None
    way: Way = "purchase"
    site: Site | None = None

    @property
    def place(self) -> Site:
        """The site that the user names, before the site of the prices."""
        stands = self.prices.site if self.prices is not None else Site()
        return stands if self.site is None else self.site.over(stands)

    @property
    def lists(self) -> Prices | None:
        """The prices at that site."""
        return None if self.prices is None else replace(self.prices, site=self.place)


@dataclass(frozen=True, slots=True)
class Each:
    """Energy and cost of one of many things.

    Args:
        name: "1 M tokens", "request"; of tokens read, or written, "by time" their part of the time of iterations.
        count: how many of them the run did; of a service both are as in one that goes on.
        joules: at the meter; cost: USD, without the days of a term that are not used.
    """

    name: str
    count: float
    joules: Amount | None
    cost: Amount | None


@dataclass(frozen=True, slots=True)
class Bill:
    """Energy and cost.

    Args:
        energy, cost: for the run; None where nothing says its power, or no prices were given.
        whole: energy and cost of the entire training; None where the run is none, or says not how long.
        each: what tokens, requests and epochs come to.
        notes: what is not in it, in words.
    """

    energy: Energy | None
    cost: Cost | None
    whole: tuple[float, Energy | None, Cost | None] | None = None
    each: tuple[Each, ...] = ()
    notes: tuple[str, ...] = ()


def bill_of(result: Result, paying: Paying | None = None) -> Bill:
    """The bill of a run; without prices its energy alone.

    paying: how it is paid for; if left out as the run says, or as the prices in its machine's file.
    """
    how: Paying = paying or result.paying or stated(result) or Paying()
    energy = energy_of(result, how.place)
    machine, prices = result.built, how.lists
    half = result.interval.half if result.sure else 0.0
    priced, cost = None, None
    if prices is not None and machine is not None:
        from hwsim.costs.cost import cost_of
        from hwsim.costs.pricing import price_of

        priced = price_of(machine, prices)[how.way]
        cost = cost_of(priced, result.makespan_s, energy, prices, half=half, in_terms=False, on=part_on(result))
    entire = _whole(result, energy, priced, how, half)
    notes = tuple(text for each in facts_of(result) for text in each.unused(result)) if cost is not None else ()
    return Bill(energy, cost, entire, tuple(_each(result, energy, cost)), notes)


def stated(result: Result) -> Paying | None:
    """A way to pay for a machine whose file says prices: bought, or else rented; None where it says none."""
    machine = result.built
    if machine is None or not machine.layout.priced:
        return None
    from hwsim.costs.prices import load_prices
    from hwsim.devices.offers import WAYS

    return Paying(load_prices(), next(way for way in WAYS if any(price.of(way) for price in machine.layout.prices())))


def _whole(
    result: Result, energy: Energy | None, priced: Priced | None, how: Paying, half: float
) -> tuple[float, Energy | None, Cost | None] | None:
    """(seconds, energy, cost) of the one training that the run is the beginning of, with failures where they are known."""
    whole = next(filter(None, (each.whole(result) for each in facts_of(result))), None)
    if whole is None:
        return None
    seconds, spares = whole
    spent = None if energy is None else energy.times(seconds / result.makespan_s)
    if priced is None:
        return seconds, spent, None
    from hwsim.costs.cost import cost_of

    return seconds, spent, cost_of(priced, seconds, spent, how.lists, half=half, spares=spares)


def _each(result: Result, energy: Energy | None, cost: Cost | None) -> Iterator[Each]:
    """Things that the run did, as far as it is all of one kind."""
    if result.jobs:
        return
    counts = (count for each in facts_of(result) for count in each.counts(result))
    for name, count, more, share in counts:
        if count > 0 and share > 0:
            going = count * more / share  # for energy and cost alike
            joules = None if energy is None else energy.joules * (1.0 / going)
            yield Each(name, count, joules, None if cost is None else cost.each(going))


def per(bill: Bill, unit: str, count: float) -> Bill:
    """The bill with what a million of these units comes to, of `count` that are done."""
    energy, cost = bill.energy, bill.cost
    if count <= 0 or (energy is None and cost is None):
        return bill
    millions = count / MILLION
    joules = None if energy is None else energy.joules * (1.0 / millions)
    return replace(bill, each=(Each(f"1 M {unit}", millions, joules, None if cost is None else cost.each(millions)),))


def closed(
    machine: Machine,
    seconds: float,
    energy: Energy | None,
    paying: Paying,
    nodes: int = 1,
    half: float = 0.0,
    spares: float = 0.0,
) -> Bill:
    """The bill of `nodes` machines in `seconds`.

    energy: spent by one of them. spares: machines that stand by, over their number.
    """
    spent = None if energy is None else energy.machines(nodes)
    prices = paying.lists
    if prices is None:
        return Bill(spent, None)
    from hwsim.costs.cost import cost_of
    from hwsim.costs.pricing import price_of

    unwired = ("without switches and cables between the nodes: --nodes describes none",)
    cost = cost_of(price_of(machine, prices)[paying.way], seconds, energy, prices, nodes, half=half, spares=spares)
    return Bill(spent, cost, notes=unwired if nodes > 1 and paying.way == "purchase" else ())
