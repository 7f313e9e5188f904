"""Parser of nccl-tests and rccl-tests, which become start and knee of a collective (out of place).

The first columns depend on collective and version (size, count, type, redop, root). The last columns are time in us, algbw and
busbw in 1e9 B/s, and `#wrong`, first out of place and then in place; they are indexed from the right. `#wrong` is N/A without a
check.

Source: NVIDIA/nccl-tests, src/common.cu and doc/PERFORMANCE.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hwsim.records import dataclass
from hwsim_calibrate.fit.machine_file import quantity
from hwsim_calibrate.logs.knee import MIN_SIZES, fit_knee
from hwsim_calibrate.logs.log import Log
from hwsim_calibrate.logs.options import LogOptions
from hwsim_calibrate.logs.result import Result, part

NAMES: Final = {  # program -> collective
    "all_reduce": "all-reduce", "all_gather": "all-gather", "reduce_scatter": "reduce-scatter", "broadcast": "broadcast",
    "alltoall": "all-to-all", "sendrecv": "send", "reduce": "reduce", "gather": "gather", "scatter": "scatter",
    "hypercube": "hypercube",
}  # fmt: skip
_PROGRAM: Final = re.compile(rf"(?<!concluded: )\b({'|'.join(NAMES)})_perf(?:_mpi)?\b")
_RANK: Final = re.compile(r"^#\s+Rank\s+(\d{1,7})\b")
_ROW: Final = re.compile(
    r"^\s*\d+\s+\d+\s+\S+(?:\s+\S+){7,}\s*$|^\s*\d+\s+\d+\s+(?:u?int\w*|float\w*|double|half|bf\w*|fp8\w*)\s"
)
_OPENS: Final = re.compile(r"^#\s*(?:Collective test starting|nThread\b|Avg bus bandwidth|Out of bounds)")
_GRAPH: Final = re.compile(r"graph:\s*[1-9]")
MIN_COLUMNS: Final = 10  # size, count and twice four
_ROUNDED: Final = 0.006  # GB/s: half of the last digit of algbw
_HINT: Final = "expected lines of `size count type redop root time algbw busbw #wrong`, with times in us"


@dataclass(frozen=True, slots=True)
class Run:
    """A test of one collective.

    Args:
        log: the log.
        line: line of the first row.
        name: the collective by its title; "": unknown.
        ranks: number of GPUs; 0: unknown.
        rows: (bytes, seconds, bus bandwidth in B/s).
        graphs: whether CUDA graphs launch it.
    """

    log: Log
    line: int
    name: str
    ranks: int
    rows: list[tuple[float, float, float]]
    graphs: bool

    def __str__(self) -> str:
        return f"{self.name or 'a collective'}{f' of {self.ranks} ranks' if self.ranks else ''}"


def collectives_of(logs: Sequence[Log]) -> list[str]:
    """Return the distinct collectives of the titles in the logs."""
    return list(dict.fromkeys(run.name for log in logs for run in runs_of(log) if run.name))


def is_log(log: Log) -> bool:
    """Return whether a log has rows of a test."""
    return bool(log.sections(_OPENS, _ROW))


def fit(logs: Sequence[Log], options: LogOptions) -> Result:
    """Fit the overheads of a library. The file that uses the part sets `efficiency`, which depends on the rate of the links."""
    runs = [run for log in logs for run in runs_of(log)]
    rest: list[Run] = []
    if options.collective:
        is_untitled = options.collective in NAMES.values() and all(run.name != options.collective for run in runs)
        name = "" if is_untitled else options.collective
        rest = [run for run in runs if run.name != name]
        runs = [replace(run, name=options.collective) for run in runs if run.name == name]
    if not runs:
        found = ", ".join(dict.fromkeys(run.name or "an unknown collective" for run in rest))
        raise logs[0].wrong(0, f"the log has no {options.collective}: it has {found}", f"supported: {', '.join(NAMES.values())}")
    first = runs[0]
    for run in runs[1:]:
        if not run.name:
            hint = "if all tests are of one collective, use --collective all-reduce"
            raise run.log.wrong(run.line, "the collective of one of several tests is unknown", hint)
        if str(run) != str(first):
            message = f"the test is of {run}, but {first.log.name} {'starts with' if first.log is run.log else 'is of'} {first}"
            hint = f"select with --collective {run.name or first.name}" if run.name != first.name else "import them separately"
            raise run.log.wrong(run.line, message, hint)
    points = [(size, seconds) for run in runs for size, seconds, _ in run.rows]
    bus, graphs = max(rate for run in runs for _, _, rate in run.rows), any(run.graphs for run in runs)
    if len({size for size, _ in points}) < MIN_SIZES:
        message = f"the log has {len(points)} sizes: expected at least {MIN_SIZES}"
        raise logs[0].wrong(0, message, "run the test with -b 8 -e 8G")
    curve = fit_knee(points)
    notes = (
        f"{first}: {quantity(curve.rate, 'B/s')} algorithm bandwidth for long messages, "
        f"bus bandwidth {quantity(bus, 'B/s')}; fitted to {curve}. "
        "Set `efficiency` to the bus bandwidth over the bandwidth of the links."
    )
    return part(
        "nccl-tests", "overheads", f"nccl-tests, {first}, out of place{', CUDA graphs' if graphs else ''}",
        {"start": curve.number("start", "s"), "knee": curve.number("knee", "B")}, notes=notes, rows=curve.rows(points, ""),
        left=list(dict.fromkeys(f"{run}: not selected by --collective" for run in rest)),
    )  # fmt: skip


def runs_of(log: Log) -> list[Run]:
    """Return the tests of a log."""
    sections = log.sections(_OPENS, _ROW)
    if not any(len(text.split()) >= MIN_COLUMNS for section in sections for _, text in section.rows):
        raise log.nothing("nccl-tests", _HINT)
    runs = []
    for section in sections:
        rows = [row for line, text in section.rows if (row := _row(log, line, text)) is not None]
        program = section.find(_PROGRAM)
        ranks = max((int(match[1]) + 1 for _, text in section.head if (match := _RANK.match(text))), default=0)
        name = NAMES[program[1]] if program else ""
        if rows:
            runs.append(Run(log, section.rows[0][0], name, ranks, rows, section.find(_GRAPH) is not None))
    if not runs:
        raise log.wrong(sections[0].rows[0][0], "no row transfers any bytes", _HINT)
    return runs


def _row(log: Log, line: int, text: str) -> tuple[float, float, float] | None:
    """Return (bytes, seconds, bus bandwidth in B/s) out of place; None for 0 bytes."""
    cells = text.split()
    if len(cells) < MIN_COLUMNS:
        raise log.wrong(line, f"the row has only {len(cells)} columns", _HINT)
    size, (time, rate, bus, wrong) = log.number(cells[0], "a size", line, zero=True), cells[-8:-4]
    if size <= 0:
        return None
    if wrong.isdigit() and int(wrong) > 0:
        raise log.wrong(line, f"the test computed {wrong} wrong values", "use the log of a correct run")
    seconds = log.number(time, "a time", line) * 1e-6
    claimed, computed = log.number(rate, "algbw", line, zero=True), size / seconds * 1e-9
    if abs(claimed - computed) > _ROUNDED + 0.05 * computed:
        raise log.wrong(line, f"algbw is {rate} GB/s, but {size:,.0f} B in {time} us are {computed:.3g} GB/s", _HINT)
    return size, seconds, log.number(bus, "busbw", line, zero=True) * 1e9
