"""A recording on another machine, as numbers to print: the run, and the GPU's time by kind of work and operator."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

from hwsim import engine
from hwsim.formats import format_quantity, format_share
from hwsim.importers.predicting import Predicted, Row
from hwsim.records import dataclass
from hwsim.results.doubts import Weight, Weights, weights_of
from hwsim.results.interval import Interval, interval
from hwsim.ticks import FEMTO
from hwsim.views.kit.table import Column, aligned

MOST: Final = 12  # operators that the text lists


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
    def ratio(self) -> float:
        """Predicted over recorded time of the part that was predicted; 1 of nothing."""
        predicted = self.recorded - self.kept
        return (self.time - self.kept) / predicted if predicted > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A recording on a machine.

    Args:
        recorded: seconds from the first start to the last end; replayed: as rules explain it; makespan: on the machine.
        kinds, operators: the longest first. kept: rows that keep their recorded time.
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


def answer(predicted: Predicted) -> Answer:
    """Simulate the replay with both times, and sum up."""
    before, after = engine.simulate(predicted.replay.graph), engine.simulate(predicted.graph)
    rows = [row for row in predicted.rows if row.how != "host"]
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
    was = f"recorded {_s(answer.recorded)}, by rules {_s(answer.replayed)}"
    lines = [
        "",
        f"on {answer.machine}: {placed}{more}",
        f"  run      {_s(answer.makespan.value)}{_range(answer.makespan)}; {was}",
    ]
    if not answer.kinds:
        return [*lines, "  every op is as recorded", *(f"  assumed: {each}" for each in answer.assumed)]
    lines += [
        f"  work     {_s(answer.gpu.time)}{_range(answer.gpu.range)}; recorded {_s(answer.gpu.recorded)}",
        "",
        *_table("work", answer.kinds),
    ]
    if answer.operators:
        lines += ["", *_table("operator", answer.operators[:MOST])]
    if len(answer.operators) > MOST:
        lines.append(f"  and {len(answer.operators) - MOST} more operators, see --json")
    if answer.kept:
        kept = math.fsum(row.recorded for row in answer.kept)
        share = format_share(kept / answer.gpu.recorded) if answer.gpu.recorded > 0 else "0 %"
        lines += ["", f"  as recorded: {_s(kept)}, {share} of the work"]
        lines += [f"    {row.name[:60]}  {_s(row.recorded)}: {row.why}" for row in answer.kept[:MOST]]
        if len(answer.kept) > MOST:
            lines.append(f"    and {len(answer.kept) - MOST} more, see --json")
    return lines + [f"  assumed: {each}" for each in answer.assumed]


def _table(first: str, rows: Iterable[Sum]) -> list[str]:
    shown = list(rows)
    return aligned(
        [
            Column(first, [row.name for row in shown], right=False, widest=44),
            Column("calls", [str(row.count) for row in shown]),
            Column("recorded", [_s(row.recorded) for row in shown]),
            Column("predicted", [_s(row.time) if row.kept < row.time else "-" for row in shown]),
            Column("ratio", [f"{row.ratio:.2f}" if row.kept < row.time else "-" for row in shown]),
            Column("9 of 10 within", [_range(row.range).removeprefix(" (").removesuffix(")") or "-" for row in shown]),
            Column("as recorded", [_s(row.kept) if row.kept > 0 else "-" for row in shown]),
        ]
    )


def _range(found: Interval) -> str:
    return f" ({_s(found.low)} to {_s(found.high)})" if found.half > 0 else ""


def _s(seconds: float) -> str:
    return format_quantity(seconds, "s")


def as_dict(answer: Answer) -> dict[str, Any]:
    """The part `predicted` of the document."""
    return {
        "machine": answer.machine,
        "ranks": [{"rank": rank, "device": device} for rank, device in zip(answer.ranks, answer.devices, strict=True)],
        "recorded_s": answer.recorded,
        "replayed_s": answer.replayed,
        "makespan_s": answer.makespan.value,
        "range_s": [answer.makespan.low, answer.makespan.high],
        "gpu": _as_dict(answer.gpu),
        "kinds": [_as_dict(each) for each in answer.kinds],
        "operators": [{**_as_dict(each), "kind": each.kind} for each in answer.operators],
        "as_recorded": [
            {"name": row.name, "kind": row.kind, "count": row.count, "time_s": row.recorded, "why": row.why}
            for row in answer.kept
        ],
        "assumed": list(answer.assumed),
    }


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
