"""The array class whose calls are recorded.

Each call is executed and timed on plain arrays, and its result is converted to a recorded array. All values are therefore
identical to plain numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import numpy as np

from hwsim_calibrate.recording import numpy_calls
from hwsim_calibrate.recording.descriptions import SAME_AS, unknown, view
from hwsim_calibrate.recording.lookups import assigned, indexed
from hwsim_calibrate.recording.operands import Array, span
from hwsim_calibrate.recording.tape import Describe, current

# Functions that consist of recorded calls.
TRANSPARENT: Final = frozenset({
    "average",
})  # fmt: skip
# Queries and text output, which are not recorded.
QUIET: Final = frozenset({
    "array2string", "array_repr", "array_str", "broadcast_arrays", "can_cast", "common_type", "iscomplexobj", "isrealobj",
    "may_share_memory", "min_scalar_type", "ndim", "result_type", "shape", "shares_memory", "size",
})  # fmt: skip
# Functions that change their first argument.
CHANGES: Final = frozenset({"copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis"})


class TracedArray(np.ndarray):
    """A numpy array whose calls are recorded."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        given = {} if out is None else {"out": plain(out)}
        call = getattr(ufunc, method)
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        changes = [plain(inputs[0])] if method == "at" else []
        result = perform(numpy_calls.ufunc, name, call, plain(inputs), {**plain(options), **given}, changes=changes)
        if out is None or result is NotImplemented:
            return wrap(result)
        if len(out) == 1:
            return out[0]
        return tuple(wrap(new) if old is None else old for old, new in zip(out, result, strict=True))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = SAME_AS.get(func.__name__, func.__name__)
        if name in TRANSPARENT and current() is not None:
            return super().__array_function__(func, types, args, kwargs)
        given, options = plain(tuple(args)), plain(kwargs)
        if name in QUIET:
            return wrap(func(*given, **options))
        changes = [given[0]] if name in CHANGES and given else []
        result = perform(numpy_calls.FUNCTIONS.get(name, unknown), name, func, given, options, changes=changes)
        return _out_or_wrapped(kwargs.get("out"), result)

    def __getitem__(self, index: Any) -> Any:
        base, key = _base(self), plain(index)
        if _fancy(key):
            return wrap(perform(indexed, "index", np.ndarray.__getitem__, (base, key), {}))
        element = base[key]
        if not isinstance(element, np.ndarray):
            return element
        return wrap(perform(view, "slice", np.ndarray.__getitem__, (base, key), {}))

    def __setitem__(self, index: Any, value: Any) -> None:
        base, key, given = _base(self), plain(index), plain(value)
        if _fancy(key):
            perform(assigned, "put", np.ndarray.__setitem__, (base, key, given), {}, changes=[base])
            return
        to = base[key]
        if not isinstance(to, np.ndarray):
            base[key] = given
        elif isinstance(given, np.ndarray) and span(given) == span(to) and given.strides == to.strides:
            base[key] = given  # the assignment of `a[...] += b`, which copies nothing
        else:
            perform(numpy_calls.copied_to, "copyto", _assign, (to, given), {}, changes=[to])

    @property
    def T(self) -> Any:  # noqa: N802 (numpy's name)
        return self.transpose()

    def __repr__(self) -> str:
        return repr(_base(self))

    def __str__(self) -> str:
        return str(_base(self))

    def __format__(self, spec: str) -> str:
        return format(_base(self), spec)

    def __reduce__(self) -> Any:
        return _base(self).__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _base(self).__reduce_ex__(protocol)

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()


def _method(name: str, describe: Describe, *, in_place: bool) -> Callable[..., Any]:
    function = getattr(np.ndarray, name)

    def call(self: TracedArray, *args: Any, **options: Any) -> Any:
        base = _base(self)
        result = perform(describe, name, function, (base, *plain(args)), plain(options), changes=[base] if in_place else [])
        return _out_or_wrapped(options.get("out"), result)

    call.__name__ = name
    return call


for _name, _describe in numpy_calls.METHODS.items():
    setattr(TracedArray, _name, _method(_name, _describe, in_place=False))
for _name, _describe in numpy_calls.IN_PLACE.items():
    setattr(TracedArray, _name, _method(_name, _describe, in_place=True))


def perform(
    describe: Describe,
    name: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    options: Mapping[str, Any],
    *,
    changes: list[Array] | None = None,
) -> Any:
    """Execute a call, and record it if a tape is running."""
    tape = current()
    if tape is None:
        return function(*args, **options)
    return tape.perform(describe, name, function, args, options, changes=changes or ())


def wrap(result: Any) -> Any:
    """Convert arrays to recorded arrays, including arrays in tuples and lists; return other values unchanged."""
    if type(result) is np.ndarray:
        return result.view(TracedArray)
    if type(result) in (tuple, list):
        return type(result)(wrap(item) for item in result)
    if isinstance(result, tuple) and hasattr(result, "_fields"):  # such as the result of numpy.linalg.svd
        return type(result)(*(wrap(item) for item in result))
    return result


def plain(value: Any) -> Any:
    """Convert recorded arrays to plain arrays, including arrays in tuples, lists and dicts."""
    if isinstance(value, TracedArray):
        return _base(value)
    if type(value) is tuple:
        return tuple(plain(item) for item in value)
    if type(value) is list:
        return [plain(item) for item in value] if any(isinstance(item, TracedArray | tuple | list) for item in value) else value
    return {key: plain(item) for key, item in value.items()} if type(value) is dict else value


def _out_or_wrapped(out: Any, result: Any) -> Any:
    return out if isinstance(out, TracedArray) else wrap(result)


def _base(array: TracedArray) -> Array:
    return cast("Array", np.ndarray.view(array, np.ndarray))


def _assign(to: Array, given: Any) -> None:
    to[...] = given


def _fancy(index: Any) -> bool:
    return any(isinstance(item, np.ndarray | list) for item in (index if isinstance(index, tuple) else (index,)))
