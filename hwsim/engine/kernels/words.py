"""Whole numbers of three words of 64 bits, as tuples, the least word first; callers make sure that nothing is wider."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, models, register_model

_INNER = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _once(decorator):
    """Compile a function once for all whole numbers, not again for each constant and each width with which it is called."""

    def decorate(function):
        made = decorator(function)
        template = made.get_call_template

        def widened(arguments, keywords):
            signed = [isinstance(one, types.Integer) and one.signed for one in arguments]
            return template([types.int64 if wide else one for one, wide in zip(arguments, signed, strict=True)], keywords)

        made.get_call_template = widened
        return made

    return decorate


compiled = _once(njit(**_INNER))
spliced = njit(inline="always", **_INNER)  # what is called from one place only is not compiled by itself, too
bare = _once(njit(_nrt=False, **_INNER))  # what makes no arrays needs no counts of references to them: half the time

NONE = -1
ZERO = np.uint64(0)
ONE = np.uint64(1)
MOST = np.uint64(2**64 - 1)
NIL = (ZERO, ZERO, ZERO)
UNIT = (ONE, ZERO, ZERO)

_THREE = types.UniTuple(types.uint64, 3)
_WIDE = ir.IntType(192)


def _joined(builder, words):
    value = None
    for number, word in enumerate(cgutils.unpack_tuple(builder, words, 3)):
        part = builder.shl(builder.zext(word, _WIDE), ir.Constant(_WIDE, 64 * number))
        value = part if value is None else builder.or_(value, part)
    return value


def _split(context, builder, value):
    parts = [builder.trunc(builder.lshr(value, ir.Constant(_WIDE, 64 * number)), ir.IntType(64)) for number in range(3)]
    return context.make_tuple(builder, _THREE, parts)


@intrinsic
def plus_product(typing, addend, left, right):
    """one + two x three."""

    def code(context, builder, signature, values):
        a, b, c = (_joined(builder, value) for value in values)
        return _split(context, builder, builder.add(a, builder.mul(b, c)))

    return _THREE(_THREE, _THREE, _THREE), code


@intrinsic
def minus_product(typing, minuend, left, right):
    """one - two x three."""

    def code(context, builder, signature, values):
        a, b, c = (_joined(builder, value) for value in values)
        return _split(context, builder, builder.sub(a, builder.mul(b, c)))

    return _THREE(_THREE, _THREE, _THREE), code


@intrinsic
def less(typing, left, right):
    """Whether one < two."""

    def code(context, builder, signature, values):
        a, b = (_joined(builder, value) for value in values)
        return builder.icmp_unsigned("<", a, b)

    return types.boolean(_THREE, _THREE), code


def _read(builder, place, kind):
    if not isinstance(kind, ir.LiteralStructType | ir.ArrayType):
        return builder.load(place)
    value = ir.Constant(kind, ir.Undefined)
    many = kind.count if isinstance(kind, ir.ArrayType) else len(kind.elements)
    for at in range(many):
        inner = cgutils.gep_inbounds(builder, place, 0, at)
        value = builder.insert_value(value, _read(builder, inner, inner.type.pointee), at)
    return value


class Handle(types.Type):
    """A pointer to a named tuple, read part by part where its names are used: calls hand on one word instead of all arrays."""

    def __init__(self, kind):
        self.kind = kind
        super().__init__(f"Handle({kind})")


register_model(Handle)(models.OpaqueModel)


@intrinsic
def handle(typing, value):
    """A handle of a tuple, which is as good as the function that makes it."""

    def code(context, builder, signature, values):
        return builder.bitcast(cgutils.alloca_once_value(builder, values[0]), cgutils.voidptr_t)

    return Handle(value)(value), code


@infer_getattr
class _Names(AttributeTemplate):
    key = Handle

    def generic_resolve(self, pointer, name):
        return pointer.kind[pointer.kind.fields.index(name)] if name in pointer.kind.fields else None


@lower_getattr_generic(Handle)
def _named(context, builder, pointer, value, name):
    place = pointer.kind.fields.index(name)
    whole = builder.bitcast(value, context.get_value_type(pointer.kind).as_pointer())
    inner = cgutils.gep_inbounds(builder, whole, 0, place)
    return impl_ret_borrowed(context, builder, pointer.kind[place], _read(builder, inner, inner.type.pointee))


@bare
def wide(number):
    """A number that is not negative."""
    return np.uint64(number), ZERO, ZERO


@bare
def two(words, row, column):
    """The number of two words at a place."""
    return words[row, column], words[row, column + 1], ZERO


@bare
def three(words, row, column):
    """The number of three words at a place."""
    return words[row, column], words[row, column + 1], words[row, column + 2]


@bare
def put_two(words, row, column, value):
    """Put a number there that needs two words."""
    words[row, column], words[row, column + 1] = value[0], value[1]


@bare
def put_three(words, row, column, value):
    """Put a number there."""
    words[row, column], words[row, column + 1], words[row, column + 2] = value


@bare
def is_zero(value):
    """Whether all words are."""
    return value[0] == ZERO and value[1] == ZERO and value[2] == ZERO


@bare
def is_same(one, other):
    """Whether all words are the same."""
    return one[0] == other[0] and one[1] == other[1] and one[2] == other[2]


@bare
def rounded(value):
    """The nearest float, nearly."""
    return (float(value[2]) * 18446744073709551616.0 + float(value[1])) * 18446744073709551616.0 + float(value[0])


@bare
def divide(dividend, divisor):
    """Rounded down; what does not fit two words is the largest number that does.

    Digits are guessed with floats, never too high, and what is left is divided again: a guess is right to 30 bits or more.
    """
    quotient = NIL
    by = rounded(divisor)
    if rounded(dividend) / by > 1e38:
        return MOST, MOST, ZERO
    while True:
        guess = rounded(dividend) / by * (1.0 - 2.0**-49)
        if guess < 1.0:
            break
        if guess < 2.0**62:
            digit = (np.uint64(guess), ZERO, ZERO)
        elif guess < 2.0**94:
            bits = np.uint64(guess * 2.0**-32)
            digit = (bits << np.uint64(32), bits >> np.uint64(32), ZERO)
        else:
            digit = (ZERO, np.uint64(guess * 2.0**-64), ZERO)
        dividend = minus_product(dividend, divisor, digit)
        quotient = plus_product(quotient, digit, UNIT)
    while not less(dividend, divisor):
        dividend = minus_product(dividend, divisor, UNIT)
        quotient = plus_product(quotient, UNIT, UNIT)
    return quotient
