"""Memory of trainings: what PyTorch measured, and whether runs that ran are refused.

Peaks are those that the allocator reserved, as torchtitan printed them; the context of the driver is not among them. The
estimate counts `RESERVED` for it, which is taken off here. No constant is fitted to single rows: what is kept is counted from
what the frameworks' code keeps; `FRAGMENTS` and `WHOLE` of `hwsim/models/memory.py` are round numbers that these rows bear out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hwsim.models import Framework, ParallelPlan, derive_plan, load_framework, load_transformer
from hwsim.models.memory import RESERVED, SPREAD
from hwsim.models.stages import largest_stage_memory
from published.llm_rows import rows
from published.parts import declared
from published.score import Miss, Score, scored

GIB: Final = 2**30
MEASURED: Final = declared("llm_memory")["measured"]


def missed() -> list[Miss]:
    """Bytes estimated and bytes reserved."""
    found = []
    for name, gpus, tp, pp, cp, sequence, micro, batch, chunks, recompute, framework, measured in MEASURED:
        plan = ParallelPlan(
            tp=tp,
            pp=pp,
            cp=cp,
            sequence=sequence,
            microbatch=micro,
            global_batch=batch,
            chunks=chunks,
            schedule="interleaved" if chunks > 1 else "1f1b",
            uneven=True,
            sharding="fsdp",
            recompute=recompute,
            sequence_parallel=tp > 1,
        )
        software: Framework = load_framework(framework)
        need = largest_stage_memory(derive_plan(load_transformer(name), plan, gpus), software).total - RESERVED
        said = f"{name}, {gpus} GPUs, tp {tp} pp {pp} cp {cp} s {sequence} v {chunks}, {framework}"
        found.append(Miss(said, need, measured * GIB, "stages" if pp > 1 else "no stages"))
    return found


def refused(data: Path) -> tuple[list[str], list[str], int]:
    """(names of runs that ran and would not fit, names of those that are tight, runs)."""
    found = rows(data)
    over: list[str] = []
    tight: list[str] = []
    for row in found:
        need = largest_stage_memory(derive_plan(row.model, row.plan, row.gpus), load_framework(row.software))
        verdict = need.verdict(row.cluster.gpu.memory.size)
        (over if verdict.startswith("does not fit") else tight if verdict != "fits" else []).append(row.name())
    return over, tight, len(found)


def scores(data: Path) -> tuple[Score, ...]:
    """Bytes beside those measured, and the part of runs that ran whose plan is refused."""
    misses = missed()
    over, tight, count = refused(data)
    inside = sum(miss.relative <= SPREAD for miss in misses) / len(misses)
    said = (
        f"{inside:.0%} of the rows lie within the {SPREAD:.0%} that the verdict allows for. The bound was set after the result."
    )
    return (
        scored("GPU memory reserved by PyTorch in training", misses, 0.10, "not fitted", why=reason, notes=said),
        Score(name="training runs that fitted into memory but are rejected", metric="share of runs",
              value=len(over) / count, bound=0.02, rows=count, half="not fitted",
              notes=f"{len(tight)} of the runs are reported as tight." + _named(over)),
    )  # fmt: skip


def _named(over: Sequence[str]) -> str:
    return f" Rejected: {'; '.join(over)}." if over else ""


def reason(miss: Miss) -> str:
    """Why a row is far off, where somebody looked."""
    if miss.group == "stages" and miss.predicted < miss.measured:
        return "pipeline stages keep more than activations, weights and gradients; cause unknown"
    return ""
