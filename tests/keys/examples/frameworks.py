"""Keys of the ops that frameworks have: convolutions, norms, pools, look-ups, recurrent networks, gradients of attention."""

from __future__ import annotations

from typing import Any, Final

from tests.keys.examples.writing import CPU, PLAIN_GPU, between, in_turn, machine
from tests.keys.feeling import Example

IMAGES: Final[dict[str, Any]] = {
    "batch": 8,
    "channels": [32, 64],
    "size": [28, 28],
    "kernel": [3, 3],
    "stride": 2,
    "padding": [1, 1],
}
POOLED: Final[dict[str, Any]] = {"planes": 512, "size": [56, 56], "kernel": [3, 3], "result": [28, 28], "by": "max"}
ROWS: Final[dict[str, Any]] = {"lookups": 1e5, "width": 64, "table": 1e6}
NORMED: Final[dict[str, Any]] = {"shape": [32, 64, 28, 28], "of": "batch"}
SEQUENCE: Final[dict[str, Any]] = {"tokens": 20, "batch": 16, "input": 128, "hidden": 256, "layers": 2}
HOST: Final[dict[str, Any]] = {"device": "cpu", "cores": 2, "isa": "avx2", "working_set": "1 MiB", "dtype": "fp32"}
CORES: Final[dict[str, Any]] = {
    "kind": "cpu", "cores": 8, "clock": "2 GHz", "core_bandwidth": "12 GB/s", "memory": {"bandwidth": "40 GB/s"},
    "core": {"isa": {"scalar": {}, "avx2": {"bits": 256, "pipes": 2, "fma": True},
                     "avx512": {"bits": 512, "pipes": 2, "fma": True}}},
    "caches": {"levels": {"L1": {"size": "2 MiB", "bandwidth": "60 GB/s"}}},
}  # fmt: skip
BY_CORES: Final = in_turn(
    {"convolution": {**HOST, **IMAGES}},
    {"convolution": {**HOST, **IMAGES, "batch": 1, "channels": [4, 4], "kernel": 1, "padding": 0}},
    {"norm": {**HOST, **NORMED}},
    {"pool": {**HOST, **POOLED}},
    {"embedding": {**HOST, **ROWS}},
    {"embedding": {**HOST, **ROWS, "table": 100, "bags": 1000, "cores": 1, "isa": "scalar"}},
    {"rnn": {**HOST, **SEQUENCE, "batch": 1}},
)
ON_GPU: Final = in_turn(
    {"convolution": {"device": "gpu0", **IMAGES, "dtype": "fp32", "pass": "backward", "bias": True, "groups": 2}},
    {"convolution": {"device": "gpu0", **IMAGES, "result": [14, 14]}},
    {"norm": {"device": "gpu0", **NORMED, "of": "group", "pass": "backward", "dtype": "fp32"}},
    {"norm": {"device": "gpu0", **NORMED, "of": "layer", "pass": "forward"}},
    {"pool": {"device": "gpu0", **POOLED, "pass": "backward", "dtype": "fp32"}},
    {"embedding": {"device": "gpu0", **ROWS, "pass": "backward", "bags": 1000, "dtype": "fp32"}},
    {"rnn": {"device": "gpu0", **SEQUENCE, "cell": "lstm", "both": True, "pass": "backward", "dtype": "fp32"}},
    {"attention": {"device": "gpu0", "tokens": 1000, "heads": 8, "head": 64, "dtype": "fp32", "backward": True}},
)
EXAMPLES: Final = (
    Example("ops of a framework on cores", machine(cpu=CORES), BY_CORES),
    Example(
        "ops of a framework on a gpu",
        machine(between("cpu", "gpu*", "pcie", gen=3, lanes=16), cpu=CPU, gpu={**PLAIN_GPU, "count": 1}),
        ON_GPU,
    ),
)
