"""Operators of PyTorch on one thread: products, convolutions by window and pass, attention, norms, and what goes by element.

Sizes are round numbers over the range that layers of models have; no model's own shapes are among them. An operator takes
what a dispatch mode sees of its call: below autograd, with its Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Final

from hwsim_calibrate.case import Case
from hwsim_calibrate.suites import Scope
from hwsim_calibrate.torch_cases import torch_case

F: Final = "float32"
Spec = tuple[str, str]  # an operator, and its inputs

# (m, k, n) of products
PRODUCTS: Final = (
    (1, 512, 512), (8, 256, 1024), (16, 64, 64), (32, 128, 512), (32, 512, 2048), (64, 64, 64), (64, 256, 256), (64, 300, 1000),
    (64, 1024, 1024), (128, 128, 128), (128, 500, 500), (128, 640, 2048), (128, 2048, 640), (160, 256, 4096), (256, 32, 128),
    (256, 128, 640), (256, 512, 1000), (300, 1024, 256), (500, 200, 200), (500, 64, 2048), (512, 512, 2048), (1024, 128, 128),
    (1024, 1024, 16), (300, 20, 300), (50, 200, 400), (200, 400, 10), (2048, 16, 256), (20, 256, 512), (10, 512, 256),
    (40, 384, 768),
)  # fmt: skip
GRADIENTS: Final = (  # of weights: the first factor is stored transposed, k is the batch
    (256, 64, 1000), (1000, 64, 256), (512, 128, 512), (2048, 160, 512), (128, 500, 128), (64, 1024, 64), (4096, 256, 320),
    (1000, 256, 500), (10, 200, 400), (400, 32, 200), (128, 16, 128), (512, 512, 512), (300, 300, 20), (64, 64, 64),
    (256, 256, 256),
    (1024, 200, 1024), (320, 128, 2000), (512, 50, 256), (256, 20, 512), (200, 360, 800),
)  # fmt: skip
MANY: Final = (
    (8, 64, 64, 64),
    (32, 32, 32, 32),
    (64, 16, 64, 16),
    (128, 12, 48, 12),
    (16, 128, 64, 128),
    (128, 64, 8, 64),
    (300, 8, 32, 8),
    (200, 48, 10, 10),
    (300, 10, 10, 48),
    (150, 10, 48, 10),
    (64, 24, 20, 20),
    (40, 64, 12, 64),
    (500, 16, 6, 6),
)
# (images, channels in, side, channels out, window, stride)
CONVOLUTIONS: Final = (
    *((n, i, s, o, 3, t) for n, i, s, o, t in (
        (1, 64, 56, 64, 1), (2, 64, 32, 64, 1), (4, 32, 32, 32, 1), (2, 128, 24, 128, 1), (1, 128, 12, 256, 1),
        (4, 256, 14, 256, 1),
        (2, 512, 8, 512, 1), (8, 512, 4, 512, 1), (2, 64, 56, 128, 2), (2, 128, 28, 256, 2), (4, 256, 14, 512, 2),
        (1, 16, 96, 16, 1),
        (2, 16, 64, 32, 1), (2, 32, 64, 64, 1), (2, 96, 20, 96, 1), (1, 256, 28, 256, 1), (4, 8, 48, 8, 1), (2, 192, 24, 4, 1),
        (4, 64, 48, 32, 1), (1, 48, 112, 24, 1),
    )),
    *((n, i, s, o, 1, t) for n, i, s, o, t in (
        (2, 64, 56, 64, 1), (2, 256, 28, 64, 1), (1, 64, 28, 256, 1), (2, 64, 32, 128, 2), (2, 128, 24, 256, 2),
        (2, 256, 14, 512, 2),
        (4, 512, 7, 512, 1), (2, 24, 64, 4, 1), (4, 32, 32, 96, 1),
    )),
    (2, 32, 28, 64, 5, 1), (1, 64, 28, 64, 7, 1), (4, 16, 14, 32, 5, 1), (2, 48, 40, 48, 5, 2),
    (2, 3, 64, 16, 3, 1), (2, 3, 96, 32, 3, 2), (2, 3, 128, 64, 7, 2), (1, 3, 224, 64, 7, 2), (4, 1, 28, 16, 5, 1),
    (4, 4, 32, 64, 3, 1),
    (1, 4, 16, 96, 3, 1), (4, 3, 64, 24, 3, 1), (2, 3, 96, 64, 7, 2),
    (2, 3, 128, 128, 8, 8), (4, 3, 128, 384, 16, 16), (1, 3, 224, 768, 16, 16), (2, 64, 32, 128, 2, 2), (4, 3, 192, 128, 16, 16),
)  # fmt: skip
DEPTHWISE: Final = ((2, 64, 28, 1), (2, 256, 14, 1), (1, 128, 56, 1), (2, 96, 28, 2), (4, 512, 7, 1))
TRANSPOSED: Final = ((2, 64, 16, 32), (2, 32, 32, 16), (1, 128, 28, 64), (4, 24, 48, 12), (2, 96, 24, 48))
# batch, heads, queries, keys, head of attention
ATTENTION: Final = (
    (2, 8, 32, 32, 32), (2, 8, 64, 64, 64), (4, 4, 128, 128, 64), (1, 8, 256, 256, 64), (2, 12, 96, 96, 64), (8, 4, 50, 50, 32),
    (1, 4, 512, 512, 32), (4, 16, 20, 20, 64), (2, 4, 320, 320, 32), (4, 3, 128, 128, 64),
)  # fmt: skip
CROSSED: Final = ((2, 4, 256, 16, 32), (2, 8, 100, 32, 64), (1, 4, 500, 40, 32))
ROWS: Final = ((64, 64), (128, 256), (200, 1024), (256, 512), (500, 200), (1024, 128), (2000, 768), (100, 768))
IMAGES: Final = ((2, 64, 56), (4, 128, 28), (2, 256, 14), (4, 512, 7), (1, 32, 64), (2, 16, 112), (2, 512, 4), (4, 128, 8))
GROUPED: Final = ((2, 64, 16), (2, 128, 24), (1, 256, 32), (4, 96, 12))
POOLED: Final = ((2, 64, 48, 3), (1, 64, 112, 3), (4, 32, 28, 3), (2, 16, 64, 2), (2, 64, 32, 2), (4, 128, 14, 2), (2, 24, 96, 2))
SCORES: Final = ((64, 10), (128, 1000), (200, 4096), (100, 8000), (2000, 50), (300, 2000))
NARROW: Final = ((10_000, 4), (5000, 8), (4000, 3))
TABLES: Final = (
    (1000, 64, 100),
    (8000, 256, 256),
    (30_000, 128, 500),
    (4000, 768, 100),
    (2000, 512, 64),
    (60, 768, 100),
)  # rows, width, asked
BAGS: Final = (
    (1000, 32, 64, 4),
    (30_000, 64, 128, 8),
    (10_000, 128, 100, 5),
    (50_000, 32, 300, 20),
    (16_000, 96, 200, 12),
    (24_000, 48, 400, 6),
)  # rows, width, bags, of each
SUMMED: Final = ((64, 256), (256, 1024), (500, 64), (128, 4096), (1000, 10), (2000, 256), (300, 3000))
MANY_SIZES: Final = (1, 256, 4096, 16_384, 65_536, 262_144, 600_000, 1_500_000, 4_000_000)
SIZES: Final = (64, 8192, 100_000, 1_000_000)
RECURRENT: Final = (
    (10, 8, 64, 64),
    (20, 16, 128, 128),
    (24, 10, 200, 200),
    (40, 20, 300, 256),
    (8, 32, 400, 400),
    (16, 24, 512, 512),
)

# Each at MANY_SIZES, so that they tell of caches and memory as well; then at SIZES.  {n} is the number of elements.
OFTEN: Final = (
    ("add.Tensor", "{a} {a} 1"), ("mul.Tensor", "{a} {a}"), ("add_.Tensor", "{a} {a} 1e-9"), ("mul_.Tensor", "{a} 1.0"),
    ("sqrt", "{a}"), ("clone", "{a} None"), ("zero_", "{a}"), ("addcdiv_", "{a} {a} {a} 1e-9"), ("addcmul_", "{a} {a} {a} 1e-9"),
    ("lerp_.Scalar", "{a} {a} 0.1"), ("div.Tensor", "{a} 1.5"),
)  # fmt: skip
POINTWISE: Final = (
    ("relu", "{a}"), ("relu_", "{a}"), ("threshold_backward", "{a} {a} 0"), ("gelu", "{a} 'tanh'"),
    ("gelu_backward", "{a} {a} 'tanh'"),
    ("gelu", "{a} 'none'"), ("gelu_backward", "{a} {a} 'none'"), ("silu", "{a}"), ("silu_backward", "{a} {a}"),
    ("sigmoid", "{a}"),
    ("sigmoid_backward", "{a} {a}"), ("tanh", "{a}"), ("tanh_backward", "{a} {a}"), ("exp", "{a}"), ("log", "{a}"),
    ("rsqrt", "{a}"),
    ("sub.Tensor", "{a} {a} 1"), ("neg", "{a}"), ("pow.Tensor_Scalar", "{a} 2"), ("mul.Tensor", "{a} 1.5"),
    ("add.Tensor", "{a} 1.5 1"),
    ("div_.Scalar", "{a} 1.0"), ("div.Tensor", "{a} {a}"), ("copy_", "{a} {a}"), ("fill_.Scalar", "{a} 1.0"),
    ("bernoulli_.float", "{a} 0.9 None"),
    ("ones_like", "{a}"), ("zeros_like", "{a}"), ("normal_", "{a} 0.0 1.0"), ("uniform_", "{a} 0.0 1.0"),
    ("mse_loss", "{a} {a} 1"),
    ("mse_loss_backward", "float32: {a} {a} 1"), ("sum", "{a}"), ("mean", "{a}"), ("linalg_vector_norm", "{a} 2"), ("sin", "{a}"),
    ("cos", "{a}"), ("where.self", "bool:{n} {a} {a}"), ("clamp_min", "{a} 0"), ("maximum", "{a} {a}"), ("abs", "{a}"),
    ("erf", "{a}"),
    ("leaky_relu", "{a} 0.1"), ("hardtanh", "{a}"), ("eq.Scalar", "int64:{n}<9 3"), ("arange", "{n}"),
    ("cumsum", "{a} 0"), ("addcmul", "{a} {a} {a}"), ("reciprocal", "{a}"), ("new_zeros", "float32:1 [{n}]"),
    ("full", "[{n}] 1.0"),
    ("_foreach_mul_.Scalar", "[{a};{a}] 1.0"), ("_foreach_add_.List", "[{a};{a}] [{a};{a}] 1e-9"),
)  # fmt: skip
# Each after other calls and this number of bytes: where its code comes from then, and arrays that were used long ago.
AFTER: Final = (300_000, 2 << 20, 10 << 20, 24 << 20, 80 << 20)
LATER: Final = (
    ("add.Tensor", "float32:500 float32:500 1"), ("relu", "float32:300"), ("_softmax", "float32:8x40 1 False"), ("arange", "9"),
    ("mse_loss", "float32:200 float32:200 1"), ("ones_like", "float32:"), ("sum.dim_IntList", "float32:40x60 [0] True None"),
    ("addmm", "float32:40 float32:20x30 float32:30x40/t 1 1"), ("mm", "float32:20x30 float32:30x40"), ("sqrt", "float32:500"),
    ("native_layer_norm", "float32:20x60 [60] float32:60 float32:60 1e-5"), ("mul_.Tensor", "float32:500 1.0"),
    ("lerp_.Scalar", "float32:500 float32:500 0.1"), ("addcdiv_", "float32:500 float32:500 float32:500 1e-9"),
    ("gelu", "float32:500 'none'"),
    ("convolution", "float32:1x8x12x12 float32:8x8x3x3 None [1,1] [1,1] [1,1] False [0,0] 1"),
    ("cat", "[float32:40x9;float32:40x9] 1"),
    ("index.Tensor", "float32:100x16 [int64:20<100]"), ("embedding", "float32:100x16 int64:20<100"),
    ("clone", "float32:40x50/t 0"),
    ("add.Tensor", "float32:300000 float32:300000 1"), ("mul_.Tensor", "float32:900000 1.0"), ("sqrt", "float32:400000"),
    ("add_.Tensor", "float32:900000 float32:900000 1e-9"), ("addcdiv_", "float32:500000 float32:500000 float32:500000 1e-9"),
    ("sum.dim_IntList", "float32:128x3000 [0] True None"), ("relu", "float32:250000"), ("clone", "float32:800000 None"),
    ("mm", "float32:100x500 float32:500x700"), ("addmm", "float32:1000 float32:96x800 float32:800x1000/t 1 1"),
    ("mm", "float32:500x100/t float32:100x700"), ("lerp_.Scalar", "float32:600000 float32:600000 0.1"),
)  # fmt: skip


def missing() -> str:
    """Why there is nothing to measure."""
    return "" if find_spec("torch") else "PyTorch is not installed"


def cases(_: Scope) -> Iterator[Case]:
    """All cases."""
    seen: set[str] = set()
    for op, inputs in (*_products(), *_convolutions(), *_attention(), *_norms(), *_pools(), *_rows(), *_tables(), *_layouts(),
                       *_elements(), *_steps(), *_recurrent()):  # fmt: skip
        case = torch_case(op, inputs)
        if case.name not in seen:
            seen.add(case.name)
            yield case
    for op, inputs in LATER:
        for after in AFTER:
            yield torch_case(op, inputs, after)


def _products() -> Iterator[Spec]:
    for m, k, n in PRODUCTS:
        yield "addmm", f"{F}:{n} {F}:{m}x{k} {F}:{k}x{n}/t 1 1"
        yield "mm", f"{F}:{m}x{k} {F}:{k}x{n}"
        yield "mm", f"{F}:{m}x{k} {F}:{k}x{n}/t"
    for m, k, n in GRADIENTS:
        yield "mm", f"{F}:{m}x{k}/t {F}:{k}x{n}"
    for batch, m, k, n in MANY:
        for first, second in (("", ""), ("", "/t"), ("/t", "")):
            yield "bmm", f"{F}:{batch}x{m}x{k}{first} {F}:{batch}x{k}x{n}{second}"


def _convolutions() -> Iterator[Spec]:
    for images, into, side, out, window, stride in CONVOLUTIONS:
        edge = window // 2 if stride != window or window == 1 else 0
        yield from _both(images, into, side, out, window, stride, edge, first=into <= 4)
    for images, channels, side, stride in DEPTHWISE:
        yield from _both(images, channels, side, channels, 3, stride, 1, groups=channels)
    for images, into, side, out in TRANSPOSED:
        rest = "[2,2] [0,0] [1,1] True [0,0] 1"
        image, weight, made = (
            f"{F}:{images}x{into}x{side}x{side}",
            f"{F}:{into}x{out}x2x2",
            f"{F}:{images}x{out}x{2 * side}x{2 * side}",
        )
        yield "convolution", f"{image} {weight} {F}:{out} {rest}"
        yield "convolution_backward", f"{made} {image} {weight} [{out}] {rest} [True,True,True]"


def _both(
    images: int, into: int, side: int, out: int, window: int, stride: int, edge: int, *, groups: int = 1, first: bool = False
) -> Iterator[Spec]:
    """The results, and the gradients: of the weights alone where the images are data."""
    made = (side + 2 * edge - window) // stride + 1
    image, weight = f"{F}:{images}x{into}x{side}x{side}", f"{F}:{out}x{into // groups}x{window}x{window}"
    rest = f"[{stride},{stride}] [{edge},{edge}] [1,1] False [0,0] {groups}"
    yield "convolution", f"{image} {weight} None {rest}"
    yield "convolution_backward", f"{F}:{images}x{out}x{made}x{made} {image} {weight} None {rest} [{not first},True,False]"


def _attention() -> Iterator[Spec]:
    forward = "_scaled_dot_product_flash_attention_for_cpu"
    for shapes, kinds in ((ATTENTION, (True, False)), (CROSSED, (False,))):
        for batch, heads, queries, keys, head in shapes:
            q, k = (f"{F}:{batch}x{heads}x{tokens}x{head}/h" for tokens in (queries, keys))
            for causal in kinds:
                yield forward, f"{q} {k} {k} 0.0 {causal} None None"
                yield f"{forward}_backward", f"{q} {q} {k} {k} {q} {F}:{batch}x{heads}x{queries} 0.0 {causal} None None"


def _norms() -> Iterator[Spec]:
    for rows, wide in ROWS:
        x, weight, mean = f"{F}:{rows}x{wide}", f"{F}:{wide}", f"{F}:{rows}x1"
        yield "native_layer_norm", f"{x} [{wide}] {weight} {weight} 1e-5"
        yield "native_layer_norm_backward", f"{x} {x} [{wide}] {mean} {mean} {weight} {weight} [True,True,True]"
        yield "_fused_rms_norm", f"{x} [{wide}] {weight} 1e-6"
    for images, channels, side in IMAGES:
        x, weight = f"{F}:{images}x{channels}x{side}x{side}", f"{F}:{channels}"
        yield "native_batch_norm", f"{x} {weight} {weight} {weight} {weight} True 0.1 1e-5"
        yield "native_batch_norm_backward", f"{x} {x} {weight} {weight} {weight} {weight} {weight} True 1e-5 [True,True,True]"
    for images, channels, side in GROUPED:
        x, weight, mean = f"{F}:{images}x{channels}x{side}x{side}", f"{F}:{channels}", f"{F}:{images}x8"
        sizes = f"{images} {channels} {side * side} 8"
        yield "native_group_norm", f"{x} {weight} {weight} {sizes} 1e-5"
        yield "native_group_norm_backward", f"{x} {x} {mean} {mean} {weight} {sizes} [True,True,True]"


def _pools() -> Iterator[Spec]:
    for images, channels, side, window in POOLED:
        edge = 1 if window == 3 else 0
        made = (side + 2 * edge - window) // 2 + 1
        x, y = (f"{images}x{channels}x{each}x{each}" for each in (side, made))
        rest = f"[{window},{window}] [2,2] [{edge},{edge}] [1,1] False"
        yield "max_pool2d_with_indices", f"{F}:{x} {rest}"
        yield "max_pool2d_with_indices_backward", f"{F}:{y} {F}:{x} {rest} int64:{y}<{side * side}"
        yield "avg_pool2d", f"{F}:{x} [{window},{window}] [2,2] [{edge},{edge}]"
        yield "mean.dim", f"{F}:{x} [-1,-2] True"


def _rows() -> Iterator[Spec]:
    for rows, wide in (*SCORES, *NARROW):
        x = f"{F}:{rows}x{wide}"
        for name in ("_log_softmax", "_softmax"):
            yield name, f"{x} 1 False"
            yield f"{name}_backward_data", f"{x} {x} 1 6"
        yield "nll_loss_forward", f"{x} int64:{rows}<{wide} None 1 -100"
        yield "nll_loss_backward", f"{F}: {x} int64:{rows}<{wide} None 1 -100 {F}:"
    for rows, wide in SUMMED:
        yield "sum.dim_IntList", f"{F}:{rows}x{wide} [0] True None"
        yield "sum.dim_IntList", f"{F}:{rows}x{wide} [1] True None"
        yield "mean.dim", f"{F}:{rows}x{wide} [1] True"
        yield "add.Tensor", f"{F}:{rows}x{wide} {F}:{wide} 1"
        yield "mul.Tensor", f"{F}:{rows}x{wide} {F}:{rows}x1"
    for images, channels, side in IMAGES[::3]:
        yield "sum.dim_IntList", f"{F}:{images}x{channels}x{side}x{side} [2,3] False None"
        yield "add.Tensor", f"{F}:{images}x{channels}x{side}x{side} {F}:{images}x{channels}x1x1 1"
    for rows, wide in ((200, 8), (1000, 16), (100, 1000)):
        yield "topk", f"{F}:{rows}x{wide} 2 -1 True True"
        yield "nonzero", f"bool:{rows}x{wide}"


def _tables() -> Iterator[Spec]:
    for rows, wide, rows_read in TABLES:
        yield "embedding", f"{F}:{rows}x{wide} int64:{rows_read}<{rows}"
        yield "embedding_dense_backward", f"{F}:{rows_read}x{wide} int64:{rows_read}<{rows} {rows} -1 False"
        yield "index.Tensor", f"{F}:{rows}x{wide} [int64:{rows_read}<{rows}]"
        yield "index_add_", f"{F}:{rows}x{wide} 0 int64:{rows_read}<{rows} {F}:{rows_read}x{wide} 1e-9"
        yield "index_put", f"{F}:{rows}x{wide} [int64:{rows_read}<{rows}] {F}:{rows_read}x{wide} True"
        yield "index_select", f"{F}:{rows}x{wide} 0 int64:{rows_read}<{rows}"
    for rows, wide, bags, per_bag in BAGS:
        bagged = f"int64:{bags * per_bag}<{rows} int64:{bags}*{per_bag}"
        yield "_embedding_bag", f"{F}:{rows}x{wide} {bagged} False 0 False None False -1"
        more = f"int64:{bags * per_bag}//{per_bag} int64:{bags}<2 int64:0 {rows} False 0 False None -1"
        yield "_embedding_bag_backward", f"{F}:{bags}x{wide} {bagged} {more}"
    for rows, wide, rows_read in ((1000, 8, 400), (200, 2, 50), (64, 64, 2000)):
        yield "index.Tensor", f"{F}:{rows}x{wide} [int64:{rows_read}<{rows};int64:{rows_read}<{wide}]"
        yield "index_put", f"{F}:{rows}x{wide} [int64:{rows_read}<{rows};int64:{rows_read}<{wide}] {F}:{rows_read} True"


def _layouts() -> Iterator[Spec]:
    for rows, wide in SUMMED:
        yield "clone", f"{F}:{rows}x{wide}/t 0"
        yield "add.Tensor", f"{F}:{rows}x{wide} {F}:{rows}x{wide}/t 1"
        yield "cat", f"[{F}:{rows}x{wide};{F}:{rows}x{wide}] 1"
        yield "stack", f"[{F}:{rows}x{wide};{F}:{rows}x{wide};{F}:{rows}x{wide}] 1"
        yield "select_backward", f"{F}:{rows} [{rows},{wide}] 1 0"
        yield "slice_backward", f"{F}:{rows}x{wide // 2} [{rows},{wide}] 1 0 {wide // 2 * 2} 2"
    for batch, heads, tokens, head in ((2, 8, 64, 64), (4, 4, 128, 64), (8, 4, 50, 32), (2, 12, 96, 64)):
        yield "clone", f"{F}:{batch}x{heads}x{tokens}x{head}/h 0"
    for images, channels, side in IMAGES[:4]:
        yield "clone", f"{F}:{images}x{channels}x{side}x{side}/c 0"
        yield "cat", f"[{F}:{images}x{channels}x{side}x{side};{F}:{images}x{channels}x{side}x{side}] 1"
        yield "upsample_nearest2d", f"{F}:{images}x{channels}x{side}x{side} [{2 * side},{2 * side}]"


def _elements() -> Iterator[Spec]:
    for entries, sizes in ((OFTEN, MANY_SIZES), (POINTWISE, SIZES)):
        for op, inputs in entries:
            for n in sizes:
                yield op, inputs.format(a=f"{F}:{n}", n=n)


def _steps() -> Iterator[Spec]:
    """Steps of optimizers in one call."""
    for n, count in ((100, 4), (1000, 40), (20_000, 10), (60_000, 60), (300_000, 6)):
        arrays = "[" + ";".join([f"{F}:{n}"] * count) + "]"
        steps = "[" + ";".join([f"{F}:"] * count) + "]"
        rest = "False False None None"
        yield "_fused_adamw_", f"{arrays} {arrays} {arrays} {arrays} [] {steps} 1e-9 0.9 0.999 0.01 1e-8 {rest}"
        yield "_fused_sgd_", f"{arrays} {arrays} {arrays} 1e-9 0.9 1e-9 0.0 False False False None None"


def _recurrent() -> Iterator[Spec]:
    for steps, batch, wide, hidden in RECURRENT:
        x, state = f"{F}:{steps}x{batch}x{wide}", f"{F}:1x{batch}x{hidden}"
        weights = f"{F}:{4 * hidden}x{wide} {F}:{4 * hidden}x{hidden} {F}:{4 * hidden} {F}:{4 * hidden}"
        yield "mkldnn_rnn_layer", f"{x} {weights} {state} {state} False [] 2 {hidden} 1 True False False True"
        yield "mkldnn_rnn_layer_backward", f"{x} {weights}"
