"""The engine: plays op graphs on shared capacities.  It knows no kind of device and no kind of op."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from simpy import Event

from hwsim.engine.changes import changing
from hwsim.engine.driver import Driver, Progress, Server
from hwsim.engine.verdict import BrokenInvariant, Deadlock, check, deadlock
from hwsim.opgraph import OpGraph
from hwsim.results.timeline import Timeline

__all__ = ["Actor", "BrokenInvariant", "Deadlock", "Driver", "Server", "changing", "simulate"]

Actor = Callable[[Driver], Generator[Event, None, None]]  # a SimPy process that submits graphs or limits capacities


def simulate(
    graph: OpGraph,
    *,
    actors: Sequence[Actor] = (),
    server: Callable[[Driver], Server] | None = None,
    progress: Progress | None = None,
) -> Timeline:
    """Play a graph, beside actors that submit more of them or change capacities.

    server: makes who serves the ops whose requests are played (see `Cost.played`); it tells the driver when each has finished.

    Raises:
        Deadlock: ops wait for each other, or for what never comes.
        BrokenInvariant: the result contradicts itself (a defect of hwsim).
    """
    driver = Driver(graph.capacities, graph.pools, closed=not actors)
    driver.progress = progress
    driver.server = None if server is None else server(driver)
    for actor in actors:
        driver.env.process(actor(driver))
    driver.submit(graph)
    timeline = driver.run()
    unfinished = driver.unfinished()
    if unfinished:
        raise deadlock(timeline.flat, unfinished)
    check(timeline)
    return timeline
