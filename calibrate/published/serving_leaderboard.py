"""Saturated vLLM 0.11.1 of the ML.ENERGY leaderboard: batches of 8 to 512 sequences on one to eight H100 and B200.

All requests are sent at once, more than the batch holds, and sampled as the checkpoint's generation settings say. Time per token
is batch / throughput, as both are measured in the steady state. The lengths of prompts are not published: those of chats and of
questions are guesses that fit medians and means of the time between tokens alike. The spread of answers is a guess, too.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from published.serving_rows import Served, Shape, subject, whole

TABLE: Final = "research/2026/power.csv"
GPUS: Final = {"b200": "b200_sxm", "h100-sxm": "h100_sxm"}
BATCHES: Final = range(8, 513)
# Mean output tokens by model: stated for runs of some batches, guessed for the others from the same task (guessed: all below "").
OUTPUTS: Final = {"Llama-3.1-8B": 395, "Llama-3.1-70B": 352, "Llama-3.1-405B": 360, "Qwen3-32B": 630, "Qwen3-8B": 600,
                  "Qwen3-235B": 600, "DeepSeek-V3.1": 500, "DeepSeek-R1": 6000, "gpt-oss": 4000}  # fmt: skip
CHAT: Final = {"lognormal": {"median": 195, "sigma": 1.2}}  # mean 400
QUESTION: Final = {"lognormal": {"median": 220, "sigma": 0.5}}  # mean 250
MODELS: Final = {"DeepSeek-V3.1": "deepseek-v3", "DeepSeek-R1-0528": "deepseek-r1",
                 "Qwen3-235B-A22B-Instruct-2507-FP8": "Qwen/Qwen3-235B-A22B-FP8"}  # fmt: skip
SAID: Final = re.compile(r"(\d+) GPUs, (\S+); mean batch (\d+); (\d+) tokens/s out")
KEY: Final = re.compile(r"power under serving: (\S+) batch (\d+)")


def rows(data: Path) -> list[Served]:
    """Return a run for each batch size whose model is in the library; no rows without the table."""
    if not (data / TABLE).exists():
        return []
    with (data / TABLE).open(encoding="utf-8") as file:
        found = [_run(row) for row in csv.DictReader(file)]
    return [served for served in found if served is not None]


def _run(row: Mapping[str, str]) -> Served | None:
    key, said = KEY.match(row["key"]), SAID.match(row["note"])
    if key is None or said is None or whole(key[2], 0) not in BATCHES:
        return None
    name, batch, gpus = key[1], whole(key[2], 1), whole(said[1], 1)
    about = subject(MODELS.get(name, name), GPUS[row["part"]])
    output = next((tokens for model, tokens in OUTPUTS.items() if name.startswith(model)), None)
    if about is None or output is None:
        return None
    fp8 = "fp8" if "FP8" in name or "DeepSeek" in name else ""
    chat = said[2] == "lm-arena-chat"
    sigma = 0.8 if chat else 0.6
    load: dict[str, Any] = {
        "requests": max(60, 3 * batch),
        "prompt": CHAT if chat else QUESTION,
        "output": {"lognormal": {"median": output * math.exp(-(sigma**2) / 2), "sigma": sigma}},
        "batch": batch,
        "server": {"budget": 8192},
        "seed": 1,
    }
    return Served(
        id=f"{name}, {gpus} {row['part']}, {said[2]}, batch {batch}",
        group=f"vllm-0.12, {row['part']}, {about.model}",
        kind=about.kind,
        machine=about.machine,
        infer=about.infer("vllm-0.12", Shape(gpus), fp8) | load,
        measured={"each_token": whole(said[3], 1) / float(said[4])},
    )
