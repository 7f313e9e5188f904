"""Explanation of a run as JSON (`hwsim: explain/2`)."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hwsim.families_interface import family_reports
from hwsim.results.critical import split_at_paces
from hwsim.ticks import FEMTO
from hwsim.views.interval import say as interval
from hwsim.views.kit.document import select_attributes
from hwsim.views.kit.warning_lines import as_dicts

if TYPE_CHECKING:
    from hwsim.graph.opgraph import Label
    from hwsim.results.activities import Activity
    from hwsim.results.bound import BoundTime
    from hwsim.results.critical import Share
    from hwsim.views.explain.explanation import Explanation


def as_dict(explanation: Explanation, *, path: bool = False) -> dict[str, Any]:
    """Return the explanation as dicts and lists; keys end in their unit.

    Args:
        explanation: explanation.
        path: whether to add every segment of the critical path.
    """
    result = explanation.run
    entries: dict[str, Any] = {
        "hwsim": "explain/2",
        **select_attributes(result, "machine", "workload", "makespan_s"),
        "set": dict(result.settings),
        "events": [asdict(event) for event in result.events],
        "makespan_fs": result.timeline.makespan_fs,
        "interval": interval.as_dict(result.interval, kernels=result.of_kernels),
        "warnings": as_dicts(result.warnings),
        "sentences": list(explanation.sentences),
        "accounting": list(map(_share, explanation.accounting)),
        "critical_path": [
            {
                **select_attributes(run, "start_s", "end_s", "start_fs", "end_fs", "times"),
                "steps": [
                    {**_label(step.label), "cause": str(step.cause), **select_attributes(step, "ops", "time_s", "time_fs")}
                    for step in run.steps
                ],
            }
            for run in explanation.runs
        ],
        "activities": [_activity(row) for row in explanation.activities.rows],
        "bounds": [_part(part) for part in explanation.activities.parts],
        "derivations": [
            {
                **select_attributes(
                    derivation, "name", "kind", "devices", "count", "size", "own_s", "unloaded_s", "unloaded", "min_s",
                    "max_s", "reasons",
                ),
                "slack_s": dict(zip(("ops", "min", "max"), derivation.slack_s, strict=True)) if derivation.slack_s else None,
                "lines": [
                    {
                        **select_attributes(line, "label", "formula", "numbers", "time_s", "binding"),
                        "inputs": [dict(zip(("name", "value", "source"), entry, strict=True)) for entry in line.inputs],
                    }
                    for line in derivation.lines
                ],
            }
            for derivation in explanation.derivations
        ],
        "what_if": [
            {
                **select_attributes(row, "change", "combined", "hypothetical", "makespan_s", "makespan_fs", "speedup"),
                "set": dict(row.settings),
                "measured": dict(row.measured),
                "limited_by": list(map(_share, row.limited_by[:3])),
                "bound_by": None if row.bound is None else str(row.bound),
            }
            for row in explanation.what_if or ()
        ],
        "what_if_measure": explanation.measure.name if explanation.measure is not None else "makespan",
        "what_if_omitted": _left_out(explanation),
    }  # fmt: skip
    if path:
        flat = result.timeline.flat
        entries["segments"] = [
            {
                **_label(flat.graph.labels[int(flat.label[piece.op])]),
                **select_attributes(piece, "op", "start_fs", "end_fs"),
                "iteration": int(flat.iteration[piece.op]),
                "cause": str(piece.cause),
            }
            for piece in split_at_paces(result.timeline, explanation.path)
        ]
    for facts in family_reports(result):
        entries |= facts.explained_entries(result)
    return entries


def _label(label: Label) -> dict[str, Any]:
    return select_attributes(label, "name", "kind", "device")


def _activity(row: Activity) -> dict[str, Any]:
    return {
        **select_attributes(row, "name", "count", "mean_s", "total_s", "overlapped_s", "share", critical_path_s="path_s"),
        "bound_by": [_part(part) for part in row.bounds],
    }


def _part(part: BoundTime) -> dict[str, Any]:
    return {"bound": str(part.bound), "time_s": part.time_fs / FEMTO}


def _share(share: Share) -> dict[str, Any]:
    return {"cause": str(share.cause), "kind": share.cause.kind, **select_attributes(share, "time_s", "time_fs", "share")}


def _left_out(explanation: Explanation) -> str | None:
    """Return the reasons why changes were not simulated; None without any."""
    from hwsim.views.explain.say import left_out
    from hwsim.views.explain.what_if import LARGEST

    if explanation.what_if is None:
        return f"not asked for, or more than {LARGEST} ops"
    return "; ".join(left_out(explanation)) or None
