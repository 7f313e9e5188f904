"""Keys of a GPU, and of the ops that it does."""

from __future__ import annotations

from itertools import product
from typing import Any, Final

from tests.keys.examples.cpus import DDR4
from tests.keys.examples.writing import CPU, PLAIN_GPU, between, in_turn, machine, program
from tests.keys.feeling import Example

TILES: Final[dict[str, Any]] = {
    "efficiency": "90 %", "smallest": 32, "largest": 16384, "edge": 6.0, "prologue": 30.0, "splits": 4, "adding": "2 us",
    "lost": "80 %", "loads": "40 GB/s", "transposed": "70 %", "start": "1 us", "rows": 64, "memory": "80 %",
    "cast": {"start": "3 us", "row": "1 ns", "rate": "10 GB/s"},
    "alignment": {"least": "16 B", "best": "128 B", "between": "75 %", "below": "40 %"},
}  # fmt: skip
GPU: Final[dict[str, Any]] = {
    "kind": "gpu",
    "flop": {"fp32": "19 TFLOP/s", "fp16": "300 TFLOP/s", "int4": "1000 TFLOP/s"},
    "vector": {"fp16": "70 TFLOP/s"},
    "efficiency": {"matmul": "90 %", "vector": "80 %"},
    "sms": 100,
    "clock": "1.4 GHz",
    "attention": "60 %",
    "random": "10e9 1/s",
    "memory": {"bandwidth": "1500 GB/s", "size": "40 GB", "latency": "300 ns"},
    "sustained": {"read": "85 %", "copy": "80 %", "write": "90 %"},
    "l1": {
        "size": "192 KiB", "bandwidth": "170 GB/s", "latency": "25 ns",
        "ramp": {"full": 0.9, "none": 1.5}, "chase": {"full": 0.75, "none": 1.1},
    },
    "l2": {
        "size": "40 MiB", "bandwidth": "5 TB/s", "sustained": {"read": "95 %", "copy": "70 %", "write": "90 %"},
        "ramp": {"full": 0.6, "none": 1.4}, "latency": "150 ns", "chase": {"full": 0.9, "none": 1.5}, "near": "20 MiB",
        "near_chase": {"full": 0.9, "none": 1.4}, "far": "300 ns", "miss": "400 ns",
        "together": {"near": "4.5 TB/s", "far": "2.5 TB/s", "ramp": {"full": 0.7, "none": 1.4}},
    },
    "occupancy": {"read": "276 ns", "write": "50 ns", "start": "80 ns", "sharpness": 3.0, "threads": 2048,
        "blocks": "1.3e9 1/s"},
    "launch": {"stream": "2.6 us", "graph": "1.3 us", "host": "12 us"},
    "copies": {
        "setup": "1.4 us", "fetch": "600 ns", "waited": "27 us", "fill": "8 kB", "local_setup": "4.8 us", "local": "70 %",
        "pageable": "6 GB/s", "kernel_host": "5 GB/s", "kernel_peer": "8 GB/s", "loads": "1 GB/s",
        "store_setup": "2 us", "stores": "3 GB/s",
    },
    "matmul": {"fp16": TILES, "fp16-block": {"efficiency": "70 %"}, "fp16-vllm": {"efficiency": "60 %"}},
    "nvlinks": 12,
    "pcie": 2,
    "lanes": 16,
    "power": "400 W",
    "forwards": False,
}  # fmt: skip


def _products() -> list[dict[str, Any]]:
    shapes = ((4096, 4096, 4096), (8, 4096, 4096), (17, 333, 129), (256, 256, 8192), (4096, 4096, 64), (1000, 1016, 1016))
    found: list[dict[str, Any]] = [{"matmul": {"device": "gpu0", "dtype": "fp16", "m": m, "n": n, "k": k}} for m, n, k in shapes]
    small = {"m": 16, "n": 4096, "k": 1024, "batch": 2}
    return [
        *found,
        {"matmul": {"device": "gpu0", "dtype": "fp16", **small, "transposed": True}},
        {"matmul": {"device": "gpu0", "dtype": "fp16", **small, "cast": False}},
        {"matmul": {"device": "gpu0", "dtype": "fp16", **small, "cast": True}},
        {"matmul": {"device": "gpu0", "dtype": "fp16", **small, "weights": "int4"}},
        {"matmul": {"device": "gpu0", "dtype": "fp16", **small, "scales": "block"}},
        {"matmul": {"device": "gpu0", "dtype": "fp16", **small, "software": "vllm"}},
        {"matmul": {"device": "gpu0", "dtype": "fp32", **small}},
        {"matmul": {"device": "gpu0", "dtype": "int4", "m": 4096, "n": 4096, "k": 4096}},
    ]


