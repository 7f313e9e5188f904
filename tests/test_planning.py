"""Plans: the same best option as a search through all, reasons for the others, and questions with mistakes."""

from __future__ import annotations

import json
import math
import random
import signal
import subprocess
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from hwsim.api import simulate
from hwsim.costs import Amount
from hwsim.models import ParallelPlan, cluster_of, load_framework, load_transformer
from hwsim.models.search import Search
from hwsim.planning import Answer, plan, read_question
from hwsim.planning.axes import Axis, between
from hwsim.planning.choosing import frontier
from hwsim.planning.options import Option
from hwsim.planning.reasons import Reason, Rejected, grouped, nearest_of
from hwsim.planning.searching import Searching
from hwsim.planning.variants import Point
from hwsim.prepare import load_machine
from hwsim.spec import SpecError

CLUSTER = """\
hwsim: machine/1
name: nodes of GPUs behind one switch
source: guess
let: {nodes: 2, gpu: h100-sxm}
parts:
  node:
    kind: machine
    count: $nodes
    parts:
      gpu: {kind: gpu, use: $gpu, count: 4}
      nvs: {kind: switch, use: nvswitch-h100}
      nic: {kind: nic, use: connectx-7-ndr400, count: 4}
    links:
      - {between: [gpu*, nvs], kind: nvlink, use: nvlink4, links: 6}
      - {name: cards, between: [gpu*, nic*], per: 1, kind: pcie, use: pcie5-x16}
  fabric: {kind: switch}
links:
  - {between: [node*.nic*, fabric], kind: infiniband, use: ndr400}
"""
TRAINING: dict[str, Any] = {
    "hwsim": "workload/1",
    "let": {"batch": 64},
    "train": {
        "model": "gpt2-xl",
        "sequence": 1024,
        "global_batch": "$batch",
        "dtype": "bf16",
        "parallel": "auto",
        "tokens": 3e11,
    },
}
LOOP = "hwsim: workload/1\nlet: {n: 4, us: 10 us}\nprogram:\n  - repeat: {times: $n, do: [{busy: {device: cpu, time: $us}}]}\n"
CORE = {"hwsim": "machine/1", "class": "ideal", "parts": {"cpu": {"kind": "cpu", "use": "d2l-laptop-cpu"}}}


def asked(**more: Any) -> Answer:
    """The answer for the small cluster."""
    return plan({"machine": CLUSTER, "workload": TRAINING, "failures": "none", **more})


def looped(vary: Mapping[str, Any], **more: Any) -> Answer:
    """The answer for a loop on one core."""
    import yaml

    core = yaml.safe_dump(CORE)
    return plan({"machine": core, "workload": LOOP, "vary": dict(vary), "failures": "none", **more})


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


@pytest.mark.parametrize("seed", range(20))
def test_the_best_is_that_of_a_search_through_all(seed: int) -> None:
    chance = random.Random(seed)
    vary: dict[str, list[Any]] = {
        "let.gpu": chance.sample(["h100-sxm", "a100-sxm-80gb", "v100-sxm2-16gb", "b200"], 2),
        "let.nodes": sorted(chance.sample(range(1, 12), 3)),
        "let.batch": sorted(chance.sample([32, 48, 64, 96, 128], 2)),
    }
    objective = chance.choice(["training", "nodes", "step"])
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
    for each in answer.rejected:  # every reason is true by its own numbers
        for reason in each.reasons:
            if reason.needed is not None and reason.allowed is not None:
                assert reason.needed > reason.allowed
                assert math.isclose(reason.excess, reason.needed / reason.allowed - 1, rel_tol=1e-9)


def test_a_simulated_best_is_that_of_simulating_all() -> None:
    vary = {"let.nodes": [1, 2, 3, 4], "let.batch": [48, 96]}
    answer = asked(vary=vary, require=["memory at most 90 %"], minimise="step", simulate=100)
    times = {}
    for nodes, batch in product(vary["let.nodes"], vary["let.batch"]):
        try:
            run = simulate(CLUSTER, TRAINING, set={"let.nodes": nodes, "let.batch": batch}, expect=False)
        except SpecError:
            continue
        times[nodes, batch] = run.trainings[0].step_s
    assert answer.best is not None
    found = answer.best.value("step")
    assert found is not None
    assert found <= min(times.values()) * 1.0001  # several plans of a point are simulated, the fastest by estimate among them


