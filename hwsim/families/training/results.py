"""Results of a training: time of its steps, utilization of the devices, and the time of the entire training.

The time of the last step, on one device of each pipeline stage, has three parts:

    computing   kernels run.
    exposed     no kernel runs, because the device waits for a collective or a message.
    bubble      no kernel runs and no communication is in flight: other stages or slower GPUs are working.

**Range**: the slowdown of a kernel by concurrent collectives and the wait for kernel launches (`issue` of the framework) count as
computing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from hwsim import ticks
from hwsim.graph.opgraph import TrainingRecord
from hwsim.records import dataclass
from hwsim.results.embedded_collectives import collective_fractions
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO
from hwsim.units import DAY

if TYPE_CHECKING:
    from hwsim.results.training_failures import Checkpoints, FailureOutcome

EXCHANGES: Final = ("dp", "scatter", "comm")  # kinds of queues for exchanges among replicas
MAIN: Final = "main"  # name of the program of a workload without jobs


@dataclass(frozen=True, slots=True)
class StageTime:
    """A device of a pipeline stage, and the shares of a step that it spends computing, in exposed communication, and idle."""

    device: str
    computing: float
    exposed: float
    bubble: float


@dataclass(frozen=True, slots=True)
class KindCompute:
    """The GPUs of one kind, and the average time per step that each of them computes (s)."""

    devices: tuple[str, ...]
    computing_s: float


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """The results of one training.

    Args:
        name: name of the program.
        plan: description of the parallel plan.
        gpus: number of GPUs.
        steps: number of simulated steps.
        step_s: time of the last step, from the end of the previous one (s).
        first_s: time of the first step (s).
        count: tokens, images or others per step.
        unit: unit of `count`.
        flop: FLOP of the model per step.
        mfu: model FLOP utilization: `flop` over the FLOP of all devices at their peak in `step_s`.
        stages: shares of the last step, on one device of each stage.
        whole: tokens, images or others of the entire training; 0 if unknown.
        replicas: number of data-parallel replicas if some represent others, else 1.
        classes: (simulated replica, number of replicas that it represents); () if all are simulated.
        weights: number of stage groups that each of `stages` represents, if they differ.
        kinds: computing time of each kind of GPU, the slowest first; () if there is only one kind.
        ended_s: end of the last step (s).
        after_s: time of further ops after a single step (s).
        saved: checkpoints; None: none.
        failing: goodput and days with failures; None: without failure rates.
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
    stages: tuple[StageTime, ...]
    whole: float = 0.0
    replicas: int = 1
    classes: tuple[tuple[int, int], ...] = ()
    weights: tuple[int, ...] = ()
    kinds: tuple[KindCompute, ...] = ()
    ended_s: float = 0.0
    after_s: float = 0.0
    saved: Checkpoints | None = None
    failing: FailureOutcome | None = None

    @property
    def rate(self) -> float:
        """Throughput: tokens, images or other samples per second."""
        return self.count / self.step_s if self.step_s > 0 else 0.0

    @property
    def days(self) -> float:
        """Days of the entire training at the rate of the last step."""
        return self.whole / self.count * self.step_s / DAY if self.count > 0 else 0.0

    @property
    def computing(self) -> float:
        """Average share of a step in which a GPU computes."""
        return self._mean([stage.computing for stage in self.stages])

    @property
    def exposed(self) -> float:
        """Average share of a step in exposed communication."""
        return self._mean([stage.exposed for stage in self.stages])

    @property
    def bubble(self) -> float:
        """Average share of a step in which a GPU is idle."""
        return self._mean([stage.bubble for stage in self.stages])

    @property
    def saving_days(self) -> float:
        """Days of the entire training with checkpoints and without failures."""
        if self.saved is None or self.saved.interval_s <= 0:
            return self.days
        return self.days * (1.0 + self.saved.overhead_s / self.saved.interval_s)

    def _mean(self, parts: Sequence[float]) -> float:
        weights = self.weights or (1,) * len(parts)
        return math.fsum(weight * part for weight, part in zip(weights, parts, strict=True)) / max(1.0, math.fsum(weights))

    @property
    def settles(self) -> bool:
        """Whether the first and the last step differ by more than 0.1 %."""
        return abs(self.first_s - self.step_s) > 1e-3 * self.step_s

    @property
    def first_alone(self) -> bool:
        """Whether later steps would take longer than the only simulated one, because they wait for ops after it."""
        return self.steps == 1 and self.saved is None and self.after_s > 1e-3 * self.step_s

    def named(self) -> Mapping[str, float]:
        """Return the quantities for `expect:` by full name."""
        return {name if self.name == MAIN else f"{self.name}.{name}": value for name, value in self.expected().items()}

    def expected(self) -> Mapping[str, float]:
        """Return the quantities for `expect:` by name, in SI units."""
        values = {"step": self.step_s, "mfu": self.mfu, "days": self.days * DAY}
        if self.failing is not None:
            values["goodput"] = self.failing.goodput.share
            if self.failing.seconds > 0:
                values |= {"days_with_failures": self.failing.seconds, "days_p90": self.failing.p90_s}
        return values


