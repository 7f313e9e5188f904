"""MLPerf Storage (DLIO): summary.json of training runs, as a file system.

Emulated accelerators read samples and sleep. Busy for 90 % of their time or more (cosmoflow: 70 %) they set the pace, and the
storage could give more: a lower bound. Below that it is the storage. `train_io_mean_MB_per_second` is MiB/s despite its name.

Source: argonne-lcf/dlio_benchmark, utils/statscounter.py (samples/s x record size / 1024 / 1024); mlcommons/storage, Rules.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from hwsim.formats import percent
from hwsim_calibrate.fit.writing import quantity
from hwsim_calibrate.logs.asked import Ask
from hwsim_calibrate.logs.log import Entry, Log
from hwsim_calibrate.logs.result import Result, Row, number_of, part

BUSY: Final = 90.0  # per cent
_HINT: Final = "it is summary.json of a training run of MLPerf Storage"


class Run(NamedTuple):
    """Samples a second by epoch, bytes of a sample, busy accelerators in per cent, accelerators and hosts."""

    log: Log
    samples: list[float]
    size: float
    busy: float
    accelerators: int
    hosts: int
    cached: bool
    met: bool


def fit(logs: Sequence[Log], ask: Ask) -> Result:  # noqa: ARG001 (all tools are asked alike)
    """A file system by what all clients read together, and each of them."""
    runs = [_run(log) for log in logs]
    for run in runs[1:]:
        if abs(run.size / runs[0].size - 1) > 0.02:
            message = f"samples of {quantity(run.size, 'B')}, and of {quantity(runs[0].size, 'B')} in {runs[0].log.name}"
            raise run.log.wrong(0, message, "runs of one data set are fitted together")
    best = max(runs, key=lambda run: number_of(run.samples, "1/s").value)
    alike = [run for run in runs if (run.accelerators, run.hosts) == (best.accelerators, best.hosts)]
    rates = [each * best.size for run in alike for each in run.samples]
    bound = "at least: the accelerators set the pace" if best.met else "the storage set the pace"
    bandwidth = number_of(rates, "B/s", bound)
    keys: dict[str, Any] = {"bandwidth": bandwidth}
    if best.hosts:
        keys["client"] = number_of([rate / best.hosts for rate in rates], "B/s", bound)
    rows = [
        Row(f"{run.accelerators} accelerators, epoch {at}", "B/s", each * best.size, bandwidth.value)
        for run in alike for at, each in enumerate(run.samples, 1)
    ]  # fmt: skip
    left = [f"{run.log.name}: {run.accelerators} accelerators read less" for run in runs if run not in alike]
    left += [f"{run.log.name}: the hosts' memory may have held the data" for run in alike if run.cached]
    left += ["latency and requests a second: large reads do not show them"]
    where = f" on {best.hosts} hosts" if best.hosts else ""
    notes = (
        f"{best.accelerators} accelerators{where}, busy {percent(best.busy / 100, '.1f')}: {bound}; "
        f"samples of {quantity(best.size, 'B')}, {number_of(best.samples, '1/s').value:.4g} a second"
    )
    return part("MLPerf Storage", "filesystem", "MLPerf Storage, training", keys, notes=notes, rows=rows, left=left)


def _run(log: Log) -> Run:
    summary = log.json("metric", tool="MLPerf Storage", hint=_HINT)
    metric = summary.need("metric")
    mean = metric.get("train_throughput_mean_samples_per_second")
    if mean is None:
        message = "`metric` has no `train_throughput_mean_samples_per_second`"
        raise log.wrong(metric.line, message, f"{_HINT}; checkpoints are not read")
    listed = metric.get("train_throughput_samples_per_second")
    samples = [each.number() for each in listed.elements()] if listed is not None else [mean.number()]
    if not samples or abs(sum(samples) / len(samples) / mean.number() - 1) > 0.02:
        raise log.wrong(mean.line, f"the mean {mean.text()} is not the mean of its epochs", "two summaries mixed up?")
    size = metric.need("train_io_mean_MB_per_second").number() * 2.0**20 / mean.number()
    busy = metric.need("train_au_mean_percentage").number(zero=True)
    if busy > 101:
        raise log.wrong(metric.need("train_au_mean_percentage").line, f"accelerators busy for {busy:g} % of the time")
    verdict = metric.get("train_au_meet_expectation")
    met = verdict.text() == "success" if verdict is not None else busy >= BUSY
    accelerators, hosts = (_count(summary, key) for key in ("num_accelerators", "num_hosts"))
    cached = (held := summary.get("potential_caching")) is not None and held.value is True
    return Run(log, samples, size, busy, accelerators, hosts, cached, met)


def _count(summary: Entry, key: str) -> int:
    said = summary.get(key)
    return 0 if said is None else int(said.number())
