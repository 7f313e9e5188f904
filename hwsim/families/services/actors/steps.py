"""Steps of a program as Python functions: each takes the request that reaches it and returns the index of its next step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hwsim.families.services.actors.strands import WAITS, Do, ServiceState, Strand
from hwsim.families.services.workload.arms import positioning_scale
from hwsim.families.services.workload.program import Ask, Branch, End, Fork, Give, Join, Jump, Keep, Serve, Step, StepNumber, Take
from hwsim.workload.load.numbers import uniform

if TYPE_CHECKING:
    from hwsim.families.services.actors.simulation import ServiceSimulation

Sized = Callable[[Strand], int]


def step_function(play: ServiceSimulation, step: Step, index: int, service: ServiceState) -> Do:
    """Return the function that executes the `index`-th step of a service."""
    following = index + 1
    match step:
        case Serve():
            return _serve(play, step, following)
        case Keep(draw=draw, slot=slot):
            return _keep(play, draw, slot, service.of.slots, following)
        case Branch():
            return _branch(play, step, following)
        case Fork():

            def fork(strand: Strand) -> int:
                strand.pc, strand.left = step.to, len(step.branches)
                play.fork(strand, step.branches)
                return WAITS

            return fork
        case Join():

            def join(strand: Strand) -> int:
                play.joined(strand)
                return WAITS

            return join
        case Ask():

            def ask(strand: Strand) -> int:
                strand.pc, strand.attempts = index, 0
                play.ask(strand, step)
                return WAITS

            return ask
        case Take():

            def take(strand: Strand) -> int:
                strand.pc = following
                return following if play.taken(strand, step) else WAITS

            return take
        case Give(lock=number):

            def give(strand: Strand) -> int:
                if strand.held:
                    strand.held.remove(number)
                play.give_back(number)
                return following

            return give
        case Jump(to=to):
            return lambda _: to
        case End():

            def end(strand: Strand) -> int:
                play.leave(strand)
                return WAITS

            return end


def _keep(play: ServiceSimulation, draw: int, slot: int, slot_count: int, following: int) -> Do:
    draws = play.draws[draw]

    def keep(strand: Strand) -> int:
        main = strand.main
        if main.slots is None:
            main.slots = [0.0] * slot_count
        main.slots[slot] = draws.at(main.root, main.visit)
        return following

    return keep


def _branch(play: ServiceSimulation, step: Branch, following: int) -> Do:
    draws, hits, lookups, cache, choices = play.draws[step.draw], play.hits, play.lookups, step.cache, step.choices
    filling = play.program.caches[cache].filling if cache >= 0 else None
    ways = tuple(zip(step.limits, step.to, choices or (-1,) * len(step.to), strict=True))

    def branch(strand: Strand) -> int:
        main = strand.main
        share = draws.at(main.root, main.visit)
        if cache >= 0:
            hit, past = hits[cache], lookups[cache]
            if past >= 0 and filling is not None:
                lookups[cache] = past + 1 if past + 1 <= filling.full else -1
                if hit is None:
                    hit = filling.at(past)
            if hit is not None:
                return ways[0][1] if share < hit else following
        for limit, to, choice in ways:
            if share < limit:
                if choice >= 0:
                    main.choice = choice
                return to
        return following

    return branch


def _serve(play: ServiceSimulation, step: Serve, following: int) -> Do:
    """Return the function of work at a station, after its latency."""
    served = play.program.served[step.cost]
    if play.program.accesses_of(step.cost) is not None:
        return _access(play, step, following)
    number, flow, latency, resource = served.station, served.flow, served.latency, served.resource
    sized = _sized(play, step.size, served.body * play.slower)
    if number < 0:

        def delay(strand: Strand) -> int:
            strand.pc = following
            play.later(latency + sized(strand), strand)
            return WAITS

        return delay
    first, dues, worked, cost = play.stations[number], play.dues, play.worked, step.cost

    def begin(given: tuple[Strand, int]) -> None:
        strand, alone = given
        strand.resource, strand.since, strand.alone = resource, play.now, alone
        worked[cost] += alone
        first.join(flow, alone, strand, play.now)
        dues[number] = first.due

    def serve(strand: Strand) -> int:
        strand.pc = following
        if latency:
            play.when(play.now + latency, begin, (strand, sized(strand)))
        else:
            begin((strand, sized(strand)))
        return WAITS

    return serve


def _access(play: ServiceSimulation, step: Serve, following: int) -> Do:
    """Return the function of sequential accesses to a disk arm, after the latency of the work."""
    program = play.program
    served, accesses, key = program.served[step.cost], program.accesses_of(step.cost), program.ways_of(step.cost)
    assert accesses is not None
    number, latency, ways, count = served.station, served.latency, accesses.ways, accesses.count
    way, per_s = round(accesses.reach * play.slower), positioning_scale(accesses, play.slower)
    follows = round(accesses.follows * play.slower) if accesses.follows >= 0 else -1
    sized = _sized(play, step.size, accesses.first * play.slower)
    first, dues, worked, cost = play.stations[number], play.dues, play.worked, step.cost

    def begin(strand: Strand) -> None:
        main, access = strand.main, strand.access
        mean = sized(strand)
        visit = (main.visit * count + access) * 2
        strand.reach = max(0, round(ways.at(uniform(key, main.root, visit), uniform(key, main.root, visit + 1)) * per_s))
        strand.base, strand.follows, strand.flow = max(0, mean - way), follows if access else -1, served.flow
        strand.resource, strand.since = served.resource, play.now
        strand.alone = strand.base + strand.reach if strand.follows < 0 else follows
        worked[cost] += mean if strand.follows < 0 else follows
        is_last = access + 1 == count
        strand.pc, strand.access = following if is_last else following - 1, 0 if is_last else access + 1
        first.join(served.flow, strand.alone, strand, play.now)
        dues[number] = first.due

    def serve(strand: Strand) -> int:
        if latency and not strand.access:
            play.when(play.now + latency, begin, strand)
        else:
            begin(strand)
        return WAITS

    return serve


def _sized(play: ServiceSimulation, size: StepNumber, body: float) -> Sized:
    """Return a function for the time of work (fs), which may be random."""
    if size.is_fixed:
        time = round(body * size.fixed)
        return lambda _: time
    if size.draw < 0:

        def kept(strand: Strand) -> int:
            slots: Any = strand.main.slots
            return round(body * size.of(slots[size.slot]))

        return kept
    draws = play.draws[size.draw]
    return lambda strand: round(body * size.of(draws.at(strand.main.root, strand.main.visit)))
