"""Calls of cupy while a script is recorded: ops on the GPU, each timed by itself between two events of its stream.

The module that a script imports as `cupy` is a stand-in that hands every call on, with plain arrays, to cupy itself. An array
of the script is a `GpuArray` around cupy's. Copies between host and GPU are ops too. Timing one call waits for it; in the
workload the host only issues it, and waits where a result comes back.
"""

from __future__ import annotations

import importlib
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final

import numpy as np

from hwsim_calibrate.calls import REDUCTIONS, TRUTH, TWO, result_of
from hwsim_calibrate.recording.operands import dtype_of, identity, is_on_gpu
from hwsim_calibrate.recording.tape import Described, NoOp, Performed, between, current

DEVICE: Final = "gpu"
TO_GPU: Final = ("array", "asarray", "ascontiguousarray", "asanyarray")
TO_HOST: Final = ("asnumpy", "get")
PRODUCTS: Final = ("matmul", "dot", "inner", "tensordot")
MADE: Final = ("arange", "eye", "full", "full_like", "linspace", "ones", "ones_like", "zeros", "zeros_like")
ROOM: Final = ("empty", "empty_like")
MOVED: Final = (
    "astype", "ascontiguousarray", "concatenate", "copy", "copyto", "fill", "flatten", "roll", "stack", "tile", "where",
)  # fmt: skip
VIEWS: Final = ("ravel", "reshape", "squeeze", "swapaxes", "transpose", "view", "broadcast_to", "expand_dims", "moveaxis")
ONE: Final = (
    "absolute", "arccos", "arcsin", "arctan", "cbrt", "ceil", "clip", "conj", "cos", "cosh", "exp", "exp2", "expm1", "floor",
    "invert", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "logical_not", "negative", "reciprocal", "rint",
    "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
)  # fmt: skip
SAME_AS: Final = {"abs": "absolute", "true_divide": "divide", "amax": "max", "amin": "min", "mod": "remainder"}
KERNELS: Final = ("ElementwiseKernel", "RawKernel", "ReductionKernel", "fuse", "default_rng", "Generator", "RandomState")
QUIET: Final = (
    "get_array_module", "get_default_memory_pool", "get_default_pinned_memory_pool", "may_share_memory", "seed", "show_config",
)  # fmt: skip
DRAWN: Final = ("rand", "randn", "random", "random_sample", "standard_normal", "normal", "uniform", "randint", "integers")
PASSED: Final = ("cuda", "fft", "linalg", "random", "testing", "sparse", "lib", "core")  # modules; the first is cupy's own
OPERATORS: Final = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide", "mod": "remainder",
    "pow": "power", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lt": "less",
    "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip


class GpuArray:
    """An array of cupy's whose calls are recorded."""

    __slots__ = ("plain",)
    __array_priority__ = 1000.0
    __array_ufunc__ = None  # an operator with a numpy array is this one's
    __hash__ = None  # type: ignore[assignment]  # as cupy's

    def __init__(self, plain: Any) -> None:
        self.plain = plain

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.plain, name)
        if name.startswith("_") or not callable(value):
            return wrapped(value)
        function = getattr(type(self.plain), name)
        return lambda *args, **options: performed(name, function, (self, *args), options)

    def __getitem__(self, at: Any) -> Any:
        return performed("index" if _fancy(unwrapped(at)) else "slice", operator.getitem, (self, at), {})

    def __setitem__(self, at: Any, value: Any) -> None:
        performed("put" if _fancy(unwrapped(at)) else "copyto", operator.setitem, (self, at, value), {}, changes=[self])

    def __neg__(self) -> Any:
        return performed("negative", operator.neg, (self,), {})

    def __abs__(self) -> Any:
        return performed("absolute", operator.abs, (self,), {})

    def __len__(self) -> int:
        return len(self.plain)

    def __iter__(self) -> Iterator[Any]:
        return (self[at] for at in range(len(self)))

    def _read(self, convert: Callable[[Any], Any]) -> Any:
        return performed("get", lambda array: convert(array.get()), (self,), {})

    def __float__(self) -> float:
        return float(self._read(float))

    def __int__(self) -> int:
        return int(self._read(int))

    def __bool__(self) -> bool:
        return bool(self._read(bool))

    def __repr__(self) -> str:
        return str(self._read(repr))

    def __format__(self, spec: str) -> str:
        return format(self._read(lambda array: array.item() if array.ndim == 0 else array), spec)


