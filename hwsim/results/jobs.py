"""When each of several jobs on one machine began and ended."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hwsim.records import dataclass
from hwsim.results.timeline import FEMTO, Timeline


@dataclass(frozen=True, slots=True)
class JobSpan:
    """A job from its start to the end of its last op, in s."""

    name: str
    start_s: float
    end_s: float

    @property
    def makespan_s(self) -> float:
        """How long it took."""
        return self.end_s - self.start_s


def job_spans(timeline: Timeline, jobs: Sequence[tuple[str, int]]) -> tuple[JobSpan, ...]:
    """One for each (name, start in fs): its programs are called `name` or `name.` and more."""
    labels = timeline.flat.graph.labels
    found = []
    for name, start in jobs:
        own = np.array([label.program == name or label.program.startswith(f"{name}.") for label in labels], np.bool_)
        ops = np.flatnonzero(own[timeline.flat.label])
        end = max((int(timeline.end[op]) for op in ops.tolist()), default=start)
        found.append(JobSpan(name, start / FEMTO, end / FEMTO))
    return tuple(found)
