"""A recording on another machine, as numbers to print: the run, and the GPU's time by kind of work and operator.

A part of a prediction's critical path keeps its recorded time: no error that was measured stands behind it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, field
from typing import Any, Final

import numpy as np

from hwsim import engine
from hwsim.formats import format_quantity, format_share
from hwsim.importers.predicting import Predicted, Row
from hwsim.importers.recording import Ints
from hwsim.importers.replay import Part, Replay
from hwsim.importers.steps import replayed, steps
from hwsim.records import dataclass
from hwsim.results.critical import critical_path
from hwsim.results.doubts import Weight, Weights, weights_of
from hwsim.results.interval import Interval, interval
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO
from hwsim.views.kit.table import Column, aligned

MOST: Final = 12  # operators that the text lists
MOSTLY: Final = 0.8  # part of the critical path that is as recorded, from which on a run has no range
LITTLE: Final = 0.05  # below, nothing is said of it


@dataclass(frozen=True, slots=True)
class Sum:
    """Seconds of a kind of work or of an operator in all ranks.

    kept: the part that keeps its recorded time. range: of `time`, recorded parts exact.
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
        """Predicted over recorded time of the part that was predicted; None where no time was recorded."""
        predicted = self.recorded - self.kept
        return (self.time - self.kept) / predicted if predicted > 0 else None


@dataclass(frozen=True, slots=True)
class StepTime:
    """A step of a rank: seconds as recorded, as rules explain it, and on the machine."""

    name: str
    rank: int
    recorded_s: float
    replayed_s: float
    predicted_s: float


@dataclass(frozen=True, slots=True)
class Answer:
    """A recording on a machine.

    Args:
        clocked: whether they have starts; if not, the run is not recorded, and its ops may be.
        recorded: seconds from the first start to the last end; replayed: as rules explain it; makespan: on the machine.
        kinds, operators: the longest first. kept: rows that keep their recorded time.
        stated: shares of the critical path that are as recorded, by kind of op.
    """

    machine: str
    devices: tuple[str, ...]
    ranks: tuple[int, ...]
    recorded: float
    replayed: float
    makespan: Interval
    gpu: Sum
    kinds: tuple[Sum, ...]
    operators: tuple[Sum, ...]
    kept: tuple[Row, ...]
    assumed: tuple[str, ...]
    clocked: bool = True
    steps: tuple[StepTime, ...] = ()
    stated: Mapping[str, float] = field(default_factory=dict)

    @property
    def range(self) -> Interval | None:
        """The run's, where most of its critical path was predicted: recorded times have no error that was measured."""
        return None if math.fsum(self.stated.values()) >= MOSTLY else self.makespan


def answer(predicted: Predicted) -> Answer:
    """Simulate the replay with both times, and sum up."""
    before, after = engine.simulate(predicted.replay.graph), engine.simulate(predicted.graph)
    rows = predicted.rows
    kinds = [_sum(kind, kind, [row for row in rows if row.kind == kind]) for kind in dict.fromkeys(row.kind for row in rows)]
    names = dict.fromkeys((row.kind, row.name) for row in rows if row.how == "predicted")
    operators = [_sum(name, kind, [row for row in rows if (row.kind, row.name) == (kind, name)]) for kind, name in names]
    ends = predicted.replay.recorded_end
    return Answer(
        machine=predicted.machine.name,
        devices=predicted.devices,
        ranks=tuple(rank.number for rank in predicted.replay.recording.ranks),
        recorded=float(ends.max(initial=0)) / FEMTO,
        replayed=before.makespan,
        makespan=interval(weights_of(after), value=after.makespan),
        gpu=_sum("all", "all", rows),
        kinds=tuple(sorted(kinds, key=lambda each: -each.recorded)),
        operators=tuple(sorted(operators, key=lambda each: -each.recorded)),
        kept=tuple(row for row in rows if row.how == "kept"),
        assumed=predicted.assumed,
        clocked=predicted.replay.recording.clocked,
        steps=_steps(predicted.replay, before, after),
        stated=as_recorded(after, predicted.replay.part.astype(np.int64)),
    )


def _steps(replay: Replay, before: Timeline, after: Timeline) -> tuple[StepTime, ...]:
    marked = steps(replay.recording)
    spans = ((replay.recorded, replay.recorded_end), (before.start, before.end), (after.start, after.end))
    rows = zip(marked, *(replayed(replay, marked, *span) for span in spans), strict=True)
    numbers = [rank.number for rank in replay.recording.ranks]
    return tuple(
        StepTime(step.name, numbers[step.rank], recorded / FEMTO, old / FEMTO, new / FEMTO) for step, recorded, old, new in rows
    )


def _sum(name: str, kind: str, rows: Sequence[Row]) -> Sum:
    time, kept = math.fsum(row.time for row in rows), math.fsum(row.time for row in rows if row.how == "kept")
    weights = tuple(Weight(doubt) for row in rows if row.how == "predicted" for doubt in row.doubts)
    unsure = math.fsum(weight.doubt.seconds for weight in weights)
    sure = interval(Weights(weights, max(0.0, time - unsure), time), value=time)
    return Sum(name, kind, sum(row.count for row in rows), math.fsum(row.recorded for row in rows), time, kept, sure)


