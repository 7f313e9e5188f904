"""A GPU: launches, copies, its memory, matrix products, what runs beside what.

By the device's own clock, unless the host has to wait: then by the wall clock (`launch` with wait, `duplex`, `overlap`).
`memory` grows past the L2 cache; `cold` runs after everything in it was overwritten.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from hwsim_calibrate import device as devices
from hwsim_calibrate import gpu_calls as calls
from hwsim_calibrate.case import Case, Timer
from hwsim_calibrate.clocks import Call, Sample
from hwsim_calibrate.device import Device, Stream
from hwsim_calibrate.gpu_calls import FLUSHED
from hwsim_calibrate.store import Amounts, Clock, Param
from hwsim_calibrate.suites import MiB, Scope
from hwsim_calibrate.suites.arrays import width

COPIED: Final = (4, 1024, 16384, 65536, 262144, MiB, 4 * MiB, 16 * MiB, 64 * MiB, 256 * MiB)
MEMORY: Final = tuple(1 << power for power in range(12, 32))  # bytes of each array
ELEMENTS: Final = (1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26)
SQUARES: Final = (64, 128, 256, 512, 1024, 2048, 3072, 4096, 8192)
OBLONGS: Final = (
    (16, 4096, 4096), (1, 4096, 4096), (128, 4096, 11008), (4096, 64, 4096), (4096, 4096, 64), (256, 16384, 256),
    (8192, 128, 8192), (2000, 2000, 2000), (4097, 4097, 4097),
)  # fmt: skip
QUEUED: Final = (64, 256, 1024, 2048, 4096)
GRAPH: Final = 100  # kernels
_BUSY: Final = 200_000_000  # cycles: 0.1 s, longer than it takes to enqueue the most
_MOST_FLOP: Final = 1.2e12


@dataclass(frozen=True, slots=True)
class Bench:
    """A device and the stream that everything is timed on."""

    device: Device
    stream: Stream

    def case(self, op: str, params: dict[str, Param], work: Amounts, make: Callable[[], Call], clock: Clock = "device") -> Case:
        """A case by the device's events; by the wall clock, it is the host's time of enqueuing."""

        def made(stack: ExitStack) -> Call:
            stack.callback(self.device.tidy)
            with self.stream:
                return make()

        timer = self.device.timer(self.stream)
        return Case("gpu", op, params, work, made, clock, 5, 2e-3, timer, most=400)

    def waited(self, op: str, params: dict[str, Param], work: Amounts, make: Callable[[], Call], loop: int = 1) -> Case:
        """A case by the wall clock, whose call waits for the device itself."""

        def made(stack: ExitStack) -> Call:
            stack.callback(self.device.tidy)
            return make()

        return Case("gpu", op, params, work, made, "wall", 5, 2e-3, loop=loop)


def missing() -> str:
    """Why this machine has none of it; "" if it has."""
    return devices.missing()


def cases(scope: Scope) -> Iterator[Case]:
    """All of them."""
    found = devices.device()
    yield from cases_of(Bench(found, found.stream()), scope)


def cases_of(bench: Bench, _: Scope) -> Iterator[Case]:
    """The cases of any device."""
    room = bench.device.free() // 4
    yield from _launches(bench)
    yield from _copies(bench, room)
    yield from _memory(bench, room)
    yield from _elementwise(bench, room)
    yield from _products(bench, room)
    yield from _overlap(bench, room)


def _launches(bench: Bench) -> Iterator[Case]:
    device, null = bench.device, bench.device.kernel()

    def and_wait() -> None:
        null()
        device.synchronize()

    yield bench.case("launch", {"measured": "device"}, Amounts(), lambda: null)
    yield bench.case("launch", {"measured": "enqueue"}, Amounts(), lambda: null, "wall")
    yield bench.waited("launch", {"measured": "wait"}, Amounts(), lambda: and_wait)
    yield bench.waited("synchronize", {}, Amounts(), lambda: device.synchronize)
    yield bench.case("graph", {"n": GRAPH}, Amounts(calls=GRAPH), lambda: device.graph(null, GRAPH))
    for count in QUEUED:
        timer = _queue_timer(device, bench.stream, count)
        yield Case("gpu", "queue", {"n": count}, Amounts(calls=count), lambda _: null, "wall", 3, 0.0, timer)


def _queue_timer(device: Device, stream: Stream, count: int) -> Timer:
    """The host's time per kernel while the device is busy with another: it jumps where the queue is full."""

    def sample(call: Call, _: int) -> Sample:
        with stream:
            device.spin(_BUSY)
            began = time.perf_counter()
            for _ in range(count):
                call()
            seconds = (time.perf_counter() - began) / count
            stream.synchronize()
        return Sample(seconds, seconds)

    return sample


