"""Events while a workload runs: parts and links that slow down, fail and come back.

    events: [{at: 30 s, part: node3.gpu2, speed: 50 %}, {at: 1 min, link: fabric, down: 5 s}]

A part at half speed has half of each of its capacities; a link that is down carries nothing, and what is on its way
waits. A part that is down stalls, and goes on where it was: no work is lost. That is a hang, not a crash, after which a
training begins again at its last checkpoint (`failures` of a `train`). Events on one part that overlap have causes of their own,
and what they leave multiplies: a GPU at 50 % by its heat and at 50 % by a neighbour has 25 %. A link and the switch that it
leaves follow each other: of their events the slower counts. A switch passes on that much of its backplane, or, if it is a full
crossbar, of what each of its links carries away from it; one that is down stalls all that passes it. A CPU or GPU at a speed
does all of its work at it, on one core as on all, and of an access to a disk the transfer is slower: `Demand.clocks` says what of
an op that is.
Range: a route is never changed; latencies of links, disks and network cards stay, as does the start of a service's work.

    events: [{at: 0 s, part: gpu*, jitter: 5 %, every: 10 ms, for: 10 s, seed: 1}]

Jitter draws a new speed for each device (or link) from one piece of its work to the next: what takes t alone takes
t (1 + x), x exponential with that mean. All pieces hold the same work, so that a part that works all the time takes longer
by that mean, however long its ops are. With intervals of equal length the slow ones would count too little (50 % would be
38 %). The pieces last `every` in the mean. Speeds are drawn by the name of the device, or of the link's direction: under another
name it has others. Range: short work that begins at any moment, after a pause, meets the slow pieces more often: they are longer.
With a mean m it takes m + m^2 / (1 + m) longer (5.2 % for 5 %, 67 % for 50 %). The same seed gives the same run. Source of the
shape: operating system noise as Petrini,
Kerbyson, Pakin, "The case of the missing supercomputer performance", SC 2003, found it: rare and long-tailed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import heappop, heappush, merge
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple, overload

from hwsim import ticks
from hwsim.formats import format_quantity
from hwsim.graph.opgraph import Change, LazyChanges
from hwsim.machine import Machine, UnknownName
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, Problem, Warning, did_you_mean, field, place_field
from hwsim.units import Ratio, Seconds

if TYPE_CHECKING:
    from hwsim.graph.disturbance import Disturbance

MOST_INTERVALS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Event:
    """One of `events`: exactly one of part, link and service, and one of speed, down, jitter and (of a service) hit."""

    at: Seconds = field("when it begins", example="30 s")
    part: tuple[str, ...] = field("devices it happens to", default=(), one_or_many=True, example="node3.gpu2")
    link: str = field("links it happens to, by the name of their entry", default="")
    service: str = field("a service it happens to", default="", example="store")
    hit: Ratio | None = field("with `service`: what its caches hit meanwhile", default=None, maximum=1.0, example="50 %")
    of: tuple[str, ...] = field("with `link`: only those that end at these devices", default=(), one_or_many=True)
    speed: Ratio | None = field("what is left of it", default=None, exclusive_minimum=0.0, maximum=1.0, example="50 %")
    down: Seconds | None = field(
        "it stalls for so long, then goes on where it was", default=None, exclusive_minimum=0.0, example="5 s"
    )
    lasting: Seconds | None = field(
        "how long the speed or the jitter lasts (default: to the end)", key="for", default=None, exclusive_minimum=0.0
    )
    jitter: Ratio | None = field("average slowdown", default=None, minimum=0.0, maximum=10.0, example="5 %")
    every: Seconds | None = field("with `jitter`: average time between changes of its speed", default=None, exclusive_minimum=0.0)
    seed: int = field("with `jitter`: another seed, another run", default=0, minimum=0)
    place: Place = place_field()

    def problems(self) -> Iterator[Problem]:
        """(key, message, hint) of what cannot be."""
        if self.service:
            yield from self._of_service()
            return
        if self.hit is not None:
            yield "hit", "only a service has a cache that hits", "service: NAME"
        if bool(self.part) == bool(self.link):
            yield (
                "part" if self.part else "at",
                "an event happens either to a `part` or to a `link`",
                "part: gpu0   or   link: fabric",
            )
        if sum(each is not None for each in (self.speed, self.down, self.jitter)) != 1:
            hint = "speed: 50 %   or   down: 5 s   or   jitter: 5 %"
            yield "at", "an event has either a `speed` or a `jitter`, or is `down` for a while", hint
        if self.jitter is not None:
            yield from self._of_jitter(self.lasting, self.every)
        elif self.every is not None:
            yield "every", "`every` goes with `jitter`", None
        if self.lasting is not None and self.down is not None:
            yield "for", "`down` says itself how long it lasts", None
        if self.of and not self.link:
            yield "of", "`of` chooses among links, and there is no `link`", None

    def is_sound(self, mistakes: Mistakes) -> bool:
        """Whether it can happen; what cannot is noted."""
        problems = list(self.problems())
        for _, message, hint in problems:
            mistakes.add(self.place, message, hint)
        return not problems

    def _of_service(self) -> Iterator[Problem]:
        if self.part or self.link or self.of:
            yield "service", "an event happens either to a service or to a part or link", "two events"
        if self.speed is not None or self.jitter is not None or self.every is not None:
            yield "service", "a service has no speed of its own", "down: 2 s, hit: 50 %, or the speed of its part"
        elif (self.hit is None) == (self.down is None):
            yield "at", "a service is `down` for a while, or its caches hit less often", "down: 2 s   or   hit: 50 %, for: 5 s"
        elif self.down is not None and self.lasting is not None:
            yield "for", "`down` says itself how long it lasts", None

    def _of_jitter(self, lasting: float | None, every: float | None) -> Iterator[Problem]:
        if lasting is None or every is None:
            yield "jitter", "jitter needs to know for how long and how often", "for: 10 s, every: 10 ms"
        elif lasting / every > MOST_INTERVALS:
            yield "every", f"more than {MOST_INTERVALS} intervals of jitter", "make `every` longer or `for` shorter"


class _Span(NamedTuple):
    begin: int
    end: float
    whose: str
    left: float


def disturbances(events: Sequence[Event]) -> tuple[Disturbance, ...]:
    """The events as the results tell them."""
    if not events:
        return ()
    from hwsim.graph.disturbance import Disturbance

    return tuple(
        Disturbance(
            what=", ".join(event.part)
            if event.part
            else f"link {event.link}" + (f" of {', '.join(event.of)}" if event.of else ""),
            at_s=event.at,
            lasting_s=event.lasting if event.down is None else event.down,
            speed=1.0 if event.jitter is not None else event.speed or 0.0,
            jitter=event.jitter or 0.0,
        )
        for event in events
        if not event.service
    )


class Changes(LazyChanges):
    """Changes of capacities in order of time, drawn as they are asked for: of a jitter there may be millions after the run's end.

    happens: by capacity its events, each with the device or the link's capacity that it is of.
    """

    def __init__(self, happens: Mapping[str, Sequence[tuple[Event, str]]]) -> None:
        self._happens = happens
        self.capacities = frozenset(happens)

    def __iter__(self) -> Iterator[Change]:
        return merge(*(_changes(capacity, self._happens[capacity]) for capacity in sorted(self._happens)))

    def __bool__(self) -> bool:
        return any(True for capacity in self._happens for _ in _changes(capacity, self._happens[capacity]))  # the first found

    def __len__(self) -> int:
        return sum(1 for _ in self)  # count

    @overload
    def __getitem__(self, place: int) -> Change: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Change, ...]: ...
    def __getitem__(self, place: int | slice) -> Change | tuple[Change, ...]:
        return tuple(self)[place]


def changes(events: Sequence[Event], machine: Machine, mistakes: Mistakes) -> Sequence[Change]:
    """Changes of the machine's capacities by the events, in order of time."""
    happens: dict[str, list[tuple[Event, str]]] = {}
    for event in events:
        if event.service or not event.is_sound(mistakes):  # of services see `hwsim.families.services.workload`
            continue
        for capacity, whose in _capacities(event, machine, mistakes):
            happens.setdefault(capacity, []).append((event, whose))
    all_changes = Changes(happens)
    return all_changes if any(event.jitter is not None for event in events) else tuple(all_changes)


