"""Keys of disks of all kinds, and of reads and writes."""

from __future__ import annotations

from itertools import product
from typing import Any, Final

from tests.keys.examples.writing import CPU, between, in_turn, machine
from tests.keys.feeling import Example


def _both(disk: str, **keys: Any) -> list[dict[str, Any]]:
    return [{"read": {"from": disk, **keys}}, {"write": {"to": disk, **keys}}]


def _all(disk: str) -> list[dict[str, Any]]:
    """Reads and writes of every sort."""
    found = []
    for access, (size, times), depth in product(
        ("sequential", "random"), (("4 KiB", 500), ("300 KiB", 100), ("1 MiB", 2000)), (1, 16)
    ):
        found += _both(disk, bytes=size, times=times, access=access, depth=depth)
    found += _both(disk, bytes="4 KiB", times=500, access="random", depth=4, region="1 GiB")
    return [
        *found,
        {"read": {"from": disk, "to": "cpu", "bytes": "4 KiB", "times": 100, "access": "random", "write_share": "30 %"}},
        {"write": {"to": disk, "from": "cpu", "bytes": "4 KiB", "times": 50, "access": "random", "sync": True}},
        {"read": {"from": disk, "bytes": "4 KiB", "times": 2000, "access": "random", "depth": 256}},
        {"copy": {"from": disk, "to": "cpu", "bytes": "1 MB"}},
        {"copy": {"from": "cpu", "to": disk, "bytes": "1 MB"}},
    ]


def _example(kind: str, disk: dict[str, Any], *more: dict[str, Any], name: str = "", **options: Any) -> Example:
    tried = {f"{kind}.size": ("1 MB",), "op read.to": ("other",), "op write.from": ("other",), **options.pop("tried", {})}
    link = between("cpu", "it", "pcie", gen=4, lanes=4)
    return Example(
        f"{kind} {name}".strip(),
        machine(link, between("other", "it"), cpu=CPU, other=CPU, it={"kind": kind, "lanes": 4, **disk}),
        in_turn(*(more or _all("it"))),
        tried=tried,
        refused={f"{kind}.lanes": (2, "lanes")},
        **options,
    )


SEEK: Final = {"cylinders": 50000, "track": "0.5 ms", "average": "8 ms", "full": "16 ms"}
FLASH: Final = {
    "channels": 4, "chips": 2, "dies": 2, "planes": 2, "page": "8 KiB", "pages_per_block": 64, "blocks": 64,
    "read": "75 us", "program": "750 us", "erase": "3.8 ms", "channel": "333 MB/s", "command": "0.3 us",
}  # fmt: skip
SHEET: Final = {
    "read": "3 GB/s", "write": "1 GB/s", "latency": "80 us", "write_latency": "20 us", "sequential_latency": "30 us",
    "iops": "300 kIOPS", "write_iops": "50 kIOPS", "sharpness": 1.5, "queue": 64, "interface": "3.2 GB/s", "turnaround": "5 us",
    "flush": "1 ms", "size": "1 TB",
}  # fmt: skip
MEMBERS: Final[dict[str, dict[str, Any]]] = {
    "hdd": {"rpm": 7200.0, "seek": SEEK, "outer": "250 MB/s", "size": "1 TB"},
    "ssd": {"read": "3 GB/s", "latency": "80 us"},
    "volume": {"iops": "3 kIOPS", "bandwidth": "125 MB/s"},
}
READ: Final = {"read": {"from": "it", "bytes": "1 MB", "times": 10}}
EXAMPLES: Final = (
    _example(
        "disk",
        {
            "read": "3 GB/s",
            "write": "1 GB/s",
            "latency": "80 us",
            "write_latency": "20 us",
            "iops": "300 kIOPS",
            "write_iops": "50 kIOPS",
            "queue": 8,
            "size": "1 TB",
        },
    ),
    _example(
        "hdd",
        {
            "rpm": 7200.0,
            "seek": SEEK,
            "outer": "250 MB/s",
            "inner": "120 MB/s",
            "size": "1 TB",
            "overhead": "0.2 ms",
            "settle": "0.8 ms",
            "queue": 32,
            "gain": 0.29,
            "cache": "64 MiB",
            "write_cache": True,
            "interface": "200 MB/s",
        },
    ),
    _example(
        "hdd",
        {
            "rpm": 7200.0,
            "seek": {"cylinders": 5172, "a": "1.7 ms", "b": "215 us", "c": "6 ms", "e": "2141 ns", "bend": 800},
            "platter": {"outer": "46 mm", "inner": "21 mm", "density": "80 Mb/m", "tracks": 50000, "surfaces": 4, "used": "90 %"},
        },
        name="of platters",
    ),
    _example("ssd", {**SHEET, "endurance": {"written": "600 TB"}}),
    _example(
        "ssd",
        {
            **SHEET,
            "unit": "16 KiB",
            "over_provisioning": "20 %",
            "reserve": "2 %",
            "state": "steady",
            "cache": {"size": "100 MB", "write": "2 GB/s", "iops": "200 kIOPS", "latency": "10 us"},
        },
        name="with a cache",
    ),
    _example(
        "ssd",
        {
            "flash": FLASH,
            "interface": "3 GB/s",
            "controller": "5 us",
            "over_provisioning": "20 %",
            "reserve": "7 %",
            "state": "steady",
            "unit": "8 KiB",
        },
        name="of flash",
    ),
    _example(
        "volume",
        {
            "iops": "3 kIOPS",
            "bandwidth": "125 MB/s",
            "latency": "1 ms",
            "write_latency": "2 ms",
            "iops_per_gib": "3 1/s",
            "iops_most": "16 kIOPS",
            "burst_iops": "6 kIOPS",
            "credits": 1000.0,
            "burst_bandwidth": "250 MB/s",
            "byte_credits": "10 MB",
            "chunk": "256 KiB",
            "queue": 8,
            "size": "2 TB",
        },
    ),
    _example("raid", {"level": 5, "members": 4, "stripe": "64 KiB", "disk": {"read": "200 MB/s", "latency": "10 ms"}}),
    _example(
        "filesystem",
        {
            "bandwidth": "10 GB/s",
            "write_bandwidth": "5 GB/s",
            "client": "2 GB/s",
            "stream": "500 MB/s",
            "stripes": 4,
            "requests": "20 kIOPS",
            "latency": "1 ms",
            "write_latency": "2 ms",
            "queue": 8,
            "request": "1 MiB",
            "size": "1 PB",
        },
    ),
    Example(
        "ssd by requests",
        machine(it={"kind": "ssd", "flash": FLASH, "over_provisioning": "20 %", "reserve": "7 %"}, cpu=CPU),
        in_turn({"write": {"to": "it", "bytes": "8 KiB", "times": 200, "access": "random", "depth": 4}}),
        requests=("it",),
    ),
    *(
        Example(f"raid of {kind}", machine(it={"kind": "raid", "level": 0, "members": 2, kind: disk}, cpu=CPU), in_turn(READ))
        for kind, disk in MEMBERS.items()
    ),
)
