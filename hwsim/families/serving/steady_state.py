"""The steady state of a replica in closed form: throughput, TTFT and TPOT with a number of users, or at an arrival rate.

    iterations of an answer = (output - 1) / tokens per iteration
    time of an iteration    = decode of all sequences + share of iterations with prefill x what prefill adds
    throughput              = sequences in decode / (iterations x time), by Little's law

The times of iterations are those of the simulation (`actors.iteration_times`), for the mean request. Prompts join iterations at
random. A prompt waits for the running iteration and for other prompts. Users beyond the batch limit or the KV cache wait for a
slot. With `split:`, prefill replicas are a queue with constant service times before the decode replicas.

**Error**: against simulations of closed loops with 1,000 output tokens, throughput is mostly within 3 %
(`tests/test_steady_state.py`). With few output tokens, prompts that do not fit into the token budget, or data-parallel attention
of many prompts, it is up to 45 % off. Percentiles, and the queue at the start of a closed loop, are not computed.
**Range**: continuous batching of models that write tokens. Preemption, lower KV tiers and adapter loads take no time.
"""

from __future__ import annotations

import math
from dataclasses import field
from itertools import islice
from typing import Final

from hwsim.families.serving.actors.costs import ReplicaCollectives
from hwsim.families.serving.actors.iteration_times import Pace, Tables
from hwsim.families.serving.actors.kv_transfers import transfer_cost
from hwsim.families.serving.actors.run import IterationRun, Sequence
from hwsim.families.serving.actors.service import pace_class
from hwsim.families.serving.workload.plan import ServicePlan
from hwsim.machine import Machine
from hwsim.records import dataclass
from hwsim.ticks import FEMTO
from hwsim.workload.load.keys import distribution_of

SAMPLE: Final = 256  # requests whose mean is the mean request
ROUNDS: Final = 12  # iterations of a fixed point
CLOSE: Final = 1e-3  # relative change at which it ends
UNEVEN: Final = 0.02  # relative difference of an arrival rate that counts as completed
BUSIEST: Final = 0.98  # largest load of prefill for which a queue is computed


@dataclass(frozen=True, slots=True)
class SteadyState:
    """A steady state of a replica, or of the prefill and decode replicas of a `split:`.

    Args:
        requests_per_s: completed requests.
        tokens_per_s: output tokens.
        ttft_s, tpot_s: mean time to first token, and per further output token (s).
    """

    requests_per_s: float
    tokens_per_s: float
    ttft_s: float
    tpot_s: float


