"""A row that was measured, what the model says of it, and what the model had seen when it said so."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hwsim.demand import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual:
    """One prediction beside a measurement.

    Args:
        topic, regime: of the model that is judged, "product" and "big": `errors.yaml` has a line for each pair and case.
        case: what was left out when the constants were found. "known": other rows of the same device and source were seen;
            "source": none of the source; "device": none of the device, though twins of it; "generation": none of its
            generation; "outside": none of anything alike.
        unit: what was left out (the fold for "known"): rows of a unit miss together.
        group: source x device x software; every group counts alike however many rows it has.
        row: its name; the same row may stand under several cases.
        work: what was done, without the device: rows of equal work on two devices make a ratio.
        device: of the library.
        predicted, measured: seconds.
        spread: what the spreads of the constants alone would make of ln(predicted), one standard deviation; None if not known.
    """

    topic: str
    regime: str
    case: Case
    unit: str
    group: str
    row: str
    work: str
    device: str
    predicted: float
    measured: float
    spread: float | None = None

    @property
    def log(self) -> float:
        """ln(predicted / measured): above 0 where the prediction is too slow."""
        return math.log(self.predicted / self.measured)
