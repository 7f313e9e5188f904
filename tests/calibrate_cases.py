"""Measurements made up from known numbers: what a machine with these kernels would have told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final

import numpy as np

from hwsim.devices import Gpu
from hwsim.devices.kernels import Function, Kernels, ProductTime, Tier
from hwsim_calibrate.calls import call_from
from hwsim_calibrate.case import Timer
from hwsim_calibrate.clocks import Call, Sample
from hwsim_calibrate.device import Device
from hwsim_calibrate.fit.gpu_rows import machine_of, seconds_of
from hwsim_calibrate.store import Amounts, Measurements, Param, Row
from hwsim_calibrate.suites import Scope
from hwsim_calibrate.suites.arrays import DTYPES
from hwsim_calibrate.suites.gpu import Bench, cases_of

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
CLOCK: Final = 1.6e9  # Hz
COPIES: Final = {
    "setup": "1.45 us", "fetch": "600 ns", "fill": "8 kB", "waited": "12 us", "pageable": "9 GB/s", "local_setup": "4.8 us",
    "local": "77 %",
}  # fmt: skip
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


class Imagined(Device):
    """A device that is never asked for a time: only its cases count."""

    def __init__(self, products: tuple[str, ...]) -> None:
        self.products = products

    def free(self) -> int:
        return 1 << 36

    def array(self, dtype: str, *shape: int) -> Any:
        return np.broadcast_to(np.ones((), DTYPES[dtype]), shape)

    def host(self, size: int, *, pinned: bool) -> Any:
        return self.array("int8", size)

    def arithmetic(self, dtype: str) -> tuple[Call, float]:
        return (lambda: None), {"fp32": 1e12, "fp64": 1e11}.get(dtype, 1e12)

    def timer(self, stream: Any) -> Timer:
        def sample(_: Call, loops: int) -> Sample:
            return Sample(1e-3 / loops, 1e-3 / loops, device=1e-3 / loops)

        return sample


def made_up_gpu(
    part: str = "h100-sxm", *, products: tuple[str, ...] = ("fp32", "fp16"), gen: int = 5, noise: float = 0.02, seed: int = 0
) -> Measurements:
    """The rows of the suite, as the models predict them for a part of the library, with noise."""
    device = Imagined(products)
    link = {
        "name": "pcie", "between": ["cpu", "gpu"], "kind": "pcie", "gen": gen, "lanes": 16, "efficiency": "85 %",
        "fetches": "96 %", "two_way": 1.6,
    }  # fmt: skip
    machine, draw = machine_of({"kind": "gpu", "use": part, "copies": COPIES}, link), np.random.default_rng(seed)
    gpu = machine.devices["gpu"].model
    assert isinstance(gpu, Gpu)
    rows = []
    with ExitStack() as session:
        for case in cases_of(Bench(device, None), Scope(session)):
            row = Row("gpu", case.name, case.op, case.params, case.work, (1.0,), case.clock)
            seconds = seconds_of(machine, row)
            if case.op == "clock":
                seconds = case.work.flop / CLOCK
            elif case.op == "duplex":
                seconds = case.work.reads / (1.6 * machine.links[0].bandwidth)
            factor = float(np.exp(noise * draw.standard_normal()))
            rows.append(replace(row, seconds=((seconds or 1e-6) * factor,)))
    properties = {"name": part, "multiprocessors": gpu.sms, "memory": int(gpu.memory.size or 0), "pcie": [gen, 16]}
    return Measurements({"gpu": properties | ({"l2": int(gpu.l2.size)} if gpu.l2 else {})}, tuple(rows))
