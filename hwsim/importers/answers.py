"""The prediction of a recorded run on another machine, as text and JSON: the run, and GPU time by kind of work and operator.

The interval covers predicted times only. Recorded times on the critical path have no measured error, so their share is printed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, replace
from typing import Any, Final

import numpy as np

from hwsim import engine
from hwsim.formats import format_quantity, format_share
from hwsim.importers.findings import path_shares
from hwsim.importers.predicting import OperatorTime, Predicted
from hwsim.importers.replay import RecordingReplay
from hwsim.importers.steps import replayed, steps
from hwsim.records import dataclass
from hwsim.results.error_weights import Weight, Weights, weights_of
from hwsim.results.interval import Interval, interval
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO
from hwsim.views.interval.say import EXACT, TITLE, factor_text, line, range_text
from hwsim.views.kit.lines import LABEL, labelled_lines, wrap_lines
from hwsim.views.kit.table import Column, align_columns

MAX_OPERATORS: Final = 6  # rows of the table
MAX_KEPT: Final = 4  # operators listed for one reason
MAX_RANKS: Final = 4  # ranks listed with their GPU
MAX_RECORDED: Final = 0.8  # share of the critical path with recorded times, from which on a run has no interval
SAME: Final = 0.005  # relative difference below which no factor is printed
MIN_SHARE: Final = 0.05  # share of the critical path; smaller ones are not printed


@dataclass(frozen=True, slots=True)
class WorkSum:
    """The time of a kind of work or of an operator, summed over all ranks (s).

    Args:
        name: operator or kind of work.
        kind: kind of work.
        count: number of calls.
        recorded: recorded time.
        time: time on the machine.
        kept: part of `time` that keeps its recorded value.
        range: 90 % interval of `time`, with recorded parts as exact.
    """

    name: str
    kind: str
    count: int
    recorded: float
    time: float
    kept: float
    range: Interval

    @property
    def ratio(self) -> float | None:
        """Predicted over recorded time of the predicted part; None if it has no recorded time."""
        predicted = self.recorded - self.kept
        return (self.time - self.kept) / predicted if predicted > 0 else None


@dataclass(frozen=True, slots=True)
class StepTime:
    """The time of one step of one rank (s): recorded, replayed by rules, and predicted on the machine."""

    name: str
    rank: int
    recorded_s: float
    replayed_s: float
    predicted_s: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """A recorded run on another machine.

    Args:
        machine: name of the machine.
        devices: GPU of each rank.
        ranks: number of each rank.
        recorded: time from the first start to the last end (s).
        replayed: time of the replay by rules (s).
        makespan: time on the machine, with its interval.
        gpu: sum of all GPU ops.
        kinds: sums by kind of work, longest first.
        operators: sums by operator, longest first.
        kept: operators that keep their recorded time.
        assumed: assumptions, in sentences.
        clocked: whether the files have start times; without them the time of the recorded run is unknown.
        steps: times of the steps.
        stated: shares of the critical path with recorded times, by kind of op.
    """

    machine: str
    devices: tuple[str, ...]
    ranks: tuple[int, ...]
    recorded: float
    replayed: float
    makespan: Interval
    gpu: WorkSum
    kinds: tuple[WorkSum, ...]
    operators: tuple[WorkSum, ...]
    kept: tuple[OperatorTime, ...]
    assumed: tuple[str, ...]
    clocked: bool = True
    steps: tuple[StepTime, ...] = ()
    stated: Mapping[str, float] = field(default_factory=dict)

    @property
    def range(self) -> Interval | None:
        """The interval of the run; None if most of its critical path has recorded times, whose error is unknown."""
        return None if math.fsum(self.stated.values()) >= MAX_RECORDED else self.makespan


def answer(predicted: Predicted) -> Prediction:
    """Simulate the replay with its recorded and with its predicted times, and sum both by kind of work and operator."""
    before, after = engine.simulate(predicted.replay.graph), engine.simulate(predicted.graph)
    rows = predicted.rows
    kinds = [_sum(kind, kind, [row for row in rows if row.kind == kind]) for kind in dict.fromkeys(row.kind for row in rows)]
    names = dict.fromkeys((row.kind, row.name) for row in rows if row.how == "predicted")
    operators = [_sum(name, kind, [row for row in rows if (row.kind, row.name) == (kind, name)]) for kind, name in names]
    ends = predicted.replay.recorded_end
    return Prediction(
        machine=predicted.machine.name,
        devices=predicted.devices,
        ranks=tuple(rank.number for rank in predicted.replay.recording.ranks),
        recorded=float(ends.max(initial=0)) / FEMTO,
        replayed=before.makespan,
        makespan=interval(weights_of(after), value=after.makespan),
        gpu=_sum("all", "all", rows),
        kinds=tuple(sorted(kinds, key=lambda kind: -kind.recorded)),
        operators=tuple(sorted(operators, key=lambda operator: -operator.recorded)),
        kept=tuple(row for row in rows if row.how == "kept"),
        assumed=predicted.assumed,
        clocked=predicted.replay.recording.clocked,
        steps=_steps(predicted.replay, before, after),
        stated=path_shares(after, predicted.replay.part.astype(np.int64)),
    )


def _steps(replay: RecordingReplay, before: Timeline, after: Timeline) -> tuple[StepTime, ...]:
    marked = steps(replay.recording)
    spans = ((replay.recorded, replay.recorded_end), (before.start, before.end), (after.start, after.end))
    rows = zip(marked, *(replayed(replay, marked, *span) for span in spans), strict=True)
    numbers = [rank.number for rank in replay.recording.ranks]
    return tuple(
        StepTime(step.name, numbers[step.rank], recorded / FEMTO, old / FEMTO, new / FEMTO) for step, recorded, old, new in rows
    )


def _sum(name: str, kind: str, rows: Sequence[OperatorTime]) -> WorkSum:
    time, kept = math.fsum(row.time for row in rows), math.fsum(row.time for row in rows if row.how == "kept")
    weights = tuple(Weight(doubt) for row in rows if row.how == "predicted" for doubt in row.doubts)
    uncertain = math.fsum(weight.doubt.seconds for weight in weights)
    range_ = interval(Weights(weights, max(0.0, time - uncertain), time), value=time)
    return WorkSum(name, kind, sum(row.count for row in rows), math.fsum(row.recorded for row in rows), time, kept, range_)


def text(answer: Prediction) -> list[str]:
    """Return the prediction: run, interval, a table by kind of work, one by operator, and operators without a prediction."""
    placed = [f"rank {rank} on {device}" for rank, device in zip(answer.ranks, answer.devices, strict=True)]
    more = f" and {len(placed) - MAX_RANKS} more" if len(placed) > MAX_RANKS else ""
    lines = [f"Predicted on {answer.machine}: {', '.join(placed[:MAX_RANKS])}{more}", ""]
    if answer.steps:
        step_s, recorded_s, replayed_s = (
            math.fsum(getattr(step, name) for step in answer.steps) / len(answer.steps)
            for name in ("predicted_s", "recorded_s", "replayed_s")
        )
        lines += _fact("step time", _compared(step_s, recorded_s if answer.clocked else 0.0, replayed_s))
    lines += _fact("run", _compared(answer.makespan.value, answer.recorded if answer.clocked else 0.0, answer.replayed))
    found = answer.range
    if found is None or found.half > 0:
        lines += _fact(TITLE, "not applicable: most times are recorded" if found is None else line(replace(found, stated=0.0)))
    share = math.fsum(answer.stated.values())
    if share >= MIN_SHARE:
        kinds = ", ".join(f"{name} {format_share(part)}" for name, part in answer.stated.items() if part >= MIN_SHARE / 5)
        lines += _fact("not predicted", f"{format_share(share)} of the critical path keeps its recorded time ({kinds})")
    if not answer.kinds:
        return lines
    ends = f" ({TITLE} {range_text(answer.gpu.range)})" if answer.gpu.range.half > EXACT else ""
    lines += _fact("GPU ops", f"{_s(answer.gpu.time)}{_recorded(answer.gpu.recorded)}{ends}")
    lines += ["", *_table("kind", answer.kinds)]
    if answer.operators:
        lines += ["", *_table("operator", answer.operators[:MAX_OPERATORS])]
    if len(answer.operators) > MAX_OPERATORS:
        lines.append(f"  {len(answer.operators) - MAX_OPERATORS} more operators: --json")
    return [*lines, *_unpredicted(answer)]


def _fact(label: str, value: str) -> list[str]:
    return labelled_lines(label, value, LABEL)


def _recorded(seconds: float) -> str:
    return f", recorded {_s(seconds)}" if seconds > 0 else ""


def _compared(seconds: float, recorded: float, replayed: float) -> str:
    ratio = ""
    if abs(replayed - seconds) > SAME * seconds > 0 < replayed:
        ratio = f": {factor_text(max(replayed / seconds, seconds / replayed))}x {'slower' if seconds > replayed else 'faster'}"
    return f"{_s(seconds)}{_recorded(recorded or replayed)}{ratio}"


def _unpredicted(answer: Prediction) -> list[str]:
    if not answer.kept:
        return []
    kept = math.fsum(row.recorded for row in answer.kept)
    share = format_share(kept / answer.gpu.recorded) if answer.gpu.recorded > 0 else "0 %"
    lines = ["", *wrap_lines(f"not predicted: {_s(kept)}, {share} of the time of GPU ops, which keeps its recorded time", 2)]
    for why in dict.fromkeys(row.why for row in answer.kept):
        rows = [row for row in answer.kept if row.why == why]
        more = f" and {len(rows) - MAX_KEPT} more" if len(rows) > MAX_KEPT else ""
        lines += wrap_lines(f"{why}: {', '.join(f'{row.name[:60]} {_s(row.recorded)}' for row in rows[:MAX_KEPT])}{more}", 4)
    return lines


def _table(first: str, rows: Sequence[WorkSum]) -> list[str]:
    is_predicted = [row.kept < row.time for row in rows]
    columns = [
        Column(first, [row.name for row in rows], right=False, widest=36),
        Column("count", [str(row.count) for row in rows]),
        Column("recorded", [_s(row.recorded) for row in rows]),
        Column("predicted", [_s(row.time) if is_row else "-" for row, is_row in zip(rows, is_predicted, strict=True)]),
        Column("ratio", [f"{row.ratio:.2f}" if row.ratio is not None and row.kept < row.time else "-" for row in rows]),
        Column(TITLE, [range_text(row.range) if row.range.half > 0 else "-" for row in rows]),
    ]
    if any(row.kept > 0 for row in rows):
        columns.append(Column("not predicted", [_s(row.kept) if row.kept > 0 else "-" for row in rows]))
    return align_columns(columns)


def _s(seconds: float) -> str:
    return format_quantity(seconds, "s")


def as_dict(answer: Prediction) -> dict[str, Any]:
    """Return the part `predicted` of the document."""
    return {
        "machine": answer.machine,
        "ranks": [{"rank": rank, "device": device} for rank, device in zip(answer.ranks, answer.devices, strict=True)],
        "recorded_s": answer.recorded if answer.clocked else None,
        "replayed_s": answer.replayed,
        "makespan_s": answer.makespan.value,
        "range_s": None if answer.range is None else [answer.range.low, answer.range.high],
        "as_recorded_of_path": dict(answer.stated),
        "steps": [asdict(step) for step in answer.steps],
        "gpu": _as_dict(answer.gpu),
        "kinds": [_as_dict(kind) for kind in answer.kinds],
        "operators": [{**_as_dict(operator), "kind": operator.kind} for operator in answer.operators],
        "as_recorded": [
            {
                "name": row.name, "kind": row.kind, "count": row.count, "time_s": row.recorded,
                "why": row.why,
            }
            for row in answer.kept
        ],
        "assumed": list(answer.assumed),
    }  # fmt: skip


def _as_dict(row: WorkSum) -> dict[str, Any]:
    return {
        "name": row.name,
        "count": row.count,
        "recorded_s": row.recorded,
        "predicted_s": row.time,
        "ratio": row.ratio,
        "range_s": [row.range.low, row.range.high],
        "as_recorded_s": row.kept,
    }
