"""nccl-tests and rccl-tests: the start of a collective and its knee, out of place.

Columns differ by collective and version (size, count, type, redop, root or fewer), and end alike: time in us, algbw and busbw in
1e9 B/s and `#wrong` out of place, then in place. They are counted from the right; `#wrong` is N/A without a check.

Source: NVIDIA/nccl-tests, src/common.cu and doc/PERFORMANCE.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

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
_PROGRAM: Final = re.compile(rf"(?<!concluded: )\b({'|'.join(NAMES)})_perf\b")
_RANK: Final = re.compile(r"^#\s+Rank\s+(\d+)\b")
_ROW: Final = re.compile(
    r"^\s*\d+\s+\d+\s+\S+(?:\s+\S+){7,}\s*$|^\s*\d+\s+\d+\s+(?:u?int\w*|float\w*|double|half|bf\w*|fp8\w*)\s"
)
_OPENS: Final = re.compile(r"^#\s*(?:Collective test starting|nThread\b|Avg bus bandwidth|Out of bounds)")
_GRAPH: Final = re.compile(r"graph:\s*[1-9]")
COLUMNS: Final = 10  # at least: size, count and twice four
_ROUNDED: Final = 0.006  # GB/s: half of the last digit of algbw
_HINT: Final = "it has lines of `size count type redop root time algbw busbw #wrong`, times in us"


def fit(logs: Sequence[Log], ask: Ask) -> Result:  # noqa: ARG001 (all tools are asked alike)
    """The overheads of a library. `efficiency` needs the rate of the links: it is left to the file that uses the part."""
    points: list[tuple[float, float]] = []
    runs: dict[tuple[str, int], Log] = {}
    bus, graphs = 0.0, False
    for log in logs:
        sections = log.sections(_OPENS, _ROW)
        if not any(len(text.split()) >= COLUMNS for section in sections for _, text in section.rows):
            raise log.nothing("nccl-tests", _HINT)
        for section in sections:
            of_run = [row for line, text in section.rows if (row := _row(log, line, text)) is not None]
            found = section.said(_PROGRAM)
            name, ranks = found[1] if found else "", len({match[1] for _, text in section.head if (match := _RANK.match(text))})
            runs.setdefault((name, ranks), log)
            if len(runs) > 1:
                (name_of_first, ranks_of_one), first = next(iter(runs.items()))
                message = f"{_called(name, ranks)}, and {first.name} {'begins with' if first is log else 'is'} "
                message += _called(name_of_first, ranks_of_one)
                hint = "fit the logs of one collective and one number of ranks together: a part for each"
                raise log.wrong(section.rows[0][0], message, hint)
            points += [(size, seconds) for size, seconds, _ in of_run]
            bus = max(bus, *(rate for _, _, rate in of_run), 0.0)
            graphs |= section.said(_GRAPH) is not None
    if len({size for size, _ in points}) < LEAST:
        raise logs[0].wrong(0, f"{len(points)} sizes of nccl-tests: a curve needs {LEAST}", "run it from -b 8 to -e 8G")
    curve = knee_of(points)
    called = _called(*next(iter(runs)))
    notes = (
        f"{called}: {quantity(curve.rate, 'B/s')} of bytes over time for long messages, "
        f"bus bandwidth {quantity(bus, 'B/s')}; fitted to {curve}. "
        "Set `efficiency` to the bus bandwidth over what the links carry."
    )
    return part(
        "nccl-tests", "overheads", f"nccl-tests, {called}, out of place{', CUDA graphs' if graphs else ''}",
        {"start": curve.number("start", "s"), "knee": curve.number("knee", "B")}, notes=notes, rows=curve.rows(points, ""),
    )  # fmt: skip


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


def _called(name: str, ranks: int) -> str:
    return f"{NAMES.get(name, 'a collective')}{f' among {ranks}' if ranks else ''}"
