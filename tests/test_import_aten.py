"""Operators of PyTorch as statements: by name, shapes and values; views, unknown names, files without shapes."""

from __future__ import annotations

from typing import Any

import pytest

from hwsim.importers.aten import NOTHING, meaning
from hwsim.importers.recording import RecordedCollective, SliceFacts


def facts(*inputs: Any) -> SliceFacts:
    """Facts of inputs: a tuple is a tensor of fp32, a list of tuples a list of tensors, anything else a value."""
    rows = [
        (input_, "float", "")
        if isinstance(input_, tuple)
        else (tuple(input_), "TensorList<float>", "")
        if isinstance(input_, list) and input_ and isinstance(input_[0], tuple)
        else ((), "Scalar", str(input_))
        for input_ in inputs
    ]
    shapes, dtypes, values = zip(*rows, strict=True)
    return SliceFacts(shapes=shapes, dtypes=dtypes, values=values)


IMAGE, WEIGHTS, RESULT = (8, 64, 56, 56), (128, 64, 3, 3), (8, 128, 28, 28)
CONVOLUTION = {"batch": 8, "channels": [64, 128], "size": [56, 56], "kernel": [3, 3], "stride": 2, "result": [28, 28]}
QUERY = (4, 16, 128, 64)


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("aten::mm", facts((4, 8), (8, 16)), {"matmul": {"m": 4, "n": 16, "k": 8, "dtype": "fp32"}}),
        ("aten::addmm", facts((16,), (4, 8), (8, 16), 1, 1), {"matmul": {"m": 4, "n": 16, "k": 8, "dtype": "fp32"}}),
        ("aten.bmm.default", facts((3, 4, 8), (3, 8, 16)), {"matmul": {"m": 4, "n": 16, "k": 8, "dtype": "fp32", "batch": 3}}),
        ("aten::linear", facts((2, 4, 8), (16, 8)), {"matmul": {"m": 8, "n": 16, "k": 8, "dtype": "fp32", "transposed": True}}),
        ("aten::cudnn_convolution", facts(IMAGE, WEIGHTS, [1, 1], [2, 2], [1, 1], 1, False, False, True),
         {"convolution": {**CONVOLUTION, "pass": "forward", "dtype": "fp32"}}),
        ("aten::mkldnn_convolution", facts(IMAGE, WEIGHTS, None, [1, 1], [2, 2], [1, 1], 1),
         {"convolution": {**CONVOLUTION, "pass": "forward", "dtype": "fp32"}}),
        ("aten::convolution_backward",
         facts(RESULT, IMAGE, WEIGHTS, [0], [2, 2], [1, 1], [1, 1], False, [0, 0], 1, [True, True, False]),
         {"convolution": {**CONVOLUTION, "pass": "backward", "dtype": "fp32"}}),
        ("aten::convolution_backward",
         facts(RESULT, IMAGE, WEIGHTS, [128], [2, 2], [1, 1], [1, 1], False, [0, 0], 1, [False, True, True]),
         {"convolution": {**CONVOLUTION, "pass": "weights", "dtype": "fp32", "bias": True}}),
        ("aten::_scaled_dot_product_flash_attention", facts(QUERY, QUERY, QUERY, 0.0, True, False),
         {"attention": {"batch": 4, "tokens": 128, "heads": 16, "head": 64, "dtype": "fp32", "causal": True, "stored": False}}),
        ("aten::relu_", facts((8, 4)), {"elementwise": {"count": 32, "inputs": 1, "dtype": "fp32", "flop_each": 1.0}}),
        ("aten::add", facts((8, 4), (4,), 1), {"elementwise": {"count": 32, "inputs": 1, "dtype": "fp32", "flop_each": 1.0}}),
        ("aten::mul", facts((8, 1), (1, 4)), {"elementwise": {"count": 32, "inputs": 0, "dtype": "fp32", "flop_each": 1.0}}),
        ("aten::gt", facts((8, 4), 0),
         {"elementwise": {"count": 32, "inputs": 1, "dtype": "fp32", "flop_each": 1.0, "result": "bool"}}),
        ("aten::sum", facts((8, 4), [1], False, None), {"reduce": {"count": 32, "dtype": "fp32"}}),
        ("aten::_softmax", facts((8, 4096), -1, False), {"softmax": {"shape": [8, 4096], "dtype": "fp32", "passes": 2}}),
        ("aten::embedding", facts((1000, 64), (2, 8), -1, False, False),
         {"embedding": {"lookups": 16, "width": 64, "table": 1000, "dtype": "fp32"}}),
        ("aten::native_batch_norm", facts(IMAGE, (64,), (64,), (64,), (64,), True, 0.1, 1e-5),
         {"norm": {"of": "batch", "shape": list(IMAGE), "dtype": "fp32"}}),
        ("aten::max_pool2d_with_indices", facts((8, 64, 112, 112), [3, 3], [2, 2], [1, 1], [1, 1], False),
         {"pool": {"by": "max", "planes": 512, "size": [112, 112], "result": [56, 56], "dtype": "fp32", "kernel": [3, 3]}}),
        ("aten::cat", facts([(4, 8), (2, 8)], 0), {"elementwise": {"count": 48, "inputs": 1, "dtype": "fp32", "flop_each": 0.0}}),
        ("aten::_foreach_add_", facts([(4, 8), (2, 8)], [(4, 8), (2, 8)], 1),
         {"elementwise": {"count": 48, "inputs": 2, "dtype": "fp32", "flop_each": 1.0}}),
        ("c10d::allreduce_", facts([(4, 8)]), {"allreduce": {"bytes": "128 B"}}),
        ("aten::mkldnn_rnn_layer", facts((10, 3, 32), (256, 32), (256, 64), (256,), (256,)),
         {"rnn": {"cell": "lstm", "tokens": 10, "batch": 3, "input": 32, "hidden": 64, "dtype": "fp32"}}),
    ],
)  # fmt: skip
def test_an_operator_is_a_statement(name: str, given: SliceFacts, expected: dict[str, Any]) -> None:
    assert meaning(name, given).statement == expected


