"""Disaggregated serving: prefill and decode on separate replicas, with the KV cache passed over the machine's links.

1. A request is routed to a decode replica, and waits until that replica has reserved KV-cache blocks for its prompt.
2. It is routed to the prefill replica with the fewest requests, which computes its prefill.
3. The KV cache of the prompt is transferred from each GPU to its counterpart, one prompt of a prefill replica at a time. Then the
   blocks on the prefill replica are freed.
4. The request joins the next iteration of its decode replica that has a free batch slot.

With `first: prompts`, the first token is available at the end of the transfer. With `first: answers`, the decode replica
recomputes the last prompt token, and outputs the first token after that iteration.

A preempted request is recomputed on its decode replica. Transfers share links with other traffic, so these replicas always run on
the engine's clock, iteration by iteration.

**Range**: layer-by-layer transfers during prefill are not modelled, so TTFT is too high by at most the transfer time, which is
the network part of TTFT. **Source**: Zhong et al., "DistServe", OSDI 2024. sglang 0.5.9, srt/disaggregation: blocks are reserved
before the prefill, and the first token is passed with the cache. vllm 0.18.0, v1/core/sched/scheduler.py,
`_update_waiting_for_remote_kv`: the decode replica recomputes the last prompt token.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from collections.abc import Sequence as Many
from dataclasses import field
from typing import TYPE_CHECKING, Any

from hwsim.engine import Event, Host, IssuedOp, Waits
from hwsim.families.serving.actors.clocked import ClockedService
from hwsim.families.serving.actors.continuous import ContinuousReplica
from hwsim.families.serving.actors.kv_transfers import KvTransferCosts
from hwsim.families.serving.actors.router import LeastRequestsRouter, Router
from hwsim.families.serving.actors.run import IterationRun, Sequence
from hwsim.families.serving.actors.speculation import SpeculativeReplica
from hwsim.families.serving.results.accounting import KV_CACHE_WAIT
from hwsim.families.serving.results.log import Late, Log
from hwsim.graph.opgraph import Label, Queue
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.families.serving.actors.autoscaler import Autoscaler


class PrefillLog(Log):
    """A log of prefill replicas: the end of a prefill is neither an output token nor the end of a request."""

    def __init__(self, log: Log) -> None:
        self.log = log
        for name in ("refuses", "begins", "reads", "puts_off", "meters"):
            setattr(self, name, getattr(log, name))

    def iterated(self, copy: int, start: int, end: int, answers: int, worked: int, blocks: int = 0, *more: Any) -> None:
        """Log an iteration without its blocks: only the KV cache of decode replicas is counted."""
        del blocks
        self.log.iterated(copy, start, end, answers, worked, 0, *more)

    def writes(self, time: int, requests: Iterable[int], out: int = 0) -> None:
        """Log the end of the prefill of these requests."""
        del out
        for request in requests:
            self.log.is_read(time, request)

    def ends(self, time: int, requests: Iterable[int], out: int = 0) -> None:
        """Ignore the end of requests, which continue on a decode replica."""


class PrefillReplica(ContinuousReplica):
    """A prefill replica, which keeps the blocks of a prompt until their transfer has ended."""

    kept = 0

    def _gives(self, sequence: Sequence) -> None:
        sequence.is_over = True
        self.kept += 1

    def releases(self, sequence: Sequence) -> None:
        """Free the blocks of a transferred prompt."""
        self.kept -= 1
        self._frees(sequence)

    def _nothing(self, instant: int, before: int) -> IterationRun | None:
        return None if self.kept else super()._nothing(instant, before)


class DecodeReplica(ContinuousReplica):
    """A decode replica, whose prompts are computed on a prefill replica.

    Args:
        line: requests that wait for a reservation of blocks.
        ready: requests whose KV cache has been transferred.
        reserved: number of requests with reserved blocks.
        under_way: blocks that the running iteration allocates when it ends.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.line: deque[Sequence] = deque()
        self.ready: deque[Sequence] = deque()
        self.reserved = self.under_way = 0
        self.open_to = -1

    @property
    def requests(self) -> int:
        """Number of requests: queued, in prefill or transfer elsewhere, and running here."""
        return self.in_line + len(self.partial) + self.answers + self.reserved

    @property
    def in_line(self) -> int:
        """Number of queued requests."""
        return len(self.waiting) + len(self.line)

    def reserves(self, sequence: Sequence) -> bool:
        """Reserve the blocks of a prompt; False if there are not enough."""
        self.changed.add(self.number)
        blocks = self.growth.need(sequence.prompt)
        if not self._fits(sequence, blocks, sequence.prompt, self.under_way, 0):
            return False
        self.cache.grows(sequence, blocks)
        self._promises.counts(sequence, 1)
        self.reserved += 1
        return True

    def leaves(self, sequence: Sequence) -> None:
        """Complete a request of one output token, which needs no decode."""
        self.changed.add(self.number)
        self.reserved -= 1
        self._promises.counts(sequence, -1)
        self._frees(sequence)

    def next(self, instant: int) -> IterationRun | None:
        """Schedule the next iterations; None if no request can run."""
        idle, settings = self.is_idle, self.settings
        if idle or self.iterations % settings.look == 0:
            self.open_to = instant if idle else self.seen if settings.ahead else instant - 1
        while self.ready and self.ready[0].at <= self.open_to and self.answers + len(self.partial) < settings.sequences:
            self._joins(self.ready.popleft(), instant)
        run = super().next(instant)
        self.under_way = self.growth.wanted(1) if run is not None and not run.parts else 0
        return run

    def _joins(self, sequence: Sequence, instant: int) -> None:
        self.reserved -= 1
        sequence.read = sequence.to_read = sequence.prompt
        self._order.append((sequence, sequence.put_off))
        if self.settings.first == "answers":
            sequence.read -= 1
            self.partial.append(sequence)
        else:
            sequence.written = 1
            self._promises.writes(1)
            self._starts(sequence)
        self.log.goes_on(instant, sequence.number, self.number)

    def _nothing(self, instant: int, before: int) -> IterationRun | None:
        return None if self.reserved else super()._nothing(instant, before)


