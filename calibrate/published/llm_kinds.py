"""Training steps of 2023 to 2026 as rows of `llm_training`: experts, 8- and 4-bit formats, and small models on one node.

**Source**: `validation/2026/llm_train.csv` (Megatron-Bridge 26.04 and AutoModel) and `vtrain_single_node.csv` (vTrain).

A kind of training is a framework, dense or experts, a format, a GPU generation and a size (`hwsim.models.kernel_errors`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hwsim.models import KernelTimes, ParallelPlan, Transformer, derive_plan, load_framework, load_transformer
from hwsim.models.kernel_errors import step_errors
from published.llm_rows import _A100, Row, plain
from published.parts import table

MODELS: Final = {"DeepSeekV3": "deepseek-v3", "Qwen3_30B_a3B": "qwen3-30b-a3b", "GPT_OSS_20B": "gpt-oss-20b",
                 "LLAMA3_70B": "llama-3-70b"}  # fmt: skip
FORMATS: Final[Mapping[str, Any]] = {"BF16": "bf16", "FP8": "fp8", "MXFP8": "fp8", "NVFP4": "fp4"}
RACK: Final = 64  # GPUs of a GB200 or GB300 rack used by a run
FEWEST: Final = 4  # minimum rows of a kind that counts as measured
load = functools.cache(load_transformer)


def recent(data: Path) -> Iterator[Row]:
    """Yield the runs of Megatron-Bridge and AutoModel."""
    for said in table(data / "validation" / "2026" / "llm_train.csv"):
        told = {key: int(value) for key, value in re.findall(r"(\w+) (\d+)", said["config"])}
        gpus, gpu = int(said["gpus"]), said["hardware"].lower().replace("h100", "h100-sxm")
        cards, link = ("100 GB/s" if "300" in gpu else "50 GB/s"), f"gen: {4 if 'h100' in gpu else 5}, links: 18"
        local, model = RACK if gpu.startswith("gb") else 8, load(MODELS[said["model"]])
        keys: dict[str, Any] = {key: told[key] for key in ("tp", "pp", "ep", "cp")}
        keys |= {"schedule": "interleaved", "chunks": told["vp"]} if told["vp"] > 1 else {}
        replicas = gpus // (told["tp"] * told["pp"] * told["cp"])
        keys |= {"sharding": "fsdp", "shards": min(told["fsdp"], replicas)} if told["fsdp"] else {"sharding": "zero-1"}
        plan = ParallelPlan(
            **keys,
            microbatch=told["mbs"],
            global_batch=told["gbs"],
            sequence=told["seq"],
            sequence_parallel=told["tp"] > 1,
            uneven=True,
            dtype=FORMATS[said["precision"]],
        )
        software = said["software"].partition(" ")[0].lower()
        source = said["source"].partition(":")[0]
        yield Row(
            id=said["id"],
            source=f"{software}, {said['model'] if told['ep'] > 1 or 'OSS' in said['model'] else said['hardware']}",
            group=f"{source}, {said['hardware']}, {said['model']}",
            software=software,
            model=model,
            plan=plan,
            machine=plain(gpu, local, link, local, cards),
            gpus=gpus,
            seconds=told["gbs"] * told["seq"] / float(said["value"]) / gpus,
            said=f"{said['model']}, {said['precision']}",
        )


def small(data: Path) -> list[Row]:
    """Return vTrain's runs of small models, without the quarter to which `issue` of Megatron-DeepSpeed is fitted."""
    machine, found = plain("a100-sxm-80gb", 8, _A100, 8, "12.5 GB/s"), []
    for index, said in enumerate(table(data / "validation" / "2026" / "vtrain_single_node.csv")):
        if index % 4 == 0:
            continue
        told = {key: int(value) for key, value in re.findall(r"(\w+) (\d+)", said["config"])}
        hidden, layers, heads = (int(number) for number in re.findall(r"\d+", said["model"]))
        model = Transformer(layers=layers, hidden=hidden, heads=heads, vocab=51200, sequence=told["seq"], dropout=True)
        keys: dict[str, Any] = {key: told[key] for key in ("tp", "pp", "dp")}
        plan = ParallelPlan(
            **keys,
            microbatch=told["mbs"],
            global_batch=told["gbs"],
            sequence=told["seq"],
            recompute="full",
            dtype="fp16",
            sharding="zero-1" if told["dp"] > 1 else "zero-0",
        )
        group = f"VIA-Research/vTrain, tp {told['tp']} pp {told['pp']}"
        seconds, gpus = float(said["value"]), int(said["gpus"])
        found.append(
            Row(said["id"], said["model"], group, "megatron-deepspeed", model, plan, machine, gpus, seconds, said["model"])
        )
    return found


def errors_of(row: Row) -> tuple[str, tuple[str, ...]]:
    """Return the error regime and the kind of a row."""
    framework = load_framework(row.software)
    return step_errors(derive_plan(row.model, row.plan, row.gpus), framework, KernelTimes(row.cluster.gpu, framework))


def measured(found: Sequence[Row]) -> list[str]:
    """Return the measured kinds. Kinds of several frameworks have "any" framework: their errors include held-out frameworks."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for row in found:
        framework, *kind = errors_of(row)[1]
        rows.setdefault(tuple(kind), []).append(framework)
    return sorted(
        " ".join(("any" if len(set(frameworks)) > 1 else frameworks[0], *kind))
        for kind, frameworks in rows.items()
        if len(frameworks) >= FEWEST
    )
