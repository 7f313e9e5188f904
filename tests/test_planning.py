"""Plans: the same best option as a search through all, and reasons for the others."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from hwsim.api import simulate
from hwsim.models import ParallelPlan, cluster_of, load_framework, load_transformer
from hwsim.models.search import Search
from hwsim.planning import plan
from hwsim.prepare import load_machine
from hwsim.spec import SpecError
from tests.planning_cases import CLUSTER, CORE, LOOP, TRAINING, asked, looped

# ---- the best, and why not the others


def exhaustive(vary: Mapping[str, list[Any]], limits: Mapping[str, float], objective: str) -> tuple[Any, int]:
    """(values of the best point, number of points that hold), by estimating everything."""
    best, held = None, 0
    model, framework = load_transformer("gpt2-xl"), load_framework("megatron-core")
    for gpu, nodes, batch in product(vary["let.gpu"], vary["let.nodes"], vary["let.batch"]):
        text = CLUSTER.replace("nodes: 2, gpu: h100-sxm", f"nodes: {nodes}, gpu: {gpu}")
        cluster = cluster_of(load_machine(text))
        start = ParallelPlan(global_batch=batch, sequence=1024, dtype="bf16")
        try:
            found = Search(model, start, framework, frozenset({"global_batch", "sequence", "dtype"})).on(cluster, margin=0.1)
        except ValueError:
            continue
        if not found.steps:
            continue
        step = found.steps[0]
        numbers = {"training": 3e11 / step.tokens_per_second, "nodes": float(nodes), "step": step.seconds}
        if any(numbers[name] > bound for name, bound in limits.items()):
            continue
        held += 1
        key = float(f"{numbers[objective]:.6g}"), nodes
        if best is None or key < best[0]:
            best = key, (gpu, nodes, batch)
    return (None if best is None else best[1]), held


@pytest.mark.parametrize("seed", range(4))
def test_the_best_is_that_of_a_search_through_all(seed: int) -> None:
    chance = random.Random(seed)
    vary: dict[str, list[Any]] = {
        "let.gpu": chance.sample(["h100-sxm", "a100-sxm-80gb", "v100-sxm2-16gb", "b200"], 2),
        "let.nodes": sorted(chance.sample(range(1, 12), 3)),
        "let.batch": sorted(chance.sample([32, 48, 64, 96, 128], 2)),
    }
    objective = chance.choice(["training", "nodes", "step"])
    if objective == "step":  # of one batch: the smallest of several has the least
        vary["let.batch"] = vary["let.batch"][:1]
    limits = {"training": chance.choice([5, 20, 60]) * 86400.0, "step": chance.choice([1.0, 5.0])}
    require = [
        f"training at most {limits['training'] / 86400:g} day",
        f"step at most {limits['step']:g} s",
        "memory at most 90 %",
    ]
    best, held = exhaustive(vary, limits, objective)
    answer = asked(vary=vary, require=require, minimise=objective, simulate=0)
    found = None if answer.best is None else tuple(value for _, value in answer.best.point.values)
    assert found == best
    assert len(answer.options) == held
    assert len(answer.rejected) == answer.points - held
    for rejection in answer.rejected:  # every reason is true by its own numbers
        for reason in rejection.reasons:
            if reason.needed is not None and reason.allowed is not None:
                assert reason.needed > reason.allowed
                assert math.isclose(reason.excess, reason.needed / reason.allowed - 1, rel_tol=1e-9)


def test_a_simulated_best_is_that_of_simulating_all() -> None:
    vary = {"let.nodes": [1, 2, 3, 4], "let.batch": [48, 96]}
    answer = asked(vary=vary, require=["memory at most 90 %"], maximise="tokens_per_s", simulate=100)
    times = {}
    for nodes, batch in product(vary["let.nodes"], vary["let.batch"]):
        try:
            run = simulate(CLUSTER, TRAINING, set={"let.nodes": nodes, "let.batch": batch}, expect=False)
        except SpecError:
            continue
        times[nodes, batch] = run.trainings[0].step_s / batch
    found = answer.best.value("tokens_per_s")
    assert found is not None
    assert (
        1024 / found <= min(times.values()) * 1.0001
    )  # several plans of a point are simulated, the fastest by estimate among them


def test_time_limits_name_what_would_do() -> None:
    answer = asked(
        vary={"let.nodes": [1, 2, 4, 8]}, require=["training at most 8 day"], minimise="nodes", simulate=0, maximise=None
    )
    groups = [group for group in answer.groups if group.reason.constraint == "training"]
    assert groups
    assert groups[0].reason.lift == "nodes=4 meets it"
    assert len(groups[0].numbers) == len([miss for miss in answer.rejected if miss.reasons[0].constraint == "training"])


def test_what_does_not_fit_says_by_how_much() -> None:
    answer = asked(
        machine=CLUSTER.replace("gpu: h100-sxm", "gpu: v100-sxm2-16gb").replace("nodes: 2", "nodes: 1"),
        workload={**TRAINING, "train": {**TRAINING["train"], "model": "llama-2-13b", "sequence": 4096}},
        require=["memory at most 90 %"],
        minimise="step",
        simulate=0,
    )
    assert answer.best is None
    reason = answer.nearest.reasons[0]
    assert reason.constraint == "memory"
    assert "10% kept free" in reason.text
    assert "over" in reason.text


# ---- ranges


def test_ranges_are_looked_at_again_around_the_best() -> None:
    answer = asked(vary={"let.nodes": "1..60"}, require=["training at most 9 day"], minimise="nodes", simulate=0)
    [(_, nodes)] = answer.best.point.values
    below = list(range(1, int(str(nodes)) + 1))
    every = asked(vary={"let.nodes": below}, require=["training at most 9 day"], minimise="nodes", simulate=0)
    assert answer.best.point.values == every.best.point.values
    assert len(below) < answer.points < 60


def test_the_price_of_an_option_does_not_depend_on_the_range_that_was_searched() -> None:
    """A network costs more at each further switch, so prices between two node counts do not lie on a line."""
    tree = {"machine": "scale/planning-cluster", "workload": "llama3-70b", "minimise": "cost", "simulate": 0}
    vary = {"let.node": ["dgx-h100"], "workload.train.parallel": "auto"}
    wide = plan({"hwsim": "plan/1", **tree, "vary": {**vary, "let.nodes": "60..320"}})
    best = wide.best
    assert best is not None
    alone = plan({"hwsim": "plan/1", **tree, "vary": {**vary, "let.nodes": [dict(best.point.values)["let.nodes"]]}}).best
    assert alone is not None
    assert best.value("cost") == pytest.approx(alone.value("cost"), rel=1e-9)


def test_a_batch_may_differ_so_that_it_divides() -> None:
    vary = {"let.nodes": [3], "workload.train.parallel": "auto"}
    within = asked(vary={**vary, "workload.train.global_batch": {"sequences": 64, "within": "10 %"}}, minimise="step", simulate=0)
    exact = asked(vary={**vary, "workload.train.global_batch": {"sequences": 64}}, minimise="step", simulate=0)
    assert abs(within.best.settings["workload.train.global_batch"] - 64) <= 6  # type: ignore[operator]
    exact_count, count = (found.searched.total() - found.searched["not legal"] for found in (exact, within))
    assert exact_count < count


def test_a_value_may_be_a_mapping() -> None:
    """Layouts one by one instead of `auto`."""
    answer = asked(vary={"workload.train.parallel": [{"tp": 1}, {"tp": 2}]}, minimise="step", simulate=0)
    assert answer.points == 2
    assert answer.best is not None
    assert "parallel" in str(answer)


# ---- runs of other workloads


def test_any_workload_is_simulated() -> None:
    answer = looped({"wait": ["20 us", "0 us", "40 us"]}, require="time at most 100 us", minimise="time")
    assert answer.best.point.values == (("wait", "0 us"),)
    assert answer.simulations == 3
    assert [rejection.reasons[0].constraint for rejection in answer.rejected] == ["time"]


def test_a_lexicographic_objective_goes_on_with_the_next() -> None:
    answer = looped({"wait": ["20 us", "0 us", "40 us"]}, minimise=["nodes", "time"])
    assert answer.best.point.values == (("wait", "0 us"),)


def test_several_workloads_each_hold_their_own() -> None:
    import yaml

    core = yaml.safe_dump(CORE)
    slow = LOOP.replace("n: 4", "n: 400")
    answer = plan({
        "machine": core, "workload": {"quick": LOOP, "slow": slow}, "failures": "none",
        "vary": {"quick.let.wait": ["0 us", "20 us"]}, "require": ["quick.time at most 50 us", "slow.time at most 1 s"],
        "minimise": {"quick.time": 1, "slow.time": 2},
    })  # fmt: skip
    assert dict(answer.best.point.values) == {"quick.let.wait": "0 us"}
    assert [rejection.reasons[0].constraint for rejection in answer.rejected] == ["quick.time"]


def test_no_point_vanishes_where_one_of_two_workloads_has_no_closed_form() -> None:
    """Each point holds, or has a reason, or was not worth a run; a loop has no closed form beside a training that has one."""
    loop = LOOP.replace("device: cpu", "device: node0.gpu0")
    answer = plan({
        "machine": CLUSTER, "workload": {"loop": loop, "tune": TRAINING}, "failures": "none",
        "vary": {"loop.let.wait": ["0 us", "20 us", "40 us"], "let.nodes": [1, 2]}, "minimise": ["loop.time", "tune.step"],
        "require": ["loop.time at most 50 us"],
    })  # fmt: skip
    assert len(answer.options) + len(answer.rejected) + len(answer.untried) == answer.points == 6
    assert len(answer.rejected) == 4
    assert dict(answer.best.point.values)["loop.let.wait"] == "0 us"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"vary": {"let.batch": [32, 64]}, "minimise": "step", "simulate": 0},
            "different amounts of work .32,768 to 65,536 tokens",
        ),
        ({"minimise": "time"}, "`time` cannot rank trainings: the run is a few steps"),
        ({"minimise": "cost", "require": ["time at most 1 day"]}, "`time` cannot rank trainings: the run is a few steps"),
    ],
)
def test_the_least_time_of_unlike_work_is_no_answer(changed: Mapping[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        asked(**changed)


# ---- what an answer does not claim


def test_an_answer_says_what_was_searched() -> None:
    short = asked(minimise="training", simulate=0)
    assert short.searched.total() > short.searched["estimated"] > 0
    assert "combinations of tp, pp, cp, ep, chunks, microbatch" in " ".join(str(short).split())
    assert "\n  not searched   zero-2, tp beyond a node" in str(short)
    assert short.to_json()["searched"]["estimated"] == short.searched["estimated"]
    stated = {**TRAINING["train"], "parallel": {"tp": 1, "dp": "rest"}}
    assert asked(workload={**TRAINING, "train": stated}, minimise="training", simulate=0).axes == ()


def test_experts_are_split_and_a_prime_number_of_layers_has_stages() -> None:
    model, framework = load_transformer("deepseek-v3"), load_framework("megatron-core")
    cluster = replace(cluster_of(load_machine(CLUSTER)), gpus=512)
    start = ParallelPlan(global_batch=3840, sequence=4096)
    fixed = frozenset({"microbatch", "sequence_parallel"})
    found, whole = (Search(model, start, framework, fixed | more).on(cluster, few=1) for more in (frozenset(), frozenset({"ep"})))
    assert found.steps[0].laid.plan.ep > 1
    assert found.steps[0].laid.plan.pp > 1
    assert not whole.steps or found.steps[0].seconds < whole.steps[0].seconds


def test_a_faster_store_of_checkpoints_is_better_for_sure_if_nothing_else_differs() -> None:
    train = {**TRAINING["train"], "parallel": {"tp": 1, "dp": "rest"}, "checkpoint": {"every": "auto", "bandwidth": "1 GB/s"}}
    rates = {"workload.train.checkpoint.bandwidth": ["100 MB/s", "1 GB/s"]}
    answer = asked(workload={**TRAINING, "train": train}, vary=rates, failures="meta-llama-3", minimise="training", simulate=0)
    (against,) = answer.ratios.values()
    assert against.is_conclusive
    assert against.value > 1


def test_a_price_of_a_whole_machine_against_a_sum_of_parts_tells_nothing() -> None:
    question = {"machine": ["dgx-h100", "mi300x-8"], "workload": TRAINING, "failures": "none", "simulate": 0}
    answer = plan({**question, "minimise": "cost"})
    (against,) = answer.ratios.values()
    assert not against.is_conclusive
    assert "a price of a machine" in against.unlike
    assert "not comparable" in str(answer)
    assert "of a machine" not in next(iter(plan({**question, "minimise": "training"}).ratios.values())).unlike


@pytest.mark.parametrize("given", [{"set": {"workload.train.tokens": "2T"}}, {"vary": {"let.gpu": ["h200"]}}])
def test_a_mistake_in_every_option_is_an_error_and_no_answer(given: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=r"'2T' is not a number|no gpu 'h200'"):
        asked(minimise="step", **given)