def _spans(event: Event, whose: str) -> Iterator[_Span]:
    """When one capacity has how much left: of a jitter, piece of work by piece of work, alike for all of a device."""
    begin = ticks.femtoseconds(event.at)
    lasts = event.lasting if event.down is None else event.down
    end = inf if lasts is None else begin + ticks.femtoseconds(lasts)
    if event.jitter is None or event.every is None:
        yield _Span(begin, end, whose, event.speed or 0.0)
        return
    import random  # few runs have jitter

    draw = random.Random(f"{event.seed} {whose}")
    work = event.every / (1.0 + event.jitter)  # of a piece, at full speed
    while begin < end:
        longer = 1.0 + draw.expovariate(1.0) * event.jitter
        until = min(begin + max(1, ticks.femtoseconds(work * longer)), int(end))
        yield _Span(begin, until, whose, 1.0 / longer)
        begin = until


def _capacities(event: Event, machine: Machine, mistakes: Mistakes) -> list[tuple[str, str]]:
    """(capacity, the device or the link's capacity that it is of)."""
    try:
        if event.part:
            return [(capacity, each) for each in machine.select(event.part) for capacity in _of_part(machine, each)]
        ends = frozenset(machine.select(event.of)) if event.of else None
    except UnknownName as error:
        mistakes.add(event.place, error.message, error.hint)
        return []
    named = machine.links_called(event.link)
    capacities = [link.capacity for link in named if ends is None or link.source in ends or link.target in ends]
    if not named:
        mistakes.add(event.place, f"there is no link '{event.link}'", did_you_mean(event.link, machine.link_names))
    elif not capacities:
        mistakes.add(event.place, f"no link '{event.link}' ends at {', '.join(event.of)}")
    return [(capacity, capacity) for capacity in dict.fromkeys(capacities)]