def _copies(bench: Bench, room: int) -> Iterator[Case]:
    device, stream = bench.device, bench.stream
    for size in (each for each in COPIED if each <= room):
        for op in ("h2d", "d2h"):
            for pinned in (True, False):
                params: dict[str, Param] = {"bytes": size, "pinned": pinned}
                make = calls.copying(device, stream, op, size, pinned=pinned)
                work = Amounts(0, size, size)
                yield bench.case(op, params, work, make) if pinned else bench.waited(op, params, work, make)
        yield bench.case("d2d", {"bytes": size}, Amounts(0, size, size), calls.copying(device, stream, "d2d", size, pinned=True))
    size = min(256 * MiB, room // 4)
    yield bench.waited("duplex", {"bytes": size}, Amounts(0, 2 * size, 2 * size), partial(calls.both_ways, device, size))


def _memory(bench: Bench, room: int) -> Iterator[Case]:
    device = bench.device
    arrays = {"copy": (1, 1), "triad": (2, 1), "read": (1, 0)}
    for dtype in device.dtypes:
        for size in MEMORY if dtype == device.dtypes[0] else MEMORY[::4]:
            if 3 * size > room:
                continue
            for op, (read, written) in arrays.items():
                work = Amounts(size / width(dtype) * (2 if op == "triad" else 0), read * size, written * size)
                params: dict[str, Param] = {"bytes": size, "dtype": dtype}
                yield bench.case(op, params, work, partial(calls.moving, device, op, dtype, size))
                if op == "triad" and MiB <= size <= 64 * MiB and size + FLUSHED <= room:
                    yield bench.case(op, params | {"cold": True}, work, partial(calls.cold, device, dtype, size))


def _elementwise(bench: Bench, room: int) -> Iterator[Case]:
    device, xp = bench.device, bench.device.xp
    flush = min(FLUSHED, room // 2)
    yield bench.case("fill", {"bytes": flush}, Amounts(0, 0, flush), partial(calls.filling, device, flush))
    for dtype in device.dtypes:
        for n in (each for each in ELEMENTS if 2 * each * width(dtype) <= room):
            size = n * width(dtype)
            ops: dict[str, tuple[int, Callable[[Any, Any], Call]]] = {
                "add": (2, lambda one, to: lambda: xp.add(one, one, out=to)),
                "exp": (1, lambda one, to: lambda: xp.exp(one, out=to)),
                "tanh": (1, lambda one, to: lambda: xp.tanh(one, out=to)),
                "sqrt": (1, lambda one, to: lambda: xp.sqrt(one, out=to)),
                "sum": (1, lambda one, _: one.sum),
            }
            for op, (read, build) in ops.items():
                params: dict[str, Param] = {"n": n, "dtype": dtype}
                params |= {} if op == "sum" else {"into": "out"}
                work = Amounts(n, read * size, 0 if op == "sum" else size)
                yield bench.case(op, params, work, partial(calls.with_pair, build, device, dtype, n))
            params = {"n": n, "dtype": dtype, "into": "new"}
            yield bench.case("add", params, Amounts(n, 2 * size, size), partial(calls.fresh, device, dtype, n))
            if n >= 256:
                params = {"shape": (n // 256, 256), "dtype": dtype, "axis": "1"}
                yield bench.case("max", params, Amounts(n, size, size / 256), partial(calls.row_maxima, device, dtype, n))


def _products(bench: Bench, room: int) -> Iterator[Case]:
    device = bench.device
    for kind in device.products:
        stored = {"tf32": 4, "bf16": 2}.get(kind) or width(kind)
        for m, k, n in [(side, side, side) for side in SQUARES] + list(OBLONGS):
            if (m * k + k * n + m * n) * 8 > room or (kind == "int8" and (m % 4 or k % 4 or n % 4)):
                continue
            flop = 2.0 * m * k * n
            if flop > _MOST_FLOP:
                continue
            work = Amounts(flop, (m * k + k * n) * stored, m * n * (4 if kind == "int8" else stored))
            params: dict[str, Param] = {"shape": (m, k, n), "dtype": kind}
            yield bench.case("matmul", params, work, partial(device.product, kind, m, k, n))


def _overlap(bench: Bench, room: int) -> Iterator[Case]:
    """A copy beside products, and the same kernels in one stream and in two."""
    device = bench.device
    size, side = min(128 * MiB, room // 4), 2048 if room > 1024 * MiB else 128
    for parts in (("copy",), ("matmul",), ("copy", "matmul")):
        params: dict[str, Param] = {"parts": " ".join(parts), "bytes": size, "side": side}
        work = Amounts(2.0 * side**3 * ("matmul" in parts), size * ("copy" in parts), 0)
        yield bench.waited("overlap", params, work, partial(calls.beside, device, parts, size, side))
    n = 1 << 20
    for streams in (1, 2):
        params = {"n": n, "dtype": "fp32", "streams": streams}
        work = Amounts(n * streams, 4.0 * n * streams, 4.0 * n * streams, streams)
        yield bench.waited("streams", params, work, partial(calls.in_streams, device, n, streams), loop=20)
