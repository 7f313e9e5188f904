"""Numpy calls by name: turn an op and its params (see `suites`) into a call that can be timed.

The suite `kernels` and the ops of one workload (`--for`) use the same table.
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
    "normal": lambda _, shape, __: lambda: np.random.normal(size=shape),  # noqa: NPY002 (legacy programs use it, in fp64 only)
    "permutation": lambda draw, shape, _: lambda: draw.permutation(shape[0]),
    "random": lambda draw, shape, dtype: lambda: draw.random(shape, dtype),
    "standard_normal": lambda draw, shape, dtype: lambda: draw.standard_normal(shape, dtype),
    "uniform": lambda _, shape, __: lambda: np.random.uniform(size=shape),  # noqa: NPY002 (legacy programs use it)
}
UNIT_RANGE: Final = ("arccos", "arcsin", "arctanh")
TRIGONOMETRIC: Final = ("cos", "sin", "tan")


@dataclass(frozen=True, slots=True)
class CallParams:
    """The params of a call, with checks.

    Args:
        op: the numpy function.
        params: see `suites`.
    """

    op: str
    params: Params

    @property
    def shape(self) -> tuple[int, ...]:
        """`shape`, or `n` as a single axis.

        >>> CallParams("add", {"n": 8}).shape, CallParams("add", {"shape": (2, 3)}).shape
        ((8,), (2, 3))
        """
        value = self.params["shape"] if "shape" in self.params else (self.params["n"],)
        shape = tuple(size for size in value if isinstance(size, int) and size > 0) if isinstance(value, tuple) else ()
        if not shape or shape != value:
            raise ValueError(f"'{value}' is not a shape")
        return shape

    @property
    def count(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> str:
        """Number format; default: fp64."""
        return self.word("dtype", "fp64")

    def word(self, key: str, default: str, *accepted: str) -> str:
        """Return a text param."""
        value = str(self.params.get(key, default))
        if accepted and value not in accepted:
            raise ValueError(f"{key} '{value}'")
        return value

    def whole(self, key: str) -> int:
        """Return a param that is a positive integer."""
        value = self.params[key]
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"`{key}` is not a positive integer")
        return value


def _elementwise(params: CallParams) -> Call:
    op, into = params.op, params.word("into", "new", "new", "out", "self")
    function: Any = getattr(np, op)
    first = _first(params)
    operands = (first, *(_second(params, first) if op in TWO else ()))
    if into != "new":
        to = blank(result_of(op, params.dtype) or params.dtype, *first.shape) if into == "out" else first
        return lambda: function(*operands, out=to)
    if len(operands) == 1:  # a plain call as in a program, without unpacking a tuple
        return lambda: function(first)
    left, right = operands
    return lambda: function(left, right)


def _first(params: CallParams) -> Array:
    shape, layout = params.shape, params.word("layout", "flat")
    if params.op in UNIT_RANGE:  # arguments beyond 1 give NaN by a different code path
        return np.asarray(numbers(params.dtype, *shape) * DTYPES[params.dtype](0.6))
    if params.op in TRIGONOMETRIC:  # several periods, because angles within one period are reduced faster
        return np.asarray(numbers(params.dtype, *shape) * DTYPES[params.dtype](6))
    if layout == "strided":  # like a[:, 1:-1]: a gap after each row
        return numbers(params.dtype, *shape[:-1], shape[-1] + 2)[..., 1:-1]
    return numbers(params.dtype, *shape[::-1]).T if layout == "columns" else numbers(params.dtype, *shape)


def _second(params: CallParams, first: Array) -> tuple[Any]:
    """Return the second operand. Repeated in-place calls must not reach infinity or (slow) denormal numbers."""
    kind, in_place = params.word("other", "array"), params.word("into", "new") == "self"
    if kind == "scalar":
        return (DTYPES[params.dtype](1.0 if in_place else 1.5),)
    if kind == "same":
        return (first,)
    if kind == "mask":
        return (numbers(params.dtype, *first.shape) > 1,)
    shapes = {"array": first.shape, "row": first.shape[-1:], "column": (first.shape[0], *([1] * (first.ndim - 1)))}
    operand = numbers(params.dtype, *shapes[kind])
    if in_place:
        operand.fill(1)
    return (operand,)


def _reduction(params: CallParams) -> Call:
    """Build a reduction; `method`: a call like `a.sum(1, keepdims=True)`, which is implemented in Python."""
    op, axis = params.op, {"none": None, "0": 0, "1": 1}[params.word("axis", "none")]
    array, function = numbers(params.dtype, *params.shape), getattr(np, op)
    if params.params.get("method"):
        method: Any = getattr(array, op)
        return (lambda: method(axis)) if op in ("cumsum", "cumprod") else lambda: method(axis, keepdims=True)
    return lambda: function(array, axis)


def _product(params: CallParams) -> Call:
    (m, k, n), dtype, batch = params.shape, params.dtype, params.whole("batch") if "batch" in params.params else 1
    turned, outer = params.word("transposed", "none", "none", "a", "b"), (batch,) if batch > 1 else ()
    left = numbers(dtype, *outer, k, m).swapaxes(-1, -2) if turned == "a" else numbers(dtype, *outer, m, k)
    right = numbers(dtype, *outer, n, k).swapaxes(-1, -2) if turned == "b" else numbers(dtype, *outer, k, n)
    if params.word("into", "new") == "new":
        return lambda: left @ right
    result = blank(dtype, *outer, m, n)
    return lambda: np.matmul(left, right, result)


def _view(params: CallParams) -> Call:
    return VIEWS[params.op](numbers("fp64", 8, 8))


def _drawn(params: CallParams) -> Call:
    return DRAWN[params.op](np.random.default_rng(0), params.shape, DTYPES[params.dtype])


def _copyto(params: CallParams) -> Call:
    """Build a copy from another format (`source`), from a transposed array (`columns`), or into rows with gaps (`strided`)."""
    shape, dtype, layout = params.shape, params.dtype, params.word("layout", "flat")
    source = params.word("source", dtype)
    given = numbers(source, *shape[::-1]).T if layout == "columns" else numbers(source, *shape)
    to = blank(dtype, *shape[:-1], shape[-1] + 2)[..., 1:-1] if layout == "strided" else blank(dtype, *shape)
    return lambda: np.copyto(to, given, casting="unsafe")


def _copy(params: CallParams) -> Call:
    return numbers(params.dtype, *params.shape).copy


def _astype(params: CallParams) -> Call:
    given, to = numbers(params.word("source", "fp32"), *params.shape), DTYPES[params.dtype]
    return lambda: given.astype(to)


def _fill(params: CallParams) -> Call:
    to = blank(params.dtype, *params.shape)
    return lambda: to.fill(1)


def _take(params: CallParams) -> Call:
    count, n = params.whole("index"), params.whole("n")
    table, index, to = numbers(params.dtype, n), indices(count, n), blank(params.dtype, count)
    return lambda: np.take(table, index, out=to, mode="clip")


def _takerows(params: CallParams) -> Call:
    rows, columns = params.shape
    table, index = numbers(params.dtype, rows, columns), indices(params.whole("index"), rows)
    return lambda: table[index]


def _sort(params: CallParams) -> Call:
    """Build a sort along the last axis of a copy, because a sorted array would take a different time."""
    function: Callable[[Array], Any] = np.argsort if params.op == "argsort" else np.sort
    drawn = np.random.default_rng(1).random(params.shape).astype(DTYPES[params.dtype])
    return lambda: function(drawn)


def _window(params: CallParams) -> Call:
    """Build im2col: copy every side x side window of a channels x height x width image."""
    (channels, height, wide, side), dtype = params.shape, params.word("dtype", "fp32")
    image = numbers(dtype, channels, height, wide)
    windows = np.lib.stride_tricks.sliding_window_view(image, (side, side), (1, 2)).transpose(0, 3, 4, 1, 2)
    to = blank(dtype, *windows.shape)
    return lambda: np.copyto(to, windows)


def _concatenate(params: CallParams) -> Call:
    parts = [numbers(params.dtype, *params.shape) for _ in range(2)]
    return lambda: np.concatenate(parts)


def _mixed(params: CallParams) -> Call:
    return mixed_step(params.whole("side"))


def mixed_step(side: int) -> Call:
    """Return a step of 20 different small calls on square arrays, as in a program.

    Other calls evict the code and the branch history of each call, so it takes longer than in a loop of identical calls. The fit
    determines this slowdown (`kernels.among_others`).
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


