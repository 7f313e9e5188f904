"""vLLM's `vllm bench serve` (benchmark_serving.py), and SGLang's of the same keys: JSON of --save-result, or the printed table.

Times are ms. The time of a token leaves the first one out; it is 0 or below where chunks of an answer arrive together. A rate
without limit is the string "inf".

Source: vllm-project/vllm, vllm/benchmarks/serve.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Final

from hwsim_calibrate.logs.asked import Ask
from hwsim_calibrate.logs.log import Entry, Log
from hwsim_calibrate.logs.result import Result
from hwsim_calibrate.logs.serving import PARTS, Figure, Served, sampled, workload_of

KEYS: Final = {"ttft": "ttft", "tpot": "tpot", "e2el": "latency", "e2e_latency": "latency"}
NEAR: Final = 0.1  # of the mean of lengths, up to which they were drawn as the settings say
_LINES: Final = {  # of the printed table, and the key of the JSON
    "successful requests": "completed", "benchmark duration (s)": "duration", "total input tokens": "total_input_tokens",
    "total generated tokens": "total_output_tokens", "request throughput (req/s)": "request_throughput",
    "output token throughput (tok/s)": "output_throughput", "maximum request concurrency": "max_concurrency",
    "max request concurrency": "max_concurrency", "request rate configured (rps)": "request_rate",
    "traffic request rate": "request_rate", "failed requests": "failed", "backend": "backend",
}  # fmt: skip
_LINE: Final = re.compile(r"^\s*([A-Z][A-Za-z0-9 ()/]*?)\s*:\s+(\S+(?: set)?)\s*$")
_TIME: Final = re.compile(r"^(mean|median|std|p\d\d(?:\.\d+)?) (ttft|tpot|itl|e2el|e2e latency) \(ms\)$")
_HINT: Final = "it is the JSON of `vllm bench serve --save-result`, or its table `Serving Benchmark Result`"
_OPENS: Final = re.compile(r"Serving Benchmark Result|^\s*(?:Traffic request rate|Starting initial single prompt)")
_ROW: Final = re.compile(r"^\s*Successful requests:")


def fit(logs: Sequence[Log], ask: Ask) -> Result:
    """A workload that expects what was measured."""
    return workload_of("vllm bench serve", "vllm", [_served(log, entry) for log in logs for entry in _entries(log)], ask)


def _entries(log: Log) -> list[Entry]:
    if tables := log.sections(_OPENS, _ROW):
        return [_table(log, table.lines) for table in tables]
    entries = log.jsons("request_throughput", "output_throughput", tool="vllm bench serve", hint=_HINT)
    if isinstance(entries[0].need("request_throughput", "output_throughput").value, dict):
        message = "blocks with a unit for each figure: aiperf writes them"
        raise log.wrong(0, message, "read it as aiperf's: hwsim import aiperf FILE")
    return entries


def _table(log: Log, lines: Sequence[tuple[int, str]]) -> Entry:
    """A printed table, under the keys of the JSON."""
    values: dict[str, str | float] = {}
    for line, text in lines:
        if not (match := _LINE.match(text)):
            continue
        title = match[1].lower()
        if time := _TIME.match(title):
            key = f"{time[1]}_{time[2].replace(' ', '_')}_ms"
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
        computed, said = completed / duration.number(), figures["requests_per_s"].value
        if abs(computed / said - 1) > 0.02 + 0.006 / computed:
            message = f"{completed} requests in {duration.text()} s are {computed:.4g}/s, not {said:g}/s"
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
    lengths, more = zip(*(_lengths(entry, *each) for each in (("input", prompt), ("output", output))), strict=True)
    left += [each for each in more if each]
    backend = entry.get("backend")
    framework = "sglang" if backend is not None and backend.text().startswith("sglang") else ""
    model = entry.get("model_id") or entry.get("model")
    called = model.text() if model is not None else ""
    return Served(
        log, called, completed, rate, int(together), prompt, output, figures, tuple(left),
        lengths=(lengths[0], lengths[1]), framework=framework,
    )  # fmt: skip


def _lengths(entry: Entry, side: str, mean: float) -> tuple[Any, str]:
    """The lengths of each request, or how they were drawn, if the log says; and a sentence where they are the mean."""
    each, full, ratio = (entry.get(key) for key in (f"{side}_lens", f"random_{side}_len", "random_range_ratio"))
    if each is not None and (values := [int(element.number(zero=True)) for element in each.elements() if element.value]):
        return ({"values": values} if len(set(values)) > 1 else values[0]), ""
    if full is None or ratio is None or ratio.number(zero=True) >= 1:
        return None, ""
    low, high = max(int(full.number() * ratio.number(zero=True)), 1), int(full.number())
    if abs((low + high) / 2 / mean - 1) <= NEAR:  # SGLang draws from ratio x length to length
        return {"uniform": [low, high]}, ""
    return None, f"lengths of the {side}: drawn at random, and the mean is taken"


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