@dataclass(slots=True)
class _Part:
    """The iterations of a batch of a replica, of a service or of a part of it."""

    plan: ServicePlan
    pace: Pace
    prompt: float
    output: float
    context: float  # mean tokens of a sequence in decode
    _known: dict[tuple[int, int, int, int], float] = field(default_factory=dict)

    @property
    def iterations(self) -> float:
        """Decode iterations of an answer."""
        numerator, denominator = self.pace.growth
        return max(1e-9, (self.output - 1.0) * denominator / numerator)

    @property
    def running(self) -> float:
        """Sequences of a batch that fit into its slots and its KV cache."""
        plan, tokens = self.plan, self.plan.tokens
        held = self.output / (1.0 if plan.settings.admit == "answer" else 2.0)
        room = math.inf if tokens is None else tokens / plan.stages / plan.model.cached(round(self.prompt + held))  # type: ignore[union-attr]
        return max(1.0, min(plan.settings.sequences, room))

    def seconds(self, answers: float, prompts: float = 0.0, tokens: float = 0.0, before: float = 0.0) -> float:
        """Return the time of an iteration with `answers` sequences in decode and `prompts` chunks of `tokens` tokens each (s)."""
        low = math.floor(answers)
        part = answers - low
        parts = max(1, round(prompts)) if tokens else 0
        each = math.ceil(tokens * prompts / parts) if parts else 0
        if not low and not parts:
            return self._at(1, 0, 0, 0)
        first = self._at(low, parts, each, round(before))
        return first if part < CLOSE else (1 - part) * first + part * self._at(low + 1, parts, each, round(before))

    def _at(self, answers: int, parts: int, tokens: int, before: int) -> float:
        key = answers, parts, tokens, before
        if key not in self._known:
            read = [(Sequence(0, before + tokens, 1, 0, read=before), tokens) for _ in range(parts)]
            run = IterationRun(0, 0, 0, read, answers, round(answers * self.context), ended=answers + parts)
            self.pace.set(run)
            self._known[key] = run.first / FEMTO
        return self._known[key]

    def prefill(self) -> float:
        """Return the time of a prompt in iterations of its own (s)."""
        chunks = self.chunks(0.0)
        return chunks * self.seconds(0.0, 1.0, self.prompt / chunks, self._before(chunks))

    def chunks(self, answers: float) -> int:
        """Return the chunks of a prompt beside `answers` sequences in decode."""
        settings = self.plan.settings
        return math.ceil(self.prompt / self.room(answers)) if settings.chunked else 1

    def room(self, answers: float) -> float:
        """Return the prompt tokens that fit into an iteration."""
        settings = self.plan.settings
        beside = math.ceil(answers) * settings.verified if settings.prompts == "beside" else 0
        return float(max(1, settings.budget - beside))

    def _before(self, chunks: int) -> float:
        return self.prompt * (chunks - 1) / 2 / chunks

    def steady(self, users: float, think_s: float) -> SteadyState:
        """Return the steady state of a batch with `users` users."""
        settings, steps = self.plan.settings, self.iterations
        held = min(users, self.running)
        answers, rate, ttft, tpot = held, 0.0, 0.0, 0.0
        door = (settings.api + settings.out) / FEMTO
        for _ in range(ROUNDS):
            decode, chunks, room = self.seconds(answers), self.chunks(answers), self.room(answers)
            coming = answers / steps  # prompts that follow the answers of an iteration
            full = settings.prompts == "beside" and coming * self.prompt >= room
            if full:
                coming = room / self.prompt
                answers = min(answers, coming * steps)
            coming *= 1.0 if full else max(1e-9, 1.0 - 1.0 / max(1.0, held))  # not those of the user itself
            joined = chunks if settings.prompts == "beside" else 1
            share = 1.0 if full else 1.0 - math.exp(-coming * joined)  # iterations with prefill
            chunk = self.prompt / chunks
            if settings.prompts == "beside":
                mixed = self.seconds(answers, coming * chunks / share, chunk, self._before(chunks))
                each, own = (1.0 - share) * decode + share * mixed, chunks * mixed
            else:
                own = chunks * self.seconds(0.0, coming / share, chunk, self._before(chunks))
                each = decode + share * own
            body = steps * each
            load = min(BUSIEST, share * own / chunks / each) if held > 1 else 0.0
            wait = decode * (0.5 + settings.ahead) + load * own / 2.0 / (1.0 - load) * (held - 1.0) / held
            tpot, first = body / max(1.0, self.output - 1.0), door + wait + own
            rate = answers / body if full else held / (first + body + think_s)
            ttft = max(first, users / rate - body - think_s)
            update = answers if full else held * body / (first + body + think_s)
            if abs(update - answers) <= CLOSE * answers:
                break
            answers = (answers + update) / 2 if full else update
        return SteadyState(rate, rate * self.output, ttft, tpot)


KnownParts = dict[tuple[object, ...], _Part]


