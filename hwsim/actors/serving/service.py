"""A running service: a request goes to the replica with the fewest, and each replica runs one iteration after another."""

from __future__ import annotations

from dataclasses import field

from hwsim.actors.serving.batching import Continuous, Sequence, Static
from hwsim.actors.serving.cache import Cache
from hwsim.actors.serving.costs import Costs, kernels_of
from hwsim.engine import Event, Host, IssuedOp, Waits
from hwsim.graph.opgraph import Label, Queue
from hwsim.machine import Machine
from hwsim.records import dataclass
from hwsim.results.serving import Log, ServiceStatistics, statistics
from hwsim.workload.serving.plan import ServicePlan


@dataclass(slots=True)
class _Replica:
    """One replica: its line, its costs, the event that wakes it while it has nothing to do; came: op of the last arrival."""

    line: Continuous | Static
    costs: Costs
    idle: Event | None = None
    came: int = -1


@dataclass(slots=True)
class Service:
    """A plan and, after the run, the log of its requests.

    Args:
        slower: times as long as expected that kernels and collectives take, for the ends of an interval.
    """

    plan: ServicePlan
    machine: Machine
    slower: float = 1.0
    log: Log = field(init=False)
    _lines: list[Continuous | Static] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.log = Log.of([(self.plan.start + each.arrival, each.prompt, each.output) for each in self.plan.requests])

    def actor(self, driver: Host) -> Waits:
        """The arrivals, and a process for each replica."""
        taken = kernels_of(self.plan)  # shared: a replica looks up the times that another worked out
        copies = [
            _Replica(self._line(), Costs(self.plan, self.machine, driver, gpus, taken, self.slower)) for gpus in self.plan.copies
        ]
        self._lines = [copy.line for copy in copies]
        for number, copy in enumerate(copies):
            driver.env.process(self._serve(driver, number, copy))
        name = self.plan.name
        label = driver.label(Label("arrivals", "arrivals", "", name or "main"))
        queue = driver.queue(Queue(f"{name}:arrivals" if name else "arrivals", ""))
        requests = self.plan.requests
        at = 0
        while at < len(requests):
            time = requests[at].arrival
            came, op = driver.issue([IssuedOp(label, queue, time=max(0, self.plan.start + time - int(driver.env.now)))])
            yield came
            while at < len(requests) and requests[at].arrival == time:
                number = min(range(len(copies)), key=lambda one: (copies[one].line.held, one))
                self._join(int(driver.env.now), copies[number], number, at, op)
                at += 1

    def _line(self) -> Continuous | Static:
        keys = self.plan.keys
        cache = Cache(keys.block, self.plan.blocks, held=self.plan.held)
        if keys.batching == "static" or not self.plan.answers:
            return Static(cache, keys.batch)
        most = keys.batch if keys.chunk is None else min(keys.batch, keys.chunk)
        return Continuous(cache, most, chunk=keys.chunk, prefill=keys.prefill)

    def _join(self, at_fs: int, copy: _Replica, number: int, request: int, op: int) -> None:
        asked_for = self.plan.requests[request]
        copy.line.add(Sequence(request, asked_for, asked_for.prompt))
        copy.came = op
        self.log.came(at_fs, request, number)
        if copy.idle is not None:
            copy.idle.succeed()
            copy.idle = None

    def _serve(self, driver: Host, number: int, copy: _Replica) -> Waits:
        line, log = copy.line, self.log
        while True:
            batch = line.next()
            if batch is None:
                log.rests(int(driver.env.now), number, line.cache.used)
                copy.idle = driver.env.event()
                yield copy.idle
                continue
            starting = [sequence.number for sequence, _ in batch.prompts]
            log.begins(int(driver.env.now), number, starting, len(line.running), line.cache.used)
            ops = copy.costs.ops(batch)
            ended, _ = driver.issue(ops, (copy.came,) if copy.came >= 0 else ())
            copy.came = -1
            written = [(each, each.written) for each in line.running]
            yield ended
            ended_fs = int(driver.env.now)
            over = line.done(batch)
            log.writes(ended_fs, [each.number for each, before in written if each.written > before])
            log.ends(ended_fs, [each.number for each in over])

    def statistics(self) -> ServiceStatistics | None:
        """Statistics of its requests; None without any."""
        plan = self.plan
        return statistics(
            self.log,
            name=plan.name,
            copies=len(plan.copies),
            gpus=len(plan.copies[0]),
            block=plan.keys.block,
            blocks=plan.blocks,
            token_bytes=plan.token_bytes,
            put_off=sum(line.put_off for line in self._lines),
            read_again=sum(line.lost for line in self._lines),
        )