# Op -> function that prepares its call. To add an op, add a function and a line here.
KERNELS: Final[Mapping[str, Callable[[CallParams], Call]]] = {
    **dict.fromkeys((*ONE, *TWO), _elementwise),
    **dict.fromkeys((op for op in REDUCTIONS if hasattr(np, op)), _reduction),
    **dict.fromkeys(VIEWS, _view),
    **dict.fromkeys(DRAWN, _drawn),
    **dict.fromkeys(("sort", "argsort"), _sort),
    "astype": _astype, "concatenate": _concatenate, "copy": _copy, "copyto": _copyto, "fill": _fill,
    "matmul": _product, "mixed": _mixed, "take": _take, "takerows": _takerows, "window": _window,
}  # fmt: skip


def kernel_case(op: str, params: Params, suite: str = "kernels", *, brief: bool = False) -> Case:
    """Return the case of one call.

    Args:
        op: the numpy function.
        params: see `suites`.
        suite: name of the suite.
        brief: whether samples take only 0.6 ms, because many similar cases are measured.

    Raises:
        CannotMeasure: The op does not exist. Invalid params are detected here or when the case is prepared.
    """
    if op not in KERNELS:
        raise CannotMeasure(f"there is no kernel '{op}'")
    if (dtype := str(params.get("dtype", "fp64"))) not in DTYPES:
        raise CannotMeasure(f"{op}: numpy has no number format {dtype}")

    def checked(function: Callable[[], Any]) -> Any:
        try:
            return function()
        except (KeyError, TypeError, ValueError) as error:
            raise CannotMeasure(f"{op}: {error!r} in {dict(params)}") from error

    call, samples, seconds = checked(lambda: call_from(op, params)), *((3, 6e-4) if brief else (4, 1.5e-3))
    return Case(
        suite, op, dict(params), amounts_of(call) if call else Amounts(),
        lambda _: checked(lambda: KERNELS[op](CallParams(op, params))), samples=samples, seconds=seconds,
    )  # fmt: skip
