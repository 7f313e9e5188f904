"""Failures: published trainings, laws of goodput, and the closed forms against simulation."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim.failures import (
    FailingJob,
    MemoryCopies,
    NoProgress,
    Restart,
    best,
    daly,
    goodput,
    load_failures,
    renewal,
    simulate_failures,
    young,
)
from hwsim.failures.goodput import survival
from hwsim.failures.job import job_sized
from hwsim.spec import SpecError, names
from hwsim.units import DAY

MINUTE = 60.0
HOUR = 3600.0
LLAMA = {"gpu": 16384, "node": 2048}


def llama(**changes: object) -> FailingJob:
    """The job of table 5, which never waits for a repair."""
    job = job_sized(load_failures(), LLAMA)
    return replace(job, spares=replace(job.spares, repair=0.0), **changes)  # type: ignore[arg-type]


def down(seconds: float) -> Restart:
    return Restart(detect=0.0, replace=0.0, start=seconds, load=0.0)


# ---- published ----


def test_the_counts_of_the_published_table_are_its_419_interruptions() -> None:
    failures = load_failures()
    assert sum(part.failures or 0 for part in failures.parts.values()) == 419
    assert llama().mtbf_s / HOUR == pytest.approx(54 * 24 / 419)


@pytest.mark.parametrize(
    ("every", "write", "restart", "lag", "above"),
    [
        (10 * MINUTE, 2.0, 5 * MINUTE, 0.0, True),  # all automatic
        (15 * MINUTE, 5.0, 8 * MINUTE, 2 * MINUTE, True),  # asynchronous
        (30 * MINUTE, 30.0, 10 * MINUTE, 0.0, False),  # ordinary
    ],
)
def test_54_days_on_16384_gpus(every: float, write: float, restart: float, lag: float, above: bool) -> None:
    """Published: 419 interruptions, effective training time above 90 %, with restart inputs that the paper does not print."""
    job = llama()
    found = goodput(job, write, restart, every, lag_s=lag)
    run = simulate_failures(
        job, 54 * DAY * found.share, write_s=write, every_s=every, restart=down(restart), lag_s=lag, runs=200, seed=3
    )
    assert sum(run.failures) / 200 == pytest.approx(419, abs=41)
    assert sum(378 <= failure <= 460 for failure in run.failures) > 0.9 * 200  # two standard deviations of each run
    assert (run.goodput > 0.9) == above == (found.share > 0.9)
    assert run.goodput == pytest.approx(found.share, rel=2e-3)


def test_100000_gpus_that_fail_every_18_minutes() -> None:
    """Published: 44 % effective training time, recovery warm 10 min, cold 15 min."""
    job = job_sized(load_failures("meta-100k"), {"gpu": 100_000, "node": 12_500})
    assert job.mtbf_s / MINUTE == pytest.approx(18.0)
    job = replace(job, spares=replace(job.spares, repair=0.0))
    warm, middle, cold = (goodput(job, 5.0, minutes * MINUTE).share for minutes in (10, 13, 15))
    assert middle == pytest.approx(0.44, abs=0.005)
    assert cold < 0.44 < warm
    assert (cold, warm) == pytest.approx((0.39, 0.52), abs=0.01)


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        ("meta-rsc-1", 29_500),
        ("meta-rsc-2", 82_100),
        ("meta-32k", 83_500),
        ("meta-100k", 30_000),
        ("meta-opt", 9_000),
        ("bloom-2022", 43_000),
    ],
)
def test_rates_of_the_library_compare_as_published_by_gpu(name: str, hours: float) -> None:
    assert job_sized(load_failures(name), {"gpu": 1024, "node": 128}).mtbf_of_gpu_s / HOUR == pytest.approx(hours, rel=3e-3)


@pytest.mark.parametrize("name", names("failures"))
def test_files_of_the_library_have_a_source_and_span_what_was_published(name: str) -> None:
    failures = load_failures(name)
    assert all((failures.source, failures.ref, failures.date))
    job = job_sized(failures, {"gpu": 8192, "node": 1024})
    low, high = (factor * job.mtbf_of_gpu_s / HOUR for factor in failures.spread.mtbf)
    assert low == pytest.approx(9_000, rel=0.03)
    assert high == pytest.approx(83_500, rel=0.03)


# ---- intervals ----


@given(st.floats(60.0, 1e7), st.floats(1e-4, 0.25))
def test_the_best_interval_is_dalys_where_his_assumptions_hold(mtbf: float, part: float) -> None:
    write = part * mtbf
    exact, theirs = best(mtbf, write), daly(mtbf, write)
    assert theirs == pytest.approx(exact, rel=2e-3)
    assert exact < young(mtbf, write)
    assert renewal(mtbf, theirs, write, 0.0) == pytest.approx(renewal(mtbf, exact, write, 0.0), rel=1e-5)


@given(st.floats(60.0, 1e7), st.floats(1e-5, 0.9), st.floats(0.0, 1.0), st.floats(0.2, 5.0))
def test_no_other_interval_is_better(mtbf: float, part: float, restart: float, factor: float) -> None:
    write, every = part * mtbf, best(mtbf, part * mtbf)
    here = renewal(mtbf, every, write, restart * mtbf)
    assert renewal(mtbf, factor * every, write, restart * mtbf) <= here * (1 + 1e-12)


# ---- laws ----


jobs = st.builds(
    lambda gpus, detect, replaced, start: replace(
        job_sized(load_failures(), {"gpu": 8 * gpus, "node": gpus}),
        restart=Restart(detect=detect, replace=replaced, start=start, load=0.0),
    ),
    st.integers(1, 4096),
    st.floats(0.0, 600.0),
    st.floats(0.0, 600.0),
    st.floats(0.0, 600.0),
)


@given(jobs, st.floats(0.01, 120.0))
def test_shares_add_up_and_lie_between_nothing_and_all(job: FailingJob, write: float) -> None:
    found = goodput(job, write)
    assert 0.0 <= found.low <= found.share <= found.high <= 1.0
    assert math.fsum([found.share, *found.lost.values()]) == pytest.approx(1.0, abs=1e-9)
    assert min(found.lost.values()) >= 0.0
    assert math.fsum(found.by_cause.values()) == pytest.approx(1.0 - found.share - found.lost["checkpoints"], abs=1e-9)


@given(jobs, st.floats(0.01, 60.0), st.floats(1.05, 3.0))
def test_goodput_falls_with_rate_restart_write_and_lag(job: FailingJob, write: float, factor: float) -> None:
    here = goodput(job, write).share
    assert goodput(job, factor * write).share < here
    assert goodput(job, write, lag_s=60.0).share < here
    slower = Restart(detect=job.restart.detect, replace=job.restart.replace, start=job.restart.start + 60.0, load=0.0)
    assert goodput(job, write, slower).share < here
    causes = tuple(replace(cause, rate=factor * cause.rate) for cause in job.causes)
    never = replace(job, spares=replace(job.spares, repair=0.0))
    assert goodput(replace(never, causes=causes), write).share < goodput(never, write).share


def test_machines_of_other_shapes_have_other_rates() -> None:
    """Half of the GPUs in a node: the nodes' own failures weigh twice."""
    failures = load_failures()
    eight, four = job_sized(failures, LLAMA), job_sized(failures, {"gpu": 16384, "node": 4096})
    assert four.mtbf_s < eight.mtbf_s
    assert four.rate - eight.rate == pytest.approx(sum(cause.rate for cause in eight.causes if cause.of == "node"))


