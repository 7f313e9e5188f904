"""Operators on each element of arrays, and on lists of arrays: FLOP per element by name.

A function that the special units compute (exp, log, sin, a root, a division) counts as 8 operations: a multiprocessor gives 16
of them in the time of 128 multiply-adds (CUDA C++ Programming Guide, table of arithmetic instructions).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from hwsim.importers.aten.inputs import Inputs, Unknown, numel, words
from hwsim.importers.aten.products import Reader, Statement, computed, moving
from hwsim.units import BYTES

SPECIAL: Final = 8.0
_EACH: Final[Mapping[float, str]] = {
    0.0: (
        "copy_ _to_copy clone contiguous copy to fill_ fill zero_ zeros_like ones_like full_like masked_fill masked_fill_ "
        "where flip roll repeat tril tril_ triu triu_ constant_pad_nd pad reflection_pad2d replication_pad2d lift "
        "new_full triu_indices tril_indices full ones zeros arange new_zeros new_ones scalar_tensor eye linspace "
        "expand_copy permute_copy t_copy view_copy transpose_copy slice_copy pixel_shuffle channel_shuffle diag_embed "
        "block_diag rot90 convert_element_type"
    ),
    1.0: (
        "add add_ sub sub_ rsub mul mul_ neg neg_ abs abs_ relu relu_ relu6 hardtanh hardtanh_ clamp clamp_ clamp_min "
        "clamp_min_ clamp_max clamp_max_ maximum minimum max.other min.other eq ne lt le gt ge eq_ ne_ lt_ le_ gt_ ge_ "
        "logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_not bitwise_xor bitwise_and_ "
        "bitwise_or_ sign ceil floor round trunc isnan isinf isfinite nan_to_num nan_to_num_ threshold threshold_ "
        "threshold_backward hardtanh_backward square dropout _masked_scale masked_scale native_dropout_backward "
        "leaky_relu leaky_relu_ leaky_relu_backward __and__ __or__ masked_select __lshift__ __rshift__ floor_ round_ "
        "ceil_ sgn"
    ),
    3.0: (
        "addcmul addcmul_ lerp lerp_ add_relu mse_loss mse_loss_backward smooth_l1_loss l1_loss hardswish hardswish_ "
        "hardsigmoid hardswish_backward hardsigmoid_backward tanh_backward sigmoid_backward smooth_l1_loss_backward "
        "upsample_nearest2d upsample_nearest2d_backward"
    ),
    SPECIAL: (
        "div div_ exp exp_ log log_ log2 log2_ log10 log1p log1p_ sqrt sqrt_ rsqrt rsqrt_ sin cos sin_ cos_ reciprocal "
        "reciprocal_ floor_divide remainder fmod pow pow_ exp2 expm1 tan asin acos atan true_divide"
    ),
    SPECIAL + 3: (
        "addcdiv addcdiv_ logit_backward xlogy huber_loss"
    ),
    2 * SPECIAL + 2: (
        "sigmoid sigmoid_ tanh tanh_ erf erf_ logit softplus logsigmoid log_sigmoid_forward silu silu_ elu elu_ mish "
        "softplus_backward elu_backward erfinv erfinv_ atan2 erfc log_sigmoid_backward logaddexp upsample_bilinear2d "
        "upsample_bilinear2d_backward binary_cross_entropy binary_cross_entropy_backward selu celu"
    ),
    3 * SPECIAL: (
        "gelu gelu_ silu_backward glu glu_backward binary_cross_entropy_with_logits mish_backward upsample_bicubic2d"
    ),
    5 * SPECIAL: (
        "gelu_backward normal_ uniform_ bernoulli_ random_ exponential_ bernoulli native_dropout rand randn rand_like "
        "randn_like randint randperm dropout_ fused_dropout _fused_dropout normal multinomial log_normal_ geometric_"
    ),
}  # fmt: skip
# Arrays of the result's size that a function reads where the inputs' shapes do not say, and its result's format.
_MADE_ALONE: Final = words(
    "fill_ fill zero_ zeros_like ones_like full_like normal_ uniform_ bernoulli_ random_ exponential_ log_normal_ geometric_ "
    "rand_like randn_like"
)
_NEW: Final = words(
    "triu_indices tril_indices full ones zeros arange new_full new_zeros new_ones scalar_tensor eye linspace rand randn "
    "randint randperm"
)
_TRUTHS: Final = words("eq ne lt le gt ge logical_and logical_or logical_not logical_xor isnan isinf isfinite")
FLOP_EACH: Final[Mapping[str, float]] = {name: flop for flop, names in _EACH.items() for name in names.split()}


def pointwise(name: str, inputs: Inputs) -> Statement:
    """An operator on each element; inputs that are broadcast are read once."""
    if name in _NEW:
        return _made(name, inputs)
    shapes = {at: inputs.shape(at) for at in inputs.tensors()}
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
    formats = [(numel(shapes[at]), inputs.dtype(at)) for at in read]
    return elementwise(numel(made), FLOP_EACH[name], formats, dtype, result)


def elementwise(count: int, flop: float, read: list[tuple[int, str]], dtype: str, result: str) -> Statement:
    """`count` elements of the format `result` from arrays of (elements, format).

    One statement `elementwise` where all that count are of one format and size, else `compute` with their bytes.
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
    """A new array, its shape among the values."""
    at = 1 if name.startswith("new_") else 0
    sizes = inputs.numbers(at)
    if not sizes and inputs.text(at) not in ("[]", "()"):
        raise Unknown("no values of the shape")
    if name == "arange" and len(inputs.numbers(1)) == 1 and not inputs.text(1).startswith("["):
        sizes = (max(1, inputs.number(1) - sizes[0]),) if inputs.text(2) == "1" else sizes
    return elementwise(max(1, numel(sizes)), FLOP_EACH[name], [], "fp32", "fp32")


