"""Translate matmuls, convolutions, attention and recurrent networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from hwsim.importers.aten.inputs import Inputs, Unknown, numel
from hwsim.importers.recording import Shape

Statement = Mapping[str, Mapping[str, Any]]
Reader = Callable[[str, Inputs], Statement]


def product(m: int, n: int, k: int, dtype: str, batch: int = 1, *, transposed: bool = False) -> Statement:
    """Return the matmul of (m x k) by (k x n), `batch` times; {} if a dimension is 0."""
    if min(m, n, k, batch) < 1:
        return {}
    keys: dict[str, Any] = {"m": m, "n": n, "k": k, "dtype": dtype}
    if batch > 1:
        keys["batch"] = batch
    if transposed:
        keys["transposed"] = True
    return {"matmul": keys}


def computed(flop: float, moved: float, dtype: str, mix: str, *, made: float = 0.0) -> Statement:
    """Return a statement of FLOP and bytes.

    Args:
        moved: bytes read and written.
        made: bytes written.
    """
    keys: dict[str, Any] = {"flop": f"{flop:.0f} FLOP", "bytes": f"{moved:.0f} B", "dtype": dtype, "mix": mix}
    return {"compute": {**keys, "result": f"{made:.0f} B"} if made else keys}


def moving(read: float, written: float, dtype: str, flop: float = 0.0) -> Statement:
    """Return a statement of bytes read and written; {} if there are none."""
    if read + written <= 0:
        return {}
    return computed(flop, read + written, "fp32" if dtype == "bool" else dtype, "vector", made=written)


def _mm(first: int, batches: int = 0) -> Reader:
    """Return the translator of a matmul; first: position of the left operand, batches: number of batch axes."""

    def read(_: str, inputs: Inputs) -> Statement:
        *batch, m, k = inputs.shape(first, 2 + batches)
        *_batches, inner, n = inputs.shape(first + 1, 2 + batches)
        _same(k, inner)
        return product(m, n, k, inputs.dtype(first), *batch, transposed=_turned(inputs, first + 1))

    return read


def _mv(first: int) -> Reader:
    def read(_: str, inputs: Inputs) -> Statement:
        (m, k), (inner,) = inputs.shape(first, 2), inputs.shape(first + 1, 1)
        _same(k, inner)
        return product(m, 1, k, inputs.dtype(first))

    return read


def _dot(_: str, inputs: Inputs) -> Statement:
    return product(1, 1, inputs.shape(0, 1)[0], inputs.dtype(0))


def _matmul(_: str, inputs: Inputs) -> Statement:
    """Translate torch.matmul; the batch axes are folded into the rows if the second operand has none."""
    first, second = inputs.shape(0), inputs.shape(1)
    first, second = (first if len(first) > 1 else (1, *first)), (second if len(second) > 1 else (*second, 1))
    _same(first[-1], second[-2])
    turned = _turned(inputs, 1)
    if len(second) == 2:
        return product(numel(first[:-1]), second[1], first[-1], inputs.dtype(0), transposed=turned)
    batch = max(numel(first[:-2]), numel(second[:-2]))
    return product(first[-2], second[-1], first[-1], inputs.dtype(0), batch, transposed=turned)


def _linear(_: str, inputs: Inputs) -> Statement:
    rows, weight = inputs.shape(0), inputs.shape(1, 2)
    _same(rows[-1], weight[1])
    return product(numel(rows[:-1]), weight[0], weight[1], inputs.dtype(0), transposed=True)


def _turned(inputs: Inputs, at: int) -> bool:
    """Return whether an operand is a transposed view, like the weights of a linear layer."""
    strides = inputs.strides(at)
    return len(strides) > 1 and strides[-1] != 1 and strides[-2] == 1


def _same(first: int, second: int) -> None:
    if first != second:
        raise Unknown(f"inner dimensions do not match: {first} and {second}")


def _forward(_: str, inputs: Inputs) -> Statement:
    """convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)"""
    if inputs.true(6):
        return _transposed(inputs)
    return convolution(inputs, 0, 1, "forward", stride=3, padding=4, dilation=5, groups=8)


def _places(stride: int, padding: int, dilation: int, groups: int = -1) -> Reader:
    """Return the translator of a forward convolution with its parameters at these positions."""
    return lambda _, inputs: convolution(
        inputs, 0, 1, "forward", stride=stride, padding=padding, dilation=dilation, groups=groups
    )


_MKLDNN: Final = _places(4, 3, 5, 6)  # (self, weight, bias, padding, stride, dilation, groups)
_DEPTHWISE: Final = _places(4, 5, 6)  # (self, weight, kernel_size, bias, stride, padding, dilation)


def _backward(_: str, inputs: Inputs) -> Statement:
    """convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, ..., groups, mask)"""
    into, weights, bias = (*inputs.truths(10, (True, True, False)), False, False, False)[:3]
    direction = "backward" if into and weights else "input" if into else "weights"
    if inputs.true(7):  # transposed: its input gradient is a forward convolution
        keys = dict(convolution(inputs, 0, 2, "forward", stride=4, padding=5, dilation=6, groups=9, result=1)["convolution"])
        return {"convolution": {**keys, "pass": {"input": "forward"}.get(direction, direction)}}
    keys = dict(convolution(inputs, 1, 2, direction, stride=4, padding=5, dilation=6, groups=9, result=0)["convolution"])
    return {"convolution": {**keys, "bias": True} if bias else keys}


def _transposed(inputs: Inputs) -> Statement:
    """Translate a transposed convolution, which is the input gradient of a convolution."""
    image, weight = inputs.shape(0), inputs.shape(1)
    stride, padding = inputs.numbers(3, (1,)), inputs.numbers(4, (0,))
    dilation, added, groups = inputs.numbers(5, (1,)), inputs.numbers(7, (0,)), max(inputs.number(8, 1), 1)
    result = tuple(
        (side - 1) * of_axis(stride, index)
        - 2 * of_axis(padding, index)
        + of_axis(dilation, index) * (kernel - 1)
        + of_axis(added, index)
        + 1
        for index, (side, kernel) in enumerate(zip(image[2:], weight[2:], strict=True))
    )
    keys = geometry((image[0], weight[1] * groups, *result), weight, image[2:], stride, groups)
    return {"convolution": {**keys, "pass": "input", "dtype": inputs.dtype(0)}}


def convolution(
    inputs: Inputs,
    image: int,
    weight: int,
    direction: str,
    *,
    stride: int,
    padding: int,
    dilation: int,
    groups: int = -1,
    result: int = -1,
) -> Statement:
    """Return a pass of a convolution; numbers are positions of inputs, and `result` of a tensor of the result's size."""
    into, kernel = inputs.shape(image), inputs.shape(weight)
    if len(into) != len(kernel) or len(into) < 3:
        raise Unknown(f"expected input and weights of 3 or more equal axes, got {len(into)} and {len(kernel)}")
    split = into[1] // kernel[1] if kernel[1] else 1
    if groups >= 0 and inputs.text(groups):
        split = max(inputs.number(groups, 1), 1)
    result = inputs.facts.result if inputs.facts.result >= 0 else result
    if result >= 0:
        made: Shape = inputs.shape(result)[2:]
        steps = inputs.numbers(stride) or tuple(max(1, round(a / b)) for a, b in zip(into[2:], made, strict=True))
    elif inputs.says_values:
        steps, edges, spread = inputs.numbers(stride, (1,)), inputs.numbers(padding, (0,)), inputs.numbers(dilation, (1,))
        made = tuple(
            (side + 2 * of_axis(edges, index) - of_axis(spread, index) * (window - 1) - 1) // of_axis(steps, index) + 1
            for index, (side, window) in enumerate(zip(into[2:], kernel[2:], strict=True))
        )
    else:
        raise Unknown("the file has no stride and padding")
    return {"convolution": {**geometry(into, kernel, made, steps, split), "pass": direction, "dtype": inputs.dtype(image)}}


