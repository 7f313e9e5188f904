"""Goodput: the share of a job's time that is work, and the causes of the lost time.

    goodput = `formulas.renewal` x (1 - share of time spent waiting for a node in repair)

Causes may have different restarts; exp(-d/M) is then averaged over the causes. `every: auto` uses the interval of
`formulas.best`. The next failure can interrupt each phase of a restart.

**Range**: exponential times between failures; other shapes are simulated. Copies in memory are synchronous.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal

from hwsim.failures import formulas
from hwsim.failures.file import Restart
from hwsim.failures.job import FailingJob
from hwsim.formats import format_quantity, format_share
from hwsim.records import dataclass
from hwsim.spec.mistakes import HintedError

LEAST: Final = 0.01  # goodput below which the job is rejected
PHASES: Final = ("detect", "replace", "start", "load")
MOST_COPIES: Final = 10_000  # maximum number of copies in memory per checkpoint on storage


class NoProgress(HintedError):
    """Raised for a job whose failures prevent progress; `hint` names a remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCopies:
    """Copies of the state in the memory of other nodes, between two checkpoints on storage.

    Args:
        survives: share of failures that leave the copies intact.
        write_s: pause of the training for a copy (s).
        load_s: time to read a copy back (s).
        every_s: work between two copies (s); auto: the interval with the highest goodput.
    """

    survives: float
    write_s: float
    load_s: float = 0.0
    every_s: float | Literal["auto"] = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSchedule:
    """The checkpoints of a training in an op graph.

    Args:
        mode: sync: the next step waits for the write; async: only for the copy to host memory.
        every: steps between checkpoints; 0: `every_s` applies.
        every_s: seconds between checkpoints; 0, with `every` 0: the interval with the highest goodput.
        first: steps before the first checkpoint.
        extra: whether one more step is simulated during the last write.
        size: size of a checkpoint (B).
        target: description of the storage.
        load_s: time to read a checkpoint back (s).
        near: additional copies in memory; None: none.
    """

    mode: str
    every: int
    every_s: float
    first: int
    extra: bool
    size: float
    target: str
    load_s: float
    near: MemoryCopies | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    """The goodput of a job and its losses.

    Args:
        share: goodput: share of time spent on work.
        low: lower end of the 90 % interval due to uncertain rates and restart times.
        high: upper end of this interval.
        every_s: work between checkpoints (s).
        near_every_s: work between copies in memory (s); 0: none.
        write_s: pause for a checkpoint (s).
        lag_s: time after the pause until the checkpoint is valid (s).
        down_s: average downtime after a failure (s).
        mtbf_s: mean time between failures while the job does not wait for a repair (s).
        lost: lost share of time by kind of loss; adds up to 1 together with `share`.
        by_cause: lost share of time by failed part, without checkpoints.
        spares: number of spare nodes.
    """

    share: float
    low: float
    high: float
    every_s: float
    near_every_s: float
    write_s: float
    lag_s: float
    down_s: float
    mtbf_s: float
    lost: Mapping[str, float]
    by_cause: Mapping[str, float]
    spares: int

    def time(self, work_s: float) -> float:
        """Return the average time of `work_s` seconds of work (s)."""
        return work_s / self.share


