"""The OSU benchmarks: curves of MPI from one or several of them, one after another in a file or in files.

Sizes in bytes, then a latency in us or a bandwidth in 1e6 B/s; more columns (`-f`) follow.

Source: MVAPICH, OSU Micro-Benchmarks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hwsim_calibrate.logs.asked import Ask
from hwsim_calibrate.logs.knee import LEAST, knee_of
from hwsim_calibrate.logs.log import Log
from hwsim_calibrate.logs.result import Result, part

_ROW: Final = re.compile(r"^\s*(\d+)\s+([\d.]+)\b")
_TITLE: Final = re.compile(r"^#\s*OSU\s+(.*)$")
OPERATIONS: Final = {
    "allreduce": "all-reduce", "allgather": "all-gather", "alltoall": "all-to-all", "bcast": "broadcast", "reduce": "reduce",
    "latency": "send", "bandwidth": "stream", "bi-directional": "stream-both",
}  # fmt: skip


def fit(logs: Sequence[Log], ask: Ask) -> Result:  # noqa: ARG001 (all tools are asked alike)
    """A curve for each operation."""
    points: dict[str, list[tuple[float, float]]] = {}
    for log in logs:
        title, seen = "", False
        for line, text in log.numbered():
            if match := _TITLE.match(text):
                words = match[1].lower().replace("-directional bandwidth", "-directional")
                title, seen = (
                    next((OPERATIONS[each] for each in sorted(OPERATIONS, key=len, reverse=True) if each in words), ""),
                    True,
                )
            elif title and (row := _ROW.match(text)):
                size, value = (log.number(cell, "a number of OSU", line, zero=True) for cell in row.groups())
                if value > 0 and size > 0:
                    seconds = size / (value * 1e6) if title.startswith("stream") else value * 1e-6
                    points.setdefault(title, []).append((size, seconds))
        if not seen:
            hint = "it has a line `# OSU MPI Latency Test` and lines of sizes and values"
            raise log.nothing("the OSU benchmarks", hint)
    curves = {name: knee_of(rows, rooted=True) for name, rows in points.items() if len({size for size, _ in rows}) >= LEAST}
    if not curves:
        raise logs[0].wrong(0, f"no OSU benchmark that hwsim knows with {LEAST} sizes", f"there are {', '.join(OPERATIONS)}")
    keys = {
        name: {
            "start": curve.number("start", "s"), "bandwidth": curve.number("rate", "B/s"), "root": curve.number("root", "s"),
            "knee": curve.number("knee", "B"),
        }
        for name, curve in curves.items()
    }  # fmt: skip
    rows = [row for name, curve in curves.items() for row in curve.rows(points[name], name)]
    return part(
        "the OSU benchmarks", "mpi", "OSU micro-benchmarks", {"curves": keys}, rows=rows,
        notes="fitted to " + "; ".join(f"{name}: {curve}" for name, curve in curves.items()),
        left=[f"{name}: {len(points[name])} sizes are too few" for name in points if name not in curves],
    )  # fmt: skip
