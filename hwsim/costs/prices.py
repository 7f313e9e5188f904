"""Price lists (`hwsim: prices/1`) of parts, whole machines and sites.

The library's lists are `machines/prices/*.yaml`; a list of the user overrides them.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field as attribute
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from hwsim.costs.amount import Amount
from hwsim.costs.site import Site, SiteKeys, read_site
from hwsim.devices.offers import (
    A_DATE,
    PAYMENT_OPTIONS,
    Mark,
    Offer,
    OfferKeys,
    PaymentOption,
    Price,
    PricedAmounts,
    PriceKeys,
    is_date,
    read_price,
)
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, SpecError, Tree, check_header, decode, field, find, folder, names, read
from hwsim.units import YEAR, Ratio, Seconds

HEADER: Final = "prices/1"
Table = Literal["parts", "machines", "others"]
CABLES: Final[Mapping[str, float]] = {"cable-800": 75e9, "cable": 12.5e9}  # minimum link bandwidth of each cable price (B/s)
OLD: Final = 18  # age from which the output states it (months)
LIFETIME: Final = 4 * YEAR


@dataclass(frozen=True, slots=True)
class PricesFile:
    """A price list."""

    parts: Mapping[str, Tree] = field("prices of parts, by library name or by the part's name in the machine file",
                                      default_factory=dict)  # fmt: skip
    machines: Mapping[str, Tree] = field("prices of whole machines by name, used instead of the sum of their parts",
                                         default_factory=dict)  # fmt: skip
    others: Mapping[str, Tree] = field(
        "prices of cables per end of a network link: `cable` for 100 Gb/s or more, `cable-800` for 600 Gb/s or more",
        default_factory=dict,
    )
    name: str = field("title of the list", default="", record="for readers")
    notes: str = field("free text", default="", record="for readers")
    currency: Literal["USD"] = field("currency of all prices", default="USD", record="there is no other")
    date: str | int | None = field("default date of a price", default=None)
    provider: str = field("default provider of a price", default="")
    region: str = field("default region of a price", default="")
    mark: Mark | None = field("default kind of a price", default=None)
    source: str = field("default source of a price", default="")
    lifetime: Seconds | None = field("depreciation time of bought machines (default: 4 year)", default=None,
                                     exclusive_minimum=0.0)  # fmt: skip
    residual: Ratio | None = field("residual value at the end of `lifetime`, as a share of the price (default: 0)", default=None)
    site: Tree | None = field("default site of the machines: its numbers, or its name", default=None, example="{pue: 1.2}")
    sites: Mapping[str, Tree] = field("sites by name", default_factory=dict)


@dataclass(frozen=True, slots=True)
class PriceEntry:
    """A collection of prices by name."""

    parts: Mapping[str, Price] = attribute(default_factory=dict)
    machines: Mapping[str, Price] = attribute(default_factory=dict)
    others: Mapping[str, Price] = attribute(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of the user and of the library.

    Args:
        own: prices of the user, which override the library's.
        library: prices of the library.
        site: default site.
        sites: sites by name.
        lifetime: depreciation time of bought machines (seconds).
        residual: residual value after `lifetime`, as a share of the price.
        provider: only provider whose offers are used; "" for all.
    """

    own: PriceEntry = attribute(default_factory=PriceEntry)
    library: PriceEntry = attribute(default_factory=PriceEntry)
    site: Site = attribute(default_factory=Site)
    sites: Mapping[str, Site] = attribute(default_factory=dict)
    lifetime: float = LIFETIME
    residual: float = 0.0
    provider: str = ""

    @property
    def providers(self) -> set[str]:
        """Names of all providers."""
        tables = [table for listed in (self.own, self.library) for table in (listed.parts, listed.machines, listed.others)]
        prices = [price for table in tables for price in table.values()]
        return {offer.provider for price in prices for way in PAYMENT_OPTIONS for offer in price.of(way) if offer.provider}

    def instance_providers(self, name: str) -> set[str]:
        """Return the providers of the library that rent a machine as an instance of this name; empty if it is none."""
        listed = self.library.machines.get(name, Price())
        return {offer.provider for way in PAYMENT_OPTIONS[1:] for offer in listed.of(way) if offer.instance == name}

    def offers(self, table: Table, called: Sequence[str], stated: Price | None, way: PaymentOption) -> tuple[Offer, ...]:
        """Return the offers of the user's list, else of the machine file, else of the library; empty if there are none.

        Args:
            table: kind of entry: parts, machines, or others such as cables.
            called: possible names of the entry; the first listed one decides.
            stated: price in the machine file.
            way: payment option.
        """
        tables: Iterable[Mapping[str, Price]] = (getattr(listed, table) for listed in (self.own, self.library))
        listed, library = ([prices[name].of(way) for name in called if name in prices] for prices in tables)
        sources = [*listed, stated.of(way) if stated is not None else (), *library]
        kept = (tuple(offer for offer in offers if self.provider in ("", offer.provider)) for offers in sources)
        return next((offers for offers in kept if offers), ())


