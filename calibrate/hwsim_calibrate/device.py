"""What the suite `gpu` needs of a device, on a GPU through cupy, and on numpy as a stand-in that tests can run.

On a GPU a call only enqueues.  The device's own time of a few calls is taken between two events, behind a kernel that spins
until all of them are in the queue: else the time of small kernels is the time in which the host launches them (the idea is
nvbench's).  The host's time of the same calls is what enqueuing takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, Final, Protocol

import numpy as np

from hwsim_calibrate.case import Timer
from hwsim_calibrate.clocks import Call, Sample
from hwsim_calibrate.suites.arrays import DTYPES

MiB: Final = 1 << 20


class Stream(Protocol):
    """A list of things the device does in order."""

    def __enter__(self) -> Any: ...

    def __exit__(self, *said: Any) -> Any: ...

    def synchronize(self) -> None: ...


class Device(Protocol):
    """Arrays, copies, kernels and clocks of one device.

    xp: the module of array functions.  products: number formats of matrix products.  dtypes: of everything else.
    """

    xp: Any
    products: tuple[str, ...]
    dtypes: tuple[str, ...]

    def free(self) -> int: ...

    def tidy(self) -> None: ...

    def synchronize(self) -> None: ...

    def stream(self) -> Stream: ...

    def timer(self, stream: Stream) -> Timer: ...

    def array(self, dtype: str, *shape: int) -> Any: ...

    def host(self, size: int, *, pinned: bool) -> Any: ...

    def copy(self, to: Any, source: Any, stream: Stream) -> None: ...

    def kernel(self) -> Call: ...

    def spin(self, cycles: int) -> None: ...

    def graph(self, call: Call, times: int) -> Call: ...

    def moving(self, op: str) -> Callable[[Any, Any, Any], object]: ...

    def product(self, kind: str, m: int, k: int, n: int) -> Call: ...


class HostStream:
    """A stream that has done everything at once."""

    def __enter__(self) -> HostStream:
        return self

    def __exit__(self, *said: Any) -> None:
        return None

    def synchronize(self) -> None:
        return None


class StandIn:
    """numpy in the place of a GPU: what it measures means nothing, that it runs means that the suite does."""

    xp: Any = np
    products: tuple[str, ...] = ("fp64", "fp32")
    dtypes: tuple[str, ...] = ("fp32", "fp64")

    def free(self) -> int:
        return 64 * MiB

    def tidy(self) -> None:
        return None

    def synchronize(self) -> None:
        return None

    def stream(self) -> Stream:
        return HostStream()

    def timer(self, stream: Stream) -> Timer:
        def sample(call: Call, loops: int) -> Sample:
            began = time.perf_counter()
            with stream:
                for _ in range(loops):
                    call()
            seconds = (time.perf_counter() - began) / loops
            return Sample(seconds, seconds, device=seconds)

        return sample

    def array(self, dtype: str, *shape: int) -> Any:
        return np.ones(shape, DTYPES[dtype])

    def host(self, size: int, *, pinned: bool) -> Any:  # noqa: ARG002 (all memory of the host is alike)
        return np.ones(size, np.uint8)

    def copy(self, to: Any, source: Any, stream: Stream) -> None:  # noqa: ARG002 (there is one stream)
        np.copyto(to, source)

    def kernel(self) -> Call:
        return lambda: None

    def spin(self, cycles: int) -> None:  # noqa: ARG002 (numpy has no queue to fill)
        return None

    def graph(self, call: Call, times: int) -> Call:
        return lambda: [call() for _ in range(times)]

    def moving(self, op: str) -> Callable[[Any, Any, Any], object]:
        found: dict[str, Callable[[Any, Any, Any], object]] = {
            "copy": lambda _, two, to: np.copyto(to, two),
            "triad": lambda one, two, to: np.add(one, two, out=to),
            "read": lambda one, _, __: one.sum(),
        }
        return found[op]

    def product(self, kind: str, m: int, k: int, n: int) -> Call:
        one, two, to = self.array(kind, m, k), self.array(kind, k, n), self.array(kind, m, n)
        return lambda: np.matmul(one, two, out=to)


def missing() -> str:
    """Why there is no GPU to measure; "" if there is one."""
    if not find_spec("cupy"):
        return "cupy is not installed: pip install hwsim[gpu]"
    import cupy

    try:
        if not cupy.cuda.runtime.getDeviceCount():
            return "there is no CUDA device"
        cupy.ones(8).sum().item()  # compiles and runs a kernel: the libraries for it may be missing
    except (ImportError, OSError, RuntimeError, cupy.cuda.compiler.CompileException) as error:
        return f"no CUDA device can be used ({str(error).splitlines()[0]})"
    return ""


def device() -> Device:
    """The first GPU; only where nothing is `missing`."""
    from hwsim_calibrate.cuda import Cuda

    return Cuda()


def describe() -> Mapping[str, Any]:
    """Name, memory, clocks and versions of the GPU; empty without one."""
    if missing():
        return {}
    from hwsim_calibrate.cuda import describe as described

    return described()
