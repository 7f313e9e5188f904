"""What the steps of a training came to: their time, what the devices made of it, and how long all of it takes.

Of the last step, on one device of each pipeline stage, its time goes to three things:

    computing   kernels run
    exposed     nothing runs, because a collective or a message is waited for
    bubble      nothing runs, and nothing is under way: other stages work

**Range**: what a kernel loses to collectives beside it counts as computing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from hwsim.opgraph import Trained
from hwsim.results.timeline import FEMTO, Timeline

Span = tuple[int, int]
DAY: Final = 86_400.0
MAIN: Final = "main"  # the program of a workload without jobs


@dataclass(frozen=True, slots=True)
class Stage:
    """One device of a pipeline stage: parts of a step that go to each."""

    device: str
    computing: float
    exposed: float
    bubble: float


@dataclass(frozen=True, slots=True)
class Training:
    """The steps of one training.

    Args:
        step_s: of the last step, from the end of the one before; first_s: of the first.
        count, unit: of a step; rate: of it per second; mfu: the model's FLOP over what the devices' peaks could do meanwhile.
        stages: what the time of the last step went to.
        whole: of `unit`, all of the training, 0 if nobody says; days: they take, if every step is as the last.
        told: copies of the model for which one was simulated.
    """

    name: str
    plan: str
    gpus: int
    steps: int
    step_s: float
    first_s: float
    count: float
    unit: str
    mfu: float
    stages: tuple[Stage, ...]
    whole: float = 0.0
    told: int = 1

    @property
    def rate(self) -> float:
        return self.count / self.step_s if self.step_s > 0 else 0.0

    @property
    def days(self) -> float:
        return self.whole / self.count * self.step_s / DAY if self.count > 0 else 0.0

    @property
    def computing(self) -> float:
        return math.fsum(each.computing for each in self.stages) / max(1, len(self.stages))

    @property
    def exposed(self) -> float:
        return math.fsum(each.exposed for each in self.stages) / max(1, len(self.stages))

    @property
    def bubble(self) -> float:
        return math.fsum(each.bubble for each in self.stages) / max(1, len(self.stages))

    @property
    def settles(self) -> bool:
        """Whether the first step took another time than the last."""
        return abs(self.first_s - self.step_s) > 1e-3 * self.step_s

    def expected(self) -> Mapping[str, float]:
        """What a workload may expect of it."""
        return {"step": self.step_s, "mfu": self.mfu, "days": self.days * DAY}


def expected_of(found: Iterable[Training]) -> dict[str, float]:
    """What a workload may expect of its trainings, those of jobs after their names."""
    return {
        name if each.name == MAIN else f"{each.name}.{name}": value for each in found for name, value in each.expected().items()
    }


def trainings(timeline: Timeline) -> tuple[Training, ...]:
    """One for each `train:` of the graph."""
    return tuple(_training(timeline, each) for each in timeline.flat.graph.trainings)


def _training(timeline: Timeline, known: Trained) -> Training:
    labels = timeline.flat.graph.labels
    marks = [n for n, label in enumerate(labels) if label.kind == "step" and label.program == known.program]
    ends = sorted(int(timeline.end[op]) for op in np.flatnonzero(np.isin(timeline.flat.label, marks)).tolist())
    begin = ends[-2] if len(ends) > 1 else known.start
    took = (ends[-1] - begin) / FEMTO
    return Training(
        name=known.program,
        plan=known.plan,
        gpus=known.gpus,
        steps=known.steps,
        step_s=took,
        first_s=(ends[0] - known.start) / FEMTO,
        count=known.count,
        unit=known.unit,
        mfu=known.flop / (known.peak * took) if took > 0 else 0.0,
        stages=tuple(_stage(timeline, known, device, begin, ends[-1]) for device in known.devices),
        whole=known.whole,
        told=known.told,
    )


def _stage(timeline: Timeline, known: Trained, device: str, begin: int, end: int) -> Stage:
    """What a device did in a window of time."""
    graph, inside = timeline.flat.graph, dict(known.inside)
    own = np.array([label.device == device and label.program == known.program for label in graph.labels], np.bool_)
    computing = np.array([queue.name.endswith(f"{device}.compute") for queue in graph.queues] + [False], np.bool_)
    ops = np.flatnonzero(own[timeline.flat.label] & (timeline.end > begin) & (timeline.start < end))
    working: list[Span] = []
    moving: list[Span] = []
    waited = 0.0
    for op in ops.tolist():
        span = max(begin, int(timeline.start[op])), min(end, int(timeline.end[op]))
        if computing[timeline.flat.queue[op]]:
            working.append(span)
            waited += inside.get(int(timeline.flat.cost[op]), 0.0) * (span[1] - span[0])
        else:
            moving.append(span)
    busy = _covered(working)
    exposed = _covered([*working, *moving]) - busy + waited
    whole = max(1, end - begin)
    return Stage(device, (busy - waited) / whole, exposed / whole, max(0.0, whole - busy - exposed + waited) / whole)


def _covered(spans: Iterable[Span]) -> int:
    """Time in at least one of them."""
    total, reached = 0, -1
    for begin, end in sorted(spans):
        if end > reached:
            total += end - max(begin, reached)
            reached = end
    return total
