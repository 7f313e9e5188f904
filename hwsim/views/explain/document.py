"""Why a run took as long as it did: text, JSON (`hwsim: explain/1`) or a figure, by the file's suffix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hwsim import invariants
from hwsim.results.result import Result
from hwsim.results.timeline import FEMTO
from hwsim.views.kit.figure import FORMATS
from hwsim.views.kit.warned import as_dicts

if TYPE_CHECKING:
    from hwsim.views.explain.critical import Share
    from hwsim.views.explain.derivation import Derivation
    from hwsim.views.explain.explanation import Explanation
    from hwsim.views.explain.steps import Run


def render(result: Result, suffix: str = "") -> Iterable[bytes]:
    """The explanation as bytes: a figure for .png, .svg, .pdf; JSON for .json; else text."""
    from hwsim.views.explain import draw as explain_figure
    from hwsim.views.explain.explanation import explain  # a run that nobody explains starts without it
    from hwsim.views.explain.say import text

    if suffix.lower().lstrip(".") in FORMATS:
        return explain_figure.render(result, explain(result, again=False), suffix)
    found = explain(result)
    return ((document(result, found) if suffix.lower() == ".json" else text(result, found)).encode(),)


def document(result: Result, found: Explanation, *, path: bool = False) -> str:
    """The explanation as JSON, keys sorted: same result, same bytes."""
    return invariants.document(as_dict(result, found, path=path))


def as_dict(result: Result, found: Explanation, *, path: bool = False) -> dict[str, Any]:
    """The explanation as dicts and lists; `path` adds the critical path piece by piece.  Keys end in their unit."""
    said: dict[str, Any] = {
        "hwsim": "explain/1",
        "machine": result.machine,
        "workload": result.workload,
        "set": dict(result.settings),
        "events": [asdict(one) for one in result.events],
        "makespan_s": result.makespan_s,
        "makespan_fs": result.timeline.makespan_fs,
        "warnings": as_dicts(result.warnings),
        "sentences": list(found.sentences),
        "accounting": [_share(share) for share in found.accounting],
        "critical_path": [_run(run) for run in found.runs],
        "activities": [
            {
                "sort": one.sort,
                "device": one.device,
                "names": list(one.names),
                "count": one.count,
                "busy_s": one.busy_s,
                "work_s": one.work_fs / FEMTO,
                "on_path_s": one.path_s,
                "hidden_s": one.hidden_s,
            }
            for one in found.activities
        ],
        "derivations": [_derivation(one) for one in found.derivations],
        "what_if": [
            {
                "change": one.change,
                "set": dict(one.settings),
                "together": one.together,
                "hypothetical": one.hypothetical,
                "measured": dict(one.measured),
                "makespan_s": one.makespan_s,
                "makespan_fs": one.makespan_fs,
                "speedup": one.speedup,
                "limited_by": [_share(share) for share in one.limited_by[:3]],
            }
            for one in found.what_if or ()
        ],
        "what_if_of": found.measure.name if found.measure is not None else "makespan",
        "what_if_left_out": _left_out(found),
    }
    if path:
        graph, labels = result.timeline.flat.graph, result.timeline.flat.label
        said["pieces"] = [
            {
                "op": piece.op,
                "name": graph.labels[int(labels[piece.op])].name,
                "kind": graph.labels[int(labels[piece.op])].kind,
                "device": graph.labels[int(labels[piece.op])].device,
                "iteration": int(result.timeline.flat.iteration[piece.op]),
                "start_fs": piece.start_fs,
                "end_fs": piece.end_fs,
                "cause": str(piece.cause),
            }
            for piece in found.path
        ]
    return said


def _share(share: Share) -> dict[str, Any]:
    return {
        "cause": str(share.cause),
        "kind": share.cause.kind,
        "time_s": share.time_s,
        "time_fs": share.time_fs,
        "share": share.share,
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "start_s": run.start_s,
        "end_s": run.end_s,
        "start_fs": run.start_fs,
        "end_fs": run.end_fs,
        "times": run.times,
        "steps": [
            {
                "name": step.label.name,
                "kind": step.label.kind,
                "device": step.label.device,
                "cause": str(step.cause),
                "ops": step.ops,
                "time_s": step.time_s,
                "time_fs": step.time_fs,
            }
            for step in run.steps
        ],
    }


def _derivation(found: Derivation) -> dict[str, Any]:
    return {
        "name": found.name,
        "kind": found.kind,
        "devices": list(found.devices),
        "count": found.count,
        "size": found.size,
        "own_s": found.own_s,
        "lines": [
            {**asdict(line), "inputs": [dict(zip(("name", "value", "source"), one, strict=True)) for one in line.inputs]}
            for line in found.lines
        ],
        "alone_s": found.alone_s,
        "alone": found.alone,
        "shortest_s": found.shortest_s,
        "longest_s": found.longest_s,
        "because": list(found.because),
    }


def _left_out(found: Explanation) -> str | None:
    """Why changes were not simulated, if any were not."""
    from hwsim.views.explain.what_if import LARGEST

    if found.what_if is None:
        return f"not asked for, or more than {LARGEST} ops"
    from hwsim.views.explain.say import left_out

    return "; ".join(left_out(found)) or None
