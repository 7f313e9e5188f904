"""Simulations of measured serving runs by `infer:`, and their errors."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import hwsim
from hwsim.spec import SpecError
from published.score import Miss
from published.serving_rows import Line, Served, machine_with

HASHED: Final = 512  # tokens of a prefix block in a file


@dataclass(frozen=True, slots=True)
class Found:
    """A measured run and its simulation: the same quantities in the same units."""

    served: Served
    predicted: Mapping[str, float]

    def miss(self, quantity: str) -> Miss:
        """Return one quantity as a row of a score."""
        return Miss(self.served.id, self.predicted[quantity], self.served.measured[quantity], self.served.group)

    def has(self, quantity: str) -> bool:
        return quantity in self.predicted and quantity in self.served.measured


def workload(served: Served, folder: Path) -> dict[str, Any]:
    """Return the simulated workload; requests with known arrivals are a file in the folder."""
    infer = dict(served.infer)
    if served.trace:
        infer["arrivals"] = {"trace": str(_written(served.trace, folder))}
    return {"hwsim": "workload/1", "infer": infer}


def simulated(served: Served) -> Found:
    """Return a run with its simulation.

    Raises:
        SpecError: the library cannot simulate this run.
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            run = hwsim.simulate(machine_with(served), workload(served, Path(folder)), interval=False)
        except hwsim.OutOfMemory as full:  # its times are reported nevertheless
            run = full.run
    service = run.serving[0]
    said: dict[str, float] = {"latency": service.latency.mean, "tokens_per_s": service.tokens_per_s * served.copies}
    for name, spread in (("first_token", service.first_token), ("each_token", service.each_token)):
        if spread is not None:
            said[name] = spread.mean
    return Found(served, said)


def all_of(rows: Iterable[Served]) -> tuple[list[Found], dict[str, str]]:
    """Return the simulations of runs, and the reasons for runs that cannot be simulated."""
    found, refused = [], {}
    for row in rows:
        try:
            found.append(simulated(row))
        except SpecError as error:
            refused[row.id] = str(error.mistakes[0])
    return found, refused


def _written(lines: Sequence[Line], folder: Path) -> Path:
    """Write a file of requests, with prefix blocks if prompts repeat."""
    if not any(line.key >= 0 for line in lines):
        path = folder / "requests.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("arrival", "prompt", "output"))
            writer.writerows((repr(line.arrival), line.prompt, line.output) for line in lines)
        return path
    path = folder / "requests.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for line in lines:
            blocks = [1000 * (line.key + 1) + index for index in range(-(-line.prompt // HASHED))]
            said = {
                "timestamp": 1e3 * line.arrival,
                "input_length": line.prompt,
                "output_length": line.output,
                "hash_ids": blocks,
            }
            file.write(json.dumps(said) + "\n")
    return path
