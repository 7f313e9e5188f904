"""Predicted against measured, of rows that no number was fitted to, as a picture: all, by hardware, by family of models.

python -m published.pictures --data DIR FILE.png
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from hwsim.formats import percent
from published import bert, cnn_rows, cnn_training, inference, llm_rows, llm_training

FEWEST: Final = 3  # rows of a device or a family that is shown
_FAMILY: Final = re.compile(r"(?:: ?| )([A-Za-z]+(?:-?v?\d)?)")
_DEVICE: Final = re.compile(r"(A100|H100|H200|V100|P100|K80|L40S?|A40|T4|A10|MI\d+X?)[^,;]*")


class Point(NamedTuple):
    """One row: what kind, on what, of which family, seconds (of CNNs images per second)."""

    kind: str
    device: str
    family: str
    predicted: float
    measured: float


def points(data: Path) -> Iterator[Point]:
    """Held-out rows of training and inference."""
    trained = llm_training.missed(llm_training.library(), llm_training.parted(llm_rows.rows(data))[1])
    for miss in trained:
        yield _point("LLM training step [s]", miss.row, miss.group, miss.predicted, miss.measured)
    for miss in inference.missed(inference.parted(inference.rows(data))[1]):
        yield _point("LLM inference [s]", miss.row, miss.group, miss.predicted, miss.measured)
    for row in bert.parted(bert.rows(data))[1]:
        yield _point("BERT inference [s]", "x: BERT", row.group, bert.seconds_of(row), row.seconds)
    for each in cnn_training.parted(cnn_rows.rows(data))[1]:
        yield _point("CNN training [images/s]", each.said(), each.group, cnn_training.predicted(each), each.images)


def _point(kind: str, row: str, group: str, predicted: float, measured: float) -> Point:
    family, device = _FAMILY.search(row), _DEVICE.search(group)
    return Point(
        kind, device.group(0).strip() if device else "other", family.group(1) if family else "other", predicted, measured
    )


def draw(found: Iterable[Point], path: Path) -> None:
    """Write the picture."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    rows = list(found)
    figure, (whole, device, family) = plt.subplots(1, 3, figsize=(15, 6), layout="constrained")
    for kind in dict.fromkeys(point.kind for point in rows):
        own = [point for point in rows if point.kind == kind]
        error = statistics.median(abs(math.log(point.predicted / point.measured)) for point in own)
        name = f"{kind}: {len(own)} rows, median {percent(error, '.1f')}"
        whole.loglog([point.measured for point in own], [point.predicted for point in own], ".", label=name, alpha=0.6)
    ends = [min(point.measured for point in rows), max(point.measured for point in rows)]
    whole.loglog(ends, ends, "k-", linewidth=0.8)
    whole.set(xlabel="measured", ylabel="predicted", title="rows that nothing was fitted to")
    whole.legend(fontsize=8)
    for axis, title, key in ((device, "by hardware", "device"), (family, "by family of models", "family")):
        sorts = _sorted(rows, key)
        axis.boxplot([[100 * (each - 1) for each in ratios] for ratios in sorts.values()], vert=False, whis=(10, 90))
        axis.set_yticks(range(1, len(sorts) + 1), [f"{name} ({len(ratios)})" for name, ratios in sorts.items()], fontsize=8)
        axis.axvline(0, color="k", linewidth=0.8)
        axis.set(xlabel="predicted over measured - 1 [%]", title=title, xlim=(-60, 60))
    figure.savefig(path, dpi=110)


def _sorted(rows: Iterable[Point], key: str) -> Mapping[str, list[float]]:
    found: dict[str, list[float]] = {}
    for point in rows:
        found.setdefault(getattr(point, key), []).append(point.predicted / point.measured)
    return {name: found[name] for name in sorted(found, reverse=True) if len(found[name]) >= FEWEST}


def main() -> None:
    """Draw what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of published measurements")
    parser.add_argument("file", type=Path, help="a .png or .svg")
    arguments = parser.parse_args()
    draw(points(arguments.data), arguments.file)


if __name__ == "__main__":
    main()
