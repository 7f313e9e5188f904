"""Estimates of models as text or JSON (`hwsim: estimate/1`)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from hwsim.formats import format_quantity, format_share, lasting, prefixed
from hwsim.models.plan_words import LONGEST, assumed, plan_text
from hwsim.models.search import not_tried
from hwsim.results import invariants
from hwsim.views.interval import say as intervals
from hwsim.views.kit.failing import as_dict, failing_lines, saved_as_dict, saved_lines
from hwsim.views.kit.lines import above, bar, titled
from hwsim.views.kit.table import table

if TYPE_CHECKING:
    from hwsim.costs.bill import Bill
    from hwsim.models import Footprint, ParallelPlan, Step
    from hwsim.models.inference import Pass, Service
    from hwsim.models.search import Searched
    from hwsim.results.failing import Checkpoints, Failing
    from hwsim.results.interval import Interval

NAMES: Final[Mapping[str, str]] = {
    "convolution": "convolutions",
    "matmul": "matrix products",
    "attention": "attention",
    "elementwise": "elementwise",
    "output": "output and loss",
    "tp": "tensor parallel",
    "cp": "context parallel",
    "ep": "expert parallel",
    "pp": "sends between stages",
    "dp": "data parallel",
    "bubble": "bubble",
    "accumulate": "adding gradients",
    "optimizer": "optimizer",
    "host": "host",
}
KINDS: Final = ("weights", "gradients", "optimizer", "activations", "cache", "buffers")
SAID: Final[Mapping[str, str]] = {"cache": "keys and values", "optimizer": "optimizer states"}


@invariants.guarded
def training(
    step: Step,
    title: str,
    framework: str,
    size: float | None,
    tokens: float | None = None,
    sure: Interval | None = None,
    fails: tuple[Checkpoints, Failing] | None = None,
    bill: Bill | None = None,
) -> str:
    """A step in a screenful: its time and shares, what the GPUs come to, and their memory."""
    laid = step.laid
    out = [title, *titled("plan", f"{plan_text(laid)}; {framework}")]
    batch = f"{laid.plan.global_batch:,} examples"
    if laid.unit == "tokens":
        batch = f"{laid.plan.global_batch:,} sequences of {laid.sequence:,} tokens ({prefixed(laid.tokens)} tokens)"
    out += titled("step", f"{format_quantity(step.seconds, 's')} for {batch}")
    out += _sure(sure, "steps")
    per_gpu = step.tokens_per_second / laid.gpus
    out += titled("throughput", f"{prefixed(step.tokens_per_second)} {laid.unit}/s, {prefixed(per_gpu)} on each GPU")
    out += titled("utilisation", f"MFU {_part(step.mfu)}, HFU {_part(step.hfu)}{above(step.mfu)}")
    out += titled("memory", _fits(step.memory, step.verdict, size, f", on a GPU of stage {step.memory.stage}"))
    if tokens is not None:
        out += titled("training", f"{prefixed(tokens)} tokens take {lasting(tokens / step.tokens_per_second, 3)}")
    if fails is not None:
        for name, line in (*saved_lines(fails[0]), *failing_lines(fails[1], sure)):
            out += titled(name, line)
    out += _bill(bill)
    return "\n".join([*out, "", *_shares(step.shares), "", *_kinds(step.memory)]) + "\n"


def _bill(bill: Bill | None) -> list[str]:
    """The lines of energy and cost."""
    if bill is None:
        return []
    from hwsim.views.summary import costs

    return [line for title, text in costs.lines(bill) for line in titled(title, text)]


def _sure(sure: Interval | None, runs: str = "runs") -> list[str]:
    """The lines of an interval."""
    return [] if sure is None else [line for title, text in intervals.lines(sure, runs=runs) for line in titled(title, text)]


@invariants.guarded
def searched(
    plans: Searched,
    title: str,
    framework: str,
    size: float | None,
    top: int,
    tokens: float | None = None,
    bill: Bill | None = None,
) -> str:
    """The plans that fit, fastest first.

    bill: the bill of the first plan.
    """
    out = [title, *titled("plans", f"{plans.tried:,} tried, {plans.fitting:,} fit; {framework}")]
    if plans.left:
        out += titled("not tried", not_tried(plans.left))
    if any(plans.left.values()):
        out += titled("no best", "sequences this long are usually split: `--plan every`, or --cp")
    if plans.nearest is not None:
        laid = plans.nearest.laid
        out += titled("nearest", f"{plan_text(laid)}: {_fits(plans.nearest.memory, plans.nearest.verdict, size, '')}")
        return "\n".join(out) + "\n"
    unit = plans.steps[0].laid.unit
    if unit == "tokens":
        laid = plans.steps[0].laid
        out += titled(
            "batch", f"{laid.plan.global_batch:,} sequences of {laid.sequence:,} tokens{LONGEST if assumed(laid) else ''}"
        )
    titles = ["step", "MFU", f"{unit}/s", "memory", "tp", "pp", "dp", "batch", "sharding", "recompute"]
    rows = []
    more = _more_axes(plans.steps[:top])
    titles[6:6] = more
    for step in plans.steps[:top]:
        plan = step.laid.plan
        rows.append([
            format_quantity(step.seconds, "s"), _part(step.mfu), prefixed(step.tokens_per_second),
            format_quantity(step.memory.total, "B") + ("" if step.verdict == "fits" else " tight"),
            str(plan.tp), str(plan.pp), *(_axis(plan, name) for name in more), str(step.laid.dp),
            f"{plan.microbatch} x {step.laid.microbatches}", _sharding(plan), plan.recompute,
        ])  # fmt: skip
        if tokens is not None:
            rows[-1].append(lasting(tokens / step.tokens_per_second, 3))
    titles += [] if tokens is None else [f"{prefixed(tokens)} tokens"]
    out += ["", *table([titles, *rows], " ".join([">"] * len(titles)))]
    left = plans.fitting - len(rows)
    if left:
        following = plans.steps[min(top, len(plans.steps) - 1)]
        out.append(f"  and {left:,} more, none faster than {format_quantity(following.seconds, 's')}")
    if bill is not None:
        out += ["", "the first of them", *_bill(bill)]
    return "\n".join(out) + "\n"


@invariants.guarded
def inference(
    service: Service, title: str, framework: str, size: float | None, sure: Interval | None = None, bill: Bill | None = None
) -> str:
    """A batch in a screenful."""
    groups = f"; {service.copies} such groups" if service.copies > 1 else ""
    out = [title, *titled("plan", f"tp {service.tp}, {service.dtype}; {framework}{groups}")]
    if service.formats is not None:
        out += titled("weights", service.formats)
    prompts = f"{service.batch} x {service.prompt:,} tokens"
    if service.steps is None:
        out += titled("prefill", f"{format_quantity(service.seconds, 's')} for {prompts}")
    else:
        begin, end = service.steps
        began = f"{format_quantity(begin.seconds, 's')} after {service.prompt:,} tokens"
        ended = f"{format_quantity(end.seconds, 's')} at the end"
        out += titled("token", f"{format_quantity(service.seconds, 's')} in the mean: {began}, {ended}")
        waits = f", {format_quantity(service.waits, 's')} of it at the server's door" if service.waits else ""
        out += titled("first token", f"{format_quantity(service.first_token, 's')} for {prompts}{waits}")
        out += titled("all", f"{format_quantity(service.total, 's')} until each prompt has its {service.output:,} tokens")
    out += _sure(sure, "prompts" if service.steps is None else "tokens")
    throughput = f"{prefixed(service.tokens_per_second)} tokens/s"
    if service.copies > 1:
        throughput += f", {prefixed(service.copies * service.tokens_per_second)} of all groups"
    out += titled("throughput", throughput)
    out += titled("memory", _fits(service.memory, service.verdict, size, " on each GPU"))
    if service.capacity == 0:
        out += titled("room", "none for keys and values: the weights leave nothing of what the server takes")
    elif service.capacity is not None:
        held = f"{service.held:,} such sequences" if service.held else "not one such sequence"
        out += titled("room", f"keys and values of {service.capacity:,} tokens in what the server takes, {held}")
    out += _bill(bill)
    return "\n".join([*out, "", *_shares(service.shares), "", *_kinds(service.memory)]) + "\n"


@invariants.guarded
def batch(
    forward: Pass,
    examples: int,
    dtype: str,
    title: str,
    framework: str,
    size: float | None,
    sure: Interval | None = None,
    bill: Bill | None = None,
) -> str:
    """A batch through a network in a screenful."""
    out = [title, *titled("plan", f"on one GPU, {dtype}; {framework}")]
    out += titled("batch", f"{format_quantity(forward.seconds, 's')} for {examples:,} example" + ("s" if examples > 1 else ""))
    out += _sure(sure, "batches")
    out += titled("throughput", f"{prefixed(examples / forward.seconds)} examples/s")
    out += titled("memory", _fits(forward.memory, forward.verdict, size, " on the GPU"))
    out += _bill(bill)
    return "\n".join([*out, "", *_shares(forward.shares), "", *_kinds(forward.memory)]) + "\n"


# ---- JSON ----


def of_training(
    step: Step,
    size: float | None,
    tokens: float | None = None,
    fails: tuple[Checkpoints, Failing] | None = None,
    sure: Interval | None = None,
) -> dict[str, Any]:
    """A step as dicts and lists: seconds, bytes."""
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


def _more_axes(steps: Sequence[Step]) -> list[str]:
    """Further axes that one of these plans splits."""
    used = [name for name in ("cp", "ep", "chunks") if any(getattr(step.laid.plan, name) > 1 for step in steps)]
    split = any(step.laid.plan.tp > 1 and not step.laid.plan.sequence_parallel for step in steps)
    return [*used, *(["sequence"] if split else [])]


def _sharding(plan: ParallelPlan) -> str:
    """The sharding of the copies, by the name of a file's key."""
    return plan.sharding if plan.level else "none"