def _accesses() -> list[dict[str, Any]]:
    sets = ("64 KiB", "190 KiB", "4 MiB", "19 MiB", "35 MiB", "45 MiB", "1 GiB")
    return [
        {"access": {"device": "gpu0", "count": 1e5, "bytes": "4 B", "pattern": pattern, "working_set": over}}
        for pattern, over in product(("random", "dependent"), sets)
    ]


OPS: Final = in_turn(
    *_products(),
    *_accesses(),
    *(
        {"elementwise": {"device": "gpu0", "count": 1e7, "inputs": inputs, "working_set": over}}
        for inputs, over in product((0, 1, 2), ("10 MB", "40 MB", "1 GB"))
    ),
    {"elementwise": {"device": "gpu0", "count": 1e7, "dtype": "fp16", "flop_each": 100.0}},
    {"reduce": {"device": "gpu0", "count": 1e7, "writes": {"z": "1 GB"}}},
    {"softmax": {"device": "gpu0", "shape": [1000, 1000], "passes": 2, "results": 2, "kernels": 3}},
    {"layernorm": {"device": "gpu0", "shape": [1000, 1000], "passes": 2, "kernels": 2}},
    {"random": {"device": "gpu0", "count": 1e7}},
    {"compute": {"device": "gpu0", "flop": "1 TFLOP", "dtype": "fp16", "bytes": "1 MB"}},
    {"copy": {"from": "gpu0", "to": "gpu0", "bytes": "100 MB"}},
    {"copy": {"from": "cpu", "to": "gpu0", "bytes": "100 kB"}},
    {"copy": {"from": "gpu0", "to": "cpu", "bytes": "100 kB", "block": True}},
    {"copy": {"from": "cpu", "to": "gpu0", "bytes": "10 MB", "memory": "pageable"}},
    {"copy": {"from": "cpu", "to": "gpu0", "bytes": "1 kB", "by": "cpu"}},
    {"copy": {"from": "cpu", "to": "gpu0", "bytes": "10 MB", "by": "cpu"}},
    {"copy": {"from": "gpu0", "to": "cpu", "bytes": "10 MB", "by": "cpu"}},
    {"copy": {"from": "cpu", "to": "gpu0", "bytes": "10 MB", "by": "sm"}},
    {"copy": {"from": "gpu0", "to": "gpu1", "bytes": "10 MB", "by": "sm"}},
    {"copy": {"from": "gpu1", "to": "gpu2", "bytes": "10 MB"}},
    {"busy": {"device": "gpu0", "time": "1 ms"}},
)
LINKS: Final = (
    between("cpu", "gpu0", "pcie", gen=3, lanes=16, fetches="90 %"),
    between("gpu0", "gpu1", "nvlink", gen=2, links=2),
    between("gpu0", "gpu2", "nvlink", gen=2, links=2),
    between("cpu", "gpu1", "pcie", gen=3, lanes=8),
    between("cpu", "gpu2", "pcie", gen=3, lanes=4),
)
GRAPHS: Final[dict[str, Any]] = {**PLAIN_GPU, "count": 1, "launch": GPU["launch"]}
STARTS: Final = program(
    {"call": {"do": [{"elementwise": {"device": "gpu0", "count": 1e4, "updates": "x"}}] * 3}},
    {"wait": "all"},
    runtime={"call": "10 us", "starts": "graph"},
)
BLOCKS: Final[dict[str, Any]] = {
    "rows": 64, "computes": "fp16", "packed": True, "share": {"64": "50 %"}, "efficiency": "70 %", "exponentials": 0.9,
    "prologue": 200.0, "lost": 1.0, "alone": 0.9, "queries": 0.6, "keys": 0.8, "passing": "30 GB/s", "start": "12 us",
    "kernel": "5 us",
}  # fmt: skip
STRIPS: Final[dict[str, Any]] = {
    "heads": 16, "widest": 24, "lone": False, "filled": 2.0, "reading": "80 %", "cached": "100 GB/s", "queries": 3.0,
    "computes": "fp32", "rate": "20 GB/s",
    "share": "10 %", "each": "2 us", "joining": "2 us", "start": "10 us",
}  # fmt: skip
GROUPED: Final[dict[str, Any]] = {
    "efficiency": "60 %", "reading": "70 %", "edge": 20.0, "prologue": 200.0, "lost": 1.0, "passing": "10 GB/s",
    "tokens": "5 GB/s", "rate": "40 GB/s", "start": "20 us",
}  # fmt: skip
HEADS: Final[dict[str, Any]] = {"device": "gpu0", "dtype": "fp16", "heads": 32, "kv_heads": 4, "head": 64}
EXPERTS: Final[dict[str, Any]] = {"device": "gpu0", "hidden": 1024, "inner": 512, "experts": 16, "weights": "bf16"}


