"""Keys of trainings, of models and of frameworks."""

from __future__ import annotations

from typing import Any, Final

from tests.keys.examples.gpus import TILES
from tests.keys.examples.writing import CPU, between, machine
from tests.keys.feeling import Example

GPU: Final = {
    "kind": "gpu", "flop": {"fp32": "19 TFLOP/s", "bf16": "300 TFLOP/s", "fp8": "600 TFLOP/s"},
        "vector": {"bf16": "70 TFLOP/s"}, "sms": 100,
    "clock": "1.4 GHz", "memory": {"bandwidth": "1500 GB/s", "size": "40 GB"}, "launch": {"stream": "3 us", "graph": "1 us"},
        "l2": {"size": "40 MiB", "bandwidth": "5 TB/s"}, "attention": "60 %",
        "matmul": {"bf16": TILES},
}  # fmt: skip


def gpus(many: int, **keys: Any) -> dict[str, Any]:
    """Nodes of four GPUs, with other keys of a GPU."""
    node = {
        "kind": "machine",
        "count": many // 4,
        "parts": {
            "cpu": CPU,
            "gpu": {**GPU, **keys, "count": 4},
            "nic": {"kind": "nic", "bandwidth": "100 Gb/s"},
            "nvs": {"kind": "switch"},
        },
        "links": [
            between("cpu", "gpu*", "pcie", gen=4, lanes=16),
            between("gpu*", "nvs", "nvlink", gen=3, links=4),
            between("cpu", "nic", "pcie", gen=4, lanes=16),
        ],
    }
    return machine({"kind": "ethernet", "between": ["node*.nic", "leaf"], "rate": "100 Gb/s"}, node=node, leaf={"kind": "switch"})


TRANSFORMER: Final[dict[str, Any]] = {
    "kind": "transformer", "layers": 4, "hidden": 512, "heads": 8, "kv_heads": 4, "head": 64, "ffn": 2048, "gated": True,
        "vocab": 8000,
    "tied": False, "sequence": 1024, "positions": "learned", "places": 2048, "norm": "layernorm", "bias": True,
        "final_norm": True,
    "embedding_norm": True, "token_types": 2, "pooler": True, "causal": True, "dropout": True,
}  # fmt: skip
EXPERTS: Final = {**TRANSFORMER, "experts": 4, "top_k": 2, "window": 128}
KINDS: Final = {  # heads of their own, and of each kind other ones
    **TRANSFORMER, "layers": 6, "norms": 4, "bias": ["q", "k", "v"], "qk_norm": "head", "sinks": True, "experts": 4, "top_k": 2,
    "shared": 512, "shared_gate": True, "shared_values": True,
    "runs": [
        {"layers": 2, "window": 128, "kv_heads": 2, "head": 128, "ffn": 1024, "experts": 2, "top_k": 1, "shared": 256,
            "shared_values": False},
        {"layers": 1},
    ],
}  # fmt: skip
LATENT: Final = {
    **{key: value for key, value in TRANSFORMER.items() if key not in ("head", "kv_heads")},
    "latent": {"rank": 128, "query_rank": 256, "plain": 32, "rotary": 16, "values": 32,
               "indexer": {"heads": 4, "width": 32, "chosen": 256}},
}  # fmt: skip
PATCHES: Final = {
    **{key: value for key, value in TRANSFORMER.items() if key not in ("vocab", "tied", "pooler", "token_types")},
    "vocab": 0, "causal": False, "sequence": 50, "places": 50, "classes": 1000,
    "patches": {"image": 224, "side": 32, "channels": 3, "extra": 1},
}  # fmt: skip
TRAIN: Final[dict[str, Any]] = {"model": TRANSFORMER, "device": ["node*.gpu*"], "global_batch": 16, "microbatch": 2, "steps": 1}


def train(**keys: Any) -> dict[str, Any]:
    """A workload that trains."""
    return {"hwsim": "workload/1", "train": keys}


