"""Price, power, energy and carbon of an option's machines over their time of use."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

from hwsim.costs.amount import Amount
from hwsim.costs.energy import Energy, energy_at
from hwsim.costs.machine_price import PricedMachine, price_of
from hwsim.costs.power import power_of
from hwsim.costs.prices import Prices, load_prices
from hwsim.costs.site import Site, read_site
from hwsim.devices.offers import PAYMENT_TITLES, PaymentOption
from hwsim.machine import Machine
from hwsim.planning.question import Question
from hwsim.records import dataclass
from hwsim.spec import Mistakes, find

BUSY = {"gpu": 1.0, "cpu": 0.1, "nic": 0.5, "switch": 0.5}  # assumed busy share by kind of device, in closed form
DISKS = ("ssd", "hdd", "raid")


@dataclass(frozen=True, slots=True)
class OptionOutlay:
    """Numbers of a machine that do not depend on a run.

    Args:
        nodes: number of nodes.
        gpus: number of GPUs.
        capacity: total disk capacity (bytes).
        power: power at the meter with all parts busy (watts); None if no part has a power.
        rest: energy of one idle second.
        work: energy of one second with busy GPUs.
        priced: prices by payment option; None if the question needs no money.
        exact: whether the machine was built; otherwise the numbers are interpolated between two machines.
        machine: function that builds the machine; None if it is interpolated.
    """

    nodes: int
    gpus: int
    capacity: float
    power: Amount | None
    rest: Energy | None
    work: Energy | None
    priced: Mapping[PaymentOption, PricedMachine] | None
    unpowered: tuple[str, ...] = ()
    exact: bool = True
    machine: Callable[[], Machine] | None = None

    def between(self, second: OptionOutlay, part: float) -> OptionOutlay:
        """Interpolate between two machines that differ in one count."""
        return OptionOutlay(
            nodes=round(_mean(self.nodes, second.nodes, part)),
            gpus=round(_mean(self.gpus, second.gpus, part)),
            capacity=_mean(self.capacity, second.capacity, part),
            power=_amounts(self.power, second.power, part),
            rest=_energies(self.rest, second.rest, part),
            work=_energies(self.work, second.work, part),
            priced=_prices(self.priced, second.priced, part),
            unpowered=self.unpowered,
            exact=False,
        )

    def drawing(self, busy: float, seconds: float) -> Energy | None:
        """Return the energy at the meter over a period; GPUs are busy for a share of it."""
        found = _energies(self.rest, self.work, busy)
        return None if found is None else found.times(seconds)


def _mean(a: float, b: float, part: float) -> float:
    return a + part * (b - a)


def _amounts(a: Amount | None, b: Amount | None, part: float) -> Amount | None:
    if a is None or b is None:
        return None
    return Amount(_mean(a.value, b.value, part), _mean(a.low, b.low, part), _mean(a.high, b.high, part))


def _energies(a: Energy | None, b: Energy | None, part: float) -> Energy | None:
    if a is None or b is None:
        return None
    numbers: dict[str, Any] = {name: _amounts(getattr(a, name), getattr(b, name), part) for name in ("joules", "wall", "carbon")}
    numbers |= {name: _mean(getattr(a, name), getattr(b, name), part) for name in ("watts", "peak", "loaded")}
    return replace(a, **numbers)


def _prices(
    a: Mapping[PaymentOption, PricedMachine] | None, b: Mapping[PaymentOption, PricedMachine] | None, part: float
) -> Mapping[PaymentOption, PricedMachine] | None:
    return None if a is None or b is None else {way: _price(priced, b[way], part) for way, priced in a.items()}


def _price(a: PricedMachine, b: PricedMachine, part: float) -> PricedMachine:
    mean = replace(a, amount=_amounts(a.amount, b.amount, part))
    if len(a.volumes) != len(b.volumes):
        return mean
    pairs = zip(a.volumes, b.volumes, strict=True)
    return replace(mean, volumes=tuple(replace(x, amount=_amounts(x.amount, y.amount, part) or x.amount) for x, y in pairs))


@dataclass(slots=True)
class Outlay:
    """The prices and the site of a question, which set the cost of machines."""

    question: Question
    prices: Prices
    _facts: dict[str, OptionOutlay] = field(default_factory=dict)

    @classmethod
    def of(cls, question: Question) -> Outlay:
        """Return the prices and site of a question.

        Raises:
            SpecError: the price list or the site has mistakes.
        """
        keys = question.keys
        given = None if keys.prices is None else find("prices", keys.prices, question.folder)
        prices = load_prices(given, provider=keys.provider)
        if keys.site is not None:
            mistakes = Mistakes()
            site = read_site(keys.site, mistakes, dict(prices.sites))
            mistakes.raise_if_any()
            prices = replace(prices, site=site.over(prices.site))
        if keys.residual is not None:
            prices = replace(prices, residual=keys.residual)
        return cls(question, prices)

    @property
    def site(self) -> Site:
        """Site of the machines."""
        return self.prices.site

    def facts(self, key: str, machine: Callable[[], Machine]) -> OptionOutlay:
        """Return the numbers of a machine, computed once per key."""
        if key not in self._facts:
            self._facts[key] = replace(self._of(machine()), machine=machine)
        return self._facts[key]

    def _of(self, machine: Machine) -> OptionOutlay:
        ways = dict.fromkeys(("purchase", self.question.keys.rent))
        power, site = power_of(machine), self.site
        loaded = power.loaded if site.pue is None else power.loaded.of(site.pue)
        gpus = machine.devices_of("gpu")
        nodes = {machine.node_of(name) for name in gpus or machine.devices_of("cpu")}
        return OptionOutlay(
            nodes=max(1, len(nodes)),
            gpus=len(gpus),
            capacity=_capacity(machine),
            power=loaded if power.items else None,
            rest=energy_at(machine, 1.0, {}, site),
            work=energy_at(machine, 1.0, BUSY, site),
            priced=price_of(machine, self.prices, ways) if self.question.needs_money else None,
            unpowered=power.missing,
        )

    def lacking(self, facts: OptionOutlay) -> str:
        """Return that the cost is unknown, because parts have no price; "" if all have one, or if it needs no money."""
        way, provider = self.question.keys.rent, self.question.keys.provider
        names = () if facts.priced is None else facts.priced[way].missing
        listed = "; ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        kind = "purchase" if way == "purchase" else PAYMENT_TITLES[way]
        return f"the cost is unknown: no {kind} price{f' of {provider}' if provider else ''} for {listed}" if names else ""

    def price(self, facts: OptionOutlay) -> Amount | None:
        """Return the purchase price of the machine; None if it is rented."""
        bought = None if facts.priced is None else facts.priced["purchase"]
        return None if bought is None or bought.missing else bought.amount


def _capacity(machine: Machine) -> float:
    """Return the total capacity of disks with a known size (bytes)."""
    return math.fsum(_size(machine, name) for kind in DISKS for name in machine.devices_of(kind))  # whole bytes


def _size(machine: Machine, name: str) -> float:
    size: float | None = getattr(machine.device(name).model, "size", None)
    return size or 0.0
