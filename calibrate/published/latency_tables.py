"""The two tables of latency numbers in *Dive into Deep Learning*, compared with the library's machine of the same parts."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final

from hwsim import api
from hwsim.units import parse
from hwsim.views.latency.find import LatencyNumbers, LatencyRow
from hwsim.views.latency.find import find as latencies
from published.parts import declared
from published.score import Miss, Score, scored

MACHINE: Final = "d2l-latency"
ROWS: Final = declared("latency_tables")["rows"]
REASONS: Final = declared("latency_tables")["reasons"]


def scores(data: Path) -> tuple[Score, ...]:
    """Return the score of all rows of both tables."""
    found = latencies(api.load_machine(MACHINE))
    rows = []
    with (data / "oracles" / "d2l_latency_tables.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            key = next(key for begin, key in ROWS.items() if line["action"].startswith(begin))
            said = parse(line["time"].replace("μ", "u")).value
            rows.append(Miss(key, _seconds(found, key), said, line["table"], REASONS.get(key, "")))
    return (
        scored(
            "latency numbers of the book",
            rows,
            0.2,
            metric="largest relative error",
            why=lambda _: "rounded in the book",
        ),
    )


def _seconds(found: LatencyNumbers, key: str) -> float:
    row = found.row(key)
    return row.seconds if isinstance(row, LatencyRow) else 0.0
