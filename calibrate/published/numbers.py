"""Spreads of plain numbers by the kind of their source and their dimension."""

from __future__ import annotations

from typing import Any, Final

# Standard deviation of ln.  An assumption where `how` says so.
ASSUMED: Final[dict[str, dict[str, Any]]] = {
    "measured": {"any": 0.03, "how": "an assumption: repeats of a benchmark"},
    "fitted": {"any": 0.06, "how": "an assumption where no regime covers the number: about what fitted models miss by"},
    "standard": {"any": 0.01, "how": "an assumption: what a standard fixes"},
    "datasheet": {"any": 0.05, "bandwidth": 0.05, "latency": 0.15, "how": "an assumption"},
    "default": {"any": 0.20, "bandwidth": 0.10, "latency": 0.25, "efficiency": 0.12, "how": "an assumption"},
    "recalled": {"any": 0.15, "how": "an assumption"},
    "guess": {"any": 0.25, "latency": 0.40, "how": "an assumption"},
    "stated": {"any": 0.0, "how": "the workload or the user gives it"},
}


def spreads() -> dict[str, dict[str, Any]]:
    """By kind of source, then by dimension."""
    return ASSUMED
