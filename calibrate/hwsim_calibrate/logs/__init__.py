"""Logs of benchmarks as parts or workloads: `hwsim import stream out.txt`.

To support another tool, add a module and a line in `TOOLS`.

result = fit_logs("stream", [Log("out.txt", text)], LogOptions())
result.yaml()                                    # the part; each number has its interval and source
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from hwsim.formats import percent
from hwsim.spec.kinds import KindTable
from hwsim_calibrate.fit.machine_file import quantity
from hwsim_calibrate.logs.log import Log, read_log
from hwsim_calibrate.logs.options import LogOptions
from hwsim_calibrate.logs.result import Number, Result, Row


class Tool(NamedTuple):
    """A tool whose logs can be imported.

    Args:
        title: name of the tool for the user.
        becomes: description of the resulting file.
        module: module of the parser, optionally with `:function`; default function: `fit`.
        part_kinds: kinds of parts for the option `--part`.
        options: further options that its logs may require: sockets, model, collective.
    """

    title: str
    becomes: str
    module: str
    part_kinds: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


_EXPECTATIONS: Final = "a workload with the measurements as expectations"
TOOLS: Final = {
    "nccl-tests": Tool("nccl-tests and rccl-tests", "overheads of a communication library", "nccl_tests", (), ("collective",)),
    "osu": Tool("the OSU benchmarks", "curves of MPI", "osu"),
    "fio": Tool("fio, JSON", "a disk", "fio", ("disk",)),
    "sysbench": Tool("sysbench", "a disk, or the sustained memory bandwidth of a CPU", "sysbench", ("cpu", "disk"), ("sockets",)),
    "stream": Tool("STREAM", "a memory, or the sustained memory bandwidth of a CPU", "stream", ("cpu",), ("sockets",)),
    "babelstream": Tool(
        "BabelStream", "a memory, or the sustained memory bandwidth of a GPU or CPU", "babelstream", ("gpu", "cpu"), ("sockets",)
    ),
    "mlc": Tool("Intel MLC", "a memory, or the latencies, bandwidths and NUMA costs of a CPU", "mlc", ("cpu",), ("sockets",)),
    "ib-write-bw": Tool("perftest's bandwidth tests", "a NIC", "perftest", ("nic",)),
    "iperf3": Tool("iperf3 -J", "an Ethernet link", "iperf3", ("ethernet", "wifi")),
    "vllm": Tool("vllm bench serve and SGLang's bench_serving", _EXPECTATIONS, "vllm", options=("model",)),
    "aiperf": Tool("aiperf", _EXPECTATIONS, "clients:aiperf", options=("model",)),
    "guidellm": Tool("guidellm", _EXPECTATIONS, "clients:guidellm", options=("model",)),
    "inference-perf": Tool("inference-perf", _EXPECTATIONS, "clients:inference_perf", options=("model",)),
}
MAX_NAMED: Final = 3  # files in the source of a number, and rows in a message
MAX_MEDIAN_ERROR: Final = 0.15  # fits with larger errors are refused
MAX_ERROR: Final = 2.0
_READERS: Final = KindTable[Callable[[Sequence[Log], LogOptions], Result]](
    {name: f"hwsim_calibrate.logs.{tool.module}{'' if ':' in tool.module else ':fit'}" for name, tool in TOOLS.items()}
)


def fit_logs(tool: str, logs: Sequence[Log], options: LogOptions) -> Result:
    """Fit one file to several logs of one tool.

    Raises:
        SpecError: A log is not from the tool, is damaged, or is inconsistent with the rest.
    """
    seen: dict[str, Log] = {}
    for log in logs:
        if (first := seen.setdefault(log.text, log)) is not log:
            raise log.wrong(0, f"the log is identical to {first.name}", "pass each run once")
    try:
        result: Result | None = _READERS[tool](logs, options)
    except ArithmeticError:
        result = None
    if result is None or not result.is_finite():
        raise logs[0].wrong(0, "the numbers cannot be fitted", "is a line of the log damaged?")
    errors = sorted(((abs(row.error), row) for row in result.rows), key=lambda pair: -pair[0])
    if errors and (errors[len(errors) // 2][0] > MAX_MEDIAN_ERROR or errors[0][0] > MAX_ERROR):
        median, worst = (percent(errors[index][0], ".0f") for index in (len(errors) // 2, 0))
        message = f"the fit has a median error of {median} over {len(errors)} rows, maximum {worst}"
        rows = "; ".join(f"{row.what}: {quantity(row.measured, row.unit)} measured, {quantity(row.fitted, row.unit)} fitted"
                          for _, row in errors[:MAX_NAMED])  # fmt: skip
        raise logs[0].wrong(0, message, f"does the log mix different runs? {rows}")
    key = "ref" if "ref" in result.keys else "source"
    names = ", ".join(re.split(r"[\\/]", log.name)[-1] for log in logs[:MAX_NAMED]) + (", ..." if len(logs) > MAX_NAMED else "")
    return replace(result, keys={**result.keys, key: f"{result.keys[key]}; {names}"})


def parts_of(tool: str, logs: Sequence[Log], options: LogOptions) -> dict[str, Result]:
    """Fit all files that some logs contain: one under "", or for nccl-tests one for each collective.

    Raises:
        SpecError: See `fit_logs`.
    """
    if "collective" not in TOOLS[tool].options or options.collective:
        return {"": fit_logs(tool, logs, options)}
    from hwsim_calibrate.logs.nccl_tests import collectives_of

    names = collectives_of(logs)
    return {name if len(names) > 1 else "": fit_logs(tool, logs, replace(options, collective=name)) for name in names or [""]}


__all__ = ["TOOLS", "Log", "LogOptions", "Number", "Result", "Row", "Tool", "fit_logs", "parts_of", "read_log"]
