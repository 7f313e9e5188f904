"""The answers of services hang on what they do alone: not on their order in the file, on who else is there, or who plays them."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pytest

import hwsim
from hwsim.families.services.results.responses import ServiceResponses
from tests.random_services import File, random_machine, random_services
from tests.service_cases import busy

COUNT: Final = int(os.environ.get("HWSIM_LAWS", "6"))
Told = dict[str, tuple[Any, ...]]


def told(machine: File, workload: File, **keys: Any) -> Told | str:
    """Counts, times and waits of each service of the workload itself; or the mistake that refuses it."""
    try:
        found = hwsim.simulate(machine, workload, expect=False, **keys).services
    except hwsim.SpecError as error:
        return str(error)
    return {answer.name: tuple(of_answers(answer)) for answer in found.answers}


def of_answers(each: ServiceResponses) -> Iterator[Any]:
    yield (
        each.arrived,
        each.external,
        each.completed,
        each.refused,
        each.failed,
        each.wasted,
        each.dropped,
        each.timeouts,
        each.good,
    )
    yield each.in_flight_max, each.queued_max
    for number in (each.span_s, each.stay_s, each.in_flight_mean, each.queued_mean):
        yield pytest.approx(number, rel=1e-9, abs=1e-12)
    if each.latency is not None:
        for number in (each.latency.mean.value, each.latency.most, *(known.value for _, known in each.latency.percentiles)):
            yield pytest.approx(number, rel=1e-9, abs=1e-12)


def only(found: Told | str, names: Told | str) -> Told | str:
    return found if isinstance(found, str) or isinstance(names, str) else {name: found[name] for name in names}


def order_and_others_change_nothing(dice: random.Random, machine: File, workload: File) -> None:
    first = told(machine, workload)
    services = list(workload["services"].items())
    dice.shuffle(services)
    assert told(machine, {**workload, "services": dict(services)}) == first
    unasked = {"device": "cpu", "workers": 2, "request": [busy("1 ms"), {"read": {"from": "disk", "bytes": "1 MB"}}, {"ask": {
        "service": dice.choice(services)[0], "retries": 5, "timeout": "1 s"}}]}  # fmt: skip
    assert only(told(machine, {**workload, "services": {"a": unasked, **dict(services)}}), first) == first
    apart = {"device": "idle", "request": [busy({"exponential": "1 ms"}, "idle")], "arrivals": {"poisson": "90 1/s"}}
    jobs = {"apart": {"services": {"a": apart}, "requests": 90}}
    assert only(told(machine, {**workload, "jobs": jobs}), first) == first


def who_plays_changes_nothing(_: random.Random, machine: File, workload: File) -> None:
    first = told(machine, workload)
    assert told(machine, workload, engine="simpy") == first
    for fast in ("never", "always"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HWSIM_FAST", fast)
            assert told(machine, workload) == first


def an_event_of_nothing_changes_nothing(_: random.Random, machine: File, workload: File) -> None:
    first, parts = told(machine, workload), ({"part": "cpu"}, {"part": "disk"}, {"link": "wire"})
    late = [{**named, "at": "10 h", "down": "1 s"} for named in (*parts, {"service": "web"})]
    for events in (late, [{**named, "at": "10 ms", "speed": "100 %"} for named in parts]):
        assert told(machine, {**workload, "events": events}) == first, events


def a_job_of_nothing_changes_nothing(_: random.Random, machine: File, workload: File) -> None:
    first = told(machine, workload)
    for what in (busy("1 fs"), busy("1 fs", "far"), busy("1 fs", "idle")):
        found = told(machine, {**workload, "jobs": {"nothing": {"start": "1 h", "program": [what]}}})
        assert "first come, first served" in found if isinstance(found, str) else found == first, what


def stops_that_overlap_are_their_union(dice: random.Random, machine: File, workload: File) -> None:
    def stops(spans: Iterable[tuple[int, int]]) -> list[File]:
        return [{"service": "web", "at": f"{begin} ms", "down": f"{end - begin} ms"} for begin, end in spans]

    given = [(begin, begin + dice.randint(1, 20)) for begin in dice.choices(range(40), k=dice.randint(2, 5))]
    stopped = [any(begin <= moment < end for begin, end in given) for moment in range(61)]
    edges = [moment for moment in range(61) if stopped[moment] != (moment > 0 and stopped[moment - 1])]
    union = zip(edges[::2], edges[1::2], strict=True)
    assert told(machine, {**workload, "events": stops(given)}) == told(machine, {**workload, "events": stops(union)}), given


LAWS: Final = (
    order_and_others_change_nothing, who_plays_changes_nothing, an_event_of_nothing_changes_nothing,
    a_job_of_nothing_changes_nothing, stops_that_overlap_are_their_union,
)  # fmt: skip


def check(law: Callable[[random.Random, File, File], None], seeds: range) -> None:
    for seed in seeds:
        dice = random.Random(seed)
        machine, workload = random_machine(dice), random_services(dice)
        assert not isinstance(told(machine, workload), str)
        try:
            law(dice, machine, workload)
        except AssertionError as error:
            raise AssertionError(f"{law.__name__}, seed {seed}: {error}\n{machine}\n{workload}") from error


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_laws_of_random_services(law: Callable[[random.Random, File, File], None]) -> None:
    check(law, range(COUNT))
