"""Play a lowered workload: in the engine alone, with services that react, and request by request where that is wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from hwsim import engine as engines
from hwsim import ticks
from hwsim.devices import CannotCompute
from hwsim.engine import Which
from hwsim.graph.opgraph import OpGraph, capacities_of
from hwsim.machine import NoRoute, UnknownName
from hwsim.prepare import Lowered, too_long
from hwsim.records import dataclass
from hwsim.results.timeline import Timeline
from hwsim.spec import SpecError

if TYPE_CHECKING:  # what few runs have is imported when it is asked for
    from hwsim.actors.services import Running
    from hwsim.actors.serving import Service
    from hwsim.results.requests import LatencyCurve, RequestStatistics
    from hwsim.results.services.answers import Services
    from hwsim.results.serving import ServiceStatistics

Progress = Callable[[int, int], None]  # ops done, ops known


@dataclass(frozen=True, slots=True)
class Manner:
    """The way in which a workload is simulated; the words are the arguments of `hwsim.simulate`.

    slower: factor on the time of all that services do, 1 as their kernels and steps are.
    """

    requests: tuple[str, ...] = ()
    latency: bool = False
    progress: Progress | None = None
    engine: Which = "auto"
    slower: float = 1.0


@dataclass(frozen=True, slots=True)
class Played:
    """A simulated workload.

    Args:
        serving: statistics of every service of `infer:`.
        running: the services of `services:` as they ended; services: what they come to.
        requests: statistics of every part that was simulated request by request; curves: latency against load.
    """

    timeline: Timeline
    serving: tuple[ServiceStatistics, ...] = ()
    running: Running | None = None
    services: Services | None = None
    requests: tuple[RequestStatistics, ...] = ()
    curves: tuple[LatencyCurve, ...] = ()


def play(lowered: Lowered, manner: Manner) -> Played:
    """Simulate a workload.

    Raises:
        SpecError: a time that is too long, a part that cannot be simulated request by request,
            an op of a service that its device cannot compute, or devices of it that nothing links.
        Deadlock: ops wait for each other.
    """
    try:
        services, running = _services(lowered, manner), _running(lowered, manner.slower)
        played = _simulated(lowered, manner, services, running)
        serving = tuple(service.statistics() for service in services)
        answered = None if running is None else running.services()
        empty = [each.name for each in serving if not each.requests]
        empty += [each.name for each in (() if answered is None else answered.answers) if each.is_warm_up]
        if empty:
            message = f"every request{empty[0] and f' of {empty[0]}'} comes within the `warm_up`, so that none counts"
            raise SpecError.of(None, message, "a shorter one, or more requests")
        return replace(played, serving=serving, services=answered)
    except ticks.TooLong as error:
        raise SpecError([too_long(error, lowered.files[1] if lowered.files else None)]) from error
    except (CannotCompute, NoRoute) as error:  # a service makes its ops while it runs
        raise SpecError.of(None, error.message, error.hint) from error


def _services(lowered: Lowered, manner: Manner) -> tuple[Service, ...]:
    if not lowered.services:
        return ()
    from hwsim.actors.serving import Service

    fast: Literal["never"] | None = "never" if manner.engine == "simpy" else None
    return tuple(Service(plan, lowered.machine, manner.slower, fast) for plan in lowered.services)


def _running(lowered: Lowered, slower: float) -> Running | None:
    if lowered.program is None:
        return None
    from hwsim.actors.services import Running

    return Running(lowered.program, lowered.machine.capacities, slower)


def _simulated(lowered: Lowered, manner: Manner, services: Sequence[Service], running: Running | None) -> Played:
    """The timeline, with the actors that react to it; parts request by request if any are to be."""
    alone = lowered.machine.by_requests()
    graph = lowered.graph
    actors: list[engines.Actor] = []
    if services:
        from hwsim.actors.serving import played

        clocked = bool(lowered.changes or alone or manner.requests or running)
        graph, more = played(services, graph, clocked=clocked)
        actors += more
    if running is not None:
        actors.append(running.actor)
    simulate = partial(engines.simulate, actors=actors, changes=lowered.changes, progress=manner.progress, which=manner.engine)
    if alone or manner.requests:
        return replace(_by_requests(lowered, manner, graph, simulate), running=running)
    return Played(simulate(graph), running=running)


def _by_requests(lowered: Lowered, manner: Manner, graph: OpGraph, simulate: Callable[..., Timeline]) -> Played:
    """The timeline, with statistics and latency curves of the parts that are simulated request by request.

    Raises:
        SpecError: a part cannot be, or is requested for no single requests.
    """
    from hwsim.actors import request_level as level

    machine = lowered.machine
    try:
        named = [name for pattern in manner.requests for name in machine.select(pattern)]
        parts = {name: machine.device(name) for name in [*machine.by_requests(), *named]}
        simulations = {name: partial(level.play_of, part.kind, part.model, name) for name, part in parts.items()}
        plays = {name: simulation() for name, simulation in simulations.items()}
        requested = {cost.requests.device: cost.requests for cost in reversed(lowered.graph.costs) if cost.requests}
        if idle := [name for name in named if name not in requested]:
            raise level.CannotPlay(f"no op asks {idle[0]} for single requests", "the ops `access`, `read` and `write` do")
        changing = capacities_of(lowered.changes)
        for name in sorted(parts.keys() & requested.keys()):
            if not changing.isdisjoint(each.name for each in parts[name].model.capacities(name)):
                message = f"an event happens to {name}, whose requests are served one by one at its full speed"
                raise level.CannotPlay(message, "leave it at `fidelity: formula`, or leave the event out")
        players = level.Players(graph, plays)
        timeline = simulate(players.graph, server=players.server)
        loaded = sorted(parts.keys() & requested.keys()) if manner.latency else ()
        curves = tuple(level.latency_curve(name, simulations[name], requested[name]) for name in loaded)
    except (level.CannotPlay, UnknownName) as error:
        raise SpecError.of(None, str(error.args[0]), error.hint) from error
    return Played(timeline, requests=players.statistics(timeline), curves=curves)
