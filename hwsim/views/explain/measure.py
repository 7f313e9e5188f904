"""What a service is measured by: how soon it answers, or how much it writes where all requests come at once."""

from __future__ import annotations

from typing import Final

from hwsim.records import dataclass
from hwsim.results.result import Result

SHOWN: Final = ("ttft_p95", "tpot_p95", "tokens_per_s")
TIMES: Final = frozenset({"ttft_p95", "tpot_p95", "latency_p95"})  # in seconds; the others are rates
FIXED: Final = 0.5  # of the run: from there on arrivals decide when it ends, whatever else runs
WORDS: Final = {
    "ttft_p95": "time to first token (p95)",
    "latency_p95": "latency (p95)",
    "tokens_per_s": "tokens per second",
}


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of a service.

    Args:
        service: name of its job, "" where the workload is nothing else.
        name: as `expect:` calls it.
        value: in SI units.
        values: those of all measures that are shown, by name.
        wait_s: how long 95 % of the requests wait at most until an iteration works on them.
        beside: another job runs, and arrivals decide when the run ends all the same.
    """

    service: str
    name: str
    value: float
    values: tuple[tuple[str, float], ...]
    wait_s: float = 0.0
    beside: bool = False

    @property
    def words(self) -> str:
        """What it is called."""
        of = f" of {self.service}" if self.service else ""
        return WORDS[self.name] + of

    def gain(self, other: Measure) -> float:
        """How many times better the other is.

        >>> fast, slow = Measure("", "ttft_p95", 0.1, ()), Measure("", "ttft_p95", 0.2, ())
        >>> slow.gain(fast), Measure("", "tokens_per_s", 100.0, ()).gain(Measure("", "tokens_per_s", 150.0, ()))
        (2.0, 1.5)
        """
        better, worse = (other.value, self.value) if self.name == "tokens_per_s" else (self.value, other.value)
        return better / worse if worse > 0 else float("inf")


def measure(result: Result, like: Measure | None = None, *, arrivals: float = 0.0) -> Measure | None:
    """The measure of a run's first service; None if something else decides when the run ends.

    like: that of another run of the service.  arrivals: part of the run that waits for requests to come.
    """
    beside = len(result.jobs) > len(result.serving)
    if not result.serving or (beside and like is None and arrivals < FIXED):
        return None
    services = {each.name: each for each in result.serving}
    service = services[like.service] if like is not None else result.serving[0]
    known = service.values()
    at_once = service.offered_per_s <= 0 or service.overloaded
    name = like.name if like is not None else "tokens_per_s" if at_once else "ttft_p95" if "ttft_p95" in known else "latency_p95"
    return Measure(
        service.name,
        name,
        known[name],
        tuple((each, known[each]) for each in SHOWN if each in known),
        service.wait.p95,
        beside=beside,
    )
