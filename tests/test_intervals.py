"""How sure an answer is: laws of intervals and ratios, and what the commands say of them."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hwsim
from hwsim.engine.interval_limits import limits_by_runs
from hwsim.origins import CASES, Case, UncertaintySource
from hwsim.results.error_weights import Weight, Weights, weights_of
from hwsim.results.errors import ErrorTable, table
from hwsim.results.interval import Interval, interval
from hwsim.results.ratio import LEAST, ratio
from hwsim.views.interval.say import errors_of, rows
from tests import command

CASE = st.sampled_from(CASES)
REGIME = st.sampled_from(sorted(table().regimes))
SECONDS = st.floats(1e-6, 1e3)
DOUBTS = st.lists(st.builds(UncertaintySource, REGIME, CASE, st.sampled_from("abcd"), SECONDS), min_size=1, max_size=8)


def weights(*doubts: UncertaintySource, stated: float = 0.0) -> Weights:
    """Weights of these doubts."""
    return Weights(tuple(map(Weight, doubts)), stated, stated + math.fsum(doubt.seconds for doubt in doubts))


# ---- laws ----


@given(DOUBTS)
def test_what_is_unsure_has_each_name_once_and_adds_up(doubts: list[UncertaintySource]) -> None:
    sure = interval(weights(*doubts))
    errors = errors_of(sure)
    assert len({source.name for source in errors}) == len(errors)
    assert math.fsum(source.share for source in errors) == pytest.approx(1.0)
    assert math.hypot(*(source.alone for source in errors)) == pytest.approx(sure.half)
    assert all(math.hypot(source.alone, source.left) == pytest.approx(sure.half) for source in errors)
    assert [error.share for error in errors] == sorted((source.share for source in errors), reverse=True)
    assert math.fsum(source.time_share or 0.0 for source in errors) == pytest.approx(
        math.fsum(part.time_share for part in sure.parts)
    )
    shown = rows(sure)
    assert shown[0][0] == errors[0].name  # the largest is in the table, be it of the run as a whole


@given(DOUBTS)
def test_more_of_the_runs_need_a_wider_interval(doubts: list[UncertaintySource]) -> None:
    half = [interval(weights(*doubts), level=level).half for level in (50, 80, 90)]
    assert 0 < half[0] <= half[1] <= half[2]


@given(REGIME, SECONDS)
def test_the_less_is_known_the_wider(regime: str, seconds: float) -> None:
    half = [interval(weights(UncertaintySource(regime, case, "a", seconds))).half for case in CASES]
    assert half[-1] >= max(half[:-1]), "outside of everything measured is the least sure"


@given(REGIME, CASE, SECONDS)
def test_one_error_alone_is_that_of_the_rows_that_were_left_out(regime: str, case: Case, seconds: float) -> None:
    errors = table().errors(regime, case)
    assert errors is not None
    assert interval(weights(UncertaintySource(regime, case, "a", seconds))).half == pytest.approx(errors.half[90])


@given(DOUBTS, st.floats(0, 1e3))
def test_what_is_stated_makes_it_surer(doubts: list[UncertaintySource], stated: float) -> None:
    assert interval(weights(*doubts, stated=stated)).half <= interval(weights(*doubts)).half * (1 + 1e-9)


@given(DOUBTS, st.floats(1e-3, 1e3))
def test_an_interval_knows_no_unit(doubts: list[UncertaintySource], factor: float) -> None:
    scaled = [doubt._replace(seconds=factor * doubt.seconds) for doubt in doubts]
    assert interval(weights(*scaled)).half == pytest.approx(interval(weights(*doubts)).half)


@given(DOUBTS)
def test_shares_are_of_one_whole(doubts: list[UncertaintySource]) -> None:
    found = interval(weights(*doubts))
    assert math.fsum(map(found.share, found.parts)) + found.own**2 / found.variance == pytest.approx(1.0)
    assert all(found.without(part) <= found.half for part in found.parts)


def test_equal_parts_miss_together() -> None:
    """Eight GPUs in turn are as unsure as one; of eight unlike ones the errors cancel in part."""
    one = interval(weights(UncertaintySource("nccl/large", "device", "a", 8.0)))
    alike = interval(weights(*(UncertaintySource("nccl/large", "device", "a", 1.0) for _ in range(8))))
    unlike = interval(weights(*(UncertaintySource("nccl/large", "device", key, 1.0) for key in "abcdefgh")))
    shared = [found.parts[0].shared for found in (one, alike, unlike)]
    assert shared[0] == pytest.approx(shared[1]) == pytest.approx(8 * shared[2])
    assert sum(part.variance for part in unlike.parts) < sum(part.variance for part in alike.parts)


def test_a_time_nobody_measured_is_outside() -> None:
    found = interval(weights(UncertaintySource("no/such", "known", "a", 1.0)))
    assert found.case == "outside"
    assert found.half > 0.3


def test_a_run_that_files_state_has_no_interval() -> None:
    found = interval(weights(stated=2.0))
    assert (found.low, found.high, found.basis) == (2.0, 2.0, "stated")


# ---- ratios ----


def answer(value: float, *doubts: UncertaintySource) -> Interval:
    """An answer of this size with these errors."""
    return interval(weights(*doubts), value=value)


@given(DOUBTS, DOUBTS, st.floats(0.1, 10))
def test_a_ratio_turned_over(ours: list[UncertaintySource], theirs: list[UncertaintySource], value: float) -> None:
    one, other = answer(value, *ours), answer(1.0, *theirs)
    there, back = ratio(one, other), ratio(other, one)
    assert there.value == pytest.approx(1 / back.value)
    assert there.half == pytest.approx(back.half)
    assert there.is_conclusive == back.is_conclusive
    measured = [correlation for regime in table().correlation.values() for correlation in regime.values()]
    opposite = -max(LEAST, min(-1.0, *measured))  # outliers of a regime may need more room than both widths together
    assert there.half**2 <= (one.half**2 + other.half**2 + 2 * opposite * one.half * other.half) * (1 + 1e-9)
    if {our.regime for our in ours}.isdisjoint(their.regime for their in theirs):
        assert there.half <= (one.half + other.half) * (1 + 1e-9)


@given(DOUBTS)
def test_an_answer_beside_itself(doubts: list[UncertaintySource]) -> None:
    assert not ratio(answer(1.0, *doubts), answer(1.0, *doubts)).is_conclusive


def test_errors_that_both_share_cancel() -> None:
    """Twice as fast on the same machine is surer than each of the two; on a machine outside of everything it is never said."""
    known = UncertaintySource("nccl/large", "device", "a", 1.0)
    alike = ratio(answer(2.0, known), answer(1.0, known._replace(seconds=0.5)))
    apart = ratio(answer(2.0, known), answer(1.0, known._replace(key="b")))
    assert alike.half < apart.half
    outside = known._replace(case="outside", key="c")
    assert not ratio(answer(1e3, known), answer(1.0, outside)).is_conclusive
    assert ratio(answer(1e3, outside), answer(1.0, outside)).is_conclusive, "of one device: which plan is faster"


# ---- runs ----


@pytest.mark.parametrize("pair", ["d2l-laptop d2l/async-loop", "dgx-a100 resnet50-dp", "storage-client mlperf-storage-unet3d"])
def test_the_critical_path_is_divided_without_a_rest(pair: str) -> None:
    run = hwsim.simulate(*pair.split(), expect=False)
    found = weights_of(run.timeline)
    assert found.total == pytest.approx(run.makespan_s, rel=1e-9)
    assert run.interval.low <= run.makespan_s <= run.interval.high


def test_two_more_runs_see_what_takes_over() -> None:
    """A file system that is guessed limits training by a hair: were it faster, the accelerators would."""
    run = hwsim.simulate("storage-client", "mlperf-storage-unet3d", expect=False)
    found = limits_by_runs(run.timeline, run.interval)
    assert found.below < run.interval.below / 4
    assert found.above == pytest.approx(run.interval.above, rel=0.2)


BESIDE = {
    "hwsim": "machine/1",
    "parts": {"cpu": {"use": "epyc-7763"}, "disk": {"kind": "ssd", "size": "1 TB", "read": "7 GB/s"}},
    "links": [{"kind": "pcie", "gen": 4, "lanes": 4, "between": ["cpu", "disk"]}],
}


@pytest.mark.parametrize(("rate", "is_sure"), [("5 GB/s", True), ("7 GB/s", False)])
def test_a_link_that_is_nearly_the_limit_makes_a_stated_rate_unsure(rate: str, is_sure: bool) -> None:
    """A disk whose rate is stated reads over a link that carries 2 % more, give or take 4."""
    read = {"hwsim": "workload/1", "program": [{"read": {"from": "disk", "bytes": "1 GB"}}]}
    found = hwsim.simulate(BESIDE, read, set={"machine.parts.disk.read": rate}).interval
    assert found.below < 1e-3
    assert (found.above < 1e-3) == is_sure


def test_a_service_has_no_range_of_its_end() -> None:
    """Arrivals set it; what is unsure are the kernels."""
    document = hwsim.simulate("dgx-h100", "llama3-8b-serving", expect=False, set={"workload.infer.requests": 20}).to_json()[
        "interval"
    ]
    assert document["applies_to"] == "kernels"
    assert document["low"] < 1 < document["high"]
    assert "low_s" not in document


# ---- commands ----


def test_a_sweep_tells_what_can_be_told(tmp_path: Path) -> None:
    table_file = tmp_path / "sweep.csv"
    arguments = ["sweep", "dgx-a100", "resnet50-dp", "--vary", "steps=2,3", "--csv", str(table_file)]
    first = command.hwsim(*arguments).output
    assert "90 % interval" in first
    with table_file.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert all(float(row["low_s"]) < float(row["makespan_s"]) < float(row["high_s"]) for row in rows)


def test_an_interval_can_be_left_out() -> None:
    assert "interval" in command.hwsim("simulate", "dgx-a100", "resnet50-dp").output
    assert "interval" not in command.hwsim("simulate", "dgx-a100", "resnet50-dp", "--no-interval").output


def test_the_table_is_complete() -> None:
    """Every regime has every case, and no case holds more surely than a surer one."""
    known: ErrorTable = table()
    for regime, cases in known.regimes.items():
        assert set(cases) == set(CASES), regime
        errors = known.errors(regime, "outside")
        assert errors is not None
        assert all(0 < cases[case].half[90] <= errors.half[90] for case in CASES), regime


def test_stated_times_beside_a_training_are_no_work_of_its_framework() -> None:
    train = {"train": {"model": "bert-large", "device": "gpu0", "steps": 1, "global_batch": 8}}
    jobs = {"train": train, "wait": {"program": [{"busy": {"device": "cpu0", "time": "3 s"}}]}}
    run = hwsim.simulate("dgx-h100", {"hwsim": "workload/1", "jobs": jobs})
    assert run.makespan_s == pytest.approx(3.0)
    assert run.interval.half == 0.0
    of_train, of_wait = run.job_intervals
    assert of_train is not None
    assert of_train.half > 0.05
    assert of_wait is not None
    assert of_wait.half == 0.0
