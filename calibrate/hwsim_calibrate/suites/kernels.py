"""Kernels of numpy on one thread: the start of an op, the time per element, and the effect of where its operands lie.

Sizes go from one element, where only the start of an op counts, past every cache. The range of ops matters more than the number
of sizes of each, because an op that was never timed cannot be predicted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hwsim_calibrate.case import Case
from hwsim_calibrate.kernels import Params, kernel_case
from hwsim_calibrate.store import Param
from hwsim_calibrate.suites import Scope

Size = int | tuple[int, ...]
FLAT: Final = (1, 256, 1024, 4096, 8192, 16384, 32768, 65536, 1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 21, 1 << 22, 1 << 23)
SOME: Final = (1, 1024, 8192, 65536, 1 << 18, 1 << 20, 1 << 22)
FEW: Final = (1024, 65536, 1 << 20)
GRIDS: Final = ((4096, 8), (64, 64), (1024, 10), (256, 256), (64, 4096), (1000, 1000), (4096, 1024))
SQUARES: Final = (1, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1000)
OBLONGS: Final = (
    (64, 1024, 64), (1024, 64, 1024), (256, 784, 256), (256, 256, 10), (4096, 32, 16), (32, 4096, 32), (1024, 1024, 8),
    (8, 1024, 1024), (2048, 16, 256), (128, 32, 2048), (32, 400, 3000), (20000, 24, 40),
)  # fmt: skip
VECTORS: Final = ((64, 64, 1), (512, 512, 1), (2048, 2048, 1), (1, 512, 512), (1, 65536, 1))
TURNED: Final = ((64, 64, 64), (784, 256, 256), (1024, 1024, 64), (64, 2048, 1), (1, 1024, 1024))
FRESH: Final = ((256, 784, 256), (1024, 64, 1024), (300, 64, 300), (1500, 1500, 64))
IMAGES: Final = ((1, 28, 28, 3), (8, 32, 32, 3), (16, 64, 64, 5), (32, 128, 128, 3))
FLOATS: Final = ("fp32", "fp64")

# Ops, sizes (elements, or shapes), and further params, for each of FLOATS.
GRID: Final[Sequence[tuple[str, Sequence[Size], Mapping[str, Param]]]] = (
    ("add", FLAT, {"into": "out", "other": "array"}),
    ("add", FLAT, {"into": "new", "other": "array"}),
    ("multiply", FLAT, {"into": "out", "other": "scalar"}),
    ("exp", FLAT, {"into": "out"}),
    ("add", SOME, {"into": "self", "other": "array"}),
    ("multiply", SOME, {"into": "self", "other": "scalar"}),
    ("divide maximum", SOME, {"into": "out", "other": "array"}),
    ("sqrt log tanh sin negative", SOME, {"into": "out"}),
    ("maximum greater", SOME, {"into": "new", "other": "scalar"}),
    ("subtract", FEW, {"into": "out", "other": "array"}),
    ("multiply", FEW, {"into": "new", "other": "same"}),
    ("multiply", FEW, {"into": "new", "other": "mask"}),
    ("power", FEW, {"into": "out", "other": "scalar"}),
    ("absolute square cos log1p expm1", FEW, {"into": "out"}),
    ("add", GRIDS, {"into": "new", "other": "row"}),
    ("subtract", GRIDS, {"into": "new", "other": "column"}),
    ("add", GRIDS, {"into": "new", "other": "array", "layout": "strided"}),
    ("divide", GRIDS[::3], {"into": "new", "other": "column"}),
    ("sum", FLAT[::2], {"axis": "none"}),
    ("max", SOME[::2], {"axis": "none"}),
    ("sum", GRIDS, {"axis": "0"}),
    ("sum", GRIDS, {"axis": "0", "method": True}),
    ("sum", GRIDS, {"axis": "1"}),
    ("sum", GRIDS, {"axis": "1", "method": True}),
    ("max", GRIDS, {"axis": "1", "method": True}),
    ("argmin", GRIDS, {"axis": "1"}),
    ("max", GRIDS[1::2], {"axis": "0"}),
    ("mean", GRIDS[1::2], {"axis": "1", "method": True}),
    ("matmul", (*((side,) * 3 for side in SQUARES), *OBLONGS, *VECTORS), {"into": "out", "transposed": "none"}),
    ("matmul", TURNED, {"into": "out", "transposed": "a"}),
    ("matmul", TURNED, {"into": "out", "transposed": "b"}),
    ("matmul", FRESH, {"into": "new", "transposed": "none"}),
    ("matmul", ((64, 64, 64),), {"into": "new", "transposed": "none", "batch": 32}),
    ("copyto", FLAT[::2], {}),
    ("fill", SOME, {}),
    ("copy sort standard_normal random", FEW, {}),
    ("copyto", GRIDS[::2], {"layout": "columns"}),
    ("copyto", GRIDS[::2], {"layout": "strided"}),
    ("take", (1024, 8192), {"index": 4096}),
    ("take", SOME[3:], {"index": 65536}),
    ("takerows", ((16, 16),), {"index": 20000}),
    ("takerows", ((1024, 16),), {"index": 1024}),
    ("takerows", ((65536, 64),), {"index": 8192}),
    ("takerows", ((10000, 32),), {"index": 80000}),
    ("argsort concatenate", (65536,), {}),
    ("sort", ((8, 500), (64, 4000)), {}),
    ("window", IMAGES, {}),
)


def cases(scope: Scope) -> Iterator[Case]:
    """All cases."""
    for op, params in (*_without_format(), *_grid()):
        case = kernel_case(op, params)
        if case.work.reads + case.work.writes <= scope.memory:
            yield case


def _grid() -> Iterator[tuple[str, Params]]:
    for ops, sizes, more in GRID:
        for op in ops.split():
            for dtype in FLOATS:
                for size in sizes:
                    yield op, {"shape" if isinstance(size, tuple) else "n": size, "dtype": dtype, **more}


def _without_format() -> Iterator[tuple[str, Params]]:
    """Ops in one number format alone, or in none."""
    for op in ("pass", "slice", "transpose", "reshape"):
        yield op, {}
    for side in (4, 16, 48):
        yield "mixed", {"side": side}
    for n in FEW:
        yield "copyto", {"n": n, "dtype": "fp32", "source": "fp64"}
        yield "astype", {"n": n, "dtype": "fp64", "source": "fp32"}
        yield "bincount", {"n": n, "groups": 16}
        yield "integers", {"n": n, "dtype": "int64"}
    for n in (1, 1024, 16384, 1 << 18, 1 << 20):
        yield "normal", {"n": n, "dtype": "fp64"}
        yield "uniform", {"n": n, "dtype": "fp64"}
    yield "permutation", {"n": 65536, "dtype": "int64"}
