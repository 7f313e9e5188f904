"""Prices of parts and machines: the key `price:`, and prices of lists.

    price: 30000 USD                                    bought
    price: {purchase: ..., on_demand: 98 USD/h, reserved: {value: 39 USD/h, term: 14 day}}

Every price may be `{value, low, high, date, mark, provider}`, or a list of these: of several providers.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from hwsim.records import dataclass
from hwsim.spec.decode import decode
from hwsim.spec.fields import field, place_field
from hwsim.spec.mistakes import Mistakes, Place
from hwsim.spec.tree import Tree, tree_of
from hwsim.units import MONEY, PRICE, SIZE, Dimension, Seconds, UnitError, parse_as

Mark = Literal["list", "quote", "street", "estimate", "recalled"]
Way = Literal["purchase", "on_demand", "reserved"]
WAYS: Final[tuple[Way, ...]] = ("purchase", "on_demand", "reserved")
SPREAD: Final = {"list": 0.1, "quote": 0.1, "street": 0.2, "estimate": 0.35, "recalled": 0.35}  # half a 90 % range, if not given
A_DATE: Final = "a year, a month or a day: 2026-06"
_DATE: Final = re.compile(r"(19|20)\d\d(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?")
_UNITS: Final[dict[Way, tuple[Dimension, Dimension]]] = {  # of the whole; for each byte that it holds
    "purchase": (MONEY, MONEY / SIZE),
    "on_demand": (PRICE, PRICE / SIZE),
    "reserved": (PRICE, PRICE / SIZE),
}


def is_date(text: str) -> bool:
    """Whether it is a year, a month or a day.

    >>> is_date("2026-06"), is_date("June")
    (True, False)
    """
    return _DATE.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class OfferKeys:
    """A price as a file writes it."""

    value: Tree = field("amount of money, or money by time for a rent; with /GB for each byte that it holds")
    low: Tree | None = field("lower end of a 90 % range (default: by its mark)", default=None)
    high: Tree | None = field("upper end", default=None)
    date: str | int | None = field("when it was read: 2026, 2026-06 or 2026-06-17", default=None)
    mark: Mark | None = field("how sure it is", default=None)
    provider: str = field("who asks it", default="")
    source: str = field("where it was read", default="")
    term: Seconds | None = field("of a reserved rent: paid in whole terms", default=None, exclusive_minimum=0.0)
    billed: Seconds | None = field(
        "of a rent: what is paid in whole (default: every second)", default=None, exclusive_minimum=0.0
    )


@dataclass(frozen=True, slots=True)
class Offer:
    """One price: USD, or USD/s of a rent; `per_byte`: of each byte that the part holds.

    date: "" if not known. term, billed: seconds, 0 for none.
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
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class Price:
    """The prices of a part or machine; each way may have several, of several providers."""

    purchase: tuple[Offer, ...] = ()
    on_demand: tuple[Offer, ...] = ()
    reserved: tuple[Offer, ...] = ()

    def of(self, way: Way) -> tuple[Offer, ...]:
        """Its offers of one way to pay."""
        offers: tuple[Offer, ...] = getattr(self, way)
        return offers

    def __bool__(self) -> bool:
        return bool(self.purchase or self.on_demand or self.reserved)


@dataclass(frozen=True, slots=True)
class PriceKeys:
    """Ways to pay for a part or machine."""

    purchase: Tree | None = field("bought: 30000 USD, or 0.06 USD/GB of what stores", default=None, example="30000 USD")
    on_demand: Tree | None = field("rented by the second: 98.32 USD/h", default=None, example="98.32 USD/h")
    reserved: Tree | None = field("rented for a term", default=None, example="{value: 39.33 USD/h, term: 14 day}")