class SteadyService:
    """The steady states of a service of one replica, or of the prefill and decode replicas of a `split:`."""

    def __init__(self, plan: ServicePlan, machine: Machine, known: KnownParts | None = None) -> None:
        """Args:
        known: iterations of other services of the same model, requests and GPUs, which are reused.
        """
        requests = list(islice(iter(plan.requests), SAMPLE))
        prompt, output = (math.fsum(getattr(row, name) for row in requests) / len(requests) for name in ("prompt", "output"))
        whole = math.fsum(row.output * (row.prompt + row.output / 2) for row in requests)
        shared = plan.keys.shared
        hit = shared.tokens if shared is not None and plan.settings.prefixes and isinstance(shared.tokens, int) else 0
        context, read = whole / (output * len(requests)), max(1.0, prompt - hit)
        arrivals = plan.keys.arrivals
        self.plan, self.machine = plan, machine
        self.think_s = 0.0 if isinstance(arrivals, str) else distribution_of(arrivals.think or 0.0).mean
        parts: KnownParts = {} if known is None else known
        self.parts = list[_Part]()
        for part in plan.parts:
            sizes = part.keys.parallel
            key = sizes.tp, sizes.pp, sizes.groups, sizes.ep, part.dtype, part.settings, part.tokens
            if key not in parts:
                parts[key] = _Part(part, _pace(part, machine), read, output, context)
            self.parts.append(parts[key])

    def with_users(self, users: float, think_s: float | None = None) -> SteadyState:
        """Return the steady state with a fixed number of users, each with one request in flight.

        Args:
            think_s: think time of a user (default: that of the service).
        """
        think_s = self.think_s if think_s is None else think_s
        if self.plan.prompts is not None:
            return self._apart(users, think_s)
        stages = self.plan.stages
        batch = self.parts[0].steady(max(1.0, users / stages), think_s)
        part = min(1.0, users / stages)  # fewer users than batches
        return SteadyState(part * stages * batch.requests_per_s, part * stages * batch.tokens_per_s, batch.ttft_s, batch.tpot_s)

    def at_rate(self, per_s: float) -> SteadyState | None:
        """Return the steady state at an arrival rate (requests/s); None if the service does not complete as many."""
        if self.plan.prompts is not None:
            state, in_flight = self._flowing(per_s)
            return None if math.isinf(in_flight) else state
        most = self.parts[0].running * self.plan.stages
        users, state = 1.0, self.with_users(1.0, 0.0)
        for _ in range(ROUNDS):
            update = max(1.0, per_s * users / state.requests_per_s)
            if update > most:
                return None
            users, before = update, users
            state = self.with_users(users, 0.0)
            if abs(users - before) <= CLOSE * users:
                break
        return None if state.requests_per_s < per_s * (1.0 - UNEVEN) and users > 1.0 else state

    def _apart(self, users: float, think_s: float) -> SteadyState:
        """Return the steady state of separate prefill and decode replicas with a number of users."""
        low, high, found = 0.0, self._most_per_s, self._flowing(0.0)[0]
        for _ in range(2 * ROUNDS):
            rate = (low + high) / 2.0
            state, in_flight = self._flowing(rate)
            if in_flight + rate * think_s > users:
                high = rate
            else:
                low, found = rate, state
        decode = found.tpot_s * (self.parts[1].output - 1.0)
        waits = users / found.requests_per_s - decode - think_s if found.requests_per_s else 0.0
        return SteadyState(found.requests_per_s, found.tokens_per_s, max(found.ttft_s, waits), found.tpot_s)

    @property
    def _most_per_s(self) -> float:
        """Largest rate of the prefill replicas for which a queue is computed (requests/s)."""
        assert self.plan.prompts is not None
        return BUSIEST * len(self.plan.prompts.batches) / self.parts[0].prefill()

    def _flowing(self, rate: float) -> tuple[SteadyState, float]:
        """Return the state of separate prefill and decode replicas at a rate, and its requests in flight (inf: overload)."""
        (read, written), plan = self.parts, self.plan
        assert plan.prompts is not None
        prefills, decodes = len(plan.prompts.batches), len(plan.batches)
        own, settings, limit = read.prefill(), written.plan.settings, written.running
        sent = transfer_cost(self.machine, plan.prompts.copies[0], plan.copies[0], read.prompt * plan.token_bytes).demand
        door = (settings.api + settings.out) / FEMTO + sent.latency + sent.body(self.machine.rates())
        load = min(BUSIEST, rate * own / prefills)
        answers = body = 0.0
        for _ in range(ROUNDS):
            body = written.iterations * written.seconds(min(max(answers, 1.0), limit))
            answers, before = rate * body / decodes, answers
            if answers > limit or abs(answers - before) <= CLOSE * answers:
                break
        ttft = door + own * (1.0 + load / 2.0 / (1.0 - load) / prefills)
        state = SteadyState(rate, rate * written.output, ttft, body / max(1.0, written.output - 1.0))
        is_over = answers > limit or rate > self._most_per_s
        return state, math.inf if is_over else rate * (ttft + body)


def _pace(part: ServicePlan, machine: Machine) -> Pace:
    """Return the iteration times of a part, with the collectives of its first replica."""
    exchanges = ReplicaCollectives(part, machine, part.batches[0])
    return pace_class(part)(part, machine.kept(Tables)).also(exchanges.seconds)
