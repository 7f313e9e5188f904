"""GPU memory of LLM training: predictions against PyTorch's peaks, and rejection of plans that ran.

The peaks are those reserved by the allocator, as torchtitan printed them. They exclude the driver context, so the estimate's
`RESERVED` is subtracted here. No constant is fitted to single rows: kept tensors are counted from the frameworks' code, and
`FRAGMENTS` and `WHOLE` of `hwsim/models/memory.py` are round numbers that agree with these rows.
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
    """Return estimated and reserved bytes."""
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
    """Return (names of runs that ran but are rejected, names of tight runs, number of runs)."""
    found = rows(data)
    over: list[str] = []
    tight: list[str] = []
    for row in found:
        need = largest_stage_memory(derive_plan(row.model, row.plan, row.gpus), load_framework(row.software))
        verdict = need.verdict(row.cluster.gpu.memory.size)
        (over if verdict.startswith("does not fit") else tight if verdict != "fits" else []).append(row.name())
    return over, tight, len(found)


def scores(data: Path) -> tuple[Score, ...]:
    """Return the scores of memory sizes and of rejected runs."""
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
    """Return the cause of a large error, if it was investigated."""
    if miss.group == "stages" and miss.predicted < miss.measured:
        return "pipeline stages keep more than activations, weights and gradients; cause unknown"
    return ""
