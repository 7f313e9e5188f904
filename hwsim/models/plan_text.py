"""Text form of a parallel plan, the same in all outputs."""

from __future__ import annotations

from typing import Final

from hwsim.models.plan import DerivedPlan

LONGEST: Final = " (the maximum of the model)"


def plan_text(laid: DerivedPlan, *, short: bool = False) -> str:
    """Return a plan in one line; `short` omits what a table of plans has no space for.

    >>> from hwsim.models import ParallelPlan, derive_plan, load_transformer
    >>> laid = derive_plan(load_transformer("gpt2"), ParallelPlan(tp=2, pp=2, global_batch=8, sharding="zero-1"), 8)
    >>> plan_text(laid)
    'tp 2, pp 2, dp 2, microbatch 1 x 4, 1f1b, zero-1, no recompute, bf16, adam'
    >>> plan_text(laid, short=True)
    'tp 2, pp 2, dp 2, microbatch 1, zero-1'
    """
    plan = laid.plan
    axes = {"tp": plan.tp, "pp": plan.pp, "cp": plan.cp, "dp": laid.dp}
    parts = [f"{name} {size}" for name, size in axes.items() if size > 1 or name != "cp"]
    if plan.ep > 1:
        parts.append(f"ep {plan.ep}" + (f" (fullest expert {plan.fullest:g} x the average)" if plan.fullest > 1.0 else ""))
    parts.append(f"microbatch {plan.microbatch}" + ("" if short else f" x {laid.microbatches}"))
    chunks = f"{plan.chunks} chunks" if plan.chunks > 1 else ""
    if plan.pp > 1 and (chunks or not short):
        parts.append(chunks if short else plan.schedule + (f" with {chunks}" if chunks else ""))
    if plan.sequence_parallel and not short:
        parts.append("sequence parallel")
    if laid.unit == "tokens":
        parts += [plan.sharding] if plan.level else ["no sharding"] if laid.dp > 1 and not short else []
        if plan.recompute != "none":
            parts.append(f"{plan.recompute} recompute")
        elif not short:
            parts.append("no recompute")
    return ", ".join(parts if short else [*parts, plan.dtype, plan.optimizer])


def assumed_sequence_text(laid: DerivedPlan) -> str:
    """Return the assumed sequence length as a suffix of the plan's text, if the plan does not state it."""
    if laid.plan.sequence is not None or laid.unit != "tokens":
        return ""
    return f", sequences of {laid.sequence:,} tokens{LONGEST}"
