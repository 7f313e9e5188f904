"""Ranges of the times of a served model: errors of served runs that others measured.

The half width of a time is found on measured runs whose model on that GPU was left out. If the GPU's kernels are a class
default, their GPU was left out. Errors of first tokens and of the time between tokens are not alike.

**Source**: `errors.yaml`, regimes `ttft`, `tpot`, `e2e` and `throughput`, of models with experts and without.
**Range**: another version of the server, other prompts and a host that is busy with others move times further.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from hwsim.families.serving.results.statistics import ServiceStatistics
from hwsim.origins import Case
from hwsim.results.errors import table

LEVEL: Final = 90
OF_GPU: Final[Mapping[Case, Case]] = {"known": "source", "stated": "source"}  # this model on this GPU was not measured
TOPICS: Final[Mapping[str, str]] = {"ttft": "ttft", "tpot": "tpot", "latency": "e2e", "tokens_per_s": "throughput"}


class Sure(NamedTuple):
    """The range of a measure of nine of ten such services, as parts of what is said of this one.

    Args:
        measure: "ttft", "tpot", "latency" or "tokens_per_s". half: half width, as a logarithm.
        rows, units: measured runs behind it, and models on GPUs, or GPUs, that were left out in turn.
    """

    measure: str
    case: Case
    half: float
    rows: int
    units: int

    @property
    def low(self) -> float:
        return math.exp(-self.half)

    @property
    def high(self) -> float:
        return math.exp(self.half)


def sure_of(service: ServiceStatistics) -> tuple[Sure, ...]:
    """Each measure with its range; none of a network that writes no tokens, nor of times that grow with the run."""
    if not service.kind:
        return ()
    case = OF_GPU.get(service.case, service.case)
    has_range = {
        "ttft": service.first_token is not None and not service.overloaded,
        "tpot": service.each_token is not None,
        "latency": not service.overloaded,
        "tokens_per_s": not service.keeps_up,
    }
    measured = table()
    ranges = (
        (measure, measured.errors(f"{topic}/{service.kind}", case)) for measure, topic in TOPICS.items() if has_range[measure]
    )
    return tuple(
        Sure(measure, case, error.half[LEVEL], error.rows, error.units) for measure, error in ranges if error is not None
    )
