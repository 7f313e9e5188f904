"""What a program of numpy does, call by call: run once on arrays that write down what becomes of them.

    ops = record(make)                      # make(wrap) -> a step to be called again and again; wrap(array) makes it one of these
    document = workload("my step", ops)     # what a workload file would say

Each call is one of `hwsim.devices.calls`: its function, its operands and how they lie, where its result goes, and how many
bytes were gone over since each operand was last used.  What no call stands for (Python itself, functions that know nothing of
such arrays) is not seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hwsim.devices.calls import Call, Into, elementwise_call, lookup_call, product_call, reduce_call
from hwsim_calibrate.reuse import Recency, span

Array = NDArray[Any]
Step = Callable[[], object]
Make = Callable[[Callable[[Array], Array]], Step]
NAMES: Final = {
    "float64": "fp64", "float32": "fp32", "float16": "fp16", "int64": "int64", "int32": "int32", "int8": "int8", "bool": "bool",
    "uint8": "int8", "uint64": "int64", "uint32": "int32",
}  # fmt: skip
SAME_AS: Final = {"true_divide": "divide", "amax": "max", "amin": "min"}
REDUCED: Final = {"add": "sum", "maximum": "max", "minimum": "min", "multiply": "prod", "logical_or": "any", "logical_and": "all"}
METHODS: Final = ("sum", "max", "min", "mean", "std", "var", "argmax", "argmin", "prod", "any", "all", "cumsum")
DRAWN: Final = ("normal", "uniform", "random", "rand", "randn", "standard_normal", "randint", "permutation")


@dataclass(slots=True)
class Log:
    """Calls in their order."""

    calls: list[Call] = field(default_factory=list)
    recent: Recency = field(default_factory=Recency)
    deaf: int = 0

    def ages(self, arrays: Sequence[Array]) -> tuple[float, ...]:
        """Of each array, bytes gone over since it was last used; it is used now."""
        return tuple(self.recent.touch(*span(array)) for array in arrays)


_LOG: list[Log] = []  # the one that is being written, last


class Traced(np.ndarray):
    """An array that tells what is done with it."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        plain = [_plain(each) for each in inputs]
        given = None if out is None else tuple(_plain(each) for each in out)
        found = getattr(ufunc, method)(*plain, **({"out": given} if given else {}), **_plain_values(options))
        log = _open()
        if log is not None and found is not NotImplemented:
            _of_ufunc(log, ufunc.__name__, method, plain, given, found, options)
        return wrap(found)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = SAME_AS.get(function.__name__, function.__name__)
        log = _open()
        if log is None or name not in LEAVES:
            return super().__array_function__(function, types, args, kwargs)
        plain, options = _plain(tuple(args)), _plain_values(kwargs)
        found = function(*plain, **options)
        LEAVES[name](log, name, plain, options, found)
        return wrap(found)

    def __getitem__(self, index: Any) -> Any:
        base, at = _plain(self), _plain(index)
        found = base[at]
        log = _open()
        if log is not None:
            _of_index(log, base, at, found)
        return wrap(found)

    def __setitem__(self, index: Any, value: Any) -> None:
        base, at, given = _plain(self), _plain(index), _plain(value)
        base[at] = given
        log = _open()
        if log is None:
            return
        if _fancy(at):
            _add(
                log, _call("put", [given] if isinstance(given, np.ndarray) else [], np.empty(np.shape(given)), "out", base.dtype)
            )
            return
        to = base[at]
        if isinstance(to, np.ndarray):
            _elementwise(log, "copyto" if np.ndim(given) else "fill", [given] if np.ndim(given) else [], to, "out")

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        base = _plain(self)
        found = base.astype(dtype, *args, **kwargs)
        if (log := _open()) is not None:
            _converted(log, "astype", base, found)
        return wrap(found)

    def copy(self, *args: Any, **kwargs: Any) -> Any:
        found = _plain(self).copy(*args, **kwargs)
        if (log := _open()) is not None:
            _elementwise(log, "copy", [_plain(self)], found, "new")
        return wrap(found)

    def reshape(self, *args: Any, **kwargs: Any) -> Any:
        base = _plain(self)
        found = base.reshape(*args, **kwargs)
        if (log := _open()) is not None:
            if np.may_share_memory(found, base):
                _view(log, "reshape")
            else:
                _elementwise(log, "copyto", [base], found.reshape(base.shape), "new")
        return wrap(found)

    def transpose(self, *axes: Any) -> Any:
        if (log := _open()) is not None:
            _view(log, "transpose")
        return wrap(_plain(self).transpose(*axes))

    @property
    def T(self) -> Any:  # noqa: N802 (numpy's name)
        return self.transpose()

    def fill(self, value: Any) -> None:
        _plain(self).fill(value)
        if (log := _open()) is not None:
            _elementwise(log, "fill", [], _plain(self), "out")

    def sort(self, axis: int = -1, **options: Any) -> None:  # type: ignore[override]
        _plain(self).sort(axis, **options)
        if (log := _open()) is not None:
            _sorted(log, "sort", (_plain(self),), {}, _plain(self))

    def dot(self, other: Any, out: Any = None) -> Any:
        return np.matmul(self, other) if out is None else np.matmul(self, other, out=out)


