"""Pointer chases, which measure the latency of caches and memory by dependent loads.

A numpy call takes about 500 ns and a cache access about 1 ns, so the chase is a C function. Without a C compiler, latencies are
not measured.
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

Chase = Callable[[NDArray[np.int64], int, int], int]  # (table, steps, start) -> end; table[i] is the index after i

_SOURCE: Final = """
long long chase(const long long *next, long long steps, long long index) {
    for (long long step = 0; step < steps; step++) index = next[index];
    return index;
}
"""
_COMPILERS: Final = ("cc", "gcc", "clang")
_TIMEOUT: Final = 20  # seconds


@lru_cache
def compile_chase() -> Chase:
    """Compile and return the function that follows a chain.

    Raises:
        CannotMeasure: There is no C compiler.
    """
    compiler = next((path for name in _COMPILERS if (path := which(name))), None)
    function = _compiled(compiler) if compiler else None
    if function:
        return function
    raise CannotMeasure("pointer chases require a C compiler: cc, gcc or clang")


def _compiled(compiler: str) -> Chase | None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        source, library = Path(folder) / "chase.c", Path(folder) / "chase.so"
        source.write_text(_SOURCE)
        command = [compiler, "-O2", "-shared", "-fPIC", str(source), "-o", str(library)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT)
            function = ctypes.CDLL(str(library)).chase
        except (OSError, subprocess.SubprocessError):
            return None
    function.restype, function.argtypes = ctypes.c_longlong, (ctypes.c_void_p, ctypes.c_longlong, ctypes.c_longlong)
    return lambda table, steps, start: int(function(table.ctypes.data, steps, start))


def random_chain(size: int, line: int = 64, seed: int = 0) -> NDArray[np.int64]:
    """Return a table of `size` bytes whose entries form one cycle through all cache lines in random order.

    >>> table = random_chain(256)
    >>> index, visited = 0, set()
    >>> while index not in visited:
    ...     visited.add(index); index = int(table[index])
    >>> sorted(visited)
    [0, 8, 16, 24]
    """
    step, lines = line // 8, max(2, size // line)
    order = np.random.default_rng(seed).permutation(lines).astype(np.int64) * step
    order = np.roll(order, -int(np.argmin(order)))  # the chase begins at 0
    table = np.zeros(lines * step, np.int64)
    table[order[:-1]] = order[1:]
    table[order[-1]] = order[0]
    return table
