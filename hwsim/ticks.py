"""Exact arithmetic on femtoseconds and bytes, single and in columns; times that are too long are refused.

A column is int64 if all its values fit, else Python integers (dtype object). Equal values have equal dtypes, so the dtype
decides speed and nothing else. Nothing here wraps, and a time is rounded once, when it is made of seconds.

Rule: other modules index, compare, sort and subtract columns, and take their largest and smallest values; no such operation
leaves an int64 while every time is -1 or more. They make, add up, multiply and accumulate columns only through this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

FEMTO: Final = 10**15  # fs in a second
LONGEST: Final = 10**24  # fs: the longest time that is accepted
LONGEST_TEXT: Final = "1e9 s (31.7 years)"
SPARSE: Final = 16  # values for each row of a column, beyond which sorting them is faster than counting
LARGEST: Final = 2**63 - 1  # the largest value of an int64: 2.56 h in fs, 9.22 EB

_LONGEST: Final = float(LONGEST)  # a float is compared with a float three times as fast as with an integer

Column: TypeAlias = NDArray[Any]  # of int64 or of Python integers


class TooLong(ValueError):
    """A time above `LONGEST`, or not a number.

    op: the name of the op that takes it, if known.
    """

    def __init__(self, seconds: float, op: str = "") -> None:
        self.seconds, self.op = seconds, op
        self.message = f"'{op}' takes {seconds:.4g} s, which is too long" if op else f"a time of {seconds:.4g} s is too long"
        self.hint = f"times go up to {LONGEST_TEXT}"
        super().__init__(seconds, op)  # SimPy makes an error of a process anew, from its arguments

    def __str__(self) -> str:
        return f"{self.message}: {self.hint}"


def femtoseconds(seconds: float) -> int:
    """Femtoseconds in a time, rounded to the nearest.

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
    """A column of times that are whole numbers of femtoseconds already, none negative.

    Raises:
        TooLong: more than `LONGEST`, infinite or not a number.
    """
    most = float(times.max(initial=0.0))
    if not most <= _LONGEST:
        raise TooLong(most / FEMTO)
    return times.astype(np.int64) if most < 2.0**63 else column([int(time_) for time_ in times.tolist()])


def column(values: Iterable[int] | NDArray[Any]) -> Column:
    """A column of integers.

    >>> column([1, 2]).dtype, column([1, 2**63]).dtype
    (dtype('int64'), dtype('O'))
    """
    if isinstance(values, np.ndarray):
        if values.dtype.kind == "i":
            return values.astype(np.int64, copy=False)
        if values.dtype != object:
            raise TypeError(f"a column holds integers, not {values.dtype}")
        values = values.tolist()
    rows = values if isinstance(values, Sequence) else list(values)
    try:
        return np.fromiter(rows, np.int64, len(rows))
    except OverflowError:
        return np.array([int(row) for row in rows], object)


def widened(values: Column) -> Column:
    """The same values as Python integers."""
    return values if values.dtype == object else values.astype(object)


def matching(values: Iterable[int] | NDArray[Any], *columns: Column) -> Column:
    """A column that can be compared and joined with these: of Python integers if one of them is."""
    made = column(values)
    return widened(made) if any(each.dtype == object for each in columns) else made


def alike(one: Column, other: Column) -> tuple[Column, Column]:
    """Both columns with one dtype."""
    return (one, other) if one.dtype == other.dtype else (widened(one), widened(other))


def distinct(values: Column) -> Column:
    """The different values of a column, ascending: `np.unique` without its import of masked arrays, a tenth of a small run."""
    ordered = np.sort(values)
    kept = np.ones(len(ordered), np.bool_)
    kept[1:] = ordered[1:] != ordered[:-1]
    return ordered[kept]


def numbered(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.signedinteger[Any]]]:
    """The different values of a column, ascending, and the place of each row's value among them.

    >>> [column.tolist() for column in numbered(np.array([7, -2, 7]))]
    [[-2, 7], [1, 0, 1]]
    """
    low = int(codes.min(initial=0))
    span = int(codes.max(initial=-1)) + 1 - low
    if span > SPARSE * len(codes) + SPARSE * SPARSE:
        return np.unique(codes, return_inverse=True)
    values = np.flatnonzero(np.bincount(codes - low, minlength=span))
    place = np.empty(span, np.int64)
    place[values] = np.arange(len(values))
    return values + low, place[codes - low]


