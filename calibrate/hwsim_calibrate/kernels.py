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

from hwsim_calibrate.calls import REDUCTIONS, TWO, amounts_of, call_from, result_of
from hwsim_calibrate.case import CannotMeasure, Case
from hwsim_calibrate.clocks import Call
from hwsim_calibrate.store import Amounts, Param
from hwsim_calibrate.suites.arrays import DTYPES, Array, blank, indices, numbers

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


def _elementwise(words: Words) -> Call:
    """A ufunc: one operand or two, into a new array, a given one, or in place."""
    op, into = words.op, words.word("into", "new", "new", "out", "self")
    function: Any = getattr(np, op)
    first = _first(words)
    operands = (first, *(_second(words, first) if op in TWO else ()))
    if into != "new":
        to = blank(result_of(op, words.dtype) or words.dtype, *first.shape) if into == "out" else first
        return lambda: function(*operands, out=to)
    if len(operands) == 1:  # called without unpacking a tuple, as in a program
        return lambda: function(first)
    left, right = operands
    return lambda: function(left, right)


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


def _reduction(words: Words) -> Call:
    """An array to a number, or to one per row or column; `method`: as `a.sum(1, keepdims=True)`, which goes through Python."""
    op, axis = words.op, {"none": None, "0": 0, "1": 1}[words.word("axis", "none")]
    array, function = numbers(words.dtype, *words.shape), getattr(np, op)
    if words.params.get("method"):
        method: Any = getattr(array, op)
        return (lambda: method(axis)) if op in ("cumsum", "cumprod") else lambda: method(axis, keepdims=True)
    return lambda: function(array, axis)


def _product(words: Words) -> Call:
    """(m x k) by (k x n), `batch` times; shape is [m, k, n]."""
    (m, k, n), dtype, batch = words.shape, words.dtype, words.whole("batch") if "batch" in words.params else 1
    turned, outer = words.word("transposed", "none", "none", "a", "b"), (batch,) if batch > 1 else ()
    left = numbers(dtype, *outer, k, m).swapaxes(-1, -2) if turned == "a" else numbers(dtype, *outer, m, k)
    right = numbers(dtype, *outer, n, k).swapaxes(-1, -2) if turned == "b" else numbers(dtype, *outer, k, n)
    if words.word("into", "new") == "new":
        return lambda: left @ right
    result = blank(dtype, *outer, m, n)
    return lambda: np.matmul(left, right, result)


def _view(words: Words) -> Call:
    return VIEWS[words.op](numbers("fp64", 8, 8))


def _drawn(words: Words) -> Call:
    return DRAWN[words.op](np.random.default_rng(0), words.shape, DTYPES[words.dtype])


def _copyto(words: Words) -> Call:
    """From another type (`source`), from a transposed array (`layout: columns`), or into rows with gaps (`strided`)."""
    shape, dtype, layout = words.shape, words.dtype, words.word("layout", "flat")
    source = words.word("source", dtype)
    given = numbers(source, *shape[::-1]).T if layout == "columns" else numbers(source, *shape)
    to = blank(dtype, *shape[:-1], shape[-1] + 2)[..., 1:-1] if layout == "strided" else blank(dtype, *shape)
    return lambda: np.copyto(to, given, casting="unsafe")


def _copy(words: Words) -> Call:
    return numbers(words.dtype, *words.shape).copy


def _astype(words: Words) -> Call:
    given, to = numbers(words.word("source", "fp32"), *words.shape), DTYPES[words.dtype]
    return lambda: given.astype(to)


def _fill(words: Words) -> Call:
    to = blank(words.dtype, *words.shape)
    return lambda: to.fill(1)


def _take(words: Words) -> Call:
    """Elements of a flat array of `n`, at `index` random places."""
    count, n = words.whole("index"), words.whole("n")
    table, at, to = numbers(words.dtype, n), indices(count, n), blank(words.dtype, count)
    return lambda: np.take(table, at, out=to, mode="clip")


def _takerows(words: Words) -> Call:
    """Rows of an array by a random index: a[i]."""
    rows, columns = words.shape
    table, at = numbers(words.dtype, rows, columns), indices(words.whole("index"), rows)
    return lambda: table[at]


def _sort(words: Words) -> Call:
    """Sorted along the last axis: from a copy each time, because sorting a sorted array takes another time."""
    function: Callable[[Array], Any] = np.argsort if words.op == "argsort" else np.sort
    drawn = np.random.default_rng(1).random(words.shape).astype(DTYPES[words.dtype])
    return lambda: function(drawn)


def _window(words: Words) -> Call:
    """im2col: every side x side window of an image of channels x height x width, copied out."""
    (channels, height, wide, side), dtype = words.shape, words.word("dtype", "fp32")
    image = numbers(dtype, channels, height, wide)
    windows = np.lib.stride_tricks.sliding_window_view(image, (side, side), (1, 2)).transpose(0, 3, 4, 1, 2)
    to = blank(dtype, *windows.shape)
    return lambda: np.copyto(to, windows)


def _concatenate(words: Words) -> Call:
    parts = [numbers(words.dtype, *words.shape) for _ in range(2)]
    return lambda: np.concatenate(parts)


def _mixed(words: Words) -> Call:
    return mixed_step(words.whole("side"))


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
KERNELS: Final[Mapping[str, Callable[[Words], Call]]] = {
    **dict.fromkeys((*ONE, *TWO), _elementwise),
    **dict.fromkeys((op for op in REDUCTIONS if hasattr(np, op)), _reduction),
    **dict.fromkeys(VIEWS, _view),
    **dict.fromkeys(DRAWN, _drawn),
    **dict.fromkeys(("sort", "argsort"), _sort),
    "astype": _astype, "concatenate": _concatenate, "copy": _copy, "copyto": _copyto, "fill": _fill,
    "matmul": _product, "mixed": _mixed, "take": _take, "takerows": _takerows, "window": _window,
}  # fmt: skip


def kernel_case(op: str, params: Params, suite: str = "kernels", *, brief: bool = False) -> Case:
    """The case of one call; brief: timed for a third as long, where it is one of many alike.

    Raises:
        CannotMeasure: no such op, or params that it does not take; of some not before it is prepared.
    """
    if op not in KERNELS:
        raise CannotMeasure(f"no kernel is called '{op}'")
    if (dtype := str(params.get("dtype", "fp64"))) not in DTYPES:
        raise CannotMeasure(f"{op}: numpy has no {dtype}")

    def tried(function: Callable[[], Any]) -> Any:
        try:
            return function()
        except (KeyError, TypeError, ValueError) as error:
            raise CannotMeasure(f"{op}: {error!r} among {dict(params)}") from error

    call, samples, seconds = tried(lambda: call_from(op, params)), *((3, 6e-4) if brief else (4, 1.5e-3))
    return Case(
        suite, op, dict(params), amounts_of(call) if call else Amounts(), lambda _: tried(lambda: KERNELS[op](Words(op, params))),
        samples=samples, seconds=seconds,
    )  # fmt: skip
