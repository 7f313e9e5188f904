"""Calls of numpy by name: an op and its params, in the words of `suites`, become a call that can be timed.

The same table serves the grid of the suite `kernels` and the ops of one workload (`--for`): a call is timed alone, as a program
makes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hwsim_calibrate.calls import REDUCTIONS, TWO, result_of
from hwsim_calibrate.case import CannotMeasure, Case
from hwsim_calibrate.clocks import Call
from hwsim_calibrate.store import Amounts, Param
from hwsim_calibrate.suites.arrays import DTYPES, Array, blank, indices, numbers, width

Params = Mapping[str, Param]
ONE: Final = (
    "absolute", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "ceil", "conjugate", "cos", "cosh",
    "deg2rad", "degrees", "exp", "exp2", "expm1", "fabs", "floor", "invert", "isfinite", "isinf", "isnan", "log", "log10",
    "log1p", "log2",
    "logical_not", "negative", "positive", "rad2deg", "radians", "reciprocal", "rint", "sign", "signbit", "sin", "sinh", "sqrt",
    "square", "tan", "tanh", "trunc",
)  # fmt: skip
VIEWS: Final[Mapping[str, Callable[[Array], Call]]] = {
    "pass": lambda _: lambda: None,
    "reshape": lambda array: lambda: array.reshape(4, 16),
    "slice": lambda array: lambda: array[1:-1, :-2],
    "transpose": lambda array: lambda: array.T,
}
DRAWN: Final[Mapping[str, Callable[[np.random.Generator, tuple[int, ...], Any], Call]]] = {
    "integers": lambda draw, shape, _: lambda: draw.integers(0, 1000, shape),
    "normal": lambda _, shape, __: lambda: np.random.normal(size=shape),  # noqa: NPY002 (as older programs draw, in fp64 alone)
    "permutation": lambda draw, shape, _: lambda: draw.permutation(shape[0]),
    "random": lambda draw, shape, dtype: lambda: draw.random(shape, dtype),
    "standard_normal": lambda draw, shape, dtype: lambda: draw.standard_normal(shape, dtype),
    "uniform": lambda _, shape, __: lambda: np.random.uniform(size=shape),  # noqa: NPY002 (as older programs draw)
}
WITHIN: Final = ("arccos", "arcsin", "arctanh")
TURNING: Final = ("cos", "sin", "tan")
INDEX: Final = 8  # bytes of an index


@dataclass(frozen=True, slots=True)
class Words:
    """The params of a call, read and checked."""

    op: str
    params: Params

    @property
    def shape(self) -> tuple[int, ...]:
        """`shape`, or `n` as one axis.

        >>> Words("add", {"n": 8}).shape, Words("add", {"shape": (2, 3)}).shape
        ((8,), (2, 3))
        """
        value = self.params["shape"] if "shape" in self.params else (self.params["n"],)
        shape = tuple(each for each in value if isinstance(each, int) and each > 0) if isinstance(value, tuple) else ()
        if not shape or shape != value:
            raise ValueError(f"'{value}' is no shape")
        return shape

    @property
    def count(self) -> int:
        """Elements of the array."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> str:
        """Number format; fp64 if not given."""
        return self.word("dtype", "fp64")

    @property
    def size(self) -> float:
        """Bytes of the array."""
        return float(self.count * width(self.dtype))

    def word(self, key: str, otherwise: str, *accepted: str) -> str:
        """A word, or `otherwise` if it is not given."""
        value = str(self.params.get(key, otherwise))
        if accepted and value not in accepted:
            raise ValueError(f"{key} '{value}'")
        return value

    def whole(self, key: str) -> int:
        """A whole number above 0."""
        value = self.params[key]
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"`{key}` is no number from 1 on")
        return value


Kernel = tuple[Amounts, Callable[[], Call]]  # what one call does, and how it is prepared


def _elementwise(words: Words) -> Kernel:
    """A ufunc: one operand or two, into a new array, a given one, or in place."""
    op, count, size = words.op, words.count, width(words.dtype)
    into = words.word("into", "new", "new", "out", "self")
    operand = words.word("other", "array") if op in TWO else ""
    second = {"array": count, "row": words.shape[-1], "column": words.shape[0], "mask": count / size}.get(operand, 0)
    result = result_of(op, words.dtype) or words.dtype

    def call() -> Call:
        function: Any = getattr(np, op)
        first = _first(words)
        operands = (first, *(_second(words, first) if operand else ()))
        if into != "new":
            to = blank(result, *first.shape) if into == "out" else first
            return lambda: function(*operands, out=to)
        if len(operands) == 1:  # called without unpacking a tuple, as in a program
            return lambda: function(first)
        left, right = operands
        return lambda: function(left, right)

    return Amounts(count, (count + second) * size, count * width(result)), call


