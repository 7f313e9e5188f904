"""Measurements made up from known numbers: what a machine with these kernels would have told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hwsim.devices.kernels import Function, Kernels, ProductTime, Tier
from hwsim_calibrate.calls import call_from
from hwsim_calibrate.store import Amounts, Clock, Measurements, Param, Row

TRUTH = Kernels(
    library="made up",
    sharpness=4.0,
    into={"out": 50e-9, "self": 150e-9},
    pages=20e9,
    lookup=0.4e-9,
    levels={
        "L2": Tier(beyond=48e3, read=300e9, write=150e9, update=200e9, lookup=0.5e-9),
        "L3": Tier(beyond=1.2e6, read=100e9, write=60e9, update=80e9, lookup=2e-9),
        "memory": Tier(beyond=30e6, read=22e9, write=14e9, update=25e9, lookup=6e-9),
    },
    functions={
        "add": Function(call=400e-9, each={"fp32": 0.05e-9, "fp64": 0.1e-9}),
        "multiply": Function(call=450e-9, each={"fp32": 0.04e-9, "fp64": 0.09e-9}),
        "exp": Function(call=350e-9, each={"fp32": 0.3e-9, "fp64": 0.6e-9}),
        "sum": Function(call=2e-6, each={"fp32": 0.11e-9, "fp64": 0.12e-9}),
        "take": Function(call=900e-9, each={"fp32": 0.3e-9, "fp64": 0.3e-9}),
        "copyto": Function(call=480e-9, each={"fp32": 0.03e-9, "fp64": 0.06e-9}),
        "normal": Function(call=800e-9, each={"fp64": 20e-9}),
    },
    products={
        "fp32": ProductTime(flop=120e9, call=1e-6, left=0.1e-9, right=0.1e-9, result=0.1e-9),
        "fp64": ProductTime(flop=60e9, call=1e-6, left=0.2e-9, right=0.2e-9, result=0.2e-9),
    },
)
SIZES = tuple(int(2.0 ** (power / 2)) for power in range(4, 48))


def params() -> Iterator[tuple[str, dict[str, Param]]]:
    """Which calls are timed."""
    for dtype in ("fp32", "fp64"):
        for n in SIZES:
            yield "add", {"n": n, "dtype": dtype, "into": "out", "other": "array"}
        for n in SIZES[::2]:
            yield "add", {"n": n, "dtype": dtype, "into": "new", "other": "array"}
            yield "multiply", {"n": n, "dtype": dtype, "into": "out", "other": "array"}
            yield "copyto", {"n": n, "dtype": dtype}
            yield "exp", {"n": n, "dtype": dtype, "into": "out"}
            yield "sum", {"n": n, "dtype": dtype, "axis": "none"}
            yield "take", {"n": n, "dtype": dtype, "index": 65536}
        for side in (2, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 1024):
            yield "matmul", {"shape": (side, side, side), "dtype": dtype, "into": "out"}
            yield "matmul", {"shape": (side, 16, 4 * side), "dtype": dtype, "into": "out"}
    for n in SIZES[::4]:
        yield "normal", {"n": n, "dtype": "fp64"}


def made_up(*, noise: float = 0.02, rounds: int = 5, spoilt: float = 0.0, seed: int = 0, truth: Kernels = TRUTH) -> Measurements:
    """Rows with noise that only ever adds time; of `spoilt` of them every round takes two to five times as long."""
    draw = np.random.default_rng(seed)
    rows = []
    for op, said in params():
        call = call_from(op, said)
        assert call is not None
        base = truth.time(replace(call, form="")).seconds * (draw.uniform(2.0, 5.0) if draw.random() < spoilt else 1.0)
        seconds = tuple(
            (base * np.exp(noise * np.abs(draw.standard_normal(rounds)) + 0.5 * noise * draw.standard_normal())).tolist()
        )
        case = " ".join([op, *(f"{key}={value}" for key, value in said.items())])
        rows.append(Row("kernels", case, op, said, Amounts(), seconds))
    cpu = {
        "model": "made up",
        "usable": 2,
        "caches": {"L1d": {"bytes": 48000}, "L2": {"bytes": 1000000}, "L3": {"bytes": 33000000}},
    }
    return Measurements({"cpu": cpu, "software": {"numpy": "2"}, "date": "2026-01-01"}, tuple(rows))


def made_up_gpu(*, noise: float = 0.01, seed: int = 0) -> tuple[Row, ...]:
    """A GPU of 3 TB/s behind 50 MB of L2 at 6 TB/s; PCIe at 50 GB/s, pageable at 12 GB/s; 800 TFLOP/s in bf16."""
    draw = np.random.default_rng(seed)

    def row(op: str, said: dict[str, Param], work: Amounts, seconds: float, clock: Clock = "device") -> Row:
        late = np.exp(noise * np.abs(draw.standard_normal(4)))
        case = " ".join([op, *(f"{key}={value}" for key, value in said.items())])
        return Row("gpu", case, op, said, work, tuple((seconds * late).tolist()), clock)

    rows = [
        row("launch", {"measured": "device"}, Amounts(), 1.5e-6),
        row("launch", {"measured": "wait"}, Amounts(), 6e-6, "wall"),
        row("graph", {"n": 20}, Amounts(calls=20), 20e-6),
    ]
    for power in range(12, 32):
        size = 2**power
        for op, arrays in (("copy", 2), ("triad", 3), ("read", 1)):
            whole = arrays * size
            beyond = 1 / (1 + (50e6 / whole) ** 4)
            seconds = 2e-6 + whole * ((1 - beyond) / 6e12 + beyond / (3e12 if op == "read" else 2.8e12))
            rows.append(row(op, {"bytes": size, "dtype": "fp32"}, Amounts(0, whole, 0), seconds))
    for power in range(2, 29):
        for way, start in (("h2d", 8e-6), ("d2h", 6e-6)):
            for pinned in (True, False):
                seconds = start + 2**power / (50e9 if pinned else 12e9)
                rows.append(row(way, {"bytes": 2**power, "pinned": pinned}, Amounts(0, 2**power, 0), seconds))
    for side in (256, 1024, 4096, 8192):
        flop = 2.0 * side**3
        rows.append(row("matmul", {"shape": (side, side, side), "dtype": "bf16"}, Amounts(flop), 5e-6 + flop / 800e12))
    return tuple(rows)
