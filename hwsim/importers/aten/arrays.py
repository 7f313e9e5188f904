"""Translate norms, pooling, softmax, losses, reductions, embeddings, indexing, sorting and concatenation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hwsim.importers.aten.inputs import Inputs, Unknown, named, numel
from hwsim.importers.aten.pointwise import elementwise
from hwsim.importers.aten.products import Reader, Statement, moving, of_axis
from hwsim.units import BYTES

ROW: Final = 1024  # longest row (elements) that a softmax kernel reads once; longer rows are read twice


def _norm(of: str, at: int, *, backward: bool = False, training: int | None = None, learnt: bool = False) -> Reader:
    """Return the translator of a norm; at: position of the normalized tensor, training: position of the training flag."""

    def read(_: str, inputs: Inputs) -> Statement:
        shape = inputs.shape(at)
        if not numel(shape):
            return {}
        keys: dict[str, Any] = {"of": of, "shape": list(shape), "dtype": inputs.dtype(at)}
        if backward:
            keys["pass"] = "backward"
        elif learnt or (training is not None and inputs.text(training) and not inputs.true(training)):
            keys["pass"] = "inference"
        return {"norm": keys}

    return read


def _softmax(backward: bool) -> Reader:
    def read(_: str, inputs: Inputs) -> Statement:
        shape, dtype = inputs.shape(0), inputs.dtype(0)
        count = numel(shape)
        if not count:
            return {}
        if backward:
            return elementwise(count, 4.0, [(count, dtype), (count, dtype)], dtype, dtype)
        along = shape[inputs.number(1, -1)] if shape and -len(shape) <= inputs.number(1, -1) < len(shape) else count
        keys: dict[str, Any] = {"shape": [count // along, along], "dtype": dtype}
        return {"softmax": {**keys, "passes": 2} if along > ROW else keys}

    return read


def _pool(by: str, *, backward: bool = False) -> Reader:
    def read(name: str, inputs: Inputs) -> Statement:
        image = inputs.shape(1 if backward else 0)
        if len(image) < 3 or not numel(image):
            raise Unknown(f"expected an input of 3 or more axes, got {len(image)}")
        axes = 3 if "3d" in name else 1 if "1d" in name else 2
        dtype = inputs.dtype(0)
        if backward:
            made = inputs.shape(0)[-axes:]
        elif "adaptive" in name:
            made = (inputs.numbers(1) or (1,) * axes)[-axes:]
        else:
            made = _windows(inputs, image[-axes:])
        planes = numel(image[:-axes])
        keys: dict[str, Any] = {"by": by, "planes": planes, "size": _two(image[-axes:]), "result": _two(made), "dtype": dtype}
        window = inputs.numbers(2 if backward else 1) if "adaptive" not in name else ()
        if window:
            keys["kernel"] = _two(window if len(window) == axes else window * axes)
        if backward:
            keys["pass"] = "backward"
        return {"pool": keys}

    return read


def _two(sides: tuple[int, ...]) -> list[int]:
    return [numel(sides[:-1]), sides[-1]]


def _windows(inputs: Inputs, sides: tuple[int, ...]) -> tuple[int, ...]:
    """Return the result size of max_pool(self, kernel, stride, padding, dilation, ...) and avg_pool(self, kernel, ...)."""
    kernel = inputs.numbers(1)
    if not kernel:
        raise Unknown("the file has no kernel size")
    stride, padding = inputs.numbers(2) or kernel, inputs.numbers(3, (0,))
    return tuple(
        (side + 2 * of_axis(padding, index) - of_axis(kernel, index)) // max(1, of_axis(stride, index)) + 1
        for index, side in enumerate(sides)
    )


def _reduce(_: str, inputs: Inputs) -> Statement:
    at = inputs.largest()
    count, dtype = numel(inputs.shape(at)), inputs.dtype(at)
    return {"reduce": {"count": count, "dtype": "fp32" if dtype == "bool" else dtype}} if count else {}


def _scan(_: str, inputs: Inputs) -> Statement:
    count, dtype = numel(inputs.shape(0)), inputs.dtype(0)
    return elementwise(count, 1.0, [(count, dtype)], dtype, dtype)


def _sort(_: str, inputs: Inputs) -> Statement:
    """Translate a radix sort: one pass over keys and indices per byte of the key."""
    count, dtype = numel(inputs.shape(0)), inputs.dtype(0)
    pass_bytes = (BYTES[dtype] + BYTES["int64"]) * count
    passes = max(1.0, BYTES[dtype])
    return moving(passes * pass_bytes, passes * pass_bytes, dtype, passes * count)


def _topk(_: str, inputs: Inputs) -> Statement:
    """Translate a radix selection: one pass over the keys per byte of the key."""
    count, dtype = numel(inputs.shape(0)), inputs.dtype(0)
    return moving(max(1.0, BYTES[dtype]) * BYTES[dtype] * count, 0.0, dtype, BYTES[dtype] * count)


def _loss(backward: bool) -> Reader:
    def read(_: str, inputs: Inputs) -> Statement:
        """nll_loss_forward(self, target, ...) reads one number per row; backward writes zeros and one number per row."""
        shape = inputs.shape(1 if backward else 0)
        dtype = inputs.dtype(1 if backward else 0)
        rows = numel(shape) // max(1, shape[1] if len(shape) > 1 else 1)
        if backward:
            size = numel(shape) * BYTES[dtype]
            return moving(rows * 8.0, size + rows * BYTES[dtype], dtype, float(rows))
        return moving(rows * (8.0 + 32.0), BYTES[dtype], dtype, float(rows))

    return read


def lookup(rows: int, width: int, table: int, dtype: str, *, bags: int = 0, backward: bool = False) -> Statement:
    """Return a lookup of rows in a table; {} without rows."""
    if rows < 1 or width < 1:
        return {}
    keys: dict[str, Any] = {"lookups": rows, "width": width, "table": max(table, 1), "dtype": dtype}
    keys |= {"bags": bags} if bags else {}
    keys |= {"pass": "backward"} if backward else {}
    return {"embedding": keys}


def _embedding(name: str, inputs: Inputs) -> Statement:
    """embedding(weight, indices)"""
    table, rows = inputs.shape(0, 2), numel(inputs.shape(1))
    bags = numel(inputs.shape(2)) if name.endswith(("bag", "forward_only")) else 0
    return lookup(rows, table[1], table[0], inputs.dtype(0), bags=bags)


def _embedding_backward(name: str, inputs: Inputs) -> Statement:
    """embedding_dense_backward(grad_output, indices, num_weights, ...); bags have the number of rows after five tensors"""
    gradient, rows = inputs.shape(0), numel(inputs.shape(1))
    table = inputs.number(5 if "bag_dense" in name else 6 if "bag" in name else 2)
    if not table:
        raise Unknown("the file does not state the number of table rows")
    bags = gradient[0] if "bag" in name else 0
    return lookup(rows, gradient[-1], table, inputs.dtype(0), bags=bags, backward=True)


def _index(_: str, inputs: Inputs) -> Statement:
    """index(self, indices): a lookup of rows over the axes without index"""
    shape = inputs.shape(0)
    if not inputs.is_list(1):
        raise Unknown("the shapes of the index tensors are missing")
    indices = inputs.shapes(1)
    rows = max((numel(index) for index in indices), default=0)
    width = numel(shape[len(indices) :])
    return lookup(rows, max(1, width), numel(shape) // max(1, width), inputs.dtype(0))


def _index_put(_: str, inputs: Inputs) -> Statement:
    """index_put_(self, indices, values, accumulate)"""
    shape = inputs.shape(0)
    if not inputs.is_list(1):
        raise Unknown("the shapes of the index tensors are missing")
    rows = max((numel(index) for index in inputs.shapes(1)), default=0)
    width = max(1, numel(shape[len(inputs.shapes(1)) :]))
    written = rows * width * BYTES[inputs.dtype(0)]
    return moving(2 * written + 8.0 * rows, written, inputs.dtype(0), float(rows * width))


def _select(_: str, inputs: Inputs) -> Statement:
    """index_select(self, dim, index)"""
    shape, rows = inputs.shape(0), numel(inputs.shape(2))
    axis = inputs.number(1)
    side = shape[axis] if shape and -len(shape) <= axis < len(shape) else 1
    return lookup(rows, max(1, numel(shape) // max(1, side)), side, inputs.dtype(0))


def _gather(_: str, inputs: Inputs) -> Statement:
    """gather(self, dim, index): a lookup of single elements"""
    return lookup(numel(inputs.shape(2)), 1, numel(inputs.shape(0)), inputs.dtype(0))


def _scatter(_: str, inputs: Inputs) -> Statement:
    """scatter_add_(self, dim, index, src) of elements, or index_add_ of rows"""
    at = 3 if inputs.has(3) else 2
    count, dtype = numel(inputs.shape(at)), inputs.dtype(0)
    return moving(count * (8.0 + 2 * BYTES[dtype]), count * BYTES[dtype], dtype, float(count))


def _joined(_: str, inputs: Inputs) -> Statement:
    count, dtype = sum(map(numel, inputs.shapes(0))), inputs.dtype(0)  # integers
    return elementwise(count, 0.0, [(count, dtype)], dtype, dtype)


def _unfold_gradient(_: str, inputs: Inputs) -> Statement:
    """select_backward(grad, sizes, ...): writes zeros, then the gradient"""
    sizes = inputs.numbers(1)
    if not sizes:
        raise Unknown("the file has no values of the shape")
    size, dtype = numel(sizes) * BYTES[inputs.dtype(0)], inputs.dtype(0)
    part = inputs.bytes(0)
    return moving(part, size + part, dtype)


def _cell(_: str, inputs: Inputs) -> Statement:
    """_thnn_fused_lstm_cell(input_gates, hidden_gates, cx, ...): all gates of a step in one kernel"""
    gates, state = numel(inputs.shape(0)), numel(inputs.shape(2))
    width = BYTES[inputs.dtype(0)]
    return moving((2 * gates + state) * width, (gates + 2 * state) * width, inputs.dtype(0), 18.0 * gates)


_BATCH: Final = "batch"
ARRAYS: Final[Mapping[str, Reader]] = {
    "native_batch_norm": _norm(_BATCH, 0, training=5), "cudnn_batch_norm": _norm(_BATCH, 0, training=5),
    "miopen_batch_norm": _norm(_BATCH, 0, training=5), "batch_norm": _norm(_BATCH, 0, training=5),
    "_native_batch_norm_legit": _norm(_BATCH, 0, training=5), "_batch_norm_with_update": _norm(_BATCH, 0),
    "_batch_norm_no_update": _norm(_BATCH, 0), "_native_batch_norm_legit_no_training": _norm(_BATCH, 0, learnt=True),
    "native_batch_norm_backward": _norm(_BATCH, 1, backward=True), "batch_norm_backward": _norm(_BATCH, 1, backward=True),
    "cudnn_batch_norm_backward": _norm(_BATCH, 0, backward=True), "miopen_batch_norm_backward": _norm(_BATCH, 0, backward=True),
    "native_layer_norm": _norm("layer", 0), "layer_norm": _norm("layer", 0),
    "native_layer_norm_backward": _norm("layer", 1, backward=True), "rms_norm": _norm("rms", 0),
    "_fused_rms_norm": _norm("rms", 0),
    "_fused_rms_norm_backward": _norm("rms", 1, backward=True), "native_group_norm": _norm("group", 0),
    "group_norm": _norm("group", 0), "native_group_norm_backward": _norm("group", 1, backward=True),
    "instance_norm": _norm("group", 0),
    "_softmax": _softmax(False), "_log_softmax": _softmax(False), "softmax": _softmax(False), "log_softmax": _softmax(False),
    "_safe_softmax": _softmax(False), "_softmax_backward_data": _softmax(True), "_log_softmax_backward_data": _softmax(True),
    **{f"max_pool{n}d{end}": _pool("max") for n in (1, 2, 3) for end in ("", "_with_indices")},
    **{f"max_pool{n}d_with_indices_backward": _pool("max", backward=True) for n in (2, 3)},
    **{f"avg_pool{n}d": _pool("average") for n in (1, 2, 3)},
    **{f"avg_pool{n}d_backward": _pool("average", backward=True) for n in (2, 3)},
    **{f"{a}adaptive_avg_pool{n}d": _pool("average") for n in (1, 2, 3) for a in ("", "_", "mkldnn_")},
    **{f"_adaptive_avg_pool{n}d_backward": _pool("average", backward=True) for n in (2, 3)},
    "mkldnn_max_pool2d": _pool("max"),
    "nll_loss_forward": _loss(False), "nll_loss2d_forward": _loss(False), "nll_loss_backward": _loss(True),
    "nll_loss2d_backward": _loss(True), "nll_loss": _loss(False),
    "embedding": _embedding, "_embedding_bag": _embedding, "embedding_bag": _embedding, "_embedding_bag_forward_only": _embedding,
    "embedding_dense_backward": _embedding_backward, "_embedding_bag_dense_backward": _embedding_backward,
    "_embedding_bag_backward": _embedding_backward,
    "index": _index, "_unsafe_index": _index, "index_put_": _index_put, "_index_put_impl_": _index_put, "index_put": _index_put,
    "_unsafe_index_put": _index_put, "index_select": _select, "gather": _gather, "take": _gather,
    **dict.fromkeys(named("scattered"), _scatter),
    "cat": _joined, "stack": _joined, "concat": _joined, "_chunk_cat": _joined, "hstack": _joined, "vstack": _joined,
    **dict.fromkeys(named("put_into_zeros"), _unfold_gradient),
    **dict.fromkeys(named("reduced"), _reduce),
    **dict.fromkeys(named("scanned"), _scan),
    **dict.fromkeys(named("sorted"), _sort), "topk": _topk, "kthvalue": _topk,
    "_thnn_fused_lstm_cell": _cell, "_thnn_fused_gru_cell": _cell,
}  # fmt: skip


def split_copy(_: str, inputs: Inputs) -> Statement:
    """split_with_sizes_copy(self, ...): copies all parts of a tensor"""
    count, dtype = numel(inputs.shape(0)), inputs.dtype(0)
    return elementwise(count, 0.0, [(count, dtype)], dtype, dtype)
