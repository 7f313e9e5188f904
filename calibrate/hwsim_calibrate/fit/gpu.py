"""A GPU from the suite `gpu`: launches, memory behind its L2 cache, copies from and to the host, products by number format.

Time of a kernel that only moves bytes = start + bytes / rate, whose rate changes smoothly from the L2's to the memory's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, cast

import numpy as np

from hwsim.devices import Product, Work
from hwsim.devices.gpu_memory import Sustained
from hwsim.formats import percent
from hwsim_calibrate.fit.gpu_products import Chip, Timed, fit_tiles
from hwsim_calibrate.fit.piecewise import pieces_of
from hwsim_calibrate.fit.solve import Floats, Problem, solve
from hwsim_calibrate.fit.writing import quantity
from hwsim_calibrate.store import Measurements, Row

ARRAYS: Final = {"copy": 2.0, "triad": 3.0, "read": 1.0}
GUESSED: Final = (3e-6, 1 / 5e12, 1 / 2e12, 40e6, 4.0)  # start, seconds per byte of L2 and of memory, bytes of L2, sharpness
SPREAD: Final = (2.0, 1.0, 1.0, 0.7, 0.4)
FEWEST: Final = 6  # sizes of a fit
TILED: Final = 12  # products of a number format from which on its tiles are fitted
STEP: Final = 1e-4  # of a derivative
# Key of `launch`: the op and the param `measured` of its row.
LAUNCHES: Final = {"stream": ("launch", "device"), "host": ("launch", "wait"), "graph": ("graph", "")}


@dataclass(frozen=True, slots=True)
class Ramp:
    """Seconds to start, B/s of L2 and of memory, bytes of L2; error: median relative error at the `points` sizes of the fit."""

    start: float
    l2: float
    memory: float
    capacity: float
    error: float
    points: int


def ramp_of(points: Sequence[tuple[float, float]]) -> Ramp:
    """The ramp through (bytes moved, seconds)."""
    size, time = (np.array(each, np.float64) for each in zip(*sorted(points), strict=True))
    start = np.log(GUESSED)
    start[0], start[2] = math.log(time[0]), math.log(time[-1] / size[-1])
    start[1] = start[2] + math.log(0.4)

    def seconds(x: Floats) -> Floats:
        first, near, far, capacity, sharpness = np.exp(x)
        beyond = 1.0 / (1.0 + (capacity / size) ** sharpness)
        return np.asarray(first + size * (near * (1.0 - beyond) + far * beyond), np.float64)

    def times(x: Floats) -> tuple[Floats, Floats]:
        value = seconds(x)
        slopes = [(seconds(x + STEP * unit) - value) / STEP for unit in np.eye(len(x))]
        return value, np.stack(slopes, axis=1)

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
    sustained = {op: min(ramps[op].memory / best, 1.0) for op in ("read", "copy") if op in ramps}
    properties = measurements.environment.get("gpu", {})
    part: dict[str, Any] = {
        "kind": "gpu",
        "name": str(properties.get("name", "")),
        "source": "measured",
        "ref": f"{ref}; GPU by its own clock",
        "notes": "; ".join(f"{op}: {ramp.points} sizes, median error {percent(ramp.error, '.1f')}" for op, ramp in ramps.items()),
        "memory": {"bandwidth": _key(best, "B/s", sum(ramp.points for ramp in ramps.values()))},
        "sustained": {op: percent(value, ".4g") for op, value in sustained.items()},
        "l2": {
            "size": _key(ramps["copy"].capacity, "B", ramps["copy"].points),
            "bandwidth": _key(max(ramp.l2 for ramp in ramps.values()), "B/s", ramps["copy"].points),
        },
    }
    if isinstance(properties.get("multiprocessors"), int):
        part["sms"] = properties["multiprocessors"]
    if isinstance(properties.get("memory"), int):
        part["memory"]["size"] = quantity(properties["memory"], "B")
    launches = {
        key: _key(row.quiet / max(row.work.calls, 1.0), "s", len(row.seconds))
        for key, (op, measured) in LAUNCHES.items()
        for row in rows
        if row.op == op and str(row.params.get("measured", "")) == measured
    }
    launch = next((row.quiet for row in rows if row.op == "launch" and row.params.get("measured") == "device"), 0.0)
    part |= _products(products, Chip(part.get("sms", 0), best, launch), Sustained(**sustained))
    copies, link = _copies(rows)
    return part | ({"launch": launches} if launches else {}) | copies, link


def _key(value: float, unit: str, points: int) -> dict[str, Any]:
    return {"value": quantity(value, unit), "points": points}


def _moved(rows: Sequence[Row], op: str) -> list[tuple[float, float]]:
    """(bytes of all arrays, seconds) in the number format with most sizes."""
    by_format: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        size = row.params.get("bytes")
        if row.op == op and row.clock == "device" and isinstance(size, int):
            by_format.setdefault(str(row.params.get("dtype")), []).append((ARRAYS[op] * size, row.quiet))
    return max(by_format.values(), key=len, default=[])


def _products(rows: Sequence[Row], chip: Chip, sustained: Sustained) -> dict[str, Any]:
    """`flop` and `matmul` by number format; the rate of the fastest product where there are too few for tiles."""
    formats: dict[str, list[Timed]] = {}
    for row in rows:
        (m, k, n), work, dtype = cast("tuple[int, ...]", row.params["shape"]), row.work, str(row.params["dtype"])
        product = Work(flop=work.flop, reads=work.reads, writes=work.writes, dtype=dtype, mix="matmul", product=Product(m, n, k))
        memory = sustained.bytes_at_peak(work.reads, work.writes) / chip.bandwidth
        formats.setdefault(dtype, []).append(Timed(product, row.quiet, memory))
    part: dict[str, dict[str, Any]] = {"flop": {}, "matmul": {}}
    for dtype, timed in sorted(formats.items()):
        rate = max(product.work.flop / product.seconds for product in timed)
        if chip.multiprocessors and len(timed) >= TILED:
            rate, tiling = fit_tiles(timed, chip)
            seconds = {key: quantity(getattr(tiling, key), "s") for key in ("start", "adding")}
            aligned = {key: getattr(tiling.alignment, key) for key in ("between", "below")}
            part["matmul"][dtype] = asdict(tiling) | seconds | {"alignment": aligned}
        part["flop"][dtype] = _key(rate, "FLOP/s", len(timed))
    return part


def _copies(rows: Sequence[Row]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(`copies` of the part: their start, and the rate from pageable memory; the link as pinned copies see it)."""
    points: dict[tuple[str, bool], list[tuple[float, float]]] = {
        (op, pinned): [] for op in ("h2d", "d2h") for pinned in (True, False)
    }
    for row in rows:
        key, size = (row.op, bool(row.params.get("pinned"))), row.params.get("bytes")
        if key in points and isinstance(size, int):
            points[key].append((float(size), row.quiet))
    up, down = points["h2d", True], points["d2h", True]
    if min(len(up), len(down)) < FEWEST:
        return {}, {}
    to_device, to_host = pieces_of(up), pieces_of(down)
    copies = {"setup": quantity(max(to_host.start, 1e-9), "s")}
    if to_device.start > to_host.start:
        copies["fetch"] = quantity(to_device.start - to_host.start, "s")
    pageable = [points["h2d", False], points["d2h", False]]
    if all(len(each) >= FEWEST for each in pageable):
        copies["pageable"] = quantity(max(pieces_of(each).rate for each in pageable), "B/s")
    rate = _key(max(to_device.rate, to_host.rate), "B/s", len(up) + len(down))
    return {"copies": copies}, {"name": "pcie", "between": ["cpu", "gpu"], "kind": "direct", "bandwidth": rate}


def reached(measurements: Measurements) -> float:
    """Bytes per second that the host's memory has given or taken in a copy, a lower bound; 0 without a GPU."""
    return max((row.work.reads / row.quiet for row in measurements.of("gpu") if row.op in ("h2d", "d2h")), default=0.0)
