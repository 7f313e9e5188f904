"""The 90 % intervals of a served model's latencies and throughput, from errors of measured services.

The half-width is cross-validated: measurements of the same model on the same GPU are held out. If the kernels of the GPU are a
class default, all measurements of a GPU are held out. TTFT, TPOT, latency and throughput have separate errors.

**Source**: `errors.yaml`, regimes `ttft`, `tpot`, `e2e` and `throughput`, of models with experts and without.
**Range**: other server versions, other prompts and a busy host cause larger errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from hwsim.families.serving.results.statistics import ServiceStatistics
from hwsim.origins import Case
from hwsim.results.errors import NORMAL, Update, table_of
from hwsim.results.interval import LEVEL, Interval
from hwsim.results.machine_errors import widen_by_machine_errors

OF_GPU: Final[Mapping[Case, Case]] = {"known": "source", "stated": "source"}  # this model was not measured on this GPU
TOPICS: Final[Mapping[str, str]] = {"ttft": "ttft", "tpot": "tpot", "latency": "e2e", "tokens_per_s": "throughput"}


def serving_intervals(service: ServiceStatistics) -> Mapping[str, Interval]:
    """Return the 90 % interval of each measure, relative to its value.

    Models without output tokens have none, and latencies of an overloaded service have none.
    """
    has_range = {
        "ttft": service.first_token is not None and not service.overloaded,
        "tpot": service.each_token is not None,
        "latency": not service.overloaded,
        "tokens_per_s": not service.stable,
    }
    ranges = {
        topic: widen_by_machine_errors(service, service.moved, partial(_measured, topic))
        for topic in TOPICS
        if service.kind and has_range[topic]
    }
    return {measure: sure.of(1.0) for measure, sure in ranges.items() if sure.units}


def _measured(measure: str, service: ServiceStatistics) -> Interval:
    """Return the interval from the errors of measured services; `units` is 0 if none was measured."""
    values, case = service.values(), OF_GPU.get(service.case, service.case)
    errors_of, regime = table_of(service.scores), f"{TOPICS[measure]}/{service.kind}"
    error, own, half, rows, units = errors_of.errors(regime, case), Update(), 0.0, 0, 0
    if error is not None:
        half, rows, units = error.half[LEVEL], error.rows, error.units
        own = errors_of.update(regime, error, half, LEVEL)
        half = own.half.get(LEVEL, half)
    value = values.get(measure, values.get(f"{measure}_mean", 0.0))
    return Interval(
        value, half, half, LEVEL, "measured", case, rows, units, 0.0, half / NORMAL[LEVEL], (), own.correction,
        errors_of.cited(own.runs), regime,
    )  # fmt: skip
