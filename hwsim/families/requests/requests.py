"""Request-level simulation: columns of requests, their issue with a queue depth, and the interface of all simulations.

A simulation is a device that serves single requests. It keeps its state (open rows, position of the arm, page map, cached lines)
between ops. Several ops can be in flight; their requests share the queue of the device. The interface:

    offer(served)     add the requests of an op, none earlier than the time already advanced to
    due()             time of the next event; infinity if idle
    advance(until)    process all events up to and including `until`
    units(address)    (unit that serves each address, such as its bank or chip; name of the units)
    counters          counters to report: {"row_hits": 10, ...}

Events at time t depend only on requests offered up to t, so the result does not depend on the steps of `advance`. Times are
seconds from the start of the run. A simulation is deterministic: it has no clock, and its random numbers are seeded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Final, Protocol

import numpy as np

from hwsim.demand import Requests
from hwsim.graph.opgraph import Ints
from hwsim.records import dataclass
from hwsim.results.requests import TIMED, RequestStatistics, RequestTimes, TimeStatistics
from hwsim.spec.mistakes import HintedError

MOST_REQUESTS: Final = 1_000_000  # maximum requests of a device


class NoRequestSimulation(HintedError):
    """Raised if a device or an op has no request-level simulation; `hint` tells the remedy."""


@dataclass(slots=True, eq=False)
class RequestColumns:
    """The requests of an op in order of issue, and their times, as columns of equal length.

    Args:
        at: arrival times (s), ascending.
        address: first byte.
        size: bytes.
        write: whether each is a write.
        core: core that issues it.
        depth: maximum number of outstanding requests; None: unlimited.
        issued, start, finish: times set by the simulation (s), NaN before; latency is finish - issued. `finish` may be in the
            future.
        left: number of requests without a finish time.
    """

    at: list[float]
    address: list[int]  # bytes
    size: list[int]  # bytes
    write: list[bool]
    core: list[int]
    depth: int | None = None
    issued: list[float] = field(init=False, repr=False)
    start: list[float] = field(init=False, repr=False)
    finish: list[float] = field(init=False, repr=False)
    left: int = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.at)
        self.issued, self.start, self.finish = ([math.nan] * count for _ in range(3))
        self.left = count

    def __len__(self) -> int:
        return len(self.at)

    @property
    def end(self) -> float:
        """Completion time of the last request (s), valid once `left` is 0."""
        return max(self.finish, default=0.0)


class IssueStream:
    """The issue of an op's requests: the index of the next request, and the number of outstanding ones (`flying`)."""

    __slots__ = ("flying", "next", "served")

    def __init__(self, served: RequestColumns) -> None:
        self.served = served
        self.next = self.flying = 0

    @property
    def upcoming(self) -> float | None:
        """Arrival time of the next request (s); None if there is none, or if it must wait for a completion."""
        served = self.served
        free = self.next < len(served) and (served.depth is None or self.flying < served.depth)
        return served.at[self.next] if free else None

    def issue(self, time: float) -> Iterator[int]:
        """Issue the requests that have arrived, up to the depth; yield their indices."""
        while (due := self.upcoming) is not None and due <= time:
            request = self.next
            self.next += 1
            self.flying += 1
            self.served.issued[request] = time
            yield request

    def finish(self, request: int, time: float) -> bool:
        """Set the completion time of a request; return whether another request may be issued then."""
        self.served.finish[request] = time
        self.served.left -= 1
        return self.served.depth is not None and self.next < len(self.served)


class RequestSimulation(Protocol):
    """A device that is simulated request by request; see the module."""

    @property
    def counters(self) -> dict[str, float]: ...
    def units(self, address: Ints) -> tuple[Ints, str]: ...
    def offer(self, served: RequestColumns) -> None: ...
    def due(self) -> float: ...
    def advance(self, until: float) -> None: ...


@dataclass(frozen=True, slots=True)
class RequestDevice:
    """A device with its request-level simulation.

    Args:
        simulation: the simulation.
        span: capacity (bytes), the address range of ops that specify none.
        requests: function of (requests of an op, span, start time) that returns single requests.
        loaded_latency: closed form of the latency at a load (s); None without one.
    """

    simulation: RequestSimulation
    span: float
    requests: Callable[[Requests, float, float], RequestColumns]
    loaded_latency: Callable[[float], float] | None = None