def _axis(plan: ParallelPlan, name: str) -> str:
    if name == "sequence":
        return "split" if plan.sequence_parallel else "whole"
    return str(getattr(plan, name))


def of_search(plans: Searched, size: float | None, top: int, tokens: float | None = None) -> dict[str, Any]:
    """A search as dicts and lists."""
    return {
        "tried": plans.tried,
        "fitting": plans.fitting,
        "not_tried": dict(plans.left),
        "plans": [of_training(each, size, tokens) for each in plans.steps[:top]],
        "nearest": None if plans.nearest is None else of_training(plans.nearest, size, tokens),
    }


def of_inference(service: Service, size: float | None) -> dict[str, Any]:
    """A batch as dicts and lists."""
    return {
        "phase": service.phase,
        "tp": service.tp,
        "groups": service.copies,
        "dtype": service.dtype,
        "weights": service.formats,
        "batch": service.batch,
        "prompt": service.prompt,
        "output": service.output,
        "seconds": service.seconds,
        "shares_s": service.shares,
        "first_token_s": service.first_token,
        "steps_s": None if service.steps is None else [each.seconds for each in service.steps],
        "total_s": service.total,
        "tokens_per_s": service.tokens_per_second,
        "memory": _memory(service.memory, size),
        "fits": service.verdict == "fits",
        "verdict": service.verdict,
        "capacity_tokens": service.capacity,
    }


