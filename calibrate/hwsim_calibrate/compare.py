"""Predicted against measured: a recorded workload on a machine file, op by op."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hwsim.api import simulated
from hwsim.demand import Cost
from hwsim.ops import OPS
from hwsim.results.coverage import MEASURED, mark_of
from hwsim.results.result import Result
from hwsim.spec import Mistake, SpecError, Warning, did_you_mean
from hwsim.spec.packed import read_json
from hwsim.ticks import FEMTO
from hwsim_calibrate.recording.writing import FORMAT

CLOCKS: Final = ("wall", "cpu")
NOTED: Final = 4  # reasons why calls are statements of their own
# How a predicted time is known: by functions measured on that machine; extrapolated from them; by formula, where the machine has
# no measured functions; uncalibrated, where it has none for this call; recorded: a busy op, which takes its measured time.
STANDINGS: Final = ("measured", "related", "extrapolated", "formula", "uncalibrated", "recorded")


@dataclass(frozen=True, slots=True)
class OpError:
    """Statements, in seconds of all their executions.

    Args:
        name: name of the statement; of several, one of them and their number.
        times: executions.
        measured, predicted: seconds.
        missed: sum over the statements of |predicted - measured|, seconds.
        standing: one of STANDINGS.
        why: why a time is uncalibrated or recorded.
    """

    name: str
    function: str
    line: str
    times: int
    measured: float
    predicted: float
    missed: float
    standing: str
    why: str = ""

    @property
    def error(self) -> float:
        """(predicted - measured) / measured."""
        return (self.predicted - self.measured) / self.measured if self.measured > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """All ops, the largest error first; outside: seconds of the script between the recorded calls."""

    machine: str
    workload: str
    ops: tuple[OpError, ...]
    clock: str
    outside: float
    notes: tuple[str, ...] = ()
    warnings: tuple[Warning, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def measured(self) -> float:
        """Measured seconds of all ops."""
        return sum(op.measured for op in self.ops)

    @property
    def predicted(self) -> float:
        """Predicted seconds of all ops."""
        return sum(op.predicted for op in self.ops)

    @property
    def error(self) -> float:
        """(predicted - measured) / measured of the total."""
        return self.predicted / self.measured - 1.0 if self.measured > 0 else 0.0

    @property
    def missed(self) -> float:
        """Seconds of error of all ops; an op that takes too long does not make up for one that is too fast."""
        return sum(op.missed for op in self.ops)

    def part(self, *standings: str) -> float:
        """Part of the measured time whose ops have one of these standings."""
        return sum(op.measured for op in self.ops if op.standing in standings) / (self.measured or 1.0)

    @property
    def uncalibrated(self) -> float:
        """Part of the measured time without a prediction from measured functions."""
        return self.part("uncalibrated", "recorded")


def load(path: str | Path) -> dict[str, Any]:
    """Read what `hwsim record` measured.

    Raises:
        SpecError: there is no such file, or it is no recording.
    """
    path = Path(path)
    try:
        recorded = read_json(path)
    except FileNotFoundError:
        raise SpecError.of(None, f"there is no file '{path}'", "hwsim record writes it next to the workload") from None
    if not isinstance(recorded, dict) or recorded.get("hwsim") != FORMAT:
        raise SpecError.of(None, f"{path}: no recording: its `hwsim` is not {FORMAT}")
    try:
        _check(recorded)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        message = f"{path}: no recording: {error.args[0]!r} is missing" if isinstance(error, KeyError) else f"{path}: {error}"
        raise SpecError.of(None, message, "hwsim record writes it; it is not to be edited") from None
    return recorded


def _check(recorded: Mapping[str, Any]) -> None:
    """Raise an error of Python for what is not as `hwsim record` writes it."""
    clock = str(recorded.get("clock", "wall"))
    if clock not in CLOCKS:
        raise ValueError(f"there is no clock '{clock[:40]}': wall, cpu")
    times = [recorded.get(f"{each}_s", 0.0) for each in CLOCKS]
    for row in recorded["ops"]:
        if not isinstance(row, dict) or not 0 <= int(row["times"]) < 1 << 53:
            raise ValueError("a row of `ops` is no op that ran")
        times += [row.get(f"{each}_total_s", 0.0) for each in CLOCKS] + [row[f"{clock}_total_s"]]
        if not all(isinstance(row[key], str | int) for key in ("name", "function", "line")):
            raise ValueError("name, function and line of an op are texts")
    if not all(isinstance(each, int | float) and 0 <= each < math.inf for each in times):
        raise ValueError("a time is not a number of seconds")
    if not all(isinstance(recorded.get(key, []), list) for key in ("notes", "written_out")):
        raise ValueError("notes are a list")


def compare(
    machine: str | Path | Any, workload: str | Path, recorded: Mapping[str, Any], *, settings: Mapping[str, object] | None = None,
    clock: str = "",
) -> Comparison:  # fmt: skip
    """Simulate a recorded workload, and compare each op with its recorded time.

    Args:
        clock: `wall` or `cpu`; default: the clock of the recording.

    Raises:
        SpecError: mistakes in the files, or a workload that is not the recorded one.
    """
    run = simulated(machine, workload, set=settings)  # with too little memory the times are those with enough
    rows = {str(row["name"]): row for row in recorded["ops"]}
    predicted = _predicted(run)
    _refuse_other_workload(rows, predicted, str(workload))
    chosen = clock or str(recorded.get("clock", "wall"))
    ops = sorted((_op(row, predicted[name], chosen) for name, row in rows.items()), key=lambda op: (-op.missed, op.name))
    notes = [str(note) for note in recorded.get("notes", ())]
    notes += [str(reason) for reason in recorded.get("written_out", ())][:NOTED]
    notes += [f"out of memory: {memory.verdict()}" for memory in run.memory if not memory.fits]
    outside = max(float(recorded.get(f"{chosen}_s", 0.0)) - sum(op.measured for op in ops), 0.0)
    return Comparison(run.machine, run.workload, tuple(ops), chosen, outside, tuple(notes), run.warnings, run.settings)


@dataclass(slots=True)
class _Prediction:
    times: int = 0
    seconds: float = 0.0
    standing: str = "formula"
    why: str = ""


def _predicted(run: Result) -> dict[str, _Prediction]:
    """Executions of each op, and its seconds in all, by name."""
    flat, predictions = run.timeline.flat, dict[str, _Prediction]()
    costs = [_standing(cost) for cost in flat.graph.costs]
    for number in run.ops.numbers.tolist():
        label = flat.graph.labels[flat.label[number]]
        if label.kind not in OPS:  # the thread that issues it and waits for it
            continue
        op = predictions.setdefault(label.name, _Prediction())
        op.times += 1
        op.seconds += int(run.timeline.end[number] - run.timeline.start[number]) / FEMTO
        if flat.cost[number] >= 0:
            op.standing, op.why = costs[flat.cost[number]]
    return predictions


def _standing(cost: Cost) -> tuple[str, str]:
    """(how well the seconds of a cost are known, function that was not measured)."""
    mark, function = mark_of(cost)
    return {MEASURED: "measured", "": "formula"}.get(mark, mark), function


def _op(row: Mapping[str, Any], op: _Prediction, clock: str) -> OpError:
    reason, measured = str(row.get("uncalibrated", "")), float(row[f"{clock}_total_s"])
    standing, why = ("recorded", reason) if reason else (op.standing, op.why)
    missed = abs(op.seconds - measured)
    name, function, line = (str(row[key]) for key in ("name", "function", "line"))
    return OpError(name, function, line, int(row["times"]), measured, op.seconds, missed, standing, why)


def _refuse_other_workload(rows: Mapping[str, Any], ops: Mapping[str, _Prediction], workload: str) -> None:
    """Raise SpecError unless the recording is of this workload."""
    new = [name for name in ops if name not in rows]
    missing = [name for name in rows if name not in ops]
    changed = [name for name, op in ops.items() if name in rows and op.times != int(rows[name]["times"])]
    mistakes = [
        *(Mistake(None, f"'{name}' of {workload} was not recorded", did_you_mean(name, [*rows])) for name in new[:1]),
        *(
            Mistake(None, f"'{name}' was recorded, but {workload} has no such op", did_you_mean(name, [*ops]))
            for name in missing[:1]
        ),
        *(
            Mistake(
                None, f"'{name}' was recorded {rows[name]['times']} times, and {workload} executes it {ops[name].times} times"
            )
            for name in changed[:1]
        ),
    ]
    if mistakes:
        raise SpecError(mistakes)
