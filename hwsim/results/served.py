"""The log of a service: what happens to its requests while it runs, in memory that does not grow with their number.

Requests under way are kept one by one. Those that ended are added up, block by block, into bins of their first token, their
time between tokens and their latency, each bin with the parts of that time. Rows are kept of all requests up to `ROWS`; of
more, a sample by a hash of their number. The course is kept in at most `CELLS` stretches of time, which double as it grows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.records import dataclass
from hwsim.results.accounting import HOST, NETWORK, PARTS, ROOM, Meters, Refusal, Spent, Stay
from hwsim.results.batches import Batched
from hwsim.ticks import FEMTO, Column

ROWS: Final = 20_000  # requests whose rows are all kept
SAMPLE: Final = 2_000  # rows that are kept of more
BLOCK: Final = 4_096  # requests that are added up together
CELLS: Final = 512  # stretches of time of the course, at most
FINEST: Final = 40  # bits of the shortest stretch: 1.1 ms
DROPPED: Final = 45  # bits of a float that a bin leaves out: 128 bins an octave
MEASURES: Final = ("ttft", "tpot", "latency")
COLUMNS: Final = ("number", "arrival", "copy", "prompt", "output", "begin", "first", "end", "cached")
Columns: TypeAlias = dict[str, Column]
Limits: TypeAlias = tuple[int | None, int | None, int | None]  # fs of `MEASURES`


def bin_of(value: float) -> int:
    """The bin of a number; bins are in the order of their numbers.

    >>> bin_of(1.0) == bin_of(1.007), bin_of(1.0) + 1 == bin_of(1.008), bin_of(2.0) - bin_of(1.0)
    (True, True, 128)
    """
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return int(bits) >> DROPPED


def middle(number: int) -> float:
    """The number in the middle of a bin.

    >>> abs(middle(bin_of(3.0)) / 3.0 - 1) < 0.004
    True
    """
    (value,) = struct.unpack("<d", struct.pack("<q", (number << DROPPED) + (1 << DROPPED - 1 if number else 0)))
    return float(value)


@dataclass(slots=True)
class Pile:
    """Values of one kind in bins: how many, their sum, and the sums of the parts that they consist of.

    Args:
        many: tokens that the parts of a bin are shared by; requests, for times of a request.
    """

    count: dict[int, int] = field(default_factory=dict)
    parts: dict[int, list[int]] = field(default_factory=dict)
    many: dict[int, int] = field(default_factory=dict)
    total: float = 0.0
    most: float = 0.0

    def add(self, values: Sequence[float], counts: Sequence[int]) -> None:
        """Add values with their counts, without the parts that they consist of."""
        column, times = np.array(values, np.float64), np.array(counts, np.int64)
        distinct, places = np.unique(column.view(np.int64) >> DROPPED, return_inverse=True)
        sums = np.zeros(len(distinct), np.int64)
        np.add.at(sums, places, times)
        for place, count in zip(distinct.tolist(), sums.tolist(), strict=True):
            self.count[place] = self.count.get(place, 0) + count
        self.total += float((column * times).sum())
        self.most = max(self.most, float(column.max()))

    def add_all(self, values: NDArray[np.float64], parts: Sequence[Column], shared_by: Column | None = None) -> None:
        """Values with the parts that they consist of, times `shared_by`."""
        if not len(values):
            return
        places = values.view(np.int64) >> DROPPED
        order = np.argsort(places, kind="stable")
        distinct, firsts, counts = np.unique(places[order], return_index=True, return_counts=True)
        sums = [ticks.group_totals(part[order], firsts).tolist() for part in parts]
        many = counts.tolist() if shared_by is None else ticks.group_totals(shared_by[order], firsts).tolist()
        for row, place in enumerate(distinct.tolist()):
            self.count[place] = self.count.get(place, 0) + int(counts[row])
            self.many[place] = self.many.get(place, 0) + many[row]
            kept = self.parts.setdefault(place, [0] * len(parts))
            for number, column in enumerate(sums):
                kept[number] += column[row]
        self.total += float(values.sum())
        self.most = max(self.most, float(values.max()))

    @property
    def number(self) -> int:
        """Number of values."""
        return sum(self.count.values())  # integers

    def at(self, part: float) -> float:
        """The value below which this part of all lies, to 0.4 %."""
        wanted, passed = part * self.number, 0
        for place in sorted(self.count):
            passed += self.count[place]
            if passed >= wanted:
                return min(middle(place), self.most)
        return 0.0

    def around(self, low: float, high: float) -> tuple[int, int, list[int]]:
        """(values, what they are shared by, sums of their parts) of the bins that hold these parts of all."""
        number, passed = self.number, 0
        count, many, sums = 0, 0, [0] * len(PARTS)
        for place in sorted(self.parts):
            start, passed = passed, passed + self.count[place]
            if passed > low * number and start < high * number:
                count += self.count[place]
                many += self.many[place]
                sums = [before + more for before, more in zip(sums, self.parts[place], strict=True)]
        return count, many, sums


@dataclass(slots=True)
class Course:
    """State over time, in at most `CELLS` stretches of equal length: events are counted, and cache x time is added up."""

    bits: int = FINEST
    came: dict[int, int] = field(default_factory=dict)
    began: dict[int, int] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=dict)

    def counts(self, column: dict[int, int], time: int, change: int = 1) -> None:
        """An event."""
        cell = time >> self.bits
        while cell >= CELLS:
            self._double()
            cell = time >> self.bits
        column[cell] = column.get(cell, 0) + change

    def takes(self, start: int, end: int, blocks: int) -> None:
        """So many blocks of a cache are taken from `start` to `end`."""
        if not blocks:
            return
        while end >> self.bits >= CELLS:
            self._double()
        cell = start >> self.bits
        if cell == end >> self.bits:
            self.taken[cell] = self.taken.get(cell, 0) + blocks * (end - start)
            return
        while start < end:
            until = min(end, (cell + 1) << self.bits)
            self.taken[cell] = self.taken.get(cell, 0) + blocks * (until - start)
            start, cell = until, cell + 1

    def _double(self) -> None:
        self.bits += 1
        for column in (self.came, self.began, self.ended, self.taken):
            halved: dict[int, int] = {}
            for cell, amount in column.items():
                halved[cell >> 1] = halved.get(cell >> 1, 0) + amount
            column.clear()
            column.update(halved)


@dataclass(slots=True)
class Totals:
    """Requests that are counted, added up.

    Args:
        latencies, waits: sums, fs. good: requests that kept their service level.
        series: the times of the requests in their order, for how far their percentiles are known.
    """

    piles: dict[str, Pile] = field(default_factory=lambda: {name: Pile() for name in (*MEASURES, "wait")})
    series: dict[str, Batched] = field(default_factory=lambda: {name: Batched() for name in MEASURES})
    requests: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    latencies: int = 0
    waits: int = 0
    good: int = 0
    first_arrival: int = -1

    def add(self, columns: Columns, goal: Limits) -> None:
        """Requests that have ended, in order."""
        if not len(columns["number"]):
            return
        times = times_of(columns)
        first = int(columns["arrival"].min())
        self.first_arrival = first if self.first_arrival < 0 else min(first, self.first_arrival)
        self.requests += len(columns["number"])
        self.prompt_tokens += ticks.total(columns["prompt"])
        self.output_tokens += ticks.total(columns["output"])
        self.cached_tokens += ticks.total(columns["cached"])
        self.latencies += ticks.total(columns["end"] - columns["arrival"])
        self.waits += ticks.total(columns["begin"] - columns["arrival"])
        several, writes = columns["output"] > 1, columns["output"] > 0
        parts = [columns[name] for name in PARTS]
        early = [columns[f"first_{name}"] for name in PARTS]
        later = [(part - before)[several] for part, before in zip(parts, early, strict=True)]
        self.piles["latency"].add_all(times["latency"], parts)
        self.piles["wait"].add_all(times["wait"], ())
        self.piles["ttft"].add_all(times["ttft"], [part[writes] for part in early])
        self.piles["tpot"].add_all(times["tpot"], later, columns["output"][several] - 1)
        for name, series in self.series.items():
            series.extend(times[name] / FEMTO)
        keeps = np.ones(len(several), np.bool_)
        for name, limit, where in zip(MEASURES, goal, (writes, several, keeps.copy()), strict=True):
            if limit is not None:
                keeps[np.flatnonzero(where)] &= times[name] <= limit
        self.good += int(keeps.sum())


def times_of(columns: Columns) -> dict[str, NDArray[np.float64]]:
    """Times of requests in fs: of those that write a token (`ttft`), or several (`tpot`), and of all."""
    arrival, end, first, output = (columns[name] for name in ("arrival", "end", "first", "output"))
    several = output > 1
    writing = (end - first)[several].astype(np.float64)
    return {
        "latency": (end - arrival).astype(np.float64),
        "wait": (columns["begin"] - arrival).astype(np.float64),
        "ttft": (first - arrival)[output > 0].astype(np.float64),
        "tpot": writing / (output[several] - 1).astype(np.float64),
    }


@dataclass(slots=True)
class Log:
    """Notes of a service while it runs; times in fs.

    The one that plays a service calls `came`, and for each iteration `refuses` and `begins` when it is decided upon, `reads` and
    `iterated` when it has ended, then `writes` and `ends`. Calls of one copy are in the order of time.

    Args:
        goal: (first token, token, latency) in fs that a request has to keep, None for any.
        warm_up: fs from the first arrival in which requests do not count; None: until the steady state.
        meters: one for each copy. live: requests under way.
        sampled: rows are of a sample. cut: requests of the beginning that do not count.
    """

    copies: int
    goal: Limits = (None, None, None)
    warm_up: int | None = 0
    meters: list[Meters] = field(init=False)
    live: dict[int, Stay] = field(default_factory=dict)
    totals: Totals = field(default_factory=Totals)
    gaps: Pile = field(default_factory=Pile)
    course: Course = field(default_factory=Course)
    sampled: bool = False
    cut: int = 0
    requests: int = 0
    first_arrival: int = -1
    last_arrival: int = 0
    last_end: int = 0
    iterations: int = 0
    worked: int = 0
    put_off: int = 0
    read_again: int = 0
    most_blocks: int = 0
    area_blocks: int = 0  # blocks x fs
    _ended: list[Stay] = field(default_factory=list)
    _kept: list[Columns] = field(default_factory=list)
    _since: int = 0
    _joined: list[dict[int, int]] = field(init=False)
    _wrote: list[int] = field(init=False)
    _gap: list[float] = field(default_factory=list)
    _gap_counts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.meters = [Meters() for _ in range(self.copies)]
        self._joined = [{} for _ in range(self.copies)]
        self._wrote = [0] * self.copies

    def came(self, arrival: int, request: int, copy: int, prompt: int, output: int, seen: int = -1, late: int = 0) -> None:
        """A request that arrived stands in a copy's line from `seen` on; late: fs of it that it waited for room elsewhere."""
        stay = Stay(request, arrival, copy, prompt, output, max(arrival, seen))
        stay.parts[HOST] -= late
        stay.parts[ROOM] += late
        self.live[request] = stay
        self.meters[copy].came(stay)
        self.course.counts(self.course.came, arrival)
        self.first_arrival = arrival if self.first_arrival < 0 else min(self.first_arrival, arrival)
        self.last_arrival = max(self.last_arrival, arrival)

    def refuses(self, copy: int, refusal: Refusal) -> None:
        """Why the head of the line does not join the iteration that begins; "" if it does, or if none waits."""
        self.meters[copy].refusal = refusal

    def begins(self, time: int, requests: Iterable[int], cached: int = 0) -> None:
        """An iteration begins that reads these, perhaps for the first time; cached: tokens that need not be read."""
        for request in requests:
            stay = self.live[request]
            if stay.begin < 0:
                stay.cached = cached
                self.meters[stay.copy].begins(stay, time)
                self.course.counts(self.course.began, time)

    def reads(self, request: int, time: int) -> None:
        """Time of the iteration that has ended went to a part of this prompt."""
        stay = self.live[request]
        if stay.put_off < 0:
            stay.alone += time

    def iterated(
        self, copy: int, start: int, end: int, spent: Spent, *,
        answers: int, worked: int, blocks: int = 0, count: int = 1, first: int = 0,
    ) -> None:  # fmt: skip
        """An iteration, or a run of equal ones.

        Args:
            answers: sequences that each wrote a token in each of them, besides those that end their prompts.
            worked: sequences that were worked on. blocks: of the cache, taken meanwhile.
            count: iterations of the run; first: fs of the first of them, the others follow in equal steps.
        """
        self.meters[copy].iterated(start, end, spent)
        self.iterations += count
        self.worked += worked * count
        if blocks > self.most_blocks:
            self.most_blocks = blocks
        self.area_blocks += blocks * (end - start)
        self.course.takes(start, end, blocks)
        if answers:
            self._gaps(copy, start, end, answers, count, first or (end - start) // count)

    def _gaps(self, copy: int, start: int, end: int, answers: int, count: int, first: int) -> None:
        """Times between tokens."""
        values, counts, joined, next_end = self._gap, self._gap_counts, self._joined[copy], start + first
        for since in joined.values():
            values.append(next_end - since)
            counts.append(1)
        if answers > len(joined):
            values.append(next_end - self._wrote[copy])
            counts.append(answers - len(joined))
        if joined:
            joined.clear()
        self._wrote[copy] = end
        if len(values) > BLOCK:
            self._settle_gaps()
        if count < 2:
            return
        rest = end - start - first
        last = max(0.0, 2.0 * rest / (count - 1) - first) if count > 2 else float(rest)
        if abs(last - first) < first / 256:
            values.append(first + (last - first) * count / (2 * (count - 1)))
            counts.append(answers * (count - 1))
            return
        pieces = min(count - 1, 16)
        for piece in range(pieces):  # equal steps, so that the middle of a piece stands for it
            low, high = piece * (count - 1) // pieces, (piece + 1) * (count - 1) // pieces
            values.append(first + (last - first) * (low + high + 1) / (2 * (count - 1)))
            counts.append(answers * (high - low))

    def _settle_gaps(self) -> None:
        """Add up the times between tokens."""
        if self._gap:
            self.gaps.add(self._gap, self._gap_counts)
            self._gap.clear()
            self._gap_counts.clear()

    def writes(self, time: int, requests: Iterable[int], out: int = 0) -> None:
        """The prompts of these are read and a token of each is out; out: fs until it is with the client."""
        for request in requests:
            stay = self.live[request]
            self.meters[stay.copy].writes(stay, time + out)
            self._joined[stay.copy][request] = time

    def ends(self, time: int, requests: Iterable[int], out: int = 0) -> None:
        """These are answered."""
        for request in requests:
            stay = self.live.pop(request)
            self._joined[stay.copy].pop(request, None)
            self.meters[stay.copy].ends(stay, time + out)
            self.course.counts(self.course.ended, time + out)
            self._ended.append(stay)
        if len(self._ended) >= BLOCK:
            self.settle()

    def is_read(self, time: int, request: int) -> None:
        """A prompt is read whose answer is written elsewhere."""
        stay = self.live[request]
        self.meters[stay.copy].is_read(stay, time)

    def hands_over(self, time: int, request: int) -> None:
        """Keys and values of a prompt have passed to where its answer is written; its first token is out."""
        stay = self.live[request]
        stay.parts[NETWORK] += time - stay.since
        stay.since, stay.first, stay.to_first = time, time, tuple(stay.parts)

    def goes_on(self, time: int, request: int, copy: int) -> None:
        """It joins the iterations of that copy."""
        stay = self.live[request]
        self._joined[copy][request] = stay.since
        stay.copy = copy
        self.meters[copy].goes_on(stay, time)

    def puts_off(self, time: int, request: int, lost: int) -> None:
        """A request gives up its blocks; lost: tokens that it has to read again."""
        stay = self.live[request]
        self.meters[stay.copy].puts_off(stay, time)
        self._joined[stay.copy].pop(request, None)
        self.put_off += 1
        self.read_again += lost

    def settle(self) -> None:
        """Take up the requests that have ended."""
        if not self._ended:
            return
        stays, self._ended = self._ended, []
        columns = {name: ticks.column([getattr(stay, name) for stay in stays]) for name in COLUMNS}
        for part, name in enumerate(PARTS):
            columns[name] = ticks.column([stay.parts[part] for stay in stays])
            columns[f"first_{name}"] = ticks.column([stay.to_first[part] for stay in stays])
        self.requests += len(stays)
        self.last_end = max(self.last_end, int(columns["end"].max()))
        self._kept.append(columns)
        if self.requests <= ROWS:
            return
        joined = self._join()
        if self.sampled:
            self.totals.add(self._counted(_sorted(columns)), self.goal)
        else:
            self._starts(joined)
            self.totals.add(self._counted(joined), self.goal)
            self.sampled = True
        order = np.argsort(_hashed(joined["number"].astype(np.int64)), kind="stable")[:SAMPLE]
        self._kept = [{name: column[order] for name, column in joined.items()}]

    def finish(self) -> Columns:
        """Count the requests whose rows are kept; the rows, by number."""
        self.settle()
        self._settle_gaps()
        if not self._kept:
            return {}
        joined = self._join()
        if not self.sampled:
            self._starts(joined)
            self.totals.add(self._counted(joined), self.goal)
        return joined

    def _starts(self, columns: Columns) -> None:
        """Find out from when on requests count."""
        if self.warm_up is not None:
            self._since = self.first_arrival + self.warm_up
        else:
            series = Batched()
            series.extend(times_of(columns)["latency"] / FEMTO)
            first, _ = series.warm_up
            self._since = int(columns["arrival"][min(first, len(columns["arrival"]) - 1)])
        self.cut = int((columns["arrival"] < self._since).sum())  # count

    def _counted(self, columns: Columns) -> Columns:
        """The requests that count."""
        late = columns["arrival"] >= self._since
        return columns if late.all() else {name: column[late] for name, column in columns.items()}

    def _join(self) -> Columns:
        """Columns of the rows that are kept, by number."""
        columns = {}
        for name in self._kept[0]:
            every = [block[name] for block in self._kept]
            columns[name] = np.concatenate([ticks.matching(block, *every) for block in every])
        self._kept = [_sorted(columns)]
        return self._kept[0]


def _sorted(columns: Columns) -> Columns:
    """By number."""
    order = np.argsort(columns["number"], kind="stable")
    return {name: column[order] for name, column in columns.items()}


def _hashed(numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A number by chance for each number, always the same (SplitMix64's last step)."""
    bits = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
