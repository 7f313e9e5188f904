"""Arrays of numpy that tell what is done with them.

Their values are those of plain arrays, and so is everything computed from them: a call is made on plain arrays, timed, and its
result becomes one of these again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import numpy as np

from hwsim_calibrate.record import SAME_AS
from hwsim_calibrate.recording import describing as say
from hwsim_calibrate.recording.tape import Array, Describe, current
from hwsim_calibrate.reuse import span

# Functions that are made of others which tell for themselves.
TRANSPARENT: Final = frozenset({
    "average", "column_stack", "cov", "diff", "dstack", "gradient", "hstack", "kron", "outer", "pad", "ptp", "roll", "stack",
    "tensordot", "tile", "vstack",
})  # fmt: skip
# Questions about an array, and texts of it: no work that a workload has.
QUIET: Final = frozenset({
    "array2string", "array_repr", "array_str", "broadcast_arrays", "can_cast", "common_type", "iscomplexobj", "isrealobj",
    "may_share_memory", "min_scalar_type", "ndim", "result_type", "shape", "shares_memory", "size",
})  # fmt: skip
CHANGES: Final = frozenset({"copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis"})  # the first argument

FUNCTIONS: Final[Mapping[str, Describe]] = {
    **dict.fromkeys(say.REDUCTIONS, say.reduction),
    **dict.fromkeys(("dot", "inner", "vdot", "matmul"), say.product),
    **dict.fromkeys(("copy", "ravel", "reshape"), say.moved),
    **dict.fromkeys(("sort", "argsort"), say.ordered),
    **dict.fromkeys(("clip", "round", "around", "nan_to_num"), say.pointwise),
    **dict.fromkeys(("zeros_like", "ones_like", "empty_like", "full_like"), say.created),
    "astype": say.astype,
    "bincount": say.counted,
    "concatenate": say.joined,
    "copyto": say.copied_to,
    "einsum": say.einsum,
    "take": say.indexed,
    "where": say.chosen,
}
_METHODS: Final[Mapping[str, Describe]] = {
    **dict.fromkeys(say.REDUCTIONS, say.reduction_method),
    **dict.fromkeys(("copy", "flatten", "ravel", "reshape"), say.moved),
    **dict.fromkeys(("argsort",), say.ordered),
    **dict.fromkeys(("clip", "round"), say.pointwise),
    **dict.fromkeys(
        ("argpartition", "choose", "compress", "conj", "conjugate", "cumprod", "diagonal", "nonzero", "repeat", "searchsorted",
         "squeeze", "swapaxes", "trace", "transpose", "view"), say.unknown),
    "astype": say.astype,
    "dot": say.product,
    "take": say.indexed,
}  # fmt: skip
_IN_PLACE: Final[Mapping[str, Describe]] = {
    "fill": say.filled, "partition": say.unknown, "put": say.unknown, "sort": say.ordered,
}  # fmt: skip


class TracedArray(np.ndarray):
    """An array that tells what is done with it."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        given = {} if out is None else {"out": plain(out)}
        call = getattr(ufunc, method)
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        changes = [plain(inputs[0])] if method == "at" else []
        found = perform(say.ufunc, name, call, plain(inputs), {**plain(options), **given}, changes=changes)
        if out is None or found is NotImplemented:
            return wrap(found)
        if len(out) == 1:
            return out[0]
        return tuple(wrap(new) if old is None else old for old, new in zip(out, found, strict=True))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = SAME_AS.get(func.__name__, func.__name__)
        if name in TRANSPARENT and current() is not None:
            return super().__array_function__(func, types, args, kwargs)
        given, options = plain(tuple(args)), plain(kwargs)
        if name in QUIET:
            return wrap(func(*given, **options))
        changes = [given[0]] if name in CHANGES and given else []
        found = perform(FUNCTIONS.get(name, say.unknown), name, func, given, options, changes=changes)
        out = kwargs.get("out")
        return out if isinstance(out, TracedArray) else wrap(found)

    def __getitem__(self, index: Any) -> Any:
        base, at = _base(self), plain(index)
        if not _fancy(at):
            found = base[at]
            if not isinstance(found, np.ndarray):
                return found
            return wrap(perform(say.view, "slice", np.ndarray.__getitem__, (base, at), {}))
        return wrap(perform(say.indexed, "index", np.ndarray.__getitem__, (base, at), {}))

    def __setitem__(self, index: Any, value: Any) -> None:
        base, at, given = _base(self), plain(index), plain(value)
        if _fancy(at):
            perform(say.unknown, "put", np.ndarray.__setitem__, (base, at, given), {}, changes=[base])
            return
        to = base[at]
        if not isinstance(to, np.ndarray):
            base[at] = given
        elif isinstance(given, np.ndarray) and span(given) == span(to) and given.strides == to.strides:
            base[at] = given  # the end of `a[...] += b`: it is there already
        else:
            perform(say.copied_to, "copyto", _assign, (to, given), {}, changes=[to])

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
        out = options.get("out")
        changes = [base] if in_place else []
        found = perform(describe, name, function, (base, *plain(args)), plain(options), changes=changes)
        return out if isinstance(out, TracedArray) else wrap(found)

    call.__name__ = name
    return call


for _name, _describe in _METHODS.items():
    setattr(TracedArray, _name, _method(_name, _describe, in_place=False))
for _name, _describe in _IN_PLACE.items():
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
    """Make the call; write it down if something is recorded."""
    tape = current()
    if tape is None:
        return function(*args, **options)
    return tape.perform(describe, name, function, args, options, changes=changes or ())


def wrap(found: Any) -> Any:
    """Arrays as arrays that tell; anything else as it is."""
    if type(found) is np.ndarray:
        return found.view(TracedArray)
    if type(found) in (tuple, list):
        return type(found)(wrap(each) for each in found)
    if isinstance(found, tuple) and hasattr(found, "_fields"):  # such as the result of numpy.linalg.svd
        return type(found)(*(wrap(each) for each in found))
    return found


def plain(value: Any) -> Any:
    """Arrays that tell as plain ones, inside of tuples, lists and dicts too."""
    if isinstance(value, TracedArray):
        return _base(value)
    if type(value) is tuple:
        return tuple(plain(each) for each in value)
    if type(value) is list:
        return [plain(each) for each in value] if any(isinstance(each, TracedArray | tuple | list) for each in value) else value
    return {key: plain(each) for key, each in value.items()} if type(value) is dict else value


def _base(array: TracedArray) -> Array:
    return cast("Array", np.ndarray.view(array, np.ndarray))


def _assign(to: Array, given: Any) -> None:
    to[...] = given


def _fancy(index: Any) -> bool:
    return any(isinstance(each, np.ndarray | list) for each in (index if isinstance(index, tuple) else (index,)))