def counted(codes: NDArray[np.int64]) -> tuple[NDArray[np.signedinteger[Any]], NDArray[np.signedinteger[Any]]]:
    """The different values of a column, none negative, ascending, and the number of rows with each.

    >>> [column.tolist() for column in counted(np.array([7, 2, 7]))]
    [[2, 7], [1, 2]]
    """
    if int(codes.max(initial=-1)) + 1 > SPARSE * len(codes) + SPARSE * SPARSE:
        return np.unique(codes, return_counts=True)
    many = np.bincount(codes)
    values = np.flatnonzero(many)
    return values, many[values]


def order(numbers: NDArray[Any]) -> NDArray[np.signedinteger[Any]]:
    """Places of small numbers, none negative, in ascending order; equal ones stay as they are.

    Stable and by digits of 16 bits, which is as fast for any order: `np.argsort` is so for no wider numbers.

    >>> order(np.array([70_000, 2, 1, 2])).tolist()
    [2, 1, 3, 0]
    """
    places = np.argsort(numbers.astype(np.uint16), kind="stable")
    for shift in range(16, int(numbers.max(initial=0)).bit_length(), 16):
        places = places[np.argsort((numbers[places] >> shift).astype(np.uint16), kind="stable")]
    return places


def magnitude(values: Column | int) -> int:
    """The largest absolute value; 0 of an empty column."""
    if isinstance(values, int):
        return abs(values)
    if not len(values):
        return 0
    return max(int(values.max()), -int(values.min()))


def add(one: Column, other: Column | int) -> Column:
    """The sum of two columns, row by row, or of a column and a number."""
    narrow = one.dtype != object and (isinstance(other, int) or other.dtype != object)
    if narrow and _bound(one) + _bound(other) <= LARGEST:
        return one + other
    return column(widened(one) + (other if isinstance(other, int) else widened(other)))


def multiply(one: Column, other: Column | int) -> Column:
    """The product of two columns, row by row, or of a column and a number."""
    narrow = one.dtype != object and (isinstance(other, int) or other.dtype != object)
    if narrow and max(_bound(one), 1) * max(_bound(other), 1) <= LARGEST:
        return one * other
    return column(widened(one) * (other if isinstance(other, int) else widened(other)))


def total(values: Column) -> int:
    """The sum of a column.

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
    """The sum of the first 1, 2, ... values."""
    if values.dtype != object and _fits(values):
        return np.cumsum(values)
    return column(np.cumsum(widened(values)))


def group_totals(values: Column, firsts: NDArray[Any]) -> Column:
    """The sum of each group of rows.

    firsts: the row each group begins with, ascending.
    """
    if not len(firsts):
        return np.empty(0, np.int64)
    if values.dtype != object and _fits(values):
        return np.add.reduceat(values, firsts)
    return column(np.add.reduceat(widened(values), firsts))


def totals(values: Column, number: NDArray[Any], many: int) -> list[int]:
    """The sum of the values of each number below `many`."""
    sums = np.zeros(many, np.int64 if values.dtype != object and _fits(values) else object)
    np.add.at(sums, number, values if sums.dtype != object else widened(values))
    return [int(sum_) for sum_ in sums.tolist()]


def covered(start: Column, end: Column) -> int:
    """Femtoseconds during which at least one interval is open; all columns have one dtype."""
    if not len(start):
        return 0
    if (end[:-1] <= start[1:]).all():  # one after another, as the ops of a queue
        return total(end - start)
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reached = np.maximum.accumulate(end)
    fresh = np.maximum(start[1:], reached[:-1])
    return int(end[0] - start[0]) + total(np.maximum(end[1:] - fresh, 0))


def _fits(values: Column) -> bool:
    """Whether it is sure that no partial sum of an int64 column leaves an int64."""
    return _bound(values) * len(values) <= LARGEST


def _bound(values: Column | int) -> int:
    """A number that no absolute value of an int64 column exceeds; less than twice the largest. One pass if none is negative."""
    if isinstance(values, int):
        return abs(values)
    bits = int(np.bitwise_or.reduce(values))
    return bits if bits >= 0 else magnitude(values)
