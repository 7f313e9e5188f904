"""Records in the statistics of a service: requests, percentiles, latency breakdowns, and the use of tiers and adapter slots."""

from __future__ import annotations

from typing import NamedTuple

from hwsim.families.serving.workload.schema import SloKeys
from hwsim.ticks import FEMTO


class RequestRow(NamedTuple):
    """A request; times in seconds from the start of the run.

    Args:
        arrival_s: arrival.
        begin_s: start of the first iteration that processes it.
        first_token_s: first output token; 0 without output.
        end_s: completion.
        prompt_tokens, output_tokens: number of tokens.
        replica: index of the replica that completed it.
        parts_fs: latency by cause, in the order of `accounting.PARTS` (fs).
    """

    arrival_s: float
    begin_s: float
    first_token_s: float
    end_s: float
    prompt_tokens: int
    output_tokens: int
    replica: int
    parts_fs: tuple[int, ...] = ()


class Moment(NamedTuple):
    """The state of a service at one instant.

    Args:
        at_s: time (s).
        queued: number of queued requests.
        running: number of running requests.
        kv_cache: share of KV-cache blocks in use.
    """

    at_s: float
    queued: int
    running: int
    kv_cache: float


class LatencyBreakdown(NamedTuple):
    """The latency breakdown of the requests around a percentile.

    Args:
        measure: "ttft", "tpot" or "latency".
        percentile: percentile.
        value_s: value of the percentile (s).
        requests: number of requests around it.
        mean_s: average of these requests, which is the sum of the parts (s).
        parts: (name, seconds), largest first, with names of `accounting.PARTS`.
    """

    measure: str
    percentile: int
    value_s: float
    requests: int
    mean_s: float
    parts: tuple[tuple[str, float], ...]


class TierUse(NamedTuple):
    """The use of a tier below GPU memory, summed over replicas.

    Args:
        name: name of the tier.
        tokens: capacity in tokens.
        peak_tokens: maximum tokens in use.
        stored_tokens: total tokens written.
        loaded_tokens: total tokens loaded to the GPUs.
        write_utilization: share of the time needed for writes, on the busiest link or disk; above 1, writes exceed the bandwidth.
    """

    name: str
    tokens: int
    peak_tokens: int
    stored_tokens: int
    loaded_tokens: int
    write_utilization: float


class AdapterUse(NamedTuple):
    """The use of adapter slots, summed over replicas, including the warm-up.

    Args:
        adapters: number of adapters.
        slots: slots of each replica.
        acquisitions: number of times that a request took a slot; a preempted request takes one again.
        loads: number of loaded adapters.
        load_s: time of one load (s).
        waits: number of requests that waited for a slot.
        wait_s: total wait (s).
        max_wait_s: longest wait (s).
    """

    adapters: int
    slots: int
    acquisitions: int
    loads: int
    load_s: float
    waits: int
    wait_s: float
    max_wait_s: float


class Sampling(NamedTuple):
    """A mean or percentile with its 95 % confidence interval over other random requests.

    Args:
        measure: "ttft", "tpot" or "latency".
        percentile: percentile; 0 for the mean.
        value_s: value (s).
        low_s, high_s: ends of the interval (s); `high_s` None: unbounded.
        too_short: the run is too short for this percentile, so the interval is too narrow.
    """

    measure: str
    percentile: int
    value_s: float
    low_s: float
    high_s: float | None
    too_short: bool

    @property
    def half(self) -> float | None:
        """Larger half-width of the interval relative to the value; None if unbounded."""
        if self.high_s is None or self.value_s <= 0:
            return None
        return max(self.value_s - self.low_s, self.high_s - self.value_s) / self.value_s


class Goal(NamedTuple):
    """The latency limits of a request (SLO) in seconds; None: no limit."""

    ttft: float | None = None
    tpot: float | None = None
    latency: float | None = None

    @classmethod
    def of(cls, keys: SloKeys | None) -> Goal:
        """Return the limits of a file."""
        return cls() if keys is None else cls(keys.ttft, keys.tpot, keys.latency)

    @property
    def limits_fs(self) -> tuple[int | None, int | None, int | None]:
        """Limits in fs."""
        first, token, latency = (None if limit is None else round(limit * FEMTO) for limit in self)
        return first, token, latency