def test_time_limits_name_what_would_do() -> None:
    answer = asked(
        vary={"let.nodes": [1, 2, 4, 8]}, require=["training at most 8 day"], minimise="nodes", simulate=0, maximise=None
    )
    groups = [group for group in answer.groups if group.reason.constraint == "training"]
    assert groups
    assert "does" in groups[0].reason.lift
    assert len(groups[0].numbers) == len([each for each in answer.rejected if each.reasons[0].constraint == "training"])


def test_what_does_not_fit_says_by_how_much() -> None:
    answer = asked(
        machine=CLUSTER.replace("gpu: h100-sxm", "gpu: v100-sxm2-16gb").replace("nodes: 2", "nodes: 1"),
        workload={**TRAINING, "train": {**TRAINING["train"], "model": "llama-2-13b", "sequence": 4096}},
        require=["memory at most 90 %"],
        minimise="step",
        simulate=0,
    )
    assert answer.best is None
    assert answer.nearest is not None
    reason = answer.nearest.reasons[0]
    assert reason.constraint == "memory"
    assert "10% kept free" in reason.text
    assert "over" in reason.text


def test_more_failures_take_longer() -> None:
    days = []
    for failures in ("none", "meta-llama-3"):
        answer = asked(
            vary={"let.nodes": [2]}, minimise="training", simulate=0, failures=failures, require=["training p90 at most 1 year"]
        )
        assert answer.best is not None
        days.append((answer.best.value("training"), answer.best.value("training p90")))
    ideal, mean, late = days[0][0], days[1][0], days[1][1]
    assert ideal is not None
    assert mean is not None
    assert late is not None
    assert ideal < mean < late


# ---- ranges


def test_ranges_are_looked_at_again_around_the_best() -> None:
    answer = asked(vary={"let.nodes": "1..60"}, require=["training at most 9 day"], minimise="nodes", simulate=0)
    every = asked(vary={"let.nodes": list(range(1, 61))}, require=["training at most 9 day"], minimise="nodes", simulate=0)
    assert answer.best is not None
    assert every.best is not None
    assert answer.best.point.values == every.best.point.values
    assert answer.points < every.points


def test_a_batch_may_differ_so_that_it_divides() -> None:
    vary = {"let.nodes": [3], "workload.train.parallel": "auto"}
    within = asked(vary={**vary, "workload.train.global_batch": {"sequences": 64, "within": "10 %"}}, minimise="step", simulate=0)
    exact = asked(vary={**vary, "workload.train.global_batch": {"sequences": 64}}, minimise="step", simulate=0)
    assert within.best is not None
    assert abs(within.best.settings["workload.train.global_batch"] - 64) <= 6  # type: ignore[operator]
    assert exact.plans < within.plans


def test_numbers_between() -> None:
    axis = Axis("let.nodes", (1, 100), "range")
    assert between([1, 10, 100], axis, [10]) == (5, 55)
    assert between([1, 2, 3], axis, [2]) == ()


# ---- runs of other workloads


def test_any_workload_is_simulated() -> None:
    answer = looped({"n": [2, 4, 8], "us": ["10 us", "20 us"]}, require="time at most 100 us", minimise="time")
    assert answer.best is not None
    assert answer.best.point.values == (("n", 2), ("us", "10 us"))
    assert answer.simulations == 6
    assert [each.reasons[0].constraint for each in answer.rejected] == ["time"]


def test_a_lexicographic_objective_goes_on_with_the_next() -> None:
    answer = looped({"n": [4, 2], "us": ["10 us", "20 us"]}, minimise=["nodes", "time"])
    assert answer.best is not None
    assert answer.best.point.values == (("n", 2), ("us", "10 us"))