def trainings(timeline: Timeline) -> tuple[TrainingResult, ...]:
    """Return the results of each `train:` of the graph."""
    return tuple(_training(timeline, training) for training in timeline.flat.graph.trainings)


def _training(timeline: Timeline, trained: TrainingRecord) -> TrainingResult:
    labels = timeline.flat.graph.labels
    marks = [n for n, label in enumerate(labels) if label.kind == "step" and label.program == trained.program]
    ends = sorted(int(timeline.end[op]) for op in np.flatnonzero(np.isin(timeline.flat.label, marks)).tolist())
    plain = ends if trained.saves is None else ends[: trained.saves.first]  # ends of steps before the first checkpoint
    begin, end, steps = plain[-2] if len(plain) > 1 else trained.start, plain[-1], 1
    if trained.workers:  # the steps of which `pipeline` states the rate
        from hwsim.families.pipeline.starvation import steady_batches

        low, high = steady_batches(ticks.column(plain), 0, len(plain), trained.workers)
        begin, end, steps = plain[low - 1] if low else trained.start, plain[high - 1], high - low
    took, first = (end - begin) / steps / FEMTO, (ends[0] - trained.start) / FEMTO
    saved, left = _disturbed(timeline, trained, ends, took, first)
    leaders = [group.leader for group in trained.speaks]
    return TrainingResult(
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
            _stage(timeline, trained, device, leader, begin, end)
            for device, leader in zip(trained.devices, leaders or trained.devices, strict=True)
        ),
        whole=trained.whole,
        replicas=trained.replicas,
        classes=trained.classes,
        weights=tuple(group.teams for group in trained.speaks),
        kinds=_kinds(timeline, trained),
        saved=saved,
        failing=left,
    )


def _after(timeline: Timeline, trained: TrainingRecord, end: int) -> float:
    """Return the time of ops of a training after its last step (s)."""
    own = [number for number, label in enumerate(timeline.flat.graph.labels) if label.program == trained.program]
    return (int(timeline.end[np.isin(timeline.flat.label, own)].max(initial=end)) - end) / FEMTO


def _disturbed(
    timeline: Timeline, trained: TrainingRecord, ends: Sequence[int], step_s: float, first_s: float
) -> tuple[Checkpoints | None, FailureOutcome | None]:
    """Return (checkpoints, goodput with failures) of a training, each None if absent."""
    if trained.saves is None:
        return None, None
    from hwsim.results.training_failures import checkpoints, failing

    saved = checkpoints(timeline, trained, ends, step_s, first_s)
    if saved is None or trained.job is None or step_s <= 0:
        return saved, None
    work = trained.whole / trained.count * step_s if trained.count > 0 else 0.0
    return failing(trained.job, trained.saves, saved, step_s, work)


def _kinds(timeline: Timeline, trained: TrainingRecord) -> tuple[KindCompute, ...]:
    """Return the computing time per step of each kind of GPU, from the amounts of its ops."""
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
    return tuple(sorted(kinds, key=lambda kind: (-kind.computing_s, kind.devices[0])))


def _stage(timeline: Timeline, trained: TrainingRecord, device: str, leader: str, begin: int, end: int) -> StageTime:
    """Return the shares of a time window on a device; `leader`: device whose queues have the exchanges of its stage group."""
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
    for inside, time in zip(collective_fractions(timeline, (trained,), ops)[works].tolist(), took, strict=True):
        waited += inside * time
    busy = ticks.covered(start[works], stop[works])
    exposed = ticks.covered(start, stop) - busy + waited
    window = max(1, end - begin)
    return StageTime(device, (busy - waited) / window, exposed / window, max(0.0, window - busy - exposed + waited) / window)
