"""A call of numpy as an op of hwsim: its kind, shape, number format, how its operands lie and where the result goes.

A call without an op, or with a number format that hwsim lacks, is `busy`: it takes the time it took when it was recorded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hwsim.devices.work import Call, Into, elementwise_call, lookup_call, product_call, reduce_call
from hwsim_calibrate.calls import REDUCTIONS
from hwsim_calibrate.recording.operands import Array, dtype_of, layout, layout_reduced, root, span, stored_transposed
from hwsim_calibrate.recording.ops import op_of
from hwsim_calibrate.recording.tape import Describe, Described, NoOp, Performed

SAME_AS: Final = {"true_divide": "divide", "amax": "max", "amin": "min"}
REDUCED: Final = {"add": "sum", "maximum": "max", "minimum": "min", "multiply": "prod", "logical_or": "any", "logical_and": "all"}
VIEWS: Final = {
    **dict.fromkeys(("swapaxes", "moveaxis", "T", "mT", "transpose"), "transpose"),
    **dict.fromkeys(("reshape", "ravel", "squeeze", "expand_dims"), "reshape"),
}
PRODUCTS: Final = ("matmul", "dot", "inner", "vdot", "vecdot", "matvec", "vecmat")
MOVES: Final = ("copy", "copyto", "astype", "fill", "concatenate", "take", "takerows", "zeros")  # without arithmetic
# FLOP of a core in the time of drawing one number, for machines without measured functions: 25 ns for a normal distribution and
# 5 ns for an even one, at the 40 GFLOP/s of a core with AVX2.
DRAWN: Final = {"uniform": 200.0, "random": 200.0, "integers": 200.0, "permutation": 400.0}
OTHERWISE_DRAWN: Final = 1000.0
WITHOUT_OP: Final = "hwsim has no op for it"


def ufunc(done: Performed) -> Described:
    """A ufunc called, or one of its methods: `add`, `add.reduce`."""
    name, _, method = done.name.partition(".")
    name = SAME_AS.get(name, name)
    result = done.result[0] if isinstance(done.result, tuple) else done.result
    if name in PRODUCTS and not method:
        return product(done)
    if method == "reduce":
        return _reduced(done, REDUCED.get(name, name), done.option("axis", 1, 0))
    if method == "accumulate" and name == "add":
        return _reduced(done, "cumsum", done.options.get("axis", 0))
    if method or isinstance(done.result, tuple) or _odd(*done.args, result) is not None:
        return unknown(done)
    arrays = [each for each in done.args if isinstance(each, np.ndarray) and each.ndim]
    return _elementwise(done, name, arrays, result, _into(done, *arrays), scalar=len(arrays) < len(done.args))


def reduction(done: Performed) -> Described:
    """`np.sum(a, axis)` and other reductions."""
    return _reduced(done, done.name, done.option("axis", 1))


def reduction_method(done: Performed) -> Described:
    """`a.sum(axis)` and other reductions."""
    return _reduced(done, done.name, done.option("axis", 1), " method")


def product(done: Performed) -> Described:
    """A product of matrices or vectors."""
    left, right, result = np.asarray(done.args[0]), np.asarray(done.args[1]), np.asarray(done.result)
    _refuse_odd(left, right, result)
    if not left.ndim or not right.ndim:
        return _elementwise(done, "multiply", [each for each in (left, right) if each.ndim], done.result, "new", scalar=True)
    if done.name == "vdot":
        left, right = left.ravel(), right.ravel()
    if done.name == "inner" and right.ndim > 1:
        right = np.swapaxes(right, -1, -2)
    if done.name == "dot" and right.ndim > 2:
        raise NoOp(WITHOUT_OP)
    k = left.shape[-1]
    m, n = left.shape[-2] if left.ndim > 1 else 1, right.shape[-1] if right.ndim > 1 else 1
    if done.name == "dot" and left.ndim > 2:
        m = int(left.size // max(k, 1))
    if min(m, n, k) < 1 or not result.size:
        raise NoOp("an empty product")
    form = "b" if stored_transposed(right) else "a" if stored_transposed(left) else ""
    one_matrix = left.ndim == 2 and right.ndim == 2 and m == n and span(left) == span(right)
    if one_matrix and stored_transposed(left) != stored_transposed(right):
        form = "gram"
    batch, since = max(int(result.size // max(m * n, 1)), 1), done.since(left, right, *_with_axes(result))
    call = product_call(m, k, n, dtype=dtype_of(result), batch=batch, form=form, into=_new_or_out(done), since=since)
    return _described(call, result.shape, since)


def einsum(done: Performed) -> Described:
    """Sums of products by the letters of their axes: a multiply-add for each combination and further operand."""
    letters, *factors = done.args
    operands, result = [np.asarray(each) for each in factors], np.asarray(done.result)
    if not isinstance(letters, str) or "." in letters or _odd(*operands, result) is not None:
        return unknown(done)
    inputs = letters.replace(" ", "").partition("->")[0].split(",")
    lengths = {
        letter: size for term, each in zip(inputs, operands, strict=True) for letter, size in zip(term, each.shape, strict=True)
    }
    done.since(*operands, *_with_axes(result))
    moved_bytes = sum(each.nbytes for each in operands) + result.nbytes
    flop = math.prod(lengths.values()) * max(2 * (len(operands) - 1), 1)
    keys = {"flop": f"{flop} FLOP", "bytes": f"{moved_bytes} B", "dtype": dtype_of(result), "mix": "vector"}
    return Described("compute", keys)


def moved(done: Performed) -> Described:
    """A copy (`copy`, `ravel`, ...), or a view where nothing is copied."""
    source, result = np.asarray(done.args[0]), np.asarray(done.result)
    if root(result) is root(source):
        return view(done)
    _refuse_odd(result, source)
    if dtype_of(source) != dtype_of(result):
        return _converted(done, "astype", source, result)
    if done.name in ("reshape", "ravel"):
        return _elementwise(done, "copyto", [source], result.reshape(source.shape), "new")
    return _elementwise(done, "copy", [source], result, "new")


def astype(done: Performed) -> Described:
    """`a.astype(...)`: a copy even to the same format, unless `copy=False`."""
    source, result = done.args[0], np.asarray(done.result)
    if root(result) is root(source):
        return view(done)
    _refuse_odd(result, source)
    return _converted(done, "astype", source, result)


def copied_to(done: Performed) -> Described:
    """`np.copyto(to, from)`, and `to[...] = from`."""
    target, source = done.args[0], np.asarray(done.args[1])
    _refuse_odd(target, source)
    if not source.ndim:
        return _elementwise(done, "fill", [], target, "out")
    if dtype_of(source) != dtype_of(target):
        return _converted(done, "copyto", source, target)
    return _elementwise(done, "copyto", [source], target, "out")


def filled(done: Performed) -> Described:
    """`a.fill(value)`."""
    _refuse_odd(done.args[0])
    return _elementwise(done, "fill", [], done.args[0], "out")


def created(done: Performed) -> Described:
    """An array that needs no input: `zeros`, `full`, `arange`, ..."""
    if not isinstance(done.result, np.ndarray):
        return unknown(done)
    _refuse_odd(done.result)
    kind = done.name.removesuffix("_like")
    if kind == "empty":
        done.since(done.result)
        raise NoOp("room alone: the first call that writes to it pays for its pages")
    return _elementwise(done, "fill" if kind in ("ones", "full") else kind, [], done.result, "new")


def from_objects(done: Performed) -> Described:
    """`np.array(...)`: a copy of an array; made from anything else it is Python's work."""
    if done.args and isinstance(done.args[0], np.ndarray):
        return moved(done)
    raise NoOp("made from objects of Python")