def text(answer: Answer) -> list[str]:
    """Lines: the run, a table by kind of work and one by operator, and what keeps its recorded time."""
    placed = ", ".join(f"rank {rank} on {device}" for rank, device in list(zip(answer.ranks, answer.devices, strict=True))[:8])
    more = f" and {len(answer.ranks) - 8} more" if len(answer.ranks) > 8 else ""
    recorded = f" recorded {_s(answer.recorded)}," if answer.clocked else ""
    was = f";{recorded} by rules {_s(answer.replayed)}" if answer.replayed > 0 else ""
    lines = [
        "",
        f"on {answer.machine}: {placed}{more}",
        f"  run      {_s(answer.makespan.value)}{_range(answer.range)}{was}",
        *_of_stated(answer),
        *_of_steps(answer),
    ]
    if not answer.kinds:
        return [*lines, "  every op is as recorded", *(f"  assumed: {each}" for each in answer.assumed)]
    was = f"; recorded {_s(answer.gpu.recorded)}" if answer.gpu.recorded > 0 else ""
    lines += [
        f"  work     {_s(answer.gpu.time)}{_range(answer.gpu.range)}{was}",
        "",
        *_table("work", answer.kinds),
    ]
    if answer.operators:
        lines += ["", *_table("operator", answer.operators[:MOST])]
    if len(answer.operators) > MOST:
        lines.append(f"  and {len(answer.operators) - MOST} more operators, see --json")
    return [*lines, *_of_kept(answer), *(f"  assumed: {each}" for each in answer.assumed)]


def _of_stated(answer: Answer) -> list[str]:
    """A line on what of the critical path is as recorded, where it is more than a little."""
    share = math.fsum(answer.stated.values())
    if share < LITTLE:
        return []
    kinds = ", ".join(f"{name} {format_share(part)}" for name, part in answer.stated.items() if part >= LITTLE / 5)
    range_says = "no range can say how sure that is" if answer.range is None else "the range leaves that out"
    return [f"           as recorded: {format_share(share)} of the critical path ({kinds}); {range_says}"]


def _of_kept(answer: Answer) -> list[str]:
    """Lines on rows without a predicted time, with the recorded one if the file has it."""
    if not answer.kept:
        return []
    kept = math.fsum(row.recorded for row in answer.kept)
    share = format_share(kept / answer.gpu.recorded) if answer.gpu.recorded > 0 else "0 %"
    lines = ["", f"  as recorded: {_s(kept)}, {share} of the work"]
    lines += [f"    {row.name[:60]}  {_s(row.recorded)}: {row.why}" for row in answer.kept[:MOST]]
    return [*lines, f"    and {len(answer.kept) - MOST} more, see --json"] if len(answer.kept) > MOST else lines


def _of_steps(answer: Answer) -> list[str]:
    """The mean of the steps."""
    if not answer.steps:
        return []
    count = len(answer.steps)
    time, recorded, replayed = (
        math.fsum(getattr(step, name) for step in answer.steps) / count for name in ("predicted_s", "recorded_s", "replayed_s")
    )
    return [f"  a step   {_s(time)}; recorded {_s(recorded)}, by rules {_s(replayed)}, mean of {count}"]


def _table(first: str, rows: Iterable[Sum]) -> list[str]:
    shown = list(rows)
    columns = {
        "calls": [str(row.count) for row in shown],
        "recorded": [_s(row.recorded) for row in shown],
        "predicted": [_s(row.time) if row.kept < row.time else "-" for row in shown],
        "ratio": [f"{row.ratio:.2f}" if row.ratio is not None and row.kept < row.time else "-" for row in shown],
        "90 % interval": [_range(row.range).removeprefix(" (").removesuffix(")") or "-" for row in shown],
        "as recorded": [_s(row.kept) if row.kept > 0 else "-" for row in shown],
    }
    names = Column(first, [row.name for row in shown], right=False, widest=44)
    return aligned([names, *(Column(name, values) for name, values in columns.items())])


def _range(found: Interval | None) -> str:
    return f" ({_s(found.low)} to {_s(found.high)})" if found is not None and found.half > 0 else ""


def _s(seconds: float) -> str:
    return format_quantity(seconds, "s")


def as_dict(answer: Answer) -> dict[str, Any]:
    """The part `predicted` of the document."""
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


def _as_dict(row: Sum) -> dict[str, Any]:
    return {
        "name": row.name,
        "count": row.count,
        "recorded_s": row.recorded,
        "predicted_s": row.time,
        "ratio": row.ratio,
        "range_s": [row.range.low, row.range.high],
        "as_recorded_s": row.kept,
    }


NAMES: Final[Mapping[Part, str]] = {
    Part.HOST: "host threads", Part.START: "host threads", Part.DEVICE: "GPU ops", Part.COLLECTIVE: "collectives",
    Part.LAUNCH: "launches", Part.GAP: "gaps of streams", Part.DELAY: "unexplained", Part.ARRIVE: "collectives",
    Part.MEET: "collectives",
}  # fmt: skip


def as_recorded(timeline: Timeline, part: Ints) -> dict[str, float]:
    """Shares of the critical path that are as recorded, by kind of op, the largest first.

    part: kind of each op, of `Part`.
    """
    path = critical_path(timeline, pools=False)
    if not len(path):
        return {}
    took = (path.end - path.start).astype(np.float64)
    kept = timeline.flat.cost[path.op] < 0  # a predicted op says how its time came about
    kinds, where = np.unique(part[path.op[kept]], return_inverse=True)
    shares: dict[str, float] = {}
    for kind, seconds in zip(kinds.tolist(), np.bincount(where, took[kept]).tolist(), strict=True):
        shares[NAMES[Part(kind)]] = shares.get(NAMES[Part(kind)], 0.0) + seconds
    length = math.fsum(took.tolist())
    rows = [(name, seconds / length) for name, seconds in shares.items() if seconds > 0]
    return dict(sorted(rows, key=lambda each: -each[1]))
