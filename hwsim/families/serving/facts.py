"""What views, studies, plans, costs and the explorer say of served models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import fsum
from typing import TYPE_CHECKING, Any, Final

from hwsim.doors import Fact, Facts, Place, Shown
from hwsim.families.serving.results.scaling import most_gpus
from hwsim.formats import format_share
from hwsim.results.result import Result

if TYPE_CHECKING:
    from hwsim.families.serving.results.statistics import ServiceStatistics
    from hwsim.studies.states import State
    from hwsim.views.explain.measure import Measure

MILLION: Final = 1e6
SHOWN: Final = ("ttft_p95", "tpot_p95", "tokens_per_s")
FIXED: Final = 0.5  # part of the run: if it waits longer for arrivals, they decide when it ends


def found(result: Result) -> Sequence[ServiceStatistics]:
    """The served models of a run."""
    every: Sequence[ServiceStatistics] = result.told["infer"].found
    moved = [(number, [run.told["infer"].found for run in runs]) for number, runs in result.moved]
    return [
        replace(service, moved=[(number, [end[at] for end in ends]) for number, ends in moved])
        for at, service in enumerate(every)
    ]


class OfModels(Facts):
    """`infer:`."""

    undrawn = "the workload has no `infer`: no service answers requests"
    billed = True

    def headline(self, result: Result) -> Iterator[Fact]:
        """Throughput and load, of a run that serves one model."""
        from hwsim.families.serving import summary

        if _alone(result):
            yield from summary.headline(found(result)[0])

    def bottleneck(self, result: Result) -> tuple[str, bool]:
        """What the replicas do most of the time and whether that is work of GPUs, where arrivals set the time of the run."""
        from hwsim.families.serving import summary

        return summary.bottleneck(found(result)[0]) if _alone(result) else ("", False)

    def rows(self, result: Result) -> Iterator[Fact]:
        """The rows of each model, and the range in which it lies."""
        from hwsim.families.serving import summary

        for service in found(result):
            yield from summary.lines(service, alone=_alone(result))
        for fast, slow in zip(*_ends(result), strict=True):
            yield from summary.between(fast, slow)

    def table(self, result: Result) -> Iterator[str]:
        """Latencies of each model."""
        from hwsim.families.serving import summary

        for service in found(result):
            yield from summary.table(service)

    def entries(self, result: Result, *, rows: bool) -> dict[str, Any]:
        """Each model, and the same at both ends of the interval."""
        from hwsim.families.serving import summary

        body = {"serving": [summary.as_dict(service, rows=rows) for service in found(result)]}
        ends = [[summary.as_dict(service, rows=False) for service in end] for end in _ends(result)]
        return body | ({"serving_at_ends": ends} if "infer" in result.told_ends else {})

    def explained(self, result: Result, place: Place) -> Iterator[str]:
        """Where the time of requests goes."""
        from hwsim.families.serving.parts import sentences, table
        from hwsim.views.kit.lines import wrapped

        for service in found(result) if place == "requests" else ():
            yield from ("", f"where the time of requests{f' of {service.name}' if service.name else ''} goes")
            for sentence in sentences(service):
                yield from wrapped(sentence, 2)
            yield ""
            yield from table(service)

    def measure(self, result: Result, like: Measure | None, arrivals: float) -> Measure | None:
        """The time to the first token of the first model, or its tokens per second if all requests come at once.

        None if something else decides when the run ends. like: of the model that it is of; arrivals: part of the run that waits
        for requests to come.
        """
        from hwsim.views.explain.measure import Measure

        services, others = {each.name: each for each in found(result)}, len(result.jobs) > len(found(result))
        if not services or (others and like is None and arrivals < FIXED):
            return None
        service = services[like.service] if like is not None else next(iter(services.values()))
        values = service.values()
        at_once = service.offered_per_s <= 0 or service.overloaded
        first = "ttft_p95" if "ttft_p95" in values else "latency_p95"
        name = like.name if like is not None else "tokens_per_s" if at_once else first
        shown = tuple((each, values[each]) for each in dict.fromkeys((*SHOWN, name)) if each in values)
        return Measure(service.name, name, values[name], shown, service.wait.p95, concurrent=others)

    def measures(self, result: Result) -> Iterator[tuple[str, float]]:
        """Times of tokens, requests a second, and those that keep the goal."""
        for service in found(result)[:1]:
            if service.first_token is not None and not service.overloaded:  # else it grows with the run
                yield "ttft_p95_s", service.first_token.p95
            if service.each_token is not None:
                yield "tpot_p95_s", service.each_token.p95
            yield "requests_per_s", service.requests_per_s
            if service.goodput_per_s is not None:
                yield "goodput_per_s", service.goodput_per_s

    def grows(self, result: Result) -> bool:
        """Whether the first model is overloaded."""
        return any(service.overloaded for service in found(result)[:1])

    def work(self, result: Result) -> Iterator[tuple[str, float, float]]:
        """Requests, as they come where arrivals set their rate, and tokens written."""
        from hwsim.results.work import COME

        served = found(result)
        unit = COME if all(run.keeps_up for run in served) else "requests"
        yield unit, fsum(run.requests for run in served), fsum(run.requests_per_s for run in served)
        yield "tokens", fsum(run.output_tokens for run in served), fsum(run.tokens_per_s for run in served)

    def states(self, result: Result) -> Iterator[State]:
        """Of each model."""
        from hwsim.families.serving.state import state_of

        return map(state_of, found(result))

    def numbers(self, result: Result) -> dict[str, float]:
        """Of the first model."""
        return _numbers(found(result))

    def at_ends(self, result: Result) -> list[dict[str, float]]:
        """Of the first model, with kernels as fast, and as slow."""
        return [_numbers(end) for end in _ends(result)] if "infer" in result.told_ends else []

    def sure(self, result: Result) -> bool:
        """Whether a measured service tells how sure any is."""
        from hwsim.families.serving.results.errors import sure_of

        return any(sure_of(each) for each in found(result))

    def settling(self, result: Result) -> bool:
        """Whether the first model fills, or starts copies."""
        return any(service.unsettled for service in found(result)[:1])

    def part_on(self, result: Result, *, at_most: bool) -> float:
        """The part in which copies were on that its one service starts and stops by the load."""
        if result.built is None or len(found(result)) != 1 or result.jobs or result.makespan_s <= 0:
            return 1.0
        parts, every = found(result)[0].scalings, len(result.built.devices_of("gpu"))
        if not parts or not every:
            return 1.0
        gpus = most_gpus(parts) if at_most else fsum(part.gpus * part.paid_s for part in parts) / result.makespan_s
        return min(gpus / every, 1.0)

    def unused(self, result: Result) -> Iterator[str]:
        """GPUs of other machines, or of copies that were off."""
        if result.built is None or len(found(result)) != 1 or result.jobs:
            return
        every, (service,) = len(result.built.devices_of("gpu")), found(result)
        if (part := self.part_on(result, at_most=False)) < 1.0:
            paid = f"{format_share(part)} of the machine's GPU-hours are paid for"
            off = f"what was off is others' (without `scale:` all {every} GPUs are paid for)"
            yield f"{paid}, those of copies that were on; {off}"
        elif service.gpus < every:
            yield f"all {every} GPUs are paid for, the service has {service.gpus}"

    def counts(self, result: Result) -> Iterator[tuple[str, float, float, float]]:
        """Requests and tokens of the first model."""
        for service in found(result)[:1]:
            going = service.settled_per_s * result.makespan_s  # of a service that goes on, in the time that is paid for
            more = going / service.requests if going > 0 and service.requests else 1.0
            yield "request", float(service.requests), more, 1.0
            if service.output_tokens:
                yield "1 M tokens of answers", service.output_tokens / MILLION, more, 1.0
                spent = dict(service.spent_s)
                both = spent["prompts"] + spent["answers"]
                kinds = (("read", service.prompt_tokens, "prompts"), ("written", service.output_tokens, "answers"))
                for name, tokens, kind in kinds:
                    yield f"1 M tokens {name}, by time", tokens / MILLION, more, spent[kind] / both if both > 0 else 0.0

    def page(self, result: Result, what: Shown) -> dict[str, Any] | None:
        """Its measure, in place of the time of the run."""
        from hwsim.views.explain.measure import TIMES, measure

        served = measure(result) if what == "wanted" else None
        if served is None:
            return None
        unit = "s" if served.name in TIMES else "1/s"
        return {"name": served.words, "value": served.value, "unit": unit, "measure": served.name}


def _ends(result: Result) -> Sequence[Sequence[ServiceStatistics]]:
    """The models with kernels as fast, and as slow, as the interval's ends."""
    return [end.found for end in result.told_ends["infer"]] if "infer" in result.told_ends else [(), ()]


def _numbers(services: Sequence[ServiceStatistics]) -> dict[str, float]:
    """Values of the first model; its rates are as of a service that goes on."""
    return {
        name: value
        for service in services[:1]
        for name, value in (
            *service.values().items(),
            ("requests_per_s", service.settled_per_s),
            ("tokens_per_s", service.settled_tokens_per_s),
        )
    }


def _alone(result: Result) -> bool:
    """Whether the run is one served model."""
    return len(found(result)) == 1 and not result.jobs


FACTS: Facts = OfModels()
