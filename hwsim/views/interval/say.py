"""Intervals in words and as JSON: `9 of 10 such runs: 1.24 to 1.43 s`, and what makes them so wide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hwsim.demand import Case
from hwsim.formats import format_quantity, percent
from hwsim.results.doubts import PLAIN
from hwsim.results.interval import Interval, Part

PARTS: Final = 3  # shown
LEAST: Final = 0.1  # part of the variance that is worth a word
WORTH: Final = 0.005  # half width that is worth a word
EXACT: Final = 1e-4  # half widths below are none
ALL: Final = 0.995

CASES: Final[Mapping[Case, str]] = {
    "known": "fitted",
    "source": "measured elsewhere",
    "device": "a class default",
    "generation": "from other generations",
    "outside": "outside of everything measured",
    "stated": "as stated",
}
SOURCES: Final[Mapping[str, str]] = {
    "guess": "a guess",
    "default": "a default",
    "recalled": "recalled, not read",
    "datasheet": "a datasheet's",
    "fitted": "fitted",
    "measured": "measured",
}


def lines(interval: Interval) -> Iterator[tuple[str, str]]:
    """(title, text) of the lines of a summary."""
    if interval.half < EXACT:
        yield "interval", "none: it follows from times and rates that the files state" if interval.stated > ALL else "none"
        return
    yield "interval", _range(interval) + _behind(interval)
    parts = [part for part in interval.parts[:PARTS] if part.share >= LEAST]
    if parts:
        left = parts[0].half
        measured = f"; measuring the first would leave +-{percent(left, '.1g')}" if WORTH < left < 0.9 * interval.half else ""
        yield "doubt", "; ".join(map(_part, parts)) + measured


def range_text(interval: Interval, unit: str = "s") -> str:
    """`1.24 to 1.43 s`."""
    low, high = format_quantity(interval.low, unit), format_quantity(interval.high, unit)
    number, _, its_unit = low.rpartition(" ")
    return f"{number if high.endswith(f' {its_unit}') else low} to {high}"


def _range(interval: Interval) -> str:
    tenths, rest = divmod(interval.level, 10)
    many = f"{tenths} of 10" if not rest else f"{interval.level} of 100"
    return f"{many} such runs take {range_text(interval)}"


def _behind(interval: Interval) -> str:
    stated = f"; {percent(interval.stated, '.0f')} of it is as the files state" if interval.stated >= LEAST else ""
    if interval.case == "outside":
        return f" (outside of everything measured: no promise){stated}"
    if interval.basis == "measured":
        return f" ({interval.rows} measured, {interval.units} left out in turn){stated}"
    return stated


def _part(part: Part) -> str:
    kind, _, name = part.regime.partition("/")
    sure = CASES[part.case] if kind != PLAIN else SOURCES[name.partition(".")[0]]
    what = f"{part.key} is {sure}" if kind == PLAIN else f"{kind} on {part.key}: {sure}"
    return f"{what} ({percent(part.share, '.0f')})"


def as_dict(interval: Interval, suffix: str = "_s") -> dict[str, Any]:
    """The entry of a document."""
    return {
        f"low{suffix}": interval.low,
        f"high{suffix}": interval.high,
        "level": interval.level,
        "basis": interval.basis,
        "case": interval.case,
        "rows": interval.rows,
        "units": interval.units,
        "stated": interval.stated,
        "doubt": [
            {
                "key": part.key,
                "regime": part.regime,
                "case": part.case,
                "share": part.share,
                "of_time": part.of_time,
                "half_alone": part.sigma,
                "half_if_known": part.half,
            }
            for part in interval.parts
        ],
    }
