"""Spreads of plain numbers by the kind of their source and their dimension: derived from the library's classes, else assumed."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

CLASSES: Final = Path(__file__).resolve().parents[2] / "machines" / "classes"
SEVERAL: Final = 2  # parts that a spread is of, at least
ENOUGH: Final = 8  # spreads that a median is of, at least
# Standard deviation of ln.  An assumption unless `spreads` replaces it.
ASSUMED: Final[Mapping[str, Mapping[str, Any]]] = {
    "stated": {"any": 0.0, "how": "the workload or the user gives it"},
    "standard": {"any": 0.01, "how": "an assumption: what a standard fixes is kept but for rounding"},
    "measured": {"any": 0.03, "how": "an assumption: repeats of a benchmark on one machine"},
    "datasheet": {
        "any": 0.05,
        "bandwidth": 0.05,
        "latency": 0.15,
        "how": "an assumption: what is promised against what one piece does",
    },
    "fitted": {"any": 0.06, "how": "an assumption where no regime covers the number: what fitted models miss by"},
    "default": {"any": 0.2, "bandwidth": 0.1, "latency": 0.25, "efficiency": 0.12},
    "recalled": {"any": 0.15, "how": "an assumption: a figure quoted from memory, without its document"},
    "guess": {"any": 0.25, "latency": 0.4, "how": "an assumption: twice a class default"},
    "elsewhere": {
        "any": 1.8,
        "how": "the root mean square of six rows of the d2l text: issuing and compiled calls of PyTorch, layers of MXNet, random "
        "numbers of numpy, each against times of another host or version; a seventh, whose first calls load their library, is "
        "190 times off",
    },
}
DIMENSIONS: Final[Mapping[str, str]] = {
    "bandwidth": r"\d\s*[kMGTP]?i?B/s",
    "latency": r"\d\s*(?:[nμum]?s)\b",
    "efficiency": r"\d\s*%",
}


def spreads(folder: Path = CLASSES) -> dict[str, dict[str, Any]]:
    """By kind of source, then by dimension."""
    out = {kind: dict(line) for kind, line in ASSUMED.items()}
    found: dict[str, list[float]] = {"any": []}
    for dimension, spread in _stated(folder):
        found["any"].append(spread)
        found.setdefault(dimension, []).append(spread)
    default = out["default"]
    default |= {name: round(statistics.median(values), 3) for name, values in sorted(found.items()) if len(values) >= ENOUGH}
    count = len(found["any"])
    default["how"] = (
        f"the median of {count} spreads over the parts of a class (machines/classes); a class's own spread comes first"
    )
    return out


def _stated(folder: Path) -> Iterator[tuple[str, float]]:
    """(dimension, spread) of every value of a class that several parts agree on."""
    for path in sorted(folder.glob("**/*.yaml")):
        yield from _walked(yaml.safe_load(path.read_text("utf-8")))


def _walked(tree: Any) -> Iterator[tuple[str, float]]:
    if not isinstance(tree, dict):
        return
    parts = tree.get("parts")
    if "value" in tree and "spread" in tree and isinstance(parts, int) and parts >= SEVERAL:
        yield _dimension(str(tree["value"])), float(str(tree["spread"]).rstrip(" %")) / 100
    for value in tree.values():
        yield from _walked(value)


def _dimension(text: str) -> str:
    """What a value is a number of.

    >>> _dimension("3.35 TB/s"), _dimension("['34.2 / $clock', '22.8 ns']"), _dimension("89 %"), _dimension("12")
    ('bandwidth', 'latency', 'efficiency', 'other')
    """
    return next((name for name, pattern in DIMENSIONS.items() if re.search(pattern, text)), "other")