def test_what_the_file_does_not_say_has_a_reason_and_views_are_free() -> None:
    assert meaning("aten::view", None) == NOTHING
    assert meaning("aten::mm", None).why == "no shapes in the file"
    assert meaning("aten::cat", SliceFacts(shapes=((), ()), dtypes=("TensorList", "Scalar"))).why == (
        "the shapes of the tensors of input 1 are missing"
    )
    assert meaning("mine::fused", facts((4,))).why == "operator not supported"
    old = facts(IMAGE, WEIGHTS)  # a file without values, as those of PyTorch before 2.1 are
    assert (
        meaning("aten::cudnn_convolution", SliceFacts(shapes=old.shapes, dtypes=old.dtypes)).why
        == "the file has no stride and padding"
    )


def test_a_gradient_of_a_convolution_needs_no_values() -> None:
    given = facts(RESULT, IMAGE, WEIGHTS)
    found = meaning("aten::convolution_backward", SliceFacts(shapes=given.shapes, dtypes=given.dtypes)).statement
    assert found == {"convolution": {**CONVOLUTION, "pass": "backward", "dtype": "fp32"}}


def test_formats_that_differ_are_counted_by_their_bytes() -> None:
    given = SliceFacts(shapes=((1000,), (1000,)), dtypes=("c10::BFloat16", "float"))
    found = meaning("aten::add", given).statement
    assert found == {"compute": {"flop": "1000 FLOP", "bytes": "8000 B", "result": "2000 B", "dtype": "bf16", "mix": "vector"}}


def test_collectives_are_counted_as_their_benchmarks_do() -> None:
    gathered = SliceFacts(collective=RecordedCollective("allgather", elements_in=100, elements_out=800, dtype="bf16", size=8))
    assert meaning("record_param_comms", gathered).statement == {"allgather": {"bytes": "1600 B"}}
    assert meaning("record_param_comms", SliceFacts(collective=RecordedCollective("allreduce"))).why == "no size in the file"


def test_a_transposed_convolution_is_the_gradient_of_another() -> None:
    given = facts((8, 64, 28, 28), (64, 32, 4, 4), None, [2, 2], [1, 1], [1, 1], True, [0, 0], 1)
    found = meaning("aten::convolution", given).statement
    assert found is not None
    keys = found["convolution"]
    assert (keys["pass"], keys["channels"], keys["size"], keys["result"]) == ("input", [32, 64], [56, 56], [28, 28])
