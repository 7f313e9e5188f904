"""Answers for a hand that rests: the derivation of one op, the explanation of the run, and the changes that would help."""

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
from hwsim.views.explain.waiting import reasons
from hwsim.views.explain.what_if import WhatIf

MOST: Final = 40  # derivations that are sent
LARGEST: Final = 50_000  # ops of a run that is tried again with better numbers


def op(run: Run, number: int) -> dict[str, Any] | None:
    """An op with the numbers put in; None if the run has no such op."""
    timeline = run.timeline
    if number >= len(timeline):
        return None
    ops = np.array([number], np.int64)
    derived = _derived(derivations(timeline, ops)[0])
    return {**derived, "spare": _spare(run, number), "waits": reasons(timeline, ops)[0]}


def _spare(run: Run, number: int) -> str:
    """The spare time of an op as a sentence; "" if that is not known, or another number than the time is wanted."""
    every = None if instead(run, "wanted") is not None else slack(run.timeline)
    if every is None:
        return ""
    spare = int(every[number])
    if not spare:
        return "No spare time: if it ends later, so does the run."
    return f"Spare time {seconds(spare / FEMTO)}: it could end that much later without delaying the end, all else as it is."


def more(run: Run, *, helps: bool = True) -> dict[str, Any]:
    """Sentences, changes that would help, and derivations of the ops on the critical path, the longest first.

    Args:
        helps: whether to run it again with better numbers.
    """
    if run.only_requests:
        says = [each for each in [instead(run, "says")] if each]
        return {"says": says, "helps": [], "derived": instead(run, "derived")[:MOST]}
    number = instead(run, "wanted")
    explanation = explain(run, again=helps and len(run.timeline) <= LARGEST)
    return {
        "says": list(explanation.sentences),
        "helps": [_help(each, number) for each in explanation.what_if or () if each.makespan_fs is not None],
        "derived": [
            {"name": derivation.name, "op": _first(run, derivation), **_derived(derivation)}
            for derivation in explanation.derivations[:MOST]
        ],
    }


def _help(change: WhatIf, number: dict[str, Any] | None) -> dict[str, Any]:
    """The gain of a change, as the page shows it.

    Args:
        number: the measure of a served model without the change.
    """
    measured = dict(change.measured)
    return {
        "path": change.settings[0][0] if len(change.settings) == 1 else "",
        "settings": [list(pair) for pair in change.settings],
        "says": change.change,
        "factor": change.speedup,
        "seconds": change.makespan_s,
        "wanted": {**number, "value": measured.get(number["measure"])} if number and measured else None,
    }


def _derived(derivation: Derivation) -> dict[str, Any]:
    return {
        "lines": [[line.label, line.formula, line.numbers, line.time_s] for line in derivation.lines],
        "alone": derivation.alone,
        "because": list(derivation.because),
    }


def _first(run: Run, derivation: Derivation) -> int:
    """An op on the critical path that a derivation is of; -1 if there is none of its name."""
    labels = run.timeline.flat.graph.labels
    path: Sequence[int] = critical_path(run.timeline).op.tolist()
    return next((each for each in path if labels[int(run.timeline.flat.label[each])].name == derivation.name), -1)
