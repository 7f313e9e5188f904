"""Options for energy and cost: --prices, --rent, --provider, --site."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from hwsim.cli.arguments import LibraryName, decorated

if TYPE_CHECKING:
    from hwsim.costs.bill import Paying
    from hwsim.costs.prices import Prices
    from hwsim.costs.site import Site

F = TypeVar("F", bound=Callable[..., Any])
WAYS: Final = {way.replace("_", "-"): way for way in ("on_demand", "1_year", "3_year", "spot", "block")} | {"no": "purchase"}
ALL: Final = "library"


def paying_options(function: F) -> F:
    """Add the options for energy and cost, passed on as one argument `paying`; None if none is given."""

    @wraps(function)
    def command(
        *arguments: Any, prices: str | None, rent: str | None, provider: str | None, site: str | None, **options: Any
    ) -> Any:
        return function(*arguments, paying=paying_of(prices, rent, provider, site), **options)

    options = (
        click.option("--prices", type=LibraryName("prices"), metavar="FILE",
                     help="Add energy and cost: a price list that overrides the library's, or `library`."),
        click.option("--rent", type=click.Choice(sorted(WAYS)), help="With --prices: rent instead of buying, for a term."),
        click.option("--provider", metavar="NAME", help="With --prices: use the offers of this provider only."),
        click.option("--site", metavar="NAME|pue=X,...",
                     help="Site: a name in the price list, or pue=1.2,grid=400 g/kWh,electricity=0.1 USD/kWh,"
                          "hosting=150 USD/kW/month."),
    )  # fmt: skip
    return cast("F", decorated(command, options))


def paying_of(prices: str | None, rent: str | None, provider: str | None, site: str | None) -> Paying | None:
    """Return the payment option of machines; None if no option is given."""
    if prices is None:
        for option, value in (("--rent", rent), ("--provider", provider)):
            if value is not None:
                raise click.UsageError(f"{option} requires --prices: a price list, or `library`")
        if site is None:
            return None
    from hwsim.cli.errors import print_errors
    from hwsim.costs.bill import Paying
    from hwsim.costs.prices import load_prices
    from hwsim.spec import find

    with print_errors():
        lists = load_prices(None if prices in (None, ALL) else find("prices", str(prices)), provider=provider or "")
        place = None if site is None else _site(site, lists)
    return Paying(None if prices is None else lists, cast("Any", WAYS[rent or "no"]), place)


def _site(text: str, prices: Prices) -> Site:
    """Parse a site, given by name or by its numbers."""
    from hwsim.costs.site import read_site
    from hwsim.spec import Mistakes, tree_of

    mistakes = Mistakes()
    if "=" in text:
        parts = (part.partition("=") for part in text.split(","))
        given: Any = {key.strip(): _value(value.strip()) for key, _, value in parts}
    else:
        given = text
    site = read_site(tree_of(given), mistakes, dict(prices.sites))
    mistakes.raise_if_any()
    return site


def _value(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
