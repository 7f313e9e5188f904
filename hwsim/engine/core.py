"""The compiled library of the distribution `hwsim-core` (extra [fast]): found, checked and loaded when it is first wanted."""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

SOURCES: Final = "a65b1949da5d39725f5643c580aa8c100edf153bcbdb81b4a8542e5e7ac8a96d"  # of core/src: tests/test_core.py
DONE, TOO_FAR, NO_MEMORY, MORE = range(4)  # what kernels return
PATIENCE: Final = 50_000_000  # ns of a call before Python may hear an interrupt

INT: Final = ctypes.c_int64
POINTER: Final = ctypes.c_void_p
BOOLS, INTS, LONGS, WORDS, FLOATS = (  # columns of them
    np.ctypeslib.ndpointer(dtype, flags="C_CONTIGUOUS") for dtype in (np.bool_, np.int32, np.int64, np.uint64, np.float64)
)


@cache
def found() -> ctypes.CDLL | str:
    """The library, or why there is none."""
    spec = find_spec("hwsim_core")
    places = [] if spec is None else [Path(place) for place in spec.submodule_search_locations or ()]
    files = [file for place in places for name in ("hwsim_core.so", "hwsim_core.dll") if (file := place / name).is_file()]
    if not files:
        return "hwsim-core is not installed: pip install 'hwsim[fast]'"
    try:
        sources, itself = (files[0].parent / "hashes.txt").read_text("ascii").split()
        if sources != SOURCES:
            return "the installed hwsim-core is made of other sources than this hwsim calls: pip install --upgrade 'hwsim[fast]'"
        if sha256(files[0].read_bytes()).hexdigest() != itself:  # part of a file ends the process once it is loaded
            return f"{files[0]} is damaged: pip install --force-reinstall hwsim-core"
        return ctypes.CDLL(str(files[0]))
    except (OSError, ValueError) as error:
        return f"{files[0]} is no library of hwsim's: {error}"


def is_there() -> bool:
    """Whether the library is installed, and fits this hwsim."""
    return not isinstance(found(), str)


@cache
def kernel(name: str, *arguments: Any) -> Callable[..., int]:
    """A function of the library, which must be there; its status is DONE or TOO_FAR.

    Args:
        arguments: types; columns are refused that have another one or are not contiguous.
    """
    function = getattr(found(), name)
    function.argtypes = arguments
    function.restype = ctypes.c_int32
    function.errcheck = _no_memory
    checked: Callable[..., int] = function
    return checked


class Handle:
    """Something that the library has made, and frees with the last reference to it or to a column of it."""

    def __init__(self, address: int, free: str) -> None:
        self.address = address
        weakref.finalize(self, kernel(free, POINTER), address)

    def column(self, address: int | None, dtype: DTypeLike, *shape: int) -> NDArray[Any]:
        """A column that lies in it."""
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
