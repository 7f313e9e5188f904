"""By what the rows of a sweep are compared: time where the work is the same, else work a second, else what is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.results.interval import Interval
from hwsim.results.work import WorkAmount
from hwsim.studies.curves import curves
from hwsim.studies.measures import measure
from hwsim.studies.point import Outcome, read_source, run_point
from hwsim.studies.ranking import differing_unit
from hwsim.studies.sweeps import sweep
from hwsim.studies.table import Sweep
from tests.command import hwsim

MACHINE = """\
hwsim: machine/1
class: ideal
name: some GPUs
parts:
  cpu: {kind: cpu, cores: 8, flop: {fp32: 1 TFLOP/s}, memory: {size: 64 GB, bandwidth: 100 GB/s}}
  gpu: {kind: gpu, count: 2, flop: {fp32: 10 TFLOP/s, fp16: 20 TFLOP/s}, memory: {size: 16 GB, bandwidth: 1 TB/s}}
links: [{name: slot, between: [cpu, gpu*], kind: pcie, use: pcie3-x16}]
"""
EACH = """\
hwsim: workload/1
let: {flop: 10 GFLOP, dtype: fp32}
program: {each: gpu*, do: [{compute: {flop: $flop, bytes: 1 MB, dtype: $dtype}}]}
"""
TRAINING = (
    "hwsim: workload/1\nlet: {batch: 64}\ntrain: {model: d2l-resnet-18, gpus: 2, global_batch: $batch, steps: 2, dtype: fp32}\n"
)


def test_equal_work_is_compared_by_time() -> None:
    found = sweep(MACHINE, EACH, {"dtype": ["fp32", "fp16"]}, workers=1)
    assert found.ranking.measure == measure("time")
    assert found.speedups == pytest.approx((1.0, 2.0))
    assert "500 us at dtype fp16" in str(found)
    assert "ranked by" not in str(found)


def test_more_gpus_that_do_more_are_compared_by_work_a_second() -> None:
    found = sweep(MACHINE, EACH, {"machine.gpu.count": [1, 2, 4]}, workers=1)
    assert found.speedups == pytest.approx((1, 2, 4))
    assert "40 TFLOP/s at gpu count 4" in str(found)
    assert found.ranking.why == "the rows do different amounts of work (10 GFLOP to 40 GFLOP)"
    assert found.to_json()["ranking"]["measure"] == "flop_per_s"
    assert [row["work"]["FLOP"] for row in found.to_json()["rows"]] == [1e10, 2e10, 4e10]


def test_rows_of_equal_pace_are_alike_whatever_the_rounding() -> None:
    loop = (
        EACH.replace("[{compute", "[{repeat: {times: $n, do: [{compute")
        .replace("}}]}", "}}]}}]}")
        .replace("let: {", "let: {n: 1, ")
    )
    assert "20 TFLOP/s at n 1, identical in 7 rows" in str(sweep(MACHINE, loop, {"n": "1..7"}, workers=1))


BUSY = """\
hwsim: workload/1
let: {n: 4, t: 30 us, workers: 1}
program: [{repeat: {times: $n, do: [{busy: {device: cpu, time: $t, times: 8, workers: $workers}}]}}]
"""


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(1, 4)), min_size=2, max_size=4))
def test_no_row_is_the_fastest_where_busy_states_different_times(points: list[tuple[int, int, int]]) -> None:
    """More ops, or longer ones, are more work; the same work on more cores is faster."""
    rows = [
        run_point(read_source("machine", MACHINE), read_source("workload", BUSY), {"n": n, "t": f"{t} ms", "workers": workers})
        for n, t, workers in points
    ]
    vary = (("point", tuple(range(len(rows)))),)
    found = Sweep("m", "w", (), vary, len(rows), tuple(row.at((number,)) for number, row in enumerate(rows)))
    if len({n * t for n, t, _ in points}) == 1:
        assert found.ranking.measure == measure("time")
    else:
        assert found.ranking.measure is None
        assert not {*found.speedups} - {None}
        assert "not ranked" in str(found)
        assert "faster" not in curves(found).title


def test_a_rate_that_arrivals_set_compares_nothing() -> None:
    """Both machines answer all that comes: one of them ends a little earlier, and is no faster for that."""
    asked = ("--by", "tokens/s", "--set", "workload.infer.requests=60")
    for words in (("sweep", "dgx-a100", "llama3-8b-serving", "--vary", "rate=5 1/s,10 1/s", *asked),
                  ("compare", "dgx-a100", "dgx-h100", "llama3-8b-serving", *asked)):  # fmt: skip
        said = " ".join(hwsim(*words).output.split())
        assert "tokens/s follows from the arrival rate" in said
        assert "faster" not in said
        assert "highest" not in said
    refused = hwsim("sensitivity", "dgx-a100", "llama3-8b-serving", *asked, code=2)
    assert "follows from the arrival rate" in refused.output


def test_a_larger_batch_of_a_training_is_compared_by_samples_a_second() -> None:
    found = sweep(MACHINE, TRAINING, {"batch": [32, 256]}, workers=1)
    rates = [dict(row.measures)["samples_per_s"] for row in found.rows]
    assert found.ranking.values == tuple(rates)
    assert found.speedups[1] == pytest.approx(rates[1] / rates[0])
    assert found.rows[1].makespan_s > found.rows[0].makespan_s  # type: ignore[operator]


def test_the_collective_that_sends_more_bytes_does_not_do_more_work() -> None:
    reduce = "hwsim: workload/1\nlet: {how: ring}\nprogram: {each: gpu*, do: [{allreduce: {bytes: 1 GB, algorithm: $how}}]}\n"
    found = sweep(MACHINE, reduce, {"how": ["ring", "ps-cpu"]}, workers=1)
    assert [row.work for row in found.rows] == [(), ()]
    assert found.ranking.measure == measure("time")


amounts = st.floats(1e-3, 1e15)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(amounts, amounts), min_size=1, max_size=5), st.floats(1e-3, 1e3))
def test_the_speed_up_does_not_depend_on_how_work_is_cut(pairs: list[tuple[float, float]], factor: float) -> None:
    """A row that does `factor` times the work in `factor` times the time is as fast."""
    rows = [Outcome(time, "x", 1.0, work=(WorkAmount("FLOP", work, work / time),)) for work, time in pairs]
    more = [Outcome(time * factor, "x", 1.0, work=(WorkAmount("FLOP", work * factor, work / time),)) for work, time in pairs]

    def study(outcomes: list[Outcome]) -> Sweep:
        values = tuple(range(len(outcomes)))
        return Sweep(
            "m", "w", (), (("n", values),), len(values), tuple(one.at((n,)) for n, one in zip(values, outcomes, strict=True))
        )

    assert study(rows).ranking.unit == study(more).ranking.unit
    ours, theirs = study(rows).speedups, study(more).speedups
    assert ours == pytest.approx(theirs)


@given(st.lists(amounts, min_size=1, max_size=5))
def test_work_differs_if_and_only_if_an_amount_does(found: list[float]) -> None:
    works = [(WorkAmount("samples", amount, 1.0),) for amount in found]
    assert bool(differing_unit(works)) == (max(found) > 1.01 * min(found))
    assert not differing_unit([*works, ()]), "a row that counts nothing cannot be compared by it"


@pytest.mark.parametrize(
    ("by", "unit", "best"),
    [
        ("time", "s", ""),  # of unlike work
        ("samples/s", "1", "samples/s at batch 256"),
        ("MFU", "%", "highest        MFU 103 % at batch 256"),
        ("step", "s", ""),
        ("peak memory", "B", "lowest         peak memory 193 MB at batch 32"),
        ("busy:gpu0.compute", "%", "busy:gpu0.compute 45.5 % at batch 256"),
        ("trainings.0.steps", "1", "trainings.0.steps 2 at batch 32, identical in 2 rows"),
        ("capacities.gpu0.compute.utilization", "%", "highest        capacities.gpu0.compute.utilization "),
    ],
)
def test_any_number_of_the_result_can_be_named(by: str, unit: str, best: str) -> None:
    found = sweep(MACHINE, TRAINING, {"batch": [32, 256]}, by=by)
    if not best:
        assert found.ranking.measure is None
        return
    assert found.ranking.measure.unit == unit
    assert None not in found.ranking.values
    assert best in str(found)


def test_a_number_that_a_result_does_not_have_is_refused_with_those_it_has() -> None:
    said = hwsim("sweep", "d2l-laptop", "d2l/async-loop", "--vary", "n=10,20", "--by", "tokens/s", code=2)
    assert "no measure 'tokens/s' (known: time" in said.output


def test_json_and_figure_say_the_measure(tmp_path: Path) -> None:
    command = "sweep d2l-laptop d2l/async-loop --vary n=10,20 --set blocking=true --by op_count --json --plot"
    said = hwsim(*command.split(), tmp_path / "figure.svg")
    document, _ = json.JSONDecoder().raw_decode(said.output[said.output.index("{") :])  # what was written is said after it
    assert document["ranking"] == {"measure": "op_count", "title": "op_count", "best": "lowest", "reason": "requested"}
    drawn = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert "op_count" in drawn
    assert "set blocking=true" in drawn


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.floats(0.8, 1.25), st.sampled_from([0.0, 0.03, 0.1])), min_size=2, max_size=4))
def test_no_row_is_called_the_fastest_where_the_range_of_the_difference_holds_none(rows: list[tuple[float, float]]) -> None:
    """Text, figure and page claim as much as the ranges of the ratios do."""
    outcomes = [
        Outcome(time, "x", 1.0, interval=Interval(time, half, half, 90, "composed", "known", 9, 9, 0.0, half / 1.645, ()))
        for time, half in rows
    ]
    vary = (("n", tuple(range(len(rows)))),)
    found = Sweep("m", "w", (), vary, len(rows), tuple(outcome.at((n,)) for n, outcome in enumerate(outcomes)))
    over = [ratio for ratio in found.over_best if ratio is not None]
    told = [ratio.is_conclusive or ratio.value <= 1 + 1e-9 for ratio in over]
    assert len(over) == len(rows)
    said = str(found)
    assert ("  fastest  " in said) == all(told)
    assert ("faster than the slowest" in curves(found).title) <= told[over.index(max(over, key=lambda each: each.value))]
    assert "fastest at 95 % confidence" not in said or all(told)
    marked = [line for line in said.splitlines() if "~" in line and line.split()[0].isdigit()]
    assert len(marked) == sum(
        ratio is not None and not ratio.is_conclusive and ratio.half > 5e-4 and up != 1
        for ratio, up in zip(found.over_first, found.speedups, strict=True)
    )


def test_a_lead_below_half_a_per_cent_is_not_printed_as_a_factor() -> None:
    said = str(sweep("d2l-laptop", "d2l/queue-memory", {"barrier": [1, 0]}, set={"batches": 30}, workers=1))
    assert "vs runner-up   less than 0.5 % faster; " in said
