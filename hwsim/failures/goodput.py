"""Goodput: the part of the time of a failing job that is work, and what the rest is lost to.

    goodput = what is left by `formulas.renewal` x (1 - part of the time that it waits for a node in repair)

Causes may have restarts of their own: exp(-d/M) is then its mean over the causes. With `every: auto` the interval is the best
one, by `formulas.best`. What a failure leaves of each part of a restart is cut off by the next failure.

**Range**: by chance alone (exponential), or simulated for another shape; copies in memory are synchronous.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal

from hwsim.failures import formulas
from hwsim.failures.file import Restart
from hwsim.failures.job import Job
from hwsim.formats import format_quantity, format_share
from hwsim.records import dataclass
from hwsim.spec.mistakes import Hinted

LEAST: Final = 0.01  # goodput below which a job makes no progress
PHASES: Final = ("detect", "replace", "start", "load")
MOST_COPIES: Final = 10_000  # copies in memory from one write to storage to the next


class NoProgress(Hinted):
    """A job that fails more often than it gets on; `hint` says what would help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """Copies of the state in the memory of other nodes, between two checkpoints on storage.

    survives: share of failures that leave them whole.  write_s: a copy stops the training so long.  load_s: to read one back.
    every_s: work between two of them.
    """

    survives: float
    write_s: float
    load_s: float = 0.0
    every_s: float | Literal["auto"] = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Saves:
    """Checkpoints of a training among the ops of a graph.

    Args:
        mode: sync: the next step waits for the write; async: for the copy alone.
        every: steps, every_s: seconds from one to the next; both 0: where the goodput is largest.
        first: steps before the first one; extra: a step follows the last one, to see what the write costs it.
        size: bytes; target: where to, in words; load_s: seconds to read it back.
        near: copies in memory as well.
    """

    mode: str
    every: int
    every_s: float
    first: int
    extra: bool
    size: float
    target: str
    load_s: float
    near: Near | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    """The part of the time that is work.

    Args:
        share: the part itself; low, high: at nine of ten sites, by what their rates and restarts are known to be.
        every_s: work between checkpoints; near_every_s: between copies in memory, 0 without.
        write_s, lag_s: how long one stops the training, and how long after that it counts.
        down_s: from a failure until training goes on, in the mean.
        mtbf_s: mean seconds between failures, with the job never waiting for a repair.
        lost: share of the time that is lost, by what it is lost to; with `share` they add up to 1.
        by_cause: share of the time that is lost, by what failed; checkpoints are not among them.
        spares: nodes that stand by.
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
        """Seconds that `work_s` seconds of work take in the mean."""
        return work_s / self.share


def goodput(
    job: Job,
    write_s: float,
    restart: Restart | float | None = None,
    every: float | Literal["auto"] = "auto",
    *,
    lag_s: float = 0.0,
    near: Near | None = None,
) -> Goodput:
    """The goodput of a job.

    Args:
        write_s: how long a checkpoint stops the training; lag_s: until it counts after that, where it is asynchronous.
        restart: in place of the job's own; a number: all of it, in seconds.
        every: seconds of work between checkpoints.
        near: copies in memory as well.

    Raises:
        NoProgress: a checkpoint or a restart takes longer than the job runs.
        ValueError: the time to load is not known.
    """
    parts = _restart(job, restart)
    _refuse(job, write_s, parts)
    around = _near_every(job, write_s, parts, near) if near is not None else (0.0, 1)
    if every == "auto":
        seconds = around[0] * around[1] if near is not None else formulas.best(job.mtbf_s, write_s)
        seconds = max(seconds, lag_s - write_s)  # the one before is written before the next begins
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
            f"and {_time(_down(job, parts))} for a restart, {format_share(share)} of the time is work"
        )
        raise NoProgress(message, "checkpoint more often, or restart faster")
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


def spares_of(job: Job) -> int:
    """Nodes that stand by."""
    return formulas.spares_for(job.broken, job.spares.percentile) if job.spares.nodes == "auto" else job.spares.nodes


def survival(job: Job, restart: Restart, factor: float = 1.0) -> float:
    """Mean over the causes of exp(-d/M): the probability that a restart is not struck itself."""
    total = 0.0
    for cause in job.causes:
        down = math.fsum(seconds for _, seconds in restart.phases(replaced=cause.replaced, factor=factor))
        total += cause.rate / job.rate * math.exp(-min(formulas.LARGEST, down / job.mtbf_s))
    return total


def _restart(job: Job, restart: Restart | float | None) -> Restart:
    if isinstance(restart, int | float):
        return Restart(detect=0.0, replace=0.0, start=float(restart), load=0.0)
    return restart or job.restart


def _down(job: Job, restart: Restart) -> float:
    """Mean seconds of a restart that nothing strikes."""
    return math.fsum(
        cause.rate / job.rate * seconds for cause in job.causes for _, seconds in restart.phases(replaced=cause.replaced)
    )


def _refuse(job: Job, write_s: float, restart: Restart) -> None:
    if write_s >= job.mtbf_s:
        message = (
            f"no progress: a checkpoint stops the training for {_time(write_s)}, and something fails every {_time(job.mtbf_s)}"
        )
        raise NoProgress(message, "faster storage, or mode: async")
    down = _down(job, restart)
    if down >= 4.6 * job.mtbf_s:  # exp(-4.6) = 1 %
        message = f"no progress: a restart takes {_time(down)}, and something fails every {_time(job.mtbf_s)}"
        raise NoProgress(message, "fewer parts, or a faster restart")


def _time(seconds: float) -> str:
    return format_quantity(seconds, "s")


@dataclass(frozen=True, slots=True)
class _Model:
    """All that the goodput depends on, besides the rates.  around: (seconds between copies in memory, copies a checkpoint)."""

    write_s: float
    restart: Restart
    every_s: float
    lag_s: float
    near: Near | None
    around: tuple[float, int]
    factor: float = 1.0  # of the restart

    def waiting(self, job: Job) -> float:
        """Part of the time that the job waits for a node in repair."""
        return formulas.erlang_b(spares_of(job) + 1, job.broken) if job.broken > 0 else 0.0

    def running(self, job: Job) -> float:
        """Goodput while it does not wait for a repair."""
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

    def share(self, job: Job) -> float:
        """Goodput."""
        return self.running(job) * (1.0 - self.waiting(job))

    def lost(self, job: Job, share: float) -> tuple[dict[str, float], dict[str, float]]:
        """(shares of the time by what they are lost to, by what failed)."""
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


def _near_every(job: Job, write_s: float, restart: Restart, near: Near) -> tuple[float, int]:
    """(seconds between copies in memory, copies from one checkpoint to the next) where the goodput is largest."""
    mtbf = job.mtbf_s
    down = -mtbf * math.log(survival(job, restart))
    near_down = -mtbf * math.log(survival(job, replace(restart, load=near.load_s)))

    def of(every: float, times: int) -> float:
        return formulas.two_levels(mtbf, near.survives, every, times, near.write_s, write_s, near_down, down)

    def every_for(times: int) -> float:
        if near.every_s != "auto":
            return near.every_s
        return formulas.peak(lambda every: of(every, times), 1e-4 * mtbf, 3.0 * mtbf)

    best, times, step = (0.0, 1), 1, 1
    highest = -1.0
    while times <= MOST_COPIES:  # the best number has one maximum: walk in steps of a tenth, then look around it
        every = every_for(times)
        if (share := of(every, times)) < highest + 1e-7:
            break
        highest, best = share, (every, times)
        step = max(1, times // 10)
        times += step
    for times in range(max(1, best[1] - step), best[1] + step + 1):
        every = every_for(times)
        if (share := of(every, times)) > highest:
            highest, best = share, (every, times)
    return best


def _either_way(job: Job, model: _Model) -> tuple[float, float]:
    """(how far the goodput may be below, above) by what is known of the rates and of restarts, as if they were independent."""
    share = model.share(job)
    others = [
        *(model.share(scaled(job, factor)) for factor in job.spread.mtbf),
        *(replace(model, factor=factor).share(job) for factor in job.spread.restart),
    ]
    return (
        math.sqrt(math.fsum(max(0.0, share - other) ** 2 for other in others)),
        math.sqrt(math.fsum(max(0.0, other - share) ** 2 for other in others)),
    )


def scaled(job: Job, factor: float) -> Job:
    """A job whose parts fail `factor` times as seldom."""
    return replace(job, causes=tuple(replace(cause, rate=cause.rate / factor) for cause in job.causes))


def _simulated(job: Job, model: _Model, share: float) -> float:
    """The goodput of failures of another shape, simulated over some hundred failures of each run."""
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
