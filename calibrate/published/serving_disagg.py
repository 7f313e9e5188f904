"""Disaggregated prefill and decode.

Scored rows are simulated with `split:` and all prefill and decode workers of the row, if the machine has enough GPUs. Otherwise
only TPOT is predicted, from one decode worker with its share of the clients, whose prompts arrive with their KV cache. Scripts
and recipes set the format of the cache, and data-parallel attention in prefill, which the columns omit.

Only runs that cannot use speculative decoding are scored: models in vLLM whose checkpoints have no layers for it, and dense
models. Every other row may use it, and no column states it.

**Source**: NVIDIA/srt-slurm@36057dc04789: recipes/vllm/kimi-k2.5; SemiAnalysisAI/InferenceX@843c6254ff69: its configurations of
kimik2.5-fp4-gb200-dynamo-vllm.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from published.parts import table
from published.serving_rows import (
    FRAMEWORKS,
    Served,
    Shape,
    Subject,
    devices,
    framework_of,
    parallel,
    read,
    shape_of,
    subject,
    whole,
)

UNSAID: Final = "speculative decoding is neither stated nor excluded"
KNOWN: Final = ("kimi-k2",)  # no layers for multi-token prediction
ALONE: Final = 4  # requests per client, for a worker simulated alone
TIMES: Final = 10  # and for all workers
SHORTEST: Final = 0.8
ACROSS: Final = 8  # maximum GPUs of one attention group; larger plans have groups of one GPU
# vLLM's recipes. Prefill workers run without graphs (`enforce-eager`), so the host launches every kernel.
# The additional time of an iteration, 2.6 ms for each of 61 layers, is the only constant here, fitted to the TTFT of 14 rows.
RECIPE: Final[Mapping[str, Any]] = {"prefixes": False, "chunked": False}
EAGER: Final[Mapping[str, Any]] = {"budget": 16384, "graphs": {"sizes": [1], "largest": 1, "eager": "160 ms"}}
PLACES: Final = {8: 512, 16: 256}  # max-num-seqs of decode workers, by number of attention groups
SHORT: Final = 1024  # prompt tokens up to which a worker without groups has as many slots
SIZES: Final = [1, 2, 4, {"from": 8, "to": 256, "by": 8}, {"from": 272, "to": 1024, "by": 16}]  # of graphs
FEW: Final = 16  # its slots for longer prompts


def rows(data: Path) -> list[Served]:
    """Return all rows whose model and GPUs are in the library."""
    found = (_row(row, index) for index, row in enumerate(table(read(data, "e2e_disagg.csv"))) if row["tpot_ms"])
    return [row for row in found if row is not None]


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
    infer = about.infer(framework_of(row["backend"], row["backend_version"], decode, about.kind), decode, linear, experts) | {
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
                "prefill": {"device": first, "parallel": parallel(prefill, about.kind) | {"dp": readers}, **_said(row, EAGER)},
                "decode": {
                    "device": rest,
                    "parallel": parallel(decode, about.kind) | {"dp": workers},
                    **_said(row, _writing(decode, prompt)),
                },
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


def _said(row: Mapping[str, str], server: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a worker's server in its recipe."""
    return {"server": server} if row["backend"] == "vllm" else {}


def _writing(shape: Shape, prompt: int) -> dict[str, Any]:
    """Return the server of a decode worker."""
    places = PLACES.get(shape.attention, SHORT) if shape.attention > 1 or prompt <= SHORT else FEW
    return {"budget": 10240, "sequences": places, "graphs": {"largest": places, "each": 1, "sizes": SIZES, "mixed": False}}


def _plan(row: Mapping[str, str], prefix: str, about: Subject) -> Shape:
    """Return the plan of a worker; a vLLM worker for decode may span more GPUs than a node, with data-parallel attention."""
    shape = shape_of(row, prefix)
    if about.kind == "MoE" and row["backend"] == "vllm" and (prefix == "prefill_" or shape.tp > ACROSS) and shape.ep == shape.tp:
        return Shape(1, shape.tp, 1, shape.ep)
    return shape
