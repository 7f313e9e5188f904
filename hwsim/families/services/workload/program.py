"""Services as flat programs of steps with known costs, for the simulators in Python and in C++.

A request executes the steps of its service in order, starting with the first. Its position is the index of a step; the next
step follows unless the step names another one. A program is immutable, so both simulators end at the same femtosecond.

    Serve        work with a cost at its station          Keep, Branch   keep a random value; choose a branch at random
    Ask          call another service                     Fork, Join     begin concurrent branches; end one of them
    Take, Give   acquire and release a lock               Jump, End      continue at another step; send the response
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

from hwsim.demand import Capacity, Cost, Demand
from hwsim.families.services.workload.arms import ArmAccesses
from hwsim.families.services.workload.popularity import Filling
from hwsim.families_interface import FamilyPlan
from hwsim.records import dataclass
from hwsim.workload.load.arrivals import ArrivalKeys
from hwsim.workload.load.draws import Distribution
from hwsim.workload.load.numbers import stream

if TYPE_CHECKING:
    from hwsim.families.services.actors.actor import ServicesActor
    from hwsim.machine import Machine

NONE: Final = -1
ENDLESS: Final = 2**62  # unlimited workers or queue length


@dataclass(frozen=True, slots=True)
class StatementDraw:
    """A random value that a request draws at each visit of a statement.

    Args:
        names: names of service and statement, which select the random stream: ("web", "3.read").
        distribution: distribution of the value, in SI units.
    """

    names: tuple[str, ...]
    distribution: Distribution


@dataclass(frozen=True, slots=True)
class StepNumber:
    """A number of a step: fixed, or a piecewise linear function of a random value x.

    Args:
        fixed: the number, if it is not random.
        draw: index of x in the draws of the program; NONE: x is not drawn here.
        slot: index of x in the kept values of the request; NONE: x was not kept.
        lines: segments (upper end of x, a, b) of a + b x, ordered by x; the last one has no upper end; empty: x itself.
    """

    fixed: float = 1.0
    draw: int = NONE
    slot: int = NONE
    lines: tuple[tuple[float, float, float], ...] = ()

    @property
    def is_fixed(self) -> bool:
        return self.draw < 0 and self.slot < 0

    def of(self, drawn: float) -> float:
        """Return the number for a value of x; at least 0.

        >>> StepNumber(slot=0, lines=((2.0, -10.0, 20.0), (4.0, 30.0, 0.0))).of(1.5), StepNumber(slot=0).of(3.0)
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
    """A step that waits for the latency of a cost, then works at its station for `size` times the body of the cost."""

    cost: int
    size: StepNumber = StepNumber()


@dataclass(frozen=True, slots=True)
class Keep:
    """A step that draws a value and keeps it for later steps of the request."""

    draw: int
    slot: int


@dataclass(frozen=True, slots=True)
class Branch:
    """A step that continues at the first way whose limit exceeds a uniform random number, or else at the next step.

    Args:
        draw: index of the random number in the draws of the program.
        limits: cumulative probabilities, ascending, at most 1.
        to: step of each way.
        choices: index of the named branch that the request is counted as, for each way; NONE: unchanged.
        cache: index of the cache whose hit rate (when full) is the first limit; events may change it; NONE: no cache.
    """

    draw: int
    limits: tuple[float, ...]
    to: tuple[int, ...]
    choices: tuple[int, ...] = ()
    cache: int = NONE


@dataclass(frozen=True, slots=True)
class Fork:
    """A step that begins concurrent branches; after the Join of the last one, the request continues at `to`."""

    branches: tuple[int, ...]
    to: int


@dataclass(frozen=True, slots=True)
class Join:
    """A step that ends a branch of a Fork."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A step that calls another service and waits for the response.

    The wait before a retry is first x times^(retry - 1), reduced by a random share of up to `jitter`.

    Args:
        service: index of the called service.
        key: 64-bit hash of the caller's name and the index of this call, so that the called request has its own random numbers.
        timeout: timeout of an attempt (fs); NONE: none.
        retries: maximum number of retries.
        first: wait before the first retry (fs).
        times: growth factor of the wait.
        jitter: largest random reduction of the wait, as a share of it.
        draw: index of the random number for the jitter in the draws of the program; NONE: no jitter.
        again: whether rejected and failed attempts are retried, too.
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
    """A step that acquires a lock, first come, first served.

    Args:
        lock: index of the lock.
        end: step after its Give, at which requests continue that the holder served together with its own (group commit).
    """

    lock: int
    end: int


@dataclass(frozen=True, slots=True)
class Give:
    """A step that releases a lock."""

    lock: int


@dataclass(frozen=True, slots=True)
class Jump:
    """A step that continues at another step."""

    to: int


@dataclass(frozen=True, slots=True)
class End:
    """A step that sends the response."""


Step: TypeAlias = Serve | Keep | Branch | Fork | Join | Ask | Take | Give | Jump | End


# ---- tables ----


@dataclass(frozen=True, slots=True)
class ServedStatement:
    """A statement with its cost and the station that serves it.

    Args:
        name: name of the statement.
        kind: kind of its op.
        device: device on which it runs.
        cost: cost of its op.
        latency: latency before the body (fs).
        body: time of the body without contention (fs).
        station: index of its station; NONE: its time does not depend on other work.
        flow: index of its demand in the demands of the station.
        service: index of its service.
        resource: index of the capacity that it waits for in the resources of the program.
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
    """A station of the queueing network: one or several capacities that serve work.

    Args:
        kind: shared: a capacity that all work shares max-min fair.
            fifo: a number of servers, first come, first served.
            arms: a number of disk arms, which serve one access at a time each, in random order.
            network: several capacities, of which one piece of work may use several at once.
        capacities: capacities of the station; the first one names it.
        demands: demands of each kind of work on these capacities; `hwsim.engine.compile.flow_class` computes weights and paces.
        servers: number of servers or arms.
        accesses: accesses of each kind of work to the arms.
        issued: whether jobs use it, too, or events change its speed; the engine then serves its work.
    """

    kind: StationKind
    capacities: tuple[Capacity, ...]
    demands: tuple[Demand, ...] = ()
    servers: int = 1
    accesses: tuple[ArmAccesses, ...] = ()
    issued: bool = False

    @property
    def name(self) -> str:
        return self.capacities[0].name

    @property
    def is_tied(self) -> bool:
        """Whether it has several capacities, and the rates depend only on the number of works of each kind."""
        return self.kind == "network" and not any(demand.holds or demand.crowd for demand in self.demands)


