"""The text of a machine file for a fitted machine, with the interval and source of each number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

from hwsim.devices.kernels import CacheTier, Corrections, Function, MatmulTime
from hwsim.formats import format_quantity
from hwsim_calibrate.fit.kernels import FittedKernels, Interval
from hwsim_calibrate.fit.model import Name

WIDTH: Final = 128
DIGITS: Final = 4


def quantity(value: float, unit: str) -> str:
    """Return a number with its unit as in machine files; numbers beyond the SI prefixes are written as powers of ten.

    >>> quantity(203.14e-9, "s"), quantity(2.34567e-15, "s"), quantity(1.1e11, "B/s")
    ('203.1 ns', '2.346e-15 s', '110 GB/s')
    """
    shown = format_quantity(value, unit, DIGITS)
    return shown if 1e-12 <= abs(value) < 1e15 or value <= 0 else f"{value:.{DIGITS}g} {unit}"


def with_interval(interval: Interval, unit: str, *, inverse: bool = False) -> dict[str, Any]:
    """Return `{value: 203 ns, ci95: [200 ns, 205 ns], points: 34}`."""
    value, low, high = interval.value, interval.low, interval.high
    if inverse:
        value, low, high = 1.0 / value, 1.0 / high, 1.0 / low
    ci95 = [quantity(low, unit), quantity(high, unit)]
    return {"value": quantity(value, unit), "ci95": ci95, "points": interval.points}


def kernels_block(fitted: FittedKernels) -> dict[str, Any]:
    """Return the mapping `kernels:` of a CPU."""
    kernels, intervals = fitted.kernels, fitted.intervals
    return {
        **({"library": kernels.library} if kernels.library else {}),
        "cores": kernels.cores,
        "into": {into: with_interval(intervals["into", into], "s") for into in kernels.into},
        **({"among_others": _plain(intervals["among_others",])} if ("among_others",) in intervals else {}),
        **({"overlap": _plain(intervals["overlap",])} if ("overlap",) in intervals else {}),
        "pages": with_interval(intervals["pages",], "B/s", inverse=True),
        **({"fault": with_interval(intervals["fault",], "s")} if kernels.fault > 0 else {}),
        "lookup": with_interval(intervals["lookup",], "s"),
        "levels": {level: _tier(tier, intervals, level) for level, tier in kernels.levels.items()},
        "functions": {name: _function(function, intervals, name) for name, function in kernels.functions.items()},
        "forms": {
            name: {"call": quantity(form.call, "s"), "row": quantity(form.row, "s"), "each": quantity(form.each, "s")}
            for name, form in kernels.forms.items()
        },
        "products": {dtype: _product(time, intervals, dtype) for dtype, time in kernels.products.items()},
        "corrections": _corrections(kernels.corrections),
    }


def _plain(interval: Interval) -> dict[str, Any]:
    return {"value": _short(interval.value), "ci95": [_short(interval.low), _short(interval.high)], "points": interval.points}


def _tier(tier: CacheTier, intervals: Mapping[Name, Interval], level: str) -> dict[str, Any]:
    found: dict[str, Any] = {"beyond": with_interval(intervals["levels", level, "beyond"], "B")}
    for role in ("read", "write", "update"):
        if tier.rate(role):
            found[role] = with_interval(intervals["levels", level, role], "B/s", inverse=True)
    lookup, sharpness = (intervals["levels", level, key] for key in ("lookup", "sharpness"))
    return found | {"lookup": with_interval(lookup, "s"), "sharpness": _plain(sharpness)}


def _function(function: Function, intervals: Mapping[Name, Interval], entry: str) -> dict[str, Any]:
    """Return an entry of `functions:`; entries that are copied from another form have no intervals."""
    name = ("functions", entry)

    def shown(path: Name, value: float) -> Any:
        return with_interval(intervals[path], "s") if path in intervals else quantity(value, "s")

    keys: dict[str, Any] = {"call": shown((*name, "call"), function.call)}
    if function.each:
        keys["each"] = {dtype: shown((*name, "each", dtype), value) for dtype, value in function.each.items()}
    if function.row > 0:
        keys["row"] = shown((*name, "row"), function.row)
    if function.log:
        keys["log"] = True
    return keys | {"counts": [_short(count) for count in function.counts]}


def _product(time: MatmulTime, intervals: Mapping[Name, Interval], dtype: str) -> dict[str, Any]:
    found: dict[str, Any] = {"flop": with_interval(intervals["products", dtype, "flop"], "FLOP/s", inverse=True)}
    for key in ("call", "left", "right", "result", "edge", "depth"):
        found[key] = with_interval(intervals["products", dtype, key], "s")
    return found | {"counts": [_short(count) for count in time.counts]}


def _corrections(corrections: Corrections) -> dict[str, Any]:
    points = {key: [[_short(number) for number in row] for row in rows] for key, rows in corrections.points.items()}
    return {"width": corrections.width, "shrink": corrections.shrink, "few": corrections.few, "points": points}


def _short(value: float) -> float | int:
    """Round to the meaningful digits."""
    rounded = float(f"{value:.9g}") if value >= 1 and float(value).is_integer() else float(f"{value:.4g}")
    return int(rounded) if rounded.is_integer() else rounded


class _Dumper(yaml.SafeDumper):
    """A YAML dumper that writes short mappings and lists on one line."""


def _represent(dumper: yaml.SafeDumper, data: Mapping[str, Any]) -> yaml.Node:
    flow = _flat(data)
    return dumper.represent_mapping("tag:yaml.org,2002:map", data.items(), flow_style=flow)


def _sequence(dumper: yaml.SafeDumper, data: Iterable[Any]) -> yaml.Node:
    items = list(data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=not any(isinstance(item, dict) for item in items))


def _flat(data: Mapping[str, Any]) -> bool:
    """Return whether a mapping fits on one line: up to six plain values."""
    return all(not isinstance(value, dict) and not (isinstance(value, list) and value and isinstance(value[0], list | dict))
               for value in data.values()) and len(data) <= 6  # fmt: skip


_Dumper.add_representer(dict, _represent)
_Dumper.add_representer(list, _sequence)


def text(machine: Mapping[str, Any]) -> str:
    """Return the machine as YAML."""
    return yaml.dump(dict(machine), Dumper=_Dumper, sort_keys=False, width=WIDTH, allow_unicode=True)
