"""The two tables of latency numbers in Dive into Deep Learning, beside the library's machine that has the text's parts."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final

from hwsim import api
from hwsim.units import parse
from hwsim.views.latency.find import Latencies, Row
from hwsim.views.latency.find import find as latencies
from published.score import Miss, Score, scored

MACHINE: Final = "d2l-latency"
ROWS: Final = {  # beginnings of the tables' rows, and the keys of `hwsim latency`
    "L1 cache": "l1",
    "Floating-point": "fma",
    "L2 cache": "l2",
    "Branch": "mispredict",
    "L3 cache hit (unshared": "l3",
    "L3 cache hit (shared": "l3-shared",
    "Mutex": "mutex",
    "L3 cache hit (modified": "l3-modified",
    "L3 cache hit (on a remote": "l3-remote",
    "QPI": "socket-hop",
    "64MB memory ref. (local": "memory-64mb",
    "64MB memory ref. (remote": "memory-64mb-remote",
    "256MB memory ref. (local": "memory-256mb",
    "256MB memory ref. (remote": "memory-256mb-remote",
    "Intel Optane random write": "pmem-write",
    "Intel Optane random read": "pmem-read",
    "Send 4KB over 100": "fabric-4kb",
    "Compress": "compress-1kb",
    "Send 4KB over 10 ": "ethernet-4kb",
    "Write 4KB randomly to NVMe": "nvme-write-4kb",
    "Read 4KB randomly from NVMe": "nvme-read-4kb",
    "Read 1MB sequentially from NVMe": "nvme-read-1mb",
    "Write 4KB randomly to SATA": "sata-write-4kb",
    "Read 4KB randomly from SATA": "sata-read-4kb",
    "Round trip": "data-centre",
    "Read 1MB sequentially from SATA": "sata-read-1mb",
    "Read 1MB sequentially from disk": "disk-read-1mb",
    "Random Disk": "disk-read-4kb",
    "Send packet CA": "wan",
    "GPU Shared": "gpu-shared",
    "GPU Global": "gpu-global",
    "Launch": "gpu-launch",
    "Transfer 1MB to/from NVLink": "nvlink-1mb",
    "Transfer 1MB to/from PCI-E": "pcie-1mb",
}
REASONS: Final = {
    "ethernet-4kb": "two ways over PCIe, two cards and a switch, each with its own datasheet, add up to 1 us more",
    "sata-read-1mb": "1 MB at the 550 MB/s that the row itself names is 1.8 ms",
    "l3-shared": "one time for a line of another core, clean or modified",
    "l3-modified": "one time for a line of another core, clean or modified",
    "mutex": "two atomic instructions of 20 cycles and 50 others; nothing fitted",
}


def scores(data: Path) -> tuple[Score, ...]:
    """Every row of both tables."""
    found = latencies(api.load_machine(MACHINE))
    rows = []
    with (data / "oracles" / "d2l_latency_tables.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            key = next(key for begin, key in ROWS.items() if line["action"].startswith(begin))
            said = parse(line["time"].replace("μ", "u")).value
            rows.append(Miss(key, _seconds(found, key), said, line["table"], REASONS.get(key, "")))
    return (
        scored(
            "latency numbers of the text",
            rows,
            0.2,
            metric="worst |error| of a row",
            why=lambda _: "rounded in the text",
            notes=f"`hwsim latency {MACHINE}`, row by row; no row is outside. Parts are those the tables name. Of their numbers "
            "the clock, the latency of memory and of another socket's, a line from core to core, the way of a fabric's card "
            "to its CPU, and the switches of a data centre are fitted to rows of the tables. Floating-point arithmetic is "
            "the time until a result can be used, which a core here does not have: the machine's efficiency stands for it.",
        ),
    )


def _seconds(found: Latencies, key: str) -> float:
    row = found.row(key)
    return row.seconds if isinstance(row, Row) else 0.0
