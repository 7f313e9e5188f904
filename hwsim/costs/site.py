"""Sites of machines: cooling, price of energy, the room, carbon of the grid."""

from __future__ import annotations

from typing import Final

from hwsim.costs.amount import Amount
from hwsim.records import dataclass

NUMBERS: Final = ("pue", "grid", "electricity", "hosting")


@dataclass(frozen=True, slots=True)
class Site:
    """A place for machines; what is None is left out of the answer.

    Args:
        pue: power at the meter over power at the machines' plugs; None: the answer is at the plug.
        grid: kg of CO2 for a joule. electricity: USD for a joule at the meter.
        hosting: USD for a watt that the machines may draw, and second: room, cooling machines, staff.
        name: what it is called; said: source and date of its numbers in words.
    """

    pue: Amount | None = None
    grid: Amount | None = None
    electricity: Amount | None = None
    hosting: Amount | None = None
    name: str = ""
    said: str = ""

    def over(self, base: Site) -> Site:
        """This site with what it leaves out taken from another."""
        mine = {name: getattr(self, name) for name in NUMBERS}
        return Site(
            **{name: value if value is not None else getattr(base, name) for name, value in mine.items()},
            name=self.name or base.name,
            said=self.said or base.said,
        )
