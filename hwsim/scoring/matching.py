"""Each measured number with its prediction; every workload is simulated once per settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from hwsim.api import simulated
from hwsim.machine.scores import gpu_name
from hwsim.prepare import Source
from hwsim.scoring.answer import Pair, Scored
from hwsim.scoring.measurements import Measurement
from hwsim.scoring.predictions import Prediction, predictions
from hwsim.spec import Mistake, SpecError, did_you_mean

Progress = Callable[[int, int], None]


class PredictedRun(NamedTuple):
    """The predictions of one run by name, with the names of its machine, workload and settings, and the GPU."""

    machine: str
    workload: str
    settings: str
    gpu: str
    values: Mapping[str, Prediction]


def score(
    run: tuple[Source, Source | None] | Mapping[str, Any],
    measurements: Sequence[Measurement],
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the word of the command line)
    progress: Progress | None = None,
) -> Scored:
    """Set measurements beside the predictions of a run.

    Args:
        run: machine and workload (None: the workload that the logs state), or the document of a run (`Run.to_json()`).
        measurements: measured numbers.
        set: values to change in the files, as for `hwsim.simulate`.
        progress: callback with the numbers of completed and of all runs.

    Raises:
        SpecError: a file or a setting has mistakes, or the run does not predict a measured number.
    """
    groups: dict[str, list[Measurement]] = {}
    for measured in measurements:
        groups.setdefault(repr((measured.workload, sorted(measured.settings.items()))), []).append(measured)
    pairs: list[Pair] = []
    for done, group in enumerate(groups.values()):
        if progress is not None:
            progress(done, len(groups))
        predicted = _predicted(run, group[0], set or {})
        pairs += [_pair(measured, predicted) for measured in group]
    return Scored(tuple(sorted(pairs, key=lambda pair: -abs(math.log(pair.ratio)))))


def _predicted(
    run: tuple[Source, Source | None] | Mapping[str, Any], measured: Measurement, settings: Mapping[str, object]
) -> PredictedRun:
    """Return the predictions for a measurement and all others with its workload and settings."""
    if isinstance(run, Mapping):
        if measured.settings or settings:
            raise SpecError.of(measured.place, "settings cannot change a saved run", "name the machine and the workload instead")
        names = [str(run.get(key, "")) for key in ("machine", "workload", "settings", "gpu")]
        return PredictedRun(*names, predictions(run, "the run"))
    machine, workload = run[0], run[1] if measured.workload is None or run[1] is not None else measured.workload
    if workload is None:
        raise SpecError.of(measured.place, "this file does not state its workload", "hwsim score MACHINE WORKLOAD MEASUREMENTS")
    changed = {**settings, **measured.settings}
    try:
        found = simulated(machine, workload, set=changed)
    except SpecError as error:  # of a column of the table: at its row
        raise SpecError([_placed(mistake, measured) for mistake in error.mistakes]) from None
    named = " ".join(f"{path}={value}" for path, value in changed.items())
    gpu = "" if found.built is None else gpu_name(found.built)
    return PredictedRun(found.machine, found.workload, named, gpu, predictions(found.to_json(), "the run"))


def _placed(mistake: Mistake, measured: Measurement) -> Mistake:
    is_setting = measured.settings and mistake.place is not None and mistake.place.file == "--set"
    return replace(mistake, place=measured.place) if is_setting else mistake


def _pair(measured: Measurement, run: PredictedRun) -> Pair:
    prediction = run.values.get(measured.measure)
    if prediction is None:
        hint = did_you_mean(measured.measure, run.values) or f"it predicts {', '.join(run.values)}"
        raise SpecError.of(measured.place, f"the run predicts no '{measured.measure[:40]}'", hint)
    if measured.amount:
        prediction = prediction.rate(measured.amount / prediction.predicted, measured.dimension)
    value = measured.number(prediction.dimension)
    name = measured.shown or measured.measure
    return Pair(run.machine, run.workload, run.settings, name, value, prediction, measured.place.file, run.gpu)
