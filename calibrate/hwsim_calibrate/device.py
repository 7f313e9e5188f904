"""A device as the suite `gpu` times it: arrays, copies, kernels, streams and clocks, here on numpy.

On numpy the times mean nothing, but the suite can be tested without a GPU. `hwsim_calibrate.cuda` overrides all of it for a GPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from hwsim_calibrate.case import Timer
from hwsim_calibrate.clocks import Call, Sample
from hwsim_calibrate.suites.arrays import DTYPES

LINE: Final = 128  # bytes
MEMORY: Final = 64 << 20  # bytes that the stand-in says are free


class HostStream:
    """A list of calls in order; each is done at once."""

    def __enter__(self) -> HostStream:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def synchronize(self) -> None:
        """Wait for all calls."""


class Device:
    """A device.

    products, dtypes: number formats of matrix products, and of everything else.
    vectors: number formats of arithmetic outside the matrix units.
    """

    products: tuple[str, ...] = ("fp64", "fp32")
    dtypes: tuple[str, ...] = ("fp32", "fp64")
    vectors: tuple[str, ...] = ("fp32", "fp64", "int32")

    def free(self) -> int:
        """Bytes of memory that are free."""
        return MEMORY

    def tidy(self) -> None:
        """Give memory back that no array uses."""

    def synchronize(self) -> None:
        """Wait for everything."""

    def stream(self) -> Any:
        """A new stream; `with stream:` enqueues calls to it."""
        return HostStream()

    def timer(self, stream: Any) -> Timer:
        """The time of calls on a stream, by the device's clock."""

        def sample(call: Call, loops: int) -> Sample:
            began = time.perf_counter()
            with stream:
                for _ in range(loops):
                    call()
            seconds = (time.perf_counter() - began) / loops
            return Sample(seconds, seconds, device=seconds)

        return sample

    def array(self, dtype: str, *shape: int) -> Any:
        """Ones in the device's memory."""
        return np.ones(shape, DTYPES[dtype])

    def host(self, size: int, *, pinned: bool) -> Any:  # noqa: ARG002
        """Bytes in the host's memory; pinned: they cannot be swapped out."""
        return np.ones(size, np.uint8)

    def copy(self, to: Any, source: Any, stream: Any) -> None:  # noqa: ARG002
        """Copy between host and device, or within one."""
        np.copyto(to, source)

    def kernel(self) -> Call:
        """An empty kernel."""
        return lambda: None

    def graph(self, call: Call, times: int) -> Call:
        """A recorded list of calls."""
        return lambda: [call() for _ in range(times)]

    def chase(self, size: int, steps: int) -> Call:
        """One thread that follows a chain of reads through all lines of `size` bytes."""
        following = chain(size)

        def call() -> None:
            at = 0
            for _ in range(min(steps, 64)):  # the stand-in's times mean nothing
                at = int(following[at])

        return call

    def clock(self, stream: Any, cycles: int) -> Timer:
        """The time of `cycles` after calls that keep the device busy."""

        def sample(call: Call, _: int) -> Sample:
            with stream:
                call()
            return Sample(1e-9 * cycles, 1e-9 * cycles, device=1e-9 * cycles)

        return sample

    def moving(self, op: str) -> Callable[[Any, Any, Any], object]:
        """`copy`, `triad`, `read` or `write` as a function of two arrays to read and one to write."""
        functions: dict[str, Callable[[Any, Any, Any], object]] = {
            "copy": lambda _, source, to: np.copyto(to, source),
            "triad": lambda one, two, to: np.add(one, two, out=to),
            "read": lambda one, _, __: one.sum(),
            "write": lambda _, __, to: to.fill(3),
        }
        return functions[op]

    def lacks(self, kind: str) -> str:  # noqa: ARG002
        """Why there are no products of a number format; "" if there are."""
        return ""

    def arithmetic(self, dtype: str) -> tuple[Call, float]:
        """A kernel of multiply-adds in registers alone, and its operations."""
        array = np.ones(1024, DTYPES[dtype])
        return (lambda: array * array + array), 2.0 * array.size

    def product(self, kind: str, m: int, k: int, n: int, *, stored: bool = False) -> Call:
        """(m x k) by (k x n) in one number format; stored: the second factor lies in memory as n x k."""
        left, right, to = self.array(kind, m, k), self.array(kind, n, k).T, self.array(kind, m, n)
        if not stored:
            right = self.array(kind, k, n)
        return lambda: np.matmul(left, right, out=to)


def chain(size: int) -> Any:
    """For each line of 128 bytes the next one, all of them in one round in random order."""
    order = np.random.default_rng(0).permutation(max(size // LINE, 1)).astype(np.uint32)
    following = np.empty_like(order)
    following[order] = np.roll(order, -1)
    return following