@pytest.mark.parametrize(("spares", "loses"), [(16, 0.065), (32, 0.0)])
def test_a_job_waits_for_repairs_without_spares(spares: int, loses: float) -> None:
    """Repairs of 48 h: 13 nodes are away in the mean."""
    job = job_sized(load_failures(), LLAMA)
    job = replace(job, spares=replace(job.spares, nodes=spares))
    found = goodput(job, 2.0, 300.0, 600.0)
    run = simulate_failures(job, 54 * DAY * found.share, write_s=2.0, every_s=600.0, restart=down(300.0), runs=100)
    assert found.lost["waiting for a repair"] == pytest.approx(loses, abs=0.003)
    assert run.goodput == pytest.approx(found.share, rel=5e-3)


def test_a_million_spares_cost_nothing_to_simulate() -> None:
    job = job_sized(load_failures(), LLAMA)
    many = replace(job, spares=replace(job.spares, nodes=10**9))
    assert goodput(many, 2.0, 300.0).lost["waiting for a repair"] == 0.0
    run, enough = (simulate_failures(case, DAY, write_s=2.0, every_s=600.0, restart=down(300.0), runs=5) for case in (many, job))
    assert run == enough  # its own spares last for a day


def test_spares_are_enough_in_the_percentile() -> None:
    job = job_sized(load_failures(), LLAMA)
    more = replace(job, spares=replace(job.spares, percentile=0.999))
    assert goodput(job, 2.0, 300.0).spares == 22
    assert goodput(more, 2.0, 300.0).spares > 22


# ---- simulated ----


@pytest.mark.parametrize(
    ("write", "restart", "lag", "every"),
    [(30.0, 600.0, 0.0, 1800.0), (5.0, 480.0, 120.0, 900.0), (300.0, 3600.0, 0.0, 3600.0), (5.0, 300.0, 2000.0, 900.0)],
)
def test_simulated_goodput_is_the_closed_form_s(write: float, restart: float, lag: float, every: float) -> None:
    job = llama()
    expected = goodput(job, write, restart, every, lag_s=lag).share
    run = simulate_failures(job, 400 * DAY, write_s=write, every_s=every, restart=down(restart), lag_s=lag, runs=60, seed=7)
    assert run.goodput == pytest.approx(expected, rel=2e-3)