def test_several_workloads_each_hold_their_own() -> None:
    import yaml

    core = yaml.safe_dump(CORE)
    slow = LOOP.replace("n: 4", "n: 400")
    answer = plan({
        "machine": core, "workload": {"quick": LOOP, "slow": slow}, "failures": "none", "vary": {"quick.let.n": [2, 4]},
        "require": ["quick.time at most 30 us", "slow.time at most 1 s"], "minimise": {"quick.time": 1, "slow.time": 2},
    })  # fmt: skip
    assert answer.best is not None
    assert dict(answer.best.point.values) == {"quick.let.n": 2}
    assert [each.reasons[0].constraint for each in answer.rejected] == ["quick.time"]


def test_no_point_vanishes_where_one_of_two_workloads_has_no_closed_form() -> None:
    """Each point holds, or has a reason, or was not worth a run; a loop has no closed form beside a training that has one."""
    loop = LOOP.replace("device: cpu", "device: node0.gpu0")
    answer = plan({
        "machine": CLUSTER, "workload": {"loop": loop, "tune": TRAINING}, "failures": "none",
        "vary": {"loop.let.n": [2, 4, 8], "let.nodes": [1, 2]}, "minimise": ["loop.time", "tune.step"],
        "require": ["loop.time at most 50 us"],
    })  # fmt: skip
    assert len(answer.options) + len(answer.rejected) + len(answer.untried) == answer.points == 6
    assert len(answer.rejected) == 2
    assert answer.best is not None
    assert dict(answer.best.point.values)["loop.let.n"] == 2


def test_an_objective_that_nothing_tells_is_a_reason() -> None:
    answer = looped({"n": [2, 4]}, maximise="mfu")
    assert answer.best is None
    assert [each.reasons[0].constraint for each in answer.rejected] == ["MFU"] * 2
    assert "nothing tells it" in str(answer)


# ---- journal


def test_a_journal_keeps_simulations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question = {"n": [2, 4, 8]}
    first = looped_with(question, tmp_path / "j")
    import hwsim.planning.running as running

    monkeypatch.setattr(running, "simulate", None)  # what is kept is not simulated again
    again = looped_with(question, tmp_path / "j")
    assert json.dumps(first.to_json()) == json.dumps(again.to_json())


def looped_with(vary: Mapping[str, Any], journal: Path) -> Answer:
    """The loop with a journal."""
    import yaml

    return plan({"machine": yaml.safe_dump(CORE), "workload": LOOP, "vary": dict(vary), "minimise": "time"}, journal=journal)


def test_a_plan_that_is_ended_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = looped_with({"n": [2, 4, 8]}, tmp_path / "whole")
    played, count = Searching._played, 0

    def ended(self: Searching, *given: Any, **more: Any) -> Option:
        nonlocal count
        count += 1
        if count == 3:
            raise KeyboardInterrupt
        return played(self, *given, **more)

    monkeypatch.setattr(Searching, "_played", ended)
    with pytest.raises(KeyboardInterrupt):
        looped_with({"n": [2, 4, 8]}, tmp_path / "j")
    monkeypatch.undo()
    assert looped_with({"n": [2, 4, 8]}, tmp_path / "j").to_json() == whole.to_json()


KILLED = """
import os, signal, sys, tests.test_planning as test
from hwsim.planning.searching import Searching

played, left = Searching._played, [2]

def killed(self, *given, **more):
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    return played(self, *given, **more)

Searching._played = killed
test.looped_with({"n": [2, 4, 8]}, test.Path(sys.argv[1]))
"""


