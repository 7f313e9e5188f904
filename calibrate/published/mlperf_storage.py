"""MLPerf Storage v1.0: samples a second that emulated accelerators get from a storage system.

A submission adds accelerators until they would be idle for more than the rules allow (10 % for 3D U-Net and ResNet-50, 30 % for
CosmoFlow): what is reported is the accelerators' own rate times that least utilisation, and says little of the storage but that
it kept up.  Nothing is fitted: the time of a batch is what the benchmark's configuration makes an accelerator sleep.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Final

from calibrate.published.parts import table
from calibrate.published.score import Miss, Score, group_median, worst_of

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


def scores(data: Path) -> tuple[Score, ...]:
    """Group median over the submissions' systems, and the mean over workloads and accelerators."""
    rows = [miss for row in table(data / "validation" / "05_storage.csv") if (miss := _miss(row)) is not None]
    middle, tail = group_median(rows)
    kinds: dict[str, list[float]] = {}
    for miss in rows:
        kinds.setdefault(miss.row.split(" ", 1)[1], []).append(miss.error)
    medians = ", ".join(f"{kind} {statistics.median(errors):.1%}" for kind, errors in sorted(kinds.items()))
    return (
        Score(
            name="samples a second, MLPerf Storage v1.0",
            metric="group median",
            value=middle,
            bound=0.04,
            rows=len(rows),
            half="not fitted",
            worst=worst_of(rows, lambda _: "more accelerators could have been added: they were idle less than the rules allow"),
            notes=f"90th percentile {tail:.1%}; medians: {medians}; the rows test the accelerators, not the disks",
        ),
    )


def _miss(row: dict[str, str]) -> Miss | None:
    if row["metric"] != "samples_per_s" or row["flag"] or not row["n_accel"]:
        return None
    device = next((name for name in ("a100", "h100") if name in row["notes"]), "")
    known = _BATCH.get((row["workload"], device))
    if known is None:
        return None
    batch, seconds, least = known
    predicted = int(row["n_accel"]) * batch / seconds * least
    return Miss(
        f"{row['id']} {row['workload']} {device}",
        predicted,
        float(row["value"]),
        f"{row['hardware']} {row['source'].split('@')[0]}",
    )
