"""A GPU: kernel launches, copies, memory and matmuls.

GPU calls are asynchronous. Two events time a few calls, after a kernel that spins until all calls are enqueued (as in nvbench).
Otherwise, the time of small kernels would be their launch time on the host. If the host must wait, wall time counts (`launch`
with wait, `duplex`, pageable copies). The working sets of the memory cases grow beyond the L2 cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hwsim.spec import SpecError
from hwsim_calibrate.case import Case
from hwsim_calibrate.clocks import Call
from hwsim_calibrate.store import Amounts, Param
from hwsim_calibrate.suites import MiB, Scope
from hwsim_calibrate.suites.arrays import width

if TYPE_CHECKING:
    from hwsim_calibrate.cuda import Cuda

COPIED: Final = (4, 1024, 16384, 65536, 262144, MiB, 4 * MiB, 16 * MiB, 64 * MiB, 256 * MiB)
BOTH_WAYS: Final = (64 * MiB, 128 * MiB, 256 * MiB)
# Bytes of each array: powers of two, and intermediate sizes around the L2 capacities of current GPUs.
MEMORY: Final = tuple(sorted([*(1 << power for power in range(12, 32)), *(3 << power for power in range(18, 27))]))
# Arrays read, arrays written, FLOP per element.
MOVED: Final = {"copy": (1, 1, 0), "triad": (2, 1, 2), "read": (1, 0, 0), "write": (0, 1, 0)}
SQUARES: Final = (64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 2304, 2560, 3072, 4096, 5120, 6144, 8192)
# m, k, n: few rows; few columns; a short k, for prologue and epilogue of tiles; a long k, for split-k; unaligned rows.
OBLONGS: Final = (
    (1, 4096, 4096), (8, 4096, 4096), (16, 4096, 4096), (32, 4096, 4096), (64, 4096, 4096), (128, 4096, 4096),
    (128, 4096, 11008), (256, 4096, 4096), (4096, 4096, 16), (4096, 4096, 64),
    (32, 65536, 32), (256, 65536, 256), (16, 32768, 1024), (4096, 32768, 128), (128, 32768, 4096),
    (1024, 64, 1024), (4096, 64, 4096), (4096, 128, 4096), (4096, 256, 4096), (8192, 64, 8192), (8192, 128, 8192),
    (8192, 512, 8192), (64, 65536, 64), (128, 16384, 128), (256, 16384, 256), (512, 65536, 512), (1024, 16384, 1024),
    (2048, 8192, 2048), (1000, 1000, 1000), (2000, 2000, 2000), (1023, 1023, 1023), (2047, 2047, 2047), (3071, 3071, 3071),
    (4097, 4097, 4097), (4104, 4104, 4104),
)  # fmt: skip
# Matmuls whose second factor is stored as n x k.
STORED: Final = ((16, 4096, 4096), (64, 4096, 4096), (128, 4096, 11008), (1024, 1024, 1024), (4096, 4096, 4096))
ONLY_STORED: Final = ("int8",)  # formats whose second factor must be stored as n x k, with dimensions that are multiples of 4
HOT: Final = 1e11  # FLOP from which a matmul is measured at the sustained clock of a busy GPU
WARM_UP: Final = 0.1  # seconds of matmuls before that
GRAPH: Final = 100  # kernels
_MAX_FLOP: Final = 1.2e12


@dataclass(frozen=True, slots=True)
class Bench:
    """A device, and the stream for all cases."""

    device: Cuda
    stream: Any

    def case(self, op: str, params: dict[str, Param], work: Amounts, make: Callable[[], Call]) -> Case:
        """Return a case that is timed by GPU events."""

        def made(stack: ExitStack) -> Call:
            stack.callback(self.device.tidy)
            with self.stream:
                return make()

        return Case("gpu", op, params, work, made, "device", 5, 2e-3, self.device.timer(self.stream), max_calls=400)

    def wall_case(self, op: str, params: dict[str, Param], work: Amounts, make: Callable[[], Call]) -> Case:
        """Return a case that is timed by the wall clock; its call waits for the device."""

        def made(stack: ExitStack) -> Call:
            stack.callback(self.device.tidy)
            return make()

        return Case("gpu", op, params, work, made, "wall", 5, 2e-3)


def missing() -> str:
    """Return why no GPU can be measured; "" if one can."""
    if not find_spec("cupy"):
        return "cupy is not installed: pip install hwsim[gpu]"
    import cupy

    try:
        if not cupy.cuda.runtime.getDeviceCount():
            return "there is no CUDA device"
        cupy.ones(8).sum().item()  # compiles and runs a kernel, for which libraries may be missing
    except (ImportError, OSError, RuntimeError, cupy.cuda.compiler.CompileException) as error:
        return f"the CUDA device cannot be used ({str(error).splitlines()[0]})"
    return ""


def describe(number: int = 0) -> Mapping[str, Any]:
    """Return name, memory and versions of a GPU; empty on a machine without a GPU.

    Raises:
        SpecError: The machine has no GPU with this index.
    """
    if missing():
        return {}
    from hwsim_calibrate import cuda

    count = cuda.devices()
    if number >= count:
        raise SpecError.of(None, f"there is no GPU {number}", f"this machine has GPUs 0 to {count - 1}")
    return cuda.describe(number)


def cases(scope: Scope) -> Iterator[Case]:
    """Yield the cases of this suite on one GPU; requires that `missing()` is empty."""
    from hwsim_calibrate.cuda import Cuda

    device = Cuda(scope.gpu)
    yield from cases_of(Bench(device, device.stream()))


def cases_of(bench: Bench) -> Iterator[Case]:
    """Yield the cases of a device."""
    room = bench.device.free() // 4
    yield from _launches(bench)
    for cases_of_kind in (_copies, _memory, _products):
        yield from cases_of_kind(bench, room)
    yield from _arithmetic(bench)


def _launches(bench: Bench) -> Iterator[Case]:
    device, null = bench.device, bench.device.kernel()

    def and_wait() -> None:
        null()
        device.synchronize()

    yield bench.case("launch", {"measured": "device"}, Amounts(), lambda: null)
    yield bench.wall_case("launch", {"measured": "wait"}, Amounts(), lambda: and_wait)
    yield bench.case("graph", {"n": GRAPH}, Amounts(calls=GRAPH), lambda: device.graph(null, GRAPH))


def _arithmetic(bench: Bench) -> Iterator[Case]:
    for dtype in bench.device.vectors:
        call, flop = bench.device.arithmetic(dtype)
        yield bench.case("arithmetic", {"dtype": dtype}, Amounts(flop), lambda call=call: call)  # type: ignore[misc]


def _copies(bench: Bench, room: int) -> Iterator[Case]:
    for size in (size for size in COPIED if size <= room):
        work = Amounts(0, size, size)
        for op in ("h2d", "d2h"):
            yield bench.case(op, {"bytes": size, "pinned": True}, work, partial(_copy, bench, op, size))
            yield bench.wall_case(op, {"bytes": size, "pinned": False}, work, partial(_copy, bench, op, size, pinned=False))
        yield bench.case("d2d", {"bytes": size}, work, partial(_copy, bench, "d2d", size))
    for size in {min(size, room // 4) for size in BOTH_WAYS}:
        yield bench.wall_case("duplex", {"bytes": size}, Amounts(0, 2 * size, 2 * size), partial(_both_ways, bench.device, size))


def _bytes(device: Cuda, size: int) -> Any:
    return device.array("int8", size).view(np.uint8)


def _copy(bench: Bench, op: str, size: int, *, pinned: bool = True) -> Call:
    """Return a copy between host and device or within the device; copies of pageable memory wait."""
    device, stream = bench.device, bench.stream
    target, end = _bytes(device, size), _bytes(device, size) if op == "d2d" else device.host(size, pinned=pinned)
    to, source = (end, target) if op == "d2h" else (target, end)

    def call() -> None:
        device.copy(to, source, stream)
        if not pinned:
            stream.synchronize()

    return call


def _both_ways(device: Cuda, size: int) -> Call:
    """Return simultaneous copies in both directions."""
    on_host = [device.host(size, pinned=True) for _ in range(2)]
    on_device = [_bytes(device, size) for _ in range(2)]
    up, down = device.stream(), device.stream()

    def call() -> None:
        device.copy(on_device[0], on_host[0], up)
        device.copy(on_host[1], on_device[1], down)
        up.synchronize()
        down.synchronize()

    return call


def _memory(bench: Bench, room: int) -> Iterator[Case]:
    device = bench.device
    for dtype in device.dtypes:
        for size in MEMORY if dtype == device.dtypes[0] else MEMORY[::4]:
            if 3 * size > room:
                continue
            for op, (read, written, flop) in MOVED.items():
                work = Amounts(size / width(dtype) * flop, read * size, written * size)
                yield bench.case(op, {"bytes": size, "dtype": dtype}, work, partial(_moving, device, op, dtype, size))


def _moving(device: Cuda, op: str, dtype: str, size: int) -> Call:
    one, two, to = (device.array(dtype, size // width(dtype)) for _ in range(3))
    function = device.moving(op)
    return lambda: function(one, two, to)


def _products(bench: Bench, room: int) -> Iterator[Case]:
    squares = [(side, side, side) for side in SQUARES]
    for kind in bench.device.products:
        size = {"tf32": 4, "bf16": 2}.get(kind) or width(kind)
        made = 4 if kind == "int8" else size
        only = kind in ONLY_STORED
        shapes = [(shape, only) for shape in (*squares, *OBLONGS)] + [(shape, True) for shape in STORED if not only]
        for (m, k, n), stored in dict.fromkeys(shapes):
            flop = 2.0 * m * k * n
            unaligned = only and bool((m | k | n) % 4)
            if (m * k + k * n + m * n) * 8 > room or unaligned or flop > _MAX_FLOP:
                continue
            work = Amounts(flop, (m * k + k * n) * size, m * n * made)
            params: dict[str, Param] = {"shape": (m, k, n), "dtype": kind}
            make = partial(_product, bench.device, kind, (m, k, n), stored=stored)
            yield bench.case("matmul", params | ({"transposed": "b"} if stored else {}), work, make)


def _product(device: Cuda, kind: str, shape: tuple[int, int, int], *, stored: bool) -> Call:
    """Return a matmul; large matmuls are preceded by a warm-up to the sustained clock."""
    m, k, n = shape
    call = device.product(kind, m, k, n, stored=stored)
    if 2.0 * m * k * n >= HOT:
        began = time.perf_counter()
        while time.perf_counter() - began < WARM_UP:
            call()
            device.synchronize()
    return call
