"""A key is felt on every way there: each example of every key has one answer, whoever plays it and with nothing beside it.

A run may be played by compiled code, in Python or by SimPy, its equal ranks once or one by one, alone, beside a job that does
nothing, and with an event after its end. A way may be refused. A new key is tried as soon as it has an example.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any, Final

import pytest

import hwsim
from hwsim import api
from tests.keys.examples import EXAMPLES
from tests.keys.feeling import Example, changes, put
from tests.keys.schemas import Found
from tests.service_cases import busy
from tests.test_docs import ROOT
from tests.test_services_ways import of_answers

FEW: Final = 3  # parts to which something happens after the end
LATE: Final = "100 day"
PLAYED: Final = tuple(index for index, example in enumerate(EXAMPLES) if example.framework is None)
SERVED: Final = tuple(n for n in PLAYED if "services" in repr(EXAMPLES[n].workload))  # of the others a sample is drawn
SAMPLE: Final = int(os.environ.get("HWSIM_LAWS", "40"))  # keys of each of the parts below
PARTS: Final = 4


@cache
def machine_of(number: int) -> Any:
    return api.load_machine(EXAMPLES[number].machine)


def told(machine: Any, workload: Any, example: Example, fast: str = "", **way: Any) -> Any:
    """The numbers of a run; the mistake that refuses it."""
    with pytest.MonkeyPatch.context() as patch:
        if fast:
            patch.setenv("HWSIM_FAST", fast)
        try:
            run = api.simulate(machine, workload, expect=False, interval=False, requests=example.requests, **way)
        except (hwsim.SpecError, api.OutOfMemory, hwsim.Deadlock) as error:
            return str(error)
    served = [(row.name, row.requests, row.span_s, row.latency, row.first_token, row.each_token) for row in run.serving]
    answers = () if run.services is None else run.services.answers
    return (
        run.makespan_s if not answers else 0.0,
        [(job.name, job.end_s) for job in run.jobs if job.name != "nothing"],
        served,
        {answer.name: tuple(of_answers(answer)) for answer in answers},
    )


def ways(number: int, workload: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """(name, workload, arguments) of each way to play an example but the plainest: in Python, with all ranks."""
    for name, given in (
        ("as usual", {}), ("compiled", {"fast": "always"}), ("SimPy", {"engine": "simpy"}), ("folded", {"fold": "always"}),
    ):  # fmt: skip
        yield name, workload, given
    served, events, kinds = "services" in workload, workload.get("events", ()), machine_of(number).kinds
    for device in list(kinds)[:: max(1, len(kinds) // FEW)][: FEW if served else 1]:
        yield f"{device} down after the end", {**workload, "events": [*events, {"at": LATE, "part": device, "down": "1 s"}]}, {}
    if served:
        late = {"at": LATE, "service": next(iter(workload["services"])), "down": "1 s"}
        yield "service down after the end", {**workload, "events": [*events, late]}, {}
        for device in [name for name, kind in kinds.items() if kind == "cpu"][:FEW]:
            nothing = {"nothing": {"start": "1 day", "program": [busy("1 fs", device)]}}
            yield f"a job of nothing on {device}", {**workload, "jobs": {**workload.get("jobs", {}), **nothing}}, {}


def differ(number: int, workload: dict[str, Any]) -> list[str]:
    """Ways on which an example has another answer; of one that is changed, which may be refused, nothing then."""
    example, machine = EXAMPLES[number], machine_of(number)
    first = told(machine, workload, example, fast="never", fold="never")
    if isinstance(first, str):
        return [first] if workload == example.workload else []
    answers = ((name, told(machine, changed, example, **given)) for name, changed, given in ways(number, workload))
    return [f"{name}: {answer} is not {first}" for name, answer in answers if not isinstance(answer, str) and answer != first]


@pytest.mark.parametrize("number", PLAYED, ids=lambda number: EXAMPLES[number].name)
def test_an_example_has_one_answer_on_all_ways(number: int) -> None:
    assert differ(number, dict(EXAMPLES[number].workload)) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", SERVED, ids=lambda number: EXAMPLES[number].name)
def test_a_changed_key_has_one_answer_on_all_ways(number: int) -> None:
    example = EXAMPLES[number]
    for file, found in example.given():
        for value in islice(changes(example, found), 1) if file == "workload" else ():
            assert differ(number, put(example.workload, found.path, value)) == [], (found.key, value)


@cache
def others() -> tuple[tuple[int, Found], ...]:
    """Keys of the workloads of all other examples, in an order that is another one for each version of the change log."""
    keys = [
        (number, found)
        for number in PLAYED
        if number not in SERVED
        for file, found in EXAMPLES[number].given()
        if file == "workload"
    ]
    random.Random((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")).shuffle(keys)
    return tuple(keys)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_so_has_a_changed_key_of_a_sample_of_all_others(part: int) -> None:
    for number, found in others()[part::PARTS][:SAMPLE]:
        example = EXAMPLES[number]
        for value in islice(changes(example, found), 1):
            assert differ(number, put(example.workload, found.path, value)) == [], (example.name, found.path, value)
