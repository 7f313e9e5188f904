"""Simulation of a lowered workload, with families that act during the run, and request by request for selected parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING

from hwsim import engine as engines
from hwsim import ticks
from hwsim.devices import CannotCompute
from hwsim.engine import Which
from hwsim.families_interface import requests
from hwsim.machine import NoRoute
from hwsim.prepare import LoweredWorkload, too_long
from hwsim.records import dataclass
from hwsim.results.timeline import Timeline
from hwsim.spec import SpecError

if TYPE_CHECKING:  # rare features are imported on first use
    from hwsim.families_interface import FamilyResult, FamilyRun
    from hwsim.results.requests import LatencyCurve, RequestStatistics

Progress = Callable[[int, int], None]  # (completed ops, known ops)


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """A set of options of a simulation, with the meaning of the arguments of `hwsim.simulate`.

    Args:
        slower: factor on all times of services.
    """

    requests: tuple[str, ...] = ()
    latency: bool = False
    progress: Progress | None = None
    engine: Which = "auto"
    slower: float = 1.0


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """A simulated workload.

    Args:
        timeline: start and end of every op.
        opened: families that acted during the run, by key.
        acted: their results, by key.
        requests: statistics of every part that was simulated request by request.
        curves: latency against load of these parts.
    """

    timeline: Timeline
    opened: Mapping[str, FamilyRun] = field(default_factory=dict)
    acted: Mapping[str, FamilyResult] = field(default_factory=dict)
    requests: tuple[RequestStatistics, ...] = ()
    curves: tuple[LatencyCurve, ...] = ()


def play(lowered: LoweredWorkload, manner: SimulationOptions) -> SimulatedRun:
    """Simulate a workload.

    Raises:
        SpecError: a time is too long, a part cannot be simulated request by request, a device does not support an op of a
            service, or devices of a service are not connected.
        Deadlock: ops wait for each other.
    """
    try:
        opened = {key: plan.begin(lowered.machine, manner.slower) for key, plan in lowered.doors.items()}
        played = _simulated(lowered, manner, opened)
        return replace(played, opened=opened, acted={key: family.told() for key, family in opened.items()})
    except ticks.TooLong as error:
        raise SpecError([too_long(error, lowered.files[1] if lowered.files else None)]) from error
    except (CannotCompute, NoRoute) as error:  # services create ops during the run
        raise SpecError.of(None, error.message, error.hint) from error


def _simulated(lowered: LoweredWorkload, manner: SimulationOptions, opened: Mapping[str, FamilyRun]) -> SimulatedRun:
    """The timeline with the actors of families; selected parts are simulated request by request."""
    parts = lowered.machine.by_requests()
    graph = lowered.graph
    actors: list[engines.Actor] = []
    is_clocked = bool(lowered.changes or parts or manner.requests)
    for key, family in opened.items():
        clocked = is_clocked or any(plan.clocks for other, plan in lowered.doors.items() if other != key)
        graph, more = family.enter(graph, clocked=clocked)
        actors += more
    simulate = partial(engines.simulate, actors=actors, changes=lowered.changes, progress=manner.progress, which=manner.engine)
    if parts or manner.requests:
        played: SimulatedRun = requests().play(lowered, manner, graph, simulate)
        return played
    return SimulatedRun(simulate(graph))
