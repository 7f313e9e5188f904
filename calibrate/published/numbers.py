"""Spreads of plain numbers by kind of source and dimension: from the library's classes, or assumed."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from published.parts import declared

CLASSES: Final = Path(__file__).resolve().parents[2] / "machines" / "classes"
SEVERAL: Final = 2  # minimum parts behind a spread
ENOUGH: Final = 8  # minimum spreads behind a median
ASSUMED: Final[Mapping[str, Mapping[str, Any]]] = declared("numbers")["assumed"]
DIMENSIONS: Final[Mapping[str, str]] = declared("numbers")["dimensions"]


def spreads(folder: Path = CLASSES) -> dict[str, dict[str, Any]]:
    """Return spreads by kind of source, then by dimension."""
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
    """Return (dimension, spread) of every class value supported by several parts."""
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
    """Return the dimension of a value.

    >>> _dimension("3.35 TB/s"), _dimension("['34.2 / $clock', '22.8 ns']"), _dimension("89 %"), _dimension("12")
    ('bandwidth', 'latency', 'efficiency', 'other')
    """
    return next((name for name, pattern in DIMENSIONS.items() if re.search(pattern, text)), "other")
