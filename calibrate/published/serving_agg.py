"""Closed loops of clients: TensorRT-LLM, vLLM and SGLang, dense and with experts, on H100 to GB200.

Most rows are of InferenceX: prompts and answers of 0.8 to 1.0 of the nominal length at random, ten times as many requests as
clients, all at once first, no prefix cached; what its scripts say otherwise is in `STATED`. Rows without a number of
data-parallel attention groups are of NVIDIA's own runs, with equal lengths.

A configuration that occurs more than once, times of a token more than 1.4 apart, has speculative decoding in one of its runs,
and no column says in which: both are scored apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from published.parts import table
from published.serving_rows import (
    FRAMEWORKS,
    Kind,
    Served,
    Shape,
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

TWINS: Final = 1.4
PROMPTS: Final = 100  # that differ, in NVIDIA's own runs of vLLM with dense models
RUN: Final = 1000  # requests of those
SPREAD: Final = 0.1  # of the lengths of answers there
TIMES: Final = 10  # requests for each client
SHORTEST: Final = 0.8  # of the nominal length
WAITING: Final = 0.5  # of the time in which an answer is written, that a first token takes at most without a limit of its own
LIMITED: Final = "most of a request's time is spent in a line, before a limit that is not stated"
SPECULATING: Final = "speculative decoding in some of its twins, in which is not stated"


def rows(data: Path) -> list[Served]:
    """All rows whose model and GPUs the library has; what no row states is left to the framework's file."""
    said = table(read(data, "e2e_agg.csv"))
    unclear = speculating(said)
    found = (_row(each, at, unclear=_run(each) in unclear) for at, each in enumerate(said) if each["tpot_ms"])
    return [each for each in found if each is not None]


def speculating(said: Sequence[Mapping[str, str]]) -> set[tuple[Any, ...]]:
    """Configurations that occur more than once, and with quite other times."""
    times: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for each in said:
        if each["tpot_ms"]:
            times[_run(each)].append(float(each["tpot_ms"]))
    return {run for run, found in times.items() if max(found) > TWINS * min(found)}


def _run(row: Mapping[str, str]) -> tuple[Any, ...]:
    """What is equal in twins."""
    shape = shape_of(row)
    said = tuple(row[name] for name in ("system", "backend", "precision", "isl", "osl", "concurrency"))
    return model_of(row["model"]) or row["model"], *said, shape.gpus


def _row(row: Mapping[str, str], at: int, *, unclear: bool) -> Served | None:
    model, machine = model_of(row["model"]), machine_of(row["system"])
    if model is None or machine is None or row["backend"] not in FRAMEWORKS:
        return None
    kind = kind_of(model)
    shape = shape_of(row) if kind == "MoE" else Shape(whole(row["tp_size"], 1), pp=whole(row["pp_size"], 1))
    if shape.gpus > len(loaded(machine).devices_of("gpu")):
        return None
    clients, batch = whole(row["concurrency"], 0) or whole(row["batch_size"], 1), whole(row["batch_size"], 1)
    copies = max(1, clients // max(1, batch * whole(row["attention_dp_size"], 1)))
    infer = {
        "device": devices(machine, shape.gpus),
        "framework": FRAMEWORKS[row["backend"]],
        **formats(model, row["model"], row["gemm_quant_mode"] or row["precision"], row["moe_quant_mode"] or row["precision"]),
        "parallel": parallel(shape, kind),
        **_cache(row),
        **_load(row, max(1, clients // copies), kind),
        "server": server(row, max(1, clients // copies), shape.attention),
    }
    group = f"{row['backend']}, {row['system']}, {model}, {row['precision'] or 'bf16'}"
    return Served(
        id=f"{row['id']} #{at}",
        group=group,
        kind=kind,
        machine=machine,
        infer=infer,
        copies=copies,
        measured={"first_token": float(row["ttft_ms"]) / 1e3, "each_token": float(row["tpot_ms"]) / 1e3},
        apart=SPECULATING if unclear else LIMITED if waits(row) else "",
    )


def _cache(row: Mapping[str, str]) -> dict[str, Any]:
    """Keys and values in eight bits, where the scripts say so."""
    narrow = row["precision"] in ("fp8", "fp4") and not own(row)
    said = row["backend"] == "trtllm" or (row["backend"] == "sglang" and row["system"] in ("b200_sxm", "b300_sxm"))
    return {"kv": "fp8"} if narrow and said else {}


def waits(row: Mapping[str, str]) -> bool:
    """Whether requests stand in a line for long: every place is taken, and how many there are is not said."""
    return float(row["ttft_ms"]) > WAITING * float(row["tpot_ms"]) * whole(row["osl"], 1)


def _load(row: Mapping[str, str], clients: int, kind: Kind) -> dict[str, Any]:
    """Arrivals and lengths: InferenceX's, or those of NVIDIA's own runs."""
    prompt, output = whole(row["isl"], 1), whole(row["osl"], 1)
    if not own(row):
        lengths = {name: {"uniform": [max(1, int(SHORTEST * n)), n]} for name, n in (("prompt", prompt), ("output", output))}
        return {"arrivals": {"clients": clients}, "requests": TIMES * clients, **lengths}
    spread = [max(1, round((1 - SPREAD) * output)), round((1 + SPREAD) * output)]
    found: dict[str, Any] = {"prompt": prompt, "output": {"uniform": spread}}
    if row["backend"] == "trtllm":
        return found | {"arrivals": {"clients": clients + 1}, "requests": TIMES * clients}
    if row["backend"] == "vllm" and kind == "dense":
        return found | {"arrivals": {"clients": clients}, "requests": RUN, "shared": {"distinct": PROMPTS}}
    return found | {"arrivals": {"clients": clients}, "requests": TIMES * clients}


def own(row: Mapping[str, str]) -> bool:
    """Whether NVIDIA ran it: its rows leave out the groups of attention.

    Inferred from the rows: with TensorRT-LLM a request waits for the place of another, so there is a client more than places;
    with vLLM and dense models nine of ten prompts are in the cache, as those are that come from a hundred.
    """
    return row["attention_dp_size"] == ""


def server(row: Mapping[str, str], clients: int, groups: int = 1) -> dict[str, Any]:
    """What the scripts of the benchmark say beside the framework's defaults.

    **Source**: SemiAnalysisAI/InferenceX: benchmarks/single_node at 16ffb6581480 and 34bc7c409cd1.
    """
    if own(row):
        return {"sequences": clients} if row["backend"] == "trtllm" else {}
    lengths = whole(row["isl"], 1) + whole(row["osl"], 1)
    found: dict[str, Any] = {"prefixes": False}
    if row["backend"] == "sglang" and row["system"] in ("b200_sxm", "b300_sxm"):
        found |= {"look": 30 if clients >= 16 else 10, "budget": 32768, "sequences": max(128, clients)}
    if row["backend"] == "sglang":  # --mem-fraction-static
        found |= {"memory": {"part": "82 %", "kept": "0 B", "token": "0 B", "graph": "0 B", "gpu": "0 B", "least": "0 B"}}
    if row["backend"] == "trtllm":
        found |= {"budget": max(8192, clients // groups + lengths + 64), "memory": {"part": "80 %"}}
        if groups > 1:  # attention_dp_config: {enable_balance: true, batching_wait_iters: 0, timeout_iters: 60}
            found |= {"gather": 60}
    return found
