"""An operator of PyTorch as an op of a workload: what `hwsim.importers.aten` makes of its shapes, as a call of torch's.

The same way leads from a recorded call to its op, and from a case of the suite `torch` to the call that it times. Nothing here
imports PyTorch: tensors are asked for their shape, format and strides alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from hwsim.importers.aten import FREE, meaning, plain
from hwsim.importers.aten.inputs import Inputs, format_of
from hwsim.importers.recording import Facts
from hwsim.units import BYTES
from hwsim_calibrate.recording.operands import is_tensor
from hwsim_calibrate.recording.tape import Described, NoOp, Performed

LIBRARY: Final = "torch"
DEVICE: Final = "gpu"
NAMED: Final = ("compute", "elementwise", "random", "reduce", "softmax", "layernorm")  # kinds that a function's name tells apart
MOVES: Final = ("matmul", "elementwise", "reduce", "softmax")  # kinds whose `since` is said by operand
BIAS: Final = ("addmm", "baddbmm", "addmv")
COPIED: Final = ("clone", "contiguous", "_to_copy")
READ_BACK: Final = ("_local_scalar_dense",)


def free(func: Any) -> bool:
    """Whether an operator does nothing but look at its arrays another way, or make room for one."""
    return bool(func.namespace in ("prim", "profiler") or func.is_view or (plain(func._schema.name) in FREE))  # noqa: SLF001


def changed(func: Any, args: Sequence[Any], options: Mapping[str, Any]) -> list[Any]:
    """The tensors that an operator changes in place."""
    named = _arguments(func, args, options)
    return [each for argument, value in named if argument.alias_info is not None and argument.alias_info.is_write
            for each in tensors(value)]  # fmt: skip


def tensors(value: Any) -> list[Any]:
    """The tensors among arguments, in order."""
    if is_tensor(value):
        return [value]
    return [each for inner in value for each in tensors(inner)] if isinstance(value, tuple | list) else []


def facts_of(func: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Facts:
    """Shapes, formats, strides and values of all inputs, in the order of the operator's schema."""
    values = [value for _, value in _arguments(func, args, options)]
    return Facts(
        shapes=tuple(_shape(each) for each in values),
        dtypes=tuple(_dtype(each) for each in values),
        strides=tuple(tuple(each.stride()) if is_tensor(each) else () for each in values),
        values=tuple("" if tensors(each) or each is None else str(each) for each in values),
    )


