"""Prefill and decode on GPUs of their own.

Rows that are scored are asked as `split:`, with all prompt and answer workers that the row states, where the machine has as many
GPUs; else the times of a token are those of an answer worker with its part of the clients, whose prompts come with their keys and
values. What scripts and recipes of a row say is set: the cache's format, and attention of groups for prompts, which the columns
lost.

Only runs are scored of which it is known that they do not guess several tokens: models whose checkpoints have no layers for it,
in vLLM, and dense ones. Every other row may, and no column says so.

**Source**: NVIDIA/srt-slurm@36057dc04789: recipes/vllm/kimi-k2.5; SemiAnalysisAI/InferenceX@843c6254ff69: its configurations of
kimik2.5-fp4-gb200-dynamo-vllm.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from published.parts import table
from published.serving_rows import FRAMEWORKS, Served, Shape, Subject, devices, parallel, read, shape_of, subject, whole

UNSAID: Final = "whether it speculates is not stated"
KNOWN: Final = ("kimi-k2",)  # no layers for multi-token prediction
ALONE: Final = 4  # requests for each client, of a worker that is asked alone
TIMES: Final = 10  # and of all workers
SHORTEST: Final = 0.8
ACROSS: Final = 8  # GPUs that attention of one group is split over at most: more have groups of one
# What the recipes say of vLLM, and what a request takes besides: a router, a worker that asks another, and a cache that is handed
# over by NIXL: one constant, fitted to the first tokens of 14 rows. 198.7 GB are what the driver of a GB200 shows.
RECIPE: Final[Mapping[str, Any]] = {"prefixes": False, "budget": 16384, "sequences": 1024, "host": {"api": "170 ms"}}


def rows(data: Path) -> list[Served]:
    """All rows whose model and GPUs the library has."""
    found = (_row(each, at) for at, each in enumerate(table(read(data, "e2e_disagg.csv"))) if each["tpot_ms"])
    return [each for each in found if each is not None]


def _row(row: Mapping[str, str], at: int) -> Served | None:
    about = subject(row["model"], row["system"])
    if about is None or row["backend"] not in FRAMEWORKS:
        return None
    decode, prefill = _plan(row, "decode_", about), _plan(row, "prefill_", about)
    workers, readers = whole(row["decode_num_workers"], 1), whole(row["prefill_num_workers"], 1)
    if not about.has(decode.gpus):
        return None
    silent = about.kind == "dense" or (row["backend"] == "vllm" and about.model in KNOWN)
    prompt, output, clients = whole(row["isl"], 1), whole(row["osl"], 1), whole(row["concurrency"], 1)
    linear, experts = row["gemm_quant_mode"] or row["precision"], row["moe_quant_mode"] or row["precision"]
    infer = about.infer(FRAMEWORKS[row["backend"]], decode, linear, experts) | {
        "kv": "fp8",
        "output": {"uniform": [max(1, int(SHORTEST * output)), output]},
    }
    measured = {"each_token": float(row["tpot_ms"]) / 1e3}
    gpus = readers * prefill.gpus + workers * decode.gpus
    if silent and about.has(gpus):
        del infer["device"], infer["parallel"]
        all_gpus = devices(about.machine, gpus)
        first, rest = all_gpus[: readers * prefill.gpus], all_gpus[readers * prefill.gpus :]
        infer |= {
            "split": {
                "prefill": {"device": first, "parallel": parallel(prefill, about.kind) | {"dp": readers}},
                "decode": {"device": rest, "parallel": parallel(decode, about.kind) | {"dp": workers}},
            },
            "arrivals": {"clients": clients},
            "requests": TIMES * clients,
            "prompt": {"uniform": [max(1, int(SHORTEST * prompt)), prompt]},
            "server": RECIPE if row["backend"] == "vllm" else {"prefixes": False},
        }
        measured |= {"first_token": float(row["ttft_ms"]) / 1e3}
        copies = 1
    else:
        copies, part = workers, max(1, round(clients / workers))
        mean = max(1, round((1 + SHORTEST) / 2 * prompt))
        infer |= {"arrivals": {"clients": part}, "requests": ALONE * part, "prompt": mean, "shared": {"distinct": 1}}
    return Served(
        id=f"{row['id']} #{at}",
        group=f"{row['backend']}, {row['system']}, {about.model}, {row['precision']}",
        kind=about.kind,
        machine=about.machine,
        infer=infer,
        copies=copies,
        measured=measured,
        apart="" if silent else UNSAID,
    )


def _plan(row: Mapping[str, str], prefix: str, about: Subject) -> Shape:
    """The plan of a worker; those of vLLM read prompts, and write on more GPUs than a node has, with groups of one."""
    shape = shape_of(row, prefix)
    if about.kind == "MoE" and row["backend"] == "vllm" and (prefix == "prefill_" or shape.tp > ACROSS) and shape.ep == shape.tp:
        return Shape(1, shape.tp, 1, shape.ep)
    return shape
