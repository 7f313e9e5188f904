"""Every request of vLLM 0.19 on RTX PRO 6000: its arrival, its tokens, its times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

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


def rows(data: Path) -> list[Served]:
    """A run of each model and GPU."""
    runs: dict[tuple[str, ...], list[Mapping[str, str]]] = defaultdict(list)
    for each in table(read(data, "llmservingsim_requests.csv")):
        runs[each["hardware"], each["model"], each["tp"], each["dp"], each["source"]].append(each)
    found = (_run(sorted(each, key=lambda row: float(row["arrival_s"]))) for each in runs.values())
    return [each for each in found if each is not None]


def _run(said: Sequence[Mapping[str, str]]) -> Served | None:
    first = said[0]
    model, machine = model_of(first["model"]), machine_of(first["hardware"])
    if model is None or machine is None:
        return None
    tp, dp, together = whole(first["tp"], 1), whole(first["dp"], 1), first["ep"] == "True"
    shape = Shape(tp, dp if together else 1, ep=tp * dp if together else 1)
    server: dict[str, Any] = {
        "sequences": whole(first["max_num_seqs"], 256),
        "budget": whole(first["max_num_batched_tokens"], 2048),
    }
    return Served(
        id=f"{first['model']}, {first['hardware']}, tp {tp}, dp {dp}",
        group=f"vllm, {first['hardware']}, {model}",
        kind=kind_of(model),
        machine=machine,
        infer={
            "device": devices(machine, tp * dp),
            "framework": "vllm",
            **formats(model, first["model"], "fp8" if "fp8" in first["dtype"] else ""),
            "parallel": parallel(shape, kind_of(model)) | ({} if together else {"dp": dp}),
            "server": server,
        },
        trace=tuple(
            Line(float(row["arrival_s"]), whole(row["prompt_tokens"], 1), whole(row["output_tokens"], 1)) for row in said
        ),
        measured={
            name: fmean(float(row[column]) for row in said)
            for name, column in (("latency", "e2e_s"), ("first_token", "ttft_s"), ("each_token", "tpot_s"))
        },
    )
