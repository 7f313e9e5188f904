"""Each measured number with its prediction; every workload is simulated once per settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from hwsim.api import simulated
from hwsim.machine.scores import gpu_name
from hwsim.prepare import Source
from hwsim.records import dataclass
from hwsim.scoring.answer import Pair, Scored
from hwsim.scoring.predictions import Prediction, predictions
from hwsim.spec import Place, SpecError, did_you_mean
from hwsim.units import BANDWIDTH, RATE, Dimension, UnitError, parse_as

WANTED: Final = "name it: hwsim score MACHINE WORKLOAD MEASUREMENTS; or the model of a server log: --model NAME"
RunNames = tuple[str, str, str, str]


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
        if dimension is RATE and text.endswith("/s"):
            text = text.rpartition(" ")[0]
        try:
            value = parse_as(text, dimension) if text[-1:].isalpha() or text.endswith("%") else float(text)
        except UnitError as error:
            raise SpecError.of(self.place, f"{self.measure}: {error.message}", error.hint) from None
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value <= 0:
            raise SpecError.of(self.place, f"{self.measure}: expected a number above 0, got '{text[:40]}'")
        return value


def score(
    machine: Source | Mapping[str, Any],
    workload: Source | None,
    measurements: str | Path | Sequence[Measurement | str | Path],
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the word of the command line)
    model: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> Scored:
    """Compare measurements with the predictions of a run.

    Args:
        machine: machine, or the document of a run (`Run.to_json()`).
        workload: workload; None for a document, or for the workload that the logs state.
        measurements: files as for `hwsim score`, or measured numbers.
        set: values to change in the files, as for `hwsim.simulate`.
        model: model of a server log, by name or file.
        progress: callback with the numbers of completed and of all runs.

    Raises:
        SpecError: a file or a setting has mistakes, or the run does not predict a measured number.
    """
    read = import_module("hwsim_calibrate.logs.measurements").read
    given = [measurements] if isinstance(measurements, str | Path) else measurements
    rows = [row for item in given for row in ([item] if isinstance(item, Measurement) else read(Path(item), model))]
    groups: dict[str, list[Measurement]] = {}
    for measured in rows:
        groups.setdefault(repr((measured.workload, sorted(measured.settings.items()))), []).append(measured)
    pairs: list[Pair] = []
    for done, group in enumerate(groups.values()):
        if progress is not None:
            progress(done, len(groups))
        names, predicted = _predicted(machine, workload, group[0], set or {})
        pairs += [_pair(names, measured, predicted) for measured in group]
    return Scored(tuple(sorted(pairs, key=lambda pair: -abs(math.log(pair.ratio)))))


def _predicted(
    machine: Source | Mapping[str, Any], workload: Source | None, measured: Measurement, settings: Mapping[str, object]
) -> tuple[RunNames, Mapping[str, Prediction]]:
    """Return the names of the run of a measurement (machine, workload, settings, GPU), and its predictions."""
    changed, workload = {**settings, **measured.settings}, workload or measured.workload
    if isinstance(machine, Mapping) and str(machine.get("hwsim")).startswith("result/"):
        if changed:
            raise SpecError.of(measured.place, "settings cannot change a saved run", "name the machine and the workload instead")
        return (machine["machine"], machine["workload"], _words(machine["set"]), ""), predictions(machine)
    if workload is None:
        raise SpecError.of(measured.place, "this file does not state a workload of the library", WANTED)
    try:
        found = simulated(machine, workload, set=changed)
    except SpecError as error:
        if not measured.settings:
            raise
        raise SpecError([replace(mistake, place=measured.place) for mistake in error.mistakes]) from None
    gpu = "" if found.built is None else gpu_name(found.built)
    return (found.machine, found.workload, _words(changed), gpu), predictions(found.to_json())


def _words(settings: Mapping[str, object]) -> str:
    return " ".join(f"{path}={value}" for path, value in settings.items() if path != "machine.scores")


def _pair(names: RunNames, measured: Measurement, values: Mapping[str, Prediction]) -> Pair:
    prediction = values.get(measured.measure)
    if prediction is None:
        hint = did_you_mean(measured.measure, values) or f"it predicts {', '.join(values)}"
        raise SpecError.of(measured.place, f"the run predicts no '{measured.measure[:40]}'", hint)
    if measured.amount:
        prediction = prediction.rate(measured.amount / prediction.predicted, measured.dimension)
    value = measured.number(prediction.dimension)
    return Pair(*names, measured.shown or measured.measure, value, prediction, measured.place.file)
