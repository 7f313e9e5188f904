"""CNN training steps, simulated: the run on the most GPUs of each source and device.

Rows and constants are those of `cnn_training`. A simulated step also has kernels that wait for the host, collectives that share
links, and parameter servers that update their weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hwsim import api
from published.cnn_rows import Row, machine_of, rows
from published.cnn_training import reason
from published.score import Miss, Score, scored


def scores(data: Path) -> tuple[Score, ...]:
    """Return the score of one row per group."""
    misses = [Miss(row.said(), predicted(row), row.images, row.group) for row in largest(rows(data))]
    return (scored("images/s on several GPUs, simulated", misses, 0.10, why=reason),)


def largest(found: Sequence[Row]) -> list[Row]:
    """Return the multi-GPU training with the most GPUs for each group and number format."""
    best: dict[tuple[str, str], Row] = {}
    for row in found:
        key = row.group, row.dtype
        if row.scored and row.gpus > 1 and (key not in best or (row.gpus, row.batch) > (best[key].gpus, best[key].batch)):
            best[key] = row
    return list(best.values())


def predicted(row: Row) -> float:
    """Return the throughput of all GPUs in a steady state, in images/s."""
    train: dict[str, Any] = {
        "model": row.network,
        "gpus": row.gpus,
        "global_batch": row.gpus * row.batch,
        "dtype": row.dtype,
        "framework": row.software,
    }
    if row.exchange == "ps-cpu":
        train["synchronise"] = {"by": "parameter-server", "server": "cpu0"}
    elif row.exchange == "ps-sharded":
        train["synchronise"] = {"by": "parameter-server", "server": [f"gpu{index}" for index in range(row.gpus)]}

    workload = {"hwsim": "workload/1", "train": {**train, "steps": 2}}
    changes = {"machine.gpu.use": row.gpu} if row.machine else None
    run = api.simulate(row.machine or machine_of("", row.gpu), workload, set=changes)
    return run.trainings[0].rate
