"""Checkpoints of a simulated training, and its time with failures.

    stop      pause of the training for a checkpoint: copy and write (sync), or copy only (async)
    slower    extra time of the steps during an asynchronous write
    lag       time after its copy until an asynchronous checkpoint is complete

Goodput and days are computed by `hwsim.failures`: the average in closed form, percentiles over the random failure times by
simulation. The uncertainty of the failure rates is a range of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from hwsim.failures import CheckpointSchedule, FailingJob, Goodput, MemoryCopies, Restart, Simulated, goodput, simulate_failures
from hwsim.graph.opgraph import TrainingRecord
from hwsim.records import dataclass
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO

if TYPE_CHECKING:
    from hwsim.results.interval import Interval

COPY: Final = "checkpoint copy"
WRITE: Final = "checkpoint"
MOST: Final = 2_000  # largest number of simulated failures; a longer training scales by the square root


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """The checkpoints of a training, averaged over the simulated ones.

    Args:
        mode: sync or async.
        written: number of simulated checkpoints.
        interval_s: interval between checkpoints (s); 0 if unknown.
        interval_steps: steps between checkpoints; 0 if unknown.
        pause_s: pause of the training (s).
        slowdown_s: extra time of the steps during an asynchronous write (s).
        write_s: time of the write (s).
        lag_s: time until an asynchronous checkpoint is complete (s).
        bytes: size (B).
        storage: storage.
        load_s: time to load the checkpoint at a restart (s).
    """

    mode: str
    written: int
    interval_s: float
    interval_steps: int
    pause_s: float
    slowdown_s: float
    write_s: float
    lag_s: float
    bytes: float
    storage: str
    load_s: float

    @property
    def overhead_s(self) -> float:
        """Time that one checkpoint costs the training (s)."""
        return self.pause_s + self.slowdown_s


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureOutcome:
    """Goodput and time of a training with failures.

    Args:
        job: failure rates and restart times of the job.
        goodput: goodput, and the causes of the lost time.
        seconds: average time of the whole training (s); 0 if its length is unknown.
        p50_s, p90_s: percentiles over the random failure times (s).
        low_s, high_s: 90 % range of the average by the uncertainty of the failure rates (s); high_s is None if it may never
            end.
        failures: average number of failures.
    """

    job: FailingJob
    goodput: Goodput
    seconds: float = 0.0
    p50_s: float = 0.0
    p90_s: float = 0.0
    low_s: float = 0.0
    high_s: float | None = 0.0
    failures: float = 0.0


def checkpoints(
    timeline: Timeline, trained: TrainingRecord, ends: Sequence[int], step_s: float, first_s: float
) -> Checkpoints | None:
    """Return the checkpoints of a training; None without any.

    Args:
        timeline: timeline.
        trained: training.
        ends: ends of its steps (fs).
        step_s: time of a step without a checkpoint write (s).
        first_s: time of the first step after a pause (s).
    """
    saves = trained.saves
    if saves is None:
        return None
    copies, writes = (_spans(timeline, trained.program, name) for name in (COPY, WRITE))
    stops, slower, lags, took = [], [], [], []
    for index, (begin, end) in enumerate(writes):
        copied = copies[index] if copies else (begin, begin)
        before = max((step_end for step_end in ends if step_end <= copied[0]), default=trained.start)
        gate = copied[1] if saves.mode == "async" else end
        lag = (end - gate) / FEMTO
        stops.append((gate - before) / FEMTO)
        lags.append(lag)
        took.append((end - begin) / FEMTO)
        after = next((step_end for step_end in ends if step_end > gate), None)
        if lag > 0 and after is not None:
            step = (after - gate) / FEMTO
            more = max(0.0, step - first_s)
            slower.append(more * lag / step if lag > step else more)
    steps = saves.every or (max(1, round(saves.every_s / step_s)) if saves.every_s and step_s > 0 else 0)
    return Checkpoints(
        mode=saves.mode,
        written=len(writes),
        interval_s=steps * step_s,
        interval_steps=steps,
        pause_s=_mean(stops),
        slowdown_s=_mean(slower),
        write_s=_mean(took),
        lag_s=_mean(lags),
        bytes=saves.size,
        storage=saves.target,
        load_s=saves.load_s,
    )


def _spans(timeline: Timeline, program: str, name: str) -> list[tuple[int, int]]:
    """Return (start, end) of the ops of that name (fs), in order."""
    flat = timeline.flat
    marks = [number for number, label in enumerate(flat.graph.labels) if label.name == name and label.program == program]
    ops = np.flatnonzero(np.isin(flat.label, marks)).tolist() if marks else []
    return sorted((int(timeline.start[op]), int(timeline.end[op])) for op in ops)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def failing(
    job: FailingJob, saves: CheckpointSchedule, saved: Checkpoints, step_s: float, work_s: float
) -> tuple[Checkpoints, FailureOutcome]:
    """Return (checkpoints with their interval, goodput and time with failures) of a training.

    Args:
        job: failure rates and restart times of the job.
        saves: checkpoints as the workload states them.
        saved: checkpoints as simulated.
        step_s: time of a step (s).
        work_s: time of all steps without failures (s); 0 if unknown.

    Raises:
        NoProgress: the training never ends.
    """
    steps, best = _best(job, saves, saved, step_s)
    saved = replace(saved, interval_steps=steps, interval_s=steps * step_s)
    if work_s <= 0:
        return saved, FailureOutcome(job=job, goodput=best)
    near = saves.near and replace(saves.near, every_s=best.near_every_s)
    restart = job.restart.loading(saved.load_s)
    mean = work_s / best.share
    part = min(1.0, MOST * job.mtbf_s / mean)
    run = _simulated(job, work_s * part, best.write_s, best.every_s, restart, best.lag_s, near)
    spread = [run.percentile(level) - run.mean_s for level in (50, 90)]
    p50, p90 = (mean + distance / math.sqrt(part) for distance in spread)
    return saved, FailureOutcome(
        job=job,
        goodput=best,
        seconds=mean,
        p50_s=p50,
        p90_s=p90,
        low_s=work_s / best.high,
        high_s=work_s / best.low if best.low > 0 else None,
        failures=_mean(run.failures) / part,
    )


def combined_range(failing: FailureOutcome, sure: Interval | None) -> tuple[float, float] | None:
    """Return the 90 % range of the average time, from the failure rates and the step time together; None if either is unknown.

    Args:
        failing: time with failures.
        sure: interval of a step, or of several steps; its stated part is excluded.

    >>> combined_range(FailureOutcome.__new__(FailureOutcome), None) is None
    True
    """
    if sure is None or failing.seconds <= 0 or failing.high_s is None or sure.stated >= 0.999:
        return None
    half = sure.half / (1.0 - sure.stated)
    low, high = (math.hypot(half, math.log(end / failing.seconds)) for end in (failing.low_s, failing.high_s))
    return failing.seconds * math.exp(-low), failing.seconds * math.exp(high)


def _best(job: FailingJob, saves: CheckpointSchedule, saved: Checkpoints, step_s: float) -> tuple[int, Goodput]:
    """Return (steps between checkpoints, goodput): the stated number of steps, or the best one."""
    restart = job.restart.loading(saved.load_s)

    def goodput_of(steps: int) -> Goodput:
        waits = max(0.0, saved.lag_s - steps * step_s)  # for the previous write, because there is one buffer
        return goodput(job, saved.overhead_s + waits, restart, steps * step_s, lag_s=saved.lag_s, near=saves.near)

    if saved.interval_steps:
        return saved.interval_steps, goodput_of(saved.interval_steps)
    free = goodput(job, saved.overhead_s, restart, lag_s=saved.lag_s, near=saves.near).every_s / step_s
    around = sorted({max(1, math.floor(free)), max(1, math.ceil(free))})
    return max(((steps, goodput_of(steps)) for steps in around), key=lambda pair: pair[1].share)


@lru_cache(maxsize=16)  # several views need the same training
def _simulated(
    job: FailingJob, work_s: float, write_s: float, every_s: float, restart: Restart, lag_s: float, near: MemoryCopies | None
) -> Simulated:
    return simulate_failures(job, work_s, write_s=write_s, every_s=every_s, restart=restart, lag_s=lag_s, near=near)
