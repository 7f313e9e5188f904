"""Run-level error of training steps: their spread beyond the errors of their kernels."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from hwsim.models.kernel_errors import kernel_errors
from hwsim.origins import Case
from hwsim.results.error_weights import MANY, Weight, Weights
from hwsim.results.errors import ErrorTable
from hwsim.results.interval import interval, work_mix
from published import llm_rows, llm_training
from published.residual import Residual

NORMAL: Final = 0.6745  # median of |x| of a standard normal distribution
JUDGED: Final[tuple[Case, ...]] = ("known", "source", "generation")
TRANSFORMERS: Final = ("sharded", "tp", "fp8")


def own(found: Sequence[Residual], data: Path, known: ErrorTable) -> dict[str, float]:
    """Return the standard deviation by case; cases without rows take that of the nearest one.

    Args:
        known: the errors of the parts.
    """
    rows = [residual for residual in found if residual.topic == "step" and residual.regime in TRANSFORMERS]
    out: dict[str, float] = {}
    for case in JUDGED:
        mine = [abs(row.log) for row in rows if row.case == case]
        seen = float(np.median(mine)) / NORMAL if mine else 0.0
        parts, kinds = map(statistics.median, zip(*_composed(data, known, case), strict=True))
        out[case] = round(max(0.01, math.sqrt(max(0.0, seen**2 - parts**2)) / kinds), 3)
    source, far = max(out["known"], out["source"]), max(out.values())
    return {
        "known": out["known"],
        "source": source,
        "device": far,
        "generation": far,
        "outside": round(2 * far, 3),
        "stated": 0.0,
    }


def _composed(data: Path, known: ErrorTable, case: Case) -> Iterator[tuple[float, float]]:
    """Return for each published step, with all parts of `case`: (standard deviation from the errors of its kinds of work, their
    mix).
    """
    model = llm_training.library()
    for row in llm_rows.rows(data):
        step = model.step(row)
        shares: Mapping[str, float] = step.shares
        weights = tuple(
            Weight(doubt._replace(case=case), MANY) for doubt in kernel_errors(shares, row.cluster.gpu, row.plan.dtype)
        )
        total = math.fsum(weight.doubt.seconds for weight in weights)
        parts = interval(Weights(weights, 0.0, total), errors=known).parts
        yield math.sqrt(math.fsum(part.variance for part in parts)), work_mix(parts)
