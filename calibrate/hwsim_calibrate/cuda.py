"""A CUDA device through cupy.

Matmuls call cuBLAS directly, because `cupy.matmul` selects the number format of the arithmetic itself.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import cupy
import cupyx
import numpy as np

from hwsim_calibrate.case import CannotMeasure, Timer
from hwsim_calibrate.clocks import Call, Sample
from hwsim_calibrate.suites.arrays import DTYPES, numbers

# Number format -> (type of the factors and of the result, cublasComputeType_t, types of their arrays and of the scalars).
_PRODUCTS: Final[Mapping[str, tuple[int, int, int, Any, Any, Any]]] = {
    "fp64": (1, 1, 70, np.float64, np.float64, ctypes.c_double),
    "fp32": (0, 0, 68, np.float32, np.float32, ctypes.c_float),
    "tf32": (0, 0, 77, np.float32, np.float32, ctypes.c_float),
    "fp16": (2, 2, 68, np.float16, np.float16, ctypes.c_float),
    "bf16": (14, 14, 68, np.uint16, np.uint16, ctypes.c_float),
    "int8": (3, 10, 72, np.int8, np.int32, ctypes.c_int32),
}
_ENQUEUE_CYCLES: Final = 24_000  # initial estimate of the time in which the host enqueues a call
_MAX_SPIN_CYCLES: Final = 400_000_000
_MAX_TRIES: Final = 4  # samples until the device spins for as long as the host enqueues


_ARITHMETIC: Final = """extern "C" __global__ void arithmetic(KIND* last, KIND by, int steps) {
    KIND a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3, e = a + 4, f = a + 5, g = a + 6, h = a + 7;
    for (int step = 0; step < steps; step++) {
        a = a * by + by; b = b * by + by; c = c * by + by; d = d * by + by;
        e = e * by + by; f = f * by + by; g = g * by + by; h = h * by + by;
    }
    if (a + b + c + d + e + f + g + h == (KIND)12345) *last = a;
}"""
_NUMBERS: Final = {"fp32": "float", "fp64": "double", "int32": "int"}
_THREADS: Final = 256  # per block
_BLOCKS: Final = 8  # per multiprocessor
_CHAINS: Final = 8  # independent multiply-adds per thread
_STEPS: Final = {"fp32": 8192, "fp64": 1024, "int32": 4096}


class Cuda:
    """A device, which becomes the current device.

    products: number formats of matmuls.
    dtypes: number formats of memory cases.
    vectors: number formats of arithmetic outside the matrix units.
    """

    products: tuple[str, ...] = tuple(_PRODUCTS)
    dtypes: tuple[str, ...] = ("fp32", "fp16", "fp64")
    vectors: tuple[str, ...] = tuple(_NUMBERS)

    def __init__(self, number: int = 0) -> None:
        cupy.cuda.Device(number).use()
        self._hertz = 1e3 * cupy.cuda.Device(number).attributes["ClockRate"]
        self._null = cupy.RawKernel('extern "C" __global__ void nothing() {}', "nothing")
        code = 'extern "C" __global__ void spin(long long cycles) { long long t = clock64(); while (clock64() - t < cycles); }'
        self._spin = cupy.RawKernel(code, "spin")
        self._write = cupy.ElementwiseKernel("", "T to", "to = (T)3", "hwsim_write")
        self._copy = cupy.ElementwiseKernel("T one", "T to", "to = one", "hwsim_copy")
        self._triad = cupy.ElementwiseKernel("T one, T two", "T to", "to = one + (T)3 * two", "hwsim_triad")

    def free(self) -> int:
        """Return the free memory (bytes)."""
        return int(cupy.cuda.runtime.memGetInfo()[0])

    def tidy(self) -> None:
        """Free cached memory that no array uses."""
        cupy.get_default_memory_pool().free_all_blocks()
        cupy.get_default_pinned_memory_pool().free_all_blocks()

    def synchronize(self) -> None:
        """Wait until the device is idle."""
        cupy.cuda.Device().synchronize()

    def stream(self) -> Any:
        """Return a new stream; calls inside `with stream:` are enqueued to it."""
        return cupy.cuda.Stream(non_blocking=True)

    def timer(self, stream: Any) -> Timer:
        """Return a function that times calls on a stream by GPU events."""
        first, last = cupy.cuda.Event(), cupy.cuda.Event()

        def sample(call: Call, loops: int) -> Sample:
            cycles = min(_MAX_SPIN_CYCLES, loops * _ENQUEUE_CYCLES)
            for _ in range(_MAX_TRIES):
                self.synchronize()
                with stream:
                    self.spin(cycles)
                    first.record(stream)
                    began = time.perf_counter()
                    for _ in range(loops):
                        call()
                    host = time.perf_counter() - began
                    last.record(stream)
                    last.synchronize()
                if host * self._hertz <= cycles or cycles == _MAX_SPIN_CYCLES:
                    break
                cycles = min(_MAX_SPIN_CYCLES, int(2.0 * host * self._hertz))  # the device waited for the host
            device = cupy.cuda.get_elapsed_time(first, last) * 1e-3
            return Sample(host / loops, host / loops, device=device / loops)

        return sample

    def array(self, dtype: str, *shape: int) -> Any:
        """Return an array of ones in device memory."""
        return cupy.ones(shape, DTYPES[dtype])

    def host(self, size: int, *, pinned: bool) -> Any:
        """Return an array of bytes in host memory."""
        array = cupyx.empty_pinned(size, np.uint8) if pinned else np.empty(size, np.uint8)
        array.fill(1)
        return array

    def copy(self, to: Any, source: Any, stream: Any) -> None:
        """Copy between host and device, or within the device."""
        runtime = cupy.cuda.runtime
        ends = [(end.data.ptr, True) if isinstance(end, cupy.ndarray) else (end.ctypes.data, False) for end in (to, source)]
        (target, to_device), (origin, from_device) = ends
        kinds = {
            (True, False): runtime.memcpyHostToDevice,
            (False, True): runtime.memcpyDeviceToHost,
            (True, True): runtime.memcpyDeviceToDevice,
        }
        runtime.memcpyAsync(target, origin, source.nbytes, kinds[to_device, from_device], stream.ptr)

    def kernel(self) -> Call:
        """Return a call of an empty kernel."""
        return lambda: self._null((1,), (1,), ())

    def spin(self, cycles: int) -> None:
        """Keep the device busy for some clock cycles."""
        self._spin((1,), (1,), (np.int64(cycles),))

    def graph(self, call: Call, times: int) -> Call:
        """Return a call that launches a CUDA graph of `times` calls."""
        call()  # compiles and loads the kernel, which cannot be captured
        self.synchronize()
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            for _ in range(times):
                call()
            graph = stream.end_capture()
        return lambda: graph.launch(cupy.cuda.get_current_stream())

    def moving(self, op: str) -> Callable[[Any, Any, Any], object]:
        """Return `copy`, `triad`, `read` or `write` as a function of two source arrays and a destination."""
        functions: dict[str, Callable[[Any, Any, Any], object]] = {
            "copy": lambda _, source, to: self._copy(source, to),
            "triad": self._triad,
            "read": lambda one, _, __: one.sum(),
            "write": lambda _, __, to: self._write(to),
        }
        return functions[op]

    def arithmetic(self, dtype: str) -> tuple[Call, float]:
        """Return a kernel of multiply-adds in registers, and its FLOP."""
        kernel = cupy.RawKernel(_ARITHMETIC.replace("KIND", _NUMBERS[dtype]), "arithmetic")
        last, by, steps = cupy.zeros(1, DTYPES[dtype]), DTYPES[dtype](1), _STEPS[dtype]
        blocks = _BLOCKS * int(cupy.cuda.Device().attributes["MultiProcessorCount"])
        flop = 2.0 * _CHAINS * steps * blocks * _THREADS
        return (lambda: kernel((blocks,), (_THREADS,), (last, by, np.int32(steps)))), flop

    def product(self, kind: str, m: int, k: int, n: int, *, stored: bool = False) -> Call:
        """Return a matmul C = A B of row-major matrices, which cuBLAS computes as C' = B' A'.

        Args:
            kind: number format.
            m: rows of A.
            k: columns of A.
            n: columns of B.
            stored: whether B is stored as n x k.

        Raises:
            CannotMeasure: cuBLAS does not support the matmul.
        """
        cublas = _cublas()
        factor, result, arithmetic, element, made, scalar = _PRODUCTS[kind]
        turned, leading = (1, k) if stored else (0, n)
        if kind == "int8" and (m % 4 or k % 4 or n % 4):
            raise CannotMeasure("int8 matmuls require dimensions that are multiples of 4")
        left, right, to = _filled(kind, element, m, k), _filled(kind, element, k, n), cupy.zeros((m, n), made)
        alpha, beta = scalar(1), scalar(0)
        handle = cupy.cuda.device.get_cublas_handle()

        def call() -> None:
            cublas.setStream(handle, cupy.cuda.get_current_stream().ptr)
            cublas.gemmEx(
                handle, turned, 0, n, m, k, ctypes.addressof(alpha), right.data.ptr, factor, leading, left.data.ptr, factor, k,
                ctypes.addressof(beta), to.data.ptr, result, n, arithmetic, -1,
            )  # fmt: skip

        try:
            call()
            self.synchronize()
        except cublas.CUBLASError as error:
            raise CannotMeasure(f"cuBLAS does not support a {kind} matmul of this shape ({error})") from error
        return call


def devices() -> int:
    """Return the number of devices."""
    return int(cupy.cuda.runtime.getDeviceCount())


def describe(number: int = 0) -> Mapping[str, Any]:
    """Return the properties of a device, which becomes the current device."""
    runtime = cupy.cuda.runtime
    cupy.cuda.Device(number).use()
    properties = runtime.getDeviceProperties(cupy.cuda.Device().id)
    return {
        "name": properties["name"].decode(),
        "number": number,
        "compute": f"{properties['major']}.{properties['minor']}",
        "multiprocessors": properties["multiProcessorCount"],
        "l2": properties["l2CacheSize"],
        "memory": properties["totalGlobalMem"],
        "bus_bits": properties.get("memoryBusWidth"),
        "cupy": cupy.__version__,
        "runtime": runtime.runtimeGetVersion(),
        "driver": runtime.driverGetVersion(),
        **_management(),
    }


def _management() -> dict[str, Any]:
    """Return the PCIe generation and lanes, if NVIDIA's management library is installed."""
    try:
        import pynvml
    except ImportError:
        return {}
    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByPciBusId(cupy.cuda.Device().pci_bus_id.encode())
        return {
            "pcie": [pynvml.nvmlDeviceGetMaxPcieLinkGeneration(handle), pynvml.nvmlDeviceGetCurrPcieLinkWidth(handle)],
        }
    except pynvml.NVMLError:
        return {}


def _cublas() -> Any:
    try:
        from cupy_backends.cuda.libs import cublas
    except ImportError as error:
        raise CannotMeasure(f"cuBLAS cannot be loaded ({error})") from error
    return cublas


def _filled(kind: str, stored: Any, *shape: int) -> Any:
    """Return random numbers, because matmuls of zeros take less power and are faster."""
    drawn = numbers("fp32", *shape)
    if kind == "int8":
        drawn = np.rint(drawn * 6 - 6)  # from -3 to 3
    if kind == "bf16":  # the upper half of an fp32
        return cupy.asarray((drawn.view(np.uint32) >> 16).astype(np.uint16))
    return cupy.asarray(drawn.astype(stored))
