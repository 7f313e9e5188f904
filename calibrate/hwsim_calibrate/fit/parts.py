"""The CPU and the disk of a fitted machine.

The CPU has its kernels, and the numbers of the plain formulas for every op that is none of them. The disk has what the operating
system gives a program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

from hwsim.devices.kernels import Kernels
from hwsim.devices.work import elementwise_call
from hwsim.formats import percent
from hwsim.units import BYTES
from hwsim_calibrate.fit.gpu import reached
from hwsim_calibrate.fit.kernels import FittedKernels, reported_sizes
from hwsim_calibrate.fit.piecewise import Pieces, pieces_of
from hwsim_calibrate.fit.writing import kernels_block, quantity
from hwsim_calibrate.store import Measurements, Row

LARGE: Final = 1 << 25  # elements of the addition that shows memory's bandwidth: 768 MiB together
UNKNOWN: Final = 10e9  # B/s of a core without a measured addition: a guess
LEVELS: Final = {"L2": "L1", "L3": "L2", "memory": "L3"}  # the cache before each level


def cpu_part(fitted: FittedKernels, measurements: Measurements, ref: str) -> dict[str, Any]:
    """All keys of the part."""
    kernels, environment = fitted.kernels, measurements.environment.get("cpu", {})
    cpu = environment if isinstance(environment, Mapping) else {}
    cores, core_rate = int(cpu.get("usable", 1)), bandwidth(kernels)
    sizes = reported_sizes(measurements) or {level: tier.beyond for level, tier in kernels.levels.items()}
    levels = {LEVELS[level]: size for level, size in sizes.items() if level in LEVELS}
    delays = latencies(measurements, levels)
    memory = {
        "bandwidth": quantity(max(core_rate, reached(measurements)), "B/s"),
        "ref": "reached by one core, or by copies to a GPU: all cores together may have more",
    }
    drawing = kernels.functions["normal"].each if "normal" in kernels.functions else {}
    return {
        "kind": "cpu",
        "name": str(cpu.get("model", "")),
        "source": "measured",
        "ref": ref,
        "cores": cores,
        "flop": _peaks(kernels, cores),
        **({"random": quantity(1.0 / max(drawing.values()), "1/s")} if drawing else {}),
        "core_bandwidth": quantity(core_rate, "B/s"),
        "memory": memory | ({"latency": quantity(delays["memory"], "s")} if "memory" in delays else {}),
        "caches": {
            "levels": {
                level: {"size": quantity(size, "B")} | ({"latency": quantity(delays[level], "s")} if level in delays else {})
                for level, size in levels.items()
            }
        },
        "kernels": kernels_block(fitted),
    }


def _peaks(kernels: Kernels, cores: int) -> dict[str, Any]:
    """FLOP/s by number format; every format is computed in fp64 or fp32, which therefore have at least a guess."""
    rates = {dtype: time.flop * cores for dtype, time in kernels.products.items() if dtype in BYTES}
    ref = "large products on one core, times cores"
    peaks = {dtype: {"value": quantity(rate, "FLOP/s"), "source": "measured", "ref": ref} for dtype, rate in rates.items()}
    highest = quantity(max(rates.values(), default=1e9), "FLOP/s")
    for dtype in ("fp64", "fp32"):
        if dtype not in peaks:
            peaks[dtype] = {"value": highest, "source": "guess", "ref": f"no product of {dtype} was measured"}
    return peaks


def latencies(measurements: Measurements, levels: Mapping[str, float]) -> dict[str, float]:
    """Seconds of an access that each level serves, and memory, from chains of reads; none where those were not measured.

    A level shows where the level before it holds little of the chain and it holds all: from four times the size before it to half
    of its own. Beyond twice the last level everything comes from memory, including the cost of its pages.
    """
    chains = sorted((float(size), row.quiet) for row in measurements.of("memory", "chase")
                    if isinstance(size := row.params.get("bytes"), int))  # fmt: skip
    delays: dict[str, float] = {}
    before = 0.0
    for level, size in levels.items():
        served = [seconds for chain, seconds in chains if 4 * before <= chain <= size / 2]
        if not served:
            return {}
        delays[level], before = median(served), size
    beyond = [seconds for chain, seconds in chains if chain >= 2 * before]
    return delays | {"memory": median(beyond)} if beyond else {}


def bandwidth(kernels: Kernels) -> float:
    """Bytes per second of one core in an addition of large arrays, by the table; a guess without one."""
    call = elementwise_call("add", dtype="fp64", count=float(LARGE), inputs=2, into="out")
    if kernels.unknown(call):
        return UNKNOWN
    time = kernels.time(call)
    return call.moved / (time.body / time.ratio)


def disk_part(measurements: Measurements, ref: str) -> dict[str, Any]:
    """Past the page cache (O_DIRECT): bandwidth of long sequential reads, time of a small random one, IOPS of several at once."""
    rows = [row for row in measurements.of("storage") if row.params.get("cache") == "direct"]
    reads = _by_size(rows, "read", "sequential")
    if len(reads) < 2:
        return {}
    writes, rate = _by_size(rows, "write", "sequential"), _long_rate(reads)
    size, seconds = (_by_size(rows, "read", "random") or reads)[0]
    part: dict[str, Any] = {
        "kind": "disk",
        "source": "measured",
        "ref": f"{ref}; O_DIRECT, wall clock; in a virtual machine the host's cache may lie behind it",
        "notes": _in_words("reads in a row", reads),
        "read": {"value": quantity(rate, "B/s"), "points": len(reads)},
    }
    if len(writes) >= 2:
        part["write"] = {"value": quantity(_long_rate(writes), "B/s"), "points": len(writes)}
    part["latency"] = {"value": quantity(max(seconds - size / rate, 1e-9), "s"), "points": 1}
    deep = [(depth, 1.0 / row.quiet) for row in rows if row.op == "read" and (depth := _int(row.params.get("depth"))) > 1]
    if deep:
        depth, most = max(deep, key=lambda each: each[1])
        part |= {"iops": {"value": quantity(max(most, 1.0 / seconds), "1/s"), "points": len(deep)}, "queue": depth}
    return part


def _by_size(rows: Sequence[Row], op: str, pattern: str) -> list[tuple[float, float]]:
    return sorted(
        (float(_int(row.params.get("bytes"))), row.quiet)
        for row in rows
        if row.op == op and row.params.get("pattern") == pattern and _int(row.params.get("depth", 1)) <= 1
    )


def _long_rate(points: Sequence[tuple[float, float]]) -> float:
    """Bytes per second of long accesses: of the last piece, or of the fastest size if that is more."""
    fastest = max(size / seconds for size, seconds in points)
    return min(max(pieces_of(points).rate, fastest), 4.0 * fastest)


def _in_words(name: str, points: Sequence[tuple[float, float]]) -> str:
    pieces: Pieces = pieces_of(points)
    errors = sorted(abs(pieces.seconds(size) / seconds - 1.0) for size, seconds in points)
    parts = [
        f"from {quantity(max(each.least, 1.0), 'B')} on {quantity(each.start, 's')} and {quantity(each.rate, 'B/s')}"
        for each in pieces.pieces
    ]
    return f"{name}: {', '.join(parts)}; median error {percent(errors[len(errors) // 2], '.1f')}"


def _int(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 1
