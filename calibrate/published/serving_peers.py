"""Predictions of other simulators for the same stages of vLLM, as a table."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from hwsim.formats import percent
from published.parts import table
from published.serving_rows import read
from published.serving_runs import Found

OURS: Final = "hwsim"
METRICS: Final[Mapping[str, str]] = {"e2e_mean": "latency", "ttft_mean": "first_token"}
HEAD: Final = "| simulator | stages | latency, median error | latency, mean error | TTFT, median error |\n|---|---|---|---|---|"


class Said(NamedTuple):
    """A simulator's prediction of a stage: a quantity relative to its measurement."""

    simulator: str
    stage: tuple[str, ...]
    quantity: str
    ratio: float


def said(data: Path, found: Sequence[Found]) -> list[Said]:
    """Return predictions of hwsim and of other simulators for the same stages."""
    own = {run.served.key: run for run in found if run.served.key and not run.served.apart}
    out = [
        Said(OURS, key, quantity, run.predicted[quantity] / run.served.measured[quantity])
        for key, run in own.items()
        for quantity in METRICS.values()
    ]
    for row in table(read(data, "blis_peers.csv")):
        key, quantity = (row["set"], row["experiment"], row["stage_index"]), METRICS.get(row["metric_name"])
        if key in own and quantity is not None:
            out.append(Said(row["simulator"], key, quantity, float(row["predicted"]) / float(row["actual"])))
    return list(dict.fromkeys(out))


def as_table(rows: Iterable[Said]) -> str:
    """Return a table with one row per simulator, smallest error first."""
    by = _by(rows)
    lines = [
        f"| {name} | {len(errors['latency'])} | {_percent(statistics.median(errors['latency']))}"
        f" | {_percent(statistics.fmean(errors['latency']))}"
        f" | {_percent(statistics.median(errors['first_token'])) if errors['first_token'] else ''} |"
        for name, errors in sorted(by.items(), key=lambda each: statistics.median(each[1]["latency"]))
    ]
    return "\n".join([HEAD, *lines])


def _by(rows: Iterable[Said]) -> dict[str, dict[str, list[float]]]:
    """Return the error of each quantity, by simulator."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: {"latency": [], "first_token": []})
    for row in rows:
        found[row.simulator][row.quantity].append(abs(row.ratio - 1))
    return {name: errors for name, errors in found.items() if errors["latency"]}


def _percent(value: float) -> str:
    return percent(value, ".3g" if value < 10 else ".0f")
