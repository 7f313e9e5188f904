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

EMPTY: Final = (64, 4096, 65536, MiB, 16 * MiB, 64 * MiB)
TOUCHED: Final = (4096, 65536, MiB, 8 * MiB, 24 * MiB, 31 * MiB, 33 * MiB, 48 * MiB, 96 * MiB)
MAPPED: Final = (65536, MiB, 16 * MiB, 64 * MiB)
_ADVICE: Final = {"default": "", "small": "MADV_NOHUGEPAGE", "huge": "MADV_HUGEPAGE"}


def cases(scope: Scope) -> Iterator[Case]:
    """All cases."""
    for size in EMPTY:
        yield Case("allocation", "empty", {"bytes": size}, Amounts(), _empty(size))
    for size in TOUCHED:
        if size <= scope.memory:
            yield Case("allocation", "fill", {"bytes": size, "into": "new"}, Amounts(0, 0, size, 2), _touched(size))
    for pages, advice in _ADVICE.items():
        for size in MAPPED:
            params: dict[str, Param] = {"bytes": size, "pages": pages}
            yield Case("allocation", "mapped", params, Amounts(0, 0, size), _mapped(size, advice), samples=3)


def _empty(size: int) -> Make:
    return lambda _: lambda: np.empty(size, np.uint8)


def _touched(size: int) -> Make:
    return lambda _: lambda: np.empty(size, np.uint8).fill(1)


def _mapped(size: int, advice: str) -> Make:
    """A new mapping, filled once and given back."""

    def make(_: ExitStack) -> Call:
        if advice and not hasattr(mmap, advice):
            raise CannotMeasure(f"the system knows no {advice}")
        private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_ANONYMOUS") else {}

        def call() -> None:
            area = mmap.mmap(-1, size, **private)
            if advice:
                area.madvise(getattr(mmap, advice))
            array = np.frombuffer(area, np.uint8)
            array.fill(1)
            del array
            area.close()

        return call

    return make