def _attended() -> list[dict[str, Any]]:
    prefill = {"kernel": "flash", "causal": True, "stored": True}
    return [
        *({"attention": {**HEADS, **prefill, "batch": 2, "tokens": tokens}} for tokens in (200, 4096)),
        {"attention": {**HEADS, **prefill, "batch": 3, "tokens": 5000, "head": 96, "cached": 1000, "window": 2000}},
        {"attention": {**HEADS, **prefill, "tokens": 300, "stored": False}},
        {"attention": {**HEADS, **prefill, "tokens": 3000, "kernel": "tensorrt"}},
        *({"attention": {**HEADS, "batch": batch, "cached": 3000}} for batch in (1, 8, 200)),
        {"attention": {**HEADS, "batch": 64, "cached": 300, "kv_heads": 1, "cache": "fp8"}},
        *({"attention": {**HEADS, "batch": 2, "cached": 9000, "kv_heads": many}} for many in (2, 32)),
        {"attention": {**HEADS, **prefill, "cached": 3000}},
    ]


KERNELS: Final = in_turn(
    *_attended(),
    *(
        {"moe": {**EXPERTS, "tokens": tokens, "top_k": 2, "gated": True, "skew": 0.5, "kernel": "flash"}}
        for tokens in (4, 300, 20_000)
    ),
    {"moe": {**EXPERTS, "tokens": 4, "top_k": 2, "kernel": "tensorrt"}},
)
EXAMPLES: Final = (
    Example(
        "gpu",
        machine(*LINKS, cpu=CPU, gpu={**GPU, "count": 3}),
        OPS,
        refused={"gpu.lanes": (8, "lanes"), "gpu.nvlinks": (2, "nvlinks")},
    ),
    Example(
        "gpu of dram",
        machine(
            gpu={**GPU, "count": 1, "memory": {"dram": {**DDR4, "channels": 32}, "channels": 32, "max_channels": 32, "dimms": 32}}
        ),
        in_turn(
            {"access": {"device": "gpu", "count": 1e6, "pattern": "random", "bytes": "64 B"}},
            {"elementwise": {"device": "gpu", "count": 1e8}},
        ),
        refused={"gpu.memory.max_channels": (16, "channels"), "gpu.memory.dimms": (16, "DIMM")},
    ),
    Example(
        "gpu of a datasheet",
        {
            "hwsim": "machine/1",
            "parts": {
                "cpu": {**CPU, "class": "ideal"},
                "gpu": {
                    "kind": "gpu",
                    "vendor": "nvidia",
                    "generation": "hopper",
                    "sms": 132,
                    "clock": "1.98 GHz",
                    "flop": {"fp32": "67 TFLOP/s", "fp16": "989 TFLOP/s"},
                    "memory": {"size": "80 GB", "bandwidth": "3.35 TB/s"},
                },
            },
            "links": [{**between("cpu", "gpu", "pcie", gen=5, lanes=16), "class": "ideal"}],
        },
        in_turn(
            {"access": {"device": "gpu", "count": 1e4, "pattern": "dependent", "bytes": "64 B", "working_set": "1 GB"}},
            {"copy": {"from": "cpu", "to": "gpu", "bytes": "1 MB"}},
            {"compute": {"device": "cpu", "flop": "1 GFLOP"}},
        ),
    ),
    Example(
        "gpu with kernels of attention and experts",
        machine(
            gpu={
                **GPU,
                "count": 2,
                "flop": {**GPU["flop"], "bf16": "300 TFLOP/s"},
                "attention": {"prefill": {"flash": BLOCKS, "tensorrt": {"efficiency": "60 %"}}, "decode": {"flash": STRIPS}},
                "experts": {"flash bf16": GROUPED, "tensorrt bf16": {"efficiency": "50 %", "padded": 128}},
            }
        ),
        KERNELS,
        tried={
            "op attention.kernel": ("tensorrt",),
            "op moe.kernel": ("tensorrt",),
            "gpu.attention.prefill.*.computes": ("fp32",),
        },
    ),
    Example("gpu in a graph", machine(cpu=CPU, gpu=GRAPHS), STARTS),
    Example(
        "gpu that the host waits for", machine(cpu=CPU, gpu=GRAPHS), {**STARTS, "runtime": {"call": "10 us", "starts": "host"}}
    ),
)
