"""Keys of statements, of every op, of runtimes, jobs, events and groups, and of a workload itself."""

from __future__ import annotations

from typing import Any, Final

from tests.keys.examples.cpus import ROOFLINE
from tests.keys.examples.writing import CPU, PLAIN_GPU, between, in_turn, machine, program
from tests.keys.feeling import Example

TWO: Final = machine(between("cpu", "gpu*", "pcie", gen=3, lanes=16), cpu=CPU, gpu={**PLAIN_GPU, "count": 2})
ADD: Final = {"device": "gpu0", "count": 1e7}
CALLS: Final[dict[str, Any]] = {
    "library": "numpy 2", "cores": 1, "sharpness": 3.0, "into": {"new": "1 us", "out": "0.5 us", "self": "0.2 us"},
        "among_others": 2.0,
    "overlap": 0.4, "pages": "4 GB/s", "pages_from": "32 MiB", "fault": "1 us", "lookup": "1 ns",
    "levels": {"L2": {"sharpness": 2.0, "beyond": "32 KiB", "read": "50 GB/s", "write": "40 GB/s", "update": "30 GB/s",
    "lookup": "2 ns"},
               "memory": {"beyond": "8 MiB", "read": "10 GB/s", "write": "8 GB/s", "update": "7 GB/s", "lookup": "50 ns"}},
    "functions": {
        "add": {"call": "0.4 us", "each": {"fp32": "0.1 ns", "fp64": "0.2 ns"}, "row": "10 ns", "counts": [100.0, 1e6]},
        "exp": {"call": "0.5 us", "each": {"fp32": "1 ns"}, "row": "12 ns"},
        "sum": {"call": "2 us", "each": {"fp32": "0.1 ns"}, "row": "20 ns"},
        "sort": {"call": "2 us", "each": {"fp32": "1 ns"}, "log": True},
        "normal": {"call": "1 us", "each": {"fp32": "10 ns"}},
        "matvec": {"call": "1 us", "each": {"fp32": "0.2 ns"}},
        "max": {"call": "2 us", "each": {"fp32": "0.3 ns"}},
        "uniform": {"call": "1 us", "each": {"fp32": "4 ns"}},
        "take": {"call": "1 us", "each": {"fp64": "1 ns", "fp32": "1 ns"}},
    },
    "forms": {"row": {"call": "0.3 us", "row": "5 ns"}, "scalar": {"call": "0.1 us"}, "strided": {"row": "30 ns",
    "each": "0.1 ns"}},
    "products": {"fp32": {"flop": "100 GFLOP/s", "call": "1 us", "left": "0.1 ns", "right": "0.2 ns", "result": "0.3 ns",
        "edge": "2 ns",
                          "depth": "3 ns", "counts": [1e3, 1e9]}},
    "corrections": {"width": 1.0, "shrink": 0.3, "few": 1, "points": {"exp fp32 new": [[1000.0, 1.0, 1.5], [1e5, 1.0, 1.2]],
                    "add scalar fp32 self": [[1e6, 1.0, 1.5], [2e6, 1.0, 1.3]]}},
}  # fmt: skip
MEASURED: Final = machine(cpu={**ROOFLINE, "cores": 8, "kernels": CALLS})
CALL: Final[dict[str, Any]] = {
    "device": "cpu", "function": "add", "form": "row", "rows": 100.0, "into": "out", "among_others": True, "new_pages": 20000.0,
    "new_bytes": "1 MB", "since": ["1 MB", "20 MB"], "count": 1e6,
}  # fmt: skip


def _called(op: str, **more: Any) -> dict[str, Any]:
    return {op: {**CALL, **more}}