def geometry(into: Shape, kernel: Shape, made: Shape, steps: tuple[int, ...], groups: int) -> dict[str, Any]:
    """Return the keys of a convolution in one to three dimensions; depth and height are merged."""
    high, wide = numel(into[2:-1]), into[-1]
    keys = {
        "batch": into[0],
        "channels": [into[1], kernel[0]],
        "size": [high, wide],
        "kernel": [numel(kernel[2:-1]), kernel[-1]],
        "stride": max(steps),
        "result": [numel(made[:-1]), made[-1]],
    }
    return {**keys, "groups": groups} if groups > 1 else keys


def of_axis(numbers: tuple[int, ...], at: int) -> int:
    """Return the number for an axis; a single number is for all axes."""
    return numbers[min(at, len(numbers) - 1)]


def _attention(query: int, causal: int, *, backward: bool = False, heads_first: bool = True, masks: bool = False) -> Reader:
    """Return the translator of an attention operator.

    Args:
        query: position of the query; key and value follow.
        causal: position of the causal flag.
        heads_first: whether the axes are (batch, heads, tokens, head), else (batch, tokens, heads, head).
        masks: whether the causal flag is the number of a mask type.
    """

    def read(_: str, inputs: Inputs) -> Statement:
        q, k, v = (inputs.shape(query + index, 4) for index in range(3))
        if not heads_first:
            q, k, v = ((shape[0], shape[2], shape[1], shape[3]) for shape in (q, k, v))
        batch, heads, tokens, head = q
        sees = inputs.number(causal) > 0 if masks else inputs.true(causal)
        if min(batch, heads, tokens, head, k[2]) < 1:
            return {}
        if k[2] < tokens or k[1] > heads or heads % k[1]:
            flop = (2 * head + 2 * v[3]) * batch * heads * tokens * k[2] * (2.5 if backward else 1.0)
            moved = math.fsum(inputs.bytes(query + index) for index in (0, 0, 1, 2))
            return computed(flop, moved, inputs.dtype(query), "matmul")
        keys: dict[str, Any] = {
            "batch": batch, "tokens": tokens, "heads": heads, "head": (head + v[3]) // 2, "dtype": inputs.dtype(query),
            "causal": sees, "stored": False,
        }  # fmt: skip
        keys |= {"cached": k[2] - tokens} if k[2] > tokens else {}
        keys |= {"kv_heads": k[1]} if k[1] != heads else {}
        keys |= {"backward": True} if backward else {}
        return {"attention": keys}

    return read


