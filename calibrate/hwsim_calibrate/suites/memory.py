"""Caches and memory: a few calls over working sets that grow beyond every cache.

`bytes` is the working set, the sum of all arrays. A read is `max`, whose arithmetic overlaps with the loads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from hwsim_calibrate.case import Case
from hwsim_calibrate.clocks import Call
from hwsim_calibrate.pointer_chase import compile_chase, random_chain
from hwsim_calibrate.store import Amounts, Param
from hwsim_calibrate.suites import MiB, Scope
from hwsim_calibrate.suites.arrays import blank, indices, numbers

KiB: Final = 1024
SETS: Final = tuple(
    size * KiB
    for size in (4, 8, 16, 24, 32, 48, 64, 128, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576,
                 32768, 49152, 65536, 98304, 131072, 262144)
)  # fmt: skip
GATHERED: Final = 65536  # indices
STEPS: Final = 20_000  # loads per pointer chase


def cases(scope: Scope) -> Iterator[Case]:
    """Yield the cases of this suite."""
    for size in SETS:
        if size > scope.memory:
            continue
        yield _case("copy", size, Amounts(0, size / 2, size / 2), _copy)
        yield _case("read", size, Amounts(size / 8, size, 0), _read)
        yield _case("write", size, Amounts(0, 0, size), _write)
        yield _case("gather", size, Amounts(0, GATHERED * 16, GATHERED * 8), _gather, "random")
    for size in SETS[1:]:
        if size <= scope.memory:
            yield _case("chase", size, Amounts(0, 8, 0), _chase, "dependent", STEPS)


def _case(op: str, size: int, work: Amounts, make: Callable[[int], Call], pattern: str = "sequential", loop: int = 1) -> Case:
    params: dict[str, Param] = {"bytes": size, "dtype": "fp64", "pattern": pattern}
    long = size >= 32 * MiB
    return Case("memory", op, params, work, lambda _: make(size), samples=3 if long else 5, seconds=2e-3, loop=loop)


def _copy(size: int) -> Call:
    source, to = numbers("fp64", size // 16), blank("fp64", size // 16)
    return lambda: np.copyto(to, source)


def _read(size: int) -> Call:
    source = numbers("fp64", size // 8)
    return lambda: np.maximum.reduce(source)


def _write(size: int) -> Call:
    to = blank("fp64", size // 8)
    return lambda: to.fill(1.0)


def _gather(size: int) -> Call:
    table, index, to = numbers("fp64", size // 8), indices(GATHERED, size // 8), blank("fp64", GATHERED)
    return lambda: np.take(table, index, out=to, mode="clip")


def _chase(size: int) -> Call:
    chase = compile_chase()
    table, index = random_chain(size), 0

    def call() -> None:
        nonlocal index  # continues where the last call ended, because the first lines of the chain are in the caches
        index = chase(table, STEPS, index)

    return call
