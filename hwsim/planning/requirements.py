"""Measures, requirements (`training p90 at most 60 day`) and objectives of a plan.

If there are several workloads, a requirement names one of them (`tune.training at most 2 day`). Times with failures are random
and can have a percentile.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Final

from hwsim.formats import format_between, format_quantity
from hwsim.records import dataclass
from hwsim.results.batches import STATISTICS
from hwsim.spec import Mistakes, Place, did_you_mean
from hwsim.units import COUNT, DAY, ENERGY, MASS, MONEY, POWER, RATE, RATIO, SIZE, TIME, Dimension, UnitError, parse, parse_as

HOUR: Final = 3600.0
_FORM: Final = re.compile(r"(?P<what>.+?)\s+at\s+(?P<side>most|least)\s+(?P<bound>.+)", re.DOTALL)
_PERCENTILE: Final = re.compile(r"(?P<what>.+?)[\s_]p(?P<part>\d{1,2})")
_COUNTED: Final = re.compile(r"(?P<number>[-+0-9.eE]*[0-9.])\s*(?P<prefix>[kMGT])(?:\s+(?P<unit>\S.*))?")
_LIKE: Final = "write 'NAME at most VALUE' or 'NAME at least VALUE', such as 'training p90 at most 60 day'"


@dataclass(frozen=True, slots=True)
class PlanMeasure:
    """A measure of an option.

    Args:
        name: name in requirements and JSON.
        title: name in tables.
        unit: unit of printed values.
        dimension: dimension of its values.
        of: origin: machine, run, training or outlay.
        more: whether more is better.
    """

    name: str
    title: str
    unit: str
    dimension: Dimension
    of: str
    more: bool = False

    def off(self, value: float, bound: float) -> str:
        """Return a difference from a limit as text, in the unit of the limit.

        >>> MEASURES["training"].off(1.5 * DAY, 60 * DAY), MEASURES["power"].off(3e5, 8e6)
        ('1.5 day', '300 kW')
        """
        if self.dimension is TIME and self.unit == "s" and bound >= 2 * DAY:
            return f"{value / DAY:.3g} day"
        return self.shown(value)

    def between(self, low: float, high: float) -> str:
        """Return an interval as text.

        >>> MEASURES["training"].between(1.58e5, 2.17e5), MEASURES["cost"].between(1.0, 2.0)
        ('1.83 day to 2.51 day', '1 USD to 2 USD')
        """
        if math.isinf(high):
            return f"{self.shown(low)} or more"
        ends = format_between(low, high, "s") if self.unit == "s" else (self.shown(low), self.shown(high))
        return " to ".join(ends)

    def shown(self, value: float, digits: int = 3) -> str:
        """Return a value as text.

        >>> MEASURES["cost"].shown(28.9e6), MEASURES["training"].shown(5.0e6), MEASURES["nodes"].shown(256.0)
        ('28.9 M USD', '57.9 day', '256')
        """
        if self.unit == "USD":
            return money(value)
        if self.name == "gpu_hours":
            hours = value / HOUR
            return f"{hours / 1e6:.3g} M h" if hours >= 1e6 else f"{hours:,.0f} h"
        if self.dimension is COUNT or self.unit == "1/s":
            return f"{value:,.0f}" if float(value).is_integer() or value >= 1000 else f"{value:.{digits}g}"
        return format_quantity(value, self.unit, digits)


def money(value: float) -> str:
    """Return an amount of USD as text, with three digits or in whole dollars.

    >>> money(0.0123), money(39_999.5), money(1.5e9)
    ('0.0123 USD', '40,000 USD', '1,500 M USD')
    """
    if abs(value) >= 1e6:
        number = value / 1e6
        return f"{number:,.0f} M USD" if number >= 999.5 else f"{number:.3g} M USD"
    return f"{value:,.0f} USD" if abs(value) >= 100 else f"{value:.3g} USD"


def _measures() -> dict[str, PlanMeasure]:
    rows = [
        ("nodes", "nodes", "1", COUNT, "machine", False),
        ("gpus", "GPUs", "1", COUNT, "machine", False),
        ("power", "power", "W", POWER, "machine", False),
        ("price", "price", "USD", MONEY, "machine", False),
        ("capacity", "capacity", "B", SIZE, "machine", True),
        ("time", "time", "s", TIME, "run", False),
        ("memory", "memory", "%", RATIO, "run", False),
        ("busy", "GPU busy", "%", RATIO, "run", True),
        ("epoch", "epoch", "s", TIME, "run", False),
        ("batches_per_s", "batches/s", "1/s", RATE, "run", True),
        ("samples_per_s", "samples/s", "1/s", RATE, "run", True),
        ("tokens_per_s", "tokens/s", "1/s", RATE, "run", True),
        ("requests_per_s", "requests/s", "1/s", RATE, "run", True),
        ("step", "step", "s", TIME, "run", False),
        ("mfu", "MFU", "%", RATIO, "run", True),
        ("training", "training", "s", TIME, "training", False),
        ("goodput", "goodput", "%", RATIO, "training", True),
        ("gpu_hours", "GPU-hours", "h", TIME, "training", False),
        ("cost", "cost", "USD", MONEY, "outlay", False),
        ("energy", "energy", "Wh", ENERGY, "outlay", False),
        ("carbon", "carbon", "t", MASS, "outlay", False),
        ("cost per million tokens", "USD/M tokens", "USD", MONEY, "outlay", False),
    ]
    table = {row[0]: PlanMeasure(*row) for row in rows}
    for name, title in (("ttft", "TTFT"), ("tpot", "TPOT"), ("latency", "latency")):
        for part in STATISTICS:
            table[f"{name}_{part}"] = PlanMeasure(f"{name}_{part}", f"{title} {part}", "s", TIME, "run")
    return table


MEASURES: Final[Mapping[str, PlanMeasure]] = _measures()
_ALIASES: Final[Mapping[str, str]] = {
    "makespan": "time",
    "days": "training",
    "gpu busy": "busy",
    "peak memory": "memory",
    "gpu-hours": "gpu_hours",
    "gpu hours": "gpu_hours",
    "usd per million tokens": "cost per million tokens",
    "usd/m tokens": "cost per million tokens",
    **{measure.title.casefold(): name for name, measure in MEASURES.items()},
    **{name.replace("_", " "): name for name in MEASURES},
}
PERCENTILES: Final = frozenset({"training", "gpu_hours"})  # random quantities, because of failures


@dataclass(frozen=True, slots=True)
class PlanQuantity:
    """A measure of one workload ("" for a single workload), with an optional percentile."""

    workload: str
    measure: PlanMeasure
    percentile: int | None = None

    @property
    def key(self) -> str:
        """Key among the numbers of an option."""
        name = self.measure.name if self.percentile is None else f"{self.measure.name} p{self.percentile}"
        return f"{self.workload}.{name}" if self.workload else name

    @property
    def title(self) -> str:
        """Name in printed text."""
        name = self.measure.title if self.percentile is None else f"{self.measure.title} p{self.percentile}"
        return f"{self.workload}.{name}" if self.workload else name


@dataclass(frozen=True, slots=True)
class Requirement:
    """A lower or upper limit of a quantity, in SI units; infinite on the open side."""

    quantity: PlanQuantity
    low: float
    high: float
    text: str
    place: Place | None = None

    @property
    def bound(self) -> float:
        """Finite limit."""
        return self.high if self.low == -float("inf") else self.low

    def excess(self, value: float) -> float:
        """Return the relative miss of a value; 0 if it meets the limit.

        >>> most = Requirement(PlanQuantity("", MEASURES["power"]), -float("inf"), 8e6, "power at most 8 MW")
        >>> most.excess(10e6), most.excess(8e6)
        (0.25, 0.0)
        """
        if value > self.high:
            return value / self.high - 1.0 if self.high > 0 else float("inf")
        if value < self.low:
            return self.low / value - 1.0 if value > 0 else float("inf")
        return 0.0


@dataclass(frozen=True, slots=True)
class Objective:
    """A quantity to minimise or maximise, or a weighted sum of quantities, each divided by its best value."""

    weights: tuple[tuple[PlanQuantity, float], ...]
    most: bool

    @property
    def title(self) -> str:
        """Objective as text."""
        if len(self.weights) == 1:
            return self.weights[0][0].title
        return " + ".join(f"{weight:g} x {quantity.title}" for quantity, weight in self.weights)


def amount(text: str, dimension: Dimension) -> float:
    """Parse a quantity such as 3 M USD, 15 T or 60 day.

    >>> amount("3 M USD", MONEY), amount("16 M", COUNT), amount("2 MW", POWER)
    (3000000.0, 16000000.0, 2000000.0)

    Raises:
        UnitError: the text is not such a quantity.
    """
    match = _COUNTED.fullmatch(text.strip())
    if match is not None and match["unit"] is None and dimension.plain:
        return parse(f"{match['number']} {match['prefix']}B").value
    if match is not None and match["unit"] is not None:
        text = f"{match['number']} {match['prefix']}{match['unit']}"
    return parse_as(text if not _is_bare(text) or not dimension.plain else float(text), dimension)


def _is_bare(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def quantity_of(text: str, workloads: Collection[str], mistakes: Mistakes, place: Place | None = None) -> PlanQuantity | None:
    """Parse the name of a quantity; return None and add a mistake if it is unknown."""
    name, workload, percentile = " ".join(text.split()), "", None
    first, dot, rest = name.partition(".")
    if dot and first in workloads:
        workload, name = first, rest
    folded = name.casefold()
    if folded not in MEASURES and folded not in _ALIASES and (match := _PERCENTILE.fullmatch(name)) is not None:
        name, percentile = match["what"], int(match["part"])
        folded = name.casefold()
    measure = MEASURES.get(_ALIASES.get(folded, folded))
    if measure is None:
        near = did_you_mean(folded, MEASURES)
        mistakes.add(place, f"unknown measure '{name}'", near or f"known measures: {', '.join(MEASURES)}")
        return None
    if percentile is not None and measure.name not in PERCENTILES:
        mistakes.add(
            place, f"'{measure.name}' has no percentiles", f"failures make these random: {', '.join(sorted(PERCENTILES))}"
        )
        return None
    named = [workload_name for workload_name in workloads if workload_name]
    if not workload and named and measure.of in ("run", "training"):
        hint = " or ".join(f"{workload_name}.{measure.name}" for workload_name in named[:3])
        mistakes.add(place, f"'{measure.name}' must name one of several workloads", hint)
        return None
    if workload and measure.of in ("machine", "outlay"):
        mistakes.add(place, f"'{measure.name}' describes the machine, not a workload", f"write {measure.name}")
        return None
    return PlanQuantity(workload, measure, percentile)


def requirement_of(text: str, workloads: Collection[str], mistakes: Mistakes, place: Place | None = None) -> Requirement | None:
    """Parse a requirement; return None and add its mistakes if it is invalid."""
    match = _FORM.fullmatch(" ".join(text.split()))
    if match is None:
        mistakes.add(place, f"'{text:.60}' is not a requirement", _LIKE)
        return None
    quantity = quantity_of(match["what"], workloads, mistakes, place)
    if quantity is None:
        return None
    try:
        bound = amount(match["bound"], quantity.measure.dimension)
    except UnitError as error:
        mistakes.add(place, f"{quantity.title}: {error.message}", error.hint)
        return None
    if bound < 0 or (bound == 0 and match["side"] == "most"):
        mistakes.add(place, f"{quantity.title} cannot be at {match['side']} {match['bound']}", "use a number above 0")
        return None
    low, high = (-float("inf"), bound) if match["side"] == "most" else (bound, float("inf"))
    return Requirement(quantity, low, high, " ".join(text.split()), place)


def contradictions(requirements: Collection[Requirement], mistakes: Mistakes) -> None:
    """Add a mistake for requirements of one quantity that contradict each other."""
    by_key: dict[str, list[Requirement]] = {}
    for requirement in requirements:
        by_key.setdefault(requirement.quantity.key, []).append(requirement)
    for alike in by_key.values():
        least = max(alike, key=lambda requirement: requirement.low)
        most = min(alike, key=lambda requirement: requirement.high)
        if least.low > most.high:
            mistakes.add(least.place, f"'{least.text}' and '{most.text}' contradict each other", "remove one of them")
