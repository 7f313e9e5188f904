"""Price of a machine: as a whole if a list has one, else the sum of its parts; parts without a price are named.

An hourly GPU price includes a share of the node, so a machine whose GPUs have an hourly price needs no other price.
A cloud volume is rented in addition to its machine, bought or rented, and is never part of the price of a whole machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hwsim.costs.amount import Amount, total
from hwsim.costs.library_match import swapped_parts
from hwsim.costs.prices import CABLES, OLD, AgedPrice, Prices, aged_price, load_prices, months_old
from hwsim.devices.offers import PAYMENT_OPTIONS, Offer, PaymentOption, PricedAmounts
from hwsim.devices.power_curves import loaded_watts
from hwsim.formats import format_duration
from hwsim.machine import Machine
from hwsim.machine.layout import Layout, LayoutPart
from hwsim.records import dataclass

RENTED: Final = ("gpu", "cpu")  # kinds of parts with an hourly price that includes the node
STORED: Final = ("volume", "filesystem")  # kinds of storage rented in addition to a machine


def short(source: str) -> str:
    """Return the first words of a source, which name its author.

    >>> short("NVIDIA, list at launch"), short("a spreadsheet: sheet 3")
    ('NVIDIA', 'a spreadsheet')
    """
    return re.split("[,:;(]", source, maxsplit=1)[0].strip()


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
        term: term of a reservation (seconds).
        billed: billing increment of a rent (seconds).
        whole: whether it is the price of a whole machine.
    """

    name: str
    count: int
    amount: Amount
    date: str = ""
    mark: str = ""
    provider: str = ""
    source: str = ""
    offers: int = 1
    term: float = 0.0
    billed: float = 0.0
    whole: bool = False

    @property
    def months(self) -> int | None:
        """Age of the price (months); None without a date."""
        return months_old(self.date)

    @property
    def old(self) -> bool:
        """Whether the price is so old that the output states its age."""
        return (self.months or 0) > OLD

    def __str__(self) -> str:
        """Return provider, mark and date.

        >>> str(PricedItem("p5.48xlarge", 1, Amount.exact(1.0), date="2026-01", mark="list", provider="AWS"))
        'AWS, list, 2026-01'
        """
        term = f"for terms of {format_duration(self.term)}" if self.term else ""
        said = ", ".join(filter(None, (self.provider or short(self.source), self.mark, self.date))) or "no source, no date"
        return f"{said}, {term}" if term else said


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

    @property
    def all_items(self) -> tuple[PricedItem, ...]:
        """Prices of the machine and of its volumes."""
        return *self.items, *self.volumes


def unlike_prices(first: Sequence[PricedItem], second: Sequence[PricedItem]) -> str:
    """Return the reason why two costs cannot be compared, such as different kinds of their largest prices; "" if they can."""
    kinds = [(bill[0].whole, bill[0].term) if bill else (False, 0.0) for bill in (first, second)]
    named = ["a price of a whole machine" if whole else "a sum of parts" for whole, _ in kinds]
    if named[0] == named[1]:
        named = [f"terms of {format_duration(term)}" if term else "no term" for _, term in kinds]
    return f"{named[1]} against {named[0]}" if kinds[0] != kinds[1] else ""


def price_of(machine: Machine, prices: Prices | None = None) -> dict[PaymentOption, PricedMachine]:
    """Return the price of a machine by payment option.

    prices: price lists; default: only the library's.
    """
    lists = load_prices() if prices is None else prices
    return {way: _of_way(machine.layout, lists, way) for way in PAYMENT_OPTIONS}


def _of_way(layout: Layout, prices: Prices, way: PaymentOption) -> PricedMachine:
    missing: list[str] = []
    items, volumes = _joined(_of_scope(layout, "", 1, prices, way, missing)), _joined(_volumes(layout, 1, prices, way))
    amount = total(item.amount for item in items) if items else None
    for listed in (items, volumes):
        listed.sort(key=lambda each: (-each.amount.value, each.name))
    return PricedMachine(way, amount, tuple(items), tuple(dict.fromkeys(missing)), tuple(volumes))


