"""Planner of services: all services of a workload and its jobs as one program on a machine."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Final

from hwsim import ticks
from hwsim.devices import Cpu, Sockets
from hwsim.families.services.workload.circular_calls import endless
from hwsim.families.services.workload.parser import ParsedSteps, ServiceParser
from hwsim.families.services.workload.program import (
    ENDLESS,
    NONE,
    ArrivalLoad,
    Ask,
    Serve,
    ServiceEvent,
    ServiceProgram,
    ServicesProgram,
)
from hwsim.families.services.workload.schema import ServiceKeys
from hwsim.families.services.workload.stations import NotFifo, stations_of
from hwsim.graph.opgraph import Change
from hwsim.machine import Machine
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, Tree, decode, did_you_mean
from hwsim.spec.limits import REQUESTS, refuse_beyond
from hwsim.workload.file import Workload
from hwsim.workload.load.arrivals import FIXED, UNSTEADY, ArrivalKeys

MOST_SAID: Final = 1e30  # largest number of requests in a message


@dataclass(frozen=True, slots=True)
class ServicesPart:
    """The services of a workload, or of one of its jobs.

    Args:
        job: name of the job; "" for the workload itself.
        start: start of the job (fs).
        services: service trees by name.
        requests: number of arrivals; None: not limited.
        lasting: duration of the arrivals (s); None: not limited.
        seed: seed of all random values.
    """

    job: str
    start: int
    services: Mapping[str, Tree]
    requests: int | None
    lasting: float | None
    seed: int

    @property
    def prefix(self) -> str:
        """Prefix of the names of its services in results."""
        return f"{self.job}." if self.job else ""


def parts_of(workload: Workload) -> Iterator[ServicesPart]:
    """Yield the services of the workload and of each job."""
    if workload.services is not None:
        yield ServicesPart("", 0, workload.services, workload.requests, workload.lasting, workload.seed)
    for name, job in sorted((workload.jobs or {}).items()):
        if job.services is not None:
            start = ticks.femtoseconds(job.start)
            services = {service: job.on_devices(tree) for service, tree in job.services.items()}
            yield ServicesPart(name, start, services, job.requests, job.lasting, workload.seed)


def choices_of(workload: Workload) -> dict[str, tuple[str, ...]]:
    """Return the names of the branches of each service, by its full name."""
    result = {}
    for part in parts_of(workload):
        for name, tree in part.services.items():
            result[part.prefix + name] = tuple(_ways(tree))
    return result


def _ways(tree: Tree) -> Iterator[str]:
    for key, inner in tree.items():
        if key == "choose":
            yield from (name for name, _ in inner.items())
        yield from _ways(inner)
    if tree.is_list:
        for entry in tree.elements():
            yield from _ways(entry)


def plan(
    workload: Workload, machine: Machine, mistakes: Mistakes, shared: Collection[str], changes: Sequence[Change] = ()
) -> ServicesProgram | None:
    """Return the services as one program, or None if mistakes were noted.

    Args:
        shared: capacities that jobs use as well.
        changes: changes of the speed of capacities during the run.
    """
    before = len(mistakes)
    made = _program(workload, machine, mistakes)
    if made is None:
        return None
    events = tuple(_happenings(workload, made, mistakes))
    steps = [step for service in made.services for step in service.steps if isinstance(step, Serve)]
    sizes = {step.cost: step.size for step in steps if not step.size.is_fixed}
    reached = _reached(made)
    works = sorted(
        (index for index, work in enumerate(made.served) if work.service in reached),
        key=lambda index: (made.services[made.served[index].service].name, index),
    )
    if len(mistakes) > before:
        return None
    place = next(tree.place for part in parts_of(workload) for tree in part.services.values())
    try:
        served, stations, waited = stations_of(
            made.served,
            machine.capacities,
            shared=shared,
            changed={change.capacity for change in changes},
            in_turn=_in_turn(machine),
            sizes=sizes,
            works=works,
        )
    except NotFifo as error:
        mistakes.add(place, str(error), "serves: shared")
        return None
    drawn = {name for work in served if work.cost is not None for name, _ in work.cost.demand.amounts}
    program = replace(
        made,
        served=served,
        stations=stations,
        resources=waited,
        events=events,
        disturbed=tuple(change.at for change in changes if change.capacity in drawn),
        seed=workload.seed,
    )
    if any(service.since < 0 for service in made.services) and not (
        program.may_be_steady(ticks.LONGEST) and drawn.isdisjoint(shared)
    ):
        mistakes.add(place, UNSTEADY, FIXED)
        return None
    return program


def check_services(workload: Workload, mistakes: Mistakes) -> None:
    """Note the mistakes that do not depend on the machine."""
    _program(workload, None, mistakes)


def _reached(program: ServicesProgram) -> set[int]:
    """Return the services that receive requests, from outside or from other services."""
    reached: set[int] = set()
    waiting = [number for load in program.loads for number in load.services]
    while waiting:
        if (number := waiting.pop()) not in reached:
            reached.add(number)
            waiting += [step.service for step in program.services[number].steps if isinstance(step, Ask)]
    return reached


def _in_turn(machine: Machine) -> set[str]:
    """Return the cores that process requests first come, first served."""
    result = set()
    for name, device in machine.devices.items():
        model = device.model.model if isinstance(device.model, Sockets) else device.model
        if isinstance(model, Cpu) and model.serves == "fifo":
            result.add(f"{name}.cores")
    return result


def _program(workload: Workload, machine: Machine | None, mistakes: Mistakes) -> ServicesProgram | None:
    """Return the services of all parts without stations, or None if mistakes were noted."""
    before = len(mistakes)
    reader = ServiceParser(machine, mistakes)
    programs: list[ServiceProgram] = []
    loads: list[ArrivalLoad | None] = []
    written: list[tuple[str, Place]] = []  # (name in its part, place) of each service
    for part in parts_of(workload):
        noted, first = len(mistakes), len(programs)
        services = {name: decode(tree, ServiceKeys, mistakes) for name, tree in part.services.items()}
        reader.begin(tuple(services), part.prefix)
        for number, (name, keys) in enumerate(services.items()):
            if keys is not None:
                programs.append(_service(part, name, keys, reader.read(number, keys), mistakes))
                written.append((name, keys.place))
        loads.append(_load(part, first, programs[first:], mistakes) if len(mistakes) == noted else None)
    if len(mistakes) > before:
        return None
    made = ServicesProgram(
        services=tuple(programs),
        served=tuple(reader.served),
        stations=(),
        locks=tuple(reader.locks),
        draws=tuple(reader.draws),
        loads=tuple(load for load in loads if load is not None),
        caches=tuple(reader.caches),
    )
    for ring, growth in endless(made):
        more = "" if growth < 1.0001 else f", with {growth:.4g} times as many requests each time"
        message = f"a request never ends: {_circle([written[number][0] for number in ring])}{more}"
        hint = "maybe: {ratio: 50 %, do: [{ask: ...}]}"
        mistakes.add(written[ring[0]][1], message, hint)
    return made if len(mistakes) == before and made.loads else None


def _service(part: ServicesPart, name: str, keys: ServiceKeys, read: ParsedSteps, mistakes: Mistakes) -> ServiceProgram:
    if keys.queue_limit is not None and keys.workers is None:
        mistakes.add(keys.place, "`queue_limit` has no effect with unlimited workers", "workers: 64")
    if keys.arrivals is not None:
        for _, message, hint in keys.arrivals.problems():
            mistakes.add(keys.arrivals.place, message, hint)
    return ServiceProgram(
        name=part.prefix + name,
        steps=read.steps,
        workers=ENDLESS if keys.workers is None else keys.workers,
        limit=ENDLESS if keys.queue_limit is None else keys.queue_limit,
        drops=keys.abandoned == "drop",
        arrivals=keys.arrivals,
        slots=read.slots,
        choices=read.choices,
        start=part.start,
        within=NONE if keys.within is None else ticks.femtoseconds(keys.within),
        since=NONE if isinstance(keys.warm_up, str) else part.start + ticks.femtoseconds(keys.warm_up),
    )


def _circle(names: list[str]) -> str:
    return f"{names[0]} calls itself" if len(names) == 1 else f"{', '.join(names)} call each other in a circle"


def _load(part: ServicesPart, first: int, programs: list[ServiceProgram], mistakes: Mistakes) -> ArrivalLoad | None:
    """Return the load of a part whose first service has the index `first`, or None if mistakes were noted."""
    asked = [number for number, entry in enumerate(programs) if entry.arrivals is not None]
    asked.sort(key=lambda number: programs[number].name)  # independent of their order in the file
    entries = tuple(first + number for number in asked)
    place = next(iter(part.services.values())).place if part.services else None
    if place is None:
        return None
    if not entries:
        mistakes.add(place, "no request ever arrives: no service has `arrivals`", "arrivals: {poisson: 100 1/s}")
        return None
    traces = [programs[number].arrivals for number in asked]
    if part.requests is None and part.lasting is None:
        if any(keys is None or keys.trace is None for keys in traces):
            mistakes.add(place, "the run has no end: `requests` or `for` is missing", "requests: 100000, or for: 10 min")
            return None
        count = sum(len(keys.recorded()) for keys in traces if keys is not None and keys.trace)
        return ArrivalLoad(entries, requests=count)
    if part.requests is not None and part.lasting is not None:
        mistakes.add(place, "both `requests` and `for` end the run: expected one of them", "omit `requests` or `for`")
        return None
    _refuse_many(part, traces, place)
    until = NONE if part.lasting is None else part.start + ticks.femtoseconds(part.lasting)
    return ArrivalLoad(entries, NONE if part.requests is None else part.requests, until)


def _refuse_many(part: ServicesPart, arrivals: Collection[ArrivalKeys | None], place: Place) -> None:
    """Raise SpecError if requests or clients exceed the limits; requests of clients are counted during the run."""
    keys = [arrival for arrival in arrivals if arrival is not None]
    refuse_beyond("clients", sum(key.clients or 0 for key in keys), place)  # integers
    expected = math.fsum(key.rate or 0.0 for key in keys) * (part.lasting or 0.0)
    refuse_beyond(REQUESTS, part.requests or math.ceil(min(expected, MOST_SAID)), place)


def _disjoint(spans: list[tuple[int, int, float]]) -> list[tuple[int, int, float]]:
    """Return disjoint spans (begin, end, value) in order, with the smallest of the values that apply at that time."""
    edges = sorted({edge for begin, end, _ in spans for edge in (begin, end)})
    least = [(min((value for begin, end, value in spans if begin <= edge < end), default=None), edge) for edge in edges]
    turns = [next(same) for _, same in groupby(least, key=itemgetter(0))]
    return [(begin, end, value) for (value, begin), (_, end) in pairwise(turns) if value is not None]


def _happenings(workload: Workload, program: ServicesProgram, mistakes: Mistakes) -> Iterator[ServiceEvent]:
    """Yield outages of services, changes of hit rates, and emptied caches."""
    names = [service.name for service in program.services]
    spans: dict[tuple[int, bool], list[tuple[int, int, float]]] = {}
    for event in workload.events:
        if not event.service or not event.is_sound(mistakes):
            continue
        if event.service not in names:
            mistakes.add(event.place, f"there is no service '{event.service}'", did_you_mean(event.service, names))
            continue
        number, at = names.index(event.service), ticks.femtoseconds(event.at)
        if event.hit is not None and number not in [cache.service for cache in program.caches]:
            mistakes.add(event.place, f"'{event.service}' has no `cache`", None)
            continue
        lasts = event.lasting if event.down is None else event.down
        until = ticks.LONGEST if lasts is None else at + ticks.femtoseconds(lasts)
        spans.setdefault((number, event.hit is None), []).append((at, until, event.hit or 0.0))
    for (number, down), given in spans.items():
        for begin, end, hit in _disjoint(given):
            yield ServiceEvent(begin, end, number, None if down else hit)
    for place, cache in enumerate(program.caches):
        start = program.services[cache.service].start
        for time in cache.emptied:
            yield ServiceEvent(start + time, start + time, cache.service, emptied=place)
