"""Measurements made up from known numbers: what a machine with these kernels would have told."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from hwsim.devices import Gpu
from hwsim.devices.kernels import CacheTier, Function, MatmulTime, MeasuredFunctions
from hwsim_calibrate.calls import call_from
from hwsim_calibrate.case import Timer
from hwsim_calibrate.clocks import Call, Sample
from hwsim_calibrate.fit.gpu_rows import machine_of, seconds_of
from hwsim_calibrate.store import Amounts, Measurements, Param, Row
from hwsim_calibrate.suites.arrays import DTYPES
from hwsim_calibrate.suites.gpu import Bench, cases_of

TRUTH = MeasuredFunctions(
    library="made up",
    sharpness=4.0,
    into={"out": 50e-9, "self": 150e-9},
    pages=20e9,
    lookup=0.4e-9,
    levels={
        "L2": CacheTier(beyond=48e3, read=300e9, write=150e9, update=200e9, lookup=0.5e-9),
        "L3": CacheTier(beyond=1.2e6, read=100e9, write=60e9, update=80e9, lookup=2e-9),
        "memory": CacheTier(beyond=30e6, read=22e9, write=14e9, update=25e9, lookup=6e-9),
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
        "fp32": MatmulTime(flop=120e9, call=1e-6, left=0.1e-9, right=0.1e-9, result=0.1e-9),
        "fp64": MatmulTime(flop=60e9, call=1e-6, left=0.2e-9, right=0.2e-9, result=0.2e-9),
    },
)
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


def made_up(
    *, noise: float = 0.02, rounds: int = 5, spoilt: float = 0.0, seed: int = 0, truth: MeasuredFunctions = TRUTH
) -> Measurements:
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


class HostStream:
    """A list of calls in order; each is done at once."""

    def __enter__(self) -> HostStream:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def synchronize(self) -> None:
        """Wait for all calls."""


class StandIn:
    """A GPU as the suite times it, on numpy: its times mean nothing."""

    products: tuple[str, ...] = ("fp64", "fp32")
    dtypes: tuple[str, ...] = ("fp32", "fp64")
    vectors: tuple[str, ...] = ("fp32", "fp64", "int32")

    def free(self) -> int:
        return 64 << 20

    def tidy(self) -> None:
        """Give memory back that no array uses."""

    def synchronize(self) -> None:
        """Wait for everything."""

    def stream(self) -> Any:
        return HostStream()

    def timer(self, stream: Any) -> Timer:
        """The time of calls on a stream, by the device's clock."""

        def sample(call: Call, loops: int) -> Sample:
            began = time.perf_counter()
            with stream:
                for _ in range(loops):
                    call()
            seconds = (time.perf_counter() - began) / loops
            return Sample(seconds, seconds, device=seconds)

        return sample

    def array(self, dtype: str, *shape: int) -> Any:
        return np.ones(shape, DTYPES[dtype])

    def host(self, size: int, *, pinned: bool) -> Any:
        return np.ones(size, np.uint8)

    def copy(self, to: Any, source: Any, stream: Any) -> None:
        np.copyto(to, source)

    def kernel(self) -> Call:
        return lambda: None

    def graph(self, call: Call, times: int) -> Call:
        return lambda: [call() for _ in range(times)]

    def moving(self, op: str) -> Callable[[Any, Any, Any], object]:
        functions: dict[str, Callable[[Any, Any, Any], object]] = {
            "copy": lambda _, source, to: np.copyto(to, source),
            "triad": lambda one, two, to: np.add(one, two, out=to),
            "read": lambda one, _, __: one.sum(),
            "write": lambda _, __, to: to.fill(3),
        }
        return functions[op]

    def arithmetic(self, dtype: str) -> tuple[Call, float]:
        array = np.ones(1024, DTYPES[dtype])
        return (lambda: array * array + array), 2.0 * array.size

    def product(self, kind: str, m: int, k: int, n: int, *, stored: bool = False) -> Call:
        left, right, to = self.array(kind, m, k), self.array(kind, n, k).T, self.array(kind, m, n)
        if not stored:
            right = self.array(kind, k, n)
        return lambda: np.matmul(left, right, out=to)


class Imagined(StandIn):
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


def bench_of(device: Any) -> Bench:
    """A stand-in in the place of a GPU."""
    return Bench(device, device.stream())


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
    for case in cases_of(bench_of(device)):
        row = Row("gpu", case.name, case.op, case.params, case.work, (1.0,), case.clock)
        seconds = seconds_of(machine, row)
        if case.op == "duplex":
            seconds = case.work.reads / (1.6 * next(iter(machine.links)).bandwidth)
        factor = float(np.exp(noise * draw.standard_normal()))
        rows.append(replace(row, seconds=((seconds or 1e-6) * factor,)))
    properties = {"name": part, "multiprocessors": gpu.sms, "memory": int(gpu.memory.size or 0), "pcie": [gen, 16]}
    return Measurements({"gpu": properties | ({"l2": int(gpu.l2.size)} if gpu.l2 else {})}, tuple(rows))
