"""Faults and slowdowns during a run: parts, links and services that slow down, fail and recover.

    events: [{at: 30 s, part: node3.gpu2, speed: 50 %}, {at: 1 min, link: fabric, down: 5 s}]

A part at half speed has half of each of its capacities. A link that is down carries nothing, and transfers on it wait. A part
that is down stalls and then resumes where it stopped, so no work is lost: a hang, not a crash. (After a crash, a training
restarts from its last checkpoint; see `failures` of a `train`.)

Overlapping events on one part have independent causes, so their speeds multiply: a GPU at 50 % because of its temperature and at
50 % because of a neighbour runs at 25 %. A link and the switch that it leaves are in series: the slower of their events counts.
The speed of a switch applies to its backplane or, for a full crossbar, to each of its outgoing links; a switch that is down
stalls all traffic through it. The speed of a CPU or GPU applies to all of its work, on one core as on all. The speed of a disk
applies to the transfer of an access, not to its latency. `Demand.clocks` contains the share of an op that scales with the speed.
Range: routes never change. Latencies of links, disks and NICs, and the start-up time of a service's work, are not affected.

    events: [{at: 0 s, part: gpu*, jitter: 5 %, every: 10 ms, for: 10 s, seed: 1}]

Jitter divides the work of each device (or link) into pieces of equal work and draws a new speed for each piece: work that takes t
without jitter takes t (1 + x), where x is exponentially distributed with mean `jitter`. Because all pieces contain equal work, a
part that is always busy slows down by this mean, however long its ops are. (With intervals of equal duration, slow intervals
would contain too little work, and 50 % would become 38 %.) A piece lasts `every` on average. The random stream depends on the
seed and on the name of the device or link direction: the same seed and names reproduce the run.
Range: short work that starts at an arbitrary moment, after a pause, falls into slow pieces more often, because they are longer.
With mean m it takes m + m^2 / (1 + m) longer (5.2 % for 5 %, 67 % for 50 %).
Source of the shape: operating system noise is rare and long-tailed (Petrini, Kerbyson, Pakin, "The case of the missing
supercomputer performance", SC 2003).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, partial
from math import log
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hwsim import ticks
from hwsim.formats import format_quantity
from hwsim.graph.opgraph import Change, Floats, Ints, LazyChanges
from hwsim.machine import Machine, UnknownName
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, Problem, Warning, did_you_mean, field, place_field
from hwsim.units import Ratio, Seconds

if TYPE_CHECKING:
    from hwsim.graph.disturbance import Disturbance

MAX_INTERVALS: Final = 100_000  # pieces of work with jitter in one event
FIRST, LONGER = 64, 4  # pieces that are drawn at first; how many times longer each time


@dataclass(frozen=True, slots=True)
class Event:
    """An event: exactly one of part, link and service, with exactly one of speed, down, jitter and (services only) hit."""

    at: Seconds = field("start time of the event", example="30 s")
    part: tuple[str, ...] = field("affected devices", default=(), one_or_many=True, example="node3.gpu2")
    link: str = field("affected links, by the name of their entry in `links`", default="")
    service: str = field("affected service", default="", example="store")
    hit: Ratio | None = field(
        "with `service`: hit rate of its caches during the event", default=None, maximum=1.0, example="50 %"
    )
    of: tuple[str, ...] = field("with `link`: only links that end at these devices", default=(), one_or_many=True)
    speed: Ratio | None = field("relative speed meanwhile", default=None, exclusive_minimum=0.0, maximum=1.0, example="50 %")
    down: Seconds | None = field(
        "duration of an outage, after which work resumes where it stopped", default=None, exclusive_minimum=0.0, example="5 s"
    )
    lasting: Seconds | None = field(
        "duration of `speed`, `jitter` or `hit` (default: to the end of the run)", key="for", default=None, exclusive_minimum=0.0
    )
    jitter: Ratio | None = field("average slowdown by random jitter", default=None, minimum=0.0, maximum=10.0, example="5 %")
    every: Seconds | None = field("with `jitter`: average time between changes of speed", default=None, exclusive_minimum=0.0)
    seed: int = field("with `jitter`: seed of the random speeds", default=0, minimum=0)
    place: Place = place_field()

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid combination of keys."""
        if self.service:
            yield from self._of_service()
            return
        if self.hit is not None:
            yield "hit", "`hit` is valid only with `service`", "service: NAME"
        if bool(self.part) == bool(self.link):
            message = "an event needs exactly one of `part`, `link` and `service`"
            yield "part" if self.part else "at", message, "part: gpu0   or   link: fabric"
        if sum(change is not None for change in (self.speed, self.down, self.jitter)) != 1:
            hint = "speed: 50 %   or   down: 5 s   or   jitter: 5 %"
            yield "at", "an event on a part or link needs exactly one of `speed`, `down` and `jitter`", hint
        if self.jitter is not None:
            yield from self._of_jitter(self.lasting, self.every)
        elif self.every is not None:
            yield "every", "`every` is valid only with `jitter`", "jitter: 5 %"
        if self.lasting is not None and self.down is not None:
            yield "for", "`for` is not valid with `down`, which is already a duration", None
        if self.of and not self.link:
            yield "of", "`of` is valid only with `link`", "link: NAME"

    def is_sound(self, mistakes: Mistakes) -> bool:
        """Whether the event is valid; add a mistake for each problem."""
        problems = list(self.problems())
        for _, message, hint in problems:
            mistakes.add(self.place, message, hint)
        return not problems

    def _of_service(self) -> Iterator[Problem]:
        if self.part or self.link or self.of:
            yield "service", "an event needs exactly one of `part`, `link` and `service`", "write two events"
        if self.speed is not None or self.jitter is not None or self.every is not None:
            yield "service", "a service has no `speed` or `jitter`", "down: 2 s   or   an event on its `part`"
        elif (self.hit is None) == (self.down is None):
            yield "at", "an event on a service needs exactly one of `down` and `hit`", "down: 2 s   or   hit: 50 %, for: 5 s"
        elif self.down is not None and self.lasting is not None:
            yield "for", "`for` is not valid with `down`, which is already a duration", None

    def _of_jitter(self, lasting: float | None, every: float | None) -> Iterator[Problem]:
        if lasting is None or every is None:
            yield "jitter", "`jitter` requires `for` and `every`", "for: 10 s, every: 10 ms"
        elif lasting / every > MAX_INTERVALS:
            yield "every", f"more than {MAX_INTERVALS:,} intervals of jitter: `for` / `every`", "increase `every`"


