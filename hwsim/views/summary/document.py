"""The result as JSON, `hwsim: result/2`. Keys end in their unit; exact times are also given in integer fs."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, Final

from hwsim.costs.bill import bill_of
from hwsim.families_interface import FAMILIES, family_reports
from hwsim.results import invariants
from hwsim.results.activities import bounds_of
from hwsim.results.choices import choices
from hwsim.results.coverage import coverage
from hwsim.results.critical import limited_by
from hwsim.results.interval import Interval
from hwsim.results.result import Result
from hwsim.results.work import work_of
from hwsim.views.interval import say as interval
from hwsim.views.kit import warning_lines
from hwsim.views.kit.document import select_attributes
from hwsim.views.summary import costs

CAPACITY: Final = ("busy_s", "moved", "unit", "rate", "utilization")


def document(result: Result, *, ops: bool = False, rank: int | None = None) -> str:
    """Return the document as text with sorted keys; same result, same bytes."""
    return invariants.document(as_dict(result, ops=ops, rank=rank))


def _ends(sure: Interval | None) -> dict[str, Any] | None:
    return None if sure is None else select_attributes(sure, "level", "case", low_s="low", high_s="high")


def as_dict(result: Result, *, ops: bool = False, rank: int | None = None) -> dict[str, Any]:
    """Return the document as dicts and lists.

    Args:
        result: result.
        ops: whether to add an entry per op; for a folded run, the ops of the first rank of each class.
        rank: rank whose ops are added; None for all.
    """
    entries: dict[str, Any] = {
        "hwsim": "result/2",
        **select_attributes(result, "machine", "workload", "makespan_s", "issued_s"),
        "makespan_fs": result.simulated.makespan_fs,
        "issued_interval": _ends(result.issued_interval),
        "interval": interval.as_dict(result.interval, kernels=result.of_kernels) if result.sure else None,
        "op_count": result.op_count,
        "work": [work._asdict() for work in work_of(result)],
        "fold": _fold(result),
        "limited_by": [
            {"cause": str(share.cause), "kind": share.cause.kind, **select_attributes(share, "time_s", "share")}
            for share in limited_by(result.simulated)
        ],
        "bounds": [
            {"bound": str(part.bound), "time_fs": part.time_fs} for part in bounds_of(result.simulated, result.devices)
        ],
        "capacities": [
            select_attributes(usage, *CAPACITY, *["identical_count"][usage.identical_count < 2 :], name="capacity")
            for usage in result.usage
        ],
        **{family.rows: [] for family in FAMILIES.values() if family.rows},
        **{name: value for facts in family_reports(result) for name, value in facts.entries(result, rows=ops).items()},
        "jobs": [
            {
                **select_attributes(job, "name", "start_s", "end_s", "makespan_s"),
                "interval": _ends(sure),
            }
            for job, sure in zip(result.jobs, result.job_intervals, strict=True)
        ],
        "events": [asdict(event) for event in result.events],
        "collectives": [
            {
                **select_attributes(chosen, "op", "times"),
                **select_attributes(chosen.choice, "channels", algorithm="name", time_s="seconds", runner_up="runner_up",
                         runner_up_s="runner_up_seconds"),
            }
            for chosen in choices(result.simulated)
        ],
        "memory": [
            {
                **select_attributes(device, "device", "at_s", "fits", peak_bytes="peak", size_bytes="size"),
                "allocations": [asdict(value) for value in device.allocations],
            }
            for device in result.memory
        ],
        "requests": [
            {
                **select_attributes(device, *(field.name for field in fields(device) if field.name != "times")),
                "counters": dict(device.counters),
                **select_attributes(device, "rate", "bandwidth", "closed_form_error"),
            }
            for device in result.requests
        ],
        **costs.as_dict(bill_of(result)),
        "latency_curves": [asdict(curve) for curve in result.curves],
        "expect": [asdict(verdict) for verdict in result.verdicts],
        "set": dict(result.settings),
        "warnings": warning_lines.as_dicts(result.warnings),
    }  # fmt: skip
    if (covered := coverage(result.simulated)) is not None:
        entries["calibrated"] = asdict(covered)
    if ops:
        kinds = result.devices
        entries["devices"] = {
            name: kinds[name] for name in sorted({label.device for label in result.timeline.flat.graph.labels} & {*kinds})
        }
        entries["ops"] = [asdict(row) for row in (result.ops if rank is None else result.rank(rank))]
    return entries


def _fold(result: Result) -> dict[str, Any] | None:
    """Return the simulated ranks, each with the number of ranks it represents; or the reason why many were not folded."""
    graph = result.simulated.flat.graph
    if graph.alike is None or graph.alike.unseen:
        return {"unfolded": graph.unfolded} if graph.unfolded else None
    if graph.trainings:
        return {
            "replicas": {
                training.program: [{"replica": first, "replicas": count} for first, count in training.classes]
                for training in graph.trainings
            }
        }
    classes = [{"program": name, "ranks": count} for name, count in graph.alike.classes()]
    return {"ranks": len(graph.alike.programs), "classes": classes}
