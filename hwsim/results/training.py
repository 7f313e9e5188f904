"""What the steps of a training came to: their time, what the devices made of it, and how long all of it takes.

Of the last step, on one device of each pipeline stage, its time goes to three things:

    computing   kernels run
    exposed     nothing runs, because a collective or a message is waited for
    bubble      nothing runs, and nothing is under way: other stages work, or slower GPUs

**Range**: what a kernel loses to collectives beside it counts as computing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from hwsim.graph.opgraph import Trained
from hwsim.records import dataclass
from hwsim.results.timeline import FEMTO, Timeline

Span = tuple[int, int]
DAY: Final = 86_400.0
EXCHANGES: Final = ("dp", "scatter", "comm")  # queues of a device on which copies of a model exchange
MAIN: Final = "main"  # the program of a workload without jobs


@dataclass(frozen=True, slots=True)
class Stage:
    """One device of a pipeline stage: parts of a step that go to each."""

    device: str
    computing: float
    exposed: float
    bubble: float


@dataclass(frozen=True, slots=True)
class Pace:
    """GPUs of one kind among several: seconds of a step that each computes, in the mean."""

    devices: tuple[str, ...]
    computing_s: float


@dataclass(frozen=True, slots=True)
class Training:
    """The steps of one training.

    Args:
        step_s: of the last step, from the end of the one before; first_s: of the first; ended_s: when the last one ended.
        count, unit: of a step; rate: of it per second; mfu: the model's FLOP over what the devices' peaks could do meanwhile.
        stages: what the time of the last step went to.
        whole: of `unit`, all of the training, 0 if nobody says; days: they take, if every step is as the last.
        told: copies of the model for which one was simulated.
        weights: how many teams each of `stages` speaks for, where they differ.
        paces: of GPUs of several kinds, the slowest first.
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
    weights: tuple[int, ...] = ()
    paces: tuple[Pace, ...] = ()
    ended_s: float = 0.0

    @property
    def rate(self) -> float:
        return self.count / self.step_s if self.step_s > 0 else 0.0

    @property
    def days(self) -> float:
        return self.whole / self.count * self.step_s / DAY if self.count > 0 else 0.0

    @property
    def computing(self) -> float:
        return self._mean([each.computing for each in self.stages])

    @property
    def exposed(self) -> float:
        return self._mean([each.exposed for each in self.stages])

    @property
    def bubble(self) -> float:
        return self._mean([each.bubble for each in self.stages])

    def _mean(self, parts: Sequence[float]) -> float:
        weights = self.weights or (1,) * len(parts)
        return math.fsum(weight * part for weight, part in zip(weights, parts, strict=True)) / max(1.0, math.fsum(weights))

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
    leaders = [each.leader for each in known.speaks]
    return Training(
        name=known.program,
        plan=known.plan,
        gpus=known.gpus,
        steps=known.steps,
        step_s=took,
        first_s=(ends[0] - known.start) / FEMTO,
        ended_s=ends[-1] / FEMTO,
        count=known.count,
        unit=known.unit,
        mfu=known.flop / (known.peak * took) if took > 0 else 0.0,
        stages=tuple(
            _stage(timeline, known, device, leader, begin, ends[-1])
            for device, leader in zip(known.devices, leaders or known.devices, strict=True)
        ),
        whole=known.whole,
        told=known.told,
        weights=tuple(each.teams for each in known.speaks),
        paces=_paces(timeline, known),
    )


def _paces(timeline: Timeline, known: Trained) -> tuple[Pace, ...]:
    """What kernels of GPUs of each kind take of a step, by what they draw of the GPUs."""
    if not known.kinds:
        return ()
    flat = timeline.flat
    own = np.array(
        [label.program == known.program and not label.name.startswith("evaluate ") for label in flat.graph.labels], np.bool_
    )
    ops = np.flatnonzero(own[flat.label] & (flat.cost >= 0))
    sizes = np.bincount(flat.cost[ops], weights=flat.size[ops], minlength=len(flat.graph.costs)) / known.steps
    drawn: dict[str, float] = {}
    for number in np.flatnonzero(sizes).tolist():
        for name, amount in flat.graph.costs[number].demand.amounts:
            if name.endswith(".compute"):
                drawn[name] = drawn.get(name, 0.0) + float(sizes[number]) * amount
    found = [
        Pace(devices, math.fsum(drawn.get(f"{name}.compute", 0.0) for name in devices) / len(devices)) for devices in known.kinds
    ]
    return tuple(sorted(found, key=lambda each: (-each.computing_s, each.devices[0])))


def _stage(timeline: Timeline, known: Trained, device: str, leader: str, begin: int, end: int) -> Stage:
    """What a device did in a window of time.  leader: on whose queues its team exchanges with others."""
    graph, inside = timeline.flat.graph, dict(known.inside)
    own = np.array([label.device == device and label.program == known.program for label in graph.labels], np.bool_)
    computing = np.array([queue.name.endswith(f"{device}.compute") for queue in graph.queues] + [False], np.bool_)
    mine = own[timeline.flat.label]
    if leader != device:
        theirs = np.array([_exchanges(queue.name, leader) for queue in graph.queues] + [False], np.bool_)
        mine |= theirs[timeline.flat.queue]
    ops = np.flatnonzero(mine & (timeline.end > begin) & (timeline.start < end))
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


def _exchanges(queue: str, leader: str) -> bool:
    """Whether copies exchange on a queue, led by that device.

    >>> _exchanges("node0.gpu0.dp", "node0.gpu0"), _exchanges("job:gpu0.comm 2", "gpu0"), _exchanges("gpu0.tp", "gpu0")
    (True, True, False)
    """
    device, _, what = queue.rpartition(":")[2].rpartition(".")
    return device == leader and what.split(" ")[0] in EXCHANGES


def _covered(spans: Iterable[Span]) -> int:
    """Time in at least one of them."""
    total, reached = 0, -1
    for begin, end in sorted(spans):
        if end > reached:
            total += end - max(begin, reached)
            reached = end
    return total
