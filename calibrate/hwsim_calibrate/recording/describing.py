"""A call of numpy as an op of hwsim: its kind, shape, number format, how its operands lie and where the result goes.

What hwsim has no op for, or whose number format it lacks, is `busy`: it takes what it took when it was recorded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from hwsim.devices.calls import Into, elementwise_call, lookup_call, product_call, reduce_call
from hwsim_calibrate.program import op_of
from hwsim_calibrate.record import NAMES, REDUCED, SAME_AS, layout
from hwsim_calibrate.recording.tape import Array, Described, Tape, root
from hwsim_calibrate.reuse import span

Args = tuple[Any, ...]
Options = Mapping[str, Any]

REDUCTIONS: Final = ("sum", "max", "min", "mean", "std", "var", "argmax", "argmin", "prod", "any", "all", "cumsum")
VIEWS: Final = {"swapaxes": "transpose", "moveaxis": "transpose", "T": "transpose", "mT": "transpose", "transpose": "transpose",
                "getitem": "slice", "slice": "slice"}  # fmt: skip
PRODUCTS: Final = ("matmul", "dot", "inner", "vdot", "vecdot", "matvec", "vecmat")
MOVES: Final = ("copy", "copyto", "astype", "fill", "concatenate", "take", "takerows", "zeros")  # no arithmetic
# Drawing a number, in flop that a core does meanwhile, for machines whose functions nobody measured: 25 ns for one of a normal
# distribution and 5 ns for one that is evenly spread, at the 40 GFLOP/s of one core with AVX2.
DRAWN: Final = {"uniform": 200.0, "random": 200.0, "integers": 200.0, "permutation": 400.0}
OTHERWISE_DRAWN: Final = 1000.0
NO_OP: Final = "hwsim has no op for it"


def dtype_of(array: Any) -> str:
    """hwsim's name of the number format, "" if it has none like it."""
    return NAMES.get(str(array.dtype), "")


def ufunc(tape: Tape, name: str, args: Args, options: Options, found: Any) -> Described:
    """A ufunc called, or one of its methods: `add`, `add.reduce`."""
    called, _, method = name.partition(".")
    called = SAME_AS.get(called, called)
    result = found[0] if isinstance(found, tuple) else found
    if called in PRODUCTS and not method:
        return product(tape, called, args, options, found)
    if method == "reduce":
        axis = options.get("axis", args[1] if len(args) > 1 else 0)
        return reduced(tape, REDUCED.get(called, called), args[0], axis, found)
    if method == "accumulate" and called == "add":
        return reduced(tape, "cumsum", args[0], options.get("axis", 0), found)
    if method or isinstance(found, tuple) or not all(_known(each) for each in (*args, result)):
        return unknown(tape, name, args, options, found)
    arrays = [each for each in args if isinstance(each, np.ndarray) and each.ndim]
    out = options.get("out")
    into: Into = "new"
    if out is not None:
        into = "self" if any(span(each) == span(np.asarray(result)) for each in arrays) else "out"
    return elementwise(tape, called, arrays, result, into, scalar=len(arrays) < len(args))


def elementwise(tape: Tape, name: str, arrays: Sequence[Array], result: Any, into: Into, *, scalar: bool = False) -> Described:
    """A function of each element; `arrays` of any shape that broadcasts to that of the result."""
    made = np.asarray(result)
    form, rows = layout(arrays, made)
    full = [each for each in arrays if each.size == made.size and each.ndim]
    dtype = dtype_of(full[0] if full else max(arrays, key=np.size) if arrays else made)
    if not form and len(full) == 2:
        formats = [dtype_of(each) for each in full]
        form = "mask" if "bool" in formats and dtype != "bool" else "same" if span(full[0]) == span(full[1]) else ""
    if not form and scalar:
        form = "scalar"
    inputs = len(full[:1] if form == "same" else full)
    since = tape.since(*(full[:1] if form == "same" else full), *([made] if made.ndim else []))
    result_type = dtype_of(made) if dtype_of(made) != dtype else ""
    call = elementwise_call(
        name, dtype=dtype, count=float(made.size), inputs=inputs, form=form, rows=rows, into=into, result=result_type
    )
    return _described(call, since, made.shape, name)


