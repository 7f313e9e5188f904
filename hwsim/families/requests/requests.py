"""Request by request: the requests that a simulation is given, the times it gives back, and the methods of all simulations.

A simulation is one device that serves single requests. It keeps its state (open rows, the arm, the page map, lines
in a cache) from one op to the next, and several ops can be in it at once: their requests share its queue.

    offer(served)     the requests of one more op, none of them earlier than the time advanced to.
    due()             when the simulation does something next; infinity when it is idle
    advance(until)    do all that happens up to and including `until`
    units(address)    what serves each address (its bank, its chip), and what these are called
    counters          numbers of its own to report: {"row_hits": 10, ...}

It decides what happens at time t from what was offered up to t alone, so it may be advanced in any steps with the
same outcome. Times are seconds since the start of the run; it uses no clock, and no random generator but its own seeded one.
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
from hwsim.results.requests import TIMED, RequestStatistics, Spread, Times
from hwsim.spec.mistakes import Hinted

MOST_REQUESTS: Final = 1_000_000


class CannotPlay(Hinted):
    """A device or an op without a request-level simulation; `hint` says what to do."""


@dataclass(slots=True, eq=False)
class Served:
    """The requests of one op, in the order they are issued, and what became of them: columns of equal length.

    at: when each is there to be issued (seconds; ascending).  depth: of them, at most this many are issued and not finished
    (None: any number).
    issued, start, finish: filled by the simulation, NaN before. Latency is finish - issued. finish may lie in the future.
    left: how many have no finish yet; the simulation counts it down.
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
        """When the last of them finishes, once nothing is left."""
        return max(self.finish, default=0.0)


class Stream:
    """The requests of one op on their way into a device: the next one, and how many are issued and not finished."""

    __slots__ = ("flying", "next", "served")

    def __init__(self, served: Served) -> None:
        self.served = served
        self.next = self.flying = 0

    @property
    def upcoming(self) -> float | None:
        """When the next request is there; None if none is left, or if it waits for a finish first."""
        served = self.served
        free = self.next < len(served) and (served.depth is None or self.flying < served.depth)
        return served.at[self.next] if free else None

    def issue(self, time: float) -> Iterator[int]:
        """Issue the requests that are there by now, one after another."""
        while (due := self.upcoming) is not None and due <= time:
            request = self.next
            self.next += 1
            self.flying += 1
            self.served.issued[request] = time
            yield request

    def finish(self, request: int, time: float) -> bool:
        """Note when a request will have finished; whether the device must come back then to issue another."""
        self.served.finish[request] = time
        self.served.left -= 1
        return self.served.depth is not None and self.next < len(self.served)


class RequestSimulation(Protocol):
    """One device, request by request; see the module."""

    @property
    def counters(self) -> dict[str, float]: ...
    def units(self, address: Ints) -> tuple[Ints, str]: ...
    def offer(self, served: Served) -> None: ...
    def due(self) -> float: ...
    def advance(self, until: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Play:
    """A device ready to be simulated request by request.

    span: bytes it holds, for ops that do not say which part of it they go to.
    requests: the single requests behind what an op asks for, given the span and when it starts.
    loaded_latency: the closed form of one request's latency at a load, where there is one.
    """

    simulation: RequestSimulation
    span: float
    requests: Callable[[Requests, float, float], Served]
    loaded_latency: Callable[[float], float] | None = None


def columns(
    address: Sequence[int],
    size: int,
    *,
    at: Sequence[float] | float = 0.0,
    write: Sequence[bool] | bool = False,
    core: Sequence[int] | int = 0,
    depth: int | None = None,
) -> Served:
    """Requests of one size to these addresses; a scalar stands for a whole column.

    >>> len(columns([0, 64, 128], 64, depth=2))
    3
    """
    count = len(address)
    return Served(
        at=[at] * count if isinstance(at, int | float) else list(at),
        address=list(address),
        size=[size] * count,
        write=[write] * count if isinstance(write, bool) else list(write),
        core=[core] * count if isinstance(core, int) else list(core),
        depth=depth,
    )


def requests_of(wanted: Requests, span: float, time: float = 0.0) -> Served:
    """The single requests behind what an op asks for.

    span: bytes the device holds, where the op does not say which part of it it goes to.

    Raises:
        CannotPlay: more than `MOST_REQUESTS`.
    """
    count = math.ceil(wanted.count)
    if count > MOST_REQUESTS:
        hint = "ask for fewer, or leave the part at `fidelity: formula`, whose closed form takes any number"
        raise CannotPlay(
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
    return Served(
        at=[time] * count,
        address=address.tolist(),
        size=[size] * count,
        write=write.tolist(),
        core=(np.arange(count) % max(1, wanted.cores)).tolist(),
        depth=wanted.depth or 1 if wanted.pattern == "dependent" else wanted.depth,
    )


def poisson(rate: float, count: int, seed: int = 0) -> list[float]:
    """Arrival times of `count` requests, `rate` a second at random."""
    times: list[float] = np.cumsum(np.random.default_rng(seed).exponential(1 / rate, count)).tolist()
    return times


def serve(simulation: RequestSimulation, *offers: Served) -> Served:
    """Simulate all of these to the end; the last of them."""
    for offer in offers:
        simulation.offer(offer)
    simulation.advance(math.inf)
    return offers[-1]


def statistics(
    name: str,
    served: Sequence[Served],
    counters: dict[str, float],
    closed_form_s: float | None = None,
    units: Callable[[Ints], tuple[Ints, str]] | None = None,
) -> RequestStatistics:
    """Statistics of the requests that ended.  units: see `RequestSimulation`."""
    issued, finish = (np.array([value for each in served for value in getattr(each, column)]) for column in ("issued", "finish"))
    size = float(sum(sum(each.size) for each in served))  # integers
    latency = Spread.of(finish - issued)
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


def _times(served: Sequence[Served], units: Callable[[Ints], tuple[Ints, str]]) -> Times:
    """Times of the first requests, all ops together, in the order in which they were issued."""
    columns = [
        np.array([value for each in served for value in getattr(each, name)[:TIMED]])
        for name in ("issued", "start", "finish", "address")
    ]
    first = np.argsort(columns[0], kind="stable")[:TIMED]
    issued, start, finish, address = (column[first] for column in columns)
    unit, called = units(address.astype(np.int64))
    return Times(issued, start, finish, unit, called)
