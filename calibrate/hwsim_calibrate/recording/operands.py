"""Properties of numpy operands: number format, memory range, access order, and last use."""

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
MIN_ORDERED: Final = 8  # elements of a row from which its order is determined
SAMPLE: Final = 2048  # elements to inspect
FEW: Final = 8  # minimum average repetitions of each value of `few`
MAX_CHANGES: Final = 0.08  # changes per element of a mask with `runs`
MAX_RARE: Final = 0.15  # share of the minority value in a `rare` mask
MAX_BEND: Final = 0.05  # second difference of smooth values
MAX_RANGES: Final = 4000  # memory ranges whose last use is remembered


def dtype_of(array: Any) -> str:
    """Return hwsim's name of an array's number format; "" if hwsim does not support it."""
    return FORMATS.get(str(array.dtype).removeprefix("torch."), "")


def root(array: Array) -> Array:
    """Return the array that owns the memory of a view.

    >>> a = np.zeros((2, 3))
    >>> root(a.T[1:]) is a
    True
    """
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def is_tensor(value: Any) -> bool:
    """Return whether a value is a PyTorch tensor."""
    return hasattr(value, "untyped_storage")


def identity(array: Any) -> int:
    """Return an identifier of the memory that owns an array; all views of one array share it."""
    if is_tensor(array):
        return -1 - int(array.untyped_storage()._cdata)  # noqa: SLF001 (also for tensors without memory)
    return id(root(array))


def span(array: Any) -> tuple[int, int]:
    """Return the first address of an array and its bytes, without gaps between rows and without duplicates.

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
    """Return whether a matrix is stored with its last two axes swapped."""
    return array.ndim > 1 and abs(array.strides[-1]) > abs(array.strides[-2]) and array.shape[-1] > 1


def order_of(array: Array) -> str:
    """Return the order of a sample along the last axis: `sorted`, `few` (distinct values), or "".

    >>> order_of(np.arange(100)), order_of(np.arange(100) % 3), order_of(np.random.default_rng(0).random(100))
    ('sorted', 'few', '')
    """
    if array.ndim < 1 or array.shape[-1] < MIN_ORDERED or array.dtype.kind not in "biuf":
        return ""
    row = array[(0,) * (array.ndim - 1)]
    middle = len(row) // 2
    near = row[max(middle - SAMPLE // 2, 0) : middle + SAMPLE // 2]
    if bool(np.all(near[1:] >= near[:-1])):
        return "sorted"
    far = row[:: max(len(row) // SAMPLE, 1)][:SAMPLE]
    return "few" if len(set(far.tolist())) <= len(far) / FEW else ""


def smooth(array: Array) -> bool:
    """Return whether a sample of the values is smooth, so that branches on the values are predictable.

    >>> smooth(np.linspace(0.0, 9.0, 1000)), smooth(np.random.default_rng(0).random(1000))
    (True, False)
    """
    near = array.reshape(-1)[array.size // 2 :][:SAMPLE]
    return len(near) > MIN_ORDERED and bool(np.median(np.abs(np.diff(near, 2))) < MAX_BEND)


def runs_of(mask: Array) -> str:
    """Return `runs` if a sample of a mask rarely changes between elements, `rare` if one value dominates, else "".

    >>> runs_of(np.arange(100) < 50), runs_of(np.arange(100) % 9 == 0), runs_of(np.arange(100) % 2 == 0)
    ('runs', 'rare', '')
    """
    flat = mask.reshape(-1) if mask.flags.c_contiguous else mask.ravel()
    near = flat[max(len(flat) // 2 - SAMPLE // 2, 0) :][:SAMPLE]
    far = flat[: SAMPLE // 2]
    changes = [np.count_nonzero(sample[1:] != sample[:-1]) / max(len(sample), 1) for sample in (near, far)]
    if sum(changes) / 2 < MAX_CHANGES:
        return "runs"
    share = np.count_nonzero(near) / max(len(near), 1)
    return "rare" if min(share, 1 - share) < MAX_RARE else ""


@dataclass(slots=True)
class Recency:
    """Memory ranges as (first address, bytes), in the order of their last use."""

    ranges: list[tuple[int, int]] = field(default_factory=list)

    def touch(self, begin: int, size: int) -> float:
        """Use a memory range and return the bytes used since its last use, including itself; all bytes if it is new.

        >>> recent = Recency()
        >>> recent.touch(0, 100), recent.touch(1000, 50), recent.touch(0, 100), recent.touch(0, 100)
        (100.0, 150.0, 150.0, 100.0)
        """
        end, since = begin + size, 0
        kept: list[tuple[int, int]] = []
        is_old = False
        for start, length in reversed(self.ranges):
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
        self.ranges = [*kept[::-1][-MAX_RANGES:], (begin, size)]
        return float(since + size)


def layout(arrays: Sequence[Array], result: Array) -> tuple[str, float]:
    """Return (form, number of inner loops) of an elementwise call, with axes in the memory order of the result."""
    shape = result.shape
    axes = sorted((axis for axis, length in enumerate(shape) if length > 1), key=lambda axis: -abs(result.strides[axis]))
    if not result.size or not axes:
        return "", 1.0
    strides = [np.broadcast_to(array, shape).strides for array in arrays] + [result.strides]
    inner = [axes[-1]]
    for axis in reversed(axes[:-1]):  # merge axes that are contiguous in every operand
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
    """Return (form, number of inner loops) of a reduction of all elements (""), of `rows` or of `columns`."""
    axes = range(array.ndim) if axis is None else axis if isinstance(axis, tuple) else (int(axis),)
    reduced = {axis_ % max(array.ndim, 1) for axis_ in axes}
    if len(reduced) >= array.ndim:
        return "", 1.0
    strides = [(abs(step) if array.shape[i] > 1 else math.inf, i not in reduced) for i, step in enumerate(array.strides)]
    innermost = strides.index(min(strides))  # if two axes of a window view have equal strides, the reduced axis is innermost
    return "rows" if innermost in reduced else "columns", array.size / max(array.shape[innermost], 1)
