"""Clients that measure servers, each with JSON of its own: aiperf, guidellm and inference-perf.

- aiperf's `profile_export_aiperf.json`: a block with a unit for each metric; its inter-token latency is a request's mean.
- guidellm's `benchmarks.json`: a list, one entry a load; `_ms` in a name is its unit, requests take seconds.
- inference-perf's `stage_N_lifecycle_metrics.json`: seconds; the model is not in it, and a summary of several stages has no rate.

Source: ai-dynamo/aiperf, docs/reference/json-export-schema.md; vllm-project/guidellm, src/guidellm/benchmark/schemas;
kubernetes-sigs/inference-perf, docs/reports.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hwsim_calibrate.logs.asked import Ask
from hwsim_calibrate.logs.log import Entry, Log
from hwsim_calibrate.logs.result import Result
from hwsim_calibrate.logs.serving import PARTS, Figure, Served, sampled, workload_of

UNITS: Final = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
SERVER: Final = "which server answered: the log does not say; vLLM is taken (`framework:`)"
CLOSED: Final = {"concurrent": "", "synchronous": "one", "throughput": "all"}  # of guidellm's strategies


def aiperf(logs: Sequence[Log], ask: Ask) -> Result:
    """A workload that expects what aiperf measured."""
    return workload_of("aiperf", "vllm", [_aiperf(log) for log in logs], ask)


def guidellm(logs: Sequence[Log], ask: Ask) -> Result:
    """A workload that expects what guidellm measured."""
    return workload_of("guidellm", "vllm", [run for log in logs for run in _guidellm(log)], ask)


def inference_perf(logs: Sequence[Log], ask: Ask) -> Result:
    """A workload that expects what inference-perf measured."""
    return workload_of("inference-perf", "vllm", [_inference_perf(log) for log in logs], ask)


def _aiperf(log: Log) -> Served:
    content = log.json("request_latency", "request_throughput", tool="aiperf", hint="it is profile_export_aiperf.json")
    if (cancelled := content.get("was_cancelled")) is not None and cancelled.value is True:
        raise log.wrong(cancelled.line, "the run was cancelled", "its figures are not used")
    count = _count(content.need("request_count").need("avg"))
    figures = {}
    for key, name in (("request_throughput", "requests_per_s"), ("output_token_throughput", "tokens_per_s")):
        if (rate := content.get(key, "avg")) is not None:
            figures[name] = Figure(rate.number(), "1/s", 0.0)
    for key, name in (("time_to_first_token", "ttft"), ("inter_token_latency", "tpot"), ("request_latency", "latency")):
        if (block := content.get(key)) is not None:
            unit = block.need("unit")
            if unit.text() not in UNITS:
                raise log.wrong(unit.line, f"`{key}` in {unit.text()}", f"there are {', '.join(UNITS)}")
            figures |= _figures(block, name, count, UNITS[unit.text()], {"avg": "mean", **PARTS}, "std")
    config = content.get("input_config")
    together, rate, model = (
        _deep(config, *keys) for keys in (("concurrency",), ("request_rate", "rate"), ("model_names", "models"))
    )
    pattern = _deep(config, "request_rate_mode", "arrival_pattern", "arrival")
    even = pattern is not None and pattern.text().lower().endswith("constant")
    failed = content.get("error_request_count", "avg")
    left = [f"{failed.number(zero=True):.0f} requests that failed"] if failed is not None and failed.value else []
    prompt, output = (content.need(key).need("avg").number() for key in ("input_sequence_length", "output_sequence_length"))
    return Served(
        log, _name(model), count, _rate(rate), int(_rate(together)), prompt, output, figures, (*left, SERVER), is_even=even
    )


def _guidellm(log: Log) -> Iterator[Served]:
    report = log.json("benchmarks", tool="guidellm", hint="it is the JSON of `guidellm benchmark`")
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
        together = _deep(strategy, "streams", "max_concurrency") if not CLOSED.get(kind) else None
        rate = _rate(strategy.get("rate")) if kind not in CLOSED else 0.0
        limit = 1 if CLOSED.get(kind) == "one" else int(_rate(together)) if kind in CLOSED else 0
        others = {word: totals.get(word) for word in ("errored", "incomplete")}
        left = [f"{each.text()} requests {word}" for word, each in others.items() if each and each.value]
        prompt, output = (
            metrics.need(key).need("successful").need("mean").number() for key in ("prompt_token_count", "output_token_count")
        )
        model = _deep(run, "model") or _deep(report.get("args"), "model")
        even = kind == "constant"
        yield Served(log, _name(model), count, rate, limit, prompt, output, figures, (*left, SERVER), is_even=even)


def _inference_perf(log: Log) -> Served:
    content = log.json("successes", "load_summary", tool="inference-perf", hint="it is stage_0_lifecycle_metrics.json")
    done, load = content.need("successes"), content.need("load_summary")
    count = _count(done.need("count"))
    figures = {}
    throughput, latency = done.need("throughput"), done.need("latency")
    for key, name in (("requests_per_sec", "requests_per_s"), ("output_tokens_per_sec", "tokens_per_s")):
        figures[name] = Figure(throughput.need(key).number(), "1/s", 0.0)
    for key, name in (("time_to_first_token", "ttft"), ("time_per_output_token", "tpot"), ("request_latency", "latency")):
        if (block := latency.get(key)) is not None:
            figures |= _figures(block, name, count, 1.0, PARTS)
    rate, together = load.get("requested_rate"), load.get("concurrency")
    if rate is None and together is None:
        message = "it has neither a rate nor a concurrency: stages of several"
        raise log.wrong(load.line, message, "give stage_0_lifecycle_metrics.json")
    failed = content.get("failures", "count")
    left = [f"{failed.text()} requests that failed"] if failed is not None and failed.value else []
    prompt, output = (done.need(key).need("mean").number() for key in ("prompt_len", "output_len"))
    return Served(log, "", count, _rate(rate), int(_rate(together)), prompt, output, figures, (*left, SERVER))


def _figures(
    block: Entry, name: str, count: int, unit: float, parts: Mapping[str, str], deviation: str = ""
) -> dict[str, Figure]:  # fmt: skip
    """Mean and percentiles of a metric, by the names of `expect:`."""
    off, found = block.get(deviation), {}
    for part, short in parts.items():
        if (each := block.get(part)) is not None and each.number(zero=True) > 0 and f"{name}_{short}" not in found:
            spread = off.number(zero=True) if off is not None and short == "mean" else None
            found[f"{name}_{short}"] = Figure(each.number() * unit, "s", sampled(short, count, spread, each.number()))
    return found


def _count(entry: Entry) -> int:
    count = int(entry.number(zero=True))
    if count < 1:
        raise entry.log.wrong(entry.line, "no request was answered", "its figures are not used")
    return count


def _deep(entry: Entry | None, *keys: str) -> Entry | None:
    """The first value under one of these keys, however deep."""
    waiting: list[Entry] = [] if entry is None else [entry]
    while waiting:
        at = waiting.pop(0)
        if (found := next((each for key in keys if (each := at.get(key)) is not None), None)) is not None:
            return found
        inside: Any = at.value.values() if isinstance(at.value, dict) else at.value if isinstance(at.value, list) else ()
        waiting += [Entry(at.log, each, at.path) for each in inside if isinstance(each, dict | list)]
    return None


def _rate(entry: Entry | None) -> float:
    """A number; 0 of none, and of one without limit."""
    value = entry.value[0] if entry is not None and isinstance(entry.value, list) and entry.value else entry and entry.value
    if entry is None or str(value).lower() in ("inf", "infinity", "none", "[]"):
        return 0.0
    return Entry(entry.log, value, entry.path).number(zero=True)


def _name(entry: Entry | None) -> str:
    value = entry.value if entry is not None else ""
    value = value[0] if isinstance(value, list) and value else value
    value = value.get("name", "") if isinstance(value, dict) else value
    return str(value)[:200]
