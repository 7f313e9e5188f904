"""Play a lowered workload: in the engine alone, with families that act meanwhile, and request by request where that is wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING

from hwsim import engine as engines
from hwsim import ticks
from hwsim.devices import CannotCompute
from hwsim.doors import requests
from hwsim.engine import Which
from hwsim.machine import NoRoute
from hwsim.prepare import Lowered, too_long
from hwsim.records import dataclass
from hwsim.results.timeline import Timeline
from hwsim.spec import SpecError

if TYPE_CHECKING:  # what few runs have is imported when it is asked for
    from hwsim.doors import Open, Told
    from hwsim.results.requests import LatencyCurve, RequestStatistics

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
        opened, acted: families that acted while it went on, and what came of them, by key.
        requests: statistics of every part that was simulated request by request; curves: latency against load.
    """

    timeline: Timeline
    opened: Mapping[str, Open] = field(default_factory=dict)
    acted: Mapping[str, Told] = field(default_factory=dict)
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
        opened = {key: each.begin(lowered.machine, manner.slower) for key, each in lowered.doors.items()}
        played = _simulated(lowered, manner, opened)
        return replace(played, opened=opened, acted={key: each.told() for key, each in opened.items()})
    except ticks.TooLong as error:
        raise SpecError([too_long(error, lowered.files[1] if lowered.files else None)]) from error
    except (CannotCompute, NoRoute) as error:  # a service makes its ops while it runs
        raise SpecError.of(None, error.message, error.hint) from error


def _simulated(lowered: Lowered, manner: Manner, opened: Mapping[str, Open]) -> Played:
    """The timeline, with the actors that react to it; parts request by request if any are to be."""
    alone = lowered.machine.by_requests()
    graph = lowered.graph
    actors: list[engines.Actor] = []
    happens = bool(lowered.changes or alone or manner.requests)
    for key, each in opened.items():
        clocked = happens or any(plan.clocks for other, plan in lowered.doors.items() if other != key)
        graph, more = each.enter(graph, clocked=clocked)
        actors += more
    simulate = partial(engines.simulate, actors=actors, changes=lowered.changes, progress=manner.progress, which=manner.engine)
    if alone or manner.requests:
        played: Played = requests().play(lowered, manner, graph, simulate)
        return played
    return Played(simulate(graph))
