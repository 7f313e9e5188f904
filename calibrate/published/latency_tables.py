"""The two tables of latency numbers in Dive into Deep Learning, beside the library's machine that has the text's parts."""

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
    """Every row of both tables."""
    found = latencies(api.load_machine(MACHINE))
    rows = []
    with (data / "oracles" / "d2l_latency_tables.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            key = next(key for begin, key in ROWS.items() if line["action"].startswith(begin))
            said = parse(line["time"].replace("μ", "u")).value
            rows.append(Miss(key, _seconds(found, key), said, line["table"], REASONS.get(key, "")))
    return (
        scored(
            "latency numbers of the text",
            rows,
            0.2,
            metric="worst |error| of a row",
            why=lambda _: "rounded in the text",
            notes=f"`hwsim latency {MACHINE}`, row by row; no row is outside. Parts are those the tables name. Of their numbers "
            "the clock, the latency of memory and of another socket's, a line from core to core, the way of a fabric's card "
            "to its CPU, and the switches of a data centre are fitted to rows of the tables. Floating-point arithmetic is "
            "the time until a result can be used, which a core here does not have: the machine's efficiency stands for it.",
        ),
    )


def _seconds(found: LatencyNumbers, key: str) -> float:
    row = found.row(key)
    return row.seconds if isinstance(row, LatencyRow) else 0.0
