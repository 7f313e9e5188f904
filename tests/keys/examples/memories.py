"""Keys of memories and their timings, by formula and request by request."""

from __future__ import annotations

from itertools import product
from typing import Any, Final

from tests.keys.examples.cpus import DDR4
from tests.keys.examples.writing import CPU, PLAIN_GPU, between, in_turn, machine
from tests.keys.feeling import Example

PATTERNS: Final = ("sequential", "random", "dependent", "strided")


def _accesses(device: str, count: float) -> list[dict[str, Any]]:
    stride = {"strided": {"stride": "16 KiB"}}
    mixes: tuple[dict[str, Any], ...] = ({}, {"write": "50 %"}, {"banks": 1}, {"row_hit": "60 %"}, {"chains": 2})
    return [
        {"access": {"device": device, "count": count, "bytes": "64 B", "pattern": pattern, **stride.get(pattern, {}), **more}}
        for pattern, more in product(PATTERNS, mixes)
        if not ("chains" in more and pattern != "dependent")
    ]


def _memory(**timings: Any) -> dict[str, Any]:
    return {"kind": "memory", "size": "16 GB", "dram": {**DDR4, "channels": 2, **timings}, "lanes": 16, "latency": "100 ns"}


EXAMPLES: Final = (
    Example(
        "memory",
        machine(between("cpu", "dram", "pcie", gen=4, lanes=16), cpu=CPU, dram=_memory()),
        in_turn(*_accesses("dram", 1e5), {"copy": {"from": "cpu", "to": "dram", "bytes": "1 MB", "writes": "x"}}),
        tried={"memory.size": ("100 kB",)},
        refused={"memory.lanes": (8, "lanes")},
    ),
    Example(
        "memory of a bandwidth",
        machine(between("cpu", "dram"), cpu=CPU, dram={"kind": "memory", "dram": DDR4, "channels": 4}),
        in_turn({"copy": {"from": "cpu", "to": "dram", "bytes": "1 MB"}}, *_accesses("dram", 1e4)[:4]),
    ),
    *(
        Example(f"memory by requests, {number}", machine(dram=_memory()), in_turn(op), requests=("dram",))
        for number, op in enumerate(_accesses("dram", 300))
    ),
    Example(
        "memory by request and by formula",
        machine(dram={"kind": "memory", "bandwidth": "10 GB/s", "dram": DDR4, "fidelity": "requests"}),
        in_turn(
            {"access": {"device": "dram", "count": 100, "bytes": "64 B", "pattern": "random"}},
            {"access": {"device": "dram", "count": 100}},
        ),
    ),
    Example(
        "memory at any load",
        machine(dram=_memory()),
        in_turn({"access": {"device": "dram", "count": 100, "bytes": "64 B", "pattern": "random"}}),
        requests=("dram",),
        latency=True,
    ),
    Example(
        "cpu of dram",
        machine(cpu={**CPU, "memory": {"size": "16 GB", "dram": DDR4}}),
        in_turn({"access": {"device": "cpu", "count": 1e4, "pattern": "dependent"}}, {"access": {"device": "cpu", "count": 1e4}}),
    ),
    Example(
        "cpu of a memory of the library",
        machine(cpu={**CPU, "memory": {"use": "ddr4-3200", "channels": 2}}),
        in_turn({"elementwise": {"device": "cpu", "count": 1e6}}),
        tried={"cpu.memory.use": ("ddr5-4800", "ddr4-2400")},
    ),
    Example(
        "gpu of a memory of the library",
        machine(gpu={**PLAIN_GPU, "memory": {"use": "ddr4-3200", "channels": 2}}),
        in_turn({"elementwise": {"device": "gpu", "count": 1e6}}),
        tried={"gpu.memory.use": ("ddr5-4800", "ddr4-2400")},
    ),
)