def drawn(done: Performed) -> Described:
    """Random numbers."""
    array = np.asarray(done.result)
    _refuse_odd(array)
    since = done.since(array)
    call = elementwise_call(
        done.name, dtype=dtype_of(array), count=float(array.size), inputs=0, into=_new_or_out(done), since=since
    )
    keys = {**_described(call, array.shape, since).keys, "inputs": 0, "flop_each": DRAWN.get(done.name, OTHERWISE_DRAWN)}
    return Described("elementwise", keys, since, call=call)


def indexed(done: Performed) -> Described:
    """`a[i]`, `np.take(a, i)`: elements or rows by an index."""
    table, index, result = done.args[0], np.asarray(done.args[1]), np.asarray(done.result)
    _refuse_odd(result, table)
    is_flat = done.name == "take" and done.option("axis", 2) is None
    is_list = isinstance(done.args[1], np.ndarray | list) and index.dtype != np.bool_
    if not is_list or not (is_flat or done.options.get("axis") in (None, 0)):
        done.since(table, *_with_axes(result))
        raise NoOp("an index of several arrays, of bool, or along another axis")
    by_row = table.ndim > 1 and not is_flat
    length, since = table.size / max(table.shape[0], 1) if by_row else 1.0, done.since(table, index, *_with_axes(result))
    call = lookup_call(
        "takerows" if by_row else "take", dtype=dtype_of(table), count=float(max(index.size, 1)), table=float(table.size),
        length=length, into=_new_or_out(done), since=since,
    )  # fmt: skip
    return _described(call, (), since)


