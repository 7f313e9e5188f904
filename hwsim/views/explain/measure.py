"""The measure of a service: the time to its first token, or its tokens per second if all requests come at once."""

from __future__ import annotations

from typing import Final

from hwsim.doors import facts_of
from hwsim.records import dataclass
from hwsim.results.result import Result

TIMES: Final = frozenset({"ttft_p95", "tpot_p95", "latency_p95"})  # in seconds; the others are rates
WORDS: Final = {
    "ttft_p95": "time to first token (p95)",
    "latency_p95": "latency (p95)",
    "tokens_per_s": "tokens per second",
}


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of a service.

    Args:
        service: name of its job; "" if the workload has no other.
        name: its name in `expect:`.
        value: in SI units.
        values: (name, value) of all measures that are shown.
        wait_s: longest wait (seconds) for the first iteration among 95 % of the requests.
        concurrent: another job runs too, but arrivals decide when the run ends.
    """

    service: str
    name: str
    value: float
    values: tuple[tuple[str, float], ...]
    wait_s: float = 0.0
    concurrent: bool = False

    @property
    def words(self) -> str:
        """The measure in words."""
        of = f" of {self.service}" if self.service else ""
        return WORDS[self.name] + of

    def gain(self, after: Measure) -> float:
        """Factor by which the measure is better after a change.

        >>> fast, slow = Measure("", "ttft_p95", 0.1, ()), Measure("", "ttft_p95", 0.2, ())
        >>> slow.gain(fast), Measure("", "tokens_per_s", 100.0, ()).gain(Measure("", "tokens_per_s", 150.0, ()))
        (2.0, 1.5)
        """
        better, worse = (after.value, self.value) if self.name == "tokens_per_s" else (self.value, after.value)
        return better / worse if worse > 0 else float("inf")


def measure(result: Result, like: Measure | None = None, *, arrivals: float = 0.0) -> Measure | None:
    """The measure of a run whose time arrivals set: of its first service; None if something else decides when the run ends.

    Args:
        like: the measure of another run of the service.
        arrivals: part of the run that waits for requests to come.
    """
    found = (facts.measure(result, like, arrivals) for facts in facts_of(result))
    return next((each for each in found if each is not None), None)
