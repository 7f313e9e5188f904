"""Failures by chance: many runs of one job at once, each with failures of its own, whose lost work is really lost.

A failure comes a drawn time after the last one, also while the job is down: then the restart begins anew. Work goes on from the
last checkpoint that counted. A node that is replaced goes to repair, and a job without a spare waits for the first that is back.

**Source** of the shape: times between failures of large machines are Weibull with shapes of 0.7 to 0.8 (Schroeder and Gibson,
"A large-scale study of failures in high-performance computing systems", DSN 2006).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from hwsim.failures.goodput import Near, spares_of
from hwsim.records import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hwsim.failures.file import Restart
    from hwsim.failures.job import Job

    Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class _Schedule:
    """Copies after every `unit` seconds of work, each `times`-th on storage; progress is counted in units.

    copy, write: seconds that one stops the training; lag: until a write counts.
    """

    work: float
    unit: float
    times: int
    copy: float
    write: float
    lag: float

    @staticmethod
    def of(work_s: float, write_s: float, every_s: float, lag_s: float, near: Near | None) -> _Schedule:
        """The schedule with its intervals.

        Raises:
            ValueError: an interval is missing.
        """
        if near is None:
            if not every_s > 0:
                raise ValueError("a run needs the work between two checkpoints")
            return _Schedule(work_s, every_s, 1, write_s, write_s, lag_s)
        if near.every_s == "auto":
            raise ValueError("a run needs the work between two copies in memory")
        times = max(1, round(every_s / near.every_s))
        return _Schedule(work_s, every_s / times, times, near.write_s, write_s, lag_s)

    def needed(self, safe: Floats) -> Floats:
        """Seconds until the end from here, undisturbed; nothing is written at the end."""
        import numpy as np

        left = self.work - safe * self.unit
        last = safe + np.ceil(left / self.unit - 1e-9) - 1
        far = last // self.times - safe // self.times
        time: Floats = left + np.maximum(last - safe - far, 0.0) * self.copy + far * self.write
        return time

    def reached(self, safe: Floats, up: Floats) -> tuple[Floats, Floats]:
        """(what is kept in copies, what is on storage), in units, after so long from here."""
        import numpy as np

        turn = self.unit + self.copy
        period = self.times * self.unit + (self.times - 1) * self.copy + self.write
        inside = safe % self.times
        along = inside * turn + up
        periods = along // period
        rest = along - periods * period
        copies = np.minimum(rest // turn, self.times - 1)
        kept = safe - inside + periods * self.times + copies
        written = safe - inside + np.maximum(0.0, (along - self.lag) // period) * self.times
        return (np.maximum(written, safe) if self.times == 1 else kept), written


@dataclass(frozen=True, slots=True)
class Simulated:
    """Runs of one job, each with other failures.

    Args:
        work_s: the work of each; seconds: the whole time of each, ascending.
        failures: number of them in each, in the order of the seeds.
    """

    work_s: float
    seconds: tuple[float, ...]
    failures: tuple[int, ...]

    @property
    def mean_s(self) -> float:
        """Mean of the whole time."""
        return math.fsum(self.seconds) / len(self.seconds)

    @property
    def goodput(self) -> float:
        """Work over the mean of the whole time."""
        return self.work_s / self.mean_s

    def percentile(self, level: float) -> float:
        """Seconds that `level` per cent of the runs stay below.

        >>> Simulated(1.0, (1.0, 2.0, 3.0), (0, 0, 0)).percentile(50)
        2.0
        """
        at = level / 100.0 * (len(self.seconds) - 1)
        low = int(at)
        high = min(low + 1, len(self.seconds) - 1)
        return self.seconds[low] + (at - low) * (self.seconds[high] - self.seconds[low])


def simulate_failures(
    job: Job,
    work_s: float,
    *,
    write_s: float,
    every_s: float,
    restart: Restart | None = None,
    lag_s: float = 0.0,
    near: Near | None = None,
    spares: int | None = None,
    runs: int | None = None,
    seed: int | None = None,
) -> Simulated:
    """Runs of `work_s` seconds of work.

    Args:
        write_s, every_s, lag_s, near: as of `goodput`, with every interval a number.
        restart, spares, runs, seed: in place of the job's own.

    Raises:
        ValueError: a run never ends, or an interval is missing.
    """
    import numpy as np

    many = job.runs if runs is None else runs
    draw = np.random.default_rng(job.seed if seed is None else seed)
    parts = restart or job.restart
    schedule = _Schedule.of(work_s, write_s, every_s, lag_s, near)
    stand_by = spares_of(job) if spares is None else spares
    causes = [cause for cause in job.causes if cause.rate > 0]
    bounds = np.cumsum([cause.rate / job.rate for cause in causes])[:-1]
    replaced = np.array([cause.replaced for cause in causes], np.bool_)
    far_down = np.array([math.fsum(seconds for _, seconds in parts.phases(replaced=cause.replaced)) for cause in causes])
    loads = dict(parts.phases(replaced=True))["load"]
    near_down = far_down - loads + near.load_s if near is not None else far_down
    scale = job.mtbf_s / math.gamma(1.0 + 1.0 / job.shape)

    clock, safe = np.zeros(many), np.zeros(many)  # the time, and the work that counts in units of copies
    stored = np.zeros(many)  # of it, what is on storage
    failures, down, ends = np.zeros(many, np.int64), np.zeros(many), np.full(many, -1.0)
    limited = stand_by < job.broken + 20.0 * math.sqrt(job.broken) + 20.0  # else no run ever waits
    repaired = np.full(
        (stand_by + 1 if limited else 1, many), -math.inf
    )  # when the last nodes that were replaced are back, in turns
    turn = np.zeros(many, np.int64)
    columns = np.arange(many)
    least = 1000 + 1000 * math.ceil(work_s / job.mtbf_s)
    while (running := ends < 0).any():
        if failures.max(initial=0) > least:
            raise ValueError(f"the run did not finish within {least:,} failures")
        stretch = scale * draw.weibull(job.shape, many)
        up = stretch - down
        needed = schedule.needed(safe)
        done = running & (up >= needed)
        ends[done] = (clock + down + needed)[done]
        going = running & ~done
        kept, written = schedule.reached(safe, np.maximum(up, 0.0))
        survive = draw.random(many) < near.survives if near is not None else np.zeros(many, np.bool_)
        # work of copies that survive, or on storage
        after = np.where(survive, kept, np.maximum(stored, written)) if near is not None else kept
        safe = np.where(going, after, safe)
        stored = np.where(going, np.maximum(stored, written), stored)
        clock = np.where(going, clock + stretch, clock)
        failures += going
        cause = np.searchsorted(bounds, draw.random(many), side="right")
        down = np.where(survive, near_down[cause], far_down[cause])
        away = going & replaced[cause]
        if limited and away.any():
            repaired[turn[away], columns[away]] = clock[away] + job.spares.repair
            turn[away] = (turn[away] + 1) % (stand_by + 1)
            oldest = repaired[turn, columns]  # of those that went last, one more than there are spares
            clock = clock + np.where(away, np.maximum(0.0, oldest - clock), 0.0)
    return Simulated(work_s, tuple(np.sort(ends).tolist()), tuple(failures.tolist()))