def joined(done: Performed) -> Described:
    """`np.concatenate([...])`."""
    result = done.result
    _refuse_odd(result, *done.args[0])
    (age,) = done.since(result)
    call = elementwise_call("concatenate", dtype=dtype_of(result), count=float(result.size), since=(age, age))
    return _described(call, result.shape, (age, age))


def ordered(done: Performed) -> Described:
    """`sort`, `argsort` along the last axis."""
    array = done.args[0]
    if dtype_of(array) == "" or done.option("axis", 1, -1) not in (-1, array.ndim - 1):
        raise NoOp(WITHOUT_OP)
    rows = array.size / max(array.shape[-1], 1) if array.ndim > 1 else 1.0
    since = done.since(array, done.result if isinstance(done.result, np.ndarray) else array)
    indices = "int64" if done.name == "argsort" else ""
    call = elementwise_call(
        done.name, dtype=dtype_of(array), count=float(array.size), rows=max(rows, 1.0), result=indices, since=since
    )
    return _described(call, array.shape, since)


def chosen(done: Performed) -> Described:
    """`np.where(mask, a, b)`."""
    if len(done.args) < 3 or _odd(done.result, *done.args) is not None:
        return unknown(done)
    arrays = [each for each in done.args[1:] if isinstance(each, np.ndarray) and each.ndim]
    return _elementwise(done, done.name, arrays, done.result, "new")


def counted(done: Performed) -> Described:
    """`np.bincount(groups, weights)`."""
    arrays = [each for each in done.args[:2] if isinstance(each, np.ndarray)]
    count, form = float(np.size(done.args[0])), "" if len(arrays) > 1 else "plain"
    since = done.since(*arrays, done.result)
    call = elementwise_call(done.name, dtype="fp64", count=count, inputs=len(arrays), form=form, into="out", since=since)
    return _described(call, np.shape(done.args[0]), since)


def pointwise(done: Performed) -> Described:
    """`clip`, `round`: a function of each element of the first argument."""
    array = done.args[0]
    if not isinstance(array, np.ndarray) or _odd(array, done.result) is not None:
        return unknown(done)
    bounds = [each for each in done.args[1:] if isinstance(each, np.ndarray) and each.ndim]
    return _elementwise(done, done.name, [array, *bounds], done.result, _into(done, array), scalar=not bounds)


def view(done: Performed) -> Described:
    """A view of the same memory: no data moves."""
    call = Call(function=VIEWS.get(done.name, done.name))
    return Described(
        "elementwise", {"function": call.function, "count": 0, "inputs": 0, "flop_each": 0, "into": "out"}, call=call
    )


def unknown(done: Performed) -> Described:
    """Any other call: a view if its result is one, else busy."""
    results = done.result if isinstance(done.result, tuple | list) else (done.result,)
    arrays = [each for each in results if isinstance(each, np.ndarray)]
    given = {id(root(each)) for each in done.args if isinstance(each, np.ndarray)}
    only_arrays = arrays and len(arrays) == len(results) and done.options.get("out") is None
    if only_arrays and all(id(root(each)) in given for each in arrays):
        return view(done)
    done.since(*(each for each in (*done.args, *arrays) if isinstance(each, np.ndarray) and each.size))
    _refuse_odd(*done.args, *arrays)
    raise NoOp(WITHOUT_OP)


