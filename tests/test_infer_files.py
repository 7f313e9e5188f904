"""`infer:` in files: what is wrong is said in a line, jobs share the machine, expectations, reports, models of other kinds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hwsim.api import ExpectationFailed, load_machine, simulate
from hwsim.families.serving.results.statistics import ServiceStatistics
from hwsim.models import load_framework, load_transformer, one_pass
from hwsim.models.cluster import cluster_of
from hwsim.spec import SpecError
from tests.command import hwsim
from tests.model_cases import prefill
from tests.served import dgx
from tests.test_infer import FREE, SMALL, served

# ---- what is wrong ----


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"model": "llama-3-70b"}, r"llama-3-70b does not fit by 70.1 GB on gpu0: 141 GB of weights, 5\.94 GB of buffers"),
        ({"model": "llama-3-8b", "parallel": {"tp": 5}, "device": "gpu0..4"}, "tp 5 does not divide 32 heads"),
        ({"model": "llama-3-8b", "memory": "25 %", "prompt": 4000},
         r"a request of 4,000 \+ 128 tokens does not fit into the KV cache of \d,\d\d\d"),
        ({"prompt": 9000}, "9,000 \\+ 128 tokens exceed the model's `sequence`: expected at most 8,192"),
        ({"device": "cpu0"}, "cpu0 is a cpu: expected GPUs"),
        ({"device": "tpu0"}, "tpu0"),
        ({"model": "llama-3-9b"}, "there is no model 'llama-3-9b'"),
        ({"framework": "vlm"}, "there is no framework 'vlm'"),
        ({"model": "resnet-50", "framework": "vllm"}, "unknown framework 'vllm' for a CNN or MLP"),
        ({"model": "resnet-50", "device": "gpu*", "parallel": {"tp": 2}}, "a convolutional network cannot be split"),
        ({"arrivals": {"poisson": "4 1/s", "every": "1 s"}}, "clients, got poisson and every"),
        ({"arrivals": {"trace": "none.csv"}}, "the trace 'none.csv' cannot be read"),
        ({"prompt": {"uniform": [9, 3]}}, "the lower limit 9 is above the upper limit 3"),
        ({"output": {}}, "values, got none of them"),
        ({"arrivals": {"poisson": "4 s"}}, "a rate"),
        ({"batchin": "static"}, "unknown key 'batchin'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line_with_its_place(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said) as error:
        served(**keys)
    assert len(error.value.mistakes) == 1


def test_a_model_that_does_not_fit_is_a_mistake_of_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "chat.yaml"
    file.write_text("hwsim: workload/1\ninfer:\n  model: llama-3-405b\n  parallel: {tp: 8}\n", encoding="utf-8")
    found = hwsim("simulate", "dgx-h100", file, code=2)
    assert "chat.yaml:3:10: llama-3-405b does not fit by" in found.output
    assert "on gpu0" in found.output


# ---- traces ----


def test_a_trace_is_played_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "asked.csv").write_text("arrival,prompt,output\n0,100,3\n5,200,2\n2.5,300,1\n", encoding="utf-8")
    (tmp_path / "chat.yaml").write_text(
        "hwsim: workload/1\ninfer: {model: llama-3-8b, device: gpu0, arrivals: {trace: asked.csv}}\n", encoding="utf-8"
    )
    [found] = simulate("dgx-h100", tmp_path / "chat.yaml").serving
    assert [row[:1] + row[4:6] for row in found.rows] == [(0.0, 100, 3), (2.5, 300, 1), (5.0, 200, 2)]


@pytest.mark.parametrize("line", ["x,1,1", "0,0,1", "0,1,", "-1,1,1"])
def test_a_line_that_is_no_request_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "asked.csv").write_text(f"arrival,prompt,output\n0,100,3\n{line}\n", encoding="utf-8")
    (tmp_path / "chat.yaml").write_text(
        "hwsim: workload/1\ninfer: {model: llama-3-8b, device: gpu0, arrivals: {trace: asked.csv}}\n", encoding="utf-8"
    )
    with pytest.raises(SpecError, match=r"line 3 of the trace 'asked.csv' is not a request"):
        simulate("dgx-h100", tmp_path / "chat.yaml")


# ---- beside others ----


def of_jobs(**jobs: Any) -> dict[str, ServiceStatistics]:
    run = simulate("dgx-h100", {"hwsim": "workload/1", "jobs": jobs})
    return {service.name: service for service in run.serving}


def test_two_services_on_one_gpu_slow_each_other_down_and_on_two_do_not() -> None:
    asked = {"model": SMALL, "prompt": 2000, "output": 20, "requests": 20, "arrivals": {"every": "2 ms"}, "memory": 0.4,
             "server": FREE}  # fmt: skip
    alone = of_jobs(a={"device": "gpu0", "infer": asked})["a"]
    apart = of_jobs(a={"device": "gpu0", "infer": asked}, b={"device": "gpu1", "infer": asked})
    together = of_jobs(a={"device": "gpu0", "infer": asked}, b={"device": "gpu0", "infer": asked})
    assert apart["a"].rows == apart["b"].rows == alone.rows
    assert together["a"].rows == together["b"].rows
    assert together["a"].latency.mean > 1.1 * alone.latency.mean


def test_a_service_begins_with_its_job_and_shares_links_with_a_copy() -> None:
    asked = {"model": SMALL, "device": "gpu0..1", "parallel": {"tp": 2}, "prompt": 4000, "output": 2, "requests": 5}
    traffic = [{"repeat": {"times": 20, "do": [{"copy": {"from": "gpu0", "to": "gpu1", "bytes": "10 GB"}}]}}]
    alone = of_jobs(chat={"start": "10 ms", "infer": asked})["chat"]
    beside = of_jobs(chat={"start": "10 ms", "infer": asked}, load={"program": traffic})["chat"]
    assert min(row.arrival_s for row in alone.rows) == 0.010
    assert beside.latency.mean > 1.02 * alone.latency.mean


def test_expectations_of_a_service_are_checked_by_name() -> None:
    infer = {"model": SMALL, "device": "gpu0", "requests": 5, "prompt": 100, "output": 5}
    run = simulate("dgx-h100", {"hwsim": "workload/1", "infer": infer, "expect": {"ttft_p95": "at most 1 s"}})
    assert [verdict.status for verdict in run.verdicts] == ["met"]
    workload = {"hwsim": "workload/1", "jobs": {"chat": {"infer": infer}}, "expect": {"chat.tpot_p99": "at most 1 ns"}}
    with pytest.raises(ExpectationFailed, match=r"chat\.tpot_p99"):
        simulate("dgx-h100", workload)


def test_the_service_of_the_library_keeps_its_promise() -> None:
    run = simulate("dgx-h100", "llama3-8b-serving")
    assert [verdict.status for verdict in run.verdicts] == ["met", "met"]


def test_a_gpu_that_loses_half_its_speed_answers_later() -> None:
    infer = {"model": "llama-3-8b", "device": "gpu0", "requests": 8, "output": 20, "prompt": 500}
    plain = simulate("dgx-h100", {"hwsim": "workload/1", "infer": infer})
    events = [{"at": "50 ms", "part": "gpu0", "speed": "50 %"}]
    slow = simulate("dgx-h100", {"hwsim": "workload/1", "infer": infer, "events": events})
    assert 1.2 * plain.makespan_s < slow.makespan_s < 2 * plain.makespan_s


# ---- reports ----


def test_summary_json_and_figure_tell_of_the_service(tmp_path: Path) -> None:
    file = tmp_path / "chat.yaml"
    file.write_text(
        "hwsim: workload/1\ninfer: {model: llama-3-8b, device: gpu0, arrivals: {poisson: 20 1/s}, requests: 30, output: 5}\n",
        encoding="utf-8",
    )
    told = hwsim("simulate", "dgx-h100", file, "--plot", "serving", tmp_path / "chat.svg")
    for title in ("throughput", "TTFT", "TPOT", "end to end", "queueing", "KV cache"):
        assert f"\n  {title} " in told.output
    assert (tmp_path / "chat.svg").read_bytes().startswith(b"<?xml")
    document = json.loads(hwsim("simulate", "dgx-h100", file, "--json", "--ops").output)
    [service] = document["serving"]
    assert service["requests"] == len(service["rows"]) == 30
    assert service["ttft"]["p99_s"] >= service["ttft"]["p50_s"] > 0
    assert service["time_series"][-1]["running"] == 0
    refused = hwsim("simulate", "d2l-4gpu-pcie", "d2l/allreduce-160mb", "--plot", "serving", tmp_path / "a.svg", code=2)
    assert "no service" in refused.output


# ---- other models ----


def test_an_encoder_reads_a_batch_and_is_done() -> None:
    found = served(model="bert-base", prompt=128, requests=32, batch=8, framework="fastertransformer", dtype="fp16")
    part = prefill(8, 128, dtype="fp16", attention="plain")
    one = one_pass(load_transformer("bert-base"), part, cluster_of(dgx()), load_framework("fastertransformer"))
    assert found.first_token is None
    assert found.iterations == 4
    assert found.span_s == pytest.approx(4 * one.seconds, rel=1e-9)


def test_images_pass_in_batches_as_the_estimate_has_them() -> None:
    from hwsim.devices import Gpu
    from hwsim.models.framework import SOFTWARE
    from hwsim.models.inference import batch_pass
    from hwsim.models.kernel_times import KernelTimes
    from hwsim.models.library import load_network

    gpu = load_machine("dgx-h100").device("gpu0").model
    assert isinstance(gpu, Gpu)
    software = SOFTWARE["pytorch-ngc"]
    found = served(model="resnet-50", requests=96, batch=32, dtype="fp16")
    step = batch_pass(load_network("resnet-50"), 32, "fp16", KernelTimes(gpu, software.kernels), software)
    assert found.requests_per_s == pytest.approx(32 / step.seconds, rel=1e-9)
    many = served(model="resnet-50", device="gpu*", requests=96 * 8, batch=32, dtype="fp16")
    assert many.requests_per_s == pytest.approx(8 * 32 / step.seconds, rel=1e-9)
