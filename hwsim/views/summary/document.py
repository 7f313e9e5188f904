"""The result as JSON, `hwsim: result/1`.  Keys end in their unit; times also as integer femtoseconds where exactness counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from hwsim import invariants
from hwsim.demand import Choice
from hwsim.results.choices import choices
from hwsim.results.coverage import coverage
from hwsim.results.result import Result
from hwsim.results.timeline import FEMTO, Steady
from hwsim.views.explain.critical import limited_by
from hwsim.views.explain.starving import pipelines
from hwsim.views.kit import warned
from hwsim.views.summary import pipeline, serving, training


def render(result: Result, suffix: str = "") -> Iterable[bytes]:  # noqa: ARG001 (every report takes a suffix)
    """The document without the ops, in UTF-8."""
    yield document(result).encode()


def document(result: Result, *, ops: bool = False, rank: int | None = None) -> str:
    """The document as text, keys sorted: same result, same bytes."""
    return invariants.document(as_dict(result, ops=ops, rank=rank))


def as_dict(result: Result, *, ops: bool = False, rank: int | None = None) -> dict[str, Any]:
    """The document as dicts and lists; `ops` adds a row per op (of a folded run: of the first rank of each class), or those of
    one rank.
    """
    found: dict[str, Any] = {
        "hwsim": "result/1",
        "machine": result.machine,
        "workload": result.workload,
        "makespan_s": result.makespan_s,
        "makespan_fs": result.timeline.makespan_fs,
        "issued_s": result.issued_s,
        "op_count": result.ops.total,
        "fold": _fold(result),
        "limited_by": [
            {"cause": str(share.cause), "kind": share.cause.kind, "time_s": share.time_s, "share": share.share}
            for share in limited_by(result.timeline)
        ],
        "capacities": [
            {
                "name": one.capacity,
                "busy_s": one.busy_s,
                "moved": one.moved,
                "unit": one.unit,
                "rate": one.rate,
                "utilisation": one.utilisation,
                **({"alike": one.alike} if one.alike > 1 else {}),
            }
            for one in result.usage
        ],
        "pipelines": pipeline.as_dicts(pipelines(result.timeline)),
        "jobs": [
            {"name": each.name, "start_s": each.start_s, "end_s": each.end_s, "makespan_s": each.makespan_s}
            for each in result.jobs
        ],
        "events": [asdict(one) for one in result.events],
        "collectives": [{"op": one.op, "times": one.times, **_choice(one.choice)} for one in choices(result.timeline)],
        "memory": [
            {
                "device": one.device,
                "peak_bytes": one.peak,
                "size_bytes": one.size,
                "at_s": one.at_s,
                "fits": one.fits,
                "holds": [asdict(each) for each in one.holds],
            }
            for one in result.memory
        ],
        "requests": [
            {**asdict(one), "counters": dict(one.counters), "rate": one.rate, "bandwidth": one.bandwidth, "gap": one.gap}
            for one in result.requests
        ],
        "trainings": [training.as_dict(one) for one in result.trainings],
        "serving": [serving.as_dict(one, rows=ops) for one in result.serving],
        "latency_curves": [asdict(one) for one in result.curves],
        "steady": None if result.steady is None else _steady(result.steady),
        "expect": [asdict(verdict) for verdict in result.verdicts],
        "set": dict(result.settings),
        "warnings": warned.as_dicts(result.warnings),
    }
    if (known := coverage(result.timeline)) is not None:
        found["calibrated"] = asdict(known)
    if ops:
        found["ops"] = [asdict(row) for row in (result.ops if rank is None else result.rank(rank))]
    return found


def _fold(result: Result) -> dict[str, Any] | None:
    """Which ranks were simulated, and for how many; or why all of them were, though they are many."""
    graph = result.timeline.flat.graph
    if graph.alike is None:
        return {"unfolded": graph.unfolded} if graph.unfolded else None
    classes = [{"program": name, "ranks": many} for name, many in graph.alike.classes()]
    return {"ranks": len(graph.alike.programs), "classes": classes}


def _choice(choice: Choice) -> dict[str, Any]:
    """An algorithm that was chosen, and what came second; times as they were expected."""
    return {
        "algorithm": choice.name,
        "channels": choice.channels,
        "time_s": choice.seconds,
        "next_best": choice.runner_up,
        "next_best_s": choice.runner_up_seconds,
    }


def _steady(steady: Steady) -> dict[str, object]:
    return {
        "times": steady.times,
        "simulated": steady.simulated,
        "identical": steady.identical,
        "period_s": steady.period / FEMTO if steady.period else None,
        "period_iterations": steady.turns if steady.period else None,
        "why": steady.why,
    }
