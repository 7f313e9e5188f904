"""Fit of a GPU to the suite `gpu`: kernel launches, memory and L2, copies, and the tiles of its matmuls.

Each number is fitted with the model that simulates it. The error is evaluated at held-out cases: every other size of each group
is predicted by a fit to the remaining sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from hwsim.devices.gpu_matmul import Alignment
from hwsim.devices.gpu_memory import SustainedBandwidth
from hwsim.formats import percent
from hwsim_calibrate.fit.gpu_copies import copies_of
from hwsim_calibrate.fit.gpu_memory import FittedMemory, fit_memory
from hwsim_calibrate.fit.gpu_products import Chip, TimedMatmul, fit_tiles
from hwsim_calibrate.fit.gpu_rows import MOVING, errors, group_of, machine_of, product_work, size_of
from hwsim_calibrate.fit.holdout import HeldOut
from hwsim_calibrate.fit.machine_file import quantity
from hwsim_calibrate.store import Measurements, Row

MIN_TILED: Final = 12  # matmuls of a format from which its tiles are fitted
ALONE: Final = ("launch", "graph", "arithmetic")  # ops with one case for each number
# Key of `launch` -> (op, param `measured`) of its case.
LAUNCHES: Final = {"host": ("launch", "wait"), "graph": ("graph", "")}


@dataclass(frozen=True, slots=True)
class FittedGpu:
    """A fitted GPU; empty if none was measured.

    Args:
        part: keys of the part.
        link: keys of its link to the host.
        heldout: group -> errors at held-out cases.
    """

    part: dict[str, Any] = field(default_factory=dict)
    link: dict[str, Any] = field(default_factory=dict)
    heldout: Mapping[str, HeldOut] = field(default_factory=dict)


def fit_gpu(measurements: Measurements, ref: str, seed: int = 0) -> FittedGpu:
    """Fit the GPU of the measurements, with its errors at held-out cases."""
    rows = [row for row in measurements.of("gpu") if not row.params.get("cold")]  # from earlier versions; not fitted
    properties = measurements.environment.get("gpu", {})
    part, link = _fitted(rows, properties, ref)
    if not part:
        return FittedGpu()
    held = held_rows(rows)
    others, its_link = _fitted([row for row in rows if row.key not in held], properties, ref)
    if not others:
        return FittedGpu(part, link)
    unseen = [row for row in rows if row.key in held]
    heldout = errors(machine_of(others, its_link), unseen, seed)
    words = ", ".join(f"{name} {percent(group.median, '.1f')} ({len(group.cases)})" for name, group in heldout.items())
    return FittedGpu(part | {"notes": f"median error at held-out cases (number of cases): {words}"}, link, heldout)


def held_rows(rows: Sequence[Row]) -> set[tuple[str, str]]:
    """Return the keys of every other size of each op, format and kind of copy, except the smallest and the largest."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if group_of(row) and row.op not in ALONE:
            kind = (row.op, *(str(row.params.get(key)) for key in ("dtype", "pinned", "transposed")), _form(row))
            groups.setdefault(kind, []).append(row)
    return {row.key for group in groups.values() for row in sorted(group, key=size_of)[1:-1:2]}


def _form(row: Row) -> str:
    """Return the shape class of a matmul, because the fit needs matmuls of each class."""
    shape = row.params.get("shape")
    if row.op != "matmul" or not isinstance(shape, tuple | list):
        return ""
    m, k, n = (int(side) for side in shape)
    if min(k & -k, n & -n) * row.work.reads < Alignment().least * k * (m + n):
        return "rows at odd addresses"
    return "long k" if k > 8 * max(m, n) else "few rows or columns" if max(m, k, n) > 4 * min(m, k, n) else ""


