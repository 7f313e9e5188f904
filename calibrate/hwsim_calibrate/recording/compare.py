"""What a machine file says a recorded workload takes, beside what it took."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hwsim import api
from hwsim.demand import Cost
from hwsim.ops import OPS
from hwsim.results.coverage import MARKS
from hwsim.results.result import Result
from hwsim.results.timeline import FEMTO
from hwsim.spec import Mistake, SpecError, Warning, did_you_mean
from hwsim_calibrate.recording.writing import FORMAT

NOTED: Final = 4  # reasons why calls are statements of their own
RECORDED: Final = "recorded"  # how well the time of an op is known
FORMULA: Final = "formula"
MEASURED: Final = "measured"


@dataclass(frozen=True, slots=True)
class OpError:
    """A statement: seconds of all its executions, measured and predicted.

    standing: `measured` (by functions measured on that machine), `extrapolated` from them, `formula` (the machine has none),
    `uncalibrated` (it has, but not this one), `recorded` (busy: no prediction, it takes what it took).  why: of the last two.
    """

    name: str
    function: str
    line: str
    times: int
    measured: float
    predicted: float
    standing: str
    why: str = ""

    @property
    def off(self) -> float:
        """Seconds too many (or, negative, too few)."""
        return self.predicted - self.measured

    @property
    def error(self) -> float:
        """As a part of what was measured."""
        return self.off / self.measured if self.measured > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """All ops, those that miss most first.  Seconds; outside: of the script, between the recorded calls."""

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
        return sum(each.measured for each in self.ops)

    @property
    def predicted(self) -> float:
        return sum(each.predicted for each in self.ops)

    @property
    def error(self) -> float:
        """Of the total, as a part of what was measured."""
        return self.predicted / self.measured - 1.0 if self.measured > 0 else 0.0

    @property
    def missed(self) -> float:
        """Seconds by which the ops are off, whether too many or too few: they do not make up for each other."""
        return sum(abs(each.off) for each in self.ops)

    def part(self, *standings: str) -> float:
        """Part of the measured time of ops with one of these standings."""
        return sum(each.measured for each in self.ops if each.standing in standings) / (self.measured or 1.0)

    @property
    def uncalibrated(self) -> float:
        """Part of the measured time that nothing measured on the machine stands for."""
        return self.part("uncalibrated", RECORDED)


def load(path: str | Path) -> dict[str, Any]:
    """A file of what was measured.

    Raises:
        SpecError: there is none, or it is none.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
        found = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    except FileNotFoundError:
        raise SpecError([Mistake(None, f"there is no file '{path}'", "hwsim record writes it beside the workload")]) from None
    except (ValueError, EOFError, gzip.BadGzipFile) as error:
        raise SpecError([Mistake(None, f"{path}: no JSON: {error}")]) from None
    if not isinstance(found, dict) or found.get("hwsim") != FORMAT:
        raise SpecError([Mistake(None, f"{path}: no recording: its `hwsim` is not {FORMAT}")])
    return found


def compare(
    machine: str | Path | Any, workload: str | Path, recorded: Mapping[str, Any], *, settings: Mapping[str, object] | None = None,
    clock: str = "",
) -> Comparison:  # fmt: skip
    """Simulate the workload and put the time of each op beside what was recorded.

    clock: wall or cpu (default: as the recording says).

    Raises:
        SpecError: the mistakes of the files; a workload that is not the recorded one.
    """
    try:
        run: Result = api.simulate(machine, workload, set=settings, expect=False)
    except api.ExpectationFailed as failed:  # too little memory: the times are those with enough
        run = failed.run
    rows = {str(row["name"]): row for row in recorded["ops"]}
    told = _predicted(run)
    _refuse_others(rows, told, str(workload))
    chosen = clock or str(recorded.get("clock", "wall"))
    ops = [_op(row, told.get(name), chosen) for name, row in rows.items()]
    ops.sort(key=lambda each: (-abs(each.off), each.name))
    inside = sum(each.measured for each in ops)
    notes = [str(each) for each in recorded.get("notes", ())]
    notes += [str(each) for each in recorded.get("written_out", ())][:NOTED]
    notes += [f"out of memory: {each.verdict()}" for each in run.memory if not each.fits]
    outside = max(float(recorded.get(f"{chosen}_s", 0.0)) - inside, 0.0)
    return Comparison(run.machine, run.workload, tuple(ops), chosen, outside, tuple(notes), run.warnings, run.settings)


@dataclass(slots=True)
class _Told:
    times: int = 0
    seconds: float = 0.0
    standing: str = FORMULA
    why: str = ""


def _predicted(run: Result) -> dict[str, _Told]:
    """Of each name, how often it was executed and how long that took."""
    flat, found = run.timeline.flat, dict[str, _Told]()
    costs = [_standing(cost) for cost in flat.graph.costs]
    for number in run.ops.numbers.tolist():
        label = flat.graph.labels[flat.label[number]]
        if label.kind not in OPS:  # the thread that issues it and waits for it
            continue
        told = found.setdefault(label.name, _Told())
        told.times += 1
        told.seconds += int(run.timeline.end[number] - run.timeline.start[number]) / FEMTO
        if flat.cost[number] >= 0:
            told.standing, told.why = costs[flat.cost[number]]
    return found


def _standing(cost: Cost) -> tuple[str, str]:
    labels = {term.label: term.formula for term in cost.why}
    for mark in MARKS:
        if mark in labels:
            return mark, labels[mark].partition(": ")[2]
    return (MEASURED, "") if "kernel" in labels else (FORMULA, "")


def _op(row: Mapping[str, Any], told: _Told | None, clock: str) -> OpError:
    reason = str(row.get("uncalibrated", ""))
    measured, found = float(row[f"{clock}_total_s"]), told or _Told()
    return OpError(
        name=str(row["name"]),
        function=str(row["function"]),
        line=str(row["line"]),
        times=int(row["times"]),
        measured=measured,
        predicted=found.seconds,
        standing=RECORDED if reason else found.standing,
        why=reason or found.why,
    )


def _refuse_others(rows: Mapping[str, Any], told: Mapping[str, _Told], workload: str) -> None:
    """A recording of another workload tells nothing of this one."""
    found: list[Mistake] = []
    foreign = [name for name in told if name not in rows]
    missing = [name for name in rows if name not in told]
    changed = [name for name, each in told.items() if name in rows and each.times != int(rows[name]["times"])]
    if foreign:
        found.append(Mistake(None, f"'{foreign[0]}' of {workload} was not recorded", did_you_mean(foreign[0], [*rows])))
    if missing:
        found.append(
            Mistake(None, f"'{missing[0]}' was recorded, but {workload} has no such op", did_you_mean(missing[0], [*told]))
        )
    if changed:
        name = changed[0]
        often, here = rows[name]["times"], told[name].times
        found.append(Mistake(None, f"'{name}' was recorded {often} times, and {workload} executes it {here} times"))
    if found:
        raise SpecError(found)
