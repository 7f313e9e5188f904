"""Clients at a constant rate: vLLM on H100 with the whole profile of its clients, and the experiments of the same names.

Prompts repeat whole: as many as there are groups and users serve all requests of a run. Times of a token are computed from
whole answers: the file's own count every one twice, and its lengths are not those that were generated.

`reasoning` is overloaded: its line grows all the time. It is scored apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from published.parts import table
from published.serving_rows import (
    Line,
    Served,
    Shape,
    devices,
    formats,
    kind_of,
    machine_of,
    model_of,
    parallel,
    read,
    whole,
)

LONGEST: Final = 120.0  # seconds of a run that are simulated: it is in a steady state after a few
OVERLOADED: Final = "its line grows all the time"


def rows(data: Path) -> list[Served]:
    """The stages of the profiles."""
    found = (_row(each) for each in table(read(data, "blis_profiles.csv")))
    return [each for each in found if each is not None]


def _row(row: Mapping[str, str]) -> Served | None:
    model, machine = model_of(row["model"]), machine_of(row["hardware"])
    if model is None or machine is None:
        return None
    tp, rate, asked = whole(row["tp"], 1), float(row["rate_per_s"]), whole(row["output_len_asked"], 1)
    latency, first = float(row["e2e_s_mean"]), float(row["ttft_s_mean"])
    prompts = whole(row["system_prompts"], 1) * whole(row["users_per_prompt"], 1)
    return Served(
        id=f"{row['experiment'][16:]}, {rate:g}/s",
        group=f"vllm, {row['hw']}, {model}",
        kind=kind_of(model),
        machine=machine,
        infer={
            "device": devices(machine, tp),
            "framework": "vllm",
            **formats(model, row["model"], ""),
            "parallel": parallel(Shape(tp), kind_of(model)),
            "server": {"budget": whole(row["max_num_batched_tokens"], 2048), "sequences": whole(row["max_num_seqs"], 256)},
        },
        trace=constant(rate, min(LONGEST, float(row["duration_s"])), float(row["prompt_tokens_mean"]), asked, prompts),
        measured={"latency": latency, "first_token": first, "each_token": (latency - first) / (asked - 1)},
        apart=OVERLOADED if "reasoning" in row["experiment"] else "",
    )


def constant(rate: float, seconds: float, prompt: float, output: int, prompts: int) -> tuple[Line, ...]:
    """Requests one after another, whose prompts take turns; those of the first turn are in the cache from before."""
    return tuple(Line(at / rate, round(prompt), output, at % prompts) for at in range(int(rate * seconds)))
