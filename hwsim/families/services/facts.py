"""Facts on services for views, studies, plans and the explorer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import fsum
from typing import TYPE_CHECKING, Any

from hwsim.families_interface import FamilyReport, Place, Shown, SummaryLine
from hwsim.results.result import Result

if TYPE_CHECKING:
    from hwsim.families.services.results.responses import Services
    from hwsim.studies.states import ServiceSteadiness


def found(result: Result) -> Services:
    """Return the services of a run."""
    services: Services = result.told["services"].found
    return services


class ServicesFacts(FamilyReport):
    """The facts of `services:`."""

    undrawn = "the workload has no `services:`; for `infer`, use --plot serving FILE"

    def headline(self, result: Result) -> Iterator[SummaryLine]:
        """Yield the capacity, if the run has nothing but requests."""
        from hwsim.families.services import summary

        if result.only_requests:
            yield from summary.headline(found(result))

    def rows(self, result: Result) -> Iterator[SummaryLine]:
        """Yield the rows of all services, and the percentiles at both ends of the interval."""
        from hwsim.families.services import summary

        if result.sure:
            yield from summary.unsure(result)
        yield from summary.lines(found(result))
        if (ends := result.told_ends.get("services")) is not None:
            yield from summary.between(*(end.found for end in ends))

    def table(self, result: Result) -> Iterator[str]:
        """Yield the tables of latencies and limits."""
        from hwsim.families.services import summary

        yield from summary.latencies(found(result))
        yield from summary.slowest(found(result))
        yield from summary.table(found(result))

    def entries(self, result: Result, *, rows: bool) -> dict[str, Any]:  # noqa: ARG002
        """Return the entries of all services, also at both ends of the interval of the service time."""
        from hwsim.families.services.summary import as_dict

        ends, half = result.told_ends.get("services"), result.told["services"].half(result)
        more = {} if ends is None else {"services_at_ends": [as_dict(end.found, half) for end in ends]}
        return as_dict(found(result), half) | more

    def explained(self, result: Result, place: Place) -> Iterable[str]:
        """Return the waits of the slowest requests, and the service time of each statement."""
        from hwsim.families.services.explain import lines

        return lines(found(result)) if place == "first" else ()

    def explained_entries(self, result: Result) -> dict[str, Any]:
        """Return the same for the JSON document."""
        from hwsim.families.services.explain import as_dict

        return as_dict(found(result))

    def measures(self, result: Result) -> Iterator[tuple[str, float]]:
        """Yield latencies, throughput and goodput of the first service."""
        for answers in found(result).answers[:1]:
            if answers.latency is not None:
                yield "latency_p50_s", answers.latency.at(0.5).value
                yield "latency_p99_s", answers.latency.at(0.99).value
            yield "requests_per_s", answers.throughput_per_s
            yield "goodput_per_s", answers.goodput_per_s

    def work(self, result: Result) -> Iterator[tuple[str, float, float]]:
        """Yield the completed requests, if no service is overloaded."""
        from hwsim.results.work import COME

        rows = found(result).answers
        if rows and all(row.stable for row in rows):
            yield COME, fsum(row.completed for row in rows), fsum(row.throughput_per_s for row in rows)

    def states(self, result: Result) -> Iterator[ServiceSteadiness]:
        """Return the state of each service and of its branches."""
        from hwsim.families.services.state import state_of

        return (state_of(found(result), answers) for answers in found(result).answers)

    def load(self, result: Result) -> Iterator[tuple[str, float | None, bool]]:
        """Return (name, utilization, whether it is a capacity) of each limit, the lowest first."""
        return ((rung.name, rung.utilization, rung.kind == "capacity") for rung in found(result).throughput_limits)

    def numbers(self, result: Result) -> dict[str, float]:
        """Return the latencies of the first service."""
        first = found(result).answers[:1]
        return {name: value for answers in first for name, value in answers.values().items() if name.startswith("latency_")}

    def page(self, result: Result, what: Shown) -> Any:
        """Return the p99 latency instead of the run time, its causes, or the service time of each statement."""
        from hwsim.families.services import page

        shown = {"measure": page.wanted, "text": page.sentence, "bounds": page.waits, "derived": page.statements}
        return shown[what](found(result))


FACTS: FamilyReport = ServicesFacts()
