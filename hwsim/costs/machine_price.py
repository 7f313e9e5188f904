"""Price of a machine: as a whole if a list has one, else the sum of its parts; parts without a price are named.

An hourly GPU price includes a share of the node, so a machine whose GPUs have an hourly price needs no other price.
An instance of a provider, such as p5.48xlarge, has a price of this provider or none, never one of its parts elsewhere.
A cloud volume is rented in addition to its machine, bought or rented, and is never part of the price of a whole machine.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hwsim.costs.amount import Amount, total
from hwsim.costs.library_match import swapped_parts
from hwsim.costs.prices import CABLES, OLD, AgedPrice, Prices, aged_price, load_prices, months_old
from hwsim.devices.offers import PAYMENT_OPTIONS, PAYMENT_TITLES, Offer, PaymentOption, PricedAmounts
from hwsim.devices.power_curves import loaded_watts
from hwsim.formats import pluralized
from hwsim.machine import Machine
from hwsim.machine.layout import Layout, LayoutPart
from hwsim.records import dataclass
from hwsim.units import DAY, YEAR

HOUR: Final = 3600.0
RENTED: Final = ("gpu", "cpu")  # kinds of parts with an hourly price that includes the node
STORED: Final = ("volume", "filesystem")  # kinds of storage rented in addition to a machine


def short(source: str) -> str:
    """Return the first words of a source, which name its author.

    >>> short("NVIDIA, list at launch"), short("a spreadsheet: sheet 3")
    ('NVIDIA', 'a spreadsheet')
    """
    return re.split("[,:;(]", source, maxsplit=1)[0].strip()


def term_text(seconds: float) -> str:
    """Return the term of a reservation as text.

    >>> term_text(DAY), term_text(14 * DAY), term_text(3 * YEAR)
    ('1 day', '14 days', '3 years')
    """
    years = seconds / YEAR
    return (
        pluralized(round(years), "year")
        if round(years) and abs(years - round(years)) < 0.01
        else pluralized(round(seconds / DAY), "day")
    )


@dataclass(frozen=True, slots=True)
class PricedItem:
    """The price of equal parts, or of whole machines.

    Args:
        name: name of the part in the library, else in the file.
        count: number of parts.
        amount: price of all of them (USD or USD/s).
        date: date of the offer.
        mark: kind of price.
        provider: provider of the offer.
        source: source of the offer.
        offers: number of offers.
        instance: instance of the provider.
        region: region of the offer.
        term: term of a reservation (seconds).
        billed: billing increment of a rent (seconds).
        whole: whether it is the price of a whole machine.
        bought: whether it is paid once, instead of per time.
    """

    name: str
    count: int
    amount: Amount
    date: str = ""
    mark: str = ""
    provider: str = ""
    source: str = ""
    offers: int = 1
    instance: str = ""
    region: str = ""
    term: float = 0.0
    billed: float = 0.0
    whole: bool = False
    bought: bool = True

    @property
    def months(self) -> int | None:
        """Age of the price (months); None without a date."""
        return months_old(self.date)

    @property
    def old(self) -> bool:
        """Whether the price is so old that the output states its age."""
        return (self.months or 0) > OLD

    def __str__(self) -> str:
        """Return provider, instance, region, mark, date and term.

        >>> str(PricedItem("t4", 1, Amount.exact(1.0), date="2026", mark="cloud list", provider="AWS", instance="g4dn.metal"))
        'AWS g4dn.metal, cloud list, 2026'
        """
        seller = f"{self.provider or short(self.source)} {'' if self.instance == self.name else self.instance}".strip()
        term = f"term {term_text(self.term)}" if self.term else ""
        region = "" if self.region == "not stated" else self.region
        return ", ".join(filter(None, (seller, region, self.mark, self.date, term))) or "no source, no date"


@dataclass(frozen=True, slots=True)
class PricedMachine:
    """The price of a machine for one payment option.

    Args:
        amount: price of all priced parts (USD, or USD/s of a rent); None if no part has a price.
        items: prices of the parts, largest first.
        missing: names of parts without a price.
        volumes: rented storage (USD/s), not included in `amount`.
    """

    way: PaymentOption
    amount: Amount | None
    items: tuple[PricedItem, ...]
    missing: tuple[str, ...]
    volumes: tuple[PricedItem, ...]

    def times(self, factor: float) -> PricedMachine:
        """Return the price of more or fewer machines."""
        return self if self.amount is None else replace(self, amount=self.amount * factor)

    @property
    def all_items(self) -> tuple[PricedItem, ...]:
        """Prices of the machine and of its volumes."""
        return *self.items, *self.volumes


def unlike_prices(first: Sequence[PricedItem], second: Sequence[PricedItem]) -> str:
    """Return the reason why two costs cannot be compared, by the kind of their largest prices; "" if they can.

    An estimate is not compared with a price that somebody asks, a sum of parts to buy with a machine to buy, and terms differ.

    >>> unlike_prices([PricedItem("node", 1, Amount.exact(9.0), mark="street", whole=True)],
    ...               [PricedItem("chip", 8, Amount.exact(1.0), mark="estimate")])
    'an estimated sum of parts against a price of a machine'
    """
    kinds = [price_kind(bill) for bill in (second, first)]
    return " against ".join(kinds) if all(kinds) and kinds[0] != kinds[1] else ""


def price_kind(prices: Sequence[PricedItem]) -> str:
    """Return the kind of the largest price of a cost as text; "" without prices."""
    if not prices:
        return ""
    item = prices[0]
    thing = "price of a machine" if item.whole else "sum of parts"
    thing = thing if item.bought else f"rent for terms of {term_text(item.term)}" if item.term else "rent"
    return f"{'an estimated' if item.mark in ('estimate', 'recalled') else 'a'} {thing}"


def price_of(
    machine: Machine, prices: Prices | None = None, ways: Iterable[PaymentOption] = PAYMENT_OPTIONS
) -> dict[PaymentOption, PricedMachine]:
    """Return the price of a machine by payment option.

    Args:
        machine: machine.
        prices: price lists; default: only the library's.
        ways: payment options.
    """
    lists = load_prices() if prices is None else prices
    return {way: _of_way(machine.layout, lists, way) for way in ways}


def _of_way(layout: Layout, prices: Prices, way: PaymentOption) -> PricedMachine:
    missing: list[str] = []
    items, volumes = _joined(_of_scope(layout, "", 1, prices, way, missing)), _joined(_volumes(layout, 1, prices, way))
    amount = total(item.amount for item in items) if items else None
    for listed in (items, volumes):
        listed.sort(key=lambda each: (-each.amount.value, each.name))
    return PricedMachine(way, amount, tuple(items), tuple(dict.fromkeys(missing)), tuple(volumes))


def _joined(items: Iterable[PricedItem]) -> list[PricedItem]:
    """Merge parts with equal names; those with equal prices share one error."""
    by_name: dict[str, PricedItem] = {}
    for item in items:
        first = by_name.get(item.name)
        if first is not None:
            count = first.count + item.count
            is_equal = math.isclose(first.amount.value * item.count, item.amount.value * first.count)
            amount = first.amount * (count / first.count) if is_equal else first.amount + item.amount
            item = replace(first, count=count, amount=amount)
        by_name[item.name] = item
    return list(by_name.values())


def _of_scope(
    layout: Layout, inside: str, many: int, prices: Prices, way: PaymentOption, missing: list[str]
) -> Iterator[PricedItem]:
    """Yield the price of a machine as a whole, or of its parts."""
    others = swapped_parts(layout)
    cards = None if others is None else _cards(layout, others, many, prices, way)
    called = (layout.file,) if layout.file and cards is not None else ()
    of_machine = aged_price(prices.offers("machines", called, layout.price, way), PricedAmounts())
    if of_machine is not None:
        yield replace(_item(layout.file or "the machine", way, many, of_machine), whole=True)
        yield from cards or ()
        return
    if providers := prices.instance_providers(layout.file):
        missing.append(_no_instance_price(layout, providers, called, prices, way))
        return
    lacking: list[tuple[str, str]] = []
    items: list[PricedItem] = []
    for part in layout.parts:
        name = inside + (f"{part.family}*" if part.numbered else part.family)
        if part.child is not None:
            items += _of_scope(part.child, f"{name}.", many * len(part.names), prices, way, missing)
            continue
        if _rent(part, prices, way) is not None:
            continue  # along with the machine
        offer = _offer(part, prices, way)
        if offer is not None:
            items.append(_item(part.use or part.family, way, many * len(part.names), offer))
        elif part.kind != "volume" and loaded_watts(getattr(part.model, "power", None)) == 0:
            continue  # on the board of another, or for others that the file counts: it has no price of its own
        elif way == "purchase" or part.kind in RENTED or part.kind in STORED:
            lacking.append((part.kind, f"{name} ({part.use})" if part.use else name))
    with_node = (
        way != "purchase" and items and any(part.kind == "gpu" for part in layout.parts)
    )  # a GPU's hour has its share of it
    missing += [label for kind, label in lacking if not (with_node and kind == "cpu")]
    yield from items
    if way == "purchase":
        yield from _cables(layout, inside, many, prices, missing)


def _no_instance_price(layout: Layout, providers: set[str], called: Sequence[str], prices: Prices, way: PaymentOption) -> str:
    """Return the name of an instance without a price, and the nearest alternatives: its other payments, its GPU elsewhere."""
    name = f"{layout.file}, an instance of {', '.join(sorted(providers))}"
    if not called:
        return f"{name}, with other parts"
    everyone, gpu = replace(prices, provider=""), next((part for part in layout.parts if part.kind == "gpu"), None)
    offers = {option: everyone.offers("machines", called, None, option) for option in PAYMENT_OPTIONS}
    rents = [(option, price) for option, found in offers.items() if (price := aged_price(found, PricedAmounts())) is not None]
    others = [f"{PAYMENT_TITLES[option]} {_price_text(price, option)}" for option, price in rents]
    if gpu is not None and (price := _offer(gpu, everyone, way)) is not None:
        others.append(f"{gpu.use} elsewhere {_price_text(price, way)} each")
    return f"{name}; nearest: {', '.join(others)}" if others else name


def _price_text(price: AgedPrice, way: PaymentOption) -> str:
    return f"{price.amount.value:,.0f} USD" if way == "purchase" else f"{price.amount.value * HOUR:.4g} USD/h"


def _cards(layout: Layout, others: Mapping[str, str], many: int, prices: Prices, way: PaymentOption) -> list[PricedItem] | None:
    """Return the surcharge of NICs that replace those of a library machine; None if its price does not apply.

    others: replaced parts of the library machine, by family.
    """
    items = []
    for part in layout.parts:
        listed = others.get(part.family)
        if listed is None:
            continue
        if part.kind != "nic" or way != "purchase":
            return None
        offer = aged_price(prices.offers("parts", _names_of(part), part.price, way), PricedAmounts())
        instead = aged_price(prices.offers("parts", (listed, listed.rpartition("/")[2]), None, way), PricedAmounts())
        if offer is None or instead is None:
            return None
        more = replace(offer, amount=offer.amount + instead.amount * -1.0)
        items.append(_item(f"{part.use} in place of {listed}", way, many * len(part.names), more))
    return items


def _names_of(part: LayoutPart) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, (part.use, part.use.rpartition("/")[2], part.family))))


def _held(part: LayoutPart) -> PricedAmounts:
    """Return the priced amounts of a part: capacity, accesses per second, and bandwidth."""
    model = part.model
    numbers = (getattr(model, name, None) for name in ("size", "iops", "read_bandwidth" if part.kind == "disk" else "bandwidth"))
    return PricedAmounts(*(float(number) if isinstance(number, int | float) else None for number in numbers))


def _offer(part: LayoutPart, prices: Prices, way: PaymentOption) -> AgedPrice | None:
    offers = prices.offers("parts", _names_of(part), part.price, way)
    of_several = [offer for offer in offers if len(part.names) == 1 or not offer.instance.startswith("1 GPU")]
    return aged_price(of_several or offers, _held(part))


def _rent(part: LayoutPart, prices: Prices, way: PaymentOption) -> AgedPrice | None:
    """Return the rent of a volume for the payment option of its machine; None if it is not rented."""
    if part.child is not None or (way != "on_demand" and _offer(part, prices, way) is not None):
        return None
    offers = prices.offers("parts", _names_of(part), part.price, "on_demand")
    kept: Iterable[Offer] = offers if part.kind in STORED else (offer for offer in offers if offer.stores)
    return aged_price(kept, _held(part))


def _volumes(layout: Layout, many: int, prices: Prices, way: PaymentOption) -> Iterator[PricedItem]:
    """Yield the rented storage of a machine and of its inner machines (USD/s)."""
    for part in layout.parts:
        if part.child is not None:
            yield from _volumes(part.child, many * len(part.names), prices, way)
        elif (rent := _rent(part, prices, way)) is not None:
            yield _item(part.use or part.family, way, many * len(part.names), rent)


def _item(name: str, way: PaymentOption, count: int, chosen: AgedPrice) -> PricedItem:
    offer = chosen.offer
    return PricedItem(
        name, count, chosen.amount * count, offer.date, offer.mark, offer.provider, offer.source, chosen.offers, offer.instance,
        offer.region, offer.term, offer.term or offer.billed, bought=way == "purchase",
    )  # fmt: skip


def cable_ends(layout: Layout) -> Iterator[tuple[str, str, int]]:
    """Yield (name of the links, name of the cable, number of ends) of fast links; slower cables are part of their devices."""
    for bundle in layout.wires.bundles:
        peak = bundle.model.peak()
        if bundle.model.network and bundle.model.kind not in ("direct", "wifi") and peak >= min(CABLES.values()):
            name = next(name for name, least in CABLES.items() if peak >= least)
            yield bundle.name, name, 2 * int(bundle.count.sum())


def _cables(layout: Layout, inside: str, many: int, prices: Prices, missing: list[str]) -> Iterator[PricedItem]:
    """Yield the price of a cable for each end of a fast link; a cable without a price costs as much as the next slower one."""
    for links, name, ends in cable_ends(layout):
        slower = tuple(CABLES)[tuple(CABLES).index(name) :]
        offer = aged_price(prices.offers("others", slower, None, "purchase"), PricedAmounts())
        if offer is None:
            missing.append(f"cables of {inside}{links}")
        else:
            yield _item(name, "purchase", ends * many, offer)
