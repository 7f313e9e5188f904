"""Steps of training networks of convolutions, simulated: the largest of each source and device on several GPUs.

The same rows as in `cnn_training`, whose constants these are; what differs from the estimate is what a simulated step has:
kernels that wait for the host one by one, sums that share links, servers that update what they keep.
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
    """One row of each group."""
    misses = [Miss(row.said(), predicted(row), row.images, row.group) for row in largest(rows(data))]
    return (scored("images/s on several GPUs, simulated", misses, 0.10, why=reason),)


def largest(found: Sequence[Row]) -> list[Row]:
    """Of each group and number format the training on most GPUs, of several."""
    best: dict[tuple[str, str], Row] = {}
    for row in found:
        key = row.group, row.dtype
        if row.scored and row.gpus > 1 and (key not in best or (row.gpus, row.batch) > (best[key].gpus, best[key].batch)):
            best[key] = row
    return list(best.values())


def predicted(row: Row) -> float:
    """Images a second of all its GPUs, of a step among others."""
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