def read_price(tree: Tree, mistakes: Mistakes, *, date: str = "", provider: str = "", source: str = "") -> Price:
    """The value of a `price:`; its mistakes are noted.

    Args:
        date, provider, source: for prices without their own.
    """
    if not tree.is_mapping or tree.get("value") is not None:  # money alone is a purchase, money by time a rent
        first = tree if not tree.is_mapping else tree.get("value")
        way: Way = "on_demand" if first is not None and "/" in str(first.value).replace("/GB", "") else "purchase"
        return Price(**{way: _offers(tree, way, mistakes, date, provider, source)})
    keys = decode(tree, PriceKeys, mistakes, ignore=("source", "ref"))
    if keys is None:
        return Price()
    if not (keys.purchase or keys.on_demand or keys.reserved):
        mistakes.add(tree.place, "a price without a number", "such as {purchase: 30000 USD} or {on_demand: 98.32 USD/h}")
    origin = tree.text("source") or source
    return Price(**{
        way: _offers(given, way, mistakes, date, provider, origin)
        for way in WAYS
        if (given := getattr(keys, way)) is not None
    })  # fmt: skip


def _offers(tree: Tree, way: Way, mistakes: Mistakes, date: str, provider: str, source: str) -> tuple[Offer, ...]:
    found = [_offer(each, way, mistakes, date, provider, source) for each in tree.elements()]
    if tree.is_list and not found:
        mistakes.add(tree.place, "an empty list of prices", "leave the key out: a part without a price is named")
    return tuple(each for each in found if each is not None)


def _offer(tree: Tree, way: Way, mistakes: Mistakes, date: str, provider: str, source: str) -> Offer | None:
    before = len(mistakes)
    given = tree if tree.is_mapping else tree_of({"value": tree}, tree.place)
    written = decode(given, OfferKeys, mistakes, ignore=("ref", "note"))
    if written is None:
        return None
    unit = _UNITS[way]
    value, per_byte = _money(written.value, unit, mistakes)
    ends = []
    for name, end in (("low", written.low), ("high", written.high)):
        number = None if end is None else _money(end, unit[int(per_byte) :][:1], mistakes)[0]
        ends.append(number)
        if end is None or number is None or value is None:
            continue
        if (name == "low" and number > value) or (name == "high" and number < value):
            text = f"the {name} end, {end.what()}, is on the wrong side of {written.value.what()}"
            mistakes.add(end.place, text, "low <= value <= high")
    day = date if written.date is None else str(written.date)
    if day and not is_date(day):
        mistakes.add(given.key_place("date"), f"'{day[:40]}' is not a date", A_DATE)
    if written.term is not None and way != "reserved":
        text = f"'term' goes with a reserved rent, not with {way}"
        mistakes.add(given.key_place("term"), text, "reserved: {value: ..., term: 1 year}")
    if way == "reserved" and written.term is None:
        mistakes.add(tree.place, "a reserved rent without its term", "such as {value: 39.33 USD/h, term: 14 day}")
    if written.billed is not None and way == "purchase":
        mistakes.add(given.key_place("billed"), "'billed' goes with a rent, not with a purchase", None)
    if value is None or len(mistakes) > before:
        return None
    spread = SPREAD.get(written.mark or "", 0.0)  # without a mark it is taken as exact, as all numbers of a file
    low, high = ends
    return Offer(
        value,
        value * (1.0 - spread) if low is None else low,
        value * (1.0 + spread) if high is None else high,
        per_byte,
        day,
        written.mark or "",
        written.provider or provider,
        written.source or source,
        written.term or 0.0,
        written.billed or 0.0,
        place=tree.place,
    )


def _money(tree: Tree, accepted: tuple[Dimension, ...], mistakes: Mistakes) -> tuple[float | None, bool]:
    """(value in SI units, whether it is for each byte) of a text in one of the units; messages name the first."""
    first: UnitError | None = None
    for at, dimension in enumerate(accepted):
        if isinstance(tree.value, bool) or not isinstance(tree.value, str | int | float):
            break
        try:
            value = parse_as(tree.value, dimension)
        except UnitError as error:
            first = first or error
            continue
        if value < 0:
            mistakes.add(tree.place, f"{tree.what()} cannot be negative")
            return None, False
        return value, at > 0
    if first is None:
        mistakes.add(tree.place, f"{tree.what()} is not {accepted[0].name}", f"such as '{accepted[0].example}'")
    else:
        hint = first.hint if first.hint is None or "USD/s" not in first.hint else f"such as '{accepted[0].example}'"
        if hint is None and "price per time" in first.message and accepted[0] is MONEY:
            hint = "a rent goes under on_demand or reserved"
        mistakes.add(tree.place, first.message, hint)
    return None, False