def reduced(tape: Tape, name: str, array: Any, axis: Any, found: Any, *, method: bool = False) -> Described:
    """A reduction: of all elements, of rows, or across them."""
    base = np.asarray(array)
    if not _known(base):
        return _busy(name, base)
    axes = tuple(range(base.ndim)) if axis is None else tuple(axis) if isinstance(axis, tuple) else (int(axis),)
    axes = tuple(each % max(base.ndim, 1) for each in axes)
    form, rows = "", 1.0
    if len(axes) < base.ndim:
        inner = int(np.argmin([abs(each) if base.shape[at] > 1 else math.inf for at, each in enumerate(base.strides)]))
        form = "rows" if inner in axes else "columns"
        rows = base.size / max(base.shape[inner], 1)
    since = tape.since(base)
    if np.ndim(found):
        tape.since(np.asarray(found))
    form = f"{form} method".strip() if method else form
    call = reduce_call(name, dtype=dtype_of(base), count=float(base.size), form=form, rows=rows)
    return _described(call, since, base.shape, name)


def reduction(tape: Tape, name: str, args: Args, options: Options, found: Any) -> Described:
    """`np.sum(a, axis)` and its kin."""
    return reduced(tape, name, args[0], options.get("axis", args[1] if len(args) > 1 else None), found)


def reduction_method(tape: Tape, name: str, args: Args, options: Options, found: Any) -> Described:
    """`a.sum(axis)` and its kin."""
    return reduced(tape, name, args[0], options.get("axis", args[1] if len(args) > 1 else None), found, method=True)


