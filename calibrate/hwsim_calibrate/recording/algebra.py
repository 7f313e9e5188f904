"""Descriptions of matmuls, einsum, linear algebra, Fourier transforms, interpolation and convolution."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from hwsim.devices.work import product_call
from hwsim_calibrate.recording.descriptions import (
    WITHOUT_OP,
    described,
    elementwise,
    first_result,
    first_unsupported,
    general,
    new_or_out,
    require_supported,
    unknown,
    with_axes,
)
from hwsim_calibrate.recording.operands import Array, dtype_of, order_of, span, stored_transposed
from hwsim_calibrate.recording.tape import Described, NoOp, Performed

TALL: Final = ("svd", "qr", "pinv", "svdvals")  # functions that first reduce a tall matrix to a square one
TALL_RATIO: Final = 3.0  # of the longer to the shorter side, from which they do


def product(done: Performed) -> Described:
    """Describe a product of matrices or vectors."""
    left, right, result = np.asarray(done.args[0]), np.asarray(done.args[1]), np.asarray(done.result)
    require_supported(left, right, result)
    if not left.ndim or not right.ndim:
        return elementwise(done, "multiply", [array for array in (left, right) if array.ndim], done.result, "new", scalar=True)
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
        raise NoOp("the product is empty")
    form = "b" if stored_transposed(right) else "a" if stored_transposed(left) else ""
    one_matrix = left.ndim == 2 and right.ndim == 2 and m == n and span(left) == span(right)
    if one_matrix and stored_transposed(left) != stored_transposed(right):
        form = "gram"
    batch, since = max(int(result.size // max(m * n, 1)), 1), done.since(left, right, *with_axes(result))
    call = product_call(m, k, n, dtype=dtype_of(result), batch=batch, form=form, into=new_or_out(done), since=since)
    return described(call, result.shape, since)


def einsum(done: Performed) -> Described:
    """Describe an einsum: one multiply-add per combination of indices and further operand."""
    letters, *factors = done.args
    operands, result = [np.asarray(factor) for factor in factors], np.asarray(done.result)
    if not isinstance(letters, str) or "." in letters or first_unsupported(*operands, result) is not None:
        return unknown(done)
    inputs = letters.replace(" ", "").partition("->")[0].split(",")
    lengths = {
        letter: size for term, array in zip(inputs, operands, strict=True) for letter, size in zip(term, array.shape, strict=True)
    }
    output = letters.replace(" ", "").partition("->")[2]
    if done.options.get("optimize") and len(operands) > 1:
        return general(done, "einsum", _by_pairs(letters, inputs, output, lengths, operands), operands, result, form="path")
    steps = float(math.prod(lengths.values()) * max(2 * (len(operands) - 1), 1))
    inner, out = [term[-1:] for term in inputs], output[-1:]
    form = "inner" if len(set(inner)) == 1 and out != inner[0] else "outer" if out and out in inner else "mixed"
    loops = steps / max(lengths.get(out if form == "outer" else inner[0], 1), 1)
    return general(done, "einsum", steps, operands, result, form=form if len(operands) > 1 else "one", rows=loops)


def _by_pairs(spec: str, inputs: Sequence[str], output: str, lengths: Mapping[str, int], operands: Sequence[Array]) -> float:
    """Return the operations of an einsum that contracts two operands at a time, as with `optimize=True`."""
    path, _ = np.einsum_path(spec, *operands, optimize="greedy")
    terms, steps = list(inputs), 0.0
    for pair in path[1:]:
        contracted_terms = [terms.pop(index) for index in sorted(pair, reverse=True)]
        letters = set("".join(contracted_terms))
        steps += 2.0 * math.prod(lengths[letter] for letter in letters)
        terms.append("".join(sorted(letter for letter in letters if letter in output or any(letter in term for term in terms))))
    return steps


def contracted(done: Performed) -> Described:
    """Describe `np.tensordot`, a matmul after a transposition."""
    left, right, result = (np.asarray(value) for value in (*done.args[:2], done.result))
    require_supported(left, right, result)
    k = max(round(math.sqrt(left.size * right.size / max(result.size, 1))), 1)
    since = done.since(left, right, *with_axes(result))
    call = product_call(max(left.size // k, 1), k, max(right.size // k, 1), dtype=dtype_of(result), since=since)
    return described(call, result.shape, since)


def solved(done: Performed) -> Described:
    """Describe linear algebra functions with O(n^3) operations per matrix."""
    arrays = [np.asarray(argument) for argument in done.args if isinstance(argument, np.ndarray)]
    matrix = arrays[0]
    if matrix.ndim < 2:
        return general(done, done.name, float(matrix.size), arrays, first_result(done))
    m, n = (float(side) for side in matrix.shape[-2:])
    batch = matrix.size / max(m * n, 1.0)
    columns = arrays[1].shape[-1] if len(arrays) > 1 and arrays[1].ndim > 1 else 1
    order = m * n * min(m, n) if done.name != "matrix_power" else m * n * n
    if done.name == "svd" and done.option("full_matrices", 1, True) and done.option("compute_uv", 2, True):
        order *= max(m, n) / min(m, n)
    steps = batch * (order + (2.0 * m * n * columns if len(arrays) > 1 else 0.0))
    form = "tall" if done.name in TALL and max(m, n) >= TALL_RATIO * min(m, n) else ""
    return general(done, done.name, max(steps, 1.0), arrays, first_result(done), form=form, rows=max(batch, 1.0))


def norm(done: Performed) -> Described:
    """Describe `np.linalg.norm` of an array or along an axis."""
    array = np.asarray(done.args[0])
    axis = done.option("axis", 2)
    return general(
        done, "norm", float(array.size), [array], np.asarray(done.result), form="" if axis is None else "axis",
        rows=1.0 if axis is None else max(float(np.size(done.result)), 1.0),
    )  # fmt: skip


def transformed(done: Performed) -> Described:
    """Describe a Fourier transform with 5 n log2 n operations per row; form `rough` if n has a large prime factor."""
    array, result = np.asarray(done.args[0]), np.asarray(done.result)
    twice = done.name.endswith("2") or done.name.endswith("n")
    length = max(array.shape[-1], result.shape[-1])
    steps = 5.0 * max(array.size, result.size) * math.log2(max(max(array.size, result.size) if twice else length, 2))
    lengths = (array.shape if twice else (length,)) if array.ndim else (1,)
    form = "rough" if max(_largest_factor(length) for length in lengths) > 13 else ""
    kind = dtype_of(array if array.dtype.kind == "c" else result if result.dtype.kind == "c" else array)
    return general(done, done.name, steps, [array], result, form=form, rows=array.size / max(length, 1), dtype=kind)


def interpolated(done: Performed) -> Described:
    """Describe `np.interp(x, known, values)`: a bisection per x, or a constant number of steps if x is sorted."""
    x = np.asarray(done.args[0])
    form = "sorted" if x.ndim and order_of(x) == "sorted" else ""
    arrays = [np.asarray(argument) for argument in done.args[:3]]
    steps = float(x.size) * (1.0 if form else math.log2(max(np.size(done.args[1]), 2)))
    return general(done, "interp", steps, arrays, np.asarray(done.result), form=form, dtype="fp64")


def convolved(done: Performed) -> Described:
    """Describe `convolve` and `correlate`: one multiply-add per pair."""
    first, second = (np.asarray(argument) for argument in done.args[:2])
    steps = 2.0 * float(np.size(done.result)) * min(first.size, second.size)
    return general(done, "convolve", steps, [first, second], np.asarray(done.result), rows=float(np.size(done.result)))


def _largest_factor(number: int) -> int:
    """Return the largest prime factor.

    >>> _largest_factor(1000), _largest_factor(1021)
    (5, 1021)
    """
    largest, factor = 1, 2
    while factor * factor <= number:
        while number % factor == 0:
            largest, number = factor, number // factor
        factor += 1
    return max(largest, number)
