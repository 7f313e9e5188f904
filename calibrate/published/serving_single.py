"""Single requests of vLLM 0.19 on RTX PRO 6000, with arrival, tokens and times of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from published.parts import table
from published.serving_rows import Line, Served, Shape, devices, read, subject, whole

# Links between GPUs for which the source's own simulator matches its machine: 16 GB/s of a collective, here eight lanes.
# **Source**: casys-kaist/LLMServingSim@5daddb21a545: bench/examples and docs/simulator/parallelism-mechanics.md, `link_bw`.
LINKS: Final[Mapping[str, Mapping[str, Any]]] = {"RTXPRO6000": {"slots": {"lanes": 8}}}


def rows(data: Path) -> list[Served]:
    """Return one run for each model and GPU."""
    runs: dict[tuple[str, ...], list[Mapping[str, str]]] = defaultdict(list)
    for request in table(read(data, "llmservingsim_requests.csv")):
        runs[request["hardware"], request["model"], request["tp"], request["dp"], request["source"]].append(request)
    found = (_run(sorted(run, key=lambda row: float(row["arrival_s"]))) for run in runs.values())
    return [served for served in found if served is not None]


def _run(said: Sequence[Mapping[str, str]]) -> Served | None:
    first = said[0]
    about = subject(first["model"], first["hardware"])
    if about is None:
        return None
    tp, dp, together = whole(first["tp"], 1), whole(first["dp"], 1), first["ep"] == "True"
    shape = Shape(tp, dp if together else 1, ep=tp * dp if together else 1)
    server: dict[str, Any] = {
        "sequences": whole(first["max_num_seqs"], 256),
        "budget": whole(first["max_num_batched_tokens"], 2048),
    }
    infer = about.infer("vllm", shape, "fp8" if "fp8" in first["dtype"] else "")
    if not together:
        infer |= {"device": devices(about.machine, tp * dp), "parallel": infer["parallel"] | {"dp": dp}}
    return Served(
        id=f"{first['model']}, {first['hardware']}, tp {tp}, dp {dp}",
        group=f"vllm, {first['hardware']}, {about.model}",
        kind=about.kind,
        machine=about.machine,
        links=LINKS.get(first["hardware"], {}),
        infer=infer | {"server": server},
        trace=tuple(
            Line(float(row["arrival_s"]), whole(row["prompt_tokens"], 1), whole(row["output_tokens"], 1)) for row in said
        ),
        measured={
            name: fmean(float(row[column]) for row in said)
            for name, column in (("latency", "e2e_s"), ("first_token", "ttft_s"), ("each_token", "tpot_s"))
        },
    )