def _arguments(func: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    for at, argument in enumerate(func._schema.arguments):  # noqa: SLF001 (the only place that names them)
        yield argument, args[at] if at < len(args) else options.get(argument.name, argument.default_value)


def _shape(value: Any) -> Any:
    if is_tensor(value):
        return tuple(int(each) for each in value.shape)
    return tuple(tuple(each.shape) if is_tensor(each) else () for each in value) if tensors(value) else ()


def _dtype(value: Any) -> str:
    if is_tensor(value):
        return str(value.dtype).removeprefix("torch.")
    found = tensors(value)
    return f"TensorList<{_dtype(found[0])}>" if found else ""


def described(func: Any) -> Callable[[Performed], Described]:
    """The function that describes calls of an operator."""
    name = func._schema.name  # noqa: SLF001

    def describe(done: Performed) -> Described:
        given = [each for each in tensors([*done.args, *done.options.values()]) if each.numel()]
        made = tensors(done.result)
        facts = facts_of(func, done.args, done.options)
        kind, keys, reason = statement_of(name, facts)
        on_gpu = any(each.device.type == "cuda" for each in (*given, *made))
        if reason:
            raise NoOp(reason)
        copied = _between(plain(name), given, made)
        if copied is not None:
            return copied
        if any(hasattr(each, "fake_mode") for each in (*given, *made)):
            return Described(kind, {**_without_call(keys), "device": DEVICE} if on_gpu else keys)
        if on_gpu:
            return Described(kind, {**_without_call(keys), "device": DEVICE})
        idle = done.idle()
        return Described(kind, keys, _ages(kind, keys, done, given, made), idle=idle)

    return describe


def statement_of(name: str, facts: Facts) -> tuple[str, dict[str, Any], str]:
    """(kind of op, its keys as a call of torch's, why there is none) of an operator."""
    read = meaning(name, facts)
    if read.statement is None:
        return "", {}, read.why or "no work"
    ((kind, given),) = read.statement.items()
    keys, short, inputs = {**given, "library": LIBRARY}, plain(name), Inputs(facts)
    in_place = short.endswith("_") and not short.endswith("__")
    if in_place:
        keys["into"] = "self"
    if kind == "compute":
        keys |= _amounts(keys)
    if kind in NAMED:
        keys["function"] = short.removesuffix("_").lstrip("_")
        form, rows = _layout(short, inputs)
        if short.startswith("gelu") and "tanh" in inputs.text(inputs.tensors()[-1] + 1):
            form = f"tanh {form}".strip()
        if form or rows > 1:
            keys |= {"form": form, "rows": rows}
    if kind == "embedding" and not short.startswith(("embedding", "_embedding")):
        keys["form"] = short.removesuffix("_")
    if kind == "reduce":
        keys |= _reduced(short, inputs)
    if kind == "matmul" and (form := _product_form(short, inputs, int(keys.get("batch", 1)))):
        keys["form"] = form
    return kind, keys, ""


def _amounts(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Amounts with their units; what has no arithmetic takes a step for each element that it writes, or reads."""
    moved, made, steps = (float(str(keys.get(key, 0.0)).split()[0]) for key in ("bytes", "result", "flop"))
    steps = steps or (made or moved) / BYTES[str(keys.get("dtype", "fp32"))]
    return {"flop": f"{steps:.0f} FLOP", "bytes": f"{moved:.0f} B", "result": f"{made:.0f} B"}


def _without_call(keys: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that mean something on a GPU."""
    return {key: value for key, value in keys.items() if key not in ("library", "function", "form", "rows", "into")}


def _between(name: str, given: Sequence[Any], made: Sequence[Any]) -> Described | None:
    """A copy between host and GPU; None for anything else."""
    if name in READ_BACK and given:
        return _copy(given[0], "cpu")
    if name not in ("_to_copy", "copy_", "copy") or not made:
        return None
    source = given[-1] if name != "_to_copy" and len(given) > 1 else given[0] if given else None
    if source is None or source.device.type == made[0].device.type:
        return None
    return _copy(source, made[0].device.type)


def _copy(source: Any, to: str) -> Described:
    ends = {"cuda": DEVICE}
    size = source.numel() * source.element_size()
    keys = {"from": ends.get(source.device.type, "cpu"), "to": ends.get(to, "cpu"), "bytes": f"{size} B"}
    return Described("copy", {**keys, "memory": "pinned" if _pinned(source) else "pageable"})


def _pinned(source: Any) -> bool:
    try:
        return bool(source.is_pinned())
    except RuntimeError:  # there is no GPU to be pinned for
        return False


def _ages(kind: str, keys: Mapping[str, Any], done: Performed, given: Sequence[Any], made: Sequence[Any]) -> tuple[float, ...]:
    """Bytes used since the last use of each operand: by operand, or of all that is read and of all that is written."""
    results = [each for each in made if each.numel() > 1 and all(each is not other for other in given)]
    if kind == "matmul":
        factors = [each for each in given if each.dim() > 1][-2:]
        others = [each for each in given if all(each is not factor for factor in factors)]
        done.since(*others)
        return done.since(*factors, *results[:1]) if len(factors) == 2 else ()
    if kind == "elementwise":
        full = [each for each in given if 2 * each.numel() > keys["count"]][: int(keys["inputs"])]
        done.since(*(each for each in given if all(each is not other for other in full)))
        return done.since(*full, *(results[:1] or full[:1])) if full or results else ()
    read = done.since(*(each for each in given if each.numel() > 1))
    written = done.since(*results)
    if kind == "reduce" or (kind == "softmax" and not written):
        return (max(read),) if read else ()
    return (max(read or written), max(written or read)) if read or written else ()


# ---- how operands lie ----


def _layout(name: str, inputs: Inputs) -> tuple[str, float]:
    """(form, inner loops) of operands of one function: broadcast along rows or columns, or not in the order of memory."""
    if inputs.is_list(0):
        return "", float(len(inputs.shapes(0)))
    shapes = [inputs.shape(at) for at in inputs.tensors() if math.prod(inputs.shape(at)) > 1]
    strides = [inputs.strides(at) for at in inputs.tensors() if math.prod(inputs.shape(at)) > 1]
    if not shapes:
        return "", 1.0
    largest = max(shapes, key=math.prod)
    full = [(shape, steps) for shape, steps in zip(shapes, strides, strict=True)
             if steps and len(shape) > 1 and math.prod(shape) == math.prod(largest)]  # fmt: skip
    ways = {_order(shape, steps) for shape, steps in full}
    if name in COPIED and "contiguous" in inputs.text(1).replace("0", "contiguous"):
        ways.add(tuple(axis for axis, side in enumerate(largest) if side > 1))
    if len(ways) > 1 or not all(_dense(shape, steps) for shape, steps in full):
        rows = all(steps[-1] == 1 or shape[-1] == 1 for shape, steps in full)
        return ("strided" if rows else "across"), float(math.prod(largest[:-1]))
    smaller = [shape for shape in shapes if 1 < math.prod(shape) < math.prod(largest)]
    if not smaller:
        return "", 1.0
    shape = smaller[0]
    return ("row" if shape and shape[-1] == largest[-1] else "column"), float(math.prod(largest[:-1]))


def _order(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """The axes in the order of memory, the outermost first; axes of one element are left out."""
    return tuple(sorted((axis for axis, side in enumerate(shape) if side > 1), key=lambda axis: -strides[axis]))


def _dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether an array has no gaps, in whatever order of its axes."""
    step = 1
    for stride, length in sorted((stride, length) for stride, length in zip(strides, shape, strict=True) if length > 1):
        if stride != step:
            return False
        step *= length
    return True


def _reduced(name: str, inputs: Inputs) -> dict[str, Any]:
    """The keys of the way of a reduction through its array: all of it, along its rows, or across them."""
    shape, axes = inputs.shape(inputs.largest()), inputs.numbers(1)
    if (
        len(shape) < 2
        or not axes
        or not inputs.text(1).startswith(("[", "-", *"0123456789"))
        or name in ("norm", "linalg_vector_norm")
    ):
        return {}
    last = len(shape) - 1
    along = {axis % len(shape) for axis in axes}
    if len(along) == len(shape):
        return {}
    form = "rows" if last in along else "columns"
    return {"form": form, "rows": float(math.prod(shape) // max(shape[-1], 1))}


def _product_form(name: str, inputs: Inputs, batch: int) -> str:
    """Which factors are stored transposed, whether a bias is added, whether there are many."""
    first = 1 if name in BIAS else 0
    turned = "".join(letter for letter, at in (("a", first), ("b", first + 1)) if _turned(inputs.strides(at)))
    return " ".join(word for word in ("batched" if batch > 1 else "", turned, "bias" if first else "") if word)


def _turned(strides: Sequence[int]) -> bool:
    return len(strides) > 1 and strides[-1] != 1 and strides[-2] == 1


__all__ = ["LIBRARY", "changed", "described", "facts_of", "format_of", "free", "statement_of", "tensors"]