def test_a_plan_that_is_killed_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, root = tmp_path / "j", Path(__file__).resolve().parent.parent
    done = subprocess.run([sys.executable, "-c", KILLED, str(journal)], cwd=root, check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL
    kept = journal.read_bytes()
    simulated: list[object] = []
    import hwsim.planning.running as running

    def counted(*given: Any, **more: Any) -> Any:
        simulated.append(given)
        return simulate(*given, **more)

    monkeypatch.setattr(running, "simulate", counted)
    answer = looped_with({"n": [2, 4, 8]}, journal)
    assert journal.read_bytes().startswith(kept)
    assert len(simulated) == 1  # two of three were kept
    monkeypatch.undo()
    assert answer.to_json() == looped_with({"n": [2, 4, 8]}, tmp_path / "whole").to_json()


# ---- mistakes


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"require": ["cots at most 3 USD"]}, "did you mean 'cost'?"),
        ({"require": ["time at most 3 kW"]}, "a time is needed"),
        ({"require": ["time below 3 s"]}, "is no requirement"),
        ({"require": ["time at most 1 s", "time at least 2 s"]}, "contradict each other"),
        ({"require": ["time p90 at most 1 s"]}, "has no percentiles"),
        ({"vary": {"n": "9..2"}}, "from the larger to the smaller"),
        ({"vary": {"n": []}}, "no values"),
        ({"vary": {"m": [1]}}, "no parameter 'm'"),
        ({"vary": {"replicas": [0]}}, "from 1 on"),
        ({"minimise": None}, "what is the best?"),
        ({"maximise": "time"}, "not both"),
        ({"minimise": "tokens_per_s"}, "more tokens/s is better"),
        ({"set": {"n": 3}, "vary": {"n": [1]}}, "both set and varied"),
        ({"machine": "no-such-machine"}, "no-such-machine"),
        ({"slack": "-1"}, "cannot be negative"),
    ],
)
def test_mistakes_say_where_and_what(changed: Mapping[str, Any], said: str) -> None:
    import yaml

    question = {"machine": yaml.safe_dump(CORE), "workload": LOOP, "vary": {"n": [1]}, "minimise": "time", **changed}
    with pytest.raises(SpecError, match=".*" + said.replace("?", r"\?")):
        plan({key: value for key, value in question.items() if value is not None})


def test_a_strict_library_refuses_invented_parts(tmp_path: Path) -> None:
    for more, refused in (("", []), ("parts: {gpu: {power: 900 W}}\n", ["library"])):
        (tmp_path / "m.yaml").write_text("hwsim: machine/1\nuse: dgx-a100\n" + more, "utf-8")
        answer = asked(machine=str(tmp_path / "m.yaml"), minimise="step", simulate=0, strict_library=True)
        assert [reason.constraint for each in answer.rejected for reason in each.reasons] == refused


def test_a_part_without_a_price_is_named() -> None:
    answer = looped({"n": [1]}, require="cost at most 100 USD", minimise="time")
    assert answer.best is None
    assert answer.rejected[0].reasons[0].constraint == "price"
    assert "cpu" in answer.rejected[0].reasons[0].text


# ---- checkpoints


def stored_in(**more: Any) -> Any:
    """What a checkpoint of the small training costs."""
    best = asked(vary={"let.nodes": [2]}, minimise="training", simulate=0, **more).best
    assert best is not None
    return best.wholes[""].saved


STORAGE = {"kind": "filesystem", "bandwidth": "20 GB/s", "write_bandwidth": "10 GB/s"}


@pytest.mark.parametrize(
    ("of_plan", "of_workload", "of_machine", "said", "rate"),
    [
        ("5 GB/s", {"every": 100}, STORAGE, "of the plan", 5e9),
        (None, {"every": 100, "bandwidth": "4 GB/s"}, STORAGE, "of the workload", 4e9),
        (None, {"every": 100}, STORAGE, "the machine's file system", 10e9),
        (None, None, STORAGE, "the machine's file system", 10e9),
        (None, None, None, "assumed", 8 * 2e12 / 16384),
    ],
)
def test_a_checkpoint_goes_to_the_storage_that_is_said(
    of_plan: str | None, of_workload: Any, of_machine: Any, said: str, rate: float
) -> None:
    import yaml

    machine = yaml.safe_load(CLUSTER)
    if of_machine is not None:
        machine["parts"]["storage"] = of_machine
    train = {**TRAINING["train"], **({} if of_workload is None else {"checkpoint": of_workload})}
    more = {} if of_plan is None else {"storage": of_plan}
    saved = stored_in(machine=yaml.safe_dump(machine), workload={**TRAINING, "train": train}, **more)
    assert said in str(saved)
    assert saved.bytes / rate == pytest.approx(saved.write_s, rel=0.01)


