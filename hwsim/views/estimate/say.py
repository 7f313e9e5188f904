"""Estimates of models as text and JSON (`hwsim: estimate/2`)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from hwsim.formats import counted, format_duration, format_quantity, format_share, prefixed
from hwsim.models.plan_text import LONGEST, assumed_sequence_text, plan_text
from hwsim.models.search import NOT_SEARCHED, search_document, search_text
from hwsim.results import invariants
from hwsim.views.interval import say as intervals
from hwsim.views.kit.failure_lines import as_dict, failing_lines, saved_as_dict, saved_lines
from hwsim.views.kit.lines import LABEL, above, bar, labelled_lines
from hwsim.views.kit.table import Column, align_columns, table

if TYPE_CHECKING:
    from hwsim.costs.bill import Bill
    from hwsim.models import Footprint, ParallelPlan, TrainingStep
    from hwsim.models.inference import InferencePass, ServedBatch
    from hwsim.models.search import PlanSearchResult
    from hwsim.results.interval import Interval
    from hwsim.results.training_failures import Checkpoints, FailureOutcome

NAMES: Final[Mapping[str, str]] = {
    "output": "output and loss",
    "tp": "tensor parallel",
    "cp": "context parallel",
    "ep": "expert parallel",
    "pp": "pipeline sends",
    "dp": "data parallel",
    "accumulate": "gradient accumulation",
}
KINDS: Final = ("weights", "gradients", "optimizer", "activations", "cache", "buffers")
SAID: Final[Mapping[str, str]] = {"cache": "KV cache", "optimizer": "optimizer states"}
GAP: Final = 4  # columns between two tables side by side


@invariants.check_report
def training(
    step: TrainingStep,
    title: str,
    framework: str,
    size: float | None,
    tokens: float | None = None,
    sure: Interval | None = None,
    fails: tuple[Checkpoints, FailureOutcome] | None = None,
    bill: Bill | None = None,
) -> str:
    """Return a training step as text: memory, time, throughput and plan, and the breakdown of time and memory."""
    laid = step.laid
    batch = f"{laid.plan.global_batch:,} examples"
    if laid.unit == "tokens":
        batch = f"{laid.plan.global_batch:,} sequences of {laid.sequence:,} tokens ({prefixed(laid.tokens)} tokens)"
    out = [*_short_of(step.memory, step.verdict, size), title, ""]
    sufficed = "" if step.fits else ", if memory sufficed"
    out += _fact("step time", f"{format_quantity(step.seconds, 's')} for {batch}{sufficed}")
    out += _sure(sure)
    per_gpu = f"{counted(step.tokens_per_second / laid.gpus)} per GPU"
    mfu = f"MFU {_part(step.mfu)} (HFU {_part(step.hfu)}){above(step.mfu)}"
    out += _fact("throughput", f"{counted(step.tokens_per_second)} {laid.unit}/s, {per_gpu}; {mfu}")
    out += _fact("parallel plan", plan_text(laid))
    out += _fact("software", framework)
    out += _fact(
        "GPU memory", _fits(step.memory, step.verdict, size, f" (stage {step.memory.stage})" if laid.plan.pp > 1 else "")
    )
    if tokens is not None:
        out += _fact("training", f"{format_duration(tokens / step.tokens_per_second, 3)} for {prefixed(tokens)} tokens")
    if fails is not None:
        for name, line in (*saved_lines(fails[0]), *failing_lines(fails[1], sure)):
            out += _fact(name, line)
    out += _bill(bill)
    return "\n".join([*out, "", *_tables(step.shares, step.memory)]) + "\n"


def _fact(label: str, text: str) -> list[str]:
    return labelled_lines(label, text, LABEL)


def _short_of(found: Footprint, verdict: str, size: float | None) -> list[str]:
    """Return the first line of an estimate that does not fit in memory."""
    if size is None or not verdict.startswith("does not fit"):
        return []
    needed, short = format_quantity(found.total, "B"), format_quantity(found.total - size, "B")
    return [f"out of memory: {needed} needed, {format_quantity(size, 'B')} available on each GPU ({short} short)"]


def _bill(bill: Bill | None) -> list[str]:
    """Return the lines of energy and cost."""
    if bill is None:
        return []
    from hwsim.views.summary import costs

    return [line for title, text in costs.lines(bill) for line in _fact(title, text)]


def _sure(sure: Interval | None) -> list[str]:
    """Return the lines of an interval."""
    if sure is None:
        return []
    corrected = intervals.corrected(sure)
    return [*(_fact("corrected", corrected) if corrected else []), *_fact(intervals.TITLE, intervals.line(sure))]


@invariants.check_report
def searched(
    plans: PlanSearchResult,
    title: str,
    framework: str,
    size: float | None,
    top: int,
    tokens: float | None = None,
    bill: Bill | None = None,
) -> str:
    """Return the plans that fit as text, fastest first.

    Args:
        plans: plans.
        title: first line.
        framework: software in words.
        size: memory of a GPU (B); None if unknown.
        top: largest number of plans.
        tokens: tokens of the whole training; None if unknown.
        bill: bill of the fastest plan.
    """
    out = [title, ""]
    if plans.nearest is not None:
        laid = plans.nearest.laid
        out[:0] = ["no plan fits in memory"]
        out += _fact("closest", f"{plan_text(laid)}: {_fits(plans.nearest.memory, plans.nearest.verdict, size, '')}")
    else:
        laid = plans.steps[0].laid
        out += _fact("fastest plan", f"{plan_text(laid)}: {format_quantity(plans.steps[0].seconds, 's')} per step")
    if laid.unit == "tokens":
        longest = LONGEST if assumed_sequence_text(laid) else ""
        out += _fact("batch", f"{laid.plan.global_batch:,} sequences of {laid.sequence:,} tokens{longest}")
    out += _fact("search", f"{search_text(plans.counts, plans.axes)}; {framework}")
    if laid.unit == "tokens":
        out += _fact("not searched", NOT_SEARCHED)
    if plans.nearest is not None:
        return "\n".join(out) + "\n"
    unit = plans.steps[0].laid.unit
    more = _more_axes(plans.steps[:top])
    titles = ["step", "MFU", f"{unit}/s", "GPU memory", "tp", "pp", *more, "dp", "microbatch", "sharding", "recompute"]
    rows = []
    for step in plans.steps[:top]:
        plan = step.laid.plan
        rows.append([
            format_quantity(step.seconds, "s"), _part(step.mfu), counted(step.tokens_per_second),
            format_quantity(step.memory.total, "B") + ("" if step.verdict == "fits" else " tight"),
            str(plan.tp), str(plan.pp), *(_axis(plan, name) for name in more), str(step.laid.dp),
            f"{plan.microbatch} x {step.laid.microbatches}", _sharding(plan), plan.recompute,
        ])  # fmt: skip
        if tokens is not None:
            rows[-1].append(format_duration(tokens / step.tokens_per_second, 3))
    titles += [] if tokens is None else [f"{prefixed(tokens)} tokens"]
    out += ["", *table([titles, *rows], " ".join([">"] * len(titles)))]
    if len(plans.steps) > top:
        out.append(f"  others take {format_quantity(plans.steps[top].seconds, 's')} or longer (--top N)")
    if bill is not None:
        out += ["", "cost of the fastest plan", *_bill(bill)]
    return "\n".join(out) + "\n"


@invariants.check_report
def inference(
    service: ServedBatch, title: str, framework: str, size: float | None, sure: Interval | None = None, bill: Bill | None = None
) -> str:
    """Return an inference batch as text."""
    out = [*_short_of(service.memory, service.verdict, size), title, ""]
    prompts = f"{service.batch} prompt{'s' if service.batch > 1 else ''} of {service.prompt:,} tokens"
    if service.steps is None:
        out += _fact("prefill", f"{format_quantity(service.seconds, 's')} for {prompts}")
        out += _sure(sure)
    else:
        begin, end = service.steps
        began = f"{format_quantity(begin.seconds, 's')} after {service.prompt:,} tokens"
        ended = f"{format_quantity(end.seconds, 's')} at the end"
        out += _fact("TPOT", f"{format_quantity(service.seconds, 's')} on average: {began}, {ended}")
        out += _sure(sure)
        waits = f", including {format_quantity(service.waits, 's')} of scheduling and tokenization" if service.waits else ""
        out += _fact("TTFT", f"{format_quantity(service.ttft, 's')} for {prompts}{waits}")
        out += _fact("end to end", f"{format_quantity(service.total, 's')} for {service.output:,} output tokens")
    throughput = f"{counted(service.tokens_per_second)} tokens/s"
    if service.replicas > 1:
        throughput += f" per replica, {counted(service.replicas * service.tokens_per_second)} on all {service.replicas}"
    out += _fact("throughput", throughput)
    out += _fact("parallel plan", f"tp {service.tp}, {service.dtype}, batch {service.batch}")
    out += _fact("software", framework)
    if service.formats is not None:
        out += _fact("weights", service.formats)
    out += _fact("GPU memory", _fits(service.memory, service.verdict, size, ""))
    if service.capacity == 0:
        out += _fact("KV cache", "none: the weights leave no memory for it")
    elif service.capacity is not None:
        held = f"{service.held:,} such sequences" if service.held else "less than one such sequence"
        out += _fact("KV cache", f"{service.capacity:,} tokens, {held}")
    out += _bill(bill)
    return "\n".join([*out, "", *_tables(service.shares, service.memory)]) + "\n"


@invariants.check_report
def batch(
    forward: InferencePass,
    examples: int,
    dtype: str,
    title: str,
    framework: str,
    size: float | None,
    sure: Interval | None = None,
    bill: Bill | None = None,
) -> str:
    """Return a batch through a network as text."""
    count = f"{examples:,} example{'s' if examples > 1 else ''}"
    out = [*_short_of(forward.memory, forward.verdict, size), title, ""]
    out += _fact("forward pass", f"{format_quantity(forward.seconds, 's')} for {count} on one GPU")
    out += _sure(sure)
    out += _fact("throughput", f"{counted(examples / forward.seconds)} examples/s per GPU; {dtype}")
    out += _fact("software", framework)
    out += _fact("GPU memory", _fits(forward.memory, forward.verdict, size, ""))
    out += _bill(bill)
    return "\n".join([*out, "", *_tables(forward.shares, forward.memory)]) + "\n"


# ---- JSON ----


def of_training(
    step: TrainingStep,
    size: float | None,
    tokens: float | None = None,
    fails: tuple[Checkpoints, FailureOutcome] | None = None,
    sure: Interval | None = None,
) -> dict[str, Any]:
    """Return a training step as dicts and lists: seconds, bytes."""
    laid = step.laid
    plan = laid.plan
    names = ("tp", "pp", "cp", "ep", "chunks", "microbatch", "global_batch", "schedule", "sharding", "recompute", "optimizer",
             "dtype", "sequence_parallel")  # fmt: skip
    numbers: dict[str, Any] = {
        "step_s": step.seconds,
        "shares_s": dict(step.shares),
        laid.unit: laid.tokens,
        f"{laid.unit}_per_s": step.tokens_per_second,
        "mfu": step.mfu,
        "hfu": step.hfu,
        "memory": _memory(step.memory, size),
        "fits": step.fits,
        "verdict": step.verdict,
        "plan": {
            **{name: getattr(plan, name) for name in names},
            "sharding": _sharding(plan),
            "dp": laid.dp,
            "microbatches": laid.microbatches,
            "sequence": laid.sequence,
        },
    }
    if tokens is not None:
        numbers["training"] = {"tokens": tokens, "seconds": tokens / step.tokens_per_second}
    if fails is not None:
        numbers |= {"checkpoints": saved_as_dict(fails[0]), "failures": as_dict(fails[1], sure)}
    return numbers


def _more_axes(steps: Sequence[TrainingStep]) -> list[str]:
    """Return the further parallel axes that any of these plans uses."""
    used = [name for name in ("cp", "ep", "chunks") if any(getattr(step.laid.plan, name) > 1 for step in steps)]
    split = any(step.laid.plan.tp > 1 and not step.laid.plan.sequence_parallel for step in steps)
    return [*used, *(["sequence"] if split else [])]


def _sharding(plan: ParallelPlan) -> str:
    """Return the sharding of the replicas, named as in a file."""
    return plan.sharding if plan.level else "none"


def _axis(plan: ParallelPlan, name: str) -> str:
    if name == "sequence":
        return "split" if plan.sequence_parallel else "whole"
    return str(getattr(plan, name))


def of_search(plans: PlanSearchResult, size: float | None, top: int, tokens: float | None = None) -> dict[str, Any]:
    """Return a search as dicts and lists."""
    return {
        "searched": search_document(plans.counts, plans.axes),
        "plans": [of_training(step, size, tokens) for step in plans.steps[:top]],
        "closest": None if plans.nearest is None else of_training(plans.nearest, size, tokens),
    }


def of_inference(service: ServedBatch, size: float | None) -> dict[str, Any]:
    """Return an inference batch as dicts and lists."""
    return {
        "phase": service.phase,
        "tp": service.tp,
        "replicas": service.replicas,
        "dtype": service.dtype,
        "weights": service.formats,
        "batch": service.batch,
        "prompt": service.prompt,
        "output": service.output,
        "seconds": service.seconds,
        "shares_s": service.shares,
        "ttft_s": service.ttft,
        "steps_s": None if service.steps is None else [step.seconds for step in service.steps],
        "total_s": service.total,
        "tokens_per_s": service.tokens_per_second,
        "memory": _memory(service.memory, size),
        "fits": service.verdict == "fits",
        "verdict": service.verdict,
        "capacity_tokens": service.capacity,
    }


def of_batch(forward: InferencePass, examples: int, dtype: str, size: float | None) -> dict[str, Any]:
    """Return a batch through a network as dicts and lists."""
    return {
        "phase": "forward",
        "dtype": dtype,
        "batch": examples,
        "seconds": forward.seconds,
        "shares_s": dict(forward.shares),
        "examples_per_s": examples / forward.seconds,
        "memory": _memory(forward.memory, size),
        "fits": forward.verdict == "fits",
        "verdict": forward.verdict,
    }


def _memory(found: Footprint, size: float | None) -> dict[str, Any]:
    kinds = {kind: getattr(found, kind) for kind in KINDS}
    return {**kinds, "total": found.total, "spread": found.spread, "size": size, "stage": found.stage}


# ---- text ----


def _tables(shares: Mapping[str, float], found: Footprint) -> Iterator[str]:
    """Yield two tables next to each other: time by kind of work and memory by kind, largest first."""
    total = math.fsum(shares.values())
    work = sorted(((seconds, name) for name, seconds in shares.items() if seconds > 0), reverse=True)
    held = sorted(((getattr(found, kind), kind) for kind in KINDS if getattr(found, kind) > 0), reverse=True)
    left = _shared("activity", "time", [(NAMES.get(name, name), format_quantity(time, "s"), time / total) for time, name in work])
    rows = [(SAID.get(kind, kind), format_quantity(size, "B"), size / found.total) for size, kind in held]
    right = _shared("memory", "per GPU", rows, indent=0)
    width = max(map(len, left)) + GAP
    for time_line, memory_line in zip_longest(left, right, fillvalue=""):
        yield f"{time_line:<{width}}{memory_line}".rstrip()


def _shared(title: str, amount: str, rows: Sequence[tuple[str, str, float]], indent: int = 2) -> list[str]:
    return align_columns([
        Column(title, [name for name, _, _ in rows], right=False),
        Column(amount, [text for _, text, _ in rows]),
        Column("share", [f"{bar(share)} {format_share(share):>6}" for _, _, share in rows], right=False),
    ], indent=indent)  # fmt: skip


def _fits(found: Footprint, verdict: str, size: float | None, where: str) -> str:
    has = "" if size is None else f" of {format_quantity(size, 'B')}"
    return f"{format_quantity(found.total, 'B')}{has}{where}: {verdict.partition(' on ')[0]}"


def _part(fraction: float) -> str:
    return format_quantity(fraction, "%", 3)
