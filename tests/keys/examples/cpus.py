"""Keys of a CPU, and of the ops that only a CPU does."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from hwsim.version import __version__
from tests.keys.examples.writing import between, in_turn, machine
from tests.keys.feeling import Example

DDR4: Final[dict[str, Any]] = {
    "rate": "3200 MT/s", "width": 64, "access": "64 B", "banks": 16, "bank_groups": 4, "row": "8 KiB",
    "tRCD": "13.75 ns", "tCL": "13.75 ns", "tRP": "13.75 ns", "tRAS": "32.5 ns", "tRC": "46.25 ns", "tRTP": "7.5 ns",
    "tRRD_S": "2.5 ns", "tRRD_L": "5 ns", "tFAW": "21.25 ns", "tCCD_S": "2.5 ns", "tCCD_L": "5 ns", "tRFC": "360 ns",
    "tREFI": "7800 ns", "turnaround": "22.5 ns", "write_batch": 25, "queue": 32, "channels": 1, "pseudo_channels": 1,
    "row_commands": "1 ns", "open_cost": "1 ns", "controller": "20 ns", "load_slope": 0.53, "load_knee": 0.5,
}  # fmt: skip
SCORES: Final = Path(mkdtemp()) / "scores.yaml"
SCORES.write_text(f"hwsim: scores/1\nversion: {__version__}\n")
ROOFLINE: Final[dict[str, Any]] = {
    "kind": "cpu",
    "name": "a roofline",
    "cores": "$cores",
    "clock": "2 GHz",
    "flop": {"fp32": "500 GFLOP/s"},
    "per_cycle": {"fp64": 16.0},
    "efficiency": {"matmul": "80 %", "vector": "50 %"},
    "overhead": "1 us",
    "packing": 18.0,
    "random": "100e6 1/s",
    "core_bandwidth": "12 GB/s",
    "memory": {"bandwidth": "40 GB/s", "size": "16 GB", "latency": "90 ns"},
    "lanes": 16,
    "power": "150 W",
}
DETAILED: Final[dict[str, Any]] = {
    "kind": "cpu",
    "cores": 8,
    "clock": "2.5 GHz",
    "core_bandwidth": "12 GB/s",
    "core": {
        "ipc": 2.0,
        "mispredict": 16.0,
        "threads": 2,
        "smt": 1.3,
        "loads": 2.0,
        "rmw": 20.0,
        "store": 5.0,
        "isa": {
            "scalar": {"pipes": 2, "fma": True},
            "avx2": {
                "pipes": 2,
                "bits": 256,
                "fma": True,
                "formats": ["fp64", "fp32"],
                "clock": "2.5 GHz",
                "boost": [{"cores": 2, "clock": "3 GHz"}, {"cores": 4, "clock": "2.8 GHz"}],
            },
        },
    },
    "caches": {
        "line": "64 B",
        "overlap": False,
        "write_allocate": True,
        "in_flight": 10.0,
        "paired": 1.4,
        "levels": {
            "L1": {"size": "32 KiB", "cycles": 4.0, "per_cycle": 64.0, "write_cost": 1.5},
            "L2": {"size": "512 KiB", "latency": "5 ns", "bandwidth": "60 GB/s", "ways": 8},
            "L3": {
                "size": "16 MiB",
                "latency": "15 ns",
                "bandwidth": "30 GB/s",
                "together": "100 GB/s",
                "shared_by": 4,
                "full": 0.7,
                "none": 1.4,
                "victim": True,
            },
        },
        "tlbs": {"L1": {"entries": 64, "page": "4 KiB", "miss": "3 ns"}, "L2": {"entries": 1024, "miss": "5 ns", "walk": "2 ns"}},
    },
    "memory": {
        "size": "16 GB",
        "latency": "90 ns",
        "dram": {**DDR4, "channels": 2},
        "channels": 2,
        "max_channels": 4,
        "dimms": 4,
    },
    "dimm_slots": 4,
    "numa": {
        "domains": 2,
        "efficiency": "80 %",
        "knee": 3.5,
        "write_cost": 1.2,
        "core_write_cost": 1.3,
        "remote_latency": "60 ns",
        "remote_bandwidth": "15 GB/s",
    },
    "coherence": {
        "cluster": "20 ns",
        "cluster_cores": 4,
        "across": "80 ns",
        "sockets": "200 ns",
        "threads": "8 ns",
        "spread": 0.1,
    },
}
SETS: Final = ("8 KiB", "200 KiB", "3 MiB", "16 MiB", "25 MiB", "1 GiB")


def _accesses() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for pattern, over in product(("sequential", "random", "dependent"), SETS):
        found.append({"access": {"device": "cpu0", "count": 1e5, "bytes": "8 B", "pattern": pattern, "working_set": over}})
    one = {"device": "cpu0", "count": 1e5, "cores": 1}
    return [
        *found,
        {"access": {**one, "bytes": "64 B", "pattern": "sequential", "write": "100 %", "working_set": "8 KiB"}},
        {"access": {**one, "bytes": "64 B", "pattern": "sequential", "write": "100 %", "working_set": "200 KiB"}},
        {"access": {**one, "bytes": "64 B", "pattern": "sequential", "write": "50 %"}},
        {"access": {**one, "bytes": "8 B", "pattern": "strided", "stride": "256 B", "offset": "4 B", "working_set": "1 GiB"}},
        {"access": {**one, "bytes": "64 B", "pattern": "sequential", "offset": "32 B", "working_set": "8 KiB"}},
        {"access": {**one, "bytes": "64 B", "pattern": "sequential", "remote": "50 %", "working_set": "1 GiB"}},
        {"access": {**one, "pattern": "dependent", "remote": "50 %", "working_set": "1 GiB"}},
        {"access": {**one, "pattern": "dependent", "chains": 2, "working_set": "1 GiB"}},
        {"access": {"device": "cpu0", "count": 1e6, "bytes": "64 B", "pattern": "sequential", "remote": "100 %"}},
    ]


OPS: Final = in_turn(
    *_accesses(),
    {"compute": {"device": "cpu0", "flop": "1 GFLOP", "bytes": "1 MB", "isa": "avx2", "dtype": "fp32", "cores": 2}},
    {"compute": {"device": "cpu0", "flop": "1 GFLOP", "isa": "avx2", "dtype": "fp64", "cores": 3}},
    {"compute": {"device": "cpu0", "flop": "1 GFLOP", "isa": "avx2"}},
    {"compute": {"device": "cpu0", "flop": "1 GFLOP", "isa": "scalar", "mix": "vector"}},
    {"compute": {"device": "cpu0", "instructions": 1e8, "branches": 1e7, "mispredicted": "5 %", "threads": 2, "pieces": 2}},
    {"compute": {"device": "cpu0", "flop": "1 MFLOP", "bytes": "10 MB", "working_set": "4 MiB"}},
    {"compute": {"device": "cpu0", "flop": "1 MFLOP", "bytes": "100 MB", "remote": "50 %"}},
    {"compute": {"device": "cpu0", "flop": "1 MFLOP", "bytes": "100 MB", "cores": 4}},
    {"elementwise": {"device": "cpu0", "count": 1e6, "cores": 3}},
    {"elementwise": {"device": "cpu0", "count": 1e6, "working_set": "1 MiB", "cores": 1}},
    {"elementwise": {"device": "cpu0", "count": 1e7, "cores": 1}},
    {"increment": {"device": "cpu0", "times": 1e5, "cores": 4, "line": "shared", "atomic": True}},
    {"increment": {"device": "cpu0", "times": 1e5, "cores": 8, "line": "shared"}},
    {"increment": {"device": "cpu0", "times": 1e5, "cores": 2, "line": "own", "atomic": False}},
    {"increment": {"device": "cpu", "times": 1e5}},
)
BY_CYCLE: Final[dict[str, Any]] = {"core": {"isa": {"avx2": {"pipes": 2, "bits": 256}}, "streamed": 2.8, "stored": 3.1}}
EXAMPLES: Final = (
    Example(
        "cpu by the cycle",
        machine(cpu={**{key: value for key, value in ROOFLINE.items() if key != "core_bandwidth"}, "cores": 4, **BY_CYCLE}),
        in_turn(
            {"compute": {"device": "cpu", "flop": "1 MFLOP", "bytes": "100 MB", "cores": 1}},
            {"elementwise": {"device": "cpu", "count": 1e7, "cores": 1}},
        ),
    ),
    Example(
        "cpu roofline",
        machine(
            between("cpu", "gpu", "pcie", gen=3, lanes=16),
            cpu=ROOFLINE,
            gpu={
                "kind": "gpu",
                "flop": {"fp32": "15 TFLOP/s"},
                "memory": {"bandwidth": "900 GB/s"},
                "lanes": 16,
                "power": "250 W",
            },
            more={"scores": str(SCORES), "supply": "400 W", "name": "a workstation", "notes": "none", "let": {"cores": 8}},
        ),
        in_turn(
            {"matmul": {"device": "cpu", "m": 500, "n": 400, "k": 300, "batch": 2}},
            {"matmul": {"device": "cpu", "m": 500, "n": 400, "k": 300, "dtype": "fp64"}},
            {"elementwise": {"device": "cpu", "shape": [1000, 100], "inputs": 2, "flop_each": 50.0, "result": "fp64"}},
            {"reduce": {"device": "cpu", "count": 1e6, "cores": 2}},
            {"random": {"device": "cpu", "count": 1e5}},
            {"compute": {"device": "cpu", "bytes": "40 MB", "cores": 2}},
            {"compute": {"device": "cpu", "flop": "$flop", "mix": "vector"}},
            {"copy": {"from": "cpu", "to": "gpu", "bytes": "1 MB", "memory": "pageable", "name": "up", "writes": "x"}},
            {"elementwise": {"device": "cpu", "count": 1e6, "writes": "y"}},
            {"busy": {"device": "cpu", "time": "2 ms", "times": 3, "workers": 2}},
            let={"flop": "1 GFLOP"},
        ),
        refused={"cpu.lanes": (8, "lanes"), "gpu.lanes": (8, "lanes"), "workload.hwsim": ("workload/2", "workload/2")},
    ),
    Example(
        "cpu in detail",
        machine(between("cpu0", "cpu1"), cpu={**DETAILED, "count": 2}),
        OPS,
        refused={
            "cpu.core.isa.*.formats": (["fp64"], "no peak"),
            "cpu.dimm_slots": (2, "slots"),
            "cpu.memory.max_channels": (1, "channels"),
            "cpu.memory.dimms": (1, "DIMM"),
        },
    ),
)
