"""MLPerf Storage v1.0: samples a second that emulated accelerators get from a storage system.

A submission adds accelerators until they would be idle for more than the rules allow (10 % for 3D U-Net and ResNet-50, 30 % for
CosmoFlow): what is reported is the accelerators' own rate times that least utilisation, and says little of the storage but that
it kept up.  Nothing is fitted: the time of a batch is what the benchmark's configuration makes an accelerator sleep.
The second score simulates it: the pipeline of each accelerator, with as many readers as the configuration has, and one file
system that delivers what keeps the accelerators just busy enough.  Of more than four accelerators four are simulated, on
their part of it.
"""

from __future__ import annotations

import statistics
from functools import cache
from pathlib import Path
from typing import Any, Final

import hwsim
from published.parts import table
from published.score import Miss, Score, group_median, worst_of

# (workload, accelerator): samples of a batch, seconds of a batch, least utilisation.
# Source: mlcommons/storage v1.0, storage-conf/workload/*.yaml and rules.
_BATCH: Final = {
    ("unet3d", "a100"): (7, 0.636, 0.9),
    ("unet3d", "h100"): (7, 0.323, 0.9),
    ("cosmoflow", "a100"): (1, 0.00551, 0.7),
    ("cosmoflow", "h100"): (1, 0.0035, 0.7),
    ("resnet50", "a100"): (400, 0.435, 0.9),
    ("resnet50", "h100"): (400, 0.224, 0.9),
}

_READERS: Final = {"unet3d": (146600628, 4), "cosmoflow": (2828486, 4), "resnet50": (114660, 8)}  # bytes of a sample, readers
MOST: Final = 4  # accelerators that are simulated


def scores(data: Path) -> tuple[Score, ...]:
    """Group median over the submissions' systems, and the mean over workloads and accelerators."""
    return tuple(_score(data, simulated=simulated) for simulated in (False, True))


def _score(data: Path, *, simulated: bool) -> Score:
    rows = [miss for row in table(data / "validation" / "05_storage.csv") if (miss := _miss(row, simulated)) is not None]
    middle, tail = group_median(rows)
    kinds: dict[str, list[float]] = {}
    for miss in rows:
        kinds.setdefault(miss.row.split(" ", 1)[1], []).append(miss.error)
    medians = ", ".join(f"{kind} {statistics.median(errors):.1%}" for kind, errors in sorted(kinds.items()))
    return Score(
        name="samples a second, MLPerf Storage v1.0" + (", simulated" if simulated else ""),
        metric="group median",
        value=middle,
        bound=0.04,
        rows=len(rows),
        half="not fitted",
        worst=worst_of(rows, lambda _: "more accelerators could have been added: they were idle less than the rules allow"),
        notes=f"90th percentile {tail:.1%}; medians: {medians}; the rows test the accelerators, not the disks",
    )


@cache
def _busy(workload: str, device: str, accelerators: int) -> float:
    """Part of the time that so many accelerators work, as simulated."""
    batch, seconds, least = _BATCH[workload, device]
    size, readers = _READERS[workload]
    machine = {
        "hwsim": "machine/1",
        "parts": {
            "cpu": {"kind": "cpu", "use": "xeon-8480"},
            "gpu": {"kind": "gpu", "use": "h100-sxm", "count": accelerators},
            "disk": {"kind": "filesystem", "bandwidth": f"{accelerators * batch * size / seconds * least} B/s"},
        },
    }
    stages: list[dict[str, Any]] = [
        {"name": "read", "at_once": readers, "ahead": 2 * readers, "do": [{"read": {"from": "disk"}}]},
        {"busy": {"name": "step", "device": "$self", "time": f"{seconds} s"}},
    ]
    dataset = {"samples": 10**6, "bytes": f"{size} B"}
    pipeline = {"each": "gpu*", "batch": batch, "batches": 200, "dataset": dataset, "stages": stages}
    run = hwsim.simulate(machine, {"hwsim": "workload/1", "pipeline": pipeline})
    return float(statistics.mean(each["epochs"][0]["busy"] for each in run.to_json()["pipelines"]))


def _miss(row: dict[str, str], simulated: bool) -> Miss | None:
    if row["metric"] != "samples_per_s" or row["flag"] or not row["n_accel"]:
        return None
    device = next((name for name in ("a100", "h100") if name in row["notes"]), "")
    known = _BATCH.get((row["workload"], device))
    if known is None:
        return None
    batch, seconds, least = known
    number = int(row["n_accel"])
    busy = _busy(row["workload"], device, min(number, MOST)) if simulated else least
    predicted = number * batch / seconds * busy
    return Miss(
        f"{row['id']} {row['workload']} {device}",
        predicted,
        float(row["value"]),
        f"{row['hardware']} {row['source'].split('@')[0]}",
    )
