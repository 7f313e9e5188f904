"""When the programs had issued their last op: an asynchronous front end is done long before the run."""

from __future__ import annotations

from typing import Final

import numpy as np

from hwsim.results.timeline import FEMTO, Timeline

ISSUING: Final = frozenset({"dispatch", "compile", "call", "insert"})  # kinds of what a program's thread does to issue an op


def issued_s(timeline: Timeline) -> float | None:
    """Seconds until every op was issued and had its place in a queue; None where issuing costs nothing (no runtime)."""
    labels = timeline.flat.graph.labels
    issuing = np.array([label.kind in ISSUING for label in labels], np.bool_)
    if not issuing.any() or not len(timeline):
        return None
    ends = timeline.end[issuing[timeline.flat.label]]
    return max(ends.tolist(), default=0) / FEMTO