def broadcast(shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """The shape of the result of arrays that are broadcast; the largest where they do not fit.

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
        raise Unknown("no values of the size of the result")
    if name == "repeat":
        return (numel(shape) * numel(numbers),)
    sides = list(shape)
    for at in range(len(numbers) // 2):
        sides[-1 - at] += numbers[2 * at] + numbers[2 * at + 1]
    return tuple(sides)


def _resized(name: str, inputs: Inputs, shape: tuple[int, ...]) -> tuple[int, ...]:
    sizes = inputs.numbers(2 if name.endswith("_backward") else 1)
    if len(shape) != 4:
        return shape
    if not name.endswith("_backward") and len(sizes) == 2:
        return (*shape[:2], *sizes)
    return shape


# _foreach_ and fused optimizers: FLOP of one element of a parameter, and the lists that are written.
FUSED: Final[Mapping[str, tuple[float, int]]] = {
    "_fused_adam_": (2 * SPECIAL + 12, 3), "_fused_adamw_": (2 * SPECIAL + 12, 3), "_fused_sgd_": (4.0, 2),
    "_fused_adagrad_": (2 * SPECIAL + 4, 2),
}  # fmt: skip


def fused(name: str, inputs: Inputs) -> Statement:
    """An optimizer's step over lists of parameters, gradients and states, in one kernel."""
    flop, written = FUSED[name]
    lists = [at for at in range(5) if inputs.is_list(at)]
    if not lists:
        raise Unknown("no shapes of the parameters")
    sizes = [sum(map(numel, inputs.shapes(at))) for at in lists]  # integers
    dtype = inputs.dtype(lists[0])
    made = sizes[0] + math.fsum(sizes[2 : 1 + written])  # parameters, and states in their lists; gradients are only read
    return moving(math.fsum(sizes) * BYTES[dtype], made * BYTES[dtype], dtype, flop * sizes[0])


def foreach(name: str, inputs: Inputs) -> Statement:
    """_foreach_add_ and the like: the same function for each array of a list."""
    plain = name.removeprefix("_foreach_").removesuffix("_")
    if not inputs.is_list(0):
        raise Unknown("no shapes of the arrays in the list")
    lists = [at for at in range(4) if inputs.is_list(at)]
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