CNN: Final[dict[str, Any]] = {
    "kind": "cnn", "input": [3, 64, 64], "norm": True, "activation": "relu",
    "layers": [
        {"conv": {"channels": 12, "kernel": 3, "stride": 2, "padding": 1, "groups": 3, "norm": True, "bias": True,
            "activation": "relu"}},
        {"pool": {"by": "max", "kernel": 3, "stride": 2, "padding": 1}},
        {"basic": {"channels": 12, "stride": 2, "times": 2}},
        {"bottleneck": {"channels": 32, "stride": 2, "times": 2, "groups": 4, "width": 8,
            "stride_in": "first", "excite": 16}},
        {"conv": {"channels": 32, "kernel": 1, "norm": True, "activation": "relu", "first": True}},
        {"branches": {"of": [[{"conv": {"channels": 16, "kernel": 1}}], [{"conv": {"channels": 32, "kernel": 3}}]],
            "times": 2}},
        {"pool": {"by": "average"}},
        {"linear": {"units": 64, "bias": True, "activation": "relu", "dropout": True}},
        {"linear": {"units": 10, "activation": "none"}},
    ],
}  # fmt: skip
FRAMEWORK: Final[dict[str, Any]] = {
    "attention": "flash", "moved": 1.5, "exposed": 0.8, "gradients": "50 %", "gathered": 2,
    "kernels": "flash", "logits": 8.0, "bucket": "100 kB", "stops": True, "casts": 0.8,
    "gradient": 2.0, "adam": 30.0,
    "accumulate": 8.0, "flash": 0.9, "network": 0.9, "split": True, "fp8": 0.8, "fp4": 0.8, "experts": 0.8,
    "expert_casts": 2.0, "dispatcher": "flex", "dispatched": "50 %", "issue": "20 us", "cached": True, "steady": True,
        "starts": "stream",
    "launch": "5 us", "step": "2 ms", "ops": {"norm": {"kernels": 2, "moved": 1.2, "flop": 10.0, "start": "1 us",
        "walk": "1 us"}},
}  # fmt: skip
PLAIN: Final = {**FRAMEWORK, "attention": "plain", "scores": 1.5, "repeated": "50 %"}
TRIED: Final[dict[str, tuple[Any, ...]]] = {
    "model cnn.layers.conv.groups": (1,),
    "train.device": (["node0.gpu0"], ["node0.gpu*"]), "train.framework": ("transformers",), "train.model": ("gpt2",),
        "train.gpus": (4,), "train.failures": ("meta-opt",), "failures.spares.nodes": (3,), "failures.restart.load": ("60 s",),
    "failures.spread.mtbf": (["20 %", "300 %"],), "failures.spread.restart": (["20 %", "300 %"],),
    "train.checkpoint.memory.every": ("auto",),
    "train.parallel.order": (["dp", "tp", "cp", "ep", "pp"],), "train.dtype": ("fp16", "fp8"),
        "train.synchronise.server": (["node0.gpu0"],),
    "train.sharding": ("zero-3",), "train.synchronise.algorithm": ("ps-cpu",
        "double-tree"),
    "model transformer.qk_norm": ("whole",), "model transformer.bias": (False,), "model transformer.runs": ([{"layers": 1}],),
    "model cnn.input": ([3, 128, 128],), "model cnn.layers.conv.kernel": (5,), "model cnn.layers.conv.padding": (2, 0),
}  # fmt: skip


def _example(name: str, workload: dict[str, Any], many: int = 8, **options: Any) -> Example:
    return Example(name, gpus(many), workload, tried=TRIED, **options)


def stored(many: int) -> dict[str, Any]:
    """The same with a file system in each node."""
    with_disks = gpus(many)
    node = with_disks["parts"]["node"]
    disk = {"kind": "filesystem", "bandwidth": "10 GB/s", "requests": "100 1/s", "request": "64 MiB", "latency": "1 ms"}
    slow = {"kind": "filesystem", "bandwidth": "1 GB/s", "stream": "50 MB/s", "latency": "1 ms"}
    node["parts"] = {**node["parts"], "disk": disk, "slow": slow}
    node["links"] = [*node["links"], *(between("cpu", name, "pcie", gen=4, lanes=4) for name in ("disk", "slow"))]
    return with_disks


