"""Loader of the compiled core (built from `core/src` if a compiler is available), with checks on first use."""

from __future__ import annotations

import ctypes
import math
import sys
import weakref
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

SOURCES: Final = "e48a247dd5cea036007566e27862b9987b371705271c8a6072aa62736b9b0fa3"  # of core/src: tests/test_core.py
HOME: Final = Path(__file__).resolve().parent.parent / "_core"
DONE, TOO_FAR, NO_MEMORY, MORE = range(4)  # status codes of kernels
PATIENCE: Final = 50_000_000  # ns per call, after which Python can handle an interrupt

INT: Final = ctypes.c_int64
POINTER: Final = ctypes.c_void_p
BOOLS, INTS, LONGS, WORDS = (  # types of columns
    np.ctypeslib.ndpointer(dtype, flags="C_CONTIGUOUS") for dtype in (np.bool_, np.int32, np.int64, np.uint64)
)


def library() -> Path:
    """Return the path of the library, which need not exist."""
    return HOME / ("hwsim_core.dll" if sys.platform == "win32" else "hwsim_core.so")


@cache
def found() -> ctypes.CDLL | str:
    """Return the library, or the reason why it is not available."""
    path = library()
    if not path.is_file():
        return "hwsim was installed without its compiled core (no C++ compiler)"
    try:
        sources, itself, *_ = (HOME / "hashes.txt").read_text("ascii").split()
        if sources != SOURCES:
            return "the compiled core was built from another version of hwsim"
        if sha256(path.read_bytes()).hexdigest() != itself:  # a truncated library would end the process
            return f"{path} is damaged"
        return ctypes.CDLL(str(path))
    except (OSError, ValueError) as error:
        return f"{path} is not a valid library: {error}"


def is_there() -> bool:
    """Return whether the library is installed and matches this version of hwsim."""
    return not isinstance(found(), str)


@cache
def kernel(name: str, *arguments: Any) -> Callable[..., int]:
    """Return a function of the library, which must be installed; the function returns DONE or TOO_FAR.

    Args:
        arguments: argument types; columns must be contiguous and have these types.
    """
    function = getattr(found(), name)
    function.argtypes = arguments
    function.restype = ctypes.c_int32
    function.errcheck = _no_memory
    checked: Callable[..., int] = function
    return checked


class Handle:
    """An object of the library that is freed with the last reference to it or to one of its columns."""

    def __init__(self, address: int, free: str) -> None:
        self.address = address
        weakref.finalize(self, kernel(free, POINTER), address)

    def column(self, address: int | None, dtype: DTypeLike, *shape: int) -> NDArray[Any]:
        """Return a read-only column in the memory of the object."""
        if not address or 0 in shape:
            return np.empty(shape, dtype)
        buffer: Any = (ctypes.c_char * (math.prod(shape) * np.dtype(dtype).itemsize)).from_address(address)
        buffer.owner = self
        column: NDArray[Any] = np.frombuffer(buffer, dtype).reshape(shape)
        column.flags.writeable = False
        return column


def _no_memory(status: int, _: object, __: object) -> int:
    if status == NO_MEMORY:
        raise MemoryError
    return status
