"""Kernels of numpy on one thread: what an op costs to start, per element, and by where its operands lie.

Sizes go from one element, where only the start of an op counts, past every cache.  Which ops are there matters more than how
many sizes of each: an op that was never timed cannot be predicted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hwsim_calibrate.case import Case
from hwsim_calibrate.kernels import Params, kernel_case
from hwsim_calibrate.suites import Scope

FLAT: Final = (1, 256, 1024, 4096, 8192, 16384, 32768, 65536, 1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 21, 1 << 22, 1 << 23)
SOME: Final = (1, 1024, 8192, 65536, 1 << 18, 1 << 20, 1 << 22)
FEW: Final = (1024, 65536, 1 << 20)
GRIDS: Final = ((4096, 8), (64, 64), (1024, 10), (256, 256), (64, 4096), (1000, 1000), (4096, 1024))
SQUARES: Final = (1, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1000)
OBLONGS: Final = (
    (64, 1024, 64), (1024, 64, 1024), (256, 784, 256), (256, 256, 10), (4096, 32, 16), (32, 4096, 32), (1024, 1024, 8),
    (8, 1024, 1024), (2048, 16, 256), (128, 32, 2048), (32, 400, 3000), (20000, 24, 40),
)  # fmt: skip
FLOATS: Final = ("fp32", "fp64")


def missing() -> str:
    """Why this machine has none of it; "" if it has."""
    return ""


def cases(scope: Scope) -> Iterator[Case]:
    """All of them."""
    for op, params in [*_starts(), *_elementwise(), *_reductions(), *_products(), *_moving(), *_drawing()]:
        case = kernel_case(op, params)
        if case.work.reads + case.work.writes <= scope.memory:
            yield case


def _starts() -> Iterator[tuple[str, Params]]:
    for op in ("pass", "slice", "transpose", "reshape"):
        yield op, {}
    for side in (4, 16, 48):
        yield "mixed", {"side": side}


def _elementwise() -> Iterator[tuple[str, Params]]:
    for dtype in FLOATS:
        for n in FLAT:
            yield "add", {"n": n, "dtype": dtype, "into": "out", "other": "array"}
            yield "add", {"n": n, "dtype": dtype, "into": "new", "other": "array"}
            yield "multiply", {"n": n, "dtype": dtype, "into": "out", "other": "scalar"}
            yield "exp", {"n": n, "dtype": dtype, "into": "out"}
        for n in SOME:
            yield "add", {"n": n, "dtype": dtype, "into": "self", "other": "array"}
            yield "multiply", {"n": n, "dtype": dtype, "into": "self", "other": "scalar"}
            for op in ("divide", "maximum"):
                yield op, {"n": n, "dtype": dtype, "into": "out", "other": "array"}
            for op in ("sqrt", "log", "tanh", "sin", "negative"):
                yield op, {"n": n, "dtype": dtype, "into": "out"}
            yield "maximum", {"n": n, "dtype": dtype, "into": "new", "other": "scalar"}
            yield "greater", {"n": n, "dtype": dtype, "into": "new", "other": "scalar"}
        for n in FEW:
            yield "subtract", {"n": n, "dtype": dtype, "into": "out", "other": "array"}
            yield "multiply", {"n": n, "dtype": dtype, "into": "new", "other": "same"}
            yield "multiply", {"n": n, "dtype": dtype, "into": "new", "other": "mask"}
            yield "power", {"n": n, "dtype": dtype, "into": "out", "other": "scalar"}
            for op in ("absolute", "square", "cos", "log1p", "expm1"):
                yield op, {"n": n, "dtype": dtype, "into": "out"}
        for shape in GRIDS:
            yield "add", {"shape": shape, "dtype": dtype, "into": "new", "other": "row"}
            yield "subtract", {"shape": shape, "dtype": dtype, "into": "new", "other": "column"}
            yield "add", {"shape": shape, "dtype": dtype, "into": "new", "other": "array", "layout": "strided"}
        for shape in GRIDS[::3]:
            yield "divide", {"shape": shape, "dtype": dtype, "into": "new", "other": "column"}


def _reductions() -> Iterator[tuple[str, Params]]:
    for dtype in FLOATS:
        for n in FLAT[::2]:
            yield "sum", {"n": n, "dtype": dtype, "axis": "none"}
        for n in SOME[::2]:
            yield "max", {"n": n, "dtype": dtype, "axis": "none"}
        for shape in GRIDS:
            for axis in ("0", "1"):
                yield "sum", {"shape": shape, "dtype": dtype, "axis": axis}
                yield "sum", {"shape": shape, "dtype": dtype, "axis": axis, "method": True}
            yield "max", {"shape": shape, "dtype": dtype, "axis": "1", "method": True}
            yield "argmin", {"shape": shape, "dtype": dtype, "axis": "1"}
        for shape in GRIDS[1::2]:
            yield "max", {"shape": shape, "dtype": dtype, "axis": "0"}
            yield "mean", {"shape": shape, "dtype": dtype, "axis": "1", "method": True}


def _products() -> Iterator[tuple[str, Params]]:
    for dtype in FLOATS:
        for shape in [(side, side, side) for side in SQUARES] + list(OBLONGS):
            yield "matmul", {"shape": shape, "dtype": dtype, "into": "out", "transposed": "none"}
        for shape in ((64, 64, 64), (784, 256, 256), (1024, 1024, 64), (64, 2048, 1), (1, 1024, 1024)):
            for turned in ("a", "b"):
                yield "matmul", {"shape": shape, "dtype": dtype, "into": "out", "transposed": turned}
        for shape in ((64, 64, 1), (512, 512, 1), (2048, 2048, 1), (1, 512, 512), (1, 65536, 1)):
            yield "matmul", {"shape": shape, "dtype": dtype, "into": "out", "transposed": "none"}
        for shape in ((256, 784, 256), (1024, 64, 1024), (300, 64, 300), (1500, 1500, 64)):
            yield "matmul", {"shape": shape, "dtype": dtype, "into": "new", "transposed": "none"}
        yield "matmul", {"shape": (64, 64, 64), "dtype": dtype, "into": "new", "transposed": "none", "batch": 32}


def _moving() -> Iterator[tuple[str, Params]]:
    for dtype in FLOATS:
        for n in FLAT[::2]:
            yield "copyto", {"n": n, "dtype": dtype}
        for n in SOME:
            yield "fill", {"n": n, "dtype": dtype}
        for n in FEW:
            yield "copy", {"n": n, "dtype": dtype}
        for shape in GRIDS[::2]:
            yield "copyto", {"shape": shape, "dtype": dtype, "layout": "columns"}
            yield "copyto", {"shape": shape, "dtype": dtype, "layout": "strided"}
        for n in SOME[1:]:
            yield "take", {"n": n, "dtype": dtype, "index": 4096 if n <= 8192 else 65536}
        for shape, count in (((16, 16), 20000), ((1024, 16), 1024), ((65536, 64), 8192), ((10000, 32), 80000)):
            yield "takerows", {"shape": shape, "dtype": dtype, "index": count}
        for n in FEW:
            yield "sort", {"n": n, "dtype": dtype}
        yield "argsort", {"n": 65536, "dtype": dtype}
        for shape in ((8, 500), (64, 4000)):
            yield "sort", {"shape": shape, "dtype": dtype}
        for image in ((1, 28, 28, 3), (8, 32, 32, 3), (16, 64, 64, 5), (32, 128, 128, 3)):
            yield "window", {"shape": image, "dtype": dtype}
        yield "concatenate", {"n": 65536, "dtype": dtype}
    for n in FEW:
        yield "copyto", {"n": n, "dtype": "fp32", "source": "fp64"}
        yield "astype", {"n": n, "dtype": "fp64", "source": "fp32"}
        yield "bincount", {"n": n, "groups": 16}


def _drawing() -> Iterator[tuple[str, Params]]:
    for n in (1, 1024, 16384, 1 << 18, 1 << 20):
        yield "normal", {"n": n, "dtype": "fp64"}
        yield "uniform", {"n": n, "dtype": "fp64"}
    for n in FEW:
        for dtype in FLOATS:
            yield "standard_normal", {"n": n, "dtype": dtype}
            yield "random", {"n": n, "dtype": dtype}
        yield "integers", {"n": n, "dtype": "int64"}
    yield "permutation", {"n": 65536, "dtype": "int64"}
