"""The OSU benchmarks: curves of MPI from one or several of them, one after another in a file or in files.

Sizes in bytes, then a latency in us or a bandwidth in 1e6 B/s; more columns (`-f`) follow. The title says the operation; one that
no curve of hwsim is of (one-sided, non-blocking, several pairs at once) is left out.

Source: MVAPICH, OSU Micro-Benchmarks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hwsim_calibrate.logs.asked import Ask
from hwsim_calibrate.logs.knee import LEAST, knee_of
from hwsim_calibrate.logs.log import Log, Section
from hwsim_calibrate.logs.result import Result, part

_ROW: Final = re.compile(r"^\s*\d+\s+\d+[\d.,]*(?:\s|$)")
_TITLE: Final = re.compile(r"^#\s*OSU\s+(.*?)\s*(?:\bv\d[\d.]*\s*)?$", re.IGNORECASE)
_MEMORY: Final = re.compile(r"^MPI-(\w+) ", re.IGNORECASE)
OPERATIONS: Final = {  # by what stands between `OSU MPI` and `Test`
    "latency": "send", "bandwidth": "stream", "bi-directional bandwidth": "stream-both", "allreduce latency": "all-reduce",
    "allgather latency": "all-gather", "all-to-all personalized exchange latency": "all-to-all", "broadcast latency": "broadcast",
    "reduce latency": "reduce", "reduce_scatter latency": "reduce-scatter", "gather latency": "gather",
    "scatter latency": "scatter",
}  # fmt: skip


def fit(logs: Sequence[Log], ask: Ask) -> Result:  # noqa: ARG001 (all tools are asked alike)
    """A curve for each operation."""
    points: dict[str, list[tuple[float, float]]] = {}
    left: dict[str, None] = {}
    memories: dict[str, None] = {}
    for log in logs:
        sections = log.sections(_TITLE, _ROW)
        if not any(section.said(_TITLE) for section in sections):
            raise log.nothing("the OSU benchmarks", "it has a line `# OSU MPI Latency Test` and lines of sizes and values")
        for section in sections:
            found = section.said(_TITLE)
            title = found[1] if found else ""
            memory = _MEMORY.match(title)
            memories |= {memory[1].upper() if memory else "host": None} if title else {}
            words = re.sub(r"^mpi(?:-\w+)? | test$", "", title.lower().replace("bi-directional  ", "bi-directional "))
            name = OPERATIONS.get(words, "") if title.lower().startswith("mpi") else ""
            if not name:
                left[f"'{title}', which no curve of MPI is of" if title else "rows before the first title"] = None
            elif times := _times(log, section, name):
                points.setdefault(name, []).extend(times)
    if len(memories) > 1:
        raise logs[-1].wrong(0, f"buffers in the memory of {' and of '.join(memories)}", "fit the logs of one memory together")
    curves = {name: knee_of(rows, rooted=True) for name, rows in points.items() if len({size for size, _ in rows}) >= LEAST}
    if not curves:
        hint = "; ".join([*left, f"there are {', '.join(OPERATIONS)}"])
        raise logs[0].wrong(0, f"no OSU benchmark that hwsim knows with {LEAST} sizes", hint)
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
        left=[*left, *(f"{name}: {len(points[name])} sizes are too few" for name in points if name not in curves)],
    )  # fmt: skip


def _times(log: Log, section: Section, name: str) -> list[tuple[float, float]]:
    """(bytes, seconds) of a run."""
    times = []
    for line, text in section.rows:
        cells = text.split()
        if cells[-1].lower() == "fail":
            raise log.wrong(line, "the benchmark computed wrong values", "its times are not used")
        size, value = (log.number(cell, "a number of OSU", line, zero=True) for cell in cells[:2])
        if value > 0 and size > 0:
            times.append((size, size / (value * 1e6) if name.startswith("stream") else value * 1e-6))
    return times
