"""Benchmarks of servers: no part, but a workload with their requests and with what was measured as `expect:`.

`hwsim simulate MACHINE measured.yaml` then says of each figure whether it is met. The width holds nine of ten runs like it: runs
on one machine differ by 3 % (one standard deviation), and n requests sample their mean and their percentiles, these as if
times were exponential:

    of a mean: deviation / (mean sqrt(n))        of percentile p: sqrt(p / ((1 - p) n)) / -ln(1 - p)

Source: the asymptotic variance of a sample's quantile, p (1 - p) / (n f(q)^2).
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
from hwsim_calibrate.fit.writing import quantity
from hwsim_calibrate.logs.asked import Ask
from hwsim_calibrate.logs.log import Log
from hwsim_calibrate.logs.result import REPEATS, Result, Row

NINE_OF_TEN: Final = 1.645  # standard deviations
SUFFIXES: Final = re.compile(r"-(instruct|chat|hf|base|it|v\d+(\.\d+)*|fp8|fp16|bf16|nvfp4|awq|gptq|instruct-hf)$")
PARTS: Final = {"mean": "mean", "median": "p50", "p50": "p50", "p95": "p95", "p99": "p99"}


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured figure in SI units; sampling: standard deviation of its logarithm by the number of requests."""

    value: float
    unit: str
    sampling: float


@dataclass(frozen=True, slots=True)
class Served:
    """One run.

    Args:
        is_even: whether requests were sent one after another, each as long after the one before; else at random.
        rate: requests a second that were sent; 0: all at once.
        together: requests at once that the client allowed; 0: any.
        prompt, output: tokens in the mean; lengths: those of each request, or how they were drawn, where the log says.
        figures: by the name of `expect:`.
        left: what was not taken, and why.
    """

    log: Log
    model: str
    requests: int
    rate: float
    together: int
    prompt: float
    output: float
    figures: Mapping[str, Figure]
    left: tuple[str, ...] = ()
    lengths: tuple[Any, Any] = (None, None)
    framework: str = ""
    is_even: bool = False

    @property
    def settings(self) -> dict[str, float | str]:
        """Settings that runs must have in common."""
        return {
            "the model": self.model, "the requests": self.requests, "the rate": self.rate, "the requests at once": self.together,
            "the tokens of a prompt": round(self.prompt),
        }  # fmt: skip


def sampled(name: str, count: int, deviation: float | None, mean: float) -> float:
    """Standard deviation of the logarithm of a mean or percentile of `count` requests.

    >>> [round(sampled(name, 100, 2.0, 1.0), 2) for name in ("mean", "p50", "p99")]
    [0.2, 0.14, 0.22]
    """
    if name == "mean":
        return (deviation / mean if deviation is not None else 1.0) / math.sqrt(count)
    p = float(name[1:]) / 100
    return math.sqrt(p / ((1 - p) * count)) / -math.log(1 - p)


def workload_of(tool: str, framework: str, runs: Sequence[Served], ask: Ask) -> Result:
    """The workload of these runs, which were alike; framework: whose kernels serve."""
    first = runs[0]
    for run in runs[1:]:
        for setting, value in run.settings.items():
            if value != first.settings[setting]:
                message = f"{setting}: {value or 'not said'}, but {first.settings[setting] or 'not said'} in {first.log.name}"
                raise run.log.wrong(0, message, "runs of one setting are fitted together: a file for each setting")
    left = list(dict.fromkeys(each for run in runs for each in run.left))
    limited = 0 < first.together < first.requests
    infer: dict[str, Any] = {
        "model": _model(first, ask), "framework": first.framework or framework, "parallel": {"tp": "$tp", "dp": 1},
        "requests": first.requests,
    }  # fmt: skip
    clients = {"arrivals": {"clients": first.together}} if limited else {}
    sent = {"every": quantity(1 / first.rate, "s")} if first.rate and first.is_even else {"poisson": quantity(first.rate, "1/s")}
    infer |= {"arrivals": sent} if first.rate else clients
    for name, lengths, mean in zip(("prompt", "output"), first.lengths, (first.prompt, first.output), strict=True):
        infer[name] = lengths or max(round(mean), 1)
    infer |= {"batch": first.together} if limited and first.rate else {}
    expect: dict[str, Any] = {}
    rows = []
    for name, figure in first.figures.items():
        values = [run.figures[name].value for run in runs if name in run.figures]
        if limited and first.rate and name.startswith(("ttft", "latency")):
            left.append(f"{name}: the client held requests back, and they wait before the server here")
            continue
        value = median(values)
        width = NINE_OF_TEN * math.hypot(REPEATS, figure.sampling / math.sqrt(len(values)))
        expect[name] = f"{quantity(value, figure.unit)} +- {percent(width, '.2g')}"
        if len(values) > 1:
            rows += [Row(f"{name}, run {at}", figure.unit, each, value) for at, each in enumerate(values, 1)]
    if not expect:
        raise first.log.wrong(0, f"{tool}: no figure in it that a simulated service has", f"it has {', '.join(first.figures)}")
    content = {
        "hwsim": "workload/1", "name": f"as {tool} measured {first.model or 'it'}",
        "source": f"{tool}, {len(runs)} run{'s' if len(runs) > 1 else ''}", "let": {"tp": 1}, "infer": infer,
        "expect": expect,
    }  # fmt: skip
    left.insert(0, "how many GPUs served: the log does not say; 1 is taken (simulate it with --set tp=8)")
    return Result(tool, content, tuple(rows), tuple(left))


def _model(run: Served, ask: Ask) -> str:
    """The model's name in the library, or as the user says."""
    if ask.model:
        return ask.model
    name = re.sub(r"\s+", "-", run.model.rstrip("/").rpartition("/")[2].lower())
    while (shorter := SUFFIXES.sub("", name)) != name:
        name = shorter
    name = re.sub(r"^llama-3\.1-", "llama-3-", re.sub(r"^meta-", "", name))  # 3.1 has the dimensions of 3
    if name in names("model"):
        return name
    hint = did_you_mean(name, names("model")) if name else None
    message = f"the model '{run.model}' is not in the library" if run.model else "the log does not say which model was served"
    raise run.log.wrong(0, message, f"say it: --model NAME, a name or a file{f'; {hint}' if hint else ''}")