def _fitted(rows: Sequence[Row], properties: Mapping[str, Any], ref: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (keys of the part, keys of the link); both are empty if memory or matmuls were not measured."""
    launches = {(row.op, str(row.params.get("measured", ""))): row for row in rows}
    empty = launches.get(("launch", "device"))
    products = [row for row in rows if row.op == "matmul"]
    moving = [row for row in rows if row.op in MOVING and row.clock == "device"]
    memory = fit_memory(moving, empty.quiet) if empty else None
    if not products or memory is None:
        return {}, {}
    bandwidth = max(memory.memory.values())
    capacity = float(properties.get("l2") or (memory.full * memory.none) ** 0.5)
    sustained = _sustained(memory.memory, bandwidth)
    part: dict[str, Any] = {
        "kind": "gpu",
        "name": str(properties.get("name", "")),
        "source": "measured",
        "ref": f"{ref}; GPU times from GPU events",
    }
    if isinstance(properties.get("multiprocessors"), int):
        part["sms"] = properties["multiprocessors"]
    part["memory"] = {"bandwidth": _key(bandwidth, "B/s", memory.points)}
    if isinstance(properties.get("memory"), int):
        part["memory"]["size"] = quantity(properties["memory"], "B")
    part["sustained"] = {key: _percent(value, memory.points) for key, value in sustained.items()}
    part |= _cache(memory, capacity)
    part["launch"] = {"stream": _key(memory.start, "s", memory.points)}
    for key, kind in LAUNCHES.items():
        if row := launches.get(kind):
            part["launch"][key] = _key(row.quiet / max(row.work.calls, 1.0), "s", len(row.seconds))
    graph = launches.get(LAUNCHES["graph"])  # consecutive matmuls in a stream start as in a graph
    follows = graph.quiet / max(graph.work.calls, 1.0) if graph is not None else memory.start
    part |= _products(products, part.get("sms", 0), bandwidth, sustained, follows)
    if vector := {str(row.params["dtype"]): row for row in rows if row.op == "arithmetic"}:
        part["vector"] = {
            dtype: _key(row.work.flop / max(row.quiet - memory.start, 0.5 * row.quiet), "FLOP/s", len(row.seconds))
            for dtype, row in sorted(vector.items())
        }
    part["efficiency"] = {"matmul": "100 %", "vector": "100 %"}  # relative to the measured rates
    copies, link = copies_of(rows, properties, bandwidth, capacity)
    return part | ({"copies": copies} if copies else {}), link


def _sustained(rates: Mapping[str, float], best: float) -> dict[str, float]:
    """Return the rates over the best rate; a copy is at most twice as fast as reads or writes alone."""
    parts = {key: rate / best for key, rate in rates.items()}
    parts["copy"] = min(parts["copy"], *(2.0 * parts[key] for key in ("read", "write") if key in parts))
    return parts


def _cache(memory: FittedMemory, capacity: float) -> dict[str, Any]:
    """Return the key `l2`: its size, and its bandwidth if the memory cases show it."""
    best = max(memory.l2.values())
    l2: dict[str, Any] = {"size": quantity(capacity, "B")}
    if memory.l2["copy"] > memory.memory["copy"]:  # otherwise the cases do not show the L2
        l2["bandwidth"] = _key(best, "B/s", memory.points)
        l2["sustained"] = {key: _percent(value, memory.points) for key, value in _sustained(memory.l2, best).items()}
        l2["ramp"] = _ramp(memory.full, memory.none, capacity)
    return {"l2": l2}


def _ramp(full: float, none: float, size: float) -> dict[str, float]:
    return {"full": float(f"{full / size:.4g}"), "none": float(f"{none / size:.4g}")}


def _products(
    rows: Sequence[Row], multiprocessors: int, bandwidth: float, sustained: Mapping[str, float], launch: float
) -> dict[str, Any]:
    """Return `flop` and `matmul` by number format; with too few matmuls, only the rate of the fastest one."""
    moved = SustainedBandwidth(**{"read": 1.0, "copy": 1.0, "write": 1.0} | dict(sustained))
    formats: dict[str, list[Row]] = {}
    for row in rows:
        formats.setdefault(str(row.params.get("dtype")), []).append(row)
    flop: dict[str, Any] = {}
    matmul: dict[str, Any] = {}
    for dtype, group in sorted(formats.items()):
        flop[dtype] = _key(max(row.work.flop / row.quiet for row in group), "FLOP/s", len(group))
        if multiprocessors and len(group) >= MIN_TILED:
            timed = [
                TimedMatmul(work, row.quiet, moved.bytes_at_peak(work.reads, work.writes) / bandwidth)
                for row in group
                if (work := product_work(row)) is not None
            ]
            rate, tiling = fit_tiles(timed, Chip(multiprocessors, bandwidth, launch))
            seconds = {key: quantity(getattr(tiling, key), "s") for key in ("start", "adding")}
            aligned = {key: getattr(tiling.alignment, key) for key in ("between", "below")}
            flop[dtype] = _key(rate, "FLOP/s", len(group))
            keys = {key: value for key, value in asdict(tiling).items() if value is not None}
            matmul[dtype] = keys | seconds | {"loads": quantity(tiling.loads or 0.0, "B/s"), "alignment": aligned}
    return {"flop": flop} | ({"matmul": matmul} if matmul else {})


def _key(value: float, unit: str, points: int) -> dict[str, Any]:
    return {"value": quantity(value, unit), "points": points}


def _percent(value: float, points: int) -> dict[str, Any]:
    return {"value": percent(value, ".4g"), "points": points}


def host_bandwidth(measurements: Measurements) -> float:
    """Return the fastest copy between host and GPU (B/s), a lower bound of the host's memory bandwidth; 0 without a GPU."""
    return max((row.work.reads / row.quiet for row in measurements.of("gpu") if row.op in ("h2d", "d2h")), default=0.0)
