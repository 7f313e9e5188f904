"""Services: requests that come, wait, are put together into iterations and answered.

    services = [Service(plan, machine) for plan in plans]
    graph, actors = played(services, graph)
    timeline = engine.simulate(graph, actors=actors)
    services[0].statistics()

A replica of a model is one state machine (`copy`), which decides as its server does. Where a service has its devices and links to
itself, it is played without a clock, and its ops are a graph (`alone`); where it shares them, its copies are SimPy processes
that run with the engine (`clocked`). Both come to the same, to the femtosecond.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hwsim.engine import Actor, Host, Waits
from hwsim.families.serving.actors.service import Service
from hwsim.graph.opgraph import OpGraph

__all__ = ["Service", "played"]


def played(services: Sequence[Service], graph: OpGraph, *, clocked: bool = False) -> tuple[OpGraph, list[Actor]]:
    """The graph with what services do that are alone on their devices, and the actors of the others.

    clocked: all are actors, as something happens while they run.
    """
    actors: list[Actor] = []
    for service in services:
        drawn = {name for each in services if each is not service for name in each.demands()}
        if clocked or not service.is_alone(graph.costs, drawn):
            actors.append(service.actor)
        elif len(services) == 1 and not graph.total:
            made = service.graph(graph)
            graph = replace(graph, blocks=made.blocks, labels=made.labels, costs=made.costs, queues=made.queues)
        else:
            actors.append(_submitting(service.graph(graph)))
    return graph, actors


def _submitting(made: OpGraph) -> Actor:
    def actor(driver: Host) -> Waits:
        yield driver.submit(made)

    return actor
