"""Parser of OSU micro-benchmarks, which become curves of MPI operations.

Each row has a size in bytes and a latency in us or a bandwidth in 1e6 B/s; more columns (`-f`) may follow. The title names the
operation. Operations without a curve in hwsim (one-sided, non-blocking, multi-pair) are omitted.

Source: MVAPICH, OSU Micro-Benchmarks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hwsim_calibrate.logs.knee import MIN_SIZES, fit_knee
from hwsim_calibrate.logs.log import Log, Section
from hwsim_calibrate.logs.options import LogOptions
from hwsim_calibrate.logs.result import Result, part

_ROW: Final = re.compile(r"^\s*\d+\s+\d+[\d.,]*(?:\s|$)")
_TITLE: Final = re.compile(r"^#\s*OSU\s+(.*?)\s*(?:\bv\d[\d.]*\s*)?$", re.IGNORECASE)
_MEMORY: Final = re.compile(r"^MPI-(\w+) ", re.IGNORECASE)
OPERATIONS: Final = {  # title between `OSU MPI` and `Test` -> operation
    "latency": "send", "bandwidth": "stream", "bi-directional bandwidth": "stream-both", "allreduce latency": "all-reduce",
    "allgather latency": "all-gather", "all-to-all personalized exchange latency": "all-to-all", "broadcast latency": "broadcast",
    "reduce latency": "reduce", "reduce_scatter latency": "reduce-scatter", "gather latency": "gather",
    "scatter latency": "scatter",
}  # fmt: skip


def fit(logs: Sequence[Log], options: LogOptions) -> Result:  # noqa: ARG001 (the interface of all tools)
    """Fit a curve to each operation."""
    points: dict[str, list[tuple[float, float]]] = {}
    left: dict[str, None] = {}
    memories: dict[str, None] = {}
    for log in logs:
        sections = log.sections(_TITLE, _ROW)
        if not any(section.find(_TITLE) for section in sections):
            raise log.nothing("the OSU benchmarks", "expected a line `# OSU MPI Latency Test` and rows of sizes and values")
        for section in sections:
            found = section.find(_TITLE)
            title = found[1] if found else ""
            memory = _MEMORY.match(title)
            memories |= {memory[1].upper() if memory else "host": None} if title else {}
            words = re.sub(r"^mpi(?:-\w+)? | test$", "", title.lower().replace("bi-directional  ", "bi-directional "))
            name = OPERATIONS.get(words, "") if title.lower().startswith("mpi") else ""
            if not name:
                left[f"'{title}': hwsim has no curve for this operation" if title else "rows before the first title"] = None
            elif times := _times(log, section, name):
                points.setdefault(name, []).extend(times)
    if len(memories) > 1:
        message = f"the buffers are in different memories: {' and '.join(memories)}"
        raise logs[-1].wrong(0, message, "import the logs of each memory separately")
    curves = {name: fit_knee(rows, rooted=True) for name, rows in points.items() if len({size for size, _ in rows}) >= MIN_SIZES}
    if not curves:
        hint = "; ".join([*left, f"supported operations: {', '.join(OPERATIONS)}"])
        raise logs[0].wrong(0, f"the log has no supported operation with at least {MIN_SIZES} sizes", hint)
    buffers = "".join(f", buffers of {name}" for name in memories if name != "host")
    keys = {
        name: {
            "start": curve.number("start", "s"), "bandwidth": curve.number("rate", "B/s"), "root": curve.number("root", "s"),
            "knee": curve.number("knee", "B"),
        }
        for name, curve in curves.items()
    }  # fmt: skip
    rows = [row for name, curve in curves.items() for row in curve.rows(points[name], name)]
    return part(
        "the OSU benchmarks", "mpi", f"OSU micro-benchmarks{buffers}", {"curves": keys}, rows=rows,
        notes="fitted to " + "; ".join(f"{name}: {curve}" for name, curve in curves.items()),
        left=[*left, *(f"{name}: {len(points[name])} sizes are too few for a curve" for name in points if name not in curves)],
    )  # fmt: skip


def _times(log: Log, section: Section, name: str) -> list[tuple[float, float]]:
    """Return (bytes, seconds) of the rows of a run."""
    times = []
    for line, text in section.rows:
        cells = text.split()
        if cells[-1].lower() == "fail":
            raise log.wrong(line, "the benchmark failed its validation", "use the log of a correct run")
        size, value = (log.number(cell, "a number of OSU", line, zero=True) for cell in cells[:2])
        if value > 0 and size > 0:
            times.append((size, size / (value * 1e6) if name.startswith("stream") else value * 1e-6))
    return times
