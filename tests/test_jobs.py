"""Several jobs on one machine: each as it would be alone, but for what they share."""

from __future__ import annotations

from typing import Any

import pytest

import hwsim
from hwsim import api
from hwsim.spec import SpecError
from hwsim.views.explain.explanation import explain

# Its copies begin at once, so that times are whole.
FILE = {"hwsim": "machine/1", "class": "ideal", "use": "d2l-4gpu-pcie", "parts": {"gpu": {"copies": {"setup": "0 s"}}}}
FOUR = api.load_machine(FILE)
COPY = {"copy": {"from": "gpu0", "to": "gpu1", "bytes": "16 GB"}}  # one second over 16 GB/s


def run(jobs: dict[str, Any], **top: Any) -> hwsim.Run:
    return hwsim.simulate(FOUR, {"hwsim": "workload/1", "jobs": jobs, **top})


def spans(found: hwsim.Run) -> dict[str, tuple[float, float]]:
    return {job.name: (job.start_s, round(job.end_s, 9)) for job in found.jobs}


def test_a_job_without_ops_ends_as_it_starts() -> None:
    busy = {"program": [{"busy": {"device": "gpu0", "time": "5 ms"}}]}
    found = run({"first": busy, "second": {"programs": {"a": None}}})
    assert spans(found)["second"] == (0.0, 0.0)
    assert found.job_intervals[1] is None
    assert found.to_json()


def test_jobs_share_links_while_both_run() -> None:
    both = run({"big": {"program": [COPY]}, "small": {"start": "500 ms", "program": [COPY]}})
    assert spans(both) == {"big": (0.0, 1.5), "small": (0.5, 2.0)}


def test_a_pipeline_may_begin_late() -> None:
    stages = [{"busy": {"device": "gpu0", "time": "10 ms"}}]
    found = run({"late": {"start": "1 s", "pipeline": {"batches": 5, "stages": stages}}})
    assert spans(found) == {"late": (1.0, 1.05)}


def test_programs_with_a_runtime_begin_when_their_job_does() -> None:
    busy = {"busy": {"device": "gpu0", "time": "10 ms"}}
    job = {"start": "1 s", "program": [busy, {"wait": "all"}], "runtime": {"dispatch": "1 ms", "return": "1 ms"}}
    assert spans(run({"late": job})) == {"late": (1.0, 1.012)}


def test_barriers_are_met_inside_a_job_only() -> None:
    meet = {"each": "gpu0..1", "do": [{"barrier": "b"}]}
    alone = {"each": "gpu2..3", "do": [{"busy": {"device": "$self", "time": "1 s"}}, {"barrier": "b"}]}
    assert spans(run({"a": {"program": meet}, "b": {"program": alone}})) == {"a": (0.0, 0.0), "b": (0.0, 1.0)}


def test_what_a_job_is_expected_to_take_is_checked() -> None:
    with pytest.raises(hwsim.ExpectationFailed, match=r"a\.makespan"):
        run({"a": {"program": [COPY]}}, expect={"a.makespan": "at most 500 ms"})
    assert run({"a": {"program": [COPY]}}, expect={"a.makespan": "1 s +- 1 %"}).met


def test_a_job_has_one_front_door() -> None:
    doors = "program, programs, pipeline, train, infer, services"
    with pytest.raises(SpecError, match=f"job 'a' needs exactly one of {doors}, got none of them"):
        run({"a": {"start": "1 s"}})
    with pytest.raises(SpecError, match="program and jobs"):
        run({"a": {"program": [COPY]}}, program=[COPY])


def test_the_start_of_a_job_hides_behind_nothing_and_is_no_part_that_could_be_better() -> None:
    late = run({"first": {"program": [{"repeat": {"times": 4, "do": [COPY]}}]}, "then": {"start": "500 ms", "program": [COPY]}})
    assert [row.name for row in explain(late).activities.rows if row.path_fs] == ["copy"]
    alone = explain(run({"only": {"start": "3 s", "program": [COPY]}}))
    assert [(row.name, row.path_s) for row in alone.activities.rows] == [("start", 3.0), ("copy", 1.0)]
    assert not any(one.change.startswith("start") for one in alone.what_if or ())


def test_each_job_has_the_interval_of_the_path_to_its_own_end() -> None:
    program = {
        "unsure": {"program": [{"busy": {"device": "cpu", "name": "a", "time": {"value": "20 ms", "spread": "10 %"}}}]},
        "late": {
            "start": "50 ms",
            "program": [{"busy": {"device": "cpu", "name": "b", "time": {"value": "5 ms", "spread": "20 %"}}}],
        },
        "sure": {"program": [{"busy": {"device": "disk", "name": "c", "time": "5 ms"}}]},
    }
    run = api.simulate("d2l-laptop", {"hwsim": "workload/1", "jobs": program})
    by_name = {job.name: sure for job, sure in zip(run.jobs, run.job_intervals, strict=True)}
    halves = {name: sure.half if sure is not None else None for name, sure in by_name.items()}
    assert halves["unsure"] == pytest.approx(1.6449 * 0.1)
    assert halves["late"] == pytest.approx(1.6449 * 0.2)
    assert halves["sure"] == 0.0
    late = by_name["late"]
    assert late.value == pytest.approx(0.005)
    assert "job late       5.00 ms (-28/+39 %), from 50.0 ms" in str(run)


def test_a_job_that_is_skipped_might_as_well_not_be_written() -> None:
    jobs = {"one": {"program": [COPY]}, "two": {"program": [COPY]}}
    with_one = run({**jobs, "two": {**jobs["two"], "skip": True}})
    assert spans(with_one) == spans(run({"one": jobs["one"]}))
    with pytest.raises(SpecError, match="every job has `skip: true`"):
        run({name: {**job, "skip": True} for name, job in jobs.items()})


def test_two_jobs_share_a_gpu_as_their_kernels_do() -> None:
    def ends(*each: dict[str, Any]) -> list[float]:
        found = run({str(number): {"program": [{"repeat": {"times": 100, "do": [do]}}]} for number, do in enumerate(each)})
        return [job.end_s for job in found.jobs]

    product = {"compute": {"device": "gpu0", "flop": "10 GFLOP"}}
    sweep = {"elementwise": {"device": "gpu0", "count": 10**7}}
    [computing], [moving] = ends(product), ends(sweep)
    assert ends(product, product) == pytest.approx([2 * computing] * 2)
    assert ends(sweep, sweep) == pytest.approx([2 * moving] * 2)
    assert ends(product, sweep) == pytest.approx([computing, moving], rel=0.01)  # one has the units, the other the memory


def test_trainings_that_share_gpus_stay_in_step_layer_by_layer() -> None:
    """Their kernels take twice as long, their exchanges too; an op of a stage would let one compute while the other exchanges."""
    train = {"model": "gpt2", "dtype": "fp32", "global_batch": 4, "sequence": 512, "steps": 2, "parallel": {"tp": 4}}

    def jobs(detail: str, *names: str) -> float:
        return max(job.end_s for job in run({name: {"train": {**train, "detail": detail}} for name in names}).jobs)

    assert jobs("layer", "a", "b") == pytest.approx(2 * jobs("layer", "a"), rel=0.03)
    with pytest.raises(SpecError, match="another job uses gpu0"):
        jobs("stage", "a", "b")
    assert jobs("stage", "a") == pytest.approx(jobs("layer", "a"), rel=0.01)
