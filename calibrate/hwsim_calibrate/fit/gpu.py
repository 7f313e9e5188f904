"""A GPU from the suite `gpu`: launches, memory behind its L2, copies, and the tiles of its matrix products.

Each number is fitted with the model that simulates it. The error is taken at rows held out: every other size of each group,
predicted by a fit of the others.
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
from hwsim_calibrate.fit.gpu_products import Chip, Timed, fit_tiles
from hwsim_calibrate.fit.gpu_rows import MOVING, errors, group_of, machine_of, product_work, size_of
from hwsim_calibrate.fit.heldout import HeldOut
from hwsim_calibrate.fit.writing import quantity
from hwsim_calibrate.store import Measurements, Row

TILED: Final = 12  # products of a format from which on its tiles are fitted
ALONE: Final = ("launch", "graph", "arithmetic")  # one row for each number
# Key of `launch`: the op and the param `measured` of its row.
LAUNCHES: Final = {"host": ("launch", "wait"), "graph": ("graph", "")}


@dataclass(frozen=True, slots=True)
class FittedGpu:
    """Keys of the part, and of its link to the host; errors at rows held out, by group. Empty without a GPU."""

    part: dict[str, Any] = field(default_factory=dict)
    link: dict[str, Any] = field(default_factory=dict)
    heldout: Mapping[str, HeldOut] = field(default_factory=dict)


def fit_gpu(measurements: Measurements, ref: str, seed: int = 0) -> FittedGpu:
    """The GPU of the measurements, with its error at rows held out."""
    rows = [row for row in measurements.of("gpu") if not row.params.get("cold")]  # of earlier files: nothing is fitted to them
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
    return FittedGpu(part | {"notes": f"median error at rows held out (how many): {words}"}, link, heldout)


def held_rows(rows: Sequence[Row]) -> set[tuple[str, str]]:
    """Every other size of each op, format and kind of copy; the smallest and the largest are always fitted."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if group_of(row) and row.op not in ALONE:
            kind = (row.op, *(str(row.params.get(key)) for key in ("dtype", "pinned", "transposed")), _form(row))
            groups.setdefault(kind, []).append(row)
    return {row.key for group in groups.values() for row in sorted(group, key=size_of)[1:-1:2]}


def _form(row: Row) -> str:
    """The form of a product, which its time depends on as well as on its size: a fit needs some of each."""
    shape = row.params.get("shape")
    if row.op != "matmul" or not isinstance(shape, tuple | list):
        return ""
    m, k, n = (int(side) for side in shape)
    if min(k & -k, n & -n) * row.work.reads < Alignment().least * k * (m + n):
        return "rows at odd addresses"
    return "long k" if k > 8 * max(m, n) else "few rows or columns" if max(m, k, n) > 4 * min(m, k, n) else ""


def _fitted(rows: Sequence[Row], properties: Mapping[str, Any], ref: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(keys of the part, of the link); both empty where no memory or no products were measured."""
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
        "ref": f"{ref}; GPU by its own clock",
    }
    if isinstance(properties.get("multiprocessors"), int):
        part["sms"] = properties["multiprocessors"]
    part["memory"] = {"bandwidth": _key(bandwidth, "B/s", memory.points)}
    if isinstance(properties.get("memory"), int):
        part["memory"]["size"] = quantity(properties["memory"], "B")
    part["sustained"] = {key: _percent(value, memory.points) for key, value in sustained.items()}
    part |= _cache(memory, capacity)
    part["launch"] = {"stream": _key(memory.start, "s", memory.points)}
    for key, at in LAUNCHES.items():
        if at in launches:
            part["launch"][key] = _key(launches[at].quiet / max(launches[at].work.calls, 1.0), "s", len(launches[at].seconds))
    graph = launches.get(LAUNCHES["graph"])  # a product in a stream follows the one before as in a graph
    follows = graph.quiet / max(graph.work.calls, 1.0) if graph is not None else memory.start
    part |= _products(products, part.get("sms", 0), bandwidth, sustained, follows)
    if vector := {str(row.params["dtype"]): row for row in rows if row.op == "arithmetic"}:
        part["vector"] = {
            dtype: _key(row.work.flop / max(row.quiet - memory.start, 0.5 * row.quiet), "FLOP/s", len(row.seconds))
            for dtype, row in sorted(vector.items())
        }
    part["efficiency"] = {"matmul": "100 %", "vector": "100 %"}  # of rates that were reached
    copies, link = copies_of(rows, properties, bandwidth, capacity)
    return part | ({"copies": copies} if copies else {}), link


def _sustained(rates: Mapping[str, float], best: float) -> dict[str, float]:
    """Parts of the best rate; a copy cannot beat its reads or its writes alone."""
    parts = {key: rate / best for key, rate in rates.items()}
    parts["copy"] = min(parts["copy"], *(2.0 * parts[key] for key in ("read", "write") if key in parts))
    return parts


def _cache(memory: FittedMemory, capacity: float) -> dict[str, Any]:
    """`l2`: its size, and its bandwidth where streams show it."""
    best = max(memory.l2.values())
    l2: dict[str, Any] = {"size": quantity(capacity, "B")}
    if memory.l2["copy"] > memory.memory["copy"]:  # else nothing was seen of it
        l2["bandwidth"] = _key(best, "B/s", memory.points)
        l2["sustained"] = {key: _percent(value, memory.points) for key, value in _sustained(memory.l2, best).items()}
        l2["ramp"] = _ramp(memory.full, memory.none, capacity)
    return {"l2": l2}


def _ramp(full: float, none: float, size: float) -> dict[str, float]:
    return {"full": float(f"{full / size:.4g}"), "none": float(f"{none / size:.4g}")}


def _products(
    rows: Sequence[Row], multiprocessors: int, bandwidth: float, sustained: Mapping[str, float], launch: float
) -> dict[str, Any]:
    """`flop` and `matmul` by number format; the fastest product where there are too few of them."""
    moved = SustainedBandwidth(**{"read": 1.0, "copy": 1.0, "write": 1.0} | dict(sustained))
    formats: dict[str, list[Row]] = {}
    for row in rows:
        formats.setdefault(str(row.params.get("dtype")), []).append(row)
    flop: dict[str, Any] = {}
    matmul: dict[str, Any] = {}
    for dtype, group in sorted(formats.items()):
        flop[dtype] = _key(max(row.work.flop / row.quiet for row in group), "FLOP/s", len(group))
        if multiprocessors and len(group) >= TILED:
            timed = [
                Timed(work, row.quiet, moved.bytes_at_peak(work.reads, work.writes) / bandwidth)
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


def reached(measurements: Measurements) -> float:
    """Bytes per second that the host's memory has given or taken in a copy, a lower bound; 0 without a GPU."""
    return max((row.work.reads / row.quiet for row in measurements.of("gpu") if row.op in ("h2d", "d2h")), default=0.0)
