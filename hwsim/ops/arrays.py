"""Ops over the elements of an array, nearly always bound by memory bandwidth. They run on the queue `compute` of their device.

    elementwise: {device: gpu, shape: [1000, 1000], inputs: 2}
    random: {device: cpu, shape: [1000, 1000]}
    reduce: {device: gpu, count: 1e6}
    softmax: {device: gpu, shape: [4096, 1024], dtype: fp16}
    layernorm: {device: gpu, shape: [4096, 1024], dtype: fp16}

| op | flop | traffic: elements x bytes per element x |
|---|---|---|
| elementwise | elements x flop_each | inputs + 1: every input is read once and the result is written once |
| random | elements (one number each, at the device's efficiency for `random`) | 1 |
| reduce | elements: a sum, mean, maximum or norm | 1: the result is much smaller |
| softmax | 5 x elements: maximum, subtract, exponential, sum, divide | passes + results |
| layernorm | 8 x elements: mean, variance, normalise, scale, shift | passes + 1 |

On a CPU with measured `kernels`, an op takes the measured time of its `function`. By default, `elementwise` is an addition of two
arrays or of an array and a number, `random` is `normal`, and `reduce` is the `sum` of all elements.

A softmax or layernorm kernel that keeps a row in shared memory or registers reads the row once. Longer rows are read twice or
more (`passes`; PyTorch's softmax does so beyond 1024 elements). An unfused softmax is five kernels that each read and write the
array: `kernels: 5, passes: 5, results: 5`. Scale and shift of a layernorm, one number per column, stay in a cache.
"""

from __future__ import annotations

import math
from typing import ClassVar, Final

from hwsim.devices import LibraryCall, Work, elementwise_call, reduce_call
from hwsim.formats import precise
from hwsim.ops.op import CalledOp, CannotPlace, Dtype, LoweredOp, Pointwise, Scope, compute
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import BYTES

USUAL: Final = {0: ("fill", ""), 1: ("add", "scalar"), 2: ("add", "")}  # number of arrays read -> default function and form


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayOp(CalledOp):
    """A base of ops over the elements of an array; exactly one of `count` and `shape` is required."""

    count: float | None = field("number of elements of the array", default=None, minimum=0, example="1e6")
    shape: tuple[float, ...] = field(
        "lengths of the array's axes", default=(), one_or_many=True, minimum=0, example="[2000, 2000]"
    )
    dtype: Dtype = field("data type of the elements", default="fp32")
    function: str = field("library function that this op calls, if the cpu has measured `kernels`", default="", example="exp")
    rows: float = field("number of inner loops of `function`", default=1.0, minimum=1)

    def called(self, inputs: int = 1, function: str = "", form: str = "", result: str = "") -> LibraryCall | None:
        """Return the library call of the op's `function`, else of the argument; None if neither is stated."""
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
        """Return the number of elements.

        Raises:
            CannotPlace: neither or both of `count` and `shape` are stated.
        """
        if (self.count is None) == (not self.shape):
            raise CannotPlace("expected either `count` or `shape`", "count: 1e6   or   shape: [1000, 1000]")
        return math.prod(self.shape) if self.count is None else self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Elementwise(ArrayOp):
    """An elementwise op that reads `inputs` arrays and writes one."""

    kind: ClassVar[str] = "elementwise"

    inputs: int = field("number of arrays of this size that are read", default=1, minimum=0)
    flop_each: float = field("arithmetic operations per element", default=1.0, minimum=0)
    result: Dtype | None = field("data type of the result (default: `dtype`)", default=None)

    def lower(self, scope: Scope) -> LoweredOp:
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
class RandomOp(ArrayOp):
    """An op that fills an array with random numbers."""

    kind: ClassVar[str] = "random"

    def lower(self, scope: Scope) -> LoweredOp:
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
    """A reduction of an array to a few numbers."""

    kind: ClassVar[str] = "reduce"

    def lower(self, scope: Scope) -> LoweredOp:
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
    """A base of ops that read one array and write one, row by row."""

    flop_each: ClassVar[int]

    passes: int = field("number of times that the array is read", default=1, minimum=1)
    kernels: int = field("number of consecutive GPU kernels", default=1, minimum=1)

    def lower(self, scope: Scope) -> LoweredOp:
        return self._lower(scope, 1, "(passes + 1)")

    def _lower(self, scope: Scope, results: int, arrays: str) -> LoweredOp:
        """Place kernels that read the array `passes` times and write `results` arrays; arrays: formula of that sum."""
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
    """A softmax of each row of an array."""

    kind: ClassVar[str] = "softmax"
    flop_each: ClassVar[int] = 5

    results: int = field("number of times that an array of this size is written", default=1, minimum=1)

    def lower(self, scope: Scope) -> LoweredOp:
        return self._lower(scope, self.results, f"{self.passes + self.results}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layernorm(RowOp):
    """A layer normalization of each row of an array."""

    kind: ClassVar[str] = "layernorm"
    flop_each: ClassVar[int] = 8
