"""A GPU from the suite `gpu`: launches, memory behind its L2 cache, copies from and to the host, peaks by number format.

time of a kernel that only moves bytes = start + bytes / rate of the L2, a smooth step over to the rate of memory
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hwsim_calibrate.fit.piecewise import pieces_of
from hwsim_calibrate.fit.solve import Floats, Problem, solve
from hwsim_calibrate.fit.writing import quantity
from hwsim_calibrate.store import Measurements, Row

ARRAYS: Final = {"copy": 2.0, "triad": 3.0, "read": 1.0}
GUESSED: Final = (3e-6, 1 / 5e12, 1 / 2e12, 40e6, 4.0)  # start, seconds per byte of L2 and of memory, bytes of L2, sharpness
SPREAD: Final = (2.0, 1.0, 1.0, 0.7, 0.4)
FEWEST: Final = 6


@dataclass(frozen=True, slots=True)
class Ramp:
    """What kernels that move bytes told: seconds to start, B/s of L2 and of memory, bytes of L2.

    error: the median at the `points` sizes it was fitted to.
    """

    start: float
    l2: float
    memory: float
    capacity: float
    error: float
    points: int


def ramp_of(points: Sequence[tuple[float, float]]) -> Ramp:
    """Through (bytes gone over, seconds)."""
    size, time = (np.array(each, np.float64) for each in zip(*sorted(points), strict=True))
    start = np.log(GUESSED)
    start[0], start[2] = math.log(time[0]), math.log(time[-1] / size[-1])
    start[1] = start[2] + math.log(0.4)

    def seconds(x: Floats) -> Floats:
        first, near, far, capacity, sharpness = np.exp(x)
        beyond = 1.0 / (1.0 + (capacity / size) ** sharpness)
        found: Floats = first + size * (near * (1.0 - beyond) + far * beyond)
        return found

    def times(x: Floats) -> tuple[Floats, Floats]:
        here, slopes = seconds(x), np.zeros((len(size), len(x)))
        for at in range(len(x)):
            bent = x.copy()
            bent[at] += 1e-4
            slopes[:, at] = (seconds(bent) - here) / 1e-4
        return here, slopes

    x = solve(Problem(times, time, start, np.array(SPREAD), np.ones(len(size))))
    first, near, far, capacity, _ = (float(each) for each in np.exp(x))
    error = float(np.median(np.abs(seconds(x) / time - 1.0)))
    return Ramp(first, 1.0 / near, 1.0 / far, capacity, error, len(size))


def gpu_part(measurements: Measurements, ref: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(keys of the part, keys of its link to the host); both empty where no GPU was measured."""
    rows = [row for row in measurements.of("gpu") if not row.params.get("cold")]
    products = [row for row in rows if row.op == "matmul"]
    moving = {op: _moved(rows, op) for op in ARRAYS}
    if not products or len(moving["copy"]) < FEWEST:
        return {}, {}
    ramps = {op: ramp_of(points) for op, points in moving.items() if len(points) >= FEWEST}
    best = max(ramp.memory for ramp in ramps.values())
    said = measurements.environment.get("gpu", {})
    part: dict[str, Any] = {
        "kind": "gpu",
        "name": str(said.get("name", "")),
        "source": "measured",
        "ref": f"{ref}; GPU by its own clock",
        "notes": "; ".join(f"{op}: {ramp.points} sizes, median error {100 * ramp.error:.1f} %" for op, ramp in ramps.items()),
        "flop": _peaks(products),
        "memory": {"bandwidth": {"value": quantity(best, "B/s"), "points": sum(ramp.points for ramp in ramps.values())}},
        "sustained": {op: _share(ramps[op].memory / best) for op in ("read", "copy") if op in ramps},
        "l2": {
            "size": {"value": quantity(ramps["copy"].capacity, "B"), "points": ramps["copy"].points},
            "bandwidth": {"value": quantity(max(ramp.l2 for ramp in ramps.values()), "B/s"), "points": ramps["copy"].points},
        },
    }
    if isinstance(said.get("sms"), int):
        part["sms"] = said["sms"]
    launch = _launches(rows)
    if launch:
        part["launch"] = launch
    return part, _link(rows, part)


def _moved(rows: Sequence[Row], op: str) -> list[tuple[float, float]]:
    """(bytes of all arrays, seconds) in the number format with most sizes."""
    by_type: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        size = row.params.get("bytes")
        if row.op == op and row.clock == "device" and isinstance(size, int):
            by_type.setdefault(str(row.params.get("dtype")), []).append((ARRAYS[op] * size, row.quiet))
    return max(by_type.values(), key=len, default=[])


def _peaks(products: Sequence[Row]) -> dict[str, Any]:
    rates: dict[str, list[float]] = {}
    for row in products:
        rates.setdefault(str(row.params.get("dtype")), []).append(row.work.flop / row.quiet)
    return {dtype: {"value": quantity(max(found), "FLOP/s"), "points": len(found)} for dtype, found in sorted(rates.items())}


def _launches(rows: Sequence[Row]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, op, measured in (("stream", "launch", "device"), ("host", "launch", "wait"), ("graph", "graph", "")):
        for row in rows:
            if row.op == op and str(row.params.get("measured", "")) == measured:
                found[key] = {"value": quantity(row.quiet / max(row.work.calls, 1.0), "s"), "points": len(row.seconds)}
    return found


def _link(rows: Sequence[Row], part: dict[str, Any]) -> dict[str, Any]:
    """A link as pinned copies see it; what copies take to start, and from pageable memory, goes into the part."""
    pinned = {way: _copies(rows, way, pinned=True) for way in ("h2d", "d2h")}
    if min(len(points) for points in pinned.values()) < FEWEST:
        return {}
    fitted = {way: pieces_of(points) for way, points in pinned.items()}
    rate = max(each.rate for each in fitted.values())
    part["copies"] = {"setup": quantity(max(fitted["d2h"].start, 1e-9), "s")}
    fetch = fitted["h2d"].start - fitted["d2h"].start
    if fetch > 0:
        part["copies"]["fetch"] = quantity(fetch, "s")
    pageable = [_copies(rows, way, pinned=False) for way in ("h2d", "d2h")]
    if all(len(points) >= FEWEST for points in pageable):
        part["copies"]["pageable"] = quantity(max(pieces_of(points).rate for points in pageable), "B/s")
    return {
        "name": "pcie",
        "between": ["cpu", "gpu"],
        "kind": "direct",
        "bandwidth": {"value": quantity(rate, "B/s"), "points": sum(map(len, pinned.values()))},
    }


def _copies(rows: Sequence[Row], way: str, *, pinned: bool) -> list[tuple[float, float]]:
    found = []
    for row in rows:
        size = row.params.get("bytes")
        if row.op == way and row.params.get("pinned") is pinned and isinstance(size, int):
            found.append((float(size), row.quiet))
    return found


def reached(measurements: Measurements) -> float:
    """Bytes per second that the host's memory has given or taken in a copy, 0 without a GPU: it has no less."""
    return max((row.work.reads / row.quiet for row in measurements.of("gpu") if row.op in ("h2d", "d2h")), default=0.0)


def _share(ratio: float) -> str:
    return f"{100 * min(ratio, 1.0):.4g} %"
