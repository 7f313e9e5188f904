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


def text(found: Answer) -> list[str]:
    """Lines: the run, a table by kind of work and one by operator, and what keeps its recorded time."""
    placed = ", ".join(f"rank {rank} on {device}" for rank, device in list(zip(found.ranks, found.devices, strict=True))[:8])
    more = f" and {len(found.ranks) - 8} more" if len(found.ranks) > 8 else ""
    was = f"recorded {_s(found.recorded)}, by rules {_s(found.replayed)}"
    lines = [
        "",
        f"on {found.machine}: {placed}{more}",
        f"  run      {_s(found.makespan.value)}{_range(found.makespan)}; {was}",
        f"  GPU ops  {_s(found.gpu.time)}{_range(found.gpu.range)}; recorded {_s(found.gpu.recorded)}",
        "",
        *_table("work", found.kinds),
        "",
        *_table("operator", found.operators[:MOST]),
    ]
    if len(found.operators) > MOST:
        lines.append(f"  and {len(found.operators) - MOST} more operators, see --json")
    if found.kept:
        whole = math.fsum(row.recorded for row in found.kept)
        share = format_share(whole / found.gpu.recorded) if found.gpu.recorded > 0 else "0 %"
        lines += ["", f"  as recorded: {_s(whole)}, {share} of the GPU ops"]
        lines += [f"    {row.name[:60]}  {_s(row.recorded)}: {row.why}" for row in found.kept[:MOST]]
        if len(found.kept) > MOST:
            lines.append(f"    and {len(found.kept) - MOST} more, see --json")
    return lines + [f"  assumed: {each}" for each in found.assumed]


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


def as_dict(found: Answer) -> dict[str, Any]:
    """The part `predicted` of the document."""
    return {
        "machine": found.machine,
        "ranks": [{"rank": rank, "device": device} for rank, device in zip(found.ranks, found.devices, strict=True)],
        "recorded_s": found.recorded,
        "replayed_s": found.replayed,
        "makespan_s": found.makespan.value,
        "range_s": [found.makespan.low, found.makespan.high],
        "gpu": _as_dict(found.gpu),
        "kinds": [_as_dict(each) for each in found.kinds],
        "operators": [{**_as_dict(each), "kind": each.kind} for each in found.operators],
        "as_recorded": [
            {"name": row.name, "kind": row.kind, "count": row.count, "time_s": row.recorded, "why": row.why} for row in found.kept
        ],
        "assumed": list(found.assumed),
    }


def _as_dict(each: Sum) -> dict[str, Any]:
    return {
        "name": each.name,
        "count": each.count,
        "recorded_s": each.recorded,
        "predicted_s": each.time,
        "ratio": each.ratio,
        "range_s": [each.range.low, each.range.high],
        "as_recorded_s": each.kept,
    }