class SpeculativeDecodeReplica(DecodeReplica, SpeculativeReplica):
    """A decode replica with speculative decoding."""


@dataclass
class DisaggregatedService(ClockedService):
    """The processes of a disaggregated service, whose time is the time of the run.

    Args:
        links: costs of KV-cache transfers.
        gpus: GPUs of each replica, prefill replicas first.
        prompts: autoscaler of the prefill replicas; None without one.
        readers, answerers: prefill and decode replicas.
    """

    links: KvTransferCosts = field(kw_only=True)
    gpus: Many[tuple[str, ...]] = field(kw_only=True)
    prompts: Autoscaler | None = field(default=None, kw_only=True)
    _least: Router = field(init=False)
    _pairs: dict[int, tuple[DecodeReplica, Sequence]] = field(default_factory=dict)
    # (arrival, earliest prefill, causes of the wait until then) of each request before its prefill
    _late: dict[int, tuple[int, int, Late]] = field(default_factory=dict)
    _label: int = -1
    _queues: list[int] = field(default_factory=list)
    _sending: list[Event | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.readers = [copy for copy in self.copies if isinstance(copy, PrefillReplica)]
        if self.prompts is not None:
            self.balances(self.prompts, self._stands_to_read, 0)
        if self.scaled is None:
            self._least = LeastRequestsRouter(self.readers)
        self.answerers = [copy for copy in self.copies if isinstance(copy, DecodeReplica)]

    def actor(self, driver: Host) -> Waits:
        """Run the arrivals, and a process for each replica."""
        self._label = driver.label(Label("KV transfer", "copy", self.gpus[0][0], self.name or "main"))
        self._sending = [None] * len(self.readers)
        for copy in self.readers:
            gpu = self.gpus[copy.number][0]
            self._queues.append(driver.queue(Queue(f"{self.name}:{gpu}.hand-over" if self.name else f"{gpu}.hand-over", gpu)))
        yield from super().actor(driver)

    @property
    def takers(self) -> Many[DecodeReplica]:
        """Replicas among which the router chooses: the decode replicas."""
        return self.answerers

    def _stands(self, driver: Host, number: int, sequence: Sequence, arrival: int, late: Late = ()) -> None:
        copy = self.answerers[number]
        self._late[sequence.number] = arrival, sequence.at, late
        if copy.line or not copy.reserves(sequence):
            copy.line.append(sequence)
            copy.changed.add(copy.number)
            return
        self._send_to_prefill(driver, copy, sequence, sequence.at)

    def _send_to_prefill(self, driver: Host, copy: DecodeReplica, sequence: Sequence, at: int) -> None:
        """Send a request with reserved blocks to a prefill replica."""
        prompt = Sequence(sequence.number, sequence.prompt, 1, at, sequence.ids, sequence.span, sequence.prompt)
        prompt.after = sequence.after
        self._pairs[sequence.number] = copy, sequence
        instant = int(driver.env.now)
        arrival, since, late = self._late[sequence.number]
        self._late[sequence.number] = arrival, at, (*late, (KV_CACHE_WAIT, at - since))
        if self.scaled is None:
            number = self._least.choose(prompt, range(len(self.readers)))
        else:
            self.scaled.begins(instant)
            number = self.balancers[1].comes(driver, prompt, instant)
        if number >= 0:
            self._stands_to_read(driver, number, prompt, instant)

    def _stands_to_read(self, driver: Host, number: int, prompt: Sequence, since: int, waited: Late = ()) -> None:
        """Queue a prompt at a prefill replica, once one is ready."""
        del since
        arrival, seen, late = self._late.pop(prompt.number)
        prompt.at = max(seen, int(driver.env.now))
        left = prompt.at - seen
        for part, time in waited:  # time in the front end is not a wait
            late = (*late, (part, min(time, left)))
            left -= min(time, left)
        self._passes(driver, prompt)
        self.readers[number].add(prompt)
        _, sequence = self._pairs[prompt.number]
        self.log.came(arrival, prompt.number, number, prompt.prompt, sequence.output, prompt.at, late)
        self.wakes(driver, number, prompt.at, prompt.after[0])

    def ended(self, driver: Host, number: int, over: Many[Sequence], op: int) -> None:
        """Process the end of an iteration: its op, and the requests that it completes."""
        copy = self.copies[number]
        if isinstance(copy, PrefillReplica):
            for sequence in over:
                driver.env.process(self._transfer(driver, copy, sequence, op))
        else:
            answerer = self.answerers[number - len(self.readers)]
            answerer.under_way = 0
            self._count_completed(number, len(over), int(driver.env.now))
            super().ended(driver, number, over, op)
            self._reserve_waiting(driver, answerer, op)

    def _count_completed(self, number: int, count: int, instant: int) -> None:
        """Tell the autoscaler about completed requests of a decode replica."""
        if self.scaled is not None:
            for _ in range(count):
                self.scaled.ended(number - len(self.readers), instant)

    def _reserve_waiting(self, driver: Host, copy: DecodeReplica, op: int) -> None:
        """Reserve blocks for waiting requests, after blocks of a decode replica were freed."""
        while copy.line and copy.reserves(copy.line[0]):
            sequence = copy.line.popleft()
            sequence.after = op, int(driver.env.now)
            self._send_to_prefill(driver, copy, sequence, max(sequence.at, int(driver.env.now)))

    def _transfer(self, driver: Host, reader: PrefillReplica, prompt: Sequence, op: int) -> Waits:
        """Transfer the KV cache of a prompt to its decode replica."""
        copy, sequence = self._pairs.pop(prompt.number)
        key = reader.number, copy.number
        cost, size = self.links.cost(self.gpus[key[0]], self.gpus[key[1]], key, prompt.prompt)
        while (busy := self._sending[reader.number]) is not None:
            yield busy
        sent = self._sending[reader.number] = driver.env.event()
        issued = IssuedOp(self._label, self._queues[reader.number], driver.cost(cost), size)
        ended, hand_over = driver.issue([issued], (op,))
        yield ended
        self._sending[reader.number] = None
        sent.succeed()
        instant = int(driver.env.now)
        reader.releases(prompt)
        if self.prompts is not None:
            self.prompts.ended(reader.number, instant)
            self.balancers[1].releases(driver)
        self.wakes(driver, reader.number, instant, hand_over)
        passes = copy.settings.first == "prompts"
        self.log.hands_over(instant, sequence.number, out=passes)
        if passes and sequence.output <= 1:
            copy.leaves(sequence)
            self.log.ends(instant, [sequence.number])
            self._count_completed(copy.number, 1, instant)
            self.answered(driver, sequence.number, instant, hand_over)
            self._reserve_waiting(driver, copy, hand_over)
            if self.scaled is not None:
                self.balancers[0].releases(driver)
            return
        sequence.at = instant
        copy.ready.append(sequence)
        self.wakes(driver, copy.number, instant, hand_over)
