"""The latency breakdown of every request: parts that add up to its latency, to the femtosecond.

    scheduling_delay  waiting for the running iteration, or for requests ahead in the queue
    batch_slot_wait   waiting for a batch slot
    kv_cache_wait     waiting for KV-cache blocks
    prefill           its own prefill
    other_prefill     prefill of other requests, before its first token and between its tokens
    other_decode      decode of other requests, before its first token
    decode            decode iterations that output its tokens
    communication     collectives and KV-cache transfers between GPUs
    contention        other jobs on its devices, or slower devices
    kv_load           loading KV-cache blocks of its prompt from the host or a disk
    replica_start     waiting for a replica to start, before it is queued at one
    adapter_wait      waiting for an adapter slot, while others pass it
    recompute         from its preemption until its next output token
    host              scheduler, tokenizer and front end

Each replica has meters: the total time of its iterations by use. A request reads the meters when it arrives, is first scheduled,
outputs its first token and completes; the differences are its parts. A run of equal iterations advances the meters once.

A queued request is charged with the use of the replica's time. While the head of the queue is refused for lack of blocks or
slots, all of that time is `kv_cache_wait` or `batch_slot_wait`, because the queue is served in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Final, Literal, TypeAlias

from hwsim.records import dataclass

CALLED: Final = {  # by part: (activity of the request, what bounds it)
    "scheduling_delay": ("waiting for the running iteration", "scheduling delay"),
    "batch_slot_wait": ("waiting for a batch slot", "batch slots"),
    "kv_cache_wait": ("waiting for KV cache", "full KV cache"),
    "prefill": ("prefill", "prefill"),
    "other_prefill": ("prefill of other requests", "prefill"),
    "other_decode": ("decode of other requests", "decode"),
    "decode": ("decode", "decode"),
    "communication": ("communication", "communication"),
    "contention": ("contention with other jobs or slow parts", "contention"),
    "recompute": ("preempted and recomputing", "full KV cache"),
    "host": ("host", "host"),
    "kv_load": ("loading KV cache from the host or a disk", "KV-cache loading"),
    "replica_start": ("waiting for a replica to start", "starting replicas"),
    "adapter_wait": ("waiting for an adapter slot", "adapter slots"),
}
PARTS: Final = tuple(CALLED)
(SCHEDULING_DELAY, BATCH_SLOT_WAIT, KV_CACHE_WAIT, PREFILL, OTHER_PREFILL, OTHER_DECODE, DECODE, COMMUNICATION, CONTENTION,
 RECOMPUTE, HOST, KV_LOAD, REPLICA_START, ADAPTER_WAIT) = range(len(PARTS))  # fmt: skip
Refusal: TypeAlias = Literal["", "batch slots", "KV cache"]  # reason why the head of the queue did not join the batch
Spent: TypeAlias = tuple[int, int, int, int, int]  # time of iterations (fs): prefill, decode, network, contention, host
Until: TypeAlias = Callable[[int], tuple[int, Spent]]


@dataclass(slots=True, eq=False)
class RequestAccount:
    """A request in flight; times in fs, -1 until they are known.

    Args:
        number: number of the request.
        arrival: arrival time.
        copy: index of its replica.
        prompt, output: prompt and output tokens.
        seen: time at which it was queued at the replica.
        begin: start of the first iteration that processes it.
        first: first output token.
        end: completion.
        cached: prompt tokens found in the prefix cache.
        parts: latency so far by cause, in the order of `PARTS`.
        to_first: the parts at the first output token.
        alone: time of iterations spent on its own prefill.
        since: time of the last reading of the meters.
        put_off: time of its preemption; -1: not preempted.
        read: meters at `since`.
        refused: (seats, room) meters at `since`; None before the first reading.
        noted: time before `seen` up to which its latency has a cause.
    """

    number: int
    arrival: int
    copy: int
    prompt: int
    output: int
    seen: int
    begin: int = -1
    first: int = -1
    end: int = -1
    cached: int = 0
    parts: list[int] = field(default_factory=lambda: [0] * len(PARTS))
    to_first: tuple[int, ...] = ()
    alone: int = 0
    since: int = -1
    put_off: int = -1
    read: Spent = (0, 0, 0, 0, 0)
    refused: tuple[int, int] | None = None
    noted: int = -1

    def __post_init__(self) -> None:
        self.noted = self.arrival


@dataclass(slots=True, eq=False)
class Meters:
    """The meters of a replica; times in fs.

    Args:
        end: end of the last counted iteration.
        spent: total time of all iterations.
        refused: total time of iterations during which the head of the queue was refused.
        seats, room: total time in which the head of the queue was refused for lack of batch slots, of blocks.
        refusal: present reason of the refusal; "" for none.
        coming: requests that arrived since the last counted iteration.
    """

    end: int = 0
    spent: Spent = (0, 0, 0, 0, 0)
    refused: Spent = (0, 0, 0, 0, 0)
    seats: int = 0
    room: int = 0
    refusal: Refusal = ""
    coming: list[RequestAccount] = field(default_factory=list)

    def came(self, stay: RequestAccount) -> None:
        """Count a request that is queued."""
        if stay.seen < self.end:  # during an iteration that is already counted
            self._starts(stay, self.end, self.waited, self.seats, self.room)
        else:
            self.coming.append(stay)

    def iterated(self, start: int, end: int, spent: Spent, until: Until | None = None) -> None:
        """Count iterations that were decided at `start`.

        Args:
            start, end: start of the first and end of the last iteration (fs).
            spent: their time by use.
            until: function of an instant that returns (end of the iteration running just before it, time by use up to that end);
                None: there is one iteration.
        """
        if self.coming:
            coming, self.coming = self.coming, []
            for stay in coming:
                if stay.begin >= 0:
                    continue
                if stay.seen <= start:
                    self._starts(stay, start, self.waited, self.seats, self.room)
                elif stay.seen > end:
                    self.coming.append(stay)
                else:
                    at, passed = (end, spent) if until is None else until(stay.seen)
                    seats, room = (at - start) * (self.refusal == "batch slots"), (at - start) * (self.refusal == "KV cache")
                    waited = self.waited if self.refusal else _add_spent(self.waited, passed)
                    self._starts(stay, at, waited, self.seats + seats, self.room + room)
        (a, b, c, d, e), (p, q, r, s, t) = self.spent, spent
        self.spent = a + p, b + q, c + r, d + s, e + t
        if self.refusal:
            self.refused = _add_spent(self.refused, spent)
            if self.refusal == "KV cache":
                self.room += end - start
            else:
                self.seats += end - start
        self.end = end

    @property
    def waited(self) -> Spent:
        """Total time of iterations without a refusal."""
        (a, b, c, d, e), (p, q, r, s, t) = self.spent, self.refused
        return a - p, b - q, c - r, d - s, e - t

    def _starts(self, stay: RequestAccount, at: int, waited: Spent, seats: int, room: int) -> None:
        """Start to meter a request at `at`: the end of the iteration that ran when it was queued, or its queueing time."""
        early = at - stay.seen
        if early > 0:
            stay.parts[("", "batch slots", "KV cache").index(self.refusal)] += early  # the first of `PARTS`
        stay.since, stay.read, stay.refused = max(at, stay.seen), waited, (seats, room)

    def begins(self, stay: RequestAccount, time: int) -> None:
        """Record the start of the first iteration that processes a request."""
        self._waited(stay, time)
        stay.begin = time
        self._marks(stay, time)

    def loads(self, stay: RequestAccount, time: int) -> None:
        """Record the start of a wait for a KV-cache load or an adapter slot."""
        self._waited(stay, time)
        stay.since = time
        self.coming = [other for other in self.coming if other is not stay]

    def loaded(self, stay: RequestAccount, time: int, part: int) -> None:
        """Record the end of a load, whose wait is charged to `part`; the request is queued again."""
        stay.parts[part] += time - stay.since
        stay.seen = stay.noted = time
        stay.refused = None
        self.came(stay)

    def _waited(self, stay: RequestAccount, time: int) -> None:
        """Charge the time in the queue."""
        parts = stay.parts
        parts[HOST] += stay.seen - stay.noted
        if stay.refused is None:
            parts[SCHEDULING_DELAY] += time - stay.seen
        else:
            seats, room = self.seats - stay.refused[0], self.room - stay.refused[1]
            parts[BATCH_SLOT_WAIT] += seats
            parts[KV_CACHE_WAIT] += room
            passed = _charge_difference(parts, stay.read, self.waited, OTHER_PREFILL, OTHER_DECODE)
            parts[SCHEDULING_DELAY] += time - stay.since - seats - room - passed

    def writes(self, stay: RequestAccount, time: int) -> None:
        """Record the end of a prefill and its output token: the first, or the next one after a preemption."""
        self.is_read(stay, time)
        if stay.first < 0:
            stay.first, stay.to_first = time, tuple(stay.parts)
        self._marks(stay, time)

    def is_read(self, stay: RequestAccount, time: int) -> None:
        """Record the end of a prefill, possibly on another replica than the decode."""
        if stay.put_off >= 0:
            stay.parts[RECOMPUTE] += time - stay.put_off
            stay.put_off = -1
        else:
            self._reads(stay, time)
        stay.since = time

    def goes_on(self, stay: RequestAccount, time: int) -> None:
        """Record the start of decode after a KV-cache transfer."""
        stay.parts[SCHEDULING_DELAY] += time - stay.since
        self._marks(stay, time)

    def puts_off(self, stay: RequestAccount, time: int) -> None:
        """Record a preemption."""
        if stay.put_off >= 0:
            return
        self._reads(stay, time) if stay.first < 0 else self._wrote(stay, time)
        stay.put_off = time

    def ends(self, stay: RequestAccount, time: int) -> None:
        """Record the completion of a request."""
        if stay.first < 0:
            self._reads(stay, time)
            stay.to_first = tuple(stay.parts)
        elif time > stay.first:
            self._wrote(stay, time)
        stay.end = time

    def _marks(self, stay: RequestAccount, time: int) -> None:
        stay.since, stay.read, stay.alone = time, self.spent, 0

    def _reads(self, stay: RequestAccount, time: int) -> None:
        """Charge the time of the prefill."""
        parts = stay.parts
        passed = _charge_difference(parts, stay.read, self.spent, OTHER_PREFILL, OTHER_DECODE)
        parts[OTHER_PREFILL] -= stay.alone
        parts[PREFILL] += stay.alone
        self._rest(parts, time, time - stay.since - passed)

    def _wrote(self, stay: RequestAccount, time: int) -> None:
        """Charge the time of the decode."""
        passed = _charge_difference(stay.parts, stay.read, self.spent, OTHER_PREFILL, DECODE)
        self._rest(stay.parts, time, time - stay.since - passed)

    def _rest(self, parts: list[int], time: int, rest: int) -> None:
        """Charge the time outside iterations: output by the host, or scheduling delay."""
        if rest:
            out = min(max(0, time - self.end), rest)
            parts[HOST] += out
            parts[SCHEDULING_DELAY] += rest - out


def _add_spent(reading: Spent, spent: Spent) -> Spent:
    (a, b, c, d, e), (p, q, r, s, t) = reading, spent
    return a + p, b + q, c + r, d + s, e + t


def _charge_difference(parts: list[int], before: Spent, after: Spent, prompts: int, answers: int) -> int:
    """Add the difference of two readings of the meters to the parts; return its sum."""
    (a, b, c, d, e), (p, q, r, s, t) = after, before
    read, written, network, shared, host = a - p, b - q, c - r, d - s, e - t
    parts[prompts] += read
    parts[answers] += written
    parts[COMMUNICATION] += network
    parts[CONTENTION] += shared
    parts[HOST] += host
    return read + written + network + shared + host


def named(parts: Sequence[float]) -> Iterator[tuple[str, float]]:
    """Yield (name, value) of the parts above 0, largest first."""
    yield from sorted(((name, part) for name, part in zip(PARTS, parts, strict=True) if part > 0), key=lambda pair: -pair[1])
