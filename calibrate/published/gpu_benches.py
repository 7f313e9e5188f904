"""Measurements of te42kyfo/gpu-benches by curve; alternate sizes may be used for fitting."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hwsim.devices import Gpu
from hwsim.devices.gpu_memory import ThreadStream
from hwsim.devices.work import Start
from published.parts import declared, table
from published.score import Miss

ORACLES: Final = declared("gpu_benches")["oracles"]
ROWS: Final = declared("gpu_benches")["rows"]
GENERATIONS: Final[Mapping[str, Sequence[str]]] = declared("gpu_benches")["generations"]
REAL: Final = 8.0  # B of a value

# Reads, writes, and concurrent reads per value and thread of gpu-stream.
STREAMS: Final = {"init": (0, 1), "read": (1, 0), "scale": (1, 1), "triad": (2, 1), "3pt": (1, 1), "5pt": (1, 1)}
LONG: Final = float(128 * 1024 * 1024)  # values in an array of gpu-stream


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement of a curve at a size (bytes or threads); `fitted`: it may be used for fitting."""

    row: str
    group: str
    part: str
    curve: str
    size: float
    value: float
    published: bool  # a published row, not a point of a whole curve
    fitted: bool = False

    def miss(self, predicted: float) -> Miss:
        """Return this point with a prediction."""
        return Miss(self.row, predicted, self.value, self.group)


def split(points: list[Point]) -> list[Point]:
    """Return the points with every second size of each curve marked as fitted, starting with the smallest."""
    sizes: dict[tuple[str, str], set[float]] = {}
    for point in points:
        sizes.setdefault((point.part, point.curve), set()).add(point.size)
    even = {curve: set(sorted(found)[::2]) for curve, found in sizes.items()}
    return [Point(p.row, p.group, p.part, p.curve, p.size, p.value, p.published, p.size in even[p.part, p.curve]) for p in points]


def bandwidths(data: Path) -> list[Point]:
    """Return all bandwidths: gpu-cache, gpu-l2-cache, gpu-stream by kernel, and small kernels by launch method."""
    found = [
        _whole(row["gpu"], f"{row['working_set_kB']} kB", "l2", float(row["working_set_kB"]) * 1024, float(row["GBps"]) * 1e9)
        for row in table(data / "oracles" / "gpubenches_l2_bw_vs_ws.csv")
    ]
    for row in table(data / "oracles" / "gpubenches_stream_vs_occupancy.csv"):
        threads = float(row["threads"])
        found += [_whole(row["gpu"], f"{name} {threads:.0f} threads", name, threads, float(row[name]) * 1e9) for name in STREAMS]
    for row in table(data / "validation" / "02_membw.csv"):
        if "gpu-benches" in row["source"] and not row["flag"]:
            found.append(_published(row))
    return split(found)


def _whole(gpu: str, label: str, curve: str, size: float, value: float) -> Point:
    """Return a point of a whole curve of a GPU, by the published name."""
    return Point(f"{gpu} {label}", gpu, ORACLES[gpu], curve, size, value, False)


def _published(row: dict[str, str]) -> Point:
    program = row["source"].split(":")[1].split("/")[0]
    curve = {"gpu-cache": "together", "gpu-l2-cache": "l2", "gpu-stream": row["pattern"], "gpu-small-kernels": "small"}[program]
    if "_graph" in row["source"]:
        curve = "small graph"
    size = float(row["threads"] if program == "gpu-stream" else row["working_set_bytes"])
    return Point(row["id"], f"{program} {row['hardware']}", ROWS[row["hardware"]], curve, size, float(row["value"]), True)


def small_kernels(data: Path) -> list[Point]:
    """Return time against bytes of kernels launched back to back, in a stream or a graph, with the best block size."""
    found = []
    for row in table(data / "oracles" / "gpubenches_small_kernels.csv"):
        gpu, size = row["gpu"].removesuffix("_graph"), float(row["bytes"])
        curve = "stream" if gpu == row["gpu"] else "graph"
        found.append(_whole(gpu, f"{curve} {size:.0f} B", curve, size, float(row["time_us"]) * 1e-6))
    return split(found)


def latencies(data: Path) -> list[Point]:
    """Return the latency of dependent reads by working set, of whole curves and published rows, in seconds."""
    found = []
    for row in table(data / "oracles" / "gpubenches_latency.csv"):
        size, value = float(row["working_set_kB"]) * 1024, float(row["latency_ns"]) * 1e-9
        found.append(_whole(row["gpu"], f"{row['working_set_kB']} kB", "chase", size, value))
    for row in table(data / "validation" / "06_cpulat.csv"):
        if "gpu-benches" in row["source"] and not row["flag"]:
            part = ROWS[row["hardware"]]
            found.append(Point(row["id"], row["hardware"], part, "chase", float(row["buffer_bytes"]), float(row["value"]), True))
    return split(found)


def asked(point: Point, gpu: Gpu) -> ThreadStream:
    """Return the memory accesses of the program behind a point."""
    if point.curve == "l2":
        return ThreadStream(reads=point.size, working_set=point.size)
    if point.curve == "together":
        return ThreadStream(reads=point.size * (gpu.sms or 1), working_set=point.size, together=True)
    if point.curve.startswith("small"):  # the published column: blocks of 32 threads
        half = point.size / 2
        start: Start = "graph" if point.curve.endswith("graph") else "stream"
        return ThreadStream(reads=half, writes=half, each=REAL, working_set=point.size, blocks=half / REAL / 32, start=start)
    reads, writes = STREAMS[point.curve]
    return ThreadStream(
        reads=reads * LONG * REAL,
        writes=writes * LONG * REAL,
        each=REAL,
        threads=point.size,
        in_flight=max(1.0, reads),
        begun=LONG,
    )


def rate(point: Point, gpu: Gpu) -> float:
    """Return the model's bandwidth in B/s; launch time counts only for small kernels."""
    stream = asked(point, gpu)
    demand = gpu.stream("it", stream).demand
    rates = {capacity.name: capacity.rate for capacity in gpu.capacities("it")}
    seconds = demand.alone(rates) if point.curve.startswith("small") else demand.body(rates)
    return (stream.reads + stream.writes) / seconds


def middle(values: Iterable[float]) -> float | None:
    """Return the median of the values that are not None; None without any."""
    given = [value for value in values if value > 0]
    return statistics.median(given) if given else None