def unfelt(events: Sequence[Event], machine: Machine, drawn: Collection[str]) -> Iterator[Warning]:
    """A warning of each event on what nothing draws from.  drawn: the capacities that a run draws from."""
    for event, told in zip([each for each in events if not each.service], disturbances(events), strict=True):
        if not any(capacity in drawn for capacity, _ in _capacities(event, machine, Mistakes())):
            yield Warning("no-effect", f"the event of {told.what} has no effect: nothing in the run works there", event.place)


def late(events: Sequence[Event], end_s: float) -> Iterator[Warning]:
    """A warning of each event that begins when a run has ended."""
    for event in events:
        if event.at >= end_s:
            moment, end = format_quantity(event.at, "s"), format_quantity(end_s, "s")
            yield Warning("no-effect", f"an event at {moment} has no effect: the run ends at {end}", event.place)


def _of_part(machine: Machine, name: str) -> list[str]:
    """What is slower while a part is: its capacities; of a switch its backplane, or what leaves it if that is a full crossbar."""
    capacities = [capacity.name for capacity in machine.device(name).model.capacities(name)]
    backplane = f"{name}.backplane"
    return capacities or (
        [backplane] if backplane in machine.capacities else [link.capacity for link in machine.links_from(name)]
    )


def _changes(capacity: str, happens: Sequence[tuple[Event, str]]) -> Iterator[Change]:
    """At each begin and end, what the spans then under way leave: all of one part together, and the least of what is in a row."""
    spans = merge(*(_spans(event, whose) for event, whose in happens))
    coming = next(spans, None)
    active: list[tuple[float, str, float]] = []  # a heap of (end, whose, what is left) of the spans under way
    before = 1.0
    while coming is not None or (active and active[0][0] < inf):
        moment = min(coming.begin if coming is not None else inf, active[0][0] if active else inf)
        while coming is not None and coming.begin <= moment:
            heappush(active, coming[1:])
            coming = next(spans, None)
        while active and active[0][0] <= moment:
            heappop(active)
        left: dict[str, float] = {}
        for whose, each in sorted(span[1:] for span in active):
            left[whose] = left.get(whose, 1.0) * each
        speed = min(left.values(), default=1.0)
        if speed < before or speed > before:
            yield Change(int(moment), capacity, speed)
        before = speed
