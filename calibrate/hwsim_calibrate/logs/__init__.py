"""Benchmarks' logs as parts: `hwsim import stream out.txt`. A new tool is a file and a line.

result = fit_logs("stream", [Log("out.txt", text)], Ask())
result.yaml()                                    # the file, each number with its interval and source
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from hwsim.formats import percent
from hwsim.spec.kinds import KindTable
from hwsim_calibrate.fit.writing import quantity
from hwsim_calibrate.logs.asked import Ask
from hwsim_calibrate.logs.log import Log, read_log
from hwsim_calibrate.logs.result import Number, Result, Row


class Tool(NamedTuple):
    """A tool whose logs are read.

    Args:
        called: its name; becomes: what its logs become; module: its reader, by default the function `fit` in it.
        into: kinds of parts that its numbers go into (`--part`).
        asks: what else its logs leave open: sockets, model, collective.
    """

    called: str
    becomes: str
    module: str
    into: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()


TOOLS: Final = {
    "nccl-tests": Tool("nccl-tests and rccl-tests", "overheads of a communication library", "nccl_tests", asks=("collective",)),
    "osu": Tool("the OSU benchmarks", "curves of MPI", "osu"),
    "fio": Tool("fio, JSON", "a disk", "fio", ("disk",)),
    "sysbench": Tool("sysbench", "a disk, or what a cpu's memory sustains", "sysbench", ("cpu", "disk"), ("sockets",)),
    "stream": Tool("STREAM", "a memory, or what a cpu's sustains", "stream", ("cpu",), ("sockets",)),
    "babelstream": Tool(
        "BabelStream", "a memory, or what a gpu's or cpu's sustains", "babelstream", ("gpu", "cpu"), ("sockets",)
    ),
    "mlc": Tool("Intel MLC", "a memory, or latencies, bandwidths and NUMA of a cpu", "mlc", ("cpu",), ("sockets",)),
    "ib-write-bw": Tool("perftest's bandwidth tests", "a network card", "perftest", ("nic",)),
    "iperf3": Tool("iperf3 -J", "an Ethernet link", "iperf3", ("ethernet", "wifi")),
    "vllm": Tool("vllm bench serve, or SGLang's", "a workload that expects what was measured", "vllm", asks=("model",)),
    "aiperf": Tool("aiperf", "a workload that expects what was measured", "clients:aiperf", asks=("model",)),
    "guidellm": Tool("guidellm", "a workload that expects what was measured", "clients:guidellm", asks=("model",)),
    "inference-perf": Tool(
        "inference-perf", "a workload that expects what was measured", "clients:inference_perf", asks=("model",)
    ),
}
NAMED: Final = 3  # files in the source of a number
MEDIAN: Final = 0.15  # of a row that the fit is off by, above which it is none; and at worst
WORST: Final = 2.0
_READERS: Final = KindTable[Callable[[Sequence[Log], Ask], Result]](
    {name: f"hwsim_calibrate.logs.{tool.module}{'' if ':' in tool.module else ':fit'}" for name, tool in TOOLS.items()}
)


def fit_logs(tool: str, logs: Sequence[Log], ask: Ask) -> Result:
    """The file that these logs of one tool become together.

    Raises:
        SpecError: one of them is no log of the tool, damaged, or does not go with the others.
    """
    seen: dict[str, Log] = {}
    for log in logs:
        if (first := seen.setdefault(log.text, log)) is not log:
            raise log.wrong(0, f"it is the same as {first.name}", "a run counts once")
    try:
        result: Result | None = _READERS[tool](logs, ask)
    except ArithmeticError:
        result = None
    if result is None or not result.is_finite():
        raise logs[0].wrong(0, "its numbers are too far apart for a fit", "is a line of it damaged?")
    errors = sorted(((abs(row.error), row) for row in result.rows), key=lambda each: -each[0])
    if errors and (errors[len(errors) // 2][0] > MEDIAN or errors[0][0] > WORST):
        median, worst = (percent(errors[at][0], ".0f") for at in (len(errors) // 2, 0))
        message = f"the fit is off by {median} in the median of {len(errors)} rows, at worst {worst}"
        rows = "; ".join(f"{row.what}: {quantity(row.measured, row.unit)} measured, {quantity(row.fitted, row.unit)} fitted"
                          for _, row in errors[:NAMED])  # fmt: skip
        raise logs[0].wrong(0, message, f"runs of different things in one log? {rows}")
    key = "ref" if "ref" in result.said else "source"
    names = ", ".join(re.split(r"[\\/]", log.name)[-1] for log in logs[:NAMED]) + (", ..." if len(logs) > NAMED else "")
    return replace(result, said={**result.said, key: f"{result.said[key]}; {names}"})


def parts_of(tool: str, logs: Sequence[Log], ask: Ask) -> dict[str, Result]:
    """The files that these logs become, by what tells them apart: one under "", or one for each collective of nccl-tests.

    Raises:
        SpecError: see `fit_logs`.
    """
    if "collective" not in TOOLS[tool].asks or ask.collective:
        return {"": fit_logs(tool, logs, ask)}
    from hwsim_calibrate.logs.nccl_tests import collectives_of

    names = collectives_of(logs)
    return {name if len(names) > 1 else "": fit_logs(tool, logs, replace(ask, collective=name)) for name in names or [""]}


__all__ = ["TOOLS", "Ask", "Log", "Number", "Result", "Row", "Tool", "fit_logs", "parts_of", "read_log"]