def _joined(items: Iterable[PricedItem]) -> list[PricedItem]:
    """Merge parts with equal names and prices."""
    by_name: dict[tuple[str, str, str, float], PricedItem] = {}
    for item in items:
        key = item.name, item.provider, item.date, item.amount.value / item.count
        first = by_name.get(key)
        if first is not None:
            count = first.count + item.count
            item = replace(first, count=count, amount=first.amount * (count / first.count))
        by_name[key] = item
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
    lacking: list[str] = []
    items: list[PricedItem] = []
    for part in layout.parts:
        name = inside + (f"{part.family}*" if part.numbered else part.family)
        if part.child is not None:
            items += _of_scope(part.child, f"{name}.", many * len(part.names), prices, way, lacking)
            continue
        if _rent(part, prices, way) is not None:
            continue  # along with the machine
        offer = _offer(part, prices, way)
        if offer is not None:
            items.append(_item(part.use or part.family, way, many * len(part.names), offer))
        elif part.kind != "volume" and loaded_watts(getattr(part.model, "power", None)) == 0:
            continue  # on the board of another, or for others that the file counts: it has no price of its own
        elif way == "purchase" or part.kind in RENTED or part.kind in STORED:
            lacking.append(f"{name} ({part.use})" if part.use else name)
    if way != "purchase" and any(part.kind == "gpu" for part in layout.parts):  # a GPU's hour has its share of the node in it
        lacking = [label for label in lacking if not _is_of_kind(layout, label, inside, "cpu")] if items else lacking
    yield from items if way == "purchase" else _of_others(items, layout, prices)
    missing += lacking
    if way == "purchase":
        yield from _cables(layout, inside, many, prices, missing)


def _of_others(items: Sequence[PricedItem], layout: Layout, prices: Prices) -> Iterator[PricedItem]:
    """Return the rented parts; parts from another provider than the machine's are marked."""
    ways = [prices.offers("machines", (layout.file,), layout.price, way) for way in PAYMENT_OPTIONS] if layout.file else []
    renting = {offer.provider for offers in ways[1:] for offer in offers if offer.provider}
    for item in items:
        strange = item.provider and renting and item.provider not in renting
        yield replace(item, name=f"{item.name} ({layout.file} is of {', '.join(sorted(renting))})") if strange else item


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


def _is_of_kind(layout: Layout, text: str, inside: str, kind: str) -> bool:
    families = {inside + (f"{part.family}*" if part.numbered else part.family) for part in layout.parts if part.kind == kind}
    return text.partition(" (")[0] in families


def _names_of(part: LayoutPart) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, (part.use, part.use.rpartition("/")[2], part.family))))


def _held(part: LayoutPart) -> PricedAmounts:
    """Return the priced amounts of a part: capacity, accesses per second, and bandwidth."""
    model = part.model
    numbers = (getattr(model, name, None) for name in ("size", "iops", "read_bandwidth" if part.kind == "disk" else "bandwidth"))
    return PricedAmounts(*(float(number) if isinstance(number, int | float) else None for number in numbers))


def _offer(part: LayoutPart, prices: Prices, way: PaymentOption) -> AgedPrice | None:
    return aged_price(prices.offers("parts", _names_of(part), part.price, way), _held(part))


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
    term = offer.term if way == "reserved" else 0.0
    return PricedItem(
        name, count, chosen.amount * count, offer.date, offer.mark, offer.provider, offer.source, chosen.offers, term,
        offer.billed if way == "on_demand" else term,
    )  # fmt: skip


def _cables(layout: Layout, inside: str, many: int, prices: Prices, missing: list[str]) -> Iterator[PricedItem]:
    """Yield the prices of cables, per end of a fast link; slower cables are included in the price of their devices."""
    for bundle in layout.wires.bundles:
        if not bundle.model.network or bundle.model.kind in ("direct", "wifi") or bundle.model.peak() < min(CABLES.values()):
            continue
        ends = 2 * many * int(bundle.count.sum())
        names = tuple(name for name, least in CABLES.items() if bundle.model.peak() >= least)
        offer = aged_price(prices.offers("others", names, None, "purchase"), PricedAmounts())
        if offer is None:
            missing.append(f"cables of {inside}{bundle.name}")
        else:
            yield _item(names[0], "purchase", ends, offer)
