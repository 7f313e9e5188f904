"""What goes wrong while a workload runs: parts and links that slow down, fail and come back.

    events: [{at: 30 s, part: node3.gpu2, speed: 50 %}, {at: 1 min, link: fabric, down: 5 s}]

A part at half speed has half of each of its capacities; a link that is down carries nothing, and what is on its way
waits.  Of several events on one capacity the worst counts.  Range: a route is never changed, and latencies stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hwsim.machine import Machine, UnknownName
from hwsim.opgraph import Change
from hwsim.spec import Mistakes, Place, did_you_mean, field, place_field
from hwsim.units import Ratio, Seconds

FEMTO = 10**15  # fs in a second


@dataclass(frozen=True, slots=True)
class Event:
    """One of `events`: exactly one of part and link, and one of speed and down."""

    at: Seconds = field("when it begins", example="30 s")
    part: tuple[str, ...] = field("devices it happens to", default=(), one_or_many=True, example="node3.gpu2")
    link: str = field("links it happens to, by the name of their entry", default="")
    of: tuple[str, ...] = field("with `link`: only those that end at these devices", default=(), one_or_many=True)
    speed: Ratio | None = field("what is left of it", default=None, exclusive_minimum=0.0, maximum=1.0, example="50 %")
    down: Seconds | None = field("it does nothing for so long", default=None, exclusive_minimum=0.0, example="5 s")
    lasting: Seconds | None = field(
        "how long the speed lasts (default: to the end)", key="for", default=None, exclusive_minimum=0.0
    )
    place: Place = place_field()

    def problems(self) -> Iterator[tuple[str, str, str | None]]:
        """(key, message, hint) of what cannot be."""
        if bool(self.part) == bool(self.link):
            yield (
                "part" if self.part else "at",
                "an event happens either to a `part` or to a `link`",
                "part: gpu0   or   link: fabric",
            )
        if (self.speed is None) == (self.down is None):
            yield "at", "an event has either a `speed` or is `down` for a while", "speed: 50 %   or   down: 5 s"
        if self.lasting is not None and self.down is not None:
            yield "for", "`down` says itself how long it lasts", None
        if self.of and not self.link:
            yield "of", "`of` chooses among links, and there is no `link`", None


@dataclass(frozen=True, slots=True)
class _Span:
    begin: int
    end: int | None
    left: float


def changes(events: Sequence[Event], machine: Machine, mistakes: Mistakes) -> tuple[Change, ...]:
    """What every event makes of the machine's capacities, in the order of time."""
    spans: dict[str, list[_Span]] = {}
    for event in events:
        problems = list(event.problems())
        for _, message, hint in problems:
            mistakes.add(event.place, message, hint)
        if problems:
            continue
        begin = round(event.at * FEMTO)
        lasts = event.lasting if event.down is None else event.down
        span = _Span(begin, None if lasts is None else begin + round(lasts * FEMTO), event.speed or 0.0)
        for capacity in _capacities(event, machine, mistakes):
            spans.setdefault(capacity, []).append(span)
    return tuple(sorted(change for capacity in sorted(spans) for change in _changes(capacity, spans[capacity])))


def _capacities(event: Event, machine: Machine, mistakes: Mistakes) -> list[str]:
    try:
        if event.part:
            chosen = machine.select(event.part)
            return [name for each in chosen for name in (one.name for one in machine.device(each).model.capacities(each))]
        ends = frozenset(machine.select(event.of)) if event.of else None
    except UnknownName as error:
        mistakes.add(event.place, error.message, error.hint)
        return []
    named = [link for link in machine.links if link.name == event.link]
    found = [link.capacity for link in named if ends is None or link.source in ends or link.target in ends]
    if not named:
        known = list(dict.fromkeys(link.name for link in machine.links))
        mistakes.add(event.place, f"there is no link '{event.link}'", did_you_mean(event.link, known))
    elif not found:
        mistakes.add(event.place, f"no link '{event.link}' ends at {', '.join(event.of)}")
    return list(dict.fromkeys(found))


def _changes(capacity: str, spans: Iterable[_Span]) -> Iterator[Change]:
    """At each begin and end, what the worst of the spans then under way leaves."""
    spans = list(spans)
    moments = sorted({span.begin for span in spans} | {span.end for span in spans if span.end is not None})
    before = 1.0
    for moment in moments:
        left = min((span.left for span in spans if span.begin <= moment and (span.end is None or moment < span.end)), default=1.0)
        if left < before or left > before:
            yield Change(moment, capacity, left)
        before = left