def test_restarts_that_differ_by_cause_are_simulated_as_they_are_computed() -> None:
    job = llama(restart=Restart(detect=60.0, replace=3000.0, start=240.0, load=60.0))
    found = goodput(job, 30.0)
    run = simulate_failures(job, 400 * DAY, write_s=30.0, every_s=found.every_s, runs=60)
    assert run.goodput == pytest.approx(found.share, rel=3e-3)
    assert survival(job, job.restart) > math.exp(-3360.0 / job.mtbf_s)  # software needs no other node


def test_copies_in_memory_between_checkpoints() -> None:
    """85 % of the failures leave them whole; 2 s and 60 s, 5 and 12 min."""
    job, restart = llama(), Restart(detect=0.0, replace=0.0, start=300.0, load=420.0)
    near = MemoryCopies(survives=0.85, write_s=2.0)
    found = goodput(job, 60.0, restart, near=near)
    assert found.share == pytest.approx(0.91, abs=0.005)
    assert found.share > goodput(job, 60.0, restart).share
    run = simulate_failures(
        job,
        400 * DAY,
        write_s=60.0,
        every_s=found.every_s,
        restart=restart,
        near=replace(near, every_s=found.near_every_s),
        runs=60,
    )
    assert run.goodput == pytest.approx(found.share, rel=3e-3)
    assert math.fsum([found.share, *found.lost.values()]) == pytest.approx(1.0, abs=1e-9)


def test_the_same_seed_is_the_same_run() -> None:
    job = llama()
    first, second, other = (
        simulate_failures(job, 10 * DAY, write_s=30.0, every_s=1800.0, restart=down(600.0), runs=5, seed=seed)
        for seed in (1, 1, 2)
    )
    assert first == second != other
    assert list(first.seconds) == sorted(first.seconds)
    assert first.percentile(0) <= first.percentile(50) <= first.percentile(90) <= first.seconds[-1]


def test_bursts_lose_another_part() -> None:
    """Weibull of shape 0.7, as many failures in the long run: more of them strike a restart, fewer strike work."""
    job = llama()
    bursts = replace(job, shape=0.7)
    run = simulate_failures(bursts, 200 * DAY, write_s=30.0, every_s=1800.0, restart=down(600.0), runs=50)
    assert sum(run.failures) / 50 == pytest.approx(run.mean_s / job.mtbf_s, rel=0.02)
    assert goodput(bursts, 30.0, 600.0, 1800.0).share == pytest.approx(run.goodput, rel=5e-3)


# ---- mistakes ----


@pytest.mark.parametrize(
    ("write", "restart", "words"),
    [(4 * HOUR, 60.0, "pauses the training for 4.00 h"), (30.0, 20 * HOUR, "a restart takes 20.0 h")],
)
def test_a_job_that_cannot_get_on_is_refused_with_the_numbers(write: float, restart: float, words: str) -> None:
    with pytest.raises(NoProgress, match=words) as refused:
        goodput(llama(), write, restart)
    assert "3.09 h" in str(refused.value)
    assert refused.value.hint


def test_an_interval_that_no_run_survives_is_refused() -> None:
    with pytest.raises(NoProgress, match="the goodput is"):
        goodput(llama(), 30.0, 60.0, 30 * HOUR)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("parts: {gpu: {mtbf: 50000}}", "50000 has no unit"),
        ("parts: {gpu: {}}", "either an `mtbf` or counted failures"),
        ("parts: {gpu: {failures: 3, during: 90 day}}", "need all of"),
        ("parts: {gpu: {mtbf: 1 h, failures: 3, among: 64, during: 90 day}}", "either an `mtbf` or counted failures"),
        ("parts: {}", "no parts: expected at least one"),
        ("parts: {gpu: {mtbf: 0 h}}", "0"),
        ("parts: {gpu: {mtbf: 1 h}}\nspread: {mtbf: [150 %, 200 %]}", "expected a range that contains 1, got 1.5 to 2"),
        ("parts: {gpu: {mttf: 1 h}}", "unknown key 'mttf'"),
    ],
)
def test_mistakes_of_a_file(text: str, words: str, tmp_path: object) -> None:
    from pathlib import Path

    file = Path(str(tmp_path)) / "rates.yaml"
    file.write_text(f"hwsim: failures/1\n{text}\n", encoding="utf-8")
    with pytest.raises(SpecError, match=r"rates\.yaml") as refused:
        load_failures(file)
    assert words in str(refused.value)


def test_a_job_without_any_part_that_fails() -> None:
    with pytest.raises(ValueError, match="no part with a failure rate: gpu, node"):
        job_sized(load_failures(), {})