def load_prices(source: Path | str | Tree | None = None, *, provider: str = "", place: Place | None = None) -> Prices:
    """Load the prices of a file, with the library's for all other entries.

    Args:
        source: file, its text or its tree; None: only the library's prices.
        provider: only provider whose offers are used.
        place: place of `provider` in a file, for the error message.

    Raises:
        SpecError: the file has mistakes.
    """
    library = _library()
    if source is None:
        return _only(library, provider, place)
    mistakes = Mistakes()
    listed = _read(source if isinstance(source, Tree) else read(source), mistakes, dict(library.sites))
    mistakes.raise_if_any()
    both = Prices(
        own=listed.own,
        library=library.library,
        site=listed.site.over(library.site),
        sites=listed.sites,
        lifetime=listed.lifetime or library.lifetime,
        residual=library.residual if listed.residual < 0 else listed.residual,
    )
    return _only(both, provider, place)


def _only(prices: Prices, provider: str, place: Place | None) -> Prices:
    """Return the prices restricted to one provider; to all if it is "".

    Raises:
        SpecError: the provider is unknown.
    """
    if provider and provider not in prices.providers:
        hint = f"one of {', '.join(sorted(prices.providers))}"
        raise SpecError.of(place, f"unknown provider '{provider[:40]}'", hint)
    return replace(prices, provider=provider) if provider else prices


def check_prices(tree: Tree, mistakes: Mistakes) -> None:
    """Add the mistakes of a price list."""
    known = {} if tree.place.file and folder("prices") in Path(tree.place.file).parents else dict(_library().sites)
    _read(tree, mistakes, known)


@cache
def _library() -> Prices:
    """Return the merged lists of the library."""
    parts: dict[str, Price] = {}
    machines: dict[str, Price] = {}
    others: dict[str, Price] = {}
    sites: dict[str, Site] = {}
    site, lifetime, residual = Site(), 0.0, -1.0
    mistakes = Mistakes()
    for name in names("prices"):
        listed = _read(read(find("prices", name)), mistakes, sites)
        for table, more in ((parts, listed.own.parts), (machines, listed.own.machines), (others, listed.own.others)):
            for key, price in more.items():
                table[key] = table[key] + price if key in table else price
        sites |= listed.sites
        site = site.over(listed.site)
        lifetime, residual = lifetime or listed.lifetime, listed.residual if residual < 0 else residual
    mistakes.raise_if_any()
    return Prices(
        library=PriceEntry(parts, machines, others),
        site=site,
        sites=sites,
        lifetime=lifetime or LIFETIME,
        residual=max(residual, 0.0),
    )


def _read(tree: Tree, mistakes: Mistakes, sites: dict[str, Site]) -> Prices:
    """Parse one list; `lifetime` is 0 and `residual` negative if omitted.

    sites: sites of earlier lists.
    """
    if not check_header(tree, HEADER, mistakes):
        return Prices()
    file = decode(tree, PricesFile, mistakes, ignore=("hwsim", "ref"))
    if file is None:
        return Prices()
    date = "" if file.date is None else str(file.date)
    if date and not is_date(date):
        mistakes.add((tree.get("date") or tree).place, f"'{date[:40]}' is not a date", A_DATE)
        date = ""

    base = Offer(0.0, 0.0, 0.0, date=date, provider=file.provider, source=file.source, mark=file.mark or "", region=file.region)

    def priced(given: Mapping[str, Tree], *, whole: bool = False) -> dict[str, Price]:
        return {
            name: read_price(tree_of_price, mistakes, replace(base, instance=name if whole and file.provider else ""))
            for name, tree_of_price in given.items()
        }

    named_sites = dict(sites)
    for name, tree_of_price in file.sites.items():
        named_sites[name] = replace(read_site(tree_of_price, mistakes, named_sites), name=name)
    for name in file.others:
        if name not in CABLES:
            hint = f"known: {', '.join(sorted(CABLES))}"
            mistakes.add((tree.get("others") or tree).key_place(name), f"unknown entry '{name}' of `others`", hint)
    site = Site() if file.site is None else read_site(file.site, mistakes, named_sites)
    return Prices(
        own=PriceEntry(priced(file.parts), priced(file.machines, whole=True), priced(file.others)),
        site=site,
        sites=named_sites,
        lifetime=file.lifetime or 0.0,
        residual=-1.0 if file.residual is None else file.residual,
    )


