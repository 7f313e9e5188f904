"""Prices of parts and machines: the key `price:`, and price lists.

    price: 30000 USD                                    purchase
    price: {purchase: ..., on_demand: 98 USD/h, spot: 30 USD/h, reserved: {value: 39 USD/h, term: 14 day}}

Each price may be `{value, low, high, date, mark, provider, instance, region}`, or a list of these for several providers. A
reservation of up to 6 months is a capacity block; longer ones are 1-year or 3-year terms. A volume is priced by its capacity,
and by accesses and bytes per second beyond those included:

    price: {capacity: 0.08 USD/GiB/month, iops: {over: 3000 1/s, each: 0.005 USD/month},
            throughput: {over: 125 MiB/s, each: 0.04 USD/month, of: 1 MiB/s}}
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import field as attribute
from dataclasses import replace
from itertools import pairwise
from typing import Final, Literal, NamedTuple, cast

from hwsim.records import dataclass
from hwsim.spec.decode import decode
from hwsim.spec.fields import field, place_field
from hwsim.spec.mistakes import Mistakes, Place
from hwsim.spec.tree import Tree, tree_of
from hwsim.units import BANDWIDTH, MONEY, PRICE, RATE, SIZE, Dimension, DollarsPerSecond, Quantity, Seconds, UnitError, parse_as

Mark = Literal["list", "cloud list", "quote", "street", "estimate", "recalled"]
PaymentOption = Literal["purchase", "on_demand", "1_year", "3_year", "spot", "block"]
PAYMENT_OPTIONS: Final[tuple[PaymentOption, ...]] = ("purchase", "on_demand", "1_year", "3_year", "spot", "block")
_TITLES: Final = ("buy", "on demand", "reserved 1 year", "reserved 3 years", "spot", "capacity block")
PAYMENT_TITLES: Final[Mapping[PaymentOption, str]] = dict(zip(PAYMENT_OPTIONS, _TITLES, strict=True))
BLOCK: Final = 15_811_200.0  # longest term of a capacity block, 183 days (seconds)
# default relative half-width of a price by its mark
SPREAD: Final = {"list": 0.1, "cloud list": 0.1, "quote": 0.1, "street": 0.2, "estimate": 0.35, "recalled": 0.35}
A_DATE: Final = "a year, a month or a day: 2026-06"
_DATE: Final = re.compile(r"(19|20)\d\d(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?")
_BUY: Final[tuple[Dimension, Dimension]] = (MONEY, MONEY / SIZE)  # units of the whole price, and per byte of capacity
_RENT: Final[tuple[Dimension, Dimension]] = (PRICE, PRICE / SIZE)


def option_of_term(term: float) -> PaymentOption:
    """Return the payment option of a reservation with a term (seconds).

    >>> option_of_term(BLOCK / 183), option_of_term(2 * BLOCK), option_of_term(6 * BLOCK)
    ('block', '1_year', '3_year')
    """
    return "block" if term <= BLOCK else "1_year" if term < 3.9 * BLOCK else "3_year"


def is_date(text: str) -> bool:
    """Return whether a text is a year, a month or a day.

    >>> is_date("2026-06"), is_date("June")
    (True, False)
    """
    return _DATE.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class OfferKeys:
    """The keys of a price in a file."""

    value: Tree | None = field("price: money, or money per time for a rental; with /GB, for each byte of capacity",
                               default=None, example="98.32 USD/h")  # fmt: skip
    capacity: Tree | None = field("price of a volume by its capacity, instead of `value`",
                                  default=None, example="0.08 USD/GB/month")  # fmt: skip
    iops: Tree | None = field("price of a volume's accesses per second beyond those included; a list for tiers",
                              default=None, example="{over: 3000 1/s, each: 0.005 USD/month}")  # fmt: skip
    throughput: Tree | None = field("price of a volume's bandwidth beyond the included one",
                                    default=None, example="{over: 125 MB/s, each: 0.04 USD/month}")  # fmt: skip
    low: Tree | None = field("lower end of the 90 % interval of the price (default: set by `mark`)", default=None)
    high: Tree | None = field("upper end of the 90 % interval of the price (default: set by `mark`)", default=None)
    date: str | int | None = field("date of the price: 2026, 2026-06 or 2026-06-17", default=None)
    mark: Mark | None = field("kind of price, which sets its uncertainty", default=None)
    provider: str = field("provider that asks the price", default="")
    instance: str = field("instance type of the provider that has this price", default="")
    region: str = field("region where this price applies", default="")
    source: str = field("document or page that states the price", default="")
    term: Seconds | None = field("term of a reservation; whole terms are paid", default=None, exclusive_minimum=0.0)
    billed: Seconds | None = field("billing increment of a rental (default: per second)", default=None, exclusive_minimum=0.0)


@dataclass(frozen=True, slots=True)
class TierKeys:
    """A tier of the price of a volume's performance, up to the next tier."""

    over: Tree = field("rate from which this price applies", example="3000 1/s")
    each: DollarsPerSecond = field("price of one access per second, or of the rate `of`", example="0.005 USD/month")
    of: Tree | None = field("rate that costs `each` (default: 1 1/s; 1 MB/s)", default=None, example="1 MiB/s")


