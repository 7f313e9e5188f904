"""Keys of services and of pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tests.keys.examples.training import TRANSFORMER, gpus, stored
from tests.keys.examples.writing import CPU, PLAIN_GPU, between, machine
from tests.keys.feeling import Example

TRACE: Final = Path(__file__).parent / "trace.csv"
OTHER: Final = Path(__file__).parent / "late.csv"
BIG: Final = {**TRANSFORMER, "layers": 4, "hidden": 2048, "heads": 16, "kv_heads": 16, "head": 128, "ffn": 8192}
INFER: Final[dict[str, Any]] = {
    "model": BIG, "device": ["node*.gpu*"], "parallel": {"tp": 2, "dp": 2}, "dtype": "bf16", "framework": "vllm",
    "arrivals": {"poisson": "200 1/s"}, "requests": 12, "prompt": {"lognormal": {"median": 300.0, "sigma": 0.5}},
        "output": {"uniform": [5, 20]},
    "batching": "continuous", "batch": 8, "memory": "20 %", "seed": 1,
    "slo": {"ttft": "20 ms", "tpot": "2 ms", "latency": "50 ms"},
}  # fmt: skip
TRIED: Final[dict[str, tuple[Any, ...]]] = {
    "infer.device": (["node0.gpu0..1"],), "infer.framework": ("sarathi-serve",), "infer.model": ("gpt2",),
        "infer.dtype": ("fp16", "fp32"),
    "infer.prompt.uniform": ([10, 300],), "infer.output.uniform": ([10, 30],), "infer.memory": ("7 %",),
    "infer.parallel.dp": ("rest",), "infer.arrivals.day.mean": ("110 1/s",), "infer.server": ({"host": {"step": "3 ms"}},),
}  # fmt: skip


def infer(**keys: Any) -> dict[str, Any]:
    """A workload that serves."""
    return {"hwsim": "workload/1", "infer": {key: spec for key, spec in {**INFER, **keys}.items() if spec is not None}}


OWN: Final = dict.fromkeys(("batch", "memory", "batching"))  # what a server says itself
APART: Final = dict.fromkeys(("device", "parallel"))  # what the parts of a split say


SCALE: Final[dict[str, Any]] = {
    "target": 4.0, "start": "20 ms", "by": "requests", "least": 1, "most": 3, "first": 2, "limit": 9, "every": "5 ms",
    "window": "300 ms", "delay": "20 ms",
}  # fmt: skip
SERVER: Final[dict[str, Any]] = {
    "prompts": "beside", "chunked": True, "budget": 300, "sequences": 30, "admit": "ratio",
    "ratio": {"first": 0.9, "least": 0.3, "steps": 30, "most": 16}, "spare": "1 %", "ahead": 1, "look": 3, "gather": 8,
    "padded": False, "block": 16, "prefixes": True, "windows": True,
    "graphs": {"sizes": [1, 2, {"from": 4, "to": 64, "by": 4}], "largest": 48, "each": 4.0, "pad": True, "mixed": True,
        "eager": "2 ms", "kernel": "2 ms"},
    "memory": {"of": "all", "part": "1.42 %", "kept": "100 MB", "activations": 1.0, "token": "100 kB", "graph": "1 MB",
        "gpu": "1 MB", "least": "85 MB"},
    "host": {"step": "1 ms", "each": "10 us", "api": "2 ms", "out": "100 us"},
}  # fmt: skip
OF_SERVERS: Final[dict[str, tuple[Any, ...]]] = {
    "framework.server.prompts": ("before", "alone"), "framework.server.admit": ("answer", "prompt"),
    "framework.server.memory.of": ("free",), "framework.server.sizes.without": (["ampere"], []),
    "framework.server.sizes.memory": ("400 GB",),
    "framework.server.ratio.first": (1.0, 0.99, 0.31, 0.5, 0.7), "framework.server.ratio.steps": (1, 3, 8, 2000),
}  # fmt: skip


MACHINE: Final = machine(
    between("cpu", "gpu*", "pcie", gen=3, lanes=16), between("cpu", "disk", "pcie", gen=3, lanes=4), between("cpu", "slow",
        "pcie", gen=3, lanes=4), cpu=CPU,
        gpu={**PLAIN_GPU, "count": 2},
    slow={"kind": "disk", "read": "1 GB/s", "write": "100 MB/s"},
    disk={"kind": "disk", "read": "3 GB/s", "write": "1 GB/s", "latency": "100 us", "iops": "20 kIOPS", "queue": 16},
)  # fmt: skip
PIPELINE: Final[dict[str, Any]] = {
    "batch": 64, "batches": 12, "dataset": {"samples": 1280, "bytes": "100 kB", "shuffle": True}, "epochs": 3,
    "cache": {"device": "cpu", "bytes": "60 MB"}, "ahead": 2,
    "checkpoint": {"every": 4, "bytes": "50 MB", "to": "disk", "from": "gpu0", "mode": "sync", "request": "1 MB", "depth": 4},
    "stages": [
        {"name": "read", "ahead": 3, "read": {"from": "disk", "access": "random", "depth": 8}},
        {"name": "prepare", "at_once": 2, "handoff": "1 ms", "busy": {"device": "cpu", "time": "10 ms"}},
        {"name": "two", "do": [{"copy": {"from": "cpu", "to": "gpu0", "bytes": "6 MB"}}, {"busy": {"device": "gpu0",
            "time": "6 ms"}}]},
    ],
}  # fmt: skip
OF_PIPELINES: Final[dict[str, tuple[Any, ...]]] = {
    "pipeline.checkpoint.from": ("cpu",), "pipeline.checkpoint.to": ("slow",),
    "pipeline.checkpoint.every": (3,), "pipeline.each": (["gpu0"],), "pipeline.cache.device": ("gpu1",),
        "pipeline.checkpoint.mode": ("async",),
    "pipeline.stages": (PIPELINE["stages"][:2],), "stage.name": ("other",), "stage.train": ({"model": {"kind": "mlp",
        "units": [784, 256, 10]}, "global_batch": 64, "device": ["gpu*"]},),
}  # fmt: skip


NARROW: Final = {  # the cache is full
    "kind": "transformer", "layers": 4, "hidden": 1024, "heads": 16, "vocab": 8000, "sequence": 4096, "window": 64,
    "cache": "window", "quantised": {"format": "int4", "of": "linear", "group": 64, "cache": "fp8"},
    "experts": 4, "top_k": 2,
}  # fmt: skip


def pipeline(**keys: Any) -> dict[str, Any]:
    """A workload of stages."""
    return {"hwsim": "workload/1", "pipeline": {key: spec for key, spec in {**PIPELINE, **keys}.items() if spec is not None}}


EACH: Final = pipeline(
    each=["gpu*"], checkpoint={"every": 4, "bytes": "50 MB", "to": "disk"},
    stages=[{"busy": {"device": "cpu", "time": "10 ms"}}, {"busy": {"device": "$self", "time": "6 ms"}}],
)  # fmt: skip
LENGTHS: Final[tuple[tuple[str, Any, Any], ...]] = (
    ("exponential", {"exponential": 100.0}, {"bursts": {"poisson": "40 1/s", "size": 4}}),
    ("pareto", {"pareto": {"least": 20.0, "shape": 1.5, "most": 500.0}},
     {"day": {"mean": "100 1/s", "peak": "190 1/s", "at": "30 ms", "cycle": "100 ms", "start": "20 ms"}}),
    ("values", {"values": [20.0, 200.0]}, {"bursts": {"poisson": "40 1/s", "size": {"uniform": [1, 7]}}}),
)  # fmt: skip
EXPERTS: Final = {"tp": 1, "groups": 2, "ep": 1, "pp": 2, "dp": 1}
EXAMPLES: Final = (
    Example("service", gpus(4), infer(), tried=TRIED),
    Example(
        "service in chunks",
        gpus(4),
        infer(
            server={"budget": 64},
            parallel={"tp": 2, "dp": "rest"},
            prompt={"uniform": [100, 300]},
            output={"lognormal": {"median": 10.0, "sigma": 0.5}},
            arrivals={"every": "5 ms"},
            batching="continuous",
            router={"choices": 1},
        ),
        tried=TRIED,
    ),
    Example(
        "service of experts",
        gpus(4),
        infer(
            model={**BIG, "experts": 4, "top_k": 2},
            parallel={"tp": 1, "groups": 2, "ep": 2, "pp": 2, "dp": 1},
            kv="fp8",
            memory="40 %",
            prompt=300,
            output=20,
        ),
        tried={"infer.kv": ("bf16",), "infer.parallel.ep": (1,), "infer.parallel.pp": (1,)},
    ),
    Example(
        "service of groups",
        gpus(4),
        infer(model={**BIG, "experts": 4, "top_k": 2}, parallel={"tp": 1, "groups": 2, "dp": 1}, prompt=300, output=20),
        tried={"infer.parallel.groups": (1,)},
    ),
    Example(
        "service of a trace",
        gpus(4),
        infer(arrivals={"trace": str(TRACE), "share": 2}, requests=None),
        tried={"infer.arrivals.trace": (str(OTHER),)},
    ),
    Example(
        "service with an all-reduce of its own",
        gpus(4),
        infer(arrivals="all at once", requests=4),
        framework={"starts": "graph", "all_reduce": "vllm"},
        tried={"framework.all_reduce": ("trtllm",)},
    ),
    Example(
        "service that sorts the vocabulary",
        gpus(4),
        infer(arrivals="all at once", requests=4, top_p=True, model={**BIG, "top_p": False}),
        framework={"ops": {"top-p": {"kernels": 1, "sort": "1 us"}}},
        tried={"infer.top_p": (False,)},
    ),
    Example(
        "service of a checkpoint without a filter",
        gpus(4),
        infer(arrivals="all at once", requests=4, model={**BIG, "top_p": False}),
        framework={"ops": {"top-p": {"kernels": 1, "sort": "1 us"}}},
        tried={"model.top_p": (True,)},
    ),
    Example(
        "service of a server of its own",
        gpus(4),
        infer(arrivals={"poisson": "4000 1/s"}, requests=60, **OWN, server={"look": 2}, output={"uniform": [5, 60]}),
        framework={"server": SERVER},
        tried=OF_SERVERS,
    ),
    Example(
        "service of groups that wait for each other",
        gpus(4),
        infer(
            model={**BIG, "experts": 4, "top_k": 2},
            arrivals={"poisson": "400 1/s"},
            requests=60,
            **OWN,
            parallel={"tp": 1, "groups": 4, "dp": 1},
            output={"uniform": [50, 90]},
        ),
        framework={"server": {"prompts": "beside", "gather": 8}},
        tried={"framework.server.gather": (0, 60)},
    ),
    Example(
        "service of a server that keeps what lies beyond a window",
        gpus(4),
        infer(model=NARROW, prompt=300, output=20),
        framework={"server": {"windows": True}},
        tried={"framework.server.windows": (False,)},
    ),
    Example(
        "service of a server by the size of a gpu",
        gpus(4, memory={"size": "40 GB", "bandwidth": "2 TB/s"}, generation="ampere"),
        infer(arrivals={"poisson": "4000 1/s"}, requests=60, **OWN, server=None),
        framework={
            "server": {
                **SERVER,
                "memory": {**SERVER["memory"], "part": "10 %"},
                "look": 1,
                "sequences": 100,
                "sizes": [
                    {"memory": "16 GB", "without": ["volta"], "budget": 300, "sequences": 6, "largest": 8, "least": "60 MB"}
                ],
            }
        },
        tried=OF_SERVERS,
    ),
    Example(
        "service of conversations",
        gpus(4),
        infer(
            arrivals={"clients": 4, "think": {"exponential": "2 ms"}, "ramp": "5 ms"},
            sessions={"turns": {"uniform": [2, 4]}, "think": {"lognormal": {"median": "3 ms", "sigma": 0.5}}},
            shared={"tokens": {"uniform": [100, 300]}, "groups": 3, "skew": 1.0},
            warm_up="4 ms",
            requests=30,
            prompt={"uniform": [20, 60]},
        ),
        tried=TRIED,
    ),
    Example(
        "service of prompts that come again",
        gpus(4),
        infer(shared={"tokens": 64, "distinct": 5}, warm_up="until steady", requests=30),
        tried=TRIED,
    ),
    *(
        Example(f"service of lengths, {name}", gpus(4), infer(prompt=draw, output=draw, arrivals=arrivals), tried=TRIED)
        for name, draw, arrivals in LENGTHS
    ),
    Example(
        "service of a router",
        gpus(4),
        infer(
            router={"prefix": 2, "queue": 0.5, "room": 0.4},
            parallel={"tp": 1, "dp": 4},
            requests=50,
            shared={"tokens": 200, "groups": 7},
            arrivals={"poisson": "3000 1/s"},
        ),
        tried={
            **TRIED,
            "infer.router": ("round robin", "waiting"),
            "infer.router.prefix": (0.0,),
            "infer.router.queue": (9.0,),
            "infer.router.room": (9.0,),
        },
    ),
    Example(
        "service of guesses",
        gpus(4),
        infer(speculate={"tokens": 2, "acceptance": "70 %", "draft": "layer"}, output={"uniform": [20, 60]}),
        tried={**TRIED, "infer.speculate.draft": ("none",), "infer.speculate.acceptance": (["10 %", "10 %"],)},
    ),
    Example(
        "service of prompts read apart",
        gpus(4),
        infer(
            **APART,
            split={
                "prefill": {"device": ["gpu0..1"], "parallel": {"tp": 1, "dp": "rest"}, "server": {"look": 1}},
                "decode": {"device": ["gpu2..3"], "parallel": {"tp": 1, "dp": "rest"}, "server": {"look": 1}},
            },
            arrivals={"poisson": "4000 1/s"},
            output={"uniform": [20, 60]},
        ),
        framework={"server": {"first": "answers"}},
        tried={
            **TRIED,
            "framework.server.first": ("prompts",),
            "infer.split.prefill.server": ({"host": {"step": "3 ms"}},),
            "infer.split.decode.server": ({"host": {"step": "3 ms"}},),
            "infer.split.prefill.device": (["gpu0"],),
            "infer.split.decode.device": (["gpu2"],),
            **{
                f"infer.split.{part}.parallel.{key}": (value,)
                for part in ("prefill", "decode")
                for key, value in (("dp", 1), ("tp", 2))
            },
        },
    ),
    Example(
        "service of experts, prompts read apart",
        gpus(8),
        infer(
            **APART,
            model={**BIG, "experts": 4, "top_k": 2},
            split={
                "prefill": {"device": ["node0.gpu*"], "parallel": EXPERTS},
                "decode": {"device": ["node1.gpu*"], "parallel": EXPERTS},
            },
            memory="40 %",
            prompt=300,
            output=20,
        ),
        tried={
            f"infer.split.{part}.parallel.{key}": (value,)
            for part in ("prefill", "decode")
            for key, value in (("ep", 2), ("pp", 1), ("groups", 1))
        },
    ),
    Example(
        "service with tiers below its GPUs",
        stored(4),
        infer(
            offload={"host": "20 MB", "disk": {"device": "disk", "size": "60 MB"}, "write": "back"},
            memory="4.61 %",
            server={"prompts": "before", "chunked": False, "budget": 512},
            shared={"distinct": 40},
            requests=150,
            prompt=300,
            output=20,
        ),
        tried={"infer.offload.host": ("40 MB",), "infer.offload.disk.size": ("10 MB",), "infer.offload.write": ("through",)},
    ),
    Example(
        "service whose copies come and go",
        gpus(4),
        infer(
            parallel={"tp": 1, "dp": 4},
            arrivals={"bursts": {"poisson": "6 1/s", "size": 20}},
            requests=60,
            output={"uniform": [20, 60]},
            scale=SCALE,
        ),
        tried={
            **TRIED,
            "infer.scale.by": ("waiting", "arrivals"),
            "infer.scale.first": (1,),
            "infer.scale.least": (2,),
            "infer.scale.most": (2,),
        },
    ),
    Example(
        "service whose copies come and go, prompts read apart",
        gpus(8),
        infer(
            **APART,
            split={"prefill": {"device": ["node0.gpu*"], "scale": SCALE}, "decode": {"device": ["node1.gpu*"], "scale": SCALE}},
            arrivals={"bursts": {"poisson": "6 1/s", "size": 20}},
            requests=40,
            output={"uniform": [10, 30]},
        ),
        tried={
            **TRIED,
            **{
                f"infer.split.{part}.scale.{key}": values
                for part in ("prefill", "decode")
                for key, values in (("by", ("waiting", "arrivals")), ("first", (1,)), ("least", (2,)), ("most", (2,)))
            },
        },
    ),
    Example(
        "service whose copies get their weights at a rate, prompts read apart",
        stored(8),
        infer(
            **APART,
            split={
                part: {
                    "device": [f"{node}.gpu*"],
                    "scale": {"target": 4.0, "start": {"rate": "10 GB/s", "engine": "10 ms"}, "least": 0},
                }
                for part, node in (("prefill", "node0"), ("decode", "node1"))
            },
            requests=20,
        ),
        tried=TRIED,
    ),
    Example(
        "service whose copies get their weights at a rate",
        gpus(4),
        infer(
            parallel={"tp": 1, "dp": 4},
            requests=20,
            scale={"target": 4.0, "start": {"rate": "10 GB/s", "engine": "10 ms"}, "least": 0},
        ),
        tried=TRIED,
    ),
    Example(
        "service with adapters",
        gpus(4),
        infer(adapters={"count": 12, "rank": 16, "skew": 1.0}, arrivals="all at once", requests=20),
        tried={**TRIED, "infer.adapters.count": (40,), "infer.adapters.rank": (64,), "infer.adapters.skew": (0.0,)},
    ),
    Example(
        "service with adapters on demand",
        gpus(4),
        infer(adapters={"count": 12, "rank": 16, "skew": 1.0, "slots": 4}, arrivals="all at once", requests=20),
        tried=TRIED,
    ),
    Example("service of a crowd", gpus(4), infer(arrivals="all at once", requests=20), tried=TRIED),
    Example("service of narrow weights", gpus(4), infer(model=NARROW, arrivals="all at once", requests=20), tried=TRIED),
    Example("static service", gpus(4), infer(batching="static", prompt=300, output=20), tried=TRIED),
    Example("pipeline", MACHINE, pipeline(), tried=OF_PIPELINES),
    Example("pipeline of a data set", MACHINE, pipeline(batches=None), tried=OF_PIPELINES),
    Example("pipelines", MACHINE, EACH, tried=OF_PIPELINES),
    Example(
        "pipeline of a training",
        MACHINE,
        pipeline(
            checkpoint=None,
            stages=[
                {"busy": {"device": "cpu", "time": "10 ms"}},
                {"train": {"model": "lenet", "global_batch": 64, "device": ["gpu*"]}},
            ],
        ),
        tried=OF_PIPELINES,
    ),
)
