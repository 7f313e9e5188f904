"""What a run has beside its time: columns of a study, by what its workload is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hwsim.explain.starving import pipelines
from hwsim.results.result import Result
from hwsim.results.timeline import FEMTO
from hwsim.units import format_quantity

UNITS: Final = {
    "step_s": ("step", "s"),
    "tokens_per_s": ("tokens/s", "1"),
    "samples_per_s": ("samples/s", "1"),
    "mfu": ("MFU", "%"),
    "ttft_p95_s": ("TTFT p95", "s"),
    "tpot_p95_s": ("TPOT p95", "s"),
    "requests_per_s": ("requests/s", "1"),
    "batches_per_s": ("batches/s", "1"),
    "busy": ("GPU busy", "%"),
}  # column -> (its title in the table, unit)
SERVICE: Final = "requests_per_s"  # only a service has it


def measures(result: Result) -> tuple[tuple[str, float], ...]:
    """(column, value in SI units) in the order of `UNITS`: of the first training, service and pipeline."""
    found = dict(_found(result))
    return tuple((name, found[name]) for name in UNITS if name in found)


def shown(column: str, value: float | None) -> str:
    """A cell of the table.

    >>> shown("mfu", 0.371), shown("step_s", 0.2), shown("requests_per_s", 3.94), shown("mfu", None)
    ('37.1 %', '200 ms', '3.94', '-')
    """
    if value is None:
        return "-"
    _, unit = UNITS[column]
    return f"{100 * value:.3g} %" if unit == "%" else format_quantity(value, unit)


def _found(result: Result) -> Iterator[tuple[str, float]]:
    lines = pipelines(result.timeline)
    for trained in result.trainings[:1]:
        yield "step_s", trained.step_s
        yield ("tokens_per_s" if trained.unit == "tokens" else "samples_per_s"), trained.rate
        yield "mfu", trained.mfu
    for service in result.serving[:1]:
        if service.first_token is not None:
            yield "ttft_p95_s", service.first_token.p95
        if service.each_token is not None:
            yield "tpot_p95_s", service.each_token.p95
        yield "requests_per_s", service.requests_per_s
    if lines:
        phases = [(each.epochs or (each.whole,))[-1] for each in lines]
        yield "batches_per_s", sum(each.batches * FEMTO / each.time_fs for each in phases if each.time_fs)
        yield "busy", sum(each.busy for each in phases) / len(phases)
