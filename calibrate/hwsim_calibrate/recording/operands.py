"""Operands of a call of numpy: number format, memory, the order of walking through it, and when it was last used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FORMATS: Final = {
    "float64": "fp64", "float32": "fp32", "float16": "fp16", "int64": "int64", "int32": "int32", "int16": "int16", "int8": "int8",
    "bool": "bool", "uint8": "int8", "uint16": "int16", "uint32": "int32", "uint64": "int64",
    "complex64": "complex64", "complex128": "complex128", "bfloat16": "bf16", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8",
}  # fmt: skip
LEAST: Final = 8  # elements of a row that may have an order
SAMPLE: Final = 2048  # elements looked at
FEW: Final = 8  # times that each value of `few` comes again, at least
RUNS: Final = 0.08  # part of the elements of a mask after which it changes, at most
RARE: Final = 0.15  # part of the elements of a mask that are otherwise, at most
STEP: Final = 0.05  # by which steps between values change, at most, where they are smooth
PIECES: Final = 4000  # pieces of memory whose last use is remembered


def dtype_of(array: Any) -> str:
    """hwsim's name of an array's number format, "" if it has none like it."""
    return FORMATS.get(str(array.dtype).removeprefix("torch."), "")


def root(array: Array) -> Array:
    """The array that owns the memory of a view.

    >>> a = np.zeros((2, 3))
    >>> root(a.T[1:]) is a
    True
    """
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of PyTorch."""
    return hasattr(value, "untyped_storage")


def identity(array: Any) -> int:
    """The memory that an array lies in: of two arrays with one, one is a view of the other, or of a third."""
    if is_tensor(array):
        return -1 - int(array.untyped_storage()._cdata)  # noqa: SLF001 (of tensors without memory, too)
    return id(root(array))


def span(array: Any) -> tuple[int, int]:
    """The first address of an array and the bytes of its elements, without gaps between its rows, each byte once.

    >>> a = np.zeros(100)
    >>> span(a)[1], span(a[::2])[1], span(np.lib.stride_tricks.sliding_window_view(a, 10))[1]
    (800, 400, 800)
    """
    if is_tensor(array):
        return array.data_ptr(), array.numel() * array.element_size()
    low = np.lib.array_utils.byte_bounds(array)[0] if hasattr(np.lib, "array_utils") else int(array.ctypes.data)
    extent = sum(abs(step) * (length - 1) for step, length in zip(array.strides, array.shape, strict=True)) + array.itemsize
    return int(low), int(min(array.size * array.itemsize, extent))


def stored_transposed(array: Array) -> bool:
    """Whether a matrix is stored with its last two axes swapped."""
    return array.ndim > 1 and abs(array.strides[-1]) > abs(array.strides[-2]) and array.shape[-1] > 1


