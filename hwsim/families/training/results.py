"""Results of a training: time of its steps, what the devices did in it, and the time of the entire training.

The time of the last step, on one device of each pipeline stage, goes to three things:

    computing   kernels run.
    exposed     nothing runs, because a collective or a message is waited for.
    bubble      nothing runs, and nothing is under way: other stages work, or slower GPUs.

**Range**: time that a kernel loses to concurrent collectives counts as computing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from hwsim import ticks
from hwsim.graph.opgraph import Trained
from hwsim.records import dataclass
from hwsim.results.inside import collecting
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO
from hwsim.units import DAY

if TYPE_CHECKING:
    from hwsim.results.failing import Checkpoints, Failing

EXCHANGES: Final = ("dp", "scatter", "comm")  # kinds of queues on which replicas exchange
MAIN: Final = "main"  # the program of a workload without jobs


@dataclass(frozen=True, slots=True)
class Stage:
    """One device of a pipeline stage, and the parts of a step that go to each of the three."""

    device: str
    computing: float
    exposed: float
    bubble: float


@dataclass(frozen=True, slots=True)
class KindCompute:
    """GPUs of one kind among several: seconds of a step that each computes, in the mean."""

    devices: tuple[str, ...]
    computing_s: float


@dataclass(frozen=True, slots=True)
class Training:
    """The steps of one training.

    Args:
        step_s: seconds of the last step, from the end of the step before; first_s: of the first; ended_s: end of the last.
        count, unit: tokens, images, ... of a step; rate: the same per second.
        flop: of the model, of a step.
        mfu: that over the FLOP that the devices' peaks could do in that time.
        stages: parts of the last step, on one device of each stage.
        after_s: that its ops go on after the last step, for one that is not simulated.
        whole: tokens, images, ... of the entire training, 0 if not given; days: time of that, if every step is as the last.
        replicas: data-parallel replicas, if some of them represent all; 1 if each has its own ops.
        classes: those that were simulated, each with the number that it represents; () if each has its own ops.
        weights: stage groups that each of `stages` represents, if they differ.
        kinds: how long GPUs of each kind compute if there are several kinds, the slowest first.
        saved: its checkpoints; failing: what failures leave of its time.
    """

    name: str
    plan: str
    gpus: int
    steps: int
    step_s: float
    first_s: float
    count: float
    unit: str
    flop: float
    mfu: float
    stages: tuple[Stage, ...]
    whole: float = 0.0
    replicas: int = 1
    classes: tuple[tuple[int, int], ...] = ()
    weights: tuple[int, ...] = ()
    kinds: tuple[KindCompute, ...] = ()
    ended_s: float = 0.0
    after_s: float = 0.0
    saved: Checkpoints | None = None
    failing: Failing | None = None

    @property
    def rate(self) -> float:
        return self.count / self.step_s if self.step_s > 0 else 0.0

    @property
    def days(self) -> float:
        return self.whole / self.count * self.step_s / DAY if self.count > 0 else 0.0

    @property
    def computing(self) -> float:
        return self._mean([stage.computing for stage in self.stages])

    @property
    def exposed(self) -> float:
        return self._mean([stage.exposed for stage in self.stages])

    @property
    def bubble(self) -> float:
        return self._mean([stage.bubble for stage in self.stages])

    @property
    def saving_days(self) -> float:
        """Days with the checkpoints, if nothing fails; as `days` without."""
        if self.saved is None or self.saved.every_s <= 0:
            return self.days
        return self.days * (1.0 + self.saved.costs_s / self.saved.every_s)

    def _mean(self, parts: Sequence[float]) -> float:
        weights = self.weights or (1,) * len(parts)
        return math.fsum(weight * part for weight, part in zip(weights, parts, strict=True)) / max(1.0, math.fsum(weights))

    @property
    def settles(self) -> bool:
        """Whether the first step took another time than the last."""
        return abs(self.first_s - self.step_s) > 1e-3 * self.step_s

    @property
    def first_alone(self) -> bool:
        """Whether its one step is a cheaper one than those that would follow: what these wait for comes after it."""
        return self.steps == 1 and self.saved is None and self.after_s > 1e-3 * self.step_s

    def named(self) -> Mapping[str, float]:
        """Quantities for `expect:`, by their full names."""
        return {name if self.name == MAIN else f"{self.name}.{name}": value for name, value in self.expected().items()}

    def expected(self) -> Mapping[str, float]:
        """Quantities for `expect:`."""
        values = {"step": self.step_s, "mfu": self.mfu, "days": self.days * DAY}
        if self.failing is not None:
            values["goodput"] = self.failing.goodput.share
            if self.failing.seconds > 0:
                values |= {"days_with_failures": self.failing.seconds, "days_p90": self.failing.p90_s}
        return values


def trainings(timeline: Timeline) -> tuple[Training, ...]:
    """One for each `train:` of the graph."""
    return tuple(_training(timeline, training) for training in timeline.flat.graph.trainings)


def _training(timeline: Timeline, trained: Trained) -> Training:
    labels = timeline.flat.graph.labels
    marks = [n for n, label in enumerate(labels) if label.kind == "step" and label.program == trained.program]
    ends = sorted(int(timeline.end[op]) for op in np.flatnonzero(np.isin(timeline.flat.label, marks)).tolist())
    plain = ends if trained.saves is None else ends[: trained.saves.first]  # steps before the first checkpoint
    begin = plain[-2] if len(plain) > 1 else trained.start
    took, first = (plain[-1] - begin) / FEMTO, (ends[0] - trained.start) / FEMTO
    saved, left = _disturbed(timeline, trained, ends, took, first)
    leaders = [each.leader for each in trained.speaks]
    return Training(
        name=trained.program,
        plan=trained.plan,
        gpus=trained.gpus,
        steps=trained.steps,
        step_s=took,
        first_s=first,
        ended_s=ends[-1] / FEMTO,
        after_s=_after(timeline, trained, ends[-1]) if trained.steps == 1 else 0.0,
        count=trained.count,
        unit=trained.unit,
        flop=trained.flop,
        mfu=trained.flop / (trained.peak * took) if took > 0 else 0.0,
        stages=tuple(
            _stage(timeline, trained, device, leader, begin, plain[-1])
            for device, leader in zip(trained.devices, leaders or trained.devices, strict=True)
        ),
        whole=trained.whole,
        replicas=trained.replicas,
        classes=trained.classes,
        weights=tuple(each.teams for each in trained.speaks),
        kinds=_kinds(timeline, trained),
        saved=saved,
        failing=left,
    )


def _after(timeline: Timeline, trained: Trained, end: int) -> float:
    """Seconds that ops of a training go on after its last step."""
    own = [number for number, label in enumerate(timeline.flat.graph.labels) if label.program == trained.program]
    return (int(timeline.end[np.isin(timeline.flat.label, own)].max(initial=end)) - end) / FEMTO


def _disturbed(
    timeline: Timeline, trained: Trained, ends: Sequence[int], step_s: float, first_s: float
) -> tuple[Checkpoints | None, Failing | None]:
    """Its checkpoints, and what failures leave of its time."""
    if trained.saves is None:
        return None, None
    from hwsim.results.failing import checkpoints, failing

    saved = checkpoints(timeline, trained, ends, step_s, first_s)
    if saved is None or trained.job is None or step_s <= 0:
        return saved, None
    work = trained.whole / trained.count * step_s if trained.count > 0 else 0.0
    return failing(trained.job, trained.saves, saved, step_s, work)


def _kinds(timeline: Timeline, trained: Trained) -> tuple[KindCompute, ...]:
    """Seconds of a step that kernels take on GPUs of each kind, by the amounts that they draw."""
    if not trained.kinds:
        return ()
    flat = timeline.flat
    is_own = np.array([label.program == trained.program for label in flat.graph.labels], np.bool_)
    ops = np.flatnonzero(is_own[flat.label] & (flat.cost >= 0))
    sizes = np.bincount(flat.cost[ops], weights=flat.size[ops], minlength=len(flat.graph.costs)) / (
        trained.steps + (trained.saves is not None and trained.saves.extra)
    )
    drawn: dict[str, float] = {}
    members = {} if flat.graph.alike is None else flat.graph.alike.members
    for number in np.flatnonzero(sizes).tolist():
        for name, amount in flat.graph.costs[number].demand.amounts:
            drawn[name] = drawn.get(name, 0.0) + float(sizes[number]) * amount
    drawn |= {name: drawn[first] for first, names in members.items() if first in drawn for name in names}
    kinds = [
        KindCompute(devices, math.fsum(drawn.get(f"{name}.compute", 0.0) for name in devices) / len(devices))
        for devices in trained.kinds
    ]
    return tuple(sorted(kinds, key=lambda each: (-each.computing_s, each.devices[0])))


def _stage(timeline: Timeline, trained: Trained, device: str, leader: str, begin: int, end: int) -> Stage:
    """Parts of a window of time on a device. leader: device on whose queues its stage group exchanges with others."""
    graph = timeline.flat.graph
    is_own = np.array([label.device == device and label.program == trained.program for label in graph.labels], np.bool_)
    computing = np.array([queue.device == device and queue.kind == "compute" for queue in graph.queues] + [False], np.bool_)
    mine = is_own[timeline.flat.label]
    if leader != device:
        theirs = np.array([q.device == leader and q.kind in EXCHANGES for q in graph.queues] + [False], np.bool_)
        mine |= theirs[timeline.flat.queue]
    ops = np.flatnonzero(mine & (timeline.end > begin) & (timeline.start < end))
    start, stop = np.maximum(timeline.start[ops], begin), np.minimum(timeline.end[ops], end)
    works = computing[timeline.flat.queue[ops]]
    waited, took = 0.0, (stop - start)[works].tolist()
    for inside, time in zip(collecting(timeline, (trained,), ops)[works].tolist(), took, strict=True):
        waited += inside * time
    busy = ticks.covered(start[works], stop[works])
    exposed = ticks.covered(start, stop) - busy + waited
    window = max(1, end - begin)
    return Stage(device, (busy - waited) / window, exposed / window, max(0.0, window - busy - exposed + waited) / window)