def test_failures_and_checkpoints_of_the_workload_count() -> None:
    train = {**TRAINING["train"], "checkpoint": {"every": "20 min", "write": "60 s"}, "failures": "meta-llama-3"}
    answers = [
        plan(
            {"machine": CLUSTER, "workload": {**TRAINING, "train": {**train, **more}}, "minimise": "training", "simulate": 0}
        ).best
        for more in ({}, {"failures": {"parts": {"gpu": {"mtbf": "1000 h"}}}})
    ]
    goods = [best.wholes[""].good for best in answers if best is not None]
    assert [good.every_s for good in goods if good is not None] == [1200.0, 1200.0]
    assert goods[0].share > goods[1].share  # type: ignore[union-attr]
    free = asked(workload={**TRAINING, "train": train}, minimise="training", simulate=0).best
    assert free is not None
    assert free.wholes[""].mean_s == pytest.approx(free.wholes[""].ideal_s * (1 + 60 / 1200))


def test_equal_nodes_write_as_long_as_all_together() -> None:
    from hwsim.workload.checkpoint import Storage, of_equals, together

    machine = load_machine(CLUSTER.replace("  fabric:", "  disks: {kind: filesystem, bandwidth: 20 GB/s}\n  fabric:"))
    gpus = machine.devices_of("gpu")
    for storage in (Storage(target="disks"), Storage(bandwidth=3e9), Storage(seconds=7.0)):
        whole = together(machine, gpus, 1e12, storage).seconds(machine.rates())
        assert of_equals(machine, gpus[:4], 1e12, storage, 2) == pytest.approx(whole, rel=1e-3)


# ---- parts


def test_a_training_that_is_simulated_costs_its_time() -> None:
    train = {"model": "resnet-50", "global_batch": 256, "epochs": 90, "samples": 1281167, "steps": 1, "dtype": "fp16"}
    workload = {"hwsim": "workload/1", "train": {**train, "framework": "mxnet-ngc"}}
    answer = plan({"machine": ["p3.16xlarge", "dgx-h100"], "workload": workload, "minimise": "cost", "rent": "on_demand"})
    assert answer.best is not None
    assert len(answer.options) == 2
    rents = {"p3.16xlarge": 24.48, "dgx-h100": 31.92}
    for option in answer.options:
        hours = option.numbers["training"].value / 3600
        assert option.numbers["cost"].value == pytest.approx(hours * rents[option.point.machine], rel=1e-3)
    assert answer.best.point.machine == "dgx-h100"  # dearer by the hour, and faster by more


def test_a_number_that_no_run_tells_does_not_hold() -> None:
    answer = looped({"n": [1, 2]}, require=["mfu at least 50 %"], minimise="time")
    assert answer.best is None
    assert ["nothing tells it" in str(each.reasons[0]) for each in answer.rejected] == [True, True]


def test_no_point_goes_without_a_value_or_a_reason() -> None:
    answer = looped({"n": [1, 2]}, minimise="energy")
    assert answer.best is None
    assert all("nothing says how long" in each.reasons[0].text for each in answer.rejected)
    assert len(answer.rejected) == 2
    assert looped({"n": [1, 2]}, minimise="energy", period="1 day").best is not None


def test_equal_reasons_are_one_with_a_count() -> None:
    rejected = [Rejected(n, (("n", n),), (Reason("time", "", 2.0 + n, 1.0, 1.0 + n),)) for n in range(5)]
    (group,) = grouped(rejected, lambda _: "", lambda each: str(each.number))
    assert (len(group.numbers), group.nearest) == (5, 0)
    found = nearest_of(rejected)
    assert found is not None
    assert found.number == 0


def test_a_frontier_keeps_what_nothing_beats() -> None:
    question = read_question({"machine": "dgx-h100", "workload": LOOP, "minimise": "cost", "also": ["time", "tokens_per_s"]})
    rows = [(1, 5, 9), (2, 4, 9), (2, 5, 9), (1, 5, 10), (3, 3, 1)]
    options = [
        Option(
            Point(n, "", ()),
            "simulation",
            {key: Amount.exact(float(value)) for key, value in zip(("cost", "time", "tokens_per_s"), row, strict=True)},
        )
        for n, row in enumerate(rows)
    ]
    assert [each.point.number for each in frontier(question, options)] == [3, 1, 4]
