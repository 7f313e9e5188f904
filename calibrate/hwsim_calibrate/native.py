"""A chain of dependent reads, which numpy cannot time.

A call of numpy takes half a microsecond, a read from a cache a nanosecond. So the chain is followed by five lines of C
where there is a compiler, else not at all.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from shutil import which
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim_calibrate.case import CannotMeasure

Chase = Callable[[NDArray[np.int64], int, int], int]  # (next entry of each, steps, start) -> end

_SOURCE: Final = """
long long chase(const long long *next, long long steps, long long at) {
    for (long long step = 0; step < steps; step++) at = next[at];
    return at;
}
"""
_COMPILERS: Final = ("cc", "gcc", "clang")
_SECONDS: Final = 20


@lru_cache
def chaser() -> tuple[str, Chase]:
    """The function that follows a chain, and the compiler it was made by.

    Raises:
        CannotMeasure: there is no compiler.
    """
    compiler = next((path for name in _COMPILERS if (path := which(name))), None)
    function = _compiled(compiler) if compiler else None
    if function:
        return "cc", function
    raise CannotMeasure("a chain of reads needs a C compiler: cc, gcc or clang")


def _compiled(compiler: str) -> Chase | None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        source, library = Path(folder) / "chase.c", Path(folder) / "chase.so"
        source.write_text(_SOURCE)
        command = [compiler, "-O2", "-shared", "-fPIC", str(source), "-o", str(library)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
            function = ctypes.CDLL(str(library)).chase
        except (OSError, subprocess.SubprocessError):
            return None
    function.restype, function.argtypes = ctypes.c_longlong, (ctypes.c_void_p, ctypes.c_longlong, ctypes.c_longlong)
    return lambda table, steps, at: int(function(table.ctypes.data, steps, at))


def chain(size: int, line: int = 64, seed: int = 0) -> NDArray[np.int64]:
    """A table of `size` bytes whose entries, one per line, lead through all lines once in random order and back.

    >>> table = chain(256)
    >>> at, seen = 0, set()
    >>> while at not in seen:
    ...     seen.add(at); at = int(table[at])
    >>> sorted(seen)
    [0, 8, 16, 24]
    """
    step, lines = line // 8, max(2, size // line)
    order = np.random.default_rng(seed).permutation(lines).astype(np.int64) * step
    order = np.roll(order, -int(np.argmin(order)))  # the walk begins at 0
    table = np.zeros(lines * step, np.int64)
    table[order[:-1]] = order[1:]
    table[order[-1]] = order[0]
    return table
