"""Files in one folder, past the page cache (O_DIRECT): one access at a time, and several reads under way.

One file for the whole run, of `Scope.file` bytes, which is removed at the end. In a virtual machine the host's own cache may lie
behind it, which a guest cannot see.
"""

from __future__ import annotations

import mmap
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from hwsim_calibrate.case import CannotMeasure, Case, Make
from hwsim_calibrate.clocks import Call
from hwsim_calibrate.store import Amounts, Param
from hwsim_calibrate.suites import MiB, Scope

SIZES: Final = (4096, 16384, 65536, 262144, MiB, 4 * MiB)
DEPTHS: Final = (2, 4, 8, 16)
_READS: Final = 16  # of each thread, in one call


def missing() -> str:
    """Why this machine cannot run the suite; "" if it can."""
    return "" if hasattr(os, "preadv") else "the system has no reads at a place (preadv)"


def cases(scope: Scope) -> Iterator[Case]:
    """All cases."""
    file = _File(scope)
    for size in (each for each in SIZES if each <= scope.file // 2):
        for op in ("read", "write"):
            yield _case(op, size, "sequential", partial(_at_places, file, op, size, "sequential"))
    yield _case("read", 4096, "random", partial(_at_places, file, "read", 4096, "random"))
    for depth in DEPTHS:
        make = partial(_deep, file, 4096, depth)
        yield _case("read", 4096, "random", make, depth=depth, loop=depth * _READS, samples=3)


def _case(op: str, size: int, pattern: str, make: Make, *, depth: int = 1, loop: int = 1, samples: int = 0) -> Case:
    work = Amounts(0, size if op == "read" else 0, 0 if op == "read" else size)
    params: dict[str, Param] = {"bytes": size, "pattern": pattern, "cache": "direct", "depth": depth}
    samples = samples or (15 if size <= MiB else 7)
    lasting = 1e-3 if size <= 16384 else 0.0
    return Case("storage", op, params, work, make, "wall", samples, lasting, loop=loop)


class _File:
    """A file of random bytes, written when it is first needed."""

    def __init__(self, scope: Scope) -> None:
        self.size = scope.file
        self._scope = scope
        self._path: Path | None = None

    def opened(self, stack: ExitStack) -> int:
        """A descriptor, for as long as the stack lasts."""
        if self._path is None:
            self._path = self._written()
        if not hasattr(os, "O_DIRECT"):
            raise CannotMeasure("the system has no O_DIRECT")
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_DIRECT)
        except OSError as error:
            raise CannotMeasure(f"the folder's file system opens no file with O_DIRECT ({error.strerror})") from error
        stack.callback(os.close, descriptor)
        return descriptor

    def _written(self) -> Path:
        handle, name = tempfile.mkstemp(prefix="hwsim-", suffix=".dat", dir=self._scope.folder)
        path = Path(name)
        self._scope.session.callback(path.unlink, missing_ok=True)
        piece = os.urandom(min(self.size, MiB))
        with os.fdopen(handle, "wb") as file:
            for _ in range(0, self.size, len(piece)):
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        return path


def _buffer(stack: ExitStack, size: int) -> memoryview:
    """Memory that begins with a page, as O_DIRECT wants it."""
    area = mmap.mmap(-1, size)
    view = memoryview(area)
    stack.callback(area.close)
    stack.callback(view.release)
    view[:] = os.urandom(size)
    return view


def _places(size: int, pattern: str, file: int) -> Callable[[], int]:
    slots, at, draw = file // size, -1, random.Random(size)

    def following() -> int:
        nonlocal at
        at = (at + 1) % slots
        return at * size

    return following if pattern == "sequential" else lambda: draw.randrange(slots) * size


def _at_places(file: _File, op: str, size: int, pattern: str, stack: ExitStack) -> Call:
    handle, view = file.opened(stack), [_buffer(stack, size)]
    place = _places(size, pattern, file.size)
    if op == "read":
        return lambda: os.preadv(handle, view, place())
    return lambda: os.pwritev(handle, view, place())


def _deep(file: _File, size: int, depth: int, stack: ExitStack) -> Call:
    """Several threads, each with one read under way."""
    handle = file.opened(stack)
    places = [_places(size, "random", file.size) for _ in range(depth)]
    views = [[_buffer(stack, size)] for _ in range(depth)]
    pool = stack.enter_context(ThreadPoolExecutor(depth))

    def work(number: int) -> None:
        for _ in range(_READS):
            os.preadv(handle, views[number], places[number]())

    return lambda: [*pool.map(work, range(depth))]