def _first(words: Words) -> Array:
    shape, layout = words.shape, words.word("layout", "flat")
    if words.op in WITHIN:  # beyond 1 there is no result, and that takes another way
        return np.asarray(numbers(words.dtype, *shape) * DTYPES[words.dtype](0.6))
    if words.op in TURNING:  # over several turns: an angle within one is found faster
        return np.asarray(numbers(words.dtype, *shape) * DTYPES[words.dtype](6))
    if layout == "strided":  # as a[:, 1:-1]: a gap behind every row
        return numbers(words.dtype, *shape[:-1], shape[-1] + 2)[..., 1:-1]
    return numbers(words.dtype, *shape[::-1]).T if layout == "columns" else numbers(words.dtype, *shape)


def _second(words: Words, first: Array) -> tuple[Any]:
    """The second operand; repeated in place it must not run into infinity or, which is slow, into denormal numbers."""
    kind, in_place = words.word("other", "array"), words.word("into", "new") == "self"
    if kind == "scalar":
        return (DTYPES[words.dtype](1.0 if in_place else 1.5),)
    if kind == "same":
        return (first,)
    if kind == "mask":
        return (numbers(words.dtype, *first.shape) > 1,)
    shapes = {"array": first.shape, "row": first.shape[-1:], "column": (first.shape[0], *([1] * (first.ndim - 1)))}
    operand = numbers(words.dtype, *shapes[kind])
    if in_place:
        operand.fill(1)
    return (operand,)


def _reduction(words: Words) -> Kernel:
    """An array to a number, or to one per row or column; `method`: as `a.sum(1, keepdims=True)`, which goes through Python."""
    op, shape = words.op, words.shape
    axis = {"none": None, "0": 0, "1": 1}[words.word("axis", "none")]
    if axis is not None and axis >= len(shape):
        raise ValueError(f"axis {axis} of {len(shape)}")
    results = words.count if op == "cumsum" else 1 if axis is None else words.count // shape[axis]

    def call() -> Call:
        array, function = numbers(words.dtype, *shape), getattr(np, op)
        if words.params.get("method"):
            method: Any = getattr(array, op)
            return (lambda: method(axis)) if op in ("cumsum", "cumprod") else lambda: method(axis, keepdims=True)
        return lambda: function(array, axis)

    return Amounts(words.count, words.size, results * width("int64" if op in ("argmax", "argmin") else words.dtype)), call


def _product(words: Words) -> Kernel:
    """(m x k) by (k x n), `batch` times; shape is [m, k, n]."""
    (m, k, n), dtype, batch = words.shape, words.dtype, words.whole("batch") if "batch" in words.params else 1
    turned = words.word("transposed", "none", "none", "a", "b")
    outer, size = (batch,) if batch > 1 else (), width(dtype)

    def call() -> Call:
        left = numbers(dtype, *outer, k, m).swapaxes(-1, -2) if turned == "a" else numbers(dtype, *outer, m, k)
        right = numbers(dtype, *outer, n, k).swapaxes(-1, -2) if turned == "b" else numbers(dtype, *outer, k, n)
        if words.word("into", "new") == "new":
            return lambda: left @ right
        result = blank(dtype, *outer, m, n)
        return lambda: np.matmul(left, right, result)

    return Amounts(2.0 * m * k * n * batch, float((m * k + k * n) * batch * size), float(m * n * batch * size)), call


def _view(words: Words) -> Kernel:
    return Amounts(), lambda: VIEWS[words.op](numbers("fp64", 8, 8))


def _drawn(words: Words) -> Kernel:
    size = words.count * (8.0 if words.op in ("normal", "uniform") else width(words.dtype))
    return Amounts(words.count, 0, size), lambda: DRAWN[words.op](np.random.default_rng(0), words.shape, DTYPES[words.dtype])


def _copyto(words: Words) -> Kernel:
    """From another type (`source`), from a transposed array (`layout: columns`), or into rows with gaps (`strided`)."""
    shape, dtype, layout = words.shape, words.dtype, words.word("layout", "flat")
    source = words.word("source", dtype)

    def call() -> Call:
        given = numbers(source, *shape[::-1]).T if layout == "columns" else numbers(source, *shape)
        to = blank(dtype, *shape[:-1], shape[-1] + 2)[..., 1:-1] if layout == "strided" else blank(dtype, *shape)
        return lambda: np.copyto(to, given, casting="unsafe")

    return Amounts(0, words.count * width(source), words.size), call


def _copy(words: Words) -> Kernel:
    return Amounts(0, words.size, words.size), lambda: numbers(words.dtype, *words.shape).copy


def _astype(words: Words) -> Kernel:
    source, to = words.word("source", "fp32"), DTYPES[words.dtype]
    work = Amounts(0, words.count * width(source), words.size)

    def call() -> Call:
        given = numbers(source, *words.shape)
        return lambda: given.astype(to)

    return work, call


def _fill(words: Words) -> Kernel:
    def call() -> Call:
        to = blank(words.dtype, *words.shape)
        return lambda: to.fill(1)

    return Amounts(0, 0, words.size), call


def _take(words: Words) -> Kernel:
    """Elements of a flat array of `n`, at `index` random places."""
    count, dtype, n = words.whole("index"), words.dtype, words.whole("n")

    def call() -> Call:
        table, at, to = numbers(dtype, n), indices(count, n), blank(dtype, count)
        return lambda: np.take(table, at, out=to, mode="clip")

    return Amounts(0, count * (width(dtype) + INDEX), count * width(dtype)), call


