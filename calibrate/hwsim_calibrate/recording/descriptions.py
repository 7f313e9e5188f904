"""Common parts of the descriptions of numpy calls: the op with its elements, bytes and result location."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hwsim.devices.work import Into, LibraryCall, elementwise_call, general_call, reduce_call
from hwsim_calibrate.recording.operands import Array, dtype_of, layout, layout_reduced, root, span
from hwsim_calibrate.recording.ops import op_of
from hwsim_calibrate.recording.tape import Described, NoOp, Performed

SAME_AS: Final = {
    "true_divide": "divide", "amax": "max", "amin": "min", "fliplr": "flip", "flipud": "flip", "quantile": "percentile",
    "hstack": "concatenate", "ifftshift": "fftshift", "matrix_transpose": "transpose",
}  # fmt: skip
VIEWS: Final = {
    **dict.fromkeys(("swapaxes", "moveaxis", "T", "mT", "transpose"), "transpose"),
    **dict.fromkeys(("reshape", "ravel", "squeeze", "expand_dims"), "reshape"),
}
MOVES: Final = ("copy", "copyto", "astype", "fill", "concatenate", "take", "takerows", "zeros")  # copies without arithmetic
WITHOUT_OP: Final = "hwsim has no op for this call"


def general(
    done: Performed, name: str, steps: float, arrays: Sequence[Array], result: Array, *, form: str = "", rows: float = 1.0,
    dtype: str = "", more: Sequence[Array] = (), into: Into | None = None,
) -> Described:  # fmt: skip
    """Describe a call with `steps` operations that reads arrays and writes one.

    Args:
        done: the call.
        name: function of the op.
        steps: number of operations.
        arrays: arrays that are read completely.
        result: array that is written.
        form: form of the call.
        rows: number of inner loops.
        dtype: number format; default: the format of the largest array.
        more: arrays of which only as many bytes as the result has are read.
        into: location of the result.
    """
    kind = dtype or dtype_of(max(arrays, key=np.size) if arrays else result)
    if not kind:
        require_supported(*arrays, result)
    ages = done.since(*(array for array in (*arrays, *more) if array.ndim), *with_axes(result))
    reads = float(sum(array.nbytes for array in arrays) + (result.nbytes if more else 0))
    age, last = max(ages[:-1], default=reads), ages[-1] if ages and result.ndim else reads
    call = general_call(
        name, dtype=kind, count=max(steps, 1.0), reads=reads, writes=float(result.nbytes), form=form, rows=max(rows, 1.0),
        into=into or new_or_out(done), since=(age, last),
    )  # fmt: skip
    return described(call, (), (age, last))


def first_result(done: Performed) -> Array:
    """Return the first array of the result."""
    value = done.result
    while isinstance(value, tuple | list) and value:
        value = value[0]
    return np.asarray(value)


def flat_arrays(values: Sequence[Any]) -> list[Array]:
    """Return all arrays among arguments, including arrays in tuples and lists."""
    arrays: list[Array] = []
    for value in values:
        if isinstance(value, np.ndarray):
            arrays.append(value)
        elif isinstance(value, tuple | list):
            arrays += flat_arrays(value[:64])
    return arrays


def view(done: Performed) -> Described:
    """Describe a view, which moves no data."""
    call = LibraryCall(function=VIEWS.get(done.name, done.name))
    return Described(
        "elementwise", {"function": call.function, "count": 0, "inputs": 0, "flop_each": 0, "into": "out"}, call=call
    )


def unknown(done: Performed) -> Described:
    """Describe any other call: as a view if its result is one; else raise NoOp."""
    results = done.result if isinstance(done.result, tuple | list) else (done.result,)
    arrays = [result for result in results if isinstance(result, np.ndarray)]
    given = {id(root(array)) for array in flat_arrays(done.args)}
    only_arrays = arrays and len(arrays) == len(results) and done.options.get("out") is None
    if only_arrays and all(id(root(array)) in given for array in arrays):
        return view(done)
    done.since(*(value for value in (*done.args, *arrays) if isinstance(value, np.ndarray) and value.size))
    require_supported(*done.args, *arrays)
    raise NoOp(WITHOUT_OP)


def elementwise(
    done: Performed, name: str, arrays: Sequence[Array], result: Any, into: Into, *, scalar: bool = False, more: str = "",
    dtype: str = "",
) -> Described:  # fmt: skip
    """Describe an elementwise function; the shapes of `arrays` broadcast to the shape of the result."""
    result = np.asarray(result)
    form, rows = layout(arrays, result)
    full = [array for array in arrays if array.size == result.size and array.ndim]
    dtype = dtype or dtype_of(full[0] if full else max(arrays, key=np.size) if arrays else result)
    if not form and len(full) == 2:
        formats = [dtype_of(array) for array in full]
        form = "mask" if "bool" in formats and dtype != "bool" else "same" if span(full[0]) == span(full[1]) else ""
    if not form and scalar:
        form = "scalar"
    form = more if more == "signed" else " ".join(word for word in (form, more) if word)
    inputs = full[:1] if form.startswith("same") else full
    since, made = done.since(*inputs, *with_axes(result)), dtype_of(result)
    call = elementwise_call(
        name, dtype=dtype, count=float(result.size), inputs=len(inputs), form=form, rows=rows, into=into,
        result=made if made != dtype else "", since=since,
    )  # fmt: skip
    return described(call, result.shape, since)


def reduced(done: Performed, name: str, axis: Any, method: str = "") -> Described:
    """Describe a reduction of all elements or along an axis."""
    array = np.asarray(done.args[0])
    require_supported(array)
    form, rows = layout_reduced(array, axis)
    since = done.since(array)
    done.since(*with_axes(np.asarray(done.result)))
    form = (form + method).strip()
    call = reduce_call(name, dtype=dtype_of(array), count=float(array.size), form=form, rows=rows, since=since)
    return described(call, array.shape, since)


def converted(done: Performed, function: str, source: Array, result: Array) -> Described:
    """Describe a copy to another number format."""
    form = f"from {dtype_of(source)}" if dtype_of(source) != dtype_of(result) else ""
    into: Into = "out" if function == "copyto" else "new"
    since = done.since(source, result)
    call = elementwise_call(
        function, dtype=dtype_of(result), count=float(result.size), inputs=1, form=form, into=into, since=since
    )
    return described(call, result.shape, since)


def described(call: LibraryCall, shape: tuple[int, ...], since: tuple[float, ...]) -> Described:
    """Return the op that lowers to a call, with the result's shape instead of its element count."""
    kind, keys = op_of(call)
    if "count" in keys and kind != "access":
        del keys["count"]
        keys = {"function": keys.pop("function"), "shape": list(shape) or [1], **keys}
    if keys["into"] == "new":
        del keys["into"]
    if kind == "elementwise" and call.function in MOVES:
        keys["flop_each"] = 0
    return Described(kind, keys, since, call=call)


def target_of(done: Performed, *inputs: Array) -> Into:
    """Return the location of an elementwise result: a new array, an existing array, or an operand."""
    if done.options.get("out") is None:
        return "new"
    target = span(np.asarray(done.result[0] if isinstance(done.result, tuple) else done.result))
    return "self" if any(span(input_) == target for input_ in inputs) else "out"


def new_or_out(done: Performed) -> Into:
    """Return the location of a result: a new or an existing array."""
    return "new" if done.options.get("out") is None else "out"


def with_axes(array: Array) -> tuple[Array, ...]:
    """Return the array in a tuple, which is empty for a single number."""
    return (array,) if array.ndim else ()


def first_unsupported(*values: Any) -> Any:
    """Return the first value with a number format that hwsim does not support, or None."""
    return next((value for value in values if isinstance(value, np.ndarray | np.generic) and not dtype_of(value)), None)


def require_supported(*values: Any) -> None:
    """Raise NoOp if a value has a number format that hwsim does not support."""
    odd = first_unsupported(*values)
    if odd is not None:
        raise NoOp(f"hwsim does not support the number format {odd.dtype}")
