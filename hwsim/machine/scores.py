"""Files of format `scores/1`: measured over predicted values of earlier runs, as written by `hwsim score -o FILE`.

    version: 0.9.0                     # of hwsim, whose predictions these are
    rows:
      - {regime: step/cnn, ratio: 1.06, run: dgx-h100 resnet50-dp, gpu: "1.98 PFLOP/s, 3.35 TB/s"}

A machine names its file in `scores:`. Rows of one run and regime count as one measurement, because they share its error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from hwsim.devices.gpu import Gpu
from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Tree, check_header, decode, field, read
from hwsim.spec.confined import refuse_outside
from hwsim.version import __version__

if TYPE_CHECKING:
    from hwsim.machine.model import Machine

FORMAT: Final = "scores/1"


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """A measured number with its prediction."""

    regime: str = field("kind of work, as in the table of prediction errors", example="step/cnn")
    ratio: float = field("measured / predicted time, or tokens/s of a service", exclusive_minimum=0.0)
    run: str = field("the run, as machine, workload and settings; rows of one run count as one measurement")
    quantity: str = field("measured quantity", default="")
    gpu: str = field("peak rate and memory bandwidth of the GPU; the row is used for machines with this GPU", default="")
    source: str = field("file of the measurement", default="")
    date: str | int | None = field("date of the measurement or of its file", default=None)


@dataclass(frozen=True, slots=True)
class ScoresFile:
    """Measured and predicted values of earlier runs."""

    version: str = field("version of hwsim that predicted the values", example=__version__)
    rows: tuple[ScoreRow, ...] = field("measurements", default=())


@dataclass(frozen=True, slots=True)
class Scores:
    """The measurements that apply to a machine.

    Args:
        file: name of their file.
        logs: ln(measured / predicted) of each run, by regime.
    """

    file: str
    logs: Mapping[str, tuple[float, ...]]


def scores_schema() -> dict[str, Any]:
    """Return the JSON Schema of files of scores."""
    from hwsim.spec.schema import json_schema

    return json_schema(ScoresFile, header=FORMAT)


def read_scores(named: Tree, gpu: str, mistakes: Mistakes) -> Scores | None:
    """Read the file that a machine names in `scores:`; add its mistakes.

    Args:
        named: value of the key: a path relative to the machine file.
        gpu: GPU of the machine, as from `gpu_name`.
        mistakes: list of mistakes.
    """
    if not isinstance(named.value, str):
        mistakes.add(named.place, f"expected the path of a file of scores, got {named.what()}", "scores: scores.yaml")
        return None
    path = Path(named.place.file).parent / named.value
    refuse_outside(path, named.place)
    if not path.is_file():
        mistakes.add(named.place, f"there is no file of scores '{named.value}'", "write it with: hwsim score ... -o scores.yaml")
        return None
    file = decode_scores(read(path), mistakes)
    return None if file is None else Scores(path.name, runs_by_regime(row for row in file.rows if row.gpu in ("", gpu)))


def decode_scores(tree: Tree, mistakes: Mistakes) -> ScoresFile | None:
    """Return the content of a file of scores; add its mistakes and return None if it has any."""
    file = decode(tree, ScoresFile, mistakes, ignore=("hwsim",)) if check_header(tree, FORMAT, mistakes) else None
    if file is not None and file.version != __version__:
        message = f"these predictions are of hwsim {file.version}, and this is {__version__}"
        mistakes.add(tree.key_place("version"), message, "repeat `hwsim score` with the measurements")
        return None
    return file


def runs_by_regime(rows: Iterable[ScoreRow]) -> dict[str, tuple[float, ...]]:
    """Return ln(measured / predicted) of each run by regime: the mean over the rows of the run.

    >>> rows = [ScoreRow("step/cnn", ratio, run) for ratio, run in ((1.0, "a"), (2.25, "b"), (4.0, "b"))]
    >>> [round(math.exp(log), 6) for log in runs_by_regime(rows)["step/cnn"]]
    [1.0, 3.0]
    """
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        found.setdefault(row.regime, {}).setdefault(row.run, []).append(math.log(row.ratio))
    return {regime: tuple(sorted(map(fmean, runs.values()))) for regime, runs in found.items()}


def gpu_name(machine: Machine) -> str:
    """Return the peak rate and memory bandwidth of a machine's GPUs, such as `989 TFLOP/s, 3.35 TB/s`; "" without a GPU."""
    models = [device.model for device in machine.samples(machine.devices_of("gpu"))]
    names = {
        f"{format_quantity(max(model.flop.values()), 'FLOP/s')}, {format_quantity(model.memory.bandwidth, 'B/s')}"
        for model in models
        if isinstance(model, Gpu)
    }
    return "; ".join(sorted(names))
