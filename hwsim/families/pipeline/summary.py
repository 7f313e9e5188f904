"""Pipelines in the summary, with the waits of the last stage, and their entries of the JSON document."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from hwsim.families.pipeline.starvation import CHECKPOINTS, BatchRange, PipelineUse
from hwsim.formats import family, format_quantity, format_share
from hwsim.views.kit.document import select_attributes

LEAST: Final = 0.0005  # smallest share of the time that is shown
ALIKE: Final = 1e-3  # relative difference of rates below which epochs are shown as one
MOST: Final = 4  # maximum number of causes
PROGRAMS: Final = 64  # maximum number of programs in the JSON document


def rows(uses: Sequence[PipelineUse]) -> Iterator[tuple[str, str]]:
    """Yield (title, text) of the summary: one line per kind of epoch, with programs of equal stages together."""
    for _, same in groupby(uses, lambda use: tuple((stage.name, len(use.epochs)) for stage in use.whole.stages)):
        programs = list(same)
        epochs = [[program.epochs[number] for program in programs] for number in range(len(programs[0].epochs))]
        shown = [list(group) for _, group in groupby(epochs, _alike())]
        for group in shown:
            title = "pipeline" if len(epochs) == 1 else _title(group)
            yield title, _text(programs, group[-1])
        of = f", in {_title(shown[-1])}" if len(shown) > 1 else ""
        yield from ((label, text + of) for label, text in _next(programs, shown[-1][-1])) if shown else ()


def _alike() -> Any:
    """Return a key function that is equal for neighbours with nearly the same rate."""
    last = [-1.0]

    def key(phases: list[BatchRange]) -> float:
        rate = math.fsum(phase.rate for phase in phases)
        if abs(rate - last[0]) > ALIKE * rate:
            last[0] = rate
        return last[0]

    return key


def _title(group: list[list[BatchRange]]) -> str:
    first, last = group[0][0].epoch, group[-1][0].epoch
    return f"epoch {first}" if first == last else f"epochs {first}-{last}"


def _text(programs: Sequence[PipelineUse], phases: Sequence[BatchRange]) -> str:
    rate = math.fsum(phase.rate for phase in phases)
    samples = math.fsum(phase.rate * program.batch for phase, program in zip(phases, programs, strict=True))
    fast = f"{_number(samples)} samples/s ({_number(rate)} batches/s)" if samples else f"{_number(rate)} batches/s"
    time = sum(phase.time_fs for phase in phases) or 1
    device = programs[0].device if len({program.device for program in programs}) == 1 else family(programs[0].device)
    idle = sum(phase.idle_fs for phase in phases) / time
    busy = [phase.busy for phase in phases]
    least = min(range(len(busy)), key=busy.__getitem__)
    uneven = f", at least {format_share(busy[least])} ({programs[least].device})" if max(busy) - min(busy) > 0.01 else ""
    text = f"{fast}; {device or 'last stage'} busy {format_share(1 - idle)}{uneven}"
    if idle < LEAST:
        return text
    spent: dict[str, int] = {}
    for wait in [wait for phase in phases for wait in phase.waits]:
        name = f"{wait.name} on {family(wait.device) if len(phases) > 1 else wait.device}" if wait.device else wait.name
        spent[name] = spent.get(name, 0) + wait.time_fs
    causes = sorted(spent.items(), key=lambda cause: (-cause[1], cause[0]))
    shown = [f"{name} {format_share(time_fs / time)}" for name, time_fs in causes[:MOST] if time_fs >= LEAST * time]
    return f"{text}, waiting {format_share(idle)}: {', '.join(shown)}"


def _next(programs: Sequence[PipelineUse], phases: Sequence[BatchRange]) -> Iterator[tuple[str, str]]:
    """Yield the bottleneck, and the rate without it."""
    phase = phases[0]
    first, then = phase.slowest
    if then is None or first.rate == float("inf"):
        return
    prefix = "each " if len(programs) > 1 else ""
    fast = f"{prefix}{_number(first.rate)} batches/s"
    faster = "without limit" if then.rate == float("inf") else f"{_number(then.rate)} batches/s"
    if first.name == CHECKPOINTS:
        yield "slowest stage", f"checkpoints ({fast}); next: {then.name}, {faster}"
        return
    if first.in_flight < first.workers:
        fast += f": `ahead` keeps {first.in_flight} of its {first.workers} workers busy"
    alone = phase.stages[-1]
    if first is alone and phase.saving_fs >= LEAST * phase.time_fs:
        fast += f", {_number(phase.rate)} with its checkpoints"
    if first not in phase.stages:
        yield "slowest stage", f"waiting for {first.name} ({fast}); next: {then.name}, {faster}"
        return
    yield "slowest stage", f"{first.name} ({fast}); next: {then.name}, {faster}"


def _number(rate: float) -> str:
    return format_quantity(rate, "1")


def as_dicts(uses: Sequence[PipelineUse]) -> list[dict[str, Any]]:
    """Return the entries of the JSON document: whole run and steady part of each epoch, for at most `PROGRAMS` programs."""
    return [
        {
            **select_attributes(use, "program", "device", "batch"),
            **_phase(use.whole, use.batch),
            "epochs": [{"epoch": phase.epoch, **_phase(phase, use.batch)} for phase in use.epochs],
        }
        for use in uses[:PROGRAMS]
    ]


def _phase(phase: BatchRange, batch: int) -> dict[str, Any]:
    return {
        **select_attributes(phase, "batches", "start_s", "end_s", "busy", "idle_fs", batches_per_s="rate"),
        "samples_per_s": phase.rate * batch if batch else None,
        "bottleneck": phase.slowest[0].name,
        "idle": [
            {"cause": wait.name, **select_attributes(wait, "device", "time_fs"), "share": wait.time_fs / (phase.time_fs or 1)}
            for wait in phase.waits
        ],
        "stages": [
            {
                **select_attributes(stage, "name", "device", "workers", "in_flight", "busy_s"),
                "batches_per_s": None if stage.rate == float("inf") else stage.rate,
            }
            for stage in phase.stages
        ],
    }
