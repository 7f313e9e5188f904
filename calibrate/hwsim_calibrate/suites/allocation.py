"""Fresh memory: the cost of allocating an array and touching its pages for the first time.

The kernel provides a page when it is first touched. The allocator reuses memory that the program has freed, so most fresh arrays
cause no page faults. Large arrays are mapped and unmapped each time. The threshold depends on earlier frees: glibc raises it up
to 32 MiB. Therefore `session` frees a large array before measuring, and `mapped` calls mmap directly.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import numpy as np

from hwsim_calibrate.case import CannotMeasure, Case, Make
from hwsim_calibrate.clocks import Call
from hwsim_calibrate.store import Amounts, Param
from hwsim_calibrate.suites import MiB, Scope

TOUCHED: Final = (4096, 65536, MiB, 8 * MiB, 24 * MiB, 31 * MiB, 33 * MiB, 48 * MiB, 96 * MiB)
MAPPED: Final = (65536, MiB, 16 * MiB, 64 * MiB)


def cases(scope: Scope) -> Iterator[Case]:
    """Yield the cases of this suite."""
    for size in TOUCHED:
        if size <= scope.memory:
            yield Case("allocation", "fill", {"bytes": size, "into": "new"}, Amounts(0, 0, size, 2), _touched(size))
    for size in MAPPED:
        params: dict[str, Param] = {"bytes": size, "pages": "small"}
        yield Case("allocation", "mapped", params, Amounts(0, 0, size), _mapped(size), samples=3)


def _touched(size: int) -> Make:
    return lambda _: lambda: np.empty(size, np.uint8).fill(1)


def _mapped(size: int) -> Make:
    """Map small pages, fill them once and unmap them."""

    def make(_: ExitStack) -> Call:
        if not hasattr(mmap, "MADV_NOHUGEPAGE"):
            raise CannotMeasure("the system does not support MADV_NOHUGEPAGE")

        def call() -> None:
            area = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            area.madvise(mmap.MADV_NOHUGEPAGE)
            array = np.frombuffer(area, np.uint8)
            array.fill(1)
            del array
            area.close()

        return call

    return make