def order_of(array: Array) -> str:
    """Order of the values along the last axis: `sorted`, `few` (different ones), or "" for any order; of a sample.

    >>> order_of(np.arange(100)), order_of(np.arange(100) % 3), order_of(np.random.default_rng(0).random(100))
    ('sorted', 'few', '')
    """
    if array.ndim < 1 or array.shape[-1] < LEAST or array.dtype.kind not in "biuf":
        return ""
    row = array[(0,) * (array.ndim - 1)]
    middle = len(row) // 2
    near = row[max(middle - SAMPLE // 2, 0) : middle + SAMPLE // 2]
    if bool(np.all(near[1:] >= near[:-1])):
        return "sorted"
    far = row[:: max(len(row) // SAMPLE, 1)][:SAMPLE]
    return "few" if len(set(far.tolist())) <= len(far) / FEW else ""


def smooth(array: Array) -> bool:
    """Whether values go on as they went, so that branches by their size are guessed; of a sample.

    >>> smooth(np.linspace(0.0, 9.0, 1000)), smooth(np.random.default_rng(0).random(1000))
    (True, False)
    """
    near = array.reshape(-1)[array.size // 2 :][:SAMPLE]
    return len(near) > LEAST and bool(np.median(np.abs(np.diff(near, 2))) < STEP)


def runs_of(mask: Array) -> str:
    """`runs` where a mask seldom changes from one element to the next, `rare` where nearly all are alike, else ""; of a sample.

    >>> runs_of(np.arange(100) < 50), runs_of(np.arange(100) % 9 == 0), runs_of(np.arange(100) % 2 == 0)
    ('runs', 'rare', '')
    """
    flat = mask.reshape(-1) if mask.flags.c_contiguous else mask.ravel()
    near = flat[max(len(flat) // 2 - SAMPLE // 2, 0) :][:SAMPLE]
    far = flat[: SAMPLE // 2]
    changes = [np.count_nonzero(each[1:] != each[:-1]) / max(len(each), 1) for each in (near, far)]
    if sum(changes) / 2 < RUNS:
        return "runs"
    part = np.count_nonzero(near) / max(len(near), 1)
    return "rare" if min(part, 1 - part) < RARE else ""


@dataclass(slots=True)
class Recency:
    """Pieces of memory as (first address, bytes), the last used last."""

    pieces: list[tuple[int, int]] = field(default_factory=list)

    def touch(self, begin: int, size: int) -> float:
        """Use a piece of memory. Returns the bytes used since its last use, its own included; all bytes if it is new.

        >>> recent = Recency()
        >>> recent.touch(0, 100), recent.touch(1000, 50), recent.touch(0, 100), recent.touch(0, 100)
        (100.0, 150.0, 150.0, 100.0)
        """
        end, since = begin + size, 0
        kept: list[tuple[int, int]] = []
        is_old = False
        for start, length in reversed(self.pieces):
            shared = min(end, start + length) - max(begin, start)
            if shared <= 0:
                since += 0 if is_old else length
                kept.append((start, length))
                continue
            is_old = is_old or 2 * shared >= min(size, length)
            if start < begin:
                kept.append((start, begin - start))
            if start + length > end:
                kept.append((end, start + length - end))
        self.pieces = [*kept[::-1][-PIECES:], (begin, size)]
        return float(since + size)


def layout(arrays: Sequence[Array], result: Array) -> tuple[str, float]:
    """(form, inner loops) of an elementwise call, its axes in the order of the result's memory."""
    shape = result.shape
    axes = sorted((axis for axis, length in enumerate(shape) if length > 1), key=lambda axis: -abs(result.strides[axis]))
    if not result.size or not axes:
        return "", 1.0
    strides = [np.broadcast_to(array, shape).strides for array in arrays] + [result.strides]
    inner = [axes[-1]]
    for axis in reversed(axes[:-1]):  # axes that every operand walks through as if they were one
        if not all(steps[axis] == steps[inner[-1]] * shape[inner[-1]] for steps in strides):
            break
        inner.append(axis)
    rows = result.size / math.prod(shape[axis] for axis in inner)
    widths = [array.itemsize for array in arrays] + [result.itemsize]
    if any(abs(steps[axes[-1]]) > width for steps, width in zip(strides, widths, strict=True)):
        return "across", rows
    if rows <= 1:
        return "", 1.0
    if any(steps[axes[-1]] == 0 for steps in strides):
        return "column", rows
    return "row" if any(steps[axis] == 0 for steps in strides for axis in axes[:-1]) else "strided", rows


def layout_reduced(array: Array, axis: Any) -> tuple[str, float]:
    """(form, inner loops) of a reduction: of all elements (""), of `rows` along the innermost axis, or of `columns` across it."""
    axes = range(array.ndim) if axis is None else axis if isinstance(axis, tuple) else (int(axis),)
    reduced = {each % max(array.ndim, 1) for each in axes}
    if len(reduced) >= array.ndim:
        return "", 1.0
    strides = [(abs(step) if array.shape[at] > 1 else math.inf, at not in reduced) for at, step in enumerate(array.strides)]
    innermost = strides.index(min(strides))  # of windows, two axes have one stride: the one that is reduced is innermost
    return "rows" if innermost in reduced else "columns", array.size / max(array.shape[innermost], 1)
