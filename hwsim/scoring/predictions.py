"""The predicted numbers of a run by name, from its document `hwsim: result/2`, with their 90 % intervals.

time; NAME.makespan                          the run, and each job
step, mfu, tokens_per_s, images_per_s        a training: step time and rates, with the interval of the run
ttft_mean, ttft_p50, ..., tpot_*, latency_*  a served model: latencies, each with the interval of its kind
tokens_per_s, requests_per_s                 a served model: rates; without an interval if arrivals set them
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from hwsim.spec import SpecError
from hwsim.units import COUNT, RATE, TIME, Dimension
from hwsim.views.interval.say import sides

RESULT: Final = "result/2"
PARTS: Final = ("mean", "p50", "p95", "p99")
LATENCIES: Final = ("ttft", "tpot", "itl", "latency", "queueing")


class Prediction(NamedTuple):
    """A predicted number in SI units.

    Args:
        predicted: number of the simulation.
        low, high: ends of its 90 % interval, with the user's earlier measurements; equal to the number without an interval.
        dimension: dimension of the number.
        regime: regime of its error in `errors.yaml`; "" if it mixes several, or has no interval.
        power: exponent of the time in the number: 1 for a time, -1 for a rate that follows from it.
    """

    predicted: float
    low: float
    high: float
    dimension: Dimension
    regime: str
    power: int = 1

    def rate(self, value: float, dimension: Dimension) -> Prediction:
        """Return a rate with the relative error of this time."""
        low, high = (value * self.predicted / end for end in (self.high, self.low))
        return Prediction(value, low, high, dimension, self.regime, -1)

    @property
    def unit(self) -> str:
        """Unit of the number."""
        return self.dimension.unit

    @property
    def has_interval(self) -> bool:
        """Whether the number has an interval."""
        return self.low < self.high

    @property
    def relative_range(self) -> str:
        """The interval relative to the number, such as `-10/+11 %`; "-" without an interval."""
        return sides(self.low / self.predicted, self.high / self.predicted) if self.has_interval else "-"


def predictions(document: Mapping[str, Any]) -> dict[str, Prediction]:
    """Return the predictions of a run by name.

    Raises:
        SpecError: it is not the document of a run with its interval.
    """
    if document.get("hwsim") != RESULT or "regime" not in (document["interval"] or {}):
        message = f"expected a run (hwsim: {RESULT}) with its interval, got '{document.get('hwsim', 'no format')}'"
        raise SpecError.of(None, message, "write it with: hwsim simulate MACHINE WORKLOAD --json")
    sure, seconds = document["interval"], float(document["makespan_s"])
    low, high = (float(sure.get(end, seconds)) for end in ("low_s", "high_s"))
    found = {"time": Prediction(seconds, low, high, TIME, str(sure["regime"]))}
    for key in ("trainings", "serving"):
        for entry in document[key]:
            prefix = f"{entry['name']}." if len(document[key]) > 1 else ""
            numbers = _of_service(entry) if key == "serving" else _of_training(entry, found["time"])
            found |= {prefix + name: prediction for name, prediction in numbers}
    return found


def _of_training(training: Mapping[str, Any], run: Prediction) -> Iterator[tuple[str, Prediction]]:
    step = float(training["step_s"])
    low, high = (step * end / run.predicted for end in (run.low, run.high))
    yield "step", run._replace(predicted=step, low=low, high=high)
    for key, value in training.items():
        if value is not None and (key == "mfu" or key.endswith("_per_s")):
            yield key, run.rate(float(value), COUNT if key == "mfu" else RATE)


def _of_service(service: Mapping[str, Any]) -> Iterator[tuple[str, Prediction]]:
    values = {(key, f"{key}_{part}"): service[key][f"{part}_s"] for key in LATENCIES if service.get(key) for part in PARTS}
    values |= {("tokens_per_s", key): service[key] for key in ("tokens_per_s", "requests_per_s")}
    for (key, name), value in values.items():
        sure = service["interval"].get(key, {"low": 1.0, "high": 1.0, "regime": ""})
        if math.isfinite(value) and value > 0:
            dimension = TIME if key in LATENCIES else RATE
            yield name, Prediction(value, value * sure["low"], value * sure["high"], dimension, sure["regime"])
