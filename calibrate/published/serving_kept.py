"""Stored simulations of all serving runs with their measurements, for the page and for `errors.yaml`.

Simulating all rows takes minutes. `python -m published.serving --data DIR --write` simulates them and writes the table, with
one line per scored run.
"""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hwsim.formats import percent
from hwsim.origins import Case
from published.residual import Residual, of_miss
from published.score import Miss
from published.serving_runs import Found

FILE: Final = Path(__file__).resolve().parent / "serving_kept.csv"
QUANTITIES: Final = ("first_token", "each_token", "latency", "tokens_per_s")
TOPICS: Final[Mapping[str, str]] = {"first_token": "ttft", "each_token": "tpot", "latency": "e2e", "tokens_per_s": "throughput"}
KINDS: Final[Mapping[str, str]] = {"dense": "dense", "MoE": "experts"}
STEPS: Final = tuple(0.25e-3 * index for index in range(-8, 21))  # s: candidates for additional host time per iteration,
API: Final = tuple(5e-3 * step for step in range(-10, 61))  # and per request


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A run: its name and properties, and (predicted, measured) by quantity, in seconds or tokens/s."""

    set: str
    row: str
    framework: str
    model: str
    gpu: str
    kind: str
    both: Mapping[str, tuple[float, float]]

    @property
    def group(self) -> str:
        return f"{self.framework}, {self.gpu}, {self.model}"

    @property
    def predicted(self) -> Mapping[str, float]:
        return {quantity: predicted for quantity, (predicted, _) in self.both.items()}

    def miss(self, quantity: str) -> Miss:
        return Miss(self.row, *self.both[quantity], self.group)


def kept(name: str, found: Found) -> Kept:
    """Return a run as stored; for closed loops, end-to-end latency is computed from TTFT and TPOT."""
    served = found.served
    both = {quantity: (found.predicted[quantity], served.measured[quantity]) for quantity in QUANTITIES if found.has(quantity)}
    tokens = _mean(served.infer.get("output"))
    if "latency" not in both and "clients" in str(served.infer.get("arrivals")) and {"first_token", "each_token"} <= set(both):
        first, each = both["first_token"], both["each_token"]
        both["latency"] = first[0] + (tokens - 1) * each[0], first[1] + (tokens - 1) * each[1]
    model = served.infer["model"]
    machine, gpu = served.machine
    return Kept(
        set=name,
        row=served.id,
        framework=str(served.infer["framework"]),
        model=str(model["use"]) if isinstance(model, Mapping) else str(model),
        gpu=gpu or machine,
        kind=KINDS[served.kind],
        both=both,
    )


def _mean(length: Any) -> float:
    """Return the average number of output tokens."""
    if isinstance(length, Mapping):
        return statistics.fmean(map(float, length.get("uniform", (1.0,))))
    return float(length or 1.0)


def write(rows: Iterable[Kept], path: Path = FILE) -> None:
    """Write the table."""
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        columns = [f"{quantity}{end}" for quantity in QUANTITIES for end in ("", "_measured")]
        out.writerow(["set", "row", "framework", "model", "gpu", "kind", *columns])
        for row in sorted(rows, key=lambda each: (each.set, each.group, each.row)):
            numbers = [f"{number:.4g}" for key in QUANTITIES for number in row.both.get(key, ())]
            cells = [cell for key in QUANTITIES for cell in ([numbers.pop(0), numbers.pop(0)] if key in row.both else ["", ""])]
            out.writerow([row.set, row.row, row.framework, row.model, row.gpu, row.kind, *cells])


def read(path: Path = FILE) -> list[Kept]:
    """Read the table."""
    found = []
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            both = {
                quantity: (float(row[quantity]), float(row[f"{quantity}_measured"])) for quantity in QUANTITIES if row[quantity]
            }
            names = {name: row[name] for name in ("set", "row", "framework", "model", "gpu", "kind")}
            found.append(Kept(**names, both=both))
    return found


def residuals(rows: Iterable[Kept]) -> Iterator[Residual]:
    """Return residuals of served runs: interpolated, with the model on this GPU held out, and with the GPU held out."""
    for row in rows:
        for quantity, (predicted, measured) in row.both.items():
            miss = Miss(row.row, predicted, measured, row.group)
            left: tuple[tuple[Case, str], ...] = (("known", ""), ("source", f"{row.model}, {row.gpu}"), ("device", row.gpu))
            for case, unit in left:
                yield of_miss(miss, TOPICS[quantity], row.kind, case, unit=unit, work=f"{row.set}: {row.row}", device=row.gpu,
                              rate=quantity == "tokens_per_s")  # fmt: skip


# ---- models and GPUs held out of the host constants ----


def left_out(rows: Sequence[Kept], of: Callable[[Kept], str]) -> str:
    """Return a table of median errors of TPOT and TTFT, with shipped host constants and with the unit held out."""
    out = [
        "| held out | rows | TPOT error | TPOT error, held out | TTFT error | TTFT error, held out |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    whole: list[tuple[float, ...]] = []
    for unit in sorted({of(row) for row in rows}):
        mine = [row for row in rows if of(row) == unit]
        found = list(_without(rows, mine))
        whole += found
        out.append(_line(unit, found))
    return "\n".join([*out, _line("all", whole)])


def _line(unit: str, found: Sequence[tuple[float, ...]]) -> str:
    columns = ([error for error in column if not math.isnan(error)] for column in zip(*found, strict=True))
    shown = [percent(statistics.median(column), ".1f") if column else "" for column in columns]
    return f"| {unit} | {len(found)} | {' | '.join(shown)} |"


def _without(rows: Sequence[Kept], mine: Sequence[Kept]) -> Iterator[tuple[float, ...]]:
    """Return errors of TPOT and TTFT of some rows: with shipped constants, and with host constants of the other rows."""
    names = {row.row for row in mine}
    for framework in {row.framework for row in mine}:
        others = [row for row in rows if row.framework == framework and row.row not in names]
        told = [row for row in others if "first_token" in row.both]
        step, api = _best(others, "each_token", STEPS), _best(told, "first_token", API)
        for row in mine:
            if row.framework == framework:
                found = []
                for quantity, more in (("each_token", step), ("first_token", api)):
                    predicted, measured = row.both.get(quantity, (math.nan, 1.0))
                    found += [abs(predicted / measured - 1), abs(max(predicted + more, 0.0) / measured - 1)]
                yield tuple(found)


def _best(rows: Sequence[Kept], quantity: str, among: Sequence[float]) -> float:
    """Return the additional time in seconds with the least median error; 0 without rows."""
    if not rows:
        return 0.0

    def missed(more: float) -> tuple[float, float]:
        middle = statistics.median(abs((row.both[quantity][0] + more) / row.both[quantity][1] - 1) for row in rows)
        return middle, abs(more)

    return min(among, key=missed)
