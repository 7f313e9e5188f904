"""Ops over the elements of an array; they run on the queue `compute` of their device, and are nearly always bound by memory.

    elementwise: {device: gpu, shape: [1000, 1000], inputs: 2}
    random: {device: cpu, shape: [1000, 1000]}
    reduce: {device: gpu, count: 1e6}
    softmax: {device: gpu, shape: [4096, 1024], dtype: fp16}
    layernorm: {device: gpu, shape: [4096, 1024], dtype: fp16}

| op | flop | traffic: elements x bytes per element x |
|---|---|---|
| elementwise | elements x flop_each | inputs + 1: every input is read, the result written once |
| random | elements (one number each, at the device's efficiency for `random`) | 1 |
| reduce | elements: a sum, mean, maximum or norm | 1: the result is much smaller |
| softmax | 5 x elements: maximum, subtract, exponential, sum, divide | passes + results |
| layernorm | 8 x elements: mean, variance, normalise, scale, shift | passes + 1 |

On a CPU with measured `kernels` they take what their `function` takes there. Where none is given, an elementwise op is an
addition of two arrays, or of an array and a number. Random is then `normal`; a reduction is a `sum` of all elements.

A kernel of softmax or layernorm that holds a row near its multiprocessor reads the row once; longer rows are read twice or more
(`passes`: PyTorch's softmax does so beyond 1024 elements). Softmax without such a kernel is five ops, each reading and
writing the array: `kernels: 5, passes: 5, results: 5`. Scale and shift of a layernorm, one number a column, stay in a cache.
"""

from __future__ import annotations

import math
from typing import ClassVar, Final

from hwsim.devices import Call, Work, elementwise_call, reduce_call
from hwsim.formats import precise
from hwsim.ops.op import CalledOp, CannotPlace, Dtype, Placed, Pointwise, Scope, compute
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import BYTES

USUAL: Final = {0: ("fill", ""), 1: ("add", "scalar"), 2: ("add", "")}  # arrays read -> function and form if none is given


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayOp(CalledOp):
    """An op over the elements of an array; exactly one of count and shape."""

    count: float | None = field("number of elements", default=None, minimum=0, example="1e6")
    shape: tuple[float, ...] = field(
        "lengths of the array's axes", default=(), one_or_many=True, minimum=0, example="[2000, 2000]"
    )
    dtype: Dtype = field("type of the elements", default="fp32")
    function: str = field(
        "function of a library that it is, where those were measured on the cpu (`kernels`)", default="", example="exp"
    )
    rows: float = field("of the function: inner loops it takes", default=1.0, minimum=1)

    def called(self, inputs: int = 1, function: str = "", form: str = "", result: str = "") -> Call | None:
        """The call of the library that it is: of its own `function`, else of this one; None if it is none."""
        if not (self.function or function):
            return None
        call = elementwise_call(
            self.function or function,
            dtype=self.dtype,
            count=self.elements(),
            inputs=inputs,
            form=self.form or ("" if self.function else form),
            rows=self.rows,
            into=self.into,
            result=result,
            since=self.ages(inputs + 1),
        )
        return self.as_called(call)

    def elements(self) -> float:
        """Number of elements.

        Raises:
            CannotPlace: neither or both of count and shape are given.
        """
        if (self.count is None) == (not self.shape):
            raise CannotPlace("the op needs `count` or `shape`, not both", "count: 1e6   or   shape: [1000, 1000]")
        return math.prod(self.shape) if self.count is None else self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Elementwise(ArrayOp):
    """`inputs` arrays in, one out."""

    kind: ClassVar[str] = "elementwise"

    inputs: int = field("arrays of this size that are read", default=1, minimum=0)
    flop_each: float = field("operations per element", default=1.0, minimum=0)
    result: Dtype | None = field("type of the result's elements (default: that of the operands)", default=None)

    def lower(self, scope: Scope) -> Placed:
        count = self.elements()
        pointwise = Pointwise(count, self.dtype, self.inputs, self.flop_each * count)
        elements, width = precise(count, "1"), f"{BYTES[self.dtype]:g} B"
        sources = {
            "flop": f"elements x flop_each = {elements} x {self.flop_each:g}",
            "traffic": f"(inputs + 1) x elements x {width} = {self.inputs + 1} x {elements} x {width}",
        }
        usual, form = USUAL.get(self.inputs, ("", "")) if math.isclose(self.flop_each, 1.0) else ("", "")
        call = self.called(self.inputs, usual, form, self.result or "")
        output = count * BYTES[self.result or self.dtype]
        work = Work(flop=pointwise.flop, reads=self.inputs * pointwise.array, writes=output, dtype=self.dtype, call=call)
        return compute(scope, self, work, output=output, pointwise=pointwise, said=sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Random(ArrayOp):
    """An array of random numbers."""

    kind: ClassVar[str] = "random"

    def lower(self, scope: Scope) -> Placed:
        count = self.elements()
        size = count * BYTES[self.dtype]
        sources = {
            "numbers": "elements",
            "traffic": f"elements x {BYTES[self.dtype]:g} B = {precise(count, '1')} x {BYTES[self.dtype]:g} B",
        }
        call = self.called(0, "normal")
        work = Work(flop=count, writes=size, dtype=self.dtype, mix="random", call=call)
        return compute(scope, self, work, output=size, said=sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduce(ArrayOp):
    """An array in, little out."""

    kind: ClassVar[str] = "reduce"

    def lower(self, scope: Scope) -> Placed:
        count = self.elements()
        width = BYTES[self.dtype]
        sources = {"flop": "elements", "traffic": f"elements x {width:g} B = {precise(count, '1')} x {width:g} B"}
        call = reduce_call(
            self.function or "sum",
            dtype=self.dtype,
            count=count,
            form=self.form,
            rows=self.rows,
            into=self.into,
            since=self.ages(1),
        )
        work = Work(flop=count, reads=count * width, dtype=self.dtype, mix="reduce", call=self.as_called(call))
        return compute(scope, self, work, output=width, said=sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOp(ArrayOp):
    """One array in, one out, a row at a time."""

    flop_each: ClassVar[int]

    passes: int = field("times the array is read", default=1, minimum=1)
    kernels: int = field("kernels of a gpu it takes, one after another", default=1, minimum=1)

    def lower(self, scope: Scope) -> Placed:
        return self._lower(scope, 1, "(passes + 1)")

    def _lower(self, scope: Scope, results: int, arrays: str) -> Placed:
        """A kernel that reads the array `passes` times and writes `results` of its size; arrays: that sum in words."""
        count = self.elements()
        array = count * BYTES[self.dtype]
        elements, width = precise(count, "1"), f"{BYTES[self.dtype]:g} B"
        sources = {
            "flop": f"{self.flop_each} x elements = {self.flop_each} x {elements}",
            "traffic": f"{arrays} x elements x {width} = {self.passes + results} x {elements} x {width}",
        }
        work = Work(
            flop=self.flop_each * count,
            reads=self.passes * array,
            writes=results * array,
            dtype=self.dtype,
            kernels=self.kernels,
            call=self.called(),
        )
        return compute(scope, self, work, output=array, said=sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Softmax(RowOp):
    """One array in, one out, a row at a time."""

    kind: ClassVar[str] = "softmax"
    flop_each: ClassVar[int] = 5

    results: int = field("times an array of this size is written", default=1, minimum=1)

    def lower(self, scope: Scope) -> Placed:
        return self._lower(scope, self.results, f"{self.passes + self.results}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layernorm(RowOp):
    """One array in, one out, a row at a time."""

    kind: ClassVar[str] = "layernorm"
    flop_each: ClassVar[int] = 8
