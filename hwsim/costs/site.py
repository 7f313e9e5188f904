"""Sites of machines: PUE, electricity price, hosting, carbon intensity; and the key `site:` of files."""

from __future__ import annotations

from typing import Any, Final

from hwsim.costs.amount import Amount
from hwsim.devices.offers import number_of_price
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Tree, decode, did_you_mean, field
from hwsim.units import COUNT, GRID, TARIFF, Dimension

NUMBERS: Final[dict[str, Dimension]] = {"pue": COUNT, "grid": GRID, "electricity": TARIFF, "hosting": TARIFF}


@dataclass(frozen=True, slots=True)
class Site:
    """A site that hosts machines: a data centre or a laboratory. Fields that are None are omitted from the output.

    Args:
        pue: power usage effectiveness, facility power / IT power; None: energy is that of the IT equipment alone.
        grid: carbon intensity (kg of CO2 per joule).
        electricity: price of electricity at the meter (USD per joule).
        hosting: price of space, cooling equipment and staff (USD per second per watt of power under load).
        name: name of the site.
        said: source and date of the numbers, as text.
    """

    pue: Amount | None = None
    grid: Amount | None = None
    electricity: Amount | None = None
    hosting: Amount | None = None
    name: str = ""
    said: str = ""

    def over(self, base: Site) -> Site:
        """Return this site with missing numbers from another site."""
        mine = {name: getattr(self, name) for name in NUMBERS}
        return Site(
            **{name: value if value is not None else getattr(base, name) for name, value in mine.items()},
            name=self.name or base.name,
            said=self.said or base.said,
        )


@dataclass(frozen=True, slots=True)
class SiteKeys:
    """A site of machines."""

    use: str | None = field("name of a site, from the library or this file; other keys override its values", default=None)
    pue: Tree | None = field("power usage effectiveness: facility power / IT power", default=None, example="1.2")
    grid: Tree | None = field("carbon intensity of the grid", default=None, example="400 g/kWh")
    electricity: Tree | None = field("price of electricity at the meter", default=None, example="0.10 USD/kWh")
    hosting: Tree | None = field("hosting price per power and time: space, cooling equipment and staff", default=None,
                                 example="150 USD/kW/month")  # fmt: skip
    date: str | int | None = field("date of the numbers", default=None)
    source: str = field("document or page that states the numbers", default="")


@dataclass(frozen=True, slots=True)
class RangeKeys:
    """A number of a site with its 90 % interval."""

    value: Tree = field("expected value")
    low: Tree | None = field("lower end of the 90 % interval (default: the value)", default=None)
    high: Tree | None = field("upper end of the 90 % interval (default: the value)", default=None)
    date: str | int | None = field("date of the number", default=None, record="for readers")
    mark: str = field("kind of source, such as recalled", default="", record="for readers")
    source: str = field("document or page that states the number", default="", record="for readers")


def read_site(tree: Tree, mistakes: Mistakes, sites: dict[str, Site] | None = None) -> Site:
    """Parse a `site:`; add its mistakes to `mistakes`.

    Args:
        tree: value of the key: a mapping, or the name of a site.
        mistakes: list of mistakes.
        sites: sites by name.
    """
    sites = sites or {}
    if isinstance(tree.value, str):
        return _known(tree, sites, mistakes)
    keys = decode(tree, SiteKeys, mistakes, ignore=("ref",))
    if keys is None:
        return Site()
    numbers: dict[str, Any] = {
        name: _amount(given, dimension, mistakes)
        for name, dimension in NUMBERS.items()
        if (given := getattr(keys, name)) is not None
    }
    pue = numbers.get("pue")
    if pue is not None and pue.low < 1:
        place = (tree.get("pue") or tree).place
        mistakes.add(place, "a PUE must be at least 1", "1.1 for a large data centre, 1.6 for an average one")
    origin = ", ".join(filter(None, (keys.source, str(keys.date or ""))))
    site = Site(**numbers, name=keys.use or "", said=origin)
    if keys.use is not None:
        base = _known(tree.get("use") or tree, sites, mistakes)
        return site.over(base)
    return site


def _known(tree: Tree, known: dict[str, Site], mistakes: Mistakes) -> Site:
    name = str(tree.value)
    if name in known:
        return known[name]
    mistakes.add(tree.place, f"unknown site '{name[:40]}'", did_you_mean(name, known) or "write its numbers: {pue: 1.2}")
    return Site()


def _amount(tree: Tree, dimension: Dimension, mistakes: Mistakes) -> Amount | None:
    written = decode(tree, RangeKeys, mistakes, ignore=("ref", "note")) if tree.is_mapping else RangeKeys(tree)
    if written is None:
        return None
    value = number_of_price(written.value, dimension, mistakes)
    low = value if written.low is None else number_of_price(written.low, dimension, mistakes)
    high = value if written.high is None else number_of_price(written.high, dimension, mistakes)
    if value is None or low is None or high is None:
        return None
    if not low <= value <= high:
        mistakes.add(tree.place, "the value is outside its interval", "low <= value <= high")
        return None
    return Amount(value, low, high)
