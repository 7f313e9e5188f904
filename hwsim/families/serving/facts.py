"""The facts about served models that views, studies, plans, costs and the explorer show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import fsum
from typing import TYPE_CHECKING, Any, Final

from hwsim.families.serving.results.autoscaling import most_gpus
from hwsim.families_interface import FamilyReport, Place, Shown, SummaryLine
from hwsim.formats import format_share
from hwsim.results.result import Result

if TYPE_CHECKING:
    from hwsim.families.serving.results.statistics import ServiceStatistics
    from hwsim.studies.states import ServiceSteadiness
    from hwsim.views.explain.measure import ServiceMeasure

MILLION: Final = 1e6
SHOWN: Final = ("ttft_p95", "tpot_p95", "tokens_per_s")
FIXED: Final = 0.5  # share of the run spent waiting for arrivals above which they determine its end


def found(result: Result) -> Sequence[ServiceStatistics]:
    """Return the statistics of the served models of a run."""
    services: Sequence[ServiceStatistics] = result.told["infer"].found
    scores = None if result.built is None else result.built.scores
    moved = [(number, [run.told["infer"].found for run in runs]) for number, runs in result.moved]
    return [
        replace(service, scores=scores, moved=[(number, [end[index] for end in ends]) for number, ends in moved])
        for index, service in enumerate(services)
    ]


class ServingFacts(FamilyReport):
    """The facts of `infer:` workloads."""

    undrawn = "the workload has no `infer`: no service answers requests"
    billed = True

    def headline(self, result: Result) -> Iterator[SummaryLine]:
        """Yield throughput and load, if the run is one service."""
        from hwsim.families.serving import summary

        if _is_single_service(result):
            yield from summary.headline(found(result)[0])

    def bottleneck(self, result: Result) -> tuple[str, bool]:
        """Return the main use of the replicas' time and whether it is GPU work, if the run is one service."""
        from hwsim.families.serving import summary

        return summary.bottleneck(found(result)[0]) if _is_single_service(result) else ("", False)

    def rows(self, result: Result) -> Iterator[SummaryLine]:
        """Yield the rows of each model, and of its interval."""
        from hwsim.families.serving import summary

        for service in found(result):
            yield from summary.lines(service, alone=_is_single_service(result))
        for fast, slow in zip(*_interval_ends(result), strict=True):
            yield from summary.between(fast, slow)

    def table(self, result: Result) -> Iterator[str]:
        """Yield the table of latencies of each model."""
        from hwsim.families.serving import summary

        for service in found(result):
            yield from summary.table(service)

    def entries(self, result: Result, *, rows: bool) -> dict[str, Any]:
        """Return the JSON entries of each model, also at both ends of the interval."""
        from hwsim.families.serving import summary

        body = {"serving": [summary.as_dict(service, rows=rows) for service in found(result)]}
        ends = [[summary.as_dict(service, rows=False) for service in end] for end in _interval_ends(result)]
        return body | ({"serving_at_ends": ends} if "infer" in result.told_ends else {})

    def explained(self, result: Result, place: Place) -> Iterator[str]:
        """Yield the latency breakdown of each model."""
        from hwsim.families.serving.parts import sentences, table
        from hwsim.views.kit.lines import wrap_lines

        for service in found(result) if place == "requests" else ():
            yield from ("", f"latency breakdown{f' of {service.name}' if service.name else ''}")
            for sentence in sentences(service):
                yield from wrap_lines(sentence, 2)
            yield ""
            yield from table(service)

    def measure(self, result: Result, like: ServiceMeasure | None, arrivals: float) -> ServiceMeasure | None:
        """Return the measure of the first model: its p95 TTFT, or its tokens/s if all requests arrive at once.

        Args:
            result: the run.
            like: measure of another run to repeat; None: choose one.
            arrivals: share of the run spent waiting for arrivals. Below `FIXED`, a run with other jobs has no measure (None).
        """
        from hwsim.views.explain.measure import ServiceMeasure

        services, others = {model.name: model for model in found(result)}, len(result.jobs) > len(found(result))
        if not services or (others and like is None and arrivals < FIXED):
            return None
        service = services[like.service] if like is not None else next(iter(services.values()))
        values = service.values()
        at_once = service.offered_per_s <= 0 or service.overloaded
        first = "ttft_p95" if "ttft_p95" in values else "latency_p95"
        name = like.name if like is not None else "tokens_per_s" if at_once else first
        shown = tuple((key, values[key]) for key in dict.fromkeys((*SHOWN, name)) if key in values)
        return ServiceMeasure(service.name, name, values[name], shown, service.queueing.p95, concurrent=others)

    def measures(self, result: Result) -> Iterator[tuple[str, float]]:
        """Yield p95 TTFT, p95 TPOT, throughput and goodput of the first model."""
        for service in found(result)[:1]:
            if service.first_token is not None and not service.overloaded:  # TTFT of an overloaded service grows with the run
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
        """Yield (unit, amount, rate) of requests and output tokens."""
        from hwsim.results.work import COME

        served = found(result)
        unit = COME if all(run.stable for run in served) else "requests"
        yield unit, fsum(run.requests for run in served), fsum(run.requests_per_s for run in served)
        yield "tokens", fsum(run.output_tokens for run in served), fsum(run.tokens_per_s for run in served)

    def states(self, result: Result) -> Iterator[ServiceSteadiness]:
        """Return the steady state of each model."""
        from hwsim.families.serving.state import state_of

        return map(state_of, found(result))

    def numbers(self, result: Result) -> dict[str, float]:
        """Return the numbers of the first model."""
        return _values(found(result))

    def at_ends(self, result: Result) -> list[dict[str, float]]:
        """Return the numbers of the first model at both ends of the interval of kernel times."""
        return [_values(end) for end in _interval_ends(result)] if "infer" in result.told_ends else []

    def sure(self, result: Result) -> bool:
        """Whether any service has an interval from measured services."""
        from hwsim.families.serving.results.errors import serving_intervals

        return any(serving_intervals(service) for service in found(result))

    def settling(self, result: Result) -> bool:
        """Whether the first model is still filling or starting replicas."""
        return any(service.unsettled for service in found(result)[:1])

    def part_on(self, result: Result, *, at_most: bool) -> float:
        """Return the share of the machine's GPU-hours in which autoscaled replicas were on; 1 without autoscaling."""
        if result.built is None or len(found(result)) != 1 or result.jobs or result.makespan_s <= 0:
            return 1.0
        parts, gpu_count = found(result)[0].scalings, len(result.built.devices_of("gpu"))
        if not parts or not gpu_count:
            return 1.0
        gpus = most_gpus(parts) if at_most else fsum(part.gpus * part.paid_s for part in parts) / result.makespan_s
        return min(gpus / gpu_count, 1.0)

    def unused(self, result: Result) -> Iterator[str]:
        """Yield a note on GPUs without replicas, or of replicas that were off."""
        if result.built is None or len(found(result)) != 1 or result.jobs:
            return
        gpu_count, (service,) = len(result.built.devices_of("gpu")), found(result)
        if (part := self.part_on(result, at_most=False)) < 1.0:
            paid = f"the cost includes {format_share(part)} of the machine's GPU-hours, those of replicas that were on"
            yield f"{paid}; without `scale:` it would include all {gpu_count} GPUs"
        elif service.gpus < gpu_count:
            yield f"the cost includes all {gpu_count} GPUs, but the service uses {service.gpus}"

    def counts(self, result: Result) -> Iterator[tuple[str, float, float, float]]:
        """Yield (unit, amount, factor to the paid time, share of the cost) of requests and tokens of the first model."""
        for service in found(result)[:1]:
            going = service.settled_per_s * result.makespan_s  # requests in steady state during the paid time
            more = going / service.requests if going > 0 and service.requests else 1.0
            yield "request", float(service.requests), more, 1.0
            if service.output_tokens:
                yield "1 M output tokens", service.output_tokens / MILLION, more, 1.0
                spent = dict(service.time_by_use)
                both = spent["prefill"] + spent["decode"]
                kinds = (("prompt", service.prompt_tokens, "prefill"), ("output", service.output_tokens, "decode"))
                for name, tokens, kind in kinds:
                    yield f"1 M {name} tokens, by time", tokens / MILLION, more, spent[kind] / both if both > 0 else 0.0

    def page(self, result: Result, what: Shown) -> dict[str, Any] | None:
        """Return the measure, which replaces the time of the run."""
        from hwsim.views.explain.measure import TIMES, measure

        served = measure(result) if what == "measure" else None
        if served is None:
            return None
        unit = "s" if served.name in TIMES else "1/s"
        return {"name": served.words, "value": served.value, "unit": unit, "measure": served.name}


def _interval_ends(result: Result) -> Sequence[Sequence[ServiceStatistics]]:
    """Return the models at both ends of the interval of kernel times."""
    return [end.found for end in result.told_ends["infer"]] if "infer" in result.told_ends else [(), ()]


def _values(services: Sequence[ServiceStatistics]) -> dict[str, float]:
    """Return the values of the first model, with rates of the steady state."""
    return {
        name: value
        for service in services[:1]
        for name, value in (
            *service.values().items(),
            ("requests_per_s", service.settled_per_s),
            ("tokens_per_s", service.settled_tokens_per_s),
        )
    }


def _is_single_service(result: Result) -> bool:
    """Whether the run is one service and nothing else."""
    return len(found(result)) == 1 and not result.jobs


FACTS: FamilyReport = ServingFacts()