class PriceTier(NamedTuple):
    """A price per second of each access or byte per second (USD/s), from the rate `over` on."""

    over: float
    each: float


class PricedAmounts(NamedTuple):
    """The capacity (B), accesses per second and bandwidth (B/s) of a part; None if not stated."""

    size: float | None = None
    iops: float | None = None
    bandwidth: float | None = None


def tiered_price(tiers: tuple[PriceTier, ...], rate: float) -> float:
    """Return the price (USD/s) of a number of accesses or bytes per second.

    >>> tiered_price((PriceTier(100.0, 2.0), PriceTier(200.0, 1.0)), 250.0), tiered_price((PriceTier(100.0, 2.0),), 100.0)
    (250.0, 0.0)
    """
    ends = [tier.over for tier in tiers[1:]] + [math.inf] * bool(tiers)
    return math.fsum(max(0.0, min(rate, end) - tier.over) * tier.each for tier, end in zip(tiers, ends, strict=True))


@dataclass(frozen=True, slots=True)
class Offer:
    """One price.

    Args:
        value: USD, or USD/s of a rental.
        low: lower end of the 90 % interval.
        high: upper end of the 90 % interval.
        per_byte: whether the price applies to each byte of the part's capacity.
        date: date of the price; "" if unknown.
        mark: kind of price; "" if unknown.
        provider: provider; "" if unknown.
        instance: instance of the provider; "" if it has no name.
        region: region; "" if unknown.
        source: source; "" if unknown.
        term: term of a reservation (s); 0: none.
        billed: billing increment (s); 0: none.
        iops: tiers for a volume's accesses per second beyond those included.
        throughput: tiers for a volume's bandwidth beyond the included one.
        place: place in the file.
    """

    value: float
    low: float
    high: float
    per_byte: bool = False
    date: str = ""
    mark: str = ""
    provider: str = ""
    source: str = ""
    term: float = 0.0
    billed: float = 0.0
    instance: str = ""
    region: str = ""
    iops: tuple[PriceTier, ...] = ()
    throughput: tuple[PriceTier, ...] = ()
    place: Place = place_field()

    @property
    def stores(self) -> bool:
        """Whether it is a price of storage, by capacity or performance."""
        return self.per_byte or bool(self.iops or self.throughput)

    def price(self, held: PricedAmounts) -> tuple[float, float, float] | None:
        """Return (value, low, high) for a part; None if the part lacks a number that the price depends on."""
        if (self.per_byte and held.size is None) or (self.iops and held.iops is None):
            return None
        if self.throughput and held.bandwidth is None:
            return None
        size = (held.size or 0.0) if self.per_byte else 1.0
        extra = tiered_price(self.iops, held.iops or 0.0) + tiered_price(self.throughput, held.bandwidth or 0.0)
        below, above = (end / self.value if self.value else 1.0 for end in (self.low, self.high))
        return self.value * size + extra, self.low * size + extra * below, self.high * size + extra * above


@dataclass(frozen=True, slots=True)
class Price:
    """The prices of a part or machine: any number of offers for each payment option."""

    offers: Mapping[PaymentOption, tuple[Offer, ...]] = attribute(default_factory=dict)

    def of(self, way: PaymentOption) -> tuple[Offer, ...]:
        """Return the offers of one payment option."""
        return self.offers.get(way, ())

    def __add__(self, other: Price) -> Price:
        return Price({way: (*self.of(way), *other.of(way)) for way in PAYMENT_OPTIONS})

    def __bool__(self) -> bool:
        return any(self.offers.values())


