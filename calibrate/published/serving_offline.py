"""Offline throughput, with all requests at the start: TensorRT-LLM's table and MLPerf Inference offline.

The table's rows have as many requests as trtllm-bench uses for their lengths. Samples of MLPerf's data sets are drawn in a
fixed random order; a system is as many equal replicas as fit into it.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hwsim.devices import Gpu
from hwsim.models.library import load_transformer
from published.parts import declared, table
from published.serving_rows import Line, Served, Shape, devices, loaded, read, subject, whole

REQUESTS: Final[Mapping[tuple[int, int], int]] = {
    (prompt, output): requests for prompt, output, requests in declared("serving_offline")["requests"]
}
SAMPLES: Final = 6000  # of a replica
LENGTHS: Final[Mapping[str, str]] = declared("serving_offline")["lengths"]
CUT: Final[Mapping[str, int]] = {"llama3.1-8b": 128}  # output tokens, from the rules, because the data set states none
# The KV cache of 8-bit and 4-bit checkpoints has 8 bits, as written by NVIDIA's ModelOpt; that of gpt-oss does so on
# Blackwell, by the command. trtllm-bench chunks prompts; the commands state padded graphs and 95 % of the memory.
# **Source**: NVIDIA/TensorRT-LLM@03e27c7d5ff0: docs/source/developer-guide/perf-overview.md, the commands of the table.
NARROW: Final[Mapping[str, Any]] = {"kv": "fp8"}
BENCH: Final[Mapping[str, Any]] = {"prefixes": False, "chunked": True, "memory": {"part": "95 %"}}
SIZES: Final = [1, 2, 4, 8, 16, 32, 64, 128, 256, 384, 512, 1024, 2048, 4096, 8192]
GRAPHS: Final[Mapping[str, Any]] = {"sizes": SIZES, "largest": SIZES[-1]}
GATHER: Final = 60  # timeout_iters, for DeepSeek only
# A latent vector is shared by all heads, so each GPU of a tensor-parallel group would store all of it. For throughput,
# attention is data-parallel and experts are distributed over all GPUs.
# **Source**: NVIDIA/TensorRT-LLM: docs/source/blogs/Best_perf_practice_on_DeepSeek-R1_in_TensorRT-LLM.md, "max-throughput".
LATENT: Final = "deepseek"
HOPPER: Final = frozenset({"H100", "H200"})
STAGED: Final = "pipeline stages work on separate batches, but are simulated with one batch"
FULL: Final = 0.6  # maximum share of a replica's memory for weights
BITS: Final[Mapping[str, float]] = {"fp8": 1.0, "fp4": 0.5625, "mxfp4": 0.53}


def overview(data: Path) -> list[Served]:
    """Return TensorRT-LLM's own table."""
    found = (_row(row) for row in table(read(data, "trtllm_overview.csv")))
    return [served for served in found if served is not None]


def _row(row: Mapping[str, str]) -> Served | None:
    about = subject(row["model"], row["gpu"])
    if about is None:
        return None
    model, shape = about.model, _plan(row["parallel"])
    prompt, output = whole(row["isl"], 1), whole(row["osl"], 1)
    infer: dict[str, Any] = {
        **about.infer("tensorrt-llm", shape, row["precision"].lower()),
        **({} if model.startswith("gpt-oss") and row["gpu"] in HOPPER else NARROW),
        "requests": REQUESTS.get((prompt, output), 1500),
        "prompt": prompt,
        "output": output,
        "server": {**BENCH, "graphs": GRAPHS, **({"gather": GATHER} if model.startswith("deepseek") else {})},
    }
    return Served(
        id=f"{row['model']} {row['gpu']} {row['parallel']} {row['precision']} {prompt}/{output}",
        group=f"trtllm, {row['gpu']}, {model}",
        kind=about.kind,
        machine=about.machine,
        infer=infer,
        measured={"tokens_per_s": float(row["output_tokens_per_s_per_gpu"]) * shape.gpus},
        apart=STAGED if shape.pp > 1 else "",
    )


def _plan(text: str) -> Shape:
    """Return the plan in the table's notation.

    >>> _plan("DEP4"), _plan("TP1PP2")
    (Shape(tp=1, attention=4, expert_tp=1, ep=4, pp=1), Shape(tp=1, attention=1, expert_tp=1, ep=1, pp=2))
    """
    sizes = {name: int(size) for name, size in re.findall(r"([A-Z]+)(\d+)", text)}
    if "DEP" in sizes:
        return Shape(1, sizes["DEP"], 1, sizes["DEP"])
    return Shape(sizes.get("TP", 1), 1, sizes.get("TP", 1), 1, sizes.get("PP", 1))


def mlperf(data: Path) -> list[Served]:
    """Return MLPerf Inference 5.1, offline, language models; -99 and -99.9 count as one run if both exist."""
    found = (
        _system(row, data)
        for row in table(read(data, "mlperf_v51.csv"))
        if row["scenario"] == "Offline" and row["base"] in LENGTHS and not row["model"].endswith("99.9")
    )
    return [served for served in found if served is not None]


def _system(row: Mapping[str, str], data: Path) -> Served | None:
    about = subject(row["base"], row["accelerator"])
    if about is None or "AMD" in row["accelerator"] or row["weights"] not in BITS:
        return None
    tp = group_of(about.model, about.machine, row["weights"])
    gpus = whole(row["accelerators_per_node"], 1) * whole(row["nodes"], 1)
    software = "vllm" if "vLLM" in row["software"] else "tensorrt-llm"
    shape = Shape(tp, 1, 1, tp) if about.kind == "MoE" else Shape(tp)
    if about.model.startswith(LATENT):
        shape = Shape(1, tp, 1, tp)
    return Served(
        id=f"{row['base']} {row['accelerator']} x{gpus} {row['weights']} {row['submitter']}",
        group=f"{software}, {row['accelerator']}, {about.model}",
        kind=about.kind,
        machine=about.machine,
        infer={
            **about.infer(software, shape, row["weights"]),
            **NARROW,
            "server": BENCH if software == "tensorrt-llm" else {},
        },
        trace=samples(data, row["base"]),
        copies=max(1, gpus // tp),
        measured={"tokens_per_s": float(row["result"])},
    )


def group_of(model: str, machine: tuple[str, str], weights: str) -> int:
    """Return the smallest tensor-parallel group whose memory fits the weights and a cache."""
    gpu: Any = loaded(machine).device(devices(machine, 1)[0]).model
    assert isinstance(gpu, Gpu)
    size = load_transformer(model).parameters * BITS[weights]
    return next(tp for tp in (1, 2, 4, 8, 16) if tp == 16 or size <= FULL * tp * (gpu.memory.size or 0))


@functools.cache
def samples(data: Path, base: str) -> tuple[Line, ...]:
    """Return samples of a data set in a fixed random order."""
    said = table(read(data, f"lengths_{LENGTHS[base]}.csv"))
    lines = [
        Line(0.0, max(1, whole(row["input_length"], 1)), CUT.get(base) or max(1, whole(row["output_length"], 1))) for row in said
    ]
    random.Random(1).shuffle(lines)
    return tuple(lines[:SAMPLES])