def goodput(
    job: FailingJob,
    write_s: float,
    restart: Restart | float | None = None,
    every: float | Literal["auto"] = "auto",
    *,
    lag_s: float = 0.0,
    near: MemoryCopies | None = None,
) -> Goodput:
    """Return the goodput of a job.

    Args:
        job: failure rates and restart of the job.
        write_s: pause for a checkpoint (s).
        restart: replaces the restart of the job; a number is its total time (s).
        every: work between checkpoints (s); auto: the interval with the highest goodput.
        lag_s: time after the pause until an asynchronous checkpoint is valid (s).
        near: additional copies in memory; None: none.

    Raises:
        NoProgress: a checkpoint or a restart takes longer than the time between failures, or the goodput is below 1 %.
        ValueError: the load time is unknown.
    """
    parts = _restart(job, restart)
    _refuse(job, write_s, parts)
    around = _near_every(job, write_s, parts, near) if near is not None else (0.0, 1)
    if every == "auto":
        seconds = around[0] * around[1] if near is not None else formulas.best(job.mtbf_s, write_s)
        seconds = max(seconds, lag_s - write_s)  # one write ends before the next begins
    else:
        seconds = every
        around = (around[0], max(1, round(seconds / around[0]))) if near is not None else around
    if near is not None:
        around = (seconds / around[1], around[1])
    model = _Model(write_s, parts, seconds, lag_s, near, around)
    share = model.share(job)
    if share < LEAST:
        message = (
            f"no progress: with a failure every {_time(job.mtbf_s)}, a checkpoint every {_time(seconds)} "
            f"and a restart of {_time(_down(job, parts))}, the goodput is {format_share(share)}"
        )
        raise NoProgress(message, "checkpoint more often or restart faster")
    if job.shape < 1.0 or job.shape > 1.0:
        share = _simulated(job, model, share)
    down, up = _either_way(job, model)
    lost, by_cause = model.lost(job, share)
    return Goodput(
        share=share,
        low=max(0.0, share - down),
        high=min(1.0, share + up),
        every_s=seconds,
        near_every_s=around[0] if near is not None else 0.0,
        write_s=write_s,
        lag_s=lag_s,
        down_s=_down(job, parts),
        mtbf_s=job.mtbf_s,
        lost=lost,
        by_cause=by_cause,
        spares=spares_of(job),
    )


def spares_of(job: FailingJob) -> int:
    """Return the number of spare nodes."""
    return formulas.spares_for(job.broken, job.spares.percentile) if job.spares.nodes == "auto" else job.spares.nodes


def survival(job: FailingJob, restart: Restart, factor: float = 1.0) -> float:
    """Return the average over the causes of exp(-d/M): the probability of a restart without a further failure."""
    total = 0.0
    for cause in job.causes:
        down = math.fsum(seconds for _, seconds in restart.phases(replaced=cause.replaced, factor=factor))
        total += cause.rate / job.rate * math.exp(-min(formulas.LARGEST, down / job.mtbf_s))
    return total


def _restart(job: FailingJob, restart: Restart | float | None) -> Restart:
    if isinstance(restart, int | float):
        return Restart(detect=0.0, replace=0.0, start=float(restart), load=0.0)
    return restart or job.restart


def _down(job: FailingJob, restart: Restart) -> float:
    """Return the average time of a restart without a further failure (s)."""
    return math.fsum(
        cause.rate / job.rate * seconds for cause in job.causes for _, seconds in restart.phases(replaced=cause.replaced)
    )


def _refuse(job: FailingJob, write_s: float, restart: Restart) -> None:
    if write_s >= job.mtbf_s:
        message = (
            f"no progress: a checkpoint pauses the training for {_time(write_s)}, and a part fails every {_time(job.mtbf_s)}"
        )
        raise NoProgress(message, "mode: async, or faster storage")
    down = _down(job, restart)
    if down >= 4.6 * job.mtbf_s:  # exp(-4.6) = 1 %
        message = f"no progress: a restart takes {_time(down)}, and a part fails every {_time(job.mtbf_s)}"
        raise NoProgress(message, "use fewer parts or a faster restart")


def _time(seconds: float) -> str:
    return format_quantity(seconds, "s")