@dataclass(frozen=True, slots=True)
class PriceKeys:
    """The ways to pay for a part or machine."""

    purchase: Tree | None = field("purchase price: 30000 USD, or 0.06 USD/GB of storage", default=None, example="30000 USD")
    on_demand: Tree | None = field("on-demand rental price, billed per second: 98.32 USD/h", default=None, example="98.32 USD/h")
    spot: Tree | None = field("rental price of a machine that the provider may take back", default=None, example="25 USD/h")
    reserved: Tree | None = field("rental price of a reservation for a term: 1 year, 3 years, or a capacity block of days",
                                  default=None, example="{value: 39.33 USD/h, term: 14 day}")  # fmt: skip


def read_price(tree: Tree, mistakes: Mistakes, base: Offer | None = None) -> Price:
    """Return the value of a `price:`; mistakes are recorded.

    Args:
        tree: value in the file.
        mistakes: list of mistakes.
        base: an offer whose date, provider, source, mark, region and instance apply to prices without their own.
    """
    base = base or Offer(0.0, 0.0, 0.0)
    amount = tree if not tree.is_mapping else tree.get("value") or tree.get("capacity")
    if amount is not None:  # money alone is a purchase, money per time a rental
        way: PaymentOption = "on_demand" if "/" in re.sub("/[kMGTP]?i?B", "", str(amount.value)) else "purchase"
        return Price({way: _offers(tree, way, mistakes, base)})
    keys = decode(tree, PriceKeys, mistakes, ignore=("source", "ref"))
    if keys is None:
        return Price()
    if not (keys.purchase or keys.on_demand or keys.reserved or keys.spot):
        mistakes.add(tree.place, "the price has no amount", "such as {purchase: 30000 USD} or {on_demand: 98.32 USD/h}")
    base, found = replace(base, source=tree.text("source") or base.source), Price()
    for given, key in (
        (keys.purchase, "purchase"),
        (keys.on_demand, "on_demand"),
        (keys.spot, "spot"),
        (keys.reserved, "reserved"),
    ):
        for offer in () if given is None else _offers(given, key, mistakes, base):
            found += Price({option_of_term(offer.term) if key == "reserved" else cast("PaymentOption", key): (offer,)})
    return found


def _offers(tree: Tree, way: str, mistakes: Mistakes, base: Offer) -> tuple[Offer, ...]:
    offers = [_offer(element, way, mistakes, base) for element in tree.elements()]
    if tree.is_list and not offers:
        mistakes.add(tree.place, "the list of prices is empty", "remove the key: the answer names parts without a price")
    return tuple(offer for offer in offers if offer is not None)


def _offer(tree: Tree, way: str, mistakes: Mistakes, base: Offer) -> Offer | None:
    before = len(mistakes)
    mapping = tree if tree.is_mapping else tree_of({"value": tree}, tree.place)
    keys = decode(mapping, OfferKeys, mistakes, ignore=("ref", "note"))
    if keys is None:
        return None
    unit = _BUY if way == "purchase" else _RENT
    amount = keys.value or keys.capacity
    if amount is None or (keys.value is not None and keys.capacity is not None):
        mistakes.add(mapping.place, "expected either `value` or `capacity`", "98.32 USD/h, or {capacity: 0.08 USD/GB/month}")
        return None
    value, per_byte = _money(amount, unit if keys.value is not None else unit[1:], mistakes)
    per_byte = per_byte or keys.value is None
    tiers = [
        _tiers(name, given_tiers, dimension, way, mistakes)
        for name, given_tiers, dimension in (("iops", keys.iops, RATE), ("throughput", keys.throughput, BANDWIDTH))
    ]
    ends = []
    for name, end in (("low", keys.low), ("high", keys.high)):
        number = None if end is None else _money(end, unit[int(per_byte) :][:1], mistakes)[0]
        ends.append(number)
        if end is None or number is None or value is None:
            continue
        if (name == "low" and number > value) or (name == "high" and number < value):
            text = f"expected at {'most' if name == 'low' else 'least'} the value {amount.what()}, got {end.what()}"
            mistakes.add(end.place, text, "low <= value <= high")
    day = base.date if keys.date is None else str(keys.date)
    if day and not is_date(day):
        mistakes.add(mapping.key_place("date"), f"'{day[:40]}' is not a date", A_DATE)
    if keys.term is not None and way != "reserved":
        text = f"`term` applies to a `reserved` price, not to `{way}`"
        mistakes.add(mapping.key_place("term"), text, "reserved: {value: ..., term: 1 year}")
    if way == "reserved" and keys.term is None:
        mistakes.add(tree.place, "the reservation has no `term`", "such as {value: 39.33 USD/h, term: 14 day}")
    if keys.billed is not None and way == "purchase":
        mistakes.add(mapping.key_place("billed"), "`billed` applies to a rental, not to a purchase", None)
    if value is None or len(mistakes) > before:
        return None
    mark = keys.mark or base.mark or ("estimate" if (keys.source or base.source) == "guess" else "")
    spread = SPREAD.get(mark, 0.0)  # without a mark the price is exact, as all numbers of a file
    return Offer(
        value,
        value * (1.0 - spread) if ends[0] is None else ends[0],
        value * (1.0 + spread) if ends[1] is None else ends[1],
        per_byte,
        day,
        mark,
        keys.provider or base.provider,
        keys.source or base.source,
        keys.term or 0.0,
        keys.billed or 0.0,
        keys.instance or ("" if way == "purchase" else base.instance),
        keys.region or base.region,
        iops=tiers[0],
        throughput=tiers[1],
        place=tree.place,
    )


