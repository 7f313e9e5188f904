"""Exact arithmetic on femtoseconds and bytes, for single values and columns; times beyond a limit raise an error.

A column has dtype int64 if all values fit, else Python integers (dtype object). Equal values have equal dtypes, so the dtype
affects only speed. There is no overflow, and a time is rounded only once, when it is converted from seconds.

Rule: other modules may index, compare, sort and subtract columns, and compute their maximum and minimum, because these operations
do not exceed int64 as long as every time is at least -1. They create, add, multiply and accumulate columns only with this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

FEMTO: Final = 10**15  # fs in a second
LONGEST: Final = 10**24  # longest accepted time, fs
LONGEST_TEXT: Final = "1e9 s (31.7 years)"
SPARSE: Final = 16  # range of values per row above which sorting is faster than counting
LARGEST: Final = 2**63 - 1  # maximum of an int64: 2.56 h in fs, 9.22 EB

_LONGEST: Final = float(LONGEST)  # comparing floats is three times as fast as comparing with an integer

Column: TypeAlias = NDArray[Any]  # int64 or Python integers


class TooLong(ValueError):
    """An error for a time above `LONGEST` or not a number; `op` is the name of its op, if known."""

    def __init__(self, seconds: float, op: str = "") -> None:
        self.seconds, self.op = seconds, op
        self.message = f"'{op}' takes {seconds:.4g} s, which is too long" if op else f"a time of {seconds:.4g} s is too long"
        self.hint = f"the longest time is {LONGEST_TEXT}"
        super().__init__(seconds, op)  # SimPy copies an exception from its arguments

    def __str__(self) -> str:
        return f"{self.message}: {self.hint}"


def femtoseconds(seconds: float) -> int:
    """Return a time in femtoseconds, rounded to the nearest integer.

    >>> femtoseconds(3 * 3600.0)
    10800000000000000000

    Raises:
        TooLong: more than `LONGEST`, infinite or not a number.
    """
    product = seconds * 1e15
    if not product <= _LONGEST:  # false for NaN as well
        raise TooLong(seconds)
    return round(product)


def rounded(times: NDArray[np.float64]) -> Column:
    """Return a column of times (fs) that are already whole and not negative.

    Raises:
        TooLong: more than `LONGEST`, infinite or not a number.
    """
    longest = float(times.max(initial=0.0))
    if not longest <= _LONGEST:
        raise TooLong(longest / FEMTO)
    return times.astype(np.int64) if longest < 2.0**63 else column([int(time_) for time_ in times.tolist()])


def column(values: Iterable[int] | NDArray[Any]) -> Column:
    """Return a column of integers.

    >>> column([1, 2]).dtype, column([1, 2**63]).dtype
    (dtype('int64'), dtype('O'))
    """
    if isinstance(values, np.ndarray):
        if values.dtype.kind == "i":
            return values.astype(np.int64, copy=False)
        if values.dtype != object:
            raise TypeError(f"expected integers, got {values.dtype}")
        values = values.tolist()
    rows = values if isinstance(values, Sequence) else list(values)
    try:
        return np.fromiter(rows, np.int64, len(rows))
    except OverflowError:
        return np.array([int(row) for row in rows], object)


def widened(values: Column) -> Column:
    """Return the column with Python integers."""
    return values if values.dtype == object else values.astype(object)


def matching(values: Iterable[int] | NDArray[Any], *columns: Column) -> Column:
    """Return a column with the dtype of these columns: Python integers if any column has Python integers."""
    result = column(values)
    return widened(result) if any(other.dtype == object for other in columns) else result


def alike(one: Column, other: Column) -> tuple[Column, Column]:
    """Return both columns with a common dtype."""
    return (one, other) if one.dtype == other.dtype else (widened(one), widened(other))


def distinct(values: Column) -> Column:
    """Return the distinct values of a column in ascending order, like `np.unique`, but without its slow import."""
    ordered = np.sort(values)
    kept = np.ones(len(ordered), np.bool_)
    kept[1:] = ordered[1:] != ordered[:-1]
    return ordered[kept]


def numbered(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.signedinteger[Any]]]:
    """Return the distinct values of a column in ascending order, and the index of each row's value among them.

    >>> [column.tolist() for column in numbered(np.array([7, -2, 7]))]
    [[-2, 7], [1, 0, 1]]
    """
    low = int(codes.min(initial=0))
    span = int(codes.max(initial=-1)) + 1 - low
    if span > SPARSE * len(codes) + SPARSE * SPARSE:
        return np.unique(codes, return_inverse=True)
    values = np.flatnonzero(np.bincount(codes - low, minlength=span))
    index = np.empty(span, np.int64)
    index[values] = np.arange(len(values))
    return values + low, index[codes - low]


def counted(codes: NDArray[np.int64]) -> tuple[NDArray[np.signedinteger[Any]], NDArray[np.signedinteger[Any]]]:
    """Return the distinct values of a column without negative values, in ascending order, and the number of rows with each.

    >>> [column.tolist() for column in counted(np.array([7, 2, 7]))]
    [[2, 7], [1, 2]]
    """
    if int(codes.max(initial=-1)) + 1 > SPARSE * len(codes) + SPARSE * SPARSE:
        return np.unique(codes, return_counts=True)
    counts = np.bincount(codes)
    values = np.flatnonzero(counts)
    return values, counts[values]


def order(numbers: NDArray[Any]) -> NDArray[np.signedinteger[Any]]:
    """Return the stable sorting order of a column without negative numbers.

    It is a radix sort by digits of 16 bits, whose speed is independent of the order, unlike `np.argsort` for wider numbers.

    >>> order(np.array([70_000, 2, 1, 2])).tolist()
    [2, 1, 3, 0]
    """
    rows = np.argsort(numbers.astype(np.uint16), kind="stable")
    for shift in range(16, int(numbers.max(initial=0)).bit_length(), 16):
        rows = rows[np.argsort((numbers[rows] >> shift).astype(np.uint16), kind="stable")]
    return rows


def magnitude(values: Column | int) -> int:
    """Return the maximum absolute value; 0 for an empty column."""
    if isinstance(values, int):
        return abs(values)
    if not len(values):
        return 0
    return max(int(values.max()), -int(values.min()))


def add(one: Column, other: Column | int) -> Column:
    """Return the sum of two columns by row, or of a column and a number."""
    narrow = one.dtype != object and (isinstance(other, int) or other.dtype != object)
    if narrow and _bound(one) + _bound(other) <= LARGEST:
        return one + other
    return column(widened(one) + (other if isinstance(other, int) else widened(other)))


def multiply(one: Column, other: Column | int) -> Column:
    """Return the product of two columns by row, or of a column and a number."""
    narrow = one.dtype != object and (isinstance(other, int) or other.dtype != object)
    if narrow and max(_bound(one), 1) * max(_bound(other), 1) <= LARGEST:
        return one * other
    return column(widened(one) * (other if isinstance(other, int) else widened(other)))


def total(values: Column) -> int:
    """Return the sum of a column.

    >>> total(column([2**62] * 3)) == 3 * 2**62
    True
    """
    if values.dtype == object:
        return sum(values.tolist())
    if _fits(values):
        return int(values.sum())
    high, low = values >> 32, values & 0xFFFFFFFF  # sums of 2**31 such halves fit an int64
    return (int(high.sum()) << 32) + int(low.sum())


def running_total(values: Column) -> Column:
    """Return the cumulative sums."""
    if values.dtype != object and _fits(values):
        return np.cumsum(values)
    return column(np.cumsum(widened(values)))


def group_totals(values: Column, firsts: NDArray[Any]) -> Column:
    """Return the sum of each group of rows; `firsts`: first row of each group, ascending."""
    if not len(firsts):
        return np.empty(0, np.int64)
    if values.dtype != object and _fits(values):
        return np.add.reduceat(values, firsts)
    return column(np.add.reduceat(widened(values), firsts))


def totals(values: Column, number: NDArray[Any], count: int) -> list[int]:
    """Return the sum of the values with each number below `count`."""
    sums = np.zeros(count, np.int64 if values.dtype != object and _fits(values) else object)
    np.add.at(sums, number, values if sums.dtype != object else widened(values))
    return [int(sum_) for sum_ in sums.tolist()]


def covered(start: Column, end: Column) -> int:
    """Return the time (fs) during which at least one interval is open; both columns have the same dtype."""
    if not len(start):
        return 0
    if (end[:-1] <= start[1:]).all():  # without overlap, like the ops of a queue
        return total(end - start)
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reached = np.maximum.accumulate(end)
    uncovered = np.maximum(start[1:], reached[:-1])
    return int(end[0] - start[0]) + total(np.maximum(end[1:] - uncovered, 0))


def _fits(values: Column) -> bool:
    """Whether all partial sums of an int64 column are known to fit in an int64."""
    return _bound(values) * len(values) <= LARGEST


def _bound(values: Column | int) -> int:
    """An upper bound of the absolute values of an int64 column, less than twice the maximum; one pass if none is negative."""
    if isinstance(values, int):
        return abs(values)
    bits = int(np.bitwise_or.reduce(values))
    return bits if bits >= 0 else magnitude(values)