FUNCTIONS: Final[dict[str, Describe]] = {
    **dict.fromkeys(REDUCTIONS, reduction),
    **dict.fromkeys(("dot", "inner", "vdot", "matmul"), product),
    **dict.fromkeys(("copy", "ravel", "reshape"), moved),
    **dict.fromkeys(("sort", "argsort"), ordered),
    **dict.fromkeys(("clip", "round", "around", "nan_to_num"), pointwise),
    **dict.fromkeys(("zeros_like", "ones_like", "empty_like", "full_like"), created),
    "astype": astype, "bincount": counted, "concatenate": joined, "copyto": copied_to, "einsum": einsum, "take": indexed,
    "where": chosen,
}  # fmt: skip
METHODS: Final[dict[str, Describe]] = {
    **dict.fromkeys(REDUCTIONS, reduction_method),
    **dict.fromkeys(("copy", "flatten", "ravel", "reshape"), moved),
    **dict.fromkeys(("clip", "round"), pointwise),
    **dict.fromkeys(
        ("argpartition", "choose", "compress", "conj", "conjugate", "cumprod", "diagonal", "nonzero", "repeat", "searchsorted",
         "squeeze", "swapaxes", "trace", "transpose", "view"), unknown),
    "argsort": ordered, "astype": astype, "dot": product, "take": indexed,
}  # fmt: skip
IN_PLACE: Final[dict[str, Describe]] = {"fill": filled, "partition": unknown, "put": unknown, "sort": ordered}


def _elementwise(
    done: Performed, name: str, arrays: Sequence[Array], result: Any, into: Into, *, scalar: bool = False
) -> Described:
    """A function of each element; `arrays` have any shape that broadcasts to the result's."""
    result = np.asarray(result)
    form, rows = layout(arrays, result)
    full = [each for each in arrays if each.size == result.size and each.ndim]
    dtype = dtype_of(full[0] if full else max(arrays, key=np.size) if arrays else result)
    if not form and len(full) == 2:
        formats = [dtype_of(each) for each in full]
        form = "mask" if "bool" in formats and dtype != "bool" else "same" if span(full[0]) == span(full[1]) else ""
    if not form and scalar:
        form = "scalar"
    inputs = full[:1] if form == "same" else full
    since, made = done.since(*inputs, *_with_axes(result)), dtype_of(result)
    call = elementwise_call(
        name, dtype=dtype, count=float(result.size), inputs=len(inputs), form=form, rows=rows, into=into,
        result=made if made != dtype else "", since=since,
    )  # fmt: skip
    return _described(call, result.shape, since)


def _reduced(done: Performed, name: str, axis: Any, method: str = "") -> Described:
    array = np.asarray(done.args[0])
    _refuse_odd(array)
    form, rows = layout_reduced(array, axis)
    since = done.since(array)
    done.since(*_with_axes(np.asarray(done.result)))
    form = (form + method).strip()
    call = reduce_call(name, dtype=dtype_of(array), count=float(array.size), form=form, rows=rows, since=since)
    return _described(call, array.shape, since)


def _converted(done: Performed, function: str, source: Array, result: Array) -> Described:
    """A copy in another number format."""
    form = f"from {dtype_of(source)}" if dtype_of(source) != dtype_of(result) else ""
    into: Into = "out" if function == "copyto" else "new"
    since = done.since(source, result)
    call = elementwise_call(
        function, dtype=dtype_of(result), count=float(result.size), inputs=1, form=form, into=into, since=since
    )
    return _described(call, result.shape, since)


def _described(call: Call, shape: tuple[int, ...], since: tuple[float, ...]) -> Described:
    """The op that lowers to this call again, with the result's shape instead of its element count."""
    kind, keys = op_of(call)
    if "count" in keys and kind != "access":
        del keys["count"]
        keys = {"function": keys.pop("function"), "shape": list(shape) or [1], **keys}
    if keys["into"] == "new":
        del keys["into"]
    if kind == "elementwise" and call.function in MOVES:
        keys["flop_each"] = 0
    return Described(kind, keys, since, call=call)


def _into(done: Performed, *inputs: Array) -> Into:
    """Target of an elementwise result: a new array, one that exists, or an operand itself."""
    if done.options.get("out") is None:
        return "new"
    target = span(np.asarray(done.result[0] if isinstance(done.result, tuple) else done.result))
    return "self" if any(span(each) == target for each in inputs) else "out"


def _new_or_out(done: Performed) -> Into:
    return "new" if done.options.get("out") is None else "out"


def _with_axes(array: Array) -> tuple[Array, ...]:
    """The array, unless it is a single number."""
    return (array,) if array.ndim else ()


def _odd(*values: Any) -> Any:
    """The first array or number of a format that hwsim lacks."""
    return next((each for each in values if isinstance(each, np.ndarray | np.generic) and not dtype_of(each)), None)


def _refuse_odd(*values: Any) -> None:
    """Raise NoOp if a value has a number format that hwsim lacks."""
    odd = _odd(*values)
    if odd is not None:
        raise NoOp(f"hwsim has no number format {odd.dtype}")
