"""What does less work is not the better for it: the same rule in a sweep, a comparison, a sensitivity and a plan."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hwsim
from hwsim.comparing import of_document, of_run, of_sides
from hwsim.comparing.class_defaults import UNLIKE
from hwsim.comparing.run_comparison import compare
from hwsim.costs.amount import Amount
from hwsim.costs.bill import Paying
from hwsim.costs.prices import load_prices
from hwsim.devices.offers import PaymentOption
from hwsim.planning import plan, read_question
from hwsim.planning.options import PlanOption
from hwsim.planning.ordering import compare_options
from hwsim.planning.variants import PlanPoint
from hwsim.results.work import UNCOUNTED
from hwsim.sensitivities.analysis import sensitivity
from hwsim.spec import SpecError, names
from hwsim.studies.ranking import differing_unit

MACHINE = "dgx-h100"
TRAIN = {"model": "d2l-resnet-18", "gpus": 2, "global_batch": "$batch", "steps": "$steps", "dtype": "fp32"}
SERVED: dict[str, Any] = {"model": "llama-3-8b", "prompt": 100, "output": 10}
SHOP = {"device": "cpu0", "arrivals": {"poisson": "$n * 10 1/s"}, "request": [{"busy": {"time": "1 ms"}}]}
VARIED: dict[str, dict[str, Any]] = {
    "bytes": {"program": [{"copy": {"from": "cpu0", "to": "gpu0", "bytes": "$n * 1 GB"}}, {"wait": "all"}]},
    "times": {"program": [{"repeat": {"times": "$n", "do": [{"busy": {"device": "cpu0", "time": "1 ms"}}]}}]},
    "flop": {"program": [{"matmul": {"device": "gpu0", "m": "$n * 1024", "n": 1024, "k": 1024, "dtype": "bf16"}}]},
    "steps": {"train": {**TRAIN, "global_batch": 64, "steps": "$n * 2"}},
    "batch": {"train": {**TRAIN, "global_batch": "$n * 64", "steps": 2}},
    "requests": {"infer": {**SERVED, "requests": "$n * 4"}},
    "tokens": {"infer": {**SERVED, "requests": 8, "output": "$n * 10"}},
    "arrivals": {"infer": {**SERVED, "arrivals": {"poisson": "10 1/s"}, "requests": "$n * 4"}},
    "asked": {"services": {"shop": SHOP}, "requests": 40},
}
WORKLOADS = {name: {"let": {"n": 1}, **keys} for name, keys in VARIED.items()}
CLAIMS = ("faster", "fastest", "lowest time", "confidence")


@pytest.mark.parametrize("name", WORKLOADS)
def test_less_work_is_not_faster_in_any_view(name: str) -> None:
    """What is asked for by name has the rule that the default has."""
    workload = {"hwsim": "workload/1", **WORKLOADS[name]}
    swept = hwsim.sweep(MACHINE, workload, {"n": [1, 4]}, by="time", workers=1)
    assert swept.ranking.measure is None
    assert swept.ranking.why
    both = compare((MACHINE, MACHINE), (workload, workload), set_b={"n": 4}, by="time", attribute=False)
    assert both.measure is None
    for text in (str(swept), str(both)):
        assert not [claim for claim in CLAIMS if claim in text], text
    with pytest.raises(SpecError, match=r"amounts of work|arrival rate"):
        sensitivity(MACHINE, workload, set_b={"n": 4}, by="time")
    with pytest.raises(SpecError, match=r"amounts of work|cannot rank services") as refused:
        plan({"machine": MACHINE, "workload": workload, "vary": {"workload.let.n": [1, 4]}, "minimise": "time"})
    assert refused.value.mistakes[0].hint


def test_the_refusal_has_its_place() -> None:
    question = "hwsim: plan/1\nmachine: d2l-laptop\nworkload: d2l/async-loop\nvary: {workload.let.n: [10, 20]}\nminimise: time\n"
    with pytest.raises(SpecError, match="different amounts of work") as refused:
        plan(read_question(question))
    place = refused.value.mistakes[0].place
    assert (place.line, place.column) == (5, 11)


def test_the_same_work_in_less_time_is_faster() -> None:
    workload = {"hwsim": "workload/1", "let": {"n": 1}, "program": WORKLOADS["bytes"]["program"]}
    links = {"machine.links.uplink.lanes": [8, 16]}
    answer = plan({"machine": MACHINE, "workload": workload, "vary": links, "minimise": "time"})
    assert dict(answer.best.point.values) == {"machine.links.uplink.lanes": 16}


def test_whole_trainings_of_other_lengths_and_rents_of_other_runs_are_unlike() -> None:
    train = {"hwsim": "workload/1", "let": {"tokens": 1e11}}
    train |= {"train": {"model": "llama-3-8b", "sequence": 8192, "global_batch": 64, "parallel": {"tp": 8}, "tokens": "$tokens"}}
    question: dict[str, Any] = {"machine": MACHINE, "workload": train, "failures": "none", "simulate": 0}
    for measure in ("training", "cost", "energy"):
        with pytest.raises(SpecError, match="tokens"):
            plan({**question, "vary": {"workload.let.tokens": [1e11, 2e11]}, "minimise": measure})
    copies = {"hwsim": "workload/1", **WORKLOADS["bytes"]}
    rented = {"machine": MACHINE, "workload": copies, "vary": {"workload.let.n": [1, 4]}, "rent": "on_demand", "minimise": "cost"}
    with pytest.raises(SpecError, match="1 GB to 4 GB"):
        plan(rented)
    assert plan({**rented, "period": "1 day"}).best is not None


def test_the_rate_that_a_refusal_names_compares_them() -> None:
    question = {"machine": "d2l-gpu-workstation", "workload": "d2l/data-loading", "vary": {"workload.let.batch": [32, 64]}}
    with pytest.raises(SpecError, match="samples") as refused:
        plan({**question, "minimise": "time"})
    assert "maximise: tokens/s, samples/s" in (refused.value.mistakes[0].hint or "")
    assert plan({**question, "maximise": "samples/s"}).best is not None


# ---- worse for sure


@pytest.mark.parametrize("minimise", ["cost per million tokens", "energy"])
def test_layouts_that_serve_all_at_once_are_told_apart_by_no_less_than_such_services_miss(minimise: str) -> None:
    """Tokens a second of a served model are known to a quarter; a difference of some per cent is none."""
    served = {"model": "llama-3-70b", "requests": 64, "prompt": 512, "output": 64}
    question = {
        "machine": MACHINE, "workload": {"hwsim": "workload/1", "infer": served},
        "vary": {"workload.infer.parallel": [{"tp": 8}, {"tp": 4}]}, "minimise": minimise,
    }  # fmt: skip
    answer = plan(question)
    assert "worse at 95" not in str(answer)
    if minimise != "energy":
        assert answer.best.numbers["tokens_per_s"].half > 0.1
        assert answer.best.numbers[minimise].half > answer.best.numbers["cost"].half


@pytest.mark.parametrize(("measure", "apart", "told"), [
    ("power", 1.1, False), ("energy", 1.1, False), ("ttft_p95", 1.1, False), ("samples_per_s", 1.1, False),
    ("power", 2.0, True), ("ttft_p95", 2.0, True), ("nodes", 1.1, False),
])  # fmt: skip
def test_numbers_of_two_runs_are_told_apart_by_more_than_both_miss(measure: str, apart: float, told: bool) -> None:
    """Each is known to a fifth, and nothing says that they share an error."""
    question = read_question(
        {"machine": MACHINE, "workload": "d2l/async-loop", "minimise" if measure[0] != "s" else "maximise": measure}
    )
    one, other = (
        PlanOption(PlanPoint(index, "", ()), "simulation", {measure: Amount.within(value, 0.2)})
        for index, value in enumerate((1.0, apart))
    )
    assert compare_options(question, other, one).is_conclusive == told


@pytest.mark.parametrize(("other", "way"), [("dgx-h200", "block"), ("mi300x-8", "purchase"), ("dgx-a100", "purchase")])
def test_a_plan_and_a_comparison_have_one_judgement_of_prices_of_other_kinds(other: str, way: PaymentOption) -> None:
    """A price of a whole machine tells nothing beside a sum of parts, nor a term of a day beside one of a year."""
    train: dict[str, Any] = {"hwsim": "workload/1"}
    train |= {"train": {"model": "llama-3-8b", "sequence": 2048, "global_batch": 64, "parallel": {"tp": 8}, "tokens": 1e10}}
    machines = ("dgx-h100", other)
    both = compare(machines, (train, train), by="cost", attribute=False, paying=Paying(load_prices(), way))
    answer = plan(
        {"machine": list(machines), "workload": train, "failures": "none", "rent": way, "minimise": "cost", "simulate": 0}
    )
    unlike = [ratio.unlike for ratio in answer.ratios.values() if ratio.unlike != UNLIKE]
    if not answer.ratios:  # the other has no plan that fits
        return
    assert bool(unlike and unlike[0]) == (" against " in both.why)
    assert both.over is None or not any(unlike)


def test_parts_of_a_ramp_answer_no_plan() -> None:
    """The rule that expectations have."""
    served = {"model": "llama-3-8b", "arrivals": {"clients": 20, "think": "1 s", "ramp": "1 h"}, "requests": 20}
    served |= {"prompt": 200, "output": 20}
    question = {"machine": MACHINE, "workload": {"hwsim": "workload/1", "infer": served}, "minimise": "power"}
    answer = plan({**question, "require": ["ttft_p95 at most 1 h"]})
    assert answer.best is None
    assert [reason.constraint for candidate in answer.rejected for reason in candidate.reasons] == ["day"]


def test_what_its_machine_cannot_do_is_no_answer() -> None:
    """As it meets no expectation: more is written than the disk holds."""
    write = {"hwsim": "workload/1", "let": {"size": "1 TB"}, "program": [{"write": {"to": "disk0", "bytes": "$size"}}]}
    question = {"machine": MACHINE, "workload": write, "minimise": "time"}
    assert plan(question).best is not None
    answer = plan({**question, "set": {"workload.let.size": "100 TB"}})
    assert answer.best is None
    assert "which holds 3.84 TB" in str(answer)


@given(st.sampled_from(sorted(WORKLOADS)), st.sampled_from(sorted(WORKLOADS)), st.integers(1, 3))
@settings(max_examples=15)
def test_written_runs_compare_as_the_runs_and_tell_nothing_of_unlike_work(first: str, second: str, more: int) -> None:
    """A run that was written says its work; one of an older version does not, and is refused."""
    files = [{"hwsim": "workload/1", **WORKLOADS[name]} for name in (first, second)]
    runs = [hwsim.simulate(MACHINE, file, set={"n": n}) for file, n in zip(files, (1, more), strict=True)]
    documents = [run.to_json() for run in runs]
    sides, written = [of_run(run, run.to_json) for run in runs], [of_document(document, "a file") for document in documents]
    assert [side.work for side in written] == [side.work for side in sides]
    both = of_sides(written[0], written[1])
    assert (both.measure, both.unit) == ((live := of_sides(sides[0], sides[1])).measure, live.unit)
    if differing_unit([run.work for run in sides]) in UNCOUNTED:
        assert not [claim for claim in CLAIMS if claim in str(both)]
    with pytest.raises(SpecError, match="missing key 'work'"):
        of_document({key: value for key, value in documents[0].items() if key != "work"}, "old")


MATMUL: dict[str, Any] = {"matmul": {"device": "gpu0", "m": 8192, "n": 8192, "k": 8192, "dtype": "bf16"}}
JUDGED: dict[str, Any] = {
    "matmul": {"hwsim": "workload/1", "program": [MATMUL, {"wait": "all"}]},
    "loop": {
        "hwsim": "workload/1",
        "program": [{"repeat": {"times": 10, "do": [{"add": {"shape": [1 << 20], "device": "cpu*"}}]}}],
    },
    "training": "bert-large",
}
MACHINES = [name for name in names("machine") if not name.startswith("scale/")]


@settings(max_examples=20)
@given(st.sampled_from(MACHINES), st.sampled_from(MACHINES), st.sampled_from(sorted(JUDGED)))
@example("dgx-b200", "mi300x-8", "training")
@example("dgx-h100", "dgx-a100", "matmul")
def test_a_plan_and_a_comparison_have_one_judgement_of_time(first: str, second: str, work: str) -> None:
    question = {"machine": [first, second], "workload": JUDGED[work], "minimise": "time", "failures": "none", "simulate": 9}
    try:
        both = compare((first, second), (JUDGED[work],) * 2, attribute=False)
        answer = plan(question)
    except SpecError:
        return
    if len(answer.options) < 2 or both.values is None:  # one of them cannot run it
        return
    (judged,) = answer.ratios.values()
    assert judged.value == pytest.approx(max(both.values) / min(both.values), rel=1e-4)
    if both.over is None:
        assert not judged.is_conclusive
        return
    assert judged.is_conclusive == both.over.is_conclusive
    assert judged.half == pytest.approx(both.over.half, rel=1e-6)