@dataclass(frozen=True, slots=True)
class ServiceLock:
    """A lock; `group`: maximum number of requests that one execution serves."""

    name: str
    group: int = 1


@dataclass(frozen=True, slots=True)
class ServiceProgram:
    """A service as a program.

    Args:
        steps: steps of a request; the last one is an End.
        workers: number of workers.
        limit: maximum queue length.
        drops: whether a queued request is dropped if its caller has timed out.
        arrivals: arrivals from outside; None: only other services call it.
        slots: number of values kept per request.
        choices: names of the branches that requests are counted by.
        start: time of the earliest arrival (fs).
        within: latency limit for goodput (fs); NONE: none.
        since: arrival time from which requests have a latency (fs); NONE: from the steady state on.
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
class ServiceEvent:
    """An event of a service from `at` to `until` (fs): an outage, a lower hit rate, or an emptied cache.

    Args:
        hit: hit rate of its caches meanwhile; None: outage.
        emptied: index of a cache that is empty at `at` and then fills; NONE: another event.
    """

    at: int
    until: int
    service: int
    hit: float | None = None
    emptied: int = NONE


@dataclass(frozen=True, slots=True)
class ServiceCache:
    """A cache of a service.

    Args:
        service: index of the service.
        holds: (capacity in items, number of distinct items, Zipf exponent); None: the hit rate is given.
        filling: hit rate by lookups since it was empty.
        emptied: times at which it is emptied (fs).
    """

    service: int
    holds: tuple[int, int, float] | None = None
    filling: Filling | None = None
    emptied: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ArrivalLoad:
    """The services of a workload or job, whose arrivals end together.

    Args:
        services: indices of the services with arrivals.
        requests: number of arrivals in total; NONE: all until `until` (fs).
    """

    services: tuple[int, ...]
    requests: int = NONE
    until: int = NONE


@dataclass(frozen=True, slots=True)
class ServicesProgram(FamilyPlan):
    """Services that call each other and share stations.

    Causes of waits are numbered: first `resources`, then the locks, the workers of each service, retry backoff, and attempts that
    timed out.

    Args:
        loads: loads of the workload, or of each job.
        resources: capacities that work waits for.
        disturbed: times at which an event changes the speed of a capacity in use (fs).
        seed: seed of all random values.
    """

    services: tuple[ServiceProgram, ...]
    served: tuple[ServedStatement, ...]
    stations: tuple[Station, ...]
    locks: tuple[ServiceLock, ...]
    draws: tuple[StatementDraw, ...]
    loads: tuple[ArrivalLoad, ...]
    caches: tuple[ServiceCache, ...] = ()
    resources: tuple[str, ...] = ()
    events: tuple[ServiceEvent, ...] = ()
    seed: int = 0
    disturbed: tuple[int, ...] = ()
    issues: ClassVar[bool] = False  # type: ignore[misc]
    clocks: ClassVar[bool] = True  # type: ignore[misc]

    @property
    def drawn(self) -> Collection[str]:
        """Capacities that its work uses."""
        costs = [served.cost for served in self.served if served.cost is not None]
        return {name for cost in costs for name, _ in (*cost.demand.amounts, *cost.demand.holds, *cost.demand.clocks)}

    def begin(self, machine: Machine, slower: float) -> ServicesActor:
        """Return the services as an actor of one run."""
        from hwsim.families.services.actors.actor import ServicesActor

        return ServicesActor(self, machine.capacities, slower)

    @property
    def has_one_rate(self) -> bool:
        """Whether all arrival rates are constant."""
        return not any(service.arrivals is not None and service.arrivals.changes for service in self.services)

    def may_be_steady(self, end: int) -> bool:
        """Whether the arrival rates are constant and no event occurs before `end` (fs)."""
        happens = (*self.disturbed, *(event.at for event in self.events))
        return self.has_one_rate and not any(instant < end for instant in happens)

    @property
    def compiles(self) -> bool:
        """Whether the C++ simulator supports all stations: none is issued, and rates depend only on the number of works."""
        return all(not station.issued and (station.kind != "network" or station.is_tied) for station in self.stations)

    def accesses_of(self, cost: int) -> ArmAccesses | None:
        """Return the accesses of a statement to disk arms, or None."""
        served = self.served[cost]
        accesses = self.stations[served.station].accesses if served.station >= 0 else ()
        return accesses[served.flow] if accesses else None

    def ways_of(self, cost: int) -> int:
        """Return the key of the random positioning times of a statement."""
        service = self.served[cost].service
        first = next(index for index, served in enumerate(self.served) if served.service == service)
        return stream(self.seed, self.services[service].name, f"{cost - first} way")
