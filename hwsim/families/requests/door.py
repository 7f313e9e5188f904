"""Runs in which some devices are simulated request by request."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hwsim.families.requests import play_of
from hwsim.families.requests.load import latency_curve
from hwsim.families.requests.requests import NoRequestSimulation
from hwsim.families.requests.simulation import RequestSimulations
from hwsim.graph.opgraph import OpGraph, capacities_of
from hwsim.machine import UnknownName
from hwsim.prepare import LoweredWorkload
from hwsim.results.timeline import Timeline
from hwsim.simulation import SimulatedRun, SimulationOptions
from hwsim.spec import SpecError


def play(lowered: LoweredWorkload, manner: SimulationOptions, graph: OpGraph, simulate: Callable[..., Timeline]) -> SimulatedRun:
    """Return the timeline, with statistics and latency curves of the devices simulated request by request.

    Raises:
        SpecError: A device has no request-level simulation, or no op issues requests to it.
    """
    machine = lowered.machine
    try:
        named = [name for pattern in manner.requests for name in machine.select(pattern)]
        parts = {name: machine.device(name) for name in [*machine.by_requests(), *named]}
        simulations = {name: partial(play_of, part.kind, part.model, name) for name, part in parts.items()}
        plays = {name: simulation() for name, simulation in simulations.items()}
        requested = {cost.requests.device: cost.requests for cost in reversed(lowered.graph.costs) if cost.requests}
        if idle := [name for name in named if name not in requested]:
            raise NoRequestSimulation(
                f"no op issues single requests to {idle[0]}", "use the op `access`, `copy`, `read` or `write`"
            )
        changing = capacities_of(lowered.changes)
        for name in sorted(parts.keys() & requested.keys()):
            if not changing.isdisjoint(capacity.name for capacity in parts[name].model.capacities(name)):
                message = f"an event changes {name}, but a request-level simulation has a constant speed"
                raise NoRequestSimulation(message, "fidelity: formula, or no event")
        players = RequestSimulations(graph, plays)
        timeline = simulate(players.graph, server=players.server)
        loaded = sorted(parts.keys() & requested.keys()) if manner.latency else ()
        curves = tuple(latency_curve(name, simulations[name], requested[name]) for name in loaded)
    except (NoRequestSimulation, UnknownName) as error:
        raise SpecError.of(None, str(error.args[0]), error.hint) from error
    return SimulatedRun(timeline, requests=players.statistics(timeline), curves=curves)