@dataclass(frozen=True, slots=True)
class _Model:
    """The parameters of the goodput except the failure rates.

    Args:
        around: (work between copies in memory (s), copies per checkpoint on storage).
        factor: factor on the restart time.
    """

    write_s: float
    restart: Restart
    every_s: float
    lag_s: float
    near: MemoryCopies | None
    around: tuple[float, int]
    factor: float = 1.0

    def waiting(self, job: FailingJob) -> float:
        """Return the share of time in which the job waits for a node in repair."""
        return formulas.erlang_b(spares_of(job) + 1, job.broken) if job.broken > 0 else 0.0

    def running(self, job: FailingJob) -> float:
        """Return the goodput while the job does not wait for a repair."""
        mtbf = job.mtbf_s
        down = -mtbf * math.log(survival(job, self.restart, self.factor))
        if self.near is None:
            return formulas.renewal(mtbf, self.every_s, self.write_s, down, self.lag_s)
        memory = replace(self.restart, load=self.near.load_s)
        near_down = -mtbf * math.log(survival(job, memory, self.factor))
        every, times = self.around
        return formulas.two_levels(
            mtbf, self.near.survives, every, times, self.near.write_s, self.write_s, near_down, down + self.lag_s
        )

    def share(self, job: FailingJob) -> float:
        return self.running(job) * (1.0 - self.waiting(job))

    def lost(self, job: FailingJob, share: float) -> tuple[dict[str, float], dict[str, float]]:
        """Return (lost shares of time by kind of loss, by failed part)."""
        waits, mtbf = self.waiting(job), job.mtbf_s
        stops = share * self.write_s / self.every_s if self.every_s > 0 else 0.0
        if self.near is not None:
            every, times = self.around
            stops = share * ((times - 1) * self.near.write_s + self.write_s) / (times * every)
        parts = dict.fromkeys(PHASES, 0.0)
        by_cause: dict[str, float] = {}
        for cause in job.causes:
            begun = 0.0
            for name, seconds in self.restart.phases(replaced=cause.replaced, factor=self.factor):
                if name == "load" and self.near is not None:
                    seconds = self.near.survives * self.near.load_s + (1.0 - self.near.survives) * seconds
                part = math.exp(-begun / mtbf) - math.exp(-(begun + seconds) / mtbf)
                parts[name] += (1.0 - waits) * cause.rate / job.rate * part
                by_cause[cause.name] = by_cause.get(cause.name, 0.0) + (1.0 - waits) * cause.rate / job.rate * part
                begun += seconds
        work = max(0.0, 1.0 - waits - share - stops - math.fsum(parts.values()))
        replaced = math.fsum(cause.rate for cause in job.causes if cause.replaced)
        for cause in job.causes:
            by_cause[cause.name] += work * cause.rate / job.rate + (waits * cause.rate / replaced if cause.replaced else 0.0)
        lost = {"checkpoints": stops, "lost work": work, **parts, "waiting for a repair": waits}
        return lost, by_cause


def _near_every(job: FailingJob, write_s: float, restart: Restart, near: MemoryCopies) -> tuple[float, int]:
    """Return (work between copies in memory (s), copies per checkpoint on storage) with the highest goodput."""
    mtbf = job.mtbf_s
    down = -mtbf * math.log(survival(job, restart))
    near_down = -mtbf * math.log(survival(job, replace(restart, load=near.load_s)))

    def share_of(every: float, times: int) -> float:
        return formulas.two_levels(mtbf, near.survives, every, times, near.write_s, write_s, near_down, down)

    def every_for(times: int) -> float:
        if near.every_s != "auto":
            return near.every_s
        return formulas.find_maximum(lambda every: share_of(every, times), 1e-4 * mtbf, 3.0 * mtbf)

    best, times, step = (0.0, 1), 1, 1
    highest = -1.0
    while times <= MOST_COPIES:  # one maximum: coarse search in steps of 10 %, then a fine search
        every = every_for(times)
        if (share := share_of(every, times)) < highest + 1e-7:
            break
        highest, best = share, (every, times)
        step = max(1, times // 10)
        times += step
    for times in range(max(1, best[1] - step), best[1] + step + 1):
        every = every_for(times)
        if (share := share_of(every, times)) > highest:
            highest, best = share, (every, times)
    return best


def _either_way(job: FailingJob, model: _Model) -> tuple[float, float]:
    """Return (distance below, above the goodput) due to uncertain rates and restart times, combined as independent errors."""
    share = model.share(job)
    others = [
        *(model.share(scale_mtbf(job, factor)) for factor in job.spread.mtbf),
        *(replace(model, factor=factor).share(job) for factor in job.spread.restart),
    ]
    return (
        math.sqrt(math.fsum(max(0.0, share - other) ** 2 for other in others)),
        math.sqrt(math.fsum(max(0.0, other - share) ** 2 for other in others)),
    )


def scale_mtbf(job: FailingJob, factor: float) -> FailingJob:
    """Return a job whose mean times between failures are `factor` times as long."""
    return replace(job, causes=tuple(replace(cause, rate=cause.rate / factor) for cause in job.causes))


def _simulated(job: FailingJob, model: _Model, share: float) -> float:
    """Return the simulated goodput for a non-exponential shape, over some hundred failures per run."""
    from hwsim.failures.simulation import simulate_failures

    run = simulate_failures(
        job,
        500.0 * job.mtbf_s * share,
        write_s=model.write_s,
        every_s=model.every_s,
        restart=model.restart,
        lag_s=model.lag_s,
        near=model.near if model.near is None else replace(model.near, every_s=model.around[0]),
        runs=40,
    )
    return run.goodput