def _operator(name: str, function: str) -> None:
    direct = getattr(operator, f"{name}_" if name in ("and", "or") else name)

    def forward(self: GpuArray, other: Any) -> Any:
        return performed(function, direct, (self, other), {})

    def backward(self: GpuArray, other: Any) -> Any:
        return performed(function, direct, (other, self), {})

    def in_place(self: GpuArray, other: Any) -> Any:
        performed(function, getattr(operator, f"i{name}"), (self, other), {"in place": True}, changes=[self])
        return self

    setattr(GpuArray, f"__{name}__", forward)
    if hasattr(operator, f"i{name}"):
        setattr(GpuArray, f"__r{name}__", backward)
        setattr(GpuArray, f"__i{name}__", in_place)


for _name, _function in OPERATORS.items():
    _operator(_name, _function)


class Stand(ModuleType):
    """A module that hands its calls on, recorded."""

    def __init__(self, module: Any) -> None:
        super().__init__(module.__name__)
        self.__dict__["_module"] = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if isinstance(value, ModuleType):
            return value if name == PASSED[0] or name not in PASSED else Stand(value)
        if name == "ndarray":
            return GpuArray
        if name in KERNELS:  # what it makes is called with arrays
            return lambda *args, **options: _kernel(value(*args, **options))
        if isinstance(value, type):  # of numbers, as in numpy
            return value
        return (lambda *args, **options: performed(name, value, args, options)) if callable(value) else value


def _kernel(made: Any) -> Any:
    """An object that may be a kernel of one's own, or a generator of random numbers."""
    if not callable(made):
        return _Drawing(made) if any(hasattr(made, name) for name in DRAWN) else made
    return lambda *args, **options: performed("kernel", made, args, options)


class _Drawing:
    """A generator of random numbers whose draws are recorded."""

    def __init__(self, generator: Any) -> None:
        self.generator = generator

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.generator, name)
        return (lambda *args, **options: performed(name, method, args, options)) if callable(method) else method


@contextmanager
def recording_cupy() -> Iterator[None]:
    """A script that imports cupy gets the stand-in; the module itself is back whatever happens."""
    try:
        module = importlib.import_module("cupy")
    except ImportError:
        yield
        return
    sys.modules["cupy"] = Stand(module)
    try:
        yield
    finally:
        sys.modules["cupy"] = module


def unwrapped(value: Any) -> Any:
    """Arrays of the script as cupy's own, inside of tuples, lists and dicts too."""
    if isinstance(value, GpuArray):
        return value.plain
    if type(value) in (tuple, list):
        return type(value)(unwrapped(each) for each in value)
    return {key: unwrapped(each) for key, each in value.items()} if type(value) is dict else value


def wrapped(value: Any) -> Any:
    """Arrays of cupy's as arrays of the script; numpy's and anything else as they are."""
    if is_on_gpu(value) and not isinstance(value, GpuArray):
        return GpuArray(value)
    return type(value)(wrapped(each) for each in value) if type(value) in (tuple, list) else value


def performed(name: str, function: Callable[..., Any], args: Any, options: Any, *, changes: Any = ()) -> Any:
    """Make a call on arrays of the GPU; record it if a tape is running."""
    given, named = unwrapped(tuple(args)), unwrapped(dict(options))
    in_place = named.pop("in place", None)
    tape, name = current(), SAME_AS.get(name, name)
    if tape is None or name in QUIET:
        return wrapped(function(*given, **named))
    changed = [unwrapped(each) for each in changes]

    def call(*arguments: Any, **more: Any) -> Any:
        return function(*arguments, **more)

    described = _in_place if in_place else describe
    result = tape.perform(described, name, call, given, named, changes=changed, clock=timed)
    return wrapped(result)


def timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """(result, seconds of the GPU, seconds in which the host issued it): after everything before it has ended."""
    cuda = importlib.import_module("cupy").cuda
    return between(cuda.get_current_stream(), cuda.Event(), cuda.Event(), cuda.get_elapsed_time, call)


# ---- a call as an op ----


def describe(done: Performed) -> Described:
    """The op of a call of cupy's on the GPU."""
    arrays = [each for each in (*done.args, *done.options.values()) if is_on_gpu(each) and each.shape]
    result = done.result[0] if isinstance(done.result, tuple | list) and done.result else done.result
    if (done.name in TO_HOST and is_on_gpu(done.args[0])) or (done.name in TO_GPU and not arrays):
        return _copied(done)
    if done.name in ROOM:
        raise NoOp("room alone")
    if done.name in (*VIEWS, *TO_GPU, "slice") and arrays and is_on_gpu(result) and identity(result) == identity(arrays[0]):
        return _op("elementwise", count=0, inputs=0, flop_each=0)
    for each in (*arrays, result):
        if is_on_gpu(each) and not dtype_of(each):
            raise NoOp(f"hwsim has no number format {each.dtype}")
    made = result if is_on_gpu(result) else arrays[0] if arrays else None
    if made is None:
        raise NoOp("no array of the GPU")
    if done.name in PRODUCTS and len(arrays) > 1:
        return _product(arrays[0], arrays[1], made)
    if done.name in REDUCTIONS and arrays:
        return _op("reduce", shape=list(arrays[0].shape), dtype=dtype_of(arrays[0]))
    if done.name in DRAWN:
        return _op("random", shape=list(made.shape) or [1], dtype=dtype_of(made))
    full = [each for each in arrays if each.size == made.size and each is not done.options.get("out")]
    if done.name in (*ONE, *TWO):
        kind = dtype_of(full[0] if full else max(arrays, key=lambda each: int(each.size), default=made))
        changed = result_of(done.name, kind) if done.name in TRUTH else dtype_of(made) if dtype_of(made) != kind else ""
        keys = {"shape": list(made.shape) or [1], "dtype": kind, "inputs": len(full)}
        return _op("elementwise", **keys, **({"result": changed} if changed else {}))
    if done.name in (*MADE, *MOVED, *TO_GPU):
        target = arrays[0] if done.name in ("copyto", "fill") and arrays else made
        inputs = 0 if done.name in MADE or done.name == "fill" else max(len(full) - (done.name == "copyto"), 1)
        return _op("elementwise", shape=list(target.shape) or [1], dtype=dtype_of(target), inputs=inputs, flop_each=0)
    raise NoOp("hwsim has no op for it")


def _in_place(done: Performed) -> Described:
    op = describe(done)
    return Described(op.kind, {**op.keys, "into": "self"}) if op.kind == "elementwise" else op


def _op(kind: str, **keys: Any) -> Described:
    return Described(kind, {**keys, "device": DEVICE})


def _copied(done: Performed) -> Described:
    """Between the host's memory and the GPU's: what it takes depends on whether its pages may move."""
    array = done.args[0] if done.name in TO_HOST else np.asarray(done.args[0])
    ends = (DEVICE, "cpu") if done.name in TO_HOST else ("cpu", DEVICE)
    return Described("copy", {"from": ends[0], "to": ends[1], "bytes": f"{int(array.nbytes)} B", "memory": "pageable"})


def _product(left: Any, right: Any, result: Any) -> Described:
    k = left.shape[-1]
    m, n = left.shape[-2] if left.ndim > 1 else 1, right.shape[-1] if right.ndim > 1 else 1
    if min(m, n, k) < 1 or not result.size:
        raise NoOp("an empty product")
    batch = max(int(result.size // (m * n)), 1)
    keys = {"m": int(m), "n": int(n), "k": int(k), "dtype": dtype_of(result)} | ({"batch": batch} if batch > 1 else {})
    stored = right.ndim > 1 and abs(right.strides[-2]) < abs(right.strides[-1])
    return _op("matmul", **keys, **({"transposed": True} if stored else {}))


def _fancy(index: Any) -> bool:
    return any(
        is_on_gpu(each) or isinstance(each, np.ndarray | list) for each in (index if isinstance(index, tuple) else (index,))
    )