def disturbances(events: Sequence[Event]) -> tuple[Disturbance, ...]:
    """Return the events on parts and links in the form of the results."""
    if not events:
        return ()
    from hwsim.graph.disturbance import Disturbance

    return tuple(
        Disturbance(
            part=", ".join(event.part)
            if event.part
            else f"link {event.link}" + (f" of {', '.join(event.of)}" if event.of else ""),
            at_s=event.at,
            duration_s=event.lasting if event.down is None else event.down,
            speed=1.0 if event.jitter is not None else event.speed or 0.0,
            jitter=event.jitter or 0.0,
        )
        for event in events
        if not event.service
    )


class Changes(LazyChanges):
    """A lazy sequence of capacity changes in order of time: jitter may cause millions of changes after the end of the run.

    Args:
        events_of: events of each capacity, each event with its owner (a device, or the capacity of a link).
    """

    def __init__(self, events_of: Mapping[str, Sequence[tuple[Event, str]]]) -> None:
        self.capacities = tuple(sorted(events_of))
        self._events = [tuple(events_of[name]) for name in self.capacities]
        events = {event for rows in self._events for event, _ in rows}
        self.stops = any(event.down is not None for event in events)
        self._last = max([begin if end is None else end for begin, end in map(_span, events)], default=-1)
        pieces = [ticks.femtoseconds(event.every) for event in events if event.every is not None]
        self._first = FIRST * min(pieces) + 1 if pieces else self._last + 1

    def chunks(self) -> Iterator[tuple[Ints, Ints, Floats]]:
        begin, until = 0, self._first
        while begin <= self._last:
            speeds_of = cache(partial(_speeds, begin, until))  # the capacities of a device have the same events
            columns = [speeds_of(events) for events in self._events]
            moments, speeds = (np.concatenate(rows) for rows in zip(*columns, strict=True))
            numbers = np.repeat(np.arange(len(columns)), [len(rows) for rows, _ in columns])
            order = np.argsort(moments, kind="stable")
            yield moments[order], numbers[order], speeds[order]
            begin, until = until, LONGER * until

    def __iter__(self) -> Iterator[Change]:
        for columns in self.chunks():
            for instant, number, speed in zip(*(column.tolist() for column in columns), strict=True):
                yield Change(instant, self.capacities[number], speed)

    def __bool__(self) -> bool:
        return any(True for _ in self)

    def __len__(self) -> int:
        return sum(len(moments) for moments, _, _ in self.chunks())

    def __getitem__(self, index: Any) -> Any:
        return tuple(self)[index]


def changes(events: Sequence[Event], machine: Machine, mistakes: Mistakes) -> Sequence[Change]:
    """Return the changes of the machine's capacities by the events, in order of time; add a mistake for each invalid event."""
    events_of: dict[str, list[tuple[Event, str]]] = {}
    for event in events:
        if event.service or not event.is_sound(mistakes):  # events of services: `hwsim.families.services.workload`
            continue
        for capacity, owner in _capacities(event, machine, mistakes):
            events_of.setdefault(capacity, []).append((event, owner))
    all_changes = Changes(events_of)
    return all_changes if any(event.jitter is not None for event in events) else tuple(all_changes)


def _span(event: Event) -> tuple[int, int | None]:
    """Begin and end of an event (fs); end None: it lasts to the end of the run."""
    begin, duration = ticks.femtoseconds(event.at), event.lasting if event.down is None else event.down
    return begin, None if duration is None else begin + ticks.femtoseconds(duration)


