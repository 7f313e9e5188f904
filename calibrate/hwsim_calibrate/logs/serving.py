"""Conversion of server benchmarks to workloads with the same requests, and the measurements as `expect:`.

`hwsim simulate MACHINE measured.yaml` reports whether each expectation is met. The tolerance is a 90 % interval. It combines a
standard deviation of 3 % between runs on one machine with the sampling error of n requests. The sampling error of percentiles
assumes exponentially distributed times:

    mean: deviation / (mean sqrt(n))        percentile p: sqrt(p / ((1 - p) n)) / -ln(1 - p)

Source: the asymptotic variance of a sample quantile, p (1 - p) / (n f(q)^2).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

from hwsim.formats import percent
from hwsim.records import dataclass
from hwsim.spec import did_you_mean, names
from hwsim_calibrate.fit.machine_file import quantity
from hwsim_calibrate.logs.log import Log
from hwsim_calibrate.logs.options import LogOptions
from hwsim_calibrate.logs.result import REPEATS, Result, Row

INTERVAL_90: Final = 1.645  # standard deviations
SUFFIXES: Final = re.compile(r"-(instruct|chat|hf|base|it|v\d+(\.\d+)*|fp8|fp16|bf16|nvfp4|awq|gptq|instruct-hf)$")
PARTS: Final = {"mean": "mean", "median": "p50", "p50": "p50", "p95": "p95", "p99": "p99"}


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured figure.

    Args:
        value: the figure in SI units.
        unit: its unit.
        sampling: standard deviation of its logarithm from the number of requests.
    """

    value: float
    unit: str
    sampling: float


@dataclass(frozen=True, slots=True)
class ServerRun:
    """One run of a server benchmark.

    Args:
        log: the log.
        model: name of the model.
        requests: number of completed requests.
        rate: arrival rate (1/s); 0: all requests at the start.
        concurrency_limit: maximum number of requests in flight; 0: unlimited.
        prompt: mean number of prompt tokens.
        output: mean number of output tokens.
        figures: name in `expect:` -> figure.
        left: omitted information.
        lengths: prompt and output lengths, as values or as a distribution, if they are in the log.
        framework: the serving framework, if known.
        is_even: whether arrivals are equidistant instead of random.
    """

    log: Log
    model: str
    requests: int
    rate: float
    concurrency_limit: int
    prompt: float
    output: float
    figures: Mapping[str, Figure]
    left: tuple[str, ...] = ()
    lengths: tuple[Any, Any] = (None, None)
    framework: str = ""
    is_even: bool = False

    @property
    def settings(self) -> dict[str, float | str]:
        """Settings that must agree between runs."""
        return {
            "the model": self.model, "the number of requests": self.requests, "the rate": self.rate,
            "the concurrency limit": self.concurrency_limit, "the prompt tokens": round(self.prompt),
        }  # fmt: skip


def sampling_error(name: str, count: int, deviation: float | None, mean: float) -> float:
    """Return the standard deviation of the logarithm of a mean or percentile of `count` requests.

    >>> [round(sampling_error(name, 100, 2.0, 1.0), 2) for name in ("mean", "p50", "p99")]
    [0.2, 0.14, 0.22]
    """
    if name == "mean":
        return (deviation / mean if deviation is not None else 1.0) / math.sqrt(count)
    p = float(name[1:]) / 100
    return math.sqrt(p / ((1 - p) * count)) / -math.log(1 - p)


def fit_workload(tool: str, framework: str, runs: Sequence[ServerRun], options: LogOptions) -> Result:
    """Return the workload of runs with equal settings; framework: default of the serving framework."""
    first = runs[0]
    for run in runs[1:]:
        for setting, value in run.settings.items():
            if value != first.settings[setting]:
                message = f"{setting} differs: {value or 'none'}, but {first.settings[setting] or 'none'} in {first.log.name}"
                raise run.log.wrong(0, message, "import runs with different settings separately")
    left = list(dict.fromkeys(sentence for run in runs for sentence in run.left))
    limited = 0 < first.concurrency_limit < first.requests
    infer: dict[str, Any] = {
        "model": _model(first, options), "framework": first.framework or framework, "parallel": {"tp": "$tp", "dp": 1},
        "requests": first.requests,
    }  # fmt: skip
    clients = {"arrivals": {"clients": first.concurrency_limit}} if limited else {}
    sent = {"every": quantity(1 / first.rate, "s")} if first.rate and first.is_even else {"poisson": quantity(first.rate, "1/s")}
    infer |= {"arrivals": sent} if first.rate else clients
    for name, lengths, mean in zip(("prompt", "output"), first.lengths, (first.prompt, first.output), strict=True):
        infer[name] = lengths or max(round(mean), 1)
    infer |= {"batch": first.concurrency_limit} if limited and first.rate else {}
    expect: dict[str, Any] = {}
    rows = []
    for name, figure in first.figures.items():
        values = [run.figures[name].value for run in runs if name in run.figures]
        if limited and first.rate and name.startswith(("ttft", "latency")):
            left.append(f"{name}: the client delayed requests; in the simulation, they wait at the server")
            continue
        value = median(values)
        width = INTERVAL_90 * math.hypot(REPEATS, figure.sampling / math.sqrt(len(values)))
        expect[name] = f"{quantity(value, figure.unit)} +- {percent(width, '.2g')}"
        if len(values) > 1:
            rows += [Row(f"{name}, run {index}", figure.unit, measured, value) for index, measured in enumerate(values, 1)]
    if not expect:
        message = f"{tool}: the log has no figure that the simulator predicts"
        raise first.log.wrong(0, message, f"it has {', '.join(first.figures)}")
    content = {
        "hwsim": "workload/1", "name": f"{first.model or 'a service'} measured by {tool}",
        "source": f"{tool}, {len(runs)} run{'s' if len(runs) > 1 else ''}", "let": {"tp": 1}, "infer": infer,
        "expect": expect,
    }  # fmt: skip
    left.insert(0, "the number of GPUs is not in the log; 1 is assumed (for 8, simulate with --set tp=8)")
    return Result(tool, content, tuple(rows), tuple(left))


def _model(run: ServerRun, options: LogOptions) -> str:
    """Return the model's name in the library, or the option --model."""
    if options.model:
        return options.model
    name = re.sub(r"\s+", "-", run.model.rstrip("/").rpartition("/")[2].lower())
    while (shorter := SUFFIXES.sub("", name)) != name:
        name = shorter
    name = re.sub(r"^llama-3\.1-", "llama-3-", re.sub(r"^meta-", "", name))  # 3.1 has the same dimensions as 3
    if name in names("model"):
        return name
    hint = did_you_mean(name, names("model")) if name else None
    message = f"the model '{run.model}' is not in the library" if run.model else "the log does not contain the model"
    raise run.log.wrong(0, message, f"use --model with a name or a file{f'; {hint}' if hint else ''}")