def _tiers(name: str, tree: Tree | None, dimension: Dimension, way: str, mistakes: Mistakes) -> tuple[PriceTier, ...]:
    if tree is None:
        return ()
    if way == "purchase":
        mistakes.add(tree.place, f"`{name}` applies to a rental, not to a purchase", "on_demand: {capacity: 0.08 USD/GB/month}")
        return ()
    tiers = []
    for entry in tree.elements():
        keys = decode(entry, TierKeys, mistakes, ignore=("ref", "note"))
        if keys is None:
            continue
        over = number_of_price(keys.over, dimension, mistakes)
        unit_rate = (1.0 if name == "iops" else 1e6) if keys.of is None else number_of_price(keys.of, dimension, mistakes)
        if unit_rate == 0:
            mistakes.add(entry.key_place("of"), "expected more than 0, got 0", "of: 1 MB/s")
        if over is not None and unit_rate:
            tiers.append(PriceTier(over, keys.each / unit_rate))
    for before, after in pairwise(tiers):
        if not before.over < after.over:
            mistakes.add(tree.place, f"expected the tiers of `{name}` in increasing order of `over`", None)
    return tuple(tiers)


def number_of_price(tree: Tree, dimension: Dimension, mistakes: Mistakes) -> float | None:
    """Return a non-negative number in SI units; None after a mistake is recorded."""
    if isinstance(tree.value, bool) or not isinstance(tree.value, str | int | float | Quantity):
        mistakes.add(tree.place, f"expected {dimension.name}, got {tree.what()}", f"such as '{dimension.example}'")
        return None
    try:
        value = parse_as(tree.value, dimension)
    except UnitError as error:
        mistakes.add_unit_error(tree.place, error)
        return None
    if value < 0:
        mistakes.add(tree.place, f"{tree.what()} cannot be negative")
        return None
    return value


def _money(tree: Tree, accepted: tuple[Dimension, ...], mistakes: Mistakes) -> tuple[float | None, bool]:
    """Return (value in SI units, whether it is per byte); messages name the first of the accepted units."""
    first: UnitError | None = None
    for index, dimension in enumerate(accepted):
        if isinstance(tree.value, bool) or not isinstance(tree.value, str | int | float | Quantity):
            break
        try:
            value = parse_as(tree.value, dimension)
        except UnitError as error:
            first = first or error
            continue
        if value < 0:
            mistakes.add(tree.place, f"{tree.what()} cannot be negative")
            return None, False
        return value, index > 0
    if first is None:
        mistakes.add(tree.place, f"expected {accepted[0].name}, got {tree.what()}", f"such as '{accepted[0].example}'")
    else:
        hint = first.hint if first.hint is None or "USD/s" not in first.hint else f"such as '{accepted[0].example}'"
        if hint is None and "price per time" in first.message and accepted[0] is MONEY:
            hint = "write a rental price under `on_demand` or `reserved`"
        mistakes.add(tree.place, first.message, hint)
    return None, False
