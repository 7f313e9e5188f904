"""LLM training steps, simulated and estimated: sixty published runs from every source and machine.

Constants are those of `llm_training`. A simulated step differs from the estimate in shared links, overlap of communication and
pipeline fill. Both are compared with the run and with each other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import hwsim
from hwsim.formats import percent
from hwsim.models import Transformer, estimate, load_framework
from hwsim.models.plan import replicas
from published.llm_rows import Row, rows
from published.llm_training import reason
from published.score import Miss, Score, group_median, scored

ROWS: Final = 60
MOST: Final = 1_024  # maximum GPUs of a simulated run
LONGEST: Final = 5_000  # maximum micro-batches x stages of a simulated run; longer runs take minutes
EXCLUDED: Final = "Runs with more than 5,000 micro-batches x stages are excluded; with six of them,"
PLAN: Final = ("global_batch", "microbatch", "sequence", "sequence_parallel", "schedule", "chunks", "uneven", "sharding",
               "shards", "recompute", "optimizer", "dtype")  # fmt: skip


def sampled(found: Sequence[Row], count: int = ROWS) -> list[Row]:
    """Return the same number of rows per group, spread over their sizes; small groups are included completely.

    Runs that differ only in unpublished settings (the same plan twice) count once.
    """
    groups: dict[str, list[Row]] = {}
    seen: set[tuple[str, str, int, str]] = set()
    for row in sorted(found, key=lambda row: (row.group, row.size)):
        key = row.group, row.software, row.gpus, f"{row.said} {row.plan}"
        if row.gpus <= MOST and passes(row) <= LONGEST and key not in seen:
            seen.add(key)
            groups.setdefault(row.group, []).append(row)
    each = 1
    while sum(min(each, len(group)) for group in groups.values()) < count and each < len(found):
        each += 1
    chosen = []
    for group in groups.values():
        many = min(each, len(group))
        chosen += [group[index * len(group) // many] for index in range(many)]
    return chosen[:count]


def passes(row: Row) -> float:
    """Return the micro-batches of a model replica times the number of stages."""
    plan = row.plan
    return plan.global_batch / (plan.microbatch * replicas(plan, row.gpus)) * plan.pp


def simulated(row: Row) -> float:
    """Return the time of a step in seconds, from a run of two steps."""
    nodes = -(-row.gpus // row.cluster.per_node)
    machine = re.sub(r"count: 2\b", f"count: {nodes}", row.machine, count=1)
    plan = row.plan
    train: dict[str, Any] = {
        "model": said(row.model),
        "gpus": row.gpus,
        "framework": row.software,
        "parallel": {"tp": plan.tp, "pp": plan.pp, "dp": plan.dp, "cp": plan.cp},
        "steps": 2,
        **{name: getattr(plan, name) for name in PLAN if getattr(plan, name) is not None},
    }
    workload = {"hwsim": "workload/1", "train": train}
    try:
        run = hwsim.simulate(machine, workload)
    except hwsim.OutOfMemory as full:  # its time is reported nevertheless
        run = full.run
    found: float = run.trainings[0].step_s
    return found


def said(model: Transformer) -> dict[str, Any]:
    """Return a model as keys of a file."""
    return {field.name: value for field in fields(model) if (value := getattr(model, field.name)) is not None and field.init}


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of simulated steps against measurements and against the estimate."""
    chosen = sampled(rows(data))
    times = [simulated(row) for row in chosen]
    estimates = [estimate(row.model, row.plan, row.cluster, load_framework(row.software)).seconds for row in chosen]
    misses = [Miss(row.name(), seconds, row.seconds, row.group) for row, seconds in zip(chosen, times, strict=True)]
    closed = [Miss(row.name(), seconds, row.seconds, row.group) for row, seconds in zip(chosen, estimates, strict=True)]
    apart = [Miss(row.name(), seconds, other, row.group) for row, seconds, other in zip(chosen, times, estimates, strict=True)]
    by_estimate = percent(group_median(closed)[0])
    notes = f"The closed-form estimate of the same rows has {by_estimate}. {EXCLUDED} the group median was 3.4 %."
    more = f"{EXCLUDED} the 90th percentile was 0.89 %."
    return (
        scored("simulated training steps against measurements", misses, 0.08, why=reason, notes=notes),
        scored("simulated against estimated training steps", apart, 0.02, "not fitted", notes=more),
    )  # fmt: skip
