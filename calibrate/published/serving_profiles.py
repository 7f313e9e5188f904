"""Clients at a constant rate: vLLM on H100 with complete client profiles, and experiments with the same names.

Prompts repeat: a run has as many different prompts as groups times users. TPOT is computed from whole requests, because the
file's own TPOT counts each twice, and its lengths are not those generated.

Experiments state neither rates nor lengths. An experiment with a profile's name, and with the profile's weights of stages in
its average, is assumed to have the profile's load. "Lite" experiments have another, unknown load.

`reasoning` is overloaded: its queue grows without limit, so it is excluded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from published.parts import table
from published.serving_rows import Line, Served, Shape, read, subject, whole

LONGEST: Final = 120.0  # s: simulated duration; a steady state is reached after a few seconds
OVERLOADED: Final = "overload: the queue grows without limit"
ALIKE: Final = 0.005  # tolerance of a stage's share of requests


def rows(data: Path) -> list[Served]:
    """Return the stages of the profiles."""
    keys = _keys(data)
    found = (
        _row(row, keys.get(_same(row["model"], float(row["e2e_s_mean"])), ())) for row in table(read(data, "blis_profiles.csv"))
    )
    return [served for served in found if served is not None]


def _keys(data: Path) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return a stage's key in the table of experiments, from its model and mean latency."""
    return {
        _same(row["model"], float(row["measured_ms"]) / 1e3): (row["set"], row["experiment"], row["stage_index"])
        for row in table(read(data, "blis_vllm.csv"))
        if row["metric_name"] == "e2e_mean" and row["stage_index"] != "-1"
    }


def _same(model: str, seconds: float) -> tuple[str, str]:
    return model, f"{seconds:.5f}"


def _row(row: Mapping[str, str], key: tuple[str, ...]) -> Served | None:
    about = subject(row["model"], row["hardware"])
    if about is None:
        return None
    tp, rate, asked = whole(row["tp"], 1), float(row["rate_per_s"]), whole(row["output_len_asked"], 1)
    latency, first = float(row["e2e_s_mean"]), float(row["ttft_s_mean"])
    prompts = whole(row["system_prompts"], 1) * whole(row["users_per_prompt"], 1)
    return Served(
        id=f"{row['experiment'][16:]}, {rate:g}/s",
        group=f"vllm, {row['hw']}, {about.model}",
        kind=about.kind,
        machine=about.machine,
        infer={
            **about.infer("vllm", Shape(tp)),
            "server": {"budget": whole(row["max_num_batched_tokens"], 2048), "sequences": whole(row["max_num_seqs"], 256)},
        },
        trace=constant(rate, min(LONGEST, float(row["duration_s"])), float(row["prompt_tokens_mean"]), asked, prompts),
        measured={"latency": latency, "first_token": first, "each_token": (latency - first) / (asked - 1)},
        apart=OVERLOADED if "reasoning" in row["experiment"] else "",
        key=key,
    )


def experiments(data: Path) -> list[Served]:
    """Return stages of experiments with a profile's load, without the profiles themselves."""
    profiles = table(read(data, "blis_profiles.csv"))
    loads: dict[str, dict[str, Mapping[str, str]]] = defaultdict(dict)
    for profile in profiles:
        loads[profile["experiment"].rpartition("-")[2]][profile["stage"]] = profile
    keys = _keys(data)
    own = {keys[at][1] for row in profiles if (at := _same(row["model"], float(row["e2e_s_mean"]))) in keys}
    stages: dict[str, dict[str, dict[str, Mapping[str, str]]]] = defaultdict(lambda: defaultdict(dict))
    for row in table(read(data, "blis_vllm.csv")):
        stages[row["experiment"]][row["stage_index"]][row["metric_name"]] = row
    found = []
    for name, said in stages.items():
        first = next(iter(next(iter(said.values())).values()))
        load = loads.get(first["workload"], {})
        if name not in own and "lite" not in name and "lite" not in first["workload"] and _alike(said, load):
            found += [_stage(name, stage, said[stage], load[stage]) for stage in load]
    return [served for served in found if served is not None]


def _alike(said: Mapping[str, Mapping[str, Mapping[str, str]]], load: Mapping[str, Mapping[str, str]]) -> bool:
    """Return whether the stages have this load: their overall average equals the average weighted by the load's rates."""
    if not load or set(said) - {"-1"} != set(load):
        return False
    requests = {stage: float(row["rate_per_s"]) * float(row["duration_s"]) for stage, row in load.items()}
    latency = {stage: float(row["e2e_mean"]["measured_ms"]) for stage, row in said.items()}
    mean = sum(requests[stage] * latency[stage] for stage in load) / sum(requests.values())
    return abs(mean / latency.get("-1", mean) - 1) < ALIKE


def _stage(name: str, stage: str, said: Mapping[str, Mapping[str, str]], load: Mapping[str, str]) -> Served | None:
    row = said["e2e_mean"]
    about = subject(row["model"], row["hardware"])
    if about is None:
        return None
    tp, asked = whole(row["tp"], 1), whole(load["output_len_asked"], 1)
    latency, first = (float(said[metric]["measured_ms"]) / 1e3 for metric in ("e2e_mean", "ttft_mean"))
    server: dict[str, Any] = {"budget": whole(row["max_num_batched_tokens"], 2048), "sequences": whole(load["max_num_seqs"], 256)}
    if row["gpu_mem_util"]:
        server["memory"] = {"part": f"{100 * float(row['gpu_mem_util']):g} %"}
    prompts = whole(load["system_prompts"], 1) * whole(load["users_per_prompt"], 1)
    rate, seconds = float(load["rate_per_s"]), min(LONGEST, float(load["duration_s"]))
    return Served(
        id=f"{name}, {rate:g}/s",
        group=f"vllm, {row['hardware']}, {about.model}",
        kind=about.kind,
        machine=about.machine,
        infer={**about.infer("vllm", Shape(tp), "fp8" if row["precision"] == "FP8" else ""), "server": server},
        trace=constant(rate, seconds, float(load["prompt_tokens_mean"]), asked, prompts),
        measured={"latency": latency, "first_token": first, "each_token": (latency - first) / (asked - 1)},
        apart=OVERLOADED if "reasoning" in row["workload"] else "",
        key=(row["set"], name, stage),
    )


def constant(rate: float, seconds: float, prompt: float, output: int, prompts: int) -> tuple[Line, ...]:
    """Return requests with prompts in rotation; those of the first round are in the cache from earlier requests."""
    return tuple(Line(index / rate, round(prompt), output, index % prompts) for index in range(int(rate * seconds)))
