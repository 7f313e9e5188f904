"""Pipelines in the summary and in the JSON document: how fast, how busy the last stage is, and what it waits for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, Final

from hwsim.results.timeline import FEMTO
from hwsim.units import format_quantity, format_share
from hwsim.views.explain.cause import family
from hwsim.views.explain.starving import CHECKPOINTS, Phase, PipelineUse

LEAST: Final = 0.0005  # part of the time that is still told
ALIKE: Final = 1e-3  # epochs and programs whose rates agree so far are told as one
MOST: Final = 4  # causes
PROGRAMS: Final = 64  # in the JSON document


def rows(found: Sequence[PipelineUse]) -> Iterator[tuple[str, str]]:
    """(title, text) of the lines of the summary: one for every sort of epoch, of the same stages together."""
    for _, same in groupby(found, lambda each: tuple((stage.name, len(each.epochs)) for stage in each.whole.stages)):
        programs = list(same)
        epochs = [[each.epochs[number] for each in programs] for number in range(len(programs[0].epochs))]
        shown = [list(group) for _, group in groupby(epochs, _alike())]
        for group in shown:
            title = "pipeline" if len(epochs) == 1 else _title(group)
            yield title, _text(programs, group[-1])
        yield from _next(programs, shown[-1][-1]) if shown else ()


def _alike() -> Any:
    """A key that is the same for neighbours with nearly the same rate."""
    last = [-1.0]

    def key(phases: list[Phase]) -> float:
        rate = math.fsum(each.rate for each in phases)
        if abs(rate - last[0]) > ALIKE * rate:
            last[0] = rate
        return last[0]

    return key


def _title(group: list[list[Phase]]) -> str:
    first, last = group[0][0].epoch, group[-1][0].epoch
    return f"epoch {first}" if first == last else f"epochs {first}-{last}"


def _text(programs: Sequence[PipelineUse], phases: Sequence[Phase]) -> str:
    rate = math.fsum(each.rate for each in phases)
    samples = math.fsum(each.rate * program.batch for each, program in zip(phases, programs, strict=True))
    fast = f"{_number(samples)} samples/s ({_number(rate)} batches/s)" if samples else f"{_number(rate)} batches/s"
    time = sum(each.time_fs for each in phases) or 1
    device = programs[0].device if len({each.device for each in programs}) == 1 else family(programs[0].device)
    idle = sum(each.idle_fs for each in phases) / time
    busy = [each.busy for each in phases]
    least = min(range(len(busy)), key=busy.__getitem__)
    uneven = f", the least {programs[least].device} {format_share(busy[least])}" if max(busy) - min(busy) > 0.01 else ""
    said = f"{fast}; {device or 'the last stage'} busy {format_share(1 - idle)}{uneven}"
    if idle < LEAST:
        return said
    spent: dict[str, int] = {}
    for each in [wait for phase in phases for wait in phase.waits]:
        name = f"{each.name} on {family(each.device) if len(phases) > 1 else each.device}" if each.device else each.name
        spent[name] = spent.get(name, 0) + each.time_fs
    causes = sorted(spent.items(), key=lambda each: (-each[1], each[0]))
    shown = [f"{name} {format_share(wait / time)}" for name, wait in causes[:MOST] if wait >= LEAST * time]
    return f"{said}, waits {format_share(idle)} of the time, for: {', '.join(shown)}"


def _next(programs: Sequence[PipelineUse], phases: Sequence[Phase]) -> Iterator[tuple[str, str]]:
    """What sets the pace, and how much would come of making it faster."""
    phase = phases[0]
    first, then = phase.slowest
    if then is None or first.rate == float("inf"):
        return
    many = "each " if len(programs) > 1 else ""
    fast = f"{many}{_number(first.rate)} batches/s"
    faster = "at any rate" if then.rate == float("inf") else f"at {_number(then.rate)} batches/s"
    if first.name == CHECKPOINTS:
        yield "", f"checkpoints set the pace ({fast}); were they free, {then.name} would, {faster}"
        return
    if first.under_way < first.at_once:
        fast += f": `ahead` lets {first.under_way} of its {first.at_once} workers work"
    alone = phase.stages[-1]
    if first is alone and phase.saving_fs >= LEAST * phase.time_fs:
        fast += f", {_number(phase.rate)} with its checkpoints"
    if first not in phase.stages:
        yield "", f"waiting for {first.name} sets the pace ({fast}); without it {then.name} would, {faster}"
        return
    yield "", f"{first.name} sets the pace ({fast}); were it faster, {then.name} would, {faster}"


def _number(rate: float) -> str:
    return format_quantity(rate, "1")


def as_dicts(found: Sequence[PipelineUse]) -> list[dict[str, Any]]:
    """For the JSON document: the whole run and the steady part of each epoch; of many programs the first ones."""
    return [
        {
            "program": each.program,
            "device": each.device,
            "batch": each.batch,
            **_phase(each.whole, each.batch),
            "epochs": [{"epoch": phase.epoch, **_phase(phase, each.batch)} for phase in each.epochs],
        }
        for each in found[:PROGRAMS]
    ]


def _phase(phase: Phase, batch: int) -> dict[str, Any]:
    return {
        "batches": phase.batches,
        "start_s": phase.start_fs / FEMTO,
        "end_s": phase.end_fs / FEMTO,
        "batches_per_s": phase.rate,
        "samples_per_s": phase.rate * batch if batch else None,
        "busy": phase.busy,
        "idle_fs": phase.idle_fs,
        "sets_the_pace": phase.slowest[0].name,
        "waits": [
            {"for": each.name, "device": each.device, "time_fs": each.time_fs, "share": each.time_fs / (phase.time_fs or 1)}
            for each in phase.waits
        ],
        "stages": [
            {**{key: value for key, value in asdict(stage).items() if key not in ("busy_fs", "rate", "alone")},
             "busy_s": stage.busy_fs / FEMTO, "batches_per_s": None if stage.rate == float("inf") else stage.rate}
            for stage in phase.stages
        ],
    }  # fmt: skip
