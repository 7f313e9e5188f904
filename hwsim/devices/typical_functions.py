"""The time of a function that was not measured on a CPU, from the measured ones.

    each = typical x median(measured / typical) over the functions nearest in time per byte, of the same kind of number;
           if none is near, the ratio of the calls is used instead

A function measured in another number format is used with the typical ratio of the two formats.

`function_times.txt` contains typical times in ns: of a call, and of an element by number format, with all operands in the L1
cache. For functions of linear algebra and transforms the elements are steps, as in recorded workloads
(`hwsim_calibrate.recording.algebra`); for sorting, elements times log2 of their number. Ratios between functions of one library
transfer between machines better than times do.

Source: measured by `hwsim calibrate`, numpy 2.4.6 with OpenBLAS on one core of an AMD EPYC 9004 (Zen 4, AVX-512).
Error: docs/validation/calibration.md (regime program/related: typical times of one CPU for the functions of another).
Range: numpy with the same kinds of loops; not linear algebra libraries that choose other algorithms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Final

from hwsim.devices.kernels import Function, MeasuredFunctions
from hwsim.devices.work import LibraryCall
from hwsim.units import BYTES

CLOCK: Final = 3.7e9  # clock of the core that measured the typical times (Hz)
SORTED: Final = ("sort", "argsort")
GENERATED: Final = "generator"  # form of the random number generators
NEAREST: Final = 12  # number of nearest functions
NEAR: Final = 1.5  # maximum distance of the nearest functions, in ln of the time per byte
OTHER_KIND: Final = 1.5  # extra distance of a function of another kind of number
KINDS: Final[Mapping[str, str]] = {"fp": "float", "bf": "float", "in": "whole", "bo": "whole", "co": "complex"}  # by prefix
LIKE: Final[Mapping[str, tuple[str, ...]]] = {  # formats whose typical time replaces a missing one, nearest first
    "fp16": ("fp32", "fp64"), "fp32": ("fp64",), "fp64": ("fp32",), "int8": ("bool", "int16", "int32", "int64"),
    "int16": ("int8", "int32", "int64"), "int32": ("int64", "fp32", "fp64"), "int64": ("int32", "fp64"),
    "bool": ("int8", "int64"), "complex64": ("complex128", "fp32"), "complex128": ("complex64", "fp64"),
}  # fmt: skip


@cache
def typical_times() -> Mapping[str, tuple[float, Mapping[str, float]]]:
    """Return (ns of a call, ns of an element by number format) by function and form."""
    table = {}
    for line in Path(__file__).with_name("function_times.txt").read_text(encoding="utf-8").splitlines():
        name, _, numbers = line.partition(": ")
        call, *times = numbers.split()
        table[name] = (float(call), {dtype: float(time) for dtype, _, time in (pair.partition("=") for pair in times)})
    return table


def typical_time(function: str, form: str, dtype: str) -> tuple[str, float, float] | None:
    """Return (entry, time of an element in s, time of a call in s) of a function in its form, else without; None if unknown."""
    words, table = form.split(), typical_times()
    for index in range(len(words), -1, -1):
        entry = " ".join((function, *words[:index]))
        if entry in table:
            call, times = table[entry]
            for form_dtype in (dtype, *LIKE.get(dtype, ())):
                if form_dtype in times and form_dtype in BYTES:
                    return (
                        entry,
                        times[form_dtype] * 1e-9 * (BYTES[dtype] / BYTES[form_dtype] if form_dtype != dtype else 1.0),
                        call * 1e-9,
                    )
            if not times:
                return entry, 0.0, call * 1e-9
    return None


def _other_format(kernels: MeasuredFunctions, call: LibraryCall) -> Function | None:
    """Return the function as measured in another number format, scaled by the typical ratio of the formats or their widths."""
    for dtype in dict.fromkeys((*LIKE.get(call.dtype, ()), *LIKE)):
        measured = kernels.function(replace(call, dtype=dtype))
        if measured is None or dtype not in measured[1].each or call.count <= 0:
            continue
        function = measured[1]
        mine, its = typical_time(call.function, call.form, call.dtype), typical_time(call.function, call.form, dtype)
        both = mine is not None and its is not None and mine[0] == its[0] and min(mine[1], its[1]) > 0
        ratio = mine[1] / its[1] if both and mine and its else BYTES[call.dtype] / BYTES[dtype]
        return Function(
            call=function.call, each={call.dtype: function.each[dtype] * ratio}, row=function.row, log=function.log,
            counts=function.counts,
        )  # fmt: skip
    return None


def _any_draw(kernels: MeasuredFunctions, call: LibraryCall) -> Function | None:
    """Return the median of the measured distributions for a distribution that was not measured."""
    draws = [draw for name, draw in kernels.functions.items() if name.endswith(f" {GENERATED}") and "fp64" in draw.each]
    if call.form != GENERATED or not draws:
        return None
    return Function(call=median(draw.call for draw in draws), each={call.dtype: median(draw.each["fp64"] for draw in draws)})


@cache
def typical_kernels(clock: float) -> MeasuredFunctions:
    """Return all functions with their typical times at a clock (Hz); 0: the clock of the measurement."""
    scale = 1e-9 * (CLOCK / clock if clock > 0 else 1.0)
    functions = {
        name: Function(
            call=call * scale, each={dtype: time * scale for dtype, time in elements.items()}, log=name.split()[0] in SORTED
        )
        for name, (call, elements) in typical_times().items()
    }
    return MeasuredFunctions(functions=functions)


def estimate_function(kernels: MeasuredFunctions, call: LibraryCall) -> Function | None:
    """Return the time of such a function on this CPU; None without a typical time or a similar measured function."""
    if (same_function := _other_format(kernels, call)) is not None:
        return same_function
    reference = typical_time(call.function, call.form, call.dtype)
    if reference is None:
        return _any_draw(kernels, call)
    entry, element_s, start = reference
    level, kind = math.log(max(element_s, 1e-13) / BYTES[call.dtype]), KINDS.get(call.dtype[:2])
    ratios: list[tuple[float, float]] = []
    table = typical_times()
    starts: list[float] = []
    for name, function in kernels.functions.items():
        if name not in table:
            continue
        usual_call, times = table[name]
        if function.call > 0 and usual_call > 0:
            starts.append(function.call / (usual_call * 1e-9))
        for dtype, seconds in function.each.items():
            if dtype in times and seconds > 0 and times[dtype] > 0 and function.log == (entry.split()[0] in SORTED):
                gap = abs(math.log(times[dtype] * 1e-9 / BYTES[dtype]) - level) + OTHER_KIND * (KINDS.get(dtype[:2]) != kind)
                ratios.append((gap, seconds / (times[dtype] * 1e-9)))
    if not ratios:
        return None
    call_ratio = median(starts) if starts else 0.0
    nearest = [row for row in sorted(ratios)[:NEAREST] if not call_ratio or row[0] <= NEAR]
    scale = median(ratio for _, ratio in nearest) if nearest else call_ratio
    return Function(call=start * (call_ratio or scale), each={call.dtype: element_s * scale}, log=entry.split()[0] in SORTED)