def prices_schema() -> dict[str, Any]:
    """Return the JSON Schema of a price list."""
    from hwsim.spec.schema import json_schema

    out = json_schema(PricesFile, header=HEADER)
    written = json_schema(OfferKeys)
    written.pop("$schema")
    written["properties"] |= {"note": {"type": "string"}, "ref": {"type": "string"}}
    offer = {"anyOf": [{"type": "string"}, written]}
    offers = {"anyOf": [offer, {"type": "array", "items": offer}]}
    keys = json_schema(PriceKeys)
    keys.pop("$schema")
    keys["properties"] = {name: {**entry, **offers} for name, entry in keys["properties"].items()}
    place = json_schema(SiteKeys)
    place.pop("$schema")
    out["properties"]["site"] |= {"anyOf": [{"type": "string"}, place]}
    for name, value in (("parts", {"anyOf": [offers, keys]}), ("machines", {"anyOf": [offers, keys]}), ("others", offers)):
        out["properties"][name] |= {"additionalProperties": value}
    out["properties"]["sites"] |= {"additionalProperties": place}
    return out


@dataclass(frozen=True, slots=True)
class AgedPrice:
    """The median offer, with the range of all offers.

    Args:
        offer: median offer.
        amount: price of one part.
        offers: number of offers.
    """

    offer: Offer
    amount: Amount
    offers: int


def aged_price(offers: Iterable[Offer], held: PricedAmounts) -> AgedPrice | None:
    """Return the median of several offers with the range of all; None if no offer applies to these amounts.

    Offers that are more than 18 months older than the newest one are superseded and do not count.

    >>> aged_price([Offer(3.0, 3.0, 3.0), Offer(1.0, 1.0, 1.0), Offer(9.0, 8.0, 10.0)], PricedAmounts()).amount
    Amount(value=3.0, low=1.0, high=10.0)
    """
    priced = [(offer, price) for offer in offers if (price := offer.price(held)) is not None]
    if not priced:
        return None
    ages = [months_old(offer.date, dt.date.max) or 0 for offer, _ in priced]  # relative ages, whatever the clock
    priced = [pair for pair, age in zip(priced, ages, strict=True) if age <= min(ages) + OLD]
    ranked = sorted(priced, key=lambda pair: (pair[1][0], pair[0].provider, pair[0].date))
    offer, (value, _, _) = ranked[(len(ranked) - 1) // 2]
    low, high = min(price[1] for _, price in ranked), max(price[2] for _, price in ranked)
    return AgedPrice(offer, Amount(value, low, high), len(ranked))


def today() -> dt.date:
    """Return today's date, or the date of the environment variable SOURCE_DATE_EPOCH (seconds since 1970)."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    if given.isdigit():
        return dt.datetime.fromtimestamp(int(given), dt.UTC).date()
    return dt.datetime.now(dt.UTC).date()


def months_old(date: str, day: dt.date | None = None) -> int | None:
    """Return the months since a date such as 2023-11; a year counts from its middle; None for no date.

    >>> months_old("2023-11", dt.date(2026, 11, 1)), months_old("2026", dt.date(2026, 11, 1)), months_old("")
    (36, 5, None)
    """
    if not date:
        return None
    year, _, rest = date.partition("-")
    month = int(rest[:2]) if rest else 6
    at = day or today()
    return max(0, (at.year - int(year)) * 12 + at.month - month)
