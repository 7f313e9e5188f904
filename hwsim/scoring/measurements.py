"""Measured numbers: tables in CSV, and step times of profiles.

A table has the columns `measure` and `value`, optionally `unit`, and any settings of the run, such as `machine.gpu.count`:

    measure,value,unit,batch
    step,34.9,ms,32
    step,66.0,ms,64

Values without a unit are in SI units; a time may also be written as `34.9 ms`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from hwsim.comparing.measured import csv_rows
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, SpecError
from hwsim.units import BANDWIDTH, RATE, Dimension, UnitError, parse_as

COLUMNS: Final = ("measure", "value", "unit")
WANTED: Final = "measure, value; optionally unit, and settings such as machine.gpu.count"
MEANT: Final = {"makespan": "time", "step_time": "step", "e2e": "latency_mean", "throughput": "tokens_per_s"}


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measured number.

    Args:
        measure: name of the prediction, such as `step` or `ttft_mean`; "time" with an `amount` for a rate.
        value: number in SI units, or a text with its unit.
        place: place in its file.
        settings: settings of the run, by path.
        amount: for a rate: bytes or operations during the predicted time; 0 for other numbers.
        dimension: dimension of this rate.
        shown: name of the quantity, if it differs from `measure`.
        workload: workload that the log states; None for the workload of the command.
    """

    measure: str
    value: float | str
    place: Place
    settings: Mapping[str, str] = field(default_factory=dict)
    amount: float = 0.0
    dimension: Dimension = BANDWIDTH
    shown: str = ""
    workload: Mapping[str, Any] | None = None

    def number(self, dimension: Dimension) -> float:
        """Return the value in SI units.

        Raises:
            SpecError: it is not a number above 0 of this dimension.
        """
        text = str(self.value)
        try:
            value = float(text)
        except ValueError:
            try:
                value = parse_as(
                    f"{text.rpartition(' ')[0]} 1/s" if dimension is RATE and text.endswith("/s") else text, dimension
                )
            except UnitError as error:
                raise SpecError.of(self.place, f"{self.measure}: {error.message}", error.hint) from None
        if not math.isfinite(value) or value <= 0:
            raise SpecError.of(self.place, f"{self.measure}: expected a number above 0, got '{text[:40]}'")
        return value


def read_csv(path: Path) -> list[Measurement]:
    """Read a table of measurements.

    Raises:
        SpecError: the table has mistakes; with their lines.
    """
    mistakes, found = Mistakes(), []
    for row, place in csv_rows(path, mistakes, [("measure",), ("value",)], WANTED):
        cells = {name.casefold() if name.casefold() in COLUMNS else name: cell for name, cell in row.items()}
        if missing := [name for name in COLUMNS[:2] if name not in cells]:
            mistakes.add(place, f"the row has no `{missing[0]}`", f"expected columns: {WANTED}")
            continue
        value = f"{cells['value']} {cells['unit']}" if "unit" in cells else cells["value"]
        settings = {name: cell for name, cell in cells.items() if name not in COLUMNS}
        found.append(Measurement(name_of(cells["measure"]), value, place, settings))
    if not found and not len(mistakes):
        mistakes.add(Place(str(path), 1, 1), "no measurements", f"expected columns: {WANTED}")
    mistakes.raise_if_any()
    return found


def name_of(text: str) -> str:
    """Return the name of a prediction from its spelling in a table.

    >>> name_of("step_s"), name_of("tokens/s"), name_of("TTFT mean"), name_of("step time")
    ('step', 'tokens_per_s', 'ttft_mean', 'step')
    """
    name = text.casefold().replace(" ", "_").replace("/s", "_per_s")
    name = name if name.endswith("_per_s") else name.removesuffix("_s")
    return MEANT.get(name, name)


def read_trace(path: Path) -> list[Measurement]:
    """Return the average step time of a profile: a file, or a folder with one per rank."""
    from hwsim.comparing.recorded.sides import of_recording
    from hwsim.importers.formats import files_of, format_of, read

    files = files_of([path])
    name = format_of(files[0]) if files else None
    if name is None:
        raise SpecError.of(Place(str(path), 0, 0), "the file is not a profile of a run")
    return [Measurement("step", of_recording(read(name, files)).step_s, Place(str(path), 0, 0))]
