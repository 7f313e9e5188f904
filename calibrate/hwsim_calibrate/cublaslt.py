"""Products of 8-bit floating point numbers by cuBLASLt, through ctypes: cuBLAS itself has none, and cupy does not offer cuBLASLt.

Rows lie one after another, which to cuBLASLt are columns: D' = B' A', both factors with k as their inner axis, as its 8-bit
kernels demand. The result is bf16, the scales are 1.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from hwsim_calibrate.case import CannotMeasure

LEAST: Final = 89  # compute capability x 10 of the first GPUs with such matrix units (Ada)
MULTIPLE: Final = 16  # n and k are multiples of it
WORKSPACE: Final = 32 << 20  # bytes
NAMES: Final = ("libcublasLt.so.13", "libcublasLt.so.12", "cublasLt64_13.dll", "cublasLt64_12.dll")
E4M3, BF16, FP32, COMPUTE_FP32 = 28, 14, 0, 68  # cudaDataType_t, cublasComputeType_t
TRANSPOSE_A, SCALE_A, SCALE_B, MOST_WORKSPACE = 3, 17, 18, 1  # attributes of the operation, and of the preference
CODES: Final = (0x30, 0x40)  # of e4m3 numbers from 0.5 to 1.9: products of one value alone take less power


class Algorithm(ctypes.Structure):
    """The kernel that the library proposes (cublasLtMatmulHeuristicResult_t)."""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


def lacking(capability: int, load: Callable[[], Any] | None = None) -> str:
    """Why a GPU cannot be asked for such products; "" if it can. capability: 90 for 9.0."""
    if capability < LEAST:
        return f"no matrix units for fp8: compute capability {capability / 10:.1f}, which begin at {LEAST / 10:.1f}"
    try:
        (load or loaded)()
    except OSError:
        return f"cuBLASLt is not found ({' or '.join(NAMES[:2])}): pip install hwsim[gpu]"
    return ""


def loaded() -> Any:
    """The library: of the system, or of NVIDIA's packages for Python.

    Raises:
        OSError: it is not there.
    """
    for place in (*NAMES, *_packaged()):
        try:
            return ctypes.CDLL(place)
        except OSError:
            continue
    raise OSError("no cuBLASLt")


def _packaged() -> Iterator[str]:
    """The places of packages such as nvidia-cublas-cu12."""
    for folder in sys.path:
        yield from (str(path) for name in NAMES for path in sorted(Path(folder or ".").glob(f"nvidia/*/*/{name}")))


class Products:
    """Products with one library, on one device.

    Args:
        library: cuBLASLt.
        room: makes a number of bytes of random codes in the device's memory, as an object with `.data.ptr`.
    """

    def __init__(self, library: Any, room: Callable[[int], Any]) -> None:
        self.library, self.room = library, room
        self.handle = ctypes.c_void_p()
        self._do("cublasLtCreate", ctypes.byref(self.handle))
        self.workspace = room(WORKSPACE)

    def product(self, m: int, k: int, n: int, scale: Any, stream: Callable[[], int]) -> Callable[[], None]:
        """(m x k) by (n x k) transposed; scale: a 1 in fp32 in the device's memory; stream: the one to run on.

        Raises:
            CannotMeasure: the library has no kernel for it.
        """
        if n % MULTIPLE or k % MULTIPLE:
            raise CannotMeasure(f"fp8 products have k and n that are multiples of {MULTIPLE}")
        right, left, to = self.room(n * k), self.room(m * k), self.room(2 * m * n)
        operation = self._made("cublasLtMatmulDescCreate", COMPUTE_FP32, FP32)
        self._set("cublasLtMatmulDescSetAttribute", operation, TRANSPOSE_A, ctypes.c_int32(1))
        for key in (SCALE_A, SCALE_B):
            self._set("cublasLtMatmulDescSetAttribute", operation, key, ctypes.c_void_p(scale.data.ptr))
        layouts = [self._layout(E4M3, k, n), self._layout(E4M3, k, m), self._layout(BF16, n, m), self._layout(BF16, n, m)]
        preference = self._made("cublasLtMatmulPreferenceCreate")
        self._set("cublasLtMatmulPreferenceSetAttribute", preference, MOST_WORKSPACE, ctypes.c_uint64(WORKSPACE))
        algorithm, count = Algorithm(), ctypes.c_int()
        self._do(
            "cublasLtMatmulAlgoGetHeuristic", self.handle, operation, *layouts, preference, 1, ctypes.byref(algorithm),
            ctypes.byref(count),
        )  # fmt: skip
        if not count.value:
            raise CannotMeasure("cuBLASLt has no kernel for an fp8 product of this shape")
        alpha, beta = ctypes.c_float(1.0), ctypes.c_float(0.0)
        ends = [ctypes.c_void_p(each.data.ptr) for each in (right, left, to)]

        def call() -> None:
            self._do(
                "cublasLtMatmul", self.handle, operation, ctypes.byref(alpha), ends[0], layouts[0], ends[1], layouts[1],
                ctypes.byref(beta), ends[2], layouts[2], ends[2], layouts[3], ctypes.byref(algorithm),
                ctypes.c_void_p(self.workspace.data.ptr), ctypes.c_size_t(WORKSPACE), ctypes.c_void_p(stream()),
            )  # fmt: skip

        call.keeps = (right, left, to, scale)  # type: ignore[attr-defined]  # as long as the call
        return call

    def _layout(self, kind: int, rows: int, columns: int) -> ctypes.c_void_p:
        return self._made(
            "cublasLtMatrixLayoutCreate", kind, ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(rows)
        )

    def _made(self, function: str, *arguments: Any) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self._do(function, ctypes.byref(made), *arguments)
        return made

    def _set(self, function: str, of: ctypes.c_void_p, key: int, value: Any) -> None:
        self._do(function, of, key, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value)))

    def _do(self, function: str, *arguments: Any) -> None:
        status = getattr(self.library, function)(*arguments)
        if status:
            raise CannotMeasure(f"{function} of cuBLASLt failed (status {status})")