def _method(name: str) -> Callable[..., Any]:
    def call(self: Traced, *args: Any, **kwargs: Any) -> Any:
        base = _plain(self)
        found = getattr(base, name)(*_plain(args), **_plain_values(kwargs))
        if (log := _open()) is not None:
            axis = kwargs.get("axis", args[0] if args else None)
            _reduced(log, name, base, axis, found, method=True)
        return wrap(found)

    return call


for _each in METHODS:
    setattr(Traced, _each, _method(_each))


# ---- recording ----


def wrap(found: Any) -> Any:
    """Arrays as arrays that tell; anything else as it is."""
    if type(found) is np.ndarray:
        return found.view(Traced)
    return tuple(wrap(each) for each in found) if type(found) is tuple else found


def record(make: Make, *, warm: int = 2) -> list[Call]:
    """The calls of one turn of a step, after it has run `warm` times and once more to know what lies where."""
    with drawing():
        step = make(lambda array: array.view(Traced))
        for _ in range(warm):
            step()
        log = Log()
        _LOG.append(log)
        try:
            step()
            log.calls.clear()
            step()
        finally:
            _LOG.pop()
    return log.calls


@contextmanager
def drawing() -> Iterator[None]:
    """While it lasts, what `numpy.random` draws is written down."""
    before = {name: getattr(np.random, name) for name in DRAWN}

    def told(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            found = function(*_plain(args), **_plain_values(kwargs))
            if (log := _open()) is not None and isinstance(found, np.ndarray):
                _random(log, {"rand": "random", "randn": "normal", "randint": "integers"}.get(name, name), found)
            return wrap(found)

        return call

    try:
        for name, function in before.items():
            setattr(np.random, name, told(name, function))
        yield
    finally:
        for name, function in before.items():
            setattr(np.random, name, function)


def _open() -> Log | None:
    return _LOG[-1] if _LOG else None


def _add(log: Log, call: Call | None) -> None:
    if call is not None:
        log.calls.append(call)


# ---- calls ----


def _of_ufunc(
    log: Log, name: str, method: str, plain: Sequence[Any], out: tuple[Any, ...] | None, found: Any, options: Mapping[str, Any]
) -> None:
    result = found[0] if isinstance(found, tuple) else found
    name = SAME_AS.get(name, name)
    if name == "matmul":
        _product(log, plain[0], plain[1], result, out)
    elif method == "reduce":
        axis = options.get("axis", plain[1] if len(plain) > 1 else 0)
        _reduced(log, REDUCED.get(name, name), plain[0], axis, result)
    elif method == "__call__" and isinstance(result, np.ndarray) and result.ndim:
        arrays = [each for each in plain if isinstance(each, np.ndarray) and each.ndim]
        into: Into = "new" if out is None else "self" if any(each is out[0] for each in arrays) else "out"
        into = "self" if into == "out" and any(span(each) == span(result) for each in arrays) else into
        _elementwise(log, name, arrays, result, into, scalar=len(arrays) < len(plain))
    elif isinstance(result, np.ndarray):
        _elementwise(log, f"{name}.{method}", [each for each in plain if isinstance(each, np.ndarray)], result, "new")


def _elementwise(log: Log, name: str, arrays: Sequence[Array], result: Array, into: Into, *, scalar: bool = False) -> None:
    """`arrays` of any shape that broadcasts to that of the result."""
    form, rows = layout(arrays, result)
    full = [each for each in arrays if each.size == result.size and each.ndim]
    dtype = _dtype(full[0] if full else result)
    if not form and len(full) == 2:
        form = "mask" if "bool" in map(_dtype, full) and dtype != "bool" else "same" if span(full[0]) == span(full[1]) else ""
    if not form and scalar:
        form = "scalar"
    inputs = full[:1] if form == "same" else full
    made = _dtype(result)
    _add(
        log,
        elementwise_call(
            name,
            dtype=dtype,
            count=float(result.size),
            inputs=len(inputs),
            form=form,
            rows=rows,
            into=into,
            result=made if made != dtype else "",
            since=log.ages([*inputs, result]),
        ),
    )


def layout(arrays: Sequence[Array], result: Array) -> tuple[str, float]:
    """(form, inner loops) of operands that are gone through together, the result's axes in the order of its memory."""
    shape = result.shape
    if not result.size or not shape:
        return "", 1.0
    strides = [np.broadcast_to(each, shape).strides for each in arrays] + [result.strides]
    order = sorted(range(len(shape)), key=lambda axis: -abs(result.strides[axis]))
    axes = [axis for axis in order if shape[axis] > 1]
    if not axes:
        return "", 1.0
    inner = [axes[-1]]
    for axis in reversed(axes[:-1]):  # axes that all operands go through as if they were one
        following = inner[-1]
        if all(each[axis] == each[following] * shape[following] for each in strides):
            inner.append(axis)
        else:
            break
    length = math.prod(shape[axis] for axis in inner)
    rows = result.size / length
    last = axes[-1]
    widths = [each.itemsize for each in arrays] + [result.itemsize]
    if any(abs(each[last]) > width for each, width in zip(strides, widths, strict=True)):
        return "across", rows
    if rows <= 1:
        return "", 1.0
    if any(each[last] == 0 for each in strides):
        return "column", rows
    if any(each[axis] == 0 for each in strides for axis in axes[:-1]):
        return "row", rows
    return "strided", rows


def _product(log: Log, one: Array, two: Array, result: Any, out: tuple[Any, ...] | None) -> None:
    m = one.shape[-2] if one.ndim > 1 else 1
    n = two.shape[-1] if two.ndim > 1 else 1
    k, found = one.shape[-1], np.asarray(result)
    batch = max(int(found.size // max(m * n, 1)), 1)
    form = "b" if two.ndim > 1 and _turned(two) else "a" if one.ndim > 1 and _turned(one) else ""
    if one.ndim == 2 and two.ndim == 2 and m == n and span(one) == span(two) and _turned(one) != _turned(two):
        form = "gram"
    since = log.ages([one, two, *([found] if found.ndim else [])])
    into: Into = "new" if out is None else "out"
    _add(log, product_call(m, k, n, dtype=_dtype(found), batch=batch, form=form, into=into, since=since))


def _turned(array: Array) -> bool:
    """Stored with its last two axes swapped."""
    return abs(array.strides[-1]) > abs(array.strides[-2]) and array.shape[-1] > 1


def _reduced(log: Log, name: str, array: Any, axis: Any, found: Any, *, method: bool = False) -> None:
    base = np.asarray(array)
    axes = tuple(range(base.ndim)) if axis is None else tuple(axis) if isinstance(axis, tuple) else (int(axis),)
    axes = tuple(each % max(base.ndim, 1) for each in axes)
    form, rows = "", 1.0
    if len(axes) < base.ndim:
        inner = int(np.argmin([abs(each) if base.shape[at] > 1 else math.inf for at, each in enumerate(base.strides)]))
        form = "rows" if inner in axes else "columns"
        rows = base.size / base.shape[inner]
    form = f"{form} method".strip() if method else form
    made = np.asarray(found)
    since = log.ages([base])
    if made.ndim:
        log.ages([made])
    _add(log, reduce_call(name, dtype=_dtype(base), count=float(base.size), form=form, rows=rows, since=since))


def _of_index(log: Log, base: Array, at: Any, found: Any) -> None:
    if not _fancy(at):
        if isinstance(found, np.ndarray):
            _view(log, "slice")
        return
    if isinstance(at, np.ndarray) and at.dtype != np.bool_ and isinstance(found, np.ndarray):
        _looked_up(log, "takerows" if base.ndim > 1 else "take", base, at, found)
    elif isinstance(found, np.ndarray):
        _add(log, _call("index", [base], found, "new", found.dtype))


def _looked_up(log: Log, name: str, table: Array, index: Array, found: Array) -> None:
    length = table.size / table.shape[0] if table.ndim > 1 else 1.0
    since = log.ages([table, index, found])
    call = lookup_call(
        name, dtype=_dtype(table), count=float(index.size), table=float(table.size), length=length, into="new", since=since
    )
    _add(log, call)


def _view(log: Log, name: str) -> None:
    _add(log, Call(function=name))


def _random(log: Log, name: str, found: Array) -> None:
    _add(log, elementwise_call(name, dtype=_dtype(found), count=float(found.size), inputs=0, since=log.ages([found])))


def _call(name: str, arrays: Sequence[Array], result: Array, into: Into, dtype: Any) -> Call:
    """A call whose operands do not matter: no machine is likely to have it."""
    return elementwise_call(
        name, dtype=NAMES.get(str(dtype), str(dtype)), count=float(result.size), inputs=len(arrays), into=into
    )


def _converted(log: Log, name: str, base: Array, found: Array) -> None:
    source, made = _dtype(base), _dtype(found)
    form = f"from {source}" if source != made else ""
    into: Into = "out" if name == "copyto" else "new"
    since = log.ages([base, found])
    _add(log, elementwise_call(name, dtype=made, count=float(found.size), inputs=1, form=form, into=into, since=since))


def _sorted(log: Log, name: str, plain: Any, options: Mapping[str, Any], found: Any) -> None:  # noqa: ARG001 (a leaf's arguments)
    array = plain[0]
    rows = array.size / max(array.shape[-1], 1) if array.ndim > 1 else 1.0
    result = "int64" if name == "argsort" else ""
    call = elementwise_call(
        name, dtype=_dtype(array), count=float(array.size), rows=rows, result=result, since=log.ages([array, found])
    )
    _add(log, call)


# ---- functions of numpy that are no ufunc ----

Leaf = Callable[[Log, str, Any, Mapping[str, Any], Any], None]


def _reduction(log: Log, name: str, plain: Any, options: Mapping[str, Any], found: Any) -> None:
    _reduced(log, name, plain[0], options.get("axis", plain[1] if len(plain) > 1 else None), found)


def _taken(log: Log, name: str, plain: Any, options: Mapping[str, Any], found: Any) -> None:  # noqa: ARG001
    if isinstance(found, np.ndarray):
        _looked_up(log, name if plain[0].ndim < 2 else "takerows", plain[0], np.asarray(plain[1]), found)


def _copied(log: Log, name: str, plain: Any, options: Mapping[str, Any], found: Any) -> None:  # noqa: ARG001
    to, source = plain[0], np.asarray(plain[1])
    if _dtype(source) != _dtype(to):
        _converted(log, name, source, to)
    else:
        _elementwise(log, name, [source], to, "out")


def _joined(log: Log, name: str, plain: Any, options: Mapping[str, Any], found: Any) -> None:  # noqa: ARG001
    since = log.ages([found])
    _add(log, elementwise_call("concatenate", dtype=_dtype(found), count=float(found.size), since=(*since, *since)))


def _dotted(log: Log, name: str, plain: Any, options: Mapping[str, Any], found: Any) -> None:  # noqa: ARG001
    _product(log, plain[0], plain[1], found, None)


def _counted(log: Log, name: str, plain: Any, options: Mapping[str, Any], found: Any) -> None:  # noqa: ARG001
    arrays = [each for each in plain[:2] if isinstance(each, np.ndarray)]
    since = (*log.ages(arrays), *log.ages([found]))
    weighted = "" if len(arrays) > 1 else "plain"
    call = elementwise_call(
        name, dtype="fp64", count=float(plain[0].size), inputs=len(arrays), form=weighted, into="out", since=since
    )
    _add(log, call)


def _chosen(log: Log, name: str, plain: Any, options: Mapping[str, Any], found: Any) -> None:  # noqa: ARG001
    if isinstance(found, np.ndarray):
        _elementwise(log, name, [each for each in plain[1:] if isinstance(each, np.ndarray)], found, "new")


LEAVES: Final[Mapping[str, Leaf]] = {
    **dict.fromkeys(METHODS, _reduction),
    "take": _taken,
    "copyto": _copied,
    "concatenate": _joined,
    "dot": _dotted,
    "bincount": _counted,
    "where": _chosen,
    "sort": _sorted,
    "argsort": _sorted,
}


# ---- plain arrays ----


def _plain(value: Any) -> Any:
    if isinstance(value, Traced):
        return value.view(np.ndarray)
    if isinstance(value, tuple):
        return tuple(_plain(each) for each in value)
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _plain_values(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _plain(value) for key, value in options.items()}


def _fancy(index: Any) -> bool:
    return any(isinstance(each, np.ndarray | list) for each in (index if isinstance(index, tuple) else (index,)))


def _dtype(array: Any) -> str:
    return NAMES.get(str(array.dtype), str(array.dtype))
