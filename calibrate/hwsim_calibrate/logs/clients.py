"""Parsers of the JSON of load generators for inference servers: aiperf, guidellm and inference-perf.

- aiperf, `profile_export_aiperf.json`: a block with a unit per metric. The inter-token latency is the mean of a request.
- guidellm, `benchmarks.json`: a list with one entry per load. Names with `_ms` are milliseconds; request latencies are seconds.
- inference-perf, `stage_N_lifecycle_metrics.json`: seconds, without the model. The summary of several stages has no rate.

Source: ai-dynamo/aiperf, docs/reference/json-export-schema.md; vllm-project/guidellm, src/guidellm/benchmark/schemas;
kubernetes-sigs/inference-perf, docs/reports.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hwsim_calibrate.logs.log import Entry, Log
from hwsim_calibrate.logs.options import LogOptions
from hwsim_calibrate.logs.result import Result
from hwsim_calibrate.logs.serving import PARTS, Figure, ServerRun, fit_workload, sampling_error

UNITS: Final = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
SERVER: Final = "the server is not in the log; vLLM is assumed (key `framework`)"
CLOSED: Final = {"concurrent": "", "synchronous": "one", "throughput": "all"}  # closed-loop strategies of guidellm


def aiperf(logs: Sequence[Log], options: LogOptions) -> Result:
    """Convert aiperf results to a workload with expectations."""
    return fit_workload("aiperf", "vllm", [run for log in logs for run in aiperf_runs(log)], options)


def guidellm(logs: Sequence[Log], options: LogOptions) -> Result:
    """Convert guidellm results to a workload with expectations."""
    return fit_workload("guidellm", "vllm", [run for log in logs for run in guidellm_runs(log)], options)


def inference_perf(logs: Sequence[Log], options: LogOptions) -> Result:
    """Convert inference-perf results to a workload with expectations."""
    return fit_workload("inference-perf", "vllm", [run for log in logs for run in inference_perf_runs(log)], options)


def aiperf_runs(log: Log) -> Iterator[ServerRun]:
    """Yield the run of a log of aiperf."""
    content = log.json("request_latency", "request_throughput", tool="aiperf", hint="expected profile_export_aiperf.json")
    if (cancelled := content.get("was_cancelled")) is not None and cancelled.value is True:
        raise log.wrong(cancelled.line, "the run was cancelled", "use the log of a complete run")
    count = _count(content.need("request_count").need("avg"))
    figures = {}
    for key, name in (("request_throughput", "requests_per_s"), ("output_token_throughput", "tokens_per_s")):
        if (rate := content.get(key, "avg")) is not None:
            figures[name] = Figure(rate.number(), "1/s", 0.0)
    for key, name in (("time_to_first_token", "ttft"), ("inter_token_latency", "tpot"), ("request_latency", "latency")):
        if (block := content.get(key)) is not None:
            unit = block.need("unit")
            if unit.text() not in UNITS:
                raise log.wrong(unit.line, f"`{key}` has the unit {unit.text()}: expected {', '.join(UNITS)}")
            figures |= _figures(block, name, count, UNITS[unit.text()], {"avg": "mean", **PARTS}, "std")
    config = content.get("input_config")
    limit, rate, model = (
        _find_deep(config, *keys) for keys in (("concurrency",), ("request_rate", "rate"), ("model_names", "models"))
    )
    pattern = _find_deep(config, "request_rate_mode", "arrival_pattern", "arrival")
    even = pattern is not None and pattern.text().lower().endswith("constant")
    failed = content.get("error_request_count", "avg")
    left = [f"{failed.number(zero=True):.0f} failed requests"] if failed is not None and failed.value else []
    prompt, output = (content.need(key).need("avg").number() for key in ("input_sequence_length", "output_sequence_length"))
    yield ServerRun(
        log, _name(model), count, _rate(rate), int(_rate(limit)), prompt, output, figures, (*left, SERVER), is_even=even
    )


def guidellm_runs(log: Log) -> Iterator[ServerRun]:
    """Yield the runs of a log of guidellm."""
    report = log.json("benchmarks", tool="guidellm", hint="expected the JSON of `guidellm benchmark`")
    for run in report.need("benchmarks").elements():
        metrics = run.need("metrics")
        totals = metrics.get("request_totals") or run.need("request_totals")
        count = _count(totals.need("successful"))
        figures = {}
        for key, name in (("requests_per_second", "requests_per_s"), ("output_tokens_per_second", "tokens_per_s")):
            figures[name] = Figure(metrics.need(key).need("successful").need("mean").number(), "1/s", 0.0)
        for key, name in (("time_to_first_token_ms", "ttft"), ("inter_token_latency_ms", "tpot"), ("request_latency", "latency")):
            if (block := metrics.get(key, "successful")) is not None:
                unit = 1e-3 if key.endswith("_ms") else 1.0
                figures |= _figures(block, name, count, unit, {"mean": "mean", "median": "p50"}, "std_dev")
                if (more := block.get("percentiles")) is not None:
                    figures |= _figures(more, name, count, unit, {part: part for part in ("p50", "p95", "p99")})
        strategy = run.get("config", "strategy") or run.get("args", "strategy") or run.need("config").need("strategy")
        kind = strategy.need("type_").text()
        concurrency_limit = _find_deep(strategy, "streams", "max_concurrency") if not CLOSED.get(kind) else None
        rate = _rate(strategy.get("rate")) if kind not in CLOSED else 0.0
        limit = 1 if CLOSED.get(kind) == "one" else int(_rate(concurrency_limit)) if kind in CLOSED else 0
        others = {word: totals.get(word) for word in ("errored", "incomplete")}
        left = [f"{count.text()} {word} requests" for word, count in others.items() if count and count.value]
        prompt, output = (
            metrics.need(key).need("successful").need("mean").number() for key in ("prompt_token_count", "output_token_count")
        )
        model = _find_deep(run, "model") or _find_deep(report.get("args"), "model")
        even = kind == "constant"
        yield ServerRun(log, _name(model), count, rate, limit, prompt, output, figures, (*left, SERVER), is_even=even)


def inference_perf_runs(log: Log) -> Iterator[ServerRun]:
    """Yield the run of a log of inference-perf."""
    content = log.json("successes", "load_summary", tool="inference-perf", hint="expected stage_0_lifecycle_metrics.json")
    done, load = content.need("successes"), content.need("load_summary")
    count = _count(done.need("count"))
    figures = {}
    throughput, latency = done.need("throughput"), done.need("latency")
    for key, name in (("requests_per_sec", "requests_per_s"), ("output_tokens_per_sec", "tokens_per_s")):
        figures[name] = Figure(throughput.need(key).number(), "1/s", 0.0)
    for key, name in (("time_to_first_token", "ttft"), ("time_per_output_token", "tpot"), ("request_latency", "latency")):
        if (block := latency.get(key)) is not None:
            figures |= _figures(block, name, count, 1.0, PARTS)
    rate, concurrency_limit = load.get("requested_rate"), load.get("concurrency")
    if rate is None and concurrency_limit is None:
        message = "the summary of several stages has neither a rate nor a concurrency"
        raise log.wrong(load.line, message, "use stage_0_lifecycle_metrics.json")
    failed = content.get("failures", "count")
    left = [f"{failed.text()} failed requests"] if failed is not None and failed.value else []
    prompt, output = (done.need(key).need("mean").number() for key in ("prompt_len", "output_len"))
    yield ServerRun(log, "", count, _rate(rate), int(_rate(concurrency_limit)), prompt, output, figures, (*left, SERVER))


def _figures(
    block: Entry, name: str, count: int, unit: float, parts: Mapping[str, str], deviation: str = ""
) -> dict[str, Figure]:  # fmt: skip
    """Return mean and percentiles of a metric by their names in `expect:`."""
    off, found = block.get(deviation), {}
    for part, short in parts.items():
        if (entry := block.get(part)) is not None and entry.number(zero=True) > 0 and f"{name}_{short}" not in found:
            spread = off.number(zero=True) if off is not None and short == "mean" else None
            found[f"{name}_{short}"] = Figure(entry.number() * unit, "s", sampling_error(short, count, spread, entry.number()))
    return found


def _count(entry: Entry) -> int:
    count = int(entry.number(zero=True))
    if count < 1:
        raise entry.log.wrong(entry.line, "no request was completed", "use the log of a successful run")
    return count


def _find_deep(entry: Entry | None, *keys: str) -> Entry | None:
    """Return the first value of one of some keys at any depth."""
    waiting: list[Entry] = [] if entry is None else [entry]
    while waiting:
        parent = waiting.pop(0)
        if (found := next((child for key in keys if (child := parent.get(key)) is not None), None)) is not None:
            return found
        inside = parent.value
        children: Any = inside.values() if isinstance(inside, dict) else inside if isinstance(inside, list) else ()
        waiting += [Entry(parent.log, child, parent.path) for child in children if isinstance(child, dict | list)]
    return None


def _rate(entry: Entry | None) -> float:
    """Return a rate or concurrency; 0 if it is missing or unlimited."""
    value = entry.value[0] if entry is not None and isinstance(entry.value, list) and entry.value else entry and entry.value
    if entry is None or str(value).lower() in ("inf", "infinity", "none", "[]"):
        return 0.0
    return Entry(entry.log, value, entry.path).number(zero=True)


def _name(entry: Entry | None) -> str:
    value = entry.value if entry is not None else ""
    value = value[0] if isinstance(value, list) and value else value
    value = value.get("name", "") if isinstance(value, dict) else value
    return str(value)[:200]