def product(tape: Tape, name: str, args: Args, options: Options, found: Any) -> Described:
    """A product of matrices or vectors."""
    one, two, made = np.asarray(args[0]), np.asarray(args[1]), np.asarray(found)
    if not all(_known(each) for each in (one, two, made)):
        return _busy(name, made)
    if not one.ndim or not two.ndim:
        return elementwise(tape, "multiply", [each for each in (one, two) if each.ndim], found, "new", scalar=True)
    if name == "vdot":
        one, two = one.ravel(), two.ravel()
    if name == "inner" and two.ndim > 1:
        two = np.swapaxes(two, -1, -2)
    if name == "dot" and two.ndim > 2:
        return _busy(name, made, NO_OP)
    k = one.shape[-1]
    m, n = one.shape[-2] if one.ndim > 1 else 1, two.shape[-1] if two.ndim > 1 else 1
    if two.ndim <= 2 and one.ndim > 2 and name == "dot":
        m = int(one.size // max(k, 1))
    batch = max(int(made.size // max(m * n, 1)), 1)
    if min(m, n, k) < 1 or not made.size:
        return _busy(name, made, "an empty product")
    form = "b" if two.ndim > 1 and _turned(two) else "a" if one.ndim > 1 and _turned(one) else ""
    if one.ndim == 2 and two.ndim == 2 and m == n and span(one) == span(two) and _turned(one) != _turned(two):
        form = "gram"
    since = tape.since(one, two, *([made] if made.ndim else []))
    into: Into = "new" if options.get("out") is None else "out"
    call = product_call(m, k, n, dtype=dtype_of(made), batch=batch, form=form, into=into)
    return _described(call, since, made.shape, name)


def einsum(tape: Tape, name: str, args: Args, options: Options, found: Any) -> Described:
    """Sums of products by the letters of their axes: every combination of them is one multiply-add for each further operand."""
    words = args[0]
    operands = [np.asarray(each) for each in args[1:]]
    made = np.asarray(found)
    if not isinstance(words, str) or "." in words or not all(_known(each) for each in (*operands, made)):
        return unknown(tape, name, args, options, found)
    inputs = words.replace(" ", "").partition("->")[0].split(",")
    lengths = {
        letter: size for term, each in zip(inputs, operands, strict=True) for letter, size in zip(term, each.shape, strict=True)
    }
    tape.since(*operands, *([made] if made.ndim else []))
    moved = sum(each.nbytes for each in operands) + made.nbytes
    flop = math.prod(lengths.values()) * max(2 * (len(operands) - 1), 1)
    return Described("compute", {"flop": f"{flop} FLOP", "bytes": f"{moved} B", "dtype": dtype_of(made), "mix": "vector"})


def moved(tape: Tape, name: str, args: Args, options: Options, found: Any) -> Described:
    """Copies: `copy`, `ravel`, ..., and views where nothing is copied."""
    base, made = np.asarray(args[0]), np.asarray(found)
    if root(made) is root(base):
        return view(tape, name, args, options, found)
    if not _known(base) or not _known(made):
        return _busy(name, made)
    if dtype_of(base) != dtype_of(made):
        return converted(tape, name, base, made)
    copied = "copyto" if name in ("reshape", "ravel") else "copy"
    return elementwise(tape, copied, [base], made.reshape(base.shape) if copied == "copyto" else made, "new")


def converted(tape: Tape, name: str, base: Array, made: Array) -> Described:
    """A copy in another number format."""
    source, result = dtype_of(base), dtype_of(made)
    form = f"from {source}" if source != result else ""
    into: Into = "out" if name == "copyto" else "new"
    function = name if name in ("copyto", "astype") else "astype"
    call = elementwise_call(function, dtype=result, count=float(made.size), inputs=1, form=form, into=into)
    return _described(call, tape.since(base, made), made.shape, name)


def astype(tape: Tape, name: str, args: Args, options: Options, found: Any) -> Described:
    """`a.astype(...)`: a copy even to the same format."""
    base = args[0]
    if root(np.asarray(found)) is root(base):
        return view(tape, name, args, options, found)
    return converted(tape, name, base, found) if _known(base) and _known(found) else _busy(name, found)


def copied_to(tape: Tape, name: str, args: Args, options: Options, found: Any) -> Described:  # noqa: ARG001 (as all describe)
    """`np.copyto(to, from)`, and `to[...] = from`."""
    to, source = args[0], np.asarray(args[1])
    if not _known(to) or not _known(source):
        return _busy(name, to)
    if not source.ndim:
        return elementwise(tape, "fill", [], to, "out")
    if dtype_of(source) != dtype_of(to):
        return converted(tape, "copyto", source, to)
    return elementwise(tape, "copyto", [source], to, "out")


def filled(tape: Tape, name: str, args: Args, options: Options, found: Any) -> Described:  # noqa: ARG001 (as all describe)
    """`a.fill(value)`."""
    return elementwise(tape, "fill", [], args[0], "out") if _known(args[0]) else _busy(name, args[0])


def created(tape: Tape, name: str, args: Args, options: Options, found: Any) -> Described:
    """An array that nothing was computed for: `zeros`, `full`, `arange`, ..."""
    if not isinstance(found, np.ndarray):
        return unknown(tape, name, args, options, found)
    if not _known(found):
        return _busy(name, found)
    kind = name.removesuffix("_like")
    if kind == "empty":
        tape.since(found)
        return _busy(name, found, "room alone: the first call that writes to it pays for its pages")
    return elementwise(tape, "fill" if kind in ("ones", "full") else kind, [], found, "new")


def from_objects(tape: Tape, name: str, args: Args, options: Options, found: Any) -> Described:
    """`np.array(...)`: a copy of an array; of anything else it is Python's work."""
    if args and isinstance(args[0], np.ndarray):
        return moved(tape, name, args, options, found)
    return _busy(name, found, "made from objects of Python")


def drawn(tape: Tape, name: str, args: Args, options: Options, found: Any) -> Described:  # noqa: ARG001 (as all describe)
    """Random numbers."""
    array = found if isinstance(found, np.ndarray) else np.asarray(found)
    if not _known(array):
        return _busy(name, array)
    into: Into = "new" if options.get("out") is None else "out"
    call = elementwise_call(name, dtype=dtype_of(array), count=float(array.size), inputs=0, into=into)
    op = _described(call, tape.since(array), array.shape, name)
    keys = {**op.keys, "inputs": 0, "flop_each": DRAWN.get(name, OTHERWISE_DRAWN)}
    return Described("elementwise", keys, op.since)


def indexed(tape: Tape, name: str, args: Args, options: Options, found: Any) -> Described:
    """`a[i]`, `np.take(a, i)`: elements or rows by an index."""
    base, at, result = args[0], np.asarray(args[1]), np.asarray(found)
    if not (_known(base) and _known(result)):
        return _busy(name, result)
    whole = options.get("axis", args[2] if len(args) > 2 else None) is None and name == "take"
    if not isinstance(args[1], np.ndarray | list) or at.dtype == np.bool_ or (not whole and options.get("axis") not in (None, 0)):
        tape.since(base, *([result] if result.ndim else []))
        return _busy(name, result, "an index of several arrays, of bool, or along another axis")
    rows = base.ndim > 1 and not whole
    length = base.size / max(base.shape[0], 1) if rows else 1.0
    since = tape.since(base, at, *([result] if result.ndim else []))
    into: Into = "new" if options.get("out") is None else "out"
    call = lookup_call("takerows" if rows else "take", dtype=dtype_of(base), count=float(max(at.size, 1)), table=float(base.size),
                       length=length, into=into)  # fmt: skip
    return _described(call, since, (), name)


def joined(tape: Tape, name: str, args: Args, options: Options, found: Any) -> Described:  # noqa: ARG001 (as all describe)
    """`np.concatenate([...])`."""
    if not _known(found) or not all(_known(each) for each in args[0]):
        return _busy(name, found)
    since = tape.since(*[each for each in args[0] if isinstance(each, np.ndarray)][:0], found)
    call = elementwise_call("concatenate", dtype=dtype_of(found), count=float(found.size), inputs=1)
    return _described(call, (*since, *since), found.shape, name)


def ordered(tape: Tape, name: str, args: Args, options: Options, found: Any) -> Described:
    """`sort`, `argsort` along the last axis."""
    array = args[0]
    axis = options.get("axis", args[1] if len(args) > 1 else -1)
    if not _known(array) or axis not in (-1, array.ndim - 1):
        return _busy(name, array, NO_OP)
    result = found if isinstance(found, np.ndarray) else array
    rows = array.size / max(array.shape[-1], 1) if array.ndim > 1 else 1.0
    call = elementwise_call(name, dtype=dtype_of(array), count=float(array.size), rows=max(rows, 1.0),
                            result="int64" if name == "argsort" else "")  # fmt: skip
    return _described(call, tape.since(array, result), array.shape, name)


def chosen(tape: Tape, name: str, args: Args, options: Options, found: Any) -> Described:
    """`np.where(mask, a, b)`."""
    if len(args) < 3 or not _known(found) or not all(_known(each) for each in args):
        return unknown(tape, name, args, options, found)
    return elementwise(tape, name, [each for each in args[1:] if isinstance(each, np.ndarray) and each.ndim], found, "new")


def counted(tape: Tape, name: str, args: Args, options: Options, found: Any) -> Described:  # noqa: ARG001 (as all describe)
    """`np.bincount(which, weights)`."""
    arrays = [each for each in args[:2] if isinstance(each, np.ndarray)]
    since = (*tape.since(*arrays), *tape.since(found))
    form = "" if len(arrays) > 1 else "plain"
    call = elementwise_call(name, dtype="fp64", count=float(np.size(args[0])), inputs=len(arrays), form=form, into="out")
    return _described(call, since, np.shape(args[0]), name)


def pointwise(tape: Tape, name: str, args: Args, options: Options, found: Any) -> Described:
    """`clip`, `round`: a function of each element of the first argument."""
    base = args[0]
    if not isinstance(base, np.ndarray) or not _known(base) or not _known(found):
        return unknown(tape, name, args, options, found)
    others = [each for each in args[1:] if isinstance(each, np.ndarray) and each.ndim]
    into: Into = "new" if options.get("out") is None else "self" if span(np.asarray(found)) == span(base) else "out"
    return elementwise(tape, name, [base, *others], found, into, scalar=not others)


def view(tape: Tape, name: str, args: Args, options: Options, found: Any) -> Described:  # noqa: ARG001 (as all describe)
    """Another look at the same memory: nothing is moved."""
    called = VIEWS.get(name, "reshape" if name in ("reshape", "ravel", "squeeze", "expand_dims") else name)
    return Described("elementwise", {"function": called, "count": 0, "inputs": 0, "flop_each": 0, "into": "out"})


def unknown(tape: Tape, name: str, args: Args, options: Options, found: Any) -> Described:
    """Anything else: a view if its result is one, else busy."""
    results = found if isinstance(found, tuple | list) else (found,)
    arrays = [each for each in results if isinstance(each, np.ndarray)]
    given = {id(root(each)) for each in args if isinstance(each, np.ndarray)}
    if arrays and len(arrays) == len(results) and options.get("out") is None and all(id(root(each)) in given for each in arrays):
        return view(tape, name, args, options, found)
    tape.since(*(each for each in (*args, *arrays) if isinstance(each, np.ndarray) and each.size))
    odd = next((each for each in (*args, *arrays) if not _known(each)), None)
    return _busy(name, odd) if odd is not None else _busy(name, found, NO_OP)


# ---- common ----


def _described(call: Any, since: Sequence[float], shape: tuple[int, ...], name: str) -> Described:  # noqa: ARG001
    """The op that lowers to this call again."""
    kind, said = op_of(call)
    keys: dict[str, Any] = dict(said)
    if "count" in keys and kind != "access":
        keys.pop("count")
        keys = {"function": keys.pop("function"), "shape": list(shape) or [1], **keys}
    if keys.get("into") == "new":
        keys.pop("into")
    if kind == "elementwise" and call.function in MOVES:
        keys["flop_each"] = 0
    return Described(kind, keys, tuple(since))


def _busy(name: str, array: Any, reason: str = "") -> Described:
    said = str(array.dtype) if isinstance(array, np.ndarray | np.generic) else type(array).__name__
    return Described("busy", {}, reason=f"{name}: {reason or f'hwsim has no number format {said}'}")


def _known(value: Any) -> bool:
    """Whether hwsim has its number format; what is no array has none."""
    return not isinstance(value, np.ndarray | np.generic) or bool(dtype_of(value))


def _turned(array: Array) -> bool:
    """Stored with its last two axes swapped."""
    return abs(array.strides[-1]) > abs(array.strides[-2]) and array.shape[-1] > 1
