"""Checkpoints of a training as they were simulated, and what failures leave of its time.

    stop      a checkpoint stops the training: the copy and the write (sync), or the copy alone (async)
    slower    what steps take more during an asynchronous write
    lag       until an asynchronous checkpoint counts, after its copy

Goodput and days are by `hwsim.failures`: the mean in closed form, percentiles of what chance makes of it by simulation, and the
range of the rates' own spread apart from them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from hwsim.failures import Goodput, Job, Near, Restart, Saves, Simulated, goodput, simulate_failures
from hwsim.graph.opgraph import Trained
from hwsim.records import dataclass
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO

if TYPE_CHECKING:
    from hwsim.results.interval import Interval

COPY: Final = "checkpoint copy"
WRITE: Final = "checkpoint"
MOST: Final = 2_000  # failures of a run; a longer training spreads as the root of its length


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """Checkpoints of a training, in the mean of those that were simulated.

    Args:
        written: how many were simulated.
        every_s, steps: from one to the next, where that is known.
        write_s: the write alone; stop_s, slower_s, lag_s: see above.
        bytes, target, load_s: as of `Saves`.
    """

    mode: str
    written: int
    every_s: float
    steps: int
    stop_s: float
    slower_s: float
    write_s: float
    lag_s: float
    bytes: float
    target: str
    load_s: float

    @property
    def costs_s(self) -> float:
        """Seconds that one costs the training."""
        return self.stop_s + self.slower_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """The goodput and the time of a training whose parts fail.

    Args:
        seconds: mean time of the whole training, 0 if its length is not given.
        p50_s, p90_s: half, and nine of ten, such trainings stay below it by chance.
        low_s, high_s: the mean at nine of ten sites, by what is known of their rates; None: no end.
        failures: in the mean.
    """

    job: Job
    goodput: Goodput
    seconds: float = 0.0
    p50_s: float = 0.0
    p90_s: float = 0.0
    low_s: float = 0.0
    high_s: float | None = 0.0
    failures: float = 0.0


def checkpoints(timeline: Timeline, trained: Trained, ends: Sequence[int], step_s: float, first_s: float) -> Checkpoints | None:
    """The checkpoints of a training.

    ends: ends of its steps in fs; step_s, first_s: a step during which nothing is written, and the first after a pause.
    """
    saves = trained.saves
    if saves is None:
        return None
    copies, writes = (_spans(timeline, trained.program, name) for name in (COPY, WRITE))
    stops, slower, lags, took = [], [], [], []
    for at, (begin, end) in enumerate(writes):
        copied = copies[at] if copies else (begin, begin)
        before = max((each for each in ends if each <= copied[0]), default=trained.start)
        gate = copied[1] if saves.mode == "async" else end
        lag = (end - gate) / FEMTO
        stops.append((gate - before) / FEMTO)
        lags.append(lag)
        took.append((end - begin) / FEMTO)
        after = next((each for each in ends if each > gate), None)
        if lag > 0 and after is not None:
            step = (after - gate) / FEMTO
            more = max(0.0, step - first_s)
            slower.append(more * lag / step if lag > step else more)
    steps = saves.every or (max(1, round(saves.every_s / step_s)) if saves.every_s and step_s > 0 else 0)
    return Checkpoints(
        mode=saves.mode,
        written=len(writes),
        every_s=steps * step_s,
        steps=steps,
        stop_s=_mean(stops),
        slower_s=_mean(slower),
        write_s=_mean(took),
        lag_s=_mean(lags),
        bytes=saves.size,
        target=saves.target,
        load_s=saves.load_s,
    )


def _spans(timeline: Timeline, program: str, name: str) -> list[tuple[int, int]]:
    """(start, end) of the ops of that name, in order."""
    flat = timeline.flat
    marks = [n for n, label in enumerate(flat.graph.labels) if label.name == name and label.program == program]
    ops = np.flatnonzero(np.isin(flat.label, marks)).tolist() if marks else []
    return sorted((int(timeline.start[op]), int(timeline.end[op])) for op in ops)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def failing(job: Job, saves: Saves, saved: Checkpoints, step_s: float, work_s: float) -> tuple[Checkpoints, Failing]:
    """(the checkpoints with their interval, what failures leave) of a training of `work_s` seconds of steps; 0: not known.

    Raises:
        NoProgress: it never ends.
    """
    steps, best = _best(job, saves, saved, step_s)
    saved = replace(saved, steps=steps, every_s=steps * step_s)
    if work_s <= 0:
        return saved, Failing(job=job, goodput=best)
    near = saves.near and replace(saves.near, every_s=best.near_every_s)
    restart = job.restart.loading(saved.load_s)
    mean = work_s / best.share
    part = min(1.0, MOST * job.mtbf_s / mean)
    run = _simulated(job, work_s * part, best.write_s, best.every_s, restart, best.lag_s, near)
    spread = [run.percentile(level) - run.mean_s for level in (50, 90)]
    p50, p90 = (mean + each / math.sqrt(part) for each in spread)
    return saved, Failing(
        job=job,
        goodput=best,
        seconds=mean,
        p50_s=p50,
        p90_s=p90,
        low_s=work_s / best.high,
        high_s=work_s / best.low if best.low > 0 else None,
        failures=_mean(run.failures) / part,
    )


def in_all(failing: Failing, sure: Interval | None) -> tuple[float, float] | None:
    """(low, high) of the mean time at nine of ten sites: by the rates, and by how sure a step is; None if either is not known.

    sure: interval of a step, or of a run of steps, whose stated part is left out.

    >>> in_all(Failing.__new__(Failing), None) is None
    True
    """
    if sure is None or failing.seconds <= 0 or failing.high_s is None or sure.stated >= 0.999:
        return None
    half = sure.half / (1.0 - sure.stated)
    low, high = (math.hypot(half, math.log(end / failing.seconds)) for end in (failing.low_s, failing.high_s))
    return failing.seconds * math.exp(-low), failing.seconds * math.exp(high)


def _best(job: Job, saves: Saves, saved: Checkpoints, step_s: float) -> tuple[int, Goodput]:
    """(steps from one checkpoint to the next, its goodput): as stated, or the best number of whole steps."""
    restart = job.restart.loading(saved.load_s)

    def of(steps: int) -> Goodput:
        waits = max(0.0, saved.lag_s - steps * step_s)  # for the write before, as there is one copy
        return goodput(job, saved.costs_s + waits, restart, steps * step_s, lag_s=saved.lag_s, near=saves.near)

    if saved.steps:
        return saved.steps, of(saved.steps)
    free = goodput(job, saved.costs_s, restart, lag_s=saved.lag_s, near=saves.near).every_s / step_s
    around = sorted({max(1, math.floor(free)), max(1, math.ceil(free))})
    return max(((steps, of(steps)) for steps in around), key=lambda each: each[1].share)


@lru_cache(maxsize=16)  # a run is looked at several times
def _simulated(
    job: Job, work_s: float, write_s: float, every_s: float, restart: Restart, lag_s: float, near: Near | None
) -> Simulated:
    return simulate_failures(job, work_s, write_s=write_s, every_s=every_s, restart=restart, lag_s=lag_s, near=near)
