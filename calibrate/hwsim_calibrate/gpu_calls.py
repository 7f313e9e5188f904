"""The calls that the suite `gpu` times, on any device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from hwsim_calibrate.clocks import Call
from hwsim_calibrate.device import Device, Stream
from hwsim_calibrate.suites import MiB
from hwsim_calibrate.suites.arrays import width

FLUSHED: Final = 256 * MiB  # more than any L2


def copying(device: Device, stream: Stream, op: str, size: int, *, pinned: bool) -> Callable[[], Call]:
    """Host to device, device to host, or within the device; from pageable memory the host waits."""

    def make() -> Call:
        one = device.array("int8", size).view(np.uint8)
        two = device.array("int8", size).view(np.uint8) if op == "d2d" else device.host(size, pinned=pinned)
        to, source = (two, one) if op == "d2h" else (one, two)

        def call() -> None:
            device.copy(to, source, stream)
            if not pinned:
                stream.synchronize()

        return call

    return make


def both_ways(device: Device, size: int) -> Call:
    """Both directions at once."""
    here = [device.host(size, pinned=True) for _ in range(2)]
    there = [device.array("int8", size).view(np.uint8) for _ in range(2)]
    up, down = device.stream(), device.stream()

    def call() -> None:
        device.copy(there[0], here[0], up)
        device.copy(here[1], there[1], down)
        up.synchronize()
        down.synchronize()

    return call


def moving(device: Device, op: str, dtype: str, size: int) -> Call:
    """A copy, a triad or a sum of arrays of so many bytes."""
    one, two, to = (device.array(dtype, size // width(dtype)) for _ in range(3))
    function = device.moving(op)
    return lambda: function(one, two, to)


def cold(device: Device, dtype: str, size: int) -> Call:
    """The triad after the L2 was overwritten; the time of that alone is the row `fill` of `FLUSHED` bytes."""
    call, other = moving(device, "triad", dtype, size), device.array("int8", FLUSHED)

    def both() -> None:
        other.fill(0)
        call()

    return both


def pair(device: Device, dtype: str, n: int) -> tuple[Any, Any]:
    """An array to read and one to write."""
    return device.array(dtype, n), device.array(dtype, n)


def with_pair(build: Callable[[Any, Any], Call], device: Device, dtype: str, n: int) -> Call:
    """What is built of two arrays."""
    return build(*pair(device, dtype, n))


def fresh(device: Device, dtype: str, n: int) -> Call:
    """An addition into a new array, which the pool of the library gives."""
    one, two = pair(device, dtype, n)
    return lambda: one + two


def row_maxima(device: Device, dtype: str, n: int) -> Call:
    """The greatest of each row of 256."""
    one = device.array(dtype, n // 256, 256)
    return lambda: one.max(axis=1)


def filling(device: Device, size: int) -> Call:
    """Zeros over so many bytes."""
    to = device.array("int8", size)
    return lambda: to.fill(0)


def beside(device: Device, parts: tuple[str, ...], size: int, side: int) -> Call:
    """A copy from the host, a product, or both side by side in two streams; the host waits for them."""
    here, there = device.host(size, pinned=True), device.array("int8", size).view(np.uint8)
    copying, computing = device.stream(), device.stream()
    product = device.product("fp32", side, side, side)

    def call() -> None:
        if "copy" in parts:
            device.copy(there, here, copying)
        if "matmul" in parts:
            with computing:
                product()
        copying.synchronize()
        computing.synchronize()

    return call


def in_streams(device: Device, n: int, count: int) -> Call:
    """Twenty exponentials in each of so many streams; the host waits for them."""
    arrays = [pair(device, "fp32", n) for _ in range(count)]
    streams = [device.stream() for _ in range(count)]
    xp = device.xp

    def call() -> None:
        for stream, (one, to) in zip(streams, arrays, strict=True):
            with stream:
                for _ in range(20):
                    xp.exp(one, out=to)
        for stream in streams:
            stream.synchronize()

    return call
