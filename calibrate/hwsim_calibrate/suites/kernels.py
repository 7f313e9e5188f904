"""Single-thread numpy calls: call overhead, time per element, and the effect of the operands' location.

Sizes range from one element, where only the call overhead counts, to beyond every cache. The number of different functions
matters more than the number of sizes, because functions that were not timed are predicted badly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from hwsim_calibrate.case import CannotMeasure, Case
from hwsim_calibrate.kernels import Params, kernel_case
from hwsim_calibrate.snippet_calls import snippet_case
from hwsim_calibrate.snippet_inputs import Inputs
from hwsim_calibrate.store import Param
from hwsim_calibrate.suites import Scope

Size = int | tuple[int, ...]
FLAT: Final = (1, 256, 1024, 4096, 8192, 16384, 32768, 65536, 1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 21, 1 << 22, 1 << 23)
SOME: Final = (1, 1024, 8192, 65536, 1 << 18, 1 << 20, 1 << 22)
FEW: Final = (1024, 65536, 1 << 20)
FAR: Final = (3 << 20, 1 << 23, 3 << 22)  # beyond the last-level cache
GRIDS: Final = ((4096, 8), (64, 64), (1024, 10), (256, 256), (64, 4096), (1000, 1000), (4096, 1024))
SQUARES: Final = (1, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1000)
OBLONGS: Final = (
    (64, 1024, 64), (1024, 64, 1024), (256, 784, 256), (256, 256, 10), (4096, 32, 16), (32, 4096, 32), (1024, 1024, 8),
    (8, 1024, 1024), (2048, 16, 256), (128, 32, 2048), (32, 400, 3000), (20000, 24, 40), (5000, 100, 10), (50_000, 30, 20),
    (128, 1, 64), (64, 128, 64), (1000, 1, 1000),
)  # fmt: skip
VECTORS: Final = (
    (64, 64, 1), (512, 512, 1), (2048, 2048, 1), (1, 512, 512), (1, 65536, 1), (1, 4000, 20), (4000, 20, 1), (1, 500, 8),
    (500, 8, 1), (20_000, 30, 1), (1, 20_000, 30), (2500, 2500, 1), (1, 2500, 2500),
)  # fmt: skip
TURNED: Final = (
    (100, 5000, 10), (20_000, 30, 20), (30, 20_000, 1), (128, 64, 64), (64, 64, 64), (784, 256, 256), (1024, 1024, 64),
    (64, 2048, 1), (1, 1024, 1024),
)  # fmt: skip
FRESH: Final = ((256, 784, 256), (1024, 64, 1024), (300, 64, 300), (1500, 1500, 64))
IMAGES: Final = ((1, 28, 28, 3), (8, 32, 32, 3), (16, 64, 64, 5), (32, 128, 128, 3))
FLOATS: Final = ("fp32", "fp64")

# (functions, sizes as elements or shapes, further params), for each format in FLOATS.
GRID: Final[Sequence[tuple[str, Sequence[Size], Mapping[str, Param]]]] = (
    ("add", FLAT, {"into": "out", "other": "array"}),
    ("add", FLAT, {"into": "new", "other": "array"}),
    ("multiply", FLAT, {"into": "out", "other": "scalar"}),
    ("exp", FLAT, {"into": "out"}),
    ("add", (*SOME, *FAR), {"into": "self", "other": "array"}),
    ("multiply", (*SOME, *FAR), {"into": "self", "other": "scalar"}),
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
    ("copy standard_normal random", FEW, {}),
    ("mean max min std any argmax cumsum", (1 << 21,), {"axis": "none", "method": True}),
    ("copyto", GRIDS[::2], {"layout": "columns"}),
    ("copyto", GRIDS[::2], {"layout": "strided"}),
    ("take", (1024, 8192), {"index": 4096}),
    ("take", SOME[3:], {"index": 65536}),
    ("takerows", ((16, 16),), {"index": 20000}),
    ("takerows", ((1024, 16),), {"index": 1024}),
    ("takerows", ((65536, 64),), {"index": 8192}),
    ("takerows", ((10000, 32),), {"index": 80000}),
    ("concatenate", (65536,), {}),
    ("sort", ((8, 500), (64, 4000)), {}),
    ("window", IMAGES, {}),
)


# (functions, formats, params), at a size that fits in the caches and at a small size for the overhead.
NEAR: Final = 16384
INTEGERS: Final = ("int64", "int32", "int8")
BOTH: Final = ("complex128", "complex64")
MATRIX: Final[Sequence[tuple[str, Sequence[str], Mapping[str, Param]]]] = (
    ("floor_divide remainder fmod arctan2 hypot minimum less equal greater_equal not_equal logical_and logical_or copysign",
     FLOATS, {"other": "array"}),
    ("exp2 log2 log10 tan arctan arcsin arccos sinh cosh cbrt reciprocal floor ceil rint trunc sign isnan isfinite logical_not",
     FLOATS, {}),
    ("power", FLOATS, {"other": "array"}),
    ("floor_divide remainder", FLOATS, {"other": "scalar"}),
    (("add subtract multiply divide floor_divide remainder power maximum minimum equal less greater logical_and bitwise_and "
      "bitwise_or bitwise_xor left_shift right_shift"), INTEGERS, {"other": "array"}),
    ("add multiply divide floor_divide remainder bitwise_and left_shift right_shift equal greater power", INTEGERS,
     {"other": "scalar"}),
    ("negative absolute square sqrt exp log sin invert sign", INTEGERS, {}),
    ("logical_and logical_or bitwise_and bitwise_or bitwise_xor equal", ("bool",), {"other": "array"}),
    ("logical_not invert", ("bool",), {}),
    ("add subtract multiply divide", BOTH, {"other": "array"}),
    ("multiply", BOTH, {"other": "scalar"}),
    ("absolute conjugate square exp sqrt", BOTH, {}),
    ("add subtract multiply greater", ("fp16", "int16"), {"other": "array"}),
)  # fmt: skip
REDUCED: Final = "sum mean max min argmax argmin prod any all cumsum std var"
CONVERTED: Final = (
    ("int8", "fp32"), ("int8", "fp64"), ("int8", "int64"), ("fp64", "int64"), ("int64", "fp64"), ("fp32", "int8"),
    ("fp64", "int8"), ("bool", "fp64"), ("bool", "fp32"), ("bool", "int64"), ("int64", "int32"), ("int32", "fp64"),
    ("int32", "int64"), ("int64", "int8"), ("fp32", "fp16"), ("fp64", "complex128"), ("fp64", "int32"), ("int64", "fp32"),
    ("int8", "int16"), ("int8", "int32"), ("fp16", "fp32"), ("fp16", "fp64"), ("fp64", "fp16"),
)  # fmt: skip
KEYS: Final = ("fp64", "fp32", "int64", "int32", "int8")
ORDERS: Final = ("", "sorted", "few")

# Snippets: (names, sizes, formats, words, table sizes); see `snippet_inputs`.
SNIPPED: Final[Sequence[tuple[str, Sequence[int], Sequence[str], Sequence[str], Sequence[int]]]] = (
    ("sort argsort", (64, 2000, 30000), KEYS, ORDERS, (1000,)),
    ("sort argsort", (300_000,), ("fp64", "int64"), ("",), (1000,)),
    ("sort argsort", (2000, 50_000), ("fp64", "int64"), ("stable", "stable sorted", "stable few"), (1000,)),
    ("sort argsort", (2000, 50_000), ("int8", "int32"), ("stable",), (1000,)),
    ("sort", (2500, 90_000), ("fp64",), ("across",), (1000,)),
    ("unique", (100, 3000, 80_000), ("fp64", "int64"), (*ORDERS, "more", "more few"), (1000,)),
    ("unique", (3000,), ("fp32", "int32", "int8"), ("", "few"), (1000,)),
    ("median partition argpartition percentile", (100, 3000, 100_000), ("fp64",), ("",), (1000,)),
    ("median partition percentile", (3000,), ("fp32", "int64"), ("",), (1000,)),
    ("searchsorted", (100, 10_000, 100_000), ("fp64",), ("", "sorted"), (30, 1000, 100_000)),
    ("searchsorted", (50_000,), ("int64", "fp32"), ("", "sorted"), (10_000,)),
    ("compress", (1000, 20_000, 250_000), ("fp64", "int8", "fp32", "int64"), ("", "runs"), (1000,)),
    ("compress", (20_000, 250_000), ("fp64",), ("rare",), (1000,)),
    ("compress", (1_500_000,), ("fp64",), ("", "runs"), (1000,)),
    ("setmask", (1000, 20_000, 250_000), ("fp64", "int8"), ("", "runs", "scalar", "scalar runs", "scalar rare"), (1000,)),
    ("nonzero", (1000, 20_000, 150_000, 1_000_000), ("bool",), ("", "runs", "rare"), (1000,)),
    ("nonzero", (1000, 50_000), ("fp64",), ("",), (1000,)),
    ("count_nonzero", (1000, 50_000), ("bool", "int64"), ("",), (1000,)),
    ("where", (1000, 20_000, 300_000), ("fp64", "fp32", "int64", "int8"), ("", "runs"), (1000,)),
    ("where", (20_000, 300_000), ("fp64",), ("rare", "scalar"), (1000,)),
    ("where", (20_000,), ("complex128", "complex64"), ("", "runs"), (1000,)),
    ("where", (1_500_000,), ("fp64",), ("", "runs"), (1000,)),
    ("crossed", (100, 20_000, 200_000), ("bool", "fp64"), ("",), (1000,)),
    ("index put", (10, 1000, 30_000), ("fp64",), ("",), (1000, 300_000)),
    ("index put", (30_000,), ("fp32", "int64", "int8"), ("",), (10_000,)),
    ("index", (300_000,), ("fp64",), ("",), (100_000, 4_000_000)),
    ("indices putindices", (100, 30_000), ("fp64",), ("",), (2500, 1_000_000)),
    ("takecolumns", (10_000,), ("fp64", "int8"), ("",), (2500, 250_000)),
    ("add_at", (100, 30_000), ("fp64", "int64"), ("",), (100, 100_000)),
    ("bincount", (100, 20_000, 300_000), ("int64",), ("", "plain"), (16, 1000)),
    ("bincount", (20_000, 300_000), ("int64",), ("sorted", "plain sorted"), (300, 10_000)),
    ("bincount", (20_000, 300_000), ("int64",), ("narrow plain", "narrow"), (250,)),
    ("solve inv det cholesky qr eigh", (3, 10, 30, 80, 200), ("fp64",), ("",), (1000,)),
    ("svd eig pinv lstsq eigvalsh", (3, 10, 30, 80), ("fp64",), ("",), (1000,)),
    ("slogdet eigvals matrix_rank matrix_power", (16, 64), ("fp64",), ("",), (1000,)),
    ("inv solve cholesky svd", (64,), ("fp32",), ("",), (1000,)),
    ("fft rfft ifft irfft", (64, 1024, 16_384, 262_144), ("fp64",), ("",), (1000,)),
    ("fft rfft", (1009, 20_011), ("fp64",), ("",), (1000,)),
    ("fft", (1000, 10_000), ("complex128", "fp32"), ("",), (1000,)),
    ("rfft rows|fft rows|sort rows|argsort rows", (100_000,), ("fp64",), ("",), (32, 512)),
    ("fft2 rfft2 ifft2", (1024, 65_536), ("fp64",), ("",), (1000,)),
    ("convolve", (1000, 50_000), ("fp64",), ("",), (5, 60)),
    ("einsum", (64, 4096), ("fp64", "fp32"), ("outer", "inner", "one", "mixed"), (1000,)),
    ("einsum", (250_000,), ("fp64",), ("inner", "one"), (1000,)),
    ("interp", (100, 20_000, 200_000), ("fp64",), ("", "sorted"), (30, 3000)),
    ("power", (100, 10_000), ("fp64", "fp32"), ("",), (1000,)),
    ("cummax cummin", (100, 20_000), ("fp64", "int64"), ("",), (1000,)),
    ("lexsort", (100, 5000, 80_000), ("int64", "fp64"), ("",), (1000,)),
    ("lexsort", (500_000,), ("fp64",), ("",), (1000,)),
    ("sin cos tan", (64, NEAR, 1_000_000), ("fp64",), ("smooth",), (1000,)),
    ("window min|window max|window mean|window sum|window std", (4000, 400_000), ("fp64",), ("",), (20, 100)),
    ("median percentile partition argpartition", (20_000, 1_000_000), ("fp64",), ("rows", "across"), (250,)),
    ("median argpartition", (20_000, 1_000_000), ("fp32", "int64"), ("rows", "across"), (250,)),
    ("median argpartition", (1_000_000,), ("fp64", "fp32", "int64"), ("rows", "across"), (5000,)),
    ("nansum nanmean nanmax nanmin nanstd nanvar nanmedian", (64, 20_000, 500_000), ("fp64",), ("", "missing"), (1000,)),
    ("copy", (40_000, 1_000_000, 4_000_000), ("fp64",), ("across", "across long", "across pieces", "strided"), (1000,)),
    ("copy", (1_000_000,), ("fp32", "int64", "int8"), ("across", "across pieces", "strided"), (1000,)),
    ("copy", (2_000_000,), ("fp64", "int64", "fp32", "int8"), ("",), (1000,)),
    ("tall svd|tall qr|tall pinv", (10, 40, 150), ("fp64",), ("",), (1000,)),
    ("einsum", (4096, 65_536), ("fp64", "fp32"), ("short", "short within"), (1000,)),
    ("einsum", (4096, 250_000), ("fp64",), ("path",), (1000,)),
    ("shuffle", (64, 10_000), ("fp64",), ("rows",), (1000,)),
    (("lognormal laplace standard_cauchy rayleigh logistic gumbel dirichlet chisquare geometric standard_t weibull "
      "histogram2d"), (64, 20_000), ("fp64",), ("",), (1000,)),
    ("integers", (64, 20_000, 2_000_000), ("int64", "int32", "int8"), ("",), (1000,)),
    ("integers", (20_000, 2_000_000), ("int8",), ("full",), (1000,)),
    # sizes beyond the caches
    ("sort argsort", (1_000_000,), ("fp64",), ("",), (1000,)),
    ("argsort", (1_000_000,), ("int64",), ("", "stable few"), (1000,)),
    ("unique median percentile partition argpartition histogram diff cumprod", (1_000_000,), ("fp64",), ("",), (1000,)),
    ("searchsorted", (1_000_000,), ("fp64",), ("", "sorted"), (1000, 100_000)),
    ("compress setmask", (4_000_000,), ("fp64",), ("", "runs", "rare"), (1000,)),
    ("nonzero count_nonzero", (8_000_000,), ("bool",), ("", "runs", "rare"), (1000,)),
    ("index put", (1_000_000,), ("fp64",), ("",), (1000, 1_000_000)),
    ("index", (1_000_000,), ("int64",), ("",), (1_000_000,)),
    ("bincount", (2_000_000,), ("int64",), ("", "plain", "narrow plain"), (250,)),
    ("interp", (1_000_000,), ("fp64",), ("", "sorted"), (3000,)),
    ("fft rfft ifft irfft", (1_048_576,), ("fp64",), ("",), (1000,)),
    ("inv cholesky solve qr slogdet det eigh", (500,), ("fp64",), ("",), (1000,)),
    ("svd eig pinv lstsq eigvalsh", (200,), ("fp64",), ("",), (1000,)),
    ("svd eigvalsh", (400,), ("fp64",), ("",), (1000,)),
    ("cov corrcoef", (300_000,), ("fp64",), ("",), (1000,)),
    ("roll tile repeat stack", (1_000_000,), ("fp64",), ("",), (1000,)),
    ("index_cast", (1000, 200_000), ("fp64", "int8", "int32"), ("",), (256,)),
    ("index_cast", (100_000,), ("fp64",), ("",), (50_000,)),
    ("norm", (16, 1024, 100_000), ("fp64", "fp32"), ("", "axis"), (1000,)),
    (("isin cross histogram polyfit polyval nanmax nanmean nansum nan_to_num isclose allclose array_equal unwrap trapezoid ptp "
      "diff gradient cumprod round repeat tile roll append diag stack vstack column_stack dstack intersect1d setdiff1d union1d "
      "take_along_axis"), (64, 20_000), ("fp64",), ("",), (1000,)),
    ("clip|clip method|gradient 2|tril|triu|cov|corrcoef|pad|kron|tensordot|dot", (64, 40_000), ("fp64",), ("",), (1000,)),
    ("clip", (20_000,), ("fp32", "int8", "int64"), ("",), (1000,)),
    ("outer", (10, 300), ("fp64",), ("",), (1000,)),
    ("diff repeat tile roll stack pad cumprod", (20_000,), ("fp32", "int64", "int8"), ("",), (1000,)),
    ("across", (100, 10_000, 200_000), ("fp64",), ("",), (1000,)),
    ("across", (10_000,), ("fp32", "int8", "int64"), ("",), (1000,)),
    ("arange hanning zeros ones linspace eye full shuffle choice exponential poisson gamma binomial beta", (64, 20_000),
    ("fp64",),
     ("",), (1000,)),
    ("zeros", (2_000_000,), ("fp64",), ("",), (1000,)),
    ("normal of a generator|uniform of a generator|legacy random|legacy integers", (64, 20_000), ("fp64",), ("",), (1000,)),
)  # fmt: skip


def cases(scope: Scope) -> Iterator[Case]:
    """Yield the cases of this suite."""
    seen: set[str] = set()
    detailed, matrix = [*_without_format(), *_grid()], [*_matrix()]
    for index, (op, params) in enumerate([*detailed, *matrix]):
        case = kernel_case(op, params, brief=index >= len(detailed))
        if case.work.reads + case.work.writes <= scope.memory and case.name not in seen:
            seen.add(case.name)
            yield case
    for name, inputs in _snipped():
        with suppress(CannotMeasure):  # older numpy versions
            case = snippet_case(name, inputs)
            if case.work.reads + case.work.writes <= scope.memory and case.name not in seen:
                seen.add(case.name)
                yield case


def _matrix() -> Iterator[tuple[str, Params]]:
    """Yield all functions in several number formats."""
    for ops, formats, more in MATRIX:
        for op in ops.split():
            for dtype in formats:
                yield op, {"n": NEAR, "dtype": dtype, "into": "new", **more}
            yield op, {"n": 64, "dtype": formats[0], "into": "new", **more}
    for op in REDUCED.split():
        for dtype in (*FLOATS, *INTEGERS, "bool"):
            yield op, {"n": NEAR, "dtype": dtype, "axis": "none", "method": True}
        yield op, {"n": 64, "dtype": "fp64", "axis": "none", "method": True}
        yield op, {"n": 64, "dtype": "int64", "axis": "none"}
        yield op, {"n": NEAR, "dtype": "int64", "axis": "none"}
    for op in ("sum", "max", "mean", "argmax", "any", "cumsum", "std"):
        for axis in ("0", "1"):
            for dtype in ("fp64", "fp32", "int64", "int8", *(("bool",) if op in ("any", "argmax") else ())):
                for shape in ((100, 150), (2000, 10), *(((60, 3000), (3000, 120)) if op in ("mean", "cumsum", "std") else ())):
                    yield op, {"shape": shape, "dtype": dtype, "axis": axis, "method": True}
    for op in ("add", "multiply", "greater", "maximum", "minimum", "subtract", "divide"):
        yield op, {"n": NEAR, "dtype": "int64", "into": "new", "other": "scalar"}
        yield op, {"n": NEAR, "dtype": "fp32", "into": "new", "other": "scalar"}
    for source, dtype in CONVERTED:
        yield "astype", {"n": NEAR, "dtype": dtype, "source": source}
    yield "astype", {"n": 300_000, "dtype": "fp32", "source": "int8"}
    for dtype in ("int8", "int64", "bool"):
        for op in ("copy", "copyto", "fill", "concatenate"):
            yield op, {"n": NEAR, "dtype": dtype}
    for dtype in ("int64", "int8"):
        for operand, shape in (("row", (300, 60)), ("column", (300, 60)), ("row", (20, 1000))):
            yield "add", {"shape": shape, "dtype": dtype, "into": "new", "other": operand}
    for op in ("multiply", "divide", "greater"):
        for operand in ("row", "column"):
            for dtype in FLOATS:
                yield op, {"shape": (300, 60), "dtype": dtype, "into": "new", "other": operand}
    for op in ("add", "subtract", "multiply", "divide"):
        for operand in ("row", "column"):
            yield op, {"shape": (20_000, 3), "dtype": "fp64", "into": "new", "other": operand}
    for dtype in (*FLOATS, "int8"):
        for shape in ((300, 400), (1500, 1000)):
            yield "copyto", {"shape": shape, "dtype": dtype, "layout": "columns"}
    for op, dtype in (("add", "fp64"), ("multiply", "fp64"), ("add", "fp32"), ("add", "int32"), ("subtract", "fp64")):
        for into in ("new", "out", "self"):
            yield op, {"shape": (300, 300), "dtype": dtype, "into": into, "other": "array", "layout": "strided"}
    for op in ("power", "arctan2", "maximum"):
        yield op, {"shape": (300, 60), "dtype": "fp64", "into": "new", "other": "column"}
    for op in ("add", "subtract", "divide", "power"):
        for dtype in FLOATS:
            yield op, {"n": NEAR, "dtype": dtype, "into": "new", "other": "scalar"}
    yield from (
        ("matmul", {"shape": (64, 64, 64), "dtype": dtype, "into": "new", "transposed": "none"})
        for dtype in ("int64", "complex128")
    )


def _snipped() -> Iterator[tuple[str, Inputs]]:
    for names, sizes, formats, orders, tables in SNIPPED:
        for name in names.split("|") if "|" in names else names.split():
            for n in sizes:
                for dtype in formats:
                    for words in orders:
                        for table in tables:
                            yield name, Inputs(n, dtype, tuple(words.split()), table)


def _grid() -> Iterator[tuple[str, Params]]:
    for ops, sizes, more in GRID:
        for op in ops.split():
            for dtype in FLOATS:
                for size in sizes:
                    yield op, {"shape" if isinstance(size, tuple) else "n": size, "dtype": dtype, **more}


def _without_format() -> Iterator[tuple[str, Params]]:
    """Yield functions with one number format or none."""
    for op in ("pass", "slice", "transpose", "reshape"):
        yield op, {}
    for side in (4, 16, 48):
        yield "mixed", {"side": side}
    for n in FEW:
        yield "copyto", {"n": n, "dtype": "fp32", "source": "fp64"}
        yield "astype", {"n": n, "dtype": "fp64", "source": "fp32"}
        yield "integers", {"n": n, "dtype": "int64"}
    for n in (1, 1024, 16384, 1 << 18, 1 << 20):
        yield "normal", {"n": n, "dtype": "fp64"}
        yield "uniform", {"n": n, "dtype": "fp64"}
    yield "permutation", {"n": 65536, "dtype": "int64"}
