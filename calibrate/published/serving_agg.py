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
REPEATED: Final = 1.1  # of runs of one day, one of which may guess: repeated ones differ by 8.6 % at most, nine times of ten
PROMPTS: Final = 100  # that differ, in NVIDIA's own runs of vLLM with dense models
RUN: Final = 1000  # requests of those
SPREAD: Final = 0.1  # of the lengths of answers there
TIMES: Final = 10  # requests for each client
SHORTEST: Final = 0.8  # of the nominal length
WAITING: Final = 0.5  # of the time in which an answer is written, that a first token takes at most without a limit of its own
LIMITED: Final = "most of a request's time is spent in a queue, whose limit is not stated"
GUESSING: Final = "speculative decoding, according to the benchmark's change log"
SPECULATING: Final = "some repetitions use speculative decoding; which ones is not stated"


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
    return {run for run, found in times.items() if max(found) > (REPEATED if _may_guess(run) else TWINS) * min(found)}


def _run(row: Mapping[str, str]) -> tuple[Any, ...]:
    """What is equal in twins."""
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
    if own(row):  # what it calls clients are those of a group
        clients *= groups
    copies = max(1, clients // max(1, batch * groups))
    linear, experts = row["gemm_quant_mode"] or row["precision"], row["moe_quant_mode"] or row["precision"]
    infer = {
        **about.infer(framework_of(row["backend"], row["backend_version"], shape, kind), shape, linear, experts),
        **_marlin(row, model),
        **_load(row, max(1, clients // copies), kind),
        **_server(row, model, max(1, clients // copies), shape.attention),
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
    """What is compared. The first requests of a cold SGLang wait for its compiler, a minute and more, which is no host's time."""
    found = {"each_token": float(row["tpot_ms"]) / 1e3}
    cold = row["backend"] == "sglang" and not own(row) and row.get("measured", "") < serving_scripts.WARMED
    return found if cold else {"first_token": float(row["ttft_ms"]) / 1e3} | found


def _marlin(row: Mapping[str, str], model: str) -> dict[str, Any]:
    """Experts by Marlin's kernel, where the script asks for it."""
    script = None if own(row) else serving_scripts.script_of(*_run_by(row, model))
    return {"model": model_keys(model, row["model"], "", "int4")} if script is not None and script.marlin else {}


def _run_by(row: Mapping[str, str], model: str) -> tuple[str, str, str, str, str, int]:
    return row["backend"], row["system"], model, row["precision"], row.get("measured", ""), shape_of(row).gpus


def _server(row: Mapping[str, str], model: str, clients: int, groups: int) -> dict[str, Any]:
    """The server and its cache: as the benchmark's script of that day says."""
    if own(row):  # checkpoints of NVIDIA's say what their keys and values are in, and servers take it from there
        kept = {"kv": "fp8"} if row["model"].startswith("nvidia/") else {}
        return {"server": {"sequences": clients} if row["backend"] == "trtllm" else {}, **kept}
    script = serving_scripts.script_of(*_run_by(row, model))
    if script is None:
        return {"server": {"prefixes": False}}
    said = serving_scripts.server(script, clients, whole(row["isl"], 1), groups)
    return {"server": said, **({"kv": script.kv} if script.kv and row["precision"] in ("fp8", "fp4") else {})}


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
