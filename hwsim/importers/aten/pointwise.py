"""Translate elementwise operators on tensors and lists of tensors; `operators.yaml` has their FLOP per element."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from hwsim.importers.aten.inputs import OPERATORS, Inputs, Unknown, named, numel
from hwsim.importers.aten.products import Reader, Statement, computed, moving
from hwsim.units import BYTES

SPECIAL: Final = 8.0  # FLOP of a function of the special function units
_MADE_ALONE, _NEW, _TRUTHS = named("made_alone"), named("new"), named("truths")
FLOP_EACH: Final[Mapping[str, float]] = {
    name: float(flop) for flop, names in OPERATORS["elementwise"].items() for name in names.split()
}


def pointwise(name: str, inputs: Inputs) -> Statement:
    """Translate an elementwise operator; broadcast inputs are read once."""
    if name in _NEW:
        return _made(name, inputs)
    shapes = {tensor: inputs.shape(tensor) for tensor in inputs.tensors()}
    if not shapes:
        raise Unknown("no shapes")
    made = broadcast(tuple(shapes.values()))
    at = 1 if name == "where" and inputs.has(1) else 0
    dtype = inputs.dtype(at) if inputs.has(at) else inputs.dtype(inputs.largest())
    result = _result(name, inputs, dtype)
    if name in {"repeat", "constant_pad_nd", "pad"}:
        made = _grown(name, inputs, made)
    if name.startswith("upsample"):
        made = _resized(name, inputs, made)
    if name.endswith("_") and not name.endswith("__"):
        made = shapes.get(0, made)
    read = list(shapes)
    if name in _MADE_ALONE:
        read = []
    if name in {"copy_", "copy"} and 1 in read:
        read, dtype, result = [1], inputs.dtype(1), inputs.dtype(0)
    formats = [(numel(shapes[index]), inputs.dtype(index)) for index in read]
    return elementwise(numel(made), FLOP_EACH[name], formats, dtype, result)


def elementwise(count: int, flop: float, read: list[tuple[int, str]], dtype: str, result: str) -> Statement:
    """Return the statement for `count` result elements from inputs of (elements, data type).

    It is `elementwise` if all large inputs have one data type and size, else `compute` with bytes.
    """
    if count < 1:
        return {}
    full = [(size, form) for size, form in read if 2 * size > count]
    if all(size == count and form == dtype for size, form in full):
        keys: dict[str, Any] = {"count": count, "inputs": len(full), "dtype": dtype, "flop_each": flop}
        keys |= {"result": result} if result != dtype else {}
        return {"elementwise": keys}
    moved = math.fsum(size * BYTES[form] for size, form in read)
    made = count * BYTES[result]
    return computed(flop * count, moved + made, "fp32" if dtype == "bool" else dtype, "vector", made=made)


def _result(name: str, inputs: Inputs, dtype: str) -> str:
    if name in _TRUTHS:
        return "bool"
    if name in {"_to_copy", "to"}:
        return inputs.asked(1) or dtype
    return dtype


def _made(name: str, inputs: Inputs) -> Statement:
    """Translate the creation of a tensor, whose shape is among the values."""
    at = 1 if name.startswith("new_") else 0
    sizes = inputs.numbers(at)
    if not sizes and inputs.text(at) not in ("[]", "()"):
        raise Unknown("the file has no values of the shape")
    if name == "arange" and len(inputs.numbers(1)) == 1 and not inputs.text(1).startswith("["):
        sizes = (max(1, inputs.number(1) - sizes[0]),) if inputs.text(2) == "1" else sizes
    return elementwise(max(1, numel(sizes)), FLOP_EACH[name], [], "fp32", "fp32")


def broadcast(shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """Return the broadcast shape; the largest shape if they do not match.

    >>> broadcast(((8, 1, 4), (3, 1), ()))
    (8, 3, 4)
    """
    longest = max(map(len, shapes), default=0)
    made: list[int] = []
    for axis in range(-longest, 0):
        sides = {shape[axis] for shape in shapes if len(shape) >= -axis} - {1}
        if len(sides) > 1:
            return max(shapes, key=numel)
        made.append(sides.pop() if sides else 1)
    return tuple(made)


def _grown(name: str, inputs: Inputs, shape: tuple[int, ...]) -> tuple[int, ...]:
    numbers = inputs.numbers(1)
    if not numbers:
        raise Unknown("the file does not state the size of the result")
    if name == "repeat":
        return (numel(shape) * numel(numbers),)
    sides = list(shape)
    for index in range(len(numbers) // 2):
        sides[-1 - index] += numbers[2 * index] + numbers[2 * index + 1]
    return tuple(sides)


def _resized(name: str, inputs: Inputs, shape: tuple[int, ...]) -> tuple[int, ...]:
    sizes = inputs.numbers(2 if name.endswith("_backward") else 1)
    if len(shape) != 4:
        return shape
    if not name.endswith("_backward") and len(sizes) == 2:
        return (*shape[:2], *sizes)
    return shape


# fused optimizers -> FLOP per parameter, number of lists written
FUSED: Final[Mapping[str, tuple[float, int]]] = {
    "_fused_adam_": (2 * SPECIAL + 12, 3), "_fused_adamw_": (2 * SPECIAL + 12, 3), "_fused_sgd_": (4.0, 2),
    "_fused_adagrad_": (2 * SPECIAL + 4, 2),
}  # fmt: skip


def fused(name: str, inputs: Inputs) -> Statement:
    """Translate a fused optimizer step over lists of parameters, gradients and states."""
    flop, written = FUSED[name]
    lists = [index for index in range(5) if inputs.is_list(index)]
    if not lists:
        raise Unknown("the file has no shapes of the parameters")
    sizes = [sum(map(numel, inputs.shapes(index))) for index in lists]  # integers
    dtype = inputs.dtype(lists[0])
    made = sizes[0] + math.fsum(sizes[2 : 1 + written])  # parameters and states; gradients are only read
    return moving(math.fsum(sizes) * BYTES[dtype], made * BYTES[dtype], dtype, flop * sizes[0])


def foreach(name: str, inputs: Inputs) -> Statement:
    """Translate a _foreach_ operator, which applies a function to each tensor of a list."""
    plain = name.removeprefix("_foreach_").removesuffix("_")
    if not inputs.is_list(0):
        raise Unknown("the shapes of the tensors of the list are missing")
    lists = [index for index in range(4) if inputs.is_list(index)]
    count = sum(map(numel, inputs.shapes(0)))  # integers
    dtype = inputs.dtype(0)
    if plain in {"norm", "max"}:
        return {"reduce": {"count": count, "dtype": dtype}} if count else {}
    read = [(count, dtype)] * len(lists)
    if plain == "copy":
        read = read[1:]
    if plain == "zero":
        read = []
    return elementwise(count, FLOP_EACH.get(plain, SPECIAL), read, dtype, dtype)


POINTWISE: Final[Mapping[str, Reader]] = {
    **dict.fromkeys(FLOP_EACH, pointwise), **dict.fromkeys(FUSED, fused),
    "_amp_foreach_non_finite_check_and_unscale_": foreach,
}  # fmt: skip

__all__ = ["FLOP_EACH", "POINTWISE", "SPECIAL", "broadcast", "elementwise", "foreach", "pointwise"]
