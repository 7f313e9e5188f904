"""Closed loops of clients: TensorRT-LLM, vLLM and SGLang, dense and MoE models, on H100 to GB200.

Most rows are from InferenceX: prompt and output lengths are uniform between 0.8 and 1.0 of the nominal length, each run has ten
requests per client, all clients start together, and no prefix is cached; `STATED` contains the exceptions in its scripts. Rows
without a number of data-parallel attention groups are NVIDIA's own runs, with equal lengths.

If a configuration occurs several times and its TPOTs differ by more than a factor of 1.4, one of the runs uses speculative
decoding, but no column states which one. All runs of this configuration are excluded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from published import serving_scripts
from published.parts import table
from published.serving_rows import (
    FRAMEWORKS,
    Kind,
    Served,
    Shape,
    framework_of,
    model_keys,
    model_of,
    read,
    shape_of,
    subject,
    whole,
)

TWINS: Final = 1.4
REPEATED: Final = 1.1  # ratio of TPOTs above which one run uses speculation; 90 % of repetitions differ by at most 8.6 %
PROMPTS: Final = 100  # different prompts in NVIDIA's own runs of vLLM with dense models
RUN: Final = 1000  # requests of these runs
SPREAD: Final = 0.1  # range of their output lengths
TIMES: Final = 10  # requests per client
SHORTEST: Final = 0.8  # range of lengths relative to the nominal length
WAITING: Final = 0.5  # maximum TTFT relative to the decode time of a request without an unstated limit
LIMITED: Final = "most of a request's time is spent in a queue, whose limit is not stated"
GUESSING: Final = "speculative decoding, according to the benchmark's change log"
SPECULATING: Final = "some repetitions use speculative decoding; which ones is not stated"


def rows(data: Path) -> list[Served]:
    """Return all rows whose model and GPUs are in the library; settings that no row states are the defaults of the framework's
    file.
    """
    said = table(read(data, "e2e_agg.csv"))
    unclear = speculating(said)
    found = (_row(row, index, unclear=_run(row) in unclear) for index, row in enumerate(said) if row["tpot_ms"])
    return [row for row in found if row is not None]


def speculating(said: Sequence[Mapping[str, str]]) -> set[tuple[Any, ...]]:
    """Return the configurations that occur several times with very different times."""
    times: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for row in said:
        if row["tpot_ms"]:
            times[_run(row)].append(float(row["tpot_ms"]))
    return {run for run, found in times.items() if max(found) > (REPEATED if _may_guess(run) else TWINS) * min(found)}


def _run(row: Mapping[str, str]) -> tuple[Any, ...]:
    """Return the configuration of a row, equal for repeated runs."""
    shape = shape_of(row)
    said = tuple(row[name] for name in ("system", "backend", "precision", "isl", "osl", "concurrency"))
    model = model_of(row["model"]) or row["model"]
    may_guess = serving_scripts.may_guess(row["backend"], row["system"], model, row["precision"], row.get("measured", ""))
    return model, *said, shape.gpus, row.get("measured", "") if may_guess else ""


def _may_guess(run: tuple[Any, ...]) -> bool:
    return bool(run[-1])


def _row(row: Mapping[str, str], at: int, *, unclear: bool) -> Served | None:
    about = subject(row["model"], row["system"])
    if about is None or row["backend"] not in FRAMEWORKS:
        return None
    model, kind = about.model, about.kind
    shape = shape_of(row) if kind == "MoE" else Shape(whole(row["tp_size"], 1), pp=whole(row["pp_size"], 1))
    if not about.has(shape.gpus):
        return None
    clients, batch = whole(row["concurrency"], 0) or whole(row["batch_size"], 1), whole(row["batch_size"], 1)
    groups = shape.attention if own(row) else whole(row["attention_dp_size"], 1)
    if own(row):  # its number of clients is per group
        clients *= groups
    copies = max(1, clients // max(1, batch * groups))
    linear, experts = row["gemm_quant_mode"] or row["precision"], row["moe_quant_mode"] or row["precision"]
    infer = {
        **about.infer(framework_of(row["backend"], row["backend_version"], shape, kind), shape, linear, experts),
        **_marlin(row, model),
        **_load(row, max(1, clients // copies), kind),
        **_server(row, model, max(1, clients // copies), shape.attention),
        "top_p": False,  # InferenceX's client asks for temperature 0; NVIDIA's runs are taken to be greedy, too
    }
    group = f"{row['backend']}, {row['system']}, {model}, {row['precision'] or 'bf16'}"
    guesses = not own(row) and serving_scripts.guesses(row["backend"], model, row.get("measured", ""))
    return Served(
        id=f"{row['id']} #{at}",
        group=group,
        kind=kind,
        machine=about.machine,
        infer=infer,
        copies=copies,
        measured=_measured(row),
        apart=GUESSING if guesses else SPECULATING if unclear else LIMITED if waits(row) else "",
    )


def _measured(row: Mapping[str, str]) -> dict[str, float]:
    """Return the compared quantities. The first requests of SGLang without warm-up are excluded, because they wait for its
    compiler.
    """
    found = {"each_token": float(row["tpot_ms"]) / 1e3}
    cold = row["backend"] == "sglang" and not own(row) and row.get("measured", "") < serving_scripts.WARMED
    return found if cold else {"first_token": float(row["ttft_ms"]) / 1e3} | found


def _marlin(row: Mapping[str, str], model: str) -> dict[str, Any]:
    """Use Marlin's kernel for experts if the script asks for it."""
    script = None if own(row) else serving_scripts.script_of(*_run_by(row, model))
    return {"model": model_keys(model, row["model"], "", "int4")} if script is not None and script.marlin else {}


def _run_by(row: Mapping[str, str], model: str) -> tuple[str, str, str, str, str, int]:
    return row["backend"], row["system"], model, row["precision"], row.get("measured", ""), shape_of(row).gpus


def _server(row: Mapping[str, str], model: str, clients: int, groups: int) -> dict[str, Any]:
    """Return the server and its cache, as in the benchmark's script of that day."""
    if own(row):  # NVIDIA's checkpoints state the format of the KV cache, and servers use it
        kept = {"kv": "fp8"} if row["model"].startswith("nvidia/") else {}
        return {"server": {"sequences": clients} if row["backend"] == "trtllm" else {}, **kept}
    script = serving_scripts.script_of(*_run_by(row, model))
    if script is None:
        return {"server": {"prefixes": False}}
    said = serving_scripts.server(script, clients, whole(row["isl"], 1), groups)
    return {"server": said, **({"kv": script.kv} if script.kv and row["precision"] in ("fp8", "fp4") else {})}


def waits(row: Mapping[str, str]) -> bool:
    """Return whether requests are queued for long because all slots are taken, at an unstated limit."""
    return float(row["ttft_ms"]) > WAITING * float(row["tpot_ms"]) * whole(row["osl"], 1)


def _load(row: Mapping[str, str], clients: int, kind: Kind) -> dict[str, Any]:
    """Return arrivals and lengths: those of InferenceX, or of NVIDIA's own runs."""
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
    """Return whether NVIDIA ran the benchmark: its rows do not state the groups of attention.

    Two rules are inferred from the rows. With TensorRT-LLM, a request waits for another one's slot, so there is one client more
    than slots. With vLLM and dense models, nine of ten prompts are in the cache, because prompts repeat after a hundred
    requests.
    """
    return row["attention_dp_size"] == ""
