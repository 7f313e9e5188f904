"""Services as programs of steps: what a request does, flat, with every cost known; ready to be played or compiled.

A request goes through the steps of its service from its first one on. Its place is a number of a step; a step moves on to the
next one unless it says where to. All numbers of a program are frozen: two ways to play it end at the same femtosecond.

    Serve      work of a cost at its station            Keep, Branch   a draw, and a way chosen by one
    Ask        a request to another service             Fork, Join     branches side by side, and the end of one
    Take, Give a lock, and what is done under it        Jump, End      on to another step; the request is answered
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

from hwsim.demand import Capacity, Cost, Demand
from hwsim.doors import Planned
from hwsim.families.services.workload.arms import Accesses
from hwsim.families.services.workload.popularity import Filling
from hwsim.records import dataclass
from hwsim.workload.load.arrivals import ArrivalKeys
from hwsim.workload.load.draws import Distribution
from hwsim.workload.load.numbers import stream

if TYPE_CHECKING:
    from hwsim.families.services.actors.running import Running
    from hwsim.machine import Machine

NONE: Final = -1
ENDLESS: Final = 2**62  # workers, places of a line, size of a group: any number


@dataclass(frozen=True, slots=True)
class Drawn:
    """A draw for a request, each time it comes to a statement.

    Args:
        names: the statement's, for the key of its stream: ("web", "3.read").
        distribution: the number's, in SI units.
    """

    names: tuple[str, ...]
    distribution: Distribution


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a step: fixed, or by a number x that was drawn.

    Args:
        fixed: the number, if nothing is drawn.
        draw: x is drawn when the step begins: its place in the program's draws; NONE: it is not.
        slot: x was kept for the request: its place among the service's values; NONE: it was not.
        lines: (x up to which it counts, a, b) in rising order of x: the number is a + b x; the last one goes on for ever;
            none: x itself.
    """

    fixed: float = 1.0
    draw: int = NONE
    slot: int = NONE
    lines: tuple[tuple[float, float, float], ...] = ()

    @property
    def is_fixed(self) -> bool:
        return self.draw < 0 and self.slot < 0

    def of(self, drawn: float) -> float:
        """The number where x is this; never below zero.

        >>> Number(slot=0, lines=((2.0, -10.0, 20.0), (4.0, 30.0, 0.0))).of(1.5), Number(slot=0).of(3.0)
        (20.0, 3.0)
        """
        for until, base, slope in self.lines:
            if drawn <= until:
                return max(base + slope * drawn, 0.0)
        if not self.lines:
            return max(drawn, 0.0)
        _, base, slope = self.lines[-1]
        return max(base + slope * drawn, 0.0)


# ---- steps ----


@dataclass(frozen=True, slots=True)
class Serve:
    """Work: the cost's latency, then its body at its station, `size` times as long as the cost's."""

    cost: int
    size: Number = Number()


@dataclass(frozen=True, slots=True)
class Keep:
    """A draw that later steps know as a value of the request."""

    draw: int
    slot: int


@dataclass(frozen=True, slots=True)
class Branch:
    """On to the first way whose limit is above a uniform number; to the next step if none is.

    Args:
        draw: the uniform number's.
        limits: rising, at most 1.
        to: step of each way.
        choices: what the request is counted as from now on, for each way: a place among the service's choices; NONE: as before.
        cache: number of the cache whose hit rate, when it is full, the first limit is; an event may change it; NONE: of none.
    """

    draw: int
    limits: tuple[float, ...]
    to: tuple[int, ...]
    choices: tuple[int, ...] = ()
    cache: int = NONE


@dataclass(frozen=True, slots=True)
class Fork:
    """Branches begin at these steps, side by side; once all have come to a Join, the request goes on at `to`."""

    branches: tuple[int, ...]
    to: int


@dataclass(frozen=True, slots=True)
class Join:
    """The end of a branch."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request to another service, and the wait for its answer; times in fs.

    Args:
        service: its place in the program.
        key: 64 bits of the asking service's name and of this step's place among its asks: a visit there has numbers of its own.
        timeout: until the attempt is given up; NONE: it never is.
        retries: further attempts after one that was given up.
        first, times, jitter: wait before a retry: first x times^(retry - 1), less a part up to `jitter` by chance.
        draw: the jitter's.
        again: whether a refused attempt, or one that failed, is tried again as well.
    """

    service: int
    key: int
    timeout: int = NONE
    retries: int = 0
    first: int = 0
    times: float = 1.0
    jitter: float = 0.0
    draw: int = NONE
    again: bool = False


@dataclass(frozen=True, slots=True)
class Take:
    """Wait for a lock, first come first served.  end: step behind its Give, for those whom its holder has taken along."""

    lock: int
    end: int


@dataclass(frozen=True, slots=True)
class Give:
    """Give a lock back."""

    lock: int


@dataclass(frozen=True, slots=True)
class Jump:
    """On to another step."""

    to: int


@dataclass(frozen=True, slots=True)
class End:
    """The request is answered."""


Step: TypeAlias = Serve | Keep | Branch | Fork | Join | Ask | Take | Give | Jump | End


# ---- tables ----


@dataclass(frozen=True, slots=True)
class Served:
    """A cost where it is served.

    Args:
        name: the statement's.  kind: its op's.  device: where it runs.
        cost: as its op was lowered.
        latency: fs before the body.  body: fs alone.
        station: place of its station; NONE: it takes its time whatever else is there.
        service: whose statement it is.
        resource: place, among the program's, of the capacity that it waits for.
        flow: place of its demand among the station's.
    """

    name: str
    kind: str
    device: str
    cost: Cost | None
    latency: int
    body: int
    station: int = NONE
    flow: int = NONE
    service: int = 0
    resource: int = NONE


