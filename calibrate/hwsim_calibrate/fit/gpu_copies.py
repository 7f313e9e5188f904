"""Fit of copies between host and GPU and within the GPU: the key `copies` of the GPU, and its link."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any, Final

import numpy as np

from hwsim.formats import percent
from hwsim.links.pcie import GENERATIONS, Pcie
from hwsim_calibrate.fit.gpu_memory import MIN_SIZES, numeric
from hwsim_calibrate.fit.least_squares import Floats, Problem, solve
from hwsim_calibrate.fit.machine_file import quantity
from hwsim_calibrate.store import Row

LINK: Final[Mapping[str, Any]] = {"name": "pcie", "between": ["cpu", "gpu"], "kind": "pcie"}
MIN_LINE_SIZES: Final = 3
SMALL: Final = 65536  # bytes up to which a device copy takes its setup time
MIN_SECONDS: Final = 1e-10  # smaller times are clamped


def copies_of(
    rows: Sequence[Row], properties: Mapping[str, Any], bandwidth: float, l2: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (`copies` of the GPU, its link to the host); both are empty with too few pinned copies.

    Args:
        rows: rows of the suite `gpu`.
        properties: properties of the GPU; `pcie` is generation and lanes.
        bandwidth: memory bandwidth (B/s).
        l2: L2 capacity (bytes).
    """
    up, down = _points(rows, "h2d", pinned=True), _points(rows, "d2h", pinned=True)
    if min(len(up[0]), len(down[0])) < MIN_SIZES:
        return {}, {}
    size, ways = np.concatenate([down[0], up[0]]), np.arange(len(down[0]) + len(up[0])) >= len(down[0])
    measured = np.concatenate([down[1], up[1]])

    def seconds(x: Floats) -> Floats:
        setup, pace, fetch, fill, fetches = np.exp(x)
        into = fetch + size * fill / (size + fill) * pace + size * pace * max(1.0 / fetches - 1.0, 0.0)
        return np.asarray(setup + size * pace + ways * into, np.float64)

    start = np.log([measured.min(), (measured / size).min(), 5e-7, 4e3, 0.95])
    x = solve(Problem(numeric(seconds), measured, start, np.array([1.0, 1.0, 1.0, 1.0, 0.3]), np.ones(len(size))), steps=100)
    setup, pace, fetch, fill, fetches = (float(value) for value in np.exp(x))
    rate, points = 1.0 / pace, len(size)
    copies: dict[str, Any] = {
        "setup": _seconds(setup, points),
        "fetch": _seconds(fetch, points),
        "fill": {"value": quantity(fill, "B"), "points": points},
    }
    starts, rates = zip(*(_line(_points(rows, way, pinned=False)) for way in ("h2d", "d2h")), strict=True)
    if all(rates):
        copies["pageable"] = {"value": quantity(math.sqrt(rates[0] * rates[1]), "B/s"), "points": len(size)}
        copies["waited"] = _seconds(max(sum(starts) / 2 - setup - fetch / 2, MIN_SECONDS), len(size))
    inside, inside_time = _points(rows, "d2d")
    far = (2 * inside >= 2 * l2) | (inside <= SMALL)
    if far.sum() >= MIN_LINE_SIZES:
        begin, speed = _line((inside[far], inside_time[far]))
        copies["local_setup"] = _seconds(begin, int(far.sum()))
        copies["local"] = {"value": percent(min(2 * speed / bandwidth, 1.0), ".4g"), "points": int(far.sum())}
    link = dict(LINK) | _lanes(properties, rate, points)
    if fetches < 1.0:
        link["fetches"] = {"value": percent(fetches, ".4g"), "points": len(up[0])}
    both = [row.work.reads / row.quiet for row in rows if row.op == "duplex"]
    if both:
        link["two_way"] = {"value": float(f"{min(max(median(both) / rate, 1.0), 2.0):.3g}"), "points": len(both)}
    return copies, link


def _lanes(properties: Mapping[str, Any], rate: float, points: int) -> dict[str, Any]:
    """Return generation, lanes and efficiency of the link; if they are unknown, its bandwidth."""
    gen, lanes = properties.get("pcie") or (None, None)
    if gen in GENERATIONS and lanes in (1, 2, 4, 8, 16):
        raw = Pcie(gen=gen, lanes=lanes).carried()
        if 0.5 * raw <= rate <= raw:
            return {"gen": gen, "lanes": lanes, "efficiency": {"value": percent(rate / raw, ".4g"), "points": points}}
    return {"bandwidth": {"value": quantity(rate, "B/s"), "points": points}}


def _points(rows: Sequence[Row], op: str, *, pinned: bool | None = None) -> tuple[Floats, Floats]:
    """Return the sizes (bytes) and times (s) of a kind of copy."""
    pairs = sorted(
        (float(str(row.params["bytes"])), row.quiet) for row in rows if row.op == op and row.params.get("pinned") == pinned
    )
    size, time = np.array(pairs, np.float64).reshape(-1, 2).T
    return size, time


def _line(points: tuple[Floats, Floats]) -> tuple[float, float]:
    """Return (setup time in s, bandwidth in B/s); zeros with too few points."""
    size, time = points
    if len(size) < MIN_LINE_SIZES:
        return 0.0, 0.0
    line: Callable[[Floats], Floats] = lambda x: np.asarray(np.exp(x[0]) + size * np.exp(x[1]), np.float64)  # noqa: E731
    start = np.log([time.min(), (time / size).min()])
    first, pace = np.exp(solve(Problem(numeric(line), time, start, np.ones(2), np.ones(len(size)))))
    return float(first), float(1.0 / pace)


def _seconds(value: float, points: int) -> dict[str, Any]:
    return {"value": quantity(max(value, MIN_SECONDS), "s"), "points": points}
