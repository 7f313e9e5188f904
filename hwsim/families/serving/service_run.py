"""Served models of a machine, of a run and of its result."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from hwsim.engine import Actor, Host, Waits
from hwsim.families.serving.results.statistics import ServiceStatistics, expected_of
from hwsim.families.serving.workload.plan import ServicePlan
from hwsim.families_interface import FamilyPlan, FamilyResult, FamilyRun, Server
from hwsim.formats import format_count
from hwsim.graph.opgraph import OpGraph
from hwsim.machine import Machine
from hwsim.results.checks import ROUNDING
from hwsim.results.invariants import numbers
from hwsim.results.steady_state import overloaded, refuse_empty
from hwsim.spec import Warning

if TYPE_CHECKING:
    from hwsim.families.serving.actors.service import ModelService

FILLS: Final = "so latencies may be too low, or the service overloaded: simulate more `requests`"
STARTS: Final = "soon after replica starts, so the service may be overloaded: simulate more `requests`"


@dataclass(frozen=True)
class PlannedModels(FamilyPlan):
    """The served models of a workload on a machine."""

    plans: tuple[ServicePlan, ...]
    issues = True
    clocks = False

    @property
    def suspicions(self) -> Iterator[Warning]:
        """Warnings about each plan."""
        return chain.from_iterable(plan.warnings for plan in self.plans)

    def begin(self, machine: Machine, slower: float) -> Serving:
        """Return the services of one run; `slower`: factor on kernel times."""
        from hwsim.families.serving.actors.service import ModelService

        return Serving(tuple(ModelService(plan, machine, slower) for plan in self.plans))

    def holds(self, told: FamilyResult | None) -> Iterator[Any]:
        """Yield the memory of weights and KV caches while their replicas are on."""
        spans = {} if told is None else told.spans
        return (value for plan in self.plans for value in plan.holds(*spans.get(plan.name, ())))


@dataclass(frozen=True)
class Serving(FamilyRun):
    """The served models of a run."""

    services: tuple[ModelService, ...]

    def enter(self, graph: OpGraph, *, clocked: bool) -> tuple[OpGraph, Sequence[Actor]]:
        """Return (graph with the ops of services that are alone on their devices, actors of the other services).

        Args:
            graph: ops of the rest of the workload.
            clocked: make all services actors, because events occur during the run.
        """
        actors: list[Actor] = []
        for service in self.services:
            used_names = {name for other in self.services if other is not service for name in other.demands()}
            if clocked or not service.is_alone(graph.costs, used_names):
                actors.append(service.actor)
            elif len(self.services) == 1 and not graph.total:
                ops = service.graph(graph)
                graph = replace(graph, blocks=ops.blocks, labels=ops.labels, costs=ops.costs, queues=ops.queues)
            else:
                actors.append(_submit_actor(service.graph(graph)))
        return graph, actors

    def told(self) -> ServedModels:
        """Return the statistics of each service.

        Raises:
            SpecError: All requests of a service arrive within its warm-up.
        """
        found = tuple(service.statistics() for service in self.services)
        refuse_empty(statistics.name for statistics in found if not statistics.requests)
        return ServedModels(found)


def _submit_actor(graph: OpGraph) -> Actor:
    def actor(driver: Host) -> Waits:
        yield driver.submit(graph)

    return actor


@dataclass(frozen=True)
class ServedModels(FamilyResult):
    """The results of the served models of a run."""

    found: tuple[ServiceStatistics, ...]
    of_kernels = True
    server: Server = "model"

    @property
    def timed(self) -> Collection[str]:
        """Names of all services."""
        return {service.name for service in self.found}

    @property
    def spans(self) -> Mapping[str, Sequence[Any]]:
        """Times at which autoscaled replicas were on, by service."""
        return {service.name: [part.spans_fs for part in reversed(service.scalings)] for service in self.found}

    def expected(self) -> Mapping[str, float]:
        """Return the quantities of each model."""
        return expected_of(self.found)

    def warnings(self) -> Iterator[Warning]:
        """Yield warnings about overload, and about runs too short to detect it."""
        for service in self.found:
            prefix = f"{service.name}: " if service.name else ""
            yield from service.parts
            if service.overloaded:
                arrivals, completed = format_count(service.offered_per_s, 4), format_count(service.answered_per_s, 4)
                yield overloaded(f"{prefix}{arrivals} requests/s arrive, {completed}/s are completed", service.queue_growth_per_s)
            elif service.unsettled:
                why = FILLS if service.scaling is None else STARTS
                yield Warning("no-steady-state", f"{prefix}the queue was still growing when arrivals stopped, {why}")

    def violations(self) -> Iterator[str]:
        """Yield violations of Little's law, and values that are not numbers."""
        for served in self.found:
            area, stayed = served.in_flight_mean * served.span_s, served.latency.mean * served.requests
            if not math.isclose(area, stayed, rel_tol=ROUNDING):
                yield f"{served.name}: Little's law: in-system average x span is {area} s, the sum of latencies is {stayed} s"
        yield from numbers(self.found, "serving")
