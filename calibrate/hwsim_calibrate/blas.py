"""The BLAS library of numpy: its kernels for this CPU, and its number of threads.

numpy reports the library that it was built with. Only OpenBLAS is queried for its kernels, by the function names of its builds.
For other libraries (Accelerate, MKL), the environment determines the number of threads.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

_STYLES: Final = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")
_MAPS: Final = Path("/proc/self/maps")


@dataclass(frozen=True, slots=True)
class OpenBlas:
    """A loaded OpenBLAS library.

    Args:
        library: handle of the shared library.
        style: pattern of its function names.
    """

    library: Any
    style: str

    def core(self) -> str:
        """Return the core type whose kernels are used, such as SkylakeX."""
        function = getattr(self.library, self.style.format("get_corename"))
        function.restype = ctypes.c_char_p
        return str(function().decode())

    def threads(self) -> int:
        return int(getattr(self.library, self.style.format("get_num_threads"))())

    def set_threads(self, count: int) -> None:
        getattr(self.library, self.style.format("set_num_threads"))(count)


@lru_cache
def loaded() -> OpenBlas | None:
    """Return the OpenBLAS library of this process, or None if numpy uses another library."""
    for path in _libraries():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for style in _STYLES:
            if hasattr(library, style.format("set_num_threads")):
                return OpenBlas(library, style)
    return None


@contextmanager
def using(count: int) -> Iterator[None]:
    """Use `count` threads for matmuls inside the block; no effect for libraries other than OpenBLAS."""
    library = loaded()
    if library is None:
        yield
        return
    before = library.threads()
    library.set_threads(count)
    try:
        yield
    finally:
        library.set_threads(before)


def built_with() -> str:
    """Return name and version of the library that numpy was built with, such as "scipy-openblas 0.3.31"."""
    config: Any = np.show_config(mode="dicts")
    library = config.get("Build Dependencies", {}).get("blas", {})
    return f"{library.get('name', 'unknown')} {library.get('version', '')}".strip()


def _libraries() -> list[str]:
    """Return shared libraries with BLAS in their names that this process has loaded; else, the libraries next to numpy."""
    try:
        mapped = [line.split(maxsplit=5)[-1].strip() for line in _MAPS.read_text(encoding="utf-8").splitlines()]
    except OSError:
        package = Path(np.__file__).parent
        folders = (package / ".dylibs", package.with_name("numpy.libs"))
        mapped = [str(path) for folder in folders if folder.is_dir() for path in folder.iterdir()]
    return list(dict.fromkeys(path for path in mapped if "blas" in os.path.basename(path).lower()))  # noqa: PTH119 (of thousands of lines)
