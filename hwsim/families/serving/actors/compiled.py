"""A service that is alone on its devices, played by the compiled library (`core/src/served.cpp`): the same, event by event.

The library decides, counts and adds up. What it needs to know of kernels and exchanges it asks for, once for each size.
Requests go to it block by block, and come back as rows when they have ended: memory does not grow with their number.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from collections.abc import Sequence as Many
from dataclasses import field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from hwsim.engine import core
from hwsim.families.serving.actors import alone
from hwsim.families.serving.actors.alone import Written
from hwsim.families.serving.actors.blocks import Windowed
from hwsim.families.serving.actors.costs import Piece
from hwsim.families.serving.actors.pace import Pace
from hwsim.families.serving.actors.replica import DoesNotFit
from hwsim.families.serving.actors.run import Run, Sequence
from hwsim.families.serving.results import log as served
from hwsim.families.serving.results.accounting import PARTS
from hwsim.families.serving.results.course import Course
from hwsim.families.serving.results.log import COLUMNS, Log
from hwsim.families.serving.workload.plan import ServicePlan
from hwsim.families.serving.workload.requests import Request
from hwsim.families.serving.workload.settings import ANY
from hwsim.models.kernel_tables import COARSE
from hwsim.records import dataclass
from hwsim.ticks import Column, column

if TYPE_CHECKING:
    from hwsim.families.serving.actors.pace import Line

REQUESTS, ENDED, LINE, AROUND, PROMPT, SENT, COST, DOES_NOT_FIT = range(16, 24)  # hwsim_served_status
PROMPTS: Final = ("beside", "before", "alone")
ADMISSIONS: Final = ("prompt", "answer", "ratio")
ROUTERS: Final = ("least", "waiting", "round robin")
CELLS: Final = 512
FED: Final = 4_096  # requests that go to the library together
LONGEST: Final = 1 << 60  # fs of a time that the library is given
MOST: Final = 4_096  # numbers of an answer: some of each phase of the exchanges of an iteration
ROW: Final = len(COLUMNS) + 2 * len(PARTS)  # numbers of a request, each of two words
Words = NDArray[np.int64]


class TooFar(Exception):
    """A duration leaves 64 bits: Python is to play it."""


def covers(plan: ServicePlan) -> bool:
    """Whether the library knows all that a service does."""
    keys, settings = plan.keys, plan.settings
    rest = (plan.prompts, plan.speculation, plan.adapters, plan.offload, plan.scale)
    return (
        all(each is None for each in rest)
        and plan.answers
        and not (settings.padded or settings.gather)
        and settings.groups == settings.verified == 1
        and keys.router in ROUTERS
        and plan.start < LONGEST
    )


@dataclass(slots=True)
class Compiled:
    """A service whose plan is covered.

    Args:
        pace: times of the iterations of each copy.
        written: what the copies do, as their costs have it.
    """

    plan: ServicePlan
    pace: Many[Pace]
    log: Log
    written: Written
    _service: core.Handle = field(init=False)
    _asked: Words = field(init=False)
    _values: Words = field(init=False)
    _floats: NDArray[np.float64] = field(init=False)
    _places: tuple[int, ...] = ()  # where these three are

    def __post_init__(self) -> None:
        self._asked = np.zeros(16 + 2 * self.plan.settings.sequences, np.int64)
        self._values, self._floats = np.zeros(MOST, np.int64), np.zeros(MOST)
        self._places = tuple(each.ctypes.data for each in (self._asked, self._values, self._floats))

    def play(self) -> int:
        """Play to the last answer; when that is, fs.

        Raises:
            DoesNotFit: an empty cache has no room for a request.
            TooFar: see there.
        """
        self._begins()
        requests = iter(self.plan.requests)
        play = core.kernel("hwsim_served_play", core.POINTER, core.POINTER, core.INT)
        while (status := play(self._service.address, self._asked.ctypes.data, core.PATIENCE)) != core.DONE:
            if status == core.MORE:
                continue
            if status == REQUESTS:
                self._feeds(list(islice(requests, FED)))
            elif status == ENDED:
                self._takes(int(self._asked[0]))
            elif status == COST:
                self._draws()
            else:
                self._says(status)
        self._takes(int(self._asked[0]))
        return self._ends()

    def _begins(self) -> None:
        plan, settings, pace = self.plan, self.plan.settings, self.pace[0]
        model = pace.eager
        needs = np.zeros(0, np.int64)
        if plan.held:
            needs = Windowed(settings.block, plan.held).needs(plan.requests.most[0] + plan.requests.most[1] + 2)
        graphs = np.array(settings.graphs, np.int64)
        first, least, steps, most = settings.promise
        numbers = np.array([  # fits
            PROMPTS.index(settings.prompts), settings.chunked, settings.budget, settings.sequences,
            ADMISSIONS.index(settings.admit), settings.ahead, settings.look, settings.block, settings.prefixes, settings.api,
            settings.out, steps, most, settings.step, settings.each, settings.eager, settings.kernel, model.starts,
            settings.mixed, settings.exact, COARSE, ROUTERS.index(str(plan.keys.router)), plan.start, len(self.pace),
            ANY if plan.blocks is None else plan.blocks, len(graphs), len(needs), alone.ROWS, served.BLOCK,
            plan.requests.clients or 0, plan.requests.follow,
        ], np.int64)  # fmt: skip
        made = core.POINTER()
        _call("new", numbers, np.array([first, least, settings.spare]), graphs, needs, ctypes.byref(made))
        self._service = core.Handle(made.value or 0, "hwsim_served_free")

    def _feeds(self, requests: list[Request]) -> None:
        """The next requests."""
        if not self.plan.requests.follow:
            self.log.comes([self.plan.start + each.arrival for each in requests])
        firsts = np.cumsum([0, *(len(each.ids) for each in requests)], dtype=np.int64)  # count
        ids = np.array([name for each in requests for name in each.ids], np.int64)
        arrivals = words([each.arrival for each in requests])
        columns = (np.array([getattr(each, name) for each in requests], np.int64) for name in ("after", "prompt", "output"))
        span = max((each.span for each in requests), default=1)
        _call("feed", self._service.address, len(requests), arrivals, *columns, firsts, ids, span, len(requests) < FED)

    def _takes(self, count: int) -> None:
        """Requests that have ended."""
        if not count:
            return
        rows = np.empty((count, ROW, 2), np.int64)
        _call("ended", self._service.address, rows.reshape(-1))
        names = (*COLUMNS, *PARTS, *(f"first_{name}" for name in PARTS))
        self.log.settles({name: whole(rows[:, at]) for at, name in enumerate(names)})

    def _says(self, status: int) -> None:
        """The time of kernels or exchanges."""
        if status == core.TOO_FAR:
            raise TooFar
        if status == DOES_NOT_FIT:
            raise DoesNotFit(f"a request of {self._asked[0]:,} tokens does not fit into {self.plan.blocks or ANY:,} blocks")
        key = self._asked[:4].tolist()
        values: tuple[int, ...]
        if status == LINE:
            line: Line = self.pace[key[3]].line(*key[:3])
            values = line.start, line.attention, line.slope, line.rows, line.host
        elif status == SENT:
            values = self.pace[key[0]].sends(abs(key[1]), mixed=key[1] < 0)[:1]
        elif status == AROUND:
            values = (self.pace[key[3]].around(*key[:3]),)
        else:
            values = (self.pace[key[3]].prompt(*key[:3]),)
        if max(values) > LONGEST:
            raise TooFar
        self._tells(status, values)

    def _tells(self, status: int, values: Many[int], floats: Many[float] = ()) -> None:
        """Give the library the numbers it asked for."""
        self._values[: len(values)], self._floats[: len(floats)] = values, floats
        tell = core.kernel("hwsim_served_told", core.POINTER, core.INT, core.POINTER, core.POINTER, core.POINTER)
        tell(self._service.address, status, *self._places)

    def _draws(self) -> None:
        """Give the library what a run draws, and what its exchanges do."""
        copy, answers, context, ended, low, many = self._asked[:6].tolist()
        read = self._asked[6 : 6 + 2 * many].reshape(-1, 2).tolist()
        parts = [(Sequence(-1, 0, 0, 0, read=before), tokens) for tokens, before in read]
        run = Run(0, 0, 0, parts, answers, context, ended, low=low)
        costs = self.written.costs[copy]
        label, cost = costs.drawn(run)
        values, floats = [label, cost, -1, 0], list[float]()
        phases = costs.exchanged(self.pace[copy].sends(run.rows, mixed=bool(parts))[1])
        if phases:
            values[2:] = phases[0][0].label, len(phases)
            for op, body, _ in phases:
                values += [op.cost, op.time, 0]
                floats += [op.size, body]
        self._tells(COST, values, floats)

    def _ends(self) -> int:
        """Note all that was counted; when the last answer is written."""
        copies, sizes = len(self.pace), np.zeros(4, np.int64)
        _call("sizes", self._service.address, sizes)
        many_bins, many_sums, many_records, runs = sizes.tolist()
        numbers, meters = np.zeros((13, 2), np.int64), np.zeros((copies, 8, 2), np.int64)
        course, bins = np.zeros((CELLS, 4, 2), np.int64), np.zeros((many_bins, 2), np.int64)
        sums, seconds = np.zeros((many_sums, 5), np.int64), np.zeros(many_sums)
        records = np.zeros((many_records, 8), np.int64)
        results = (each.reshape(-1) for each in (numbers, meters, course, bins, sums, seconds, records))
        _call("results", self._service.address, *results)
        iterations, worked, put_off, read_again, bits, area, most, total, longest, end, *came_at, woken = whole(numbers).tolist()
        log = self.log
        if self.plan.requests.follow:
            log.first_arrival, log.last_arrival = came_at
        log.iterations, log.worked, log.put_off, log.read_again = iterations, worked, put_off, read_again
        pile = log.gaps.pile
        pile.count, pile.total, pile.most = dict(zip(*bins.T.tolist(), strict=True)), total, float(longest)
        columns = ({at: value for at, value in enumerate(whole(course[:, part]).tolist()) if value} for part in range(4))
        came, began, ended, taken = columns
        log.course = Course(bits, came, began, ended, taken, area, most)
        ends: dict[int, tuple[int, int, int]] = {}
        for copy, values in enumerate(whole(meters.reshape(-1, 2)).reshape(copies, 8).tolist()):
            log.meters[copy].spent = tuple(values[:5])
            if values[7] >= 0:
                ends[values[7]] = copy, values[5], values[6]
        self.written.summed(runs, [ends[at] for at in sorted(ends)], list(_summed(sums, seconds)), asked=bool(woken))
        last: list[int] = []  # by record, its last op
        for copy, label, cost, count, host, rows, *time in records.tolist():
            value = _number(*time)
            if label >= 0:
                self.written.notes(copy, self._chain(copy, label, cost, value, host, count, rows))
            elif cost < 0:
                self.written.wakes(copy, value)
            else:
                self.written.wakes(copy, value, (last[cost], _number(count, host)))
            last.append(len(self.written.ops) - 1)
        return int(end)

    def _chain(self, copy: int, label: int, cost: int, kernels: int, host: int, count: int, rows: int) -> list[Piece]:
        """The ops of a run; rows: tokens of each iteration, negative if some of them are of prompts."""
        costs, pace = self.written.costs[copy], self.pace[copy]
        _, padded = pace.sent.get(rows) or pace.sends(abs(rows), mixed=rows < 0)
        return costs.exchanges_of(count, padded, costs.chain(label, cost, kernels, host))


def _number(low: int, high: int) -> int:
    """A whole number of two words."""
    return (high << 64) + low % (1 << 64)


def _summed(sums: Words, seconds: NDArray[np.float64]) -> Iterator[tuple[tuple[int, int, int], list[Any]]]:
    times = whole(sums[:, 3:]).tolist()
    for (copy, label, cost), size, time in zip(sums[:, :3].tolist(), seconds.tolist(), times, strict=True):
        yield (copy, label, cost), [size, time]


def words(values: list[int]) -> Words:
    """Whole numbers of two words each, the least first."""
    made = column(values)
    if made.dtype != object:
        return np.stack([made, made >> 63], 1).reshape(-1)
    low = [value & (1 << 64) - 1 for value in values]
    words = np.array([(part - (1 << 64) if part >> 63 else part, value >> 64) for part, value in zip(low, values, strict=True)])
    return words.astype(np.int64).reshape(-1)


def whole(words: Words) -> Column:
    """Numbers of two words each."""
    low, high = words[:, 0], words[:, 1]
    if (high == low >> 63).all():
        return np.ascontiguousarray(low)
    return column((high.astype(object) << 64) + low.view(np.uint64).astype(object))


_LONGS, _FLOATS, _INT = core.LONGS, core.FLOATS, core.INT
_TYPES: Final = {
    "new": (_LONGS, _FLOATS, _LONGS, _LONGS, ctypes.POINTER(core.POINTER)),
    "feed": (core.POINTER, _INT, _LONGS, _LONGS, _LONGS, _LONGS, _LONGS, _LONGS, _INT, _INT),
    "ended": (core.POINTER, _LONGS),
    "sizes": (core.POINTER, _LONGS),
    "results": (core.POINTER, _LONGS, _LONGS, _LONGS, _LONGS, _LONGS, _FLOATS, _LONGS),
}


def _call(name: str, *given: Any) -> int:
    return core.kernel(f"hwsim_served_{name}", *_TYPES[name])(*given)
