"""A program of services as tables of integers and floats for the C++ simulator (core/src/services).

`ServiceTableBuilder.table` has one row of 8 integers for each step and each object that steps refer to; NONE (-1) means
"none". A reference is the index of a row, in `table` unless stated otherwise. The columns, in order (rows.h has their names):

    SERVE    kind, station, demand at the station, latency (fs), fixed time (fs), number or NONE, cause of waits, cost
    KEEP     kind, draw, slot
    BRANCH   kind, draw, first way, last way + 1, cache or NONE
    FORK     kind, first row of the branches, number of branches, step after the last Join
    ASK      kind, service, key, timeout (fs), retries, whether to retry failures, row of `floats` of the first wait, draw or NONE
    TAKE     kind, lock (row of `services`), step after its Give
    GIVE     kind, lock (row of `services`)
    JUMP     kind, step
    JOIN, END  kind

    branch   first step of a branch of FORK
    way      step, named branch or NONE, row of `floats` of its limit
    draw     key, distribution (index in `_DISTRIBUTIONS`), row of `floats` of the first of its values, row of its parameters
    number   draw or NONE, slot or NONE, first and last + 1 row of `floats` of its segments, row of `floats` of the body (fs)
    cache    service, row of `floats` of an event's hit rate (-1: none), first and last row of its segments, lookups or NONE
    event    service, whether it sets a hit rate, row of `floats` of the hit rate, emptied cache or NONE

`ServiceTableBuilder.floats` has rows of 4: the wait before a retry (fs) and jitter; segments (upper end, a, b); parameters of a
distribution, followed by a row for each of its values. `services` and `stations` have the columns of `rows` and `station_rows`.
The services are followed by loads (requests, end) and locks (group, whether it is taken, first and last in the queue, first and
last and number of the requests served together, cause of waits). The stations are followed by their classes (members, root,
since, due, row of `words` by queue depth, own depth, row of `words`, seen root, rows of weights) and by the data of arms:
choices, key, latest member; and per kind of work accesses, time of a sequential access (fs), positioning time (fs), key, row of
`floats` of the seek curve, first row of `floats` of the factors by queue depth, and the largest such depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hwsim.demand import rates_of
from hwsim.engine.compile import flow_class
from hwsim.engine.fair import FULL
from hwsim.families.services.actors import rows as code
from hwsim.families.services.actors import station_rows as places
from hwsim.families.services.workload.arms import choice_window, positioning_factors, positioning_scale
from hwsim.families.services.workload.program import (
    NONE,
    Ask,
    Branch,
    Fork,
    Give,
    Join,
    Jump,
    Keep,
    Serve,
    ServiceCache,
    ServicesProgram,
    Step,
    StepNumber,
    Take,
)  # fmt: skip
from hwsim.workload.load.arrivals import beginnings, thoughts
from hwsim.workload.load.draws import Distribution, Pareto, RandomDraws, Values
from hwsim.workload.load.numbers import stream

WORD: Final = (1 << 64) - 1
FLOATS: Final = 4  # width of a row of floats
ROOM: Final = 256  # initial number of strands and of timers
ANSWERS: Final = 16384  # responses kept until they are counted
CROWD: Final = 1024  # initial maximum queue depth in tables


class TableRows:
    """A table under construction, whose rows are referenced by their index."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows: list[list[Any]] = []

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, *numbers: Any) -> int:
        """Add a row, filled up with zeros, and return its index."""
        self.rows.append([*numbers, *[0] * (self.width - len(numbers))])
        return len(self.rows) - 1

    def column(self, dtype: Any) -> Any:
        return np.array(self.rows, dtype).reshape(-1, self.width)


def words(value: int, count: int) -> list[int]:
    """Return a number as words of 64 bits, the least significant first."""
    return [value >> 64 * index & WORD for index in range(count)]


def number_of(row: Sequence[Any], first: int = 0, count: int = 3) -> int:
    """Return the number whose words begin at a column."""
    return sum(int(row[first + index]) << 64 * index for index in range(count))  # integers


