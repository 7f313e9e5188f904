"""What views, studies, plans and the explorer say of services."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import fsum
from typing import TYPE_CHECKING, Any

from hwsim.doors import Fact, Facts, Place, Shown
from hwsim.results.result import Result

if TYPE_CHECKING:
    from hwsim.families.services.results.answers import Services
    from hwsim.studies.states import State


def found(result: Result) -> Services:
    """The services of a run."""
    services: Services = result.told["services"].found
    return services


class OfServices(Facts):
    """`services:`."""

    undrawn = "the workload has no `services:`; an `infer` is drawn by --plot serving FILE"

    def headline(self, result: Result) -> Iterator[Fact]:
        """The largest load that the machine bears."""
        from hwsim.families.services import summary

        if result.only_requests:
            yield from summary.headline(found(result))

    def rows(self, result: Result) -> Iterator[Fact]:
        """The rows of all services, and the range in which they lie."""
        from hwsim.families.services import summary

        if result.sure:
            yield from summary.unsure(result)
        yield from summary.lines(found(result))
        if (ends := result.told_ends.get("services")) is not None:
            yield from summary.between(*(end.found for end in ends))

    def table(self, result: Result) -> Iterator[str]:
        """Their latencies and limits."""
        from hwsim.families.services import summary

        yield from summary.latencies(found(result))
        yield from summary.slowest(found(result))
        yield from summary.table(found(result))

    def entries(self, result: Result, *, rows: bool) -> dict[str, Any]:  # noqa: ARG002
        """All services, and the same at both ends of the interval of their work."""
        from hwsim.families.services.summary import as_dict

        ends, half = result.told_ends.get("services"), result.told["services"].half(result)
        more = {} if ends is None else {"services_at_ends": [as_dict(end.found, half) for end in ends]}
        return as_dict(found(result), half) | more

    def explained(self, result: Result, place: Place) -> Iterable[str]:
        """What answers wait for, and what each statement takes."""
        from hwsim.families.services.explain import lines

        return lines(found(result)) if place == "first" else ()

    def explained_entries(self, result: Result) -> dict[str, Any]:
        """The same."""
        from hwsim.families.services.explain import as_dict

        return as_dict(found(result))

    def measures(self, result: Result) -> Iterator[tuple[str, float]]:
        """Times of answers, and answers a second, of the first service."""
        for answers in found(result).answers[:1]:
            if answers.latency is not None:
                yield "latency_p50_s", answers.latency.at(0.5).value
                yield "latency_p99_s", answers.latency.at(0.99).value
            yield "requests_per_s", answers.per_s
            yield "goodput_per_s", answers.goodput

    def work(self, result: Result) -> Iterator[tuple[str, float, float]]:
        """Requests as they come, if all services keep up."""
        from hwsim.results.work import COME

        asked = found(result).answers
        if asked and all(each.keeps_up for each in asked):
            yield COME, fsum(each.served for each in asked), fsum(each.per_s for each in asked)

    def states(self, result: Result) -> Iterator[State]:
        """Of each service, and of its choices."""
        from hwsim.families.services.state import state_of

        return (state_of(found(result), answers) for answers in found(result).answers)

    def load(self, result: Result) -> Iterator[tuple[str, float | None, bool]]:
        """The limits, the lowest first."""
        return ((rung.name, rung.utilisation, rung.kind == "capacity") for rung in found(result).ladder)

    def numbers(self, result: Result) -> dict[str, float]:
        """Times of answers of the first service."""
        first = found(result).answers[:1]
        return {name: value for each in first for name, value in each.values().items() if name.startswith("latency_")}

    def page(self, result: Result, what: Shown) -> Any:
        """The time of its slowest answers in place of that of the run, what they wait for, and what each statement takes."""
        from hwsim.families.services import page

        shown = {"wanted": page.wanted, "says": page.sentence, "limits": page.waits, "derived": page.statements}
        return shown[what](found(result))


FACTS: Facts = OfServices()
