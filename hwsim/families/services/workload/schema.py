"""`services:` programs that answer requests, as a file says them: see docs/services.md.

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
    """A service: what a request does, how many are worked on at once, and when requests come from outside."""

    request: tuple[Tree, ...] = field("statements, one after another: a request waits after each", one_or_many=True)
    device: str = field("where its statements run, unless they say so", default="", example="cpu")
    arrivals: ArrivalKeys | None = field(
        "when requests come from outside (default: only other services ask it)", default=None, example="{poisson: 100 1/s}"
    )
    workers: int | None = field("requests that are worked on at once (default: any number)", default=None, minimum=1)
    queue_limit: int | None = field(
        "places in the line for a worker; who comes then is refused (default: any number)", default=None, minimum=0
    )
    abandoned: Literal["finish", "drop"] = field(
        "a request whose caller has given up: worked on to its end, or thrown away when its turn comes", default="finish"
    )
    within: Seconds | None = field(
        "latency limit: a slower response does not count as goodput", default=None, exclusive_minimum=0.0
    )
    warm_up: Seconds | Literal["until steady"] = field(
        "requests that come before, since it began, have no part in its times (until steady: as found by MSER-5)",
        default=0.0,
        minimum=0.0,
        example="10 s",
    )
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class BackoffKeys:
    """The wait before an attempt is made again."""

    first: Seconds = field("before the first retry", example="10 ms")
    times: float = field("how many times as long before each further one", default=2.0, minimum=1.0)
    jitter: Ratio = field("part of the wait that chance may take away", default=0.0, maximum=1.0)


@dataclass(frozen=True, slots=True)
class AskKeys:
    """`ask`: requests to another service, one after another; each waits for its answer and keeps its own worker meanwhile."""

    service: str = field("which one", example="db")
    times: int = field("how many, one after another", default=1, minimum=0)
    timeout: Seconds | None = field("an attempt is given up after so long (default: never)", default=None, exclusive_minimum=0.0)
    retries: int = field("further attempts after one that was given up", default=0, minimum=0)
    backoff: BackoffKeys | Seconds | None = field(
        "the wait before a retry (default: none)", default=None, example="{first: 10 ms, times: 2, jitter: 100 %}"
    )
    refused: Literal["fail", "retry"] = field("what follows if it is refused, or its answer is a failure", default="fail")
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class MaybeKeys:
    """`maybe`: statements that a part of the requests do."""

    ratio: Ratio = field("part of them, by chance", minimum=0.0, maximum=1.0, example="5 %")
    do: tuple[Tree, ...] = field("the statements", one_or_many=True)


@dataclass(frozen=True, slots=True)
class WayKeys:
    """One way of `choose`."""

    share: Ratio = field("part of the requests that go it; all ways come to 100 %", minimum=0.0, maximum=1.0, example="90 %")
    do: tuple[Tree, ...] = field("the statements", default=(), one_or_many=True)


@dataclass(frozen=True, slots=True)
class CacheKeys:
    """`cache`: what is done where something is not in a cache; a hit takes no time of its own."""

    miss: tuple[Tree, ...] = field("statements of those who do not find it", one_or_many=True)
    hit: Ratio | None = field(
        "part of the requests that find it; or say `entries`", default=None, minimum=0.0, maximum=1.0, example="97 %"
    )
    entries: int | None = field("things that it holds, those asked for last; the hit rate follows", default=None, minimum=1)
    of: int | None = field("things that are asked for, with `entries`", default=None, minimum=1)
    zipf: float = field(
        "popularity: the k-th is asked for as often as 1 / k^zipf; 0: all alike",
        default=1.0,
        minimum=0.0,
        maximum=4.0,
    )
    empty_at: tuple[Seconds, ...] = field(
        "instants at which nothing is in it, after which it fills again (default: it is full)",
        default=(),
        one_or_many=True,
        example="[0 s, 20 s]",
    )
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class LockKeys:
    """`lock`: statements that one request does at a time, first come first served."""

    name: str = field("the lock; services that name the same one exclude each other")
    do: tuple[Tree, ...] = field("the statements", one_or_many=True)
    group: int = field(
        "so many of those who wait go through as one: the first does it for all (group commit)", default=1, minimum=1
    )


@dataclass(frozen=True, slots=True)
class AgainKeys:
    """`repeat`: statements several times over."""

    times: int = field("how often", minimum=0)
    do: tuple[Tree, ...] = field("the statements", one_or_many=True)


STATEMENTS: Final[Mapping[str, type]] = {
    "ask": AskKeys,
    "cache": CacheKeys,
    "lock": LockKeys,
    "maybe": MaybeKeys,
    "repeat": AgainKeys,
}
OTHERS: Final = ("choose", "together")  # a mapping of names to ways; a list of lists
