"""A running service: a request goes to the replica with the fewest, and each replica runs one iteration after another."""

from __future__ import annotations

from dataclasses import field

from hwsim import ticks
from hwsim.actors.serving.batching import Batch, Continuous, Sequence, Static
from hwsim.actors.serving.cache import Cache
from hwsim.actors.serving.costs import Costs, kernels_of
from hwsim.engine import Event, Host, IssuedOp, Waits
from hwsim.graph.opgraph import Label, Queue
from hwsim.machine import Machine
from hwsim.records import dataclass
from hwsim.results.accounting import Spent
from hwsim.results.served import Log
from hwsim.results.serving import Goal, ServiceStatistics, statistics
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

    def __post_init__(self) -> None:
        self.log = Log(len(self.plan.copies), self.goal.limits_fs)

    @property
    def goal(self) -> Goal:
        """Service level of every request."""
        slo = self.plan.keys.slo
        return Goal() if slo is None else Goal(slo.ttft, slo.tpot, slo.latency)

    def actor(self, driver: Host) -> Waits:
        """The arrivals, and a process for each replica."""
        taken = kernels_of(self.plan)  # shared: a replica looks up the times that another worked out
        copies = [
            _Replica(self._line(), Costs(self.plan, self.machine, driver, gpus, taken, self.slower)) for gpus in self.plan.copies
        ]
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
        self.log.came(at_fs, request, number, asked_for.prompt, asked_for.output)
        if copy.idle is not None:
            copy.idle.succeed()
            copy.idle = None

    def _serve(self, driver: Host, number: int, copy: _Replica) -> Waits:
        line, log = copy.line, self.log
        while True:
            start = int(driver.env.now)
            batch = line.next()
            for request, lost in line.lost_now():
                log.puts_off(start, request, lost)
            if batch is None:
                copy.idle = driver.env.event()
                yield copy.idle
                continue
            log.refuses(number, line.refusal)
            log.begins(start, [sequence.number for sequence, _ in batch.prompts])
            ops = copy.costs.ops(batch)
            ended, _ = driver.issue(ops, (copy.came,) if copy.came >= 0 else ())
            copy.came = -1
            waiting = [each for each in line.running if each.written == each.read_for]
            worked, blocks = len(line.running), line.cache.used
            yield ended
            end = int(driver.env.now)
            spent = self._spent(batch, copy.costs, end - start)
            tokens = max(1, sum(many for _, many in batch.prompts))  # integers
            for sequence, many in batch.prompts:
                log.reads(sequence.number, spent.prompts * many // tokens)
            log.iterated(number, start, end, spent, answers=len(batch.answers), worked=worked, blocks=blocks)
            over = line.done(batch)
            log.writes(end, [each.number for each in waiting if each.written > each.read_for])
            log.ends(end, [each.number for each in over])

    def _spent(self, batch: Batch, costs: Costs, lasted: int) -> Spent:
        """The time of an iteration by what it went to; the prompts of a mixed one have what they add to its answers."""
        kernels = min(lasted, ticks.femtoseconds(self.slower * costs.taken(batch).seconds))
        answers = kernels
        if batch.prompts:
            alone = Batch((), batch.answers, slots=batch.slots)
            answers = min(kernels, ticks.femtoseconds(self.slower * costs.taken(alone).seconds)) if batch.answers else 0
        rest = lasted - kernels
        split = len(costs.gpus) > 1
        return Spent(kernels - answers, answers, network=rest if split else 0, shared=0 if split else rest)

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
            goal=self.goal,
        )