OF_A_LIBRARY: Final = in_turn(
    _called("elementwise"),
    _called("reduce", function="sum", rows=5e5),
    {"elementwise": {"device": "cpu", "function": "add", "count": 1e5, "rows": 50.0}},
    {"matmul": {"device": "cpu", "m": 500, "n": 1, "k": 300, "form": "a"}},
    _called("softmax", function="exp"),
    _called("layernorm", function="exp"),
    _called("random", function="normal", since=["30 MB"]),
    {"matmul": {"device": "cpu", "m": 500, "n": 400, "k": 300, "form": "a", "into": "out", "among_others": True,
        "new_pages": 20000.0, "new_bytes": "100 kB",
                "since": ["1 MB", "20 MB", "3 MB"]}},
    {"elementwise": {"device": "cpu", "function": "exp", "count": 1000.0, "form": "strided"}},
    {"compute": {"device": "cpu", "function": "add", "flop": "1 MFLOP", "bytes": "24 MB", "result": "8 MB", "dtype": "fp64",
    "form": "row",
                 "rows": 100.0, "mix": "vector", "into": "out", "among_others": True, "new_pages": 3000.0, "new_bytes": "4 MB",
                 "since": ["20 MB", "40 MB"]}},
    {"elementwise": {"device": "cpu", "function": "exp", "count": 3000.0}},
    {"elementwise": {"device": "cpu", "function": "add", "count": 3e6, "form": "scalar", "into": "self"}},
    {"elementwise": {"device": "cpu", "function": "add", "count": 3e7}},
    {"elementwise": {"device": "cpu", "function": "sort", "count": 1000.0, "rows": 10.0}},
    {"access": {"device": "cpu", "function": "take", "count": 1e4, "bytes": "8 B", "pattern": "random", "working_set": "100 MB",
                "dtype": "fp64", "into": "out", "among_others": True, "new_pages": 3000.0, "new_bytes": "40 kB",
                "since": ["50 MB", "1 MB", "30 MB"]}},
)  # fmt: skip
PLAIN_OPS: Final = in_turn(
    *({op: {"device": "cpu0", "count": 1e6, "cores": 2, "isa": "avx2", "working_set": "1 MiB", "dtype": "fp32"}}
      for op in ("elementwise", "reduce", "softmax", "layernorm", "random")),
    *({op: {"device": "cpu0", "shape": [1000, 1000], "dtype": "fp32"}} for op in ("elementwise", "reduce", "softmax",
        "layernorm", "random")),
    {"matmul": {"device": "cpu0", "m": 500, "n": 400, "k": 300, "cores": 2, "isa": "avx2", "working_set": "1 MiB",
        "dtype": "fp32"}},
    {"attention": {"device": "cpu0", "tokens": 300, "heads": 8, "head": 64, "cores": 2, "isa": "avx2", "working_set": "1 MiB",
        "dtype": "fp32"}},
    {"moe": {"device": "cpu0", "tokens": 4, "hidden": 512, "inner": 512, "experts": 4, "cores": 2, "isa": "avx512",
        "working_set": "1 MiB"}},
    {"elementwise": {"device": "gpu0", "count": 1e6}},
    {"matmul": {"device": "gpu0", "m": 500, "n": 400, "k": 300}},
)  # fmt: skip
ANY: Final = program(
    {"elementwise": {**ADD, "name": "first", "queue": "q", "writes": {"x": {"shape": [1000, 1000], "dtype": "fp16"}}}},
    {"elementwise": {**ADD, "device": "gpu1", "name": "second", "reads": ["x"], "writes": {"y": "4 MB"}}},
    {"elementwise": {**ADD, "device": "gpu1", "queue": "other", "name": "third", "updates": {"v": {"shape": [1000, 1000],
        "dtype": "fp16"}}}},
    {"elementwise": {**ADD, "name": "fourth", "after": ["third"], "block": True}},
    {"copy": {"from": "cpu", "to": "gpu0", "bytes": "10 MB", "weight": 3.0}},
    {"copy": {"from": "cpu", "to": "gpu0", "bytes": "10 MB", "queue": "beside", "memory": "pinned", "by": "dma"}},
    {"item": {"reads": ["x"], "bytes": "1 MB"}},
    {"print": {"reads": ["y"], "bytes": "1 MB"}},
    {"asnumpy": {"reads": ["y"], "bytes": "1 MB"}},
    {"repeat": {"times": 3, "do": [{"busy": {"device": "cpu", "time": "1 ms", "name": "b"}}, {"busy": {"device": "gpu0",
        "time": "3 ms", "name": "g"}},
                                   {"wait": {"name": ["g"], "back": 1}}]}},
    runtime={"dispatch": "12 us", "return": "8 us", "queue_depth": 4, "blocks": "none", "free": "stream"},
    name="every op", notes="none", source="nobody",
)  # fmt: skip
COMPILED: Final = program(
    {"repeat": {"times": 2, "do": [{"call": {"name": "net", "do": [
        {"elementwise": {**ADD, "count": 1e4, "writes": "x"}}, {"elementwise": {**ADD, "count": 1e4, "reads": "x",
            "writes": "x"}}]}}]}},
    {"wait": "all"},
    runtime={"call": "10 us", "per_op": "3 us", "compile": "1 ms", "fuse": "elementwise", "starts": "stream",
        "dispatch": "5 us", "issue": "20 us",
             "kind": "runtime", "name": "mine", "source": "guess", "ref": "none", "notes": "none"},
)  # fmt: skip
LAYERED: Final = program(
    {"call": {"name": "net", "do": [{"elementwise": {"device": "cpu", "count": 1e6, "writes": "x"}}]}},
    {"asnumpy": {"reads": ["x"], "queue": "converted"}},
    runtime={"dispatch": "5 us", "layer": "20 us", "converts": "copy", "source": "fitted", "on": "d2l-laptop-cpu"},
)  # fmt: skip
BUFFERS: Final = program(
    {"repeat": {"times": "$times", "do": [{"elementwise": {**ADD, "writes": {"x": "1 GB"}}}]}},
    {"wait": "all"},
    runtime={"dispatch": "12 us", "queue_depth": 3, "free": "stream"},
    let={"times": 9},
)
LATE_BUFFERS: Final = program(
    {"repeat": {"times": 4, "do": [{"elementwise": {**ADD, "writes": {"x": "1 GB"}}}]}},
    {"wait": "all"},
    runtime={"dispatch": "12 us", "allocate": "run"},
)
ONE_CORE: Final = {"matmul": {"device": "cpu", "m": 500, "n": 400, "k": 300, "cores": 1}}
WORKERS: Final = program(
    {"repeat": {"times": 5, "do": [ONE_CORE]}},
    {"busy": {"device": "gpu0", "time": "3 ms", "writes": "late"}},
    {"busy": {"device": "gpu0", "time": "1 ms", "reads": "late"}},
    {"elementwise": {**ADD, "count": 1e5}},
    {"copy": {"from": "gpu0", "to": "cpu", "bytes": "10 MB", "reads": "late"}},
    {"copy": {"from": "gpu0", "to": "cpu", "bytes": "50 MB", "writes": "y"}},
    {"wait": "y"},
    {"wait": "all"},
    runtime={"dispatch": "12 us", "workers": {"cpu": 2, "gpu": 2, "copy": 1}},
)
BUSY: Final = [{"busy": {"device": "gpu0", "time": "5 ms"}}]
RECORDED: Final = program(
    {"busy": {"device": "gpu0", "time": "5 ms", "queue": "other", "fixed": True}}, {"busy": {"device": "gpu0", "time": "3 ms"}}
)
JOBS: Final = {
    "hwsim": "workload/1",
    "groups": {"pair": {"of": "gpu*", "size": 2, "stride": 1}},
    "runtime": {"use": "mxnet"},
    "jobs": {
        "first": {"start": "1 ms", "program": BUSY, "runtime": {"dispatch": "1 ms"}, "skip": False},
        "second": {"programs": {"a": BUSY, "b": [{"barrier": {"name": "m"}}, *BUSY]}},
        "third": {"program": {"each": ["gpu*"], "do": [{"busy": {"time": "1 ms"}}, {"barrier": {"name": "together"}}]}},
        "fourth": {"device": ["gpu0"], "train": {"model": {"kind": "mlp", "units": [784, 256, 10]}, "global_batch": 64}},
        "sixth": {"infer": {"model": {"kind": "mlp", "units": [784, 256, 10]}, "device": ["gpu3"], "requests": 4, "batch": 2}},
        "fifth": {"pipeline": {"batches": 3, "stages": [{"busy": {"device": "cpu", "time": "1 ms"}}]}},
    },
    "events": [
        {"at": "1 ms", "part": ["gpu0"], "speed": "50 %", "for": "2 ms"},
        {"at": "2 ms", "link": "pcie", "of": ["gpu1"], "down": "3 ms"},
        {"at": "1 ms", "part": ["gpu1"], "jitter": "20 %", "for": "5 ms", "every": "1 ms", "seed": 3},
    ],
}  # fmt: skip
RECEIVED: Final[dict[str, Any]] = {
    "hwsim": "workload/1",
    "program": {"each": ["gpu*"], "do": [
        {"busy": {"time": "2 ms"}}, {"send": {"to": "gpu[($rank + 1) mod $ranks]", "bytes": "10 MB"}},
        {"send": {"to": "gpu[($rank + 2) mod $ranks]", "bytes": "50 MB"}},
        {"recv": {"from": "gpu[($rank - 1) mod $ranks]"}}, {"busy": {"time": "1 ms"}}]},
}  # fmt: skip
FOUR: Final = machine(between("cpu", "gpu*", "pcie", gen=3, lanes=16), cpu=CPU, gpu={**PLAIN_GPU, "count": 4})
EXAMPLES: Final = (
    Example(
        "functions of a library",
        MEASURED,
        OF_A_LIBRARY,
        tried={
            "cpu.kernels.products.*.counts": ([1e10, 1e12],),
            "op random.function": ("uniform",),
            "op reduce.function": ("max",),
            "op access.function": ("add",),
        },
    ),
    Example("buffers", TWO, BUFFERS),
    Example("workers", TWO, WORKERS),
    Example("buffers of running ops", TWO, LATE_BUFFERS),
    Example("what is received", FOUR, RECEIVED, tried={"statement recv.from": ("gpu[($rank + 2) mod $ranks]",)}),
    Example(
        "ops on parts without measured functions",
        machine(
            gpu={**PLAIN_GPU, "count": 1},
            cpu={
                "count": 1,
                "kind": "cpu",
                "cores": 8,
                "clock": "2 GHz",
                "random": "1e8 1/s",
                "core_bandwidth": "12 GB/s",
                "memory": {"bandwidth": "40 GB/s"},
                "core": {
                    "isa": {
                        "scalar": {},
                        "avx2": {"bits": 256, "pipes": 2, "fma": True},
                        "avx512": {"bits": 512, "pipes": 2, "fma": True, "formats": ["bf16", "fp32"]},
                    }
                },
                "caches": {"levels": {"L1": {"size": "2 MiB", "bandwidth": "60 GB/s"}}},
            },
        ),
        PLAIN_OPS,
    ),
    Example("every op", TWO, ANY, tried={"op.queue": ("elsewhere",), "runtime.blocks": ("all",), "op.writes": ({"x": "90 MB"},)}),
    Example("compiled", TWO, COMPILED),
    Example("a body that is not compiled", TWO, LAYERED, tried={"runtime.converts": ("share",)}),
    Example(
        "jobs",
        FOUR,
        JOBS,
        tried={
            "runtime.use": ("pytorch-eager",),
            "job.device": (["gpu1"],),
            "workload.events.of": (["gpu0"],),
            "each.each": (["gpu0"],),
            "workload.events.part": (["gpu1"],),
            "workload.jobs.*.device": (["gpu1"],),
        },
    ),
    Example(
        "groups",
        machine(
            between("cpu", "gpu*", "pcie", gen=3, lanes=16),
            between("gpu0", "gpu1", "nvlink", gen=2),
            cpu=CPU,
            gpu={**PLAIN_GPU, "count": 4},
        ),
        program({"each": ["gpu*"], "do": []})
        | {
            "program": {"each": ["gpu*"], "do": [{"allreduce": {"among": ["pair"], "bytes": "10 MB"}}]},
            "groups": {"pair": {"of": ["gpu*"], "size": 2, "stride": 2}},
        },
    ),
    Example("several programs", TWO, {"hwsim": "workload/1", "programs": {"a": BUSY, "b": BUSY}}),
    Example(
        "a part of the library",
        machine(cpu={"kind": "cpu", "use": "d2l-laptop-cpu", "notes": "none"}),
        program({"elementwise": {"device": "cpu", "count": 1e6}}),
        tried={"part.use": ("d2l-server-cpu",)},
    ),
    Example("a recorded time", TWO, RECORDED),
    Example("expectation", TWO, program(*BUSY, expect={"makespan": "5 ms +- 1 %"})),
)