def columns(
    address: Sequence[int],
    size: int,
    *,
    at: Sequence[float] | float = 0.0,
    write: Sequence[bool] | bool = False,
    core: Sequence[int] | int = 0,
    depth: int | None = None,
) -> RequestColumns:
    """Return requests of one size to these addresses; a scalar is repeated for all.

    >>> len(columns([0, 64, 128], 64, depth=2))
    3
    """
    count = len(address)
    return RequestColumns(
        at=[at] * count if isinstance(at, int | float) else list(at),
        address=list(address),
        size=[size] * count,
        write=[write] * count if isinstance(write, bool) else list(write),
        core=[core] * count if isinstance(core, int) else list(core),
        depth=depth,
    )


def requests_of(wanted: Requests, span: float, time: float = 0.0) -> RequestColumns:
    """Return the single requests of an op.

    Args:
        wanted: number, size and pattern of the op's requests.
        span: address range (bytes) if the op specifies none.
        time: arrival time (s).

    Raises:
        CannotPlay: The op has more than `MOST_REQUESTS` requests.
    """
    count = math.ceil(wanted.count)
    if count > MOST_REQUESTS:
        hint = "fewer requests, or `fidelity: formula`, which has no limit"
        raise NoRequestSimulation(
            f"{count:,} requests to {wanted.device} exceed the limit of {MOST_REQUESTS:,} for request-level simulation", hint
        )
    size = max(1, round(wanted.size))
    slots = max(1, int((wanted.span or span) // size))
    generator = np.random.default_rng(wanted.seed)
    if wanted.pattern in ("random", "dependent"):
        address = generator.integers(0, slots, count) * size
    else:
        step = round(wanted.stride) or size
        address = np.arange(count, dtype=np.int64) * step % max(step, slots * size)
    write = (
        generator.random(count) < wanted.write_share if 0 < wanted.write_share < 1 else np.full(count, wanted.write_share >= 1)
    )
    return RequestColumns(
        at=[time] * count,
        address=address.tolist(),
        size=[size] * count,
        write=write.tolist(),
        core=(np.arange(count) % max(1, wanted.cores)).tolist(),
        depth=wanted.depth or 1 if wanted.pattern == "dependent" else wanted.depth,
    )


def poisson(rate: float, count: int, seed: int = 0) -> list[float]:
    """Return `count` arrival times (s) of a Poisson process with `rate` requests/s."""
    times: list[float] = np.cumsum(np.random.default_rng(seed).exponential(1 / rate, count)).tolist()
    return times


def serve(simulation: RequestSimulation, *offers: RequestColumns) -> RequestColumns:
    """Simulate all offers to the end; return the last one."""
    for offer in offers:
        simulation.offer(offer)
    simulation.advance(math.inf)
    return offers[-1]


def statistics(
    name: str,
    served: Sequence[RequestColumns],
    counters: dict[str, float],
    closed_form_s: float | None = None,
    units: Callable[[Ints], tuple[Ints, str]] | None = None,
) -> RequestStatistics:
    """Return the statistics of completed requests; `units` as in `RequestSimulation`."""
    issued, finish = (np.array([value for rows in served for value in getattr(rows, column)]) for column in ("issued", "finish"))
    size = float(sum(sum(rows.size) for rows in served))  # integers
    latency = TimeStatistics.of(finish - issued)
    span = float(finish.max() - issued.min()) if len(finish) else 0.0
    return RequestStatistics(
        device=name,
        count=len(finish),
        bytes=size,
        span_s=span,
        latency_mean_s=latency.mean,
        latency_p50_s=latency.p50,
        latency_p95_s=latency.p95,
        latency_p99_s=latency.p99,
        latency_max_s=latency.max,
        in_flight_mean=math.fsum((finish - issued).tolist()) / span if span > 0 else 0.0,
        counters=tuple(sorted(counters.items())),
        closed_form_s=closed_form_s,
        times=None if units is None else _times(served, units),
    )


def _times(served: Sequence[RequestColumns], units: Callable[[Ints], tuple[Ints, str]]) -> RequestTimes:
    """Return the times of the first requests of all ops, in order of issue."""
    columns = [
        np.array([value for op_requests in served for value in getattr(op_requests, name)[:TIMED]])
        for name in ("issued", "start", "finish", "address")
    ]
    first = np.argsort(columns[0], kind="stable")[:TIMED]
    issued, start, finish, address = (column[first] for column in columns)
    unit, called = units(address.astype(np.int64))
    return RequestTimes(issued, start, finish, unit, called)