class ServiceTableBuilder:
    """The tables of a program at the begin of its run; see the module."""

    def __init__(self, program: ServicesProgram, slower: float) -> None:
        self.program, self.slower = program, slower
        self.table, self.floats = TableRows(8), TableRows(FLOATS)
        self.services, self.stations, self.words = (
            TableRows(code.SERVICE_WIDTH),
            TableRows(places.STATION_WIDTH),
            TableRows(places.WORDS_WIDTH),
        )
        self.first_lock = len(program.services) + len(program.loads)
        self.draws = [self._drawn(stream(program.seed, *draw.names), draw.distribution) for draw in program.draws]
        self.cache_rows = [self._cache(cache) for cache in program.caches]
        self.classes: list[tuple[int, Any]] = []  # (row in `stations`, class) of classes whose rate depends on the queue depth
        forks = [len(step.branches) for service in program.services for step in service.steps if isinstance(step, Fork)]
        self.margin = 8 + 2 * max(forks, default=0) + 2 * len(program.services)
        self.entries = [number for load in program.loads for number in load.services]
        self.resources = len(program.resources) + len(program.locks) + len(program.services) + 2
        for _ in program.services:
            self.words.add()
        self.worked = len(self.words)
        for _ in program.served:
            self.words.add()
        self._add_services()
        for load in program.loads:
            self.services.add(load.requests, min(load.until, code.LARGEST))
        for number, lock in enumerate(program.locks):
            row = [lock.group, 0, *[NONE] * 4, 0, len(program.resources) + number]
            self.services.add(*row)
        for number in range(len(program.stations)):
            self._add_station(number)
        self._add_classes()

    @property
    def too_long(self) -> bool:
        """Whether a time exceeds the range of the C++ simulator."""
        asks = [step for service in self.program.services for step in service.steps if isinstance(step, Ask)]
        served = self.program.served
        longest = [*(work.latency for work in served), *(work.body for work in served), *(step.timeout for step in asks)]
        ends = [*(event.until for event in self.program.events), *(service.start for service in self.program.services)]
        return bool(max([*longest, *ends], default=0) > code.FARTHEST)

    def _drawn(self, key: int, distribution: Distribution) -> int:
        """Add a draw, and return its row."""
        kind = _DISTRIBUTIONS.index(type(distribution).__name__)
        first = len(self.floats) + 1
        cut = (distribution.least / distribution.most) ** distribution.shape if isinstance(distribution, Pareto) else 0.0
        parameters = self.floats.add(*distribution.parameters, float(cut))
        if isinstance(distribution, Values):
            for value in distribution.values:
                self.floats.add(value)
        return self.table.add(_signed(key), kind, first, parameters)

    def _add_services(self) -> None:
        program = self.program
        bases = []
        base = len(self.table)
        for service in program.services:
            bases.append(base)
            base += len(service.steps)
        steps = [self.table.add() for service in program.services for _ in service.steps]
        for number, service in enumerate(program.services):
            for place, step in enumerate(service.steps):
                row = self._step(step, bases[number])
                self.table.rows[steps[0] + bases[number] - bases[0] + place][: len(row)] = row
        first = len(program.resources) + len(program.locks)
        for number, service in enumerate(program.services):
            keys = service.arrivals
            clients = 0 if keys is None or keys.clients is None else keys.clients
            begin = think = NONE
            if keys is not None and clients:
                drawings: list[RandomDraws] = [draws(keys, program.seed, service.name) for draws in (beginnings, thoughts)]
                begin, think = (self._drawn(drawing.key, drawing.distribution) for drawing in drawings)
            windows = len(self.words)
            for _ in range(code.MOST_WINDOWS + 1):
                self.words.add()
            entry = self.entries.index(number) if number in self.entries else NONE
            load = next((index for index, load in enumerate(program.loads) if number in load.services), NONE)
            row = [0] * code.SERVICE_WIDTH
            for column, value in (
                (code.BASE, bases[number]), (code.WORKERS, service.workers), (code.LIMIT_OF_LINE, service.limit),
                (code.DROPS, int(service.drops)), (code.CLIENTS, clients), (code.THINK, think), (code.START, service.start),
                (code.ENTRY, entry), (code.LOAD, len(program.services) + load),
                (code.RESOURCE_OF, first + number), (code.WINDOWS_AT, windows), (code.FREE, service.workers),
                (code.LINE_HEAD, NONE), (code.LINE_TAIL, NONE), (code.PARKED, NONE), (code.PARKED_TAIL, NONE),
                (code.FIRST_CAME, NONE), (code.LAST_CAME, NONE), (code.WINDOW, _FIRST_WINDOW), (code.EDGE, _FIRST_WINDOW),
                (code.WINDOWS, 1), (code.FIRST_THINK, begin),
            ):  # fmt: skip
                row[column] = value
            self.services.add(*row)

    def _step(self, step: Step, base: int) -> list[int]:
        match step:
            case Serve(cost=cost, size=size):
                served = self.program.served[cost]
                accesses = self.program.accesses_of(cost)
                body = (served.body if accesses is None else accesses.first) * self.slower
                fixed = round(body * size.fixed)
                number = NONE if size.is_fixed else self._size(size, body)
                return [code.SERVE, served.station, served.flow, served.latency, fixed, number, served.resource, cost]
            case Keep(draw=draw, slot=slot):
                return [code.KEEP, self.draws[draw], slot]
            case Branch():
                choices = step.choices or (NONE,) * len(step.to)
                limits = [self.floats.add(limit) for limit in step.limits]
                ways = [
                    self.table.add(base + to, choice, limit) for to, choice, limit in zip(step.to, choices, limits, strict=True)
                ]
                cache = NONE if step.cache < 0 else self.cache_rows[step.cache]
                return [code.BRANCH, self.draws[step.draw], ways[0], ways[-1] + 1, cache]
            case Fork(branches=branches, to=to):
                begins = [self.table.add(base + branch) for branch in branches]
                return [code.FORK, begins[0], len(branches), base + to]
            case Join():
                return [code.JOIN]
            case Ask():
                waits = [step.first * step.times**retry for retry in range(max(1, step.retries))]
                rows = [self.floats.add(float(wait), step.jitter) for wait in waits]
                draw = NONE if step.draw < 0 else self.draws[step.draw]
                return [code.ASK, step.service, _signed(step.key), step.timeout, step.retries, int(step.again), rows[0], draw]
            case Take(lock=lock, end=end):
                return [code.TAKE, self.first_lock + lock, base + end]
            case Give(lock=lock):
                return [code.GIVE, self.first_lock + lock]
            case Jump(to=to):
                return [code.JUMP, base + to]
            case _:
                return [code.END]

    def _cache(self, cache: ServiceCache) -> int:
        lines = [self.floats.add(*line) for line in cache.filling.lines] if cache.filling is not None else [0]
        return self.table.add(cache.service, self.floats.add(-1.0), lines[0], lines[-1], NONE)

    def _size(self, size: StepNumber, body: float) -> int:
        lines = [self.floats.add(*line) for line in size.lines]
        body_row = self.floats.add(body)
        first, last = (lines[0], lines[-1] + 1) if lines else (0, 0)
        return self.table.add(NONE if size.draw < 0 else self.draws[size.draw], size.slot, first, last, body_row)

    def _add_station(self, number: int) -> None:
        station = self.program.stations[number]
        row = [0] * places.STATION_WIDTH
        row[places.WORDS_AT] = self.words.add()
        row[places.DUE] = code.LARGEST
        for column in (places.HEAD, places.TAIL, places.LINE_FIRST):
            row[column] = NONE
        if station.kind in ("fifo", "arms"):
            kind = places.FIFO if station.kind == "fifo" else places.ARMS
            row[places.KIND], row[places.SERVERS], row[places.FREE] = kind, station.servers, station.servers
            row[places.FIRST_CLASS] = len(self.words)
            for working in range(station.servers + 1):
                self.words.add(*words(working * FULL // station.servers, 3))
        self.stations.add(*row)

    def _add_classes(self) -> None:
        """Add the classes of shared stations and of arms, after all stations."""
        self.flows: list[Any] = []
        for number, station in enumerate(self.program.stations):
            if station.kind == "fifo":
                continue
            row = self.stations.rows[number]
            if station.kind == "arms":
                row[places.LAST_CLASS] = self._add_arms(number)
                continue
            if station.is_tied:
                row[places.KIND], row[places.SERVERS], row[places.FREE] = places.TIED, len(station.capacities), len(self.words)
                for _ in station.capacities:
                    self.words.add()
            row[places.FIRST_CLASS] = len(self.stations)
            names = {capacity.name: index for index, capacity in enumerate(station.capacities)}
            flows = [flow_class(demand, rates_of(station.capacities), names) for demand in station.demands]
            self.flows += flows
            for flow in flows:
                weights = dict(flow.weights)
                shares = len(self.words)
                for index in range(len(station.capacities) if station.is_tied else 0):
                    self.words.add(*words(weights.get(index, 0), 2))
                weight = 0 if station.is_tied else weights.get(0, 0)
                alone = words(flow.alone, 2)
                own = self.words.add(*alone, *words(weight, 2), *words(flow.alone * weight, 3), 0, 0, 0, 0, 0, *alone)
                crowd = flow.crowd
                first = self.stations.add(0, NONE, 0, code.LARGEST, NONE, 0 if crowd is None else crowd.depth, own, NONE, shares)
                if crowd is not None:
                    self.classes.append((first, flow))
                    row[places.CROWDED] = CROWD
            row[places.LAST_CLASS] = len(self.stations)

    def _add_arms(self, number: int) -> int:
        """Add the rows of arms, and return the first one."""
        program, station = self.program, self.program.stations[number]
        first = self.stations.add(choice_window(station.accesses), _signed(stream(program.seed, station.name)), NONE)
        costs = {served.flow: cost for cost, served in enumerate(program.served) if served.station == number}
        for flow, accesses in enumerate(station.accesses):
            ways = accesses.ways
            curve = self.floats.add(ways.seeks.curve.a, ways.seeks.curve.b, ways.seeks.curve.c, ways.seeks.curve.e)
            self.floats.add(ways.seeks.curve.bend, ways.seeks.cylinders, ways.turn, ways.settle)
            self.floats.add(positioning_scale(accesses, self.slower))
            parts = [self.floats.add(part) for part in positioning_factors(accesses)]
            follows = round(accesses.follows * self.slower) if accesses.follows >= 0 else NONE
            way, key = round(accesses.reach * self.slower), _signed(program.ways_of(costs[flow]))
            self.stations.add(accesses.count, follows, way, key, curve, parts[0], len(parts) - 1)
        return first

    def crowd_rows(self, first: int, depth: int) -> Any:
        """Return the first row of each crowd and their rows of words up to a queue depth; `first`: index of the first row."""
        rows = TableRows(places.WORDS_WIDTH)
        begins = []
        for _, flow in self.classes:
            begins.append(first + len(rows))
            for queued in range(depth + 1):
                among = flow.among(max(queued, flow.crowd.crowd.depth))
                rows.add(*words(among.alone, 2), *words(dict(among.weights).get(0, 0), 2))
        return begins, rows.column(np.uint64)


def _signed(key: int) -> int:
    """Return the same 64 bits as an int64."""
    return key - (1 << 64) if key >> 63 else key


_DISTRIBUTIONS: Final = ("Constant", "Exponential", "Lognormal", "Uniform", "Pareto", "Values", "UniformInteger")
_FIRST_WINDOW: Final = 10**9