def _takerows(words: Words) -> Kernel:
    """Rows of an array by a random index: a[i]."""
    (rows, columns), count, dtype = words.shape, words.whole("index"), words.dtype
    size = float(count * columns * width(dtype))

    def call() -> Call:
        table, at = numbers(dtype, rows, columns), indices(count, rows)
        return lambda: table[at]

    return Amounts(0, size + count * INDEX, size), call


def _bincount(words: Words) -> Kernel:
    """Weights added up by group, `groups` of them."""
    n, groups = words.whole("n"), words.whole("groups")

    def call() -> Call:
        group, weights = indices(n, groups), numbers("fp64", n)
        return lambda: np.bincount(group, weights, groups)

    return Amounts(n, 16.0 * n, 8.0 * groups), call


def _sort(words: Words) -> Kernel:
    """Sorted along the last axis: from a copy each time, because sorting a sorted array takes another time."""
    function: Callable[[Array], Any] = np.argsort if words.op == "argsort" else np.sort

    def call() -> Call:
        drawn = np.random.default_rng(1).random(words.shape).astype(DTYPES[words.dtype])
        return lambda: function(drawn)

    return Amounts(words.count, words.size, float(words.count * INDEX) if words.op == "argsort" else words.size), call


def _window(words: Words) -> Kernel:
    """im2col: every side x side window of an image of channels x height x width, copied out."""
    (channels, height, wide, side), dtype = words.shape, words.word("dtype", "fp32")
    size = float(channels * (height - side + 1) * (wide - side + 1) * side * side * width(dtype))

    def call() -> Call:
        image = numbers(dtype, channels, height, wide)
        windows = np.lib.stride_tricks.sliding_window_view(image, (side, side), (1, 2)).transpose(0, 3, 4, 1, 2)
        to = blank(dtype, *windows.shape)
        return lambda: np.copyto(to, windows)

    return Amounts(0, size, size), call


def _concatenate(words: Words) -> Kernel:
    def call() -> Call:
        parts = [numbers(words.dtype, *words.shape) for _ in range(2)]
        return lambda: np.concatenate(parts)

    return Amounts(0, 2 * words.size, 2 * words.size), call


def _mixed(words: Words) -> Kernel:
    side = words.whole("side")
    return Amounts(calls=20.0), lambda: mixed_step(side)


def mixed_step(side: int) -> Call:
    """20 different small calls on square arrays, one after another as programs make them.

    Each call finds the code and the branches of the others in the caches, and takes longer than in a loop of its own. By how much
    is one number of the fit (`kernels.among_others`).
    """
    a, b, m = (np.full((side, side), 0.5, np.float32) for _ in range(3))
    to, row, column = (np.ones(shape, np.float32) for shape in ((side, side), side, (side, 1)))
    half, wide = np.float32(0.5), np.full((side, side), 0.5)

    def step() -> None:
        product = a @ m
        shifted = product + row
        kept = np.maximum(shifted, half)
        np.multiply(a, b, out=to)
        near = kept - kept.max(axis=1, keepdims=True)
        e = np.exp(near)
        p = e / e.sum(axis=1, keepdims=True)
        np.subtract(b, to, out=to)
        mask = p > half
        np.add(to, half, out=to)
        spread = np.sqrt(p * mask)
        total = spread.sum(axis=0)
        turned = m.T @ spread
        np.divide(turned, column, out=to)
        wide * 2.0 + wide
        np.argmin(turned, 1)
        total * half

    return step


# What prepares a call of each op. A new op is a function and a line here.
KERNELS: Final[Mapping[str, Callable[[Words], Kernel]]] = {
    **dict.fromkeys((*ONE, *TWO), _elementwise),
    **dict.fromkeys((op for op in REDUCTIONS if hasattr(np, op)), _reduction),
    **dict.fromkeys(VIEWS, _view),
    **dict.fromkeys(DRAWN, _drawn),
    **dict.fromkeys(("sort", "argsort"), _sort),
    "astype": _astype, "bincount": _bincount, "concatenate": _concatenate, "copy": _copy, "copyto": _copyto, "fill": _fill,
    "matmul": _product, "mixed": _mixed, "take": _take, "takerows": _takerows, "window": _window,
}  # fmt: skip


def kernel_case(op: str, params: Params, suite: str = "kernels", *, brief: bool = False) -> Case:
    """The case of one call; brief: timed for a third as long, where it is one of many alike.

    Raises:
        CannotMeasure: no such op, or params that it does not take.
    """
    if op not in KERNELS:
        raise CannotMeasure(f"no kernel is called '{op}'")
    try:
        work, prepare = KERNELS[op](Words(op, params))
    except (KeyError, TypeError, ValueError) as error:
        raise CannotMeasure(f"{op}: {error!r} among {dict(params)}") from error
    samples, seconds = (3, 6e-4) if brief else (4, 1.5e-3)
    return Case(suite, op, dict(params), work, lambda _: prepare(), samples=samples, seconds=seconds)