def _steps(event: Event, owner: str, until: int) -> tuple[ticks.Column, Floats]:
    """Moments before `until` (fs) at which an event changes the speed of a device or link, and the speed from then on."""
    begin, end = _span(event)
    stop = until if end is None else min(until, end)
    moments, speeds = [ticks.column([begin])], [np.array([event.speed or 0.0])]
    if event.jitter is not None and event.every is not None:
        from random import Random  # few runs have jitter

        draw, speeds = Random(f"{event.seed} {owner}").random, []
        work = event.every / (1.0 + event.jitter)  # time of a piece at full speed, s
        while begin < stop:
            count = 1 + int((stop - begin) / (event.every * ticks.FEMTO))
            logs = [log(1.0 - draw()) for _ in range(count)]  # exponential; equal on every computer, unlike those of numpy
            slowdowns = 1.0 - np.array(logs) * event.jitter
            pieces = np.maximum(ticks.rounded(np.rint(work * slowdowns * ticks.FEMTO)), 1)
            moments.append(ticks.add(ticks.running_total(pieces), begin))
            speeds.append(1.0 / slowdowns)
            begin = int(moments[-1][-1])
        speeds.append(np.ones(1))
    moment, speed = np.concatenate(moments), np.concatenate(speeds)
    kept, ends = moment < stop, [] if end is None or end >= until else [end]
    return np.append(moment[kept], ticks.column(ends)), np.append(speed[kept], [1.0] * len(ends))


def _speeds(begin: int, until: int, events: Sequence[tuple[Event, str]]) -> tuple[ticks.Column, Floats]:
    """Moments of changes from `begin` on, and the speed: the minimum over owners in series of the product of their events."""
    steps = [_steps(event, owner, until) for event, owner in events]
    moments, speeds = steps[0] if len(steps) == 1 else _together(steps, [owner for _, owner in events])
    changed = (speeds != np.append(1.0, speeds[:-1])) & (moments >= begin)
    return moments[changed], speeds[changed]


def _together(steps: Sequence[tuple[ticks.Column, Floats]], owners: Sequence[str]) -> tuple[ticks.Column, Floats]:
    rows = [(*row, event) for event, columns in enumerate(steps) for row in zip(*map(np.ndarray.tolist, columns), strict=True)]
    active: dict[int, float] = {}
    slowest: dict[int, float] = {}
    for moment, speed, event in sorted(rows):
        active[event] = speed
        if speed >= 1.0:
            del active[event]
        products: dict[str, float] = {}
        for owner, factor in sorted((owners[event], factor) for event, factor in active.items()):
            products[owner] = products.get(owner, 1.0) * factor
        slowest[moment] = min(products.values(), default=1.0)
    return ticks.column(list(slowest)), np.array(list(slowest.values()))


def _capacities(event: Event, machine: Machine, mistakes: Mistakes) -> list[tuple[str, str]]:
    """Pairs (capacity, owner), where the owner is a device or the capacity of a link."""
    try:
        if event.part:
            return [(capacity, name) for name in machine.select(event.part) for capacity in _capacities_of_part(machine, name)]
        ends = frozenset(machine.select(event.of)) if event.of else None
    except UnknownName as error:
        mistakes.add(event.place, error.message, error.hint)
        return []
    links = machine.links_called(event.link)
    capacities = [link.capacity for link in links if ends is None or link.source in ends or link.target in ends]
    if not links:
        mistakes.add(event.place, f"there is no link '{event.link}'", did_you_mean(event.link, machine.link_names))
    elif not capacities:
        mistakes.add(event.place, f"no link '{event.link}' ends at {', '.join(event.of)}")
    return [(capacity, capacity) for capacity in dict.fromkeys(capacities)]


def events_without_effect(events: Sequence[Event], machine: Machine, drawn: Collection[str]) -> Iterator[Warning]:
    """Yield a warning for each event on capacities that no op uses.

    Args:
        drawn: names of the capacities that the ops of the run use.
    """
    for event, disturbance in zip([event for event in events if not event.service], disturbances(events), strict=True):
        if not any(capacity in drawn for capacity, _ in _capacities(event, machine, Mistakes())):
            yield Warning("no-effect", f"the event on {disturbance.part} has no effect: no op of the run uses it", event.place)


def events_after_end(events: Sequence[Event], end_s: float) -> Iterator[Warning]:
    """Yield a warning for each event that starts after the end of the run."""
    for event in events:
        if event.at >= end_s:
            moment, end = format_quantity(event.at, "s"), format_quantity(end_s, "s")
            yield Warning("no-effect", f"an event at {moment} has no effect: the run ends at {end}", event.place)


def _capacities_of_part(machine: Machine, name: str) -> list[str]:
    """Capacities that slow down with a part; for a switch its backplane or, if it is a full crossbar, its outgoing links."""
    capacities = [capacity.name for capacity in machine.device(name).model.capacities(name)]
    backplane = f"{name}.backplane"
    return capacities or (
        [backplane] if backplane in machine.capacities else [link.capacity for link in machine.links_from(name)]
    )
