"""Steps of training language models, simulated and estimated: sixty of the published runs, some of every source and machine.

The constants are those of `llm_training`. A simulated step differs from the estimate in what shares links, in how far
exchanges hide, and in how a pipeline fills; both are compared with the run, and with each other.
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
MOST: Final = 1_024  # GPUs of a run that is simulated
LONGEST: Final = 5_000  # micro-batches times stages of a run that is simulated; longer ones take minutes
EXCLUDED: Final = "Runs with more than 5,000 micro-batches x stages are excluded; with six of them,"
PLAN: Final = ("global_batch", "microbatch", "sequence", "sequence_parallel", "schedule", "chunks", "uneven", "sharding",
               "shards", "recompute", "optimizer", "dtype")  # fmt: skip


def sampled(found: Sequence[Row], count: int = ROWS) -> list[Row]:
    """As many of each group as the others have, spread over the order of their sizes; all of a group that has few.

    Runs that differ only in what the sources do not say (the same plan again) are one.
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
    """Micro-batches of a copy of the model, times the stages that each of them passes."""
    plan = row.plan
    return plan.global_batch / (plan.microbatch * replicas(plan, row.gpus)) * plan.pp


def simulated(row: Row) -> float:
    """Seconds of a step, of two."""
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
    except hwsim.OutOfMemory as full:  # its time is told all the same
        run = full.run
    found: float = run.trainings[0].step_s
    return found


def said(model: Transformer) -> dict[str, Any]:
    """A model by the keys of a file."""
    return {field.name: value for field in fields(model) if (value := getattr(model, field.name)) is not None and field.init}


def scores(data: Path) -> tuple[Score, ...]:
    """Simulated beside measured, and beside the estimate."""
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
