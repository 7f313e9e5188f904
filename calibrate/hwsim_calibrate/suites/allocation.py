"""Fresh memory: the cost of an array before anything is in it.

A page of memory is made when it is first touched. An allocator keeps memory that a program frees, so most fresh arrays are old
pages; large ones come from the system each time, page by page. The border depends on what the process freed before (glibc moves
it up to 32 MiB). Therefore `session` frees a large array before anything is measured, and `mapped` goes to the system itself.
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
    """All cases."""
    for size in TOUCHED:
        if size <= scope.memory:
            yield Case("allocation", "fill", {"bytes": size, "into": "new"}, Amounts(0, 0, size, 2), _touched(size))
    for size in MAPPED:
        params: dict[str, Param] = {"bytes": size, "pages": "small"}
        yield Case("allocation", "mapped", params, Amounts(0, 0, size), _mapped(size), samples=3)


def _touched(size: int) -> Make:
    return lambda _: lambda: np.empty(size, np.uint8).fill(1)


def _mapped(size: int) -> Make:
    """A new mapping of small pages, filled once and given back."""

    def make(_: ExitStack) -> Call:
        if not hasattr(mmap, "MADV_NOHUGEPAGE"):
            raise CannotMeasure("the system knows no MADV_NOHUGEPAGE")

        def call() -> None:
            area = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            area.madvise(mmap.MADV_NOHUGEPAGE)
            array = np.frombuffer(area, np.uint8)
            array.fill(1)
            del array
            area.close()

        return call

    return make
