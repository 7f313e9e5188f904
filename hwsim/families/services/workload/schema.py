"""Keys of `services:`, programs that handle arriving requests: see docs/services.md.

services: {web: {device: cpu, arrivals: {poisson: 100 1/s}, workers: 64, request: [{busy: {time: 3 ms}}, {ask: db}]}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from hwsim.records import dataclass
from hwsim.spec import Place, Tree, field, place_field
from hwsim.units import Ratio, Seconds
from hwsim.workload.load.arrivals import ArrivalKeys


@dataclass(frozen=True, slots=True)
class ServiceKeys:
    """A service: the statements of a request, the workers and the queue, and the arrivals from outside."""

    request: tuple[Tree, ...] = field("statements that each request executes in sequence", one_or_many=True)
    device: str = field("default device of its statements", default="", example="cpu")
    arrivals: ArrivalKeys | None = field(
        "arrivals of requests from outside (default: only other services call it)", default=None, example="{poisson: 100 1/s}"
    )
    workers: int | None = field("maximum number of requests in service at once (default: unlimited)", default=None, minimum=1)
    queue_limit: int | None = field(
        "maximum queue length; a request that arrives at a full queue is rejected (default: unlimited)", default=None, minimum=0
    )
    abandoned: Literal["finish", "drop"] = field(
        "whether a queued request whose caller timed out is executed (finish) or dropped (drop)", default="finish"
    )
    within: Seconds | None = field(
        "latency limit: slower responses do not count as goodput (default: none)", default=None, exclusive_minimum=0.0
    )
    warm_up: Seconds | Literal["until steady"] = field(
        "warm-up time, whose arrivals are excluded from the latencies; `until steady`: warm-up length by MSER-5",
        default=0.0,
        minimum=0.0,
        example="10 s",
    )
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class BackoffKeys:
    """Exponential backoff between the attempts of a call."""

    first: Seconds = field("wait before the first retry", example="10 ms")
    times: float = field("factor by which the wait grows from each retry to the next", default=2.0, minimum=1.0)
    jitter: Ratio = field("largest random reduction of a wait, as a share of it", default=0.0, maximum=1.0)


@dataclass(frozen=True, slots=True)
class AskKeys:
    """`ask`: calls of another service, in sequence; the caller waits for each response and occupies its worker meanwhile."""

    service: str = field("name of the called service", example="db")
    times: int = field("number of calls, in sequence", default=1, minimum=0)
    timeout: Seconds | None = field("time after which an attempt times out (default: never)", default=None, exclusive_minimum=0.0)
    retries: int = field("maximum number of retries after a timeout", default=0, minimum=0)
    backoff: BackoffKeys | Seconds | None = field(
        "time before a retry, fixed or growing (default: none)", default=None, example="{first: 10 ms, times: 2, jitter: 100 %}"
    )
    refused: Literal["fail", "retry"] = field("if a call is rejected or fails: the caller fails too, or retries", default="fail")
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class MaybeKeys:
    """`maybe`: statements that a request executes with a probability."""

    ratio: Ratio = field("probability that a request executes the statements", minimum=0.0, maximum=1.0, example="5 %")
    do: tuple[Tree, ...] = field("statements to execute", one_or_many=True)


@dataclass(frozen=True, slots=True)
class WayKeys:
    """One branch of `choose`."""

    share: Ratio = field("probability of this branch; all shares add up to 100 %", minimum=0.0, maximum=1.0, example="90 %")
    do: tuple[Tree, ...] = field("statements of the branch", default=(), one_or_many=True)


@dataclass(frozen=True, slots=True)
class CacheKeys:
    """`cache`: statements that are executed on a cache miss; a hit takes no time."""

    miss: tuple[Tree, ...] = field("statements executed on a miss", one_or_many=True)
    hit: Ratio | None = field("hit rate; this or `entries` is required", default=None, minimum=0.0, maximum=1.0, example="97 %")
    entries: int | None = field("capacity of the LRU cache in items; sets the hit rate", default=None, minimum=1)
    of: int | None = field("number of distinct items requested; required with `entries`", default=None, minimum=1)
    zipf: float = field(
        "Zipf exponent: requests for the k-th item are proportional to 1 / k^zipf; 0: uniform",
        default=1.0,
        minimum=0.0,
        maximum=4.0,
    )
    empty_at: tuple[Seconds, ...] = field(
        "times at which the cache is emptied and starts to fill (default: it is always full)",
        default=(),
        one_or_many=True,
        example="[0 s, 20 s]",
    )
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class LockKeys:
    """`lock`: statements that one request executes at a time, first come, first served."""

    name: str = field("name of the lock; all statements with this name share one lock")
    do: tuple[Tree, ...] = field("statements executed while the lock is held", one_or_many=True)
    group: int = field(
        "maximum number of waiting requests served by one execution of the statements (group commit)", default=1, minimum=1
    )


@dataclass(frozen=True, slots=True)
class AgainKeys:
    """`repeat`: statements executed several times in sequence."""

    times: int = field("number of repetitions", minimum=0)
    do: tuple[Tree, ...] = field("statements to repeat", one_or_many=True)


STATEMENTS: Final[Mapping[str, type]] = {
    "ask": AskKeys,
    "cache": CacheKeys,
    "lock": LockKeys,
    "maybe": MaybeKeys,
    "repeat": AgainKeys,
}
OTHERS: Final = ("choose", "together")  # a mapping of names to branches; a list of lists of statements