KEPT: Final[dict[str, Any]] = {"every": "auto", "bytes": "10 GB", "bandwidth": "2 GB/s", "mode": "sync", "snapshot": "100 ms"}
RATES: Final[dict[str, Any]] = {
    "hwsim": "failures/1", "name": "ours", "source": "measured", "ref": "a log", "date": "2026-10", "notes": "of this year",
    "parts": {
        "gpu": {"failures": 30, "among": 8, "during": "2 day"},
        "host": {"of": "node", "mtbf": "10 h", "replace": True},
    },
    "restart": {"detect": "10 s", "replace": "20 s", "start": "30 s", "load": "5 s"},
    "spares": {"nodes": "auto", "percentile": "99 %", "repair": "1 h"},
    "spread": {"mtbf": ["50 %", "200 %"], "restart": ["60 %", "150 %"]},
    "shape": 0.8, "runs": 20, "seed": 3,
}  # fmt: skip
SMALL: Final = {"kind": "mlp", "units": [784, 2560, 10]}
NET: Final[dict[str, Any]] = {"model": SMALL, "device": ["node0.gpu0..2"], "global_batch": 48, "steps": 2}
EXAMPLES: Final = (
    _example(
        "training in stages",
        train(
            **TRAIN,
            parallel={"tp": 2, "pp": 2, "dp": 2, "order": ["tp", "pp", "dp"]},
            schedule="interleaved",
            chunks=2,
            optimizer="adam",
            recompute="selective",
            sharding="zero-1",
            shards=2,
            sequence=512,
            sequence_parallel=True,
            framework="megatron",
            dtype="bf16",
            gpus=8,
            tokens=1e9,
            detail="layer",
        ),
    ),
    _example(
        "training that fails",
        train(
            **TRAIN,
            tokens=1e10,
            checkpoint=KEPT,
            failures={**RATES, "shape": 1.0},  # as closed forms have it
        ),
    ),
    _example(
        "training that fails, with copies in memory",
        train(
            **TRAIN,
            tokens=1e10,
            checkpoint={**KEPT, "memory": {"survives": "80 %", "write": "50 ms", "load": "1 s", "every": "100 s"}},
            failures=RATES,
        ),
    ),
    Example(
        "training with checkpoints",
        stored(8),
        train(
            **{**TRAIN, "steps": 3},
            tokens=1e10,
            parallel={"tp": 2, "dp": 4},
            checkpoint={
                "every": 2,
                "bytes": "auto",
                "to": "disk",
                "mode": "sync",
                "sharded": True,
                "request": "1 MB",
                "depth": 4,
            },
        ),
        tried={**TRIED, "train.checkpoint.to": ("slow",), "train.checkpoint.mode": ("async",), "train.checkpoint.every": (3,)},
    ),
    Example(
        "training with a loader",
        stored(8),
        train(
            **TRAIN,
            loader={
                "each": ["node0", "node1"],
                "ahead": 1,
                "dataset": {"samples": 1000, "bytes": "20 MB", "shuffle": True},
                "cache": {"device": "node0.cpu", "bytes": "8 GB"},
                "epoch": 2,
                "stages": [
                    {"name": "read", "ahead": 2, "read": {"from": "disk"}},
                    {"at_once": 2, "handoff": "5 ms", "do": [{"busy": {"device": "cpu", "time": "60 ms"}}]},
                ],
            },
        ),
        tried={
            **TRIED,
            "train.loader.each": (["node0.gpu*", "node1.gpu*"],),
            "train.loader.cache.device": ("node1.cpu",),
            "train.loader.stages": ([{"busy": {"device": "cpu", "time": "60 ms"}}],),
            "stage.name": ("other",),
        },
    ),
    Example(
        "training with a checkpoint at once",
        stored(8),
        train(**TRAIN, checkpoint={"every": 1, "bytes": "2 GB", "to": "slow", "depth": 4}),
        tried={"train.checkpoint.to": ("disk",)},
    ),
    _example(
        "training with checkpoints that take a time",
        train(**TRAIN, tokens=1e10, checkpoint={"every": "30 s", "write": "3 s"}, failures="meta-llama-3"),
    ),
    _example("training of sharded copies", train(**TRAIN, sharding="zero-3", shards=4, epochs=2.0, samples=1e5)),
    _example("training in long sequences", train(**TRAIN, gpus=8, parallel={"tp": 2, "pp": 1, "cp": 2, "dp": "rest"})),
    _example("training in order", train(**TRAIN, parallel={"pp": 2, "dp": "rest"}, schedule="gpipe"), many=4),
    _example("training of experts", train(**{**TRAIN, "model": EXPERTS}, parallel={"ep": 4, "dp": 8}, imbalance=1.5, buckets=2)),
    _example("training of kinds of layers", train(**{**TRAIN, "model": KINDS}, parallel={"pp": 2, "ep": 2, "dp": 4})),
    _example("training of latent attention", train(**{**TRAIN, "model": LATENT})),
    _example("training of images", train(**{**TRAIN, "model": PATCHES})),
    _example(
        "uneven stages", train(**{**TRAIN, "model": {**TRANSFORMER, "layers": 6}}, parallel={"pp": 4, "dp": 2}, uneven=True)
    ),
    _example("training of a network", train(model=CNN, device=["node0.gpu0"], global_batch=16, steps=1, microbatch=8), many=4),
    _example(
        "training of copies",
        train(
            **NET,
            parallel={"dp": "rest"},
            microbatch=4,
            threads="one",
            synchronise={"by": "all-reduce", "overlap": True, "bucket": "100 kB", "algorithm": "ring"},
            optimizer="adam",
            epochs=2.0,
            samples=1e5,
        ),
        many=4,
    ),
    _example("training by servers", train(**NET, synchronise={"by": "parameter-server", "server": ["node0.cpu"]}), many=4),
    Example(
        "framework", gpus(8), train(**TRAIN, parallel={"tp": 2, "pp": 2, "dp": 2}, sequence_parallel=False), framework=FRAMEWORK
    ),
    Example("framework of fp8", gpus(8), train(**TRAIN, dtype="fp8", sharding="zero-3"), framework=FRAMEWORK),
    *(
        Example(
            f"framework of experts in {dtype}",
            gpus(8),
            train(**{**TRAIN, "model": EXPERTS}, dtype=dtype, parallel={"ep": 4, "dp": 8}),
            framework=FRAMEWORK,
        )
        for dtype in ("bf16", "fp8", "fp4")
    ),
    Example(
        "framework without flash",
        gpus(8),
        train(**TRAIN, parallel={"tp": 2, "pp": 2, "dp": 2}, recompute="selective"),
        framework=PLAIN,
    ),
    Example(
        "framework with kernels of attention",
        gpus(
            8,
            attention={"prefill": {"flash": {"efficiency": "60 %"}, "tensorrt": {"efficiency": "30 %"}}},
            matmul={"bf16": TILES, "bf16-vllm": {**TILES, "prologue": 300}},
        ),
        train(**TRAIN, parallel={"tp": 2, "dp": 4}, recompute="full"),
        framework={**FRAMEWORK, "software": "vllm"},
        tried={"framework.kernels": ("tensorrt",)},
    ),
    _example(
        "training of a perceptron",
        train(
            model={"kind": "mlp", "units": [784, 256, 10], "activation": "relu", "bias": True, "dropout": True},
            device=["node0.gpu*"],
            global_batch=64,
        ),
    ),
)