MODES: Final = {0: "rnn", 1: "rnn", 2: "lstm", 3: "gru"}


def _cudnn_rnn(backward: bool) -> Reader:
    def read(_: str, inputs: Inputs) -> Statement:
        """_cudnn_rnn(input, weight[], stride0, buf, hx, cx, mode, hidden, proj, layers, batch_first, dropout, train, both, ...)

        backward: (input, weight[], stride0, buf, hx, cx, output, grad_output, grad_hy, grad_cy, mode, hidden, ...)
        """
        later = 4 if backward else 0
        hidden, layers = inputs.number(7 + later), inputs.number(9 + later, 1)
        if not hidden:
            raise Unknown("the file has no size of the hidden state")
        image = inputs.shape(0, 3)
        steps, batch = (image[1], image[0]) if inputs.true(10 + later) else (image[0], image[1])
        return recurrent(
            MODES.get(inputs.number(6 + later, 2), "lstm"), (steps, batch, image[2]), hidden, layers,
            both=inputs.true(13 + later), backward=backward, dtype=inputs.dtype(0),
        )  # fmt: skip

    return read


def _mkldnn_rnn(backward: bool) -> Reader:
    def read(_: str, inputs: Inputs) -> Statement:
        """mkldnn_rnn_layer(input, weight0, weight1, ...): one layer in one direction, weight1 of (gates x hidden, hidden)"""
        steps, batch, width = inputs.shape(0, 3)
        gates, hidden = inputs.shape(2, 2)
        cell = {4: "lstm", 3: "gru"}.get(gates // hidden if hidden else 0, "rnn")
        return recurrent(cell, (steps, batch, width), hidden, 1, both=False, backward=backward, dtype=inputs.dtype(0))

    return read


def recurrent(
    cell: str, image: tuple[int, int, int], hidden: int, layers: int, *, both: bool, backward: bool, dtype: str
) -> Statement:
    """Return a recurrent network over an input of (steps, batch, width)."""
    steps, batch, width = image
    keys: dict[str, Any] = {"cell": cell, "tokens": steps, "batch": batch, "input": width, "hidden": hidden, "dtype": dtype}
    keys |= {"layers": layers} if layers > 1 else {}
    keys |= {"both": True} if both else {}
    keys |= {"pass": "backward"} if backward else {}
    return {"rnn": keys}


PRODUCTS: Final[Mapping[str, Reader]] = {
    "mm": _mm(0), "addmm": _mm(1), "_addmm_activation": _mm(1), "sspaddmm": _mm(1), "bmm": _mm(0, 1), "baddbmm": _mm(1, 1),
    "addbmm": _mm(1, 1), "mv": _mv(0), "addmv": _mv(1), "dot": _dot, "vdot": _dot, "matmul": _matmul, "linear": _linear,
    "mkldnn_linear": _linear, "_mkldnn_linear_pointwise": _linear, "_scaled_mm": _mm(0), "_int_mm": _mm(0),
    "convolution": _forward, "_convolution": _forward, "convolution_overrideable": _forward,
    "cudnn_convolution": _places(3, 2, 4, 5), "miopen_convolution": _MKLDNN, "cudnn_convolution_relu": _places(3, 4, 5, 6),
    "mkldnn_convolution": _MKLDNN, "_conv_depthwise2d": _DEPTHWISE, "conv_depthwise3d": _DEPTHWISE,
    "slow_conv2d_forward": _DEPTHWISE, "_slow_conv2d_forward": _DEPTHWISE,
    "convolution_backward": _backward, "convolution_backward_overrideable": _backward,
    "scaled_dot_product_attention": _attention(0, 5),
    "_scaled_dot_product_flash_attention": _attention(0, 4),
    "_scaled_dot_product_flash_attention_for_cpu": _attention(0, 4),
    "_scaled_dot_product_efficient_attention": _attention(0, 6),
    "_scaled_dot_product_cudnn_attention": _attention(0, 6),
    "_scaled_dot_product_fused_attention_overrideable": _attention(0, 5),
    "_flash_attention_forward": _attention(0, 8, heads_first=False),
    "_efficient_attention_forward": _attention(0, 9, heads_first=False, masks=True),
    "_scaled_dot_product_flash_attention_backward": _attention(1, 11, backward=True),
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention(1, 7, backward=True),
    "_scaled_dot_product_efficient_attention_backward": _attention(1, 11, backward=True),
    "_scaled_dot_product_cudnn_attention_backward": _attention(1, 14, backward=True),
    "_scaled_dot_product_fused_attention_overrideable_backward": _attention(1, 13, backward=True),
    "_flash_attention_backward": _attention(1, 11, backward=True, heads_first=False),
    "_efficient_attention_backward": _attention(1, 14, backward=True, heads_first=False, masks=True),
    "_cudnn_rnn": _cudnn_rnn(False), "_cudnn_rnn_backward": _cudnn_rnn(True),
    "mkldnn_rnn_layer": _mkldnn_rnn(False), "mkldnn_rnn_layer_backward": _mkldnn_rnn(True),
}  # fmt: skip