def of_batch(forward: Pass, examples: int, dtype: str, size: float | None) -> dict[str, Any]:
    """A batch through a network as dicts and lists."""
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


def _shares(shares: Mapping[str, float]) -> Iterator[str]:
    """A row for each, the largest first."""
    total = math.fsum(shares.values())
    shown = sorted(((each, name) for name, each in shares.items() if each > 0), reverse=True)
    rows = [(NAMES.get(name, name), format_quantity(each, "s"), each / total) for each, name in shown]
    yield from _barred(("kind of work", "time", "share"), rows)


def _kinds(found: Footprint) -> Iterator[str]:
    """A row for each kind of memory that is used."""
    held = [(kind, getattr(found, kind)) for kind in KINDS]
    rows = [(SAID.get(kind, kind), format_quantity(each, "B"), each / found.total) for kind, each in held if each > 0]
    yield from _barred(("memory", "on a GPU", "share"), rows)


def _barred(titles: tuple[str, str, str], rows: Sequence[tuple[str, str, float]]) -> Iterator[str]:
    name = max(map(len, NAMES.values()))
    cells = ((said, each, f"{bar(share)} {format_share(share):>6}") for said, each, share in rows)
    yield from table([titles, *cells], f"<{name} > <")


def _fits(found: Footprint, verdict: str, size: float | None, where: str) -> str:
    has = "" if size is None else f" of {format_quantity(size, 'B')}"
    needed = f"{format_quantity(found.total, 'B')}{has}{where}"
    told = verdict.partition(" on ")[0]
    return f"OUT OF MEMORY: {needed}: {told}" if told.startswith("does not fit") else f"{needed}: {told}"


def _part(fraction: float) -> str:
    return format_quantity(fraction, "%", 3)
