"""The measure of a service: p95 latency or TTFT, or throughput if all requests arrive at once."""

from __future__ import annotations

from typing import Final

from hwsim.families_interface import family_reports
from hwsim.records import dataclass
from hwsim.results.result import Result

TIMES: Final = frozenset({"ttft_p95", "tpot_p95", "latency_p95"})  # measures in seconds; the others are rates
WORDS: Final = {"ttft_p95": "time to first token (p95)", "latency_p95": "latency (p95)", "tokens_per_s": "tokens per second"}


@dataclass(frozen=True, slots=True)
class ServiceMeasure:
    """The measure of a service.

    Args:
        service: name of its job; "" if the workload has only one.
        name: name in `expect:`.
        value: value in SI units.
        values: (name, value) of all displayed measures.
        wait_s: p95 waiting time for the first iteration (s).
        concurrent: whether another job runs too, although arrivals set the makespan.
    """

    service: str
    name: str
    value: float
    values: tuple[tuple[str, float], ...]
    wait_s: float = 0.0
    concurrent: bool = False

    @property
    def words(self) -> str:
        """Measure in words."""
        return WORDS[self.name] + (f" of {self.service}" if self.service else "")

    def gain(self, after: ServiceMeasure) -> float:
        """Return the factor by which the measure improves with a change.

        >>> fast, slow = ServiceMeasure("", "ttft_p95", 0.1, ()), ServiceMeasure("", "ttft_p95", 0.2, ())
        >>> slow.gain(fast), ServiceMeasure("", "tokens_per_s", 100.0, ()).gain(ServiceMeasure("", "tokens_per_s", 150.0, ()))
        (2.0, 1.5)
        """
        better, worse = (after.value, self.value) if self.name == "tokens_per_s" else (self.value, after.value)
        return better / worse if worse > 0 else float("inf")


def measure(result: Result, like: ServiceMeasure | None = None, *, arrivals: float = 0.0) -> ServiceMeasure | None:
    """Return the measure of the first service of a run; None if arrivals do not set the makespan.

    Args:
        result: result.
        like: measure of another run of the same service.
        arrivals: share of the run spent waiting for requests.
    """
    found = (facts.measure(result, like, arrivals) for facts in family_reports(result))
    return next((measured for measured in found if measured is not None), None)
