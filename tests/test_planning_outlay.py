"""What an option of a plan takes: checkpoints, time, money, memory, each with its range."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hwsim.costs.amount import Amount
from hwsim.planning import plan, read_question
from hwsim.planning.options import PlanOption
from hwsim.planning.ordering import frontier
from hwsim.planning.reasons import Reason, Rejected, group_rejections, nearest_rejection
from hwsim.planning.variants import PlanPoint
from hwsim.prepare import load_machine
from hwsim.spec import SpecError
from tests.planning_cases import CLUSTER, LOOP, TRAINING, asked, looped

# ---- checkpoints


def stored_in(**more: Any) -> Any:
    """What a checkpoint of the small training costs."""
    best = asked(vary={"let.nodes": [2]}, minimise="training", simulate=0, **more).best
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
    assert goods[0].share > goods[1].share
    free = asked(workload={**TRAINING, "train": train}, minimise="training", simulate=0).best
    assert free.wholes[""].mean_s == pytest.approx(free.wholes[""].ideal_s * (1 + 60 / 1200))


def test_equal_nodes_write_as_long_as_all_together() -> None:
    from hwsim.workload.checkpoint import CheckpointStorage, checkpoint_times, parallel_checkpoint

    machine = load_machine(CLUSTER.replace("  fabric:", "  disks: {kind: filesystem, bandwidth: 20 GB/s}\n  fabric:"))
    gpus = machine.devices_of("gpu")
    for storage in (CheckpointStorage(target="disks"), CheckpointStorage(bandwidth=3e9), CheckpointStorage(seconds=7.0)):
        whole = parallel_checkpoint(machine, gpus, 1e12, storage).seconds(machine.rates())
        assert checkpoint_times(machine, gpus[:4], 1e12, storage, 2) == pytest.approx(whole, rel=1e-3)


# ---- parts


def test_a_training_that_is_simulated_costs_its_time() -> None:
    train = {"model": "resnet-50", "global_batch": 256, "epochs": 90, "samples": 1281167, "steps": 1, "dtype": "fp16"}
    workload = {"hwsim": "workload/1", "train": {**train, "framework": "mxnet-ngc"}}
    answer = plan({"machine": ["p3.16xlarge", "dgx-h100"], "workload": workload, "minimise": "cost", "rent": "on_demand"})
    assert len(answer.options) == 2
    rents = {"p3.16xlarge": 24.48, "dgx-h100": 31.92}
    for option in answer.options:
        hours = option.numbers["training"].value / 3600
        assert option.numbers["cost"].value == pytest.approx(hours * rents[option.point.machine], rel=1e-3)
    assert answer.best.point.machine == "dgx-h100"  # dearer by the hour, and faster by more


def test_a_number_that_no_run_tells_does_not_hold() -> None:
    answer = looped({"n": [1, 2]}, require=["mfu at least 50 %"], minimise="time")
    assert answer.best is None
    assert ["not available from the workload" in str(refusal.reasons[0]) for refusal in answer.rejected] == [True, True]


def test_no_point_goes_without_a_value_or_a_reason() -> None:
    answer = looped({"n": [1, 2]}, minimise="energy")
    assert answer.best is None
    assert all("the period of use is not stated" in refusal.reasons[0].text for refusal in answer.rejected)
    assert len(answer.rejected) == 2
    assert looped({"n": [1, 2]}, minimise="energy", period="1 day").best is not None


def test_equal_reasons_are_one_with_a_count() -> None:
    rejected = [Rejected(n, (("n", n),), (Reason("time", "", 2.0 + n, 1.0, 1.0 + n),)) for n in range(5)]
    (group,) = group_rejections(rejected, lambda _: "", lambda each: str(each.number))
    assert (len(group.numbers), group.nearest) == (5, 0)
    found = nearest_rejection(rejected)
    assert found.number == 0


def test_a_frontier_keeps_what_nothing_beats() -> None:
    question = read_question({"machine": "dgx-h100", "workload": LOOP, "minimise": "cost", "also": ["time", "tokens_per_s"]})
    rows = [(1, 5, 9), (2, 4, 9), (2, 5, 9), (1, 5, 10), (3, 3, 1)]
    options = [
        PlanOption(
            PlanPoint(n, "", ()),
            "simulation",
            {key: Amount.exact(float(value)) for key, value in zip(("cost", "time", "tokens_per_s"), row, strict=True)},
        )
        for n, row in enumerate(rows)
    ]
    assert [option.point.number for option in frontier(question, options)] == [3, 1, 4]


# ---- ranges


def test_a_simulated_option_keeps_the_ranges_of_its_memory_and_of_its_rates() -> None:
    estimated, run = (asked(vary={"let.nodes": [2]}, minimise="step", simulate=count).best for count in (0, 5))
    assert (estimated.how, run.how) == ("estimate", "simulation")
    for key in ("memory", "mfu", "tokens_per_s", "step"):
        ours, theirs = run.numbers[key], estimated.numbers[key]
        assert ours.low < ours.value < ours.high
        if key == "memory":  # one model of bytes, one error
            assert ours.low / ours.value == pytest.approx(theirs.low / theirs.value)


def test_memory_near_its_bound_does_not_hold_for_sure() -> None:
    best = asked(vary={"let.nodes": [2]}, minimise="step", simulate=5).best
    share = best.numbers["memory"].value
    near, far = (f"memory at most {share * 100 * factor:.4g} %" for factor in (1.05, 1.2))
    for bound, sure in ((near, "  likely met"), (far, "  met")):
        said = str(asked(vary={"let.nodes": [2]}, minimise="step", simulate=5, require=[bound]))
        assert next(line for line in said.splitlines() if line.strip().startswith("memory")).endswith(sure)


# ---- mistakes


@pytest.mark.parametrize(
    "price", ["-1 s", "-2 USD/h", "{value: 2 USD/h, term: -1 s}", "{value: 2 USD/h, low: -1 USD/h, term: 1 day}"]
)
def test_a_damaged_list_of_prices_is_a_mistake_with_its_place(tmp_path: Path, price: str) -> None:
    """It was the reason of every option, as if the workload were wrong; and exit code 4, where it held a negative time."""
    file = tmp_path / "prices.yaml"
    file.write_text(f"hwsim: prices/1\nparts:\n  h100-sxm: {{reserved: {price}}}\n", encoding="utf-8")
    with pytest.raises(SpecError, match=r"prices\.yaml:3:\d+: '-"):
        asked(vary={"let.nodes": [2]}, minimise="cost", simulate=0, prices=str(file))
