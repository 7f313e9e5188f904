"""A service on the clock of a run: its replicas are SimPy processes next to other jobs, and every iteration is a chain of ops."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Many
from dataclasses import field
from typing import TYPE_CHECKING

from hwsim.engine import Event, Host, IssuedOp, Waits
from hwsim.families.serving.actors.batch import KvLoad
from hwsim.families.serving.actors.continuous import ContinuousReplica
from hwsim.families.serving.actors.costs import IterationCosts
from hwsim.families.serving.actors.iteration_times import Pace
from hwsim.families.serving.actors.router import Router
from hwsim.families.serving.actors.run import Sequence
from hwsim.families.serving.actors.static import StaticReplica
from hwsim.families.serving.actors.unclocked import labels_of
from hwsim.families.serving.results.log import Late, Log
from hwsim.families.serving.workload.settings import Settings
from hwsim.families.serving.workload.source import RequestSource
from hwsim.graph.opgraph import Queue
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.families.serving.actors.autoscaler import Autoscaler
    from hwsim.families.serving.actors.balancer import Balancer
    from hwsim.families.serving.actors.kv_transfers import OffloadRoute


@dataclass
class ClockedService:
    """The processes of a service, whose time is the time of the run.

    Args:
        copies: the replicas.
        pace, costs: iteration times and ops of each replica.
        settings: settings of the server.
        source: source of requests.
        log: log of the service.
        name: name of the service.
        router: router.
        lanes: links of each replica to its lower tiers; empty without `offload:`.
        scaled: autoscaler; None without `scale:`.
        idle: event that wakes each replica while it is idle; None while it runs.
        came: op that woke each replica; -1 for none.
        balancers: autoscalers and their waiting requests.
    """

    copies: Many[ContinuousReplica | StaticReplica]
    pace: Many[Pace]
    costs: Many[IterationCosts]
    settings: Settings
    source: RequestSource
    log: Log
    name: str
    router: Router
    lanes: Many[OffloadRoute] = ()
    scaled: Autoscaler | None = None
    idle: list[Event | None] = field(init=False)
    came: list[int] = field(init=False)
    balancers: list[Balancer] = field(default_factory=list)
    _clients: int = -1
    _front: int = -1
    _busy: dict[int, Event] = field(default_factory=dict)  # load in flight by replica
    _follows: dict[int, int] = field(default_factory=dict)  # op of the think time before a request, by request

    @property
    def takers(self) -> Many[ContinuousReplica | StaticReplica]:
        """Replicas among which the router chooses."""
        return self.copies

    def __post_init__(self) -> None:
        self.idle = [None] * len(self.copies)
        self.came = [-1] * len(self.copies)
        if self.scaled is not None:
            self.balances(self.scaled, self._stands, self.settings.api)

    def actor(self, driver: Host) -> Waits:
        """Run the arrivals, and a process for each replica."""
        for number in range(len(self.copies)):
            driver.env.process(self._run_replica(driver, number))
        label, self._clients, starting, self._front = labels_of(driver, self.name)
        for balancer in self.balancers:
            balancer.starting = starting
            driver.env.process(balancer.scales(driver))
        queue = driver.queue(Queue(f"{self.name}:arrivals" if self.name else "arrivals", ""))
        while (time := self.source.unasked()) is not None:
            came, op = driver.issue([IssuedOp(label, queue, time=max(0, time - int(driver.env.now)))])
            yield came
            self._arrive(driver, op)

    def balances(self, scaled: Autoscaler, stands: Callable[[Host, int, Sequence, int, Late], None], api: int) -> None:
        """Add an autoscaler; arguments as in `Balancer`."""
        from hwsim.families.serving.actors.balancer import Balancer

        self.balancers.append(Balancer(scaled, stands, self._is_live, api))

    def _is_live(self) -> bool:
        waits = any(balancer.scaled.line for balancer in self.balancers)
        return bool(self.log.live) or waits or self.source.time() is not None

    def answered(self, driver: Host, request: int, at: int, op: int) -> None:
        """Schedule the request that follows this answer, if there is one."""
        asks = self.source.ended(request, at)
        if asks is not None:
            driver.env.process(self._issue_next(driver, *asks, op))

    def _issue_next(self, driver: Host, at: int, request: int, after: int) -> Waits:
        came, op = driver.issue([IssuedOp(self._clients, -1, time=at - int(driver.env.now))], (after,))
        self._follows[request] = op
        yield came
        self._arrive(driver, op)

    def _arrive(self, driver: Host, op: int) -> None:
        """Process all requests that have arrived."""
        instant = int(driver.env.now)
        while (time := self.source.time()) is not None and time <= instant:
            number, request = self.source.take()
            sequence = Sequence.of(number, request, instant + self.settings.api)
            sequence.after = self._follows.pop(number, op), instant
            self.comes(driver, sequence, instant)

    def comes(self, driver: Host, sequence: Sequence, instant: int) -> None:
        """Route a new request to a replica."""
        if self.balancers:
            number = self.balancers[0].comes(driver, sequence, instant)
        else:
            number = self.router.choose(sequence, range(len(self.takers)))
        if number >= 0:
            self._stands(driver, number, sequence, instant)

    def _stands(self, driver: Host, number: int, sequence: Sequence, arrival: int, late: Late = ()) -> None:
        self.copies[number].add(sequence)
        self.log.came(arrival, sequence.number, number, sequence.prompt, sequence.output, sequence.at, late)
        self._passes(driver, sequence)
        self.wakes(driver, number, sequence.at, sequence.after[0])

    def _passes(self, driver: Host, sequence: Sequence) -> None:
        """Issue an op for the time of a request in the front end of the server."""
        if (wait := sequence.at - int(driver.env.now)) > 0:
            sequence.after = driver.issue([IssuedOp(self._front, -1, time=wait)], (sequence.after[0],))[1], sequence.at

    def wakes(self, driver: Host, number: int, at: int, op: int) -> None:
        """Wake an idle replica at this instant, because of this op."""
        if self.copies[number].is_idle and self.came[number] < 0 and at <= int(driver.env.now):
            self.came[number] = op
        if self.idle[number] is None:
            return
        wait = at - int(driver.env.now)
        if wait > 0:
            driver.env.process(self._wake_later(driver, number, wait))
        else:
            self._wake(number)

    def _wake_later(self, driver: Host, number: int, wait: int) -> Waits:
        yield driver.env.timeout(wait)
        self._wake(number)

    def _wake(self, number: int) -> None:
        idle, self.idle[number] = self.idle[number], None
        if idle is not None:
            idle.succeed()

    def _run_replica(self, driver: Host, number: int) -> Waits:
        copy, pace, costs = self.copies[number], self.pace[number], self.costs[number]
        batches = [batch for batch, other in zip(self.copies, self.costs, strict=True) if other.gpus == costs.gpus]
        latest: tuple[int, ...] = ()
        ended_at = -1
        while True:
            instant = int(driver.env.now)
            first = copy.first_at(instant) if copy.is_idle and instant > ended_at else None
            run = copy.next(instant)
            if self.lanes and isinstance(copy, ContinuousReplica):
                for load in copy.loads:
                    driver.env.process(self._load_blocks(driver, copy, load, (load.sequence.after[0], *latest)))
                copy.loads.clear()
            if run is None:
                self.came[number] = -1
                idle = self.idle[number] = driver.env.event()
                if (head := copy.head) is not None and head.at > instant:
                    driver.env.process(self._wake_later(driver, number, head.at - instant))
                yield idle
                continue
            pace.set(run)
            run.count = 1
            after, self.came[number] = self.came[number], -1
            if first is not None:
                after = first.after[0]
            under_way = sum(batch.requests > 0 for batch in batches)
            ended, op = driver.issue([IssuedOp._make(op) for op in costs.ops(run, under_way)], (after,) if after >= 0 else ())
            latest = (op,)
            yield ended
            ended_at = int(driver.env.now)
            self.ended(driver, number, copy.done(run, ended_at), op)
            if copy.is_idle:
                yield driver.env.timeout(0)

    def _load_blocks(self, driver: Host, copy: ContinuousReplica, load: KvLoad, after: tuple[int, ...]) -> Waits:
        """Load the blocks of a request, after the loads of earlier requests."""
        lane = self.lanes[copy.number]
        while (busy := self._busy.get(copy.number)) is not None:
            yield busy
        done = self._busy[copy.number] = driver.env.event()
        ended, op = driver.issue(lane.ops(load.counts, driver), after)
        yield ended
        del self._busy[copy.number]
        done.succeed()
        instant = int(driver.env.now)
        load.sequence.after = op, instant
        copy.comes(load, instant)
        self.wakes(driver, copy.number, instant, op)

    def ended(self, driver: Host, number: int, over: Many[Sequence], op: int) -> None:
        """Process the end of an iteration: its op, and the requests that it completes."""
        del number
        for sequence in over:
            self.answered(driver, sequence.number, int(driver.env.now) + self.settings.out, op)
        if self.balancers:
            self.balancers[0].releases(driver)