StationKind = Literal["shared", "fifo", "arms", "network"]


@dataclass(frozen=True, slots=True)
class Station:
    """A place where work is done.

    Args:
        kind: shared: a capacity that all who are there share, max-min fair. fifo: `servers`, first come first served.
            arms: `servers`, one access at a time each, any of those that wait next.
            network: several capacities that one piece of work may draw from at once.
        capacities: what is drawn from; the first one names the station.
        demands: kinds of work, each with what it draws of these capacities alone; `hwsim.engine.compile.flow_class` makes
            their weights and paces.
        accesses: at arms, what each kind of work asks of them.
        issued: whether others draw from it, or its speed changes: the engine does the work, of those whose turn it is.
    """

    kind: StationKind
    capacities: tuple[Capacity, ...]
    demands: tuple[Demand, ...] = ()
    servers: int = 1
    accesses: tuple[Accesses, ...] = ()
    issued: bool = False

    @property
    def name(self) -> str:
        return self.capacities[0].name

    @property
    def is_tied(self) -> bool:
        """Whether it has several capacities, and the paces there follow from how many works of each kind there are."""
        return self.kind == "network" and not any(demand.holds or demand.crowd for demand in self.demands)


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock, and how many of those who wait go through as one."""

    name: str
    group: int = 1


@dataclass(frozen=True, slots=True)
class ServiceProgram:
    """A service.

    Args:
        steps: from the first on; the last is an End.
        workers: requests that are worked on at once; limit: places in its line.
        drops: whether a request whose caller has gone is thrown away at its turn.
        arrivals: requests from outside; None: only others ask it.
        slots: values that are kept for a request.
        choices: what its requests are counted as, by name.
        start: fs, before which no request comes.
        within: fs after which an answer is late and does not count as good; NONE: none is late.
        since: fs from which on requests come whose answers are among its times; NONE: once it is steady.
    """

    name: str
    steps: tuple[Step, ...]
    workers: int = ENDLESS
    limit: int = ENDLESS
    drops: bool = False
    arrivals: ArrivalKeys | None = None
    slots: int = 0
    choices: tuple[str, ...] = ()
    start: int = 0
    within: int = NONE
    since: int = 0


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happens to a service: from `at` to `until` (fs) it is down, or its caches hit less often.

    Args:
        hit: part of the requests that find something meanwhile; None: it is down.
        emptied: a cache that is empty from `at` on, and fills; NONE: it is down, or its caches hit less often.
    """

    at: int
    until: int
    service: int
    hit: float | None = None
    emptied: int = NONE


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache.

    Args:
        service: whose it is.
        holds: entries, things there are, and the exponent of their popularity; None: its hit rate is stated.
        filling: its hit rate since it was empty.
        emptied: fs at which it is empty.
    """

    service: int
    holds: tuple[int, int, float] | None = None
    filling: Filling | None = None
    emptied: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Load:
    """Services whose requests from outside are counted together.

    Args:
        services: places of those that have arrivals.
        requests: that come, all together; NONE: as many as come until `until` (fs).
    """

    services: tuple[int, ...]
    requests: int = NONE
    until: int = NONE


@dataclass(frozen=True, slots=True)
class Program(Planned):
    """Services that ask each other and share stations.

    Args:
        loads: the workload's, or each job's.
        resources: capacities that works wait for. Waits are counted by number: these, the locks, the workers of each service,
            the wait before a retry, attempts that were given up.
        disturbed: fs at which the speed of something that works draw from changes.
        seed: that all draws share.
    """

    services: tuple[ServiceProgram, ...]
    served: tuple[Served, ...]
    stations: tuple[Station, ...]
    locks: tuple[Lock, ...]
    draws: tuple[Drawn, ...]
    loads: tuple[Load, ...]
    caches: tuple[Cache, ...] = ()
    resources: tuple[str, ...] = ()
    events: tuple[Happening, ...] = ()
    seed: int = 0
    disturbed: tuple[int, ...] = ()
    issues: ClassVar[bool] = False  # type: ignore[misc]
    clocks: ClassVar[bool] = True  # type: ignore[misc]

    @property
    def drawn(self) -> Collection[str]:
        """Capacities that its works draw from, or wait for."""
        costs = [each.cost for each in self.served if each.cost is not None]
        return {name for cost in costs for name, _ in (*cost.demand.amounts, *cost.demand.holds, *cost.demand.clocks)}

    def begin(self, machine: Machine, slower: float) -> Running:
        """It in one run."""
        from hwsim.families.services.actors.running import Running

        return Running(self, machine.capacities, slower)

    @property
    def has_one_rate(self) -> bool:
        """Whether requests come at one rate all the time."""
        return not any(service.arrivals is not None and service.arrivals.changes for service in self.services)

    def may_be_steady(self, end: int) -> bool:
        """Whether they do, and nothing happens to services and parts until the end (fs)."""
        happens = (*self.disturbed, *(event.at for event in self.events))
        return self.has_one_rate and not any(instant < end for instant in happens)

    @property
    def compiles(self) -> bool:
        """Whether no work is issued to the engine, and what is shared follows from how many of each kind are there."""
        return all(not station.issued and (station.kind != "network" or station.is_tied) for station in self.stations)

    def accesses_of(self, cost: int) -> Accesses | None:
        """The accesses of a work to an arm that serves one at a time."""
        served = self.served[cost]
        accesses = self.stations[served.station].accesses if served.station >= 0 else ()
        return accesses[served.flow] if accesses else None

    def ways_of(self, cost: int) -> int:
        """The key of the ways that are drawn for a work."""
        service = self.served[cost].service
        first = next(at for at, each in enumerate(self.served) if each.service == service)
        return stream(self.seed, self.services[service].name, f"{cost - first} way")
