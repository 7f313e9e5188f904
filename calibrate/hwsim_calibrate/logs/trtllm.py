"""TensorRT-LLM's `trtllm-bench --report_json`: one run of many requests.

Rates of one GPU, of one user and of the whole stand side by side: the whole is `system_output_throughput_tok_s`. Times are ms, or
s in some versions: requests / time = rate tells.

Source: NVIDIA/TensorRT-LLM, tensorrt_llm/bench/dataclasses/reporting.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from hwsim_calibrate.logs.asked import Ask
from hwsim_calibrate.logs.log import Entry, Log
from hwsim_calibrate.logs.result import Result
from hwsim_calibrate.logs.serving import PARTS, Figure, Served, sampled, workload_of

_HINT: Final = "it is the JSON of `trtllm-bench throughput --report_json FILE`"
FORMATS: Final = {"fp8": "fp8", "bfloat16": "bf16", "float16": "fp16"}
LIMITED: Final = 0.3  # requests at once over all, below which the client held them back; all at once they are half of it or more
_OFF: Final = 0.03


def fit(logs: Sequence[Log], ask: Ask) -> Result:
    """A workload that expects what was measured."""
    return workload_of("trtllm-bench", "tensorrt-llm", [_served(log) for log in logs], ask)


def _served(log: Log) -> Served:
    report = log.json("performance", "world_info", tool="trtllm-bench", hint=_HINT)
    performance, world = report.need("performance"), report.need("world_info")
    about = report.need("request_info", "request_details")
    tp, size = (int(world.need(key).number()) for key in ("tp_size", "world_size"))
    if (pp := world.get("pp_size")) is not None and pp.number() > 1:
        message = f"pipeline parallel over {pp.text()}: a service in hwsim has none"
        raise log.wrong(pp.line, message, "logs with pp_size 1 can be compared")
    requests = int(about.need("num_requests").number())
    if requests < 1:
        raise log.wrong(about.line, "no request was answered")
    rate = performance.need("request_throughput_req_s").number()
    tokens = performance.need("system_output_throughput_tok_s", "output_throughput_tok_s").number()
    of_gpu = performance.get("output_throughput_per_gpu_tok_s")
    if of_gpu is not None and abs(of_gpu.number() * size / tokens - 1) > _OFF:
        message = f"{of_gpu.text()} tokens/s of a GPU times {size} GPUs are not {tokens:g} tokens/s"
        raise log.wrong(of_gpu.line, message, "two reports mixed up?")
    unit = _unit(log, performance, requests, rate)
    figures = {"requests_per_s": Figure(rate, "1/s", 0.0), "tokens_per_s": Figure(tokens, "1/s", 0.0)}
    streaming = report.get("streaming_metrics")
    sources = [("latency", performance, "avg_request_latency_ms", "request_latency_percentiles_ms")]
    if streaming is not None:
        sources += [(name, streaming, f"avg_{name}_ms", f"{name}_percentiles") for name in ("ttft", "tpot")]
    left = [] if streaming is not None else ["ttft and tpot: the run did not stream"]
    for name, where, mean, several in sources:
        for part, entry in _times(where, mean, several):
            try:
                value = entry.number()
            except ValueError:
                left.append(f"{name}_{part}: {entry.text()}")
                continue
            figures.setdefault(f"{name}_{part}", Figure(value * unit, "s", sampled(part, requests, None, 1.0)))
    together = about.get("avg_num_concurrent_requests")
    most = world.get("max_batch_size")
    held = together is not None and together.number() < LIMITED * requests
    limit = math.ceil(together.number()) if together is not None and held else 0
    if most is not None:
        left.append(f"at most {most.text()} requests in a batch: `batch` of the workload, where it matters")
    engine = report.get("engine")
    model = engine.get("model") if engine is not None else None
    prompt, output = (about.need(key).number() for key in ("avg_input_length", "avg_output_length"))
    called = model.text() if model is not None else ""
    dtype = _dtype(engine) if engine is not None else ""
    return Served(log, called, requests, 0.0, limit, prompt, output, tp, figures, tuple(left), dtype)


def _dtype(engine: Entry) -> str:
    """Number format of the weights: the quantised one, else the model's; "" if it is not said.

    Raises:
        SpecError: a service has no such format.
    """
    for key in ("quantization", "dtype"):
        if (entry := engine.get(key)) is not None and entry.text().lower() not in ("none", "no_quant", "auto"):
            name = next((name for word, name in FORMATS.items() if word in entry.text().lower()), "")
            if not name:
                hint = f"logs of {', '.join(FORMATS)} can be compared"
                raise entry.log.wrong(entry.line, f"weights in {entry.text()}: a service in hwsim has no such format", hint)
            return name
    return ""


def _times(where: Entry, mean: str, several: str) -> list[tuple[str, Entry]]:
    entries = [("mean", entry)] if (entry := where.get(mean)) is not None else []
    percentiles = where.get(several)
    if percentiles is not None:
        entries += [
            (short, entry) for part, short in PARTS.items() if part != "median" and (entry := percentiles.get(part)) is not None
        ]
    return entries


def _unit(log: Log, performance: Entry, requests: int, rate: float) -> float:
    """Seconds of the report's unit of time."""
    latency = performance.get("total_latency_ms")
    if latency is None:
        return 1e-3
    for unit in (1e-3, 1.0):
        if abs(requests / (latency.number() * unit) / rate - 1) < _OFF:
            return unit
    message = f"{requests} requests in {latency.text()} ms are not {rate:g} a second"
    raise log.wrong(latency.line, message, "two reports mixed up?")
