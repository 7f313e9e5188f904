"""Prefill and decode on GPUs of their own: the times of a token, as of the decoding side alone.

Prompts arrive there with their keys and values: each is in the cache, and the clients are those of all copies together. What a
prompt waits for in front of the other side is a line whose length no column states: first tokens are not compared.

Only runs are scored of which it is known that they do not speculate: models whose checkpoints have no layers for it, in vLLM,
and dense ones. Every other row may, and no column says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from published.parts import table
from published.serving_rows import (
    FRAMEWORKS,
    Served,
    devices,
    formats,
    kind_of,
    loaded,
    machine_of,
    model_of,
    parallel,
    read,
    shape_of,
    whole,
)

UNSAID: Final = "whether it speculates is not stated"
KNOWN: Final = ("kimi-k2",)  # no layers for multi-token prediction
TIMES: Final = 4  # requests for each client
SHORTEST: Final = 0.8


def rows(data: Path) -> list[Served]:
    """All rows whose model and GPUs the library has."""
    found = (_row(each, at) for at, each in enumerate(table(read(data, "e2e_disagg.csv"))) if each["tpot_ms"])
    return [each for each in found if each is not None]


def _row(row: Mapping[str, str], at: int) -> Served | None:
    model, machine = model_of(row["model"]), machine_of(row["system"])
    if model is None or machine is None or row["backend"] not in FRAMEWORKS:
        return None
    kind, shape = kind_of(model), shape_of(row, "decode_")
    workers = whole(row["decode_num_workers"], 1)
    clients = max(1, round(whole(row["concurrency"], 1) / workers))
    if shape.gpus > len(loaded(machine).devices_of("gpu")):
        return None
    prompt, output = whole(row["isl"], 1), whole(row["osl"], 1)
    linear, experts = row["gemm_quant_mode"] or row["precision"], row["moe_quant_mode"] or row["precision"]
    silent = kind == "dense" or (row["backend"] == "vllm" and model in KNOWN)
    return Served(
        id=f"{row['id']} #{at}",
        group=f"{row['backend']}, {row['system']}, {model}, {row['precision']}",
        kind=kind,
        machine=machine,
        infer={
            "device": devices(machine, shape.gpus),
            "framework": FRAMEWORKS[row["backend"]],
            **formats(model, row["model"], linear, experts),
            "kv": "fp8",
            "parallel": parallel(shape, kind),
            "arrivals": {"clients": clients},
            "requests": TIMES * clients,
            "prompt": max(1, round((1 + SHORTEST) / 2 * prompt)),
            "output": {"uniform": [max(1, int(SHORTEST * output)), output]},
            "shared": {"distinct": 1},
        },
        copies=workers,
        measured={"each_token": float(row["tpot_ms"]) / 1e3},
        apart="" if silent else UNSAID,
    )
