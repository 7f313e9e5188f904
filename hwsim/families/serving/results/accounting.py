"""The time of every request by where it goes: parts that add up to its latency, to the femtosecond.

    turn      waiting for the iteration under way to end, or for requests that are looked at before it
    seats     waiting for a place in the batch          room     waiting for blocks of the KV cache
    reading   its own prompt                            others   prompts of other requests, before and between its tokens
    answers   answers of others, before its first token writing  iterations that write its tokens
    network   exchanges between the GPUs of a copy      shared   other jobs on its devices, or these slower
    loading   keys and values of its prompt that come from the host or a disk
    starting  waiting for a copy that starts, before it stands in a line
    adapter   waiting for a place for its adapter, while others pass it
    again     from the moment it is put off until it writes again
    host      scheduler, tokeniser and front end

Each copy has meters: time of its iterations by what they did, added up. A request notes the meters when it comes, begins,
writes its first token and ends; the differences are its parts. A run of equal iterations moves the meters once.

A request that waits is charged with what the copy did meanwhile. While the head of the line is refused for want of blocks or
of places, all of that time is `room` or `seats`: the line is served in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Final, Literal, TypeAlias

from hwsim.records import dataclass

CALLED: Final = {  # by part, what a request does or waits for, and what bounds it
    "turn": ("waiting for the running iteration", "scheduling delay"),
    "seats": ("waiting for a batch slot", "batch slots"),
    "room": ("waiting for KV cache", "KV cache"),
    "reading": ("prefill", "prefill"),
    "others": ("prefill of other requests", "prefill"),
    "answers": ("decode of other requests", "decode"),
    "writing": ("decode", "decode"),
    "network": ("communication", "communication"),
    "shared": ("contention with other jobs or slow parts", "contention"),
    "again": ("preempted and recomputing", "KV cache"),
    "host": ("host", "host"),
    "loading": ("loading KV cache from the host or a disk", "KV-cache loading"),
    "starting": ("waiting for a replica to start", "starting replicas"),
    "adapter": ("waiting for an adapter slot", "adapter slots"),
}
PARTS: Final = tuple(CALLED)
TURN, SEATS, ROOM, READING, OTHERS, ANSWERS, WRITING, NETWORK, SHARED, AGAIN, HOST, LOADING, STARTING, ADAPTER = range(len(PARTS))
Refusal: TypeAlias = Literal["", "seats", "room"]  # why the head of the line has not joined
Spent: TypeAlias = tuple[int, int, int, int, int]  # fs of iterations: prompts, answers, network, shared, host
Until: TypeAlias = Callable[[int], tuple[int, Spent]]


@dataclass(slots=True, eq=False)
class Stay:
    """One request, from its arrival to its end; times in fs, -1 until they are known.

    Args:
        number: its place among the requests. copy: who serves it. seen: when it stood in the line of the copy.
        parts: its time so far, in the order of `PARTS`; to_first: of it until its first token.
        alone: time of the iterations under way that read its own prompt. noted: until when its time before `seen` has a part.
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
    """The meters of one copy; fs.

    Args:
        end: end of the last iteration that is counted. spent: by all iterations; refused: by those with a refusal.
        seats, room: time in which the head of the line was refused. refusal: why it is now.
        coming: requests that came since the last iteration was counted.
    """

    end: int = 0
    spent: Spent = (0, 0, 0, 0, 0)
    refused: Spent = (0, 0, 0, 0, 0)
    seats: int = 0
    room: int = 0
    refusal: Refusal = ""
    coming: list[Stay] = field(default_factory=list)

    def came(self, stay: Stay) -> None:
        """A request stands in the line."""
        if stay.seen < self.end:  # during an iteration that is counted already
            self._starts(stay, self.end, self.waited, self.seats, self.room)
        else:
            self.coming.append(stay)

    def iterated(self, start: int, end: int, spent: Spent, until: Until | None = None) -> None:
        """Iterations from `start` to `end` that did this; decided upon at `start`.

        until: (end of the iteration under way just before an instant, what all went to until then); None: there is one.
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
                    seats, room = (at - start) * (self.refusal == "seats"), (at - start) * (self.refusal == "room")
                    waited = self.waited if self.refusal else _sum(self.waited, passed)
                    self._starts(stay, at, waited, self.seats + seats, self.room + room)
        (a, b, c, d, e), (p, q, r, s, t) = self.spent, spent
        self.spent = a + p, b + q, c + r, d + s, e + t
        if self.refusal:
            self.refused = _sum(self.refused, spent)
            if self.refusal == "room":
                self.room += end - start
            else:
                self.seats += end - start
        self.end = end

    @property
    def waited(self) -> Spent:
        """fs of the iterations without a refusal."""
        (a, b, c, d, e), (p, q, r, s, t) = self.spent, self.refused
        return a - p, b - q, c - r, d - s, e - t

    def _starts(self, stay: Stay, at: int, waited: Spent, seats: int, room: int) -> None:
        """A request waits from `at` on, the end of an iteration that was under way when it came, or when it came."""
        early = at - stay.seen
        if early > 0:
            stay.parts[(ROOM if self.refusal == "room" else SEATS) if self.refusal else TURN] += early
        stay.since, stay.read, stay.refused = max(at, stay.seen), waited, (seats, room)

    def begins(self, stay: Stay, time: int) -> None:
        """An iteration that begins at `time` works on it for the first time."""
        self._waited(stay, time)
        stay.begin = time
        self._marks(stay, time)

    def loads(self, stay: Stay, time: int) -> None:
        """From now on it waits for keys and values, or a place for its adapter."""
        self._waited(stay, time)
        stay.since = time
        self.coming = [each for each in self.coming if each is not stay]

    def loaded(self, stay: Stay, time: int, part: int) -> None:
        """What it waited for has come, and it stands in the line again; part: of its time."""
        stay.parts[part] += time - stay.since
        stay.seen = stay.noted = time
        stay.refused = None
        self.came(stay)

    def _waited(self, stay: Stay, time: int) -> None:
        """Charge what went by while it stood in the line."""
        parts = stay.parts
        parts[HOST] += stay.seen - stay.noted
        if stay.refused is None:
            parts[TURN] += time - stay.seen
        else:
            seats, room = self.seats - stay.refused[0], self.room - stay.refused[1]
            parts[SEATS] += seats
            parts[ROOM] += room
            passed = _charge(parts, stay.read, self.waited, OTHERS, ANSWERS)
            parts[TURN] += time - stay.since - seats - room - passed

    def writes(self, stay: Stay, time: int) -> None:
        """Its prompt is read and a token is out: the first, or the next one after it was put off."""
        self.is_read(stay, time)
        if stay.first < 0:
            stay.first, stay.to_first = time, tuple(stay.parts)
        self._marks(stay, time)

    def is_read(self, stay: Stay, time: int) -> None:
        """Its prompt is read here; its answer may be written elsewhere."""
        if stay.put_off >= 0:
            stay.parts[AGAIN] += time - stay.put_off
            stay.put_off = -1
        else:
            self._reads(stay, time)
        stay.since = time

    def goes_on(self, stay: Stay, time: int) -> None:
        """It waited since its prompt came here from elsewhere, and is worked on from now on."""
        stay.parts[TURN] += time - stay.since
        self._marks(stay, time)

    def puts_off(self, stay: Stay, time: int) -> None:
        """It gives up its blocks."""
        if stay.put_off >= 0:
            return
        self._reads(stay, time) if stay.first < 0 else self._wrote(stay, time)
        stay.put_off = time

    def ends(self, stay: Stay, time: int) -> None:
        """Its last token is out."""
        if stay.first < 0:
            self._reads(stay, time)
            stay.to_first = tuple(stay.parts)
        elif time > stay.first:
            self._wrote(stay, time)
        stay.end = time

    def _marks(self, stay: Stay, time: int) -> None:
        stay.since, stay.read, stay.alone = time, self.spent, 0

    def _reads(self, stay: Stay, time: int) -> None:
        """Charge what went by while its prompt was read."""
        parts = stay.parts
        passed = _charge(parts, stay.read, self.spent, OTHERS, ANSWERS)
        parts[OTHERS] -= stay.alone
        parts[READING] += stay.alone
        self._rest(parts, time, time - stay.since - passed)

    def _wrote(self, stay: Stay, time: int) -> None:
        """Charge what went by while its answer was written."""
        passed = _charge(stay.parts, stay.read, self.spent, OTHERS, WRITING)
        self._rest(stay.parts, time, time - stay.since - passed)

    def _rest(self, parts: list[int], time: int, rest: int) -> None:
        """Charge time outside iterations: on the way out, or between them."""
        if rest:
            out = min(max(0, time - self.end), rest)
            parts[HOST] += out
            parts[TURN] += rest - out


def _sum(reading: Spent, spent: Spent) -> Spent:
    (a, b, c, d, e), (p, q, r, s, t) = reading, spent
    return a + p, b + q, c + r, d + s, e + t


def _charge(parts: list[int], before: Spent, after: Spent, prompts: int, answers: int) -> int:
    """Add the difference of two readings to these parts; its sum."""
    (a, b, c, d, e), (p, q, r, s, t) = after, before
    read, written, network, shared, host = a - p, b - q, c - r, d - s, e - t
    parts[prompts] += read
    parts[answers] += written
    parts[NETWORK] += network
    parts[SHARED] += shared
    parts[HOST] += host
    return read + written + network + shared + host


def named(parts: Sequence[float]) -> Iterator[tuple[str, float]]:
    """Parts with their names, the largest first; parts of nothing are left out."""
    yield from sorted(((name, part) for name, part in zip(PARTS, parts, strict=True) if part > 0), key=lambda pair: -pair[1])
