"""nccl-tests and rccl-tests: the start of a collective and its knee, out of place.

Columns differ by collective and version (size, count, type, redop, root or fewer), and end alike: time in us, algbw and busbw in
1e9 B/s and `#wrong` out of place, then in place. They are counted from the right; `#wrong` is N/A without a check.

Source: NVIDIA/nccl-tests, src/common.cu and doc/PERFORMANCE.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hwsim.records import dataclass
from hwsim_calibrate.fit.writing import quantity
from hwsim_calibrate.logs.asked import Ask
from hwsim_calibrate.logs.knee import LEAST, knee_of
from hwsim_calibrate.logs.log import Log
from hwsim_calibrate.logs.result import Result, part

NAMES: Final = {  # of its programs
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
COLUMNS: Final = 10  # at least: size, count and twice four
_ROUNDED: Final = 0.006  # GB/s: half of the last digit of algbw
_HINT: Final = "it has lines of `size count type redop root time algbw busbw #wrong`, times in us"


@dataclass(frozen=True, slots=True)
class Run:
    """A test.

    Args:
        line: of its first row. name: the collective by the title before it; "": none. ranks: GPUs; 0: not said.
        rows: (bytes, seconds, B/s on the bus). graphs: whether CUDA graphs launch it.
    """

    log: Log
    line: int
    name: str
    ranks: int
    rows: list[tuple[float, float, float]]
    graphs: bool

    def __str__(self) -> str:
        return f"{self.name or 'a collective'}{f' among {self.ranks}' if self.ranks else ''}"


def collectives_of(logs: Sequence[Log]) -> list[str]:
    """The collectives that titles name, each once, in the order of the logs."""
    return list(dict.fromkeys(run.name for log in logs for run in _runs(log) if run.name))


def fit(logs: Sequence[Log], ask: Ask) -> Result:
    """The overheads of a library. `efficiency` needs the rate of the links: it is left to the file that uses the part."""
    runs = [run for log in logs for run in _runs(log)]
    rest: list[Run] = []
    if ask.collective:
        name = ask.collective if any(run.name == ask.collective for run in runs) or ask.collective not in NAMES.values() else ""
        rest = [run for run in runs if run.name != name]
        runs = [replace(run, name=ask.collective) for run in runs if run.name == name]
    if not runs:
        has = ", ".join(dict.fromkeys(run.name or f"one of {', '.join(NAMES.values())}" for run in rest))
        raise logs[0].wrong(0, f"there is no {ask.collective} in it: it has {has}")
    first = runs[0]
    for run in runs[1:]:
        if not run.name:
            hint = "say it, if all are the same: --collective all-reduce"
            raise run.log.wrong(run.line, "several tests, and no title says of which collective one is", hint)
        if str(run) != str(first):
            message = f"{run}, and {first.log.name} {'begins with' if first.log is run.log else 'is'} {first}"
            hint = "a part is of one collective and one number of ranks"
            hint += f": --collective {run.name or first.name}" if run.name != first.name else ": a file for each"
            raise run.log.wrong(run.line, message, hint)
    points = [(size, seconds) for run in runs for size, seconds, _ in run.rows]
    bus, graphs = max(rate for run in runs for _, _, rate in run.rows), any(run.graphs for run in runs)
    if len({size for size, _ in points}) < LEAST:
        raise logs[0].wrong(0, f"{len(points)} sizes of nccl-tests: a curve needs {LEAST}", "run it from -b 8 to -e 8G")
    curve = knee_of(points)
    called = str(first)
    notes = (
        f"{called}: {quantity(curve.rate, 'B/s')} of bytes over time for long messages, "
        f"bus bandwidth {quantity(bus, 'B/s')}; fitted to {curve}. "
        "Set `efficiency` to the bus bandwidth over what the links carry."
    )
    return part(
        "nccl-tests", "overheads", f"nccl-tests, {called}, out of place{', CUDA graphs' if graphs else ''}",
        {"start": curve.number("start", "s"), "knee": curve.number("knee", "B")}, notes=notes, rows=curve.rows(points, ""),
        left=list(dict.fromkeys(f"{run}: --collective takes another one" for run in rest)),
    )  # fmt: skip


def _runs(log: Log) -> list[Run]:
    sections = log.sections(_OPENS, _ROW)
    if not any(len(text.split()) >= COLUMNS for section in sections for _, text in section.rows):
        raise log.nothing("nccl-tests", _HINT)
    runs = []
    for section in sections:
        rows = [row for line, text in section.rows if (row := _row(log, line, text)) is not None]
        program = section.said(_PROGRAM)
        ranks = max((int(match[1]) + 1 for _, text in section.head if (match := _RANK.match(text))), default=0)
        name = NAMES[program[1]] if program else ""
        if rows:
            runs.append(Run(log, section.rows[0][0], name, ranks, rows, section.said(_GRAPH) is not None))
    if not runs:
        raise log.wrong(sections[0].rows[0][0], "no row of nccl-tests moves a byte", _HINT)
    return runs


def _row(log: Log, line: int, text: str) -> tuple[float, float, float] | None:
    """(bytes, seconds, B/s on the bus) out of place; None of no bytes."""
    cells = text.split()
    if len(cells) < COLUMNS:
        raise log.wrong(line, f"a row of {len(cells)} columns, cut off", _HINT)
    size, (time, rate, bus, wrong) = log.number(cells[0], "a size", line, zero=True), cells[-8:-4]
    if size <= 0:
        return None
    if wrong.isdigit() and int(wrong) > 0:
        raise log.wrong(line, f"{wrong} wrong values: the run did not compute what it should", "its times are not used")
    seconds = log.number(time, "a time", line) * 1e-6
    claimed, computed = log.number(rate, "algbw", line, zero=True), size / seconds * 1e-9
    if abs(claimed - computed) > _ROUNDED + 0.05 * computed:
        raise log.wrong(line, f"algbw is {rate} GB/s, but {size:,.0f} B in {time} us are {computed:.3g} GB/s", _HINT)
    return size, seconds, log.number(bus, "busbw", line, zero=True) * 1e9
