"""vLLM's `vllm bench serve` (benchmark_serving.py), and SGLang's of the same keys: JSON of --save-result, or the printed table.

Times are ms. The time of a token leaves the first one out; it is 0 or below where chunks of an answer arrive together. A rate
without limit is the string "inf".

Source: vllm-project/vllm, vllm/benchmarks/serve.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

from hwsim_calibrate.logs.asked import Ask
from hwsim_calibrate.logs.log import Entry, Log
from hwsim_calibrate.logs.result import Result
from hwsim_calibrate.logs.serving import PARTS, Figure, Served, sampled, workload_of

KEYS: Final = {"ttft": "ttft", "tpot": "tpot", "e2el": "latency"}
_LINES: Final = {  # of the printed table, and the key of the JSON
    "successful requests": "completed", "benchmark duration (s)": "duration", "total input tokens": "total_input_tokens",
    "total generated tokens": "total_output_tokens", "request throughput (req/s)": "request_throughput",
    "output token throughput (tok/s)": "output_throughput", "maximum request concurrency": "max_concurrency",
    "max request concurrency": "max_concurrency", "request rate configured (rps)": "request_rate",
    "traffic request rate": "request_rate", "failed requests": "failed",
}  # fmt: skip
_LINE: Final = re.compile(r"^\s*([A-Z][A-Za-z0-9 ()/]*?)\s*:\s+(\S+(?: set)?)\s*$")
_TIME: Final = re.compile(r"^(mean|median|std|p\d\d(?:\.\d+)?) (ttft|tpot|itl|e2el) \(ms\)$")
_HINT: Final = "it is the JSON of `vllm bench serve --save-result`, or its table `Serving Benchmark Result`"
_TITLE: Final = "Serving Benchmark Result"


def fit(logs: Sequence[Log], ask: Ask) -> Result:
    """A workload that expects what was measured."""
    return workload_of("vllm bench serve", "vllm", [_served(log, entry) for log in logs for entry in _entries(log)], ask)


def _entries(log: Log) -> list[Entry]:
    if any(_TITLE in text for text in log.lines):
        return [_table(log)]
    return log.jsons("request_throughput", "output_throughput", tool="vllm bench serve", hint=_HINT)


def _table(log: Log) -> Entry:
    """The printed table, under the keys of the JSON."""
    values: dict[str, str | float] = {}
    for line, text in log.numbered():
        if not (match := _LINE.match(text)):
            continue
        title = match[1].lower()
        if time := _TIME.match(title):
            key = f"{time[1]}_{time[2]}_ms"
        elif title in _LINES:
            key = _LINES[title]
        else:
            continue
        if key in values and str(values[key]) != match[2] and key != "request_rate":
            raise log.wrong(line, f"{match[1]} stands twice", "give each result its own file")
        values[key] = match[2]
    return Entry(log, values, "")


def _served(log: Log, entry: Entry) -> Served:
    completed = int(entry.need("completed", "num_prompts").number(zero=True))
    if completed < 1:
        raise log.wrong(entry.need("completed", "num_prompts").line, "no request was answered", "its figures are not used")
    prompt, output = (entry.need(key).number() / completed for key in ("total_input_tokens", "total_output_tokens"))
    together = _optional(entry, "max_concurrency")
    rate = _optional(entry, "request_rate")
    left = []
    sent = entry.get("num_prompts")
    if sent is not None and sent.number(zero=True) > completed:
        left.append(f"{sent.number() - completed:.0f} requests that failed")
    if (burst := entry.get("burstiness")) is not None and rate and burst.number() != 1:
        left.append(f"burstiness {burst.text()}: requests come at random (1) here")
    figures: dict[str, Figure] = {}
    arrivals = 1 / math.sqrt(completed) if rate else 0.0
    for key, name in (("request_throughput", "requests_per_s"), ("output_throughput", "tokens_per_s")):
        if (figure := entry.get(key)) is not None:
            figures[name] = Figure(figure.number(), "1/s", arrivals)
    if (duration := entry.get("duration")) is not None and "requests_per_s" in figures:
        computed = completed / duration.number()
        if abs(computed / figures["requests_per_s"].value - 1) > 0.02 + 0.006 / computed:
            message = (
                f"{completed} requests in {duration.text()} s are {computed:.4g}/s, not {figures['requests_per_s'].value:g}/s"
            )
            raise log.wrong(entry.need("request_throughput").line, message, "two results in one file?")
    for key, name in KEYS.items():
        mean, deviation = entry.get(f"mean_{key}_ms"), entry.get(f"std_{key}_ms")
        for part, short in PARTS.items():
            figure = entry.get(f"{part}_{key}_ms")
            if figure is None or f"{name}_{short}" in figures:
                continue
            if _is_none(figure):
                left.append(f"{part} {key}: {figure.text()} ms; answers came in one piece, or chunks of them together")
                continue
            off = deviation.number(zero=True) if deviation is not None and not _is_none(deviation, zero=True) else None
            around = 1.0 if mean is None or _is_none(mean) else mean.number()
            figures[f"{name}_{short}"] = Figure(figure.number() * 1e-3, "s", sampled(short, completed, off, around))
    model = entry.get("model_id") or entry.get("model")
    called = model.text() if model is not None else ""
    return Served(log, called, completed, rate, int(together), prompt, output, 0, figures, tuple(left))


def _optional(entry: Entry, key: str) -> float:
    """A number that may be missing or unlimited: 0 then."""
    said = entry.get(key)
    if said is None or str(said.value).strip().lower() in ("inf", "infinity", "none", "not set", "", "-1"):
        return 0.0
    return said.number(zero=True)


def _is_none(entry: Entry, *, zero: bool = False) -> bool:
    """Whether a time is 0, below, or no number at all: N/A."""
    try:
        value = float(str(entry.value)[:40])
    except ValueError:
        return str(entry.value).lower() in ("n/a", "nan", "none", "null")
    return math.isnan(value) or value < 0 or (value <= 0 and not zero)
