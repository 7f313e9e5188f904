"""Files in one folder: past the page cache where the system allows it (O_DIRECT), through it, and fsync.

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
_CACHED: Final = 32 * MiB  # of the file, that reads through the page cache go to


def missing() -> str:
    """Why this machine cannot run the suite; "" if it can."""
    return "" if hasattr(os, "preadv") else "the system has no reads at a place (preadv)"


def cases(scope: Scope) -> Iterator[Case]:
    """All cases."""
    file = _File(scope)
    for size in (each for each in SIZES if each <= scope.file // 2):
        for op in ("read", "write"):
            for pattern in ("sequential", "random"):
                if op == "write" and pattern == "random" and size > 65536:
                    continue
                yield _case(op, size, pattern, "direct", partial(_at_places, file, op, size, pattern, "direct"))
    for size in (each for each in (4096, 65536, MiB) if each <= scope.file // 2):
        yield _case("read", size, "random", "page", partial(_at_places, file, "read", size, "random", "page"))
        yield _case("write", size, "sequential", "page", partial(_at_places, file, "write", size, "sequential", "page"))
    if hasattr(os, "posix_fadvise"):
        yield _case("read", MiB, "sequential", "cold", partial(_cold, file, MiB), samples=7)
    for depth in DEPTHS:
        make = partial(_deep, file, 4096, depth)
        yield _case("read", 4096, "random", "direct", make, depth=depth, loop=depth * _READS, samples=3)
    yield _case("fsync", 4096, "sequential", "page", partial(_fsync, file, 4096), samples=15)


def _case(op: str, size: int, pattern: str, cache: str, make: Make, *, depth: int = 1, loop: int = 1, samples: int = 0) -> Case:
    work = Amounts(0, size if op == "read" else 0, 0 if op == "read" else size)
    params: dict[str, Param] = {"bytes": size, "pattern": pattern, "cache": cache, "depth": depth}
    samples = samples or (15 if size <= MiB else 7)
    lasting = 1e-3 if size <= 16384 and op != "fsync" and cache != "cold" else 0.0
    return Case("storage", op, params, work, make, "wall", samples, lasting, loop=loop)


class _File:
    """A file of random bytes, written when it is first needed."""

    def __init__(self, scope: Scope) -> None:
        self.size = scope.file
        self._scope = scope
        self._path: Path | None = None

    def opened(self, stack: ExitStack, cache: str) -> int:
        """A descriptor, for as long as the stack lasts."""
        if self._path is None:
            self._path = self._written()
        flags = os.O_RDWR
        if cache == "direct":
            if not hasattr(os, "O_DIRECT"):
                raise CannotMeasure("the system has no O_DIRECT")
            flags |= os.O_DIRECT
        try:
            descriptor = os.open(self._path, flags)
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


def _at_places(file: _File, op: str, size: int, pattern: str, cache: str, stack: ExitStack) -> Call:
    handle, view = file.opened(stack, cache), [_buffer(stack, size)]
    place = _places(size, pattern, min(file.size, _CACHED) if cache == "page" else file.size)
    if op == "read" and cache == "page":  # what bypassed the cache before has thrown its pages out
        for at in range(0, min(file.size, _CACHED), size):
            os.preadv(handle, view, at)
    if op == "read":
        return lambda: os.preadv(handle, view, place())
    return lambda: os.pwritev(handle, view, place())


def _cold(file: _File, size: int, stack: ExitStack) -> Call:
    """In a row through the page cache, which has just forgotten the file."""
    handle, view = file.opened(stack, "page"), [_buffer(stack, size)]
    os.fsync(handle)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    place = _places(size, "sequential", file.size)
    return lambda: os.preadv(handle, view, place())


def _deep(file: _File, size: int, depth: int, stack: ExitStack) -> Call:
    """Several threads, each with one read under way."""
    handle = file.opened(stack, "direct")
    places = [_places(size, "random", file.size) for _ in range(depth)]
    views = [[_buffer(stack, size)] for _ in range(depth)]
    pool = stack.enter_context(ThreadPoolExecutor(depth))

    def work(number: int) -> None:
        for _ in range(_READS):
            os.preadv(handle, views[number], places[number]())

    return lambda: [*pool.map(work, range(depth))]


def _fsync(file: _File, size: int, stack: ExitStack) -> Call:
    handle, view = file.opened(stack, "page"), [_buffer(stack, size)]

    def call() -> None:
        os.pwritev(handle, view, 0)
        os.fsync(handle)

    return call
