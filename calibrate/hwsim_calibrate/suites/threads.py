"""Several threads at once: the gain of further cores for products, copies and arithmetic, and the interpreter's lock.

By the wall clock. `shared` says that the threads were not all running all the time, by their CPU time: other programs had a
core, and the scaling seen is not the machine's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Final

import numpy as np

from hwsim_calibrate import blas
from hwsim_calibrate.case import CannotMeasure, Case, Timer
from hwsim_calibrate.clocks import Call, Sample
from hwsim_calibrate.store import Amounts, Param
from hwsim_calibrate.suites import MiB, Scope, usable_cpus
from hwsim_calibrate.suites.arrays import blank, numbers

PRODUCTS: Final = (256, 512, 1024)
_COUNT: Final = 20_000  # of a loop of Python


def cases(scope: Scope) -> Iterator[Case]:
    """All cases."""
    most = scope.threads or usable_cpus()
    counts = sorted({1, *(1 << power for power in range(1, 12) if 1 << power <= most), most})
    for count in counts:
        for dtype in ("fp32", "fp64"):
            for side in PRODUCTS:
                yield _product(side, dtype, count)
        for op, size, make, work in (
            ("copyto", 16 * MiB, _copies, Amounts(0, 8 * MiB, 8 * MiB)),
            ("exp", MiB, _exponentials, Amounts(MiB // 16, MiB // 2, MiB // 2)),
            ("python", 0, _counting, Amounts(_COUNT, 0, 0)),
        ):
            yield _parallel(op, size, make, work, count)
    yield Case("threads", "pool", {"threads": 2}, Amounts(), _nothing, "wall", seconds=5e-3)


def _product(side: int, dtype: str, count: int) -> Case:
    size = float(side * side * (4 if dtype == "fp32" else 8))

    def make(stack: ExitStack) -> Call:
        if blas.loaded() is None:
            raise CannotMeasure(f"the threads of {blas.built_with()} cannot be set")
        stack.enter_context(blas.using(count))
        left, right, to = (numbers(dtype, side, side) for _ in range(3))
        return lambda: np.matmul(left, right, to)

    params: dict[str, Param] = {"shape": (side,) * 3, "dtype": dtype, "into": "out", "transposed": "none", "threads": count}
    work = Amounts(2.0 * side**3, 2 * size, size)
    return Case("threads", "matmul", params, work, make, "wall", seconds=10e-3, timer=_timer(count), busy=True)


def _parallel(op: str, size: int, prepare: Callable[[int], Call], work: Amounts, count: int) -> Case:
    """The same work in every thread on separate arrays; seconds until all are done."""

    def make(stack: ExitStack) -> Call:
        calls = [prepare(size) for _ in range(count)]
        if count == 1:
            return calls[0]
        pool = stack.enter_context(ThreadPoolExecutor(count))
        return lambda: [*pool.map(lambda call: call(), calls)]

    work = Amounts(work.flop * count, work.reads * count, work.writes * count, count)
    params: dict[str, Param] = {"bytes": size, "threads": count}
    busy = op != "python" or count == 1
    return Case("threads", op, params, work, make, "wall", seconds=5e-3, timer=_timer(count), busy=busy)


def _timer(count: int) -> Timer:
    def sample(call: Call, loops: int) -> Sample:
        cpu, wall = time.process_time_ns(), time.perf_counter_ns()
        for _ in range(loops):
            call()
        wall, cpu = time.perf_counter_ns() - wall, time.process_time_ns() - cpu
        return Sample(wall / loops * 1e-9, cpu / loops / count * 1e-9)

    return sample


def _copies(size: int) -> Call:
    source, to = numbers("fp64", size // 16), blank("fp64", size // 16)
    return lambda: np.copyto(to, source)


def _exponentials(size: int) -> Call:
    source, to = numbers("fp64", size // 16), blank("fp64", size // 16)

    def call() -> None:
        for _ in range(4):
            np.exp(source, to)

    return call


def _counting(_: int) -> Call:
    def call() -> None:
        for _ in range(_COUNT):
            pass

    return call


def _nothing(stack: ExitStack) -> Call:
    pool = stack.enter_context(ThreadPoolExecutor(2))
    return lambda: pool.submit(int).result()
