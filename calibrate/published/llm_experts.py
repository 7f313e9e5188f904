"""Training steps of MoE models published by NVIDIA; none was used for fitting.

The rows are from several versions of one framework, which exchange tokens and multiply experts differently from the modelled
version, so predictions are too long as often as too short. **Source**: `validation/2026/llm_train.csv`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import hwsim
from published.llm_rows import plain
from published.parts import table
from published.residual import Residual, of_miss
from published.score import Miss

MODELS: Final = {"DeepSeekV3": "deepseek-v3", "Qwen3_30B_a3B": "qwen3-30b-a3b", "GPT_OSS_20B": "gpt-oss-20b"}
RACK: Final = 64  # GPUs of a GB200 or GB300 rack used by a run


def residuals(data: Path) -> Iterator[Residual]:
    """Return every row with a prediction from constants of other sources."""
    for said in table(data / "validation" / "2026" / "llm_train.csv"):
        if said["model"] in MODELS:
            seconds, measured = _seconds(said)
            source = said["source"].partition(":")[0]
            yield of_miss(
                Miss(
                    f"{said['id']}: {said['model']}, {said['gpus']} GPUs, {said['precision']}",
                    seconds,
                    measured,
                    f"{source}, {said['software'].partition(' ')[0]}, {said['hardware']}",
                ),
                "experts",
                "step",
                "source",
                unit=f"{source}, {said['software'].partition(' ')[0]}",
                work=f"{said['model']}, {said['precision']}, {said['config']}",
                device=said["hardware"],
            )


def _seconds(said: Mapping[str, str]) -> tuple[float, float]:
    """Return the time of a step, (predicted, measured), in seconds."""
    told = {key: int(value) for key, value in re.findall(r"(\w+) (\d+)", said["config"])}
    gpus, gpu = int(said["gpus"]), said["hardware"].lower()
    keys: dict[str, Any] = {key: told[key] for key in ("tp", "pp", "ep", "cp")}
    keys |= {"schedule": "interleaved", "chunks": told["vp"]} if told["vp"] > 1 else {}
    keys |= {"sharding": "fsdp"} if told["fsdp"] else {}
    machine = f"dgx-{gpu.removeprefix('g')}" if gpu != "gb300" else "dgx-b300"
    if gpu.startswith("gb") and gpus > RACK:
        machine = plain(gpu, RACK, "gen: 5, links: 18", RACK, "50 GB/s").replace("count: 2", f"count: {gpus // RACK}")
    else:
        keys |= {"nodes": gpus // 8, "set": {"machine.parts.gpu.use": gpu} if gpu.startswith("gb") else None}
    found = hwsim.estimate(
        machine,
        MODELS[said["model"]],
        microbatch=told["mbs"],
        global_batch=told["gbs"],
        sequence=told["seq"],
        dtype="bf16" if said["precision"] == "BF16" else "fp8",
        uneven=True,
        **keys,
    )
    return found.seconds, told["gbs"] * told["seq"] / float(said["value"]) / gpus
