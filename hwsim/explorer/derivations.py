"""Slower answers: the derivation of an op, the explanation of the run, and changes that would help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hwsim.api import Run
from hwsim.explorer.answer import instead
from hwsim.results.critical import critical_path
from hwsim.results.slack import slack
from hwsim.ticks import FEMTO
from hwsim.views.explain.derivation import Derivation, derivations, seconds
from hwsim.views.explain.explanation import explain
from hwsim.views.explain.wait_reasons import reasons
from hwsim.views.explain.what_if import WhatIf

MOST: Final = 40  # limit of derivations that are sent
LARGEST: Final = 50_000  # ops: larger runs are not repeated with changes


def op(run: Run, number: int) -> dict[str, Any] | None:
    """Return the derivation of an op with its numbers; None if the run has no such op."""
    timeline = run.timeline
    if number >= len(timeline):
        return None
    ops = np.array([number], np.int64)
    derived = _derived(derivations(timeline, ops)[0])
    return {**derived, "slack": _spare(run, number), "waits": reasons(timeline, ops)[0]}


def _spare(run: Run, number: int) -> str:
    """Return a sentence on the slack of an op; "" if it is unknown or the measure is not the time."""
    slacks = None if instead(run, "measure") is not None else slack(run.timeline)
    if slacks is None:
        return ""
    spare = int(slacks[number])
    if not spare:
        return "No slack: a delay of this op delays the end of the run."
    return f"Slack {seconds(spare / FEMTO)}: a delay of this op up to this time does not delay the end of the run."


def more(run: Run, *, helps: bool = True) -> dict[str, Any]:
    """Return sentences, changes that would help, and derivations of the ops on the critical path, longest first.

    Args:
        helps: whether to repeat the run with changes.
    """
    if run.only_requests:
        says = [sentence for sentence in [instead(run, "text")] if sentence]
        return {"text": says, "helps": [], "derived": instead(run, "derived")[:MOST]}
    number = instead(run, "measure")
    explanation = explain(run, again=helps and len(run.timeline) <= LARGEST)
    return {
        "text": list(explanation.sentences),
        "helps": [_help(change, number) for change in explanation.what_if or () if change.makespan_fs is not None],
        "derived": [
            {"name": derivation.name, "op": _first(run, derivation), **_derived(derivation)}
            for derivation in explanation.derivations[:MOST]
        ],
    }


def _help(change: WhatIf, number: dict[str, Any] | None) -> dict[str, Any]:
    """Return the gain of a change for the page.

    Args:
        number: measure of a served model without the change.
    """
    measured = dict(change.measured)
    return {
        "path": change.settings[0][0] if len(change.settings) == 1 else "",
        "settings": [list(pair) for pair in change.settings],
        "text": change.change,
        "factor": change.speedup,
        "seconds": change.makespan_s,
        "measure": {**number, "value": measured.get(number["measure"])} if number and measured else None,
    }


def _derived(derivation: Derivation) -> dict[str, Any]:
    return {
        "lines": [[line.label, line.formula, line.numbers, line.time_s] for line in derivation.lines],
        "unloaded": derivation.unloaded,
        "reasons": list(derivation.reasons),
    }


def _first(run: Run, derivation: Derivation) -> int:
    """Return the first op on the critical path with the name of a derivation; -1 if there is none."""
    labels = run.timeline.flat.graph.labels
    path: Sequence[int] = critical_path(run.timeline).op.tolist()
    return next((op for op in path if labels[int(run.timeline.flat.label[op])].name == derivation.name), -1)
