"""Parser of `vllm bench serve` and SGLang's bench_serving, which has the same keys: JSON of --save-result, or the printed table.

Times are in ms. TPOT excludes the first token; it is 0 or negative if several tokens arrive together. An unlimited rate is the
string "inf".

Source: vllm-project/vllm, vllm/benchmarks/serve.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Final

from hwsim_calibrate.logs.log import Entry, Log
from hwsim_calibrate.logs.options import LogOptions
from hwsim_calibrate.logs.result import Result
from hwsim_calibrate.logs.serving import PARTS, Figure, ServerRun, fit_workload, sampling_error

KEYS: Final = {"ttft": "ttft", "tpot": "tpot", "e2el": "latency", "e2e_latency": "latency"}
MAX_DEVIATION: Final = 0.1  # of the mean length from the mean of the configured distribution
_LINES: Final = {  # title in the printed table -> key of the JSON
    "successful requests": "completed", "benchmark duration (s)": "duration", "total input tokens": "total_input_tokens",
    "total generated tokens": "total_output_tokens", "request throughput (req/s)": "request_throughput",
    "output token throughput (tok/s)": "output_throughput", "maximum request concurrency": "max_concurrency",
    "max request concurrency": "max_concurrency", "request rate configured (rps)": "request_rate",
    "traffic request rate": "request_rate", "failed requests": "failed", "backend": "backend",
}  # fmt: skip
_LINE: Final = re.compile(r"^\s*([A-Z][A-Za-z0-9 ()/]*?)\s*:\s+(\S+(?: set)?)\s*$")
_TIME: Final = re.compile(r"^(mean|median|std|p\d\d(?:\.\d+)?) (ttft|tpot|itl|e2el|e2e latency) \(ms\)$")
_HINT: Final = "expected the JSON of `vllm bench serve --save-result`, or its table `Serving Benchmark Result`"
_OPENS: Final = re.compile(r"Serving Benchmark Result|^\s*(?:Traffic request rate|Starting initial single prompt)")
_ROW: Final = re.compile(r"^\s*Successful requests:")


def fit(logs: Sequence[Log], options: LogOptions) -> Result:
    """Convert the results to a workload with expectations."""
    return fit_workload("vllm bench serve", "vllm", [run for log in logs for run in runs_of(log)], options)


def runs_of(log: Log) -> list[ServerRun]:
    """Return the runs of a log."""
    return [_server_run(log, entry) for entry in _entries(log)]


def _entries(log: Log) -> list[Entry]:
    if tables := log.sections(_OPENS, _ROW):
        return [_table(log, table.lines) for table in tables]
    entries = log.jsons("request_throughput", "output_throughput", tool="vllm bench serve", hint=_HINT)
    if isinstance(entries[0].need("request_throughput", "output_throughput").value, dict):
        message = "the log has the format of aiperf, with a unit for each figure"
        raise log.wrong(0, message, "use `hwsim import aiperf FILE`")
    return entries


def _table(log: Log, lines: Sequence[tuple[int, str]]) -> Entry:
    """Convert a printed table to the keys of the JSON."""
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
            raise log.wrong(line, f"`{match[1]}` occurs twice with different values", "write one file per result")
        values[key] = match[2]
    return Entry(log, values, "")


def _server_run(log: Log, entry: Entry) -> ServerRun:
    completed = int(entry.need("completed", "num_prompts").number(zero=True))
    if completed < 1:
        line = entry.need("completed", "num_prompts").line
        raise log.wrong(line, "no request was completed", "use the log of a successful run")
    prompt, output = (entry.need(key).number() / completed for key in ("total_input_tokens", "total_output_tokens"))
    concurrency_limit = _optional(entry, "max_concurrency")
    rate = _optional(entry, "request_rate")
    left = []
    sent = entry.get("num_prompts")
    if sent is not None and sent.number(zero=True) > completed:
        left.append(f"{sent.number() - completed:.0f} failed requests")
    if (burst := entry.get("burstiness")) is not None and rate and burst.number() != 1:
        left.append(f"burstiness {burst.text()}: the workload has Poisson arrivals (1)")
    figures: dict[str, Figure] = {}
    arrivals = 1 / math.sqrt(completed) if rate else 0.0
    for key, name in (("request_throughput", "requests_per_s"), ("output_throughput", "tokens_per_s")):
        if (figure := entry.get(key)) is not None:
            figures[name] = Figure(figure.number(), "1/s", arrivals)
    if (duration := entry.get("duration")) is not None and "requests_per_s" in figures:
        computed, logged = completed / duration.number(), figures["requests_per_s"].value
        if abs(computed / logged - 1) > 0.02 + 0.006 / computed:
            message = f"{completed} requests in {duration.text()} s are {computed:.4g}/s, not {logged:g}/s"
            raise log.wrong(entry.need("request_throughput").line, message, "does the file contain two results?")
    for key, name in KEYS.items():
        mean, deviation = entry.get(f"mean_{key}_ms"), entry.get(f"std_{key}_ms")
        for part, short in PARTS.items():
            figure = entry.get(f"{part}_{key}_ms")
            if figure is None or f"{name}_{short}" in figures:
                continue
            if _is_none(figure):
                left.append(f"{part} {key}: {figure.text()} ms, because tokens arrived together")
                continue
            off = deviation.number(zero=True) if deviation is not None and not _is_none(deviation, zero=True) else None
            around = 1.0 if mean is None or _is_none(mean) else mean.number()
            figures[f"{name}_{short}"] = Figure(figure.number() * 1e-3, "s", sampling_error(short, completed, off, around))
    lengths, notes = zip(*(_lengths(entry, *side) for side in (("input", prompt), ("output", output))), strict=True)
    left += [note for note in notes if note]
    backend = entry.get("backend")
    framework = "sglang" if backend is not None and backend.text().startswith("sglang") else ""
    model = entry.get("model_id") or entry.get("model")
    model_name = model.text() if model is not None else ""
    return ServerRun(
        log, model_name, completed, rate, int(concurrency_limit), prompt, output, figures, tuple(left),
        lengths=(lengths[0], lengths[1]), framework=framework,
    )  # fmt: skip


def _lengths(entry: Entry, side: str, mean: float) -> tuple[Any, str]:
    """Return the lengths as values or as a distribution, if known, and a note if their mean is used instead."""
    lengths, full, ratio = (entry.get(key) for key in (f"{side}_lens", f"random_{side}_len", "random_range_ratio"))
    if lengths is not None and (values := [int(length.number(zero=True)) for length in lengths.elements() if length.value]):
        return ({"values": values} if len(set(values)) > 1 else values[0]), ""
    if full is None or ratio is None or ratio.number(zero=True) >= 1:
        return None, ""
    low, high = max(int(full.number() * ratio.number(zero=True)), 1), int(full.number())
    if abs((low + high) / 2 / mean - 1) <= MAX_DEVIATION:  # SGLang draws between ratio x length and length
        return {"uniform": [low, high]}, ""
    return None, f"the distribution of {side} lengths is unknown; their mean is used"


def _optional(entry: Entry, key: str) -> float:
    """Return a number, or 0 if it is missing or unlimited."""
    found = entry.get(key)
    if found is None or str(found.value).strip().lower() in ("inf", "infinity", "none", "not set", "", "-1"):
        return 0.0
    return found.number(zero=True)


def _is_none(entry: Entry, *, zero: bool = False) -> bool:
    """Return whether a time is missing: 0, negative, or not a number."""
    try:
        value = float(str(entry.value)[:40])
    except ValueError:
        return str(entry.value).lower() in ("n/a", "nan", "none", "null")
    return math.isnan(value) or value < 0 or (value <= 0 and not zero)
