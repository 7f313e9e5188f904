"""Ranges of the times of a served model: errors of served runs that others measured.

The half width of a time is found on measured runs whose model on that GPU was left out. If the GPU's kernels are a class
default, their GPU was left out. Errors of first tokens and of the time between tokens are not alike.

**Source**: `errors.yaml`, regimes `ttft`, `tpot`, `e2e` and `throughput`, of models with experts and without.
**Range**: another version of the server, other prompts and a host that is busy with others move times further.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from hwsim.families.serving.results.statistics import ServiceStatistics
from hwsim.origins import Case
from hwsim.results.errors import table
from hwsim.results.felt import felt
from hwsim.results.interval import LEVEL, NORMAL, Interval

OF_GPU: Final[Mapping[Case, Case]] = {"known": "source", "stated": "source"}  # this model on this GPU was not measured
TOPICS: Final[Mapping[str, str]] = {"ttft": "ttft", "tpot": "tpot", "latency": "e2e", "tokens_per_s": "throughput"}


def sure_of(service: ServiceStatistics) -> Mapping[str, Interval]:
    """The range of each measure of nine of ten such services, as parts of what is said of this one.

    None of a network that writes no tokens, nor of times that grow with the run.
    """
    has_range = {
        "ttft": service.first_token is not None and not service.overloaded,
        "tpot": service.each_token is not None,
        "latency": not service.overloaded,
        "tokens_per_s": not service.keeps_up,
    }
    ranges = {
        topic: felt(service, service.moved, partial(_measured, topic)) for topic in TOPICS if service.kind and has_range[topic]
    }
    return {measure: sure.of(1.0) for measure, sure in ranges.items() if sure.units}


def _measured(measure: str, service: ServiceStatistics) -> Interval:
    """By the errors of measured services; without units where none was."""
    values, case = service.values(), OF_GPU.get(service.case, service.case)
    error = table().errors(f"{TOPICS[measure]}/{service.kind}", case)
    half, rows, units = (error.half[LEVEL], error.rows, error.units) if error is not None else (0.0, 0, 0)
    value = values.get(measure, values.get(f"{measure}_mean", 0.0))
    return Interval(value, half, half, LEVEL, "measured", case, rows, units, 0.0, half / NORMAL[LEVEL], ())
