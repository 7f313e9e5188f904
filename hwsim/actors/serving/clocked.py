"""A service on the clock of a run: its copies are SimPy processes next to other jobs, every iteration a chain of ops."""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import field

from hwsim.actors.serving.copy import Copy
from hwsim.actors.serving.costs import Costs
from hwsim.actors.serving.pace import Paced
from hwsim.actors.serving.router import Router
from hwsim.actors.serving.run import Sequence
from hwsim.actors.serving.static import Static
from hwsim.engine import Event, Host, IssuedOp, Waits
from hwsim.graph.opgraph import Label, Queue
from hwsim.records import dataclass
from hwsim.results.served import Log
from hwsim.workload.serving.settings import Settings
from hwsim.workload.serving.source import Source


@dataclass(slots=True)
class Clocked:
    """The copies of a service on the clock of a run.

    Args:
        idle: for each copy the event that wakes it while it has nothing to do; came: op of the arrival that did.
        asked: the event that tells the arrivals of an answer after which another request comes.
    """

    copies: Many[Copy | Static]
    pace: Many[Paced]
    costs: Many[Costs]
    settings: Settings
    source: Source
    log: Log
    name: str
    router: Router
    idle: list[Event | None] = field(init=False)
    came: list[int] = field(init=False)
    asked: Event | None = None

    def __post_init__(self) -> None:
        self.idle = [None] * len(self.copies)
        self.came = [-1] * len(self.copies)

    def actor(self, driver: Host) -> Waits:
        """The arrivals, and a process for each copy."""
        for number in range(len(self.copies)):
            driver.env.process(self._serve(driver, number))
        label = driver.label(Label("arrivals", "arrivals", "", self.name or "main"))
        queue = driver.queue(Queue(f"{self.name}:arrivals" if self.name else "arrivals", ""))
        while True:
            time = self.source.time()
            if time is None:
                if all(copy.is_idle and not copy.waiting for copy in self.copies):
                    return
                self.asked = driver.env.event()
                yield self.asked
                continue
            came, op = driver.issue([IssuedOp(label, queue, time=max(0, time - int(driver.env.now)))])
            yield came
            while self.source.time() == time:
                self._comes(driver, time, op)

    def _comes(self, driver: Host, instant: int, op: int) -> None:
        number, request = self.source.take()
        sequence = Sequence.of(number, request, instant + self.settings.api)
        number = self.router.choose(self.copies, sequence)
        self.copies[number].add(sequence)
        self.log.came(instant, sequence.number, number, sequence.prompt, sequence.output, sequence.at)
        if self.copies[number].is_idle and self.came[number] < 0:
            self.came[number] = op
        if self.idle[number] is not None:
            if sequence.at > instant:
                driver.env.process(self._later(driver, number, sequence.at - instant))
            else:
                self._wake(number)

    def _later(self, driver: Host, number: int, wait: int) -> Waits:
        yield driver.env.timeout(wait)
        self._wake(number)

    def _wake(self, number: int) -> None:
        idle, self.idle[number] = self.idle[number], None
        if idle is not None:
            idle.succeed()

    def _serve(self, driver: Host, number: int) -> Waits:
        copy, pace, costs = self.copies[number], self.pace[number], self.costs[number]
        while True:
            run = copy.next(int(driver.env.now))
            if run is None:
                idle = self.idle[number] = driver.env.event()
                if copy.waiting:
                    driver.env.process(self._later(driver, number, copy.waiting[0].at - int(driver.env.now)))
                yield idle
                continue
            pace.set(run)
            run.count = 1
            after, self.came[number] = self.came[number], -1
            ended, _ = driver.issue(costs.ops(run), (after,) if after >= 0 else ())
            yield ended
            instant = int(driver.env.now)
            for sequence in copy.done(run, instant):
                self.source.ended(sequence.number, instant + self.settings.out)
            if self.asked is not None:
                self.asked.succeed()
                self.asked = None
            if copy.is_idle:
                yield driver.env.timeout(0)
